"""The true reference's run: which lines each case reaches, what it sends, how it is judged."""

from __future__ import annotations

import hashlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from types import FrameType
from typing import Any

from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.execution import Judge, Judgment, Outcome, Recording, run_case
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.selftest.memory import RememberingJudge, digest_of
from bentpipe_conformance.selftest.mutation.forking import Lost, in_children
from bentpipe_conformance.selftest.mutation.loading import load_subject, path_of
from bentpipe_conformance.selftest.mutation.marks import Line, Marks
from bentpipe_conformance.selftest.mutation.probing import NAME, Probe, instrumented, noticing
from bentpipe_conformance.selftest.mutation.scope import Scope
from bentpipe_conformance.selftest.mutation.sites import Mutant
from bentpipe_conformance.selftest.stage import stage

WALL_S = 900.0
"""Wall time after which a child is given up, whatever the load of the machine."""


@dataclass(frozen=True, slots=True)
class Run:
    """A case on the reference in one profile and setting."""

    case: str
    profile: str
    setting: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.case, self.profile, self.setting)))


@dataclass(frozen=True, slots=True)
class Reached:
    """What a run of the true reference did.

    Attributes:
        digest: of its recording.
        seconds: that it took, with its judgment.
        passed: requirements found met.
        lines: marks of those that it executed.
        felt: marks of the mutants with a probe that make a difference in it.
    """

    digest: bytes
    seconds: float
    passed: frozenset[str]
    lines: int = 0
    felt: int = 0


@dataclass
class Baseline:
    """The true reference in every profile and setting.

    Attributes:
        suite: the suite.
        seed: of the simulation.
        marks: of lines and mutants.
        runs: in the order in which they are tried on a mutant: usual settings first, then cheap
            ones.
        imported: marks of the lines executed when the modules are imported.
        bounds: by setting, the modules whose bounds it brings within reach.
        judge: remembers every judgment.
    """

    suite: str
    seed: int
    marks: Marks
    runs: dict[Run, Reached] = field(default_factory=dict)
    imported: int = 0
    bounds: Mapping[str, Collection[str]] = field(default_factory=dict)
    judge: RememberingJudge = field(default_factory=RememberingJudge)

    def reaching(self, mutant: Mutant) -> list[Run]:
        """The runs that execute a mutant's statement; all, where it runs when imported."""
        lines = self.marks.span(mutant.module, mutant.lines)
        everywhere = mutant.at_import or bool(lines & self.imported)
        return [run for run, item in self.runs.items() if everywhere or lines & item.lines]

    def telling(self, mutant: Mutant) -> list[Run]:
        """Those of them that may tell a mutant from the true reference.

        With a probe those in which it makes a difference. Without, of a setting other than the
        usual one only where no usual run reaches the statement, where its function goes other ways
        in that setting, or where that setting brings the bounds of its module within reach.
        """
        found = self.reaching(mutant)
        lines = self.marks.span(mutant.module, mutant.lines)
        if mutant.probe is not None and not lines & self.imported:
            mark = self.marks.mutants([mutant.id])
            return [run for run in found if mark & self.runs[run].felt]
        if all(run.setting for run in found):
            return found
        body = self.marks.span(mutant.module, mutant.body)
        known = self._reached(body, "")
        others = {run.setting for run in found} - {""}
        ways = {
            name for name in others
            if mutant.module in self.bounds.get(name, ()) or self._reached(body, name) & ~known
        }  # fmt: skip
        return [run for run in found if not run.setting or run.setting in ways]

    def _reached(self, lines: int, setting: str) -> int:
        """Those of some lines that any case reaches in a setting."""
        found = (item.lines for run, item in self.runs.items() if run.setting == setting)
        return reduce(or_, found, 0) & lines


class ReferenceAccused(Exception):
    """The true reference fails; the message says where."""


def measure(
    scope: Scope, suite: str, seed: int, mutants: Sequence[Mutant], jobs: int,
    tick: Callable[[], None] = lambda: None, *, usual: bool = False, cases: Collection[str] = (),
) -> Baseline:  # fmt: skip
    """Run every case on the true reference: judged, traced, and with the probes of mutants.

    Args:
        scope: of the reference.
        suite: the suite.
        seed: of the simulation.
        mutants: whose lines and probes are of interest.
        jobs: processes.
        tick: called after each judged run.
        usual: whether to leave out settings other than the usual one.
        cases: the only ones; none for all.

    Raises:
        ReferenceAccused: a finding of it fails: nothing can be said of mutants.
    """
    marks = Marks.of(scope, mutants)
    subject = load_subject(scope.protocol, {}, scope.root)
    bounds = {name: setting.bounds for name, setting in subject.settings.items()}
    baseline = Baseline(suite, seed, marks, bounds=bounds)
    player = Player(subject, suite, seed, baseline.judge)
    found: dict[Run, Reached] = {}
    for run in runs_of(suite, subject, usual=usual, cases=cases):
        found[run] = _judged(run, player)
        tick()
    groups = sorted({(run.profile, run.setting) for run in found})
    tasks = [(task, *group) for task in (_traced, _probed) for group in groups]

    def work(item: tuple[Any, str, str]) -> Any:
        task, *group = item
        chosen = [run for run in found if [run.profile, run.setting] == group]
        return task(scope, suite, seed, mutants, marks, chosen)

    for _, result in in_children(tasks, work, jobs, WALL_S):
        if isinstance(result, Lost):
            raise ReferenceAccused(f"the true reference could not be traced: {result.why}")
        imported, told = result
        baseline.imported |= imported
        for run, (digest, lines, felt) in told.items():
            if digest != found[run].digest:
                raise ReferenceAccused(f"the true reference differs when it is observed, in {run}")
            known = found[run]
            found[run] = replace(known, lines=known.lines | lines, felt=known.felt | felt)
    order = sorted(found, key=lambda run: (run.setting != "", found[run].seconds))
    baseline.runs = {run: found[run] for run in order}
    return baseline


def runs_of(
    suite: str, subject: Any, *, usual: bool = False, cases: Collection[str] = ()
) -> list[Run]:
    """Every case, or some, in every profile and setting of a reference, except extra ones."""
    settings = {} if usual else subject.settings
    return [
        Run(item.id, profile, name)
        for name, setting in {"": None, **settings}.items()
        for profile in suite_named(suite).profiles
        if setting is None or profile in (setting.profiles or (profile,))
        for item in load_cases(suite).values()
        if profile in item.profiles and not item.extra and (not cases or item.id in cases)
    ]


def _judged(run: Run, player: Player) -> Reached:
    began = time.perf_counter()
    outcome, digest = player.play(run)
    for finding in outcome.findings:
        if finding.verdict is Verdict.FAIL:
            raise ReferenceAccused(
                f"the true reference fails {finding.requirement} in {run}: {finding.sentence}; "
                "the self-test without --mutate must be clean first"
            )
    passed = {item.requirement for item in outcome.findings if item.verdict is Verdict.PASS}
    return Reached(digest, time.perf_counter() - began, frozenset(passed))


Told = dict[Run, tuple[bytes, int, int]]
"""By run: the digest of its recording, marks of lines and of mutants."""


def _traced(
    scope: Scope, suite: str, seed: int, mutants: Sequence[Mutant], marks: Marks,
    runs: Sequence[Run],
) -> tuple[int, Told]:  # fmt: skip
    """The lines that are executed, when the modules are imported and by each run."""
    modules = {item.module for item in mutants}
    files = {str(path_of(scope.full_name(name))): name for name in modules}
    with _noting(files) as imported:
        subject = load_subject(scope.protocol, {}, scope.root)
    player = Player(subject, suite, seed, _unjudged)
    told: Told = {}
    for run in runs:
        with _noting(files) as lines:
            _, digest = player.play(run)
        told[run] = digest, marks.lines(lines), 0
    return marks.lines(imported), told


def _probed(
    scope: Scope, suite: str, seed: int, mutants: Sequence[Mutant], marks: Marks,
    runs: Sequence[Run],
) -> tuple[int, Told]:  # fmt: skip
    """The mutants that make a difference in each run."""
    probes: dict[str, list[tuple[str, Probe]]] = defaultdict(list)
    for item in mutants:
        if item.probe is not None:
            probes[item.module].append((item.id, item.probe))
    sources = {
        scope.full_name(module): instrumented(scope.source(module), found)
        for module, found in probes.items()
    }
    felt: set[str] = set()
    given = {NAME: noticing(felt)}
    player = Player(
        load_subject(scope.protocol, sources, scope.root, given), suite, seed, _unjudged
    )
    told: Told = {}
    for run in runs:
        felt.clear()
        _, digest = player.play(run)
        told[run] = digest, 0, marks.mutants(felt)
    return 0, told


def _unjudged(_: Recording) -> Judgment:
    """Where only what is sent matters."""
    return Verdict.PASS, "", ()


class Player:
    """Plays runs on one reference, true or mutated.

    Attributes:
        judging: whether the implementation's part of the present run is over.
    """

    def __init__(self, subject: Any, suite: str, seed: int, judge: Judge) -> None:
        self.judging = False
        self._subject, self._suite, self._seed, self._judge = subject, suite, seed, judge
        self._digest = b""
        self._stages: dict[tuple[str, str], tuple[Any, RunSettings]] = {}

    def play(self, run: Run) -> tuple[Outcome, bytes]:
        """The outcome of a run, and the digest of its recording."""
        key = run.profile, run.setting
        if key not in self._stages:
            self._stages[key] = stage(self._subject, *key, self._seed)
        lane, settings = self._stages[key]
        self.judging = False
        self._digest = b""
        outcome = run_case(self.case(run), lane, settings, judged_by=self._judged)
        return outcome, self._digest

    def case(self, run: Run) -> Case:
        """The case of a run."""
        return load_cases(self._suite)[run.case]

    def _judged(self, recording: Recording) -> Judgment:
        self.judging = True
        self._digest = digest_of(recording)
        return self._judge(recording)


@contextmanager
def _noting(files: Mapping[str, str]) -> Iterator[set[Line]]:
    """Collect the lines that are executed in these files."""
    found: set[Line] = set()

    def of_frame(frame: FrameType, _event: str, _value: object) -> Any:
        name = files.get(frame.f_code.co_filename)
        if name is None:
            return None
        found.add((name, frame.f_lineno))

        def of_line(frame: FrameType, event: str, _value: object) -> Any:
            if event == "line":
                found.add((name, frame.f_lineno))
            return of_line

        return of_line

    before = sys.gettrace()
    sys.settrace(of_frame)
    try:
        yield found
    finally:
        sys.settrace(before)


def sources_digest(paths: Sequence[Path]) -> str:
    """A digest of everything that a result depends on; where it lies is not among it."""
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()
