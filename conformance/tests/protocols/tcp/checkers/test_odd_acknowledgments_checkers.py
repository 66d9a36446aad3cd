"""The checkers of acknowledgments a sender has to survive on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import CLAIMS, FAIL, NOTHING, PASS, RTT, Story


@pytest.mark.parametrize(
    ("requirement", "blocks"),
    [
        ("SNR-SAK-012", [(6, 5)]),
        ("SNR-SAK-012", [(6, 6)]),
        ("SNR-SAK-012", [(400, 402)]),
        ("SNR-SAK-014", [(0, 1)]),
    ],
)
def test_odd_block_answered_by_a_retransmission_fails(
    requirement: str, blocks: list[tuple[float, float]]
) -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, *blocks, after=0.05)
    assert story.verdicts(requirement) == PASS
    assert story.send(2).verdicts(requirement) == FAIL


def test_reset_right_after_an_odd_block_by_a_service_or_another_user() -> None:
    def reset(service: int) -> Story:
        story = Story(service=service).send(*range(10)).ack(2, after=RTT)
        return story.ack(2, (0, 1), after=0.05).reset()

    assert reset(19).verdicts("SNR-SAK-014") == FAIL
    assert reset(4321).verdicts("SNR-SAK-014") == PASS


def test_reset_in_answer_to_what_follows_a_reset_by_the_tester() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).reset(after=0.1, outgoing=False)
    assert story.ack(2, (0, 1), after=0.05).reset().verdicts("SNR-SAK-014") == NOTHING


def test_reset_in_answer_to_an_odd_block_for_a_connection_that_is_over() -> None:
    def over(segments: float) -> Story:
        story = (
            Story().send(*range(3)).ack(3, fin=True, after=RTT).send_octets(3000, 1000, fin=True)
        )
        return story.ack(segments, after=RTT).ack(segments, (2, 3), after=0.05).reset()

    assert over(4.001).verdicts("SNR-SAK-014") == PASS
    assert over(3).verdicts("SNR-SAK-014") == FAIL


def test_block_without_negotiation_answered_by_a_retransmission_fails() -> None:
    story = Story(sack=False).send(*range(10)).ack(2, after=RTT).ack(2, (3, 9), after=0.05)
    assert story.verdicts("SNR-SAK-016") == PASS
    assert story.send(2).verdicts("SNR-SAK-016") == FAIL


@pytest.mark.parametrize(("silent", "accused"), [(1.0, True), (300.0, False)])
def test_odd_block_after_a_silence_in_which_a_call_is_given_up(
    silent: float, accused: bool
) -> None:
    story = Story(syn_acks=(0.001, 1.001, 3.001))
    story.packets.pop()
    story.ack(0, (1, 3), after=silent).reset()
    assert (Verdict.FAIL in story.verdicts("SNR-SAK-012")) == accused


def test_odd_block_followed_by_long_silence_fails() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (6, 5), after=0.05).ack(2, after=60.0)
    assert Verdict.FAIL in story.verdicts("SNR-SAK-012")


@pytest.mark.parametrize(("longest", "accused"), [(8.0, False), (RTT, True)])
def test_odd_block_before_a_timeout_as_long_as_the_round_trips_make_it(
    longest: float, accused: bool
) -> None:
    """Round trips of eight seconds, behind a long queue, can make a timeout of forty."""
    story = Story().send(0).ack(1, after=longest).send(*range(1, 10)).ack(3, after=RTT)
    story.ack(3, (6, 5), after=0.05).ack(3, after=30.0)
    assert (Verdict.FAIL in story.verdicts("SNR-SAK-012")) == accused


@pytest.mark.parametrize(("longest", "accused"), [(8.0, False), (RTT, True)])
def test_reneged_data_waits_for_a_timeout_as_long_as_the_round_trips_make_it(
    longest: float, accused: bool
) -> None:
    story = Story().send(0).ack(1, after=longest).send(*range(1, 10)).ack(3, (4, 6), after=RTT)
    story.ack(4, after=0.05).ack(4, after=30.0)
    assert (Verdict.FAIL in story.verdicts("SNR-SAK-011")) == accused


def test_silence_of_a_sender_whose_data_the_odd_acknowledgment_takes_passes() -> None:
    def silent(segment: int) -> Story:
        story = Story(calls=True).send(0, push=True).ack(segment, (0, 1), after=RTT)
        return story.ack(segment, after=60.0)

    assert silent(1).verdicts("SNR-SAK-014") == PASS


def test_reset_before_a_silence_is_long_passes() -> None:
    story = Story().send(*range(10)).ack(2, after=RTT).ack(2, (0, 1), after=0.05)
    story.reset(after=1.0, outgoing=False).ack(2, after=60.0)
    assert story.verdicts("SNR-SAK-014") == PASS


def test_silence_after_an_old_acknowledgment_with_nothing_outstanding_passes() -> None:
    def silent(segments: int) -> Story:
        story = Story(calls=True).send(*range(4), push=True).ack(1, after=RTT)
        return story.ack(segments, after=0.01).ack(1, after=0.05).ack(segments, after=60.0)

    assert silent(4).verdicts("SNR-ACK-001") == PASS
    assert silent(3).verdicts("SNR-ACK-001") == FAIL


@pytest.mark.parametrize(("tlp", "after", "expected"), [
    (True, 0.00012, PASS), (True, 0.0, FAIL), (False, 0.00012, FAIL),
])  # fmt: skip
def test_duplicate_report_that_the_timer_of_the_tail_meets(
    tlp: bool, after: float, expected: set[Verdict]
) -> None:
    story = Story().send(*range(4), push=True).ack(2, after=RTT).ack(2, (0, 1), after=0.6)
    claims = {**CLAIMS, "tlp": tlp}
    assert story.send(3, after=after).verdicts("SNR-SAK-014", claims=claims) == expected


@pytest.mark.parametrize(("right", "accused"), [(4, True), (2_000_000, False)])
def test_block_inside_one_that_cannot_be_true_reports_no_duplicate(
    right: int, accused: bool
) -> None:
    story = Story().send(*range(4)).ack(0, (1, 3), (0, right), after=RTT).send(0)
    assert (Verdict.FAIL in story.verdicts("SNR-SAK-014")) == accused


@pytest.mark.parametrize(("octets", "expected"), [(1, PASS), (1000, FAIL)])
def test_duplicate_report_that_opens_the_window_lets_a_probe_leave_again(
    octets: int, expected: set[Verdict]
) -> None:
    story = Story().send(0, 1).ack(2, after=RTT, window=0).send_octets(2000, octets, after=2.0)
    assert story.ack(2, (1, 2), after=0.05).send(2).verdicts("SNR-SAK-014") == expected


@pytest.mark.parametrize(("again", "accused"), [(True, False), (False, True)])
def test_data_that_is_reported_again_after_a_timeout_is_no_memory(
    again: bool, accused: bool
) -> None:
    """The receiver does not hold it, but has said so since (seed 15280004)."""
    story = Story().send(*range(10)).ack(3, (4, 6), after=RTT).send(3, after=2.0)
    if again:
        story.ack(3, (4, 6), after=0.1, data=b"x")
    story.ack(4, after=RTT).send(6, 7).ack(5, after=RTT).send(8)
    assert (Verdict.FAIL in story.verdicts("SNR-SAK-011")) == accused
