"""STP-CC: calls that wait side by side between the same addresses and ports (section 5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    answers,
    heard_packets,
    observed_long_enough,
)
from bentpipe_conformance.protocols.stp.checkers.discarding import on_same_ports
from bentpipe_conformance.protocols.stp.checkers.robustness import LEAST_PENDING
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, END, POLL, SDP, STAT, C
from bentpipe_conformance.protocols.stp.replay.flow import CALLED, Flow


@checker("STP-CC-033")
def calls_wait_side_by_side(flow: Flow, context: Context) -> Iterator[Finding]:
    """What became of a call during whose wait others came to its ports."""
    if flow.iut_calls or flow.known or flow.iut_csn is None:
        return
    others = [
        at
        for other in on_same_ports(flow)
        for at, stp in heard_packets(other)
        if stp.type == BEGIN and stp.wellformed and stp.version == 1
        and stp.csn != flow.tester_csn and flow.state_at(at.packet.time) == CALLED
    ]  # fmt: skip
    for at in others:
        yield from _asked(flow, context, at)
    yield from _opens(flow, context)
    if flow.established is not None:
        yield from _alone(flow, context)


def _asked(flow: Flow, context: Context, begin: At) -> Iterator[Finding]:
    """Whether a BEGIN that came beside a pending call is asked for confirmation."""
    stp = begin.packet.content
    assert stp is not None
    if flow.pending_beside >= LEAST_PENDING:
        return  # the pending call may have made room
    for other in on_same_ports(flow):
        replies = [
            reply for reply in answers(other, begin, (BGAK,))
            if reply.packet.content is not None and reply.packet.content.peer_csn == stp.csn
        ]  # fmt: skip
        # A later one may answer the call's confirmation, or its BEGIN once it is open.
        for reply in replies[:1]:
            found = reply.packet.content
            if found is not None and not found.flags & C:
                yield context.violated(
                    "a BEGIN was accepted at once beside a call that waited for confirmation",
                    begin, reply,
                )  # fmt: skip


def _opens(flow: Flow, context: Context) -> Iterator[Finding]:
    """Whether the call opens when it is confirmed, by the answers to its POLLs."""
    confirmed = next(
        (
            At(packet) for packet in flow.bgaks
            if not packet.outgoing and flow.state_before.get(packet.number) == CALLED
            and packet.content is not None and packet.content.wellformed
            and (packet.content.csn, packet.content.peer_csn) == (flow.tester_csn, flow.iut_csn)
        ),
        None,
    )  # fmt: skip
    if confirmed is None or flow.established != confirmed.packet.time:
        return
    beside = [
        At(other.begins[0]) for other in on_same_ports(flow)
        if other is not flow and other.begins
        and other.state_at(confirmed.packet.time) == CALLED
    ]  # fmt: skip
    if not beside or flow.pending_beside >= LEAST_PENDING:
        return
    polls = [poll for poll in flow.polls_heard if poll.open]
    answered = [poll for poll in polls if poll.answers]
    if answered:
        yield context.holds(
            f"a call opened when it was confirmed, though {len(beside)} waited beside it",
            *beside[:1], confirmed, answered[0],
        )  # fmt: skip
    elif polls and observed_long_enough(flow, At(polls[0].packet)):
        ends = answers(flow, confirmed, (END,))
        yield context.violated(
            "a call did not open when it was confirmed, after another BEGIN had come to its ports",
            *beside[:1], confirmed, *ends, polls[0],
        )  # fmt: skip


def _alone(flow: Flow, context: Context) -> Iterator[Finding]:
    """Whether none of the calls that waited beside an open one goes on, or ever opens."""
    assert flow.established is not None
    opened = flow.established
    start = opened + DUE_S + flow.timing_error
    for other in on_same_ports(flow):
        if other is flow or other.state_at(flow.established) != CALLED:
            continue
        # Another BEGIN makes a new call of it.
        end = min((p.time for p in other.begins if p.time > opened), default=math.inf)
        later = [p for p in other.packets if p.content is not None and start < p.time < end]
        stats = [p for p in later if p.outgoing and p.content and p.content.type == STAT]
        asked = [p for p in later if not p.outgoing and p.content and p.content.type in (POLL, SDP)]
        if stats:
            over = flow.ended is not None and stats[0].time > flow.ended
            yield context.violated(
                "a call opened that had to be forgotten when another one beside it opened" if over
                else "two calls between the same addresses and ports were open at once",
                At(stats[0]),
            )  # fmt: skip
        elif asked and observed_long_enough(flow, At(asked[0])):
            yield context.holds(
                "a call was forgotten when another one beside it opened", At(asked[0])
            )
