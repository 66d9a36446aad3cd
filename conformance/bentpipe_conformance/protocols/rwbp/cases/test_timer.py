"""The retransmission timer: its arithmetic, its starts, its back-off, the patience of a sender."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.rwbp.cases.steps import PATIENCE_S, lose_until, receive_octets
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, PSH

ONE: Mapping[str, Any] = {"window": SEGMENT}
"""An offer of one unit: one segment at a time."""


@connected("RWBP-TM-001", "RWBP-EC-005", "RWBP-EC-007", **ONE)
def test_timeout_after_the_handshake(connection: Connection) -> None:
    """The first segment is lost: RTO knows the handshake only."""
    lose_until(connection, 2)
    connection.receive(4)


@case("RWBP-TM-001")
def test_timeout_after_a_syn_ack_that_syns_called_for(peer: Peer) -> None:
    """The SYN comes again and again, so that no timer repeats the SYN-ACK; it is no sample."""
    for times in (1, 3):
        connection = peer.begin(**ONE)
        for _ in range(times):
            peer.wait(0.8)
            connection.send_syn()
        peer.wait(0.8)
        connection.establish()
        lose_until(connection, 2)
        connection.receive(4)
        connection.abort()


@connected("RWBP-TM-001", **ONE)
def test_timeout_after_equal_samples(connection: Connection) -> None:
    """After forty equal samples RTTVAR is small, and RTO its lower bound or near it."""
    connection.receive(40)
    lose_until(connection, 2)
    connection.receive_more(4)


@connected("RWBP-TM-001", **ONE)
def test_timeout_after_growing_samples(connection: Connection) -> None:
    """Acknowledgments come later and later: by 0, 0.2, 0.4, ... 1.0 s."""
    for step in range(6):
        segment = connection.expect()
        connection.hold(segment)
        connection.wait(0.2 * step)
        connection.ack()
    lose_until(connection, 2)
    connection.receive_more(4)


@connected("RWBP-TM-002", **ONE)
def test_acknowledgment_of_a_copy_yields_no_sample(connection: Connection) -> None:
    """A segment is acknowledged after two copies of it, late; the next one times out."""
    connection.receive(3)
    lose_until(connection, 2)
    connection.wait(0.7)
    connection.collect(0)
    connection.ack()
    lose_until(connection, 3)
    connection.receive_more(4)


@connected("RWBP-TM-002", to="echo")
def test_segments_sent_apart_and_reported_together(connection: Connection) -> None:
    """Three times two segments that left half a second apart are reported by one acknowledgment."""
    for index in range(6):
        connection.send_data(SEGMENT)
        if index % 2 == 0:
            connection.wait(0.5)
            continue
        while connection.highest < (index + 1) * SEGMENT:
            connection.expect(within=PATIENCE_S, what="the echo of both")
        connection.reception.take(0, connection.highest)
        connection.inbox.clear()
        connection.ack()
    connection.send_data(SEGMENT)
    lose_until(connection, 2)
    receive_octets(connection, 7 * SEGMENT)


@connected("RWBP-TM-002", window=6 * SEGMENT)
def test_wait_for_a_timeout_yields_no_sample(connection: Connection) -> None:
    """All acknowledgments of a window are lost; what the copies reveal has waited for them."""
    connection.receive(12)
    first = connection.delivered
    for _ in range(6):
        connection.hold(connection.expect())
    connection.expect(
        lambda segment: segment.start == first, within=PATIENCE_S, what="the first copy"
    )
    connection.ack()
    lose_until(connection, 3)
    connection.receive_more(12)


@connected("RWBP-TM-002", **ONE)
def test_segment_sent_between_two_timeouts_yields_no_sample(connection: Connection) -> None:
    """The window opens after the first timeout; what then leaves is reported after the second."""
    connection.receive(3)
    lose_until(connection, 2)
    connection.ack(window=2 * SEGMENT, pause=connection.rtt)
    connection.inbox.clear()
    lose_until(connection, 2)
    connection.wait(0.7)
    connection.collect(0)
    connection.reception.take(0, connection.highest)
    connection.ack(window=SEGMENT)
    lose_until(connection, 3)
    connection.receive_more(4)


@connected("RWBP-TM-003", "RWBP-TM-001", window=6 * SEGMENT)
def test_timer_started_anew_by_each_progress(connection: Connection) -> None:
    """One after another the segments of a window are reported, 0.4 s apart, then none."""
    connection.receive(12)
    for segment in connection.take_round()[1:5]:
        connection.hold(segment)
        connection.ack(pause=0.4)
        connection.inbox.clear()
    connection.wait(6.0)
    connection.receive_more(12)


@connected("RWBP-TM-003", "RWBP-TM-001", window=4 * SEGMENT)
def test_timer_started_anew_by_cumulative_progress(connection: Connection) -> None:
    """The first two segments of four are acknowledged, 0.5 s apart, and the window closes."""
    connection.receive(12)
    segments = connection.take_round()
    for place, segment in enumerate(segments[:2]):
        connection.hold(segment)
        connection.ack(window=(3 - place) * SEGMENT, pause=0.5)
    lose_until(connection, 2)
    connection.ack(window=8 * SEGMENT)
    connection.receive_more(12)


@connected("RWBP-TM-004", "RWBP-TM-001", "RWBP-EC-007", **ONE)
def test_six_timeouts_in_a_row_and_another(connection: Connection) -> None:
    """Six timeouts in a row, up to the limit of 60 s; progress; one more."""
    connection.receive(3)
    lose_until(connection, 12)
    connection.receive_more(1)
    lose_until(connection, 3)
    connection.receive_more(3)


@connected("RWBP-TM-004", window=6 * SEGMENT)
def test_back_off_ends_with_selective_progress(connection: Connection) -> None:
    """After two timeouts a higher segment is reported alone; the first is not heard of again."""
    connection.receive(6)
    segments = connection.take_round()
    lose_until(connection, 4)
    connection.inbox.clear()
    connection.hold(segments[-1])
    connection.ack(pause=1.0)
    connection.inbox.clear()
    lose_until(connection, 2)
    connection.receive_more(12)


@connected("RWBP-TM-006", "RWBP-TM-004", **ONE)
def test_silence_for_two_minutes(connection: Connection) -> None:
    """Nothing is heard of the peer for two minutes; then everything is."""
    connection.receive(2)
    connection.discard(125.0)
    connection.ack(pause=PATIENCE_S)


@case("RWBP-TM-001", "RWBP-EC-005", "RWBP-EC-007")
def test_tail_lost(peer: Peer) -> None:
    """The last segments of an echo are lost, once as a whole segment, once as a short one."""
    for octets in (2000, 3 * SEGMENT):
        connection = peer.connect("echo")
        for start in range(0, octets, SEGMENT):
            connection.send(pattern(start, min(SEGMENT, octets - start)), flags=ACK | PSH)
        receive_octets(connection, octets, losing={(octets - 1) // SEGMENT: 2})
        connection.abort()
