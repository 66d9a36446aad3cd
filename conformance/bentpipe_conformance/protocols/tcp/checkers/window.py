"""Checkers for obeying the receiver's window (SNR-WIN)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.checkers import (
    Context,
    Findings,
)
from bentpipe_conformance.protocols.tcp.checkers.limited_transmit import early_duplicates
from bentpipe_conformance.protocols.tcp.checkers.retransmission_timer import PERSISTENCE_S
from bentpipe_conformance.protocols.tcp.codec import PSH
from bentpipe_conformance.protocols.tcp.replay.closures import Closure
from bentpipe_conformance.protocols.tcp.replay.direction import older
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow, Habit
from bentpipe_conformance.protocols.tcp.replay.lifetime import reset_by_sender, silent_before
from bentpipe_conformance.protocols.tcp.replay.option_list import options_length
from bentpipe_conformance.protocols.tcp.replay.order import (
    count_before,
    later,
    latest_first,
)
from bentpipe_conformance.protocols.tcp.replay.recovery import PROMPT_S
from bentpipe_conformance.protocols.tcp.replay.scoreboard import AT_ONCE_S
from bentpipe_conformance.protocols.tcp.replay.users import (
    always_sends,
    is_own_reset,
    may_be_last,
    more_waited,
    newest_before,
    smss_may_vary,
)

CROSSING_S = 0.002
"""Segments that leave this soon after an arrival may have been under way to the interface."""


@checker("SNR-WIN-001")
def nothing_beyond_the_offered_window(flow: Flow, context: Context) -> Findings:
    """New data keeps to the offered window (RFC 9293 section 3.8.6)."""
    # Exercised by a sender that comes within a segment of the edge. What the first duplicates send
    # is judged as limited transmit.
    limited = {sent for m in early_duplicates(context) for sent in m.new_data}
    reached: Sent | None = None
    window = flow.handshake.offer.window if flow.handshake.offer is not None else 0
    for event in flow.events:
        if isinstance(event, Ack) and event.acceptable:
            window = event.window
        if not isinstance(event, Sent) or not event.new:
            continue
        room = event.window_edge - event.end
        timed = event.timed and window < flow.segment
        probe = timed or (event.payload <= 1 and not (event.fin and window > 0))
        if room < 0 and not (probe or event in limited):
            yield context.violated(
                f"new data up to offset {event.end} was sent",
                event,
                expected=f"nothing beyond offset {event.window_edge}",
                actual=f"{-room} octets beyond it",
            )
            return
        if 0 <= room < flow.segment:
            reached = event
    if reached is not None:
        sentence = f"data reached offset {reached.end}, the edge being {reached.window_edge}"
        yield context.holds(sentence, reached)


@checker("SNR-WIN-002")
def window_is_scaled(flow: Flow, context: Context) -> Findings:
    """Windows are scaled as negotiated (RFC 7323 section 2.3)."""
    # Exercised where the scaled and the unscaled window differ by what was sent.
    offer = flow.handshake.offer
    if not flow.handshake.window_scale or offer is None or not offer.window_scale:
        return
    last: Ack | None = None
    filled: Sent | None = None
    for event in flow.events:
        if isinstance(event, Ack) and event.acceptable:
            last = event
        elif isinstance(event, Sent) and last is not None and event.new:
            unscaled = last.ack + last.tcp.window
            if unscaled < event.end <= last.window_edge and event.payload > 1:
                sentence = f"data up to {event.end} exceeds {unscaled}, the unscaled window"
                yield context.holds(sentence, event, last)
                return
            # What is pushed may be the last of all data, and end there by chance. A FIN is.
            waits = always_sends(flow) or not event.tcp.flags & PSH
            waits = waits and not event.fin
            # One octet may be a probe.
            if event.end == unscaled and 1 < event.payload < flow.segment // 2 and waits:
                filled = event
                if event.start == 0 and always_sends(flow):
                    break  # it had more to send
    if filled is not None:
        yield context.violated(
            "no more was sent than the window admits as it reads without scaling",
            filled,
            expected="the window shifted as negotiated",
            actual=f"a segment that ends at offset {filled.end}, the unscaled edge",
        )


@checker("SNR-WIN-007")
def opened_window_is_used_at_once(flow: Flow, context: Context) -> Findings:
    """A zero window that opens is used at once (RFC 9293 section 3.10.7.4)."""
    # Exercised by a closure with data waiting that ends in a wide opening.
    keep_alive = bool(context.ics.get("keep_alive", True))
    for closure in context.prepared.closures:
        opening = closure.end
        # Of a sender that has sent probes only the segments seen are no measure.
        wide = 2 * max(flow.segment, flow.mss)
        waits = closure.data_waits(keep_alive=keep_alive)
        if opening is None or not waits or opening.window < wide:
            continue
        if _probed_all(flow, closure, opening):
            continue
        if reset_by_sender(flow, closure.start.time, flow.horizon) is not None:
            continue
        prompt = max(closure.longest_rtt, 0.25) + context.timing_error
        until = closure.resumed.time if closure.resumed else flow.horizon
        waited = until - opening.time
        if closure.resumed is not None and waited <= prompt:
            sentence = f"data followed the opening after {waited:.3f} s"
            yield context.holds(sentence, closure.resumed, opening)
        elif waited > prompt:
            yield context.violated(
                f"the window opened by {opening.window} octets, which were not used",
                opening,
                *([closure.resumed] if closure.resumed else []),
                expected=f"data at once, {prompt:.2f} s at most",
                actual=f"{waited:.2f} s of silence",
            )


def _probed_all(flow: Flow, closure: Closure, opening: Ack) -> bool:
    """Whether a probe of a closed window has taken all that waited along.

    Behind a FIN nothing waits; it is repeated when its own timer expires.
    """
    last = newest_before(flow, opening.packet.number)
    if last is None or last.packet.number <= closure.start.packet.number:
        return False
    if last.fin and opening.ack >= last.end - 1:
        return True
    return last.end <= opening.ack and not more_waited(flow, last)


def _window_updates(flow: Flow) -> list[Ack]:
    """Acknowledgments whose window counts: an older segment's does not (RFC 9293 3.10.7.4)."""
    found: list[Ack] = []
    by_habit = Habit.KEEPS_WIDER_WINDOWS in flow.reading
    for ack in flow.acks:
        last = found[-1] if found else ack
        stale = ack.tcp.seq == last.tcp.seq and ack.ack < last.ack
        stale = stale or older(ack.tcp.seq, last.tcp.seq)
        if ack.acceptable and (not stale or (by_habit and ack.advance)):
            found.append(ack)
    return found


@remembered
def _edge_stays(flow: Flow) -> bool:
    """Whether no acknowledgment at all offers less than one before it."""
    return all(before.window_edge <= ack.window_edge for before, ack in pairwise(flow.acks))


@checker("SNR-WIN-008")
def shrinking_window_does_no_harm(flow: Flow, context: Context) -> Findings:
    """A right edge that moves left does no harm (RFC 9293 section 3.8.6, MUST-34)."""
    # Exercised by a right edge that moved below what had been sent.
    for before, ack in () if _edge_stays(flow) else pairwise(_window_updates(flow)):
        if ack.window_edge >= min(ack.max, before.window_edge):
            continue
        reset = reset_by_sender(flow, ack.time, flow.horizon)
        if reset is not None:
            if not is_own_reset(flow, reset.packet):
                return
            if max(silent_before(flow, item) for item in (ack, reset)) >= PERSISTENCE_S:
                return  # nobody was there any more (RFC 9293 section 3.8.3, MUST-20)
            sentence = f"the sender aborted {reset.time - ack.time:.2f} s after the window shrank"
            expected = "a connection that continues"
            yield context.violated(sentence, reset, ack, expected=expected, actual="a RST")
            return
        wider = (item for item in later(flow.acks, ack.packet) if item.window_edge > item.max)
        reopened = next(wider, None)
        if reopened is None:
            continue
        resumed = next((sent for sent in later(flow.sent, reopened.packet) if sent.new), None)
        if resumed is not None:
            yield context.holds("new data followed when the window opened again", resumed, ack)
            return


@checker("SNR-WIN-009")
def no_new_data_beyond_a_shrunken_window(flow: Flow, context: Context) -> Findings:
    """New data keeps to a shrunken window (RFC 9293 section 3.8.6, SHLD-15)."""
    # Exercised by a right edge that moved left, until it is back where it was, without scaling.
    if not flow.handshake.window_scale:
        yield from _within_shrunken_window(flow, context)


@checker("SNR-WIN-012")
def no_new_data_beyond_a_scaled_shrunken_window(flow: Flow, context: Context) -> Findings:
    """New data keeps to a shrunken window that is scaled (RFC 7323 section 2.4)."""
    # Exercised by a right edge that moved left, until it is back where it was, with scaling.
    if flow.handshake.window_scale:
        yield from _within_shrunken_window(flow, context)


def _within_shrunken_window(flow: Flow, context: Context) -> Findings:
    if _edge_stays(flow):
        return
    shrunk: Ack | None = None
    before = edge = wider = 0
    since = narrowed = 0.0
    violated = False
    updates = set(_window_updates(flow))
    for event in flow.events:
        if isinstance(event, Ack) and event in updates:
            if event.window_edge < edge and shrunk is None:
                shrunk, before, violated = event, edge, False
            elif shrunk is not None and event.window_edge >= before:
                if not violated:
                    sentence = f"no new data beyond the edge moved left to {shrunk.window_edge}"
                    yield context.holds(sentence, shrunk)
                shrunk = None
            if event.window_edge < edge:
                wider, narrowed = edge, event.time
            edge, since = event.window_edge, event.time
        elif isinstance(event, Ack) and event.may_heed and event.window_edge > edge:
            shrunk, edge = None, event.window_edge  # that of a segment whose text was refused
        elif isinstance(event, Sent) and shrunk is not None and not violated:
            crossing = CROSSING_S + context.timing_error
            # What the edge before permits may have waited for a slow device, not for the ACK.
            clocked = event.cause and (event.time - narrowed > crossing or event.end > wider)
            late = event.time - since > crossing or clocked
            probe = event.payload <= 1 or event.timed
            if event.new and event.end > edge and late and not probe:
                violated = True
                sentence = f"new data up to offset {event.end} was sent"
                expected = f"nothing new beyond offset {edge}, where the edge is now"
                actual = f"{event.end - edge} octets beyond it"
                yield context.violated(sentence, event, shrunk, expected=expected, actual=actual)


OVERRIDE_S = 0.1
"""Seconds after which a small opening may be used (RFC 9293 section 3.8.6.2.1)."""


EARLIEST_PROBE_S = 1.0
"""Seconds after which a probe is due: a timeout (section 3.8.6.1; RFC 6298 rule 2.4)."""


def _may_probe(context: Context, opening: Ack, sent: Sent) -> bool:
    """Whether a probe that was due may have met a late opening (decision 098)."""
    ended = (item for item in context.prepared.closures if item.end is opening)
    closure = next(ended, None)
    if closure is None or sent.since_arrival <= PROMPT_S:
        return False
    told = closure.probes[-1].time if closure.probes else closure.start.time
    return closure.until - told >= EARLIEST_PROBE_S


def _size_now(flow: Flow, sent: Sent) -> float:
    """The size of the three segments before one that no window cut, infinity if they differ.

    The MTU of a path may turn out to be less than before (RFC 9293 section 3.7.5).
    """
    before = latest_first(flow.sent, count_before(flow.sent, sent.packet.number))
    sizes = list(islice((s.payload for s in before if s.new and s.end < s.window_edge), 3))
    return sizes[0] if len(sizes) == 3 and len(set(sizes)) == 1 else math.inf


def _fills(context: Context, opening: Ack, since: float) -> Iterator[Sent]:
    """What fills an opening that is there since a time, and no timer may have sent (MUST-39).

    With its FIN leaves all that there was.
    """
    for sent in opening.responses:
        if not sent.new or sent.fin or sent.end != opening.window_edge:
            continue
        at_once = sent.since_arrival <= AT_ONCE_S + context.timing_error
        if sent.time - since >= OVERRIDE_S or not (at_once or sent.since_sent < OVERRIDE_S):
            continue
        if not _may_probe(context, opening, sent):
            yield sent


def _is_silly(flow: Flow, sent: Sent, room: int, least: int) -> bool:
    """Whether a segment that fills an opening is smaller than has to be.

    All that was queued may leave when it is pushed (rule 2), by whom nothing waits or whose buffer
    was full. Its own options make room for less (RFC 9293 section 3.7.1).
    """
    full = min(least, flow.mss - options_length(sent.packet), _size_now(flow, sent))
    whole = not more_waited(flow, sent) or may_be_last(flow, sent)
    return sent.payload < full and room < full and not whole


@checker("SNR-WIN-010")
def no_silly_segments(flow: Flow, context: Context) -> Findings:
    """Small openings are left alone (RFC 9293 section 3.8.6.2.1, MUST-38)."""
    # Exercised by an opening smaller than a segment for a sender with data waiting.
    if smss_may_vary(flow, context.ics):
        return
    largest_window = 0
    small: list[Ack] = []
    opening, since = -1, 0.0
    for event in flow.events:
        if isinstance(event, Ack) and event.acceptable:
            largest_window = max(largest_window, event.window)
            least = min(flow.segment, largest_window // 2)
            room = event.window_edge - max(event.max, event.ack)
            opening, since = room, since if room == opening else event.time
            if 0 < room < least and event.window_edge > event.una:
                silly = next(_fills(context, event, since), None)
                if silly is not None and _is_silly(flow, silly, room, least):
                    yield context.violated(
                        f"a small segment was sent into an opening of {room} octets",
                        silly,
                        event,
                        expected=f"nothing until {least} octets can be sent",
                        actual=f"{silly.payload} octets at once",
                    )
                    return
                small.append(event)
        elif isinstance(event, Sent) and small and event.payload >= flow.segment:
            sentence = f"{len(small)} small openings were left alone until a full segment fitted"
            yield context.holds(sentence, small[0], event)
            return
