"""Losses told by the order of transmission, the timer, windows and probes (sections 6 and 8)."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_reference.common.stream import WriteBuffer
from bentpipe_reference.tcp.wire import Flags

# -- the window (section 6) -------------------------------------------------------------------


@pytest.mark.parametrize("units", [1, 2, 10, 200])
def test_window_when_the_connection_opens_is_filled_at_once(script: Any, units: int) -> None:
    """RWBP-EC-014: no congestion window; RWBP-FC-003: one unit permits one segment."""
    assert script(window=units).first_flight == list(range(units))


def test_window_of_octets_in_the_syn_permits_nothing_until_units_come(script: Any) -> None:
    """The caller's SYN offered a window of zero octets."""
    assert script(window=0).first_flight == []


def test_window_when_an_acknowledgment_names_a_lower_edge_stays(script: Any) -> None:
    """RWBP-WN-002."""
    peer = script(window=10)
    assert peer.ack(3, window=5) == []
    assert peer.ack(5, window=5) == []
    assert peer.ack(5, window=7) == [10, 11]


def test_acknowledgment_when_old_still_opens_the_window(script: Any) -> None:
    """RWBP-EC-015: nothing is taken back, so that an old acknowledgment is still true."""
    peer = script(window=4)
    assert peer.ack(4, window=0) == []
    assert peer.ack(2, window=4) == [4, 5]


def test_window_when_it_would_exceed_two_to_the_thirty_is_that(script: Any) -> None:
    peer = script(window=1, unit=65535)
    peer.sender.source.stop_at(1000)
    peer.ack(1, window=65535)
    assert peer.sender.edge == peer.iss + 1 + 1000 + (1 << 30)


def test_segment_when_it_does_not_fit_as_a_whole_waits(script: Any) -> None:
    """RWBP-WN-006."""
    peer = script(window=3, octets=4500)
    assert peer.first_flight == [0, 1, 2]
    assert peer.ack(0.999, window=3) == []
    assert peer.ack(1, window=3) == [3]


def test_last_octets_when_fewer_than_a_segment_leave_at_once(script: Any) -> None:
    """RWBP-WF-007: no Nagle."""
    peer = script(window=9, octets=1500)
    assert peer.first_flight == [0, 1]
    assert [len(each.payload) for each in peer.last] == [1000, 500]


@pytest.mark.parametrize(("window", "flags"), [(2, [[0, False], [1, True]]), (1, [[0, False]])])
def test_fin_when_it_fits_rides_on_the_last_data(
    script: Any, window: int, flags: list[list[bool]]
) -> None:
    """RWBP-WF-008."""
    peer = script(window=window, octets=0)
    peer.connection.write(bytes(1500), peer.now)
    peer.connection.close(peer.now)
    peer.last = peer.connection.transmit(peer.now)
    sent = [
        [(each.seq - peer.number(0)) // 1000, bool(each.flags & Flags.FIN)] for each in peer.last
    ]
    assert sent == flags


def test_fin_when_the_window_has_no_room_for_it_follows_alone(script: Any) -> None:
    peer = script(window=1, octets=0)
    peer.connection.write(bytes(1000), peer.now)
    peer.connection.close(peer.now)
    (data,) = peer.connection.transmit(peer.now)
    assert not data.flags & Flags.FIN
    peer.connection.receive(peer.segment(ack=peer.number(1)), peer.now)
    (fin,) = peer.connection.transmit(peer.now)
    assert (fin.seq, fin.payload, bool(fin.flags & Flags.FIN)) == (peer.number(1), b"", True)


# -- losses (section 8.3) ---------------------------------------------------------------------


def test_segment_when_a_later_one_is_reported_is_retransmitted_before_new_data(
    script: Any,
) -> None:
    """RWBP-EC-002, RWBP-EC-004: the first report is enough."""
    peer = script(window=10)
    assert peer.ack(1, [(2, 3)], window=10) == [1, 10]


def test_losses_when_several_lie_below_the_right_edge_go_lowest_first(script: Any) -> None:
    peer = script(window=10)
    assert peer.ack(1, [(5, 6), (3, 4)], window=10) == [1, 2, 4, 10]


def test_acknowledgments_when_they_repeat_retransmit_nothing(script: Any) -> None:
    """RWBP-EC-012: the number of duplicates tells nothing."""
    peer = script(window=10)
    assert peer.ack(1, [(2, 3)]) == [1, 10]
    for _ in range(20):
        assert peer.ack(1, [(2, 3)]) == []


def test_duplicate_acknowledgments_without_blocks_retransmit_nothing(script: Any) -> None:
    peer = script(window=10)
    for _ in range(20):
        assert peer.ack(0) == []


def test_retransmission_when_reported_does_not_move_the_right_edge(script: Any) -> None:
    """Its number says nothing of what was sent after its first transmission."""
    peer = script(window=10)
    assert peer.ack(0, [(9, 10)]) == list(range(9))
    assert peer.ack(0, [(9, 10), (4, 5)]) == []


def test_retransmission_when_lost_too_is_told_by_a_segment_sent_after_it(script: Any) -> None:
    peer = script(window=10)
    assert peer.ack(1, [(2, 3)], window=12) == [1, 10, 11, 12]
    assert peer.ack(1, [(2, 10)]) == []
    assert peer.ack(1, [(2, 11)]) == [1]


def test_right_edge_when_an_acknowledgment_names_lower_blocks_only_stays(script: Any) -> None:
    """RWBP-EC-003, model run latest-edge."""
    peer = script(window=10)
    assert peer.ack(0, [(8, 9)], window=10) == list(range(8))
    assert peer.ack(0, [(1, 2)]) == []
    assert peer.ack(0, [(8, 9)]) == []


def test_timeout_when_premature_and_the_right_edge_comes_late_convicts_no_copy(
    script: Any,
) -> None:
    """RWBP-EC-002, model run last-match: the edge's first transmission counts."""
    peer = script(window=4)
    assert peer.expire() == [0, 0]
    assert peer.ack(0, [(3, 4)]) == [1, 2]
    assert peer.ack(0, [(1, 4)]) == []


def test_segment_when_reported_is_never_sent_again(script: Any) -> None:
    """RWBP-EC-010: not even after a timeout."""
    peer = script(window=4)
    peer.ack(0, [(1, 4)])
    sent = peer.wait(20.0)
    assert sent
    assert {number for _, number in sent} == {0}


def test_reported_segment_when_no_longer_listed_stays_reported(script: Any) -> None:
    """A peer that reneges: what it has reported is gone for good (RWBP-EC-008 forbids it)."""
    peer = script(window=4)
    assert peer.ack(0, [(2, 4)]) == [0, 1]
    peer.ack(0, [])
    assert {number for _, number in peer.wait(30.0)} == {0}
    assert peer.sender.segments.count == 2


def test_data_when_reported_frees_the_send_buffer(script: Any) -> None:
    """RWBP-FC-008."""
    peer = script(window=4, octets=0, send_buffer=4000)
    connection = peer.connection
    assert connection.write(bytes(9000), peer.now) == 4000
    connection.transmit(peer.now)
    assert connection.write_room == 0
    peer.connection.receive(
        peer.segment(ack=peer.number(0), sack_blocks=((peer.number(1), peer.number(3)),)), peer.now
    )
    assert connection.write_room == 2000
    assert isinstance(peer.sender.source, WriteBuffer)


@pytest.mark.parametrize(
    ("left", "right"), [(11, 12), (9, 11), (3, 3), (4, 3), (0, 2), (-1, 5), (9.999, 10.001)]
)
def test_block_when_untrue_or_empty_is_ignored(script: Any, left: float, right: float) -> None:
    """RWBP-EC-013."""
    peer = script(window=10)
    assert peer.ack(1, [(left, right)], window=9) == []
    assert peer.sender.segments.count == 9


def test_block_when_beside_an_untrue_one_counts(script: Any) -> None:
    peer = script(window=10)
    assert peer.ack(1, [(15, 16), (3, 4)], window=9) == [1, 2]


def test_block_when_it_holds_parts_of_segments_reports_the_whole_ones(script: Any) -> None:
    peer = script(window=10)
    peer.ack(0, [(1.5, 4.5)])
    assert peer.sender.segments.count == 8
    assert peer.ack(0, [(1, 5)]) == []
    assert peer.sender.segments.count == 6


def test_acknowledgment_when_it_ends_within_a_segment_leaves_that_outstanding(
    script: Any,
) -> None:
    peer = script(window=3)
    assert peer.ack(1.5, window=0, after=0.5) == []
    assert peer.expire() == [1, 1]


@pytest.mark.parametrize("offset", [10_001, -(1 << 30) - 1])
def test_acknowledgment_when_beyond_the_window_of_numbers_is_answered_and_discarded(
    script: Any, offset: int
) -> None:
    """RWBP-EC-015."""
    peer = script(window=10)
    peer.give(peer.segment(ack=peer.number(0) + offset & 0xFFFFFFFF, window=50))
    assert peer.reports() == [(0, [])]
    assert peer.sender.segments.count == 10


def test_segment_when_retransmitted_keeps_its_boundaries(script: Any) -> None:
    """RWBP-EC-011."""
    peer = script(window=5, octets=0)
    for octets in (300, 700, 1000):
        peer.connection.write(bytes(octets), peer.now)
        peer.connection.transmit(peer.now)
    blocks = ((peer.number(1), peer.number(2)),)
    peer.connection.receive(peer.segment(sack_blocks=blocks), peer.now)
    peer.last = peer.connection.transmit(peer.now)
    assert [(each.seq - peer.number(0), len(each.payload)) for each in peer.last] == [
        (0, 300),
        (300, 700),
    ]


# -- the timer (section 8.4) ------------------------------------------------------------------


def test_tail_when_lost_is_repaired_by_the_timer_with_two_copies(script: Any) -> None:
    """RWBP-EC-005, RWBP-EC-007; model run no-timer."""
    peer = script(window=10, octets=3000)
    assert peer.ack(2, after=0.5) == []
    assert peer.expire() == [2, 2]
    assert peer.ack(3) == []
    assert peer.wait(100.0) == []


def test_window_full_of_holes_is_repaired_by_the_timer_too(script: Any) -> None:
    """Model run tail-timer: the lowest segment's retransmission is lost, nothing new may leave."""
    peer = script(window=4)
    assert peer.ack(0, [(1, 4)]) == [0]
    assert peer.expire() == [0, 0]
    assert peer.ack(4) == [4, 5, 6, 7]


def test_timeout_when_several_are_missing_sends_the_lowest_only(script: Any) -> None:
    peer = script(window=4)
    assert peer.expire() == [0, 0]
    assert peer.ack(1) == [4]
    assert peer.ack(1, [(4, 5)]) == [1, 2, 3]


def test_timeouts_when_nothing_arrives_come_ever_more_slowly(script: Any) -> None:
    """RWBP-TM-001, RWBP-TM-004: 1.5 s, doubled, 60 s at most, copies each time."""
    peer = script(window=1)
    times = [time for time, _ in peer.wait(300.0)][::2]
    gaps = [round(b - a, 3) for a, b in zip([0.5, *times], times, strict=False)]
    assert gaps == [1.5, 3.0, 6.0, 12.0, 24.0, 48.0, 60.0, 60.0, 60.0]


def test_back_off_when_a_segment_is_reported_ends(script: Any) -> None:
    """RWBP-TM-004: a selective report is progress, although it yields no sample."""
    peer = script(window=3)
    peer.wait(1.5)
    peer.wait(3.0)
    assert peer.sender.backoff == 2
    peer.ack(0, [(1, 2)])
    assert peer.sender.backoff == 0
    rto = peer.sender.estimator.rto
    assert peer.sender.rto_deadline == pytest.approx(peer.now + rto)


def test_timer_when_nothing_new_is_reported_runs_on(script: Any) -> None:
    """RWBP-TM-003."""
    peer = script(window=3)
    deadline = peer.sender.rto_deadline
    peer.ack(0, after=1.0)
    assert peer.sender.rto_deadline == deadline


def test_round_trip_when_the_highest_was_repeated_is_not_measured(script: Any) -> None:
    """RWBP-TM-002, Karn's rule."""
    peer = script(window=2, octets=1000)
    srtt = peer.sender.estimator.srtt
    peer.wait(1.6)
    peer.ack(1)
    assert peer.sender.estimator.srtt == srtt


def test_round_trip_when_the_timer_expired_meanwhile_is_not_measured(script: Any) -> None:
    """RWBP-TM-002: what is told late has waited for the timeout."""
    peer = script(window=2)
    srtt = peer.sender.estimator.srtt
    assert peer.expire() == [0, 0]
    assert peer.ack(2, after=0.1) == [2, 3]
    assert peer.sender.estimator.srtt == srtt
    peer.ack(3, after=0.6)
    assert peer.sender.estimator.srtt != srtt


def test_round_trip_when_the_highest_was_sent_once_is_measured(script: Any) -> None:
    """RWBP-TM-002: from its own transmission, whatever else the acknowledgment reports."""
    peer = script(window=2)
    peer.ack(0, [(1, 2)], after=0.9)
    assert peer.sender.estimator.srtt == pytest.approx(0.5 + (0.9 - 0.5) / 8)


def test_silence_of_the_peer_ends_the_connection_after_more_than_100_s(script: Any) -> None:
    """RWBP-TM-006."""
    peer = script(window=1)
    peer.wait(150.0)
    assert peer.connection.failure is None
    peer.wait(2000.0)
    assert peer.connection.failure == "the peer answers no retransmission"


# -- probes (section 6.3) ---------------------------------------------------------------------


def test_closed_window_is_probed_without_a_number_ever_more_slowly(script: Any) -> None:
    """RWBP-WN-008, RWBP-WN-009."""
    peer = script(window=1)
    peer.ack(1, window=0, after=0.5)
    times = []
    for _ in range(8):
        due = peer.sender.persist_deadline
        times.append(due - peer.now)
        peer.wait(due - peer.now)
        (probe,) = peer.last
        assert (probe.seq, probe.payload, probe.flags) == (peer.number(1) - 1, b"", Flags.ACK)
        peer.ack(1, window=0)
    rto = peer.sender.estimator.rto
    assert times == pytest.approx([min(60.0, rto * 2**n) for n in range(8)])


def test_closed_window_when_probes_are_answered_is_borne_for_ever(script: Any) -> None:
    """RWBP-WN-010."""
    peer = script(window=1)
    peer.ack(1, window=0)
    for _ in range(40):
        peer.wait(60.0)
        peer.ack(1, window=0)
    assert peer.connection.failure is None
    assert peer.ack(1, window=2) == [1, 2]


def test_window_when_it_opens_ends_the_probes(script: Any) -> None:
    peer = script(window=1)
    peer.ack(1, window=0)
    peer.wait(7.0)
    assert peer.sender.probes > 0
    peer.ack(1, window=1)
    assert (peer.sender.probes, peer.sender.persist_deadline) == (0, None)


def test_full_window_with_data_outstanding_is_not_probed(script: Any) -> None:
    """The retransmission timer runs then."""
    peer = script(window=2)
    assert peer.sender.persist_deadline is None
    assert peer.sender.rto_deadline is not None


# -- when the order is not kept (section 8.5) -------------------------------------------------


def test_order_when_broken_three_times_raises_the_threshold(script: Any) -> None:
    """RWBP-FF-002, RWBP-FF-003: 0, 2 and 4 arrive just after 1, 3 and 5."""
    peer = script(window=30)
    for first in (0, 2, 4):
        assert peer.sender.threshold == 1
        assert peer.ack(first, [(first + 1, first + 2)], window=0, after=0.5) == [first]
        peer.ack(first + 2, after=0.01)
    assert (peer.sender.false_losses, peer.sender.threshold) == (3, 3)
    assert peer.ack(6, [(7, 8)]) == []
    assert peer.ack(6, [(7, 9)]) == []
    assert peer.ack(6, [(7, 10)]) == [6]


def test_loss_when_true_is_never_called_false(script: Any) -> None:
    peer = script(window=30)
    for first in range(0, 20, 2):
        peer.ack(first, [(first + 1, first + 2)])
        peer.ack(first + 2, after=0.5)
    assert (peer.sender.false_losses, peer.sender.threshold) == (0, 1)


def test_loss_when_the_segment_arrives_before_its_repair_has_left_is_false(script: Any) -> None:
    """Section 8.5: REPAIRED is none."""
    peer = script(window=9)
    peer.connection.receive(
        peer.segment(ack=peer.number(0), sack_blocks=((peer.number(1), peer.number(2)),)), peer.now
    )
    peer.connection.receive(peer.segment(ack=peer.number(2), window=7), peer.now)
    assert peer.sender.false_losses == 1
    assert peer.flush() == []
