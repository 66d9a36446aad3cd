"""The page is whole, safe and stays small."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import Bundle
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.protocols.tcp.codec import Tcp, build
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_conformance.report.page import RequirementText, render_page, render_report

VOID = {"meta", "input", "br", "hr", "img", "link", "path", "circle", "rect"}
EVIL = (
    "<script>alert('x')</script><img src=x onerror=alert(1)> \" ' & </style> {{ 7*7 }} \x00 \ud800"
)


class Page(HTMLParser):
    """Collects elements and checks that they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def every(self, name: str) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get(name)) is not None]


@pytest.fixture(scope="module")
def html(sample: Any) -> str:
    return render_page(sample.run, sample.result, sample.texts, sample.traces())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_page_loads_nothing_from_anywhere(html: str, page: Page) -> None:
    assert not [tag for tag, _ in page.elements if tag in ("link", "img", "iframe", "object")]
    assert page.every("src") == []
    assert not re.search(r"https?://|@import|url\(", html)
    assert {link.partition("/")[0] for link in page.every("href") if not link.startswith("#")} == {
        "cases"
    }


def test_every_link_inside_the_page_has_its_target(page: Page) -> None:
    names = page.every("id")
    assert len(names) == len(set(names))
    wanted = {link[1:] for link in page.every("href") if link.startswith("#")}
    assert wanted <= set(names)
    assert {"SNR-REC-003", "case-2", "requirements"} <= wanted


def test_page_tells_verdict_text_source_reason_and_packets(page: Page) -> None:
    text = " ".join(" ".join(page.text).split())
    for expected in (
        "Linux 6.1 TCP (reno)",
        "1 MUST-level requirement is violated",
        "A sender MUST see to it: nothing the receiver holds is sent again",
        "HK99 appendix rule 3; RFC 6675 section 4",
        "offset 37648 was sent again although it had been reported held",
        "no retransmission of octets inside a reported SACK block",
        "deviation from a SHOULD",
        "congestion_control reno",
        "No packet was captured.",
        "20240611",
        "rate 1.3e+06 1.3e+06 delay 0.3 0.3",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("verdict", "headline"),
    [
        ("pass", "All 3 MUST-level requirements that could be judged hold."),
        ("inconclusive", "No violation was found"),
        ("error", "The suite or the test bed broke"),
        ("unsupported", "claims nothing that this selection of cases examines"),
    ],
)
def test_overall_verdict_has_its_headline(sample: Any, verdict: str, headline: str) -> None:
    html = render_page(sample.run, {**sample.result, "verdict": verdict}, sample.texts, [])
    assert headline in html
    assert f"v-{verdict}" in html


def test_packets_of_a_failing_case_are_marked(html: str, page: Page) -> None:
    marked = re.findall(r'<tr class="marked" id="(case-2-\d+)"', html)
    assert len(marked) == 2
    assert {f"#{name}" for name in marked} <= set(page.every("href"))


def _hostile(record: CaseRecord) -> CaseRecord:
    finding = Finding(EVIL, Verdict.FAIL, (1, 10**30), EVIL, EVIL, EVIL)
    return dataclasses.replace(
        record, title=EVIL, purpose=EVIL, reason=EVIL, findings=(finding,), error=EVIL,
        tester_address=EVIL, requirements=(EVIL,),
    )  # fmt: skip


def test_hostile_text_is_shown_and_does_nothing(sample: Any) -> None:
    run = dataclasses.replace(
        sample.run,
        command=(EVIL,),
        iut=dataclasses.replace(
            sample.run.iut, name=EVIL, ics={EVIL: EVIL, "deep": {EVIL: [EVIL]}}
        ),
        link={"id": EVIL, "title": EVIL},
        started=float(10**300),
    )
    entry = {
        **sample.result["requirements"][0], "id": EVIL, "title": EVIL, "reason": EVIL,
        "level": EVIL, "cases": [EVIL],
        "findings": [
            {"case": EVIL, "verdict": "fail", "packets": [1], "sentence": EVIL, "count": 1}
        ],
    }  # fmt: skip
    text: RequirementText = {
        "level": EVIL, "title": EVIL, "text": EVIL, "source": EVIL, "note": EVIL,
    }  # fmt: skip
    record, trace = sample.traces()[1]
    html = render_page(
        run, {**sample.result, "requirements": [entry]}, {EVIL: text}, [(_hostile(record), trace)]
    )
    page = Page(html)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert "{{ 7*7 }}" in html
    assert EVIL in "".join(page.text)


def test_hostile_packets_are_drawn_within_bounds(sample: Any) -> None:
    def segment(time: float, outgoing: bool, **fields: Any) -> Captured:
        ends = ("1.1.1.1", "2.2.2.2", 1, 2) if outgoing else ("2.2.2.2", "1.1.1.1", 2, 1)
        rest: dict[str, Any] = {"seq": 0, "ack": 0, "flags": 0x10, "window": 0, "payload": b""}
        rest |= fields
        return Captured(time, "iut", outgoing, build(Tcp(*ends, **rest)))

    captured = [
        segment(0.0, False, flags=2),
        segment(0.0, True, flags=0x12),
        *(segment(1.0, True, seq=1 + n * 0x3FFFFFFF, payload=b"x") for n in range(9)),
        segment(1.0, False, ack=0x80000000, sack=((5, 1), (0xFFFFFFFF, 0), (0, 0x7FFFFFFF))),
        Captured(1.0, "iut", True, b""),
        Captured(1.0, "iut", False, b"\xff" * 3000),
        segment(1.0, True, flags=0),
        segment(1e9, False, flags=0xFF),
    ]
    record = dataclasses.replace(
        sample.cases[0][0],
        findings=(Finding("SNR-REC-003", Verdict.FAIL, tuple(range(40)), "flood"),),
    )
    html = render_page(
        sample.run, sample.result, sample.texts, [(record, read_trace(captured, suite=SNR))]
    )
    Page(html)
    numbers = [
        float(n) for d in re.findall(r' d="([^"]+)"', html) for n in re.findall(r"-?[\d.]+", d)
    ]
    assert numbers
    assert max(map(abs, numbers)) <= 4000


def test_report_of_a_bundle_is_made_from_what_is_stored(
    sample: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = Bundle.create(tmp_path, dataclasses.replace(sample.run, finished=None))
    for record, captured in sample.cases:
        bundle.add_case(record, captured)
    html = render_report(bundle, sample.result, sample.texts, sample.run.finished)
    cases = sorted(sample.traces(), key=lambda item: item[0].id)
    assert html == render_page(sample.run, sample.result, sample.texts, cases)
    monkeypatch.setattr("bentpipe_conformance.report.page.CASES_AT_ONCE", 1)
    assert len(sample.cases) > 1, "each of two processes draws some"
    assert html == render_report(bundle, sample.result, sample.texts, sample.run.finished, jobs=2)
    links = {link for link in Page(html).every("href") if not link.startswith("#")}
    assert len(links) == 2 * len(sample.cases)
    assert all((tmp_path / link).is_file() for link in links)


def test_flood_of_packets_makes_a_bounded_page(sample: Any) -> None:
    captured = [
        Captured(0.0, "iut", False, build(Tcp("2.2.2.2", "1.1.1.1", 2, 19, 0, 0, 2, 9, b""))),
        Captured(0.0, "iut", True, build(Tcp("1.1.1.1", "2.2.2.2", 19, 2, 0, 1, 18, 9, b""))),
    ]
    for n in range(6_000):
        seq = 1 + n * 7919 % 50_000_000
        out = Tcp("1.1.1.1", "2.2.2.2", 19, 2, seq, 1, 0x10, 9, b"x")
        back = Tcp("2.2.2.2", "1.1.1.1", 2, 19, 1, seq, 0x10, 9, b"")
        captured.append(Captured(n / 1000, "iut", True, build(out)))
        captured.append(Captured(n / 1000, "iut", False, build(back)))
    record = dataclasses.replace(
        sample.cases[0][0],
        findings=(Finding("SNR-REC-003", Verdict.FAIL, tuple(range(1, 12_000)), "flood"),),
    )
    html = render_page(
        sample.run, sample.result, sample.texts, [(record, read_trace(captured, suite=SNR))]
    )
    assert len(html) < 500_000


def test_eighty_large_cases_stay_below_ten_megabytes(sample: Any) -> None:
    def steady(count: int) -> Trace:
        captured = []
        for n in range(count):
            time = n * 0.0093
            out = Tcp("1.1.1.1", "2.2.2.2", 19, 2, 1 + n * 1448, 1, 0x10, 9000, b"x" * 1448)
            back = Tcp("2.2.2.2", "1.1.1.1", 2, 19, 1, 1 + n * 1448, 0x10, 9000, b"")
            captured.append(Captured(time, "iut", True, build(out)))
            captured.append(Captured(time + 0.3, "iut", False, build(back)))
        start = Tcp("1.1.1.1", "2.2.2.2", 19, 2, 0, 1, 0x12, 9000, b"")
        hello = Tcp("2.2.2.2", "1.1.1.1", 2, 19, 0, 0, 2, 9000, b"")
        opening = [Captured(0, "iut", False, build(hello)), Captured(0, "iut", True, build(start))]
        return read_trace([*opening, *sorted(captured, key=lambda item: item.time)], suite=SNR)

    trace = steady(1500)
    record = dataclasses.replace(
        sample.cases[0][0],
        findings=tuple(
            Finding("SNR-REC-003", Verdict.FAIL, (n * 50 + 3,), "a sentence of usual length")
            for n in range(50)
        ),
    )
    one = render_page(sample.run, sample.result, sample.texts, [(record, trace)])
    none = render_page(sample.run, sample.result, sample.texts, [])
    assert 80 * (len(one) - len(none)) + len(none) < 10_000_000


def test_failure_in_the_wake_of_another_stands_under_it(sample: Any) -> None:
    failing = [row["id"] for row in sample.result["requirements"] if row["verdict"] == "fail"]
    cause, consequence = failing[-1], failing[0]
    attribution = [{"requirement": cause, "cases": [], "consequences": [consequence]}]
    result = {**sample.result, "attribution": attribution}
    html = render_page(sample.run, result, sample.texts, [])
    attention = html[html.index('id="attention"') :]
    assert attention.index(cause) < attention.index(f'href="#{consequence}"')
    assert f"in the wake of {cause}" in attention
