"""STP-PL: silence (section 7.2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    round_trips_of,
    unproven_until,
)
from bentpipe_conformance.protocols.stp.checkers.polling import SLACK_S
from bentpipe_conformance.protocols.stp.checkers.proving import unanswered_questions
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
    """The times of POLLs while no report arrives."""
    unproven = unproven_until(flow)  # STP-SEC-001 may not permit a POLL before
    trips = round_trips_of(context)
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
        again = next((poll for poll in polls[1:]), None)
        if again is None or again.time - first.time > longest + SLACK_S + flow.timing_error:
            yield context.violated(
                f"no POLL followed within {longest:.2f} s of silence", first, *polls[1:2],
                expected="another POLL after the silence time",
                actual="none" if again is None else f"one after {again.time - first.time:.2f} s",
            )  # fmt: skip
            continue
        yield from _doubles(flow, context, after)


def _silences(flow: Flow) -> Iterator[tuple[float, float]]:
    """Times without a valid STAT or USTAT, but those in which the interval may be doubled still."""
    begin = stat = flow.established
    if begin is None or stat is None:
        return
    end = flow.until if flow.ended is None else flow.ended
    for report in flow.reports_heard:
        if report.fault or not begin < report.time < end:
            continue
        # A USTAT ends a silence, but only a STAT ends the doubling.
        if begin - stat <= LEAST_SILENCE_S:
            yield begin, report.time
        begin = report.time
        stat = begin if report.is_stat else stat
    if begin - stat <= LEAST_SILENCE_S:
        yield begin, end


def _doubles(flow: Flow, context: Context, polls: list[PollSent]) -> Iterator[Finding]:
    """Each time between two POLLs is twice the one before, once there has been a silence."""
    gaps = [later.time - poll.time for poll, later in pairwise(polls)]
    for place, (gap, following) in enumerate(pairwise(gaps)):
        three = polls[place : place + 3]
        wanted = min(2 * gap, MOST_BACKED_OFF_S)
        margin = BACK_OFF_MARGIN * wanted + 2 * flow.timing_error
        if abs(following - wanted) > margin:
            yield context.violated(
                f"after {gap:.2f} s the next POLL came after {following:.2f} s", *three,
                expected=f"about {wanted:.2f} s, twice as long",
                actual=f"{following:.2f} s",
            )  # fmt: skip
        else:
            yield context.holds(
                f"after {gap:.2f} s the next POLL came after {following:.2f} s", *three
            )


@checker("STP-PL-008")
def silent_peer_is_given_up(flow: Flow, context: Context) -> Iterator[Finding]:
    """The END with reason 7 after POLLs without a STAT, or questions without a packet, a minute."""
    gave_up = [
        At(packet)
        for packet in flow.packets
        if packet.outgoing
        and packet.content is not None
        and packet.content.type == END
        and packet.content.reason == NO_ANSWER
    ]
    waits = [*_unanswered(flow), *unanswered_questions(flow)]
    due = [
        start for start, _ in waits
        if gave_up and _is_due(flow, gave_up[0].packet.time - start)
    ]  # fmt: skip
    for start, end in waits:
        if gave_up and start < gave_up[0].packet.time <= end + SLACK_S:
            waited = gave_up[0].packet.time - start
            if _is_due(flow, waited):
                yield context.holds(f"the peer was given up after {waited:.1f} s", gave_up[0])
            elif not due:
                yield context.violated(
                    f"the peer was given up {waited:.1f} s after it was first asked in vain",
                    gave_up[0],
                    expected=f"{NO_RESPONSE_S:g} s",
                    actual=f"{waited:.1f} s",
                )
        elif end - start > NO_RESPONSE_S + LATE_S + flow.timing_error:
            polls = [poll for poll in flow.polls_sent if poll.time >= start]
            yield context.violated(
                f"the peer was asked in vain for {end - start:.1f} s, and not given up",
                *polls[:1], *polls[-1:],
                expected=f"an END with reason {NO_ANSWER} after {NO_RESPONSE_S:g} s",
                actual="none",
            )  # fmt: skip


def _is_due(flow: Flow, waited: float) -> bool:
    return abs(waited - NO_RESPONSE_S) <= LATE_S + flow.timing_error


def _unanswered(flow: Flow) -> Iterator[tuple[float, float]]:
    """From the first POLL after a valid STAT to the next valid STAT, or the end."""
    stats = [report.time for report in flow.reports_heard if report.is_stat and not report.fault]
    end = flow.until if flow.ended is None else flow.ended
    for start, until in pairwise([0.0, *(time for time in stats if time < end), end]):
        # A POLL that left shortly before a STAT arrived is answered by a later one; one that left
        # shortly after it may have been sent before it was read, and be the last.
        polls = [poll.time for poll in flow.polls_sent if start < poll.time < until]
        if polls and polls[-1] > start + DUE_S + flow.timing_error:
            yield polls[0], until
