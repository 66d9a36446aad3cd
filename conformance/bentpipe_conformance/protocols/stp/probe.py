"""Driving STP: the scripted peer, and what the nonsense probe asks."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.probe import ECHO_TEXT, Probe, examine
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Driver
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import chargen
from bentpipe_conformance.protocols.stp.peer import Peer
from bentpipe_conformance.protocols.stp.ports import UNUSED_PORT


def _peer(lane: Lane, address: str, settings: RunSettings, seed: int) -> Peer:
    return Peer(
        lane.port, address, lane.iut_address, rtt=settings.rtt, services=settings.services,
        seed=seed, encapsulation=settings.encapsulation, opener=lane.open,
    )  # fmt: skip


def _probe(lane: Lane, settings: RunSettings) -> Probe:
    peer = _peer(lane, lane.begin(), settings, settings.seed)

    def questions() -> dict[str, Any]:
        _echoes(_open(peer, "echo"))
        _generates(_open(peer, "chargen"))
        _takes(_open(peer, "discard"))
        _refuses_nonsense(peer)
        return {}

    return examine(lane, settings, peer, questions)


def _open(peer: Peer, service: str) -> Connection:
    try:
        return peer.connect(service)
    except NotReached as error:
        raise NotReached(f"the {service} service cannot be opened: {error}") from error


def _echoes(connection: Connection) -> None:
    connection.sd(ECHO_TEXT, poll=True)
    try:
        connection.serve(lambda: len(connection.reception.stream) >= len(ECHO_TEXT))
    except NotReached as error:
        raise NotReached(f"the echo service returned nothing: {error}") from error
    if bytes(connection.reception.stream) != ECHO_TEXT:
        raise NotReached("the echo service returned other octets than were sent")


def _generates(connection: Connection) -> None:
    try:
        connection.receive(3)
    except NotReached as error:
        raise NotReached(f"the chargen service sends no data: {error}") from error
    stream = bytes(connection.reception.stream)
    if stream != chargen(0, len(stream)):
        raise NotReached("the chargen service sends other octets than section 11 says")


def _takes(connection: Connection) -> None:
    connection.sd(ECHO_TEXT)
    try:
        connection.deliver()
    except NotReached as error:
        raise NotReached(f"the discard service takes no data: {error}") from error


def _refuses_nonsense(peer: Peer) -> None:
    try:
        peer.connect(UNUSED_PORT)
    except NotReached:
        return
    raise NotReached(
        f"port {UNUSED_PORT}, which nothing serves, accepted a connection, so a success of this "
        "adapter means nothing"
    )


DRIVER = Driver(peer=_peer, probe=_probe)
