"""Ends and resets where something is still under way (PEP-RE, section 6)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    SHORT,
    established,
    quiet,
    transfer,
)
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH

LARGEST = 500_000
"""Octets that no buffer of a usual box takes; a larger one is filled as far as this goes."""


FULL_SEGMENT = 1460
"""Octets. A box counts what tiny segments take beside theirs, and would never be full of them."""


def _to_the_edge(peer: Peer, sender: End) -> None:
    """Write as much as the box permits, but for less than a segment, and for the FIN."""
    patience = 5
    while patience and len(sender.written) < LARGEST:
        room = sender.edge - len(sender.written) - 1
        patience = 5 if room >= FULL_SEGMENT else patience - 1
        if room >= FULL_SEGMENT:
            sender.write(peer.octets(min(room, LARGEST - len(sender.written))))
        peer.wait(1.0)


@case("PEP-RE-002", "PEP-RE-003")
def test_end_behind_a_full_buffer(peer: Peer) -> None:
    """The server does not read, the box is full, and the client ends its stream behind that."""
    through = peer.connect(server=DEAF)
    through.server.stop()
    _to_the_edge(peer, through.client)
    through.client.close()
    peer.wait(10.0)
    through.server.go_on()
    peer.run(lambda: through.server.ended and through.client.end_acked, 70.0)
    through.server.close()
    quiet(peer)


@case("PEP-RE-002")
def test_end_receiver_does_not_read_for_minutes(peer: Peer) -> None:
    """The client repeats its FIN again and again, for the server reads after three minutes."""
    through = peer.connect(server=DEAF)
    through.server.stop()
    through.client.write(peer.octets(SHORT))
    through.client.close()
    peer.wait(180.0)
    through.server.go_on()
    peer.run(lambda: through.server.ended and through.client.end_acked, 70.0)
    through.server.close()
    quiet(peer)


@case("PEP-RE-006")
def test_half_closed_client_resets(peer: Peer) -> None:
    """The client has ended its stream, and resets while the server goes on."""
    through = established(peer)
    _resets_after_its_end(peer, through.client, through.server)


@case("PEP-RE-006")
def test_half_closed_server_that_has_ended_resets(peer: Peer) -> None:
    """The server has ended its stream, and resets while the client goes on."""
    through = established(peer)
    _resets_after_its_end(peer, through.server, through.client)


def _resets_after_its_end(peer: Peer, end: End, other: End) -> None:
    end.close()
    peer.until(lambda: other.ended and end.end_acked, "the end", 30.0)
    transfer(peer, other, end, 3000)
    peer.wait(2.0)
    end.reset()
    quiet(peer)


@case("PEP-RE-006")
def test_reset_behind_a_gap(peer: Peer) -> None:
    """What an end has sent last is lost, and its RST lies behind it.

    The box asks back, or takes it; asked, the end resets what the box expects.
    """
    for of_server in (False, True):
        through = established(peer)
        end = through.server if of_server else through.client
        end.reset(beyond=100)
        quiet(peer)


@case("PEP-RE-009")
def test_half_closed_client_is_quiet_for_minutes(peer: Peer) -> None:
    """The server has ended its stream; the client goes on after five minutes."""
    through = established(peer)
    _goes_on_late(peer, through.client, through.server)


@case("PEP-RE-009")
def test_half_closed_server_is_quiet_for_minutes(peer: Peer) -> None:
    """The client has ended its stream; the server goes on after five minutes."""
    through = established(peer)
    _goes_on_late(peer, through.server, through.client)


def _goes_on_late(peer: Peer, end: End, other: End) -> None:
    other.close()
    peer.until(lambda: end.ended, "the first FIN", 30.0)
    if not peer.run(lambda: end.was_reset or other.was_reset, 300.0):
        transfer(peer, end, other)
        end.close()
    quiet(peer)


@case("PEP-RE-002")
def test_end_of_the_client_crosses_a_reset(peer: Peer) -> None:
    """The server has reset; the client's last octets and its FIN were under way meanwhile."""
    through = established(peer)
    _is_late(peer, through.client, through.server)


@case("PEP-RE-002")
def test_end_of_the_server_crosses_a_reset(peer: Peer) -> None:
    """The client has reset; the server's last octets and its FIN were under way meanwhile."""
    through = established(peer)
    _is_late(peer, through.server, through.client)


def _is_late(peer: Peer, end: End, other: End) -> None:
    other.reset()
    peer.until(lambda: end.was_reset, "the RST", 30.0)
    end.segment(FIN | ACK | PSH, len(end.written), peer.octets(200))
    quiet(peer)
