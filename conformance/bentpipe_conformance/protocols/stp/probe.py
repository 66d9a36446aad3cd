"""Driving STP: the scripted peer, and how the nonsense probe asks its questions."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.probe import ECHO_TEXT, chargen
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Driver
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.crafting import layers
from bentpipe_conformance.protocols.stp.peer import Peer


class _Interview:
    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def open(self, service: str | int) -> Connection:
        return self._peer.connect(service)

    def observed(self, _connection: Connection) -> dict[str, Any]:
        return {}

    def echo(self, connection: Connection) -> bytes:
        connection.sd(ECHO_TEXT, poll=True)
        stream = connection.reception.stream
        connection.serve(lambda: len(stream) >= len(ECHO_TEXT))
        return bytes(stream)

    def generate(self, connection: Connection) -> str:
        connection.receive(3)
        stream = bytes(connection.reception.stream)
        right = stream == chargen(0, len(stream))
        return "" if right else "the chargen service sends other octets than section 11 says"

    def take(self, connection: Connection) -> None:
        connection.sd(ECHO_TEXT)
        connection.deliver()


def _peer(lane: Lane, address: str, settings: RunSettings, seed: int) -> Peer:
    return Peer(
        lane.port, address, lane.iut_address, rtt=settings.rtt, services=settings.services,
        seed=seed, encapsulation=settings.encapsulation, opener=lane.open, aborter=lane.abort,
    )  # fmt: skip


DRIVER = Driver(peer=_peer, interview=_Interview, load=layers)
