"""The checkers of timestamps and PAWS on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.story import FAIL, NOTHING, PASS


def _stamped() -> Receipt:
    """Data from 0 to 100 at tick 1100, acknowledged."""
    receipt = Receipt(timestamps=True).data(0, 100, after=0.1, tsval=1100)
    return receipt.reply(100, tsval=7100, tsecr=1100)


def test_delayed_acknowledgment_echoes_first_or_last() -> None:
    for echo, expected in ((1200, PASS), (1250, FAIL)):
        receipt = _stamped().data(100, 200, after=0.1, tsval=1200)
        receipt.data(200, 300, after=0.05, tsval=1250)
        assert expected <= receipt.reply(300, tsval=7300, tsecr=echo).verdicts("SNR-TS-001")


def test_out_of_order_data_echoes_the_left_edge() -> None:
    for echo, expected in ((1100, PASS), (1200, FAIL)):
        receipt = _stamped().data(200, 300, after=0.1, tsval=1200)
        receipt.reply(100, (200, 300), tsval=7200, tsecr=echo)
        assert expected <= receipt.verdicts("SNR-TS-001")


def test_filled_gap_echoes_what_filled_it() -> None:
    for echo, expected in ((1300, PASS), (1100, FAIL), (1200, FAIL)):
        receipt = _stamped().data(200, 300, after=0.1, tsval=1200)
        receipt.reply(100, (200, 300), tsval=7200, tsecr=1100)
        receipt.data(100, 200, after=0.1, tsval=1300).reply(300, tsval=7300, tsecr=echo)
        assert expected <= receipt.verdicts("SNR-TS-001")


def test_reply_that_crossed_the_latest_segment_may_echo_the_one_before() -> None:
    receipt = _stamped().data(100, 200, after=0.1, tsval=1200)
    receipt.reply(100, tsval=7200, tsecr=1100, after=0.001).reply(200, tsval=7200, tsecr=1200)
    assert receipt.verdicts("SNR-TS-001") == PASS


def test_unacceptable_duplicate_may_move_the_echo_or_not() -> None:
    for echo in (1100, 1500):
        receipt = _stamped().data(0, 100, after=0.4, tsval=1500)
        receipt.reply(100, (0, 100), tsval=7500, tsecr=echo)
        assert receipt.verdicts("SNR-TS-001") == PASS


@pytest.mark.parametrize(("window", "accused"), [(0, False), (50, True)])
def test_text_that_begins_below_a_closed_window_need_not_move_the_echo(
    window: int, accused: bool
) -> None:
    """Such a window accepts no text (RFC 9293 section 3.10.7.4), hence no timestamp (R2)."""
    for echo in (1100, 1500):
        receipt = Receipt(timestamps=True, window=100).data(0, 100, tsval=1100)
        receipt.reply(100, tsval=7100, tsecr=1100, window=window).data(99, 101, after=1, tsval=1500)
        receipt.reply(101 if window else 100, tsval=8100, tsecr=1500 if window else echo, window=0)
        receipt.data(900, 901, after=1, tsval=2500)
        receipt.reply(101 if window else 100, tsval=9100, tsecr=echo, window=0)
        found = receipt.verdicts("SNR-TS-001")
        assert (Verdict.FAIL in found) == (accused and echo == 1100)


def test_copy_of_what_a_delayed_acknowledgment_covers_may_move_the_echo_after_it() -> None:
    """It had come when the acknowledgment left, but was processed after it (3101571)."""
    for echo, expected in ((1200, PASS), (1250, PASS), (1100, FAIL)):
        receipt = _stamped().data(100, 200, after=0.1, tsval=1200)
        receipt.data(200, 300, tsval=1250, after=0.001).data(200, 300, tsval=1250, after=0.001)
        receipt.reply(300, tsval=7300, tsecr=1200)
        receipt.reply(300, (200, 300), tsval=7300, tsecr=echo)
        assert expected <= receipt.verdicts("SNR-TS-001")
        assert echo == 1100 or not FAIL & receipt.verdicts("SNR-TS-001")


def test_repeated_syn_may_move_the_echo_or_not() -> None:
    for echo in (1100, 1500):
        receipt = _stamped().syn(after=0.4, tsval=1500)
        receipt.reply(100, tsval=7500, tsecr=echo)
        assert receipt.verdicts("SNR-TS-001") == PASS


def test_clock_goes_back_even_across_zero() -> None:
    assert _stamped().reply(100, tsval=7099, after=1).verdicts("SNR-TS-002") >= FAIL
    receipt = Receipt(timestamps=True).reply(0, tsval=MODULUS - 1).reply(0, tsval=3, after=1)
    assert Verdict.FAIL in receipt.verdicts("SNR-TS-002")  # the SYN-ACK had 7000
    assert _stamped().reply(100, tsval=7100, after=1).verdicts("SNR-TS-002") == PASS


def test_clock_too_fast_too_slow_or_right() -> None:
    for ticks, expected in ((3000, PASS), (3, PASS), (300_000, FAIL), (0, FAIL)):
        receipt = Receipt(timestamps=True).reply(0, tsval=7000 + ticks, after=3)
        assert receipt.verdicts("SNR-TS-003") == expected, ticks


def test_clock_of_a_connection_that_a_late_copy_of_the_syn_begins_may_be_another() -> None:
    receipt = Receipt(timestamps=True).data(0, 0, flags=ACK | FIN, tsval=1001)
    receipt.reply(1, flags=ACK | FIN, tsval=7000).data(1, 1, ack=1, after=0.1, tsval=1100)
    receipt.syn(after=3.0).reply(0, seq=9999, flags=SYN | ACK, tsval=5)
    assert receipt.verdicts("SNR-TS-003") == NOTHING
    assert not FAIL & receipt.verdicts("SNR-TS-002")


def test_clock_over_a_moment_proves_nothing() -> None:
    assert _stamped().verdicts("SNR-TS-003") == NOTHING


def test_old_segment_taken_or_dropped() -> None:
    for ack, expected in ((100, PASS), (200, FAIL)):
        receipt = _stamped().data(100, 200, after=0.1, tsval=500)
        receipt.reply(ack, tsval=7200, tsecr=1100)
        assert receipt.verdicts("SNR-TS-004") == expected


def test_old_segment_that_came_again_properly_is_accepted() -> None:
    receipt = _stamped().data(100, 200, after=0.1, tsval=500).reply(100, tsval=7200, tsecr=1100)
    receipt.data(100, 200, after=1, tsval=2200).reply(200, tsval=8200, tsecr=2200)
    assert receipt.verdicts("SNR-TS-004") == PASS


def test_old_segment_held_already_is_reported_still() -> None:
    receipt = _stamped().data(200, 300, after=0.1, tsval=2000)
    receipt.reply(100, (200, 300), tsval=7100, tsecr=1100).data(200, 300, after=0.1, tsval=500)
    receipt.reply(100, (200, 300), tsval=7200, tsecr=1100)
    assert receipt.verdicts("SNR-TS-004") == NOTHING


def test_timestamp_of_a_segment_followed_by_a_newer_one_is_forgotten() -> None:
    receipt = _stamped().data(100, 100, after=0.1, tsval=1100).data(100, 100, tsval=1101)
    receipt.reply(100, payload=b"x", tsval=7100, tsecr=1101).data(100, 200, after=1, tsval=1100)
    assert receipt.reply(200, seq=1, tsval=7200, tsecr=1101).verdicts("SNR-TS-004") == FAIL


@pytest.mark.parametrize(
    ("idle", "ack", "expected"),
    [(1700, 100, PASS), (1700, 200, FAIL), (1900, 100, NOTHING), (1900, 200, NOTHING)],
)
def test_old_segment_after_idleness(idle: float, ack: int, expected: set[Verdict]) -> None:
    """RFC 7323 section 5.5 lets TS.Recent become invalid; Linux does so after 2147 s."""
    receipt = _stamped().data(100, 200, after=idle, tsval=500)
    taken = idle > 1800 and ack > 100
    receipt.reply(ack, tsval=2_000_000, tsecr=500 if taken else 1100)
    assert receipt.verdicts("SNR-TS-004") == expected
    assert receipt.verdicts("SNR-TS-001").isdisjoint(FAIL)
    # What it has taken may be TS.Recent then, or not.
    receipt.data(200, 300, after=0.1, tsval=600)
    receipt.reply(300 if taken else ack, tsval=2_000_100, tsecr=600 if taken else 1100)
    assert receipt.verdicts("SNR-TS-004") - PASS == expected - PASS
    assert receipt.verdicts("SNR-TS-001").isdisjoint(FAIL)


def test_old_segment_unanswered() -> None:
    assert _stamped().data(100, 200, after=0.1, tsval=500).later().verdicts("SNR-TS-005") == FAIL


def test_old_reset_obeyed_or_ignored() -> None:
    receipt = _stamped().reset(100, after=1, tsval=500).data(100, 200, after=1, tsval=3000)
    obeyed = receipt.reply(0, flags=RST, tsval=0, tsecr=0)
    assert obeyed.verdicts("SNR-TS-006") == PASS
    receipt = _stamped().reset(100, after=1, tsval=500).data(100, 200, after=1, tsval=3000)
    assert receipt.reply(200, tsval=9000, tsecr=3000).verdicts("SNR-TS-006") == FAIL


def test_old_reset_in_time_wait_may_be_ignored() -> None:
    """RFC 1337 wants that; as long as the FIN is not acknowledged, in CLOSING, it is obeyed."""
    for acknowledged, expected in ((1, NOTHING), (0, FAIL)):
        receipt = _stamped().reply(100, flags=ACK | FIN, tsval=7200, tsecr=1100)
        receipt.data(100, 100, flags=ACK | FIN, ack=acknowledged, after=0.1, tsval=1200)
        receipt.reply(101, seq=1, tsval=7300, tsecr=1200).reset(101, after=1, tsval=500)
        receipt.data(0, 100, ack=acknowledged, after=1, tsval=1100)
        receipt.reply(101, seq=1, tsval=9300, tsecr=1200)
        assert receipt.verdicts("SNR-TS-006") == expected


def test_reset_elsewhere_in_the_window_proves_nothing() -> None:
    receipt = _stamped().reset(150, after=1, tsval=500).reply(100, tsval=8000, tsecr=1100, after=1)
    assert receipt.verdicts("SNR-TS-006") == NOTHING


def test_data_after_the_wrap_taken_or_dropped() -> None:
    for answer, expected in ((True, PASS), (False, FAIL)):
        receipt = Receipt(timestamps=True).data(0, 100, tsval=1 << 31)
        receipt.reply(100, tsecr=1 << 31).data(100, 200, after=0.1, tsval=MODULUS - 5)
        receipt.reply(200, tsecr=MODULUS - 5).data(200, 300, after=0.1, tsval=5)
        if answer:
            receipt.reply(300, tsecr=5)
        assert receipt.later().verdicts("SNR-TS-007") == expected


def test_data_half_the_range_away_taken_or_dropped() -> None:
    for answer, expected in ((True, PASS), (False, FAIL)):
        receipt = Receipt(timestamps=True).data(0, 100, tsval=1 << 31)
        receipt.reply(100, tsecr=1 << 31).data(100, 200, after=0.1, tsval=MODULUS - 5)
        receipt.reply(200, tsecr=MODULUS - 5).data(200, 300, after=0.1, tsval=(1 << 31) - 5)
        if answer:
            receipt.reply(300, tsecr=(1 << 31) - 5)
        assert receipt.later().verdicts("SNR-TS-007") == expected
        assert receipt.verdicts("SNR-TS-004") == NOTHING


def test_reset_of_the_peer_behind_a_bare_segment_aborts_nothing_of_its_own() -> None:
    receipt = _stamped().data(100, 100, after=0.1, tsval=None)
    assert receipt.data(100, 100, flags=RST | ACK, after=0.1).verdicts("SNR-TS-008") == NOTHING


def test_bare_segment_taken_dropped_or_fatal() -> None:
    receipt = _stamped().data(100, 200, after=0.1, tsval=None)
    receipt.reply(200, tsval=7300, tsecr=1100, after=0.1)
    assert receipt.verdicts("SNR-TS-009") == FAIL
    assert receipt.verdicts("SNR-TS-008") == PASS
    receipt = _stamped().data(100, 200, after=0.1, tsval=None).data(200, 300, after=1, tsval=2200)
    receipt.reply(100, (200, 300), tsval=8200, tsecr=1100)
    assert receipt.verdicts("SNR-TS-009") == PASS
    receipt = _stamped().data(100, 200, after=0.1, tsval=None).reply(0, flags=RST | ACK, tsval=0)
    assert receipt.verdicts("SNR-TS-008") == FAIL


def test_segment_overtaken_by_one_above_a_gap_is_taken_or_dropped() -> None:
    for ack, expected in ((300, PASS), (100, FAIL)):
        receipt = _stamped().data(200, 300, after=0.1, tsval=1250)
        receipt.reply(100, (200, 300), tsval=7200, tsecr=1100)
        receipt.data(100, 200, after=0.1, tsval=1200).reply(ack, tsval=7300, tsecr=1200)
        assert receipt.later().verdicts("SNR-TS-013") == expected


def test_segment_of_the_same_tick_is_taken_or_dropped() -> None:
    for ack, expected in ((200, PASS), (100, FAIL)):
        receipt = _stamped().data(100, 200, after=0.1, tsval=1100)
        receipt.reply(ack, tsval=7200, tsecr=1100).later()
        assert receipt.verdicts("SNR-TS-013") == expected
