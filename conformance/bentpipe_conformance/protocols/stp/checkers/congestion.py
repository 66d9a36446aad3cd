"""STP-CG: congestion control and pacing (sections 7.3 and 7.4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged, transfer
from bentpipe_conformance.protocols.stp.codec import BEGIN
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, ReportHeard
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips
from bentpipe_conformance.protocols.stp.replay.window import (
    MOST_INITIAL_WINDOW,
    SLACK_S,
    Bounded,
    Phase,
    initial_flight,
    smss,
)

BEYOND_DOUBT = 2
"""Times the largest permitted window from which on no rule of growth explains what is in flight:
the window is not kept at all (STP-CG-002)."""

DEPTH = 4
"""SMSS by which spacing may be exceeded (STP-CG-008), and packets by which a rate (STP-CG-009)."""

FASTEST_GAIN, SLOWEST_GAIN = 2.0, 0.9
"""g in slow start and afterwards (STP-CG-008)."""

TICK_S, ROUNDING_S = 0.01, 2e-6
"""Seconds in which a pacing sender may work at once (STP-CG-008), and by which a capture rounds."""

RATE_WINDOW_S = 0.1
"""Seconds over which a maximum rate is kept (STP-CG-009)."""

_LEAST_JUDGED = 3
"""SDs of a phase that must fit the window before it counts as respected."""


def _rate(context: Context) -> int:
    """The declared maximum rate, bit/s; zero or less without one."""
    return int(context.ics.get("rate_limit_bps", 0))


def rate_gap(flow: Flow, context: Context) -> float:
    """Seconds for which a declared maximum rate may hold an SD back; 0 without one.

    A sender that has used its tolerance waits until it is gained again.
    """
    rate = _rate(context)
    return (DEPTH + 1) * 8 * _largest_packet(flow) / rate if rate > 0 else 0.0


@remembered
def _largest_packet(flow: Flow) -> int:
    """Octets of the IP packet of an SD of SMSS octets; 0 when there was no SD."""
    headers = [len(sd.packet.data) - len(sd.stp.data) for sd in flow.sds_sent]
    return max(headers) + smss(flow) if headers else 0


# -- the window


@checker("STP-CG-001", of=transfer)
def initial_window(flow: Flow, context: Context) -> Findings:
    """The initial window is at most ten SMSS (section 7.3)."""
    flight = initial_flight(flow)
    if not flight:
        return
    most = MOST_INITIAL_WINDOW * smss(flow)
    largest = next(sd for sd in flow.sds_sent if sd.flight_with == flight)
    what = f"{flight} octets were in flight before the first report"
    yield judged(
        context, flight <= most, f"{what}, at most {most} are permitted", what, largest,
        expected=f"at most {MOST_INITIAL_WINDOW} SMSS, {most} octets", actual=f"{flight} octets",
    )  # fmt: skip


@checker("STP-CG-002", of=transfer)
def window_bounds_flight(flow: Flow, context: Context) -> Findings:
    """What is in flight fits into the largest window that any rule permits (section 7.3)."""
    declared = int(context.ics.get("initial_window_sds", 4))
    first, most = initial_flight(flow), declared * smss(flow)
    if most < first <= MOST_INITIAL_WINDOW * smss(flow):
        sd = next(sd for sd in flow.sds_sent if sd.flight_with == first)
        yield context.violated(
            f"{first} octets were in flight before the first report, but the statement declares an "
            f"initial window of {declared} SMSS",
            sd, expected=f"at most {most} octets", actual=f"{first} octets",
        )  # fmt: skip
        return
    items = context.prepared.bounded(context.ics)
    over = next((item for item in items if _excess(item) and _is_beyond_doubt(item)), None)
    fitting = [item for item in items if item.fits and not item.exempt]
    yield from _miscounted(context, items)
    if over is not None:
        yield _exceeds(context, over, ", the window cannot have been larger than permitted", "")
    elif fitting:
        kept = fitting[-1]
        yield context.holds(
            f"{kept.sd.flight_with} octets in flight, the window may have been {kept.window:.0f}",
            kept.sd,
        )


def _miscounted(context: Context, items: Sequence[Bounded]) -> Findings:
    """A window that is kept, but for what does not count, or leaves without asking."""
    over = next((item for item in items if _excess(item) and _counts_twice(item)), None)
    if over is not None:
        yield _exceeds(
            context, over, "; it fits if SDs that arrived while they awaited retransmission are "
            "taken off twice", "",
        )  # fmt: skip
    passing = _passing(items)
    over = next((item for item in items if id(item) in passing), None)
    if over is not None:
        where = () if over.reduction is None else (over.reduction,)
        yield _exceeds(
            context, over, ", a retransmission that is not the first after the reduction",
            ": only the first one does not wait", *where,
        )  # fmt: skip
    over = next(_first_after_silences(items), None)
    if over is not None:
        yield _exceeds(context, over, ", the first one sent again after two silences", ": it waits")


def _first_after_silences(items: Sequence[Bounded]) -> Iterator[Bounded]:
    """Retransmissions that exceed the window of two silences, and are the only ones that do.

    Nothing tells whether they did not wait, or the silences did not reduce the window (STP-CG-007).
    """
    for silent, run in groupby(items, key=lambda item: item.phase == "silence"):
        first, *others = run
        alone = silent and _excess(first) and not any(map(_excess, others))
        if (
            alone
            and not first.sd.new
            and _is_of_phase(first)
            and first.sd.flight_with > first.again
        ):
            yield first


def _counts_twice(item: Bounded) -> bool:
    return bool(item.sd.twice) and item.sd.flight_with - item.sd.twice <= item.window


def _passing(items: Sequence[Bounded]) -> set[int]:
    """Retransmissions that exceed the window after a reduction to which new SDs keep, by identity.

    The window was reduced, then, but they do not wait for it.
    """
    over = [item for item in items if _excess(item) and item.phase == "reduced"]
    loose = {id(item.reduction) for item in over if item.sd.new}
    return {id(item) for item in over if id(item.reduction) not in loose}


def _surely_passing(items: Sequence[Bounded]) -> set[int]:
    """Those of them behind a loss that nobody who halves the window overlooks.

    A sender may overlook that what it sent again was lost once more, and not reduce the window for
    it: both rules explain the excess then, and the one that explains more of it names the fault.
    """
    plain = {id(item) for item in items if not item.repetitions}
    return _passing(items) & plain


def _excess(item: Bounded) -> bool:
    return not item.fits


def _is_beyond_doubt(item: Bounded) -> bool:
    """Whether no window can be kept; after a reduction it may be that alone which is not.

    A sender that has stopped, and goes on without any report, has no reason for a larger one.
    """
    doubtful = item.phase in ("reduced", "silence")
    far_above = item.sd.flight_with > BEYOND_DOUBT * item.grown
    return not doubtful and (far_above or item.unasked)


def _exceeds(
    context: Context, item: Bounded, why: str, permitted: str, *where: ReportHeard
) -> Finding:
    flight, most = f"{item.sd.flight_with} octets", f"{item.window:.0f} octets"
    return context.violated(
        f"{flight} are in flight with SD {item.sd.number}{why}", *where, item.sd,
        expected=f"at most {most}{permitted}", actual=flight,
    )  # fmt: skip


@checker("STP-CG-003", of=transfer)
def slow_start(_flow: Flow, context: Context) -> Findings:
    """Slow start grows by no more than the octets that have arrived (section 7.3)."""
    yield from _within(context, "slow start", "the initial window and what has arrived")


@checker("STP-CG-004", of=transfer)
def congestion_avoidance(_flow: Flow, context: Context) -> Findings:
    """Congestion avoidance grows by two SMSS for each window that arrives (section 7.3)."""
    yield from _within(context, "avoidance", "half the window, and two SMSS for each that arrived")


@checker("STP-CG-005", of=transfer)
def loss_halves_the_window(_flow: Flow, context: Context) -> Findings:
    """A loss halves the window, but not one from before two silences (section 7.3)."""
    items = context.prepared.bounded(context.ics)
    # Where more is in flight after the same silences, it was these that did not reduce the window.
    silences = [list(run) for _, run in groupby(items, key=lambda item: item.phase == "silence")]
    kept = (run for run in silences if not any(it.again and not _is_again(it) for it in run))
    over = next((item for run in kept for item in run if _excess(item) and _is_again(item)), None)
    if over is not None:
        yield _exceeds(
            context, over, "; it fits if a loss from before two silences has set the window once "
            "more", f": the window after two silences, {over.window:.0f}",
        )  # fmt: skip
    yield from _within(context, "reduced", "half of the window")


@checker("STP-CG-007", of=transfer)
def two_silences(_flow: Flow, context: Context) -> Findings:
    """After two silences in a row the window is one SMSS (section 7.3)."""
    yield from _within(context, "silence", "one SMSS and what has arrived since", least=1)


def _within(context: Context, phase: Phase, permitted: str, least: int = _LEAST_JUDGED) -> Findings:
    items = [
        item for item in context.prepared.bounded(context.ics)
        if item.phase == phase and not item.exempt
    ]  # fmt: skip
    elsewhere = _surely_passing(items)
    over = next((
        item for item in items
        if _excess(item) and _is_of_phase(item) and id(item) not in elsewhere
    ), None)  # fmt: skip
    if over is not None:
        where = () if over.reduction is None else (over.reduction,)
        yield _exceeds(context, over, "", f": {permitted}", *where)
    elif len(items) >= least:
        kept = items[-1]
        yield context.holds(
            f"{kept.sd.flight_with} octets in flight, {kept.window:.0f} are permitted: {permitted}",
            kept.sd,
        )


def _is_again(item: Bounded) -> bool:
    """Whether a loss from before two silences explains what is in flight."""
    return item.freed or item.sd.flight_with <= item.again


def _is_of_phase(item: Bounded) -> bool:
    """Whether neither a window that is not kept nor one that grew unused explains the excess.

    A loss may explain what the two silences before it explain as well: both fail (decision 046).
    """
    if _counts_twice(item) or (_is_again(item) and item.phase != "silence"):
        return False
    return item.grown < item.sd.flight_with and not _is_beyond_doubt(item)


@checker("STP-CG-010", of=transfer)
def unused_window_does_not_grow(flow: Flow, context: Context) -> Findings:
    """The window does not grow on a report before which little was in flight (section 7.3)."""
    size = smss(flow)
    items = [
        item for item in context.prepared.bounded(context.ics)
        if not item.exempt and item.grown >= item.window + 2 * size
    ]  # fmt: skip
    over = next((item for item in items if _excess(item) and not _is_of_phase(item)), None)
    full = [item for item in items if item.sd.flight_with > item.window - size]
    if over is not None and not _is_beyond_doubt(over):
        yield _exceeds(
            context, over, ", after reports before which little was in flight",
            ": what arrived of used windows",
        )  # fmt: skip
    elif full:
        yield context.holds(
            f"{full[-1].sd.flight_with} octets in flight; had unused windows grown, "
            f"{full[-1].grown:.0f} would be permitted",
            full[-1].sd,
        )


@checker("STP-CG-006", of=transfer)
def first_retransmission_at_once(flow: Flow, context: Context) -> Findings:
    """The first retransmission after a reduction waits for pacing only (section 7.3)."""
    trips = context.prepared.round_trips(context.ics)
    size = smss(flow)
    for item in _first_after_reductions(context):
        report = item.reduction
        assert report is not None
        bounds = trips.bounds(report.time)
        if bounds is None:
            continue
        # The bucket may be empty, and the window as small as what was in flight shows.
        due = 2 * bounds[1] * size / (SLOWEST_GAIN * _least_window(context, report, size)) + SLACK_S
        due = max(due + rate_gap(flow, context), DUE_S)
        if due > bounds[0] / 2:
            continue
        # Any SD may be the first, also one that another report had made await retransmission.
        first = item.sd if not item.sd.new else next(iter(report.responses), None)
        waited = None if first is None else first.time - report.time
        if first is not None and waited is not None and waited <= due + flow.timing_error:
            if first.flight_with > item.window:
                yield context.holds(
                    f"the first retransmission left after {waited:.3f} s, though the window was "
                    "full",
                    report, first,
                )  # fmt: skip
        elif flow.over > report.time + due + flow.timing_error and not (
            _arrived_meanwhile(flow, report, due)
        ):
            yield context.violated(
                "the first retransmission waited", report, *([first] if first else []),
                expected=f"within {due:.2f} s, as pacing requires",
                actual="none" if waited is None else f"after {waited:.2f} s",
            )  # fmt: skip


def _least_window(context: Context, report: ReportHeard, size: int) -> float:
    """Octets of the smallest window after a reduction: half of what was in flight before it.

    One of the lost transmissions was made after the reduction before; what was in flight since the
    last of them fitted into the window that has been halved.
    """
    bounds = context.prepared.bounded(context.ics)
    before = bounds[: bisect_left(bounds, report.frame, key=lambda item: item.sd.frame)]
    wanted = set(report.wanted)
    places = reversed(range(len(before)))
    lost = next((at for at in places if before[at].sd.number in wanted), len(before))
    flight = max((item.sd.flight_with for item in before[lost:] if not item.exempt), default=0)
    return max(flight / 2, 2 * size)


def _arrived_meanwhile(flow: Flow, report: ReportHeard, within: float) -> bool:
    """Whether another report shows within the given seconds that what was wanted has arrived."""
    wanted = set(report.wanted)
    for later in flow.reports_heard:
        if report.frame < later.frame and later.time <= report.time + within:
            wanted.difference_update(later.arrived)
    return not wanted


def _first_after_reductions(context: Context) -> Iterator[Bounded]:
    """The first SD after each reduction that must have been made."""
    seen: ReportHeard | None = None
    for item in context.prepared.bounded(context.ics):
        if item.reduction is not None and item.reduction is not seen:
            seen = item.reduction
            if item.certain:
                yield item


# -- pacing


@checker("STP-CG-008", of=transfer)
def packets_are_spread(flow: Flow, context: Context) -> Findings:
    """Once a round-trip time is known, SDs pass through a token bucket (section 7.4)."""
    trips = context.prepared.round_trips(context.ics).exact
    if not trips.times:
        return
    items = [
        item for item in context.prepared.bounded(context.ics)
        if item.sd.time > trips.times[0] and not item.exempt
    ]  # fmt: skip
    depth, error = DEPTH * smss(flow), flow.timing_error + TICK_S + ROUNDING_S
    filled, start = 0.0, 0
    tried = False
    for place, item in enumerate(items):
        if place:
            passed = item.sd.time - items[place - 1].sd.time
            filled -= _fastest(items[place - 1 : place + 1], trips) * passed
        if filled <= 0:
            filled, start = 0.0, place
        filled += item.sd.octets
        tried = tried or filled > depth / 2
        if filled <= depth + _fastest([item], trips) * TICK_S:
            continue
        burst = _burst(items[start : place + 1], trips, depth, error)
        if burst is not None:
            octets = sum(sent.sd.octets for sent in burst)
            length = burst[-1].sd.time - burst[0].sd.time
            most = _fastest(burst, trips) * (length + error) + depth
            yield context.violated(
                f"{len(burst)} SDs with {octets} octets left within {1000 * length:.0f} ms",
                burst[0].sd, burst[-1].sd,
                expected=f"at most {most:.0f} octets", actual=f"{octets} octets",
            )  # fmt: skip
            return
    if tried and len(items) > 2 * DEPTH:
        yield context.holds("SDs left spread over the round-trip time", items[-1].sd)


def _fastest(span: Sequence[Bounded], trips: RoundTrips) -> float:
    """The most octets per second that the spacing permits in a span (STP-CG-008)."""
    bounds = trips.bounds(span[0].sd.time, span[-1].sd.time)
    assert bounds is not None
    gain = FASTEST_GAIN if any(item.slow for item in span) else SLOWEST_GAIN
    return gain * max(map(_shown, span)) / max(bounds[0], 1e-6)


def _shown(item: Bounded) -> float:
    """The largest window; that it is not kept is another matter than how SDs are spread."""
    return max(item.window, item.sd.flight_with)


def _burst(
    items: Sequence[Bounded], trips: RoundTrips, depth: int, error: float
) -> Sequence[Bounded] | None:
    """The shortest span that ends with the last SD and exceeds what its largest window permits."""
    octets, window, gain = 0, 0.0, SLOWEST_GAIN
    last = items[-1].sd.time
    for place in reversed(range(len(items))):
        item = items[place]
        octets += item.sd.octets
        window = max(window, _shown(item))
        gain = FASTEST_GAIN if item.slow else gain
        bounds = trips.bounds(item.sd.time, last)
        assert bounds is not None
        rate = gain * window / max(bounds[0], 1e-6)
        if octets > rate * (last - item.sd.time + error) + depth + 1:
            return items[place:]
    return None


@checker("STP-CG-009")
def rate_limit_holds(flow: Flow, context: Context) -> Findings:
    """SDs do not exceed the declared rate over any tenth of a second (section 7.4)."""
    rate = _rate(context)
    if rate <= 0:
        return
    sds = [sd for sd in flow.sds_sent if sd.stp.type != BEGIN]
    most = rate * RATE_WINDOW_S / 8 + DEPTH * _largest_packet(flow)
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
