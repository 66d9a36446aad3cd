"""Checkers for D-SACK blocks: whether they are true, and what stands behind them (RFC 2883).

SNR-RCV-024 and 031; whether there is one, SNR-RCV-014, is in :mod:`.sack_blocks`.
"""

from __future__ import annotations

import math

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.replay.answers import takes_held_fin
from bentpipe_conformance.protocols.tcp.replay.events import Arrival, Reply
from bentpipe_conformance.protocols.tcp.replay.flow import Flow

FLUSHED = 2
"""Blocks with which Linux sends what it has compressed before it begins another one."""


@checker("SNR-RCV-024")
def duplicate_reports_are_true(flow: Flow, context: Context) -> Findings:
    """A D-SACK block reports a duplicate, once (RFC 2883 section 4)."""
    # Exercised by every D-SACK block.
    if not flow.handshake.sack:
        return
    seen, twice, fresh = RangeSet(), RangeSet(), RangeSet()
    if flow.handshake.offer is not None:
        seen.add(0, flow.handshake.offer.size)  # data that came with the SYN
    reporting: Reply | None = None
    told: tuple[Range, ...] = ()
    with_fin = takes_held_fin(flow) if context.permitted("keeps_blocks_with_fin", False) else None
    for event in flow.events:
        same, told = told, event.blocks if isinstance(event, Reply) else told
        if isinstance(event, Arrival):
            reporting = None
            left = event.start
            for start, end in seen.gaps(event.start, event.end):
                _add(twice, fresh, left, start)
                left = end
            _add(twice, fresh, left, event.end)
            seen.add(event.start, event.end)
        elif isinstance(event, Reply) and event.dsack is not None:
            left, right = event.dsack
            if right <= 0 or event is with_fin:
                continue  # the SYN came again, or the block was not one of a duplicate
            # What lies below the stream came before it.
            if left >= right or not twice.covers(max(left, 0), right):
                sentence = f"the D-SACK block {left}-{right} reports what came once"
                expected = "a block of data that arrived twice"
                actual = f"blocks {event.blocks}"
                yield context.violated(sentence, event, expected=expected, actual=actual)
                return
            if not _followed(event) and ((left, right) in event.held or event.blocks == same):
                continue  # without D-SACK, the latest segment's block comes first as well
            if reporting is not None and _cut_from_one(reporting, event):
                continue
            reporting = event
            again = not fresh.overlap(left, right)
            sentence = f"the D-SACK block {left}-{right} " + (
                "was sent again" if again else "reports a duplicate"
            )
            yield judged(
                context, not again, sentence, event,
                expected="one report of each duplicate", actual="a second one",
            )  # fmt: skip
            if again:
                return
            fresh = _without(fresh, left, right)


def _followed(reply: Reply) -> bool:
    """Whether the block around the duplicate that a D-SACK block reports is the second."""
    left, right = reply.dsack or (0, 0)
    return right <= reply.ack or any(a <= left and right <= b for a, b in reply.blocks[1:2])


@checker("SNR-RCV-031")
def block_around_a_duplicate_is_second(flow: Flow, context: Context) -> Findings:
    """The block around a duplicate follows its D-SACK block (RFC 2883 section 4, step 4)."""
    # Exercised by every D-SACK block above the acknowledgment number, as long as they are true.
    if context.ics.get("reneges", False):
        return
    if not flow.handshake.sack:
        return
    flushes = context.permitted("flushes_first", False)
    joins = context.permitted("joins_below", False)
    begun: dict[int, int] = {}  # with which packet data that begins at an offset came first
    ended: dict[int, int] = {}  # and last such as ends there
    arrived = RangeSet()
    told: tuple[Range, ...] = ()
    unanswered = 0
    for event in flow.events:
        if isinstance(event, Arrival):
            arrived.add(event.start, event.end)
            begun.setdefault(event.start, event.packet.number)
            ended[event.end] = event.packet.number
            unanswered += 1
        if not isinstance(event, Reply):
            continue
        same, told = told, event.blocks
        waited, unanswered = unanswered > 1, 0
        if event.dsack is None or event.dsack[1] <= max(event.ack, 0):
            continue
        left, right = event.dsack
        if left >= right or not arrived.covers(left, right):
            return
        if _followed(event):
            yield context.holds("the block around a duplicate is the second", event)
            continue
        last = event.last_arrival
        if last is not None and not last.acceptable:
            continue  # which may have been dropped: the block is then of what is held
        flushed = flushes and waited and len(event.sack) >= FLUSHED
        joined = joins and ended.get(left, 0) > begun.get(left, math.inf)
        if flushed or joined:
            continue
        if (left, right) not in event.held and event.blocks != same:
            sentence = f"the D-SACK block {left}-{right} is not followed by the block around it"
            expected = "the block that holds it as the second"
            actual = f"blocks {event.blocks}"
            yield context.violated(sentence, event, expected=expected, actual=actual)
            return


def _cut_from_one(first: Reply, other: Reply) -> bool:
    """Whether two segments with data may be one that was cut up on its way out.

    Segmentation offload repeats all options in each part; nothing but the data differs.
    """
    one, two = first.tcp, other.tcp
    return (
        first.payload > 0 < other.payload
        and other.time == first.time
        and (one.ack, one.window, one.sack) == (two.ack, two.window, two.sack)
        and (one.tsval, one.tsecr) == (two.tsval, two.tsecr)
    )


def _add(twice: RangeSet, fresh: RangeSet, left: int, right: int) -> None:
    if left < right:
        twice.add(left, right)
        fresh.add(left, right)


def _without(ranges: RangeSet, left: int, right: int) -> RangeSet:
    rest = RangeSet()
    for start, end in ranges.snapshot():
        for a, b in ((start, min(end, left)), (max(start, right), end)):
            if a < b:
                rest.add(a, b)
    return rest
