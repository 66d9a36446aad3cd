"""The result of a run, and a bundle finished: result.json, junit.xml, report.html, manifest."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bentpipe_spec.registry import Requirement

from bentpipe_conformance.engine.attribution import CaseFindings, attribute
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.statement import unclaimed
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.verdict import Verdict, across_cases
from bentpipe_conformance.evidence.attestation import sign, statement
from bentpipe_conformance.evidence.bundle import Bundle, BundleError
from bentpipe_conformance.evidence.records import CaseRecord, RunRecord
from bentpipe_conformance.evidence.serialization import dumps, encode
from bentpipe_conformance.run.completeness import lacking

RESULT_FORMAT = "bentpipe-result/2"


def result_of(
    bundle: Bundle, records: Sequence[CaseRecord], finished: float = 0.0
) -> dict[str, Any]:
    """The content of ``result.json`` of a run that ended at ``finished`` (seconds since 1970).

    A run that lacks cases is partial, and its overall verdict is no pass.

    A requirement's verdict merges every finding on it, whichever case it came from, with the
    verdicts of the cases that target it. Requirements that no executed case targeted and no
    finding touched are left out, so that a selection of cases (``--only``) is judged on itself.
    The overall verdict looks at MUST-level requirements; a SHOULD that fails is listed under
    ``deviations`` (RFC 2119: there may be valid reasons), and an open case is never a pass. An
    implementation that ended during any case fails. Where the conformance
    statement and the probed handshake differ, nothing passes as a whole, for a statement that
    denies a feature would hide its failures as unsupported. ``attribution`` says which requirements
    name what is wrong, and which fail in their wake.
    """
    run = bundle.run
    disagreements = _disagreements(bundle)
    partial = lacking(run, [record.id for record in records])
    entries = []
    suite = suite_named(run.suite)
    targeting, found = defaultdict(list), defaultdict(list)
    stored = {record.id: encode(record.findings) for record in records}
    for record in records:
        for name in record.requirements:
            targeting[name].append(record)
        for finding, encoded in zip(record.findings, stored[record.id], strict=True):
            found[finding.requirement].append(_Found(record.id, finding, encoded))
    for requirement in suite.requirements().values():
        if requirement.testability != "wire" or run.profile not in requirement.profiles:
            continue
        about = targeting[requirement.id], found[requirement.id]
        entry = _requirement(requirement, *about, run.iut.ics, run.profile)
        if entry is not None:
            entries.append(entry)
    summary = Counter(entry["verdict"] for entry in entries)
    return {
        "format": RESULT_FORMAT,
        "run": bundle.identity,
        "finished": finished,
        "verdict": _overall(entries, records, disagreements, partial).value,
        "partial": bool(partial),
        "partial_because": partial,
        "ics_disagreements": disagreements,
        "profile": run.profile,
        **({"exploration": told} if (told := bundle.exploration) else {}),
        "summary": {verdict.value: summary.get(verdict.value, 0) for verdict in Verdict},
        "deviations": [
            entry["id"]
            for entry in entries
            if entry["verdict"] == Verdict.FAIL and entry["level"] != "MUST"
        ],
        "attribution": [
            {"requirement": item.requirement, "cases": list(item.cases),
             "consequences": list(item.consequences)}
            for item in attribute(
                (CaseFindings(it.id, it.requirements, it.findings) for it in records),
                suite.rests_on(),
            )
        ],
        "requirements": entries,
        "cases": [
            {"id": record.id, "verdict": record.verdict.value, "reason": record.reason,
             "requirements": list(record.requirements), "findings": stored[record.id],
             "crafted": encode(record.crafted)}
            for record in records
        ],
    }  # fmt: skip


def _disagreements(bundle: Bundle) -> list[str]:
    """Where the probed handshake is not what the conformance statement says.

    Raises:
        BundleError: the plan does not say it in sentences.
    """
    probe = bundle.run.bed.check.get("probe", {})
    found = probe.get("disagreements", []) if isinstance(probe, dict) else None
    if not isinstance(found, list) or not all(isinstance(sentence, str) for sentence in found):
        where = bundle.directory / "run.json"
        raise BundleError(f"{where} is damaged: what its probe found is no list of sentences.")
    return found


def _overall(
    entries: Iterable[Mapping[str, Any]],
    records: Sequence[CaseRecord],
    disagreements: Sequence[str],
    partial: Sequence[str],
) -> Verdict:
    counted = [
        Verdict(entry["verdict"])
        for entry in entries
        if entry["level"] == "MUST" or entry["verdict"] != Verdict.FAIL
    ]
    if any(record.lane.get("died") or record.lane.get("told") for record in records):
        counted.append(Verdict.FAIL)
    if disagreements or partial:
        counted.append(Verdict.INCONCLUSIVE)
    return across_cases(counted) or Verdict.INCONCLUSIVE


class _Found(NamedTuple):
    """A finding with the case it comes from."""

    case: str
    finding: Finding
    encoded: dict[str, Any]


def _requirement(
    requirement: Requirement,
    targeting: Sequence[CaseRecord],
    found: Sequence[_Found],
    ics: Mapping[str, Any],
    profile: str,
) -> dict[str, Any] | None:
    entry = {"id": requirement.id, "level": requirement.level, "title": requirement.title}
    if not targeting and not found:
        return None
    blocked = [record.reason for record in targeting if record.verdict is Verdict.UNSUPPORTED]
    unsupported = blocked[0] if blocked and not found else None
    unsupported = unclaimed(ics, requirement.condition_in(profile)) or unsupported
    if unsupported is not None:
        return {**entry, "verdict": Verdict.UNSUPPORTED.value, "reason": unsupported,
                "exercised": 0, "cases": [record.id for record in targeting],
                "findings": []}  # fmt: skip
    findings = [item.finding for item in found]
    verdict = across_cases(finding.verdict for finding in findings) or Verdict.INCONCLUSIVE
    decisive = next((finding for finding in findings if finding.verdict is verdict), None)
    involved = dict.fromkeys([*(record.id for record in targeting), *(item.case for item in found)])
    return {
        **entry,
        "verdict": verdict.value,
        "reason": decisive.sentence if decisive else "the situation was not reached",
        "exercised": sum(f.count for f in findings if f.verdict in (Verdict.PASS, Verdict.FAIL)),
        "cases": list(involved),
        "findings": [
            {"case": item.case, **item.encoded}
            for item in sorted(found, key=lambda item: item.finding.verdict is Verdict.PASS)
        ],
    }


def seal_bundle(bundle: Bundle, key: Path | None = None, jobs: int | None = 1) -> dict[str, Any]:
    """Write everything derived from the cases, and the manifest; return the result.

    With an SSH ``key``, what the bundle says is signed. ``jobs`` processes draw the cases (None:
    one for each core).

    Raises:
        BundleError: a file cannot be written, or a stored case is damaged.
        SigningError: the key does not sign.
    """
    records = bundle.cases()
    outcome = result_of(bundle, records, time.time())
    files = rendered(bundle, outcome, records, jobs)
    bundle.seal(files, lambda digest: certificate(bundle.run, outcome, digest))
    if key is not None:
        bundle.attest(sign(statement(bundle.run, outcome, bundle.manifest_digest()), key))
    return outcome


def certificate(run: RunRecord, outcome: Mapping[str, Any], digest: str) -> str:
    """The text of ``certificate.html``; ``digest`` is that of all other files."""
    from bentpipe_conformance.report.certificate import render_certificate

    return render_certificate(run, outcome, digest)


def rendered(
    bundle: Bundle, outcome: Mapping[str, Any], records: Sequence[CaseRecord],
    jobs: int | None = 1,
) -> dict[str, str]:  # fmt: skip
    """The files that are made of a result and the cases, by name; ``jobs`` processes draw cases.

    Raises:
        BundleError: a capture is missing or damaged.
    """
    from bentpipe_conformance.evidence.junit import junit_xml
    from bentpipe_conformance.report.page import RequirementText, render_report

    requirements: dict[str, RequirementText] = {
        item.id: {"level": item.level, "title": item.title, "text": item.text,
                  "source": "; ".join(item.source), "note": item.difference}
        for item in suite_named(bundle.run.suite).requirements().values()
    }  # fmt: skip
    return {
        "result.json": dumps(outcome),
        "junit.xml": junit_xml(bundle.run, outcome, records),
        "report.html": render_report(
            bundle,
            outcome,
            requirements,
            finished=outcome["finished"],
            records=records,
            jobs=jobs,
        ),
    }
