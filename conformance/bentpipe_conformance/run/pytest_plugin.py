"""pytest plugin: the suites as ordinary tests.

``pytest --pyargs bentpipe_conformance.protocols --iut linux --link geo`` runs the selected cases
and maps the five verdicts onto pytest's outcomes: *pass* passes, *fail* and *inconclusive* fail,
*unsupported* skips, *error* is an error. The simulated reference runs inside this process, case by
case; any other implementation is certified by workers in its bed and the results are reported
here, so that selection, ``-k``, JUnit files and exit status are pytest's own.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bentpipe_conformance.engine.suite import load_profiles, load_suites, suite_in
from bentpipe_conformance.engine.verdict import Verdict

if TYPE_CHECKING:
    from bentpipe_conformance.engine.case import Case
    from bentpipe_conformance.engine.lane import Lane
    from bentpipe_conformance.engine.settings import RunSettings
    from bentpipe_conformance.iut.description import IutDescription


def pytest_load_initial_conftests(args: list[str]) -> None:
    """Accept the names of the packages in which the cases used to be."""
    folder = "bentpipe_conformance.suites"
    former = {f"{folder}.{name}": suite.cases for name, suite in load_suites().items()}
    former[folder] = "bentpipe_conformance.protocols"
    args[:] = [former.get(argument, argument) for argument in args]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suites."""
    group = parser.getgroup("bentpipe", "transport conformance over satellite links")
    group.addoption("--iut", default="reference", help="implementation under test (ID or TOML)")
    group.addoption("--link", default="geo", help="link profile (ID or TOML)")
    what = "which profile (default: the suite's first)"
    group.addoption("--requirement-profile", choices=load_profiles(), help=what)
    group.addoption("--bed", default="auto", help="auto, uml-virtual, uml, host or simulation")
    group.addoption("--bundle", type=Path, help="where to keep the evidence")


class VerdictError(Exception):
    """A case whose verdict is not pass; the text is its reason."""


@pytest.fixture
def peer() -> None:
    """The scripted peer of the case; :func:`pytest_pyfunc_call` hands it to the script."""


def _case_of(item: pytest.Item) -> Case | None:
    function = getattr(item, "function", None)
    module = getattr(function, "__module__", "")
    if not module.startswith("bentpipe_conformance.protocols."):
        return None
    from bentpipe_conformance.engine.case import identifier, load_cases

    return load_cases(suite_in(module).name).get(identifier(function)) if function else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of other suites and profiles, and the extra ones."""
    cases = {item: case for item in items if (case := _case_of(item)) is not None}
    if not cases:
        return
    suite = _description(config).suite
    try:
        profile = suite.profile(config.getoption("--requirement-profile"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        case = cases.get(item)
        ours = case and case.suite is suite and profile in case.profiles and not case.extra
        (kept if case is None or ours else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a case on its lane, judge it, and turn the verdict into an outcome."""
    case = _case_of(pyfuncitem)
    if case is None:
        return None
    from bentpipe_conformance.engine.execution import run_case

    asked = map(pyfuncitem.config.getoption, ("--iut", "--link", "--requirement-profile"))
    outcome = run_case(case, *_simulated(*asked))
    _conclude(outcome.verdict, outcome.reason)
    return True


def _conclude(verdict: Verdict, reason: str) -> None:
    if verdict is Verdict.UNSUPPORTED:
        pytest.skip(f"unsupported: {reason}")
    if verdict is Verdict.FAIL:
        pytest.fail(reason, pytrace=False)
    if verdict is Verdict.INCONCLUSIVE:
        pytest.fail(f"inconclusive: {reason}", pytrace=False)
    if verdict is Verdict.ERROR:
        raise VerdictError(reason)


@cache
def _simulated(iut: str, link: str, profile: str | None) -> tuple[Lane, RunSettings]:
    from bentpipe_conformance.iut.description import load_iut
    from bentpipe_conformance.run.opening import load_link, open_lane, run_settings

    description, found = load_iut(iut), load_link(link)
    profile = description.suite.profile(profile)
    return open_lane(description, found, 1), run_settings(description, found, profile, 1)


def _description(config: pytest.Config) -> IutDescription:
    from bentpipe_conformance.iut.description import load_iut

    return load_iut(config.getoption("--iut"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Certify in the bed when the implementation cannot run inside this process."""
    cases = {item: case for item in session.items if (case := _case_of(item)) is not None}
    if not cases or session.config.option.collectonly:
        return None
    if _description(session.config).attach.kind == "in-process":
        return None
    from bentpipe_conformance.run.pytest_bed import run_in_bed

    return run_in_bed(session, cases)
