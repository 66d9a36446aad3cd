"""One connection replayed from the implementation's side of the link.

:func:`read_flows` walks the packets captured at the ``iut`` point once and annotates each with
what the implementation could know at that moment; :mod:`.events` defines the terms.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from bentpipe_conformance.protocols.tcp.codec import ACK, PSH, RST, SYN, Tcp
from bentpipe_conformance.protocols.tcp.replay import Packet, Trace
from bentpipe_conformance.protocols.tcp.replay.connections import connections_of
from bentpipe_conformance.protocols.tcp.replay.events import (
    Ack,
    Arrival,
    Event,
    Reply,
    Segment,
    Sent,
)
from bentpipe_conformance.protocols.tcp.replay.handshake import Handshake, passed_over
from bentpipe_conformance.protocols.tcp.replay.order import count_through
from bentpipe_conformance.protocols.tcp.replay.receiver import Receiver
from bentpipe_conformance.protocols.tcp.replay.resets import Expected
from bentpipe_conformance.protocols.tcp.replay.sender import Sender

REACTION_S = 0.02
"""A segment that leaves within this time of an arrival counts as caused by it; later, as timed.

It lies well below the fastest retransmission timer in use (200 ms) and above the slowest reaction
of a scheduled process seen in a quiet bed (10 ms); the bed's own timing error is added to it.
"""

ANSWERED_S = 0.5
"""Seconds within which a SYN-ACK is acknowledged by who takes it (SNR-CON-030)."""

DEFAULT_MSS = 536
"""Send MSS when the peer's SYN has no MSS option (RFC 9293 section 3.7.1)."""

DEFAULT_MSS_IPV6 = 1220
"""The same over IPv6."""

UNCUT = 1460
"""No segment longer than this and the peer's MSS was on a wire."""

MOST_OPTIONS = 40
"""Octets of TCP options at most (RFC 9293 section 3.1)."""

SMALLEST_MSS = 48
"""Stacks refuse to send less, even if the peer's MSS option is smaller (SNR-OPT-009)."""

MAX_WINDOW_SHIFT = 14
"""RFC 7323 section 2.3."""


class Freedom(Enum):
    """What an implementation may do, and nothing shows that it did.

    The first ones by RFC 9293 section 3.10.7.4.
    """

    HEEDS = "heeds the acknowledgment of what a closed window keeps out"
    HEEDS_COPIES = "heeds that of a copy as well"
    REFUSES = "refuses what lies at the right edge of the window"
    REFUSES_BEYOND = "refuses what lies beyond a right edge that has moved back"
    KEEPS_WINDOW = "takes no window from an older segment"
    RUNS_SHORT = "has less than a segment waiting, which Nagle's rule holds (section 3.7.4)"
    TIMES_SEGMENTS = "counts a timeout from the transmission of a segment (RFC 6298 section 5)"


class Habit(Enum):
    """What an implementation is known to do against the text: a reading of known deviations."""

    KEEPS_WIDER_WINDOWS = "keeps-wider-windows"
    """A window counts with a new acknowledgment, a newer segment, or when it is wider or zero;
    everything else that repeats an acknowledgment is a duplicate (Linux, tcp_may_update_window).
    Newer means newer than the last such segment."""
    PREDICTS_TEXT = "predicts-text"
    """Or newer than the text that header prediction has taken since (Linux, tcp_rcv_established),
    which it does not take where the socket lacks the memory."""
    COUNTS_OLD_TIMESTAMPS = "counts-old-timestamps"
    """A bare duplicate is one whatever its timestamp (Linux, tcp_disordered_ack), and a bare
    acknowledgment whose timestamp is a tick too old is taken (TCP_PAWS_WINDOW)."""
    TAKES_ANY_ACKNOWLEDGMENT = "takes-any-acknowledgment"
    """One without data is taken whatever its number (ns-3, DoForwardUp looks at data alone)."""


@dataclass(slots=True, eq=False)
class Flow:
    """One connection: its handshake and its annotated events in time order.

    Attributes:
        tester, iut: (address, port) of each side.
        timing_error: seconds by which recorded times may be wrong.
        handshake: the opening segments.
        events: everything in time order; the typed lists below hold the same objects.
        packets: every packet of the connection at the IUT's side.
        leaving, arriving: what left the IUT and what reached it, handshake and RST included.
        resets: RST segments, either direction.
        ending: the first of them that may have ended the connection: it does not lie outside the
            window, nor has the IUT gone on after it.
        damaged: segments with a wrong checksum, either direction; no other list holds them.
        misaligned: intact segments with an impossible data offset, the same.
        mss: largest payload the tester allows (its MSS option or 536, at least 48), options
            not deducted.
        segment: the largest payload the IUT actually sent, or ``mss`` when it sent none.
        listening: whether the IUT answered any SYN to this port with a SYN-ACK in the trace.
        eldest: the IUT's first SYN of all connections.
        alike: its first SYN with the same number, of this connection or one before it.
        whole: (source, sequence number, octets) of large segments that reached the tester uncut.
        reading: the freedoms, and the habits, that its implementation is supposed to use.
        timed: numbers of segments that, in this reading, a timer sent though something had just
            arrived.
        doubts: the freedoms that would change what some packet of it means.
        source: its packets, damaged ones included.
    """

    tester: tuple[str, int]
    iut: tuple[str, int]
    timing_error: float = 0.0
    handshake: Handshake = field(default_factory=Handshake)
    events: list[Event] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    leaving: list[Segment] = field(default_factory=list)
    arriving: list[Segment] = field(default_factory=list)
    resets: list[Packet] = field(default_factory=list)
    ending: Packet | None = None
    damaged: list[Segment] = field(default_factory=list)
    misaligned: list[Segment] = field(default_factory=list)
    mss: int = DEFAULT_MSS
    segment: int = DEFAULT_MSS
    listening: bool = False
    eldest: Packet | None = None
    alike: Packet | None = None
    whole: frozenset[tuple[str, int, int]] = frozenset()
    reading: frozenset[Freedom | Habit] = frozenset()
    timed: frozenset[int] = frozenset()
    doubts: set[Freedom] = field(default_factory=set)
    source: list[Packet] = field(default_factory=list)

    @property
    def last_time(self) -> float:
        """Time of the last packet; 0.0 when there is none."""
        return self.packets[-1].time if self.packets else 0.0

    @property
    def horizon(self) -> float:
        """Until when an answer of the IUT would show: the first RST, or the last packet."""
        return self.resets[0].time if self.resets else self.last_time

    @property
    def first_reset(self) -> float:
        """Number of the first RST, after which nothing need be sent any more; or infinity."""
        return self.resets[0].number if self.resets else math.inf

    @property
    def until_reset(self) -> Sequence[Event]:
        """The events up to the first RST that may have ended it."""
        if self.ending is None:
            return self.events
        return self.events[: count_through(self.events, self.ending.number)]

    @property
    def own_reset(self) -> Segment | None:
        """The IUT's first RST."""
        return next((Segment(packet) for packet in self.resets if packet.outgoing), None)

    @property
    def reaction(self) -> float:
        """Seconds within which an answer counts as caused by an arrival, the bed's error added."""
        return REACTION_S + self.timing_error

    def between(self, start: float, end: float) -> list[Sent]:
        """Segments with data the IUT sent in [start, end)."""
        first = bisect_left(self.sent, start, key=lambda item: item.time)
        return self.sent[first : bisect_left(self.sent, end, lo=first, key=lambda item: item.time)]

    def after(self, packet: Packet, end: float) -> list[Sent]:
        """Segments with data the IUT sent after a packet and before ``end``."""
        first = count_through(self.sent, packet.number)
        return self.sent[first : bisect_left(self.sent, end, lo=first, key=lambda item: item.time)]


class _Replay:
    """Walks one connection's packets; see :func:`read_flows`.

    Attributes:
        at: how many of its packets have been walked, the one at hand included.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.sender = Sender(
            flow.reaction,
            timed=flow.timed,
            strict=Freedom.KEEPS_WINDOW in flow.reading,
            widest=Habit.KEEPS_WIDER_WINDOWS in flow.reading,
        )
        self.receiver = Receiver(flow.reaction)
        self.at = 0
        self._outgoing: list[int] = []
        self.over = False
        self._expected = Expected(flow)

    def packet(self, packet: Packet, tcp: Tcp) -> None:
        flow, event = self.flow, None
        self.receiver.time = packet.time
        flow.packets.append(packet)
        if tcp.flags & RST:
            self.over = self.over or self._is_heeded(packet)
            flow.resets.append(packet)
            stray = not packet.outgoing and self.receiver.is_outside(tcp)
            if flow.ending is None and not (stray and flow.handshake.established is not None):
                flow.ending = packet
        elif self.over:
            pass  # it is of no connection any more
        elif tcp.flags & SYN:
            self._syn(packet, tcp)
        elif flow.handshake.iut is not None and flow.handshake.tester is not None:
            event = (self._leaving if packet.outgoing else self._arriving)(packet, tcp)
            if flow.ending is not None and self._goes_on(packet, flow.ending):
                flow.ending = None
        # What is one segment is one object.
        way = flow.leaving if packet.outgoing else flow.arriving
        way.append(Segment(packet) if event is None else event)

    def _goes_on(self, packet: Packet, reset: Packet) -> bool:
        """Whether a segment shows that the IUT has not heeded a RST."""
        later = packet.time - reset.time > self.flow.reaction
        return packet.outgoing and not reset.outgoing and later

    def _is_heeded(self, packet: Packet) -> bool:
        """Whether a RST of the tester certainly has ended the connection."""
        established = self.flow.handshake.established is not None
        segment = Segment(packet)
        sound = not packet.outgoing and segment.tcp.options_ok
        return sound and established and self._expected.is_next(segment)

    def _syn(self, packet: Packet, tcp: Tcp) -> None:
        handshake = self.flow.handshake
        if packet.outgoing:
            if handshake.iut is None:
                handshake.iut = packet
                handshake.iut_opens = not tcp.flags & ACK
                self.sender.opened(tcp)
            self.receiver.offers(tcp.window)
        elif handshake.tester is None and not self._is_refused(packet, tcp):
            handshake.tester = packet
            self.receiver.opened(tcp)
            # An MSS of zero cannot be intended; Linux treats it as absent.
            default = DEFAULT_MSS_IPV6 if ":" in tcp.src else DEFAULT_MSS
            self.flow.mss = max(SMALLEST_MSS, tcp.mss or default)
            # The window field of a SYN is never scaled (RFC 7323 section 2.2).
            self.sender.edge = tcp.window
            if handshake.iut_opens:  # in LISTEN no window is taken (RFC 9293 section 3.10.7.2)
                self.sender.widest = tcp.window
            self.sender.last_in = packet.time
        elif handshake.tester is not None:
            self.receiver.repeated_syn(packet.time, tcp)
        if self._completes(packet, tcp):
            handshake.established = packet.time
            self.sender.answered(tcp)
        if handshake.window_scale and handshake.offer and handshake.answer:
            self.sender.shift = min(handshake.offer.window_scale or 0, MAX_WINDOW_SHIFT)
            self.receiver.shift = min(handshake.answer.window_scale or 0, MAX_WINDOW_SHIFT)
        self.sender.sack = handshake.sack
        self.receiver.timestamps = handshake.timestamps

    def _is_refused(self, packet: Packet, tcp: Tcp) -> bool:
        """Whether a SYN-ACK acknowledges something other than the IUT's SYN, or was passed over.

        So may a SYN be where the two cross.
        """
        if not self.flow.handshake.iut_opens:
            return False
        if tcp.flags & ACK and not self._answers(tcp):
            return True
        if passed_over(tcp, self._first_plain):
            return True
        return not tcp.options_ok and not self._is_heard(packet)

    def _is_heard(self, packet: Packet) -> bool:
        """Whether what leaves next may answer a SYN or SYN-ACK: it does so soon, and calls not."""
        answer = self._next_outgoing()
        if answer is None or answer.content is None:
            return False
        waited, calls = answer.time - packet.time, answer.content.flags & (SYN | ACK) == SYN
        return waited <= self.flow.reaction + (0.0 if calls else ANSWERED_S)

    @cached_property
    def _first_plain(self) -> Tcp | None:
        """The first acknowledgment of the IUT without SYN and RST."""
        left = (item.content for item in self.flow.source if item.outgoing)
        return next((t for t in left if t and t.flags & (ACK | SYN | RST) == ACK), None)

    def _answers(self, tcp: Tcp) -> bool:
        """Whether a SYN-ACK acknowledges the IUT's SYN, with or without the data in it."""
        syn = self.flow.handshake.answer
        return 0 <= self.sender.offset(tcp.ack) <= (syn.size if syn is not None else 0)

    def _completes(self, packet: Packet, tcp: Tcp) -> bool:
        """Whether a SYN-ACK is the first that answers the IUT's SYN."""
        handshake = self.flow.handshake
        if packet.outgoing or not tcp.flags & ACK or not handshake.iut_opens:
            return False
        taken = handshake.tester is not None  # not refused
        return taken and handshake.established is None and self._answers(tcp)

    def _refused(self, packet: Packet) -> bool:
        """Whether the IUT shows that it refused what it may refuse: it answers it."""
        answer = self._next_outgoing()
        if answer is None or answer.time - packet.time > self.flow.reaction:
            return False
        reply = answer.content
        pure = reply is not None and reply.flags & ACK and not reply.flags & (RST | SYN)
        return bool(pure) and reply is not None and self.receiver.repeats(reply)

    def _next_outgoing(self) -> Packet | None:
        """The packet that leaves next."""
        packets = self.flow.source
        if not self._outgoing:
            self._outgoing = [at for at, item in enumerate(packets) if item.outgoing]
        after = bisect_left(self._outgoing, self.at)
        return packets[self._outgoing[after]] if after < len(self._outgoing) else None

    def _acknowledged(self, packet: Packet, tcp: Tcp) -> Ack:
        reading, doubts = self.flow.reading, self.flow.doubts
        start, number = self.receiver.offset(tcp.seq), self.sender.offset(tcp.ack)
        may_refuse = self.receiver.may_refuse(tcp, start)
        # What is above a gap is answered at once, taken or not.
        shown = may_refuse and not (tcp.length and start > self.receiver.expected)
        rejected = self.receiver.rejects(tcp, start) or (shown and self._refused(packet))
        # One whose options cannot be read may be dropped.
        may_refuse = may_refuse or not tcp.options_ok
        heeds: set[Freedom] = self._may_heed(tcp) if rejected else set()
        beyond = self.receiver.lies_behind(start)
        freedom = Freedom.REFUSES_BEYOND if beyond else Freedom.REFUSES
        refuses = {freedom} if may_refuse and not rejected else set()
        if reading & heeds:
            rejected = False
        elif reading & refuses:
            rejected = True
        if Habit.COUNTS_OLD_TIMESTAMPS in reading and self.receiver.only_its_timestamp(tcp):
            counts = self.sender.repeats(tcp) or self.receiver.is_a_tick_old(tcp)
            rejected = rejected and not counts
        if Habit.TAKES_ANY_ACKNOWLEDGMENT in reading and not tcp.payload:
            rejected = False
        old, edge = self.sender.is_old(start, number), self.sender.edge
        current = self.sender.current_edge
        ack = self.sender.acknowledged(
            packet, tcp, start, number, rejected=rejected, may_heed=bool(heeds),
            may_refuse=may_refuse,
        )  # fmt: skip
        if Habit.PREDICTS_TEXT in reading and self.receiver.predicts(tcp):
            self.sender.predicted(start, ack)
        if (old or heeds or refuses) and not (ack.ancient or ack.beyond):
            news = ack.duplicate or ack.newly_sacked > 0 or _would_report(ack)
            offers = ack.window_edge != edge if refuses else ack.window_edge > current
            matters = ack.ack > ack.una or offers or news
            doubts |= heeds | refuses if matters else set()
            doubts |= {Freedom.KEEPS_WINDOW} if old and not rejected else set()
        return ack

    def _may_heed(self, tcp: Tcp) -> set[Freedom]:
        """The freedoms by which the acknowledgment of a rejected segment counts."""
        heeds = {Freedom.HEEDS} if self.receiver.shut_out(tcp) else set()
        return heeds | {Freedom.HEEDS_COPIES} if self.receiver.is_copy(tcp) else heeds

    def _leaving(self, packet: Packet, tcp: Tcp) -> Segment | None:
        """A segment left; what it was."""
        flow = self.flow
        if flow.handshake.established is None and tcp.length and not tcp.flags & SYN:
            flow.handshake.established = packet.time  # so that what may be refused was not
        reply = self.receiver.replying(packet, tcp)
        if reply is not None:
            flow.replies.append(reply)
            flow.events.append(reply)
        if tcp.length:
            sent = self.sender.leaving(packet, tcp)
            if sent.new and Freedom.RUNS_SHORT not in flow.doubts:
                pushed = bool(flow.sent and flow.sent[-1].tcp.flags & PSH)
                if pushed or flow.handshake.iut_opens:
                    flow.doubts.add(Freedom.RUNS_SHORT)
            flow.sent.append(sent)
            flow.events.append(sent)
            return sent
        return reply

    def _arriving(self, packet: Packet, tcp: Tcp) -> Segment | None:
        """A segment arrived; what it was."""
        # What has no ACK is dropped, perhaps before its timestamp counts.
        flow, unsent, low, sure, ack = self.flow, False, False, False, None
        if tcp.flags & ACK:
            ack = self._acknowledged(packet, tcp)
            # RFC 5961 section 5.2 drops what acknowledges too little, or too much.
            low = ack.ack < ack.una - self.sender.widest
            # So does RFC 9293 in SYN-RECEIVED, with what does not acknowledge the SYN (fifth).
            unsent = ack.beyond or (flow.handshake.established is None and ack.ancient)
            # What is dropped for its acknowledgment may be dropped before its timestamp counts.
            sure = not (ack.ancient or ack.beyond)
            flow.acks.append(ack)
            flow.events.append(ack)
            if flow.handshake.established is None and ack.acceptable and not ack.may_refuse:
                flow.handshake.established = packet.time
        self.sender.last_in = packet.time
        arrival = self.receiver.arriving(packet, tcp, unsent=unsent, low=low, sure=sure)
        if arrival is not None:
            flow.arrivals.append(arrival)
            flow.events.append(arrival)
            return arrival
        return ack


def _would_report(ack: Ack) -> bool:
    """Whether a segment to be dropped would be a duplicate, or report something newly held."""
    again = ack.ack == ack.una < ack.max and not ack.tcp.length
    return ack.rejected and (again or bool(set(ack.blocks).difference(ack.sacked)))


def replayed(flow: Flow, packets: list[Packet]) -> Flow:
    """An empty flow filled from its packets."""
    flow.source = packets
    replay = _Replay(flow)
    for number, packet in enumerate(packets, start=1):
        tcp = packet.content
        if tcp is None:
            continue
        if not tcp.checksum_ok:
            flow.damaged.append(Segment(packet))
        elif not tcp.offset_ok:
            flow.misaligned.append(Segment(packet))
        else:
            replay.at = number
            replay.packet(packet, tcp)
    if len(flow.packets) == len(packets):
        flow.packets = packets  # equal lists are one
    return flow


def read_flows(trace: Trace) -> list[Flow]:
    """Every TCP connection of a trace, replayed at the ``iut`` capture point."""
    connections = connections_of(trace)
    flows = [replayed(Flow(*ends, trace.timing_error), packets) for ends, packets in connections]
    arrived = (packet.content for packet in trace.at("peer"))
    whole = frozenset((tcp.src, tcp.seq, tcp.size) for tcp in arrived if tcp and tcp.size > UNCUT)
    open_ports = {flow.iut for flow in flows if flow.handshake.iut is not None}
    syns: dict[int, Packet] = {}
    for flow in flows:
        if (syn := flow.handshake.iut) is not None and syn.content is not None:
            flow.alike = syns.setdefault(syn.content.seq, syn)
            flow.eldest = next(iter(syns.values()))
    for flow in flows:
        flow.listening = flow.iut in open_ports
        flow.whole = whole
        flow.segment = largest_sent(flow)
    return flows


def largest_sent(flow: Flow) -> int:
    """The largest segment a flow sent; the peer's MSS where it sent none.

    One beyond both is not a segment yet: segmentation offload cuts it after the capture.
    """
    limit = max(flow.mss, UNCUT)
    whole = (item.payload for item in flow.sent if item.payload <= limit)
    cut = any(item.payload > limit for item in flow.sent)
    largest = max(whole, default=0)
    return max(largest, flow.mss - MOST_OPTIONS) if cut else largest or flow.mss
