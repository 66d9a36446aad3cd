"""Checkers of flow control and buffers (PEP-FB, section 7; PEP-PC-004)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from bentpipe_conformance.engine.context import judged, until_violated
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    At,
    Context,
    allowed,
    of_relay,
    of_stream,
    soon,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import is_silent
from bentpipe_conformance.protocols.pep.replay.flow import Relay
from bentpipe_conformance.protocols.pep.replay.leg import Segment
from bentpipe_conformance.protocols.pep.replay.stream import Step, Stream
from bentpipe_conformance.protocols.tcp.codec import FIN, RST, SYN

WITHIN_S = 1.0
FIRST_PROBE_S = 4.0
"""Seconds until the first probe: a timeout of 3 s (RFC 6298 section 5.7), and 1 s."""
BETWEEN_PROBES_S = 240.0
"""Seconds between two: twice the longest timeout that stacks use, 120 s."""
UNHEARD_S = 5.0
"""Seconds without an acknowledgment, in which a sender fills what buffer there is."""
UNSCALED = 65_535
SILLY = 500
"""Octets: less than a segment of any usual path, so that whatever is judged is silly indeed."""
REOPENS_S = 60.0
"""Seconds in which a probe finds a window that has opened: the longest timeout of RFC 6298."""


@of_stream("PEP-FB-001")
def reader_stops_source(_: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A reader that stops, stops its source."""
    # Exercised by a receiver whose window closes.
    closed = stream.first(it for it in stream.steps if _is_stopped(it))
    if closed is None:
        return
    most = max(stream.steps, key=lambda it: it.taken - it.delivered)
    yield _within(most, most.taken - most.delivered, "acknowledged", context)


@of_stream("PEP-FB-002")
def window_has_room(_: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """No window promises what there is no room for."""
    # Exercised by a receiver whose window closes, or that does not acknowledge what it is sent.
    if stream.sink is None or not stream.steps:
        return
    most = max(stream.steps, key=lambda it: it.limit - it.delivered)
    octets = most.limit - most.delivered
    exercised = any(_is_stopped(it) for it in stream.steps) or _is_unheard(stream)
    if octets > _buffer(context) or exercised:
        yield _within(most, octets, "permitted", context)


@of_stream("PEP-PC-004")
def slow_link_fills_the_buffer(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A link that becomes slower fills no more than the buffer."""
    # Exercised by octets that are relayed while the path does not work as usual.
    if relay.scene.quiet_since < 0 or stream.last is None or not stream.last.relayed:
        return
    most = max(stream.steps, key=lambda it: it.taken - it.delivered)
    yield _within(most, most.taken - most.delivered, "acknowledged", context)


@of_stream("PEP-FB-003")
def window_does_not_shrink(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A window does not shrink."""
    # Exercised by each acknowledgment of the box.
    source = stream.source
    unit = 1 << source.shift(source.box)
    limit = 0

    def found() -> Iterator[Finding]:
        nonlocal limit
        for step in stream.steps:
            if step.packet.number > relay.reset_at:
                return
            edge = step.segment.edge
            if not step.inlet or not step.by_box or edge is None or step.segment.tcp.flags & RST:
                continue
            if not step.segment.counts:
                continue  # a SYN-ACK of somebody else that passes
            yield judged(
                context, edge > limit - unit, f"octets up to {edge} are permitted, after {limit}",
                step, expected="a right edge that does not move to the left",
                actual=f"{limit - edge} less",
            )  # fmt: skip
            limit = max(limit, edge)

    yield from until_violated(found())


@of_stream("PEP-FB-004")
def reader_goes_on(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A reader that goes on, starts its source again."""
    # Exercised by a receiver that reads again when its window was closed.
    opened = _opened(stream)
    if opened is None or stream.last is None or relay.was_reset:
        return
    last = stream.last
    if (last.relayed >= last.arrived and last.limit > opened.limit) or (
        last.relayed >= last.arrived and last.arrived < opened.limit
    ):
        yield context.holds("the stream goes on", opened)
    elif watched(relay, opened.time, REOPENS_S) and last.outlet > last.relayed:
        yield context.violated(
            f"the receiver reads again, and the stream {stream.name} does not go on", opened,
            expected=f"{last.arrived} octets and an open window",
            actual=f"{last.relayed} octets, {last.limit - opened.limit} more permitted",
        )  # fmt: skip
    elif last.limit <= opened.limit and watched(relay, opened.time, REOPENS_S):
        yield context.violated(
            "the receiver reads again, and the sender's window stays closed", opened,
            expected="a window that opens", actual=f"{last.limit} octets permitted, as before",
        )  # fmt: skip


@of_relay("PEP-FB-005")
def closed_window_answers(relay: Relay, context: Context) -> Iterator[Finding]:
    """A closed window of the box is answered for."""
    # Exercised by a segment of an end beyond the window of the box that is closed.
    for stream in relay.streams:
        for step in stream.steps:
            segment = step.segment
            if not step.inlet or step.by_box or not segment.payload or segment.start < step.limit:
                continue
            # What a SYN carries was sent before any window was known.
            if not segment.counts or segment.tcp.flags & SYN:
                continue
            answers = (
                it
                for it in stream.source.segments
                if it.outgoing and it.packet.number > segment.packet.number and it.ack is not None
            )
            answer = next(answers, None)
            if answer is not None and answer.time - segment.time <= WITHIN_S:
                yield context.holds("a probe is answered", answer, segment)
            elif answer is not None or relay.scene.until - segment.time > WITHIN_S:
                yield context.violated(
                    "a probe of the closed window is not answered", segment,
                    expected="an acknowledgment", actual="none within 1 s",
                )  # fmt: skip
                return


@of_stream("PEP-FB-006")
def closed_window_is_probed(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """A closed window of an end is probed."""
    # Exercised by a receiver whose window stays closed for a minute while octets wait.
    closed = stream.first(it for it in stream.steps if _is_stopped(it) and not it.by_box)
    if closed is None or stream.sink is None or closed.packet.number > relay.reset_at:
        return
    later = [it for it in stream.sink.segments if it.packet.number > closed.packet.number]
    probes = [it for it in later if it.outgoing and _probes(it, closed)]
    probe = next(iter(probes), None)
    reset = next((it for it in later if it.outgoing and it.tcp.flags & RST), None)
    # It opens, its end has no use for what waits any more, or the other end has reset.
    end = next(
        (it.time for it in later if not it.outgoing
         and ((it.edge or 0) > closed.outlet or (it.tcp.flags & RST and it.counts))),
        None,
    )  # fmt: skip
    until = relay.scene.until if end is None else end
    if probes and not any(not it.outgoing and it.packet.number > probes[-1].packet.number
                          for it in later):  # fmt: skip
        until = min(until, probes[-1].time)  # the last one was never answered
    until = until if reset is None else min(until, reset.time)
    if reset is not None and any(is_silent(leg, reset) for leg in relay.legs):
        return  # an end does not answer any more
    if reset is not None and (end is None or reset.time < end) and not relay.has_cause(reset):
        yield context.violated(
            "the box gives up an end whose window is closed, and that answers", reset, closed,
            expected="probes for ever", actual="a RST",
        )  # fmt: skip
    elif probe is not None and probe.time - closed.time <= allowed(relay, FIRST_PROBE_S):
        times = [it.time for it in probes if it.time < until]
        silence = max((after - before for before, after in pairwise([*times, until])), default=0.0)
        yield judged(
            context, silence <= allowed(relay, BETWEEN_PROBES_S), "the closed window is probed",
            probe, closed, expected=f"a probe at least each {BETWEEN_PROBES_S:.0f} s, for ever",
            actual=f"none for {silence:.0f} s",
        )  # fmt: skip
    elif min(until, probe.time if probe else until) - closed.time > allowed(relay, FIRST_PROBE_S):
        yield context.violated(
            "the window of an end is closed, and the box does not probe it", closed,
            expected="a probe after the retransmission timeout", actual="none in time",
        )  # fmt: skip


@of_stream("PEP-FB-009")
def no_silly_windows(_: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """No silly windows."""
    # Exercised by a window of the box that opens when less than 500 octets were left of it.
    before = None
    least = min(_buffer(context) // 8, SILLY)
    # What the scaled field cannot name comes and goes with the number acknowledged.
    unit = 1 << stream.source.shift(stream.source.box)
    for step in stream.steps:
        segment = step.segment
        if before is not None and step.inlet and step.by_box and segment.edge is not None:
            gain = segment.edge - before.limit
            if before.limit - before.arrived < SILLY and gain >= unit and before.arrived:
                yield judged(
                    context, gain >= least, f"a closed window opens by {gain} octets", step,
                    expected=f"at least {least}", actual=f"{gain} octets",
                )  # fmt: skip
        before = step


@of_stream("PEP-FB-010")
def outlet_is_used(relay: Relay, stream: Stream, context: Context) -> Iterator[Finding]:
    """An outlet that opens is used."""
    # Exercised by a receiver whose window opens while octets wait.
    opened = _opened(stream)
    if opened is None or stream.sink is None or relay.was_reset:
        return
    sent = next(
        (it for it in stream.sink.segments
         if it.outgoing and it.payload and it.packet.number > opened.packet.number),
        None,
    )  # fmt: skip
    yield from soon(
        opened, sent, "octets", WITHIN_S, relay, context, good="the outlet is used",
        bad="the window of a receiver opens, and the box does not send",
    )  # fmt: skip


@of_relay("PEP-FB-011")
def windows_suit_the_path(relay: Relay, context: Context) -> Iterator[Finding]:
    """The window suits the path."""
    # Exercised by each connection, where the declared buffer is larger than 65,535 octets.
    if _buffer(context) <= UNSCALED or relay.is_whole:
        return
    answer, server = relay.client.answered, relay.server
    if answer is not None and answer.content and relay.client.syn.window_scale is not None:
        yield judged(
            context, answer.content.window_scale is not None, "Window Scale is answered",
            At(answer), expected="Window Scale in the SYN-ACK", actual="none",
        )  # fmt: skip
    if server is not None:
        yield judged(
            context, server.syn.window_scale is not None, "Window Scale is offered",
            At(server.packets[0]), expected="Window Scale in the SYN", actual="none",
        )  # fmt: skip


# -- what several ask --------------------------------------------------------------------------


def _buffer(context: Context) -> int:
    return int(context.ics.get("buffer", 0))


def _within(step: Step, octets: int, what: str, context: Context) -> Finding:
    buffer = _buffer(context)
    return judged(
        context, octets <= buffer, f"{octets} octets are {what} beyond what the receiver has", step,
        expected=f"at most the {buffer} of the declared buffer", actual=f"{octets}",
    )  # fmt: skip


def _is_stopped(step: Step) -> bool:
    """Whether the receiver permits no more, and octets wait for it."""
    return step.told and step.outlet <= step.relayed + 1 and step.delivered >= step.outlet and (
        step.arrived > step.outlet
    )  # fmt: skip


def _is_unheard(stream: Stream) -> bool:
    """Whether a receiver acknowledged nothing of what it had been sent for a while."""
    since: Step | None = None
    for step in stream.steps:
        if since is None or step.delivered > since.delivered or step.relayed <= step.delivered:
            since = step if step.relayed > step.delivered else None
        elif step.time - since.time > UNHEARD_S:
            return True
    return False


def _probes(segment: Segment, closed: Step) -> bool:
    """Whether an end has to answer a segment of the box: by its octets, or by its old number.

    RFC 9293 section 3.8.6.1 sends an octet; Linux and others send none, with the number before, as
    keep-alives have it (RFC 1122 section 4.2.3.6).
    """
    old = segment.start < closed.delivered and not segment.tcp.flags & (SYN | FIN | RST)
    return bool(segment.payload) or old


def _opened(stream: Stream) -> Step | None:
    """When the receiver permitted more, after it had stopped and nothing was under way."""
    stopped: Step | None = None
    for step in stream.steps:
        if stopped is not None and step.outlet > stopped.outlet + 1000:
            return step if step.time - stopped.time > 3.0 else None
        if stopped is None and _is_stopped(step):
            stopped = step
    return None
