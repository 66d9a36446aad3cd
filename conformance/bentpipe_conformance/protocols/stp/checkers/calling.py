"""STP-CC: calling (section 5.1), and repetition by Timer_CC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    heard_packets,
    name,
    path_class,
)
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ, END
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.flow import CALLING, TAGGED, Flow

TIMER_CC_S = {"geo": 1.0, "leo": 1.0, "vbdc": 3.0}
"""First wait for BGAK or ENDAK by path class (section 8)."""

MAX_CC = 5
"""Transmissions of a BEGIN or END (section 8)."""

EARLIEST, LATEST, TICK_S = 0.95, 1.1, 0.1
"""A timer may be coarse: the part of its time after which it may, and must, have expired."""

PATIENCE_S = 8.0
"""A silence time, with much to spare, on the links of the suite."""


@checker("STP-CC-002")
def early_data_within_early_credit(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs that the IUT sent before its BEGIN was acknowledged."""
    if not flow.iut_calls or not flow.begins:
        return
    answered = next((p.time for p in flow.bgaks if not p.outgoing), None)
    until = flow.until if answered is None else answered - flow.timing_error
    early = [sd for sd in flow.sds_sent if sd.time < until]
    numbers = {sd.number for sd in early}
    above = [sd for sd in early if sd.number >= EARLY_CREDIT]
    if above or len(numbers) > EARLY_CREDIT:
        yield context.violated(
            f"{len(numbers)} SDs, up to number {max(numbers)}, were sent before the BEGIN was "
            "acknowledged",
            *(above or early)[:1],
            expected=f"at most {EARLY_CREDIT}, numbered 0 to {EARLY_CREDIT - 1}",
            actual=f"{len(numbers)}",
        )  # fmt: skip
    elif until - flow.begins[0].time >= TICK_S:
        yield context.holds(
            f"{len(numbers)} SDs were sent before the BEGIN was acknowledged", At(flow.begins[0])
        )


@checker("STP-CC-014")
def repeated_begin_is_equal(flow: Flow, context: Context) -> Iterator[Finding]:
    """Every BEGIN of a call of the IUT against its first."""
    sent = [packet for packet in flow.begins if packet.outgoing and packet.content is not None]
    for packet in sent[1:]:
        first, again = sent[0].content, packet.content
        assert first is not None and again is not None
        if first.octets == again.octets:
            yield context.holds("a BEGIN was repeated as it was", At(sent[0]), At(packet))
        else:
            yield context.violated(
                "a BEGIN was repeated with other contents", At(sent[0]), At(packet),
                expected=first.octets.hex(), actual=again.octets.hex(),
            )  # fmt: skip


@checker("STP-CC-016")
def begin_is_repeated_by_timer(flow: Flow, context: Context) -> Iterator[Finding]:
    """The times of an unanswered call's BEGINs."""
    if not flow.iut_calls:
        return
    sent = [packet for packet in flow.begins if packet.outgoing]
    over = [
        at.packet.time for at, stp in heard_packets(flow) if stp.type in (BEGIN, BGAK, BGREJ, END)
    ]
    if flow.ended is not None:
        over.append(flow.ended)
    yield from repetitions(flow, context, sent, min(over, default=None))
    done = min((time for time in (flow.established, flow.ended) if time is not None), default=None)
    answer = next((packet for packet in flow.packets if packet.time == done), None)
    if answer is not None:
        yield from left_alone(flow, context, sent, At(answer))


def repetitions(
    flow: Flow, context: Context, sent: Sequence[Packet], answered: float | None
) -> Iterator[Finding]:
    """Whether a BEGIN or END is repeated when Timer_CC expires, and not too often.

    Args:
        flow: the connection.
        context: of the requirement.
        sent: the transmissions.
        answered: when something arrived that may have ended the wait, None if nothing did.
    """
    until = flow.until if answered is None else answered
    # One that leaves at the very time of the answer is an answer to it.
    waiting = [packet for packet in sent if answered is None or packet.time < answered]
    if not waiting or waiting[0].content is None:
        return
    what = name(waiting[0].content)
    wait = TIMER_CC_S.get(path_class(context), 1.0)
    for place, packet in enumerate(waiting):
        if place >= MAX_CC:
            yield context.violated(f"{what} was sent {place + 1} times", At(packet))
            return
        least = EARLIEST * wait - flow.timing_error
        most = LATEST * wait + TICK_S + flow.timing_error
        later = waiting[place + 1] if place + 1 < len(waiting) else None
        gap = (later.time if later else until) - packet.time
        where = [At(packet), *([At(later)] if later else [])]
        if later is not None and not least <= gap <= most:
            yield context.violated(
                f"{what} was repeated after {gap:.2f} s", *where,
                expected=f"{wait:g} s", actual=f"{gap:.2f} s",
            )  # fmt: skip
        elif later is not None:
            yield context.holds(f"{what} was repeated after {gap:.2f} s", *where)
        elif gap > most and place + 1 < MAX_CC:
            yield context.violated(
                f"{what} was not repeated within {gap:.2f} s", *where, expected=f"{wait:g} s"
            )
        wait *= 2


def left_alone(
    flow: Flow, context: Context, sent: Sequence[Packet], answer: At
) -> Iterator[Finding]:
    """Whether a BEGIN or END was not sent again once it had been answered.

    Args:
        flow: the connection.
        context: of the requirement.
        sent: the transmissions.
        answer: the packet that ended the wait.
    """
    if not sent or sent[0].content is None:
        return
    what = name(sent[0].content)
    late = [p for p in sent if p.time > answer.packet.time + DUE_S + flow.timing_error]
    wait = TIMER_CC_S.get(path_class(context), 1.0) * 2.0 ** (len(sent) - 1)
    due = sent[-1].time + LATEST * wait + TICK_S + flow.timing_error
    if late:
        yield context.violated(f"{what} was sent again after its answer", answer, At(late[0]))
    elif len(sent) < MAX_CC and flow.until > due:
        yield context.holds(f"{what} was not sent again after its answer", At(sent[-1]), answer)


@checker("STP-CC-030")
def caller_makes_sure_that_it_is_heard(flow: Flow, context: Context) -> Iterator[Finding]:
    """POLLs of a caller after the BGAK, until something of the peer shows that it was heard."""
    opened = next((p for p in flow.bgaks if not p.outgoing and p.time == flow.established), None)
    if not flow.iut_calls or opened is None or _state(flow, opened) != CALLING:
        return
    heard = next(
        (at.packet.time for at, stp in heard_packets(flow)
         if stp.type in TAGGED and at.packet.number > opened.number), None
    )  # fmt: skip
    until = min(time for time in (heard, flow.ended, flow.until) if time is not None)
    # Whether its time is measured already is not known, so the initial interval is granted.
    interval = TIMER_CC_S.get(path_class(context), 1.0)
    due = opened.time + LATEST * interval + TICK_S + flow.timing_error
    polls = [poll for poll in flow.polls_sent if poll.time >= opened.time - flow.timing_error]
    if polls and polls[0].time <= due:
        yield context.holds("a POLL followed the BGAK", At(opened), polls[0])
    elif until > due:
        yield context.violated(
            "no POLL followed the BGAK in time", At(opened), *polls[:1],
            expected=f"within {interval:g} s",
        )  # fmt: skip
        return
    # Each silence at most doubles the time between POLLs (STP-PL-007).
    for place, poll in enumerate(polls):
        if poll.time > until:
            return
        patience = PATIENCE_S * 2.0**place + flow.timing_error
        later = polls[place + 1].time if place + 1 < len(polls) else until
        if min(later, until) - poll.time > patience:
            yield context.violated(
                f"no POLL followed within {patience:.0f} s, though the peer had not shown itself",
                poll,
            )
            return


def _state(flow: Flow, packet: Packet) -> int | None:
    return flow.state_before.get(packet.number)
