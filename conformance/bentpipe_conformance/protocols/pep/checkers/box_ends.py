"""Checkers of the box as an end of TCP (PEP-LR-001, -003, -004, -008): those of the TCP suite.

Each asks the TCP suite's checkers about every end of the box that speaks TCP, on its side of a
connection alone. Of that suite's rules those are taken that can be judged of a program that nobody
knows, and that no rule of PEP/1 changes: a FIN is confirmed late, with the
octets before it, a SYN may stay unanswered, and what a box does with a RST is carried over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import chain

from bentpipe_spec.registry import Requirement

from bentpipe_conformance.engine import context as engine
from bentpipe_conformance.engine.checking import Checker, load_checkers
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.statement import Ics, declared
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.pep.checkers import Context, of_scene
from bentpipe_conformance.protocols.pep.replay.box_ends import (
    OVER_SATELLITE,
    TCP_SUITE,
    BoxEnd,
    ends_of,
)
from bentpipe_conformance.protocols.pep.replay.flow import Scene
from bentpipe_conformance.protocols.tcp.observer import OBSERVER

_PROFILE = "rfc"

_TOLERANT: Ics = {
    "rack": True, "tlp": True, "prr": True, "frto": True, "early_retransmit": True, "ecn": True,
    "pacing": True, "byte_counting": "unlimited", "fast_retransmit": False, "newreno": False,
    "congestion_control": "other", "initial_window_segments": 10, "sack_sender": False,
}  # fmt: skip
_STANDARD: Ics = {
    "sack": True, "sack_sender": True, "sack_receiver": True, "timestamps": True,
    "window_scale": True, "fast_retransmit": True, "newreno": True, "limited_transmit": True,
    "byte_counting": "no", "congestion_control": "reno", "pacing": False,
    "initial_window_segments": 10,
}  # fmt: skip

CLAIMS: Mapping[str, Ics] = {
    "rfc": {
        **_STANDARD,
        "rack": False, "tlp": False, "prr": False, "frto": False, "early_retransmit": False,
        "ecn": False,
    },
    "linux": {
        **_STANDARD,
        "dsack": True, "rack": True, "tlp": True, "prr": True, "frto": True, "ecn": True,
        "byte_counting": "unlimited", "congestion_control": "cubic",
    },
    "other": _TOLERANT,
}  # fmt: skip
"""What each answer to *ends* in a box's statement claims in the terms of the TCP suite.

Of an unknown TCP everything is allowed that one may claim, and nothing is asked that one may deny.
"""


def _rules(text: str) -> tuple[str, ...]:
    return tuple(f"SNR-{name}" for name in text.split())


WINDOW = _rules(
    "SS-001 SS-002 CA-001 CA-002 ACK-005 ACK-007 FR-001 FR-003 FR-004 FR-006 FR-007 FR-009 LT-002 "
    "LT-004 REC-003 REC-005 REC-006 REC-007 REC-011 SAK-006 SAK-017 SAK-020 RTO-007 RTO-009"
)
"""How much may be outstanding, and what may be sent for which acknowledgment."""

FLIGHT = _rules("FR-009 REC-005")
"""Where *ends* is *rfc*: how far a loss reduces the window.

RFC 5681 equation 4 goes by what is outstanding, even if that had run short of data.
"""

TIMER = _rules("RTO-001 RTO-003 RTO-004 RTO-006 RTO-011 RTO-013 RTO-015")
"""When a timer may send."""

COMPUTED = _rules("RTO-016")
"""Where *ends* is *rfc*: that the timer is what the round trips give (RFC 6298 rule 2.3), and no
back-off outlives a measurement."""

OTHERS = _rules(
    "ACK-001 ACK-002 ACK-008 ACK-009 CON-001 CON-006 CON-017 CON-037 CON-039 CON-040 CON-042 "
    "OPT-002 OPT-003 OPT-004 OPT-005 OPT-006 OPT-007 OPT-009 OPT-010 OPT-012 OPT-013 OPT-014 "
    "OPT-015 OPT-016 OPT-018 OPT-019 OPT-020 SEG-007 "
    "RCV-005 RCV-006 RCV-007 RCV-009 RCV-010 RCV-016 RCV-020 RCV-024 REC-001 REC-008 "
    "REC-009 REC-012 LT-003 SAK-001 SAK-003 SAK-004 SAK-009 SAK-014 SEG-001 SEG-002 SEG-005 "
    "TS-001 TS-002 WIN-001 WIN-002 WIN-003 WIN-012 WIN-013"
)
"""Acknowledgments, options, what is sent again, and the peer's window."""

ADVICE = _rules(
    "ACK-003 ACK-010 FR-008 LT-001 REC-002 REC-010 RCV-001 RCV-002 RCV-008 RCV-011 RCV-013 "
    "RCV-015 RCV-019 RCV-025 RCV-026 RCV-027 RCV-029 RCV-032 RTO-008 RTO-010 RTO-012 "
    "SAK-002 SAK-007 SEG-006 SS-004 TS-005 TS-011 WIN-004 WIN-005 WIN-007 WIN-010"
)
"""What is a SHOULD."""

_LINUX: tuple[tuple[str, object, str], ...] = (
    ("begins_anew_with_arrivals", True, "WIN-004"),
    ("counts_segments", True, "SS-002 CA-001 RTO-007 RTO-009"),
    ("delays_with_fin", True, "RCV-002"),
    ("from_transmission", True, "RTO-010"),
    ("halves_window", True, "CA-002 REC-006 REC-011"),
    ("keeps_blocks_with_fin", True, "RCV-010 RCV-024"),
    ("probes_fail_together", True, "SAK-004"),
    ("pushed_is_last", True, "CA-002 FR-009 REC-005 SAK-017"),
    ("rest_of_block", True, "SAK-001 SAK-002"),
    ("spares_recent", True, "RTO-007 RTO-009"),
    ("whole_packets", 2, "SAK-001 SAK-002 SAK-004 SAK-007"),
)

KNOWN: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "linux": {
        rule: {name: value for name, value, text in _LINUX if rule in _rules(text)}
        for rule in chain.from_iterable(_rules(text) for _, _, text in _LINUX)
    },
}
"""What a TCP that is named is known to do otherwise, by rule of the TCP suite: as alternatives.

That suite's certification of it tells of them; about a box they say nothing.
"""

UNASKED: Mapping[str, Set[str]] = {"linux": frozenset(_rules("ACK-003"))}
"""Rules that a TCP that is named is known not to follow at all."""


@of_scene("PEP-LR-001")
def ends_are_tcp(scene: Scene, context: Context) -> Iterator[Finding]:
    """Each end of the box is an end of TCP."""
    # Exercised by each connection of the box in which more than the opening passes.
    yield from _judged(OTHERS, _ends(scene, context), context)


@of_scene("PEP-LR-003")
def windows_of_their_own(scene: Scene, context: Context) -> Iterator[Finding]:
    """Each side has a congestion window of its own."""
    # Exercised by octets of the box that are acknowledged in slow start, or are lost.
    reserved = context.ics.get("reserved")
    ends = [it for it in _ends(scene, context) if not (reserved and it.where == OVER_SATELLITE)]
    yield from _judged(WINDOW, ends, context)


@of_scene("PEP-LR-004")
def timers_of_their_own(scene: Scene, context: Context) -> Iterator[Finding]:
    """Each side has a timer of its own."""
    # Exercised by segments of the box that are not acknowledged until a timer sends them again.
    rules = (*TIMER, *COMPUTED) if _named(context) == "rfc" else TIMER
    yield from _judged(rules, _ends(scene, context), context)


@of_scene("PEP-LR-008")
def ends_follow_advice(scene: Scene, context: Context) -> Iterator[Finding]:
    """Each end follows TCP's advice."""
    # Exercised by what TCP answers at once, such as segments in disorder and keep-alives, and by
    # losses, timeouts and closed windows.
    yield from _judged(ADVICE, _ends(scene, context), context)


# -- what several ask --------------------------------------------------------------------------


def _ends(scene: Scene, context: Context) -> Sequence[BoxEnd]:
    return ends_of(scene, context.timing_error, context.ics.get("satellite") == "tcp")


def _judged(rules: Sequence[str], ends: Iterable[BoxEnd], context: Context) -> Iterator[Finding]:
    """What the TCP suite's checkers find; what they are not sure of is left out."""
    stated = CLAIMS[_named(context)]
    for end in ends:
        ics = OBSERVER.claims(end.flow, stated)
        by_flight = [it for it in rules if it in FLIGHT and _named(context) == "rfc"]
        others = [it for it in rules if it not in by_flight]
        asked = (
            (end.readings, _asked(others, ics, end, context)),
            (end.by_flight, _asked(by_flight, ics, end, context)),
        )
        for found in chain.from_iterable(ways.all_judged(them) for ways, them in asked if them):
            for finding in found:
                if finding.verdict is not Verdict.INCONCLUSIVE:
                    yield _as_the_box(finding, end, context)


def _asked(
    rules: Sequence[str], ics: Ics, end: BoxEnd, context: Context
) -> list[tuple[Checker, engine.Context[object]]]:
    prepared = end.readings.prepared
    return [
        (check, engine.Context(requirement, _PROFILE, ics, context.timing_error, prepared))
        for requirement, check in _checkers(_named(context), tuple(rules))
        if declared(ics, requirement.condition_in(_PROFILE))
    ]


@cache
def _checkers(named: str, rules: tuple[str, ...]) -> list[tuple[Requirement, Checker]]:
    """Of the rules which the TCP that is named follows, with what else it is known to do."""
    suite = suite_named(TCP_SUITE)
    checkers, registry = load_checkers(suite), suite.requirements()
    known, unasked = KNOWN.get(named, {}), UNASKED.get(named, frozenset())
    return [
        (registry[name].permitting(_PROFILE, known.get(name, {})), checkers[name])
        for name in rules if name not in unasked
    ]  # fmt: skip


def _named(context: Context) -> str:
    return str(context.ics.get("ends", "other"))


def _as_the_box(finding: Finding, end: BoxEnd, context: Context) -> Finding:
    """A finding of the TCP suite as one about the box."""
    return Finding(
        context.requirement.id, finding.verdict, finding.packets,
        f"{end.where}, by {finding.requirement}: {finding.sentence}",
        finding.expected, finding.actual, finding.count,
    )  # fmt: skip
