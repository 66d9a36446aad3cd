"""Mutants of isolation, exhaustion and security (PEP-FI, PEP-RX, PEP-SEC)."""

from __future__ import annotations

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.endpoint import Endpoint, tcp
from bentpipe_reference.pep.mutants import mutant, mutant_setting
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, WireError, parse_packet


@mutant("pep-bulk-first", "has_room", breaks="PEP-FI-004")
def bulk_first(self: Box, now: float) -> bool:
    """A new connection waits until nothing is under way in the others."""
    for relay in self.relays:
        for endpoint in relay.endpoints:
            sender = tcp(endpoint).sender
            if sender.snd_una < sender.snd_max:
                return False
    return Box.has_room(self, now)


class _Overbooked(Box):
    """One too many is opened, and its octets go nowhere."""

    def has_room(self, now: float) -> bool:
        """See :class:`Box`."""
        return True

    def settle(self, relay: Relay, now: float) -> None:
        """See :class:`Box`."""
        number = list(self.relays).index(relay) if relay in self.relays else 0
        if number >= self.config.most_relays and relay.near is not None:
            relay.step = lambda now: None  # type: ignore[method-assign]
        super().settle(relay, now)


mutant("pep-overbooks", breaks="PEP-FI-005")(_Overbooked)

mutant_setting(
    "pep-hardly-any-room", "A connection gets room for one segment.",
    lambda setup: setup.endpoints(receive_buffer=1500), breaks="PEP-FI-006",
)  # fmt: skip


@mutant("pep-forgets-the-oldest", "has_room", breaks="PEP-RX-001")
def forgets_the_oldest(self: Box, now: float) -> bool:
    """A new SYN takes the place of the oldest connection."""
    if len(self.relays) >= self.config.most_relays:
        oldest = next(iter(self.relays))
        for endpoint in oldest.endpoints:
            endpoint.abort("its place is needed", now)
        self.settle(oldest, now)
    return True


@mutant("pep-half-open-stay", "has_room", breaks="PEP-RX-002")
def half_open_stay(self: Box, now: float) -> bool:
    """Connections that nobody completes keep their places."""
    return len(self.relays) < self.config.most_relays


mutant_setting(
    "pep-serves-half", "Half as many connections are served as are declared.",
    lambda setup: setup.configured(most_relays=setup.config.most_relays // 2), breaks="PEP-RX-005",
)  # fmt: skip


class _Stale(Box):
    """What was left of a connection goes to the next one with the same ports."""

    left: dict[Addresses, bytes]

    def settle(self, relay: Relay, now: float) -> None:
        """See :class:`Box`."""
        left = self.__dict__.setdefault("left", {})
        far = tcp(relay.far)
        ends = far.addresses
        if relay.near is not None and relay.near.failure is not None:
            source = far.sender.source
            end = None if source is None else source.end()
            if source is not None and end:
                at = far.sender.snd_una - far.sender.iss - 1
                left[ends] = source.read(at, min(100, end - at))
        elif far.state is State.ESTABLISHED and ends in left:
            relay.far.write(left.pop(ends), now)
        super().settle(relay, now)


mutant("pep-stale-octets", breaks="PEP-RX-006")(_Stale)


@mutant("pep-ports-only-once", "splits", breaks="PEP-RX-007")
def ports_only_once(self: Box, port: int, ends: Addresses, segment: Segment, now: float) -> bool:
    """The ports of a connection that has ended are never used again."""
    if (port, ends) in self._ended:
        self._ended[port, ends] = now + 1e6
        return False
    return Box.splits(self, port, ends, segment, now)


@mutant("pep-believes-every-reset", "receive", breaks="PEP-SEC-001")
def believes_every_reset(self: Endpoint, segment: Segment, now: float) -> None:
    """A RST ends a connection, whatever its number."""
    if segment.flags & Flags.RST and self.state is State.ESTABLISHED:
        self.fail("the peer reset the connection", now)
    else:
        Endpoint.receive(self, segment, now)


@mutant("pep-believes-resets-in-the-window", "receive", breaks="PEP-SEC-001")
def believes_resets_in_window(self: Endpoint, segment: Segment, now: float) -> None:
    """A RST ends a connection if it lies within the window."""
    receiver = self.receiver
    if segment.flags & Flags.RST and receiver is not None and self.state is State.ESTABLISHED:
        if (segment.seq - receiver.rcv_nxt) & 0xFFFFFFFF < receiver.edge - receiver.rcv_nxt:
            self.fail("the peer reset the connection", now)
    else:
        Endpoint.receive(self, segment, now)


@mutant("pep-believes-every-syn", "receive", breaks="PEP-SEC-002")
def believes_every_syn(self: Endpoint, segment: Segment, now: float) -> None:
    """A SYN on an open connection ends it."""
    if segment.flags & Flags.SYN and self.state is State.ESTABLISHED:
        self.abort("the peer begins anew", now)
    else:
        Endpoint.receive(self, segment, now)


@mutant("pep-takes-unsent-acknowledgments", "_take_ack", breaks="PEP-SEC-003")
def takes_unsent(self: Endpoint, segment: Segment, seq: int, now: float) -> bool:
    """Octets count though their segment acknowledges what was not sent."""
    return Endpoint._take_ack(self, segment, seq, now) or self.state is State.ESTABLISHED


@mutant("pep-falls-over", breaks="PEP-SEC-007")
def falls_over(packet: bytes) -> Segment:
    """An option list that does not end stops the box."""
    try:
        return parse_packet(packet)
    except WireError as error:
        if "option" in str(error):
            raise RuntimeError("an option list without end") from error
        raise
