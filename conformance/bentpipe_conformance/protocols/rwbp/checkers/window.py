"""Checkers for windows (RWBP-WN, section 6)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from bentpipe_conformance.engine.context import until_violated
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.rwbp.checkers import (
    PATIENCE_S,
    TICK_S,
    Context,
    Findings,
    judged,
    rule,
)
from bentpipe_conformance.protocols.rwbp.checkers.acknowledgment import is_update
from bentpipe_conformance.protocols.rwbp.codec import LARGEST_WINDOW
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.events import (
    Ack,
    Arrival,
    Probe,
    Reply,
    Segment,
    Sent,
    Why,
    after,
)
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.receiver import BLOCKS
from bentpipe_conformance.protocols.tcp.codec import RST, SYN

SETTLED_S = 0.5
"""After so long a user that reads has read."""

CLOSED_S = 60.0
"""So long a window has to have been closed to show that this ends nothing."""

LARGEST_FIELD = 0xFFFF


@rule("RWBP-WN-001", at_once=True, once=True)
def units(flow: Flow, context: Context) -> Findings:
    """Window fields count units, those of SYNs octets (section 6.1)."""
    # Exercised by data beyond what the fields name as octets, and by every own field.
    yield from _own_units(flow, context)
    octets = own = flow.opening.offer.window if flow.opening.offer is not None else 0
    passed = False
    for event in flow.events:
        if isinstance(event, Ack) and event.counts:
            octets = max(octets, event.ack + event.tcp.window)
            own = max(own, event.ack + event.tcp.window * flow.receiver.unit)
        elif (
            isinstance(event, Sent) and event.why is Why.NEW and own >= event.data_end > event.edge
        ):
            yield context.violated(
                f"{event.span} was sent", event,
                expected=f"nothing beyond {event.edge}, the edge in units of {flow.sender.unit}",
                actual=f"less than {own}, the edge in units of its own",
            )  # fmt: skip
        elif isinstance(event, Sent) and event.why is Why.NEW and event.end > octets:
            passed = True
            yield context.holds(
                f"data up to {event.end} passes {octets}, the edge in octets", event
            )
    for stall in flow.sender.stalls if not passed else ():
        if stall.nxt + stall.octets > octets:
            yield context.violated(
                f"nothing was sent beyond {stall.nxt}", stall.since,
                expected=f"segments up to {stall.edge}, the edge in units of {flow.sender.unit}",
                actual=f"no more than the {octets} that the fields name if they count octets",
            )  # fmt: skip


def _own_units(flow: Flow, context: Context) -> Iterator[Finding]:
    stated = int(context.ics.get("receive_buffer", 0)) or LARGEST_WINDOW
    for reply in flow.replies:
        named = reply.field * flow.receiver.unit
        yield judged(
            context, named <= stated or reply.field > stated,
            f"a window field of {reply.field} units was sent", reply,
            expected=f"at most {stated} octets in units of {flow.receiver.unit}",
            actual=f"{named} octets",
        )  # fmt: skip


@rule("RWBP-WN-002", at_once=True)
def edge_never_retreats(flow: Flow, context: Context) -> Findings:
    """A field that names a lower edge leaves the edge where it is (section 6.1)."""
    # Exercised by such a field, or by one whose product exceeds 2^30, and something to send below
    # the edge.
    named, lower, large = 0, None, None
    for event in flow.events:
        if isinstance(event, Ack) and event.counts:
            product = event.tcp.window * flow.sender.unit
            named = event.ack + product
            lower = event if named < event.edge_after else None
            large = event if product > LARGEST_WINDOW else None
        elif isinstance(event, Sent) and large is not None and event.why is Why.NEW:
            yield context.holds(f"{event.span} was sent, 2^30 octets being permitted", event, large)
        elif isinstance(event, Sent) and lower is not None and event.why is Why.NEW:
            if not named < event.end <= event.edge:
                continue
            yield context.holds(f"{event.span} was sent up to the highest edge", event, lower)
    for stall in flow.sender.stalls:
        last = next((a for a in reversed(flow.acks) if a.time <= stall.until and a.counts), None)
        if last is None:
            continue
        product = last.tcp.window * flow.sender.unit
        edge = last.ack + product
        if product > LARGEST_WINDOW:
            yield context.violated(
                f"nothing was sent beyond {stall.nxt}", stall.since, last,
                expected="a product above 2^30 to be taken for 2^30",
                actual=f"nothing for {stall.until - stall.since.time:.2f} s",
            )  # fmt: skip
        elif edge < stall.nxt + stall.octets <= stall.edge:
            yield context.violated(
                f"nothing was sent beyond {stall.nxt}", stall.since, last,
                expected=f"segments up to {stall.edge}, which had been permitted",
                actual=f"the edge that was named last, {edge}, was kept",
            )  # fmt: skip


@rule("RWBP-WN-003", at_once=True, once=True)
def advertised_window(flow: Flow, context: Context) -> Findings:
    """The field is what section 6.1 computes."""
    # Exercised by every segment; exactly so where the user, discard, has read everything.
    if not context.ics.get("receive_buffer"):
        return
    unit = flow.receiver.unit
    stated = int(context.ics["receive_buffer"])
    most = min(LARGEST_FIELD, stated // unit, LARGEST_WINDOW // unit)
    last = float("-inf")
    for event in flow.events:
        if isinstance(event, Arrival) and event.payload:
            last = event.time
        elif isinstance(event, Reply):
            read = flow.service == "discard" and (event.time - last > SETTLED_S or not flow.slack)
            # A FIN takes a number that no user reads.
            fin = flow.receiver.fin is not None and event.expected > flow.receiver.fin
            exact = {most, min(most, (stated - 1) // unit)} if fin else {most}
            met = event.field in exact if read else event.field <= most
            yield judged(
                context, met, f"a window of {event.field} units was advertised", event,
                expected=f"{'' if read else 'at most '}{most}", actual=str(event.field),
            )  # fmt: skip


@rule("RWBP-WN-004", at_once=True)
def promises_are_kept(flow: Flow, context: Context) -> Findings:
    """What is below the highest edge is taken, what is at or above it is not (section 6.1)."""
    # Exercised by data between the edge named last and the highest, and by what lies beyond that,
    # which may be no more than a FIN.
    for arrival in flow.arrivals:
        if not arrival.payload or arrival.tcp.flags & (RST | SYN):
            continue
        reply = arrival.answer or _next_reply(flow, arrival)
        if reply is None:
            continue
        end = arrival.data_end
        reported = max((reply.ack, *(b for a, b in reply.blocks if a < end)))
        if arrival.end > arrival.edge:
            least = min(end, arrival.edge)
            rest = arrival.expected < least and _holds(arrival, least)
            # Wherever it begins, the rest is taken (section 5.4); with more runs than blocks it may
            # not be the highest any more.
            rest = rest and len(reply.runs) <= BLOCKS
            taken = f"octets up to {least} alone" if rest else "nothing"
            yield judged(
                context, (not rest or reported >= least) and reported <= arrival.edge,
                f"{arrival.span} reaches beyond the edge", reply, arrival,
                expected=f"{taken} to be taken, the edge being {arrival.edge}",
                actual=f"octets up to {reported} were reported",
            )  # fmt: skip
        elif arrival.named < end and arrival.expected < end and _holds(arrival, end):
            yield judged(
                context, reported >= end, f"{arrival.span} lies below the highest edge", reply,
                arrival, expected="what was once permitted to be taken",
                actual=f"octets up to {reported} were reported, {arrival.named} was named last",
            )  # fmt: skip


def _next_reply(flow: Flow, arrival: Arrival) -> Reply | None:
    for reply in after(flow.replies, arrival.packet.number):
        tells = reply.pure or not reply.runs  # data reports no runs
        if tells and reply.time - arrival.time >= flow.slack:
            return reply
    return None


def _holds(arrival: Arrival, end: int) -> bool:
    """Whether a receiver that keeps its promises holds its data up to an offset then.

    It drops what has no ACK flag, and what acknowledges too much (RWBP-EC-015).
    """
    runs = arrival.runs_after
    return arrival.expected_after >= end or any(left < end <= right for left, right in runs)


@rule("RWBP-WN-005", once=True)
def below_the_edge(flow: Flow, context: Context) -> Findings:
    """Nothing new is sent at or above the edge."""
    # Exercised by data that comes within a segment of the edge.
    waits, claimed = not flow.leaves_at_once(context.ics), 0
    for event in flow.events:
        if isinstance(event, Ack) and event.refused and waits:
            # What waits for the link has been sent, and may be acknowledged by who only guesses.
            claimed = max(claimed, flow.sender.named(event))
        if not isinstance(event, Sent) or event.why is not Why.NEW:
            continue
        edge = max(event.edge, claimed)
        if edge - event.end < flow.sender.smss:
            yield judged(
                context, event.end <= edge, f"{event.span} was sent", event,
                expected=f"nothing at or above {edge}",
                actual=f"{event.end - edge} octets beyond it",
            )  # fmt: skip


@rule("RWBP-WN-006")
def not_cut_to_fit(flow: Flow, context: Context) -> Findings:
    """A segment that does not fit waits (section 6.2)."""
    # Exercised by room in the window for a part of what waits.
    smss = flow.sender.smss
    for sent in flow.sent:
        if sent.why is not Why.NEW or sent.available is None:
            continue
        wanted = min(smss, sent.available)
        # More may have been written since it entered the IP queue.
        known = flow.sender.endless or flow.leaves_at_once(context.ics)
        if known and sent.payload < wanted and sent.end == sent.edge:
            yield context.violated(
                f"{sent.payload} octets were sent", sent,
                expected=f"{wanted:.0f} octets, when there is room for them",
                actual="as many as fitted below the edge",
            )  # fmt: skip
        elif sent.available > sent.payload and 0 < sent.edge - sent.end < smss:
            yield context.holds(f"behind {sent.end} there was room for a part only", sent)


@rule("RWBP-WN-007", at_once=True)
def window_updates(flow: Flow, context: Context) -> Findings:
    """An update is sent when the edge would rise by half of BUF, or leave a unit (section 6.3)."""
    # Exercised by an opening whose SYN could not name half of BUF, by a large interval, and by a
    # closed window behind which the user reads two units.
    yield from until_violated(_opened_again(flow, context))
    octets = int(context.ics.get("receive_buffer", 0))
    if not octets or flow.established is None:
        return
    unit = flow.receiver.unit
    whole = min(LARGEST_FIELD, octets // unit) * unit
    answer = flow.opening.answer
    edge = answer.window if answer is not None else 0
    due: Segment | None = None
    if 2 * (whole - edge) >= octets and not flow.opening.iut_calls:
        due = next((ack for ack in flow.acks if ack.time >= flow.established), None)
    for event in flow.events:
        if due is not None and event.time - due.time > AT_ONCE_S + flow.slack:
            yield _no_update(context, due)
            return
        if isinstance(event, Reply):
            edge = max(edge, event.edge)
            if due is not None and event.pure and is_update(flow, context, event):
                yield context.holds(f"an update named the edge {event.edge}", event, due)
            due = None
        elif isinstance(event, Arrival) and flow.service == "discard" and event.payload:
            rise = event.expected_after + whole - edge
            if due is None and (2 * rise >= octets):
                due = event
    if due is not None and flow.horizon - due.time > AT_ONCE_S + flow.slack:
        yield _no_update(context, due)


def _opened_again(flow: Flow, context: Context) -> Iterator[Finding]:
    """Whether an update, and nothing later, tells that a closed window has opened."""
    unit = flow.receiver.unit
    news = {a.packet.number for a in flow.acks if a.arrived or a.edge_after > a.edge}
    for reply in flow.replies if flow.service else ():
        closed = reply.edge_before - reply.expected < unit
        if not (reply.pure and closed and reply.edge - reply.edge_before >= 2 * unit):
            continue
        at = bisect_left(flow.arriving, reply.packet.number, key=lambda one: one.packet.number)
        last = flow.arriving[at - 1] if at else None
        if reply.calls is None and not reply.probe and is_update(flow, context, reply):
            yield context.holds(f"an update opened a closed window up to {reply.edge}", reply)
            continue
        # Behind a FIN nothing follows that an update could permit (RFC 9293 section 3.10.7.4).
        if flow.receiver.fin is not None and reply.expected > flow.receiver.fin:
            continue
        # What only asks for an answer gives the user nothing to do: it has read before.
        before = last if reply.calls is None else flow.arriving[at - 2] if at > 1 else None
        asks = last is not None and not last.tcp.length and last.packet.number not in news
        if before is None or reply.time - before.time < SETTLED_S or not (asks or reply.probe):
            continue
        yield context.violated(
            f"the edge had risen by {reply.edge - reply.edge_before}", reply, before,
            expected="an update at once when two units of a closed window could be opened",
            actual="another acknowledgment told it later",
        )  # fmt: skip


def _no_update(context: Context, due: Segment) -> Finding:
    return context.violated(
        "the edge could have risen by half of the buffer", due,
        expected="an acknowledgment that says so within 0.05 s", actual="none",
    )  # fmt: skip


@rule("RWBP-WN-008", at_once=True)
def closed_window_is_probed(flow: Flow, context: Context) -> Findings:
    """While data waits and the window is closed, probes leave after RTO, doubling."""
    # Exercised by a window without room for a segment, with nothing outstanding.
    for probe in flow.sender.probes:
        waited = probe.until - probe.started.time
        least = probe.least - TICK_S - context.timing_error
        most = probe.most + AT_ONCE_S + context.timing_error
        expected = f"a probe after {probe.least:.2f} to {probe.most:.2f} s"
        if probe.segment is not None:
            yield judged(
                context, least <= waited <= most, f"probe {probe.count + 1} left", probe.segment,
                probe.started, expected=expected, actual=f"after {waited:.2f} s",
            )  # fmt: skip
        elif waited > most:
            yield context.violated(
                "the window was closed while data waited", probe.started, expected=expected,
                actual=f"none for {waited:.2f} s",
            )  # fmt: skip


@rule("RWBP-WN-009", at_once=True)
def probes_occupy_no_number(flow: Flow, context: Context) -> Findings:
    """A probe is a pure acknowledgment at SND.NXT - 1."""
    # Exercised by probes of a closed window, or what is sent in place of them.
    for probe in flow.sender.probes:
        if probe.segment is not None:
            yield context.holds("a probe stood at SND.NXT - 1", probe.segment)
    for sent in flow.sent:
        if sent.why is Why.NEW and sent.start >= sent.edge and sent.payload == 1:
            yield context.violated(
                f"the closed window was probed with {sent.span}", sent,
                expected="a pure acknowledgment at SND.NXT - 1", actual="new data",
            )  # fmt: skip
    for reply, probe in _instead(flow):
        yield context.violated(
            "the closed window was probed with another segment", reply, probe.started,
            expected="a pure acknowledgment at SND.NXT - 1", actual=f"one at {reply.start}",
        )  # fmt: skip


def _instead(flow: Flow) -> Iterator[tuple[Reply, Probe]]:
    """Acknowledgments that nothing called for, when a probe was due."""
    for probe in flow.sender.probes:
        if probe.segment is not None:
            continue
        begun = probe.started.time
        for reply in flow.replies:
            due = begun + probe.least - TICK_S <= reply.time <= begun + probe.most + AT_ONCE_S
            odd = reply.pure and not reply.probe and reply.calls is None and reply.delay is None
            if due and odd:
                yield reply, probe
                break


@rule("RWBP-WN-010")
def closed_for_long(flow: Flow, context: Context) -> Findings:
    """A connection stays open while probes are answered."""
    # Exercised by a window closed for more than a minute, probes being answered.
    probes = [probe for probe in flow.sender.probes if probe.segment is not None]
    if not probes:
        return
    own = next((item for item in flow.resets if item.packet.outgoing), None)
    if own is not None and own.packet.number > flow.ended:
        own = None  # it answers what meets no connection any more
    last = probes[-1]
    answered = any(ack.time > last.until for ack in flow.acks)
    if own is not None and any(0 <= own.time - ack.time <= AT_ONCE_S for ack in flow.acks):
        return  # it answers something
    heard = max((item.time for item in flow.arriving if own and item.time < own.time), default=0.0)
    if own is not None and own.time - heard >= PATIENCE_S:
        return  # nobody was there any more
    if own is not None and flow.service and flow.sender.probes[-1].segment is None and answered:
        yield context.violated(
            "the connection was given up", own, last.started,
            expected="probes for as long as they are answered", actual="RST",
        )  # fmt: skip
        return
    runs = [probe for probe in probes if probe.count == 0]
    for first in runs:
        longest = max(
            probe.until for probe in probes if probe.until >= first.until
        ) - first.started.time  # fmt: skip
        if longest >= CLOSED_S:
            yield context.holds(f"it was still probed after {longest:.0f} s", first.started)
            return


@rule("RWBP-WN-011")
def first_window(flow: Flow, context: Context) -> Findings:
    """The field of a SYN or SYN-ACK is the smaller of BUF and 65,535; BUF has four units."""
    # Exercised by every opening with RWBP.
    answer = flow.opening.answer
    if answer is None or answer.counting is None:
        return
    stated = int(context.ics.get("receive_buffer", 0))
    least = 4 * answer.counting.unit
    for own in flow.opening.own:
        window = own.tcp.window
        met = window == min(stated, LARGEST_FIELD) if stated else True
        yield judged(
            context, met and window >= min(least, LARGEST_FIELD),
            f"a first window of {window} octets", own,
            expected=f"{min(stated, LARGEST_FIELD) if stated else 'at least'} octets, "
            f"{least} or more", actual=str(window),
        )  # fmt: skip


@rule("RWBP-WN-013", at_once=True)
def acceptable_at_the_edge(flow: Flow, context: Context) -> Findings:
    """A segment without data at RCV.EDGE is acceptable."""
    # Exercised by an acknowledgment of a peer that has filled the window behind a hole.
    for ack in flow.acks:
        if not ack.at_edge or ack.tcp.length or not ack.counts:
            continue
        refused = [
            reply for reply in flow.replies
            if reply.pure and reply.calls is None and not reply.probe
            and ack.packet.number < reply.packet.number
            and reply.time - ack.time <= AT_ONCE_S and reply.edge <= reply.edge_before
        ]  # fmt: skip
        yield judged(
            context, not refused, "an acknowledgment at the edge was accepted", ack,
            *refused[:1], expected="its acknowledgment to be processed",
            actual="an answer as to an unacceptable segment",
        )  # fmt: skip
