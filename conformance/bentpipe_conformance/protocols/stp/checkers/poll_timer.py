"""STP-PL and STP-DT: POLLs sent by timer: in silence, for credit, and to a peer that may be gone.

Sections 6.5 and 7.2.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.calling import NO_ANSWER
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    POLL,
    VERSION,
)
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, ECHO, tag_of
from bentpipe_conformance.protocols.stp.replay.echo import Echo, echoes
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    At,
    Event,
    PollSent,
    ReportHeard,
    SdHeard,
    SdSent,
)
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow
from bentpipe_conformance.protocols.stp.replay.misreadings import WRONG_RULES
from bentpipe_conformance.protocols.stp.replay.round_trip import MOST_SILENCE_S, RoundTrips

MARGIN, SLACK_S = 0.1, 0.1
"""The share, and the seconds, by which a POLL may be off what its timer says."""

SURE_MARGIN, SURE_S = 0.02, 0.05
"""The same where it is told how a timer is wrong."""

_MEASUREMENTS = 2
"""Measurements from which on it matters how they are smoothed."""

DOUBLED_MARGIN = 0.05
"""The same share for a timer that was started with twice a time that shows in the packets."""

NO_RESPONSE_S, LATE_S = 60.0, 0.5
"""When a peer that does not answer is given up (STP-PL-008), and how far from it at most."""

LEAST_KEEP_ALIVE_S = 15
"""The shortest Timer_KEEP-ALIVE that a user can choose, seconds (section 8)."""

KEEP_ALIVE_S = 600
"""Seconds without a packet after which an idle endpoint polls, unless declared (STP-PL-010)."""


# -- silence


@dataclass(slots=True)
class _Silence:
    """A time without a valid report while something was unacknowledged.

    Attributes:
        started: between when and when Timer_SILENCE was started, seconds; None when it may have
            expired before the silence shows.
        polls: POLLs that nothing but this timer can have sent, the first one apart when ``started``
            is None.
        end: when a report arrived, or something else may have stopped or hidden the timer.
    """

    started: tuple[float, float] | None
    polls: list[PollSent] = field(default_factory=list)
    end: float = math.inf


class _Silences:
    """Finds the silences of a connection.

    After a POLL behind which no SD has been sent, only Timer_SILENCE can cause another one.
    """

    def __init__(self, flow: Flow, trips: RoundTrips) -> None:
        self.found: list[_Silence] = []
        self._flow, self._trips = flow, trips
        self._heard = math.inf if flow.established is None else flow.established
        self._running: tuple[float, float] | None = None
        self._unknown = False  # whether Timer_SILENCE runs since who knows when
        self._first_sd: float | None = None  # since the last report
        self._left_some = False  # whether that has left SDs unacknowledged
        self._asked = True  # whether a POLL has followed every SD
        self._current: _Silence | None = None
        self._crossing = -math.inf  # until when a POLL may be of a timer that met a report
        self._edge = 0
        """The credit by the last report; 0 before, when only the tester's BEGIN has given any."""
        for event in flow.events:
            if not self._heard <= event.time <= flow.over:
                continue
            if isinstance(event, SdSent):
                self._sends(event)
            elif isinstance(event, PollSent):
                self._polls(event)
            elif isinstance(event, ReportHeard) and not event.fault and event.stp.type != BGAK:
                self._hears(event)
        self._ends(flow.over)

    def _ends(self, time: float) -> None:
        if self._current is not None:
            self._current.end = time
            self.found.append(self._current)
        self._current = None

    def _sends(self, sd: SdSent) -> None:
        # It draws a POLL of its own, behind which the silence goes on.
        self._ends(sd.time)
        self._asked = False
        if self._first_sd is None:
            self._first_sd = sd.time

    def _polls(self, poll: PollSent) -> None:
        self._asked = True
        if poll.time <= self._crossing:
            self._crossing = -math.inf
            # Another one may start the timer.
            self._unknown = self._unknown or self._running is None
            return
        if poll.vt_a >= poll.vt_s and not self._keeps_alive(poll):
            # What for is unknown, but it has started the timer, unless that was running.
            self._running = self._current = None
            self._unknown = True
        if self._unknown:
            return
        if self._running is None:
            # The report before has started it too if SDs left before it had to be stopped, and may
            # have if it left some unacknowledged, behind which no POLL had left yet.
            at_once = self._first_sd is not None and self._first_sd - self._heard <= DUE_S
            at_once = at_once or self._left_some
            self._running = (self._heard if at_once else poll.time), poll.time
        if self._current is not None:
            self._current.polls.append(poll)
            return
        expired = self._expired(poll.time)
        self._current = _Silence(None, [poll]) if expired else _Silence(self._running)

    def _expired(self, time: float) -> bool:
        """Whether Timer_SILENCE, if it runs, may have expired."""
        if self._running is None:
            return False
        early = self._running[0]
        return time - early >= self._trips.silence(early)[0] * (1 - MARGIN) - SLACK_S

    def _keeps_alive(self, poll: PollSent) -> bool:
        """Whether a POLL has nothing to ask for but the peer, or repeats one that had not.

        Without credit Timer_SILENCE may have run before (STP-DT-025).
        """
        if self._running is not None:
            return self._current is not None
        idle = poll.time - self._heard >= LEAST_KEEP_ALIVE_S * (1 - MARGIN)
        return idle and poll.vt_s < self._edge

    def _hears(self, report: ReportHeard) -> None:
        self._edge = max(self._edge, report.credit)
        self._ends(report.time)
        if self._expired(report.time):
            self._crossing = report.time + self._flow.due_s
        runs = self._running is not None and not report.acknowledges_all
        self._running = (report.time, report.time) if runs else None
        self._unknown = False
        self._heard, self._first_sd = report.time, None
        self._left_some = not report.acknowledges_all
        if self._running is not None and self._asked:
            self._current = _Silence(self._running)


@lru_cache(maxsize=4)
def _silences(flow: Flow, trips: RoundTrips) -> list[_Silence]:
    return _Silences(flow, trips).found


@checker("STP-PL-007")
def silence_doubles_the_interval(flow: Flow, context: Context) -> Findings:
    """In silence a sender polls again, each time after twice the time before (section 7.2)."""
    trips = context.prepared.round_trips(context.ics)
    cause = cause_of_silences(flow, context)
    for silence in _silences(flow, trips):
        times = [poll.time for poll in silence.polls]
        before: tuple[float, float] | None = None
        if silence.started is not None:
            if cause != "measurements":
                right = trips if cause == "unknown" else trips.exact
                yield from _first(flow, context, silence, right)
            early, late = silence.started
            before = (times[0] - late, times[0] - early) if times else None
        begun = flow.established or 0.0 if silence.started is None else silence.started[0]
        bounds = trips.silence(begun, silence.end)
        longest = [max(MOST_SILENCE_S, bound) for bound in bounds]
        for place, (start, end) in enumerate(pairwise([*times, silence.end])):
            if before is not None:
                least, most = (min(2 * b, at) for b, at in zip(before, longest, strict=True))
                yield from _doubled(flow, context, silence, (least, most), place, end - start)
            if place or silence.started is not None:  # else another timer may have sent the first
                before = end - start, end - start


def _first(flow: Flow, context: Context, silence: _Silence, trips: RoundTrips) -> Findings:
    assert silence.started is not None
    early, late = silence.started
    least, most = trips.silence(early, late)
    first = silence.polls[0] if silence.polls else None
    until = silence.end if first is None else first.time
    error = SLACK_S + flow.timing_error
    before = bisect_right(flow.polls_sent, silence.end, key=lambda poll: poll.time)
    where = silence.polls[:1] or flow.polls_sent[max(0, before - 1) : before]
    if until - late > most * (1 + MARGIN) + error:
        yield context.violated(
            f"no POLL left in {until - late:.2f} s of silence", *where,
            expected=f"one within {most:.2f} s",
            actual="none" if first is None else f"one after {until - late:.2f} s",
        )  # fmt: skip
    elif first is not None and until - early < least * (1 - MARGIN) - error:
        yield context.violated(
            f"a POLL left after {until - early:.2f} s of silence", first,
            expected=f"after {least:.2f} s at least", actual=f"after {until - early:.2f} s",
        )  # fmt: skip


def _doubled(
    flow: Flow, context: Context, silence: _Silence, wanted: tuple[float, float], place: int,
    waited: float,
) -> Findings:  # fmt: skip
    """A time that began with a POLL, and should last as long as two times say."""
    least, most = wanted
    error = DOUBLED_MARGIN * most + SLACK_S + 2 * flow.timing_error
    last = place + 1 == len(silence.polls)
    where = silence.polls[max(0, place - 1) : place + 2]
    what = f"{waited:.2f} s of silence passed"
    if waited > most + error or (waited < least - error and not last):
        yield context.violated(
            what + (" without a POLL" if last else " until the next POLL"), *where,
            expected=f"about {most:.2f} s, twice as long as before", actual=f"{waited:.2f} s",
        )  # fmt: skip
    elif not last:
        yield context.holds(f"{what} until the next POLL", *where)


@dataclass(frozen=True, slots=True)
class FirstSilence:
    """A time for which Timer_SILENCE ran before it expired for the first time.

    Attributes:
        started: between when and when it was started, seconds.
        poll: what it sent.
    """

    started: tuple[float, float]
    poll: PollSent

    @property
    def waited(self) -> tuple[float, float]:
        """For how long it ran, at least and at most."""
        early, late = self.started
        return self.poll.time - late, self.poll.time - early

    def fits(self, trips: RoundTrips, margin: float, error: float) -> bool:
        """Whether it may have run for the silence time, but for a share and seconds."""
        (shortest, longest), (least, most) = self.waited, trips.silence(*self.started)
        return shortest <= most * (1 + margin) + error and longest >= least * (1 - margin) - error


def first_silences(flow: Flow, context: Context) -> list[FirstSilence]:
    """Times for which Timer_SILENCE ran, undoubled."""
    trips = context.prepared.round_trips(context.ics)
    return [
        FirstSilence(silence.started, silence.polls[0])
        for silence in _silences(flow, trips)
        if silence.started is not None and silence.polls
    ]


Cause = Literal["rule", "measurements", "unknown"]
"""Why Timer_SILENCE runs for other times than it should: its rule, or what has been measured."""


def cause_of_silences(flow: Flow, context: Context) -> Cause:
    """What explains all first silences of a connection that are not as they should be."""
    silences = first_silences(flow, context)
    exact = context.prepared.round_trips(context.ics).exact
    if all(item.fits(exact, MARGIN, SLACK_S + flow.timing_error) for item in silences):
        return "unknown"
    close = SURE_S + flow.timing_error
    for rule in WRONG_RULES if len(silences) > 1 else ():  # some rule explains a single one
        other = replace(exact, rule=rule)
        if all(item.fits(other, SURE_MARGIN, close) for item in silences):
            return "rule"
    for other in context.prepared.misreadings(context.ics):
        if all(item.fits(other, DOUBLED_MARGIN, close) for item in silences):
            return "measurements"
    return "unknown"


def measured(flow: Flow, context: Context) -> Findings:
    """Whether Timer_SILENCE follows the measurements, smoothed as they should be (STP-PL-009)."""
    trips = context.prepared.round_trips(context.ics)
    error = SLACK_S + flow.timing_error
    cause = cause_of_silences(flow, context)
    for silence in first_silences(flow, context):
        late = silence.started[1]
        right = silence.fits(trips.exact, MARGIN, error)
        enough = len([time for time in trips.times if time <= late]) >= _MEASUREMENTS
        # Any other way to smooth explains it.
        average = enough and silence.fits(trips, MARGIN, error)
        if not average and (right or cause != "measurements"):
            continue
        if not right and cause == "rule":
            continue
        waited, exact = silence.waited[0], trips.exact.silence(*silence.started)
        yield judged(
            context, right,
            f"a POLL left after {waited:.2f} s of silence, as the measurements demand",
            f"a POLL left after {waited:.2f} s of silence", silence.poll,
            expected=f"one after {exact[0]:.2f} to {exact[1]:.2f} s by the measurements",
            actual=f"{waited:.2f} s",
        )  # fmt: skip


def smooths(flow: Flow, context: Context) -> bool:
    """Whether silences have shown that round trips are measured and smoothed as they should."""
    found = [finding.verdict for finding in measured(flow, context)]
    return bool(found) and all(verdict is Verdict.PASS for verdict in found)


@checker("STP-DT-004")
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


@checker("STP-DT-025")
def closed_window_is_probed(flow: Flow, context: Context) -> Findings:
    """Without credit a sender with data polls, the time in between doubling (section 6.5)."""
    if flow.service not in (CHARGEN, ECHO) or flow.iut_calls or flow.own_fin is not None:
        return  # only they are sure to have data
    trips = context.prepared.round_trips(context.ics)
    for closed, polls, until in _closed_windows(flow):
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


def _closed_windows(flow: Flow) -> Iterator[tuple[Event, list[PollSent], float]]:
    """What left data, everything acknowledged and no credit; POLLs until when it lasted.

    That is a report, or an SD to be sent back.
    """
    closed: Event | None = None
    polls: list[PollSent] = []
    echo, shut = Echo(), False
    for event in flow.events:
        if event.time > flow.over:
            break
        echo.take(event)
        has_data = flow.service == CHARGEN or echo.left
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


# -- a peer that may be gone


@checker("STP-PL-008")
def silent_peer_is_given_up(flow: Flow, context: Context) -> Findings:
    """A peer that answers nothing for a minute is given up with reason 7 (section 7.2)."""
    gave_up = next(
        (at for at in flow.sent if at.stp.type == END and at.stp.reason == NO_ANSWER), None
    )
    error = LATE_S + flow.timing_error
    for early, late, end in _unanswered(flow):
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
        if end - late.time > NO_RESPONSE_S + error:
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


def _unanswered(flow: Flow) -> Iterator[tuple[PollSent, PollSent, float]]:
    """From the first POLL after a report to the next report, or the end.

    Two POLLs: the first one that left after the report, and the first one that left when the report
    had been read for sure.
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
        if polls and sure is not None:
            yield polls[0], sure, until


@checker("STP-PL-010")
def idle_connection_asks_rarely(flow: Flow, context: Context) -> Findings:
    """An idle endpoint polls when nothing has arrived for as long as declared (section 7.2)."""
    wait = float(context.ics.get("keep_alive_s", KEEP_ALIVE_S))
    error = LATE_S + flow.timing_error
    heard = [at.time for at in flow.heard if _passes(flow, at)]
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
        return stp.csn == flow.tester_csn and stp.version == VERSION
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
