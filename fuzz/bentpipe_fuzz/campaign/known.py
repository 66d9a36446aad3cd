"""Whether a finding is a deviation of an implementation that is known and reviewed."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.selftest.deviations import Deviation, known_deviations
from bentpipe_conformance.selftest.strangers import PROFILE, SUITE, is_explained, judging


def known_deviation(
    iut: str, profile: str, finding: Finding, captured: Sequence[Captured], error: float, ics: Ics
) -> str:
    """Why a known deviation explains a finding, in its reviewer's words; empty when none does.

    Only deviations that show under any settings count: those of a campaign's connections are not
    told. Of ``linux-bbr`` are those of ``linux``.

    Args:
        iut: identifier of the implementation.
        profile: by which it was judged.
        finding: what was found.
        captured: the packets.
        error: of their times, seconds.
        ics: the implementation's conformance statement.
    """
    suite = suite_named(SUITE)
    if profile != PROFILE or not finding.requirement.startswith(suite.prefix):
        return ""
    found = known_deviations(iut) or known_deviations(iut.partition("-")[0])
    these = [item for item in found if item.explains(finding.requirement, {})]
    by_name = [item for item in these if "*" not in item.requirements]
    judge_with = judging(read_trace(captured, error, suite=suite), ics)
    # What its own deviation explains needs no other.
    for some in (*([item] for item in by_name), these):
        if some and is_explained(some, finding, judge_with):
            return _told(some)
    return ""


def _told(deviations: Sequence[Deviation]) -> str:
    reasons = dict.fromkeys(" ".join(item.reason.split()) for item in deviations)
    return "; ".join(reasons)
