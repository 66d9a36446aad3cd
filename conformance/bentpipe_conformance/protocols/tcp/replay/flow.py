"""One connection replayed from the implementation's side of the link.

:func:`read_flows` walks the packets captured at the ``iut`` point once and annotates each with
what the implementation could know at that moment. Sequence numbers become *offsets*: 64-bit
numbers that do not wrap, 0 being the first octet of data in that direction (the SYN is -1).

Vocabulary, for the implementation under test (IUT) as a sender of data:

``Sent``
    a segment that left the IUT with data or FIN;
``Ack``
    a segment that reached the IUT and carried an acknowledgment;
and as a receiver:

``Arrival``
    a segment that reached the IUT with data or FIN;
``Reply``
    a segment that left the IUT with an acknowledgment (with or without data).
One packet can be two of these: a data segment with a moved acknowledgment field.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import islice, takewhile

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, Tcp
from bentpipe_conformance.protocols.tcp.replay import Packet, Trace
from bentpipe_conformance.protocols.tcp.replay.direction import Direction
from bentpipe_conformance.protocols.tcp.replay.receiving import Arrival, Receiver, Reply
from bentpipe_conformance.protocols.tcp.replay.transmissions import Transmissions

REACTION_S = 0.02
"""A segment that leaves within this time of an arrival counts as caused by it; later, as timed.

It lies well below the fastest retransmission timer in use (200 ms) and above the slowest reaction
of a scheduled process seen in a quiet bed (10 ms); the bed's own timing error is added to it.
"""

DEFAULT_MSS = 536
"""Send MSS when the peer's SYN has no MSS option (RFC 9293 section 3.7.1)."""

ODD_MSS = 64
"""An MSS option below this (in octets) is an attack or a test: IPv4 carries 68 (RFC 791)."""

SMALLEST_MSS = 48
"""Stacks refuse to send less, whatever the peer's MSS option says (SNR-OPT-009)."""

MAX_WINDOW_SHIFT = 14
"""RFC 7323 section 2.3."""


@dataclass(slots=True, eq=False)
class Sent:
    """A segment with data or FIN leaving the IUT, and the sender's state just before it.

    Attributes:
        packet: the packet.
        time: seconds since the trace began.
        start, end: offsets [start, end); a FIN occupies one.
        payload: octets of data.
        transmission: 1 for new data, 2 for the first retransmission of ``start``, ...
        una: lowest unacknowledged offset.
        max: highest offset sent so far, exclusive (snd_max).
        window_edge: highest right edge the tester has ever offered, exclusive.
        sacked: ranges the tester has reported held above ``una`` (never forgotten on a timeout).
        duplicates: duplicate acknowledgments received in a row.
        cause: the acknowledgment that triggered it, None when a timer or the application did.
        since_arrival: seconds since the last packet that reached the IUT.
        since_sent: seconds since the IUT last sent data, or infinity.
    """

    packet: Packet
    time: float
    start: int
    end: int
    payload: int
    transmission: int
    una: int
    max: int
    window_edge: int
    sacked: tuple[Range, ...]
    duplicates: int
    cause: Ack | None
    since_arrival: float
    since_sent: float

    @property
    def new(self) -> bool:
        """Whether it carries data never sent before."""
        return self.end > self.max

    @property
    def retransmission(self) -> bool:
        """Whether it carries data sent before."""
        return self.start < self.max

    @property
    def flight(self) -> int:
        """Octets sent and not acknowledged before this segment (RFC 5681 FlightSize)."""
        return self.max - self.una

    @property
    def timed(self) -> bool:
        """Whether no arrival explains it: a timer expired (or the application wrote)."""
        return self.cause is None


@dataclass(slots=True, eq=False)
class Ack:
    """A segment with an acknowledgment reaching the IUT.

    Attributes:
        packet: the packet.
        time: seconds since the trace began.
        ack: acknowledgment number as an offset.
        una: lowest unacknowledged offset before it.
        max: snd_max when it arrived.
        advance: octets newly acknowledged.
        duplicate: a duplicate acknowledgment as RFC 5681 section 2 defines it.
        duplicates: duplicates in a row, this one included.
        window: offered window in octets, scaled.
        window_edge: ack + window.
        blocks: SACK blocks inside (una, max], as offsets; an invalid block is left out.
        invalid_blocks: SACK blocks that are malformed or outside what was sent.
        dsack: the D-SACK block of RFC 2883, if the first block is one.
        newly_sacked: octets reported held for the first time.
        sacked: ranges held above the acknowledgment after this segment.
        ancient: acknowledges less than una.
        beyond: acknowledges data never sent.
        rejected: the IUT has to drop the segment: sequence number outside its window, or an old
            timestamp (RFC 7323 section 5.3).
        responses: what the IUT sent because of it, in order.
    """

    packet: Packet
    time: float
    ack: int
    una: int
    max: int
    advance: int
    duplicate: bool
    duplicates: int
    window: int
    window_edge: int
    blocks: tuple[Range, ...]
    invalid_blocks: tuple[Range, ...]
    dsack: Range | None
    newly_sacked: int
    sacked: tuple[Range, ...]
    ancient: bool
    beyond: bool
    rejected: bool
    responses: list[Sent] = field(default_factory=list)

    @property
    def flight(self) -> int:
        """Octets outstanding when it arrived, before it took effect."""
        return self.max - self.una

    @property
    def acceptable(self) -> bool:
        """Whether a conformant sender takes it into account at all."""
        return not (self.ancient or self.beyond or self.rejected)

    @property
    def round_end(self) -> int:
        """What has to be acknowledged until a round trip has passed since it.

        That is all that is outstanding after it, or what it released if nothing was.
        """
        if self.max > self.ack:
            return self.max
        return max((sent.end for sent in self.responses), default=self.max + 1)


Event = Sent | Ack | Arrival | Reply


def _carries(tcp: Tcp | None, attribute: str) -> bool:
    """Whether an option is there; its value may well be 0."""
    value = getattr(tcp, attribute, None)
    return value is not None and value is not False


@dataclass(slots=True, eq=False)
class Handshake:
    """The SYN of the tester and the SYN-ACK of the IUT (or the reverse when the IUT opens).

    Attributes:
        tester: the tester's SYN or SYN-ACK.
        iut: the IUT's SYN or SYN-ACK, the first if it was repeated.
        iut_opens: whether the IUT sent the SYN without ACK.
        established: time the IUT saw the handshake complete, None if it never did.
    """

    tester: Packet | None = None
    iut: Packet | None = None
    iut_opens: bool = False
    established: float | None = None

    def _both(self, attribute: str) -> bool:
        return self.offered(attribute) and self.answered(attribute)

    @property
    def ordinary(self) -> bool:
        """Whether nothing about the tester's SYN excuses an answer without options."""
        tcp = self.tester.content if self.tester else None
        return tcp is not None and tcp.options_ok and (tcp.mss is None or tcp.mss >= ODD_MSS)

    @property
    def sack(self) -> bool:
        """Whether both sides sent SACK-permitted."""
        return self._both("sack_permitted")

    @property
    def timestamps(self) -> bool:
        """Whether both sides sent a Timestamps option."""
        return self._both("tsval")

    @property
    def window_scale(self) -> bool:
        """Whether both sides sent a Window Scale option."""
        return self._both("window_scale")

    def offered(self, attribute: str) -> bool:
        """Whether the tester's SYN carried ``attribute`` (``sack_permitted``, ``tsval``, ...)."""
        tcp = self.tester.content if self.tester else None
        return _carries(tcp, attribute)

    def answered(self, attribute: str) -> bool:
        """Whether the IUT's SYN-ACK carried ``attribute``."""
        tcp = self.iut.content if self.iut else None
        return _carries(tcp, attribute)


@dataclass(slots=True, eq=False)
class Flow:
    """One connection: its handshake and its annotated events in time order.

    Attributes:
        tester, iut: (address, port) of each side.
        handshake: the opening segments.
        events: everything in time order; the typed lists below hold the same objects.
        packets: every packet of the connection at the IUT's side.
        resets: RST segments, either direction.
        mss: largest payload the tester allows (its MSS option or 536, at least 48), options
            not deducted.
        segment: the largest payload the IUT actually sent, or ``mss`` when it sent none.
        listening: whether the IUT answered any SYN to this port with a SYN-ACK in the trace.
    """

    tester: tuple[str, int]
    iut: tuple[str, int]
    handshake: Handshake
    events: list[Event] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    resets: list[Packet] = field(default_factory=list)
    mss: int = DEFAULT_MSS
    segment: int = DEFAULT_MSS
    listening: bool = False

    @property
    def horizon(self) -> float:
        """Until when an answer of the IUT would show: the first RST, or the last packet."""
        ends = self.resets or self.packets[-1:]
        return ends[0].time if ends else 0.0

    def between(self, start: float, end: float) -> list[Sent]:
        """Segments with data the IUT sent in [start, end)."""
        first = bisect_left(self.sent, start, key=lambda item: item.time)
        return list(takewhile(lambda item: item.time < end, islice(self.sent, first, None)))


class _Replay:
    """Walks one connection's packets; see :func:`read_flows`."""

    def __init__(self, flow: Flow, timing_error: float) -> None:
        self.flow = flow
        self.reaction = REACTION_S + timing_error
        self.out: Direction | None = None
        self.receiver = Receiver(self.reaction)
        self.tester_shift = 0
        self.una = self.max = 0
        self.edge = 0
        self.last_window = -1
        self.duplicates = 0
        self.sacked = RangeSet()
        self.transmissions = Transmissions()
        self.last_ack: Ack | None = None
        self.last_in: float | None = None
        self.last_out = float("-inf")

    def packet(self, packet: Packet) -> None:
        tcp = packet.content
        if tcp is None:
            return
        self.flow.packets.append(packet)
        if tcp.flags & RST:
            self.flow.resets.append(packet)
            return
        if tcp.flags & SYN:
            self._syn(packet, tcp)
            return
        if self.out is None or self.flow.handshake.tester is None:
            return
        if packet.outgoing:
            self._leaving(packet, tcp)
        else:
            self._arriving(packet, tcp)

    def _syn(self, packet: Packet, tcp: Tcp) -> None:
        handshake = self.flow.handshake
        if packet.outgoing:
            if handshake.iut is None:
                handshake.iut = packet
                handshake.iut_opens = not tcp.flags & ACK
                self.out = Direction(tcp.seq)
            self.receiver.offers(tcp.window)
        elif handshake.tester is None:
            handshake.tester = packet
            self.receiver.opened(tcp)
            # An MSS of zero cannot be meant, and Linux takes it for none.
            self.flow.mss = max(SMALLEST_MSS, tcp.mss or DEFAULT_MSS)
            # The window field of a SYN is never scaled (RFC 7323 section 2.2).
            self.edge = tcp.window
        if self._completes(packet, tcp):
            handshake.established = packet.time
        if handshake.window_scale:
            tester, iut = handshake.tester, handshake.iut
            assert tester and tester.content and iut and iut.content
            self.tester_shift = min(tester.content.window_scale or 0, MAX_WINDOW_SHIFT)
            self.receiver.shift = min(iut.content.window_scale or 0, MAX_WINDOW_SHIFT)
        self.receiver.timestamps = handshake.timestamps

    def _completes(self, packet: Packet, tcp: Tcp) -> bool:
        """Whether a SYN-ACK is the first that answers the IUT's SYN."""
        handshake = self.flow.handshake
        if packet.outgoing or not tcp.flags & ACK or not handshake.iut_opens:
            return False
        assert self.out is not None
        return handshake.established is None and self.out.offset(tcp.ack) == 0

    # -- leaving the IUT

    def _leaving(self, packet: Packet, tcp: Tcp) -> None:
        assert self.out is not None
        start = self.out.offset(tcp.seq)
        reply = self.receiver.replying(packet, tcp)
        if reply is not None:
            self.flow.replies.append(reply)
            self.flow.events.append(reply)
        if not tcp.length:
            return
        end = start + tcp.length
        transmission = self.transmissions.sent(start, end, new=start >= self.max)
        quiet = packet.time - self.last_in if self.last_in is not None else float("inf")
        cause = self.last_ack if quiet <= self.reaction else None
        sent = Sent(
            packet, packet.time, start, end, len(tcp.payload), transmission, self.una, self.max,
            self.edge, self.sacked.snapshot(), self.duplicates, cause, quiet,
            packet.time - self.last_out,
        )  # fmt: skip
        self.flow.sent.append(sent)
        self.flow.events.append(sent)
        if cause is not None:
            cause.responses.append(sent)
        self.max = max(self.max, end)
        self.out.saw(end)
        self.last_out = packet.time

    # -- arriving at the IUT

    def _arriving(self, packet: Packet, tcp: Tcp) -> None:
        if tcp.flags & ACK:
            self._ack(packet, tcp, self.receiver.rejects(tcp))
        self.last_in = packet.time
        handshake = self.flow.handshake
        if handshake.established is None and handshake.iut is not None:
            handshake.established = packet.time
        arrival = self.receiver.arriving(packet, tcp)
        if arrival is not None:
            self.flow.arrivals.append(arrival)
            self.flow.events.append(arrival)

    def _ack(self, packet: Packet, tcp: Tcp, rejected: bool) -> None:
        assert self.out is not None
        ack = self.out.offset(tcp.ack)
        window = tcp.window << self.tester_shift
        ancient, beyond = ack < self.una, ack > self.max
        usable = not (ancient or beyond or rejected)
        dsack, good, bad = self._blocks(tcp, ack)
        # A window probe beyond the edge is refused again and again; that reports no loss.
        outstanding = min(self.max, self.edge) > self.una
        duplicate = (
            usable and outstanding and ack == self.una and tcp.length == 0
            and window == self.last_window
        )  # fmt: skip
        newly = 0
        una = self.una
        if usable:
            newly = sum(self.sacked.add(*block) for block in good)
            if ack > self.una:
                self.una = ack
                self.sacked.remove_below(ack)
                self.transmissions.acknowledged(ack)
                self.duplicates = 0
            elif duplicate:
                self.duplicates += 1
            self.edge = max(self.edge, ack + window)
            self.last_window = window
        elif rejected and not (ancient or beyond) and self.receiver.may_heed(tcp):
            self.edge = max(self.edge, ack + window)
        item = Ack(
            packet, packet.time, ack, una, self.max, max(0, ack - una) if usable else 0,
            duplicate, self.duplicates, window, ack + window, good, bad, dsack, newly,
            self.sacked.snapshot(), ancient, beyond, rejected,
        )  # fmt: skip
        self.flow.acks.append(item)
        self.flow.events.append(item)
        self.last_ack = item

    def _blocks(
        self, tcp: Tcp, ack: int
    ) -> tuple[Range | None, tuple[Range, ...], tuple[Range, ...]]:
        assert self.out is not None
        edges = [(self.out.offset(a), self.out.offset(b)) for a, b in tcp.sack]
        dsack: Range | None = None
        if edges:
            first = edges[0]
            inside_next = len(edges) > 1 and edges[1][0] <= first[0] and first[1] <= edges[1][1]
            # RFC 2883 section 4: below the acknowledgment, or inside the second block.
            if first[0] < first[1] and (first[1] <= ack or inside_next):
                dsack = first
                edges = edges[1:]
        good: list[Range] = []
        bad: list[Range] = []
        for left, right in edges:
            valid = ack < left < right <= self.max and self.flow.handshake.sack
            (good if valid else bad).append((left, right))
        return dsack, tuple(good), tuple(bad)


def read_flows(trace: Trace) -> list[Flow]:
    """Every TCP connection of a trace, replayed at the ``iut`` capture point."""
    flows: dict[tuple[tuple[str, int], tuple[str, int]], tuple[Flow, _Replay]] = {}
    for packet in trace.at("iut"):
        tcp = packet.content
        if tcp is None or not tcp.checksum_ok:
            continue
        source, destination = (tcp.src, tcp.sport), (tcp.dst, tcp.dport)
        iut, tester = (source, destination) if packet.outgoing else (destination, source)
        if (tester, iut) not in flows:
            flow = Flow(tester, iut, Handshake())
            flows[tester, iut] = flow, _Replay(flow, trace.timing_error)
        flows[tester, iut][1].packet(packet)
    open_ports = {flow.iut for flow, _ in flows.values() if flow.handshake.iut is not None}
    for flow, _ in flows.values():
        flow.listening = flow.iut in open_ports
        # A flow that sent nothing but FIN has no segment of its own either.
        flow.segment = max((item.payload for item in flow.sent), default=0) or flow.mss
    return [flow for flow, _ in flows.values()]


__all__ = [
    "DEFAULT_MSS", "MAX_WINDOW_SHIFT", "REACTION_S", "Ack", "Arrival", "Event", "Flow",
    "Handshake", "Reply", "Sent", "read_flows",
]  # fmt: skip
