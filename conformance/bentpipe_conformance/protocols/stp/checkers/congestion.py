"""STP-CG: congestion control and pacing (sections 7.3 and 7.4)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    RATE_TOLERANCE,
    bounded_of,
    largest_packet,
    rate_gap,
    round_trips_of,
)
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK
from bentpipe_conformance.protocols.stp.replay.events import UNREAD_S, ReportHeard
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.window import (
    MOST_INITIAL_WINDOW,
    largest_smss,
    octets_with,
)
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

_LEAST_JUDGED = 3
"""SDs of a phase that have to be within the window before it counts as kept."""


def _replayed(flow: Flow, context: Context) -> list[Bounded]:
    if flow.established is None:
        return []
    return [item for item in bounded_of(context) if item.sd.time >= flow.established]


@checker("STP-CG-001")
def initial_window(flow: Flow, context: Context) -> Iterator[Finding]:
    """What is in flight before anything has been reported as arrived."""
    if flow.established is None:
        return
    first = next(
        (report for report in flow.reports_heard
         if report.arrived and report.stp.type != BGAK), None
    )  # fmt: skip
    if first is None:
        return
    early = [
        sd for sd in flow.sds_sent
        if sd.packet.number < first.packet.number and sd.stp.type != BEGIN
    ]  # fmt: skip
    if not early:
        return
    size = largest_smss(flow)
    largest = max(early, key=octets_with)
    if octets_with(largest) > MOST_INITIAL_WINDOW * size:
        yield context.violated(
            f"{octets_with(largest)} octets were in flight before the first report", largest,
            expected=f"at most {MOST_INITIAL_WINDOW} SMSS, {MOST_INITIAL_WINDOW * size} octets",
            actual=f"{octets_with(largest)} octets",
        )  # fmt: skip
    else:
        yield context.holds(
            f"{octets_with(largest)} octets were in flight before the first report, at most "
            f"{MOST_INITIAL_WINDOW * size} are permitted",
            largest,
        )


@checker("STP-CG-002")
def window_bounds_flight(flow: Flow, context: Context) -> Iterator[Finding]:
    """What is in flight against the largest window that any rule permits."""
    kept: Bounded | None = None
    for item in _replayed(flow, context):
        octets = octets_with(item.sd)
        if item.exempt or _undecided(flow, item):
            continue
        if octets > BEYOND_DOUBT * item.limit():
            yield context.violated(
                f"{octets} octets are in flight with SD {item.sd.number}, the flight limit cannot "
                f"have been larger than {item.limit():.0f}",
                item.sd,
                expected=f"at most {item.limit():.0f} octets",
                actual=f"{octets} octets",
            )
            return
        kept = item if octets <= item.limit() else kept
    if kept is not None:
        yield context.holds(
            f"{octets_with(kept.sd)} octets in flight, the flight limit may have been "
            f"{kept.limit():.0f}",
            kept.sd,
        )


@checker("STP-CG-003")
def slow_start(flow: Flow, context: Context) -> Iterator[Finding]:
    """What is in flight before the first reduction."""
    yield from _within(flow, context, "slow start", "ten SMSS and what has arrived")


@checker("STP-CG-004")
def congestion_avoidance(flow: Flow, context: Context) -> Iterator[Finding]:
    """What is in flight once a window has arrived after a reduction."""
    yield from _within(flow, context, "avoidance", "half a flight and an SMSS for each window")


@checker("STP-CG-005")
def loss_halves_the_window(flow: Flow, context: Context) -> Iterator[Finding]:
    """What is in flight after a reduction, until a window has arrived."""
    yield from _within(flow, context, "reduced", "with half of the window or of what was in flight")


@checker("STP-CG-007")
def two_silences(flow: Flow, context: Context) -> Iterator[Finding]:
    """What is in flight after two silences."""
    yield from _within(flow, context, "silence", "one SMSS and what has arrived since", least=1)


@checker("STP-CG-009")
def rate_limit_holds(flow: Flow, context: Context) -> Iterator[Finding]:
    """IP octets of packets with data within any tenth of a second, against the declared rate."""
    rate = int(context.ics.get("rate_limit_bps", 0))
    if rate <= 0:
        return
    sds = [sd for sd in flow.sds_sent if sd.stp.type != BEGIN]
    most = rate * RATE_WINDOW_S / 8 + RATE_TOLERANCE * largest_packet(flow)
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
def unused_window_does_not_grow(flow: Flow, context: Context) -> Iterator[Finding]:
    """What is in flight after SDs that lack of data or credit kept few."""
    kept: list[Bounded] = []
    margin = largest_smss(flow)
    for item in _replayed(flow, context):
        if item.exempt or item.limit() <= item.used_limit(margin):
            continue
        octets = octets_with(item.sd)
        most = item.used_limit(margin)
        if octets > most:
            yield context.violated(
                f"{octets} octets are in flight with SD {item.sd.number}, after SDs that did not "
                "use half of the window",
                item.sd,
                expected=f"at most {most:.0f} octets: ten SMSS, and what arrived of used windows",
                actual=f"{octets} octets",
            )
            return
        kept.append(item)
    if len(kept) >= _LEAST_JUDGED and not kept[-1].idle:
        yield context.holds(
            f"{octets_with(kept[-1].sd)} octets in flight; had unused windows grown, "
            f"{kept[-1].limit():.0f} would be permitted",
            kept[-1].sd,
        )


def _undecided(flow: Flow, item: Bounded) -> bool:
    """Whether an SD may have been on its way before the report of the last reduction was read."""
    if item.reduction is None:
        return False
    return item.sd.time - item.reduction.time <= UNREAD_S + flow.timing_error


def _within(
    flow: Flow, context: Context, phase: Phase, permitted: str, least: int = _LEAST_JUDGED
) -> Iterator[Finding]:
    kept: list[Bounded] = []
    margin = largest_smss(flow)
    for item in _replayed(flow, context):
        if item.phase != phase or item.exempt or _undecided(flow, item):
            continue
        octets = octets_with(item.sd)
        where = (item.sd,) if item.reduction is None else (item.reduction, item.sd)
        # Growth is counted in whole windows, so the IUT may be one SMSS ahead of the replay.
        if octets > item.limit(margin):
            yield context.violated(
                f"{octets} octets are in flight with SD {item.sd.number}", *where,
                expected=f"at most {item.limit(margin):.0f} octets: {permitted}",
                actual=f"{octets} octets",
            )  # fmt: skip
            return
        kept.append(item)
    if len(kept) >= least:
        yield context.holds(
            f"{octets_with(kept[-1].sd)} octets in flight, {kept[-1].limit():.0f} are permitted: "
            f"{permitted}",
            kept[-1].sd,
        )


@checker("STP-CG-006")
def first_retransmission_at_once(flow: Flow, context: Context) -> Iterator[Finding]:
    """The first response to a report that calls for a reduction."""
    trips = round_trips_of(context)
    octets = largest_smss(flow)
    for item in _first_after_reductions(flow, context):
        report = item.reduction
        assert report is not None
        bounds = trips.bounds(report.time)
        if bounds is None:
            continue
        # The schedule may just have let an SD go, and the next one is due after a gap.
        due = 2 * bounds[1] * octets / (SLOWEST_GAIN * item.threshold) + SLACK_S
        due = max(due + rate_gap(flow, context), DUE_S)
        if due > bounds[0] / 3:
            continue
        first = report.responses[0] if report.responses else None
        if first is not None and first.time - report.time <= due + flow.timing_error:
            yield context.holds(
                f"the first retransmission left after {first.time - report.time:.3f} s",
                report, first,
            )  # fmt: skip
        elif min(
            flow.until, flow.ended or flow.until
        ) > report.time + due + flow.timing_error and not (
            _arrived_all_the_same(flow, report, due)
        ):
            yield context.violated(
                "the first retransmission waited", report, *([first] if first else []),
                expected=f"within {due:.2f} s, as the pacing has it",
                actual="none" if first is None else f"after {first.time - report.time:.2f} s",
            )  # fmt: skip


def _observed(flow: Flow, time: float) -> bool:
    """Whether the capture of the open connection goes on until then."""
    return min(flow.until, flow.ended or flow.until) > time + flow.timing_error


def _arrived_all_the_same(flow: Flow, report: ReportHeard, within: float) -> bool:
    """Whether another report shows within so many seconds that what was wanted is not missing."""
    wanted = set(report.wanted)
    for later in flow.reports_heard:
        if report.packet.number < later.packet.number and later.time <= report.time + within:
            wanted.difference_update(later.arrived)
    return not wanted


def _first_after_reductions(flow: Flow, context: Context) -> Iterator[Bounded]:
    """The first SD after each reduction that has to have been made."""
    seen: ReportHeard | None = None
    for item in _replayed(flow, context):
        if item.reduction is not None and item.reduction is not seen:
            seen = item.reduction
            if item.certain:
                yield item


@checker("STP-CG-008")
def packets_are_spread(flow: Flow, context: Context) -> Iterator[Finding]:
    """How many SDs leave within a tick once the IUT knows the round-trip time."""
    trips = round_trips_of(context)
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
        # A reduction meanwhile says nothing of what had left before.
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
