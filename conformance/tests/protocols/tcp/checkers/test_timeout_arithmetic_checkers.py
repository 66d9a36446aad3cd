"""The checkers of how long the retransmission timeout is, on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import (
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    RTT,
    SIZE,
    Story,
    duplicates,
)

PLAIN = {**CLAIMS, "byte_counting": "no"}


def _measured() -> Story:
    """Round trips measured until the timeout has settled, then a flight, its first part lost."""
    story = Story(sack=False)
    for number in range(12):
        story.send(number, after=0.1).ack(number + 1, after=RTT)
    return story.send(12, 13, 14)


@pytest.mark.parametrize(("waited", "expected"), [(0.3, PASS), (2.6, FAIL)])
def test_late_timeout_amid_new_data(waited: float, expected: set[Verdict]) -> None:
    story = _measured().send(15, after=0.8).send(12, after=waited)
    assert story.verdicts("SNR-RTO-016", claims=PLAIN) == expected
    assert story.verdicts("SNR-RTO-016") == NOTHING


def test_no_timeout_amid_acknowledgments_of_nothing_new() -> None:
    story = _measured()
    for turn in range(20):
        story.ack(12, after=0.3, window=50_000 + turn)
    assert story.verdicts("SNR-RTO-016", claims=PLAIN) == FAIL


def test_late_timeout_after_a_retransmission() -> None:
    story = _measured().ack(12, after=RTT).ack(12, after=0.01).ack(12, after=0.01)
    story.send(12).ack(12, after=0.8).send(12, after=0.4)
    assert story.verdicts("SNR-RTO-016", claims=PLAIN) == PASS


@pytest.mark.parametrize(("waited", "accused"), [(3.2, False), (3.8, True)])
def test_allowance_of_a_timeout_is_backed_off_with_it(waited: float, accused: bool) -> None:
    """A first timeout of 1.6 s is permitted, and the next one takes twice as long."""
    story = _measured().send(12, after=1.6).send(12, after=waited)
    assert accused == (Verdict.FAIL in story.verdicts("SNR-RTO-016", claims=PLAIN))


def test_round_trip_of_what_left_behind_a_segment_that_was_repeated() -> None:
    # Only the first of the two was timed, and it left again (Karn): 9 s are the first measurement.
    story = Story(sack=False, syn_acks=(0.0, 1.0)).send(0, 1).send(0, after=3.0)
    story.ack(2, after=2.0).send(2, 3).ack(4, after=9.0).send(4, 5)
    assert Verdict.FAIL not in story.send(4, after=27.0).verdicts("SNR-RTO-016", claims=PLAIN)


def _measured_alone(rtt: float = RTT) -> Story:
    """Round trips of single segments; the peer's data, then one more segment."""
    story = Story(sack=False)
    for number in range(12):
        story.send(number, after=0.1).ack(number + 1, after=rtt)
    return story.ack(12, data=b"x").ack(12, after=0.1).send(12)


def test_timeout_that_meets_a_segment_to_be_dropped_is_backed_off_from() -> None:
    story = _measured_alone().ack(12, after=1.2, seq=100, data=b"x").send(12)
    assert not FAIL & story.send(12, after=2.4).verdicts("SNR-RTO-016", claims=PLAIN)


def test_timeout_after_a_segment_to_be_dropped_follows_what_was_measured_before() -> None:
    story = _measured_alone(6.0).ack(12, after=0.5, seq=100, data=b"x")
    assert not FAIL & story.send(12, after=6.0).verdicts("SNR-RTO-016", claims=PLAIN)


def test_closed_window_amid_what_is_lost() -> None:
    story = _measured().ack(12, after=0.1, window=0).ack(12, after=9.0, window=0)
    assert story.verdicts("SNR-RTO-016", claims=PLAIN) == NOTHING


def test_first_timeout_beyond_three_seconds_after_repeated_syn_acks() -> None:
    story = Story(sack=False, syn_acks=(0.0, 1.0, 3.0, 7.0)).send(0, 1)
    assert story.send(0, after=8.0).verdicts("SNR-RTO-005", claims=PLAIN) == FAIL


def test_timer_that_an_odd_acknowledgment_may_have_restarted() -> None:
    story = Story(sack=False)
    for number in range(4):
        story.send(number, after=0.1).ack(number + 1, after=4 * RTT)
    # An acknowledgment at the right edge of the window may be refused.
    story.send(4, 5).ack(5, after=0.5, seq=100 + 60000).send(5, after=4.8)
    assert story.verdicts("SNR-RTO-016", claims=PLAIN) <= PASS


def test_timeout_that_meets_an_odd_acknowledgment_backs_off() -> None:
    story = _measured().ack(12, after=0.9999, seq=100 + 60000).send(12, after=0.0002)
    assert story.send(12, after=2.0).verdicts("SNR-RTO-016", claims=PLAIN) <= PASS


def test_first_timeout_after_repeated_syn_acks_that_meets_data_of_the_peer() -> None:
    story = Story(sack=False, syn_acks=(0.0, 1.0, 3.0, 7.0)).send(0)
    story.ack(0, after=3.0, data=b"x").send(0).ack(1, after=RTT).send(1, 2).send(1, after=6.0)
    assert story.verdicts("SNR-RTO-005", claims=PLAIN) == NOTHING


def test_acknowledgment_of_more_than_what_left_again_is_no_measurement() -> None:
    def backed_off(*again: int) -> Story:
        story = _measured_alone().send(12, after=1.2).send(12, after=2.4).send(12, after=4.8)
        story.ack(13, after=RTT).send(13, 14, after=0.01).send(*again, after=0.5)
        return story.ack(15, after=RTT).send(15).send(15, after=8.8)

    assert backed_off().verdicts("SNR-RTO-016") >= FAIL
    assert not FAIL & backed_off(13).verdicts("SNR-RTO-016")


@pytest.mark.parametrize(("octets", "accused"), [(1, False), (500, True)])
def test_octet_that_leaves_by_a_timer_may_be_a_probe_of_a_window_believed_closed(
    octets: int, accused: bool
) -> None:
    story = _measured_alone().ack(13, after=RTT).send_octets(13000, octets, after=2.0)
    story.send_octets(13000, octets, after=4.0)
    assert accused == (Verdict.FAIL in story.verdicts("SNR-RTO-016", claims=PLAIN))


def test_timeouts_of_a_single_octet_are_backed_off_from() -> None:
    story = _measured_alone().ack(13, after=RTT).send_octets(13000, 1)
    story.send_octets(13000, 1, after=1.2).ack(13, after=0.5, seq=100, data=b"x")
    story.send_octets(13001, 1).send_octets(13000, 2, after=1.9)
    story.ack(13, after=0.5, seq=100, data=b"x").send_octets(13000, 2, after=4.3)
    assert not FAIL & story.verdicts("SNR-RTO-016", claims=PLAIN)


@pytest.mark.parametrize(("waited", "accused"), [(2.4, False), (4.4, True)])
def test_timeout_behind_what_may_be_a_probe_meets_an_arrival_and_is_backed_off_from(
    waited: float, accused: bool
) -> None:
    story = _measured_alone().ack(13, after=RTT).send(13).send_octets(14000, 1, after=0.5)
    story.ack(13, after=0.5, seq=200_000, data=b"x").send_octets(13000, 1001, after=0.01)
    story.send_octets(13000, 1001, after=waited)
    assert accused == (Verdict.FAIL in story.verdicts("SNR-RTO-016", claims=PLAIN))


def test_first_octet_that_may_be_a_probe_follows_what_the_handshake_measured() -> None:
    story = Story(sack=False, rtt=2.2).send_octets(0, 1, after=1.0).send_octets(1, 100)
    story.ack(0, after=2.0).send_octets(0, 101, after=4.6)
    assert not FAIL & story.verdicts("SNR-RTO-016", claims=PLAIN)


@pytest.mark.parametrize(("octets", "accused"), [(1, False), (2, True)])
def test_answered_probes_measure_nothing_after_a_repeated_syn_ack(
    octets: int, accused: bool
) -> None:
    """The timeout may be three seconds until data is measured (RFC 6298 rule 5.7)."""
    story = Story(sack=False, syn_acks=(0.001, 1.001)).send_octets(0, octets, after=3.0)
    story.ack(octets / SIZE, after=RTT).send_octets(octets, 100).send_octets(octets, 100, after=3.0)
    assert accused == (Verdict.FAIL in story.verdicts("SNR-RTO-016", claims=PLAIN))


def test_timeout_in_a_recovery_that_meets_data_of_the_peer_backs_off() -> None:
    """The timer runs since the first of two partial acknowledgments."""
    story = duplicates(_measured().send(*range(15, 20)), 12).send(12).ack(13, after=0.2).send(13)
    story.ack(14, after=0.2).send(14).ack(14, after=0.7999, data=b"x").send(14, after=0.0002)
    assert not FAIL & story.send(14, after=2.0).verdicts("SNR-RTO-016", claims=PLAIN)
