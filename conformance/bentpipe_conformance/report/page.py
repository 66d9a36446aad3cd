"""report.html: one self-contained file, readable on a laptop and on paper."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from typing import Any, NotRequired, TypedDict

from bentpipe_reference.common.processes import process_pool
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from bentpipe_conformance.engine.attribution import ranks
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import Bundle, case_directory
from bentpipe_conformance.evidence.records import CaseRecord, RunRecord
from bentpipe_conformance.report.ladder import Row, ladder, lanes, thousands
from bentpipe_conformance.report.plot import close_view, draw, whole_view
from bentpipe_conformance.report.transit import Transit, match

MARKS = {
    Verdict.FAIL: "✗",
    Verdict.ERROR: "!",
    Verdict.INCONCLUSIVE: "?",
    Verdict.UNSUPPORTED: "–",
    Verdict.PASS: "✓",
}
"""The verdicts in the order of a reader's interest."""

DISSECTED = 12
"""Packets of a case that are shown layer by layer."""

CASES_AT_ONCE = 8
"""Cases that a process is given at a time where several draw them."""

ORDER = tuple(MARKS)
ATTENTION = ORDER[:3]


class RequirementText(TypedDict):
    """The registry's text of a requirement."""

    level: str
    title: str
    text: str
    source: str
    note: NotRequired[str]


@dataclass(frozen=True, slots=True)
class RequirementView:
    """A requirement as the page shows it; ``entry`` is that of ``result.json``.

    ``cause`` is the requirement in whose wake it fails, if any, ``rank`` its place among failures.
    """

    id: str
    group: str
    level: str
    verdict: Verdict
    entry: Mapping[str, Any]
    text: RequirementText
    cases: Sequence[tuple[str, str]]
    findings: Sequence[Mapping[str, Any]]
    cause: str = ""
    rank: tuple[int, int] = (0, 0)

    @property
    def deviation(self) -> bool:
        """Whether it fails below MUST level."""
        return self.verdict is Verdict.FAIL and self.level != "MUST"


@dataclass(frozen=True, slots=True)
class CaseView:
    """A case as the page shows it; ``anchor`` is its place in the page."""

    record: CaseRecord
    anchor: str
    purpose: str
    directory: str
    frames: frozenset[int]
    open_findings: Sequence[Finding]
    met_findings: Sequence[Finding]
    plots: Sequence[tuple[str, Markup]]
    rows: Sequence[Row]
    lanes: Sequence[tuple[str, str]]
    transit_known: bool
    layers: Sequence[tuple[int, str]]


def render_report(
    bundle: Bundle,
    result: Mapping[str, Any],
    texts: Mapping[str, RequirementText],
    finished: float | None = None,
    records: Sequence[CaseRecord] | None = None,
    jobs: int | None = 1,
) -> str:
    """The page of a bundle, from its cases and captures; see `render_page`.

    ``finished`` (seconds since 1970) is for a run that is just being finished, ``records`` are the
    cases as they were judged just now, by default those that are stored. The cases are drawn by
    ``jobs`` processes (None: one for each core).

    Raises:
        BundleError: a stored case or capture is damaged.
    """
    run = bundle.run if finished is None else dataclasses.replace(bundle.run, finished=finished)
    draw_case = partial(_stored_case, bundle)
    records = bundle.cases() if records is None else records
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(records) // CASES_AT_ONCE)
    if jobs <= 1:
        return _page(run, result, texts, map(draw_case, enumerate(records, 1)))
    with process_pool(jobs) as pool:
        views = pool.map(draw_case, enumerate(records, 1), chunksize=CASES_AT_ONCE)
        return _page(run, result, texts, views)


def _stored_case(bundle: Bundle, numbered: tuple[int, CaseRecord]) -> CaseView:
    index, record = numbered
    error, suite = bundle.run.bed.timing_error, suite_named(bundle.run.suite)
    trace = read_trace(bundle.captured(record.id), error, suite=suite)
    return _case(index, record, trace, suite, bundled=True)


def render_page(
    run: RunRecord,
    result: Mapping[str, Any],
    texts: Mapping[str, RequirementText],
    cases: Iterable[tuple[CaseRecord, Trace[Any]]],
    *,
    quality: Sequence[str] = (),
) -> str:
    """The page of any records and traces.

    ``quality`` says what is to be known of a capture that the suite did not make; the cases are
    then its connections.

    ``result`` is the content of ``result.json``, ``texts`` say something about each requirement by
    ID; an unknown ID is shown bare. ``cases`` are consumed one at a time, so that a generator
    keeps memory small.
    """
    suite = suite_named(run.suite)
    views = (
        _case(index, record, trace, suite, bundled=not quality)
        for index, (record, trace) in enumerate(cases, 1)
    )
    return _page(run, result, texts, views, quality)


def _page(
    run: RunRecord,
    result: Mapping[str, Any],
    texts: Mapping[str, RequirementText],
    drawn: Iterable[CaseView],
    quality: Sequence[str] = (),
) -> str:
    suite, views = suite_named(run.suite), tuple(drawn)
    anchors = {view.record.id: view.anchor for view in views}
    attribution = result.get("attribution", ())
    requirements = [
        _requirement(entry, texts, anchors, attribution) for entry in result["requirements"]
    ]
    judged = {item.id for item in requirements}
    partial = result.get("partial") or quality
    unmentioned = [] if partial else sorted(name for name in texts if name not in judged)
    summary = {verdict: int(result["summary"].get(verdict.value, 0)) for verdict in ORDER}
    verdict = Verdict(result["verdict"])
    ways = [
        name for name in ("forward", "return", "return_") if isinstance(run.link.get(name), Mapping)
    ]
    if len(ways) != 2:
        ways = []
    return template().render(
        run=run,
        suite=suite,
        quality=quality,
        legend=suite.reporter.legend,
        counting=suite.reporter.counting,
        verdict=verdict,
        headline=_headline(verdict, requirements),
        partial=result.get("partial_because", ()),
        disagreements=[str(text).rstrip(".") for text in result.get("ics_disagreements", ())],
        unmentioned=unmentioned,
        summary=summary,
        deviations=sum(item.deviation for item in requirements),
        requirements=sorted(requirements, key=lambda item: item.id),
        attention=sorted(
            (item for item in requirements if item.verdict in ATTENTION),
            key=lambda item: (ORDER.index(item.verdict), item.rank, item.deviation, item.id),
        ),
        groups=sorted({item.group for item in requirements}),
        levels=[level for level in ("MUST", "SHOULD", "MAY")
                if any(item.level == level for item in requirements)],
        cases=views,
        anchors=anchors,
        titles={item.id: item.entry["title"] for item in requirements},
        link_seconds=sum(view.record.link_seconds for view in views),
        order=ORDER,
        link_facts={name: value for name, value in run.link.items() if name not in ways},
        link_ways=_both_ways(run.link, ways),
    )  # fmt: skip


def _headline(verdict: Verdict, requirements: Sequence[RequirementView]) -> str:
    musts = [item for item in requirements if item.level == "MUST"]

    def several(which: Verdict) -> str:
        count = sum(item.verdict is which for item in musts)
        return f"{count} MUST-level requirement{'' if count == 1 else 's'}"

    match verdict:
        case Verdict.PASS:
            return f"All {several(Verdict.PASS)} that could be judged hold."
        case Verdict.FAIL:
            violated = sum(item.verdict is Verdict.FAIL for item in musts)
            are = "is" if violated == 1 else "are"
            return f"{several(Verdict.FAIL)} {are} violated; the packets that prove it are below."
        case Verdict.INCONCLUSIVE:
            return "No violation was found, but not every requirement could be judged."
        case Verdict.ERROR:
            return "The suite or the test bed broke, so this run proves nothing about the rest."
        case Verdict.UNSUPPORTED:
            return "The implementation claims nothing that this selection of cases examines."


def _requirement(
    entry: Mapping[str, Any], texts: Mapping[str, RequirementText], anchors: Mapping[str, str],
    attribution: Sequence[Mapping[str, Any]],
) -> RequirementView:  # fmt: skip
    name = str(entry["id"])
    rank = ranks(attribution).get(name, (len(attribution), 0))
    findings = [
        {**finding, "verdict": Verdict(finding["verdict"])} for finding in entry["findings"]
    ]
    # Whoever follows the first link wants to see the requirement broken.
    telling = [item["case"] for item in findings if item["verdict"] is not Verdict.PASS]
    cases = dict.fromkeys([*telling, *entry["cases"]])
    return RequirementView(
        id=name,
        group=name.rpartition("-")[0] or name,
        level=str(entry["level"]),
        verdict=Verdict(entry["verdict"]),
        entry=entry,
        text=texts.get(name, RequirementText(level="", title="", text="", source="")),
        cases=[(case, anchors[case]) for case in cases if case in anchors],
        findings=findings,
        cause=attribution[rank[0]]["requirement"] if rank[1] else "",
        rank=rank,
    )


def _case(
    index: int, record: CaseRecord, trace: Trace[Any], suite: Suite, *, bundled: bool
) -> CaseView:
    targets = set(record.requirements)
    findings = sorted(
        record.findings,
        key=lambda item: (ORDER.index(item.verdict), item.requirement not in targets),
    )
    open_findings = [item for item in findings if item.verdict is not Verdict.PASS]
    met = [item for item in findings if item.verdict is Verdict.PASS]
    decisive = open_findings or [item for item in met if item.requirement in targets]
    numbers = list(dict.fromkeys(number for item in decisive for number in item.packets))
    transit = match(trace)
    rows = ladder(trace, transit, numbers, suite)
    return CaseView(
        record=record,
        anchor=f"case-{index}",
        purpose=_purpose(record),
        directory=f"cases/{case_directory(record.id)}" if bundled else "",
        frames=frozenset(row.number for row in rows if row.number),
        open_findings=open_findings,
        met_findings=met,
        plots=_plots(suite, record, trace, transit, numbers, bool(open_findings)),
        rows=rows,
        lanes=lanes(trace),
        transit_known=transit.known,
        layers=_layers(suite, trace, [n for item in open_findings for n in item.packets]),
    )


def _layers(suite: Suite, trace: Trace[Any], numbers: Sequence[int]) -> Sequence[tuple[int, str]]:
    """The first packets that prove what is wrong, layer by layer."""
    shown = list(dict.fromkeys(numbers))[:DISSECTED]
    octets = {packet.number: packet.data for packet in trace.at("iut")} if shown else {}
    return [(number, dissected(suite, octets[number])) for number in shown if number in octets]


def dissected(suite: Suite, octets: bytes) -> str:
    """A packet layer by layer, or in hexadecimal where it is too odd for Scapy."""
    try:
        return suite.reporter.layers(octets)
    except Exception as error:
        return f"{type(error).__name__}, so in hexadecimal:\n{octets.hex(' ')}"


def _purpose(record: CaseRecord) -> str:
    """The purpose without its first line if that repeats the title."""
    first, _, rest = record.purpose.partition("\n")
    repeated = first.strip().rstrip(".") == record.title.strip().rstrip(".")
    return (rest if repeated else record.purpose).strip()


def _plots(
    suite: Suite,
    record: CaseRecord,
    trace: Trace[Any],
    transit: Transit,
    numbers: Sequence[int],
    closely: bool,
) -> list[tuple[str, Markup]]:
    reporter = suite.reporter
    scene = reporter.scene(trace, numbers)
    view = whole_view(scene) if scene else None
    if scene is None or view is None:
        return []
    circled = numbers if closely else numbers[:6]
    # The decisive packet comes first in a finding; the others may be far from it.
    close = close_view(scene, numbers[:1]) if closely else None
    who = f"the implementation {'sends' if scene.iut_sends else 'receives'} the data"
    title = f"{reporter.unit.capitalize()} over time in {record.id}; {who}"
    alike: dict[str, Any] = {
        "highlighted": circled, "lost": transit.lost_forward, "unit": reporter.unit,
    }  # fmt: skip
    plots = [(f"The whole case; {who}.", draw(scene, view, label=title, frame=close, **alike))]
    if close is not None:
        near = f"near packet {numbers[0]}"
        plots.append((f"Enlarged: {near}.", draw(scene, close, label=f"{title}, {near}", **alike)))
    return plots


@cache
def template(name: str = "report.html.j2") -> Template:
    """A page's template; what it is given is text, whatever it looks like."""
    folder = resources.files(__package__) / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        thousands=thousands,
        instant=_instant,
        duration=_duration,
        flat=_flat,
        shown=_shown,
        isolation=isolation_sentence,
    )
    environment.globals.update(marks=MARKS)
    for part in ("style.css", "script.js"):
        text = (folder / part).read_text(encoding="utf-8")
        environment.globals[part.replace(".", "_")] = Markup(text)
    return environment.get_template(name)


def isolation_sentence(told: Mapping[str, Any]) -> str:
    """How an implementation was kept apart from its tester."""
    if told.get("kind") != "isolated":
        return f"Not isolated: {told.get('because', 'the plan does not say how')}."
    asked = []
    if files := told.get("files"):
        asked.append(f"to read {_shown(files)}")
    if told.get("network"):
        asked.append("for an administrator's rights over its own network")
    if processes := told.get("processes"):
        asked.append(f"for {processes} processes at once")
    more = f" Its description asks {' and '.join(asked)}." if asked else ""
    return (
        "Isolated: a user without rights, in namespaces of its own; it saw the files listed here "
        f"and a bounded /tmp, and nothing else of this machine.{more}"
    )


def _instant(seconds: float) -> str:
    """Seconds since 1970 as date and time in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return thousands(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_shown, value))
    return "–" if value in (None, "") else str(value)


def _both_ways(link: Mapping[str, Any], ways: Sequence[str]) -> list[tuple[str, Any, Any]]:
    """Rows (property, forward, return) of a link profile; empty when it has no two directions."""
    forward, back = (dict(_flat(link[name])) for name in ways) if ways else ({}, {})
    return [(name, forward.get(name), back.get(name)) for name in dict.fromkeys([*forward, *back])]


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """A nested mapping as (dotted name, value) pairs."""
    pairs: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            pairs += _flat(value, f"{prefix}{name}.")
        else:
            pairs.append((f"{prefix}{name}", value))
    return pairs
