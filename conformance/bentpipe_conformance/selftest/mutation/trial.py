"""One mutant before the suite: every run that reaches it, until one kills it."""

from __future__ import annotations

import gc
import resource
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.selftest.mutation.baseline import Baseline, Player, Reached, Run
from bentpipe_conformance.selftest.mutation.division import KILLED, STILLBORN, SURVIVED
from bentpipe_conformance.selftest.mutation.loading import load_subject
from bentpipe_conformance.selftest.mutation.scope import Scope
from bentpipe_conformance.selftest.mutation.sites import Mutant

MEMORY_OCTETS = 2 << 30
"""What a mutant may take beyond what the self-test occupies."""

PATIENCE = 20.0
"""Times the processor time that the true reference took, and"""

LEAST_PATIENCE_S = 4.0
"""seconds more, after which a run is given up."""

COLLECTING = (100_000, 20, 50)
"""Thresholds of the garbage collection of a child: without any, the leavings of thousands of runs
are gigabytes; with the usual ones a tenth of the time goes."""

NAMED = 12
"""Runs of a survivor that are named; every other one is only counted."""

# Why a mutant survives, in the order of how much has to be done about it.
UNREACHED = "no case reaches the line"
UNFELT = "it never makes a difference"
UNCHANGED = "no packet changes"
CHANGED = "packets change"
INCONCLUSIVE = "inconclusive"
UNJUDGED = "not judged within its time"


@dataclass(frozen=True, slots=True)
class Kill:
    """How a run kills.

    Attributes:
        run: the run, as text.
        by: the requirements that fail, in the order in which they were found.
        how: ``failed``, ``error``, ``crashed`` or ``hung``.
        sentence: of the first finding.
    """

    run: str
    by: tuple[str, ...]
    how: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Runs:
    """Some runs: how many, and the first of them. There are thousands for each of many mutants."""

    count: int = 0
    first: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Sequence[str]) -> Runs:
        """These runs."""
        return cls(len(names), tuple(names[:NAMED]))

    def __add__(self, other: Runs) -> Runs:
        return Runs(self.count + other.count, (*self.first, *other.first)[:NAMED])


@dataclass(slots=True)
class Trial:
    """The outcome for one mutant.

    Attributes:
        id: the mutant's.
        result: killed, survived or stillborn: one whose module cannot be imported, which is not
            counted.
        kind: for a survivor, one of the constants above.
        kills: the first, or every one where all were asked for.
        runs: how many runs it has seen.
        reaching: the runs that reach a survivor.
        changed: the runs in which a survivor sends other packets.
        lost: requirements found met on the true reference, but nowhere on a survivor.
        settled: whether a survivor has been tried in every setting of the reference.
    """

    id: str
    result: str
    kind: str = ""
    kills: list[Kill] = field(default_factory=list)
    runs: int = 0
    reaching: Runs = Runs()
    changed: Runs = Runs()
    lost: list[str] = field(default_factory=list)
    settled: bool = False


def merged(usual: Trial, others: Trial) -> Trial:
    """A survivor of the usual setting after the others."""
    if others.result != SURVIVED:
        return others
    kinds = (UNREACHED, UNFELT, UNCHANGED, CHANGED, INCONCLUSIVE, UNJUDGED)
    return Trial(
        usual.id, SURVIVED, max(usual.kind, others.kind, key=kinds.index), [],
        usual.runs + others.runs, usual.reaching + others.reaching, usual.changed + others.changed,
        usual.lost, settled=True,
    )  # fmt: skip


class _TimeIsUp(BaseException):
    """A run takes too long; nothing in an implementation or a script may catch it."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise :class:`_TimeIsUp` in here after this much processor time."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGPROF, ring)
    # Again and again: an exception inside a finalizer is lost.
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory() -> None:
    """Let this process, a child of the self-test's, take so much memory and no more."""
    gc.set_threshold(*COLLECTING)
    with open("/proc/self/statm", encoding="ascii") as statm:
        occupied = int(statm.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (occupied + MEMORY_OCTETS, hard))


def try_mutant(
    mutant: Mutant, scope: Scope, baseline: Baseline, *, whole: bool = False, usual: bool = True
) -> Trial:
    """Let the suite judge a mutant.

    Args:
        mutant: it.
        scope: of the reference.
        baseline: of the true reference.
        whole: whether to go on after the first kill.
        usual: whether to play the runs in the usual setting, or else those in the others.
    """

    def chosen(runs: Iterable[Run]) -> list[Run]:
        return [run for run in runs if usual is not bool(run.setting)]

    reaching = Runs.of([str(run) for run in chosen(baseline.reaching(mutant))])
    if not reaching.count:
        return Trial(mutant.id, SURVIVED, UNREACHED)
    order = chosen(baseline.telling(mutant))
    if not order:
        return Trial(mutant.id, SURVIVED, UNFELT, reaching=reaching)
    name = scope.full_name(mutant.module)
    source = mutant.applied(scope.source(mutant.module))
    try:
        with _limited(LEAST_PATIENCE_S):
            subject = load_subject(scope.protocol, {name: source}, scope.root)
    except (Exception, _TimeIsUp) as error:
        broken = Kill("", (), "crashed", f"{type(error).__name__}: {error}")
        return Trial(mutant.id, STILLBORN, kills=[broken])
    trial = _Trying(Player(subject, baseline.suite, baseline.seed, baseline.judge))
    for run in order:
        trial.play(run, baseline.runs[run])
        if trial.kills and not whole:
            break
    if trial.kills:
        return Trial(mutant.id, KILLED, kills=trial.kills, runs=trial.runs)
    lost = sorted(trial.expected - trial.passed)
    changed = Runs.of(trial.changed)
    return Trial(mutant.id, SURVIVED, trial.kind, [], trial.runs, reaching, changed, lost)


class _Trying:
    """What is known of a mutant so far."""

    def __init__(self, player: Player) -> None:
        self.kills: list[Kill] = []
        self.expected: set[str] = set()
        self.passed: set[str] = set()
        self.changed: list[str] = []
        self.runs = 0
        self._player = player
        self._kinds: set[str] = set()

    @property
    def kind(self) -> str:
        """Of a survivor."""
        for kind in (UNJUDGED, INCONCLUSIVE, CHANGED):
            if kind in self._kinds:
                return kind
        return UNCHANGED

    def play(self, run: Run, true: Reached) -> None:
        """Play one run."""
        self.runs += 1
        player = self._player
        try:
            with _limited(LEAST_PATIENCE_S + PATIENCE * true.seconds):
                outcome, digest = player.play(run)
        except _TimeIsUp:
            if player.judging:
                self._kinds.add(UNJUDGED)
            else:
                self._kill(run, "hung", (), "the implementation is busy for ever")
            return
        except Exception as error:  # it does not even start
            self._kill(run, "crashed", (), f"{type(error).__name__}: {error}")
            return
        self.expected |= true.passed
        if digest != true.digest:
            self._kinds.add(CHANGED)
            self.changed.append(str(run))
        found: dict[Verdict, dict[str, str]] = {}
        for finding in outcome.findings:
            found.setdefault(finding.verdict, {}).setdefault(finding.requirement, finding.sentence)
        self.passed |= found.get(Verdict.PASS, {}).keys()
        if Verdict.INCONCLUSIVE in found and digest != true.digest:
            self._kinds.add(INCONCLUSIVE)
        if Verdict.FAIL in found:
            failed = found[Verdict.FAIL]
            how = "crashed" if outcome.died else "failed"
            self._kill(run, how, tuple(failed), next(iter(failed.values())))
        elif Verdict.ERROR in found:
            broken = found[Verdict.ERROR]
            self._kill(run, "error", tuple(broken), next(iter(broken.values())))

    def _kill(self, run: Run, how: str, by: tuple[str, ...], sentence: str) -> None:
        self.kills.append(Kill(str(run), by, how, sentence))
