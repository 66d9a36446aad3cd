"""Driving TCP: the scripted peer, and how the nonsense probe asks its questions."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.probe import ECHO_TEXT
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Driver
from bentpipe_conformance.protocols.tcp.claims import HANDSHAKE_ITEMS, carries
from bentpipe_conformance.protocols.tcp.connection import Connection
from bentpipe_conformance.protocols.tcp.crafting import layers
from bentpipe_conformance.protocols.tcp.peer import Peer

ROLES = ("sack_sender", "sack_receiver")
"""Items that say how a negotiated option is used."""


class Interview:
    """How TCP is asked the questions of the probe."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def open(self, service: str | int) -> Connection:
        """Open a connection to a service by name or port."""
        return self._peer.connect(service, timestamps=isinstance(service, str))

    def observed(self, connection: Connection) -> dict[str, Any]:
        """Items of the conformance statement as the handshake shows them."""
        return {
            item: carries(connection.syn_ack, attribute)
            for item, (attribute, _) in HANDSHAKE_ITEMS.items()
        }

    def echo(self, connection: Connection) -> bytes:
        """Send :data:`ECHO_TEXT`; return what comes back."""
        connection.send(ECHO_TEXT)
        returned = bytearray()
        while connection.delivered < len(ECHO_TEXT):
            segment = connection.expect(what="the echoed octets")
            if segment.start == len(returned):
                returned += segment.tcp.payload
            connection.take(segment)
        return bytes(returned)

    def generate(self, connection: Connection) -> str:
        """Receive generated data."""
        connection.receive(3)
        return ""

    def take(self, connection: Connection) -> None:
        """Send :data:`ECHO_TEXT` and wait until it is acknowledged."""
        connection.send(ECHO_TEXT)
        what = "an acknowledgment of the data"
        connection.expect(lambda segment: segment.ack >= len(ECHO_TEXT), what=what)


def _peer(lane: Lane, address: str, settings: RunSettings, seed: int) -> Peer:
    return Peer(
        lane.port, address, lane.iut_address, rtt=settings.rtt, services=settings.services,
        seed=seed, opener=lane.open, aborter=lane.abort,
    )  # fmt: skip


DRIVER = Driver(peer=_peer, interview=Interview, roles=ROLES, load=layers)
