"""STP-DT: POLLs for SDs not acknowledged, and for credit (sections 6.6 and 7.1)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log2

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.codec import BGAK, POLL
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT
from bentpipe_conformance.protocols.stp.ports import CHARGEN
from bentpipe_conformance.protocols.stp.replay.events import PollSent, ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import (
    LEAST_SILENCE_S,
    MOST_BACKED_OFF_S,
    MOST_PROBING_S,
    RoundTrips,
)

SLACK_S, LATE = 0.1, 1.25
"""By how many seconds, and by what factor, a POLL may be later than its timer says."""

DOUBLED = (1.5, 2.5)
"""Between what a time is about twice the one before; the round-trip time is measured anew."""


@checker("STP-DT-004")
def polls_go_on_while_anything_is_unacknowledged(flow: Flow, context: Context) -> Iterator[Finding]:
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
        silences = int(log2((quiet + SLACK_S + flow.timing_error) / LEAST_SILENCE_S + 1))
        longest = _longest_wait(trips, until, silences)
        if waited > LATE * longest + SLACK_S + flow.timing_error:
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


def _longest_wait(trips: RoundTrips, time: float, silences: int) -> float:
    """The most seconds to the next POLL: a silence time, twice that for each silence before."""
    deviation = trips.with_deviation(time)
    silence = max(LEAST_SILENCE_S, (deviation or 0.0) + trips.interval(time)[1])
    return float(min(silence * 2.0 ** min(silences, 6), MOST_BACKED_OFF_S))


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
def closed_window_is_probed(flow: Flow, context: Context) -> Iterator[Finding]:
    """Without credit a sender with data polls, the time in between doubling (section 6.6)."""
    if flow.service != CHARGEN or flow.iut_calls:
        return
    trips = context.prepared.round_trips(context.ics)
    for closed, polls, until in _closed_windows(flow):
        longest = _longest_wait(trips, polls[0].time if polls else until, 0)
        first = (polls[0].time if polls else until) - closed.time
        if first > LATE * longest + SLACK_S + flow.timing_error:
            yield context.violated(
                f"a closed window was not probed for {first:.1f} s", closed, *polls[:1],
                expected=f"a POLL within {longest:.2f} s",
                actual="none" if not polls else f"one after {first:.2f} s",
            )  # fmt: skip
            continue
        last = until - polls[-1].time if polls else 0.0
        if len(polls) == 1 and last > LATE * 2 * longest + SLACK_S + flow.timing_error:
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
            error = SLACK_S + 2 * flow.timing_error
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
    heard = [
        (report.n_ps, report.time)
        for report in flow.reports_heard
        if report.is_stat and not report.fault and report.n_ps is not None
    ]
    for poll in flow.polls_sent:
        if poll.n_ps <= (closed.n_ps or 0) or poll.time >= until:
            continue
        answered = min((time for n_ps, time in heard if n_ps >= poll.n_ps), default=until)
        if min(answered, until) - poll.time > LEAST_SILENCE_S - SLACK_S - flow.timing_error:
            return True
    return False


def _closed_windows(flow: Flow) -> Iterator[tuple[ReportHeard, list[PollSent], float]]:
    """The STAT that found everything acknowledged and no credit; POLLs until when it lasted."""
    closed: ReportHeard | None = None
    polls: list[PollSent] = []
    sender = flow.sender
    if sender is None or sender.fin is not None:
        return  # its data may be exhausted
    for event in flow.events:
        if event.time > flow.over:
            break
        if isinstance(event, ReportHeard) and not event.fault:
            shut = (
                event.n_r >= event.vt_s and max(event.vt_ms, event.n_mr, EARLY_CREDIT) <= event.vt_s
            )
            if closed is not None and not shut:
                yield closed, polls, event.time
                closed = None
            elif closed is None and shut and event.is_stat:
                closed, polls = event, []
        elif isinstance(event, PollSent) and closed is not None:
            polls.append(event)
    if closed is not None:
        yield closed, polls, flow.over
