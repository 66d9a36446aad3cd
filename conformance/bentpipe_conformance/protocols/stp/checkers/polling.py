"""STP-PL: when to poll (section 7.1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.congestion import SLOWEST_GAIN, rate_gap
from bentpipe_conformance.protocols.stp.codec import BEGIN, FIN, SDP
from bentpipe_conformance.protocols.stp.numbers import CHARGEN
from bentpipe_conformance.protocols.stp.replay import window
from bentpipe_conformance.protocols.stp.replay.events import PollSent, ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import LEAST_SILENCE_S, RoundTrips

FOLLOWS_S = 0.02
"""Seconds within which a POLL follows the last SD (STP-PL-003, STP-PL-004)."""

RIDES_S = 0.01
"""Seconds within which a POLL rides on a new SD (STP-PL-005)."""

SLACK_S = 0.05
"""Seconds by which a POLL may be later than its timer says: ticks, and waiting for an SD."""

ROUND_TRIPS = 3
"""Over which POLLs are counted (STP-PL-002)."""

KEEP_ALIVE_S, IDLE_S = 15.0, 3.0
"""Between POLLs with keep-alive (STP-PL-010), and the silence that shows its absence."""


@checker("STP-PL-001")
def three_polls_in_a_round_trip(flow: Flow, context: Context) -> Findings:
    """In a large window POLLs leave every third of a round trip at least (section 7.1)."""
    trips = context.prepared.round_trips(context.ics)
    for span in window.high_spans(flow, LEAST_SILENCE_S):
        polls = [poll for poll in flow.polls_sent if poll.time <= span.end]
        for poll, following in pairwise(polls):
            longest = max(trips.interval(at)[1] for at in (poll.time, following.time))
            # What the window was when the timer was set decides, and when it was due.
            due = poll.time + longest
            if poll.time < span.start or due + SLACK_S > span.end:
                continue
            if _acknowledged_between(flow, poll.time, due):
                continue
            gap = following.time - poll.time
            what = f"{gap:.3f} s passed between two POLLs"
            yield judged(
                context, following.time - due - flow.timing_error <= SLACK_S,
                f"{what}, a third of the round-trip time is at most {longest:.3f} s", what,
                poll, following,
                expected=f"at most {longest:.3f} s, a third of the round-trip time",
                actual=f"{gap:.3f} s",
            )  # fmt: skip


def _acknowledged_between(flow: Flow, start: float, end: float) -> bool:
    """Whether everything was acknowledged at some moment, so that the timer may have rested."""
    return any(
        start <= report.time <= end and not report.fault and report.n_r >= report.vt_s
        for report in flow.reports_heard
    )


@checker("STP-PL-002")
def no_more_polls_than_that(flow: Flow, context: Context) -> Findings:
    """Over three round trips at most one POLL leaves per half interval (section 7.1)."""
    if _has_end(flow):
        return
    trips = context.prepared.round_trips(context.ics)
    for span in window.high_spans(flow, LEAST_SILENCE_S):
        bounds, first = trips.bounds(span.start), trips.interval(span.start)[0]
        if bounds is None:
            continue
        length = ROUND_TRIPS * bounds[1]
        shortest = min(first, trips.interval(span.end)[0])
        # One per half interval, and one at either end of the time looked at.
        most = int(2 * length / shortest) + 2
        busiest = _busiest(flow.polls_sent, span, length)
        if len(busiest) > most:
            yield context.violated(
                f"{len(busiest)} POLLs left within {length:.2f} s", *busiest[:3],
                expected=f"at most {most}", actual=str(len(busiest)),
            )  # fmt: skip
        elif span.end - span.start >= length:
            yield context.holds(
                f"at most {len(busiest)} POLLs left within {length:.2f} s", *busiest[:1]
            )


def _has_end(flow: Flow) -> bool:
    """Whether the IUT's data can be exhausted, so that last SDs poll as well (STP-PL-004)."""
    return flow.service != CHARGEN or any(event.stp.flags & FIN for event in flow.sds_sent)


def _busiest(polls: list[PollSent], span: window.Span, length: float) -> list[PollSent]:
    inside = [poll for poll in polls if span.start <= poll.time <= span.end]
    best: list[PollSent] = []
    first = 0
    for last, poll in enumerate(inside):
        while poll.time - inside[first].time > length:
            first += 1
        if last - first + 1 > len(best):
            best = inside[first : last + 1]
    return best


@checker("STP-PL-003")
def last_packet_of_a_burst_polls(flow: Flow, context: Context) -> Findings:
    """In a small window the last SD of a burst polls (section 7.1).

    The window is surely small at first, and again when the largest that the rules permit is.
    """
    if flow.established is None:
        return
    initial = int(context.ics.get("initial_window_sds", 4))
    until = window.surely_low_until(flow, initial)
    unproven = context.prepared.unproven_until
    trips = context.prepared.round_trips(context.ics)
    # Growth is counted in whole windows, so the IUT may be one SMSS ahead of the replay.
    small = window.LOW_WINDOW * window.smss(flow) - window.largest_smss(flow)
    again = {item.sd.frame for item in context.prepared.bounded(context.ics) if item.window < small}
    for sd, next_time in _burst_ends(flow, trips, rate_gap(flow, context)):
        at_first = flow.established < sd.time < until and next_time <= until + LEAST_SILENCE_S
        if sd.time <= unproven or not (at_first or sd.frame in again):
            continue
        yield from _polls(flow, context, sd, "the last SD of a burst")


def _burst_ends(flow: Flow, trips: RoundTrips, least_gap: float) -> Iterator[tuple[SdSent, float]]:
    """SDs after which the sender surely stopped, each with the time at which it resumed."""
    reports = sorted(report.time for report in flow.reports_heard if not report.fault)
    end = min(flow.over, flow.passed[-1].time)
    sds = flow.sds_sent
    for place, sd in enumerate(sds):
        following = sds[place + 1].time if place + 1 < len(sds) else end
        later = bisect_right(reports, sd.time)
        moved = reports[later] if later < len(reports) else end
        next_time = min(following, moved)
        bounds = trips.bounds(sd.time)
        # Without a measurement nothing is paced.
        spread = 0.0 if bounds is None else bounds[1]
        gap = spread * sd.octets / (SLOWEST_GAIN * sd.flight_with)
        gap = max(gap, least_gap)
        if next_time - sd.time > gap + 2 * FOLLOWS_S + flow.timing_error and moved <= following:
            yield sd, next_time


@checker("STP-PL-004")
def last_sd_polls(flow: Flow, context: Context) -> Findings:
    """The last SD, which has the FIN flag, polls (section 7.1).

    The FIN of a BEGIN does not: a BGAK acknowledges it.
    """
    for sd in flow.sds_sent:
        fin = sd.new and sd.stp.flags & FIN and sd.stp.type != BEGIN
        if fin and flow.established is not None:
            yield from _polls(flow, context, sd, "the SD with the FIN flag")


def _polls(flow: Flow, context: Context, sd: SdSent, what: str) -> Findings:
    if sd.stp.type == SDP:
        yield context.holds(f"{what} is an SDP", sd)
        return
    within = FOLLOWS_S + flow.timing_error
    after = [poll for poll in flow.polls_sent if poll.frame > sd.frame]
    if after and after[0].time - sd.time <= within:
        yield context.holds(f"{what} is followed by a POLL", sd, after[0])
    elif flow.over > sd.time + within:
        yield context.violated(
            f"{what} is neither an SDP nor followed by a POLL", sd, *after[:1],
            expected=f"a POLL within {FOLLOWS_S:g} s",
            actual=f"a POLL after {after[0].time - sd.time:.3f} s" if after else "no POLL",
        )  # fmt: skip


@checker("STP-PL-005")
def polls_ride_on_sds(flow: Flow, context: Context) -> Findings:
    """A POLL that is due with a new SD rides on it (section 7.1)."""
    for poll in flow.polls_sent:
        if poll.stp.type == SDP:
            yield context.holds(f"the POLL with N(PS) {poll.n_ps} rides on an SD", poll)
            continue
        soon = RIDES_S / 2 - flow.timing_error
        behind = (sd for sd in flow.sds_sent if sd.new and sd.frame > poll.frame)
        rode = next((sd for sd in behind if sd.time - poll.time < soon), None)
        # More data shows only with chargen, and what an arrival permits could not be foreseen.
        if rode is None or flow.iut_calls or flow.service != CHARGEN:
            continue
        start = poll.time - RIDES_S - flow.timing_error
        if not any(start <= at.time <= rode.time for at in flow.heard):
            yield context.violated(
                f"the POLL with N(PS) {poll.n_ps} left alone, "
                f"{1000 * (rode.time - poll.time):.1f} ms before a new SD",
                poll, rode,
            )  # fmt: skip


@checker("STP-PL-006")
def polls_are_numbered(flow: Flow, context: Context) -> Findings:
    """POLLs and SDPs count N(PS) up by one, and carry VT(S) (section 7.1)."""
    before = 0
    for poll in flow.polls_sent:
        if poll.n_ps != before + 1:
            yield context.violated(
                f"{poll.name} has N(PS) {poll.n_ps}", poll,
                expected=f"N(PS) {before + 1}", actual=f"N(PS) {poll.n_ps}",
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


@checker("STP-PL-010")
def idle_connection_is_silent(flow: Flow, context: Context) -> Findings:
    """With nothing to send or unacknowledged no POLLs leave (section 7.1)."""
    settled: ReportHeard | None = None
    quiet_since = 0.0
    last: PollSent | None = None
    for event in flow.events:
        if isinstance(event, ReportHeard) and event.is_stat and not event.fault:
            # With credit, what waited would have been sent.
            credit = max(event.vt_ms, event.n_mr) > event.vt_s
            if event.n_r >= event.vt_s and credit:
                quiet_since = quiet_since if settled else event.time
                settled = settled or event
            else:
                settled = last = None
        elif isinstance(event, SdSent):
            settled = last = None
        elif isinstance(event, PollSent) and settled is not None:
            if event.time - quiet_since <= SLACK_S + flow.timing_error:
                continue
            if last is not None and event.time - last.time < KEEP_ALIVE_S - SLACK_S:
                yield context.violated(
                    f"a POLL left {event.time - last.time:.2f} s after another while idle",
                    last, event,
                    expected=f"none, or with keep-alive one in {KEEP_ALIVE_S:g} s",
                    actual=f"two in {event.time - last.time:.2f} s",
                )  # fmt: skip
            last = event
    silence = flow.over - quiet_since
    if settled is not None and last is None and silence >= IDLE_S:
        yield context.holds(f"an idle connection was silent for {silence:.1f} s", settled)
