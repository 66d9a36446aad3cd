"""STP-PL: POLLs sent by Timer_POLL in silence (section 6.5)."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged, transfer
from bentpipe_conformance.protocols.stp.codec import (
    BGAK,
)
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    PollSent,
    ReportHeard,
    SdSent,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow
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

LEAST_KEEP_ALIVE_S = 15
"""The shortest Timer_KEEP-ALIVE that a user can choose, seconds (section 8)."""


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


@remembered
def _silences(flow: Flow, trips: RoundTrips) -> list[_Silence]:
    return _Silences(flow, trips).found


@checker("STP-PL-007", of=transfer)
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
