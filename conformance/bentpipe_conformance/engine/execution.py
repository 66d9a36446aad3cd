"""Running one case on one lane: drive, capture, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.checking import Ics, declared, judge
from bentpipe_conformance.engine.encapsulation import IN_UDP, Encapsulation
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured, Lane, LaneError
from bentpipe_conformance.engine.peer import STANDARD_SERVICES, NotReached
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict, within_case
from bentpipe_conformance.evidence.captures import as_recorded

SETTLE_RTTS = 1.0
"""Round trips to keep capturing after a script, so that answers to its last segment are judged."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What is the same for every case of a run.

    Attributes:
        suite: the suite whose cases are run.
        profile: a profile of the suite.
        ics: the declared conformance statement.
        rtt: round-trip time of the link without queueing, in seconds.
        seed: printed seed of the run.
        services: ports of the upper tester.
        drain: seconds to wait after a case until the link has surely carried what is on it;
            0 where every case has a link of its own.
        encapsulation: how packets of a protocol that is not the kernel's travel in IPv4.
    """

    suite: Suite
    profile: str
    ics: Ics
    rtt: float
    seed: int = 0
    services: Mapping[str, int] = field(default_factory=lambda: STANDARD_SERVICES)
    drain: float = 0.0
    encapsulation: Encapsulation = IN_UDP


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case came to.

    Attributes:
        verdict: of the case: its targets' findings merged.
        reason: one sentence.
        findings: every finding, also on requirements the case does not target.
        captured: what was captured.
        tester_address: the tester's address.
        link_seconds: seconds on the lane's clock.
        wall_seconds: seconds on the wall clock.
        timing_error: seconds by which times in this case may be wrong.
        not_reached: why the script did not reach its situation, or empty.
        broken: how the bed or the script broke, or empty.
        died: how the implementation ended, or empty.
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

    @classmethod
    def of_broken_bed(cls, item: Case, sentence: str) -> Outcome:
        """The outcome of a case for which no lane could be had."""
        findings = tuple(Finding(name, Verdict.ERROR, (), sentence) for name in item.requirements)
        return cls(Verdict.ERROR, sentence, findings, broken=sentence)


Judged = tuple[Verdict, str, tuple[Finding, ...]]
"""A case's verdict, its reason and all findings."""

Lateness = Callable[[Trace[Any]], float]
"""Measures the bed's own timing error, in seconds, on the packets of a trace."""


class Judge(Protocol):
    """What gives the verdict of a case: :func:`judge_case`, or something that asks it."""

    def __call__(
        self,
        item: Case,
        captured: Sequence[Captured],
        profile: str,
        ics: Ics,
        timing_error: float,
        *,
        not_reached: str = "",
        broken: str = "",
        died: str = "",
    ) -> Judged:
        """See :func:`judge_case`."""
        ...


def run_case(
    item: Case,
    lane: Lane,
    settings: RunSettings,
    lateness: Lateness | None = None,
    judged_by: Judge | None = None,
) -> Outcome:
    """Drive a case on a lane and judge what was captured.

    A script that fails to reach its situation makes the targets it left open inconclusive; an
    implementation that died makes them fail; a bed or script that broke is an error.
    """
    missing = [need for need in item.needs if not declared(settings.ics, need)]
    if missing:
        reason = f"the conformance statement does not claim {', '.join(missing)}"
        return Outcome(Verdict.UNSUPPORTED, reason, ())
    wall = time.perf_counter()
    address = lane.begin()
    started = lane.port.now()
    # The seed depends on the case alone, so that running a subset changes nothing.
    seed = settings.seed ^ _stable_hash(item.id)
    peer = settings.suite.driving.peer(lane, address, settings, seed)
    not_reached = ""
    broken = ""
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
        captured = as_recorded(lane.end())
        peer.wait(settings.drain)
    except LaneError as error:
        broken = broken or str(error)
    measured = lateness(read_trace(captured, suite=item.suite)) if lateness is not None else 0.0
    timing_error = max(lane.timing_error, measured)
    verdict, reason, findings = (judged_by or judge_case)(
        item, captured, settings.profile, settings.ics, timing_error,
        not_reached=not_reached, broken=broken, died=died,
    )  # fmt: skip
    return Outcome(
        verdict, reason, findings, tuple(captured), address, link_seconds,
        time.perf_counter() - wall, timing_error, not_reached, broken, died,
    )  # fmt: skip


def judge_case(
    item: Case,
    captured: Sequence[Captured],
    profile: str,
    ics: Ics,
    timing_error: float,
    *,
    not_reached: str = "",
    broken: str = "",
    died: str = "",
) -> Judged:
    """The verdict, its reason and all findings of a case from what was captured.

    A pure function: :mod:`bentpipe_conformance.verify` calls it again on a stored bundle.
    """
    suite = item.suite
    trace = read_trace(captured, timing_error, suite=suite)
    findings = list(judge(trace, profile, ics, suite=suite))
    registry = suite.requirements()
    targets = [
        name
        for name in item.requirements
        if profile in registry[name].profiles and declared(ics, registry[name].condition)
    ]
    if not targets:
        return Verdict.UNSUPPORTED, "no target requirement applies", tuple(findings)
    judged = {finding.requirement for finding in findings}
    for name in targets:
        if died:
            sentence = f"the implementation ended during the case: {died}"
            findings.append(Finding(name, Verdict.FAIL, (), sentence))
        elif broken:
            findings.append(Finding(name, Verdict.ERROR, (), broken))
        elif name not in judged:
            sentence = not_reached or "the situation was not reached"
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
