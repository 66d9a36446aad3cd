"""Checkers of recovery on each side, and of changes of the path (PEP-LR, PEP-PC)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    HEARD_S,
    QUIET_S,
    RECOVERS_S,
    Context,
    of_relay,
    of_stream,
)
from bentpipe_conformance.protocols.pep.checkers.service import is_up
from bentpipe_conformance.protocols.pep.replay.flow import Relay
from bentpipe_conformance.protocols.pep.replay.leg import DEFAULT_MSS, Leg, Segment
from bentpipe_conformance.protocols.pep.replay.stream import Stream
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN

AT_ONCE_S = 0.1
"""Seconds in which a second full segment is acknowledged; the delay of a single one is longer."""
ACKNOWLEDGED_S = 0.5


@of_stream("PEP-LR-002")
def loss_stays_on_its_side(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A loss stays on its side."""
    # Exercised by a segment that the box has to send again on the other side.
    other = relay.opposite(stream)
    if stream.sink is None or other is None or not _repeats(stream):
        return
    for leg_stream in relay.streams:
        delivered, told = 0, deque[tuple[float, int]]()
        for step in leg_stream.steps:
            segment = step.segment
            while told and told[0][0] < step.time - HEARD_S - context.timing_error:
                delivered = max(delivered, told.popleft()[1])
            again = not step.inlet and step.by_box and segment.payload and segment.end <= delivered
            if again and segment.tcp.size > 1:
                yield context.violated(
                    f"octets up to {segment.end} are sent again, {delivered} are acknowledged",
                    step, expected="only what is not acknowledged", actual="all again",
                )  # fmt: skip
                return
            by_end = not step.inlet and not step.by_box and segment.counts and not segment.old
            if by_end and segment.ack is not None and not segment.at_edge:
                told.append((step.time, min(segment.ack, step.relayed)))
    yield context.holds("what is acknowledged is not sent again", stream.steps[0])


@of_stream("PEP-LR-006")
def acknowledged_in_time(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """Acknowledgments are not saved at the sender's cost."""
    # Exercised by each segment of octets in order for which the box has room.
    taken = [it for it in stream.steps if it.inlet and it.by_box]
    yield from _every_second(relay, stream, context)
    at = 0
    for step in stream.steps:
        segment = step.segment
        if not step.inlet or step.by_box or not segment.payload or not segment.counts:
            continue
        if step.arrived < segment.end or segment.end > step.limit:
            continue
        while at < len(taken) and taken[at].taken < segment.end:
            at += 1
        answer = taken[at] if at < len(taken) else None
        if answer is not None and answer.time - step.time <= ACKNOWLEDGED_S + context.timing_error:
            yield context.holds("octets are acknowledged in time", answer, step)
            continue
        if _is_over(relay, step.packet.number):
            return
        if answer is not None or relay.scene.until - step.time > ACKNOWLEDGED_S:
            yield context.violated(
                f"octets up to {segment.end} are not acknowledged in time", step,
                expected=f"an acknowledgment within {ACKNOWLEDGED_S} s",
                actual="none" if answer is None else f"{answer.time - step.time:.2f} s",
            )  # fmt: skip
            return


def _every_second(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """Whether the second of two full segments in order is acknowledged at once."""
    full = max((len(it.segment.payload) for it in stream.steps if it.inlet), default=0)
    unacked = 0
    for nth, step in enumerate(stream.steps):
        segment = step.segment
        if not step.inlet or full < DEFAULT_MSS:
            continue
        if step.by_box:
            unacked = 0 if segment.ack is not None else unacked
            continue
        in_order = segment.counts and step.arrived == segment.end <= step.limit
        # Linux answers later while its window cannot stay as it is.
        in_order &= context.ics.get("ends") == "rfc" or step.relayed >= segment.start
        unacked = unacked + 1 if in_order and len(segment.payload) == full else 0
        if unacked != 2:
            continue
        until = step.time + AT_ONCE_S + context.timing_error
        after = (stream.steps[at] for at in range(nth + 1, len(stream.steps)))
        following = next((it for it in after if it.inlet), None)
        late = relay.scene.until if following is None else following.time
        # What arrives meanwhile may be answered together with it.
        if late > until and not (relay.was_reset or _is_over(relay, step.packet.number)):
            yield context.violated(
                f"two full segments up to {segment.end} are not acknowledged at once", step,
                expected=f"an acknowledgment within {AT_ONCE_S} s",
                actual=f"none for {late - step.time:.2f} s",
            )  # fmt: skip
            return


@of_relay("PEP-LR-007")
def return_channel_spared(relay: Relay, context: Context) -> Iterator[Finding]:
    """The return channel is spared."""
    # Exercised by ten segments with octets from one end.
    for leg in relay.legs if relay.streams else ():
        full = [it for it in leg.segments if not it.outgoing and not _is_pure(it)]
        said: tuple[object, ...] = ()
        more = acked = 0
        heard = True
        for segment in leg.segments:
            if not segment.outgoing:
                heard, acked = True, max(acked, segment.ack or 0)
                continue
            if segment.start < acked:
                continue  # it asks, as probes of a closed window and keep-alives do
            if _is_pure(segment):
                now = segment.ack, segment.edge, segment.tcp.sack
                more += now == said and not heard
                said = now
            heard = False
        if len(full) >= 10:
            yield judged(
                context, more <= len(full) // 10, f"{more} acknowledgments say nothing, of "
                f"{len(full)} segments", leg.segments[-1],
                expected="at most one for each segment", actual=f"{more} more",
            )  # fmt: skip


@of_relay("PEP-PC-001")
def outage_outlasted(relay: Relay, context: Context) -> Iterator[Finding]:
    """An outage is outlasted."""
    # Exercised by an open connection while nothing passes the path. A call that the server has not
    # answered may be given up (section 5).
    scene = relay.scene
    if not scene.is_cut or not is_up(relay) or not relay.streams:
        return
    if relay.client.began > scene.quiet_since:
        return
    ended = _ended_by_box(relay)
    if ended is not None:
        yield context.violated(
            "the box ends a connection because of an outage", ended,
            expected="a connection that goes on", actual=ended.tcp.flag_names,
        )  # fmt: skip
    elif scene.until > scene.quiet_since:
        yield context.holds("the connection outlasts the outage", relay.client.segments[-1])


@of_stream("PEP-PC-002")
def goes_on_after_outage(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """After an outage streams go on."""
    # Exercised by octets that the box has acknowledged before an outage is over.
    if relay.scene.is_cut:
        yield from _goes_on(relay, stream, context, RECOVERS_S)


@of_stream("PEP-PC-003")
def delay_loses_nothing(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A sudden delay loses nothing."""
    # Exercised by octets under way while the path becomes slower.
    if not relay.scene.is_cut:
        yield from _goes_on(relay, stream, context, RECOVERS_S)


def _goes_on(relay: Relay, stream: Stream, context: Context, within: float) -> Iterator[Finding]:
    """What was acknowledged while the path was disturbed is delivered."""
    quiet, last = relay.scene.quiet_since, stream.last
    if quiet < 0 or last is None or relay.was_reset:
        return
    before = [it for it in stream.steps if it.time <= quiet]
    if not before or not before[-1].taken or before[0].time > quiet:
        return
    taken = before[-1]
    ended = _ended_by_box(relay)
    if ended is not None and last.delivered < last.arrived:
        yield context.violated(
            f"the path is disturbed, and the box ends the stream {stream.name}", ended, taken,
            expected=f"{last.arrived} octets", actual=f"{last.delivered} octets",
        )  # fmt: skip
    elif last.delivered >= last.arrived:
        yield context.holds(f"the stream {stream.name} is delivered", last)
    elif relay.scene.until - quiet > within and last.outlet > last.relayed:
        yield context.violated(
            f"the path works again, and the stream {stream.name} is not delivered", taken,
            expected=f"{last.arrived} octets", actual=f"{last.delivered} octets",
        )  # fmt: skip


@of_relay("PEP-PC-008")
def quiet_connections_stay(relay: Relay, context: Context) -> Iterator[Finding]:
    """Quiet connections stay open."""
    # Exercised by a connection in which no octets have passed for 2 hours, since it has opened or
    # later, whether its ends have asked for each other meanwhile or not.
    said = [
        (it.time, it.content) for it in relay.packets
        if not it.outgoing and it.content is not None and not it.content.flags & RST
    ]  # fmt: skip
    times = [time for time, _ in said]
    spoken = [time for time, tcp in said if tcp.payload]
    gaps = [(later - earlier, earlier) for earlier, later in pairwise(
        [*_opened(relay), *spoken]
    )]  # fmt: skip
    longest, since = max(gaps, default=(0.0, 0.0))
    idle = longest > 7200.0 - 1.0
    ended = _ended_by_box(relay) if is_up(relay) else None
    waiting = any(it.last is not None and it.last.taken > it.last.delivered for it in relay.streams)
    if ended is not None and _has_half_ended(relay, ended):
        return  # it is not established any more; see PEP-RE-009
    if ended is not None and not waiting and relay.scene.quiet_since < 0:
        last = max((time for time in times if time < ended.time), default=0.0)
        if 30.0 < ended.time - last < QUIET_S:
            yield context.violated(
                f"a connection that was quiet for {ended.time - last:.0f} s is ended", ended,
                expected=f"none that is quiet for less than {QUIET_S:.0f} s", actual="its end",
            )  # fmt: skip
        return
    later = [it for it in relay.streams if it.last is not None and it.last.time > since + longest]
    if idle and later and all(it.last and it.last.relayed >= it.last.arrived for it in later):
        yield context.holds(
            f"a connection that was quiet for {longest:.0f} s goes on", later[0].steps[-1]
        )


# -- what several ask --------------------------------------------------------------------------


def _opened(relay: Relay) -> list[float]:
    """When the client has completed the handshake, if both ends have the connection."""
    first = (it.time for it in relay.client.segments if not it.outgoing and it.ack is not None)
    return [time for time in (*first,) if is_up(relay)][:1]


def _is_pure(segment: Segment) -> bool:
    flags = segment.tcp.flags
    return not segment.payload and flags & (SYN | FIN | RST | ACK) == ACK


def _repeats(stream: Stream) -> bool:
    """Whether the box has sent octets again that were not acknowledged."""
    return any(
        not step.inlet and step.by_box and step.segment.payload
        and step.segment.end <= before.relayed and step.segment.end > before.delivered
        for before, step in zip(stream.steps, stream.steps[1:], strict=False)
    )  # fmt: skip


def _is_over(relay: Relay, number: int) -> bool:
    """Whether a reset was seen soon behind a packet."""
    return any(
        it.tcp.flags & RST for leg in relay.legs for it in leg.segments if it.packet.number > number
    )


def _ended_by_box(relay: Relay) -> Segment | None:
    """A RST of the box that no end has caused, or a FIN that no end has sent."""
    reset = min(_first_of_end(leg, lambda it: bool(it.tcp.flags & RST)) for leg in relay.legs)
    for leg in relay.legs:
        if leg.answered is None:
            continue
        fin = min(
            (_first_of_end(other, lambda it: it.fin is not None)
             for other in relay.legs if other is not leg),
            default=math.inf,
        )  # fmt: skip
        for segment in leg.segments:
            number = segment.packet.number
            # A call that fails, and is made again, is no connection that ends.
            if not segment.outgoing or not leg.answered.number < number <= reset:
                continue
            cuts = segment.tcp.flags & RST and segment.counts
            if cuts or (segment.fin is not None and not fin < number):
                return segment
    return None


def _first_of_end(leg: Leg, wanted: Callable[[Segment], bool]) -> float:
    """The number of the first such packet of the end; infinite if there is none."""
    numbers = (it.packet.number for it in leg.segments if not it.outgoing and wanted(it))
    return next(numbers, math.inf)


def _has_half_ended(relay: Relay, ended: Segment) -> bool:
    """Whether an end had ended its stream before a segment."""
    return any(
        it.fin is not None and not it.outgoing and it.packet.number < ended.packet.number
        for leg in relay.legs for it in leg.segments
    )  # fmt: skip
