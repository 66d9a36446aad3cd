"""Judging the connections of one file of a spool; what worker processes run."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bentpipe_conformance.analysis.sketch import Sketch, sketch_connection, without_copies
from bentpipe_conformance.analysis.spool import read_groups
from bentpipe_conformance.engine.checking import judge_flow
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.observing import Defect, End, Observer, Sighting
from bentpipe_conformance.engine.remembered import forget
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.engine.trace import Packet, Trace
from bentpipe_conformance.engine.verdict import Verdict

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Task:
    """How to judge one connection.

    Attributes:
        iut: the end to judge; the address alone where the port is 0.
        defects: what is wrong with the capture of it.
        timing_error: seconds by which times may be wrong, as the implementation sees it.
    """

    iut: End
    defects: tuple[Defect, ...]
    timing_error: float


@dataclass(frozen=True, slots=True)
class Entry:
    """What one connection says about one requirement.

    Attributes:
        met: findings that it was met; those alike are folded into one with a count.
        violations: findings against it; packet numbers are the capture's.
        unclear: findings for which the capture is too coarse, or errors of the checker.
        unjudgeable: why it cannot be judged on this capture; empty when it can.
    """

    met: tuple[Finding, ...] = ()
    violations: tuple[Finding, ...] = ()
    unclear: tuple[Finding, ...] = ()
    unjudgeable: str = ""

    @property
    def holds(self) -> int:
        """How many times it was exercised and met."""
        return sum(item.count for item in self.met)

    @property
    def word(self) -> str:
        """The outcome in a word or two."""
        if self.violations:
            return "violated"
        if self.holds:
            return "holds"
        return "unclear" if self.unclear else "not judgeable"


@dataclass(frozen=True, slots=True)
class Judged:
    """One connection, judged.

    Attributes:
        place: where its packets are in the spool.
        iut, peer: its ends.
        packets, first: how many packets it has, and the number of the first.
        started, seconds: when it began, since the capture did, and how long it lasted.
        defects: what is wrong with the capture of it.
        entries: by requirement; those never exercised are left out.
        unclaimed: requirements whose condition is not claimed for it.
    """

    place: Place
    iut: End
    peer: End
    packets: int
    first: int
    started: float
    seconds: float
    defects: tuple[Defect, ...]
    entries: Mapping[str, Entry] = field(default_factory=dict)
    unclaimed: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Its ends, the implementation's first."""
        return f"{end_text(self.iut)} - {end_text(self.peer)}"


def end_text(end: End) -> str:
    """An end as users write it."""
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def sketch_file(path: Path, suite_name: str) -> list[Sketch]:
    """What each connection of a file tells of the capture."""
    observer = _observer(suite_named(suite_name))
    found = []
    for group, kept in read_groups(path, observer):
        if kept.sightings:
            sightings, copies = without_copies(kept.sightings, observer)
            for nth, part in enumerate(observer.separate(sightings)):
                found.append(
                    sketch_connection((group, nth), part, copies, bool(kept.cut), observer)
                )
    return found


def judge_file(
    path: Path, suite_name: str, profile: str, stated: Ics, tasks: Mapping[Place, Task]
) -> list[Judged]:
    """Judge the connections of a file for which there is a task."""
    suite = suite_named(suite_name)
    observer = _observer(suite)
    found: list[Judged] = []
    groups = {group for group, _ in tasks}
    for group, kept in read_groups(path, observer, groups):
        parts = observer.separate(without_copies(kept.sightings, observer)[0])
        kept.sightings.clear()
        for nth in range(len(parts)):
            task = tasks.get((group, nth))
            # Of a large connection nothing is kept twice.
            part, parts[nth] = parts[nth], []
            if task is not None:
                trace = _trace(part, task, observer)
                part.clear()
                with _collecting_nothing():
                    flows = suite.interpreter.read_flows(trace)
                    del trace
                    found += _judge((group, nth), flows, task, suite, observer, profile, stated)
                del flows
                forget()
    return found


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Collect no garbage meanwhile: what a connection's replay makes lives until it is judged."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def read_trace_of(path: Path, suite_name: str, place: Place, task: Task) -> Trace[Any]:
    """The packets of one connection, as it was judged."""
    observer = _observer(suite_named(suite_name))
    ((_, kept),) = read_groups(path, observer, {place[0]})
    sightings, _ = without_copies(kept.sightings, observer)
    return _trace(observer.separate(sightings)[place[1]], task, observer)


def _observer(suite: Suite) -> Observer:
    observer = suite.observer
    assert observer is not None
    return observer


def _trace(sightings: Sequence[Sighting], task: Task, observer: Observer) -> Trace[Any]:
    address, port = task.iut
    packets = []
    for item in sightings:
        source = observer.ends(item.content)[0]
        outgoing = source == task.iut if port else source[0] == address
        packets.append(Packet(item.number, item.time, "iut", outgoing, item.content, item.octets))
    return Trace(tuple(packets), task.timing_error)


def _judge(
    place: Place, flows: Sequence[Any], task: Task, suite: Suite, observer: Observer, profile: str,
    stated: Ics,
) -> list[Judged]:  # fmt: skip
    found = []
    for flow in flows:
        if not flow.packets:  # nothing of it could be read
            continue
        first, last = flow.packets[0], flow.packets[-1]
        ends = observer.ports(first.content)
        iut, peer = ends if first.outgoing else ends[::-1]
        entries: dict[str, Entry] = {}
        unclaimed: frozenset[str] = frozenset()
        if Defect.LATE not in task.defects:
            ics = observer.claims(flow, stated)
            barred = _barred(suite, observer, task.defects)
            entries, unclaimed = entries_of(flow, task.timing_error, suite, profile, ics, barred)
        lasted = last.time - first.time
        found.append(
            Judged(
                place, iut, peer, len(flow.packets), first.number, first.time, lasted,
                task.defects, entries, unclaimed,
            )
        )  # fmt: skip
    return found


def _barred(suite: Suite, observer: Observer, defects: Collection[Defect]) -> dict[str, str]:
    """The requirements that cannot be judged, and why."""
    reasons = {name: observer.unjudgeable(name, defects) for name in suite.requirements()}
    return {name: why for name, why in reasons.items() if why}


def entries_of(
    flow: Any, timing_error: float, suite: Suite, profile: str, ics: Ics,
    barred: Mapping[str, str],
) -> tuple[dict[str, Entry], frozenset[str]]:  # fmt: skip
    """Judge one connection.

    Args:
        flow: of the suite's protocol.
        timing_error: seconds by which its times may be wrong.
        suite: whose requirements.
        profile: a profile of the suite.
        ics: what is stated.
        barred: requirements that cannot be judged, and why.

    Returns:
        What comes of each requirement that is exercised, and those that are not claimed.
    """
    entries: dict[str, Entry] = {}
    unclaimed: set[str] = set()
    for requirement, findings in judge_flow(
        flow, timing_error, profile, ics, suite=suite, left_out=barred
    ):
        if findings is None:
            unclaimed.add(requirement.id)
        elif requirement.id in barred:
            entries[requirement.id] = Entry(unjudgeable=barred[requirement.id])
        elif findings:
            entries[requirement.id] = _entry_of(findings)
    return entries, frozenset(unclaimed)


def _entry_of(findings: Sequence[Finding]) -> Entry:
    """What the findings about one requirement come to."""
    return Entry(
        tuple(item for item in findings if item.verdict is Verdict.PASS),
        tuple(item for item in findings if item.verdict is Verdict.FAIL),
        tuple(item for item in findings if item.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR)),
    )
