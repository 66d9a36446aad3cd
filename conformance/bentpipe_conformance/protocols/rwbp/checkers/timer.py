"""Checkers for the retransmission timer (RWBP-TM, section 8.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import TypeVar

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.rwbp.checkers import (
    PATIENCE_S,
    TICK_S,
    Context,
    Findings,
    expiring,
    ip_queue,
    judged,
    rule,
    waiting,
)
from bentpipe_conformance.protocols.rwbp.checkers.waiting import refuses_late
from bentpipe_conformance.protocols.rwbp.credit import MODULUS
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.account import LIFE_S
from bentpipe_conformance.protocols.rwbp.replay.events import Expiry, Segment, Sent, Why, after
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.link import entries
from bentpipe_conformance.protocols.tcp.codec import RST

_Segment = TypeVar("_Segment", bound=Segment)

SPARE = 256
"""Packets that are more than a window and what waits beside it."""

COPIES = 2
"""Copies of a segment that are due at most (section 2)."""

LONG_S = 10.0
"""A retransmission that has waited for so long has met a timer that expired."""

SILENCE_S = 5.0
"""A reset after a shorter silence is for another reason."""


def expired(flow: Flow) -> Iterator[Expiry]:
    """The runs of the timer after which something was sent again."""
    return (expiry for expiry in flow.sender.expiries if expiry.copies)


def in_time(context: Context, expiry: Expiry, sentence: str) -> Finding:
    """The finding about how long the timer ran."""
    least = expiry.least - TICK_S - context.timing_error
    most = expiry.most + AT_ONCE_S + context.timing_error
    ran, (low, high) = expiry.lasted, expiry.gap
    between = low + most - expiry.most < ran < high + least - expiry.least
    if least <= ran <= most and not between:
        return context.holds(f"{sentence}, after {ran:.2f} s", expiry.copies[0], expiry.started)
    expected = f"{expiry.least:.2f} s"
    if expiry.most - expiry.least > 0.01:
        link = "or" if low < high else "to"
        expected = f"{expiry.least:.2f} {link} {expiry.most:.2f} s"
    if context.timing_error > 0.1 and least - 0.2 <= ran <= most + 0.2:
        return context.unclear(f"{sentence}, about in time", expiry.copies[0])
    return context.violated(
        sentence, expiry.copies[0], expiry.started, expected=f"after {expected}",
        actual=f"after {ran:.2f} s",
    )  # fmt: skip


@rule("RWBP-TM-001", at_once=True)
def timeout_of_rfc_6298(flow: Flow, context: Context) -> Findings:
    """RTO is computed as in RFC 6298, between 1 s and 60 s."""
    # Exercised by a timeout without back-off.
    for expiry in expired(flow):
        first = not expiry.backoff and expiry.why != "timeout"
        if first and not _restarted(flow, context, expiry):
            yield in_time(context, expiry, f"{expiry.outgoing.span} timed out")


@rule("RWBP-TM-002", at_once=True)
def what_is_measured(flow: Flow, context: Context) -> Findings:
    """One sample of each acknowledgment that reports a segment sent once as its highest."""
    # Exercised by a timeout after an acknowledgment that must yield no sample, or a single one.
    telling = next(
        (
            ack for ack in flow.acks
            if ack.arrived and (len(ack.arrived) > 1 or ack.arrived[-1].ft != ack.arrived[-1].lt)
        ),
        None,
    )  # fmt: skip
    if telling is None:
        return
    for expiry in expired(flow):
        after = expiry.started.packet.number >= telling.packet.number
        if after and not expiry.backoff and expiry.why != "timeout":
            yield in_time(context, expiry, f"{expiry.outgoing.span} timed out after that sample")


@rule("RWBP-TM-003", agreed=True, behind=expiring.started_anew)
def started_anew_by_progress(flow: Flow, context: Context) -> Findings:
    """Progress of any kind starts the timer anew."""
    # Exercised by a timeout after an acknowledgment that reported one of several segments.
    for expiry in expired(flow):
        if expiry.why == "progress" or _restarted(flow, context, expiry):
            sentence = f"{expiry.outgoing.span} timed out, counted from the last progress"
            yield in_time(context, expiry, sentence)


def _restarted(flow: Flow, context: Context, expiry: Expiry) -> bool:
    """Whether a timer came late, and in time after something that must not start it anew."""
    if expiry.lasted <= expiry.most + AT_ONCE_S + context.timing_error:
        return False
    idle = [*flow.sent, *(ack for ack in flow.acks if not ack.arrived)]
    waited = (expiry.until - it.time for it in idle if it.time > expiry.started.time)
    return any(expiry.least - TICK_S <= it <= expiry.most + AT_ONCE_S for it in waited)


@rule("RWBP-TM-004", agreed=True, behind=expiring.backs_off)
def backs_off_until_progress(flow: Flow, context: Context) -> Findings:
    """The timeout doubles with each expiry, up to 60 s, until there is progress."""
    # Exercised by two timeouts in a row, and by one after progress after another.
    before = False
    for expiry in expired(flow):
        if expiry.why == "timeout":
            yield in_time(
                context, expiry, f"{expiry.outgoing.span} timed out {expiry.backoff + 1} times"
            )
        elif before:
            yield in_time(
                context, expiry, f"{expiry.outgoing.span} timed out after earlier timeouts"
            )
        before = True


@rule("RWBP-TM-005", agreed=True)
def held_up_copies_do_not_back_off(flow: Flow, context: Context) -> Findings:
    """A timer that expires while copies wait starts anew with the same time, without back-off."""
    # Exercised by a gateway without credit for many timeouts, and then with it but a silent peer;
    # and by repairs for which the IP queue has no room for so long.
    yield from _others_wait(flow, context)
    for held, later in pairwise(flow.sender.expiries):
        if not held.copies or later.why != "timeout":
            continue
        # What has waited for credit may have been measured so, and RTO be anything then.
        reported = (item for ack in flow.acks if ack.time < later.until for item in ack.arrived)
        measured = max((item.last_sent for item in reported), default=flow.packets[0].time)
        known = _ample(flow, flow.packets[0].time, measured) and _ample(
            flow, held.until, later.until
        )
        if known and not _ample(flow, measured, held.until):
            most = 2 * later.most + AT_ONCE_S + context.timing_error
            yield judged(
                context, later.lasted <= most, "the copies of a timeout had waited for credit",
                *later.copies[:1], later.started, expected=f"others within {most:.1f} s",
                actual=f"none for {later.lasted:.1f} s",
            )  # fmt: skip


def _others_wait(flow: Flow, context: Context) -> Iterator[Finding]:
    """Whether a timeout makes copies of a segment while a higher one awaits retransmission.

    What an acknowledgment has taken for lost awaits it until it enters the IP queue. Of another
    segment no more than two copies are due then (section 2), and a timeout makes none meanwhile.
    """
    if flow.leaves_at_once(context.ics):
        return
    entered = entries(flow.link, ip_queue(context))
    for ack in waiting.in_order(flow):
        again = [next(after(item.transmissions, ack.packet.number), None) for item in ack.taken]
        last = max((it for it in again if it is not None), key=_number, default=None)
        since = ack.time + AT_ONCE_S + flow.slack
        if last is None or any(other.arrived for other in _between(flow.acks, ack, last)):
            continue
        made = [
            sent for sent in _between(flow.sent, ack, last)
            if sent.why is not Why.NEW and entered[sent.packet.number] > since
        ]  # fmt: skip
        count: Counter[int] = Counter()
        third = next((sent for sent in made if _counted(count, sent) > COPIES), None)
        if third is not None:
            yield context.violated(
                f"{third.span} was sent a third time while {last.span} awaited retransmission",
                third, last, ack, expected="the timer to be started anew, and nothing else",
                actual="copies of a timeout",
            )  # fmt: skip
        elif len(count) == len(made) > 0 and entered[last.packet.number] > ack.time + LONG_S:
            yield context.holds(
                f"{last.span} awaited retransmission, and nothing was sent twice", last, ack
            )


def _number(segment: Segment) -> int:
    return segment.packet.number


def _between(segments: Sequence[_Segment], first: Segment, last: Segment) -> Iterator[_Segment]:
    """Those of segments in order that passed between two packets."""
    following = after(segments, first.packet.number)
    return takewhile(lambda item: item.packet.number < last.packet.number, following)


def _counted(count: Counter[int], sent: Sent) -> int:
    """How often a segment has been sent, this time included."""
    count[sent.start] += 1
    return count[sent.start]


def _ample(flow: Flow, begin: float, end: float) -> bool:
    """Whether the gateway granted more than anybody used, all the time, without a pause."""
    told = [item for item in flow.link.told if item.packet.time <= end]
    told = told[max(0, sum(item.packet.time <= begin for item in told) - 1) :]
    times = sorted((begin, *(item.packet.time for item in told), end))
    spare = ((item.frame.limit - item.frame.arrived) % MODULUS for item in told)
    fresh = all(after - before < LIFE_S for before, after in pairwise(times))
    return bool(told) and fresh and all(SPARE < packets < MODULUS // 2 for packets in spare)


@rule("RWBP-TM-006")
def patience(flow: Flow, context: Context) -> Findings:
    """A sender goes on for at least 100 s without any segment from the peer."""
    # Exercised by that much silence while it retransmits or probes.
    # A user of its own may abort at any time; those of the services do not.
    if not flow.service or flow.established is None or not flow.agreed:
        return
    heard = [item for item in flow.arriving if item.time >= flow.established]
    for at, item in enumerate(heard):
        end = heard[at + 1].time if at + 1 < len(heard) else flow.horizon
        if end - item.time < SILENCE_S:
            continue
        sent = [
            one for one in flow.leaving
            if item.time + 1.0 < one.time <= end and one.packet.number <= flow.ended
        ]  # fmt: skip
        given_up = next((one for one in sent if one.tcp.flags & RST), None)
        if given_up is not None and refuses_late(flow, context, given_up):
            return
        if given_up is not None:
            silence = given_up.time - item.time
            yield judged(
                context, silence >= PATIENCE_S - context.timing_error,
                f"the connection was given up after {silence:.0f} s", given_up, item,
                expected="no sooner than after 100 s of silence", actual=f"after {silence:.1f} s",
            )  # fmt: skip
        elif len(sent) > 1 and end - item.time >= PATIENCE_S:
            sentence = f"there was silence for {end - item.time:.0f} s and it tried on"
            yield context.holds(sentence, sent[-1], item)
