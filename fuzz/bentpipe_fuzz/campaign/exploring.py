"""A campaign in the service of a certification: ``bentpipe certify --explore SECONDS``.

What it finds is judged once more as a stored case is (see :mod:`bentpipe_conformance.run.rejudge`)
and added to the bundle with its replay file. The certificate must accuse nobody wrongly: what the
suite's own reference violates in the same conversation is named as doubtful, and counts for
nothing.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bentpipe_conformance.engine.execution import Recording
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.timing import lateness
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import POINTS, Bundle
from bentpipe_conformance.evidence.captures import load_captured
from bentpipe_conformance.evidence.files import digest
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.run.exploration import found_case, found_id
from bentpipe_conformance.run.opening import load_link
from bentpipe_conformance.run.plan import Plan
from bentpipe_conformance.run.rejudge import judge_told
from bentpipe_conformance.run.watcher import Watcher
from bentpipe_conformance.selftest.stage import stage
from bentpipe_reference.common.subject import subject_of

from bentpipe_fuzz.campaign import shards
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.oracle import ALIVE
from bentpipe_fuzz.campaign.replay import Replay, load
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import ScriptError
from bentpipe_fuzz.campaign.storage import Figures, Order, stored

SHRINK_RUNS = 60
"""Runs that making a finding small may take."""


def explore(plan: Plan, bundle: Bundle, seconds: float, watcher: Watcher) -> None:
    """Run a campaign for so many seconds of the wall clock; see :mod:`..run.exploration`."""
    run, place = plan.run, plan.place
    try:
        binding_of(found_case(found_id(run.suite, "none")).suite)
    except ScriptError as error:
        watcher.note(f"nothing was explored: {error}")
        return
    with tempfile.TemporaryDirectory(prefix="bentpipe-explore-") as scratch:
        order = Order(
            plan.iut, plan.link, run.profile, run.seed, 0, (), run.bed.timing_error, SHRINK_RUNS,
            scratch, shards.patience(place),
        )  # fmt: skip

        def watch(_figures: Figures, lines: list[str]) -> None:
            for line in lines:
                watcher.note(f"exploring: {line}")

        figures, folders = shards.run(order, place, 1, seconds, watch)
        exploration = _Exploration(plan, bundle)
        for folder in stored(folders):
            exploration.take(folder)
    bundle.explored({
        "seconds": seconds, "seed": run.seed, "conversations": figures.conversations,
        "packets": figures.packets, "link_seconds": round(figures.link_seconds, 3),
        "problem": figures.problem or figures.broken, **exploration.document(),
    })  # fmt: skip


class _Exploration:
    """What is done with the findings of a campaign beside cases."""

    def __init__(self, plan: Plan, bundle: Bundle) -> None:
        self._findings = Findings(plan, bundle)
        self._plan = plan
        self._doubtful: list[dict[str, str]] = []
        self._observed: list[dict[str, str]] = []

    def document(self) -> dict[str, Any]:
        """What became of them, as JSON."""
        found = self._findings.found
        return {"found": found, "doubtful": self._doubtful, "observed": self._observed}

    def take(self, folder: Path) -> None:
        """Add a finding to the bundle if the packets alone show it, and to the reference not."""
        told = load(folder / "replay.json")
        record, captured = self._findings.record(told, folder)
        row = {"requirement": told.requirement, "sentence": told.sentence}
        if record.lane["told"] and not record.lane["died"]:
            self._observed.append(row)
        elif not record.lane["died"] and self._accuses_the_reference(told):
            self._doubtful.append(row)
        else:
            self._findings.add(record, captured, told)

    def _accuses_the_reference(self, told: Replay) -> bool:
        suite = suite_named(told.script.suite)
        lane, settings = stage(subject_of(suite.folder), self._plan.run.profile, "", told.seed)
        return play(told.script, lane, settings).breaks(told.requirement)


class Findings:
    """What a campaign has found, as cases of a bundle.

    Attributes:
        found: their identifiers.
    """

    def __init__(self, plan: Plan, bundle: Bundle) -> None:
        self.found: list[str] = []
        self._run = plan.run
        self._bundle = bundle
        self._link = load_link(plan.link)
        self._numbers: Counter[str] = Counter()

    def record(self, told: Replay, folder: Path) -> tuple[CaseRecord, list[Captured]]:
        """A stored finding as a case, judged as ``verify`` will judge it, and its packets.

        Its lane says under ``died`` how the implementation ended, and under ``told`` what the
        tester alone knew, if the packets do not show the violation.
        """
        run, captured = self._run, _captured(folder)
        name = f"{told.requirement}-{self._numbers[told.requirement] + 1}"
        item = found_case(found_id(run.suite, name), told.dumps())
        measured = lateness(read_trace(captured, suite=item.suite), self._link)
        error = max(self._bundle.bed(len(self._bundle.sessions)).timing_error, measured)
        died = told.sentence if told.requirement == ALIVE else ""
        recording = Recording(item, captured, run.profile, run.iut.ics, error, died=died)
        verdict, reason, findings = judge_told(recording, "")
        shown = {finding.requirement for finding in findings if finding.verdict in _BAD}
        hidden = "" if told.requirement in shown else told.sentence
        if hidden:
            verdict, reason, findings = judge_told(recording, hidden)
        lane = {"timing_error": error, "not_reached": "", "died": died, "told": hidden,
                "replay": digest(told.dumps().encode())}  # fmt: skip
        record = CaseRecord(
            item.id, item.title, item.purpose, item.requirements, verdict, reason, findings,
            started=time.time(), link_seconds=captured[-1].time if captured else 0.0, lane=lane,
        )  # fmt: skip
        return record, captured

    def add(self, record: CaseRecord, captured: list[Captured], told: Replay) -> None:
        """Store it in the bundle."""
        self._numbers[told.requirement] += 1
        self._bundle.add_case(record, captured, told.dumps())
        self.found.append(record.id)


_BAD = (Verdict.FAIL, Verdict.ERROR)


def _captured(folder: Path) -> list[Captured]:
    """The packets of a finding; none where the place of the implementation was gone."""
    paths = {point: folder / f"{point}.pcapng" for point in POINTS}
    if not all(path.exists() for path in paths.values()):
        return []
    return load_captured({point: path.read_bytes() for point, path in paths.items()}, str(folder))
