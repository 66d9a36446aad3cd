"""Checker of what holds for each connection that both its ends keep (PEP-RE-017, section 6)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    CROWD,
    QUIET_S,
    Context,
    of_relay,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import is_up
from bentpipe_conformance.protocols.pep.replay.flow import Relay
from bentpipe_conformance.protocols.pep.replay.leg import Leg, Segment
from bentpipe_conformance.protocols.pep.replay.stream import Step, Stream

STALLS_S = 30.0
"""Seconds without progress in which any path that works would have brought some."""
HEARS_S = 10.0
"""Seconds within which a live end has answered whatever wants an answer."""


@of_relay("PEP-RE-017")
def kept(relay: Relay, context: Context) -> Iterator[Finding]:
    """What both ends keep, the box keeps."""
    # Exercised by each connection that opens, of which no end lets go.
    scene = relay.scene
    if not relay.streams or not is_up(relay) or scene.most_at_once > CROWD:
        return
    if _is_let_go(relay):
        return
    cut = _cut(relay)
    if cut is not None:
        if scene.quiet_since < 0 and _is_groundless(relay, cut):
            yield context.violated(
                "the box resets a connection that both ends keep", cut,
                expected="a connection that goes on", actual="a RST",
            )  # fmt: skip
        return
    for stream in relay.streams:
        yield from _goes_on(relay, stream, context)


def _goes_on(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """Whether a stream is delivered as far as it has arrived, with its end."""
    last = stream.last
    if last is None or stream.sink is None:
        return
    whole = last.end is not None and last.has_whole_stream
    if last.delivered >= last.taken and (not whole or last.end_taken or not last.end_delivered):
        if last.delivered:
            yield context.holds(f"what was taken of the stream {stream.name} is delivered", last)
        return
    since = _stalled_since(stream)
    if since is None or not watched(relay, since.time, STALLS_S):
        return
    if last.delivered < last.taken:
        yield context.violated(
            f"the stream {stream.name} is taken and not delivered", since,
            expected=f"{last.taken} octets, for which there is room",
            actual=f"{last.delivered} octets, and nothing more is sent",
        )  # fmt: skip
    else:
        yield context.violated(
            f"the end of the stream {stream.name} is delivered and not acknowledged", since,
            expected="an acknowledgment of the FIN", actual="none",
        )  # fmt: skip


def _stalled_since(stream: Stream) -> Step | None:
    """The last step that has brought a stream on, or has given it room; None where it has none."""
    last = stream.last
    assert last is not None
    if last.delivered < last.taken and last.outlet <= last.delivered:
        return None

    def place(step: Step) -> tuple[object, ...]:
        return step.taken, step.delivered, step.outlet, step.end_delivered, step.end_taken

    since = next(
        (after for before, after in zip(
            reversed(stream.steps[:-1]), reversed(stream.steps[1:]), strict=True)
         if place(before) != place(after)),
        stream.steps[0],
    )  # fmt: skip
    assert stream.sink is not None
    legs = stream.sink, stream.source
    return None if any(_is_unheard(leg) for leg in legs) else since


def _is_unheard(leg: Leg) -> bool:
    """Whether an end was sent something that it had to answer, and never did."""
    heard = max((it.packet.number for it in leg.segments if not it.outgoing), default=-1)
    asked = [
        it for it in leg.segments
        if it.outgoing and it.packet.number > heard and (it.payload or it.fin is not None)
    ]  # fmt: skip
    return bool(asked)


def _is_let_go(relay: Relay) -> bool:
    """Whether an end has reset its connection, or something has said that it cannot be reached."""
    legs = relay.client, *relay.calls
    if relay.was_reset:
        return True
    return any(
        not it.packet.outgoing and not it.too_big
        and it.ends in (leg.ends, (*leg.ends[2:], *leg.ends[:2]))
        and not leg.is_guess(it.seq, it.packet)
        for it in relay.scene.reports for leg in legs if leg.side == it.packet.side
    )  # fmt: skip


def _cut(relay: Relay) -> Segment | None:
    """The first RST of the box before both streams have ended."""
    ends = (
        next((it.packet.number for it in stream.steps if it.end_taken and it.end_delivered), None)
        for stream in relay.streams
    )
    over = max(1 << 62 if number is None else number for number in ends)
    cuts = (it for leg in relay.legs for it in relay.resets(leg, by_box=True))
    first = min(cuts, key=lambda it: it.packet.number, default=None)
    return None if first is None or first.packet.number > over else first


def _is_groundless(relay: Relay, cut: Segment) -> bool:
    """Whether both ends had been heard lately, and the connection has not been quiet for long."""
    for leg in relay.legs:
        before = [it for it in leg.segments if it.packet.number < cut.packet.number]
        heard = max((it.time for it in before if not it.outgoing), default=leg.began)
        asked = [
            it for it in before
            if it.outgoing and it.time > heard and (it.payload or it.fin is not None)
        ]  # fmt: skip
        if asked and cut.time - asked[0].time > HEARS_S:
            return False
    last = max(
        it.time for leg in relay.legs for it in leg.segments
        if it.packet.number < cut.packet.number and not it.outgoing
    )  # fmt: skip
    return cut.time - last < QUIET_S
