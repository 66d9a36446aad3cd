"""What an implementation sends in answer to a packet, and whether it discards a packet."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.checkers import Context, Findings
from bentpipe_conformance.protocols.stp.checkers.calling import MAX_CC, latest
from bentpipe_conformance.protocols.stp.numbers import near
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At, ReportSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State
from bentpipe_conformance.protocols.stp.replay.round_trip import first_wait

_REPLIES = (codec.BGAK, codec.BGREJ, codec.END, codec.ENDAK, codec.STAT, codec.USTAT)
"""What a packet can evoke at once; SDs and POLLs also leave by timer."""

_BY_TIMER = (0, 7)
"""Reasons of ENDs that leave because a stream is complete, or the peer silent."""

_BY_USER = 1
"""Reason of an END that leaves because a user aborts (section 3.4)."""

_SENT_WITHOUT = (codec.END, codec.ENDAK, codec.BGREJ)
"""What an endpoint sends without a connection."""

ANSWERS_PER_S = 10
"""BGREJs with reason 3 or 4, and answers without a connection, that may not be refused in one
second (STP-CC-019, STP-CC-020)."""

_ROUNDING_S = 1e-6
"""What rounding may add to a difference of times."""


def answers(flow: Flow, at: At, kinds: Sequence[int], within: float = DUE_S) -> list[At]:
    """The IUT's packets of these types that follow a packet within an answer's time."""
    until = at.time + within + flow.timing_error
    first = bisect_left(flow.sent, at.time, key=lambda item: item.time)
    last = bisect_right(flow.sent, until, lo=first, key=lambda item: item.time)
    soon = flow.sent[first:last]
    return [reply for reply in soon if reply.frame > at.frame and reply.stp.type in kinds]


def answers_on_ports(
    flow: Flow, at: At, kinds: Sequence[int] = _REPLIES, within: float = DUE_S
) -> list[At]:
    """The same on every connection of a flow's ports, in order of the connections."""
    return [reply for other in flow.same_ports for reply in answers(other, at, kinds, within)]


def observed(flow: Flow, at: At, within: float = DUE_S) -> bool:
    """Whether the capture goes on past the time an answer is due."""
    return flow.until >= at.time + within + flow.timing_error


def answered(
    flow: Flow,
    context: Context,
    at: At,
    replies: Sequence[At],
    what: str,
    how: str = "answered",
    *,
    excused: bool = False,
) -> Findings:
    """Whether a packet has one of its right answers, ``replies``, once an answer is due.

    ``what`` is the packet with its article, ``how`` a participle for what the IUT had to do; with
    ``excused`` the lack of an answer is not held against it.
    """
    if replies:
        yield context.holds(f"{what} was {how}", at, replies[0])
    elif not excused and observed(flow, at):
        yield context.violated(f"{what} was not {how}", at)


def many_before(flow: Flow, at: At, kinds: Sequence[int]) -> bool:
    """Whether enough packets of these types arrived to permit refusing an answer."""
    start = at.time - 1.0 - flow.timing_error
    came = sum(
        other.stp.type in kinds and start <= other.time <= at.time
        for neighbour in flow.neighbours
        for other in neighbour.heard
    )
    return came > ANSWERS_PER_S


def holder(flow: Flow, at: At) -> Flow | None:
    """The connection that has a flow's ports, or had them last, when a packet arrives."""
    before = (
        other for other in flow.same_ports if other.iut_csn is not None and other.start < at.frame
    )
    return max(before, key=lambda other: other.start, default=None)


def state_on_ports(flow: Flow, at: At) -> State | None:
    """The IUT's state between a flow's ports when a packet arrives; None when unknown."""
    there = holder(flow, at)
    if there is None:
        # It may have a connection from before the trace, unless that begins with a call.
        nameless = [other for other in flow.same_ports if other.iut_csn is None]
        first = min((item.passed[0] for item in nameless), key=lambda item: item.frame, default=at)
        sent = (item.stp.type for other in nameless for item in other.sent)
        unknown = first.stp.type != codec.BEGIN and any(kind not in _SENT_WITHOUT for kind in sent)
        return None if unknown else State.IDLE
    return flow.state_when(at) if there is flow else there.state_at(at.time)


def is_idle(flow: Flow, at: At) -> bool:
    """Whether the IUT surely has no connection on these ports when a packet arrives."""
    if state_on_ports(flow, at) != State.IDLE:
        return False
    # One may be about to open, or to call anew.
    return not any(
        abs(other.passed[0].time - at.time) <= flow.due_s + _ROUNDING_S
        for other in flow.same_ports if other is not flow and other.iut_csn is not None
    )  # fmt: skip


def discarded(flow: Flow, context: Context, at: At, what: str) -> Findings:
    """Whether a packet drew no answer, and nothing that later reports could know from it alone.

    ``what`` is the packet with its article, and why it must be discarded.
    """
    if _had_given_up(flow, context, at):
        return
    alone = is_alone(flow, at)
    replies = [reply for reply in answers_on_ports(flow, at) if _is_evoked(flow, at, reply)]
    if replies and alone:
        yield context.violated(f"{what} was answered", at, replies[0])
        return
    knowing = _report_that_knows(flow, at)
    if knowing is not None:
        yield context.violated(f"{what} was accepted, as a later report shows", at, knowing)
        return
    taken = _unexplained(flow, at) if alone else None
    if taken is not None:
        yield context.violated(f"{what} was accepted, as {taken.name} shows", at, taken)
    elif ended_the_wait(flow, context, at):
        yield context.violated(f"{what} ended the wait: nothing was repeated any more", at)
    elif not replies and alone and observed(flow, at):
        yield context.holds(f"{what} was neither answered nor accepted", at)


def _unexplained(flow: Flow, at: At) -> At | None:
    """What the IUT sent at once that only a packet which it had to discard explains.

    That is an SD which no valid report has reported missing since it was last sent, or one beyond
    the credit (sections 6.1 and 6.4); and a POLL of a caller (section 5.1).
    """
    kind, until = at.stp.type, at.time + flow.due_s
    if kind in (codec.STAT, codec.USTAT):
        for sd in flow.sds_sent:
            if sd.frame > at.frame and at.time <= sd.time <= until and sd.stp.type != codec.BEGIN:
                again = not sd.new and sd.awaited is None
                if again or (sd.new and sd.number >= sd.vt_ms):
                    return sd
    elif kind == codec.BGAK and flow.state_when(at) == State.CALLING:
        return next(iter(answers(flow, at, (codec.POLL, codec.SDP))), None)
    return None


_ENDS_THE_WAIT = {
    State.CALLING: (codec.BGAK, codec.BGREJ, codec.END),
    State.RELEASING: (codec.BEGIN, codec.END, codec.ENDAK),
}
"""What can end state 2 or 4."""


def ended_the_wait(flow: Flow, context: Context, at: At) -> bool:
    """Whether a caller, or who waits for its ENDAK, repeats nothing any more after a packet."""
    state = flow.state_when(at)
    if state is None or at.stp.type not in _ENDS_THE_WAIT.get(state, ()):
        return False
    before = _repeated(flow, state, at)
    due = _due_again(flow, context, before)
    if due is None or at.time > due or len(before) < len(_repeated(flow, state)):
        return False
    over = [time for time in (flow.ended, flow.established) if time is not None]
    if state == State.RELEASING:  # another connection between the same ports takes its place
        over += [other.passed[0].time for other in flow.same_ports if other.start > flow.start]
    others = flow.heard_of(*_ENDS_THE_WAIT[state])
    excused = any(
        other.frame != at.frame and before[-1].time - flow.due_s <= other.time <= due
        for other in others
    )
    # Its END ended the connection, but not the wait for the ENDAK.
    over_before = any(before[-1].time < time <= due for time in over)
    return flow.until > due and not excused and not over_before


def _had_given_up(flow: Flow, context: Context, at: At) -> bool:
    """Whether its BEGIN or END should have gone again before a packet came that ends no wait.

    The state is not what the packets say, then, and what answers the packet tells nothing of it:
    STP-CC-016 and STP-CC-026 are broken.
    """
    state = flow.state_when(at)
    if state not in _ENDS_THE_WAIT:
        return False
    due = _due_again(flow, context, _repeated(flow, state, at))
    return due is not None and at.time > due


def _repeated(flow: Flow, state: State, until: At | None = None) -> list[At]:
    """The transmissions of the BEGIN or END of state 2 or 4, all or those before a packet."""
    kind = codec.BEGIN if state == State.CALLING else codec.END
    return [
        each for each in flow.sent
        if each.stp.type == kind and not each.stp.flags & codec.R
        and (until is None or each.frame < until.frame)
    ]  # fmt: skip


def _due_again(flow: Flow, context: Context, sent: Sequence[At]) -> float | None:
    """When the next transmission is due at the latest; None when there need not be one."""
    if not sent or len(sent) >= MAX_CC:
        return None
    wait = first_wait(context.ics) * 2.0 ** (len(sent) - 1)
    return sent[-1].time + latest(wait) + flow.timing_error


def gone_after(flow: Flow, at: At) -> At | None:
    """The END by which the IUT says, first of all after a packet, that it knows no connection."""
    first = next((item for item in flow.sent if item.time > at.time + flow.due_s), None)
    if first is None or first.stp.type != codec.END or not first.stp.flags & codec.R:
        return None
    return first if first.stp.peer_csn == flow.tester_csn else None


def is_alone(flow: Flow, at: At) -> bool:
    """Whether no other packet arrived about the same time, so that an answer has one cause."""
    heard = (packet for other in flow.same_ports for packet in other.heard)
    within = flow.due_s + _ROUNDING_S
    near_by = (packet for packet in heard if abs(packet.time - at.time) <= within)
    return all(packet.frame == at.frame for packet in near_by)


def _is_evoked(flow: Flow, at: At, reply: At) -> bool:
    """Whether a packet cannot be explained without the one that it may answer."""
    stp, cause = reply.stp, at.stp
    before = [item.stp for item in flow.sent if item.frame < reply.frame]
    if stp.type == codec.STAT:
        if cause.type in (codec.SD, codec.STAT, codec.USTAT) and not cause.fault:
            return False
        return bool(stp.n_ps)  # with 0 it announces credit (STP-DT-024)
    if stp.type != codec.END or stp.flags & codec.R:
        return True
    if stp.reason == _BY_USER and not flow.served:
        return False
    # A timer repeats ENDs, and sends them when a stream is complete or the peer silent.
    return stp.reason not in _BY_TIMER and all(item.octets != stp.octets for item in before)


def _report_that_knows(flow: Flow, at: At) -> ReportSent | None:
    """A later report that has the SD of a discarded packet, though no valid copy had arrived."""
    stp, receiver = at.stp, flow.receiver
    if receiver is None or stp.type not in (codec.SD, codec.SDP):
        return None
    if stp.fault and len(stp.octets) < 12:
        return None
    # Its count is the one near what the IUT then expected.
    expected = max((sd.number + 1 for sd in flow.sds_heard if sd.time <= at.time), default=0)
    number = near(stp.seq, receiver.iss, expected)
    if number < 0:
        return None
    for report in flow.reports_sent:
        if report.time < at.time or not report.certain:
            continue
        if any(sd.number == number and sd.time <= report.time for sd in flow.sds_heard):
            return None
        if report.holds(number):
            return report
    return None
