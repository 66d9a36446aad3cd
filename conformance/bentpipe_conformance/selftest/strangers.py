"""Whether real stacks are ever accused: their encounters, judged connection by connection.

Each host of each connection is judged with the conformance statement that its settings imply.
What a stack really does against a requirement is in ``deviations.toml``, reviewed, and subtracted.
"""

from __future__ import annotations

import marshal
import math
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from bentpipe_conformance.bed.encounter import Encounter, Evidence, Meeting, order
from bentpipe_conformance.bed.errors import BedError, last_line
from bentpipe_conformance.bed.kernel import find_virtual
from bentpipe_conformance.bed.place import NO_VIRTUAL_KERNEL
from bentpipe_conformance.bed.uml import run
from bentpipe_conformance.engine.checking import Readings, judge, load_checkers
from bentpipe_conformance.engine.context import Context
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.captures import dump_captured
from bentpipe_conformance.selftest import linux, ns3
from bentpipe_conformance.selftest.deviations import Deviation, known_deviations
from bentpipe_conformance.selftest.innocence import Accusation, Hearing
from bentpipe_conformance.selftest.pool import work_through

SUITE, PROFILE = "snr", "rfc"
BATCH = 10
"""Encounters in one guest."""
MEMORY_MIB = 512
GUEST_SECONDS = 900.0
FIN, SYN = 1, 2
SHOWS_DROPPED = frozenset(
    f"SNR-RCV-{number}" for number in ("001", "002", "008", "010", "019", "022")
)
"""What fails where a receiver drops what it holds above a gap, or what arrives there."""
EXACT_S = 1e-5
"""Timing error of a capture on a virtual clock."""

JudgeWith = Callable[[str, tuple[tuple[str, Any], ...], frozenset[str]], list[Finding]]
"""Given a requirement, permitted alternatives and habits, what is found with them."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One host of one connection, and the packets at its side of the link."""

    host: int
    meeting: Meeting
    captured: list[Captured]


def play(encounters: Sequence[Encounter]) -> list[Evidence]:
    """Let encounters take place in a guest.

    Raises:
        BedError: there is no kernel with a virtual clock, or the guest failed.
    """
    kernel = find_virtual()
    if kernel is None:
        raise BedError(NO_VIRTUAL_KERNEL)
    with tempfile.TemporaryDirectory(prefix="bentpipe-encounters-") as folder:
        Path(folder, "order").write_text(order(encounters), encoding="utf-8")
        command = [sys.executable, "-m", "bentpipe_conformance.bed.encounter", folder]
        result = run(kernel, command, memory_mib=MEMORY_MIB, timeout=GUEST_SECONDS)
        if result.status:
            raise BedError(f"The guest of the encounters failed: {last_line(result.stderr)}.")
        return [
            marshal.loads(Path(folder, str(number)).read_bytes())
            for number in range(len(encounters))
        ]


@dataclass(frozen=True, slots=True)
class Stranger:
    """A stack that nobody here has written.

    Attributes:
        name: in ``deviations.toml``.
        draw: the encounter of a seed.
        play: what is captured of encounters; raises what the function says.
        statement: what a host claims, by its own settings and those of a socket.
        settings: what was set at a host of a connection and at its peer.
    """

    name: str
    draw: Callable[[int], Encounter]
    play: Callable[[Sequence[Encounter]], list[Evidence]]
    statement: Callable[[Mapping[str, str], Mapping[str, Any]], dict[str, Any]]
    settings: Callable[[Encounter, Meeting, int], dict[str, Any]]


LINUX = Stranger("linux", linux.draw_encounter, play, linux.statement, linux.settings)
NS3 = Stranger("ns-3", ns3.draw_encounter, ns3.play, ns3.statement, ns3.settings)
STRANGERS = {stranger.name: stranger for stranger in (LINUX, NS3)}


def _port(packet: bytes, own: bool) -> int:
    """The source port of a packet, or its destination port."""
    at = (packet[0] & 15) * 4
    return int(struct.unpack_from("!HH", packet, at)[0 if own else 1])


def _flags(packet: bytes) -> int:
    """The flags of a segment of TCP."""
    return packet[(packet[0] & 15) * 4 + 13]


def connections(encounter: Encounter, evidence: Evidence) -> Iterable[Heard]:
    """Each connection of an encounter, once for each of its hosts."""
    for host, records in enumerate(evidence):
        begin = records[0][0] if records else 0
        for meeting in encounter.meetings:
            calls = meeting.caller == host
            captured = [
                Captured((time - begin) / 1e9, "iut", not sent, data)
                for time, sent, data in records
                if _concerns(data, meeting, sent == calls)
            ]
            yield Heard(host, meeting, captured)


def _concerns(packet: bytes, meeting: Meeting, source: bool) -> bool:
    """Whether a packet is of a meeting whose port is its source port, or else its destination."""
    return packet[9] == 6 and _port(packet, source) == meeting.port


def _fin(captured: Sequence[Captured], *, own: bool) -> float:
    """Number of the packet by which a host or its peer ends its stream, infinity for none."""
    ends = (
        number for number, item in enumerate(captured, start=1)
        if item.outgoing == own and _flags(item.data) & FIN
    )  # fmt: skip
    return next(ends, math.inf)


def _repeats_syn(captured: Sequence[Captured]) -> bool:
    """Whether a host has sent its SYN, or its answer to one, more than once."""
    return sum(item.outgoing and bool(_flags(item.data) & SYN) for item in captured) > 1


def is_explained(deviations: Sequence[Deviation], found: Finding, judge_with: JudgeWith) -> bool:
    """Whether deviations that show under the settings at hand explain a finding.

    One does that says nothing of what the implementation does instead. Of the others, one with its
    permitted alternatives does, together with all habits, if nothing is violated then; or all of
    them do at once, as an implementation does.
    """
    if any(not item.instead and not item.habits for item in deviations):
        return True
    habits = frozenset(habit for item in deviations for habit in item.habits)
    together = {name: value for item in deviations for name, value in item.instead.items()}
    kinds = [(item.instead, frozenset(item.habits)) for item in deviations]
    for instead, own in (*kinds, (together, habits)):
        for used in (own, habits):
            if not (instead or used):
                continue
            again = judge_with(found.requirement, tuple(instead.items()), used)
            alike = (one.packets for one in again if one.verdict is found.verdict)
            if not any(used or packets == found.packets for packets in alike):
                return True
    return False


def judging(trace: Trace[Any], ics: Ics) -> JudgeWith:
    """What a checker finds on a trace with other alternatives and habits; each is tried once."""

    @cache
    def judge_with(
        name: str, instead: tuple[tuple[str, Any], ...], habits: frozenset[str]
    ) -> list[Finding]:
        suite = suite_named(SUITE)
        requirement = suite.requirements()[name]
        altered = requirement.permitting(PROFILE, dict(instead))
        found: list[Finding] = []
        for flow in suite.interpreter.read_flows(trace):
            other = suite.interpreter.with_habits(flow, habits) if habits else flow
            readings = Readings(other, suite.interpreter)
            context = Context(altered, PROFILE, ics, trace.timing_error, readings.prepared)
            found += readings.judged(load_checkers(suite)[name], context)
        return found

    return judge_with


def _store(heard: Heard, name: str, keep: Path | None) -> None:
    if keep is not None:
        octets = dump_captured(heard.captured, "iut", name, 0.0)
        keep.joinpath(f"{name}.pcapng").write_bytes(octets)


def hear(
    encounter: Encounter, evidence: Evidence, keep: Path | None = None, stranger: Stranger = LINUX
) -> Hearing:
    """Judge one encounter; ``keep`` is a folder for the packets of a host that is accused."""
    suite = suite_named(SUITE)
    passed: set[str] = set()
    accusations = []
    packets = subtracted = 0
    deviations = known_deviations(stranger.name)
    for heard in connections(encounter, evidence):
        own = heard.meeting.options[heard.host != heard.meeting.caller]
        ics = stranger.statement(encounter.sysctls[heard.host], own)
        facts = stranger.settings(encounter, heard.meeting, heard.host)
        facts["syn"] = "repeated" if _repeats_syn(heard.captured) else "sent once"
        fins = {"closing": _fin(heard.captured, own=True), "ended": _fin(heard.captured, own=False)}
        trace = read_trace(heard.captured, EXACT_S, suite=suite)
        packets += len(trace.packets)
        results = list(judge(trace, PROFILE, ics, suite=suite))
        judge_with = judging(trace, ics)
        facts["dropped"] = any(
            found.requirement in SHOWS_DROPPED and found.verdict is Verdict.FAIL
            for found in results
        )
        for found in results:
            if found.verdict is Verdict.PASS:
                passed.add(found.requirement)
            elif found.verdict in (Verdict.FAIL, Verdict.ERROR):
                last = max(found.packets, default=0)
                facts |= {name: last >= fin for name, fin in fins.items()}
                these = [item for item in deviations if item.explains(found.requirement, facts)]
                known = is_explained(these, found, judge_with)
                what = found.requirement, found.sentence, found.packets
                subtracted += known
                if not known:
                    accusations.append(Accusation(encounter.seed, heard.host + 1, *what))
                    _store(heard, f"{encounter.seed}-{heard.host + 1}-{heard.meeting.port}", keep)
    return Hearing(
        encounter.seed, packets, frozenset(passed), tuple(accusations),
        len(encounter.meetings), subtracted,
    )  # fmt: skip


def _hear_some(keep: Path | None, name: str, seeds: Sequence[int]) -> list[Hearing]:
    stranger = STRANGERS[name]
    encounters = [stranger.draw(seed) for seed in seeds]
    played = zip(encounters, stranger.play(encounters), strict=True)
    return [hear(*item, keep, stranger) for item in played]


def hear_all(
    seeds: Sequence[int], jobs: int, report: Callable[[Hearing], None], keep: Path | None = None,
    stranger: Stranger = LINUX,
) -> list[Hearing]:  # fmt: skip
    """Judge the encounters of many seeds on ``jobs`` processes, reporting each in turn.

    The packets of who is accused go into the folder ``keep``: time within a guest is virtual, but
    what a kernel draws at random is not drawn again.

    Raises:
        BedError: see the stranger's ``play``.
    """
    batches = [seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH)]
    heard: list[Hearing] = []

    def pass_on(hearings: list[Hearing]) -> None:
        for hearing in hearings:
            report(hearing)
        heard.extend(hearings)

    work_through(batches, partial(_hear_some, keep, stranger.name), jobs, pass_on)
    return heard
