"""Connections read from a trace: for each packet, what the implementation (IUT) could know then.

The state table (section 9) is followed as far as the packets show it; where they do not, the state
is None and nothing is claimed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from bentpipe_conformance.engine.encapsulation import DEFAULT_UDP_PORT
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.codec import Stp
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT, tag_of
from bentpipe_conformance.protocols.stp.replay import Trace, incarnations
from bentpipe_conformance.protocols.stp.replay.cookies import Ledger
from bentpipe_conformance.protocols.stp.replay.events import At, Other
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow, State
from bentpipe_conformance.protocols.stp.replay.receiver import Receiver
from bentpipe_conformance.protocols.stp.replay.sender import Sender

RELEASE_S = 31.0
"""Seconds after the first END in which it is repeated, 1 + 2 + 4 + 8 + 16, or with path class vbdc
three times that; the state is unknown from the shorter of them on."""


def read_flows(trace: Trace) -> list[Flow]:
    """Every connection of a trace, replayed, in the order of their first packets."""
    until = max((packet.time for packet in trace.packets), default=0.0)
    flows = incarnations.separate(trace)
    by_address: dict[tuple[str, int], list[Flow]] = defaultdict(list)
    for flow in flows:
        by_address[flow.ends[:2]].append(flow)
    for flow in flows:
        flow.timing_error, flow.until = trace.timing_error, until
        flow.neighbours = by_address[flow.ends[:2]]
        # An address that is only the tester's usual one may have been used in a run before.
        flow.whole = trace.whole
        flow.unmet = trace.whole and flow.ends[1] not in (0, DEFAULT_UDP_PORT)
    for flow in flows:
        _Reader(flow).run()
    _keep_ledgers(by_address.values(), trace.timing_error)
    return flows


def _keep_ledgers(addresses: Collection[Sequence[Flow]], timing_error: float) -> None:
    """Enter the cookies of each address, now that it is known which BEGINs opened what."""
    ledgers = [_ledger(flows, timing_error) for flows in addresses]
    for flows, ledger in zip(addresses, ledgers, strict=True):
        others = [other for other in ledgers if other is not ledger]
        ledger.elsewhere = _all(other.given for other in others) - ledger.given.keys()
        handed = _all(other.handed for other in others)
        ledger.handed_elsewhere = handed - ledger.handed.keys()
        for flow in flows:
            flow.ledger = ledger


def _all(cookies: Iterable[Collection[bytes]]) -> frozenset[bytes]:
    return frozenset(chain.from_iterable(cookies))


def _ledger(flows: Sequence[Flow], timing_error: float) -> Ledger:
    ledger = Ledger(timing_error=timing_error)
    passed = ((flow, at) for flow in flows for at in flow.passed)
    for flow, at in sorted(passed, key=lambda item: item[1].frame):
        stp = at.stp
        if stp.cookie is not None and stp.wellformed and stp.type in (codec.BGAK, codec.BGREJ):
            if at.outgoing:
                ledger.given.setdefault(stp.cookie, at)
            elif flow.state_when(at) == State.CALLING and flow.is_recipient(stp):
                ledger.handed.setdefault(stp.cookie, at)
        if at is flow.opener:
            ledger.opened.append(at)
    return ledger


class _Reader:
    """Walks the packets of one connection."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._since = 0.0

    def run(self) -> None:
        flow = self.flow
        displacing = _displacing(flow)
        for at in flow.passed:
            if displacing is not None and at.frame >= displacing.frame:
                self._give_way(displacing)
                displacing = None
            self._forget(at.time)
            flow.state_before[at.frame] = flow.state
            (self._leaves if at.outgoing else self._arrives)(at, at.stp)
        if displacing is not None:
            self._give_way(displacing)

    def _give_way(self, begin: At) -> None:
        """Another connection has the ports: from now on nothing is claimed of this one."""
        flow = self.flow
        self._forget(begin.time)
        flow.displaced_by = begin
        if flow.state != State.IDLE and flow.ended is None:
            flow.ended = begin.time
        self._change(None, begin.time)

    def _change(self, state: State | None, time: float) -> None:
        self.flow.state = state
        self.flow.changes.append((time, state))

    def _forget(self, now: float) -> None:
        """Leave state 4, which ends by a timer whose exact end cannot be seen."""
        if self.flow.state != State.RELEASING:
            return
        if now - self._since >= 0.99 * RELEASE_S - self.flow.timing_error:
            self._change(None, now)

    def _enter(self, state: State | None, time: float) -> None:
        flow = self.flow
        if state == flow.state:
            return
        if state == State.OPEN and flow.established is None:
            flow.established = time
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
                # One that crosses its answer may have been on its way.
                over = flow.state == State.IDLE and flow.ended is not None
                self._enter(None if over else State.RELEASING, at.time)

    def _begin_leaves(self, at: At, stp: Stp) -> None:
        flow = self.flow
        flow.begins.append(at)
        self._starts_sending(stp)
        assert flow.sender is not None
        if stp.data or stp.flags & codec.FIN:
            flow.events.append(flow.sender.sd(at, 0))
        else:
            self._other(at)
        if flow.state == State.IDLE:
            self._enter(State.CALLING if flow.ended is None else None, at.time)

    def _starts_sending(self, stp: Stp) -> None:
        """The first BEGIN or BGAK of the IUT shows its ISS and MaxSD."""
        flow = self.flow
        if flow.sender is None:
            flow.sender = Sender(stp.seq, flow.sds_sent, flow.polls_sent, flow.reports_heard)
            flow.iut_max_sd = stp.max_sd
            begin = flow.opener
            if begin is not None:
                flow.sender.vt_ms = max(begin.stp.n_mr or 0, EARLY_CREDIT)

    def _bgak_leaves(self, at: At, stp: Stp) -> None:
        flow = self.flow
        self._other(at)
        flow.bgaks.append(at)
        self._starts_sending(stp)
        if flow.receiver is not None:
            flow.receiver.credit(stp.n_mr or 0)
            flow.receiver.max_sd = stp.max_sd
        if flow.state == State.IDLE and flow.opener is None and not flow.iut_calls:
            # The BEGIN came before the trace began.
            self._enter(State.OPEN, at.time)

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
        if stp.csn == flow.tester_csn and stp.version == codec.VERSION:
            flow.begins.append(at)
        if at is not flow.opener:
            self._other(at)
            return
        # The BGAK may be about to leave; the connection counts from the BEGIN on.
        receiver = self._starts_receiving(stp)
        if stp.data or stp.flags & codec.FIN:
            flow.events.append(receiver.sd(at, 0))
        else:
            self._other(at)
        self._enter(State.OPEN, at.time)

    def _starts_receiving(self, stp: Stp) -> Receiver:
        """The BEGIN or BGAK of the tester that opens the connection shows its ISS and MaxSD."""
        flow = self.flow
        lists = flow.sds_heard, flow.polls_heard, flow.reports_sent
        flow.receiver = Receiver(stp.seq, *lists, max_sd=flow.iut_max_sd)
        flow.tester_max_sd = stp.max_sd
        return flow.receiver

    def _bgak_arrives(self, at: At, stp: Stp) -> None:
        flow = self.flow
        flow.bgaks.append(at)
        if flow.state != State.CALLING or flow.sender is None or not flow.is_recipient(stp):
            self._other(at)
        elif not flow.is_possible(stp):
            self._other(at, "its N(R) is that of nothing sent")
        elif not flow.names(at):
            self._other(at)
        else:
            self._starts_receiving(stp).announced = max(flow.begins[0].stp.n_mr or 0, EARLY_CREDIT)
            flow.events.append(flow.sender.report(at))
            self._enter(State.OPEN, at.time)

    def _tagged_arrives(self, at: At, stp: Stp) -> None:
        flow = self.flow
        receiver, sender = flow.receiver, flow.sender
        if flow.state != State.OPEN or receiver is None:
            self._other(at)
            return
        if flow.tester_csn is not None and stp.tag != tag_of(flow.tester_csn):
            self._other(at, f"its tag is {stp.tag}, not {tag_of(flow.tester_csn)}")
            return
        foreign = flow.tester_csn is not None and stp.csn != flow.tester_csn
        if stp.type in (codec.SDP, codec.POLL) and (foreign or not stp.n_ps):
            self._other(at, f"its CSN is {stp.csn} and its N(PS) {stp.n_ps}")
            return
        if stp.type in (codec.SD, codec.SDP):
            flow.events.append(receiver.sd(at, receiver.number(stp.seq)))
        if stp.type in (codec.SDP, codec.POLL):
            flow.events.append(receiver.poll(at))
        elif stp.type in (codec.STAT, codec.USTAT):
            if sender is not None:
                flow.events.append(sender.report(at))
            else:
                self._other(at, "a report before anything was sent")

    def _ending_arrives(self, at: At, stp: Stp) -> None:
        flow = self.flow
        if flow.state in (State.IDLE, None):
            return
        own = flow.is_recipient(stp)
        # The peer's CSN is learned when the connection opens.
        known = flow.established is not None
        if (
            (stp.type == codec.BGREJ and own and flow.state == State.CALLING)
            or (stp.type == codec.ENDAK and own and flow.state == State.RELEASING)
            or (stp.type == codec.END and is_valid_end(flow, stp, known=known))
        ):
            self._enter(State.IDLE, at.time)


def _displacing(flow: Flow) -> At | None:
    """The first packet of the next connection on the same ports."""
    later = [
        at for other in flow.same_ports
        if other.start > flow.start and other.iut_csn is not None
        for at in other.passed if at.frame == other.start
    ]  # fmt: skip
    return min(later, key=lambda at: at.frame, default=None)


def is_valid_end(flow: Flow, stp: Stp, *, known: bool) -> bool:
    """Whether an END is valid for the IUT, the peer's CSN being ``known`` (section 5.5)."""
    own = flow.is_recipient(stp)
    if stp.flags & codec.R:
        return own and (stp.csn == 0 or (known and stp.csn == flow.tester_csn))
    if not known:
        return own
    aborts = bool(stp.flags & codec.A)
    return stp.csn == flow.tester_csn and (own or (aborts and stp.peer_csn == 0))
