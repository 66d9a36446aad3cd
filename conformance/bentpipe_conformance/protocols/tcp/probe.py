"""Driving TCP: the scripted peer, and what the nonsense probe asks."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.probe import ECHO_TEXT, UNUSED_PORT, Probe, examine
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Driver
from bentpipe_conformance.protocols.tcp.claims import HANDSHAKE_ITEMS
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN
from bentpipe_conformance.protocols.tcp.peer import Connection, NotReached, Peer

ROLES = ("sack_sender", "sack_receiver")
"""Items that say how a negotiated option is used."""


def _peer(lane: Lane, address: str, settings: RunSettings, seed: int) -> Peer:
    return Peer(
        lane.port, address, lane.iut_address, rtt=settings.rtt, services=settings.services,
        seed=seed,
    )  # fmt: skip


def _probe(lane: Lane, settings: RunSettings) -> Probe:
    address = lane.begin()
    peer = Peer(
        lane.port, address, lane.iut_address, rtt=settings.rtt, seed=settings.seed,
        services={**settings.services, "unused": UNUSED_PORT},
    )  # fmt: skip

    def questions() -> dict[str, Any]:
        echo = _open(peer, "echo")
        observed = {
            item: getattr(echo.syn_ack, known.attribute) not in (None, False)
            for item, known in HANDSHAKE_ITEMS.items()
        }
        _echoes(echo)
        _generates(_open(peer, "chargen"))
        _takes(_open(peer, "discard"))
        _refuses_nonsense(peer)
        return observed

    return examine(lane, settings, peer, questions, ROLES)


def _open(peer: Peer, service: str) -> Connection:
    try:
        return peer.connect(service, timestamps=True)
    except NotReached as error:
        raise NotReached(f"the {service} service cannot be opened: {error}") from error


def _echoes(connection: Connection) -> None:
    connection.send(ECHO_TEXT)
    returned = bytearray()

    def complete() -> bool:
        return connection.delivered >= len(ECHO_TEXT)

    try:
        while not complete():
            segment = connection.expect(what="the echoed octets")
            if segment.start == len(returned):
                returned += segment.tcp.payload
            connection.hold(segment)
            connection.ack()
    except NotReached as error:
        raise NotReached(f"the echo service returned nothing: {error}") from error
    if bytes(returned) != ECHO_TEXT:
        raise NotReached("the echo service returned other octets than were sent")


def _generates(connection: Connection) -> None:
    try:
        connection.receive(3)
    except NotReached as error:
        raise NotReached(f"the chargen service sends no data: {error}") from error


def _takes(connection: Connection) -> None:
    connection.send(ECHO_TEXT)
    try:
        connection.expect(
            lambda segment: segment.ack >= len(ECHO_TEXT), what="an acknowledgment of the data"
        )
    except NotReached as error:
        raise NotReached(f"the discard service takes no data: {error}") from error


def _refuses_nonsense(peer: Peer) -> None:
    try:
        answer = peer.connect("unused").syn_ack
    except NotReached:
        return
    flags = answer.flags if answer is not None else 0
    if flags & (SYN | ACK) == SYN | ACK:
        raise NotReached(
            f"port {UNUSED_PORT}, which nothing serves, accepted a connection, so a success of "
            "this adapter means nothing"
        )


DRIVER = Driver(peer=_peer, probe=_probe)
