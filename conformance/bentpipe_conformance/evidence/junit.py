"""JUnit XML, for continuous integration: one test case per case of the suite.

Verdicts map as pass -> passed, fail -> failure, unsupported -> skipped, inconclusive and
error -> error. A case that fails on requirements below MUST level only is passed with a remark,
as the overall verdict has it. A partial run has a test of its own that is an error, so that it is
never green.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.records import CaseRecord, RunRecord

# XML 1.0 section 2.2: characters that cannot appear in a document, escaped or not.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(run: RunRecord, result: Mapping[str, Any], cases: Sequence[CaseRecord]) -> str:
    """The document; the levels of the requirements come from ``result`` (result.json)."""
    levels = {entry["id"]: entry["level"] for entry in result["requirements"]}
    values: dict[str, Any] = {
        "iut": run.iut.id,
        "link": run.link.get("id", ""),
        "profile": run.profile,
        "bed": run.bed.place,
        "kernel": run.bed.kernel,
        "seed": run.seed,
        "bentpipe": run.bentpipe,
        "partial": str(bool(result.get("partial"))).lower(),
    }
    root = Element("testsuites", name=_clean(f"bentpipe {run.suite} {run.iut.id}"))
    groups: dict[str, list[CaseRecord]] = {}
    for case in cases:
        groups.setdefault(case.id.rpartition("/")[0] or run.suite, []).append(case)
    for name, members in groups.items():
        suite = SubElement(root, "testsuite", name=_clean(name.replace("/", ".")))
        properties = SubElement(suite, "properties")
        for key, value in values.items():
            SubElement(properties, "property", name=key, value=_clean(str(value)))
        for case in members:
            _add_case(suite, name, case, levels)
        _add_counts(suite, members)
    if because := result.get("partial_because"):
        suite = SubElement(root, "testsuite", name=_clean(f"{run.suite}.run"))
        test = SubElement(suite, "testcase", classname=_clean(f"{run.suite}.run"), name="whole")
        sentence = _clean(f"the run is partial: {'; '.join(because)}")
        SubElement(test, "error", message=sentence, type="partial")
        _add_counts(suite, ())
    _add_counts(root, cases)
    indent(root)
    text = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _add_case(suite: Element, group: str, case: CaseRecord, levels: Mapping[str, str]) -> None:
    element = SubElement(
        suite,
        "testcase",
        classname=_clean(group.replace("/", ".")),
        name=_clean(case.id.rpartition("/")[2]),
        time=f"{case.wall_seconds:.3f}",
    )
    message = _clean(case.reason)
    told = [_sentence(item) for item in case.findings if item.verdict is not Verdict.PASS]
    details = _clean("\n".join([*told, *filter(None, [case.error])]))
    if case.verdict is Verdict.UNSUPPORTED:
        SubElement(element, "skipped", message=message)
    elif case.verdict is Verdict.FAIL and not _is_failure(case, levels):
        child = SubElement(element, "system-out")
        child.text = f"Deviation from a requirement below MUST level: {details or message}"
    elif case.verdict is not Verdict.PASS:
        kind = "failure" if case.verdict is Verdict.FAIL else "error"
        child = SubElement(element, kind, message=message, type=case.verdict.value)
        child.text = details


def _is_failure(case: CaseRecord, levels: Mapping[str, str]) -> bool:
    """Whether a failed case violates a MUST (or fails without saying which requirement)."""
    failed = [item for item in case.findings if item.verdict is Verdict.FAIL]
    return not failed or any(levels.get(item.requirement, "MUST") == "MUST" for item in failed)


def _sentence(finding: Finding) -> str:
    packets = ", ".join(map(str, finding.packets))
    where = f" (iut.pcapng, packet {packets})" if packets else ""
    text = f"{finding.requirement} {finding.verdict}: {finding.sentence}{where}"
    if finding.expected or finding.actual:
        text += f"\n  expected: {finding.expected}\n  actual: {finding.actual}"
    return text


def _add_counts(element: Element, cases: Sequence[CaseRecord]) -> None:
    children = list(element.iter("testcase"))
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(name, str(sum(child.find(kind) is not None for child in children)))
    element.set("tests", str(len(children)))
    element.set("time", f"{sum(case.wall_seconds for case in cases):.3f}")


def _clean(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
