"""A connection in the other ways in which its packets can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from bentpipe_conformance.protocols.tcp.replay.flow import (
    Flow,
    Freedom,
    Habit,
    largest_sent,
    replayed,
)
from bentpipe_conformance.protocols.tcp.replay.users import always_sends


def read_otherwise(flow: Flow) -> Iterator[Flow]:
    """The flow in the readings in which its implementation uses freedoms that nothing shows."""
    doubts = flow.doubts - {Freedom.RUNS_SHORT} if always_sends(flow) else flow.doubts
    order = sorted(doubts, key=list(Freedom).index)
    for count in range(1, len(order) + 1):
        for used in combinations(order, count):
            yield _read_again(flow, flow.reading | frozenset(used))


def read_with_habits(flow: Flow, names: Iterable[str]) -> Flow:
    """The flow of an implementation with habits that are no freedoms (see :class:`.Habit`)."""
    return _read_again(flow, frozenset(map(Habit, names)))


def _read_again(flow: Flow, reading: frozenset[Freedom | Habit]) -> Flow:
    other = Flow(flow.tester, flow.iut, flow.timing_error, reading=reading)
    replayed(other, flow.source)
    other.listening, other.whole = flow.listening, flow.whole
    other.eldest, other.alike = flow.eldest, flow.alike
    other.segment = largest_sent(other)
    return other
