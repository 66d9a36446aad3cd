"""The tester as a scripted TOY peer."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.peer import BasePeer
from bentpipe_conformance.protocols.toy.codec import Toy, dissect
from bentpipe_conformance.protocols.toy.connection import Connection


class Peer(BasePeer[Toy, Connection]):
    """The tester on one lane during one case; ``udp_port`` is the implementation's."""

    def __init__(self, *place: Any, udp_port: int, **settings: Any) -> None:
        super().__init__(*place, **settings)
        self._udp_port = udp_port

    def dissect(self, octets: bytes) -> Toy:
        """The TOY packet in an IPv4 packet."""
        return dissect(octets)

    def connect(self, service: str | int = "chargen", **_offer: Any) -> Connection:
        """Open a connection to a service; see :class:`BasePeer`."""
        connection = self.add(
            Connection(self, self.port_of(service), self.new_port(), self._udp_port)
        )
        connection.open()
        connection.await_answer("ACCEPT")
        return connection
