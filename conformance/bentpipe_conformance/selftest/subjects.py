"""The self-test: all cases against the true reference and every mutant, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.common.subject import subject_of

from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.checking import load_checkers
from bentpipe_conformance.engine.execution import run_case
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.selftest.memory import shared_judge
from bentpipe_conformance.selftest.mutants import mutants_of
from bentpipe_conformance.selftest.pool import work_through
from bentpipe_conformance.selftest.stage import stage

_REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Subject:
    """A reference or a mutant of it.

    Attributes:
        name: the mutant's identifier, or ``reference``.
        profile: a profile of the suite.
        target: the requirement the mutant breaks; empty for the reference.
        setting: of the reference, or of the one that is mutated; empty for the usual one.
    """

    name: str
    profile: str
    target: str = ""
    setting: str = ""


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """The suite's verdict on one subject.

    Attributes:
        subject: the one that was judged.
        failed: requirements with at least one failing finding, and the first sentence of each.
        open: targets of cases that stayed inconclusive or in error, with the sentence; in a
            setting other than the usual one only those that no case decides.
    """

    subject: Subject
    failed: Mapping[str, str]
    open: Mapping[str, str]

    @property
    def caught(self) -> bool:
        """Whether a mutant failed on the requirement it breaks."""
        return self.subject.target in self.failed


def subjects(suite: str, only: Sequence[str] = ()) -> list[Subject]:
    """The true reference in each profile and setting, then every mutant, or those named.

    Raises:
        ValueError: a mutant belongs to no profile of the suite.
    """
    record = suite_named(suite)
    mutants = [
        Subject(item.id, item.profile, item.breaks, item.setting)
        for item in load_mutants().values()
        if item.breaks.startswith(record.prefix)
        and (not only or item.id in only or item.breaks in only)
    ]
    for item in mutants:
        if item.profile not in record.profiles:
            named, known = f"names the profile {item.profile!r}", ", ".join(record.profiles)
            raise ValueError(f"the mutant {item.name} {named}; the suite {suite} has {known}")
    settings = {"": (), **{k: v.profiles for k, v in subject_of(record.folder).settings.items()}}
    references = [
        Subject(_REFERENCE, profile, setting=setting)
        for profile in record.profiles
        for setting, permitted in settings.items()
        if not permitted or profile in permitted
    ]
    return [*references, *mutants]


def judge_subject(
    subject: Subject, suite: str, seed: int = 0, *, whole: bool = False
) -> SubjectResult:
    """Run the cases of the subject's profile, except extra ones, on the simulated GEO link.

    A mutant's cases are those first that target what it breaks; unless ``whole``, the rest is left
    out once it is caught.
    """
    reference = subject_of(suite_named(suite).folder)
    alter = load_mutants()[subject.name].configure if subject.target else lambda setup: setup
    lane, settings = stage(reference, subject.profile, subject.setting, seed, alter)
    failed: dict[str, str] = {}
    still_open: dict[str, str] = {}
    passed: set[str] = set()
    cases = load_cases(suite).values()
    for item in sorted(cases, key=lambda item: subject.target not in item.requirements):
        if subject.profile not in item.profiles or item.extra:
            continue
        if subject.target in failed and not whole:
            break
        for finding in run_case(item, lane, settings, judged_by=shared_judge()).findings:
            sentence = f"{item.id}: {finding.sentence}"
            if finding.verdict is Verdict.PASS:
                passed.add(finding.requirement)
            elif finding.verdict is Verdict.FAIL or (
                finding.verdict is Verdict.ERROR and not subject.target
            ):
                # A script that breaks before the true reference is wrong, whatever others show.
                failed.setdefault(finding.requirement, sentence)
            elif finding.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR):
                still_open.setdefault(finding.requirement, sentence)
    if subject.setting:
        expected = passed | reference.settings[subject.setting].undecided
        still_open = {name: why for name, why in still_open.items() if name not in expected}
    return SubjectResult(subject, failed, still_open)


def run(
    chosen: Iterable[Subject], suite: str, seed: int, jobs: int,
    report: Callable[[SubjectResult], None], *, whole: bool = False,
) -> list[SubjectResult]:  # fmt: skip
    """Judge subjects on ``jobs`` processes, calling ``report`` for each as it ends."""
    function = partial(judge_subject, suite=suite, seed=seed, whole=whole)
    return work_through(chosen, function, jobs, report)


def summary(results: Sequence[SubjectResult], suite: str) -> dict[str, Any]:
    """The machine-readable outcome: mutants, caught, missed, reference failures, coverage."""
    mutants = [item for item in results if item.subject.target]
    references = [item for item in results if not item.subject.target]
    record = suite_named(suite)
    judged = [item.id for item in record.requirements().values() if item.testability == "wire"]
    return {
        "suite": suite,
        "mutants": len(mutants),
        "caught": sum(item.caught for item in mutants),
        "missed": [item.subject.name for item in mutants if not item.caught],
        "reference_failures": _listed((item.subject, item.failed) for item in references),
        "reference_open": _listed((item.subject, item.open) for item in references),
        "requirements_without_mutant": [name for name in judged if not mutants_of(name)],
        "requirements_without_checker": [n for n in judged if n not in load_checkers(record)],
        "table": [
            {"mutant": item.subject.name, "profile": item.subject.profile,
             "breaks": item.subject.target, "caught": item.caught,
             "failed": list(item.failed), "sentence": item.failed.get(item.subject.target, "")}
            for item in mutants
        ],
    }  # fmt: skip


def _listed(sentences: Iterable[tuple[Subject, Mapping[str, str]]]) -> list[dict[str, str]]:
    return [
        {"profile": subject.profile, "setting": subject.setting,
         "requirement": name, "sentence": sentence}
        for subject, found in sentences
        for name, sentence in found.items()
    ]  # fmt: skip
