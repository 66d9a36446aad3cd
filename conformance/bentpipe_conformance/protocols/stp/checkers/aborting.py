"""STP-CC: ENDs that abort, and ENDs of peers that know no connection (sections 5.1, 5.4, 5.5)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answers_on_ports,
    is_alone,
    observed,
)
from bentpipe_conformance.protocols.stp.checkers.calling import (
    EARLIEST,
    MAX_CC,
    latest,
)
from bentpipe_conformance.protocols.stp.checkers.opening import NO_RESOURCES
from bentpipe_conformance.protocols.stp.codec import A, R
from bentpipe_conformance.protocols.stp.numbers import MODULUS, NO_ANSWER, on_wire
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State
from bentpipe_conformance.protocols.stp.replay.round_trip import first_wait

BUSY_OCTETS, BUSY_S = 1024, 60.0
"""Octets of data within as many seconds that protect a connection (STP-SEC-007)."""

CROWD = 8
"""Calls beside a busy connection that show whether it is kept."""

ABORTED = 1
"""Reason of the END by which a user ends a connection (section 3.4)."""


def _aborts(flow: Flow) -> list[At]:
    """The ENDs with A flag and without R flag that the IUT sent on this connection."""
    return [
        at for at in flow.sent
        if at.stp.type == codec.END and not at.stp.fault
        and at.stp.flags & (A | R) == A and at.stp.csn == flow.iut_csn
    ]  # fmt: skip


@checker("STP-CC-044")
def unanswered_calls_are_aborted(flow: Flow, context: Context) -> Findings:
    """A call whose BEGIN is never answered ends with an END with reason 7 (section 5.1)."""
    begins = [at for at in flow.begins if at.outgoing]
    if not flow.iut_calls or len(begins) < MAX_CC or flow.established is not None:
        return
    last = begins[MAX_CC - 1]
    wait = first_wait(context.ics) * 2.0 ** (MAX_CC - 1)
    end = next((at for at in flow.sent if at.stp.type == codec.END and at.frame > last.frame), None)
    due = latest(wait) + flow.timing_error
    until = last.time + due if end is None else end.time
    if any(at.time <= until for at in flow.heard_of(codec.BGAK, codec.BGREJ, codec.END)):
        return  # it may have ended the call
    if end is None:
        if flow.until > last.time + due:
            yield context.violated(
                "a call was given up without an END", last,
                expected=f"an END with A flag and reason 7 {wait:g} s after the last BEGIN",
            )  # fmt: skip
        return
    gap = end.time - last.time
    if end.stp.flags & A and end.stp.reason == ABORTED and gap < wait - flow.timing_error:
        return  # until Timer_CC expires, its user may end it (section 5.4)
    in_time = EARLIEST * wait - flow.timing_error <= gap <= due
    right = bool(end.stp.flags & A) and end.stp.reason == NO_ANSWER
    yield judged(
        context, in_time and right,
        f"a call was given up by an END {gap:.2f} s after its last BEGIN",
        "a call was not given up as required", last, end,
        expected=f"an END with A flag and reason 7 after {wait:g} s",
        actual=f"flags {end.stp.flags:#x}, reason {end.stp.reason} after {gap:.2f} s",
    )  # fmt: skip


@checker("STP-CC-045")
def aborts_say_what_is_known(flow: Flow, context: Context) -> Findings:
    """N(R) and the recipient's CSN of an END with A flag are what its sender knows (5.4)."""
    first: At | None = None
    for at in _aborts(flow):
        first = first or at
        opened = flow.established is not None and flow.established <= at.time
        csn = (flow.tester_csn or 0) if opened else 0
        if flow.tester_csn is None and opened:
            continue
        possible = _possible_n_r(flow, first) if opened else [0]
        if possible is None:
            continue
        actual = at.stp.peer_csn, at.stp.seq
        yield judged(
            context, at.stp.peer_csn == csn and at.stp.seq in possible,
            "an END with A flag carries the peer's CSN and VR(R), or zero while unknown",
            "an END with A flag has a wrong CSN of the recipient or N(R)", at,
            expected=f"CSN of the recipient {csn}, N(R) {possible[0]}",
            actual=f"CSN of the recipient {actual[0]}, N(R) {actual[1]}",
        )  # fmt: skip


def _possible_n_r(flow: Flow, end: At) -> list[int] | None:
    """What VR(R) of the IUT can be on the wire when it sends an END; None when that is not sure.

    The END is the first: the same packet is sent again (section 8, Timer_CC).
    """
    receiver = flow.receiver
    if receiver is None or any(sd.beyond and not sd.duplicate for sd in flow.sds_heard):
        return None
    least, most = receiver.delivered(end.time - DUE_S - flow.timing_error, end.time)
    if most - least >= MODULUS // 2:
        return None
    return [on_wire(count, receiver.iss) for count in range(most, least - 1, -1)]


@checker("STP-SEC-007")
def busy_connections_are_kept(flow: Flow, context: Context) -> Findings:
    """Who has carried data lately is not given up for others (section 10).

    How much else is free is hidden.
    """
    if flow.iut_calls or flow.established is None:
        return
    end = next((at for at in _aborts(flow) if at.stp.reason == NO_RESOURCES), None)
    if end is not None:
        carried = _carried(flow, end.time - DUE_S - flow.timing_error)
        what = f"a connection that had carried {carried} octets in {BUSY_S:g} s was given up"
        what += " for want of resources"
        if carried >= BUSY_OCTETS:
            yield context.violated(
                what, end, expected=f"none that has carried {BUSY_OCTETS}", actual=f"{carried}"
            )
        else:
            yield context.holds(what, end)
        return
    calls = [
        other.begins[0] for other in flow.neighbours
        if not other.iut_calls and other.begins and flow.established < other.begins[0].time
    ]  # fmt: skip
    beside = [call for call in calls if call.time + flow.due_s < flow.over]
    if len(beside) >= CROWD and _carried(flow, beside[-1].time) >= BUSY_OCTETS:
        yield context.holds(f"a busy connection was kept through {len(beside)} calls", beside[-1])


def _carried(flow: Flow, until: float) -> int:
    """Octets that had come for the IUT's user in the :data:`BUSY_S` before, and were reported."""
    reported = max((at.n_r for at in flow.reports_sent if at.time <= until), default=0)
    return sum(
        len(sd.stp.data) for sd in flow.sds_heard
        if sd.number < reported and not sd.duplicate and not sd.misfit
        and until - BUSY_S + DUE_S + flow.timing_error < sd.time
    )  # fmt: skip


@checker("STP-CC-046")
def ends_with_r_are_not_answered(flow: Flow, context: Context) -> Findings:
    """An END with R flag draws neither ENDAK nor END (section 5.5)."""
    for at in flow.heard_of(codec.END):
        if not at.stp.flags & R or flow.state_when(at) is None or not is_alone(flow, at):
            continue
        replies = [
            reply for reply in answers_on_ports(flow, at, (codec.ENDAK, codec.END))
            if reply.stp.type == codec.ENDAK or reply.stp.flags & R
        ]  # fmt: skip
        if replies:
            yield context.violated("an END with R flag was answered", at, replies[0])
        elif observed(flow, at):
            where = "without a connection" if flow.state_when(at) == State.IDLE else "of a peer"
            yield context.holds(f"an END with R flag {where} was not answered", at)
