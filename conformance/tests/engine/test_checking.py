"""What is said of a requirement whose situation was not reached."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.checking import load_checkers, occasion_missed
from bentpipe_conformance.engine.suite import suite_named

SNR = suite_named("snr")
PLAIN = "the situation was not reached"


def test_missed_situation_names_what_exercises_the_requirement() -> None:
    assert occasion_missed(SNR, "SNR-FR-002") == (
        f"{PLAIN}, which is exercised by every third duplicate outside recovery and above recover"
    )


@pytest.mark.parametrize("requirement", load_checkers(SNR))
def test_every_checker_of_tcp_names_its_occasion(requirement: str) -> None:
    sentence = occasion_missed(SNR, requirement)
    assert sentence.startswith(f"{PLAIN}, which is exercised ")
    assert "#" not in sentence
    assert "\n" not in sentence


def test_missed_situation_without_a_checker_says_only_that() -> None:
    assert occasion_missed(SNR, "SNR-XX-001") == PLAIN
