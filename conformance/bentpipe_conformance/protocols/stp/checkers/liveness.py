"""STP-PL: POLLs to a peer that may be gone (section 7.2)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice, pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings
from bentpipe_conformance.protocols.stp.checkers.poll_timer import SLACK_S
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    VERSION,
)
from bentpipe_conformance.protocols.stp.numbers import (
    CHARGEN,
    ECHO,
    NO_ANSWER,
    NO_RESPONSE_S,
    tag_of,
)
from bentpipe_conformance.protocols.stp.replay.echo import Echo, echoes
from bentpipe_conformance.protocols.stp.replay.events import (
    At,
    PollSent,
    ReportHeard,
    SdHeard,
    SdSent,
)
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow

LATE_S = 0.5
"""Seconds from which a peer that does not answer is given up at most too early or too late."""

KEEP_ALIVE_S = 600
"""Seconds without a packet after which an idle endpoint polls, unless declared (STP-PL-010)."""


# -- a peer that may be gone


@checker("STP-PL-008")
def silent_peer_is_given_up(flow: Flow, context: Context) -> Findings:
    """A peer that answers nothing for a minute is given up with reason 7 (section 7.2)."""
    gave_up = next(
        (at for at in flow.sent if at.stp.type == END and at.stp.reason == NO_ANSWER), None
    )
    error = LATE_S + flow.timing_error
    for early, sure, end in _unanswered(flow):
        late = sure or early
        if gave_up is not None and early.time < gave_up.time <= end + error:
            waited = gave_up.time - early.time
            if (
                waited >= NO_RESPONSE_S - error
                and gave_up.time - late.time <= NO_RESPONSE_S + error
            ):
                yield context.holds(f"the peer was given up after {waited:.1f} s", early, gave_up)
            else:
                yield context.violated(
                    f"the peer was given up {waited:.1f} s after the first POLL without a report",
                    early, gave_up,
                    expected=f"{NO_RESPONSE_S:g} s", actual=f"{waited:.1f} s",
                )  # fmt: skip
            return
        if sure is not None and end - late.time > NO_RESPONSE_S + error:
            yield context.violated(
                f"no report followed a POLL for {end - late.time:.1f} s; the peer was not given "
                "up",
                late,
                expected=f"an END with reason {NO_ANSWER} after {NO_RESPONSE_S:g} s", actual="none",
            )  # fmt: skip
        elif end - early.time <= NO_RESPONSE_S - error < _since_established(flow, end):
            yield context.holds("a peer that answered was not given up", early)
    # A call that failed ends with the same reason (section 5.1).
    opened = flow.established is not None
    if opened and gave_up is not None and flow.ended == gave_up.time:
        yield context.violated("the peer was given up, though every POLL had its report", gave_up)


def _since_established(flow: Flow, time: float) -> float:
    return 0.0 if flow.established is None else time - flow.established


def _unanswered(flow: Flow) -> Iterator[tuple[PollSent, PollSent | None, float]]:
    """From the first POLL after a report to the next report, or the end.

    Two POLLs: the first one that left after the report, and the first one that left when the report
    had been read for sure, None if there is none.
    """
    end = flow.over
    reports = [
        (item.frame, item.time) for item in flow.reports_heard
        if not item.fault and item.stp.type != BGAK and item.time < end
    ]  # fmt: skip
    frames = [poll.frame for poll in flow.polls_sent]
    for (start, heard), (stop, until) in pairwise([(0, 0.0), *reports, (math.inf, end)]):
        first = bisect_right(frames, start)
        sent = islice(flow.polls_sent, first, bisect_left(frames, stop))
        polls = [poll for poll in sent if poll.time < end]
        sure = next((poll for poll in polls if poll.time > heard + flow.due_s), None)
        if polls:
            yield polls[0], sure, until


@checker("STP-PL-010")
def idle_connection_asks_rarely(flow: Flow, context: Context) -> Findings:
    """An idle endpoint polls when nothing has arrived for as long as declared (section 7.2)."""
    wait = float(context.ics.get("keep_alive_s", KEEP_ALIVE_S))
    error = LATE_S + flow.timing_error
    # What is of the connection that had these ports before may count as well.
    passed = (at for other in flow.same_ports for at in other.heard if _passes(flow, at))
    heard = sorted(at.time for at in passed)
    own = [at.time for at in flow.heard if _passes(flow, at) and _is_own(flow, at)]
    for start, end, polls in _idle_times(flow):
        poll = polls[0] if polls else None
        until = end if poll is None else poll.time
        known = bisect_left(heard, end) if poll is None else bisect_right(heard, until)
        since = max(start, heard[known - 1]) if known else start
        # What has just arrived may not have been read; calls and ENDs of others may not count.
        sure = bisect_right(own, until - flow.due_s)
        read = own[sure - 1] if sure else start
        if until - since > wait + error:
            yield context.violated(
                f"an idle connection was silent for {until - since:.1f} s", *polls[:1],
                expected=f"a POLL after {wait:g} s",
                actual="none" if poll is None else f"one after {until - since:.1f} s",
            )  # fmt: skip
        elif poll is not None and until - read < wait - error:
            yield context.violated(
                f"a POLL left {until - read:.1f} s after the last packet, while idle", poll,
                expected=f"none before {wait:g} s have passed", actual=f"{until - read:.1f} s",
            )  # fmt: skip
        elif poll is not None:
            yield context.holds(f"an idle connection was asked after {until - read:.1f} s", poll)


def _is_own(flow: Flow, at: At) -> bool:
    """Whether a packet that passes them is of this connection, by its tag or its CSNs."""
    kind, stp = at.stp.type, at.stp
    if kind == BEGIN:
        # One of a peer that was called is a call, and refused without a look at the connection.
        return stp.csn == flow.tester_csn and stp.version == VERSION and not flow.iut_calls
    return kind in TAGGED or (kind in (BGAK, BGREJ, ENDAK) and flow.is_recipient(stp))


def _passes(flow: Flow, at: At) -> bool:
    """Whether a packet passes the checks of section 4, so that the connection is not idle."""
    foreign = at.stp.type in TAGGED and at.stp.tag != tag_of(flow.tester_csn or 0)
    return at.stp.wellformed and not foreign


def _idle_times(flow: Flow) -> Iterator[tuple[float, float, list[PollSent]]]:
    """Times in which the IUT had surely nothing unacknowledged and nothing to send.

    Its user has said nothing yet, or everything was acknowledged and credit was left, so that data
    would have been sent, or all has been sent back. A time ends with the first POLL, which is
    repeated if it is lost.
    """
    established = flow.established
    if established is None:
        return
    start: float | None = None if flow.service in (CHARGEN,) or flow.iut_calls else established
    echo, closing = Echo(), False
    for event in flow.events:
        echo.take(event)
        if event.time < established or event.time > flow.over:
            continue
        if isinstance(event, SdSent):
            if start is not None:
                yield start, event.time, []
            start = None
        elif isinstance(event, PollSent) and start is not None:
            # One that was on its way, or that follows the last SD; it is repeated in silence.
            if event.time - start > SLACK_S + flow.timing_error:
                yield start, event.time, [event]
            start = None
        elif isinstance(event, ReportHeard) and not event.fault and event.stp.type != BGAK:
            returned = echoes(flow) and echo.done and not closing
            idle = event.acknowledges_all and (event.credit > event.vt_s or returned)
            if idle and start is None:
                start = event.time
            elif not idle:
                start = None
        elif isinstance(event, SdHeard) and flow.service == ECHO:
            closing = closing or bool(event.stp.flags & FIN)
            if event.stp.data or closing:
                start = None  # it, or a FIN, may have to be sent back
    if start is not None:
        yield start, flow.over, []
