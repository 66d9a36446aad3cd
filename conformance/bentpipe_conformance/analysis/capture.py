"""A capture that the suite did not make: its quality, its connections, and the sum of both."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from bentpipe_reference.common.processes import process_pool
from bentpipe_spec.registry import Requirement

from bentpipe_conformance.analysis.judging import (
    Judged,
    Place,
    Task,
    end_text,
    judge_file,
    read_trace_of,
    sketch_file,
)
from bentpipe_conformance.analysis.quality import Quality, assess, defects_of
from bentpipe_conformance.analysis.sketch import Sketch, find_side
from bentpipe_conformance.analysis.spool import Spool, spool_capture
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.observing import Defect, End
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.evidence.frames import CaptureError

ALONE = 20_000
"""Packets up to which starting other processes costs more than they save."""

ILLUSTRATED = 20
"""Connections whose packets a report shows."""

VERDICTS = ("fail", "inconclusive", "pass", "not exercised", "not judged")
"""Verdicts on a connection in the order of a reader's interest."""

_Result = TypeVar("_Result")
Told = Callable[[str, int, int], None]
"""Hears of progress: what is being done, how much of it is done, and of how much."""


class SideUnknown(CaptureError):
    """It cannot be told whose side a capture was taken on; one sentence.

    Attributes:
        hosts: the addresses in it, some of them.
    """

    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """What all connections say about one requirement.

    Attributes:
        requirement: its record.
        condition: what a statement has to claim for it to apply.
        holds: how many times it was exercised and met.
        violations, unclear: findings, each with its connection.
        unjudgeable: reasons why it could not be judged, with the number of connections.
        unclaimed: on how many connections its condition is not claimed.
        connections: how many connections could be judged at all.
    """

    requirement: Requirement
    condition: str
    holds: int
    violations: tuple[tuple[Judged, Finding], ...]
    unclear: tuple[tuple[Judged, Finding], ...]
    unjudgeable: Mapping[str, int]
    unclaimed: int
    connections: int

    @property
    def status(self) -> str:
        """The outcome in a word or two."""
        if self.violations:
            return "violated"
        if self.holds:
            return "holds"
        if self.unclear:
            return "unclear"
        if self.unjudgeable:
            return "not judgeable"
        return "not claimed" if self.unclaimed else "not exercised"

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        match self.status:
            case "violated":
                connection, first = self.violations[0]
                times = f" ({len(self.violations)} times)" if len(self.violations) > 1 else ""
                where = f"at packet {first.packets[0]}" if first.packets else "somewhere"
                return f"violated {where}{times}: {first.sentence} [{connection.name}]"
            case "holds":
                return f"holds {self.holds} times" if self.holds > 1 else "holds once"
            case "unclear":
                connection, first = self.unclear[0]
                return f"unclear: {first.sentence} [{connection.name}]"
            case "not judgeable":
                return f"not judgeable: {'; '.join(self.unjudgeable)}"
            case "not claimed":
                return f"not claimed: {self.condition}"
        return "not exercised"


@dataclass(frozen=True, slots=True)
class Analysis:
    """A capture judged.

    Attributes:
        capture: the file.
        suite, profile: what it was judged by.
        iut: the address that was judged.
        quality: the quality of the capture.
        connections: every connection of that address, in the order of their first packets.
        rows: the requirements.
        stated: what was stated of the implementation; empty without a statement.
        started: seconds since 1970.
        traces: packets of the connections that a reader wants to see first, where asked for.
    """

    capture: Path
    suite: Suite
    profile: str
    iut: str
    quality: Quality
    connections: tuple[Judged, ...]
    rows: tuple[Row, ...]
    stated: Ics = field(default_factory=dict)
    started: float = 0.0
    traces: tuple[tuple[Judged, Trace[Any]], ...] = ()

    def ranked(self) -> list[Judged]:
        """Its connections, those that need attention first."""
        return sorted(self.connections, key=lambda item: VERDICTS.index(self.verdict_of(item)))

    def verdict_of(self, connection: Judged) -> str:
        """The verdict on one connection: that of its MUST-level requirements."""
        if Defect.LATE in connection.defects:
            return "not judged"
        levels = {row.requirement.id: row.requirement.level for row in self.rows}
        entries = connection.entries
        if any(entry.violations and levels[name] == "MUST" for name, entry in entries.items()):
            return "fail"
        words = {entry.word for entry in entries.values()}
        if words & {"holds", "violated"}:
            return "pass"
        return "inconclusive" if words else "not exercised"


def analyze_capture(
    capture: Path, suite: Suite, profile: str, *, iut: str | None = None,
    stated: Ics | None = None, partial: bool = False, jobs: int = 1, illustrated: bool = False,
    told: Told = lambda *_: None,
) -> Analysis:  # fmt: skip
    """Judge one implementation in a capture.

    Args:
        capture: a pcapng or pcap file.
        suite: whose requirements.
        profile: a profile of the suite.
        iut: ``ADDRESS`` or ``ADDRESS:PORT`` of the implementation; None for the host at whose side
            the capture was taken.
        stated: what is stated of the implementation.
        partial: judge what precedes a truncation or damage.
        jobs: processes to use.
        illustrated: keep the packets of the connections that a report shows.
        told: hears of progress.

    Raises:
        SideUnknown: no ``iut``, and it cannot be told whose side the capture was taken on.
        CaptureError: the file is unreadable, or holds nothing of the suite's protocol and the
            implementation.
    """
    observer = suite.observer
    if observer is None:
        raise CaptureError(f"Captures of {suite.protocol} cannot be judged yet.")
    size = capture.stat().st_size
    with tempfile.TemporaryDirectory(prefix="bentpipe-analyze-") as folder:
        spool = spool_capture(
            capture, Path(folder), suite, observer, partial=partial,
            told=lambda octets: told("reading", octets, size),
        )  # fmt: skip
        if not spool.relevant:
            raise CaptureError(_nothing(capture, suite, spool))
        with _crew(jobs if spool.relevant > ALONE else 1, spool.files) as crew:
            files = dict.fromkeys(spool.files, (suite.name,))
            sketches = dict(crew(sketch_file, files, "appraising", told))
            everything = [sketch for found in sketches.values() for sketch in found]
            chosen, how = _choose(capture, everything, iut)
            mine = [item for item in everything if _end_of(item, chosen) is not None]
            if not mine:
                hosts = ", ".join(find_side(everything).hosts[:6])
                name = end_text(chosen) if chosen[1] else chosen[0]
                raise CaptureError(
                    f"{capture} has no packet from or to {name}; it has these hosts: {hosts}."
                )
            times = sorted(time for item in everything for time in item.gaps)
            tasks = {item.place: _task(item, chosen, times, spool) for item in mine}
            work = {
                path: (suite.name, profile, stated or {}, wanted)
                for path, found in sketches.items()
                if (wanted := {item.place: tasks[item.place]
                               for item in found if item.place in tasks})
            }  # fmt: skip
            judged = [
                item for _, found in crew(judge_file, work, "judging", told) for item in found
            ]
        judged.sort(key=lambda item: item.first)
        analysis = Analysis(
            capture, suite, profile, chosen[0], assess(spool, mine, tasks, chosen, how),
            tuple(judged), tuple(rows_of(suite, profile, judged)), stated or {},
            spool.started / 1e9,
        )  # fmt: skip
        if not illustrated:
            return analysis
        paths = {item.place: path for path, found in sketches.items() for item in found}
        return replace(
            analysis,
            traces=tuple(
                (item, read_trace_of(paths[item.place], suite.name, item.place, tasks[item.place]))
                for item in analysis.ranked()[:ILLUSTRATED]
            ),
        )


_Crew = Callable[
    [Callable[..., _Result], Mapping[Path, tuple[Any, ...]], str, Told],
    Iterator[tuple[Path, _Result]],
]


@contextmanager
def _crew(jobs: int, files: Sequence[Path]) -> Iterator[_Crew[Any]]:
    """What runs a function on every file, in this process or in several."""
    if min(jobs, len(files)) < 2:
        yield _alone
        return
    with process_pool(min(jobs, len(files))) as pool:

        def together(
            work: Callable[..., Any], files: Mapping[Path, tuple[Any, ...]], what: str, told: Told
        ) -> Iterator[tuple[Path, Any]]:
            waiting = {pool.submit(work, path, *with_): path for path, with_ in files.items()}
            for done, future in enumerate(as_completed(waiting), 1):
                told(what, done, len(waiting))
                yield waiting[future], future.result()

        yield together


def _alone(
    work: Callable[..., Any], files: Mapping[Path, tuple[Any, ...]], what: str, told: Told
) -> Iterator[tuple[Path, Any]]:
    for done, (path, with_) in enumerate(files.items(), 1):
        yield path, work(path, *with_)
        told(what, done, len(files))


def _nothing(capture: Path, suite: Suite, spool: Spool) -> str:
    if spool.foreign:
        numbers = ", ".join(map(str, sorted(spool.foreign)))
        return (
            f"{capture} uses link type {numbers}, which bentpipe does not read; capture Ethernet, "
            "PPP, Linux cooked or raw IP."
        )
    return f"{capture} holds no {suite.protocol} packet."


def _choose(capture: Path, sketches: Sequence[Sketch], iut: str | None) -> tuple[End, str]:
    """The end to judge, port 0 for every port, and how the capture's side was told."""
    side = find_side(sketches)
    if iut is not None:
        return parse_end(iut), side.how if side.address == parse_end(iut)[0] else ""
    if not side.address:
        unknown = SideUnknown(
            f"Nothing in {capture} tells whose side it was taken on; name the implementation by "
            f"--iut (it has these hosts: {', '.join(side.hosts[:6])})."
        )
        unknown.hosts = tuple(side.hosts[:6])
        raise unknown
    return (side.address, 0), side.how


def parse_end(text: str) -> End:
    """``ADDRESS``, ``ADDRESS:PORT`` or ``[ADDRESS]:PORT``; port 0 for every port.

    Raises:
        ValueError: it is neither; one sentence.
    """
    from ipaddress import ip_address

    address, port = text, ""
    if text.startswith("["):
        address, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        address, _, port = text.partition(":")
    try:
        number = int(port) if port else 0
        if not 0 <= number < 1 << 16:
            raise ValueError
        return str(ip_address(address)), number
    except ValueError:
        raise ValueError(
            f"{text!r} is not an address such as 192.0.2.1, 192.0.2.1:80 or [2001:db8::1]:80."
        ) from None


def _end_of(sketch: Sketch, chosen: End) -> End | None:
    """The end of a connection that is judged: where both have the address, the one called."""
    for end in sketch.appraisal.ends:
        if end[0] == chosen[0] and chosen[1] in (0, end[1]):
            return end
    return None


def _task(sketch: Sketch, chosen: End, gaps: Sequence[float], spool: Spool) -> Task:
    end = _end_of(sketch, chosen)
    assert end is not None
    place = bisect_left(gaps, sketch.times[0])
    lossy = bool(spool.dropped) or (place < len(gaps) and gaps[place] <= sketch.times[1])
    defects, error = defects_of(sketch, end, lossy=lossy)
    return Task(end, defects, error)


def rows_of(suite: Suite, profile: str, judged: Iterable[Judged]) -> Iterator[Row]:
    known = [item for item in judged if Defect.LATE not in item.defects]
    for requirement in suite.requirements().values():
        if requirement.testability != "wire" or profile not in requirement.profiles:
            continue
        found = [(item, item.entries[requirement.id]) for item in known
                 if requirement.id in item.entries]  # fmt: skip
        yield Row(
            requirement,
            requirement.condition_in(profile),
            sum(entry.holds for _, entry in found),
            tuple((item, finding) for item, entry in found for finding in entry.violations),
            tuple((item, finding) for item, entry in found for finding in entry.unclear),
            Counter(entry.unjudgeable for _, entry in found if entry.unjudgeable),
            sum(requirement.id in item.unclaimed for item in known),
            len(known),
        )


__all__ = ["Analysis", "Place", "Row", "SideUnknown", "analyze_capture", "parse_end"]
