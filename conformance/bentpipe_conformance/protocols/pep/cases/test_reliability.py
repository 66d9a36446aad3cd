"""Reliability (PEP-RE, section 6)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    LONG,
    SHORT,
    close,
    established,
    quiet,
    transfer,
)
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH, build


def _stopped(peer: Peer, octets: int = SHORT) -> Through:
    """A connection whose server does not read what the client has sent and ended."""
    through = peer.connect(server=DEAF)
    through.server.stop()
    through.client.write(peer.octets(octets))
    through.client.close()
    peer.wait(6.0)
    return through


@case("PEP-RE-002", "PEP-RE-003")
def test_end_receiver_does_not_read(peer: Peer) -> None:
    """The client has ended its stream, and the server reads late."""
    through = _stopped(peer)
    through.server.go_on()
    peer.until(lambda: through.server.ended and through.client.end_acked, "the end", 60.0)
    through.server.close()
    quiet(peer)


@case("PEP-RE-002")
def test_end_receiver_acknowledges_late(peer: Peer) -> None:
    """The server gets everything and acknowledges it after 3 s."""
    through = established(peer)
    through.server.acknowledging = False
    through.client.write(peer.octets(5000))
    through.client.close()
    peer.wait(3.0)
    through.server.acknowledging = True
    through.server.acknowledge()
    peer.until(lambda: through.client.end_acked, "the acknowledgment of the FIN", 60.0)
    quiet(peer)


@case("PEP-RE-005", needs=("end=local",))
def test_end_receiver_resets_what_has_ended(peer: Peer) -> None:
    """The server resets before it has got a stream whose FIN was acknowledged."""
    through = _stopped(peer)
    peer.until(lambda: through.client.end_acked, "the acknowledgment of the FIN", 30.0)
    through.server.reset()
    quiet(peer)


@case("PEP-RE-006", "PEP-RE-007")
def test_established_client_resets(peer: Peer) -> None:
    """The client resets a quiet connection."""
    through = established(peer)
    peer.wait(2.0)
    through.client.reset()
    quiet(peer)


@case("PEP-RE-006", "PEP-RE-007")
def test_established_server_resets(peer: Peer) -> None:
    """The server resets a quiet connection."""
    through = established(peer)
    peer.wait(2.0)
    through.server.reset()
    quiet(peer)


@case("PEP-RE-006", "PEP-RE-007")
def test_half_closed_server_resets(peer: Peer) -> None:
    """The client has ended its stream, and the server resets."""
    through = established(peer)
    through.client.close()
    peer.until(lambda: through.server.ended and through.client.end_acked, "the end", 30.0)
    peer.wait(2.0)
    through.server.reset()
    quiet(peer)


@case("PEP-RE-006", "PEP-RE-007")
def test_stopped_server_resets(peer: Peer) -> None:
    """The server resets while the box holds octets for it."""
    through = peer.connect(server=DEAF)
    through.server.stop()
    through.client.write(peer.octets(SHORT))
    peer.wait(5.0)
    through.server.reset()
    quiet(peer)


@case("PEP-RE-008")
def test_established_server_vanishes(peer: Peer) -> None:
    """The server does not answer any more."""
    through = established(peer)
    _vanishes(peer, through.server, through.client)


@case("PEP-RE-008")
def test_established_client_vanishes(peer: Peer) -> None:
    """The client does not answer any more."""
    through = established(peer)
    _vanishes(peer, through.client, through.server)


def _vanishes(peer: Peer, end: End, other: End) -> None:
    """An end falls silent while the other sends to it, until that one is told."""
    end.vanish()
    other.write(peer.octets(3000))
    peer.run(lambda: other.was_reset or other.ended, 1300.0)
    quiet(peer)


@case("PEP-RE-009")
def test_half_closed_server_answers(peer: Peer) -> None:
    """The client ends its stream, and the server sends a long answer."""
    through = peer.connect()
    _goes_on_alone(peer, through.server, through.client)


@case("PEP-RE-009")
def test_half_closed_client_goes_on(peer: Peer) -> None:
    """The server ends its stream, and the client goes on."""
    through = peer.connect()
    _goes_on_alone(peer, through.client, through.server)


def _goes_on_alone(peer: Peer, end: End, other: End) -> None:
    """An end sends a long stream after the other has ended its own."""
    transfer(peer, other, end)
    other.close()
    peer.until(lambda: end.ended, "the first FIN", 30.0)
    peer.wait(2.0)
    transfer(peer, end, other, LONG)
    end.close()
    quiet(peer)


@case("PEP-RE-010")
def test_established_both_close_at_once(peer: Peer) -> None:
    """Both ends send octets and a FIN at the same moment."""
    through = established(peer)
    for end in (through.client, through.server):
        end.write(peer.octets(SHORT))
        end.close()
    peer.run(lambda: through.client.ended and through.server.ended, 30.0)
    quiet(peer)


@case("PEP-RE-015")
def test_established_segment_with_an_error(peer: Peer) -> None:
    """A segment with a wrong checksum arrives, and later the right one."""
    through = established(peer)
    octets = peer.octets(800)
    right = build(through.client.next_segment(octets, ACK | PSH))
    peer.send(CLIENT, right[:-1] + bytes((right[-1] ^ 1,)))
    peer.wait(4.0)
    through.client.write(octets)
    peer.until(lambda: len(through.server.got) >= 2800, "the octets at the server", 30.0)
    quiet(peer)


@case("PEP-RE-016")
def test_closed_fin_repeated(peer: Peer) -> None:
    """The end that has closed last repeats its FIN, as if its acknowledgment had been lost."""
    through = established(peer)
    close(peer, through.client, through.server)
    peer.wait(3.0)
    through.server.segment(FIN | ACK, len(through.server.written))
    peer.wait(10.0)
    through.server.segment(FIN | ACK, len(through.server.written))
    quiet(peer)
