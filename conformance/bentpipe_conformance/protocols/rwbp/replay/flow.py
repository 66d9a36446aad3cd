"""One connection replayed from the implementation's side of the link.

:func:`read_flows` walks the packets captured at the ``iut`` point once. A connection without RWBP
has its opening and TCP's replay only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import takewhile
from typing import cast

from bentpipe_conformance.engine.lane import SIMULATION_ERROR_S
from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.engine.statement import Ics, declared
from bentpipe_conformance.protocols.rwbp.codec import SMALLEST_UNIT, Rwbp
from bentpipe_conformance.protocols.rwbp.replay import Packet, Trace
from bentpipe_conformance.protocols.rwbp.replay.events import (
    Ack,
    Arrival,
    Call,
    Event,
    Reply,
    Reset,
    Segment,
    Sent,
    after,
)
from bentpipe_conformance.protocols.rwbp.replay.link import Link, read_links
from bentpipe_conformance.protocols.rwbp.replay.opening import Opening
from bentpipe_conformance.protocols.rwbp.replay.receiver import Receiver
from bentpipe_conformance.protocols.rwbp.replay.sender import Sender
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN
from bentpipe_conformance.protocols.tcp.replay import flow as tcp_flow
from bentpipe_conformance.protocols.tcp.replay.connections import connections_of

DEFAULT_MSS = 536
"""Where the peer has no MSS option (section 5.2)."""

CROSSING_S = 0.002
"""Segments that pass this soon after one another may have crossed beside the capture."""


@dataclass(slots=True, eq=False)
class Flow:
    """One connection: its opening and its annotated events in time order.

    Attributes:
        tester, iut: (address, port) of each side.
        timing_error: seconds by which recorded times may be wrong.
        packets: every packet of the connection at the IUT's side.
        as_tcp: replays it as a connection of TCP.
        opening: the SYNs.
        agreed: whether RWBP is agreed; without it there are no events.
        events: everything in time order; the typed lists hold the same objects.
        leaving, arriving: all intact segments, in either direction.
        resets: RSTs in either direction, and whether the IUT sent them.
        tried: the tester's RSTs on a connection with RWBP, heeded or not.
        ended: number of the packet with which the connection was over for the IUT, or infinity.
        damaged: what the IUT has to discard without an answer: malformed or with a wrong checksum.
        sender, receiver: the halves, with what they found at their ends.
        siblings: all flows of the trace, itself included.
        link: what passes at the IUT's address, of whatever connection.
        established: when the handshake was complete for the IUT, None before.
    """

    tester: tuple[str, int]
    iut: tuple[str, int]
    timing_error: float
    packets: list[Packet]
    as_tcp: Callable[[], tcp_flow.Flow]
    opening: Opening = field(default_factory=Opening)
    agreed: bool = False
    events: list[Event] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    leaving: list[Segment] = field(default_factory=list)
    arriving: list[Segment] = field(default_factory=list)
    resets: list[Segment] = field(default_factory=list)
    tried: list[Reset] = field(default_factory=list)
    ended: float = math.inf
    damaged: list[Segment] = field(default_factory=list)
    established: float | None = None
    siblings: list[Flow] = field(default_factory=list)
    link: Link[Flow] = field(default_factory=lambda: Link(""))
    sender: Sender = field(default_factory=lambda: Sender(0, 0.0))
    receiver: Receiver = field(default_factory=lambda: Receiver(0, 0.0))

    @property
    def tcp(self) -> tcp_flow.Flow:
        """TCP's replay of it, for what is the same: it reads all window fields as octets."""
        return self.as_tcp()

    @property
    def slack(self) -> float:
        """Seconds by which an arrival and a departure may be in the wrong order."""
        error = self.timing_error
        return 0.0 if error <= SIMULATION_ERROR_S else error + CROSSING_S

    @property
    def service(self) -> str:
        """What the IUT's user does: a service of section 13, or empty where that is not known."""
        called = {port: name for name, port in STANDARD_SERVICES.items()}
        if self.opening.iut_calls:
            return ""  # its user may read and write as it likes
        return called.get(self.iut[1], "")

    def leaves_at_once(self, ics: Ics) -> bool:
        """Whether nothing but windows keeps a segment back: neither a link rate nor a gateway."""
        if not (declared(ics, "link_rate") or declared(ics, "gateway")):
            return True
        return ics.get("link_address", "") not in ("", self.iut[0])

    def sent_between(self, first: Sent, end: float) -> Iterator[Sent]:
        """The segments with data from one on, up to a time."""
        following = after(self.sent, first.packet.number - 1)
        return takewhile(lambda sent: sent.time <= end, following)

    @property
    def horizon(self) -> float:
        """Until when an answer of the IUT would show: the first RST, or the last packet."""
        if self.resets:
            return self.resets[0].time
        return self.packets[-1].time if self.packets else 0.0


class _Replay:
    """Walks one connection's packets."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.closed = False

    def packet(self, packet: Packet, tcp: Rwbp) -> None:
        flow, segment = self.flow, Segment(packet)
        if not packet.outgoing and (tcp.malformed or not tcp.checksum_ok):
            flow.damaged.append(segment)
            return
        (flow.leaving if packet.outgoing else flow.arriving).append(segment)
        if tcp.flags & SYN and not self._opened(segment):
            return
        opened = flow.opening.iut_calls and any(i.tcp.flags & ACK for i in flow.opening.theirs)
        early = packet.outgoing and flow.established is None and not opened
        if tcp.flags & RST and early and not tcp.flags & ACK:
            return  # an answer to a number that was never sent ends nothing (RFC 9293)
        if tcp.flags & RST and (packet.outgoing or self._resets(tcp)):
            if flow.agreed and not packet.outgoing and not self.closed:
                flow.tried.append(self._reset(packet, tcp, None))
            flow.resets.append(segment)
            self._close(packet)
        if not flow.agreed or self.closed:
            return
        flow.sender.passed(packet.time)
        flow.receiver.passed(packet.time)
        if packet.outgoing:
            self._leaving(packet, tcp)
        else:
            self._arriving(packet, tcp)

    def _resets(self, tcp: Rwbp) -> bool:
        return not self.flow.agreed or self.flow.receiver.offset(tcp.seq) == self.flow.receiver.nxt

    def _opened(self, segment: Segment) -> bool:
        """Take a SYN; whether it is a segment of an open connection instead."""
        flow, opening = self.flow, self.flow.opening
        if self.closed:
            return False  # another connection of the same ends
        if flow.established is not None and not segment.packet.outgoing:
            return True
        # Once SYNs have crossed, that is no longer SYN-SENT, and any SYN is acknowledged.
        calls = opening.iut_calls and not opening.theirs
        answers = calls and not segment.packet.outgoing and segment.tcp.flags & ACK
        if answers and segment.tcp.ack != (opening.own[0].tcp.seq + 1) % MODULUS:
            return False  # RFC 9293 section 3.10.7.3, first check
        (opening.own if segment.packet.outgoing else opening.theirs).append(segment)
        if opening.agreed and not flow.agreed:
            self._agree()
        elif flow.agreed and not segment.packet.outgoing and not self._completes(segment):
            # A SYN in the window is acknowledged in SYN-RECEIVED, too, with ACK or without (5.4).
            flow.receiver.opening(segment.packet, Call.CHALLENGE, certainly=False)
        if flow.agreed and segment.packet.outgoing and len(opening.own) > 1:
            asked = len(opening.theirs) >= len(opening.own)
            flow.sender.estimate.repeated(certainly=not asked)
        if flow.agreed and self._completes(segment):
            self._establish(segment)
            called = opening.iut_calls and not opening.crossed
            flow.receiver.opening(segment.packet, Call.HANDSHAKE, certainly=called)
        return False

    def _completes(self, segment: Segment) -> bool:
        """Whether a SYN of either side completes the handshake.

        Where SYNs have crossed it is the peer's SYN-ACK (RFC 9293 section 3.5, figure 8), and in
        SYN-RECEIVED that of a caller does the same (section 5.4).
        """
        opening, tcp = self.flow.opening, segment.tcp
        is_answer = not segment.packet.outgoing and bool(tcp.flags & ACK)
        acknowledges = tcp.ack == (opening.own[0].tcp.seq + 1) % MODULUS
        return is_answer and acknowledges and tcp.seq == opening.theirs[0].tcp.seq

    def _agree(self) -> None:
        flow = self.flow
        offer, answer = flow.opening.offer, flow.opening.answer
        assert offer is not None and answer is not None
        theirs, own = offer.counting, answer.counting
        assert theirs is not None and own is not None
        flow.agreed = True
        flow.sender = sender = Sender(answer.seq, flow.slack)
        flow.receiver = receiver = Receiver(offer.seq, flow.slack)
        mss = DEFAULT_MSS if offer.mss is None else max(SMALLEST_UNIT, offer.mss)
        if flow.link.told:
            sender.patience = math.inf  # the gateway may hold up everything
        sender.unit, sender.smss = theirs.unit, min(mss, theirs.unit, own.unit)
        sender.edge, sender.buffer = offer.window, min(sender.buffer, answer.window)
        receiver.interval, receiver.unit = theirs.interval, own.unit
        receiver.edge = receiver.named = answer.window
        if len(flow.opening.own) > 1:
            sender.estimate.repeated(certainly=len(flow.opening.theirs) < len(flow.opening.own))

    def _establish(self, segment: Segment) -> None:
        flow = self.flow
        flow.established = segment.time
        if len(flow.opening.own) == 1:
            flow.sender.estimate.sample(segment.time - flow.opening.own[0].time)
        flow.sender.endless = flow.service in ("chargen",)
        if flow.service == "discard":
            flow.sender.written = None
        elif flow.service == "echo":
            flow.sender.written = 0
        flow.sender.look(segment)

    def _leaving(self, packet: Packet, tcp: Rwbp) -> None:
        flow, sender = self.flow, self.flow.sender
        if not tcp.flags & ACK or tcp.flags & (RST | SYN):
            return
        start = sender.offset(tcp.seq)
        reply = flow.receiver.leaving(packet, tcp, start, sender.nxt)
        flow.replies.append(reply)
        flow.events.append(reply)
        if reply.probe:
            sender.probed(reply)
        if tcp.length:
            sent = sender.leaving(packet, tcp)
            flow.sent.append(sent)
            flow.events.append(sent)

    def _arriving(self, packet: Packet, tcp: Rwbp) -> None:
        flow, receiver, sender = self.flow, self.flow.receiver, self.flow.sender
        acceptable = receiver.acceptable(tcp)
        refused = False
        ordinary = tcp.flags & ACK and not tcp.flags & (RST | SYN)
        if ordinary:
            if flow.established is None and acceptable:
                if sender.offset(tcp.ack):
                    return  # answered by a RST; the SYN is still unacknowledged (RFC 9293)
                self._establish(Segment(packet))
            # An empty window refuses a segment, and not its acknowledgment (section 5.4).
            shut = receiver.edge <= receiver.nxt == receiver.offset(tcp.seq)
            ack = sender.arriving(packet, tcp, acceptable or shut)
            ack.at_edge = receiver.nxt < receiver.edge == receiver.offset(tcp.seq)
            refused = ack.refused
            flow.acks.append(ack)
            flow.events.append(ack)
        arrival = receiver.arriving(packet, tcp, refused)
        if tcp.flags & RST:
            flow.tried.append(self._reset(packet, tcp, arrival))
        if arrival is not None:
            flow.arrivals.append(arrival)
            flow.events.append(arrival)
        closes = receiver.delivered < receiver.nxt
        if closes:
            sender.endless = False
            if flow.service == "discard":
                sender.written = 0
            # Chargen drops what waits (section 13), perhaps before it closes.
            sender.closing = sender.written is not None
        if sender.written is not None:
            sender.written = receiver.delivered if flow.service == "echo" else 0
            sender.look(Segment(packet))
        if closes and sender.fin is not None and sender.una >= sender.fin:
            self._close(packet)

    def _reset(self, packet: Packet, tcp: Rwbp, arrival: Arrival | None) -> Reset:
        receiver = self.flow.receiver
        start = receiver.offset(tcp.seq)
        return Reset(packet, start, receiver.nxt, receiver.edge, arrival)

    def _close(self, packet: Packet) -> None:
        if not self.closed:
            self.flow.ended = packet.number
        if not self.closed and self.flow.agreed:
            self.flow.sender.finish(packet.time)
            self.flow.sender.note_ready(packet.time, False)
            self.flow.receiver.passed(packet.time)
        self.closed = True
        self.flow.receiver.over = True

    def finish(self) -> None:
        if not self.closed and self.flow.agreed:
            now = self.flow.horizon
            self.flow.sender.finish(now)
            self.flow.receiver.passed(now)


def _nth(flows: Callable[[], list[tcp_flow.Flow]], number: int) -> tcp_flow.Flow:
    return flows()[number]


def read_flows(trace: Trace) -> list[Flow]:
    """Every connection of a trace, replayed at the ``iut`` capture point."""
    # TCP's replay is needed for connections without RWBP only, and takes as long as all the rest.
    as_tcp = cache(partial(tcp_flow.read_flows, trace))
    flows = [
        Flow(*ends, trace.timing_error, cast(list[Packet], packets), partial(_nth, as_tcp, number))
        for number, (ends, packets) in enumerate(connections_of(trace))
    ]
    links = read_links(trace.at("iut"), flows)
    for flow in flows:
        flow.siblings, flow.link = flows, links[flow.iut[0]]
        replay = _Replay(flow)
        for packet in flow.packets:
            if packet.content is not None:
                replay.packet(packet, packet.content)
        replay.finish()
    return flows
