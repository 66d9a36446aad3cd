"""The checkers of acknowledging received data on traces written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN, URG
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.story import CLAIMS, FAIL, NOTHING, PASS, UNCLEAR, Story
from bentpipe_conformance.selftest.strangers import judging


def _gap() -> Receipt:
    return Receipt().data(0, 100).reply(100).data(200, 300, after=0.1)


@pytest.mark.parametrize(
    ("delay", "error", "expected"),
    [(0.001, 1e-6, PASS), (0.2, 1e-6, FAIL), (0.025, 1e-6, UNCLEAR), (0.2, 0.1, UNCLEAR)],
)
def test_gap_answered_after_a_while(delay: float, error: float, expected: set[Verdict]) -> None:
    receipt = _gap().reply(100, (200, 300), after=delay).later()
    receipt.timing_error = error
    assert receipt.verdicts("SNR-RCV-001") == expected


def test_gap_never_answered() -> None:
    assert _gap().later().verdicts("SNR-RCV-001") == FAIL


def test_gap_at_the_end_of_the_trace_proves_nothing() -> None:
    assert _gap().verdicts("SNR-RCV-001") == NOTHING


def test_filled_gap_answered_at_once_or_later() -> None:
    filled = _gap().reply(100, (200, 300)).data(100, 200, after=0.1)
    assert filled.reply(300, after=0.2).later().verdicts("SNR-RCV-002") == FAIL
    filled = _gap().reply(100, (200, 300)).data(100, 200, after=0.1)
    assert filled.reply(300).later().verdicts("SNR-RCV-002") == PASS


def test_filled_gap_above_which_nothing_was_kept_is_ordinary_data() -> None:
    receipt = _gap().reply(100).data(100, 200, after=0.1).reply(200, after=0.2).later()
    assert receipt.verdicts("SNR-RCV-002") == NOTHING
    assert receipt.verdicts("SNR-RCV-003") == PASS


@pytest.mark.parametrize(("delay", "expected"), [(0.45, PASS), (0.51, UNCLEAR), (0.6, FAIL)])
def test_lone_segment_acknowledged_after_a_while(delay: float, expected: set[Verdict]) -> None:
    receipt = Receipt().data(0, 100).reply(100, after=delay).later()
    assert receipt.verdicts("SNR-RCV-003") == expected


def test_lone_segment_beyond_the_window_need_not_be_acknowledged() -> None:
    receipt = Receipt(window=100).data(0, 100).reply(100, window=0).data(100, 200, after=0.1)
    assert receipt.reply(100, window=0).later().verdicts("SNR-RCV-003") == PASS


def test_two_full_segments_answered_by_a_delayed_acknowledgment() -> None:
    receipt = Receipt().data(0, 1460).data(1460, 2920, after=0.05).reply(2920, after=0.1).later()
    assert receipt.verdicts("SNR-RCV-004") == FAIL


def test_two_full_segments_acknowledged_with_the_second_or_one_by_one() -> None:
    together = Receipt().data(0, 1460).data(1460, 2920, after=0.05).reply(2920)
    apart = Receipt().data(0, 1460).reply(1460).data(1460, 2920, after=0.05)
    assert together.later().verdicts("SNR-RCV-004") == PASS
    assert apart.reply(2920, after=0.1).later().verdicts("SNR-RCV-004") == PASS


def test_with_timestamps_the_third_full_segment_makes_up_for_twice_the_mss() -> None:
    receipt = Receipt(timestamps=True).data(0, 1448).data(1448, 2896, after=0.05)
    assert receipt.data(2896, 4344, after=0.05).reply(4344).later().verdicts("SNR-RCV-004") == PASS
    late = Receipt(timestamps=True).data(0, 1448).data(1448, 2896).data(2896, 4344)
    assert late.reply(4344, after=0.1).later().verdicts("SNR-RCV-004") == FAIL


@pytest.mark.parametrize(("delay", "expected"), [(0.0, PASS), (0.04, NOTHING)])
def test_with_timestamps_each_full_segment_acknowledged_before_the_next(
    delay: float, expected: set[Verdict]
) -> None:
    # Behind a thin channel a timer acknowledges each, whatever the receiver counts.
    receipt = Receipt(timestamps=True).data(0, 1448).reply(1448, after=delay)
    receipt.data(1448, 2896, after=0.2).reply(2896, after=delay)
    assert receipt.later().verdicts("SNR-RCV-004") == expected


@pytest.mark.parametrize("delay", [0.04, 0.0])
def test_full_segments_too_far_apart_to_share_an_acknowledgment(delay: float) -> None:
    receipt = Receipt(window=65535)
    for start in range(0, 40 * 1460, 1460):
        receipt.data(start, start + 1460, after=0.24 - delay).reply(start + 1460, after=delay)
    assert receipt.later().verdicts("SNR-RCV-023") == NOTHING


@pytest.mark.parametrize(
    ("mss", "every", "expected"), [(100, 1, FAIL), (100, 2, PASS), (1460, 1, NOTHING)]
)
def test_segments_as_large_as_their_sender_takes_itself_on_a_thin_channel(
    mss: int, every: int, expected: set[Verdict]
) -> None:
    # At 50 kb/s segments of 100 octets come 22 ms apart.
    receipt = Receipt(window=65535, mss=mss)
    for number in range(1, 41):
        receipt.data(number * 100 - 100, number * 100, after=0.022)
        if number % every == 0:
            receipt.reply(number * 100)
    assert receipt.later().verdicts("SNR-RCV-023") == expected


@pytest.mark.parametrize(("at", "accused"), [(64_000, False), (600_000, True)])
def test_stream_below_what_may_have_been_dropped_for_what_it_acknowledges(
    at: int, accused: bool
) -> None:
    """If it was not (RFC 5961 section 5.2), each segment fills a part of the gap below it."""
    receipt = Receipt(window=65535).data(at, at + 9, ack=-(2**30)).reply(0)
    for number in range(40):
        receipt.data(number * 1460, number * 1460 + 1460, after=0.01).reply(number * 1460 + 1460)
    assert (Verdict.FAIL in receipt.later().verdicts("SNR-RCV-023")) == accused


@pytest.mark.parametrize(
    ("marked", "at_once", "accused"), [(1, True, False), (40, True, True), (1, False, True)]
)
def test_stream_without_ect_where_ect_has_been_seen(
    marked: int, at_once: bool, accused: bool
) -> None:
    """Linux takes it for a repair, and acknowledges it at once (encounter 1700079)."""
    receipt = Receipt(window=65535)
    for number in range(40):
        receipt.data(number * 1460, number * 1460 + 1460, after=0.01)
        if number < marked:
            last = receipt.packets[-1]
            checksum = (int.from_bytes(last.data[10:12]) - 2).to_bytes(2)
            data = last.data[:1] + b"\x02" + last.data[2:10] + checksum + last.data[12:]
            receipt.packets[-1] = replace(last, data=data)
        receipt.reply(number * 1460 + 1460)
    judge_with = judging(receipt.later().trace(), CLAIMS)
    found = judge_with("SNR-RCV-023", (("unmarked_at_once", at_once),), frozenset())
    assert ({finding.verdict for finding in found} == FAIL) == accused


def test_small_segments_are_not_counted() -> None:
    receipt = Receipt().data(0, 500).data(500, 1000, after=0.05).reply(1000, after=0.1).later()
    assert receipt.verdicts("SNR-RCV-004") == NOTHING


@pytest.mark.parametrize(("answered", "expected"), [(True, PASS), (False, FAIL)])
def test_window_told_as_zero_because_of_its_scale_is_probed(
    answered: bool, expected: set[Verdict]
) -> None:
    # Of 100 octets four were left, which a shift of three cannot tell.
    receipt = Receipt(shift=3, window=96).data(0, 92).reply(92, window=0)
    receipt.data(92, 93, after=1)
    if answered:
        receipt.reply(92, window=0)
    assert receipt.later().verdicts("SNR-RCV-026") == expected


def test_data_that_follows_what_closes_the_window_is_no_probe() -> None:
    receipt = Receipt(window=100).data(0, 100).data(100, 200).reply(100, window=0)
    assert receipt.later().verdicts("SNR-RCV-026") == PASS
    receipt = Receipt(window=200).data(0, 100).data(100, 200).reply(100, window=0)
    assert receipt.later().verdicts("SNR-RCV-026") == NOTHING


def test_acknowledgment_that_goes_back() -> None:
    receipt = Receipt().data(0, 100).reply(100).data(100, 200, after=0.1)
    assert receipt.reply(200).verdicts("SNR-RCV-005") == PASS
    assert receipt.reply(100, after=0.1).verdicts("SNR-RCV-005") >= FAIL


def test_acknowledgment_over_a_gap() -> None:
    assert _gap().reply(300).verdicts("SNR-RCV-006") >= FAIL
    assert _gap().reply(100).verdicts("SNR-RCV-006") == PASS


def test_duplicate_answered_or_not() -> None:
    receipt = Receipt().data(0, 100).reply(100).data(0, 100, after=1)
    assert receipt.later().verdicts("SNR-RCV-013") == FAIL
    receipt = Receipt().data(0, 100).reply(100).data(0, 100, after=1)
    assert receipt.reply(100, (0, 100), after=0.3).later().verdicts("SNR-RCV-013") == PASS


def test_text_beyond_the_peers_fin_below_what_is_held_may_be_ignored() -> None:
    receipt = Receipt().data(1, 101).reply(0, (1, 101)).data(0, 0, flags=FIN | ACK).reply(1)
    assert receipt.data(1, 2, after=0.1).later().verdicts("SNR-RCV-013") == NOTHING


def test_data_far_beyond_the_window_kept_or_refused() -> None:
    receipt = Receipt().data(0, 100).reply(100).data(90000, 90100, after=1)
    assert receipt.verdicts("SNR-RCV-015") == NOTHING
    receipt.reply(100, after=0.1).data(100, 200, after=1).reply(200)
    assert receipt.verdicts("SNR-RCV-015") == PASS
    assert receipt.verdicts("SNR-RCV-016") == PASS
    receipt.data(300, 400, after=1).reply(200, (300, 400), (90000, 90100))
    assert receipt.verdicts("SNR-RCV-016") == FAIL


def test_data_a_little_beyond_the_window_may_be_kept() -> None:
    receipt = Receipt().data(0, 100).reply(100).data(20500, 20600, after=1)
    receipt.reply(100, (20500, 20600), after=0.1)
    assert receipt.verdicts("SNR-RCV-016") == NOTHING


def test_right_edge_moves_back_by_less_or_more_than_a_unit() -> None:
    receipt = Receipt(shift=7, window=64000).data(0, 100).reply(100)
    receipt.data(100, 150, after=1).reply(150, window=63900 >> 7)
    assert receipt.verdicts("SNR-RCV-017") == PASS
    assert receipt.reply(100, window=490, after=1).verdicts("SNR-RCV-017") >= FAIL


def test_echo_with_other_octets() -> None:
    receipt = Receipt(service=7).data(100, 200).reply(0, (100, 200)).data(0, 100, after=0.1)
    assert receipt.verdicts("SNR-RCV-018") == NOTHING
    assert receipt.reply(200, payload=pattern(0, 150)).verdicts("SNR-RCV-018") == PASS
    receipt.reply(200, seq=150, payload=pattern(151, 50))
    assert receipt.verdicts("SNR-RCV-018") == FAIL


def test_echo_of_a_stream_with_urgent_data_may_lack_an_octet() -> None:
    receipt = Receipt(service=7).data(100, 200).reply(0, (100, 200))
    receipt.data(0, 100, after=0.1, flags=ACK | URG)
    receipt.reply(200, payload=pattern(1, 150))
    assert receipt.verdicts("SNR-RCV-018") == NOTHING


def test_echo_of_a_segment_that_begins_below_the_stream() -> None:
    receipt = Receipt(service=7).data(-10, 40, payload=bytes(10) + pattern(0, 40))
    assert receipt.reply(40, payload=pattern(0, 40)).verdicts("SNR-RCV-018").isdisjoint(FAIL)
    receipt = Receipt(service=7).data(-10, 40, payload=bytes(10) + pattern(0, 40))
    assert receipt.reply(40, payload=pattern(1, 40)).verdicts("SNR-RCV-018") == FAIL


def test_echo_of_octets_that_were_sent_in_two_versions_is_left_alone() -> None:
    receipt = Receipt(service=7).data(100, 200).reply(0, (100, 200))
    receipt.data(0, 200, after=0.1, payload=b"?" * 200).reply(200, payload=b"?" * 200)
    assert receipt.verdicts("SNR-RCV-018") == NOTHING


def test_second_segment_that_repeats_half_of_the_first_may_wait() -> None:
    receipt = Receipt().data(0, 1460).data(730, 2190, after=0.01).reply(2190, after=0.2)
    assert Verdict.FAIL not in receipt.verdicts("SNR-RCV-004")


@pytest.mark.parametrize(("ack", "expected"), [(100, FAIL), (299, FAIL), (300, PASS), (400, PASS)])
def test_segment_that_crosses_the_edge_is_taken_up_to_it(ack: int, expected: set[Verdict]) -> None:
    receipt = Receipt(window=300).data(0, 100).reply(100, window=200).data(100, 400, after=0.1)
    receipt.reply(ack, window=0 if ack > 200 else 200).later()
    assert receipt.verdicts("SNR-RCV-032") == expected


@pytest.mark.parametrize(
    ("blocks", "expected"), [((), FAIL), (((200, 299),), FAIL), (((200, 300),), PASS)]
)
def test_segment_above_a_gap_that_crosses_the_edge_is_reported_up_to_it(
    blocks: tuple[tuple[int, int], ...], expected: set[Verdict]
) -> None:
    receipt = Receipt(window=300).data(0, 100).reply(100, window=200).data(200, 400, after=0.1)
    assert receipt.reply(100, *blocks, window=200).later().verdicts("SNR-RCV-032") == expected


def test_segment_that_crosses_an_edge_that_has_moved_back_need_not_be_taken() -> None:
    receipt = Receipt(window=300).data(0, 100).reply(100, window=100).data(100, 400, after=0.1)
    assert receipt.reply(100, window=100).later().verdicts("SNR-RCV-032") == NOTHING


def test_second_fin_with_data_behind_the_first_is_ignored_or_not() -> None:
    for ack, expected in ((101, PASS), (151, FAIL)):
        receipt = Receipt().data(0, 100, flags=ACK | FIN).reply(101)
        receipt.data(101, 151, flags=ACK | FIN, after=1).reply(ack).later()
        assert receipt.verdicts("SNR-RCV-028") == expected


def test_fin_above_a_gap_is_held_or_not() -> None:
    for ack, expected in ((201, PASS), (200, FAIL)):
        receipt = Receipt().data(0, 100).reply(100).data(200, 200, flags=ACK | FIN, after=1)
        receipt.reply(100).data(100, 200, after=1).reply(ack).later()
        assert receipt.verdicts("SNR-RCV-022") == expected


@pytest.mark.parametrize(
    ("opened", "after", "expected"),
    [(True, 350.0, FAIL), (False, 2.0, FAIL), (False, 350.0, NOTHING)],
)
def test_segment_below_the_window_of_an_attempt_that_may_be_over(
    opened: bool, after: float, expected: set[Verdict]
) -> None:
    receipt = Receipt()
    if not opened:
        receipt.packets.pop()
    receipt.data(-1, -1, after=after).reply(0, flags=RST, after=0.001)
    assert receipt.later().verdicts("SNR-RCV-029") == expected


@pytest.mark.parametrize(
    ("flags", "delay", "expected"),
    [(ACK, 0.001, PASS), (RST | ACK, 0.001, FAIL), (RST | ACK, 0.3, NOTHING)],
)
def test_empty_segment_below_the_window_and_what_follows(
    flags: int, delay: float, expected: set[Verdict]
) -> None:
    receipt = Receipt().data(0, 100).reply(100).data(50, 50, after=2.0)
    assert receipt.reply(100, flags=flags, after=delay).later().verdicts("SNR-RCV-029") == expected


@pytest.mark.parametrize(("later", "expected"), [(0.01, NOTHING), (1.5, FAIL)])
def test_empty_segment_below_the_window_soon_after_a_repeated_syn_ack(
    later: float, expected: set[Verdict]
) -> None:
    """Answers to what is odd may be limited in number (RFC 5961 section 7), also while it opens."""
    story = Story(calls=True).send(0)
    story._put(False, flags=SYN | ACK, seq=99, after=0.5).ack(1, after=0.01)
    story.ack(1, seq=99, after=later).ack(1, after=5)
    assert story.verdicts("SNR-RCV-029") == expected


@pytest.mark.parametrize(("tsval", "accused"), [(1010, False), (1020, True)])
def test_empty_segment_below_the_window_soon_after_an_old_timestamp(
    tsval: int, accused: bool
) -> None:
    """What PAWS refuses is answered, too, and shares the limit (RFC 7323 section 5.3 rule R1)."""
    receipt = Receipt(timestamps=True).data(0, 100, tsval=1020).reply(100, tsecr=1020)
    receipt.data(100, 100, after=2.0, tsval=tsval).reply(100, tsecr=1020)
    receipt.data(99, 99, after=0.2, tsval=1030)
    assert (Verdict.FAIL in receipt.later().verdicts("SNR-RCV-029")) == accused


@pytest.mark.parametrize(("apart", "accused"), [(0.2, False), (0.7, True)])
def test_syn_on_an_open_connection_soon_after_what_had_to_be_answered(
    apart: float, accused: bool
) -> None:
    """One limit holds for all answers to what is odd (RFC 5961 section 7)."""
    receipt = Receipt().data(0, 100).reply(100).data(50, 50, after=2.0).reply(100)
    receipt.data(100, 100, flags=SYN, after=apart).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-013")) == accused


@pytest.mark.parametrize("requirement", ["SNR-RCV-013", "SNR-RCV-015"])
@pytest.mark.parametrize(("flags", "expected"), [(0, NOTHING), (ACK, FAIL)])
def test_segment_outside_the_window_that_lacks_the_ack_bit(
    requirement: str, flags: int, expected: set[Verdict]
) -> None:
    """Without it a segment is dropped, by many stacks before they look at its number."""
    start = 0 if requirement == "SNR-RCV-013" else 90_000
    receipt = Receipt().data(0, 100).reply(100).data(start, start + 100, after=1.0, flags=flags)
    assert receipt.later().verdicts(requirement) == expected
