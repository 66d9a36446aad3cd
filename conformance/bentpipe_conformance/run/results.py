"""From case records to the result of a run: requirement verdicts, counts, overall verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bentpipe_spec.registry import Requirement

from bentpipe_conformance.engine.statement import declared
from bentpipe_conformance.engine.verdict import Verdict, across_cases
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.evidence.serialization import encode

RESULT_FORMAT = "bentpipe-result/1"


def result(
    requirements: Mapping[str, Requirement],
    records: Sequence[CaseRecord],
    profile: str,
    ics: Mapping[str, Any],
    disagreements: Sequence[str] = (),
) -> dict[str, Any]:
    """The content of ``result.json``.

    A requirement's verdict merges every finding on it, whichever case it came from, with the
    verdicts of the cases that target it. Requirements that no executed case targeted and no
    finding touched are left out, so that a selection of cases (``--only``) is judged on itself.
    The overall verdict looks at MUST-level requirements; a SHOULD that fails is listed under
    ``deviations`` (RFC 2119: there may be valid reasons), and an open case is never a pass. An
    implementation that ended during any case fails. ``disagreements`` are sentences on items where
    the conformance statement and the probed handshake differ; with one, nothing passes as a whole,
    for a statement that denies a feature would hide its failures as unsupported.
    """
    entries = []
    for requirement in requirements.values():
        if requirement.testability != "wire" or profile not in requirement.profiles:
            continue
        entry = _requirement(requirement, records, ics)
        if entry is not None:
            entries.append(entry)
    summary = Counter(entry["verdict"] for entry in entries)
    return {
        "format": RESULT_FORMAT,
        "verdict": _overall(entries, records, disagreements).value,
        "ics_disagreements": list(disagreements),
        "profile": profile,
        "summary": {verdict.value: summary.get(verdict.value, 0) for verdict in Verdict},
        "deviations": [
            entry["id"]
            for entry in entries
            if entry["verdict"] == Verdict.FAIL and entry["level"] != "MUST"
        ],
        "requirements": entries,
        "cases": [_case(record) for record in records],
    }


def _overall(
    entries: Iterable[Mapping[str, Any]],
    records: Sequence[CaseRecord],
    disagreements: Sequence[str],
) -> Verdict:
    counted = [
        Verdict(entry["verdict"])
        for entry in entries
        if entry["level"] == "MUST" or entry["verdict"] != Verdict.FAIL
    ]
    if any(record.lane.get("died") for record in records):
        counted.append(Verdict.FAIL)
    if disagreements:
        counted.append(Verdict.INCONCLUSIVE)
    return across_cases(counted) or Verdict.INCONCLUSIVE


def _requirement(
    requirement: Requirement, records: Sequence[CaseRecord], ics: Mapping[str, Any]
) -> dict[str, Any] | None:
    entry: dict[str, Any] = {
        "id": requirement.id,
        "level": requirement.level,
        "title": requirement.title,
    }
    targeting = [record for record in records if requirement.id in record.requirements]
    found = [
        (record, finding)
        for record in records
        for finding in record.findings
        if finding.requirement == requirement.id
    ]
    if not targeting and not found:
        return None
    blocked = [record.reason for record in targeting if record.verdict is Verdict.UNSUPPORTED]
    unsupported = blocked[0] if blocked and not found else None
    if not declared(ics, requirement.condition):
        unsupported = f"the conformance statement does not claim {requirement.condition}"
    if unsupported is not None:
        return {**entry, "verdict": Verdict.UNSUPPORTED.value, "reason": unsupported,
                "exercised": 0, "cases": [record.id for record in targeting],
                "findings": []}  # fmt: skip
    verdict = across_cases(finding.verdict for _, finding in found) or Verdict.INCONCLUSIVE
    decisive = next(((r, f) for r, f in found if f.verdict is verdict), None)
    involved = dict.fromkeys([*(r.id for r in targeting), *(r.id for r, _ in found)])
    return {
        **entry,
        "verdict": verdict.value,
        "reason": decisive[1].sentence if decisive else "the situation was not reached",
        "exercised": sum(f.count for _, f in found if f.verdict in (Verdict.PASS, Verdict.FAIL)),
        "cases": list(involved),
        "findings": [
            {"case": record.id, **encode(finding)}
            for record, finding in sorted(found, key=lambda item: item[1].verdict is Verdict.PASS)
        ],
    }


def _case(record: CaseRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "verdict": record.verdict.value,
        "reason": record.reason,
        "requirements": list(record.requirements),
        "findings": encode(record.findings),
    }
