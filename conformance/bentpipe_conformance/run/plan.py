"""From what a person typed to a plan: description, link, cases, place, run record."""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from bentpipe_conformance.bed.progress import Progress, Step, silent
from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.lane import SIMULATION_ERROR_S
from bentpipe_conformance.evidence.records import Bed, Implementation, RunRecord
from bentpipe_conformance.evidence.serialization import encode
from bentpipe_conformance.iut.build import build
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.run.certify import Plan, select_cases
from bentpipe_conformance.run.crew import choose, load_link

CASE_TIMEOUT_S = {"simulation": 120.0, "uml-virtual": 120.0, "uml": 900.0, "host": 900.0}
"""Wall-clock seconds after which a case counts as hung: in virtual time waiting costs nothing, on
a wall clock the longest cases wait for minutes."""


def make_plan(
    *,
    iut: str,
    link: str,
    profile: str | None = None,
    bed: str = "auto",
    only: Sequence[str] = (),
    cases: tuple[Case, ...] | None = None,
    directory: Path,
    jobs: int | None = None,
    resume: bool = False,
    seed: int | None = None,
    command: tuple[str, ...] = (),
    case_timeout: float | None = None,
    progress: Progress = silent,
) -> Plan:
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
        build(description.start.build, lambda text: progress(Step("build", 0, 0, text)))
    place = choose(bed, description, link_profile, progress)
    report = place.report
    run = RunRecord(
        bentpipe=version("bentpipe"),
        command=command,
        iut=Implementation(id=description.id, name=description.name, ics=dict(description.ics)),
        link=encode(link_profile),
        profile=profile,
        suite=suite.name,
        bed=Bed(
            place=place.name,
            reason=place.reason,
            kernel=place.kernel,
            timing_error=report.timing_error if report else SIMULATION_ERROR_S,
            check=encode(report) if report else {},
        ),
        seed=random.SystemRandom().getrandbits(31) if seed is None else seed,
        python=platform.python_version(),
        scapy=version("scapy"),
        started=time.time(),
    )
    return Plan(
        run=run, place=place, iut=iut, link=link, cases=chosen, directory=directory, jobs=jobs,
        resume=resume,
        case_timeout=CASE_TIMEOUT_S[place.name] if case_timeout is None else case_timeout,
    )  # fmt: skip
