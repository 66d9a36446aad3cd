"""Links and calls drawn at random; a protocol's hosts are drawn by its reference."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.subject import Call

from bentpipe_conformance.engine.peer import STANDARD_SERVICES

_CHARGEN = STANDARD_SERVICES["chargen"]
_LOSSES = (0.0, 0.0, 0.0, 0.002, 0.01, 0.03, 0.1, 0.3)


def draw_link(numbers: random.Random) -> LinkProfile:
    """A link that may lose, delay, reorder and duplicate packets."""
    delay = numbers.choice((0.001, 0.02, 0.06, 0.15, 0.3))
    untidy = numbers.random() < 0.3
    return LinkProfile(
        "drawn", "drawn at random", "",
        forward=_draw_direction(numbers, delay, untidy),
        return_=_draw_direction(numbers, delay * numbers.choice((1.0, 1.0, 0.2)), untidy),
    )  # fmt: skip


def _draw_direction(numbers: random.Random, delay: float, untidy: bool) -> Direction:
    return Direction(
        rate_bit_s=numbers.choice((None, 6e4, 3e5, 1.3e6, 6e6)),
        delay_s=delay,
        queue_packets=numbers.choice((8, 25, 50, 200)),
        loss_probability=numbers.choice(_LOSSES),
        reorder_probability=numbers.choice((0.0, 0.02, 0.2, 0.5)) if untidy else 0.0,
        reorder_delay_s=numbers.choice((0.001, 0.02, 0.1, 0.5)) if untidy else 0.0,
        duplicate_probability=numbers.choice((0.0, 0.02, 0.3)) if untidy else 0.0,
    )


def tidy(direction: Direction) -> Direction:
    """A direction that loses what does not fit, and nothing else."""
    return Direction(
        rate_bit_s=direction.rate_bit_s, delay_s=direction.delay_s,
        queue_packets=direction.queue_packets,
    )  # fmt: skip


def draw_calls(numbers: random.Random, until: float) -> list[Call]:
    """Up to three calls of one host; ``until`` is when the transfer ends without idle times."""
    calls = []
    for _ in range(numbers.choice((0, 1, 1, 2, 3))):
        at = numbers.uniform(0.0, until / 3)
        port = numbers.choice(tuple(STANDARD_SERVICES.values()))
        longest = 8.0 if port == _CHARGEN else until
        tiny = numbers.random() < 0.2
        quiet = at + numbers.uniform(0.0, 5.0)
        idle = numbers.choice((1.0, 8.0, 600.0, 7300.0)) if numbers.random() < 0.15 else 0.0
        deaf = at + numbers.uniform(0.0, 5.0)
        stops = numbers.choice((0.5, 5.0, 30.0)) if numbers.random() < 0.2 else 0.0
        call = Call(
            at, port,
            octets=numbers.choice((0, 1, 300, 5000, 60_000, 250_000)) if not tiny else 400,
            at_once=numbers.choice((1, 300, 20_000, 1 << 20)) if not tiny else 3,
            reading=numbers.choice((200, 2000, 1 << 20)),
            ends_at=at + numbers.uniform(0.2, longest) + idle,
            aborts=numbers.random() < 0.15, endless=port == _CHARGEN,
            gap_s=numbers.choice((0.0, 0.001, 0.1, 1.5)) if tiny or numbers.random() < 0.1 else 0.0,
            silence=(quiet, quiet + idle) if idle else (0.0, 0.0),
            deaf=(deaf, deaf + stops) if stops else (0.0, 0.0),
        )  # fmt: skip
        calls.append(call)
    return calls


@dataclass(frozen=True, slots=True)
class Spell:
    """A time in which one direction of a link is another.

    Attributes:
        at: when it begins, seconds.
        seconds: how long it lasts.
        changes: fields of :class:`Direction` and their values meanwhile.
    """

    at: float
    seconds: float
    changes: Mapping[str, Any]


def draw_weather(numbers: random.Random, direction: Direction, until: float) -> list[Spell]:
    """Outages, bursts of loss and steps of the rate; none more often than not."""
    spells = []
    for _ in range(numbers.choice((0, 0, 0, 1, 2, 6))):
        at = numbers.uniform(0.0, until)
        kind = numbers.choice(("outage", "burst", "burst", "rate"))
        if kind == "outage":
            seconds = numbers.choice((0.2, 2.0, 20.0))
            spells.append(Spell(at, seconds, {"loss_probability": 1.0}))
        elif kind == "burst":
            spells.append(Spell(at, numbers.choice((0.02, 0.2, 1.0)), {"loss_probability": 0.6}))
        elif direction.rate_bit_s is not None:
            rate = direction.rate_bit_s * numbers.choice((0.1, 0.5, 4.0))
            spells.append(Spell(at, numbers.uniform(1.0, 30.0), {"rate_bit_s": rate}))
    return spells


def blow(simulation: Simulation, link: VirtualLink[Any], spells: Iterable[Spell]) -> None:
    """Let a link change for a while each; the last to end leaves it as it was."""
    usual = link.direction

    def change(direction: Direction) -> None:
        link.direction = direction

    for spell in spells:
        simulation.call_at(spell.at, partial(change, replace(usual, **spell.changes)))
        simulation.call_at(spell.at + spell.seconds, partial(change, usual))
