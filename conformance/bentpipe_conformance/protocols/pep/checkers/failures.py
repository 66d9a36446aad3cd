"""Checkers of what is not an end: resets, and sides that fail (PEP-RE-005 to -008, section 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    Context,
    allowed,
    of_relay,
    soon,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import is_silent
from bentpipe_conformance.protocols.pep.replay.flow import Relay
from bentpipe_conformance.protocols.pep.replay.leg import Leg, Segment
from bentpipe_conformance.protocols.pep.replay.stream import Step, Stream
from bentpipe_conformance.protocols.tcp.codec import FIN, RST, SYN

WITHIN_S = 1.0
STOPS_ASKING_S = 10.0
"""Seconds besides twice the last wait, after which a box has ceased to repeat its SYN-ACK."""
CROSSES_S = 0.2
"""Seconds in which an acknowledgment may cross a segment of the box."""


@of_relay("PEP-RE-005")
def end_called_back(relay: Relay, context: Context) -> Iterator[Finding]:
    """An end that was acknowledged too early is called back."""
    # Exercised by a receiver that resets a stream whose FIN the box has acknowledged already.
    for stream in relay.streams:
        failed = _failure(relay, stream.sink)
        if failed is None:
            continue
        before = stream.first(
            step for step in reversed(stream.steps) if step.packet.number < failed.packet.number
        )
        if before is None or not before.end_taken or before.end is None:
            continue
        other = relay.opposite(stream)
        closed = other is not None and any(
            step.end is not None and step.end_delivered
            for step in other.steps
            if step.packet.number < failed.packet.number
        )
        if before.delivered >= before.end or closed:
            continue
        yield from _must_reset(relay, stream.source, failed, context)


@of_relay("PEP-RE-006")
def reset_carried_over(relay: Relay, context: Context) -> Iterator[Finding]:
    """A reset is carried over."""
    # Exercised by a RST of one end while the other has an open connection. One in the window that
    # is not next may be taken, or is answered, so that the end can send the right one (RFC 9293
    # section 3.10.7.4, first for RST).
    for _, sink, reset in _reset_while_open(relay):
        heard = reset.time + allowed(relay, 0.0)
        if _resets_itself(sink, reset, allowed(relay, WITHIN_S)):
            continue
        if context.ics.get("end") == "local" and _has_ended_by(sink, heard):
            continue  # decision 139
        yield from _must_reset(relay, sink, reset, context)
    for leg in relay.legs if relay.streams else ():
        odd = next((it for it in leg.segments if _is_odd_reset(it, leg)), None)
        if odd is None or not _is_open(leg, odd):
            continue
        answers = (
            it for each in relay.legs for it in each.segments
            if it.outgoing and it.packet.number > odd.packet.number
            and (it.tcp.flags & RST or (each is leg and it.ack is not None))
        )  # fmt: skip
        first = min(answers, key=lambda it: it.packet.number, default=None)
        yield from soon(
            odd, first, "an acknowledgment, or the RST", WITHIN_S, relay, context,
            good="a RST behind a gap is answered, or carried over",
            bad=f"the {leg.side}'s RST lies behind a gap, and the box neither asks nor takes it",
        )  # fmt: skip


@of_relay("PEP-RE-007")
def reset_is_no_end(relay: Relay, context: Context) -> Iterator[Finding]:
    """A reset does not become an end."""
    # Exercised by a RST of one end that has not ended its stream.
    for stream, _, reset in _reset_while_open(relay):
        steps = [it for it in stream.steps if it.packet.number > reset.packet.number]
        before = [it for it in stream.steps if it.packet.number <= reset.packet.number]
        if before and before[-1].end is not None:
            continue
        fin = next((it for it in steps if _is_fin_of_box(it)), None)
        if fin is not None:
            yield context.violated(
                "the RST of one end becomes a FIN for the other", fin, reset,
                expected="a RST", actual="a FIN",
            )  # fmt: skip
        elif watched(relay, reset.time, WITHIN_S):
            yield context.holds("the RST of one end does not become a FIN", reset)


@of_relay("PEP-RE-008")
def failed_side_is_no_end(relay: Relay, context: Context) -> Iterator[Finding]:
    """A side that fails is not ended cleanly."""
    # Exercised by a box that gives up an end which does not answer any more, or a caller that does
    # not complete its handshake.
    yield from _never_completed(relay, context)
    for stream in relay.streams:
        sink = stream.sink
        if sink is None:
            continue
        given_up = next(
            (it for it in relay.resets(sink, by_box=True) if not relay.has_cause(it)), None
        )
        ended = next(
            (it for it in stream.source.segments if it.outgoing and it.fin is not None), None
        )
        back = relay.opposite(stream)
        if ended is not None and back is not None and back.last is not None:
            never = back.last.end is None
            if never and is_silent(sink, ended):
                yield context.violated(
                    "one end does not answer, and the other is told that its stream has ended",
                    ended, expected="a RST", actual="a FIN",
                )  # fmt: skip
                continue
        told = next(
            (it for it in relay.resets(stream.source, by_box=True) if is_silent(sink, it)), None
        )
        if told is not None:
            yield context.holds("one end does not answer, and the other gets a RST", told)
        elif (
            given_up is not None
            and _is_open(stream.source, given_up)
            and not is_silent(stream.source, given_up)
        ):
            yield from _must_reset(relay, stream.source, given_up, context)


def _never_completed(relay: Relay, context: Context) -> Iterator[Finding]:
    """Whether a server is told when its caller has never completed the handshake."""
    client, server = relay.client, relay.server
    if server is None or relay.is_whole or not server.is_completed:
        return
    if any(not it.outgoing and not it.tcp.flags & SYN for it in client.segments):
        return
    told = next(iter(relay.resets(server, by_box=True)), None)
    asked = [it for it in client.segments if it.outgoing and it.tcp.flags & SYN]
    if told is not None and len(asked) > 1:
        yield context.holds("a client never completes its handshake, and the server is reset", told)
    elif len(asked) > 2 and relay.scene.quiet_since < 0:
        waits = 2 * (asked[-1].time - asked[-2].time) + STOPS_ASKING_S
        if relay.scene.until - asked[-1].time > allowed(relay, waits):
            yield context.violated(
                "a client has never completed its handshake, and the server's connection stays",
                asked[-1], expected="a RST when the client is given up", actual="none",
            )  # fmt: skip


# -- what several ask --------------------------------------------------------------------------


def _reset_while_open(relay: Relay) -> Iterator[tuple[Stream, Leg, Segment]]:
    """Streams whose sender resets while their receiver's side is open: stream, that side, RST."""
    for stream in relay.streams:
        for reset in relay.resets(stream.source, by_box=False)[:1]:
            if stream.sink is not None and _is_open(stream.sink, reset):
                yield stream, stream.sink, reset


def _resets_itself(leg: Leg, reset: Segment, within: float) -> bool:
    """Whether the end at a side resets as well before it can have heard of another reset."""
    return any(
        not it.outgoing and it.tcp.flags & RST and (it.counts or it.doubtful)
        and reset.packet.number < it.packet.number and it.time - reset.time <= within
        for it in leg.segments
    )  # fmt: skip


def _is_odd_reset(segment: Segment, leg: Leg) -> bool:
    """Whether a RST of the end lies in the box's window, but not at its beginning."""
    if segment.outgoing or not segment.tcp.flags & RST or segment.counts or segment.doubtful:
        return False
    said = [it for it in leg.segments if it.outgoing and it.packet.number < segment.packet.number]
    expected = max((it.ack for it in said if it.ack is not None), default=0)
    edge = max((it.edge for it in said if it.edge is not None), default=0)
    return expected < segment.start < edge


def _is_open(leg: Leg, at: Segment) -> bool:
    """Whether a side had an established connection that had not ended at a moment."""
    before = [it for it in leg.segments if it.packet.number < at.packet.number]
    if leg.answered is None or leg.answered.number > at.packet.number:
        return False
    if not any(not it.outgoing and not it.tcp.flags & (SYN | RST) for it in before) and (
        leg.side == "client"
    ):
        return False
    if any(it.tcp.flags & RST and (it.counts or it.doubtful) for it in before):
        return False
    return not _both_ended(before)


def _both_ended(segments: Sequence[Segment]) -> bool:
    """Whether there are the ends of both streams of a side, and both are acknowledged."""
    fins = {it.outgoing: it.fin for it in segments if it.fin is not None}
    return len(fins) == 2 and all(
        any(it.outgoing is not by_box and it.ack is not None and it.ack > fin for it in segments)
        for by_box, fin in fins.items()
    )


def _has_ended_by(leg: Leg, time: float) -> bool:
    """Whether both streams of a side had ended by then."""
    return _both_ended([it for it in leg.segments if it.time <= time])


def _failure(relay: Relay, leg: Leg | None) -> Segment | None:
    """The first reset of the end at a side."""
    return None if leg is None else next(iter(relay.resets(leg, by_box=False)), None)


def _must_reset(relay: Relay, leg: Leg, cause: Segment, context: Context) -> Iterator[Finding]:
    """A reset at a side that something calls for."""
    resets = relay.resets(leg, by_box=True)
    after = next(
        (it for it in resets if it.packet.number > cause.packet.number and _is_heeded(leg, it)),
        None,
    )
    yield from soon(
        cause, after, "a RST", WITHIN_S, relay, context, good=f"the {leg.side} gets a RST",
        bad=f"the connection has failed on one side, and the {leg.side} gets no RST",
    )  # fmt: skip


def _is_heeded(leg: Leg, reset: Segment) -> bool:
    """Whether the end at a side takes a RST: it does not name what it had acknowledged before."""
    return all(
        it.ack is None or it.ack <= reset.start
        for it in leg.segments
        if not it.outgoing and it.counts and it.time < reset.time - CROSSES_S
    )


def _is_fin_of_box(step: Step) -> bool:
    return not step.inlet and step.by_box and bool(step.segment.tcp.flags & FIN)
