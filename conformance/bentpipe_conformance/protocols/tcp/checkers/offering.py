"""Checkers for the window that a receiver offers (SNR-RCV-021, 025 and 026)."""

from __future__ import annotations

import math

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings
from bentpipe_conformance.protocols.tcp.checkers.receiving import scale_unit
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    answer_within,
    is_clipped,
    still_receiving,
)
from bentpipe_conformance.protocols.tcp.replay.events import Arrival, Reply, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import DEFAULT_MSS, MOST_OPTIONS, Flow
from bentpipe_conformance.protocols.tcp.replay.order import count_before, latest_first
from bentpipe_conformance.protocols.tcp.replay.users import ECHO_PORT

OPENED_S = 1.0
"""Seconds within which a window opens once its user has read everything."""

_TIMESTAMPS = 12


def _measure(flow: Flow) -> int:
    """Eff.snd.MSS: the peer's SYN and the options that segments carry make it smaller.

    It is the smallest window worth offering, or half the widest if that is less (RFC 9293 section
    3.8.6.2.2, Fr being a half).
    """
    answer = flow.handshake.answer
    mss = min((answer.mss if answer is not None else None) or DEFAULT_MSS, flow.mss)
    if flow.handshake.sack:
        return mss - MOST_OPTIONS
    return mss - (_TIMESTAMPS if flow.handshake.timestamps else 0)


@checker("SNR-RCV-021")
def no_silly_window(flow: Flow, context: Context) -> Findings:
    """No silly window is offered (RFC 9293 section 3.8.6.2.2, MUST-39)."""
    # Exercised by a window that was smaller than a segment and then opened.
    answer = flow.handshake.answer
    if answer is None:
        return
    edge = widest = answer.window
    offer, shrunk = None, False
    measure, unit = _measure(flow), scale_unit(flow)
    closed = next((item.end for item in flow.arrivals if item.fin), math.inf)
    for reply in flow.replies:
        if reply.ack >= closed:
            return  # nothing can follow the peer's FIN, whatever is offered
        least = min(measure, widest // 2)
        offer = offer or reply
        # The receiver's own edge may lie beyond what the field could tell.
        clipped = is_clipped(flow, offer)
        # A window of zero offers nothing, even if what was accepted moves its edge.
        if reply.window and reply.window_edge >= edge + unit:
            if reply.window + unit <= least and not clipped:
                moved = reply.window_edge - edge
                sentence = f"the window grew by {moved} octets to {reply.window}"
                expected = f"a window that stays as it is until it can grow to {least}"
                actual = f"{reply.window} octets"
                yield context.violated(sentence, reply, offer, expected=expected, actual=actual)
                return
            if shrunk:
                yield context.holds(f"the window grew to {reply.window} octets at once", reply)
                shrunk = False
        if reply.window < least:
            shrunk = True
        if reply.window_edge > edge:
            edge, offer = reply.window_edge, reply
        widest = max(widest, reply.window)


@checker("SNR-RCV-025")
def closed_window_is_opened(flow: Flow, context: Context) -> Findings:
    """A window that was closed is opened again (RFC 9293 section 3.8.6.2.2)."""
    # Exercised by the echo of everything that had filled the window.
    if flow.iut[1] != ECHO_PORT or flow.handshake.answer is None:
        return
    widest, measure = flow.handshake.answer.window, _measure(flow)
    closed: Reply | None = None
    emptied: Sent | None = None
    for event in flow.events:
        if isinstance(event, Reply):
            widest = max(widest, event.window)
            least = min(measure, widest // 2)
            if event.window < least:
                closed = closed or event
            elif closed is not None:
                yield context.holds(f"the window opened to {event.window} octets", event, closed)
                closed = emptied = None
        if isinstance(event, Sent) and closed is not None and emptied is None:
            # All that the user was given it has returned.
            emptied = event if event.start + event.payload >= closed.limit else None
        late = emptied is not None and event.time > emptied.time + OPENED_S + flow.reaction
        if late and closed is not None and emptied is not None:
            sentence = f"the window of {closed.window} octets stayed closed"
            expected = (
                f"a window of {min(measure, widest // 2)} octets, everything having been read"
            )
            actual = "no more"
            yield context.violated(sentence, closed, emptied, expected=expected, actual=actual)
            return


@checker("SNR-RCV-026")
def probe_is_answered(flow: Flow, context: Context) -> Findings:
    """A probe of a closed window is answered (RFC 9293 section 3.8.6.1)."""
    # Exercised by data, or a FIN, at the next expected offset, which the window does not admit, or
    # that the window told last does not: less than a unit of its scale is told as zero. What is
    # taken all the same is acknowledged no later.
    for arrival in still_receiving(flow, fins=True):
        if arrival.start != arrival.expected:
            continue
        closed = arrival.window_edge <= arrival.start or _told_closed(flow, arrival)
        if not closed or arrival.may_be_stale or arrival.lacks_timestamp:
            continue
        answer = answer_within(flow, arrival, LONGEST_DELAY_S)
        if answer.timely == "in time" and answer.reply is not None:
            yield context.holds("a probe of the closed window was answered", answer.reply, arrival)
        elif answer.timely == "late":
            sentence = "a probe of the closed window was not answered in time"
            expected = f"an acknowledgment of {arrival.expected} within {LONGEST_DELAY_S} s"
            yield context.violated(sentence, arrival, expected=expected, actual="none")
            return


def _told_closed(flow: Flow, arrival: Arrival) -> bool:
    """Whether the last window before a segment admits nothing from where it begins."""
    replies = flow.replies
    last = next(latest_first(replies, count_before(replies, arrival.packet.number)), None)
    return last is not None and last.ack == arrival.start and last.window == 0
