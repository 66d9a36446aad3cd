"""What the self-test says of its subjects."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_conformance.selftest import subjects as running
from bentpipe_conformance.selftest.subjects import Subject, SubjectResult, subjects, summary
from bentpipe_reference.common.mutation import load_mutants

MUTANT = "snr-two-duplicates-suffice"


def test_selected_mutant_leaves_no_requirement_without_a_mutant() -> None:
    (subject,) = (item for item in subjects("snr", [MUTANT]) if item.target)
    outcome = summary([SubjectResult(subject, {subject.target: "too early"}, {})], "snr")
    assert (outcome["mutants"], outcome["caught"], outcome["missed"]) == (1, 1, [])
    assert outcome["requirements_without_mutant"] == []


def test_requirement_selected_its_mutants_and_the_references_are_run() -> None:
    chosen = subjects("stp", ["STP-DT-003"])
    assert {item.target for item in chosen} == {"", "STP-DT-003"}
    assert {item.setting for item in chosen if not item.target} >= {"", "max-rate"}


def test_mutant_that_fails_elsewhere_alone_is_missed() -> None:
    outcome = summary(
        [SubjectResult(Subject(MUTANT, "rfc", "SNR-FR-002"), {"SNR-FR-001": "x"}, {})], "snr"
    )
    assert outcome["missed"] == [MUTANT]


def test_mutant_of_another_suites_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stray = replace(load_mutants()[MUTANT], profile="stp1e2")
    monkeypatch.setattr(running, "load_mutants", lambda: {MUTANT: stray})
    with pytest.raises(ValueError, match=f"{MUTANT} names the profile 'stp1e2'; the suite snr has"):
        subjects("snr")
