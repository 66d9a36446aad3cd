"""Checkers of the ends of streams (PEP-RE-002 to -004, -009, -010 and -016, section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, compress, pairwise
from operator import and_

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    QUIET_S,
    Context,
    allowed,
    of_relay,
    of_stream,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import (
    is_refused,
    is_silent,
    resets_of_box,
)
from bentpipe_conformance.protocols.pep.replay.flow import Relay
from bentpipe_conformance.protocols.pep.replay.leg import Leg, Segment
from bentpipe_conformance.protocols.pep.replay.stream import Step, Stream
from bentpipe_conformance.protocols.tcp.codec import ACK, RST

WITHIN_S = 1.0
TIME_WAIT_S = 30.0
"""Seconds for which TIME-WAIT lasts at the least, whatever a box takes for a segment's lifetime."""


@of_stream("PEP-RE-002")
def end_acknowledged_last(_: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """The end is acknowledged last."""
    # Exercised by the acknowledgment of a sender's FIN, or by a FIN that the box's RST has crossed.
    step = stream.first(step for step in stream.steps if step.end_taken)
    if step is None or step.end is None:
        crossed = _crossed(stream)
        if crossed is not None:
            yield context.holds("a FIN that the box's RST has crossed is not acknowledged", crossed)
        return
    yield judged(
        context, step.delivered >= step.end,
        f"the FIN of the stream {stream.name} is acknowledged with {step.delivered} of its "
        f"{step.end} octets delivered", step,
        expected="no acknowledgment of the FIN before the receiver has acknowledged every octet",
        actual=f"{step.end - step.delivered} octets are not acknowledged by the receiver",
    )  # fmt: skip


@of_stream("PEP-RE-003")
def ends_where_its_sender_ends(_: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A stream ends where its sender has ended it."""
    # Exercised by each FIN that the box sends.
    for step in stream.steps:
        fin = step.segment.fin
        if step.inlet or not step.by_box or fin is None or not step.segment.counts:
            continue
        if step.end is None:
            yield context.violated(
                f"the box ends the stream {stream.name}, whose sender has not ended it", step,
                expected="no FIN before the sender's FIN has arrived",
                actual=f"a FIN behind octet {fin}",
            )  # fmt: skip
            return
        yield judged(
            context, fin == step.end,
            f"the box ends the stream {stream.name} behind {fin} octets of {step.end}", step,
            expected=f"a FIN behind octet {step.end}", actual=f"a FIN behind octet {fin}",
        )  # fmt: skip


@of_stream("PEP-RE-004")
def ended_for_its_receiver(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A stream that is ended is ended for its receiver."""
    # Exercised by a stream that has arrived with its FIN, and whose octets are delivered.
    ready = stream.first(
        step for step in stream.steps
        if step.has_whole_stream and step.end is not None and step.heard >= step.end
        and stream.sink is not None and _is_there(stream.sink, step)
    )  # fmt: skip
    if ready is None or relay.was_reset or resets_of_box(relay):
        return
    if is_refused(relay):
        return  # an early answer: there is no receiver yet
    ended = stream.first(step for step in stream.steps if step.end_relayed)
    scene, due = relay.scene, ready.time + allowed(relay, WITHIN_S)
    if relay.client.began < scene.quiet_since and ready.time < scene.repaired_at:
        due = max(due, scene.repaired_at + allowed(relay, WITHIN_S))
    if ended is not None and ended.time <= due:
        yield context.holds(f"the stream {stream.name} ends for its receiver", ended)
    elif ended is not None or scene.until > due:
        yield context.violated(
            f"the stream {stream.name} has ended, and its receiver is not told", ready,
            expected=f"a FIN within {due - ready.time:.0f} s", actual="none" if ended is None
            else f"one after {ended.time - ready.time:.0f} s",
        )  # fmt: skip


@of_relay("PEP-RE-009")
def half_stays_open(relay: Relay, context: Context) -> Iterator[Finding]:
    """Half a connection stays open."""
    # Exercised by octets that one end sends after it has received the FIN of the other.
    if relay.was_reset:
        return
    for stream in relay.streams:
        other = relay.opposite(stream)
        ended = stream.first(step for step in stream.steps if step.end_relayed)
        if other is None or ended is None:
            continue
        cut = next((it for it in resets_of_box(relay) if not relay.has_cause(it)), None)
        if cut is not None and any(is_silent(leg, cut) for leg in relay.legs):
            continue  # an end does not answer any more
        if cut is not None and _cuts_half(relay, other, ended, cut):
            yield context.violated(
                f"the stream {stream.name} has ended, and the box resets the other one", cut,
                ended, expected="the other stream goes on", actual="a RST",
            )  # fmt: skip
            continue
        later = [
            step for step in other.steps
            if step.packet.number > ended.packet.number and step.inlet and not step.by_box
            and step.segment.payload and step.segment.counts
        ]  # fmt: skip
        if not later or other.last is None or stream.last is None:
            continue
        complete = other.last.relayed >= other.last.arrived
        if cut is not None:
            yield context.violated(
                f"the stream {stream.name} has ended, and the box resets the other one", cut,
                later[0], expected="the other stream goes on", actual="a RST",
            )  # fmt: skip
        elif complete:
            yield context.holds("the other stream goes on", later[0])
        elif (
            watched(relay, later[-1].time, 5.0) and other.last.outlet > other.last.relayed
            and not _is_shut(other)
        ):  # fmt: skip
            yield context.violated(
                f"the stream {stream.name} has ended, and the other one does not go on", later[0],
                expected="the other stream goes on until it has ended, too",
                actual=f"{other.last.arrived - other.last.relayed} octets of it are not relayed",
            )  # fmt: skip


@of_relay("PEP-RE-010")
def both_end_at_once(relay: Relay, context: Context) -> Iterator[Finding]:
    """Both may end at once."""
    # Exercised by FINs of both ends before either has received one.
    if len(relay.streams) < 2 or relay.was_reset:
        return
    ends = [next((it for it in each.steps if it.end is not None), None) for each in relay.streams]
    told = [next((it for it in each.steps if it.end_relayed), None) for each in relay.streams]
    sent = [it.packet.number for it in ends if it is not None]
    if len(sent) < 2 or any(it is not None and it.packet.number < max(sent) for it in told):
        return
    if any(it.packet.number < max(sent) for it in resets_of_box(relay)):
        return  # the box has given the connection up before
    whole = all(
        it is not None and it.end is not None and it.end_relayed and it.delivered >= it.end
        for it in (each.last for each in relay.streams)
    )
    where = [it for it in ends if it is not None]
    if any(_is_shut(each) for each in relay.streams if each.last and not each.last.end_relayed):
        return  # what waits before the end has no room
    if whole:
        yield context.holds("both streams are delivered with their FINs", *where)
    elif watched(relay, max(it.time for it in where), 5.0):
        yield context.violated(
            "both ends have sent a FIN, and not both streams have ended", *where,
            expected="both streams whole, with their FINs", actual="a stream without its end",
        )  # fmt: skip


@of_relay("PEP-RE-016")
def late_segments_answered(relay: Relay, context: Context) -> Iterator[Finding]:
    """Late segments are answered as in TCP."""
    # Exercised by a FIN that is repeated when both ends have been acknowledged, the box's first.
    for leg in relay.legs if relay.streams else ():
        closed = _closed_first_by_box(leg)
        if closed is None:
            continue
        repeated = [
            it
            for it in leg.segments
            if not it.outgoing and it.fin is not None and it.packet.number > closed.packet.number
        ]
        # Each begins the time anew (section 3.10.7.4, eighth).
        times = [closed.time, *(it.time for it in repeated)]
        soon_after = [later - time < TIME_WAIT_S for time, later in pairwise(times)]
        for fin in compress(repeated, accumulate(soon_after, and_)):
            after = [
                it for it in leg.segments if it.outgoing and it.packet.number > fin.packet.number
            ]
            answer = next((it for it in after if it.time - fin.time <= WITHIN_S), None)
            if answer is not None:
                good = bool(answer.tcp.flags & ACK) and not answer.tcp.flags & RST
                yield judged(
                    context, good, "a FIN that is repeated is answered", answer, fin,
                    expected="an acknowledgment", actual=answer.tcp.flag_names,
                )  # fmt: skip
            elif relay.scene.until - fin.time > WITHIN_S:
                yield context.violated(
                    "a FIN that is repeated is not answered", fin,
                    expected="an acknowledgment within 1 s", actual="nothing",
                )  # fmt: skip


# -- what several ask --------------------------------------------------------------------------


def _is_there(leg: Leg, step: Step) -> bool:
    """Whether the call at a side had been answered when a segment passed."""
    return leg.answered is not None and leg.answered.number <= step.packet.number


def _crossed(stream: Stream) -> Step | None:
    """The first FIN of a sender that has arrived after the box had reset its connection."""
    reset = next((it for it in stream.steps if it.inlet and it.by_box and _is_reset(it)), None)
    return None if reset is None else stream.first(
        it for it in stream.steps
        if it.packet.number > reset.packet.number and it.inlet and not it.by_box
        and it.segment.fin is not None
    )  # fmt: skip


def _is_reset(step: Step) -> bool:
    return bool(step.segment.tcp.flags & RST)


def _cuts_half(relay: Relay, other: Stream, ended: Step, cut: Segment) -> bool:
    """Whether a RST of the box ends a stream that goes on, and whose ends answer."""
    before = [it for it in other.steps if it.packet.number < cut.packet.number]
    return (
        cut.packet.number > ended.packet.number
        and bool(before) and before[-1].end is None
        and relay.scene.quiet_since < 0
        and cut.time - before[-1].time < QUIET_S
    )  # fmt: skip


def _is_shut(stream: Stream) -> bool:
    """Whether the receiver's last word is that it has no room."""
    assert stream.sink is not None
    words = [it.tcp for it in stream.sink.segments if not it.outgoing and it.edge is not None]
    return bool(words) and words[-1].window == 0


def _closed_first_by_box(leg: Leg) -> Segment | None:
    """The segment of the box that acknowledges the end's FIN, after its own was acknowledged."""
    own = next((it for it in leg.segments if it.outgoing and it.fin is not None), None)
    if own is None or own.fin is None:
        return None
    acked = next(
        (it for it in leg.segments if not it.outgoing and it.ack is not None and it.ack > own.fin),
        None,
    )  # fmt: skip
    if acked is None:
        return None
    fin = next((it for it in leg.segments if not it.outgoing and it.fin is not None), None)
    if fin is None or fin.fin is None or fin.packet.number < acked.packet.number:
        return None
    return next(
        (
            it for it in leg.segments
            if it.outgoing and it.packet.number > fin.packet.number and it.ack is not None
            and it.ack > fin.fin and not it.tcp.flags & RST
        ),
        None,
    )  # fmt: skip
