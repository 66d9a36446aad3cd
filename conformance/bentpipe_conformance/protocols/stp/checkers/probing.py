"""STP-DT: POLLs as long as anything is unacknowledged or the window is closed (section 6.5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, transfer
from bentpipe_conformance.protocols.stp.checkers.poll_timer import MARGIN, SLACK_S
from bentpipe_conformance.protocols.stp.codec import (
    BGAK,
    POLL,
)
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, ECHO
from bentpipe_conformance.protocols.stp.replay.echo import Echo
from bentpipe_conformance.protocols.stp.replay.events import (
    Event,
    PollSent,
    ReportHeard,
    SdHeard,
    SdSent,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import MOST_SILENCE_S


@checker("STP-DT-004", of=transfer)
def polls_go_on_while_anything_is_unacknowledged(flow: Flow, context: Context) -> Findings:
    """While an SD is unacknowledged, one POLL follows the other (section 7.1)."""
    trips = context.prepared.round_trips(context.ics)
    for start, quiet, following in _waits(flow):
        until = flow.over if following is None else following.time
        waited = until - start.time
        # Times between POLLs double: none is longer than all since the last report and one more.
        once = trips.silence(start.time - quiet, until)[1]
        longest = min(2 * once + quiet, max(once, MOST_SILENCE_S))
        if following is not None:
            # A timer did run; that it ran for too long is a matter of STP-PL-007.
            longest = max(longest, MOST_SILENCE_S)
        if waited > (1 + MARGIN) * longest + SLACK_S + flow.timing_error:
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


def _waits(flow: Flow) -> Iterator[tuple[Event, float, PollSent | None]]:
    """From when a timer for POLLs runs at the latest, seconds without a report, the next POLL.

    Only times in which something is unacknowledged throughout.
    """
    start: Event | None = None
    if flow.established is None:
        return
    heard = flow.established
    quiet = 0.0
    for event in flow.events:
        # Before the connection is open no timer runs (section 5.1).
        if not flow.established <= event.time <= flow.over:
            continue
        if isinstance(event, SdSent):
            if start is None:
                start, quiet = event, event.time - heard
        elif isinstance(event, PollSent):
            if start is not None:
                yield start, quiet, event
            start = event if event.vt_a < event.vt_s else None
            quiet = event.time - heard
        elif isinstance(event, ReportHeard) and not event.fault and event.stp.type != BGAK:
            heard, quiet = event.time, 0.0
            start = None if start is None or event.acknowledges_all else event
    if start is not None:
        yield start, quiet, None


# -- credit


@checker("STP-DT-025", of=transfer)
def closed_window_is_probed(flow: Flow, context: Context) -> Findings:
    """Without credit a sender with data polls, the time in between doubling (section 6.5)."""
    if flow.service not in (CHARGEN, ECHO) or flow.iut_calls:
        return  # only they are sure to have data
    trips = context.prepared.round_trips(context.ics)
    ends = context.prepared.completion
    # Its service closes when the tester's stream has ended.
    closing = ends.finished if ends.certain and ends.taken else None
    for closed, polls, until in _closed_windows(flow, math.inf if closing is None else closing):
        least, most = trips.silence(closed.time, until)
        error = SLACK_S + flow.timing_error
        times = [closed.time, *(poll.time for poll in polls)]
        answers = [at.time for at in flow.reports_heard if not at.fault]
        # The timer may have been started by the POLL before; each answer starts it again.
        for place, (start, end) in enumerate(pairwise([*times, until])):
            last = place + 1 == len(times)
            longest = min(2.0**place * most, max(most, MOST_SILENCE_S))
            longest = (1 + MARGIN) * longest + error
            shortest = (1 - MARGIN) * min(2.0**place * least, MOST_SILENCE_S) - error
            waited = end - max((at for at in answers if start < at < end), default=start)
            if waited > longest:
                yield _probed(context, closed, polls, place, waited, f"at most {longest:.2f} s")
                break
            if not last and place and waited < shortest:
                yield _probed(context, closed, polls, place, waited, f"at least {shortest:.2f} s")
                break
            if not last and place:
                yield context.holds(
                    f"a closed window was probed again after {waited:.2f} s", closed, polls[place]
                )


def _probed(
    context: Context, closed: Event, polls: list[PollSent], place: int, waited: float,
    permitted: str,
) -> Finding:  # fmt: skip
    times = f"{place} times, then" if place else "first"
    return context.violated(
        f"a closed window was probed {times} {waited:.2f} s after the last packet about it", closed,
        *polls[max(0, place - 1) : place + 1], expected=permitted, actual=f"{waited:.2f} s",
    )  # fmt: skip


def _closed_windows(flow: Flow, closing: float) -> Iterator[tuple[Event, list[PollSent], float]]:
    """What left data, everything acknowledged and no credit; POLLs until when it lasted.

    That is a report, or an SD to be sent back or that ends the tester's stream. ``closing`` is when
    the service has the end of its own to send.
    """
    closed: Event | None = None
    polls: list[PollSent] = []
    echo, shut, fin = Echo(), False, flow.own_fin
    for event in flow.events:
        if event.time > flow.over:
            break
        echo.take(event)
        ended = fin is not None and event.time >= fin.time
        has_data = not ended and (flow.service == CHARGEN or echo.left or event.time >= closing)
        if isinstance(event, SdHeard) and shut and closed is None and has_data:
            closed, polls = event, []
        elif isinstance(event, ReportHeard) and not event.fault:
            shut = event.acknowledges_all and event.vt_s >= event.credit
            if closed is not None and not shut:
                yield closed, polls, event.time
                closed = None
            elif closed is None and shut and has_data and event.stp.type != BGAK:
                closed, polls = event, []
        elif isinstance(event, PollSent) and closed is not None:
            # One that leaves at once may have met the report.
            if polls or event.time > closed.time + flow.due_s:
                polls.append(event)
        elif isinstance(event, SdSent):
            closed, shut = None, False  # without credit that is a matter of STP-DT-011
    if closed is not None:
        yield closed, polls, flow.over
