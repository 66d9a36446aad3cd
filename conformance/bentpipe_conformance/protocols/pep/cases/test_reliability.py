"""Reliability (PEP-RE, section 6)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    LONG,
    SHORT,
    both_ways,
    close,
    quiet,
    transfer,
)
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
    through = peer.connect()
    both_ways(peer, through, 2000)
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
    through = peer.connect()
    both_ways(peer, through, 2000)
    peer.wait(2.0)
    through.client.reset()
    quiet(peer)


@case("PEP-RE-006", "PEP-RE-007")
def test_established_server_resets(peer: Peer) -> None:
    """The server resets a quiet connection."""
    through = peer.connect()
    both_ways(peer, through, 2000)
    peer.wait(2.0)
    through.server.reset()
    quiet(peer)


@case("PEP-RE-006", "PEP-RE-007")
def test_half_closed_server_resets(peer: Peer) -> None:
    """The client has ended its stream, and the server resets."""
    through = peer.connect()
    both_ways(peer, through, 2000)
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
    through = peer.connect()
    both_ways(peer, through, 2000)
    through.server.vanish()
    through.client.write(peer.octets(3000))
    peer.run(lambda: through.client.was_reset or through.client.ended, 1300.0)
    quiet(peer)


@case("PEP-RE-008")
def test_established_client_vanishes(peer: Peer) -> None:
    """The client does not answer any more."""
    through = peer.connect()
    both_ways(peer, through, 2000)
    through.client.vanish()
    through.server.write(peer.octets(3000))
    peer.run(lambda: through.server.was_reset or through.server.ended, 1300.0)
    quiet(peer)


@case("PEP-RE-009")
def test_half_closed_server_answers(peer: Peer) -> None:
    """The client ends its stream, and the server sends a long answer."""
    through = peer.connect()
    transfer(peer, through.client, through.server)
    through.client.close()
    peer.until(lambda: through.server.ended, "the FIN at the server", 30.0)
    peer.wait(2.0)
    transfer(peer, through.server, through.client, LONG)
    through.server.close()
    quiet(peer)


@case("PEP-RE-009")
def test_half_closed_client_goes_on(peer: Peer) -> None:
    """The server ends its stream, and the client goes on."""
    through = peer.connect()
    transfer(peer, through.server, through.client)
    through.server.close()
    peer.until(lambda: through.client.ended, "the FIN at the client", 30.0)
    peer.wait(2.0)
    transfer(peer, through.client, through.server, LONG)
    through.client.close()
    quiet(peer)


@case("PEP-RE-010")
def test_established_both_close_at_once(peer: Peer) -> None:
    """Both ends send octets and a FIN at the same moment."""
    through = peer.connect()
    both_ways(peer, through, 2000)
    for end in (through.client, through.server):
        end.write(peer.octets(SHORT))
        end.close()
    peer.run(lambda: through.client.ended and through.server.ended, 30.0)
    quiet(peer)


@case("PEP-RE-015")
def test_established_segment_with_an_error(peer: Peer) -> None:
    """A segment with a wrong checksum arrives, and later the right one."""
    through = peer.connect()
    both_ways(peer, through, 2000)
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
    through = peer.connect()
    both_ways(peer, through, 2000)
    close(peer, through.client, through.server)
    peer.wait(3.0)
    through.server.segment(FIN | ACK, len(through.server.written))
    peer.wait(10.0)
    through.server.segment(FIN | ACK, len(through.server.written))
    quiet(peer)
