"""Two implementations, one script: where they first behave differently, and what that means.

Behaviour is what an implementation answers to each packet that reaches it, in kinds of packets;
when it answers is left to the checkers. Up to the first difference both have met the same packets,
so that there, and only there, the difference is their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from bentpipe_conformance.engine.checking import load_checkers
from bentpipe_conformance.engine.context import Context
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.statement import declared
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.engine.verdict import Verdict

from bentpipe_fuzz.campaign.binding import Binding

Class = Literal["same", "one violates", "both violate", "both allowed", "silent"]
"""What a difference means: see :func:`compared`."""

MEANING: Mapping[Class, str] = {
    "same": "they behave alike",
    "one violates": "one violates a requirement that the other one meets",
    "both violate": "both violate the same requirement",
    "both allowed": "they differ, and requirements that speak of it permit both",
    "silent": "they differ where no requirement says anything",
}

MOST_TOLD = 6
"""Answers to one packet that are named."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A packet that arrived, and what was answered before the next one came.

    Attributes:
        arrived: what it was; empty for what leaves before anything arrives.
        answers: what left, kinds in a row once.
        packets: the frame numbers of all of them.
    """

    arrived: str
    answers: tuple[str, ...]
    packets: tuple[int, ...]

    def __str__(self) -> str:
        told = ", ".join(self.answers[:MOST_TOLD]) or "nothing"
        more = ", ..." if len(self.answers) > MOST_TOLD else ""
        return f"{self.arrived or 'the beginning'} -> {told}{more}"


@dataclass(frozen=True, slots=True)
class Played:
    """A script as one implementation played it.

    Attributes:
        trace: its packets.
        violated: what it violates, and how; the campaign's own oracles included.
        profile: of the suite.
        ics: its conformance statement.
    """

    trace: Trace[Any]
    violated: Mapping[str, str]
    profile: str
    ics: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """What came of comparing.

    Attributes:
        kind: what it means.
        exchanges: the first that differ, of either; empty where only verdicts differ.
        requirements: those violated; or those that speak of the exchanges and are met.
        sentences: how they are violated.
    """

    kind: Class
    exchanges: tuple[Exchange | None, Exchange | None]
    requirements: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def exchanges(trace: Trace[Any], binding: Binding) -> list[Exchange]:
    """A conversation as what arrived and what was answered, at the implementation's side."""
    found: list[tuple[str, list[str], list[int]]] = [("", [], [])]
    for packet in trace.at("iut"):
        label = "malformed" if packet.content is None else binding.behaviour(packet.content)
        if not packet.outgoing:
            found.append((label, [], []))
        _, answers, numbers = found[-1]
        numbers.append(packet.number)
        if packet.outgoing and (not answers or answers[-1] != label):
            answers.append(label)
    return [Exchange(arrived, tuple(a), tuple(n)) for arrived, a, n in found if arrived or n]


def first_difference(
    left: Sequence[Exchange], right: Sequence[Exchange]
) -> tuple[Exchange | None, Exchange | None]:
    """The first exchanges that are not alike; None for one that there is not."""
    for ours, theirs in zip_longest(left, right):
        if ours is None or theirs is None or ours.arrived != theirs.arrived:
            return ours, theirs
        if ours.answers != theirs.answers:
            return ours, theirs
    return None, None


def speaking(played: Played, suite: Suite, packets: Sequence[int]) -> set[str]:
    """The requirements that are met by some of these packets."""
    wanted, checkers = set(packets), load_checkers(suite)
    found = set()
    for flow in suite.interpreter.read_flows(played.trace):
        prepared = suite.interpreter.prepare(flow)
        for requirement in suite.requirements().values():
            check = checkers.get(requirement.id)
            if check is None or played.profile not in requirement.profiles:
                continue
            if not declared(played.ics, requirement.condition_in(played.profile)):
                continue
            error = played.trace.timing_error
            context = Context(requirement, played.profile, played.ics, error, prepared)
            if any(map(wanted.intersection, _met(check(flow, context)))):
                found.add(requirement.id)
    return found


def _met(findings: Iterable[Finding]) -> Iterator[tuple[int, ...]]:
    return (item.packets for item in findings if item.verdict is Verdict.PASS)


def compared(left: Played, right: Played, suite: Suite, binding: Binding) -> Difference:
    """How two implementations differ.

    What one violates and the other one does not comes first, whether or not their packets are of
    the same kinds; then what both violate. Otherwise it is asked whether any requirement is met by
    the packets that differ: if one speaks of them both are allowed, if none the specification is
    silent, which is worth a report to its drafters.
    """
    pair = first_difference(exchanges(left.trace, binding), exchanges(right.trace, binding))
    one = sorted(left.violated.keys() ^ right.violated.keys())
    if one:
        told = [left.violated.get(name) or right.violated[name] for name in one]
        return Difference("one violates", pair, tuple(one), tuple(told))
    if pair == (None, None):
        return Difference("same", pair)
    if left.violated:
        told = [left.violated[name] for name in sorted(left.violated)]
        return Difference("both violate", pair, tuple(sorted(left.violated)), tuple(told))
    spoken: set[str] = set()
    for played, exchange in zip((left, right), pair, strict=True):
        if exchange is not None:
            spoken |= speaking(played, suite, exchange.packets)
    return Difference("both allowed" if spoken else "silent", pair, tuple(sorted(spoken)))
