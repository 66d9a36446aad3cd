"""Judging a stored bundle again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.execution import Recording, judge_case
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.evidence.bundle import Bundle, BundleError
from bentpipe_conformance.evidence.records import CaseRecord


def judge_again(bundle: Bundle, record: CaseRecord) -> CaseRecord:
    """The record of a stored case judged anew from its captures, by the same function as live.

    Raises:
        BundleError: a capture is missing or damaged.
    """
    if record.verdict == "unsupported" and not record.findings:
        return record
    item = load_cases(bundle.run.suite).get(record.id)
    if item is None:
        return record
    run, lane = bundle.run, record.lane
    recording = Recording(
        item, bundle.captured(record.id), run.profile, run.iut.ics,
        timing_error=float(lane.get("timing_error", 0.0)),
        not_reached=str(lane.get("not_reached", "")), broken=record.error,
        died=str(lane.get("died", "")),
    )  # fmt: skip
    verdict, reason, findings = judge_case(recording)
    return replace(record, verdict=verdict, reason=reason, findings=findings)


def verify(bundle: Bundle) -> tuple[list[CaseRecord], list[dict[str, str]]]:
    """Check a finished bundle's hashes, judge every case again, and list what differs.

    Returns:
        The records as judged now, and ``case``, ``stored`` and ``judged`` (the verdicts) of each
        case whose packets do not give what is stored.

    Raises:
        BundleError: a file is missing, changed or damaged, or the bundle was judged by rules that
            this release does not have.
    """
    bundle.check()
    run = bundle.run
    if (suite := load_suites().get(run.suite)) and run.profile not in suite.profiles:
        raise BundleError(
            f"{bundle.directory} was judged by the profile {run.profile!r}, which this release "
            f"does not have (it has {', '.join(suite.profiles)}); verify it with the release that "
            "made it."
        )
    records, differences = [], []
    for record in bundle.cases():
        again = judge_again(bundle, record)
        records.append(again)
        if _gist(again) != _gist(record):
            before, now = record.verdict.value, again.verdict.value
            differences.append({"case": record.id, "stored": before, "judged": now})
    return records, differences


def _gist(record: CaseRecord) -> tuple[Any, ...]:
    return record.verdict, sorted((f.requirement, f.verdict, f.packets) for f in record.findings)
