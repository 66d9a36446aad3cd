"""Checkers for the SACK blocks a receiver sends (SNR-RCV-007 to 012, 014, 019 and 030)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import dropwhile, islice, pairwise, takewhile

from bentpipe_reference.common.ranges import Range, RangeSet
from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged, until_violated
from bentpipe_conformance.protocols.tcp.checkers.duplicate_reports import FLUSHED
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    first_reply,
    still_receiving,
    takes_held_fin,
)
from bentpipe_conformance.protocols.tcp.replay.events import Arrival, Reply
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.lifetime import least_end
from bentpipe_conformance.protocols.tcp.replay.order import by_packet, count_through

OPTION_OCTETS = 40
"""Room for options in a TCP header (RFC 9293 section 3.1)."""

_MOST = 4
"""Blocks that fit at most. A stack that held more may have forgotten some, and does not recall them
when there is room again: what it then reports is judged only for truth."""


def _inside(block: Range, ranges: tuple[Range, ...]) -> bool:
    return any(left <= block[0] and block[1] <= right for left, right in ranges)


def _overlap(first: Range, second: Range) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _blocks(ranges: tuple[Range, ...]) -> str:
    return ", ".join(f"{left}-{right}" for left, right in ranges) or "none"


@record
class _Moment:
    """A reply and what preceded it.

    Attributes:
        reply: the reply.
        unanswered: segments with data that arrived since the reply before it.
        recent: segments with data that the IUT may not have processed yet; changes with the next
            moment.
        crowded: more blocks than fit were held, now or since nothing was held.
    """

    reply: Reply
    unanswered: list[Arrival]
    recent: deque[Arrival]
    crowded: bool


def _moments(flow: Flow) -> Iterator[_Moment]:
    """Every reply of a connection that negotiated SACK, from the first that can report anything."""
    if not flow.handshake.sack:
        return
    begun = flow.arrivals[0].packet.number if flow.arrivals else math.inf
    recent: deque[Arrival] = deque()
    unanswered: list[Arrival] = []
    reaction = flow.reaction
    crowded = False
    arrivals = iter(flow.arrivals)
    following = next(arrivals, None)

    def has_nothing_to_report(reply: Reply) -> bool:
        return reply.packet.number < begun and not reply.blocks

    for reply in dropwhile(has_nothing_to_report, flow.replies):
        while following is not None and following.packet.number < reply.packet.number:
            recent.append(following)
            unanswered.append(following)
            crowded = crowded or len(following.held) > _MOST
            following = next(arrivals, None)
        while recent and reply.time - recent[0].time > reaction:
            recent.popleft()
        held = reply.held
        crowded = bool(held) and (crowded or len(held) > _MOST)
        yield _Moment(reply, unanswered, recent, crowded)
        unanswered = []


def _answered_after(flow: Flow, reply: Reply, arrival: Arrival) -> bool:
    """Whether a further reply at once holds the segment, or acknowledges it: the gap was filled.

    What lies beyond the window's edge may have been cut off. A RST of the user's may have come
    before it could leave.
    """
    until = arrival.time + flow.reaction
    if any(arrival.time <= reset.time <= until for reset in flow.resets[:1]):
        return True
    block = arrival.start, min(arrival.start + arrival.payload, arrival.window_edge)
    after = count_through(flow.replies, reply.packet.number)
    soon = takewhile(lambda later: later.time <= until, islice(flow.replies, after, None))
    return any(later.ack >= block[1] or _inside(block, later.sack[:1]) for later in soon)


@checker("SNR-RCV-007")
def first_block_holds_the_trigger(flow: Flow, context: Context) -> Findings:
    """The first SACK block contains the segment that caused it (RFC 2018 section 4)."""
    # Exercised by replies with blocks to out-of-order data alone.
    for moment in _moments(flow):
        reply, unanswered = moment.reply, moment.unanswered
        if not unanswered or not reply.sack or not all(a.out_of_order for a in unanswered):
            continue
        if not unanswered[-1].payload:
            # Whether a block counts a FIN held above a gap is left to the implementation.
            continue
        if reply.dsack is not None:
            # A duplicate caused it, even if other segments have arrived since.
            continue
        first = reply.sack[0]
        candidates = [*unanswered, *(a for a in moment.recent if a.out_of_order)]
        # What lies beyond the window's edge may have been cut off.
        ends = [(a, min(a.start + a.payload, a.window_edge)) for a in candidates]
        found = [a for a, end in ends if first[0] <= a.start and end <= first[1]]
        cause = unanswered[-1]
        if found:
            yield context.holds("the first block holds the segment that caused it", reply, found[0])
        elif reply.tcp.length and _answered_after(flow, reply, cause):
            # The acknowledgment in the segment released data before its text was looked at (RFC
            # 9293 section 3.10.7.4): what it triggered followed.
            continue
        else:
            yield context.violated(
                f"the first block {first[0]}-{first[1]} does not hold the segment that caused it",
                reply,
                cause,
                expected=f"a first block that contains {cause.start}-{cause.end}",
                actual=f"blocks {_blocks(reply.blocks)}",
            )


@checker("SNR-RCV-008")
def blocks_in_every_acknowledgment(flow: Flow, context: Context) -> Findings:
    """Every acknowledgment below held data has SACK blocks (RFC 2018 section 4)."""
    # Exercised by pure acknowledgments below data the IUT is known to hold. Known it is by a block
    # that reported it, or afterwards: when the gap was filled, the acknowledgment number jumped
    # over it although it had not come again.
    silent: dict[Reply, Range] = {}
    for moment in _moments(flow):
        reply = moment.reply
        for arrival in moment.unanswered:
            span = arrival.start, arrival.end
            silent = {item: held for item, held in silent.items() if not _overlap(span, held)}
        for item, (_, right) in silent.items():
            if reply.ack >= right:
                sentence = "no SACK block though data was held out of sequence"
                expected = f"a block that ends at {right}"
                actual = "no SACK option"
                yield context.violated(sentence, item, reply, expected=expected, actual=actual)
                return
        if reply.payload or moment.crowded:
            continue
        if not reply.held:
            continue
        if reply.blocks:
            yield context.holds("an acknowledgment below held data has SACK blocks", reply)
            continue
        older = RangeSet(reply.held)
        for arrival in moment.recent:
            older = _without(older, arrival)
        # One octet may be a FIN; whether blocks count that is left to the implementation.
        held = [(left, right) for left, right in older.snapshot() if right - left > 1]
        if held and reply.ack < held[-1][0]:
            silent[reply] = held[-1]


@checker("SNR-RCV-027")
def data_above_a_gap_is_reported(flow: Flow, context: Context) -> Findings:
    """Data kept above a gap is reported in a SACK block in time (RFC 2018 section 4)."""
    # Exercised by every arrival that leaves data above a gap, once a block reports that data, or
    # the acknowledgment number passes it although it has not come again.
    longest = LONGEST_DELAY_S + flow.reaction
    flushes = context.permitted("flushes_first", False)
    waiting: list[tuple[Arrival, Range]] = []
    receiving = by_packet(still_receiving(flow))
    fins = {item.end for item in flow.arrivals if item.fin}
    for moment in _moments(flow):
        reply = moment.reply
        for arrival in moment.unanswered:
            again = arrival.start, arrival.end
            waiting = [(a, span) for a, span in waiting if not _overlap(again, span)]
            span = _held_by(arrival, fins)
            if receiving(arrival.packet) is not None and span is not None:
                waiting.append((arrival, span))
        # Beside timestamps one less has room (RFC 2018 section 3), and beside a duplicate reported.
        room = _MOST - flow.handshake.timestamps - (reply.dsack is not None)
        if moment.crowded or len(reply.held) > room:
            waiting.clear()
        for arrival, span in waiting:
            reported, waited = _inside(span, reply.blocks), reply.time - arrival.time
            if reported and waited <= longest:
                yield context.holds("data above a gap was reported in a SACK block", reply, arrival)
            elif waited > longest and (reported or reply.ack >= span[1]):
                if flushes and _flushed(arrival, flow.reaction):
                    continue
                sentence = f"data held at {span[0]}-{span[1]} was not reported in time"
                expected = f"a SACK block within {LONGEST_DELAY_S} s"
                actual = f"none for {waited:.1f} s"
                yield context.violated(sentence, arrival, reply, expected=expected, actual=actual)
        waiting = [
            (a, span) for a, span in waiting
            if not _inside(span, reply.blocks) and reply.ack <= span[0]
        ]  # fmt: skip


def _flushed(arrival: Arrival, within: float) -> bool:
    """Whether a segment that begins one more block was answered at once by the blocks before it."""
    answer = arrival.replies[0] if arrival.replies else None
    if answer is None or answer.time - arrival.time > within or len(answer.sack) < FLUSHED:
        return False
    return not any(_overlap((arrival.start, arrival.end), block) for block in answer.sack)


def _held_by(arrival: Arrival, fins: set[int]) -> Range | None:
    """What a segment leaves above a gap: its own data, or else what is held the furthest above.

    Whether blocks count a FIN, behind which nothing comes, is left to the implementation.
    """
    if arrival.end > arrival.window_edge or arrival.held_duplicate or not arrival.acceptable:
        return None
    if arrival.out_of_order:
        return arrival.start, arrival.start + arrival.payload
    if not arrival.in_order or not arrival.held:
        return None
    left, right = arrival.held[-1]
    right -= right in fins
    return (left, right) if arrival.end < left < right else None


def _without(ranges: RangeSet, arrival: Arrival) -> RangeSet:
    left = RangeSet()
    for a, b in ranges.snapshot():
        left.add(a, min(b, arrival.start))
        left.add(max(a, arrival.end), b)
    return left


@checker("SNR-RCV-009")
def blocks_report_only_arrived_data(flow: Flow, context: Context) -> Findings:
    """SACK blocks report received data only (RFC 2018 section 3)."""
    # Exercised by every SACK block.
    yield from until_violated(
        judged(
            context,
            _arrived(reply, left, right) or _arrived_below(flow, reply, left, right),
            f"the block {left}-{right} was reported",
            reply,
            expected=f"blocks within {_blocks(((0, reply.limit), *reply.arrived))}",
            actual=f"blocks {_blocks(reply.blocks)}",
        )
        for reply in flow.replies
        for left, right in reply.blocks
    )


def _arrived(reply: Reply, left: int, right: int) -> bool:
    """Whether all of a block had reached the IUT; the SYN, which may be repeated, is at -1."""
    rest = (max(left, reply.limit), right)
    return -1 <= left < right and (right <= reply.limit or _inside(rest, reply.arrived))


def _arrived_below(flow: Flow, reply: Reply, left: int, right: int) -> bool:
    """Whether a segment with numbers below the stream, an old duplicate, had all of a block."""
    return left < 0 and any(
        arrival.start <= left < right <= arrival.end
        for arrival in flow.arrivals
        if arrival.time <= reply.time
    )


@checker("SNR-RCV-010")
def blocks_are_isolated(flow: Flow, context: Context) -> Findings:
    """SACK blocks are isolated, whole and above the acknowledgment (RFC 2018 section 3)."""
    # Exercised by every SACK block but D-SACK blocks.
    finished = False
    with_fin = takes_held_fin(flow) if context.permitted("keeps_blocks_with_fin", False) else None
    for moment in _moments(flow):
        reply, recent = moment.reply, moment.recent
        # Whether a block counts a FIN held above a gap is left to the implementation.
        finished = finished or any(a.fin for a in moment.unanswered)
        if not reply.sack or moment.crowded or reply is with_fin:
            continue
        # What has been discarded is not held next to a block (RFC 2018 section 8).
        partly = finished or len(recent) > _MOST or context.ics.get("reneges", False)
        wrong = _not_isolated(reply, None if partly else moment)
        sentence = wrong or "the blocks are isolated and above the acknowledgment"
        expected = f"whole, separate blocks above {reply.ack}; held is {_blocks(reply.held)}"
        actual = f"blocks {_blocks(reply.blocks)}"
        yield judged(context, not wrong, sentence, reply, expected=expected, actual=actual)
        if wrong:
            return


def _not_isolated(reply: Reply, moment: _Moment | None) -> str:
    ordered = sorted(reply.sack)
    if ordered[0][0] <= reply.ack:
        return f"the block at {ordered[0][0]} is not above the acknowledgment number {reply.ack}"
    for (_, right), (left, _) in pairwise(ordered):
        if left <= right:
            return f"two blocks meet at {left}"
    if moment is None:
        return ""
    if all(block in reply.held or not _inside(block, reply.held) for block in ordered):
        return ""
    # The IUT may not have processed the latest arrivals yet, or be in the middle of it.
    possible = set(reply.held)
    held = RangeSet(reply.held)
    for arrival in reversed(moment.recent):
        held = _without(held, arrival)
        # A segment may overlap what was held before it.
        possible.update(held.snapshot(), arrival.held)
        if len(moment.unanswered) > 1:
            possible.update((a, arrival.end) for a, b in held.snapshot() if b == arrival.start)
            possible.update((arrival.start, b) for a, b in held.snapshot() if a == arrival.end)
    for left, right in ordered:
        if (left, right) not in possible and _inside((left, right), reply.held):
            return f"the block {left}-{right} does not reach as far as the data held"
    return ""


def _reporting(flow: Flow) -> Iterator[tuple[_Moment, RangeSet]]:
    """The moments, each with what has been reported held until then."""
    reported = RangeSet()
    for moment in _moments(flow):
        reported.remove_below(moment.reply.ack)
        for block in moment.reply.sack:
            reported.add(*block)
        yield moment, reported


def _surely_held(held: Iterable[Range], reported: RangeSet, end: float) -> tuple[Range, ...]:
    """What has been reported at some time, but for what its peer has sent above its FIN.

    That need not be kept.
    """
    return tuple(item for item in held if reported.covers(*item) and item[1] <= end)


@checker("SNR-RCV-011")
def as_many_blocks_as_fit(flow: Flow, context: Context) -> Findings:
    """As many SACK blocks are sent as fit (RFC 2018 section 4)."""
    # Exercised by pure acknowledgments of out-of-order data while several blocks are held.
    end = least_end(flow)
    for moment, reported in _reporting(flow):
        reply = moment.reply
        if reply.payload or not reply.sack or moment.crowded:
            continue
        caused = bool(moment.unanswered) and all(a.out_of_order for a in moment.unanswered)
        known = _surely_held(reply.held, reported, end)
        wanted = min(len(known), _room(reply))
        if not caused or wanted < 2:
            continue
        # The block of a segment held alone is the same, whether it reports a duplicate or not.
        yield judged(
            context,
            len(reply.sack) + (reply.dsack in reply.held) >= wanted,
            f"{len(reply.sack)} of {len(reply.held)} blocks reported where {wanted} fit",
            reply,
            expected=f"blocks for {_blocks(known)} as far as they fit",
            actual=f"blocks {_blocks(reply.blocks)}",
        )


@checker("SNR-RCV-030")
def blocks_are_recalled(flow: Flow, context: Context) -> Findings:
    """Blocks that had no room are reported when there is room again (RFC 2018 section 4)."""
    # Exercised by pure acknowledgments once more blocks were held than fit, and fewer are left.
    if context.ics.get("reneges", False):
        return
    end = least_end(flow)
    for moment, reported in _reporting(flow):
        reply = moment.reply
        if reply.payload or not reply.sack or not moment.crowded:
            continue
        room = _room(reply)
        # What has just arrived may not have been processed yet.
        if max(len(reply.held), *(len(a.held) for a in moment.recent), 0) > room:
            continue
        older = RangeSet(reply.held)
        for arrival in moment.recent:
            older = _without(older, arrival)
        known = _surely_held(older.snapshot(), reported, end)
        if len(known) < 2:
            continue
        missing = [r for r in known if not _inside(r, reply.blocks)]
        yield judged(
            context,
            not missing,
            f"of {len(known)} blocks, which fit again, {len(missing)} are not reported",
            reply,
            expected=f"blocks for {_blocks(known)}",
            actual=f"blocks {_blocks(reply.blocks)}",
        )


def _room(reply: Reply) -> int:
    """Blocks that fit into a segment without data, besides a D-SACK block."""
    octets = OPTION_OCTETS - 2 - (12 if reply.tcp.tsval is not None else 0)
    return octets // 8 - (reply.dsack is not None)


@checker("SNR-RCV-012")
def blocks_repeat_the_most_recent(flow: Flow, context: Context) -> Findings:
    """Further SACK blocks repeat the most recent first blocks (RFC 2018 section 4)."""
    # Exercised once two further blocks could be repeated, so that there is a choice.
    if context.ics.get("reneges", False):
        return
    firsts: list[Range] = []
    merged = False
    end = least_end(flow)  # what its peer has sent above that need not be kept
    for moment in _moments(flow):
        reply, unanswered = moment.reply, moment.unanswered
        # Blocks changed by several segments before one reply have no order on the wire.
        merged = bool(reply.held) and (merged or len(unanswered) > 1 or _ambiguous(reply))
        firsts = [known for known in firsts if known[1] > reply.ack]
        if not reply.sack:
            merged = merged or bool(unanswered and reply.held)
            continue
        if not merged and not moment.crowded:
            yield from _recent_ones_repeated(reply, firsts, end, context)
        first = reply.sack[0]
        firsts = [first, *(known for known in firsts if not _inside(known, (first,)))]


def _ambiguous(reply: Reply) -> bool:
    """Whether the first block may be a D-SACK, or that of the duplicate it would report.

    What is held may have the number of a FIN behind it, which no block needs to show.
    """
    duplicate = reply.dsack
    if duplicate is None or any(_inside(duplicate, (block,)) for block in reply.sack):
        return False
    left, right = duplicate
    return any(a == left and b in (right, right + 1) for a, b in reply.held)


def _recent_ones_repeated(
    reply: Reply, firsts: list[Range], end: float, context: Context
) -> Findings:
    """Whether the latest of ``firsts`` are repeated, but for those beyond ``end``.

    The number of the FIN, below ``end``, need not be reported.
    """
    firsts = [(left, right - (right == end)) for left, right in firsts]
    wanted = [known for known in firsts if not _inside(known, reply.sack[:1])]
    if len(reply.sack) == 1 and sum(b <= end for _, b in wanted) > 1 and not reply.payload:
        yield context.violated(
            "the option is not filled up with further blocks",
            reply,
            expected=f"after the first block those of {_blocks(tuple(wanted))}, as far as they fit",
            actual=f"blocks {_blocks(reply.blocks)}",
        )
        return
    # The order of those that are repeated is arbitrary.
    further = reply.sack[1:]
    for left, right in wanted[: len(further)]:
        if right <= end and not _inside((left, right), further):
            yield context.violated(
                f"the block {left}-{right} is left out, and older ones are repeated",
                reply,
                expected=f"after the first block the latest of {_blocks(tuple(wanted))}",
                actual=f"blocks {_blocks(reply.blocks)}",
            )
            return
    if len(wanted) > 1:
        yield context.holds("the further blocks are the most recently reported", reply)


@checker("SNR-RCV-014")
def duplicates_in_dsack_blocks(flow: Flow, context: Context) -> Findings:
    """A duplicate is reported in a D-SACK block (RFC 2883 section 4)."""
    # Exercised by duplicate segments that arrive alone.
    if not flow.handshake.sack:
        return
    end = least_end(flow)
    previous: Arrival | None = None
    for arrival in still_receiving(flow):
        alone = previous is None or (
            arrival.time - previous.time > flow.reaction and bool(previous.replies)
        )
        previous = arrival
        whole = arrival.length == arrival.payload
        if not (arrival.duplicate or arrival.held_duplicate) or not whole or not alone:
            continue
        if arrival.may_be_stale or arrival.lacks_timestamp or arrival.start < 0:
            continue
        if arrival.dropped:
            continue
        if arrival.end >= end:
            continue  # data in the place of a FIN: the peer contradicts itself
        # A segment full of data has no room for blocks; one with room reports a duplicate once.
        told = (r for r in arrival.replies if r.dsack == (arrival.start, arrival.end))
        reply = next(told, None) or first_reply(
            flow, arrival, lambda item: not item.payload, within=LONGEST_DELAY_S
        )
        # A reply that left after the next arrival may report that one.
        if reply is None or reply.last_arrival is not arrival:
            continue
        # What was held already in several pieces may be reported piecewise, or not at all.
        partly = reply.dsack is None or _inside(reply.dsack, ((arrival.start, arrival.end),))
        reported = reply.dsack == (arrival.start, arrival.end)
        if reported or arrival.duplicate or not partly:
            how = "reported" if reported else "not reported"
            sentence = f"{arrival.span} came again and was {how} in a D-SACK block"
            where = reply, arrival
            expected = f"a first block {arrival.start}-{arrival.end}"
            actual = f"blocks {_blocks(reply.blocks)}"
            yield judged(context, reported, sentence, *where, expected=expected, actual=actual)


@checker("SNR-RCV-019")
def reported_data_is_kept(flow: Flow, context: Context) -> Findings:
    """Data reported in SACK blocks is kept (RFC 2018 section 8)."""
    # Exercised by acknowledgments that reach or pass a block reported earlier.
    reported: dict[Range, Reply] = {}
    end = least_end(flow)
    for reply in flow.replies:
        for (left, right), report in list(reported.items()):
            if right > end:
                continue  # above a FIN, perhaps a later one: the peer contradicts itself
            if left <= reply.ack < right:
                sentence = f"the acknowledgment stops at {reply.ack}, inside a block reported held"
                expected = f"an acknowledgment number of at least {right}"
                actual = str(reply.ack)
                yield context.violated(sentence, reply, report, expected=expected, actual=actual)
                return
            if reply.ack >= right:
                del reported[left, right]
                yield context.holds("the acknowledgment covers a block reported earlier", reply)
        for left, right in reply.sack:
            if left > reply.ack and _inside((left, right), reply.arrived):
                for block in [known for known in reported if _inside(known, ((left, right),))]:
                    del reported[block]
                reported[left, right] = reply
