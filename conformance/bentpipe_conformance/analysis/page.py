"""The report of an analysis: the page of a run, with a connection in the place of a case."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bentpipe_conformance.analysis.capture import Analysis, Row
from bentpipe_conformance.analysis.judging import Judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.records import Bed, CaseRecord, Implementation, RunRecord
from bentpipe_conformance.report.page import RequirementText, render_page

_VERDICTS = {
    "violated": Verdict.FAIL,
    "holds": Verdict.PASS,
    "unclear": Verdict.INCONCLUSIVE,
    "not judgeable": Verdict.INCONCLUSIVE,
    "fail": Verdict.FAIL,
    "pass": Verdict.PASS,
    "inconclusive": Verdict.INCONCLUSIVE,
}
"""What the page calls the outcomes; anything else was not asked, which it calls unsupported."""


def write_page(analysis: Analysis, path: Path) -> None:
    """Write the report of an analysis, whose traces have been kept, to a file.

    Raises:
        OSError: the file cannot be written.
    """
    requirements: dict[str, RequirementText] = {
        item.id: {"level": item.level, "title": item.title, "text": item.text,
                  "source": "; ".join(item.source), "note": item.difference}
        for item in (row.requirement for row in analysis.rows)
    }  # fmt: skip
    cases = ((_case(item, analysis), trace) for item, trace in analysis.traces)
    path.write_text(
        render_page(
            _run(analysis), _result(analysis), requirements, cases, quality=_remarks(analysis)
        ),
        encoding="utf-8",
    )


def _remarks(analysis: Analysis) -> list[str]:
    """What is to be said of the capture first."""
    quality = analysis.quality
    side = quality.side and f"taken at the side of {analysis.iut}: {quality.side}"
    remarks = [
        f"{item.sentence} ({item.connections} connections)" if item.connections else item.sentence
        for item in quality.remarks
    ]
    return [*([side] if side else []), *remarks] or ["nothing is wrong with it"]


def _run(analysis: Analysis) -> RunRecord:
    quality = analysis.quality
    check = {"side": quality.side or "not known", "frames": quality.packets,
             f"packets of {analysis.suite.protocol}": quality.relevant,
             "connections": quality.connections, "connections judged": quality.judged}  # fmt: skip
    return RunRecord(
        bentpipe=version("bentpipe"), command=tuple(sys.argv),
        iut=Implementation(analysis.iut, analysis.iut, ics=dict(analysis.stated)),
        link={"id": analysis.capture.name}, profile=analysis.profile,
        bed=Bed("a capture", timing_error=quality.timing_error, check=check),
        seed=0, suite=analysis.suite.name, started=analysis.started,
    )  # fmt: skip


def _result(analysis: Analysis) -> Mapping[str, Any]:
    entries = [_entry(row) for row in analysis.rows if row.status != "not exercised"]
    summary = Counter(entry["verdict"] for entry in entries)
    musts = [entry["verdict"] for entry in entries if entry["level"] == "MUST"]
    order = (Verdict.FAIL, Verdict.PASS, Verdict.INCONCLUSIVE)
    return {
        "verdict": next((item for item in order if item in musts), Verdict.INCONCLUSIVE),
        "summary": {item.value: summary.get(item, 0) for item in Verdict},
        "requirements": entries,
    }


def _entry(row: Row) -> dict[str, Any]:
    found = [(item, finding) for item, finding in (*row.violations, *row.unclear)]
    return {
        "id": row.requirement.id, "level": row.requirement.level, "title": row.requirement.title,
        "verdict": _VERDICTS.get(row.status, Verdict.UNSUPPORTED), "reason": row.sentence,
        "exercised": row.holds + len(row.violations),
        "cases": list(dict.fromkeys(item.name for item, _ in found)),
        "findings": [_finding(item, finding) for item, finding in found],
    }  # fmt: skip


def _finding(item: Judged, finding: Finding) -> dict[str, Any]:
    return {
        "case": item.name, "verdict": finding.verdict, "packets": finding.packets,
        "sentence": finding.sentence, "count": finding.count,
    }  # fmt: skip


def _case(item: Judged, analysis: Analysis) -> CaseRecord:
    word = analysis.verdict_of(item)
    entries = item.entries.values()
    found = [one for entry in entries for one in (*entry.violations, *entry.unclear)]
    met = [one for entry in entries for one in entry.met]
    return CaseRecord(
        item.name, item.name, f"{item.packets} packets from number {item.first}.", (),
        _VERDICTS.get(word, Verdict.UNSUPPORTED), found[0].sentence if found else word,
        (*found, *met), started=analysis.started + item.started, link_seconds=item.seconds,
    )  # fmt: skip
