"""Checkers for the gateway's credit (RWBP-LC-001 to -008, RWBP-FC-006; section 9.4)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from operator import attrgetter

from bentpipe_conformance.protocols.rwbp.checkers import (
    Context,
    Findings,
    ip_queue,
    judged,
    replacing,
    rule,
)
from bentpipe_conformance.protocols.rwbp.replay.events import (
    Arrival,
    Call,
    Reply,
    Segment,
    Why,
    after,
)
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.ledger import Ledger


def _ledger(flow: Flow, context: Context) -> Ledger | None:
    """What the gateway's account shows; once for each link, and only where there is a gateway."""
    if flow is not flow.link.flows[0] or flow.link.address != link_address(flow, context):
        return None
    return context.prepared.ledger(float(context.ics.get("link_rate_bps", 0)))


def link_address(flow: Flow, context: Context) -> str:
    """Where the IUT stands on the link with the rate and the gateway."""
    return str(context.ics.get("link_address", "")) or flow.iut[0]


def _tried(ledger: Ledger, context: Context, named: str) -> Findings:
    """Where a rule has been followed though a wrong account would have done otherwise."""
    for entry in ledger.waited:
        if named in entry.rules:
            yield context.holds(f"what waited for credit stayed for {entry.seconds:.2f} s", entry)
    for entry in ledger.used:
        if named in entry.rules:
            yield context.holds("a packet left, there being credit for it", entry)


def _kept(flow: Flow, context: Context, named: str) -> Findings:
    ledger = _ledger(flow, context)
    if ledger is None:
        return
    for entry in ledger.overdrawn:
        if named in entry.rules:
            yield context.violated(
                "a packet left for which there was no credit", entry,
                expected="it to wait", actual="it left",
            )  # fmt: skip
            return
    for entry in ledger.withheld:
        if named in entry.rules:
            yield context.violated(
                "a packet waited although there was credit for it", entry,
                expected="it to leave at once", actual=f"nothing left for {entry.seconds:.2f} s",
            )  # fmt: skip
            return
    yield from _tried(ledger, context, named)


@rule("RWBP-LC-001")
def only_valid_frames_count(flow: Flow, context: Context) -> Findings:
    """A frame that is not valid grants nothing and is not answered."""
    # Exercised by a frame that is not valid and would permit what waits.
    if _ledger(flow, context) is not None:
        for packet in flow.link.answers:
            yield context.violated(
                "something other than a TCP packet left", Segment(packet),
                expected="no answer to a credit frame", actual=f"{len(packet.data)} octets",
            )  # fmt: skip
            return
    yield from _kept(flow, context, "RWBP-LC-001")


@rule("RWBP-LC-002")
def nothing_without_credit(flow: Flow, context: Context) -> Findings:
    """Nothing leaves before the first frame, nor when PASSED is not below LIMIT."""
    # Exercised by what waits while there is no credit.
    yield from _kept(flow, context, "RWBP-LC-002")


@rule("RWBP-LC-003")
def limit_never_retreats(flow: Flow, context: Context) -> Findings:
    """LIMIT is the highest limit of the epoch."""
    # Exercised by a frame with a higher limit, or with a lower one, and what then leaves.
    yield from _kept(flow, context, "RWBP-LC-003")


@rule("RWBP-LC-004")
def epochs_begin_anew(flow: Flow, context: Context) -> Findings:
    """A newer epoch begins the counts anew; an older one is nothing."""
    # Exercised by a frame of another epoch while something waits.
    yield from _kept(flow, context, "RWBP-LC-004")


@rule("RWBP-LC-005")
def credit_grows_stale(flow: Flow, context: Context) -> Findings:
    """Nothing leaves when no frame has come for a second."""
    # Exercised by a gateway that has fallen silent while something waits.
    yield from _kept(flow, context, "RWBP-LC-005")


@rule("RWBP-LC-006")
def lost_packets_give_their_credit_back(flow: Flow, context: Context) -> Findings:
    """After a second without packets those that have arrived are those that were passed."""
    # Exercised by a frame by which fewer packets have arrived than were passed.
    yield from _kept(flow, context, "RWBP-LC-006")


@rule("RWBP-LC-007")
def every_packet_counts(flow: Flow, context: Context) -> Findings:
    """Packets without data use credit, too."""
    # Exercised by credit that acknowledgments have used up while data waits.
    yield from _kept(flow, context, "RWBP-LC-007")


@rule("RWBP-LC-008", once=True)
def queue_passes_in_order_at_once(flow: Flow, context: Context) -> Findings:
    """What waits leaves in order, as soon as there is credit."""
    # Exercised by what waits while a frame grants credit, and by acknowledgments behind data.
    ledger = _ledger(flow, context)
    if ledger is None:
        return
    yield from _kept(flow, context, "RWBP-LC-008")
    for each in flow.link.flows:
        out_of_order = next(_out_of_order(each), None)
        if out_of_order is not None:
            before, item = out_of_order
            yield context.violated(
                "a packet left behind one that was made after it", item, before,
                expected="the order in which they entered the IP queue", actual="another one",
            )  # fmt: skip
    for entry in ledger.prompt:
        yield context.holds("a packet left as soon as there was credit", entry)


def _out_of_order(flow: Flow) -> Iterator[tuple[Segment, Segment]]:
    """Packets of a connection whose acknowledgment or new data belongs before another's."""
    for before, item in pairwise(flow.replies):
        if item.ack < before.ack:
            yield before, item
    for sent in flow.sent:
        if sent.why is Why.BEYOND:
            yield sent, sent


@rule("RWBP-FC-006")
def within_the_credit(flow: Flow, context: Context) -> Findings:
    """What has been passed never exceeds the credit."""
    # Exercised by credit that is used up while something waits.
    ledger = _ledger(flow, context)
    if ledger is None:
        return
    for entry in ledger.overdrawn[:1]:
        yield context.violated(
            "a packet was passed to the gateway beyond its credit", entry,
            expected="no more packets than were granted", actual="one more",
        )  # fmt: skip
    if not ledger.overdrawn:
        yield from _tried(ledger, context, "RWBP-LC-002")


@rule("RWBP-SC-005")
def acknowledgments_do_not_pile_up(flow: Flow, context: Context) -> Findings:
    """What has been called for while nothing could leave is one acknowledgment in the end."""
    # Exercised by many segments that call for acknowledgments while there is no credit.
    if not flow.agreed or flow.leaves_at_once(context.ics):
        return
    yield from _given_up(flow, context)
    yield from replacing.counted(flow, context)
    places = ip_queue(context)
    for arrived, replies in replacing.bunches(flow):
        calls = sum(arrival.calls is not None for arrival in arrived)
        if calls > 2 * places:
            yield judged(
                context, len(replies) <= places + 1,
                f"{calls} segments had waited to be answered; acknowledgments: {len(replies)}",
                replies[-1], replies[0], expected=f"at most {places + 1}", actual=str(len(replies)),
            )  # fmt: skip


def _given_up(flow: Flow, context: Context) -> Findings:
    """An acknowledgment that one of another connection has replaced, or has not.

    It would have entered the queue before what acknowledges a segment that arrived later, and left
    before that (RWBP-LC-008). What the acknowledgment timer has put there begins a count of more
    than one anew, and is not known; nor is what data of its own replaces (RWBP-AK-008). Later calls
    of the same connection may replace it by what stands further behind.
    """
    if flow.service != "discard":
        return
    each = flow.receiver.interval == 1
    beside: Reply | None = None
    for arrival, following in zip_longest(flow.arrivals, flow.arrivals[1:]):
        if arrival.calls is not Call.FIN and not (each and arrival.orderly):
            continue
        last = math.inf if following is None else following.packet.number
        own = next(after(flow.replies, arrival.packet.number), None)
        until = flow.ended if own is None else own.packet.number
        for other in flow.link.flows:
            new = None if other is flow else _new_after(other, arrival)
            reply = None if new is None else _acknowledges(other, new)
            if new is None or reply is None or reply.packet.number > last:
                continue
            if reply.packet.number < until:
                yield context.violated(
                    f"{arrival.span} was not acknowledged, and a later segment of another was",
                    reply, arrival, expected="what waits of the same connection to be replaced",
                    actual="that of another was",
                )  # fmt: skip
                return
            if new.packet.number < until:
                beside = own
    if beside is not None:
        yield context.holds("acknowledgments of several connections waited, and came", beside)


def _new_after(flow: Flow, before: Segment) -> Arrival | None:
    """The first new segment that arrived surely after another connection's."""
    later = after(flow.arrivals, before.packet.number)
    new = (item for item in later if item.expected_after > item.expected)
    return next((item for item in new if item.time > before.time + flow.slack), None)


def _acknowledges(flow: Flow, new: Arrival) -> Reply | None:
    """What first acknowledges a segment."""
    at = bisect_left(flow.replies, new.expected_after, key=attrgetter("ack"))
    return flow.replies[at] if at < len(flow.replies) else None
