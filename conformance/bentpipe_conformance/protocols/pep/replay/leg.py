"""One TCP connection at one side of a box, as its segments passed there."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.engine.lane import SERVER
from bentpipe_conformance.engine.trace import Packet as EnginePacket
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN, Tcp, nearest

Packet = EnginePacket[Tcp]

LARGEST_SHIFT = 14
DEFAULT_MSS = 536
_CROSSES_S = 0.1
"""Seconds in which a segment of the box may have been under way already."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment, its numbers counted from the beginning of the streams.

    Attributes:
        packet: where it was captured; ``outgoing`` when the box has sent it.
        start, end: of its octets in the stream of its sender.
        fin: the offset of its FIN, None without one.
        ack: how many octets it acknowledges, and the FIN as one more; None without ACK.
        edge: how many it permits in all; None without ACK.
        counts: whether the box has to look at it: False for what lies outside the window, or
            acknowledges what was not sent. Of what the box sends it is False for segments of others
            that it forwards once the connection was reset, which have numbers of their own.
        doubtful: of a RST that does not count: it may be the number that the box expects next.
        at_edge: of what counts: its number may be the first behind the window, which RFC 9293
            section 3.10.7.4 does not accept while something before it is missing.
        old: of what an end sends: the box has acknowledged all of it before, and accepts none of
            it, nor what it acknowledges (RFC 9293 section 3.10.7.4).
    """

    packet: Packet
    start: int
    end: int
    fin: int | None
    ack: int | None
    edge: int | None
    counts: bool = True
    doubtful: bool = False
    at_edge: bool = False
    old: bool = False

    @property
    def tcp(self) -> Tcp:
        """The segment as dissected."""
        assert self.packet.content is not None
        return self.packet.content

    @property
    def time(self) -> float:
        """When it was captured."""
        return self.packet.time

    @property
    def outgoing(self) -> bool:
        """Whether the box has sent it."""
        return self.packet.outgoing

    @property
    def payload(self) -> bytes:
        """Its octets."""
        return self.tcp.payload


def goes_up(packet: Packet) -> bool:
    """Whether a packet is on its way to the server."""
    return packet.outgoing == (packet.side == SERVER)


def segment_ends(packet: Packet, tcp: Tcp) -> tuple[str, int, str, int]:
    """Address and port of a segment's client, and of its server."""
    if goes_up(packet):
        return tcp.src, tcp.sport, tcp.dst, tcp.dport
    return tcp.dst, tcp.dport, tcp.src, tcp.sport


@dataclass(slots=True)
class Half:
    """What one of the two ends of a leg has said.

    Attributes:
        syn: its SYN or SYN-ACK, None while there was none.
        top: one past the highest octet that it has sent, a FIN counted.
        ack: the highest acknowledgment number that it has sent, as an offset; a FIN counted.
        edge: how many octets it has permitted in all.
        fin: offset of its FIN.
        sent: the octets that it has sent, a FIN counted.
    """

    syn: Packet | None = None
    top: int = 0
    ack: int = 0
    edge: int = 0
    fin: int | None = None
    sent: RangeSet = field(default_factory=RangeSet)

    @property
    def whole(self) -> int:
        """How many octets it has sent without a gap, a FIN counted."""
        gap = self.sent.first_gap(0, self.top)
        return self.top if gap is None else gap[0]

    @property
    def first(self) -> Tcp | None:
        """Its SYN as dissected."""
        return None if self.syn is None else self.syn.content


@dataclass(slots=True)
class Leg:
    """A connection at one side.

    Attributes:
        side: of the box.
        ends: address and port of the caller, and of the callee.
        own: what the end at that side has said, that is, the tester.
        box: what the box has said.
        segments: all but SYNs, in order.
        packets: all packets, in order.
    """

    side: str
    ends: tuple[str, int, str, int]
    own: Half = field(default_factory=Half)
    box: Half = field(default_factory=Half)
    segments: list[Segment] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    _was_reset: bool = False

    @property
    def caller(self) -> Half:
        """Whoever sent the first SYN: the client, or the box."""
        return self.own if self.side == "client" else self.box

    @property
    def callee(self) -> Half:
        """The other one."""
        return self.box if self.side == "client" else self.own

    @property
    def began(self) -> float:
        """When the first SYN was seen."""
        return self.packets[0].time

    @property
    def syn(self) -> Tcp:
        """The first SYN."""
        found = self.packets[0].content
        assert found is not None
        return found

    @property
    def answered(self) -> Packet | None:
        """The SYN-ACK, None when there was none."""
        return self.callee.syn

    @property
    def is_completed(self) -> bool:
        """Whether the caller has answered the SYN-ACK, so that its handshake is complete."""
        by_box = self.caller is self.box
        return self.answered is not None and any(
            it.outgoing is by_box and it.ack is not None and not it.tcp.flags & (SYN | RST)
            for it in self.segments
        )

    @property
    def has_ended(self) -> bool:
        """Whether both have ended their streams, and both ends are acknowledged."""
        ends = self.own.fin, self.box.fin
        heard = self.box.ack, self.own.ack
        return all(fin is not None and ack > fin for fin, ack in zip(ends, heard, strict=True))

    def shift(self, half: Half) -> int:
        """The scale of the windows that a half sends."""
        both = [each.first for each in (self.own, self.box)]
        if any(tcp is None or tcp.window_scale is None for tcp in both) or half.first is None:
            return 0
        return min(half.first.window_scale or 0, LARGEST_SHIFT)

    def acked_before(self, number: int) -> int:
        """How many octets of the box's the end had acknowledged before a packet of that number."""
        return max(
            (it.ack for it in self.segments
             if not it.outgoing and it.ack is not None and it.packet.number < number),
            default=0,
        )  # fmt: skip

    def is_guess(self, seq: int, message: Packet, *, strict: bool = True) -> bool:
        """Whether a segment of the box that a message quotes was certainly not outstanding.

        Args:
            seq: its sequence number.
            message: that quotes it.
            strict: whether the next number is a guess, too, of which nothing has been sent.
        """
        if self.box.first is None:
            return True
        offset = nearest((seq - self.box.first.seq - 1) % MODULUS, 0)
        sent = (
            it.end + (it.fin is not None) for it in self.segments
            if it.outgoing and it.time < message.time + _CROSSES_S
        )  # fmt: skip
        top = max(sent, default=0)
        return (
            offset > top
            or (strict and offset == top)
            or offset < self.acked_before(message.number) - 1
        )

    def add(self, packet: Packet) -> None:
        """Take the next packet of the connection."""
        tcp = packet.content
        assert tcp is not None
        self.packets.append(packet)
        speaker, listener = (self.box, self.own) if packet.outgoing else (self.own, self.box)
        if tcp.flags & SYN:
            self._add_syn(packet, tcp, speaker, listener)
            return
        if speaker.first is None:
            # An end that never sent a SYN can only refuse, and has to name the SYN.
            refuses = bool(tcp.flags & RST) and (packet.outgoing or _names(listener, tcp))
            self._keep(Segment(packet, 0, 0, None, None, None, refuses))
            return
        self._add(packet, tcp, speaker, listener)

    def _add_syn(self, packet: Packet, tcp: Tcp, speaker: Half, listener: Half) -> None:
        """A SYN; one with another number than the first is none of this connection."""
        answers = not packet.outgoing and listener.first is not None and speaker.syn is None
        if answers and not _names(listener, tcp):  # another call, or none
            self._keep(Segment(packet, 0, 0, None, None, None, False))
            return
        if speaker.syn is None:
            speaker.syn = packet
            speaker.edge = tcp.window if tcp.flags & ACK else 0
        counts = speaker.first is not None and tcp.seq == speaker.first.seq
        ack = edge = None
        if tcp.flags & ACK and listener.first is not None:
            ack = nearest((tcp.ack - listener.first.seq - 1) % MODULUS, 0)
            edge = ack + tcp.window
        self._keep(Segment(packet, 0, tcp.size, None, ack, edge, counts))
        if counts:
            speaker.top = max(speaker.top, tcp.size)
            speaker.sent.add(0, tcp.size)

    def _add(self, packet: Packet, tcp: Tcp, speaker: Half, listener: Half) -> None:
        first = speaker.first
        assert first is not None
        start = nearest((tcp.seq - first.seq - 1) % MODULUS, listener.ack)
        end = start + tcp.size
        fin = end if tcp.flags & FIN else None
        ack = edge = None
        if tcp.flags & ACK and listener.first is not None:
            ack = nearest((tcp.ack - listener.first.seq - 1) % MODULUS, listener.top)
            edge = ack + (tcp.window << self.shift(speaker))
        counts, doubtful, at_edge = True, False, False
        until = end + (fin is not None)
        old = not packet.outgoing and start < listener.ack and until <= listener.ack
        if packet.outgoing:
            counts = -1 <= start <= speaker.top or not self._was_reset
            # A late segment of a connection that has ended is refused (RFC 9293 section 3.10.7.1).
            counts &= not (tcp.flags & RST and (self.has_ended or self._refuses(tcp)))
        if not packet.outgoing and tcp.flags & RST:
            expected = {listener.ack, speaker.whole}
            counts, doubtful = expected == {start}, start in expected
            counts |= start == self._asked()
        elif not packet.outgoing:
            counts = self._is_acceptable(start, ack, listener)
            if fin is not None and fin < listener.ack and fin != speaker.fin:
                counts, fin = False, None  # an octet has that number
            # A scaled window is named up to a unit; whether it was rounded up nobody sees.
            unit = 1 << self.shift(listener)
            at_edge = start > listener.edge - unit and start != listener.ack
        found = Segment(packet, start, end, fin, ack, edge, counts, doubtful, at_edge, old)
        self._keep(found)
        if not counts or tcp.flags & RST:
            return
        speaker.top = max(speaker.top, end + (fin is not None))
        speaker.sent.add(max(start, 0), end + (fin is not None))
        if fin is not None and speaker.fin is None:
            speaker.fin = fin
        if ack is not None and edge is not None:
            speaker.ack = max(speaker.ack, ack)
            speaker.edge = max(speaker.edge, edge)

    def _refuses(self, reset: Tcp) -> bool:
        """Whether a RST of the box answers a segment that is none of the connection."""
        if not self.segments or reset.flags & ACK:
            return False
        last = self.segments[-1]
        odd = not last.outgoing and not last.counts and bool(last.tcp.flags & ACK)
        return odd and last.tcp.ack == reset.seq

    def _asked(self) -> int | None:
        """The number that the box has named in its answer to a RST, if that is the last packet.

        So it says what it expects next (RFC 5961 section 3.2).
        """
        if len(self.segments) < 2:
            return None
        reset, answer = self.segments[-2:]
        asks = answer.outgoing and answer.ack is not None and not answer.tcp.flags & (SYN | RST)
        return answer.ack if asks and reset.tcp.flags & RST and not reset.outgoing else None

    def _keep(self, segment: Segment) -> None:
        self.segments.append(segment)
        self._was_reset |= segment.counts and bool(segment.tcp.flags & RST)

    @staticmethod
    def _is_acceptable(start: int, ack: int | None, listener: Half) -> bool:
        """Whether a segment of the tester may be one of its connection.

        The window is the widest that it can be; a probe lies one octet beyond it.
        """
        return ack is not None and 0 <= ack <= listener.top and -1 <= start <= listener.edge + 1


def _names(caller: Half, tcp: Tcp) -> bool:
    """Whether a segment acknowledges the caller's SYN, as one that accepts or refuses it does.

    RFC 9293 section 3.10.7.3 drops any other. Octets on the SYN need not be acknowledged.
    """
    syn = caller.first
    return syn is not None and bool(tcp.flags & ACK) and (
        1 <= (tcp.ack - syn.seq) % MODULUS <= 1 + len(syn.payload)
    )  # fmt: skip
