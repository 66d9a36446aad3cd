"""Nothing wire-testable is without a checker, a case and a mutant; no identifier dangles."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.checking import load_checkers
from bentpipe_conformance.engine.suite import Suite, load_suites, suite_of
from bentpipe_conformance.iut.proforma import load_proforma
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_spec.registry import load_requirements

COMPLETE = ("rwbp", "snr", "stp")
"""Suites that must leave nothing out. The others are being built: what they have must be right, and
``bentpipe selftest SUITE`` lists what they lack."""

every = pytest.mark.parametrize("suite", load_suites().values(), ids=str)
complete = pytest.mark.parametrize("suite", [load_suites()[name] for name in COMPLETE], ids=str)


def nothing_lacks(what: str, missing: set[str]) -> None:
    """Fail with a sentence that names the requirements without ``what``."""
    assert not missing, f"no {what} for {', '.join(sorted(missing))}; see docs/howto/extend.rst"


def wire(suite: Suite) -> set[str]:
    return {name for name, item in suite.requirements().items() if item.testability == "wire"}


@every
def test_every_checker_judges_a_wire_testable_requirement(suite: Suite) -> None:
    assert set(load_checkers(suite)) - wire(suite) == set()


@complete
def test_every_wire_testable_requirement_has_a_checker(suite: Suite) -> None:
    nothing_lacks("checker", wire(suite) - set(load_checkers(suite)))


@complete
def test_every_wire_testable_requirement_is_targeted_in_each_of_its_profiles(suite: Suite) -> None:
    targeted = {
        (name, profile)
        for case in load_cases(suite.name).values()
        for name in case.requirements
        for profile in case.profiles
    }
    wanted = {
        (name, profile) for name in wire(suite) for profile in suite.requirements()[name].profiles
    }
    nothing_lacks("case", {f"{name} in {profile}" for name, profile in wanted - targeted})


@every
def test_every_case_targets_known_requirements_in_profiles_of_its_suite(suite: Suite) -> None:
    cases = load_cases(suite.name).values()
    assert {name for case in cases for name in case.requirements} - wire(suite) == set()
    assert {profile for case in cases for profile in case.profiles} - set(suite.profiles) == set()


@complete
def test_every_wire_testable_requirement_has_a_mutant(suite: Suite) -> None:
    nothing_lacks("mutant", wire(suite) - {item.breaks for item in load_mutants().values()})


def test_every_mutant_breaks_a_wire_testable_requirement_of_its_profile() -> None:
    for mutant in load_mutants().values():
        suite = suite_of(mutant.breaks)
        assert mutant.breaks in wire(suite), mutant.id
        assert mutant.profile in suite.requirements()[mutant.breaks].profiles, mutant.id


@every
def test_every_condition_is_an_item_of_the_conformance_statement(suite: Suite) -> None:
    items = load_proforma(suite)
    for requirement in suite.requirements().values():
        for part in filter(None, requirement.condition.split(",")):
            name, _, answers = part.strip().partition("=")
            assert name in items, requirement.id
            known = {"no"} if items[name].kind == "boolean" else set(items[name].choices)
            assert not answers or set(answers.split("|")) <= known, requirement.id
    for case in load_cases(suite.name).values():
        assert {need.partition("=")[0] for need in case.needs} <= set(items), case.id


@every
def test_every_wire_testable_requirement_is_in_a_profile_of_its_suite(suite: Suite) -> None:
    for name in wire(suite):
        assert set(suite.requirements()[name].profiles) <= set(suite.profiles), name


def test_the_specification_is_as_large_as_promised() -> None:
    assert len(load_requirements()) >= 45
    assert len(wire(load_suites()["snr"])) >= 35
