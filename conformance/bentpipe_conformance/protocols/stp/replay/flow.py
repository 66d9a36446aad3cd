"""One connection replayed from the implementation's side of the link.

:func:`read_flows` walks the packets captured at the ``iut`` point once and tells for each what the
implementation (IUT) could know then. It follows the state table (section 9) as far as the packets
show it; where they do not, the state is None and nothing is claimed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    C,
    R,
    Stp,
)
from bentpipe_conformance.protocols.stp.numbers import near, tag_of
from bentpipe_conformance.protocols.stp.replay import Packet, Trace
from bentpipe_conformance.protocols.stp.replay.events import (
    Event,
    Other,
    PollHeard,
    PollSent,
    ReportHeard,
    ReportSent,
    SdHeard,
    SdSent,
)
from bentpipe_conformance.protocols.stp.replay.incarnations import Incarnation, separate
from bentpipe_conformance.protocols.stp.replay.receiver import Receiver
from bentpipe_conformance.protocols.stp.replay.sender import Sender

IDLE, CALLING, CALLED, OPEN, RELEASING = 1, 2, 3, 10, 4
"""The states of section 4, with SSCOP's numbers."""

CONFIRMATION_S = 32.0
"""Life of a connection in state 3 (section 8)."""

LEAST_BESIDE = 4
"""Calls between the same addresses and ports that must be able to wait (STP-SEC-002)."""

RELEASE_S = 31.0
"""Seconds after the first END with which an END's repetitions are over: 1 + 2 + 4 + 8 + 16, twice
that with path class vbdc; the state is unknown from the shorter of them on."""

TAGGED = (SD, SDP, POLL, STAT, USTAT)
"""Types whose tag is checked (section 4)."""


@dataclass
class Flow:
    """One connection, or packets on ports that never had one.

    Attributes:
        incarnation: between what, and the CSNs.
        timing_error: seconds by which recorded times may be wrong.
        events: everything in order; an SDP gives two events.
        begins: BEGINs with the connection's CSNs that left or reached the IUT, in order.
        bgaks: BGAKs that left or reached the IUT, in order.
        sender: the IUT as a sender; None when its ISS was never seen.
        receiver: the IUT as a receiver; None when the tester's ISS was never seen.
        established: when the IUT saw the connection open, None if never.
        known: whether it opened without asking for confirmation.
        ended: when the connection ended for the IUT, None if it did not.
        iut_max_sd, tester_max_sd: announced MaxSD, None when there was none.
        state: the IUT's state after the last packet, None when unknown.
        until: the time of the trace's last packet.
        pending_beside: other calls that awaited confirmation while this one did (STP-SEC-002).
        state_before: the IUT's state before each packet, by frame number; None when unknown.
        beside: other calls that came to its ports while it awaited confirmation (STP-CC-033).
        displaced_in: the state in which another connection took its ports; None when none did, or
            when the state was unknown.
        changes: when the state changed, and to what.
        neighbours: all connections of the trace with the same tester's address, this one among
            them, in the order of their first packets.
    """

    incarnation: Incarnation
    timing_error: float
    events: list[Event] = field(default_factory=list)
    begins: list[Packet] = field(default_factory=list)
    bgaks: list[Packet] = field(default_factory=list)
    sender: Sender | None = None
    receiver: Receiver | None = None
    established: float | None = None
    known: bool = False
    ended: float | None = None
    iut_max_sd: int | None = None
    tester_max_sd: int | None = None
    state: int | None = IDLE
    until: float = 0.0
    pending_beside: int = 0
    state_before: dict[int, int | None] = field(default_factory=dict)
    beside: int = 0
    displaced_in: int | None = None
    changes: list[tuple[float, int | None]] = field(default_factory=list)
    neighbours: Sequence[Flow] = ()

    @property
    def packets(self) -> list[Packet]:
        """Its packets at the IUT's side."""
        return self.incarnation.packets

    @property
    def iut_csn(self) -> int | None:
        """The IUT's CSN, None when no packet tells."""
        return self.incarnation.iut_csn

    @property
    def tester_csn(self) -> int | None:
        """The tester's CSN, None when no packet tells."""
        return self.incarnation.tester_csn

    @property
    def service(self) -> int:
        """The IUT's port."""
        return self.incarnation.ends[4]

    @property
    def iut_calls(self) -> bool:
        """Whether the IUT sent the first BEGIN."""
        return self.incarnation.iut_calls

    @property
    def sds_sent(self) -> list[SdSent]:
        """Every SD the IUT sent, in order."""
        return self.sender.sent if self.sender else []

    @property
    def polls_sent(self) -> list[PollSent]:
        """Every POLL and SDP the IUT sent, in order."""
        return self.sender.polls if self.sender else []

    @property
    def reports_heard(self) -> list[ReportHeard]:
        """Every STAT and USTAT that reached the open IUT, and the BGAK that opened it."""
        return self.sender.reports if self.sender else []

    @property
    def sds_heard(self) -> list[SdHeard]:
        """Every SD that reached the IUT, in order."""
        return self.receiver.sds if self.receiver else []

    @property
    def polls_heard(self) -> list[PollHeard]:
        """Every POLL and SDP that reached the IUT, in order."""
        return self.receiver.polls if self.receiver else []

    @property
    def reports_sent(self) -> list[ReportSent]:
        """Every STAT and USTAT the IUT sent, in order."""
        return self.receiver.reports if self.receiver else []

    @property
    def others(self) -> list[Other]:
        """The events of no other kind."""
        return [event for event in self.events if isinstance(event, Other)]

    def state_at(self, time: float) -> int | None:
        """The IUT's state just before a moment; None when unknown."""
        place = bisect_left(self.changes, time, key=lambda change: change[0])
        return self.changes[place - 1][1] if place else IDLE

    def after(self, time: float, within: float) -> list[Packet]:
        """What left the IUT later than ``time``, up to ``within`` seconds after it."""
        return [
            packet for packet in self.packets
            if packet.outgoing and time <= packet.time <= time + within
        ]  # fmt: skip


def read_flows(trace: Trace) -> list[Flow]:
    """Every connection of a trace, replayed, in the order of their first packets."""
    until = max((packet.time for packet in trace.packets), default=0.0)
    incarnations = separate(trace)
    flows = [
        _Replay(Flow(item, trace.timing_error, until=until), _meetings(item, incarnations)).run()
        for item in incarnations
    ]
    _count_pending(flows)
    for flow in flows:
        address = flow.incarnation.ends[:2]
        flow.neighbours = [other for other in flows if other.incarnation.ends[:2] == address]
    return flows


@dataclass(frozen=True, slots=True)
class _Meeting:
    """What happens to another connection on the same ports.

    Attributes:
        packet: its first packet, or the BGAK that confirms it.
        confirms: whether it is the latter.
        asked: whether the IUT asked it for confirmation, of which the other one comes in time.
    """

    packet: Packet
    confirms: bool
    asked: bool


def _meetings(item: Incarnation, every: Sequence[Incarnation]) -> list[_Meeting]:
    """The beginnings of later connections on the same ports, and confirmations of any."""
    found = []
    for other in every:
        if other is item or other.ends != item.ends or other.iut_csn is None:
            continue
        bgaks = [p for p in other.packets if p.content is not None and p.content.type == BGAK]
        first = next((p for p in bgaks if p.outgoing), None)
        flags = first.content.flags if first is not None and first.content is not None else 0
        asked = bool(flags & C) and not other.iut_calls
        if other.start > item.start:
            begin = next((p for p in other.packets if p.number >= other.start), None)
            if begin is not None:
                found.append(_Meeting(begin, False, asked))
        confirmed = next((p for p in bgaks if not p.outgoing and _returns_csns(other, p)), None)
        if confirmed is None or confirmed.number < item.start:
            continue
        if asked and first is not None:
            in_time = confirmed.time - first.time < 0.99 * CONFIRMATION_S
            found.append(_Meeting(confirmed, True, in_time))
    return sorted(found, key=lambda meeting: meeting.packet.number)


def _returns_csns(item: Incarnation, packet: Packet) -> bool:
    stp = packet.content
    assert stp is not None
    return stp.wellformed and (stp.csn, stp.peer_csn) == (item.tester_csn, item.iut_csn)


def _count_pending(flows: Sequence[Flow]) -> None:
    """Tell every call that was asked for confirmation how many others waited at the same time."""
    spans = {id(flow): span for flow in flows if (span := _pending_span(flow)) is not None}
    starts = sorted(start for start, _ in spans.values())
    ends = sorted(end for _, end in spans.values())
    for flow in flows:
        span = spans.get(id(flow))
        if span is not None:
            overlapping = bisect_right(starts, span[1]) - bisect_left(ends, span[0])
            flow.pending_beside = overlapping - 1


def _pending_span(flow: Flow) -> tuple[float, float] | None:
    asked = next(
        (p.time for p in flow.bgaks if p.outgoing and p.content and p.content.flags & C), None
    )
    if flow.iut_calls or flow.known or asked is None:
        return None
    ends = [time for time in (flow.established, flow.ended) if time is not None]
    return asked, min([*ends, asked + CONFIRMATION_S])


class _Replay:
    """Walks the packets of one connection."""

    def __init__(self, flow: Flow, meetings: Sequence[_Meeting] = ()) -> None:
        self.flow = flow
        self._since = 0.0
        self._meetings = list(meetings)
        self._perhaps_confirmed: Packet | None = None

    def run(self) -> Flow:
        for packet in self.flow.packets:
            stp = packet.content
            assert stp is not None
            while self._meetings and packet.number >= self._meetings[0].packet.number:
                self._meet(self._meetings.pop(0))
            self._forget(packet.time)
            self._show_itself(packet, stp)
            self.flow.state_before[packet.number] = self.flow.state
            (self._leaves if packet.outgoing else self._comes)(packet, stp)
        for meeting in self._meetings:
            self._meet(meeting)
        return self.flow

    def _show_itself(self, packet: Packet, stp: Stp) -> None:
        """What leaves on a call that may have been forgotten shows that it had been confirmed."""
        confirmed = self._perhaps_confirmed
        if confirmed is None or self.flow.state is not None:
            return
        if packet.outgoing and stp.type in TAGGED:
            self._perhaps_confirmed = None
            self._enter(OPEN, confirmed.time)

    def _meet(self, meeting: _Meeting) -> None:
        """Another connection on the same ports begins, or is confirmed (STP-CC-033)."""
        flow, time = self.flow, meeting.packet.time
        self._forget(time)
        # An answer to the BEGIN may be about to leave.
        asked = flow.iut_csn is not None and flow.receiver is not None and flow.ended is None
        waits = flow.state == CALLED or (flow.state == IDLE and asked)
        if not waits:
            if not meeting.confirms:
                self._give_way(time)
        elif meeting.confirms:
            if meeting.asked:
                self._give_way(time)
            else:
                self._change(None, time)
        elif meeting.asked:
            flow.beside += 1
            if flow.beside >= LEAST_BESIDE:
                self._change(None, time)
        else:
            self._give_way(time)

    def _give_way(self, time: float) -> None:
        """Another connection has the ports: what is left of this one is nobody's business."""
        flow = self.flow
        if flow.displaced_in is None:
            flow.displaced_in = flow.state
        if flow.state != IDLE and flow.ended is None:
            flow.ended = time
        self._change(None, time)

    def _change(self, state: int | None, time: float) -> None:
        self.flow.state = state
        self.flow.changes.append((time, state))

    def _forget(self, now: float) -> None:
        """States that end by a timer, whose exact end cannot be seen."""
        limits = {CALLED: CONFIRMATION_S, RELEASING: RELEASE_S}
        limit = limits.get(self.flow.state or 0)
        if limit is not None and now - self._since >= 0.99 * limit - self.flow.timing_error:
            self._change(None, now)

    def _enter(self, state: int | None, time: float) -> None:
        flow = self.flow
        if state == flow.state:
            return
        if state == OPEN and flow.established is None:
            flow.established = time
            if flow.receiver is not None:
                flow.receiver.opened(time, known=flow.known)
        if state in (IDLE, RELEASING) and flow.ended is None:
            flow.ended = time
        self._change(state, time)
        self._since = time

    def _other(self, packet: Packet, ignored: str = "") -> None:
        self.flow.events.append(Other(packet, packet.time, self.flow.state, ignored))

    # -- packets from the IUT

    def _leaves(self, packet: Packet, stp: Stp) -> None:
        flow = self.flow
        if stp.fault:
            self._other(packet, stp.fault)
            return
        sender, receiver = flow.sender, flow.receiver
        if stp.type in (SD, SDP) and sender is not None:
            number = sender.number(stp.seq)
            flow.events.append(sender.sd(packet, stp, number))
            if stp.type == SDP:
                flow.events.append(sender.poll(packet, stp, number + 1))
        elif stp.type == POLL and sender is not None:
            flow.events.append(sender.poll(packet, stp, sender.number(stp.seq)))
        elif stp.type in (STAT, USTAT) and receiver is not None:
            flow.events.append(receiver.report(packet, stp))
        elif stp.type == BEGIN:
            self._begin_leaves(packet, stp)
        elif stp.type == BGAK:
            self._bgak_leaves(packet, stp)
        else:
            self._other(packet)
            if stp.type == END and not stp.flags & R:
                # To another CSN than the tester's, it only says that the connection is lost
                # (STP-CC-007).
                lost = flow.tester_csn is not None and stp.peer_csn != flow.tester_csn
                known = flow.state in (CALLED, OPEN)
                # One that crosses its answer may have been on its way.
                over = flow.state == IDLE and flow.ended is not None
                self._enter(None if over else IDLE if lost and known else RELEASING, packet.time)

    def _begin_leaves(self, packet: Packet, stp: Stp) -> None:
        flow = self.flow
        flow.begins.append(packet)
        if flow.sender is None:
            flow.sender = Sender(stp.seq)
            flow.iut_max_sd = stp.max_sd
        if stp.data or stp.flags & FIN:
            flow.events.append(flow.sender.sd(packet, stp, 0))
        else:
            self._other(packet)
        if flow.state == IDLE:
            self._enter(CALLING if flow.ended is None else None, packet.time)

    def _bgak_leaves(self, packet: Packet, stp: Stp) -> None:
        flow = self.flow
        self._other(packet)
        flow.bgaks.append(packet)
        if flow.sender is None:
            flow.sender = Sender(stp.seq)
            flow.iut_max_sd = stp.max_sd
            begin = next((p.content for p in reversed(flow.begins) if not p.outgoing), None)
            if begin is not None and begin.n_mr is not None:
                flow.sender.vt_ms = begin.n_mr
        if flow.receiver is not None:
            flow.receiver.credit(stp.n_mr or 0)
        if flow.state == IDLE:
            flow.known = not stp.flags & C
            self._enter(CALLED if stp.flags & C else OPEN, packet.time)

    # -- packets to the IUT

    def _comes(self, packet: Packet, stp: Stp) -> None:
        if not stp.wellformed:
            self._other(packet, stp.fault or "its checksum is wrong")
        elif stp.type == BEGIN:
            self._begin_comes(packet, stp)
        elif stp.type == BGAK:
            self._bgak_comes(packet, stp)
        elif stp.type in TAGGED:
            self._tagged_comes(packet, stp)
        else:
            self._other(packet)
            self._ending_comes(packet, stp)

    def _begin_comes(self, packet: Packet, stp: Stp) -> None:
        flow = self.flow
        mine = stp.csn == flow.tester_csn and stp.version == 1
        if mine:
            flow.begins.append(packet)
        carries = bool(stp.data or stp.flags & FIN)
        if mine and flow.receiver is None:
            flow.receiver = Receiver(stp.seq)
            flow.tester_max_sd = stp.max_sd
            if flow.state == CALLING:
                self._crossing(packet, stp, carries=carries)
                return
        if mine and carries and flow.receiver is not None and flow.state in (IDLE, CALLED):
            flow.events.append(flow.receiver.sd(packet, stp, 0, open_=False))
        else:
            self._other(packet)

    def _crossing(self, packet: Packet, stp: Stp, *, carries: bool) -> None:
        """A BEGIN meets the IUT's own: whether its data counts is not said (section 5.2)."""
        flow = self.flow
        receiver, own = flow.receiver, flow.begins[0].content
        assert receiver is not None
        if carries:
            flow.events.append(receiver.sd(packet, stp, 0, open_=True))
        else:
            self._other(packet)
        receiver.announced = (own.n_mr if own else None) or 0

    def _bgak_comes(self, packet: Packet, stp: Stp) -> None:
        flow = self.flow
        flow.bgaks.append(packet)
        both = flow.iut_csn is not None and stp.peer_csn == flow.iut_csn
        both = both and stp.csn == flow.tester_csn
        if both and not is_possible(flow, stp):
            self._other(packet, "its N(R) is that of nothing sent")
            return
        if both and flow.state == CALLING and flow.sender is not None:
            flow.tester_max_sd = stp.max_sd
            if flow.receiver is None:
                flow.receiver = Receiver(stp.seq)
                begin = flow.begins[0].content
                flow.receiver.announced = (begin.n_mr if begin else None) or 0
            flow.events.append(flow.sender.report(packet, stp))
            self._enter(OPEN, packet.time)
            return
        self._other(packet)
        if both and flow.state is None and flow.established is None and flow.displaced_in is None:
            self._perhaps_confirmed = packet
        if both and flow.state == CALLED:
            if flow.sender is not None:
                # Whether its credit counts is not said, so the higher one is granted.
                credit = near(stp.n_mr or 0, flow.sender.iss, flow.sender.vt_ms)
                flow.sender.vt_ms = max(flow.sender.vt_ms, credit)
            self._enter(OPEN, packet.time)

    def _tagged_comes(self, packet: Packet, stp: Stp) -> None:
        flow = self.flow
        receiver, sender = flow.receiver, flow.sender
        # An answer to the BEGIN may be about to leave, so the call counts from the BEGIN on.
        pending = flow.state == IDLE and sender is None and receiver is not None
        if not (pending or flow.state in (CALLED, OPEN)) or receiver is None:
            self._other(packet)
            return
        if flow.tester_csn is not None and stp.tag != tag_of(flow.tester_csn):
            self._other(packet, f"its tag is {stp.tag}, not {tag_of(flow.tester_csn)}")
            return
        open_ = flow.state == OPEN
        if stp.type in (SD, SDP):
            number = receiver.number(stp.seq)
            flow.events.append(receiver.sd(packet, stp, number, open_=open_))
        if stp.type in (SDP, POLL):
            flow.events.append(receiver.poll(packet, stp, open_=open_))
        if stp.type in (STAT, USTAT):
            if open_ and sender is not None:
                flow.events.append(sender.report(packet, stp))
            else:
                self._other(packet, "a report before the connection is open")

    def _ending_comes(self, packet: Packet, stp: Stp) -> None:
        flow = self.flow
        if flow.state in (IDLE, None):
            return
        own = flow.iut_csn is not None and stp.peer_csn == flow.iut_csn
        if (
            (stp.type == BGREJ and own and flow.state == CALLING)
            or (stp.type == ENDAK and own and flow.state == RELEASING)
            or (stp.type == END and is_valid_end(flow, stp))
        ):
            self._enter(IDLE, packet.time)


def is_possible(flow: Flow, bgak: Stp) -> bool:
    """Whether N(R) of a BGAK to the IUT lies between ISS and VT(S) (section 5.1)."""
    sender = flow.sender
    return sender is None or 0 <= near(bgak.n_r or 0, sender.iss, sender.vt_a) <= sender.vt_s


def is_valid_end(flow: Flow, stp: Stp) -> bool:
    """Whether an END is valid for the IUT in the flow's present state (section 5.6)."""
    own = flow.iut_csn is not None and stp.peer_csn == flow.iut_csn
    if stp.flags & R:
        return own and stp.csn == flow.tester_csn
    if flow.state == CALLING:
        return own
    return stp.csn == flow.tester_csn and (own or (flow.state == CALLED and stp.peer_csn == 0))
