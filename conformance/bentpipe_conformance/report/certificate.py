"""certificate.html: one printed page on what was tested, what came of it, and how to check that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.records import RunRecord
from bentpipe_conformance.report.page import MARKS, isolation_sentence, template

MOST_NAMED = 24
"""Requirements of a kind that are named; the page has room for no more."""


def render_certificate(run: RunRecord, result: Mapping[str, Any], digest: str) -> str:
    """The page of a finished run; ``digest`` is the SHA-256 of all other files of its bundle."""
    verdict = Verdict(result["verdict"])
    failed = [
        entry["id"]
        for entry in result["requirements"]
        if entry["verdict"] == Verdict.FAIL and entry["level"] == "MUST"
    ]
    still_open = [
        entry["id"]
        for entry in result["requirements"]
        if entry["verdict"] in (Verdict.INCONCLUSIVE, Verdict.ERROR)
    ]
    return template("certificate.html.j2").render(
        run=run,
        result=result,
        suite=suite_named(run.suite),
        verdict=verdict,
        mark=MARKS[verdict],
        certified=verdict is Verdict.PASS and not result["partial"],
        digest=digest,
        named=[
            ("violated", _few(failed)),
            ("not decided", _few(still_open)),
            ("deviations from SHOULD", _few(result["deviations"])),
        ],
        isolation=isolation_sentence(run.iut.isolation),
    )


def _few(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
