"""STP-CC: calls that wait side by side between the same addresses and ports (section 5.2)."""

from __future__ import annotations

import math

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings
from bentpipe_conformance.protocols.stp.checkers.answers import answers, observed
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, END, POLL, SDP, STAT, C
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import LEAST_PENDING, Flow, State


@checker("STP-CC-033")
def calls_wait_side_by_side(flow: Flow, context: Context) -> Findings:
    """Calls wait beside each other until the first of them is confirmed (section 5.2)."""
    if flow.iut_calls or flow.known or flow.iut_csn is None:
        return
    others = [
        at
        for other in flow.same_ports
        for at in other.heard_of(BEGIN)
        if at.stp.version == 1 and at.stp.csn != flow.tester_csn
        and flow.state_at(at.time) == State.CALLED
    ]  # fmt: skip
    # With too many calls beside it the pending one may have made room.
    for begin in others if flow.pending_beside < LEAST_PENDING else ():
        yield from _asked(flow, context, begin)
    yield from _opens(flow, context)
    if flow.established is not None:
        yield from _alone(flow, context, flow.established)


def _asked(flow: Flow, context: Context, begin: At) -> Findings:
    """Whether a BEGIN that arrived beside a pending call is asked for confirmation."""
    for other in flow.same_ports:
        replies = answers(other, begin, (BGAK,))
        # A later one may answer the call's confirmation, or its BEGIN once it is open.
        reply = next((item for item in replies if item.stp.peer_csn == begin.stp.csn), None)
        if reply is not None and not reply.stp.flags & C:
            yield context.violated(
                "a BEGIN was accepted at once beside a call that waited for confirmation",
                begin, reply,
            )  # fmt: skip


def _opens(flow: Flow, context: Context) -> Findings:
    """Whether the call opens when it is confirmed, by the answers to its POLLs."""
    waiting = (at for at in flow.bgaks if flow.state_when(at) == State.CALLED)
    confirmed = next((at for at in waiting if flow.is_confirmed_by(at)), None)
    if confirmed is None or flow.established != confirmed.time:
        return
    beside = [
        other.begins[0] for other in flow.same_ports
        if other is not flow and other.begins and other.state_at(confirmed.time) == State.CALLED
    ]  # fmt: skip
    if not beside or flow.pending_beside >= LEAST_PENDING:
        return
    polls = [poll for poll in flow.polls_heard if poll.open]
    answered = [poll for poll in polls if poll.answers]
    if answered:
        yield context.holds(
            f"a call opened when it was confirmed, though {len(beside)} waited beside it",
            beside[0], confirmed, answered[0],
        )  # fmt: skip
    elif polls and observed(flow, polls[0]):
        yield context.violated(
            "a confirmed call did not open, after another BEGIN had arrived on its ports",
            beside[0], confirmed, *answers(flow, confirmed, (END,)), polls[0],
        )  # fmt: skip


def _alone(flow: Flow, context: Context, opened: float) -> Findings:
    """Whether none of the calls that waited beside an open one continues or opens."""
    for other in flow.same_ports:
        if other is flow or other.state_at(opened) != State.CALLED:
            continue
        # Another BEGIN makes a new call of it.
        end = min((at.time for at in other.begins if at.time > opened), default=math.inf)
        later = [at for at in other.passed if opened + flow.due_s < at.time < end]
        stats = [at for at in later if at.outgoing and at.stp.type == STAT]
        asked = [at for at in later if not at.outgoing and at.stp.type in (POLL, SDP)]
        if stats:
            over = flow.ended is not None and stats[0].time > flow.ended
            yield context.violated(
                "a call opened that another one, opened before, should have ended" if over
                else "two calls between the same addresses and ports were open at once",
                stats[0],
            )  # fmt: skip
        elif asked and observed(flow, asked[0]):
            yield context.holds("a call was forgotten when another one beside it opened", asked[0])
