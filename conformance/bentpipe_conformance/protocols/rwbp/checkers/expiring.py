"""The retransmission timer where what it sends waits for a link rate or for credit (section 8.4).

Some copies only the timer can have made. And there are times at which the IP queue is surely empty,
so that what the timer then makes leaves at once. By both it is known when it has not expired yet,
and that it should have; what is measured of round trips, the waits in the queue included, is known
within bounds.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise, zip_longest

from bentpipe_conformance.engine.statement import declared
from bentpipe_conformance.protocols.rwbp.checkers import (
    PATIENCE_S,
    TICK_S,
    Context,
    Findings,
    ip_queue,
    judged,
)
from bentpipe_conformance.protocols.rwbp.checkers.waiting import guessed
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.estimate import (
    AFTER_REPETITION_S,
    LEAST_S,
    MOST_S,
)
from bentpipe_conformance.protocols.rwbp.replay.events import Ack, Outgoing, Sent, Why
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.idle import Span
from bentpipe_conformance.protocols.rwbp.replay.link import entries

SPREAD = 5
"""SRTT is no longer than the longest sample, nor is RTTVAR, and RTO is SRTT + 4 RTTVAR."""


def by_timer(flow: Flow, context: Context) -> Iterator[tuple[Sent, Sent | None]]:
    """First copies that only the timer can have made, with what the connection sent next.

    Nothing that had been sent later had arrived when they left, so that they were not taken for
    lost. What may have been, or stands right behind that, may be a repair or a copy.
    """
    until, highest, news = guessed(flow, context), 0, iter(flow.acks)
    ack: Ack | None = next(news, None)
    last: dict[int, int] = {}
    unsure = second = -1
    for number, (sent, following) in enumerate(zip_longest(flow.sent, flow.sent[1:]), start=1):
        if sent.time >= until:
            return
        while ack is not None and ack.packet.number < sent.packet.number:
            highest = max((highest, *(item.ft for item in ack.arrived)))
            ack = next(news, None)
        before, last[sent.start] = last.get(sent.start, 0), number
        again = bool(before) and sent.outgoing is not None
        if again and _idle_after(flow.sent[number - 2], context) < sent.time:
            unsure = second = -1  # what was made with the one before has left with it
        if again and (highest > before or sent.start == unsure):
            unsure, second = sent.start, -1
        elif again and sent.start != second:
            unsure, second = -1, sent.start
            yield sent, following
        else:
            unsure = second = -1


def two_copies(flow: Flow, context: Context) -> Findings:
    """What the timer has chosen is sent twice before anything else (RWBP-EC-007)."""
    # Exercised by a copy that only the timer can have made, and what is sent after it.
    until = min(guessed(flow, context), flow.horizon)
    for first, following in by_timer(flow, context):
        idle = _idle_after(first, context)
        by = idle if following is None else min(idle, following.time)
        item = first.outgoing
        if by >= until or item is None or (item.arrived is not None and item.arrived.time <= by):
            continue
        met = following is not None and following.time == by and following.start == first.start
        yield judged(
            context, met, f"the timer expired and {first.span} was sent again", first,
            *([following] if following is not None else []), expected="two copies",
            actual="one, and then another segment or nothing though the link was free",
        )  # fmt: skip
        if not met:
            return


def _idle(context: Context) -> list[Span]:
    rate, gateway = context.ics.get("link_rate_bps", 0), declared(context.ics, "gateway")
    return context.prepared.idle(float(rate), gateway)


def _idle_after(sent: Sent, context: Context) -> float:
    """When first after a packet had left the IP queue was surely empty."""
    idle = _idle(context)
    at = bisect_right(idle, (sent.time, math.inf))
    return idle[at][0] if at < len(idle) else math.inf


def _expired(flow: Flow, context: Context) -> Iterator[tuple[Sent, float]]:
    """First copies of timeouts, with a time before which the timer had not expired."""
    idle = _idle(context)
    begins = [begin for begin, _ in idle]
    for first, _ in by_timer(flow, context):
        at = bisect_left(begins, first.time)
        ends = idle[at - 1][1] if at else -math.inf
        yield first, min(ends, first.time) - AT_ONCE_S - flow.slack


def started_anew(flow: Flow, context: Context) -> Findings:
    """Progress starts the timer anew, which runs for 1 s or more (RWBP-TM-003)."""
    # Exercised by a copy that only the timer can have made, after progress that it has not met.
    progress = [ack for ack in flow.acks if ack.arrived]
    times = [ack.time for ack in progress]
    for first, known in _expired(flow, context):
        at = bisect_left(times, known)
        if at == 0:
            continue
        ran = first.time - times[at - 1]
        yield judged(
            context, ran >= LEAST_S - TICK_S - context.timing_error,
            f"the timer expired for {first.span}, counted from the last progress", first,
            progress[at - 1], expected="a run of at least 1 s", actual=f"{ran:.2f} s",
        )  # fmt: skip


def backs_off(flow: Flow, context: Context) -> Findings:
    """Of timeouts in a row each takes twice as long as the one before, or more (RWBP-TM-004)."""
    # Exercised by copies that only the timer can have made, one after another without progress.
    times = [ack.time for ack in flow.acks if ack.arrived]
    before: Sent | None = None
    since, row = -math.inf, 0
    for first, known in _expired(flow, context):
        if bisect_left(times, since) < bisect_left(times, first.time):
            row = 0  # there has been progress
        if row and before is not None and since > -math.inf:
            least, ran = min(MOST_S, LEAST_S * 2**row), first.time - since
            yield judged(
                context, ran >= least - TICK_S - context.timing_error,
                f"the timer expired for {first.span} after {row} timeouts in a row", first, before,
                expected=f"a run of at least {least:.0f} s", actual=f"{ran:.2f} s",
            )  # fmt: skip
        before, since, row = first, known, row + 1


def expires_at_last(flow: Flow, context: Context) -> Findings:
    """Where something is outstanding, and what is sent leaves, a copy comes (RWBP-EC-005)."""
    # Exercised by silence for longer than the longest that the timer may run.
    until = min(guessed(flow, context), flow.horizon)
    if flow.established is None or flow.opening.iut_calls:
        return
    heard = [item.time for item in flow.arriving]
    for begin, ends in _idle(context):
        end = min(ends, until)
        if end - begin <= LEAST_S:
            continue
        inside = heard[bisect_left(heard, begin) : bisect_left(heard, end)]
        for since, following in pairwise([begin, *inside, end]):
            before = bisect_right(heard, since)
            last = min(following, heard[before - 1] + PATIENCE_S if before else since)
            if last - since <= LEAST_S:
                continue
            waits = next((it for it in _outstanding(flow) if _waits(it, since, last)), None)
            if waits is None:
                continue
            most = _longest(flow, context, since)
            if last - since > most + AT_ONCE_S + flow.slack + context.timing_error:
                yield context.violated(
                    f"{waits.span} was outstanding, and nothing was sent again",
                    waits.transmissions[0], expected=f"a copy after {most:.1f} s at most",
                    actual=f"none for {last - since:.1f} s",
                )  # fmt: skip
                return
    for first, _ in by_timer(flow, context):
        yield context.holds(f"the timer expired for {first.span}", first)


def _outstanding(flow: Flow) -> Iterator[Outgoing]:
    return (sent.outgoing for sent in flow.sent if sent.why is Why.NEW and sent.outgoing)


def _waits(item: Outgoing, since: float, last: float) -> bool:
    """Whether a segment had left before a time, and had not arrived after it."""
    return item.transmissions[0].time <= since and (
        item.arrived is None or item.arrived.time >= last
    )


def _longest(flow: Flow, context: Context, now: float) -> float:
    """How long the timer may run at most: every sample may have been the longest of all."""
    entered = entries(flow.link, ip_queue(context))
    assert flow.established is not None
    samples = [flow.established - flow.opening.theirs[0].time]
    news = -1
    for ack in flow.acks:
        if ack.time > now:
            break
        for item in ack.arrived:
            least = max(entered[item.transmissions[0].packet.number], flow.established)
            samples.append(ack.time - least)
            news = ack.packet.number
    rto = max(AFTER_REPETITION_S, SPREAD * max(samples))
    copies = sum(
        sent.why is not Why.NEW and sent.packet.number > news and sent.time <= now
        for sent in flow.sent
    )
    return float(min(MOST_S, rto * 2 ** min(copies, 16)))
