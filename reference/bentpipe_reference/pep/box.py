"""A box between two networks: IPv4 packets and time in, packets out, at two ports."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from bentpipe_reference.common.agenda import Agenda
from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.pep.config import OUTER, BoxConfig
from bentpipe_reference.pep.endpoint import End, Endpoint, RelayReceiver
from bentpipe_reference.pep.fragments import Fragments, is_fragment
from bentpipe_reference.pep.passing import ICMP, TCP, Passing, Report
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp import parts as tcp
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment, WireError

_ACK, _SYN, _RST = int(Flags.ACK), int(Flags.SYN), int(Flags.RST)

_MOST_REMEMBERED = 20_000
"""Connections that have ended, that stay whole, or that were refused; the oldest is forgotten."""

_DSCP = 0xFC
"""Its bits in the octet that was the type of service (RFC 2474)."""

_Key = tuple[int, Addresses]
"""A port of the box, and a connection there as the box's end of it sees it."""


@dataclass(slots=True)
class Counts:
    """What a box has done.

    Attributes:
        opened: connections that it has begun to split.
        failed: those of them that did not end cleanly on both sides.
        passed: packets that it has passed on as they were.
        octets: of streams, by the port at which they arrived, of connections that have ended.
    """

    opened: int = 0
    failed: int = 0
    passed: int = 0
    octets: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxParts(tcp.Parts):
    """The classes and functions that a box uses; the defaults are the true ones.

    Attributes:
        relay: one split connection.
        passing: tells what is not split.
    """

    connection: type[Connection] = Endpoint
    receiver: type[Receiver] = RelayReceiver
    relay: type[Relay] = Relay
    passing: type[Passing] = Passing


class Box:
    """Splits TCP connections, from whichever side they come; everything else passes.

    Every packet that arrives is processed or counted in ``dropped``; none raises an error. What is
    held is bounded: by the buffers of ``most_relays`` connections, and by tables of fixed size.

    Args:
        config: settings.
        parts: what it is composed of.
        seed: seed of initial sequence numbers and timestamp offsets.

    Attributes:
        relays: the connections that are split, each with its two ends.
        dropped: packets that were neither processed nor passed on.
        draining: whether new connections are left whole, so that the box can be taken away when
            those that it has split have ended.
        counts: what it has done since it began.
    """

    def __init__(self, config: BoxConfig, parts: BoxParts, seed: int) -> None:
        self.config = config
        self.relays: OrderedDict[Relay, tuple[_Key, _Key]] = OrderedDict()
        self.dropped = 0
        self.draining = False
        self.counts = Counts()
        self.parts = parts
        self._passing = parts.passing()
        self._random = random.Random(seed)
        self._by_ends: dict[_Key, Relay] = {}
        self._ended: OrderedDict[_Key, float] = OrderedDict()
        self._whole: OrderedDict[Addresses, None] = OrderedDict()
        self._refusals: OrderedDict[tuple[int, int], float] = OrderedDict()
        self._agenda: Agenda[Relay] = Agenda()
        self._fragments = Fragments()
        self._outbox: list[tuple[int, bytes]] = []

    # -- packets and time -----------------------------------------------------------------------

    def receive(self, port: int, packet: bytes, now: float) -> None:
        """Process one IPv4 packet that arrives at a port, 0 or 1."""
        protocol = self._passing.protocol(packet)
        if protocol == ICMP and (report := self._passing.report(packet)) is not None:
            self._receive_report(port, report, packet, now)
        elif protocol != TCP:
            self.forward(port, packet)
        elif is_fragment(packet):
            if (joined := self._fragments.take(packet, now)) is not None:
                self._receive_tcp(port, *joined, now)
        else:
            self._receive_tcp(port, packet, (packet,), now)

    def advance(self, now: float) -> None:
        """Run every timer that is due."""
        for relay in self._agenda.due(now):
            for endpoint in relay.endpoints:
                due = endpoint.next_deadline()
                if due is not None and due <= now:
                    endpoint.advance(now)
            self.settle(relay, now)

    def transmit(self, now: float) -> list[tuple[int, bytes]]:  # noqa: ARG002
        """The packets to send now, in order, each with the port by which it leaves."""
        outbox, self._outbox = self._outbox, []
        return outbox

    def next_deadline(self) -> float | None:
        """When :meth:`advance` must be called next, None when no timer runs."""
        return self._agenda.next_deadline()

    def forward(self, port: int, packet: bytes) -> None:
        """Pass on what has arrived at a port as it is."""
        self.counts.passed += 1
        self._outbox.append((1 - port, packet))

    def send(self, port: int, segment: Segment, dscp: int = 0) -> None:
        """Send a segment of the box's own; ``dscp`` is in the place of the type of service."""
        packet = self.parts.emit(segment)
        self._outbox.append((port, of_class(packet, dscp) if dscp else packet))

    # -- segments in ----------------------------------------------------------------------------

    def _receive_tcp(
        self, port: int, packet: bytes, carriers: tuple[bytes, ...], now: float
    ) -> None:
        """A segment, in the packets that carried it."""
        try:
            segment = self.parts.parse(packet)
        except WireError:
            self.dropped += 1  # PEP-RE-015
            return
        key = port, Addresses(segment.destination, segment.dport, segment.source, segment.sport)
        relay = self._by_ends.get(key)
        if relay is not None:
            if segment.payload or segment.flags & _SYN:
                relay.classes[port] = self.class_of(packet)
            self.receive_in(relay, port, segment, now)
        elif self.splits(port, key[1], segment, now):
            self._call(port, segment, self.class_of(packet), now)
        elif not self._answers_for(key, segment, now):
            for carrier in carriers:
                self.forward(port, carrier)

    def stays_whole(self, port: int, segment: Segment) -> bool:  # noqa: ARG002
        """Whether a connection that could be split is not."""
        return self.draining or self._passing.must_stay_whole(segment)

    def splits(self, port: int, ends: Addresses, segment: Segment, now: float) -> bool:  # noqa: ARG002
        """Whether a segment opens a connection that is to be split."""
        if segment.flags & (_SYN | _ACK | _RST) != _SYN:
            return False
        if self.stays_whole(port, segment):
            _remember(self._whole, ends, None)
            _remember(self._whole, ends.swapped(), None)
            return False
        self._whole.pop(ends, None)
        self._whole.pop(ends.swapped(), None)
        return True

    def _answers_for(self, key: _Key, segment: Segment, now: float) -> bool:
        """Whether a segment without a relay is not passed on, but refused."""
        if key[1] in self._whole:
            return False
        ended = self._ended.get(key, -1.0) >= now
        if not ended and self.config.strangers == "forward":
            return False
        if (refusal := self.parts.refuse(segment)) is not None:
            self.send(key[0], refusal)
        return True

    def receive_in(self, relay: Relay, port: int, segment: Segment, now: float) -> None:
        """A segment of a split connection."""
        endpoint = relay.endpoint(port)
        if isinstance(endpoint, Endpoint):
            endpoint.receive(segment, now)
        elif segment.flags & _RST:
            if segment.seq == relay.syn.seq + 1 & 0xFFFFFFFF:
                relay.cancel(now)
        elif segment.flags & _SYN:
            relay.repeat_syn(now)
        self.settle(relay, now)

    def _receive_report(self, port: int, report: Report, packet: bytes, now: float) -> None:
        """An ICMP message: of a segment of the box's own, or somebody else's."""
        relay = self._by_ends.get((port, report.ends))
        endpoint = None if relay is None else relay.endpoint(port)
        if relay is None or not isinstance(endpoint, Endpoint):
            self.forward(port, packet)
            return
        self.take_report(endpoint, report, now)
        self.settle(relay, now)

    def take_report(self, endpoint: Endpoint, report: Report, now: float) -> None:
        """A segment of an endpoint has not arrived (RFC 5927 section 4.1, PEP-SEC-004)."""
        if not endpoint.is_outstanding(report.seq):
            return
        if report.mtu is not None:
            endpoint.fit(report.mtu, now)
        elif endpoint.state is State.SYN_SENT:
            endpoint.fail("the peer cannot be reached", now)

    def stop(self, now: float) -> None:
        """Reset all that is left, so that nobody takes its end for a clean one (PEP-RE-013)."""
        for relay in list(self.relays):
            self._give_up(relay, "the box is stopped", now)

    def octets(self) -> list[int]:
        """Octets of streams, by the port at which they arrived."""
        found = list(self.counts.octets)
        for relay in list(self.relays):
            for port in (0, 1):
                found[port] += relay.carried[port]
        return found

    # -- relays ---------------------------------------------------------------------------------

    def has_room(self, now: float) -> bool:
        """Whether one more connection fits, if need be in place of one that nobody would miss.

        That is one that has ended, or else one that is half open.
        """
        if len(self.relays) < self.config.most_relays:
            return True
        ended = (relay for relay in self.relays if relay.only_waits)
        half_open = (relay for relay in self.relays if relay.is_half_open)
        spare = next(ended, None) or next(half_open, None)
        if spare is not None:
            self._give_up(spare, "its place is needed", now)
        return spare is not None

    def _give_up(self, relay: Relay, reason: str, now: float) -> None:
        """Reset a connection, or forget it where there is nothing left to reset."""
        if relay.only_waits:
            self._forget(relay, now)
            return
        for endpoint in relay.endpoints:
            endpoint.abort(reason, now)
        self.settle(relay, now)

    def answers_early(self, syn: Segment, now: float) -> bool:
        """Whether a caller is answered before whom it calls (PEP-SEC-005)."""
        refused = self._refusals.get((syn.destination, syn.dport), -1.0) >= now
        return self.config.opening == "early" and not refused

    def _call(self, port: int, syn: Segment, dscp: int, now: float) -> None:
        """Split a new connection."""
        if not self.has_room(now):
            self.dropped += 1
            return
        ends = Addresses(syn.destination, syn.dport, syn.source, syn.sport)
        keys = (port, ends), (1 - port, self.calls_as(ends))
        if keys[1] in self._by_ends:
            self.dropped += 1  # the same connection from the other side
            return

        def make(at: int) -> End:
            return self.make(at, keys[at != port][1], self.draw_number(syn))

        relay = self.parts.relay(
            port, syn, make, self.config, early=self.answers_early(syn, now)
        )  # fmt: skip
        self.relays[relay] = keys
        self.counts.opened += 1
        for key in keys:
            self._by_ends[key] = relay
            self._ended.pop(key, None)
        relay.classes[port] = dscp
        relay.begin(now)
        self.settle(relay, now)

    def calls_as(self, ends: Addresses) -> Addresses:
        """The ends of a call, given those that the caller has (PEP-TR-002, -003)."""
        return ends.swapped()

    def draw_number(self, syn: Segment) -> int:  # noqa: ARG002
        """An initial sequence number for either side of a connection (PEP-SEC-008)."""
        return self._random.getrandbits(32)

    def class_of(self, packet: bytes) -> int:
        """What is kept of a packet's type of service (PEP-TR-005, -006)."""
        return packet[1] & _DSCP

    def make(self, port: int, ends: Addresses, number: int) -> End:
        """An endpoint at a port of the box."""
        parts = self.parts_at(port)
        endpoint = parts.connection(
            self.config.outer if port == OUTER else self.config.inner,
            ends, number, parts,
            timestamp_offset=self._random.getrandbits(32),
        )  # fmt: skip
        assert isinstance(endpoint, Endpoint)
        return endpoint

    def parts_at(self, port: int) -> tcp.Parts:  # noqa: ARG002
        """What endpoints at a port are composed of."""
        return self.parts

    def settle(self, relay: Relay, now: float) -> None:
        """Relay, collect what the endpoints send, and forget what is over."""
        if relay not in self.relays:
            return
        relay.step(now)
        for port in (relay.caller, 1 - relay.caller):
            endpoint = relay.endpoint(port)
            if endpoint is not None:
                self.collect(relay, port, endpoint, now)
        if relay.refused:
            self._refuse(relay)
        if relay.was_refused:
            called = relay.syn.destination, relay.syn.dport
            _remember(self._refusals, called, now + self.config.believes_refusals)
        if relay.is_over:
            self._forget(relay, now)
        else:
            for endpoint in relay.endpoints:
                self._agenda.plan(relay, endpoint.next_deadline())

    def collect(self, relay: Relay, port: int, endpoint: End, now: float) -> None:
        """Take what an endpoint sends."""
        assert isinstance(endpoint, Endpoint)
        for segment in endpoint.transmit(now):
            self.send(port, segment, relay.classes[1 - port])

    def _refuse(self, relay: Relay) -> None:
        """Tell the caller that its call has failed (PEP-OP-005)."""
        if (refusal := self.parts.refuse(relay.syn)) is not None:
            self.send(relay.caller, refusal)

    def _forget(self, relay: Relay, now: float) -> None:
        keys = self.relays.pop(relay)
        self.counts.failed += any(each.failure is not None for each in relay.endpoints)
        for port in (0, 1):
            self.counts.octets[port] += relay.carried[port]
        self._agenda.cancel(relay)
        for key in keys:
            del self._by_ends[key]
            _remember(self._ended, key, now + self.config.remembers)


def _remember(table: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    """Put an entry last into a table, from which the first then falls out if it is full."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > _MOST_REMEMBERED:
        table.popitem(last=False)


def of_class(packet: bytes, dscp: int) -> bytes:
    """A packet without IP options in another class."""
    head = bytearray(packet[:20])
    head[1] = dscp
    head[10:12] = bytes(2)
    head[10:12] = internet_checksum(bytes(head)).to_bytes(2, "big")
    return bytes(head) + packet[20:]
