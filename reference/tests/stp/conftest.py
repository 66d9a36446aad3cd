"""A peer on paper: packets to and from one STP endpoint, at explicit times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import Ticket
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Flags,
    Packet,
    Poll,
    Sd,
    Sdp,
    Stat,
    Ustat,
)
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State

PEER = ("peer", 1)
OWN_PORT, PEER_PORT = 9, 4000
OWN_CSN, OWN_ISS = 0x7777_1234, 5000
PEER_CSN, PEER_ISS = 0x0009_8765, 900_000
PEER_COOKIE = b"a cookie of the peer's"

Kind = TypeVar("Kind", bound=Packet)


class StpScript:
    """One endpoint with fixed numbers, and its peer played by hand.

    ``answers`` of a call are what the endpoint sends at that moment.
    """

    def __init__(self, *, listening: bool = True, trace: Any = None, **config: Any) -> None:
        config.setdefault("iss", OWN_ISS)
        config.setdefault("csn", OWN_CSN)
        self.config = StpConfig(**config)
        self.endpoint = StpEndpoint(self.config, 1, trace=trace)
        if listening:
            self.endpoint.listen(OWN_PORT)
        self.now = 0.0
        self.sent: list[tuple[float, Packet]] = []
        self.kept: Connection | None = None

    # The endpoint

    @property
    def connection(self) -> Connection:
        """The connection, also after its end."""
        live = self.endpoint.connections.get((PEER, PEER_PORT, OWN_PORT))
        self.kept = live or self.kept
        assert self.kept is not None
        return self.kept

    @property
    def state(self) -> State:
        live = self.endpoint.connections.get((PEER, PEER_PORT, OWN_PORT))
        return State.IDLE if live is None else live.state

    def flush(self) -> list[Packet]:
        """What the endpoint sends now."""
        packets = [decode(octets) for _, octets in self.endpoint.transmit(self.now)]
        self.sent += [(self.now, packet) for packet in packets]
        self.kept = self.endpoint.connections.get((PEER, PEER_PORT, OWN_PORT)) or self.kept
        return packets

    def arrive(self, *packets: Packet) -> list[Packet]:
        """The packets arrive; what the endpoint answers at once."""
        for packet in packets:
            self.endpoint.receive(encode(packet), PEER, self.now)
        return self.flush()

    def run(self, until: float) -> list[tuple[float, Packet]]:
        """Let time pass; what the endpoint sends meanwhile, and when."""
        before = len(self.sent)
        for _ in range(100_000):
            deadline = self.endpoint.next_deadline()
            if deadline is None or deadline > until:
                break
            self.now = max(self.now, deadline)
            self.flush()
        else:
            raise AssertionError("the endpoint's deadlines do not come to an end")
        self.now = until
        return self.sent[before:]

    # States

    def cookie(self, peer: tuple[Any, ...] = PEER) -> bytes:
        """A good cookie of the endpoint for an address."""
        return self.endpoint._cookies.make(peer, self.now)

    def know(self, cookie: bytes = PEER_COOKIE, max_sd: int | None = 1000) -> None:
        """The endpoint has received a cookie from the peer."""
        jar = self.endpoint._machine.actions._jar
        jar.put(PEER, Ticket(cookie, max_sd, self.now, jar.begin()))

    def call(self, data: bytes = b"", *, close: bool = False, known: bool = True) -> list[Packet]:
        """The endpoint calls the peer, with a cookie if it is ``known``."""
        if known:
            self.know()
        connection = self.endpoint.connect(PEER, PEER_PORT, OWN_PORT)
        if data:
            assert connection.write(data) == len(data)
        if close:
            connection.close()
        return self.flush()

    def ready(self, **begin: Any) -> Connection:
        """Open a connection that the peer has called."""
        self.arrive(self.begin(**{"cookie": self.cookie(), **begin}))
        assert self.state is State.READY
        return self.connection

    def called(self, data: bytes = b"", **bgak: Any) -> Connection:
        """Open a connection that the endpoint has called."""
        self.call(data)
        self.arrive(self.bgak(**bgak))
        assert self.state is State.READY
        return self.connection

    def enter(self, state: State) -> None:
        """Bring the endpoint into ``state``."""
        if state is State.OUTGOING:
            self.call(b"early")
        elif state is State.READY:
            self.ready()
        elif state is State.OUTGOING_RELEASE:
            self.ready()
            self.connection.abort(self.now)
            self.flush()
        assert self.state is state

    # The peer's packets

    ports = (PEER_PORT, OWN_PORT)
    tag = PEER_CSN & 0xFFFF

    def begin(self, **fields: Any) -> Begin:
        csn = fields.get("csn", PEER_CSN)
        begin = Begin(*self.ports, csn & 0xFFFF, 0, PEER_ISS, 1000, PEER_CSN, max_sd=1000)
        return replace(begin, **fields)

    def bgak(self, **fields: Any) -> Bgak:
        csn = fields.get("csn", PEER_CSN)
        bgak = Bgak(
            *self.ports, csn & 0xFFFF, 0, PEER_ISS, OWN_ISS + 1000 & PACKET_MASK, PEER_CSN,
            OWN_CSN, OWN_ISS, 1000, PEER_COOKIE,
        )  # fmt: skip
        return replace(bgak, **fields)

    def bgrej(self, **fields: Any) -> Bgrej:
        return replace(Bgrej(*self.ports, 0, 0, 3, OWN_CSN), **fields)

    def end(self, **fields: Any) -> End:
        return replace(End(*self.ports, self.tag, 0, 0, 0, PEER_CSN, OWN_CSN), **fields)

    def endak(self, **fields: Any) -> Endak:
        return replace(Endak(*self.ports, self.tag, 0, OWN_CSN), **fields)

    def sd(self, offset: int, data: bytes = b"x", **fields: Any) -> Sd:
        number = PEER_ISS + offset & PACKET_MASK
        return replace(Sd(*self.ports, self.tag, 0, number, data), **fields)

    def fin(self, offset: int, data: bytes = b"") -> Sd:
        return self.sd(offset, data, flags=int(Flags.FIN))

    def sdp(self, offset: int, n_ps: int, data: bytes = b"x", **fields: Any) -> Sdp:
        number = PEER_ISS + offset & PACKET_MASK
        return replace(Sdp(*self.ports, self.tag, 0, number, n_ps, 77, PEER_CSN, data), **fields)

    def poll(self, offset: int, n_ps: int, **fields: Any) -> Poll:
        number = PEER_ISS + offset & PACKET_MASK
        return replace(Poll(*self.ports, self.tag, 0, number, n_ps, 77, PEER_CSN), **fields)

    def stat(self, offset: int, n_ps: int, elements: Iterable[int] = (), **fields: Any) -> Stat:
        """A STAT about the endpoint's SDs, numbered from 0."""
        listed = tuple(OWN_ISS + element & PACKET_MASK for element in elements)
        n_r = OWN_ISS + offset & PACKET_MASK
        stat = Stat(*self.ports, self.tag, 0, n_r, n_r + 1000 & PACKET_MASK, n_ps, 0, listed)
        return replace(stat, **fields)

    def ustat(self, offset: int, first: int, end: int, **fields: Any) -> Ustat:
        n_r = OWN_ISS + offset & PACKET_MASK
        run = (OWN_ISS + first & PACKET_MASK, OWN_ISS + end & PACKET_MASK)
        ustat = Ustat(*self.ports, self.tag, 0, n_r, n_r + 1000 & PACKET_MASK, run)
        return replace(ustat, **fields)

    @staticmethod
    def of(kind: type[Kind], packets: Iterable[Packet]) -> list[Kind]:
        """Those of the packets that are of a kind."""
        return [packet for packet in packets if isinstance(packet, kind)]


@pytest.fixture(scope="session")
def stp() -> type[StpScript]:
    """The class that plays a peer by hand."""
    return StpScript
