"""Windows in units, acknowledgments by interval, blocks in rotation (sections 6.1 and 7)."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.tcp.wire import Flags

# -- which segments are acknowledged ----------------------------------------------------------


@pytest.mark.parametrize("interval", [1, 2, 3, 8, 16, 64])
def test_orderly_segments_are_acknowledged_by_the_interval(script: Any, interval: int) -> None:
    """RWBP-AK-001, RWBP-AK-004."""
    peer = script(octets=0, interval=interval, buffer=1_000_000)
    counts = [len(peer.data(n)) for n in range(3 * interval)]
    assert counts == ([0] * (interval - 1) + [1]) * 3
    assert peer.reports() == [(3 * interval, [])]


def test_tail_is_acknowledged_a_tenth_of_a_second_after_its_first_segment(script: Any) -> None:
    """RWBP-AK-002."""
    peer = script(octets=0)
    peer.data(0)
    peer.data(1, after=0.06)
    peer.wait(0.0399)
    assert peer.last == []
    peer.wait(0.001)
    assert peer.reports() == [(2, [])]
    assert peer.connection.next_deadline() is None


def test_acknowledgment_when_complete_stops_the_timer_and_the_count(script: Any) -> None:
    peer = script(octets=0, interval=3)
    assert [peer.data(n) for n in range(3)] == [[], [], [(3, [])]]
    assert peer.receiver.ack_deadline is None
    assert [peer.data(n) for n in (3, 4)] == [[], []]


def test_segments_behind_a_hole_when_orderly_wait_for_the_interval(script: Any) -> None:
    """RWBP-AK-003: what makes the hole is acknowledged at once, what follows by the interval."""
    peer = script(octets=0, interval=3)
    assert peer.data(1) == [(0, [(1, 2)])]
    assert [peer.data(n) for n in (2, 3, 4)] == [[], [], [(0, [(1, 5)])]]


@pytest.mark.parametrize(("first", "end"), [(0, 1), (2, 3), (0.5, 1.5)])
def test_segment_when_it_repeats_or_fills_is_acknowledged_at_once(
    script: Any, first: float, end: float
) -> None:
    peer = script(octets=0)
    peer.data(0)
    peer.data(2)
    assert len(peer.data(first, end)) == 1


def test_fin_is_acknowledged_at_once(script: Any) -> None:
    peer = script(octets=0)
    assert peer.data(0, flags=Flags.ACK | Flags.FIN) == [(1.001, [])]
    assert peer.connection.peer_has_closed


def test_segments_without_data_are_not_acknowledged(script: Any) -> None:
    """RWBP-AK-004."""
    peer = script(octets=0)
    for _ in range(20):
        peer.give(peer.segment())
        assert peer.last == []


def test_probe_is_acknowledged_at_once(script: Any) -> None:
    """RWBP-AK-003: every segment below the window."""
    peer = script(octets=0)
    peer.give(peer.segment(seq=peer.peer_number(0) - 1))
    assert peer.reports() == [(0, [])]


def test_segments_when_given_together_are_acknowledged_one_by_one(script: Any) -> None:
    """RWBP-AK-003: before the next segment of the connection is processed."""
    peer = script(octets=0)
    for n in (3, 1):
        payload = pattern(n * 1000, 1000)
        peer.connection.receive(peer.segment(seq=peer.peer_number(n), payload=payload), peer.now)
    peer.last = peer.connection.transmit(peer.now)
    assert peer.reports() == [(0, [(3, 4)]), (0, [(1, 2), (3, 4)])]


# -- acknowledgments on data ------------------------------------------------------------------


def test_data_when_nothing_is_missing_takes_the_place_of_the_acknowledgment(script: Any) -> None:
    """RWBP-AK-008."""
    peer = script(octets=0, interval=3, window=10)
    peer.data(0)
    peer.connection.write(bytes(10), peer.now)
    (sent,) = peer.connection.transmit(peer.now)
    assert (sent.ack, len(sent.payload)) == (peer.peer_number(1), 10)
    assert [peer.data(n) for n in (1, 2)] == [[], []]


def test_retransmission_acknowledges_nothing(script: Any) -> None:
    """RWBP-AK-008: a peer that has its data already heeds nothing of it."""
    peer = script(octets=2000, window=2)
    peer.data(0, ack=peer.number(0), sack_blocks=((peer.number(1), peer.number(2)),))
    assert [each.seq for each in peer.last] == [peer.number(0)]
    assert peer.receiver.unacked == 1
    peer.wait(0.1)
    assert peer.reports() == [(1, [])]


def test_data_when_a_run_is_held_acknowledges_nothing(script: Any) -> None:
    """RWBP-AK-008, RWBP-WF-003."""
    peer = script(octets=0, window=10)
    peer.connection.receive(peer.segment(seq=peer.peer_number(1), payload=bytes(1000)), peer.now)
    peer.connection.write(bytes(10), peer.now)
    data, ack = peer.connection.transmit(peer.now)
    assert (len(data.payload), data.sack_blocks) == (10, ())
    assert (ack.payload, len(ack.sack_blocks)) == (b"", 1)


def test_fin_when_a_run_is_held_has_no_options(script: Any) -> None:
    peer = script(octets=0, window=10)
    peer.data(1)
    peer.connection.close(peer.now)
    (fin,) = peer.connection.transmit(peer.now)
    assert fin.flags & Flags.FIN
    assert fin.sack_blocks == ()


# -- blocks -----------------------------------------------------------------------------------


def test_blocks_when_more_runs_than_fit_begin_with_newest_and_highest_and_rotate(
    script: Any,
) -> None:
    """Section 7.2's example."""
    peer = script(octets=0, buffer=1_000_000)
    for first in (20, 30, 40, 50, 60, 70):
        peer.data(first)
    peer.receiver.rotation = peer.receiver.irs + 1 + 30_000
    assert peer.data(41) == [(0, [(40, 42), (70, 71), (50, 51), (60, 61)])]
    assert peer.data(42) == [(0, [(40, 43), (70, 71), (20, 21), (30, 31)])]


def test_blocks_when_the_last_arrival_begins_the_highest_run_name_the_one_before(
    script: Any,
) -> None:
    """What the former highest run grew by has not been reported yet."""
    peer = script(octets=0, buffer=1_000_000)
    for first in (2, 4, 6, 8, 10):
        peer.data(first)
    assert peer.data(11) == []
    ((_, blocks),) = peer.data(13)
    assert blocks[:2] == [(13, 14), (10, 12)]


def test_blocks_of_lost_acknowledgments_come_back_within_half_as_many_as_runs(
    script: Any,
) -> None:
    peer = script(octets=0, buffer=1_000_000)
    runs = [(n, n + 1) for n in range(2, 26, 2)]
    for first, _ in runs:
        peer.data(first)
    told = {block for _ in range(6) for _, blocks in peer.data(24) for block in blocks}
    assert told == set(runs)


def test_blocks_when_the_last_arrival_was_delivered_begin_with_the_highest(script: Any) -> None:
    peer = script(octets=0)
    peer.data(2)
    peer.data(4)
    assert peer.data(0) == [(1, [(4, 5), (2, 3)])]


def test_block_when_a_fin_is_held_does_not_cover_it(script: Any) -> None:
    """RWBP-AK-007."""
    peer = script(octets=0)
    assert peer.data(1, flags=Flags.ACK | Flags.FIN) == [(0, [(1, 2)])]
    assert peer.data(0) == [(2.001, [])]


def test_fin_when_it_comes_alone_and_early_belongs_to_no_run(script: Any) -> None:
    peer = script(octets=0)
    assert peer.data(1, 1, flags=Flags.ACK | Flags.FIN) == [(0, [])]
    assert peer.data(0) == [(1.001, [])]


def test_run_when_reported_is_kept_although_the_buffer_fills(script: Any) -> None:
    """RWBP-EC-008."""
    peer = script(octets=0, buffer=4000, window=4)
    assert peer.data(1, 4) == [(0, [(1, 4)])]
    peer.data(0)
    assert peer.connection.read() == pattern(0, 4000)


def test_octets_when_they_come_twice_are_those_that_came_first(script: Any) -> None:
    """Section 5.4; a receiver is given once what it holds (RWBP-EC-009)."""
    peer = script(octets=0)
    peer.data(1, 2)
    peer.give(peer.segment(seq=peer.peer_number(0), payload=b"\xff" * 3000))
    data = peer.connection.read()
    assert data == b"\xff" * 1000 + pattern(1000, 1000) + b"\xff" * 1000


# -- windows ----------------------------------------------------------------------------------


def test_window_field_counts_whole_units_and_the_edge_stays(script: Any) -> None:
    """Section 6.1's example."""
    peer = script(octets=0, buffer=4000, interval=1)
    peer.data(0, 0.1)
    assert (peer.last[0].window, peer.receiver.edge - peer.receiver.irs - 1) == (3, 4000)
    peer.connection.read()
    peer.data(0.1, 0.2)
    assert (peer.last[0].window, peer.receiver.edge - peer.receiver.irs - 1) == (3, 4000)
    peer.connection.read()
    peer.give(peer.segment(seq=peer.peer_number(0)))
    assert (peer.last[0].window, peer.receiver.edge - peer.receiver.irs - 1) == (4, 4200)


def test_octets_below_the_highest_edge_are_taken_although_the_field_says_less(
    script: Any,
) -> None:
    """RWBP-WN-004."""
    peer = script(octets=0, buffer=4000)
    peer.data(0, 0.1)
    peer.data(0.1, 4)
    assert peer.connection.readable == 4000


def test_octets_at_the_edge_are_not_taken(script: Any) -> None:
    peer = script(octets=0, buffer=4000)
    assert peer.data(3, 5) == [(0, [(3, 4)])]
    assert peer.data(4, 5) == [(0, [(3, 4)])]
    peer.data(0, 3)
    assert peer.connection.readable == 4000


def test_window_when_closed_refuses_data_and_acknowledges_it(script: Any) -> None:
    peer = script(octets=0, buffer=4000)
    for n in range(4):
        peer.data(n)
    assert peer.data(4) == [(4, [])]
    assert peer.last[0].window == 0
    assert peer.connection.readable == 4000


def test_window_when_closed_lets_the_acknowledgment_of_refused_data_count(script: Any) -> None:
    """Section 5.4, last row."""
    peer = script(buffer=4000, window=2)
    for n in range(4):
        peer.data(n, ack=peer.number(0))
    peer.data(4, ack=peer.number(2), window=2)
    assert peer.sender.snd_una == peer.iss + 1 + 2000


def test_reading_when_it_frees_half_of_the_buffer_is_told_at_once(script: Any) -> None:
    """RWBP-WN-007."""
    peer = script(octets=0, buffer=8000, interval=255)
    for n in range(8):
        peer.data(n)
    peer.wait(0.2)
    peer.connection.read(1000)
    assert peer.flush() == []
    assert peer.last == []
    peer.connection.read(1000)
    peer.flush()
    assert [each.window for each in peer.last] == [2]
    peer.connection.read(2000)
    peer.flush()
    assert peer.last == []


def test_reading_when_the_window_is_open_is_told_only_by_halves(script: Any) -> None:
    peer = script(octets=0, buffer=8000, interval=255)
    for n in range(4):
        peer.data(n)
    peer.wait(0.2)
    told = []
    for _ in range(4):
        peer.connection.read(1000)
        peer.flush()
        told += [each.window for each in peer.last]
    assert told == [8]


def test_window_when_the_buffer_is_large_stops_at_two_to_the_thirty(script: Any) -> None:
    peer = script(octets=0, buffer=1 << 31, interval=1)
    peer.data(0)
    assert peer.last[0].window == 65535


def test_fin_at_the_edge_is_not_taken(script: Any) -> None:
    """A FIN takes a number, and so a place in the window."""
    peer = script(octets=0, buffer=4000)
    peer.data(3, 4, flags=Flags.ACK | Flags.FIN)
    peer.data(0, 3)
    assert (peer.connection.readable, peer.connection.peer_has_closed) == (4000, False)
    peer.connection.read()
    peer.flush()
    peer.data(4, 4, flags=Flags.ACK | Flags.FIN)
    assert peer.connection.peer_has_closed


@pytest.mark.parametrize(("first", "end"), [(2, 3), (1, 3), (3, 4)])
def test_data_beyond_a_fin_is_not_taken(script: Any, first: float, end: float) -> None:
    peer = script(octets=0)
    peer.data(1, 2, flags=Flags.ACK | Flags.FIN)
    peer.data(first, end)
    peer.data(0)
    assert peer.connection.read() == pattern(0, 2000)
    assert peer.reports() == [(2.001, [])]


def test_fin_below_what_has_arrived_is_not_believed(script: Any) -> None:
    peer = script(octets=0)
    peer.data(2)
    peer.data(1, 1, flags=Flags.ACK | Flags.FIN)
    peer.data(0, 2)
    assert peer.connection.readable == 3000
    assert not peer.connection.peer_has_closed


def test_numbers_that_wrap_change_nothing(script: Any) -> None:
    peer = script(octets=0, peer_isn=(1 << 32) - 1500, iss=(1 << 32) - 700)
    assert peer.data(1) == [(0, [(1, 2)])]
    assert peer.data(3) == [(0, [(3, 4), (1, 2)])]
    assert peer.data(0) == [(2, [(3, 4)])]
