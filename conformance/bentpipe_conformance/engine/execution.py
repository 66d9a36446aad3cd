"""Running one case on one lane: drive, capture, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.checking import judge, occasion_missed
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured, Lane, LaneError, as_recorded
from bentpipe_conformance.engine.peer import Crafted, NotReached
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.statement import Ics, declared, unclaimed
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict, within_case

SETTLE_RTTS = 1.0
"""Round trips to keep capturing after a script, so that answers to its last segment are judged."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A case that was driven, with everything that its judgment depends on.

    Attributes:
        case: the case.
        captured: what was captured.
        profile: a profile of the suite.
        ics: the declared conformance statement.
        timing_error: seconds by which times in this case may be wrong.
        not_reached: why the script did not reach its situation, or empty; see
            :class:`~bentpipe_conformance.engine.peer.NotReached`.
        broken: how the bed or the script broke, or empty.
        died: how the implementation ended, or empty.
    """

    case: Case
    captured: Sequence[Captured]
    profile: str
    ics: Ics
    timing_error: float
    not_reached: str = ""
    broken: str = ""
    died: str = ""


Judgment = tuple[Verdict, str, tuple[Finding, ...]]
"""A case's verdict, its reason and all findings."""

Judge = Callable[[Recording], Judgment]
"""What judges a case: :func:`judge_case`, or something that calls it."""

Lateness = Callable[[Trace[Any]], float]
"""Measures the bed's own timing error, in seconds, on the packets of a trace."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one case.

    Attributes:
        verdict: of the case: its targets' findings merged.
        reason: one sentence.
        findings: every finding, also on requirements the case does not target.
        captured, timing_error, not_reached, broken, died: as in :class:`Recording`.
        tester_address: the tester's address.
        crafted: the packets that the tester made in Scapy.
        link_seconds: seconds on the lane's clock.
        wall_seconds: seconds on the wall clock.
    """

    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...]
    captured: tuple[Captured, ...] = ()
    tester_address: str = ""
    link_seconds: float = 0.0
    wall_seconds: float = 0.0
    timing_error: float = 0.0
    not_reached: str = ""
    broken: str = ""
    died: str = ""
    crafted: tuple[Crafted, ...] = ()

    @classmethod
    def of_broken_bed(cls, item: Case, sentence: str, profile: str, ics: Ics) -> Outcome:
        """The outcome of a case for which no lane could be opened."""
        if reason := unclaimed(ics, *item.needs):
            return cls(Verdict.UNSUPPORTED, reason, ())
        judgment = judge_case(Recording(item, (), profile, ics, 0.0, broken=sentence))
        return cls(*judgment, broken=sentence)


def run_case(
    item: Case, lane: Lane, settings: RunSettings, lateness: Lateness | None = None,
    judged_by: Judge | None = None,
) -> Outcome:  # fmt: skip
    """Drive a case on a lane and judge what was captured.

    If the script does not reach its situation, the targets it left open are inconclusive; if the
    implementation died, they fail; a bed or script that broke is an error.
    """
    if reason := unclaimed(settings.ics, *item.needs):
        return Outcome(Verdict.UNSUPPORTED, reason, ())
    wall = time.perf_counter()
    address = lane.begin()
    started = lane.port.now()
    # The seed depends on the case alone, so that running a subset changes nothing.
    seed = settings.seed ^ _stable_hash(item.id)
    peer = item.suite.driver.peer(lane, address, settings, seed)
    not_reached = broken = ""
    try:
        item.script(peer)
        peer.wait(SETTLE_RTTS * settings.rtt)
    except NotReached as error:
        not_reached = str(error)
    except LaneError as error:
        broken = str(error)
    except Exception as error:  # a defect of the script must not end the run
        broken = f"the script broke: {type(error).__name__}: {error}"
    died = lane.iut_alive() or ""
    link_seconds = lane.port.now() - started
    captured: list[Captured] = []
    try:
        peer.finish()
        if not_reached:
            # What ends the connections arrives, so that it shows how long the IUT was silent.
            peer.wait(SETTLE_RTTS * settings.rtt)
        captured = as_recorded(lane.end())
        peer.wait(settings.drain)
    except LaneError as error:
        broken = broken or str(error)
    measured = lateness(read_trace(captured, suite=item.suite)) if lateness is not None else 0.0
    timing_error = max(lane.timing_error, measured)
    recording = Recording(
        item, captured, settings.profile, settings.ics, timing_error, not_reached, broken, died
    )
    verdict, reason, findings = (judged_by or judge_case)(recording)
    return Outcome(
        verdict, reason, findings, tuple(captured), address, link_seconds,
        time.perf_counter() - wall, timing_error, not_reached, broken, died, tuple(peer.crafted),
    )  # fmt: skip


def judge_case(recording: Recording) -> Judgment:
    """The verdict of a case, its reason and all findings; they depend on the recording alone.

    :mod:`bentpipe_conformance.run.rejudge` calls it for the cases of a stored bundle.
    """
    item, profile, ics = recording.case, recording.profile, recording.ics
    trace = read_trace(recording.captured, recording.timing_error, suite=item.suite)
    trace = replace(trace, whole=True)
    findings = judge(trace, profile, ics, suite=item.suite)
    registry = item.suite.requirements()
    targets = [
        name
        for name in item.requirements
        if profile in registry[name].profiles
        and declared(ics, registry[name].condition_in(profile))
    ]
    if not targets:
        return Verdict.UNSUPPORTED, "no target requirement applies", tuple(findings)
    broken_by_that = recording.not_reached.partition(":")[0]
    if broken_by_that in registry and declared(ics, registry[broken_by_that].condition_in(profile)):
        targets = [*dict.fromkeys((*targets, broken_by_that))]
        findings.append(Finding(broken_by_that, Verdict.FAIL, (), recording.not_reached))
    judged = {finding.requirement for finding in findings}
    for name in targets:
        if recording.died:
            sentence = f"the implementation ended during the case: {recording.died}"
            findings.append(Finding(name, Verdict.FAIL, (), sentence))
        elif recording.broken:
            findings.append(Finding(name, Verdict.ERROR, (), recording.broken))
        elif name not in judged:
            sentence = recording.not_reached or occasion_missed(item.suite, name)
            findings.append(Finding(name, Verdict.INCONCLUSIVE, (), sentence))
    relevant = [finding for finding in findings if finding.requirement in targets]
    verdict = within_case(finding.verdict for finding in relevant)
    assert verdict is not None
    decisive = next(finding for finding in relevant if finding.verdict is verdict)
    return verdict, f"{decisive.requirement}: {decisive.sentence}", tuple(findings)


def _stable_hash(text: str) -> int:
    value = 0
    for octet in text.encode():
        value = (value * 131 + octet) & 0xFFFFFFFF
    return value
