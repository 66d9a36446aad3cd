"""Finishing a bundle: result.json, junit.xml, report.html, manifest."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.evidence.bundle import Bundle, BundleError
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.run.results import result


def result_of(bundle: Bundle, records: Sequence[CaseRecord]) -> dict[str, Any]:
    """The content of result.json for these case records."""
    run = bundle.run
    probe = run.bed.check.get("probe", {})
    disagreements = [str(sentence) for sentence in probe.get("disagreements", [])]
    requirements = suite_named(run.suite).requirements()
    return result(requirements, records, run.profile, run.iut.ics, disagreements)


def stored_result(bundle: Bundle) -> dict[str, Any]:
    """The stored result.json.

    Raises:
        BundleError: it is missing or damaged.
    """
    path = bundle.directory / "result.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(row, dict) and "id" in row for row in document["requirements"]):
            raise ValueError("a requirement lacks its id")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BundleError(f"{path} is missing or damaged ({error}).") from error
    stored: dict[str, Any] = document
    return stored


def seal_bundle(bundle: Bundle) -> dict[str, Any]:
    """Write everything derived from the cases and the manifest; return the result.

    Raises:
        BundleError: a file cannot be written, or a stored case is damaged.
    """
    from bentpipe_conformance.evidence.junit import junit_xml
    from bentpipe_conformance.report.page import RequirementText, render_report

    now = time.time()
    records = bundle.cases()
    outcome = result_of(bundle, records)
    requirements: dict[str, RequirementText] = {
        item.id: {"level": item.level, "title": item.title, "text": item.text,
                  "source": "; ".join(item.source), "note": item.difference}
        for item in suite_named(bundle.run.suite).requirements().values()
    }  # fmt: skip
    files = {
        "result.json": json.dumps(outcome, indent=1, ensure_ascii=False) + "\n",
        "junit.xml": junit_xml(bundle.run, outcome, records),
        "report.html": render_report(bundle, outcome, requirements, finished=now),
    }
    bundle.seal(files, now)
    return outcome
