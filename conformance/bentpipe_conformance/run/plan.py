"""The plan of a certification: description, link, cases, place, run record."""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path

from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.evidence.bundle import Bundle
from bentpipe_conformance.evidence.records import Bed, RunRecord
from bentpipe_conformance.evidence.serialization import encode
from bentpipe_conformance.evidence.tool import environment, source_digest
from bentpipe_conformance.iut.build import build
from bentpipe_conformance.iut.contents import Contents, contents_of
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.run.identity import implementation, requirements_digest
from bentpipe_conformance.run.opening import load_link
from bentpipe_conformance.run.workplace import Workplace, choose_workplace

CASE_TIMEOUT_S = {"simulation": 120.0, "uml-virtual": 120.0, "uml": 900.0, "host": 900.0}
"""Wall-clock seconds after which a case counts as hung: in virtual time waiting costs nothing, on
a wall clock the longest cases wait for minutes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to certify.

    Attributes:
        run: the record for ``run.json``.
        place: where to run.
        iut, link: identifier or path of the IUT description and the link profile.
        cases: the selected cases.
        directory: the bundle's directory.
        jobs: workers side by side (None: as many as fit).
        resume: whether to continue an interrupted run.
        case_timeout: wall-clock seconds after which one case counts as hung.
        contents: the files of the implementation.
    """

    run: RunRecord
    place: Workplace
    iut: str
    link: str
    cases: tuple[Case, ...]
    directory: Path
    jobs: int | None
    resume: bool
    case_timeout: float
    contents: Contents


def select_cases(suite: str, profile: str, only: Sequence[str] = ()) -> tuple[Case, ...]:
    """The cases of a suite in a profile without the extra ones, or those that ``only`` selects.

    Each pattern of ``only`` is a shell pattern on the case's identifier or on that of a
    requirement it targets, or simply a part of the case's identifier.

    Raises:
        ValueError: a pattern selects nothing.
    """
    every = [item for item in load_cases(suite).values() if profile in item.profiles]
    if not only:
        return tuple(item for item in every if not item.extra)
    chosen: set[str] = set()
    for pattern in only:
        found = [
            item.id
            for item in every
            if any(fnmatchcase(name, pattern) for name in (item.id, *item.requirements))
            or pattern in item.id
        ]
        if not found:
            where = "see 'bentpipe list cases'"
            raise ValueError(f"no case or requirement matches {pattern!r}; {where}")
        chosen.update(found)
    return tuple(item for item in every if item.id in chosen)


def make_plan(
    *, iut: str, link: str, profile: str | None = None, bed: str = "auto", only: Sequence[str] = (),
    cases: tuple[Case, ...] | None = None, directory: Path, jobs: int | None = None,
    resume: bool = False, seed: int | None = None, command: tuple[str, ...] = (),
    case_timeout: float | None = None,
) -> Plan:  # fmt: skip
    """Everything a certification needs, checked before anything runs.

    The suite is that of the implementation's description, and so is the profile when it is None.

    Raises:
        ValueError: an unknown case pattern or profile, a bad description or link profile.
        BedError: the place asked for cannot be had on this machine, or its check fails.
        IutUnavailable: the implementation cannot be built here.
    """
    description = load_iut(iut)
    link_profile = load_link(link)
    suite = description.suite
    profile = suite.profile(profile)
    chosen = select_cases(suite.name, profile, only) if cases is None else cases
    if description.start.build:
        build(description.start.build)
    contents = contents_of(description)
    place = choose_workplace(bed, description, link_profile)
    report = place.report
    run = RunRecord(
        bentpipe=version("bentpipe"),
        command=command,
        iut=implementation(description, contents),
        link=encode(link_profile),
        profile=profile,
        suite=suite.name,
        bed=Bed(
            place.name, place.reason, place.kernel,
            place.timing_error,
            encode(report) if report else {},
            place.image.sha256 if place.image else "",
        ),
        seed=_seed(directory, resume) if seed is None else seed,
        python=platform.python_version(),
        scapy=version("scapy"),
        started=time.time(),
        source=source_digest(),
        requirements=requirements_digest(suite),
        cases=tuple(item.id for item in chosen),
        environment=environment(),
    )  # fmt: skip
    timeout = CASE_TIMEOUT_S[place.name] if case_timeout is None else case_timeout
    return Plan(run, place, iut, link, chosen, directory, jobs, resume, timeout, contents)


def _seed(directory: Path, resume: bool) -> int:
    """A new seed, or that of the run which is continued.

    Raises:
        BundleError: what is to be continued is no bundle.
    """
    if resume and (directory / "run.json").exists():
        return Bundle.open(directory).run.seed
    return random.SystemRandom().getrandbits(31)
