"""Driving RWBP: the scripted peer, and how the nonsense probe asks its questions."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Driver
from bentpipe_conformance.protocols.rwbp.connection import Connection
from bentpipe_conformance.protocols.rwbp.gateway import AMPLE
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp import probe
from bentpipe_conformance.protocols.tcp.crafting import layers


class _Interview(probe.Interview):
    _peer: Peer

    def open(self, service: str | int) -> Connection:
        if self._peer.gateway is not None:
            self._peer.gateway.grant(AMPLE)
            self._peer.gateway.return_to_epoch()
        connection = self._peer.connect(service)
        assert isinstance(connection, Connection)
        if isinstance(service, str) and not connection.agreed:
            raise NotReached("its SYN-ACK does not agree to RWBP")
        return connection

    def observed(self, _: Any) -> dict[str, Any]:
        return {}


def _peer(lane: Lane, address: str, settings: RunSettings, seed: int) -> Peer:
    return Peer(
        lane.port, address, lane.iut_address, rtt=settings.rtt, services=settings.services,
        seed=seed, opener=lane.open, aborter=lane.abort, ics=settings.ics,
    )  # fmt: skip


DRIVER = Driver(peer=_peer, interview=_Interview, load=layers)
