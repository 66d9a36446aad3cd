"""Link profiles: one description of a link, for the virtual link and the bed alike."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any


class ProfileError(ValueError):
    """A profile file cannot be read; the message names the file, the key and the remedy."""


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a link.

    Attributes:
        rate_bit_s: rate at which IP packets are serialised, bits per second; None for no limit.
        delay_s: one-way propagation delay, seconds.
        queue_packets: packets that may wait for the rate limiter, beyond the one being
            serialised and those in flight on the delay line; arrivals beyond are dropped.
        loss_probability: independent loss of each packet.
        ber: bit error rate; a packet with an erroneous bit is lost.
        reorder_probability: share of packets that take ``reorder_delay_s`` longer than the rest.
        reorder_delay_s: that extra delay, seconds.
        duplicate_probability: share of packets delivered twice.
    """

    rate_bit_s: float | None = None
    delay_s: float = 0.0
    queue_packets: int = 50
    loss_probability: float = 0.0
    ber: float = 0.0
    reorder_probability: float = 0.0
    reorder_delay_s: float = 0.0
    duplicate_probability: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkProfile:
    """A link as seen from the implementation under test.

    Attributes:
        id: name on the command line.
        title: one line for reports.
        source: where the figures come from.
        forward: from the implementation under test to the peer.
        return_: from the peer to the implementation under test.
        mtu: largest IP packet, octets.
    """

    id: str
    title: str
    source: str
    forward: Direction
    return_: Direction
    mtu: int = 1500

    @property
    def round_trip_s(self) -> float:
        """Propagation delay there and back, seconds."""
        return self.forward.delay_s + self.return_.delay_s

    def altered(self, **changes: Any) -> LinkProfile:
        """The link with these fields of both directions changed; see :class:`Direction`."""
        return replace(
            self, forward=replace(self.forward, **changes),
            return_=replace(self.return_, **changes),
        )  # fmt: skip


_PROBABILITIES = ("loss_probability", "ber", "reorder_probability", "duplicate_probability")
_DIRECTION_KEYS = tuple(field.name for field in fields(Direction))
_PROFILE_KEYS = ("title", "source", "mtu", "forward", "return")
_SMALLEST_MTU, _LARGEST_MTU = 68, 65535


def load_profiles(path: Path | str | None = None) -> dict[str, LinkProfile]:
    """The profiles of a TOML file, by id; without a path the ones that come with bentpipe.

    Each table ``[ID]`` has ``title``, ``source``, ``mtu`` and the tables ``[ID.forward]`` and
    ``[ID.return]`` with the fields of :class:`Direction`.

    Raises:
        ProfileError: the file is missing, is not TOML, or has an unknown key or a bad value.
    """
    if path is None:
        name = "profiles.toml"
        text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    else:
        name = str(path)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(
                f"{name}: cannot be read as a link profile file ({error})."
            ) from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{name}: not valid TOML ({error}).") from None
    return {key: _profile(name, key, table) for key, table in document.items()}


def _profile(file: str, key: str, table: Any) -> LinkProfile:
    _check_keys(file, key, table, _PROFILE_KEYS)
    for wanted in ("title", "forward", "return"):
        if wanted not in table:
            raise ProfileError(f"{file}: the profile [{key}] lacks {wanted!r}; add it.")
    mtu = table.get("mtu", 1500)
    if not isinstance(mtu, int) or not _SMALLEST_MTU <= mtu <= _LARGEST_MTU:
        raise ProfileError(
            f"{file}: mtu of [{key}] is {mtu!r}; "
            f"give octets from {_SMALLEST_MTU} to {_LARGEST_MTU}."
        )
    return LinkProfile(
        id=key,
        title=str(table["title"]),
        source=str(table.get("source", "given by the user")),
        forward=_direction(file, f"{key}.forward", table["forward"]),
        return_=_direction(file, f"{key}.return", table["return"]),
        mtu=mtu,
    )


def _direction(file: str, where: str, table: Any) -> Direction:
    _check_keys(file, where, table, _DIRECTION_KEYS)
    for key, value in table.items():
        problem = _problem(key, value)
        if problem:
            raise ProfileError(f"{file}: {key} of [{where}] is {value!r}; give {problem}.")
    return Direction(**table)


def _problem(key: str, value: Any) -> str | None:
    """What the value should be, None when it is fine."""
    if key == "queue_packets":
        fine = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        return None if fine else "a whole number of packets, at least 1"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        return "a number"
    if key in _PROBABILITIES:
        return None if 0 <= value <= 1 else "a probability from 0 to 1"
    if key == "rate_bit_s":
        return None if value > 0 else "bits per second above 0, or leave it out for no limit"
    return None if value >= 0 else "seconds, not negative"


def _check_keys(file: str, where: str, table: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(table, dict):
        raise ProfileError(f"{file}: {where!r} must be a table; write it as [{where}].")
    for key in table:
        if key not in allowed:
            raise ProfileError(
                f"{file}: unknown key {key!r} in [{where}]; allowed are {', '.join(allowed)}."
            )
