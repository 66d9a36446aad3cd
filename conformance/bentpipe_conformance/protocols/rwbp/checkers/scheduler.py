"""Checkers for the scheduler (RWBP-FC-005, RWBP-SC-001 to -003; section 9.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from bentpipe_conformance.engine.context import until_violated
from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, ip_queue, judged, rule
from bentpipe_conformance.protocols.rwbp.replay.events import Why
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.turns import Turn, passed_over

LEAST_INDEX = 0.99
"""Jain's fairness index of connections that could send all the time."""

ROUNDS = 10
"""Turns of each connection from which on the index is asked for: one turn more makes 0.99 of it."""


def _turns(flow: Flow, context: Context) -> Sequence[Turn]:
    """The turns of a link on which packets wait; once for each link."""
    if flow is not flow.link.flows[0] or flow.leaves_at_once(context.ics):
        return ()
    return context.prepared.turns(ip_queue(context))


def _ring(flow: Flow) -> int:
    return len(flow.link.flows)


@rule("RWBP-FC-005")
def nobody_is_served_twice(flow: Flow, context: Context) -> Findings:
    """No connection has two turns in a row while another can send."""
    # Exercised by two turns one after the other while two connections can send.
    turns = _turns(flow, context)
    yield from until_violated(_shares(turns, _ring(flow), context))
    yield from until_violated(_changes(turns, context))


def _changes(turns: Sequence[Turn], context: Context) -> Findings:
    for last, turn in pairwise(turns):
        others = turn.rivals - {last.place}
        if turn.place != last.place:
            if last.place in turn.rivals:
                yield context.holds("another connection had the next turn", turn)
        elif others:
            yield context.violated(
                "a connection was served twice in a row", turn, last,
                expected=f"a turn of one of {len(others)} others that could send",
                actual="the same connection",
            )  # fmt: skip


def _shares(turns: Sequence[Turn], ring: int, context: Context) -> Findings:
    """Jain's index where all connections could send all the time."""
    for stretch in _stretches(turns, frozenset(range(ring))):
        counts = Counter(turn.place for turn in stretch)
        if ring > 1 and len(stretch) >= ROUNDS * ring:
            index = len(stretch) ** 2 / (ring * sum(count * count for count in counts.values()))
            least, most = min(counts[place] for place in range(ring)), max(counts.values())
            yield judged(
                context, index >= LEAST_INDEX,
                f"{ring} connections had {least} to {most} turns each: Jain's index {index:.4f}",
                stretch[-1], expected=f"an index of at least {LEAST_INDEX}",
                actual=f"{index:.4f}",
            )  # fmt: skip


def _stretches(turns: Sequence[Turn], places: frozenset[int]) -> Iterator[list[Turn]]:
    """Turns one behind the other at which these connections, or those served, could send again."""
    stretch: list[Turn] = []
    for turn in turns:
        if places <= turn.rivals:
            stretch.append(turn)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


@rule("RWBP-SC-001", once=True)
def ring_is_followed(flow: Flow, context: Context) -> Findings:
    """The next turn is that of the first connection behind the last one that can send."""
    # Exercised by two turns one after the other while three connections can send.
    turns, ring = _turns(flow, context), _ring(flow)
    for index in range(1, len(turns)):
        last, turn = turns[index - 1], turns[index]
        over = passed_over(turns, index, ring)
        if over and turn.place != last.place:
            yield context.violated(
                "a connection that could send was passed over", turn, last,
                expected=f"the connection opened {_ordinal(over, last, ring)}",
                actual=f"that opened as number {turn.place + 1}",
            )  # fmt: skip
        elif len(turn.rivals | {turn.place}) > 2:
            yield context.holds("the next one in the ring was served", turn)


def _ordinal(over: frozenset[int], last: Turn, ring: int) -> str:
    first = min(over, key=lambda place: (place - last.place) % ring)
    return f"as number {first + 1}"


@rule("RWBP-SC-002", once=True)
def one_packet_a_turn(flow: Flow, context: Context) -> Findings:
    """A turn is a retransmission if one waits, otherwise a new segment; never both."""
    # Exercised by a retransmission that waits for its turn.
    for last, turn in pairwise(_turns(flow, context)):
        sent, before = turn.sent, last.sent
        if sent is None:
            continue
        repaired = before is not None and before.why is not Why.NEW
        if sent.why is Why.NEW and turn.repair:
            yield context.violated(
                "a new segment had a turn that a retransmission waited for", turn,
                expected="the retransmission", actual="a new segment",
            )  # fmt: skip
        elif turn.place == last.place and repaired and turn.rivals - {turn.place}:
            yield context.violated(
                "a turn had a retransmission and another segment", turn,
                last, expected="the turn of another connection that could send",
                actual="one more segment",
            )  # fmt: skip
        elif repaired and turn.place != last.place and last.place in turn.rivals:
            yield context.holds("a retransmission had a turn of its own", last)


@rule("RWBP-SC-003")
def octets_are_shared(flow: Flow, context: Context) -> Findings:
    """The octets of two connections differ by two quanta and a packet at most."""
    # Exercised by connections with packets of unequal size that can send all the time.
    turns = _turns(flow, context)
    bound = 2 * int(context.ics.get("quantum", 1500)) + max((t.octets for t in turns), default=0)
    for pair in combinations(range(_ring(flow)), 2):
        for stretch in _stretches(turns, frozenset(pair)):
            yield from until_violated(_balanced(stretch, pair, bound, context))


def _balanced(
    stretch: Sequence[Turn], pair: tuple[int, int], bound: int, context: Context
) -> Findings:
    ahead = least = most = total = 0
    sizes: set[int] = set()
    for turn in stretch:
        if turn.place in pair:
            ahead += turn.octets if turn.place == pair[0] else -turn.octets
            least, most, total = min(least, ahead), max(most, ahead), total + turn.octets
            sizes.add(turn.octets)
        if most - least > bound:
            yield context.violated(
                "of two connections one sent more octets than its share", turn,
                expected=f"a difference of at most {bound} octets", actual=f"{most - least} octets",
            )  # fmt: skip
            return
    if total > 2 * bound and len(sizes) > 1:
        yield context.holds(
            f"of {total} octets the shares of two connections differed by {most - least}",
            stretch[-1],
        )  # fmt: skip
