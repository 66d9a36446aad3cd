"""STP-CC: packets of no connection, and ENDs that do not know it (section 5.5)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answered,
    answers_on_ports,
    discarded,
    gone_after,
    is_idle,
    many_before,
    observed,
)
from bentpipe_conformance.protocols.stp.codec import A, R
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow, State
from bentpipe_conformance.protocols.stp.replay.reader import is_valid_end

NO_CONNECTION = 2
"""Reason of END (section 3.4)."""

_TOLD_SO = (codec.BGAK, codec.SDP, codec.POLL)
"""What is answered with an END where there is no connection."""

SHOWN_S = 0.5
"""Seconds after a valid END in which a connection that goes on would show it."""

_LIMITED = (*_TOLD_SO, codec.END)
"""What may be answered ten times per second only (STP-CC-020)."""


@checker("STP-CC-020")
def no_connection(flow: Flow, context: Context) -> Findings:
    """A packet of no connection is answered with an END or ENDAK, or discarded (section 5.5)."""
    used: set[int] = set()
    for at in flow.heard:
        stp = at.stp
        if not stp.wellformed:
            continue
        calling = flow.state_when(at) == State.CALLING
        stray = calling and stp.type == codec.BGAK and stp.peer_csn != flow.iut_csn
        if not stray and not is_idle(flow, at):
            continue
        if stp.type in _TOLD_SO:
            yield from _told_so(flow, context, at, used)
        elif stp.type == codec.END and not stp.flags & R:
            what, many = "an END of no connection", many_before(flow, at, _LIMITED)
            replies = _endaks(flow, at)
            yield from answered(flow, context, at, replies, what, "acknowledged", excused=many)
        elif stp.type != codec.BEGIN:
            yield from discarded(flow, context, at, f"{at.name} without a connection")


def _told_so(flow: Flow, context: Context, at: At, used: set[int]) -> Findings:
    """Whether a packet of no connection drew the END of section 5.5, each its own."""
    stp = at.stp
    csn, other = (stp.peer_csn, stp.csn) if stp.type == codec.BGAK else (0, stp.csn)
    replies = (
        reply for reply in _replies(flow, at, codec.END)
        if reply.frame not in used and reply.stp.flags & R
        and (reply.stp.csn, reply.stp.peer_csn) == (csn or 0, other or 0)
    )  # fmt: skip
    reply = next(replies, None)
    what = f"{at.name} without a connection"
    if reply is None:
        if observed(flow, at) and not many_before(flow, at, _LIMITED):
            yield context.violated(f"{what} was not answered with an END", at)
        return
    used.add(reply.frame)
    right = A | R, NO_CONNECTION, tag_of(csn or 0), 0
    actual = reply.stp.flags & (A | R), reply.stp.reason, reply.stp.tag, reply.stp.seq
    yield judged(
        context, actual == right,
        f"{what} was answered with an END", f"{what} was answered with a wrong END", at, reply,
        expected=f"flags, reason, tag and sequence {right}", actual=f"{actual}",
    )  # fmt: skip


def _replies(flow: Flow, at: At, kind: int) -> list[At]:
    """The ENDs or ENDAKs after a packet, on any connection of its ports, in order."""
    return sorted(answers_on_ports(flow, at, (kind,)), key=lambda reply: reply.frame)


def _endaks(flow: Flow, end: At) -> list[At]:
    """The ENDAKs that acknowledge an END."""
    return [
        reply for reply in _replies(flow, end, codec.ENDAK) if reply.stp.peer_csn == end.stp.csn
    ]


@checker("STP-CC-021")
def ends_must_know_the_connection(flow: Flow, context: Context) -> Findings:
    """An END counts if it is valid, and only then (section 5.5)."""
    for at in flow.heard_of(codec.END):
        if flow.state_when(at) in (State.IDLE, None):
            continue
        if _was_valid(flow, at):
            yield from _counted(flow, context, at)
            continue
        flags = " with R flag" if at.stp.flags & R else ""
        what = f"an END{flags} that does not know the connection"
        gone = gone_after(flow, at) if flow.state_when(at) == State.OPEN else None
        if gone is not None and flow.ended is None:
            yield context.violated(f"{what} ended it", at, gone)
        else:
            yield from discarded(flow, context, at, what)


def _counted(flow: Flow, context: Context, end: At) -> Findings:
    """Whether a valid END has ended the connection."""
    after = [
        at for at in flow.sent
        if at.time > end.time + flow.due_s and not at.stp.fault
        and at.stp.type in (*TAGGED, codec.BEGIN, codec.END) and not at.stp.flags & R
    ]  # fmt: skip
    # What went on only by its END is judged by STP-CC-026, an END without ENDAK by STP-CC-022.
    if flow.state_when(end) == State.RELEASING:
        after = [at for at in after if at.stp.type != codec.END]
    if not end.stp.flags & R and not _endaks(flow, end):
        return
    # Packets whose CSN does not show may be of the next connection on the ports.
    alone = flow.displaced_by is None
    if after and alone:
        yield context.violated("a connection went on after a valid END", end, after[0])
    elif flow.until - end.time > SHOWN_S:
        yield context.holds("a valid END ended the connection", end)


def _was_valid(flow: Flow, at: At) -> bool:
    """Whether an END was valid when it arrived; before the BGAK the peer's CSN is not known."""
    opened = flow.established
    known = opened is not None and opened < at.time
    return is_valid_end(flow, at.stp, known=known)


@checker("STP-CC-022")
def ends_are_acknowledged(flow: Flow, context: Context) -> Findings:
    """A valid END without R flag is answered with an ENDAK, in every state (section 5.4)."""
    for at in flow.heard_of(codec.END):
        stp, state = at.stp, flow.state_when(at)
        if stp.flags & R:
            continue
        many = False
        if state == State.IDLE:
            due, many = is_idle(flow, at), many_before(flow, at, _LIMITED)
        elif state is None:
            # Whatever the state is, such an END is valid, unless other calls have the ports.
            due = flow.names(at) and len(flow.same_ports) == 1
        else:
            due = _was_valid(flow, at)
        if not due:
            continue
        replies = _endaks(flow, at)
        # Section 5.4: the tag is that of the END's CSN of the recipient, even if it is zero.
        tag = tag_of(stp.peer_csn or 0)
        if replies and replies[0].stp.tag != tag:
            yield context.violated(
                "an ENDAK has a wrong tag", at, replies[0],
                expected=f"{tag:#06x}", actual=f"{replies[0].stp.tag:#06x}",
            )  # fmt: skip
        else:
            what = "a valid END"
            yield from answered(flow, context, at, replies, what, "acknowledged", excused=many)
