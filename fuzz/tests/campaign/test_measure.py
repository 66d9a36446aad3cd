"""Measuring what campaigns find of known faults."""

from __future__ import annotations

from bentpipe_conformance.engine.suite import suite_named
from bentpipe_fuzz.campaign.measure import Faulty, Measured, faults_of, measure, summary
from bentpipe_reference.common.mutation import load_mutants


def test_fault_is_found_by_what_the_true_reference_does_not_do() -> None:
    found = measure(Faulty("stp-never-has-room"), "stp", 1, 5, 20)
    assert (found.example, found.requirement, found.error) == (1, "STP-CC-012", "")
    assert found.length[1] <= found.length[0] and found.shrink_runs <= 20
    unseen = measure(Faulty("stp-signs-no-address"), "stp", 1, 3, 20)
    assert (unseen.example, unseen.requirement, unseen.error) == (0, "", "")


def test_fault_that_cannot_be_set_up_is_an_error_of_that_fault_alone() -> None:
    assert measure(Faulty("nobody"), "stp", 1, 3, 0).error == "KeyError: 'nobody'"


def test_every_mutant_and_every_valid_blind_fault_is_measured() -> None:
    suite = suite_named("snr")
    found = faults_of(suite)
    mutants = [item.id for item in found if not item.blind]
    assert mutants == [m.id for m in load_mutants().values() if m.breaks.startswith("SNR-")]
    assert any(item.blind and item.missed for item in found)


def test_summary_counts_shares_and_medians() -> None:
    rows = [
        Measured("a", 0, False, 10, "X", (20, 3), 5, 2.0),
        Measured("b", 0, False),
        Measured("c", 2, True, 30, "X", (20, 12), 5, 4.0),
        Measured("d", 2, True, error="ValueError: no"),
    ]
    told = summary(rows)
    assert told["mutants"] == {"faults": 2, "found": 1}
    assert told["blind"] == told["missed_by_cases"] == {"faults": 2, "found": 1}
    assert (told["median_example"], told["median_shrink_seconds"]) == (20, 3.0)
    assert (told["at_most_10_steps"], told["errors"]) == (1, ["d"])
