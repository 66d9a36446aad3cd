"""Nothing wire-testable is without a checker, a case and a mutant; no identifier dangles."""

from __future__ import annotations

from bentpipe_conformance.case import load_cases
from bentpipe_conformance.checking import load_checkers
from bentpipe_conformance.iut.proforma import load_proforma
from bentpipe_reference.mutants import load_mutants
from bentpipe_spec.registry import load_requirements

WIRE = {name for name, item in load_requirements().items() if item.testability == "wire"}


def test_every_checker_judges_a_wire_testable_requirement() -> None:
    assert set(load_checkers()) == WIRE


def test_every_wire_testable_requirement_is_targeted_in_each_of_its_profiles() -> None:
    targeted = {
        (name, profile)
        for case in load_cases().values()
        for name in case.requirements
        for profile in case.profiles
    }
    wanted = {(name, profile) for name in WIRE for profile in load_requirements()[name].profiles}
    assert wanted - targeted == set()


def test_every_case_targets_known_requirements() -> None:
    named = {name for case in load_cases().values() for name in case.requirements}
    assert named - set(load_requirements()) == set()


def test_every_wire_testable_requirement_has_a_mutant() -> None:
    assert WIRE - {mutant.breaks for mutant in load_mutants().values()} == set()


def test_every_mutant_breaks_a_wire_testable_requirement_of_its_profile() -> None:
    for mutant in load_mutants().values():
        assert mutant.breaks in WIRE, mutant.id
        assert mutant.profile in load_requirements()[mutant.breaks].profiles, mutant.id


def test_every_condition_is_an_item_of_the_conformance_statement() -> None:
    items = load_proforma()
    for requirement in load_requirements().values():
        name, _, answers = requirement.condition.partition("=")
        assert not name or name in items, requirement.id
        assert not answers or set(answers.split("|")) <= set(items[name].choices), requirement.id
    for case in load_cases().values():
        assert set(case.needs) <= set(items), case.id


def test_the_specification_is_as_large_as_promised() -> None:
    assert len(load_requirements()) >= 45
    assert len(WIRE) >= 35
