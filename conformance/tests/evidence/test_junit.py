"""junit.xml is what a continuous integration server reads."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

import pytest
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.junit import junit_xml
from bentpipe_conformance.evidence.records import CaseRecord, RunRecord
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RESULT = {
    "requirements": [
        {"id": "SNR-REC-003", "level": "MUST"},
        {"id": "SNR-REC-004", "level": "SHOULD"},
    ]
}


@pytest.mark.parametrize(
    ("verdict", "child", "counter"),
    [
        (Verdict.PASS, None, None),
        (Verdict.FAIL, "failure", "failures"),
        (Verdict.UNSUPPORTED, "skipped", "skipped"),
        (Verdict.INCONCLUSIVE, "error", "errors"),
        (Verdict.ERROR, "error", "errors"),
    ],
)
def test_verdict_maps_to_its_junit_outcome(
    run: RunRecord, case: CaseRecord, verdict: Verdict, child: str | None, counter: str | None
) -> None:
    changed = dataclasses.replace(case, verdict=verdict)
    root = ElementTree.fromstring(junit_xml(run, RESULT, [changed]))
    (suite,) = root
    element = suite.find("testcase")
    assert element is not None
    assert (element.get("classname"), element.get("name"), element.get("time")) == (
        "snr.recovery", "third-duplicate-ack", "0.250",
    )  # fmt: skip
    assert [item.tag for item in element] == ([child] if child else [])
    if child is not None:
        assert element[0].get("message") == case.reason
    for name in ("failures", "errors", "skipped"):
        assert root.get(name) == suite.get(name) == ("1" if name == counter else "0")
    assert root.get("tests") == suite.get("tests") == "1"


def test_failure_tells_requirement_packets_expected_and_actual(
    run: RunRecord, case: CaseRecord
) -> None:
    root = ElementTree.fromstring(junit_xml(run, RESULT, [case]))
    assert root.findtext(".//failure") == (
        "SNR-REC-003 fail: it did not (iut.pcapng, packet 1)\n  expected: this\n  actual: that"
    )
    names = {item.get("name"): item.get("value") for item in root.iter("property")}
    assert (names["iut"], names["link"], names["seed"]) == ("linux", "geo", "7")


def test_failure_of_a_should_is_a_remark(run: RunRecord, case: CaseRecord) -> None:
    finding = Finding("SNR-REC-004", Verdict.FAIL, (1,), "it did not")
    changed = dataclasses.replace(case, findings=(finding,))
    root = ElementTree.fromstring(junit_xml(run, RESULT, [changed]))
    assert root.get("failures") == "0"
    assert "Deviation" in (root.findtext(".//system-out") or "")


def test_cases_are_grouped_into_suites(run: RunRecord, case: CaseRecord) -> None:
    cases = [
        dataclasses.replace(case, id=name, verdict=Verdict.PASS)
        for name in ("snr/a/1", "snr/b/1", "snr/a/2", "alone")
    ]
    root = ElementTree.fromstring(junit_xml(run, RESULT, cases))
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [
        ("snr.a", "2"), ("snr.b", "1"), ("snr", "1"),
    ]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.text())
def test_any_text_gives_well_formed_xml(
    run: RunRecord, case: CaseRecord, reason: str, error: str
) -> None:
    finding = Finding("\x00<", Verdict.ERROR, (), reason)
    changed = dataclasses.replace(
        case, verdict=Verdict.ERROR, reason=reason, error=error, findings=(finding,)
    )
    octets = junit_xml(run, {"requirements": []}, [changed]).encode("utf-8")
    element = ElementTree.fromstring(octets).find(".//error")
    assert element is not None
    assert "\x00" not in (element.text or "")
