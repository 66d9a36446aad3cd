"""Checkers of reliability (PEP-RE, section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, compress, pairwise
from operator import and_

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    QUIET_S,
    RECOVERS_S,
    Context,
    allowed,
    of_relay,
    of_stream,
    soon,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import is_refused
from bentpipe_conformance.protocols.pep.replay.flow import Relay
from bentpipe_conformance.protocols.pep.replay.leg import Leg, Segment
from bentpipe_conformance.protocols.pep.replay.stream import Step, Stream
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN

WITHIN_S = 1.0
TIME_WAIT_S = 30.0
"""Seconds for which TIME-WAIT lasts at the least, whatever a box takes for a segment's lifetime."""
STOPS_ASKING_S = 10.0
"""Seconds besides twice the last wait, after which a box has ceased to repeat its SYN-ACK."""
CROSSES_S = 0.2
"""Seconds in which an acknowledgment may cross a segment of the box."""


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
    )  # fmt: skip
    if ready is None or stream.sink is None or relay.was_reset or any(_resets(relay, by_box=True)):
        return
    if is_refused(relay):
        return  # an early answer: there is no receiver yet
    ended = stream.first(step for step in stream.steps if step.end_relayed)
    # What was under way when the path failed is repaired first, a timeout after it works again.
    since = relay.scene.quiet_since
    repaired = relay.client.began < since and ready.time < since + RECOVERS_S
    seconds = RECOVERS_S if repaired else WITHIN_S
    if ended is not None:
        late = ended.time - ready.time > allowed(relay, seconds)
        if not late or ready.time <= relay.scene.quiet_since:
            yield context.holds(f"the stream {stream.name} ends for its receiver", ended)
            return
    if ended is not None or watched(relay, ready.time, seconds):
        yield context.violated(
            f"the stream {stream.name} has ended, and its receiver is not told", ready,
            expected=f"a FIN within {seconds:.0f} s", actual="none",
        )  # fmt: skip


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
            if never and _is_silent(sink, ended):
                yield context.violated(
                    "one end does not answer, and the other is told that its stream has ended",
                    ended, expected="a RST", actual="a FIN",
                )  # fmt: skip
                continue
        told = next(
            (it for it in relay.resets(stream.source, by_box=True) if _is_silent(sink, it)), None
        )
        if told is not None:
            yield context.holds("one end does not answer, and the other gets a RST", told)
        elif (
            given_up is not None
            and _is_open(stream.source, given_up)
            and not _is_silent(stream.source, given_up)
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
        cut = next((it for it in _resets(relay, by_box=True) if not relay.has_cause(it)), None)
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


def _cuts_half(relay: Relay, other: Stream, ended: Step, cut: Segment) -> bool:
    """Whether a RST of the box ends a stream that goes on, and whose ends answer."""
    before = [it for it in other.steps if it.packet.number < cut.packet.number]
    return (
        cut.packet.number > ended.packet.number
        and bool(before) and before[-1].end is None
        and relay.scene.quiet_since < 0
        and cut.time - before[-1].time < QUIET_S
        and not any(_is_silent(leg, cut) for leg in relay.legs)
    )  # fmt: skip


def _is_shut(stream: Stream) -> bool:
    """Whether the receiver's last word is that it has no room."""
    assert stream.sink is not None
    words = [it.tcp for it in stream.sink.segments if not it.outgoing and it.edge is not None]
    return bool(words) and words[-1].window == 0


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
    if any(it.packet.number < max(sent) for it in _resets(relay, by_box=True)):
        return  # the box has given the connection up before
    whole = all(
        it is not None and it.end is not None and it.end_relayed and it.delivered >= it.end
        for it in (each.last for each in relay.streams)
    )
    where = [it for it in ends if it is not None]
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


def _resets(relay: Relay, *, by_box: bool | None = None) -> Iterator[Segment]:
    """Resets at both sides, of the box or of the ends."""
    for leg in relay.legs:
        for who in (True, False):
            if by_box in (None, who):
                yield from relay.resets(leg, by_box=who)


def _reset_while_open(relay: Relay) -> Iterator[tuple[Stream, Leg, Segment]]:
    """Streams whose sender resets while their receiver's side is open: stream, that side, RST."""
    for stream in relay.streams:
        for reset in relay.resets(stream.source, by_box=False)[:1]:
            if stream.sink is not None and _is_open(stream.sink, reset):
                yield stream, stream.sink, reset


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
    fins = {it.outgoing: it.fin for it in before if it.fin is not None}
    acked = [
        any(it.outgoing is not by_box and it.ack is not None and it.ack > fin for it in before)
        for by_box, fin in fins.items()
    ]
    return not (len(acked) == 2 and all(acked))


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


def _is_silent(leg: Leg, until: Segment) -> bool:
    """Whether the end of a leg had not answered for 30 s, and the box had asked."""
    before = [it for it in leg.segments if it.packet.number < until.packet.number]
    heard = max((it.time for it in before if not it.outgoing), default=leg.began)
    known = max((it.ack for it in before if not it.outgoing and it.ack is not None), default=0)
    asked = any(
        it.outgoing and it.time > heard and (it.tcp.size or it.fin is not None or it.start < known)
        for it in before
    )
    return asked and until.time - heard > 30.0


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
