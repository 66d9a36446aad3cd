"""Checkers of how often a receiver acknowledges, what it keeps and what window it offers."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.story import CLAIMS, FAIL, NOTHING, PASS, RTT, Story
from bentpipe_conformance.selftest.strangers import judging


def test_second_acknowledgment_of_one_segment() -> None:
    once = Receipt().data(0, 100).reply(100).data(0, 100, after=1.0).reply(100)
    assert once.verdicts("SNR-RCV-020") == PASS
    twice = Receipt().data(0, 100).reply(100).reply(100)
    assert twice.verdicts("SNR-RCV-020") == FAIL


def test_acknowledgment_after_data_that_acknowledged_the_same() -> None:
    receipt = Receipt().data(0, 100).reply(100, payload=b"abc").reply(100, seq=3, after=0.2)
    assert receipt.verdicts("SNR-RCV-020") >= FAIL


def test_window_update_is_no_second_acknowledgment() -> None:
    receipt = Receipt(window=1000).data(0, 100).reply(100)
    receipt.window = 20000
    assert receipt.reply(100, after=0.1).verdicts("SNR-RCV-020") == NOTHING


def test_three_acknowledgments_of_three_segments_that_came_together() -> None:
    receipt = Receipt(sack=False).data(0, 100).reply(100).data(200, 300, after=1.0)
    receipt.data(300, 400).data(400, 500).reply(100).reply(100).reply(100)
    assert receipt.verdicts("SNR-RCV-020") == PASS
    assert receipt.reply(100).verdicts("SNR-RCV-020") == PASS | FAIL


def test_window_that_grows_a_little_or_by_a_segment() -> None:
    for opened, expected in ((700, FAIL), (1460, PASS)):
        receipt = Receipt(window=8000).data(0, 100).reply(100)
        receipt.window = 500
        receipt.data(100, 7600).reply(7600)
        receipt.window = opened
        assert receipt.reply(7600, after=0.2).verdicts("SNR-RCV-021") == expected


@pytest.mark.parametrize(
    ("widest", "window", "shift", "expected"),
    [
        (65535, 65535, None, NOTHING), (65534, 65534, None, FAIL), (32767, 32767, None, NOTHING),
        (32768, 32767, None, FAIL), (32767, 32767, 0, NOTHING), (65534, 32767, 1, FAIL),
    ],
)  # fmt: skip
def test_acknowledgment_repeated_where_the_field_can_tell_no_wider_window(
    widest: int, window: int, shift: int | None, expected: set[Verdict]
) -> None:
    """Some keep the field below the sign bit (encounters 3002586, 3100083, 3108405)."""
    receipt = Receipt(window=widest, shift=shift).data(0, 100).reply(100, window=0)
    receipt.reply(100, window=window, after=30.0).reply(100, window=window)
    assert receipt.verdicts("SNR-RCV-020") == expected


@pytest.mark.parametrize(("window", "expected"), [(65535, NOTHING), (65534, FAIL)])
def test_window_that_the_field_cannot_tell_whole(window: int, expected: set[Verdict]) -> None:
    """All of it had arrived but for what fills the gap; 800 octets more are offered then."""
    receipt = Receipt(window=window).data(1460, window).reply(0, (1460, window))
    assert (
        receipt.data(0, 1460, after=1.0).reply(window, window=800).verdicts("SNR-RCV-021")
        == expected
    )


def test_more_than_the_window_accepted_while_none_is_offered() -> None:
    receipt = Receipt(window=8000).data(0, 100).reply(100)
    receipt.window = 500
    receipt.data(100, 7600).reply(7600)
    receipt.window = 0
    assert FAIL.isdisjoint(receipt.data(7600, 8900, after=0.2).reply(8900).verdicts("SNR-RCV-021"))


def test_gap_filled_above_which_nothing_is_reported_any_more() -> None:
    def filled() -> Receipt:
        return Receipt().data(200, 300).reply(0, (200, 300)).data(0, 100, after=1.0)

    assert filled().reply(100, after=0.1).verdicts("SNR-RCV-002") == NOTHING
    assert filled().reply(100, (200, 300), after=0.1).verdicts("SNR-RCV-002") == FAIL


def test_duplicate_reported_once_twice_and_falsely() -> None:
    def duplicate() -> Receipt:
        return Receipt().data(0, 100).reply(100).data(0, 100, after=1.0).reply(100, (0, 100))

    assert duplicate().verdicts("SNR-RCV-024") == PASS
    again = duplicate().data(300, 400, after=1.0).reply(100, (0, 100), (300, 400))
    assert again.verdicts("SNR-RCV-024") >= FAIL
    false = Receipt().data(0, 100).reply(100).data(100, 200, after=1.0).reply(200, (100, 200))
    assert false.verdicts("SNR-RCV-024") == FAIL


def test_data_above_a_gap_held_or_dropped() -> None:
    def filled() -> Receipt:
        return Receipt(sack=False).data(100, 200).reply(0).data(0, 100, after=1.0)

    assert filled().reply(200).later().verdicts("SNR-RCV-022") == PASS
    assert filled().reply(100).later().verdicts("SNR-RCV-022") == FAIL


def test_block_that_comes_first_after_it_was_told_as_a_duplicate() -> None:
    """What fills the gap had come with the duplicate, and is answered next (encounter 841739)."""
    receipt = Receipt().data(200, 300).reply(0, (200, 300)).data(400, 500).reply(0, (400, 500))
    receipt.data(300, 400, after=0.1).reply(0, (300, 400), (400, 500), (200, 300))
    receipt.data(300, 400, after=0.1).data(0, 100)
    receipt.reply(0, (300, 400), (300, 400), (400, 500)).reply(100, (300, 400), (400, 500))
    assert receipt.verdicts("SNR-RCV-024") == PASS


def test_timestamp_that_was_not_negotiated() -> None:
    old = {"tsval": 5, "tsecr": 0}
    taken = Receipt().data(0, 100, tsval=9, tsecr=0).reply(100).data(100, 200, after=1.0, **old)
    assert taken.reply(200).later().verdicts("SNR-TS-010") == PASS
    dropped = Receipt().data(0, 100, tsval=9, tsecr=0).reply(100).data(100, 200, after=1.0, **old)
    assert dropped.reply(100).later().verdicts("SNR-TS-010") >= FAIL


def test_block_that_an_old_segment_held_again_need_not_be_a_report() -> None:
    receipt = Receipt(timestamps=True).data(0, 100, tsval=2000).reply(100, tsecr=2000)
    receipt.data(200, 300, tsval=2000, after=0.1).reply(100, (200, 300), tsecr=2000)
    receipt.data(200, 300, tsval=1000, after=0.1).reply(100, (200, 300), tsecr=2000)
    assert FAIL.isdisjoint(receipt.verdicts("SNR-RCV-024"))


@pytest.mark.parametrize(("window", "expected"), [(0, NOTHING), (5000, FAIL)])
def test_edge_that_moves_back_over_what_fills_a_gap(window: int, expected: set[Verdict]) -> None:
    """What it refuses fills no gap, until it comes again: the edge is judged by SNR-RCV-017."""
    receipt = Receipt(window=5000).data(100, 200).data(0, 100)
    for _ in range(2):
        receipt.reply(0, (100, 200), window=window)
    receipt.reply(0, (100, 200), window=5000, after=2.0)
    assert receipt.later().verdicts("SNR-RCV-022") == expected
    taken = receipt.data(0, 100).reply(200, window=5000).later()
    assert taken.verdicts("SNR-RCV-002") == (expected | PASS)


@pytest.mark.parametrize(("at", "accused"), [(0.0, False), (0.3, True)])
def test_last_small_segment_with_the_end_of_the_stream_right_behind_it(
    at: float, accused: bool
) -> None:
    """Nothing would come to fill it, as if it carried the FIN itself."""
    story = Story(service=7).ack(0, data=bytes(1000)).send(0).ack(1, data=bytes(300), after=RTT)
    story.send_octets(1000, 300).ack(1, data=bytes(200)).ack(1, fin=True, after=0.01)
    story.send_octets(1300, 200).send_octets(1500, 0, fin=True, after=at)
    found = story.verdicts("SNR-WIN-011", claims={**CLAIMS, "nagle": True})
    assert (found >= FAIL) == accused


@pytest.mark.parametrize(
    ("joins", "below_first", "expected"),
    [(False, False, FAIL), (True, False, NOTHING), (True, True, FAIL)],
)
def test_duplicate_reported_as_new_behind_what_came_between(
    joins: bool, below_first: bool, expected: set[Verdict]
) -> None:
    """Linux appends it to the data below, which came after it (encounter 3002387)."""
    receipt = Receipt()
    if below_first:
        receipt.data(200, 300).reply(0, (200, 300)).data(300, 400).reply(0, (200, 400))
    else:
        receipt.data(300, 400).reply(0, (300, 400)).data(200, 300).reply(0, (200, 400))
    receipt.data(600, 700).reply(0, (600, 700), (200, 400))
    receipt.data(300, 400).reply(0, (300, 400), (600, 700))
    judge_with = judging(receipt.trace(), receipt.claims)
    found = judge_with("SNR-RCV-031", (("joins_below", joins),), frozenset())
    assert {finding.verdict for finding in found} == expected


@pytest.mark.parametrize(("end", "expected"), [(1460, NOTHING), (102, FAIL)])
def test_block_that_is_held_after_a_segment_with_another_end_of_the_stream(
    end: int, expected: set[Verdict]
) -> None:
    """Who drops it has no duplicate to report."""
    receipt = Receipt().data(2, 102, flags=ACK | FIN).reply(0, (2, 102))
    receipt.data(100, 102).reply(0, (100, 102), (2, 102))
    receipt.data(1, end, flags=ACK | FIN).reply(0, (2, 102))
    assert receipt.verdicts("SNR-RCV-031") == expected | PASS
