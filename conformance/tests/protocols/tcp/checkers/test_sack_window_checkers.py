"""The checkers of how much a recovery with SACK sends, on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import (
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    RTT,
    Story,
    flight,
)


def _late_recovery(repeated: float | None) -> Story:
    """A recovery late after the last progress; 0.3 s later a report, and its beginning again."""
    story = Story().send(*range(14)).ack(4, after=RTT)
    for top, after in ((6, 0.7), (7, 0.01), (8, 0.01)):
        story.ack(4, (5, top), after=after)
    story.send(4).ack(4, (3, 4), (5, 8), after=0.3)
    if repeated is not None:
        story.send(4, after=repeated)
    return story.ack(4, (5, 13), after=0.1).ack(14, after=RTT)


@pytest.mark.parametrize("repeated", [0.0, 0.008])
def test_timeout_that_meets_an_arrival_ends_what_a_recovery_may_send(repeated: float) -> None:
    assert not FAIL & _late_recovery(repeated).verdicts("SNR-SAK-018")


def test_recovery_that_does_not_fill_the_window_fails() -> None:
    assert _late_recovery(None).verdicts("SNR-SAK-018") >= FAIL


@pytest.mark.parametrize(
    ("apart", "delay", "accused"), [(0.3, 0.008, False), (0.3, 0.0, False), (0.18, 0.0, True)]
)
def test_timeout_soon_after_a_late_report_begins_no_recovery(
    apart: float, delay: float, accused: bool
) -> None:
    story = Story().send(*range(14)).ack(4, after=RTT)
    for top in (6, 7, 8, 9):
        story.ack(4, (5, top), after=apart)
    story.send(4, after=delay).ack(4, (5, 14), after=0.1).ack(14, after=RTT)
    assert accused == (Verdict.FAIL in story.verdicts("SNR-SAK-018"))


def interrupted_recovery(third_after: float = 0.001) -> Story:
    """A timeout interrupts a recovery; three reports below RecoveryPoint follow it."""
    story = flight(sack=True).ack(1, (2, 3), after=RTT)
    story.ack(1, (2, 4), after=0.01).ack(1, (2, 5), after=0.01)
    story.send(1).send(1, after=2.0).ack(1, (2, 6), after=RTT)
    return story.ack(1, (2, 7), after=0.001).ack(1, (2, 8), after=third_after)


def test_second_timeout_that_meets_data_of_the_peer_begins_no_recovery() -> None:
    assert interrupted_recovery().send(1).verdicts("SNR-SAK-020") == FAIL
    story = interrupted_recovery().ack(1, (2, 8), after=4.0 - RTT - 0.002, data=b"x")
    assert story.send(1).verdicts("SNR-SAK-020") == PASS


def test_second_timeout_that_meets_a_further_report_begins_no_recovery() -> None:
    story = interrupted_recovery().ack(1, (2, 9), after=4.0 - RTT - 0.002).send(9, 1)
    assert story.verdicts("SNR-SAK-020") == PASS


def test_second_timeout_that_meets_the_third_report_begins_no_recovery() -> None:
    assert interrupted_recovery(4.0 - RTT - 0.001).send(1).verdicts("SNR-SAK-020") == NOTHING


@pytest.mark.parametrize(("service", "expected"), [(19, FAIL), (4321, NOTHING)])
def test_pipe_of_a_user_that_writes_less_than_a_segment(
    service: int, expected: set[Verdict]
) -> None:
    """What counts as lost depends on SMSS, which small segments do not show."""
    story = Story(service=service)
    for start in range(0, 6000, 300):
        story.send_octets(start, 300, push=True)
    story.ack(0.6, after=RTT)
    for top in (1.2, 1.5, 1.8):
        story.ack(0.6, (0.9, top), after=0.01)
    story.send_octets(600, 300).ack(0.6, (0.9, 1.8), (2.1, 2.7), after=0.01)
    story.send_octets(1800, 300).ack(0.6, (0.9, 1.8), (2.1, 2.7), (3.0, 3.9), after=0.01)
    story.send_octets(2700, 300).send_octets(5700, 300)
    assert story.verdicts("SNR-SAK-017") == expected


@pytest.mark.parametrize(("late", "expected"), [(0.014, NOTHING), (0.0, PASS | FAIL)])
def test_recovery_repeats_what_a_reordering_timer_takes_for_lost(
    late: float, expected: set[Verdict]
) -> None:
    """Proportional rate reduction sets the window when an acknowledgment comes (RFC 9937)."""
    claims = {**CLAIMS, "rack": True}
    story = Story().send(*range(10)).ack(2, after=RTT).send(10, 11).ack(2, (10, 11), after=0.3)
    story.send(2).send(*range(3, 10), after=late).ack(12, after=RTT)
    assert story.verdicts("SNR-SAK-017", claims=claims) == expected


@pytest.mark.parametrize(
    ("requirement", "hidden", "accused"),
    [
        ("SNR-SAK-017", True, False),
        ("SNR-SAK-017", False, True),
        ("SNR-FR-009", True, False),
        ("SNR-FR-009", False, True),
    ],
)
def test_recovery_that_goes_on_since_one_ended_that_nothing_showed(
    requirement: str, hidden: bool, accused: bool
) -> None:
    """Each begins where another ends that had repaired all that is missing (encounter 840603)."""
    story = Story().send(*range(20)).ack(2, after=RTT)
    for top in (4, 5, 6, 20):
        story.ack(2, (3, top), after=0.01).send(*(2,) * (top == 6))
    story.send(*range(20, 26)).ack(2, (3, 20), (21, 26), after=RTT).send(20, *range(26, 32))
    story.ack(20, (21, 26), after=RTT).send(*range(32, 36))
    story.ack(28, (29, 32), after=RTT).send(28, *range(36, 66))
    story.ack(28, (29, 34), (35, 40), after=0.1).send(34)
    if hidden:
        story.ack(34, (35, 40), after=RTT)
    story.ack(40, after=RTT)
    for top in (42, 43, 44):
        story.ack(40, (41, top), after=0.01)
    story.send(40)
    for top in range(45, 67):
        story.ack(40, (41, top), after=0.01).send(21 + top)
    story.ack(66, after=RTT).send(*range(88, 92))
    assert (Verdict.FAIL in story.verdicts(requirement)) == accused


@pytest.mark.parametrize(("longest", "accused"), [(2 * RTT, False), (RTT, True)])
def test_window_that_a_report_of_a_duplicate_restored_fills_in_a_round_trip_of_its_time(
    longest: float, accused: bool
) -> None:
    """A loss is repaired 1.2 s after the report, beyond one and a half of the smallest."""
    claims = {**CLAIMS, "rack": True}
    story = Story().send(*range(10)).ack(2, after=longest).send(10, 11)
    story.ack(12, (10, 11), after=RTT).send(*range(12, 22)).ack(22, after=RTT).send(*range(22, 34))
    for top, after in ((24, RTT), (25, 0.01), (26, 0.01)):
        story.ack(22, (23, top), after=after)
    story.send(22, 34, 35, 36, 37, 38, 39).ack(40, after=RTT)
    assert (Verdict.FAIL in story.verdicts("SNR-SAK-017", claims=claims)) == accused


@pytest.mark.parametrize(("most", "accused"), [(11_000, False), (0, True), (20_000, True)])
@pytest.mark.parametrize("requirement", ["SNR-SAK-018", "SNR-SAK-019"])
def test_new_data_of_a_sender_that_states_a_bound_of_its_own(
    requirement: str, most: int, accused: bool
) -> None:
    """What a queue for retransmission cannot hold is not available, and no PSH tells of that."""
    story = Story().send(*range(14)).ack(4, after=RTT).send(14)
    for top in (6, 7, 8):
        story.ack(4, (5, top), after=0.01)
    story.send(4)
    if requirement == "SNR-SAK-018":
        story.ack(4, (5, 15), after=0.01)
    else:
        story.ack(4, (5, 9), (10, 11), after=0.01).send(9)
    claims = {**CLAIMS, "outstanding_octets": most}
    found = story.ack(15, after=RTT).verdicts(requirement, claims=claims)
    assert (Verdict.FAIL in found) == accused


@pytest.mark.parametrize(("full", "accused"), [(True, False), (False, True)])
@pytest.mark.parametrize("requirement", ["SNR-SAK-018", "SNR-SAK-019"])
def test_new_data_of_a_sender_whose_buffer_may_be_full(
    requirement: str, full: bool, accused: bool
) -> None:
    """Behind the last segment queued there is none, whatever NextSeg() would prefer."""
    story = Story().send(*range(14), push=full).ack(4, after=RTT)
    for top in (6, 7, 8):
        story.ack(4, (5, top), after=0.01)
    story.send(4)
    if requirement == "SNR-SAK-018":
        story.ack(4, (5, 14), after=0.01)
    else:
        story.ack(4, (5, 9), (10, 11), after=0.01).send(9)
    assert (Verdict.FAIL in story.ack(14, after=RTT).verdicts(requirement)) == accused


@pytest.mark.parametrize("requirement", ["SNR-SAK-017", "SNR-FR-009"])
@pytest.mark.parametrize(("control", "pacing", "accused"), [
    ("cubic", True, False), ("cubic", False, True), ("reno", True, True),
])  # fmt: skip
def test_window_of_cubic_that_pacing_keeps_from_being_used(
    requirement: str, control: str, pacing: bool, accused: bool
) -> None:
    """What is reduced is the window; a segment leaves each 4 ms (encounter 3107051)."""
    claims = {**CLAIMS, "congestion_control": control, "pacing": pacing, "prr": True}
    story = Story().send(*range(5)).ack(5, after=RTT)
    for index in range(5, 25):
        story.send(index, after=0.004)
    for top in (8, 9, 10):
        story.ack(6, (7, top), after=RTT if top == 8 else 0.004)
    story.send(6)
    for top in range(11, 26):
        story.ack(6, (7, top), after=0.004).send(top + 14)
    story.ack(25, after=RTT).send(40, 41, 42, 43)
    assert (Verdict.FAIL in story.verdicts(requirement, claims=claims)) == accused


@pytest.mark.parametrize(("blocks", "repetitions", "accused"), [(False, 6, False), (True, 4, True)])
def test_recovery_that_nothing_was_reported_for_is_that_of_rfc_5681(
    blocks: bool, repetitions: int, accused: bool
) -> None:
    """Each repetition inflates its window; SNR-FR-008 says that it should not have begun."""
    story = Story().send(*range(10))
    for nth in range(1, repetitions + 1):
        story.ack(0, *([(1, 1 + nth)] if blocks else []), after=RTT if nth == 1 else 0.01)
        story.send(*[0] * (nth == 3))
    assert accused == (Verdict.FAIL in story.send(10).verdicts("SNR-SAK-017"))
