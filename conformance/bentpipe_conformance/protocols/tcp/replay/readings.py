"""A connection in the other ways in which its packets can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from bentpipe_conformance.protocols.tcp.replay.events import Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import (
    Flow,
    Freedom,
    Habit,
    largest_sent,
    replayed,
)
from bentpipe_conformance.protocols.tcp.replay.recovery import soonest_timeout
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.scoreboard import AT_ONCE_S
from bentpipe_conformance.protocols.tcp.replay.users import always_sends


def read_otherwise(flow: Flow) -> Iterator[Flow]:
    """The flow in the readings in which its implementation uses freedoms that nothing shows."""
    doubts = flow.doubts - {Freedom.RUNS_SHORT} if always_sends(flow) else set(flow.doubts)
    if _may_be_timed(flow):
        doubts |= {Freedom.TIMES_SEGMENTS}
    order = sorted(doubts, key=list(Freedom).index)
    for count in range(1, len(order) + 1):
        for used in combinations(order, count):
            yield _read_again(flow, flow.reading | frozenset(used))


def read_with_habits(flow: Flow, names: Iterable[str]) -> Flow:
    """The flow of an implementation with habits that are no freedoms (see :class:`.Habit`)."""
    return _read_again(flow, frozenset(map(Habit, names)))


def _may_be_timed(flow: Flow) -> frozenset[int]:
    """Numbers of the retransmissions of the earliest data that only timers of their own explain.

    They left so long after their last transmission, but not after the last progress, and not as
    what has just arrived is answered.
    """
    least = soonest_timeout(minimum_rtt(flow))
    # A bed that is late delays the implementation as well, several times over (see RACE_S).
    at_once = AT_ONCE_S + 10 * flow.timing_error
    left: dict[int, float] = {}
    progress = 0.0
    found: set[int] = set()
    for event in flow.events:
        if isinstance(event, Ack) and event.advance:
            progress = event.time
        if not isinstance(event, Sent):
            continue
        before = left.get(event.start, event.time)
        left[event.start] = event.time
        delayed = event.cause is not None and event.since_arrival > at_once
        if delayed and event.start == event.una and before <= event.time - least < progress:
            found.add(event.packet.number)
    return frozenset(found)


def _read_again(flow: Flow, reading: frozenset[Freedom | Habit]) -> Flow:
    timed = _may_be_timed(flow) if Freedom.TIMES_SEGMENTS in reading else frozenset[int]()
    other = Flow(flow.tester, flow.iut, flow.timing_error, reading=reading, timed=timed)
    replayed(other, flow.source)
    other.listening, other.whole = flow.listening, flow.whole
    other.eldest, other.alike = flow.eldest, flow.alike
    other.segment = largest_sent(other)
    return other
