"""STP-CG: congestion control and pacing (sections 7.3 and 7.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, ReportHeard
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.window import MOST_INITIAL_WINDOW, largest_smss
from bentpipe_conformance.protocols.stp.replay.window_bound import SLACK_S, Bounded, Phase

BEYOND_DOUBT = 2
"""Times the largest permitted flight from which on no rule of growth explains what is in flight:
the window is not kept at all (STP-CG-002)."""

TICK_S = 0.01
"""The longest tick of a pacing sender (STP-CG-008)."""

IN_A_TICK = 4
"""SDs that may leave in one tick whatever the spacing (STP-CG-008)."""

MOST_TICKS = 3
"""Ticks of 0.005 s that a time of 0.01 s can touch."""

FASTEST_GAIN, SLOWEST_GAIN = 2.0, 1.25
"""g in slow start and afterwards (STP-CG-008)."""

RATE_WINDOW_S = 0.1
"""Seconds over which a maximum rate is kept (STP-CG-009)."""

RATE_TOLERANCE = 4
"""Packets by which a maximum rate may be exceeded in a tenth of a second (STP-CG-009)."""

_LEAST_JUDGED = 3
"""SDs of a phase that must fit the window before it counts as respected."""


def _replayed(flow: Flow, context: Context) -> list[Bounded]:
    since = math.inf if flow.established is None else flow.established
    return [item for item in context.prepared.bounded(context.ics) if item.sd.time >= since]


def _rate(context: Context) -> int:
    """The declared maximum rate, bit/s; zero or less without one."""
    return int(context.ics.get("rate_limit_bps", 0))


def rate_gap(flow: Flow, context: Context) -> float:
    """Seconds for which a declared maximum rate may hold an SD back; 0 without one.

    A sender that has used its tolerance waits until it is gained again.
    """
    rate = _rate(context)
    return (RATE_TOLERANCE + 1) * 8 * _largest_packet(flow) / rate if rate > 0 else 0.0


def _largest_packet(flow: Flow) -> int:
    """Octets of the IP packet of an SD of SMSS octets; 0 when there was no SD."""
    headers = [len(sd.packet.data) - len(sd.stp.data) for sd in flow.sds_sent]
    return max(headers) + largest_smss(flow) if headers else 0


@checker("STP-CG-001")
def initial_window(flow: Flow, context: Context) -> Findings:
    """The initial window is at most ten SMSS (section 7.3)."""
    reports = (item for item in flow.reports_heard if item.arrived and item.stp.type != BGAK)
    first = next(reports, None)
    if flow.established is None or first is None:
        return
    early = [sd for sd in flow.sds_sent if sd.frame < first.frame and sd.stp.type != BEGIN]
    if not early:
        return
    most = MOST_INITIAL_WINDOW * largest_smss(flow)
    largest = max(early, key=lambda sd: sd.flight_with)
    what = f"{largest.flight_with} octets were in flight before the first report"
    yield judged(
        context, largest.flight_with <= most,
        f"{what}, at most {most} are permitted", what, largest,
        expected=f"at most {MOST_INITIAL_WINDOW} SMSS, {most} octets",
        actual=f"{largest.flight_with} octets",
    )  # fmt: skip


@checker("STP-CG-002")
def window_bounds_flight(flow: Flow, context: Context) -> Findings:
    """What is in flight fits into the largest window that any rule permits (section 7.3)."""
    items = [
        item for item in _replayed(flow, context) if not item.exempt and not _undecided(flow, item)
    ]
    over = _first_above(items, lambda item: BEYOND_DOUBT * item.limit())
    fitting = [item for item in items if item.sd.flight_with <= item.limit()]
    if over is not None:
        why = f", the flight limit cannot have been larger than {over.limit():.0f}"
        yield _excess(context, over, why, f"{over.limit():.0f} octets")
    elif fitting:
        kept = fitting[-1]
        yield context.holds(
            f"{kept.sd.flight_with} octets in flight, the flight limit may have been "
            f"{kept.limit():.0f}",
            kept.sd,
        )


def _excess(context: Context, item: Bounded, why: str, most: str, *where: ReportHeard) -> Finding:
    flight = f"{item.sd.flight_with} octets"
    return context.violated(
        f"{flight} are in flight with SD {item.sd.number}{why}", *where, item.sd,
        expected=f"at most {most}", actual=flight,
    )  # fmt: skip


def _first_above(items: Sequence[Bounded], limit: Callable[[Bounded], float]) -> Bounded | None:
    """The first SD with which more is in flight than a limit."""
    return next((item for item in items if item.sd.flight_with > limit(item)), None)


@checker("STP-CG-003")
def slow_start(flow: Flow, context: Context) -> Findings:
    """Slow start grows by no more than the octets that have arrived (section 7.3)."""
    yield from _within(flow, context, "slow start", "ten SMSS and what has arrived")


@checker("STP-CG-004")
def congestion_avoidance(flow: Flow, context: Context) -> Findings:
    """Congestion avoidance grows by one SMSS for each window that arrives (section 7.3)."""
    yield from _within(flow, context, "avoidance", "half a flight and an SMSS for each window")


@checker("STP-CG-005")
def loss_halves_the_window(flow: Flow, context: Context) -> Findings:
    """A loss halves the window (section 7.3)."""
    yield from _within(flow, context, "reduced", "with half of the window or of what was in flight")


@checker("STP-CG-007")
def two_silences(flow: Flow, context: Context) -> Findings:
    """After two silences in a row the window is one SMSS (section 7.3)."""
    yield from _within(flow, context, "silence", "one SMSS and what has arrived since", least=1)


@checker("STP-CG-009")
def rate_limit_holds(flow: Flow, context: Context) -> Findings:
    """SDs do not exceed the declared rate over any tenth of a second (section 7.4)."""
    rate = _rate(context)
    if rate <= 0:
        return
    sds = [sd for sd in flow.sds_sent if sd.stp.type != BEGIN]
    most = rate * RATE_WINDOW_S / 8 + RATE_TOLERANCE * _largest_packet(flow)
    octets = first = busiest = 0
    for last, sd in enumerate(sds):
        octets += len(sd.packet.data)
        while sd.time - sds[first].time > RATE_WINDOW_S - flow.timing_error:
            octets -= len(sds[first].packet.data)
            first += 1
        if octets > most:
            yield context.violated(
                f"{last - first + 1} packets with {octets} octets left within "
                f"{RATE_WINDOW_S:g} s at a maximum rate of {rate} bit/s",
                sds[first], sd,
                expected=f"at most {most:.0f} octets",
                actual=f"{octets} octets",
            )  # fmt: skip
            return
        busiest = max(busiest, octets)
    if busiest >= rate * RATE_WINDOW_S / 16:
        yield context.holds(
            f"at most {busiest} octets left within {RATE_WINDOW_S:g} s, {most:.0f} are permitted",
            sds[-1],
        )


@checker("STP-CG-010")
def unused_window_does_not_grow(flow: Flow, context: Context) -> Findings:
    """The window does not grow on SDs sent for lack of data or credit (section 7.3)."""
    margin = largest_smss(flow)
    items = [
        item for item in _replayed(flow, context)
        if not item.exempt and item.limit() > item.limit(margin, used=True)
    ]  # fmt: skip
    over = _first_above(items, lambda item: item.limit(margin, used=True))
    if over is not None:
        why = ", after SDs that did not use half of the window"
        most = f"{over.limit(margin, used=True):.0f} octets"
        yield _excess(context, over, why, f"{most}: ten SMSS, and what arrived of used windows")
    elif len(items) >= _LEAST_JUDGED and not items[-1].idle:
        yield context.holds(
            f"{items[-1].sd.flight_with} octets in flight; had unused windows grown, "
            f"{items[-1].limit():.0f} would be permitted",
            items[-1].sd,
        )


def _undecided(flow: Flow, item: Bounded) -> bool:
    """Whether an SD may have been on its way before the report of the last reduction was read."""
    if item.reduction is None:
        return False
    return item.sd.time - item.reduction.time <= flow.due_s


def _within(
    flow: Flow, context: Context, phase: Phase, permitted: str, least: int = _LEAST_JUDGED
) -> Findings:
    # Growth is counted in whole windows, so the IUT may be one SMSS ahead of the replay.
    margin = largest_smss(flow)
    items = [
        item for item in _replayed(flow, context)
        if item.phase == phase and not item.exempt and not _undecided(flow, item)
    ]  # fmt: skip
    over = _first_above(items, lambda item: item.limit(margin))
    if over is not None:
        where = () if over.reduction is None else (over.reduction,)
        yield _excess(context, over, "", f"{over.limit(margin):.0f} octets: {permitted}", *where)
    elif len(items) >= least:
        kept = items[-1]
        yield context.holds(
            f"{kept.sd.flight_with} octets in flight, {kept.limit():.0f} are permitted: "
            f"{permitted}",
            kept.sd,
        )


@checker("STP-CG-006")
def first_retransmission_at_once(flow: Flow, context: Context) -> Findings:
    """The first retransmission after a reduction waits for pacing only (section 7.3)."""
    trips = context.prepared.round_trips(context.ics)
    octets = largest_smss(flow)
    for item in _first_after_reductions(flow, context):
        report = item.reduction
        assert report is not None
        bounds = trips.bounds(report.time)
        if bounds is None:
            continue
        # The schedule may just have released an SD, and the next one is due after a gap.
        due = 2 * bounds[1] * octets / (SLOWEST_GAIN * item.threshold) + SLACK_S
        due = max(due + rate_gap(flow, context), DUE_S)
        if due > bounds[0] / 3:
            continue
        first = report.responses[0] if report.responses else None
        waited = None if first is None else first.time - report.time
        if first is not None and waited is not None and waited <= due + flow.timing_error:
            yield context.holds(
                f"the first retransmission left after {waited:.3f} s", report, first
            )
        elif flow.over > report.time + due + flow.timing_error and not (
            _arrived_meanwhile(flow, report, due)
        ):
            yield context.violated(
                "the first retransmission waited", report, *([first] if first else []),
                expected=f"within {due:.2f} s, as pacing requires",
                actual="none" if waited is None else f"after {waited:.2f} s",
            )  # fmt: skip


def _arrived_meanwhile(flow: Flow, report: ReportHeard, within: float) -> bool:
    """Whether another report shows within the given seconds that what was wanted has arrived."""
    wanted = set(report.wanted)
    for later in flow.reports_heard:
        if report.frame < later.frame and later.time <= report.time + within:
            wanted.difference_update(later.arrived)
    return not wanted


def _first_after_reductions(flow: Flow, context: Context) -> Iterator[Bounded]:
    """The first SD after each reduction that must have been made."""
    seen: ReportHeard | None = None
    for item in _replayed(flow, context):
        if item.reduction is not None and item.reduction is not seen:
            seen = item.reduction
            if item.certain:
                yield item


@checker("STP-CG-008")
def packets_are_spread(flow: Flow, context: Context) -> Findings:
    """Once the round-trip time is known, SDs are spaced, or a few leave in a tick (section 7.4)."""
    trips = context.prepared.round_trips(context.ics)
    measured = next(
        (report.time for report in flow.reports_heard if report.is_stat and not report.fault), None
    )
    tick = TICK_S - flow.timing_error
    if measured is None or tick <= 0:
        return
    sds = [item for item in _replayed(flow, context) if item.sd.time > measured]
    first = busiest = octets = 0
    for last, item in enumerate(sds):
        octets += max(len(item.sd.stp.data), 1)
        while item.sd.time - sds[first].sd.time >= tick:
            octets -= max(len(sds[first].sd.stp.data), 1)
            first += 1
        bounds = trips.bounds(item.sd.time)
        if bounds is None:
            continue
        # A time as long as the longest tick touches two of those, or three of the shortest.
        count = last - first + 1
        busiest = max(busiest, count)
        if count <= MOST_TICKS * IN_A_TICK:
            continue
        # A reduction in between does not bound what had left before.
        window = max(sent.window for sent in sds[first : last + 1])
        fitting = 2 * TICK_S * FASTEST_GAIN * window / bounds[0] + largest_smss(flow)
        if octets > fitting:
            yield context.violated(
                f"{count} SDs with {octets} octets left within {1000 * TICK_S:.0f} ms",
                sds[first].sd, item.sd,
                expected=f"at most {MOST_TICKS * IN_A_TICK} SDs, or {fitting:.0f} octets",
                actual=f"{count} SDs with {octets} octets",
            )  # fmt: skip
            return
    if len(sds) > 4 * IN_A_TICK:
        yield context.holds(f"at most {busiest} SDs left within {1000 * TICK_S:.0f} ms", sds[-1].sd)
