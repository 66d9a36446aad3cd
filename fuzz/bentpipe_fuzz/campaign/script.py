"""A script: everything that one conversation with an implementation under test is made of.

It is data. Together with the implementation and its bed it determines the run, and it can be drawn,
shortened, stored and played again. Times are seconds on the lane's clock since the conversation
began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Way = Literal["to-iut", "to-tester"]
"""A direction of the link."""

Kind = Literal["lose", "delay", "copy", "flip", "rate"]
"""What the link does; see :class:`Impairment`."""

Unit = Literal["packet", "second"]
"""What counts the extent of an impairment."""

WAYS: tuple[Way, ...] = get_args(Way)
KINDS: tuple[Kind, ...] = get_args(Kind)
UNITS: tuple[Unit, ...] = get_args(Unit)


class ScriptError(ValueError):
    """What was read is not a script; the message is a clause."""


@dataclass(frozen=True, slots=True)
class Impairment:
    """What the link does to some packets, beyond its profile.

    Attributes:
        way: their direction.
        kind: ``lose`` them (over seconds: an outage); ``delay`` each by ``value`` seconds, so that
            later ones overtake it (over seconds: a step of the round-trip time); ``copy``: deliver
            each again ``value`` seconds later; ``flip`` bit number ``value`` of each, counted from
            the end of the packet (which the tester then discards); let them share a ``rate`` of
            ``value`` bit/s.
        unit: what ``first`` and ``span`` count.
        first: of packets offered in that direction the first is 1.
        span: how many packets, or seconds.
        value: see ``kind``.
    """

    way: Way
    kind: Kind
    unit: Unit = "packet"
    first: float = 1
    span: float = 1
    value: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is none.

        Raises:
            ScriptError: a value is out of range.
        """
        known = self.way in WAYS and self.kind in KINDS and self.unit in UNITS
        numbers = (self.first, self.span, self.value)
        if not known or not all(isinstance(number, int | float) for number in numbers):
            raise ScriptError(f"{asdict(self)} is no impairment")
        if min(numbers) < 0 or max(numbers) > 1e9 or (self.kind == "rate" and self.value < 1):
            raise ScriptError(f"an impairment has a value out of range: {asdict(self)}")

    def covers(self, ordinal: int, now: float) -> bool:
        """Whether it concerns a packet, by its number in its direction and the time."""
        at = ordinal if self.unit == "packet" else now
        return self.first <= at < self.first + self.span

    def __str__(self) -> str:
        names = {"to-iut": "to the implementation", "to-tester": "to the tester"}
        if self.unit == "second":
            where = f"from {self.first:g} s for {self.span:g} s, {names[self.way]}"
        elif self.span == 1:
            where = f"packet {self.first:g} {names[self.way]}"
        else:
            where = f"{self.span:g} packets from packet {self.first:g} {names[self.way]}"
        how = {
            "lose": "lost", "delay": f"{self.value:g} s late",
            "flip": f"bit {self.value:g} changed", "copy": f"again {self.value:g} s later",
            "rate": f"at {self.value:g} bit/s",
        }  # fmt: skip
        return f"{where}: {how[self.kind]}"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the tester does.

    Attributes:
        verb: one of the protocol's, see :class:`~bentpipe_fuzz.campaign.binding.Binding`.
        given: its arguments: numbers, texts, truth values and lists of them. What is left out has
            the verb's usual value.
    """

    verb: str
    given: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return f"{self.verb}({told})"


@dataclass(frozen=True, slots=True)
class Script:
    """One conversation.

    Attributes:
        suite: name of the suite whose protocol is spoken.
        mode: what the tester is like, one of the protocol's modes.
        steps: what it does.
        link: what the link does.
        seed: of the tester's own numbers (ports, initial sequence numbers), and of those of an
            implementation in the campaign's process.
    """

    suite: str
    mode: str
    steps: tuple[Step, ...]
    link: tuple[Impairment, ...] = ()
    seed: int = 0

    @property
    def length(self) -> int:
        """Steps and impairments: what shrinking makes small."""
        return len(self.steps) + len(self.link)

    def story(self) -> list[str]:
        """What happens, line by line."""
        return [*(f"link: {item}" for item in self.link), *map(str, self.steps)]


def encode(script: Script) -> dict[str, Any]:
    """A script as JSON."""
    return {
        "suite": script.suite,
        "mode": script.mode,
        "seed": script.seed,
        "link": [asdict(item) for item in script.link],
        "steps": [{"verb": step.verb, **step.given} for step in script.steps],
    }


def decode(document: Any) -> Script:
    """The script that :func:`encode` wrote.

    Raises:
        ScriptError: it is none.
    """
    try:
        link = tuple(Impairment(**item) for item in document["link"])
        given = [dict(item) for item in document["steps"]]
        steps = tuple(Step(str(item.pop("verb")), item) for item in given)
        return Script(
            str(document["suite"]), str(document["mode"]), steps, link, int(document["seed"])
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ScriptError):
            raise
        raise ScriptError(f"it is not a script ({type(error).__name__}: {error})") from None
