"""Checkers for probing a window that is closed or stays small (SNR-WIN-003 to 006 and 013)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise, starmap

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import (
    BACK_OFF_CAP_S,
    COARSE_TICK_S,
    Context,
    Findings,
    judged,
    lasted,
    too_coarse,
    until_violated,
)
from bentpipe_conformance.protocols.tcp.replay.closures import Closure
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Reply, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import reset_by_sender
from bentpipe_conformance.protocols.tcp.replay.round_trips import longest_timeout
from bentpipe_conformance.protocols.tcp.replay.users import (
    data_waited,
    is_own_reset,
    may_have_closed,
)


@checker("SNR-WIN-003")
def zero_window_is_probed(flow: Flow, context: Context) -> Findings:
    """A zero window is probed (RFC 9293 section 3.8.6.1, MUST-36)."""
    # Exercised by a probe, and by a minute of zero window before a burst of waiting data, or a FIN,
    # in which nothing arrives: what arrives tells of the window as an answer to a probe would.
    patience = context.permitted("patience_s", 60.0)
    for closure in context.prepared.closures:
        longest = max(patience, closure.longest_timeout)
        if closure.probes:
            waited = closure.probes[0].time - closure.start.time
            sentence = f"the zero window was probed after {waited:.2f} s"
            yield context.holds(sentence, closure.probes[0], closure.start)
            yield from _ceased(flow, context, closure, patience)
        elif closure.data_waited_s > longest and closure.data_waits(keep_alive=False):
            waited = closure.data_waited_s
            sentence = f"the window was zero, data waiting, for {waited:.0f} s without a probe"
            where = closure.start, *([closure.resumed] if closure.resumed else [])
            actual = "silence, although data was waiting"
            yield context.violated(sentence, *where, expected="a probe", actual=actual)
        yield from _fin_unprobed(context, closure, patience)


def _fin_unprobed(context: Context, closure: Closure, patience: float) -> Findings:
    """Whether nothing probed a window that kept but a FIN back, which an update then let out."""
    times = [closure.start.time, *(probe.time for probe in closure.probes)]
    before = times[-1] - times[-2] if closure.probes else 0.0
    waited = closure.fin_waited_s
    if waited > max(patience, closure.longest_timeout, 4 * before):
        where = closure.start, *([closure.resumed] if closure.resumed else [])
        sentence = f"the window was zero, a FIN waiting, for {waited:.0f} s without a probe"
        actual = "silence, although a FIN was waiting"
        yield context.violated(sentence, *where, expected="a probe", actual=actual)


def _ceased(flow: Flow, context: Context, closure: Closure, patience: float) -> Findings:
    """Whether probing ended although the window stayed closed and data was waiting."""
    times = [closure.start.time, *(probe.time for probe in closure.probes)]
    before, last = times[-1] - times[-2], closure.probes[-1]
    silent = closure.silence_after(last.time)
    if silent <= max(patience, 4 * before) or closure.waited_from is None:
        return
    if reset_by_sender(flow, closure.start.time, flow.horizon) is not None:
        return
    if any(ack.advance for ack in closure.answered):
        return  # all that waited may have gone
    yield context.violated(
        f"probing ended {times[-1] - times[0]:.1f} s after the window had closed",
        last,
        closure.start,
        expected="probes as long as the window is closed",
        actual=f"{silent:.0f} s of silence",
    )


@checker("SNR-WIN-004")
def first_probe(flow: Flow, context: Context) -> Findings:
    """The first probe leaves after the timeout (RFC 9293 section 3.8.6.1, SHLD-29)."""
    # Exercised by a probe after a measured round trip.
    anew = context.permitted("begins_anew_with_arrivals", False)
    for closure in context.prepared.closures:
        # A user may have written after the window had closed.
        if not closure.probes or not closure.rtt or not closure.waiting or closure.renewed:
            continue
        probe: Sent | Reply = closure.probes[0]
        early = [sent for sent in flow.sent if closure.start.time < sent.time < probe.time]
        if early and (early[0].start or early[0].payload != 1):
            continue  # which was one if an arrival does not explain it
        if early:
            probe = early[0]  # nothing can have been on its way before the window was offered
        told = [time for time in closure.arrivals if time < probe.time] if anew else []
        waited = probe.time - max((closure.start.time, *told))
        latest = closure.longest_timeout + COARSE_TICK_S
        yield too_coarse(context, waited, probe) or judged(
            context,
            lasted(context, waited, min(closure.rtt, BACK_OFF_CAP_S)) and waited <= latest,
            f"the first probe left after {waited:.2f} s",
            probe,
            closure.start,
            expected=f"a round trip of {closure.rtt:.2f} s to a longest timeout of {latest:.2f} s",
            actual=f"{waited:.2f} s",
        )


@checker("SNR-WIN-013")
def small_window_is_overridden(flow: Flow, context: Context) -> Findings:
    """A window that stays small is used in the end (RFC 9293 section 3.8.6.2.1)."""
    # Exercised by a window smaller than a segment, nothing outstanding and data waiting.
    patience = max(context.permitted("patience_s", 60.0), longest_timeout(flow))
    since: Ack | None = None
    closed = False
    if not any(0 < ack.window < flow.segment for ack in flow.acks):
        return
    for event in (*flow.until_reset, None):
        if event is not None and not isinstance(event, Ack | Sent):
            continue
        until = flow.horizon if event is None else event.time
        waited = until - since.time if since is not None else 0.0
        if since is not None and isinstance(event, Sent) and waited <= patience + COARSE_TICK_S:
            yield context.holds(f"a window of {since.window} octets was used", event, since)
            since = None
        elif since is not None and waited > patience + COARSE_TICK_S:
            yield context.violated(
                f"a window of {since.window} octets was not used for {waited:.0f} s",
                since,
                expected=f"a segment within {patience:.0f} s, data waiting",
                actual="silence",
            )
            return
        if isinstance(event, Ack) and event.acceptable:
            # After a closed window a timer that has backed off may have to expire first.
            small = 0 < event.window < flow.segment and not closed and event.ack >= event.max
            closed = event.window == 0
            if not small or not data_waited(flow, event):
                since = None
            elif since is None or since.window != event.window:
                since = event


@checker("SNR-WIN-005")
def probes_back_off(_flow: Flow, context: Context) -> Findings:
    """Intervals between probes increase exponentially (RFC 9293 section 3.8.6.1, SHLD-30)."""
    # Exercised by three probes of one closure.
    ratio, cap = context.permitted("ratio", 1.3), context.permitted("cap_s", BACK_OFF_CAP_S)
    for closure in context.prepared.closures:
        resumed = closure.resumed is not None and not closure.resumed.timed
        if closure.waited_from is None and not resumed:
            continue  # perhaps keep-alives (RFC 9293 section 3.8.4): nothing shows that data waited
        probes = closure.probes
        intervals = [b.time - a.time for a, b in pairwise(probes)]
        waits = [_wait(closure, *pair) for pair in pairwise(probes)]
        yield from until_violated(
            too_coarse(context, before, probe)
            or judged(
                context,
                after >= min(ratio * before, 0.95 * cap) - context.timing_error
                or waits[at + 1] >= ratio * waits[at],
                f"intervals between probes: {before:.2f} s, then {after:.2f} s",
                probe,
                expected="exponentially increasing intervals",
                actual=f"{before:.2f} s, then {after:.2f} s",
            )
            for at, (before, after) in enumerate(pairwise(intervals))
            for probe in probes[at + 2 : at + 3]
            if not _restarted(closure, probes[at], probes[at + 1])
            and not any(starmap(_taken, pairwise(probes[at : at + 3])))
        )


def _taken(first: Reply, second: Reply) -> bool:
    """Whether the octet of a probe was taken, so that the next is the first of another series.

    The next may be a FIN.
    """
    return first.payload > 0 and second.tcp.length > 0 and first.tcp.seq != second.tcp.seq


def _wait(closure: Closure, first: Reply, second: Reply) -> float:
    """Seconds from the last arrival between two probes, which may restart the timer, if any."""
    return second.time - max(_between(closure, first, second), default=first.time)


def _between(closure: Closure, first: Reply, second: Reply) -> list[float]:
    """When something arrived between two probes."""
    begin = bisect_left(closure.arrivals, first.time)
    return closure.arrivals[begin : bisect_right(closure.arrivals, second.time)]


def _restarted(closure: Closure, first: Reply, second: Reply) -> bool:
    """Whether more than the answer to a probe came before the next, which may be timed from it.

    What has to be dropped may restart a timer as well.
    """
    between = _between(closure, first, second)
    answer = first.time + 1.5 * closure.longest_rtt
    return len(between) > 1 or any(time > answer for time in between)


def _answered(closure: Closure) -> bool:
    """Whether every probe but the last was followed by an acknowledgment."""
    times = [ack.time for ack in closure.answered]
    return all(
        bisect_left(times, a.time) < bisect_right(times, b.time)
        for a, b in pairwise(closure.probes)
    )


@checker("SNR-WIN-006")
def probing_keeps_the_connection_open(flow: Flow, context: Context) -> Findings:
    """Acknowledged probes keep the connection open (RFC 9293 section 3.8.6.1, MUST-37)."""
    # Exercised by a long closure, and by a RST during any whose probes were acknowledged. Once its
    # user has closed, a system may reclaim what the connection holds (RFC 6429 section 4).
    least = context.permitted("exercised_s", 100.0)
    for closure in context.prepared.closures:
        if not closure.probes or not _answered(closure):
            continue
        limit = closure.resumed.time if closure.resumed else flow.horizon
        reset = reset_by_sender(flow, closure.start.time, limit)
        last = closure.probes[-1]
        # The last probe counts as unanswered only when an answer had time to come.
        answered = reset is not None and (
            reset.time - last.time <= closure.longest_timeout
            or any(ack.time >= last.time for ack in closure.answered)
        )
        if reset is not None and (
            may_have_closed(flow, reset.packet.number) or not is_own_reset(flow, reset.packet)
        ):
            continue
        if reset is not None and (answered or closure.end is not None):
            yield context.violated(
                f"the sender aborted after {reset.time - closure.start.time:.0f} s of zero window",
                reset,
                closure.start,
                expected="an open connection while the probes are acknowledged",
                actual="a RST",
            )
        elif reset is None and last.time - closure.start.time >= least:
            lasting = last.time - closure.start.time
            sentence = f"the connection was still probing after {lasting:.0f} s"
            yield context.holds(sentence, last, closure.start)
