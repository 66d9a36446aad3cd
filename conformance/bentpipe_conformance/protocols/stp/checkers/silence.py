"""STP-PL: silence (section 7.2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.calling import unanswered_questions
from bentpipe_conformance.protocols.stp.checkers.judgment import judged
from bentpipe_conformance.protocols.stp.checkers.polling import SLACK_S
from bentpipe_conformance.protocols.stp.codec import END
from bentpipe_conformance.protocols.stp.replay.events import PollSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import LEAST_SILENCE_S, MOST_BACKED_OFF_S

BACK_OFF_MARGIN = 0.25
"""Share by which a doubled time may be off; no measurement changes it in silence."""

NO_RESPONSE_S, LATE_S = 60.0, 5.0
"""When a peer that does not answer is given up (STP-PL-008), and how far from it at most: the time
may run from the last STAT or from the first POLL without one."""

NO_ANSWER = 7
"""Reason of an END (section 3.5)."""


@checker("STP-PL-007")
def silence_doubles_the_interval(flow: Flow, context: Context) -> Iterator[Finding]:
    """In silence a sender polls again, each time after twice the time before (section 7.2)."""
    unproven = context.prepared.unproven_until  # STP-SEC-001 may not permit a POLL before
    trips = context.prepared.round_trips(context.ics)
    for start, end in _silences(flow):
        # What was asked before may count for the silence, or may not.
        if any(start <= poll.time <= unproven for poll in flow.polls_sent):
            continue
        start = max(start, unproven)
        polls = [poll for poll in flow.polls_sent if start <= poll.time < end]
        # New data brings POLLs of its own (STP-PL-003, STP-PL-004).
        fresh = max((sd.time for sd in flow.sds_sent if sd.new and sd.time < end), default=start)
        polls = [poll for poll in polls if poll.time >= fresh]
        # With nothing unacknowledged STP-DT-025 and STP-SEC-001 say when to ask.
        if not polls or polls[0].vt_a >= polls[0].vt_s:
            continue
        first = polls[0]
        deviation = trips.with_deviation(first.time)
        interval = trips.interval(first.time)[1]
        longest = max(LEAST_SILENCE_S, (deviation or 0.0) + interval)
        if end - first.time <= longest + SLACK_S + flow.timing_error:
            continue
        # A POLL left after a silence if it is late, or if the next one is later than the interval.
        waits = [later.time - poll.time for poll, later in pairwise(polls)]
        after = [
            poll
            for poll, wait in zip(polls, [*waits, 0.0], strict=True)
            if max(poll.time - first.time, wait) > longest + SLACK_S
        ]
        if not waits or waits[0] > longest + SLACK_S + flow.timing_error:
            yield context.violated(
                f"no POLL followed within {longest:.2f} s of silence", first, *polls[1:2],
                expected="another POLL after the silence time",
                actual=f"one after {waits[0]:.2f} s" if waits else "none",
            )  # fmt: skip
            continue
        yield from _doubles(flow, context, after)


def _silences(flow: Flow) -> Iterator[tuple[float, float]]:
    """Times without a valid STAT or USTAT, except while the interval may still be doubled."""
    begin = stat = flow.established
    if begin is None or stat is None:
        return
    for report in flow.reports_heard:
        if report.fault or not begin < report.time < flow.over:
            continue
        # A USTAT ends a silence, but only a STAT ends the doubling.
        if begin - stat <= LEAST_SILENCE_S:
            yield begin, report.time
        begin = report.time
        stat = begin if report.is_stat else stat
    if begin - stat <= LEAST_SILENCE_S:
        yield begin, flow.over


def _doubles(flow: Flow, context: Context, polls: list[PollSent]) -> Iterator[Finding]:
    """Each time between two POLLs is twice the one before, once there has been a silence."""
    gaps = [later.time - poll.time for poll, later in pairwise(polls)]
    for place, (gap, following) in enumerate(pairwise(gaps)):
        three = polls[place : place + 3]
        wanted = min(2 * gap, MOST_BACKED_OFF_S)
        margin = BACK_OFF_MARGIN * wanted + 2 * flow.timing_error
        what = f"after {gap:.2f} s the next POLL came after {following:.2f} s"
        yield judged(
            context, abs(following - wanted) <= margin, what, what, *three,
            expected=f"about {wanted:.2f} s, twice as long", actual=f"{following:.2f} s",
        )  # fmt: skip


@checker("STP-PL-008")
def silent_peer_is_given_up(flow: Flow, context: Context) -> Iterator[Finding]:
    """A peer that answers nothing for a minute is given up with reason 7 (section 7.2)."""
    gave_up = next(
        (at for at in flow.sent if at.stp.type == END and at.stp.reason == NO_ANSWER), None
    )
    waits = [*_unanswered(flow), *unanswered_questions(flow)]
    due = gave_up is not None and any(_is_due(flow, gave_up.time - start) for start, _ in waits)
    for start, end in waits:
        if gave_up is not None and start < gave_up.time <= end + SLACK_S:
            waited = gave_up.time - start
            if _is_due(flow, waited):
                yield context.holds(f"the peer was given up after {waited:.1f} s", gave_up)
            elif not due:
                yield context.violated(
                    f"the peer was given up {waited:.1f} s after the first POLL or question "
                    "without an answer",
                    gave_up,
                    expected=f"{NO_RESPONSE_S:g} s", actual=f"{waited:.1f} s",
                )  # fmt: skip
        elif end - start > NO_RESPONSE_S + LATE_S + flow.timing_error:
            polls = [poll for poll in flow.polls_sent if poll.time >= start]
            yield context.violated(
                f"the peer answered nothing for {end - start:.1f} s, and was not given up",
                *polls[:1], *polls[-1:],
                expected=f"an END with reason {NO_ANSWER} after {NO_RESPONSE_S:g} s", actual="none",
            )  # fmt: skip


def _is_due(flow: Flow, waited: float) -> bool:
    return abs(waited - NO_RESPONSE_S) <= LATE_S + flow.timing_error


def _unanswered(flow: Flow) -> Iterator[tuple[float, float]]:
    """From the first POLL after a valid STAT to the next valid STAT, or the end."""
    stats = [report.time for report in flow.reports_heard if report.is_stat and not report.fault]
    end = flow.over
    for start, until in pairwise([0.0, *(time for time in stats if time < end), end]):
        # A POLL that left shortly before a STAT arrived is answered by a later one; one that left
        # shortly after it may have been sent before it was read, and be the last.
        polls = [poll.time for poll in flow.polls_sent if start < poll.time < until]
        if polls and polls[-1] > start + flow.due_s:
            yield polls[0], until
