"""The receiving half: when it acknowledges and what it reports."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.tcp.wire import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap


class Peer:
    """A data sender by hand, in segments of 1000 octets, against an connection that only reads."""

    def __init__(self, script: Any, **config: Any) -> None:
        self.isn = config.pop("isn", None)
        self.script = script(octets=0, **config)
        self.connection = self.script.connection

    def number(self, place: float) -> int:
        return self.connection.receiver.irs + 1 + round(place * 1000)

    def place(self, field: int) -> float:
        near = self.connection.receiver.irs
        return (unwrap(field, near) - near - 1) / 1000

    def send(self, place: float, size: float = 1, **fields: Any) -> list[Segment]:
        """Send a segment of data; return the answers."""
        offset = round(place * 1000)
        payload = pattern(offset, round(size * 1000))
        segment = self.script.segment(
            seq=self.number(place) & MASK, ack=self.script.number(0), payload=payload, **fields
        )
        self.script.give(segment)
        return list(self.script.last)

    def report(self, answers: list[Segment]) -> tuple[float, list[tuple[float, float]]]:
        """The one answer's acknowledged place and SACK blocks."""
        (answer,) = answers
        blocks = [(self.place(left), self.place(right)) for left, right in answer.sack_blocks]
        return self.place(answer.ack), blocks

    def wait(self, seconds: float) -> list[Segment]:
        before = self.script.last = []
        self.script.wait(seconds)
        return [] if self.script.last is before else list(self.script.last)


@pytest.fixture
def peer(script: Any) -> Peer:
    return Peer(script)


def test_second_segment_is_acknowledged_at_once(peer: Peer) -> None:
    assert peer.send(0) == []
    assert peer.report(peer.send(1)) == (2, [])
    assert peer.send(2) == []


def test_single_segment_is_acknowledged_after_the_delay(peer: Peer) -> None:
    assert peer.send(0) == []
    assert peer.wait(0.19) == []
    assert peer.report(peer.wait(0.02)) == (1, [])


def test_gap_is_acknowledged_at_once_with_its_block(peer: Peer) -> None:
    peer.send(0)
    assert peer.report(peer.send(2)) == (1, [(2, 3)])


def test_gap_when_filled_in_part_is_acknowledged_at_once(peer: Peer) -> None:
    peer.send(2)
    peer.send(4)
    assert peer.report(peer.send(0)) == (1, [(4, 5), (2, 3)])
    assert peer.report(peer.send(1)) == (3, [(4, 5)])
    assert peer.report(peer.send(3)) == (5, [])


def test_first_block_holds_the_latest_segment_and_others_follow_by_age(peer: Peer) -> None:
    """RFC 2018 section 4."""
    for place in (2, 4, 6, 8, 10):
        answers = peer.send(place)
    assert peer.report(answers) == (0, [(10, 11), (8, 9), (6, 7), (4, 5)])
    assert peer.report(peer.send(5)) == (0, [(4, 7), (10, 11), (8, 9), (2, 3)])
    assert peer.report(peer.send(8)) == (0, [(8, 9), (4, 7), (10, 11), (2, 3)])


def test_blocks_with_timestamps_are_three(script: Any) -> None:
    peer = Peer(script, timestamps=True)
    for place in (2, 4, 6, 8):
        answers = peer.send(place)
    assert len(answers[0].sack_blocks) == 3


def test_blocks_without_negotiation_are_not_sent(script: Any) -> None:
    peer = Peer(script, sack=False)
    assert peer.report(peer.send(2)) == (0, [])


def test_duplicate_segment_is_acknowledged_at_once(peer: Peer) -> None:
    peer.send(0)
    peer.send(1)
    assert peer.report(peer.send(0)) == (2, [])


def test_duplicate_segment_with_dsack_is_reported(script: Any) -> None:
    """RFC 2883 section 4: below the ACK, inside a held block, and in part."""
    peer = Peer(script, dsack=True)
    peer.send(0)
    peer.send(1)
    assert peer.report(peer.send(0)) == (2, [(0, 1)])
    peer.send(4)
    peer.send(6)
    assert peer.report(peer.send(4)) == (2, [(4, 5), (4, 5), (6, 7)])
    assert peer.report(peer.send(1.5)) == (2.5, [(1.5, 2), (4, 5), (6, 7)])


def test_window_counts_what_is_not_read(script: Any) -> None:
    peer = Peer(script, receive_buffer=10_000, window_scale=False)
    assert peer.send(0) == []
    (answer,) = peer.send(1)
    assert answer.window == 8000
    peer.connection.read()
    (answer,) = peer.script.flush() or peer.script.last
    assert answer.window == 10_000


def test_window_right_edge_never_moves_back(script: Any) -> None:
    peer = Peer(script, receive_buffer=100_000)
    edges = []
    for number in range(150):
        for answer in peer.send(number * 0.7, 0.7):
            edges.append(self_edge(peer, answer))
    assert edges == sorted(edges)
    assert len(edges) > 50


def self_edge(peer: Peer, answer: Segment) -> int:
    shift = peer.connection.handshake.receive_shift
    return round(peer.place(answer.ack) * 1000) + (answer.window << shift)


def test_window_when_full_refuses_data_and_reopens_after_reading(script: Any) -> None:
    peer = Peer(script, receive_buffer=4000)
    for place in range(4):
        answers = peer.send(place)
    assert answers[0].window == 0
    assert peer.report(peer.send(4, 0.001)) == (4, [])
    assert len(peer.connection.read(4000)) == 4000
    assert peer.script.flush() == []
    (update,) = peer.script.last
    assert update.window == 4000
    assert peer.send(4) == []


def test_segment_beyond_the_window_is_answered_and_not_taken(script: Any) -> None:
    peer = Peer(script, receive_buffer=4000)
    assert peer.report(peer.send(4)) == (0, [])
    assert peer.report(peer.send(3, 2)) == (0, [(3, 4)])


def test_fin_when_out_of_order_counts_once_the_gap_fills(peer: Peer) -> None:
    assert peer.report(peer.send(1, 1, flags=Flags.ACK | Flags.FIN)) == (0, [(1, 2)])
    assert not peer.connection.peer_has_closed
    assert peer.report(peer.send(0)) == (2.001, [])
    assert peer.connection.peer_has_closed
    assert peer.connection.read() == pattern(0, 2000)


def test_timestamp_echo_follows_rfc7323(script: Any) -> None:
    """Section 4.3: the earliest unacknowledged, not out-of-order, then the hole's filler."""
    peer = Peer(script, timestamps=True)
    base = 5000
    peer.send(0, timestamps=(base, 0))
    (answer,) = peer.send(1, timestamps=(base + 1, 0))
    assert answer.timestamps[1] == base
    (answer,) = peer.send(3, timestamps=(base + 2, 0))
    assert answer.timestamps[1] == base
    (answer,) = peer.send(2, timestamps=(base + 3, 0))
    assert answer.timestamps[1] == base + 3


def test_old_timestamp_is_dropped_and_acknowledged(script: Any) -> None:
    """PAWS, also across the wrap of the timestamp clock."""
    peer = Peer(script, timestamps=True)
    peer.send(0, timestamps=(5000, 0))
    assert peer.report(peer.send(1, timestamps=(4999, 0))) == (1, [])
    assert peer.connection.readable == 1000


def test_old_timestamp_after_24_days_is_accepted(script: Any) -> None:
    """RFC 7323 section 5.5."""
    peer = Peer(script, timestamps=True)
    peer.send(0, timestamps=(5000, 0))
    peer.script.wait(25 * 86400.0)
    peer.send(1, timestamps=(4999, 0))
    assert peer.connection.readable == 2000


def test_timestamp_across_the_wrap_is_newer(script: Any) -> None:
    peer = Peer(script, timestamps=True)
    for place, value in enumerate((1 << 30, 1 << 30, (3 << 30) - 10, (3 << 30) - 9, 3, 4)):
        peer.send(place, timestamps=(value, 0))
    assert peer.connection.readable == 6000


def test_segment_without_negotiated_timestamp_is_dropped_in_silence(script: Any) -> None:
    peer = Peer(script, timestamps=True)
    assert peer.send(0, timestamps=None) == []
    assert peer.connection.readable == 0
