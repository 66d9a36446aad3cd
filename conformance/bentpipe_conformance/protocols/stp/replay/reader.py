"""Connections read from a trace: for each packet, what the implementation (IUT) could know then.

The state table (section 9) is followed as far as the packets show it; where they do not, the state
is None and nothing is claimed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.codec import Stp
from bentpipe_conformance.protocols.stp.numbers import near, tag_of
from bentpipe_conformance.protocols.stp.replay import Trace, incarnations
from bentpipe_conformance.protocols.stp.replay.events import At, Other
from bentpipe_conformance.protocols.stp.replay.flow import (
    CONFIRMATION_S,
    LEAST_BESIDE,
    TAGGED,
    Flow,
    State,
)
from bentpipe_conformance.protocols.stp.replay.receiver import Receiver
from bentpipe_conformance.protocols.stp.replay.sender import Sender

RELEASE_S = 31.0
"""Seconds after the first END in which it is repeated, 1 + 2 + 4 + 8 + 16, or with path class vbdc
twice that; the state is unknown from the shorter of them on."""


def read_flows(trace: Trace) -> list[Flow]:
    """Every connection of a trace, replayed, in the order of their first packets."""
    until = max((packet.time for packet in trace.packets), default=0.0)
    flows = incarnations.separate(trace)
    for flow in flows:
        flow.timing_error, flow.until = trace.timing_error, until
        flow.neighbours = [other for other in flows if other.ends[:2] == flow.ends[:2]]
        _Reader(flow, incarnations.encounters(flow, flows)).run()
    incarnations.count_pending(flows)
    return flows


class _Reader:
    """Walks the packets of one connection."""

    def __init__(self, flow: Flow, encounters: Sequence[incarnations.Encounter]) -> None:
        self.flow = flow
        self._since = 0.0
        self._encounters = deque(encounters)
        self._beside = 0
        self._perhaps_confirmed: At | None = None

    def run(self) -> None:
        for at in self.flow.passed:
            while self._encounters and at.frame >= self._encounters[0].at.frame:
                self._meet(self._encounters.popleft())
            self._forget(at.time)
            self._show_itself(at)
            self.flow.state_before[at.frame] = self.flow.state
            (self._leaves if at.outgoing else self._arrives)(at, at.stp)
        for encounter in self._encounters:
            self._meet(encounter)

    def _show_itself(self, at: At) -> None:
        """What leaves on a call that may have been forgotten shows that it had been confirmed."""
        confirmed = self._perhaps_confirmed
        if confirmed is None or self.flow.state is not None:
            return
        if at.outgoing and at.stp.type in TAGGED:
            self._perhaps_confirmed = None
            self._enter(State.OPEN, confirmed.time)

    def _meet(self, other: incarnations.Encounter) -> None:
        """Another connection on the same ports begins, or is confirmed (STP-CC-033)."""
        flow, time = self.flow, other.at.time
        self._forget(time)
        # An answer to the BEGIN may be about to leave.
        asked = flow.iut_csn is not None and flow.receiver is not None and flow.ended is None
        waits = flow.state == State.CALLED or (flow.state == State.IDLE and asked)
        if not waits:
            if not other.confirms:
                self._give_way(time)
        elif other.confirms == other.asked:
            self._give_way(time)
        else:
            self._beside += other.asked
            if other.confirms or self._beside >= LEAST_BESIDE:
                self._change(None, time)

    def _give_way(self, time: float) -> None:
        """Another connection has the ports: from now on nothing is claimed of this one."""
        flow = self.flow
        if flow.displaced_in is None:
            flow.displaced_in = flow.state
        if flow.state != State.IDLE and flow.ended is None:
            flow.ended = time
        self._change(None, time)

    def _change(self, state: State | None, time: float) -> None:
        self.flow.state = state
        self.flow.changes.append((time, state))

    def _forget(self, now: float) -> None:
        """States that end by a timer, whose exact end cannot be seen."""
        limits = {State.CALLED: CONFIRMATION_S, State.RELEASING: RELEASE_S}
        limit = limits.get(self.flow.state) if self.flow.state else None
        if limit is not None and now - self._since >= 0.99 * limit - self.flow.timing_error:
            self._change(None, now)

    def _enter(self, state: State | None, time: float) -> None:
        flow = self.flow
        if state == flow.state:
            return
        if state == State.OPEN and flow.established is None:
            flow.established = time
            if flow.receiver is not None:
                flow.receiver.opened(time, known=flow.known)
        if state in (State.IDLE, State.RELEASING) and flow.ended is None:
            flow.ended = time
        self._change(state, time)
        self._since = time

    def _other(self, at: At, ignored: str = "") -> None:
        self.flow.events.append(Other(at.packet, self.flow.state, ignored))

    # -- packets from the IUT

    def _leaves(self, at: At, stp: Stp) -> None:
        flow = self.flow
        if stp.fault:
            self._other(at, stp.fault)
            return
        sender, receiver = flow.sender, flow.receiver
        if stp.type in (codec.SD, codec.SDP) and sender is not None:
            number = sender.number(stp.seq)
            flow.events.append(sender.sd(at, number))
            if stp.type == codec.SDP:
                flow.events.append(sender.poll(at, number + 1))
        elif stp.type == codec.POLL and sender is not None:
            flow.events.append(sender.poll(at, sender.number(stp.seq)))
        elif stp.type in (codec.STAT, codec.USTAT) and receiver is not None:
            flow.events.append(receiver.report(at))
        elif stp.type == codec.BEGIN:
            self._begin_leaves(at, stp)
        elif stp.type == codec.BGAK:
            self._bgak_leaves(at, stp)
        else:
            self._other(at)
            if stp.type == codec.END and not stp.flags & codec.R:
                # To another CSN than the tester's, it only says that the connection is lost
                # (STP-CC-007).
                lost = flow.tester_csn is not None and stp.peer_csn != flow.tester_csn
                known = flow.state in (State.CALLED, State.OPEN)
                # One that crosses its answer may have been on its way.
                over = flow.state == State.IDLE and flow.ended is not None
                self._enter(
                    None if over else State.IDLE if lost and known else State.RELEASING, at.time
                )

    def _begin_leaves(self, at: At, stp: Stp) -> None:
        flow = self.flow
        flow.begins.append(at)
        if flow.sender is None:
            flow.sender = Sender(stp.seq, flow.sds_sent, flow.polls_sent, flow.reports_heard)
            flow.iut_max_sd = stp.max_sd
        if stp.data or stp.flags & codec.FIN:
            flow.events.append(flow.sender.sd(at, 0))
        else:
            self._other(at)
        if flow.state == State.IDLE:
            self._enter(State.CALLING if flow.ended is None else None, at.time)

    def _bgak_leaves(self, at: At, stp: Stp) -> None:
        flow = self.flow
        self._other(at)
        flow.bgaks.append(at)
        if flow.sender is None:
            flow.sender = Sender(stp.seq, flow.sds_sent, flow.polls_sent, flow.reports_heard)
            flow.iut_max_sd = stp.max_sd
            begin = next((at for at in reversed(flow.begins) if not at.outgoing), None)
            if begin is not None and begin.stp.n_mr is not None:
                flow.sender.vt_ms = begin.stp.n_mr
        if flow.receiver is not None:
            flow.receiver.credit(stp.n_mr or 0)
        if flow.state == State.IDLE:
            flow.known = not stp.flags & codec.C
            self._enter(State.CALLED if stp.flags & codec.C else State.OPEN, at.time)

    # -- packets to the IUT

    def _arrives(self, at: At, stp: Stp) -> None:
        if not stp.wellformed:
            self._other(at, stp.fault or "its checksum is wrong")
        elif stp.type == codec.BEGIN:
            self._begin_arrives(at, stp)
        elif stp.type == codec.BGAK:
            self._bgak_arrives(at, stp)
        elif stp.type in TAGGED:
            self._tagged_arrives(at, stp)
        else:
            self._other(at)
            self._ending_arrives(at, stp)

    def _begin_arrives(self, at: At, stp: Stp) -> None:
        flow = self.flow
        mine = stp.csn == flow.tester_csn and stp.version == 1
        if mine:
            flow.begins.append(at)
        carries = bool(stp.data or stp.flags & codec.FIN)
        if mine and flow.receiver is None:
            receiver = self._starts_receiving(stp.seq)
            flow.tester_max_sd = stp.max_sd
            if flow.state == State.CALLING:
                # It crosses the IUT's own: section 5.2 leaves open whether its data counts.
                if carries:
                    flow.events.append(receiver.sd(at, 0, open_=True))
                else:
                    self._other(at)
                receiver.announced = flow.begins[0].stp.n_mr or 0
                return
        if (
            mine
            and carries
            and flow.receiver is not None
            and flow.state in (State.IDLE, State.CALLED)
        ):
            flow.events.append(flow.receiver.sd(at, 0, open_=False))
        else:
            self._other(at)

    def _starts_receiving(self, iss: int, announced: int = 0) -> Receiver:
        flow = self.flow
        lists = flow.sds_heard, flow.polls_heard, flow.reports_sent
        flow.receiver = Receiver(iss, *lists, announced)
        return flow.receiver

    def _bgak_arrives(self, at: At, stp: Stp) -> None:
        flow = self.flow
        flow.bgaks.append(at)
        both = flow.is_recipient(stp) and flow.names(at)
        if both and not flow.is_possible(stp):
            self._other(at, "its N(R) is that of nothing sent")
            return
        if both and flow.state == State.CALLING and flow.sender is not None:
            flow.tester_max_sd = stp.max_sd
            if flow.receiver is None:
                self._starts_receiving(stp.seq, flow.begins[0].stp.n_mr or 0)
            flow.events.append(flow.sender.report(at))
            self._enter(State.OPEN, at.time)
            return
        self._other(at)
        if both and flow.state is None and flow.established is None and flow.displaced_in is None:
            self._perhaps_confirmed = at
        if both and flow.state == State.CALLED:
            if flow.sender is not None:
                # Whether its credit counts is unspecified, so the higher one is granted.
                credit = near(stp.n_mr or 0, flow.sender.iss, flow.sender.vt_ms)
                flow.sender.vt_ms = max(flow.sender.vt_ms, credit)
            self._enter(State.OPEN, at.time)

    def _tagged_arrives(self, at: At, stp: Stp) -> None:
        flow = self.flow
        receiver, sender = flow.receiver, flow.sender
        # An answer to the BEGIN may be about to leave, so the call counts from the BEGIN on.
        pending = flow.state == State.IDLE and sender is None and receiver is not None
        if not (pending or flow.state in (State.CALLED, State.OPEN)) or receiver is None:
            self._other(at)
            return
        if flow.tester_csn is not None and stp.tag != tag_of(flow.tester_csn):
            self._other(at, f"its tag is {stp.tag}, not {tag_of(flow.tester_csn)}")
            return
        open_ = flow.state == State.OPEN
        if stp.type in (codec.SD, codec.SDP):
            number = receiver.number(stp.seq)
            flow.events.append(receiver.sd(at, number, open_=open_))
        if stp.type in (codec.SDP, codec.POLL):
            flow.events.append(receiver.poll(at, open_=open_))
        if stp.type in (codec.STAT, codec.USTAT):
            if open_ and sender is not None:
                flow.events.append(sender.report(at))
            else:
                self._other(at, "a report before the connection is open")

    def _ending_arrives(self, at: At, stp: Stp) -> None:
        flow = self.flow
        if flow.state in (State.IDLE, None):
            return
        own = flow.is_recipient(stp)
        if (
            (stp.type == codec.BGREJ and own and flow.state == State.CALLING)
            or (stp.type == codec.ENDAK and own and flow.state == State.RELEASING)
            or (stp.type == codec.END and is_valid_end(flow, stp))
        ):
            self._enter(State.IDLE, at.time)


def is_valid_end(flow: Flow, stp: Stp) -> bool:
    """Whether an END is valid for the IUT in the flow's present state (section 5.6)."""
    own = flow.is_recipient(stp)
    if stp.flags & codec.R:
        return own and stp.csn == flow.tester_csn
    if flow.state == State.CALLING:
        return own
    return stp.csn == flow.tester_csn and (
        own or (flow.state == State.CALLED and stp.peer_csn == 0)
    )
