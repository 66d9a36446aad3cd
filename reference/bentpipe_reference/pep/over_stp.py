"""A box that speaks STP/1 over the satellite, with another one that does.

Packets of STP travel directly in IP, between the addresses and ports of client and server. The box
that is called holds the BEGIN until the server has answered: it answers it, or one that repeats it,
when the server has accepted, and refuses it when the server has refused.

All of STP/1 applies but STP-PL-008: a silent satellite is given up later, as PEP-PC-001 asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

from bentpipe_reference.common.encapsulation import (
    OTHER_PROTOCOL,
    Datagram,
    MalformedPacket,
    emit_datagram,
    parse_datagram,
    pseudo_header,
)
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.pep.box import Box, BoxParts, of_class
from bentpipe_reference.pep.config import INNER, OUTER, BoxConfig
from bentpipe_reference.pep.endpoint import End
from bentpipe_reference.pep.passing import ERRORS, ICMP
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.stp import codec, packets
from bentpipe_reference.stp.config import EARLY_CREDIT, StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.idle import Arrival
from bentpipe_reference.stp.packets import Begin
from bentpipe_reference.stp.parts import Parts
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Address, Identity
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_HEADERS = 40
"""Of TCP and IP, beside the MSS."""

_QUOTED_PROTOCOL = 8 + 9
"""Where an ICMP message names the protocol of the packet that it quotes."""


class PatientPolling(Polling):
    """Waits for longer than an outage that a box has to outlast (PEP-PC-001)."""

    no_response_s = 130.0


_PARTS = Parts(polling=PatientPolling)


class Path(NamedTuple):
    """What the endpoint takes for the address of a peer: both addresses of a path."""

    own: int
    peer: int


@dataclass(slots=True)
class Call:
    """A call of the other box that is held until the server has answered."""

    path: Path
    begin: Begin


class BoxEndpoint(StpEndpoint):
    """All connections of a box over the satellite; it listens for whatever the ends want."""

    def __init__(self, config: StpConfig, seed: int, box: StpBox) -> None:
        super().__init__(config, seed, parts=_PARTS, pseudo_header=_pseudo_header)
        self._box = box

    def listens(self, port: int) -> bool:  # noqa: ARG002
        """See :class:`StpEndpoint`."""
        return not self._box.draining

    def has_room(self, begin: Begin, arrival: Arrival) -> bool:
        """See :class:`StpEndpoint`."""
        return super().has_room(begin, arrival) and self._box.has_room(arrival.now)

    def take_call(self, begin: Begin, arrival: Arrival) -> None:
        """See :class:`StpEndpoint`; not yet."""
        self._box.called(begin, arrival)

    def call(self, path: Path, ends: Addresses, now: float) -> Connection:
        """Call; what is left of a connection between the same ports is forgotten if it is over.

        Its END may not have been acknowledged yet; the other box replaces it (STP-CC-041).

        Raises:
            ValueError: it is not over.
        """
        former = self.connections.get(Identity(path, ends.remote_port, ends.local_port))
        if former is not None and former.is_over:
            self._forget(former, now)
        return self.connect(path, ends.remote_port, ends.local_port)

    def admit(self, call: Call, now: float) -> Connection:
        """Answer a call that was held."""
        super().take_call(call.begin, Arrival(call.path, now))
        return self.connections[Identity(call.path, call.begin.sport, call.begin.dport)]

    def refuse(self, call: Call, now: float) -> None:
        """Refuse a call that was held (STP-CC-019)."""
        self._idle.refuse_beside_own_call(Arrival(call.path, now), call.begin)


class StpEnd:
    """The satellite's end of a relay, see :class:`~bentpipe_reference.pep.endpoint.End`.

    Args:
        endpoint: all connections of the box over the satellite.
        ends: addresses and ports, ours first.
        buffer: octets that are taken and not yet acknowledged, at most.
        call: of the other box, None where it is ours to call.

    Attributes:
        connection: of STP, None before it is made.
        has_heard: see :class:`End`.
    """

    awaits_caller = False

    def __init__(
        self, endpoint: BoxEndpoint, ends: Addresses, buffer: int, call: Call | None
    ) -> None:
        self.connection: Connection | None = None
        self.has_heard = False
        self._endpoint = endpoint
        self._ends = ends
        self._buffer = buffer
        self._call = call
        self._written = 0
        self._failure: str | None = None

    @property
    def failure(self) -> str | None:
        """See :class:`End`."""
        if self._failure is None and self.connection is not None:
            return self.connection.failure
        return self._failure

    @property
    def is_opening(self) -> bool:
        """See :class:`End`."""
        connection = self.connection
        unopened = connection is None or connection.state is State.OUTGOING
        return self.failure is None and unopened

    @property
    def is_closed(self) -> bool:
        """See :class:`End`."""
        over = self.connection is not None and self.connection.is_over
        return self.failure is not None or (over and not self.readable)

    @property
    def only_waits(self) -> bool:
        """See :class:`End`."""
        return self.is_closed

    @property
    def readable(self) -> int:
        """See :class:`End`."""
        return 0 if self.connection is None else self.connection.readable

    @property
    def write_room(self) -> int:
        """See :class:`End`."""
        connection = self.connection
        if connection is None or self.is_opening:
            return 0
        kept = self._written - connection.acknowledged_octets
        return max(0, min(connection.write_room, self._buffer - kept))

    @property
    def stream_has_ended(self) -> bool:
        """See :class:`End`."""
        return self.connection is not None and self.connection.peer_has_closed

    @property
    def end_is_acknowledged(self) -> bool:
        """See :class:`End`; by the other box."""
        if self.connection is None:
            return False
        sender = self.connection.outgoing.sender
        number = sender.fin_number
        return self.connection.succeeded or (number is not None and sender.vt_a > number)

    def open(self, now: float) -> None:
        """See :class:`End`."""
        path = Path(self._ends.local, self._ends.remote)
        try:
            self.connection = self._endpoint.call(path, self._ends, now)
        except ValueError as error:
            self._failure = str(error)

    def accept(self, segment: Segment, now: float) -> None:  # noqa: ARG002
        """See :class:`End`: answer the BEGIN that was held."""
        assert self._call is not None
        self.connection = self._endpoint.admit(self._call, now)

    def read(self, octets: int) -> bytes:
        """See :class:`End`."""
        assert self.connection is not None
        self.has_heard = True
        return self.connection.read(octets)

    def write(self, data: bytes, now: float) -> int:  # noqa: ARG002
        """See :class:`End`."""
        assert self.connection is not None
        taken = self.connection.write(data)
        self._written += taken
        return taken

    def close(self, now: float) -> None:  # noqa: ARG002
        """See :class:`End`."""
        if self.connection is not None:
            self.connection.close()

    def confirm_end(self, now: float) -> None:
        """See :class:`End`: STP has acknowledged it when it arrived."""

    def abort(self, reason: str, now: float) -> None:
        """See :class:`End`."""
        if self.connection is not None:
            self.connection.abort(now)
        if not self.is_closed:
            self._failure = reason

    def advance(self, now: float) -> None:
        """See :class:`End`: the endpoint of the box has all timers."""

    def next_deadline(self) -> float | None:
        """See :class:`End`."""
        return None


class StpBox(Box):
    """Connections over the satellite are STP's; TCP that comes from there stays whole.

    Args:
        config: settings; of the satellite side, buffers and MSS are those of its TCP.
        parts: what the box is composed of but for its satellite side.
        seed: see :class:`Box`.
    """

    def __init__(self, config: BoxConfig, parts: BoxParts, seed: int) -> None:
        super().__init__(config, parts, seed)
        self._stp = BoxEndpoint(stp_config(config), self._random.getrandbits(64), self)
        self._held: dict[Addresses, Call] = {}
        self._class = 0

    def receive(self, port: int, packet: bytes, now: float) -> None:
        """See :class:`Box`."""
        protocol = self._passing.protocol(packet)
        if port == INNER and protocol == OTHER_PROTOCOL:
            self._receive_stp(packet, now)
        elif port == INNER and protocol == ICMP and _quotes_stp(packet):
            self.dropped += 1
        else:
            super().receive(port, packet, now)
        self._leave(now)

    def advance(self, now: float) -> None:
        """See :class:`Box`."""
        super().advance(now)
        self._leave(now)

    def stop(self, now: float) -> None:
        """See :class:`Box`."""
        super().stop(now)
        self._leave(now)

    def next_deadline(self) -> float | None:
        """See :class:`Box`."""
        return earliest(super().next_deadline(), self._stp.next_deadline())

    def stays_whole(self, port: int, segment: Segment) -> bool:
        """See :class:`Box`."""
        return port == INNER or super().stays_whole(port, segment)

    def called(self, begin: Begin, arrival: Arrival) -> None:
        """The other box calls: call whom it is for."""
        path = cast(Path, arrival.peer)
        ends = Addresses(path.own, begin.dport, path.peer, begin.sport)
        if (held := self._held.get(ends)) is not None:
            held.begin = begin
            return
        if (former := self._by_ends.get((INNER, ends))) is not None:
            self._give_up(former, "the other box has begun anew", arrival.now)
        self._held[ends] = Call(path, begin)
        syn = Segment(
            path.peer, path.own, begin.sport, begin.dport, begin.csn, flags=int(Flags.SYN)
        )
        self._call(INNER, syn, self._class, arrival.now)
        if (INNER, ends) not in self._by_ends:
            self._held.pop(ends, None)

    def make(self, port: int, ends: Addresses, number: int) -> End:
        """See :class:`Box`."""
        if port == OUTER:
            return super().make(port, ends, number)
        return StpEnd(self._stp, ends, self.config.inner.send_buffer, self._held.pop(ends, None))

    def collect(self, relay: Relay, port: int, endpoint: End, now: float) -> None:
        """See :class:`Box`; those of STP are collected together."""
        if port == OUTER:
            super().collect(relay, port, endpoint, now)

    def _refuse(self, relay: Relay) -> None:
        if relay.caller == OUTER:
            super()._refuse(relay)
        elif (call := self._held.get(self.relays[relay][0][1])) is not None:
            self._stp.refuse(call, 0.0)

    def _forget(self, relay: Relay, now: float) -> None:
        for _, ends in self.relays[relay]:
            self._held.pop(ends, None)
        super()._forget(relay, now)

    def _receive_stp(self, packet: bytes, now: float) -> None:
        try:
            datagram = parse_datagram(packet)
            path = Path(datagram.destination, datagram.source)
            found = codec.decode(datagram.payload, _pseudo_header(path))
        except MalformedPacket:
            self.forward(INNER, packet)  # of somebody else's protocol
            return
        self._class = self.class_of(packet)
        ends = Addresses(path.own, found.dport, path.peer, found.sport)
        held, relay = self._held.get(ends), self._by_ends.get((INNER, ends))
        if held is not None and relay is not None and _ends(found, held.begin):
            relay.cancel(now)
            self.settle(relay, now)
        self._stp.handle(found, path, now)
        if (relay := self._by_ends.get((INNER, ends))) is not None:
            relay.classes[INNER] = self._class
            self.settle(relay, now)

    def _leave(self, now: float) -> None:
        """Send what STP has to send, and follow what has happened to its connections."""
        while True:
            for path, octets in self._stp.transmit(now):
                self._emit(cast(Path, path), octets)
            happened = self._stp.take_events()
            if not happened:
                return
            for connection, _ in happened:
                peer, peer_port, own_port = connection.identity
                own, other = cast(Path, peer)
                ends = Addresses(own, own_port, other, peer_port)
                if (relay := self._by_ends.get((INNER, ends))) is not None:
                    self.settle(relay, now)

    def _emit(self, path: Path, octets: bytes) -> None:
        packet = emit_datagram(Datagram(path.own, path.peer, octets, OTHER_PROTOCOL))
        sport, dport = int.from_bytes(octets[:2], "big"), int.from_bytes(octets[2:4], "big")
        relay = self._by_ends.get((INNER, Addresses(path.own, sport, path.peer, dport)))
        dscp = 0 if relay is None else relay.classes[OUTER]
        self._outbox.append((INNER, of_class(packet, dscp) if dscp else packet))


def stp_config(config: BoxConfig) -> StpConfig:
    """What STP needs to hold no more over the satellite than TCP would."""
    inner, most = config.inner, config.most_relays
    usual = StpConfig(protocol=OTHER_PROTOCOL, mtu=inner.mss + _HEADERS)
    credit = max(EARLY_CREDIT, inner.receive_buffer // usual.own_max_sd)
    return StpConfig(
        protocol=OTHER_PROTOCOL, mtu=usual.mtu, credit=credit, send_buffer=inner.send_buffer,
        # Those that have ended keep their ports for a while.
        max_connections=4 * most, receive_memory=4 * most * credit * usual.own_max_sd,
    )  # fmt: skip


def _pseudo_header(path: Address) -> bytes:
    own, peer = (address.to_bytes(4, "big") for address in path)
    return pseudo_header(own, peer, OTHER_PROTOCOL)


def _ends(packet: packets.Packet, begin: Begin) -> bool:
    """Whether a packet takes back a call."""
    return isinstance(packet, packets.End) and packet.csn == begin.csn


def _quotes_stp(packet: bytes) -> bool:
    """Whether an ICMP message reports an error of a packet of STP."""
    start = (packet[0] & 15) * 4
    at = start + _QUOTED_PROTOCOL
    return len(packet) > at and packet[start] in ERRORS and packet[at] == OTHER_PROTOCOL
