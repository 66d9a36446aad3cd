"""STP-PL and STP-DT: POLLs sent by timer: in silence, for SDs not acknowledged, and for credit.

Sections 6.6, 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log2

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.calling import unanswered_questions
from bentpipe_conformance.protocols.stp.checkers.polling import SLACK_S
from bentpipe_conformance.protocols.stp.codec import BGAK, END, POLL
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, EARLY_CREDIT
from bentpipe_conformance.protocols.stp.replay.events import PollSent, ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import (
    LEAST_SILENCE_S,
    MOST_BACKED_OFF_S,
    MOST_PROBING_S,
)

BACK_OFF_MARGIN = 0.25
"""Share by which a doubled time may be off; no measurement changes it in silence."""

NO_RESPONSE_S, LATE_S = 60.0, 5.0
"""When a peer that does not answer is given up (STP-PL-008), and how far from it at most: the time
may run from the last STAT or from the first POLL without one."""

NO_ANSWER = 7
"""Reason of an END (section 3.5)."""

PROBE_SLACK_S, LATE = 0.1, 1.25
"""By how many seconds, and by what factor, a POLL may be later than its timer says."""

DOUBLED = (1.5, 2.5)
"""Between what a time is about twice the one before; the round-trip time is measured anew."""


@checker("STP-PL-007")
def silence_doubles_the_interval(flow: Flow, context: Context) -> Findings:
    """In silence a sender polls again, each time after twice the time before (section 7.2)."""
    unproven = context.prepared.unproven_until  # STP-SEC-001 may not permit a POLL before
    trips = context.prepared.round_trips(context.ics)
    for start, end in _silences(flow):
        # What was asked before may count for the silence, or may not.
        if end - start <= LEAST_SILENCE_S or any(
            start <= poll.time <= unproven for poll in flow.polls_sent
        ):
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
        longest = trips.silence(first.time)
        if end - first.time <= longest + SLACK_S + flow.timing_error:
            continue
        # A POLL left after a silence if it is late, or if the next one is later than the interval.
        waits = [later.time - poll.time for poll, later in pairwise(polls)]
        after = [
            poll for poll, wait in zip(polls, [*waits, 0.0], strict=True)
            if max(poll.time - first.time, wait) > longest + SLACK_S
        ]  # fmt: skip
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


def _doubles(flow: Flow, context: Context, polls: list[PollSent]) -> Findings:
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
def silent_peer_is_given_up(flow: Flow, context: Context) -> Findings:
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


@checker("STP-DT-004")
def polls_go_on_while_anything_is_unacknowledged(flow: Flow, context: Context) -> Findings:
    """While an SD is unacknowledged, one POLL follows the other (section 7.1)."""
    proven = context.prepared.proof
    trips = context.prepared.round_trips(context.ics)
    for start, quiet, following in _waits(flow):
        # STP-SEC-001 may not permit a POLL before.
        if not flow.iut_calls and (proven is None or start.frame < proven.frame):
            continue
        until = flow.over if following is None else following.time
        waited = until - start.time
        # A silence lasts a second at least, the next twice as long (STP-PL-007). A measurement
        # that is made meanwhile counts (section 7.1).
        silences = int(log2((quiet + PROBE_SLACK_S + flow.timing_error) / LEAST_SILENCE_S + 1))
        longest = min(trips.silence(until) * 2.0 ** min(silences, 6), MOST_BACKED_OFF_S)
        if waited > LATE * longest + PROBE_SLACK_S + flow.timing_error:
            yield context.violated(
                f"no POLL followed for {waited:.1f} s though an SD was unacknowledged",
                start, *([] if following is None else [following]),
                expected=f"one within {longest:.2f} s",
                actual="none" if following is None else f"one after {waited:.2f} s",
            )  # fmt: skip
        elif following is not None and following.stp.type == POLL:
            yield context.holds(
                f"a POLL followed after {waited:.2f} s though there was nothing new to send",
                start, following,
            )  # fmt: skip


def _waits(flow: Flow) -> Iterator[tuple[SdSent | PollSent, float, PollSent | None]]:
    """From when the timer for POLLs runs at the latest, seconds without STAT, the next POLL.

    Only times in which something is unacknowledged throughout.
    """
    start: SdSent | PollSent | None = None
    if flow.established is None:
        return
    heard = flow.established
    quiet = 0.0
    for event in flow.events:
        if event.time > flow.over:
            break
        if isinstance(event, SdSent):
            if start is None and event.time >= flow.established:
                start, quiet = event, event.time - heard
        elif isinstance(event, PollSent):
            if start is not None:
                yield start, quiet, event
            # Before the connection is open no timer repeats POLLs (section 5.1).
            open_ = event.time >= flow.established
            start = event if open_ and event.vt_a < event.vt_s else None
            quiet = max(0.0, event.time - heard)
        elif isinstance(event, ReportHeard) and not event.fault and event.stp.type != BGAK:
            # Only a STAT ends the doubling (STP-PL-007).
            heard = event.time if event.is_stat else heard
            if event.n_r >= event.vt_s:
                start = None
    if start is not None:
        yield start, quiet, None


@checker("STP-DT-025")
def closed_window_is_probed(flow: Flow, context: Context) -> Findings:
    """Without credit a sender with data polls, the time in between doubling (section 6.6)."""
    if flow.service != CHARGEN or flow.iut_calls:
        return
    trips = context.prepared.round_trips(context.ics)
    for closed, polls, until in _closed_windows(flow):
        longest = min(trips.silence(polls[0].time if polls else until), MOST_BACKED_OFF_S)
        first = (polls[0].time if polls else until) - closed.time
        if first > LATE * longest + PROBE_SLACK_S + flow.timing_error:
            yield context.violated(
                f"a closed window was not probed for {first:.1f} s", closed, *polls[:1],
                expected=f"a POLL within {longest:.2f} s",
                actual="none" if not polls else f"one after {first:.2f} s",
            )  # fmt: skip
            continue
        last = until - polls[-1].time if polls else 0.0
        if len(polls) == 1 and last > LATE * 2 * longest + PROBE_SLACK_S + flow.timing_error:
            yield context.violated(
                f"a closed window was probed once, then not for {last:.1f} s", closed, *polls
            )
        gaps = [later.time - poll.time for poll, later in pairwise(polls)]
        for place, (gap, following) in enumerate(pairwise([*gaps, last])):
            ended = place + 1 == len(gaps)
            # Silences poll as well, by a timer of their own (STP-PL-007).
            if _silent(flow, closed, until if ended else polls[place + 2].time):
                break
            # The first may be the poll interval once more: since the window closed, and since then.
            least = gap * (0.75 if place == 0 else DOUBLED[0])
            most = min(gap * DOUBLED[1], LATE * MOST_PROBING_S)
            error = PROBE_SLACK_S + 2 * flow.timing_error
            early = not ended and following < min(least, 0.75 * MOST_PROBING_S) - error
            if early or following > most + error:
                yield context.violated(
                    f"{gap:.2f} s between two POLLs into a closed window were followed by "
                    f"{following:.2f} s{' without one' if ended else ''}",
                    closed, *polls[place : place + 3],
                    expected=f"about {min(2 * gap, MOST_PROBING_S):.2f} s",
                    actual=f"{following:.2f} s",
                )  # fmt: skip
            elif not ended:
                yield context.holds(
                    f"{gap:.2f} s between two POLLs into a closed window, then {following:.2f} s",
                    closed, *polls[place : place + 3],
                )  # fmt: skip


def _silent(flow: Flow, closed: ReportHeard, until: float) -> bool:
    """Whether a POLL in flight when the window closed, or sent later, met a silence."""
    stats = (report for report in flow.reports_heard if report.is_stat and not report.fault)
    heard = [(stat.n_ps, stat.time) for stat in stats if stat.n_ps is not None]
    for poll in flow.polls_sent:
        if poll.n_ps <= (closed.n_ps or 0) or poll.time >= until:
            continue
        answered = min((time for n_ps, time in heard if n_ps >= poll.n_ps), default=until)
        if min(answered, until) - poll.time > LEAST_SILENCE_S - PROBE_SLACK_S - flow.timing_error:
            return True
    return False


def _closed_windows(flow: Flow) -> Iterator[tuple[ReportHeard, list[PollSent], float]]:
    """The STAT that found everything acknowledged and no credit; POLLs until when it lasted."""
    closed: ReportHeard | None = None
    polls: list[PollSent] = []
    if flow.own_fin is not None:
        return  # its data may be exhausted
    for event in flow.events:
        if event.time > flow.over:
            break
        if isinstance(event, ReportHeard) and not event.fault:
            credit = max(event.vt_ms, event.n_mr, EARLY_CREDIT)
            shut = event.n_r >= event.vt_s >= credit
            if closed is not None and not shut:
                yield closed, polls, event.time
                closed = None
            elif closed is None and shut and event.is_stat:
                closed, polls = event, []
        elif isinstance(event, PollSent) and closed is not None:
            polls.append(event)
    if closed is not None:
        yield closed, polls, flow.over
