"""STP-PL: when to poll (section 7.1)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from operator import attrgetter

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged, transfer
from bentpipe_conformance.protocols.stp.checkers.congestion import SLOWEST_GAIN, rate_gap
from bentpipe_conformance.protocols.stp.checkers.poll_timer import (
    cause_of_silences,
    first_silences,
    measured,
    smooths,
)
from bentpipe_conformance.protocols.stp.codec import BEGIN, FIN, SDP
from bentpipe_conformance.protocols.stp.numbers import CHARGEN
from bentpipe_conformance.protocols.stp.replay.echo import Echo, echoes
from bentpipe_conformance.protocols.stp.replay.events import PollSent, ReportHeard, SdHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips
from bentpipe_conformance.protocols.stp.replay.window import smss

_frame, _time = attrgetter("frame"), attrgetter("time")

FOLLOWS_S = 0.02
"""Seconds within which a POLL follows the last SD (STP-PL-003, STP-PL-004)."""

RIDES_S = 0.01
"""Seconds within which a POLL rides on a new SD (STP-PL-005)."""

MARGIN = 0.05
"""The share by which a POLL may be later than the poll interval, once that is known."""

LATE_S = 0.03
"""Seconds by which a POLL may be later than the packets let expect: what an implementation measures
holds the time that packets take inside it."""

SILENCE_S = 0.05
"""Seconds by which a silence may be off where other measurements are to explain it."""


class _Polls:
    """The POLLs of a connection, by their frame numbers."""

    def __init__(self, flow: Flow) -> None:
        self._polls = flow.polls_sent
        self._frames = [poll.frame for poll in flow.polls_sent]

    def behind(self, sd: SdSent) -> PollSent | None:
        """The first POLL that leaves with an SD or after it."""
        place = bisect_left(self._frames, sd.frame)
        return self._polls[place] if place < len(self._polls) else None

    def before(self, sd: SdSent) -> PollSent | None:
        """The last POLL before an SD."""
        place = bisect_left(self._frames, sd.frame)
        return self._polls[place - 1] if place else None


@checker("STP-PL-001", of=transfer)
def poll_follows_every_sd(flow: Flow, context: Context) -> Findings:
    """A POLL follows every SD within a poll interval (section 7.1)."""
    for sd, following, until, longest in _waits(flow, context):
        if longest < until - sd.time - LATE_S - flow.timing_error:
            yield context.violated(
                f"no POLL followed SD {sd.number} for {until - sd.time:.3f} s",
                sd, *([] if following is None else [following]),
                expected=f"one within {longest:.3f} s",
                actual="none" if following is None else f"one after {until - sd.time:.3f} s",
            )  # fmt: skip
        elif following is not None and following.time - sd.time > FOLLOWS_S:
            yield context.holds(
                f"a POLL followed SD {sd.number} after {until - sd.time:.3f} s, the poll interval "
                f"is at most {longest:.3f} s",
                sd, following,
            )  # fmt: skip


def _waits(flow: Flow, context: Context) -> Iterator[tuple[SdSent, PollSent | None, float, float]]:
    """SDs that wait for a POLL: the POLL, until when they wait, and for how long they may."""
    if flow.established is None:
        return
    trips = context.prepared.round_trips(context.ics)
    # Once it shows elsewhere what has been measured and smoothed, the interval is known.
    smoothed = smooths(flow, context)
    polls = _Polls(flow)
    asked = 0
    for sd in flow.sds_sent:
        if sd.time < flow.established or sd.frame <= asked:
            continue
        following = polls.behind(sd)
        until = flow.over if following is None else following.time
        longest = trips.latest(sd.time) - sd.time
        if smoothed:
            longest = min(longest, (1 + MARGIN) * (trips.exact.latest(sd.time) - sd.time))
        late = until - sd.time - longest - flow.timing_error > LATE_S
        if late and _arrived_by(flow, sd, sd.time + longest + LATE_S):
            continue
        asked = following.frame if following is not None else flow.passed[-1].frame
        yield sd, following, until, longest


@checker("STP-PL-009", of=transfer)
def round_trip_time_is_smoothed(flow: Flow, context: Context) -> Findings:
    """The timers follow the smoothed measurements of first answers, and no others (section 7.2)."""
    yield from measured(flow, context)
    if smooths(flow, context):
        return
    silences = first_silences(flow, context)
    if cause_of_silences(flow, context) == "rule":
        return
    late = [
        (sd, poll) for sd, poll, until, longest in _waits(flow, context)
        if poll is not None and until - sd.time - longest - flow.timing_error > LATE_S
    ]  # fmt: skip
    if late and any(
        all(item.fits(other, MARGIN, SILENCE_S) for item in silences)
        and all(_would_wait(other, sd, poll) for sd, poll in late)
        for other in context.prepared.misreadings(context.ics)
    ):
        yield context.violated(
            "POLLs leave as if something else had been measured than first answers", *late[0]
        )


def _would_wait(trips: RoundTrips, sd: SdSent, poll: PollSent) -> bool:
    """Whether by other measurements a POLL that leaves late is due when it leaves."""
    due = trips.latest(sd.time) - sd.time
    return abs(poll.time - sd.time - due) <= MARGIN * due + LATE_S


def _arrived_by(flow: Flow, sd: SdSent, time: float) -> bool:
    """Whether a report says by then that an SD has arrived, so that nobody need ask for it.

    One that arrived just before may have been read after the SD had left.
    """
    reports = flow.reports_heard
    first = bisect_left(reports, sd.time - flow.due_s, key=_time)
    last = bisect_right(reports, time, key=_time)
    return any(not report.fault and report.holds(sd.number) for report in reports[first:last])


@checker("STP-PL-002", of=transfer)
def polls_keep_their_distance(flow: Flow, context: Context) -> Findings:
    """Half a poll interval passes between POLLs, silence and the end apart (section 7.1)."""
    trips = context.prepared.round_trips(context.ics)
    fin = flow.own_fin
    for poll, following in pairwise(flow.polls_sent):
        least = trips.interval(following.time)[0] / 2
        gap = following.time - poll.time
        if gap >= max(least - RIDES_S, least / 2) - flow.timing_error:
            yield context.holds(f"{gap:.3f} s passed between two POLLs", poll, following)
            continue
        asks_for_fin = fin is not None and poll.frame < fin.frame <= following.frame
        if not asks_for_fin and not _silent(flow, following, trips):
            yield context.violated(
                f"a POLL left {gap:.3f} s after another", poll, following,
                expected=f"at least {least:.3f} s, half a poll interval", actual=f"{gap:.3f} s",
            )  # fmt: skip


def _silent(flow: Flow, poll: PollSent, trips: RoundTrips) -> bool:
    """Whether Timer_SILENCE may have caused a POLL."""
    # A report that has just arrived may not have been read when it was decided.
    read = poll.time - flow.due_s
    reports = (item.time for item in flow.reports_heard if not item.fault and item.time < read)
    heard = max(reports, default=flow.established or 0.0)
    return poll.time - heard >= trips.silence(poll.time)[0] - LATE_S - flow.timing_error


@checker("STP-PL-003", of=transfer)
def sender_polls_before_it_has_to_stop(flow: Flow, context: Context) -> Findings:
    """A sender that has to stop polls, if a poll interval has passed (section 7.1)."""
    if flow.established is None:
        return
    trips = context.prepared.round_trips(context.ics)
    polls = _Polls(flow)
    stops = [*_stops(flow, trips, rate_gap(flow, context)), *_last(flow)]
    for sd in sorted(set(stops), key=lambda sd: sd.frame):
        before = polls.before(sd)
        wait = 0.0
        if before is not None:
            wait = max(0.0, before.time + trips.interval(sd.time)[1] + LATE_S - sd.time)
        what = f"SD {sd.number}, after which the sender stopped,"
        yield from _polls(flow, context, polls, sd, what, wait)


def _stops(flow: Flow, trips: RoundTrips, least_gap: float) -> Iterator[SdSent]:
    """SDs after which window or credit stopped the sender for sure.

    It has more to send: chargen always, others at least what they sent later.
    """
    established = flow.established
    assert established is not None
    end, size = min(flow.over, flow.passed[-1].time), smss(flow)
    for sd, following in zip_longest(flow.sds_sent, flow.sds_sent[1:]):
        if sd.time < established or sd.stp.flags & FIN or flow.service != CHARGEN or flow.iut_calls:
            continue
        if not sd.new and _arrived_by(flow, sd, sd.time):
            continue  # it has met the report that it has arrived
        arrives = _arrives_after(flow, sd)
        if arrives <= sd.time + FOLLOWS_S + flow.timing_error:
            continue  # what it permits may have been read, or not
        if sd.new and sd.number + 1 >= sd.vt_ms and not set(sd.queue) - {sd.number}:
            yield sd
            continue
        # No arrival before the next SD could have left shows that the window was the cause.
        moved = min(arrives, end)
        bounds = trips.bounds(sd.time)
        # Without a measurement nothing is paced.
        spread = 0.0 if bounds is None else bounds[1]
        gap = max(2 * spread * size / (SLOWEST_GAIN * sd.flight_with), least_gap)
        resumed = end if following is None else following.time
        if min(moved, resumed) - sd.time > gap + 2 * FOLLOWS_S + flow.timing_error:
            yield sd


def _arrives_after(flow: Flow, sd: SdSent) -> float:
    """When something arrives after an SD, perhaps in the same instant; infinity if nothing does."""
    following = bisect_right(flow.heard, sd.frame, key=lambda at: at.frame)
    return flow.heard[following].time if following < len(flow.heard) else math.inf


@checker("STP-PL-004", of=transfer)
def end_of_the_stream_polls(flow: Flow, context: Context) -> Findings:
    """The SD with the FIN flag polls (section 7.1).

    The FIN of a BEGIN does not: a BGAK acknowledges it.
    """
    fin, polls = flow.own_fin, _Polls(flow)
    if flow.established is not None and fin is not None and fin.time >= flow.established:
        yield from _polls(flow, context, polls, fin, "the SD with the FIN flag")


def _last(flow: Flow) -> Iterator[SdSent]:
    """SDs after which the IUT surely had neither data nor retransmissions left.

    Its stream has ended; or it echoes, and has sent back all that it has received in sequence.
    """
    echo, ended, closing, recent = Echo(), False, False, -1.0
    for event in flow.events:
        echo.take(event)
        # An echo whose peer has ended its stream has its own FIN to send.
        closing = closing or (isinstance(event, SdHeard) and bool(event.stp.flags & FIN))
        if isinstance(event, SdSent):
            ended = ended or bool(event.stp.flags & FIN)
            # Before an answer is due a report may not have been read.
            unread = event.time - recent <= flow.due_s and event.awaited is None
            left = set(event.queue) - {event.number}
            if event.stp.type == BEGIN or left or unread or event.time < (flow.established or 0.0):
                continue
            if ended or (echoes(flow) and echo.done and not closing):
                yield event
        elif isinstance(event, ReportHeard) and not event.fault:
            recent = event.time


def _polls(
    flow: Flow, context: Context, polls: _Polls, sd: SdSent, what: str, wait: float = 0.0
) -> Findings:
    """Whether an SD is an SDP, or a POLL follows soon, once ``wait`` seconds have passed."""
    if sd.stp.type == SDP:
        yield context.holds(f"{what} is an SDP", sd)
        return
    within = wait + FOLLOWS_S + flow.timing_error
    if _arrives_after(flow, sd) <= sd.time + within:
        return  # it may bring data, credit, or the end
    following = polls.behind(sd)
    behind = bisect_right(flow.sds_sent, sd.frame, key=_frame)
    after = next(iter(flow.sds_sent[behind : behind + 1]), None)
    if following is not None and following.time - sd.time <= within:
        yield context.holds(f"{what} is followed by a POLL", sd, following)
    elif after is not None and after.time - sd.time <= within:
        return
    elif flow.over > sd.time + within:
        yield context.violated(
            f"{what} is neither an SDP nor followed by a POLL", sd,
            *([] if following is None else [following]),
            expected=f"a POLL within {wait + FOLLOWS_S:.3g} s",
            actual="no POLL" if following is None
            else f"a POLL after {following.time - sd.time:.3f} s",
        )  # fmt: skip


@checker("STP-PL-005", of=transfer)
def polls_ride_on_sds(flow: Flow, context: Context) -> Findings:
    """A POLL that is due soon after a new SD rides on it (section 7.1)."""
    arrivals = [at.time for at in flow.heard]
    reports = [report.time for report in flow.reports_heard if not report.fault]
    reports = sorted(reports + [poll.time for poll in flow.polls_sent[:1]])
    trips = context.prepared.round_trips(context.ics)
    for poll in flow.polls_sent:
        if poll.stp.type == SDP:
            yield context.holds(f"the POLL with N(PS) {poll.n_ps} rides on an SD", poll)
            continue
        # With chargen there is always data; what an arrival or an answer to one causes could not
        # be foreseen, nor does a POLL that is due before an SD may leave wait for it. Those of
        # Timer_SILENCE leave whatever has asked before.
        if flow.iut_calls or flow.service != CHARGEN:
            continue
        latest = max(0.0, RIDES_S - flow.timing_error)
        sent_before = bisect_left(flow.sds_sent, poll.frame, key=_frame)
        if not sent_before:
            continue
        before = flow.sds_sent[sent_before - 1]
        if not before.new or poll.time - before.time > latest:
            continue
        since = reports[bisect_right(reports, poll.time) - 1]
        if poll.time - since >= trips.silence(poll.time)[0] - FOLLOWS_S - flow.timing_error:
            continue
        first = bisect_left(arrivals, before.time - FOLLOWS_S - flow.timing_error)
        if first == len(arrivals) or arrivals[first] > poll.time:
            yield context.violated(
                f"the POLL with N(PS) {poll.n_ps} left alone, "
                f"{1000 * (poll.time - before.time):.1f} ms after a new SD",
                before, poll,
            )  # fmt: skip


@checker("STP-PL-006", of=transfer)
def polls_are_numbered(flow: Flow, context: Context) -> Findings:
    """POLLs and SDPs count N(PS) up by one, and carry VT(S) and the CSN (section 7.1)."""
    before = 0
    for poll in flow.polls_sent:
        if poll.n_ps != before + 1:
            yield context.violated(
                f"{poll.name} has N(PS) {poll.n_ps}", poll,
                expected=f"N(PS) {before + 1}", actual=f"N(PS) {poll.n_ps}",
            )  # fmt: skip
        elif poll.stp.csn != flow.iut_csn:
            yield context.violated(
                f"{poll.name} has another CSN than that of its sender", poll,
                expected=f"CSN {flow.iut_csn}", actual=f"CSN {poll.stp.csn}",
            )  # fmt: skip
        else:
            says = "the POLL part of an SDP stands for" if poll.stp.type == SDP else "a POLL has"
            yield judged(
                context, poll.n_s == poll.vt_s,
                f"N(PS) {poll.n_ps} and N(S) {poll.n_s} follow",
                f"{says} N(S) {poll.n_s}", poll,
                expected=f"VT(S) {poll.vt_s}", actual=f"N(S) {poll.n_s}",
            )  # fmt: skip
        before = max(before, poll.n_ps)
