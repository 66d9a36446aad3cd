"""The ring and deficit round robin, with flows that only count (section 9.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from bentpipe_reference.rwbp.scheduler import DeficitRoundRobin, Entry, RoundRobin
from bentpipe_reference.tcp.wire.segment import Segment


class Source:
    """A flow with so many packets to send."""

    def __init__(self, number: int, packets: int = 0, octets: int = 1000) -> None:
        self.number = number
        self.packets = packets
        self.octets = octets

    def can_send(self) -> bool:
        return self.packets > 0

    def next_octets(self) -> int:
        return self.octets

    def serve(self, now: float) -> Segment:
        self.packets -= 1
        return Segment(0, 0, self.number, 0, payload=bytes(self.octets - 40))


class Ring:
    """A scheduler with flows."""

    def __init__(self, scheduler: RoundRobin, *sources: Source) -> None:
        self.scheduler = scheduler
        self.sources = list(sources)
        self.entries: list[Entry] = [scheduler.add(source) for source in sources]

    def give(self, number: int, packets: int) -> None:
        self.sources[number].packets += packets
        self.scheduler.wake(self.entries[number])

    def take(self, packets: int) -> list[int]:
        taken = (self.scheduler.take(0.0) for _ in range(packets))
        return [segment.sport for segment in taken if segment is not None]


def ring(flows: int) -> Ring:
    return Ring(RoundRobin(), *(Source(n) for n in range(flows)))


def test_turns_when_all_can_send_go_round_in_the_order_of_opening() -> None:
    it = ring(4)
    for number in (2, 0, 3, 1):
        it.give(number, 3)
    assert it.take(12) == [0, 1, 2, 3] * 3
    assert it.take(1) == []


def test_turns_begin_behind_the_flow_served_last_although_all_were_idle() -> None:
    """RWBP-SC-001."""
    it = ring(4)
    it.give(1, 1)
    assert it.take(9) == [1]
    for number in (0, 1, 2, 3):
        it.give(number, 1)
    assert it.take(9) == [2, 3, 0, 1]


def test_flow_when_it_wakes_behind_the_last_one_served_has_its_turn_in_this_round() -> None:
    it = ring(5)
    it.give(1, 5)
    it.give(4, 5)
    assert it.take(1) == [1]
    it.give(2, 1)
    it.give(0, 1)
    assert it.take(5) == [2, 4, 0, 1, 4]


def test_flow_when_it_cannot_send_any_more_is_passed_over() -> None:
    it = ring(3)
    for number in range(3):
        it.give(number, 5)
    assert it.take(2) == [0, 1]
    it.sources[2].packets = 0
    assert it.take(3) == [0, 1, 0]
    it.give(2, 1)
    assert it.take(2) == [1, 2]


def test_flow_when_deleted_leaves_the_ring() -> None:
    it = ring(3)
    for number in range(3):
        it.give(number, 5)
    it.scheduler.remove(it.entries[1])
    it.scheduler.wake(it.entries[1])
    assert it.take(4) == [0, 2, 0, 2]


def test_flow_when_woken_often_has_one_place() -> None:
    it = ring(2)
    for _ in range(5):
        it.give(0, 1)
        it.give(1, 1)
    assert it.take(11) == [0, 1] * 5


def octets(it: Ring, packets: int) -> Counter[int]:
    sent = Counter[int]()
    for number in it.take(packets):
        sent[number] += it.sources[number].octets
    return sent


@pytest.mark.parametrize("small", [40, 100, 512, 999])
def test_octets_when_packets_differ_are_shared_within_a_quantum_and_a_packet(small: int) -> None:
    """RWBP-SC-003."""
    it = Ring(DeficitRoundRobin(1500), Source(0, octets=1500), Source(1, octets=small))
    it.give(0, 10_000)
    it.give(1, 100_000)
    for _ in range(200):
        sent = octets(it, 7)
        it.total = getattr(it, "total", Counter()) + sent  # type: ignore[attr-defined]
        assert abs(it.total[0] - it.total[1]) <= 1500 + 1500  # type: ignore[attr-defined]


def test_deficit_when_a_flow_becomes_idle_is_gone() -> None:
    it = Ring(DeficitRoundRobin(1500), Source(0, octets=100), Source(1, octets=1000))
    it.give(0, 1)
    assert it.take(5) == [0]
    it.give(1, 3)
    it.give(0, 40)
    assert it.take(17) == [1, *[0] * 15, 1]


def looks(flows: int, busy: Iterable[int], turns: int) -> tuple[Counter[int], list[int]]:
    """How often each of some flows is asked whether it can send, and who is served."""
    it = ring(flows)
    looked = Counter[int]()

    class Looking(Source):
        def can_send(self) -> bool:
            looked[self.number] += 1
            return super().can_send()

    it.scheduler = RoundRobin()
    it.sources = [Looking(number) for number in range(flows)]
    it.entries = [it.scheduler.add(source) for source in it.sources]
    for number in busy:
        it.give(number, 100)
    return looked, it.take(turns)


@pytest.mark.parametrize("flows", [10, 10_000])
def test_turn_among_busy_flows_asks_as_many_whatever_their_number(flows: int) -> None:
    looked, served = looks(flows, range(flows), 500)
    assert served == [turn % flows for turn in range(500)]
    assert looked.total() < 3 * 500 + flows


def test_turn_beside_idle_flows_asks_none_of_them() -> None:
    looked, served = looks(10_000, (5, 6000), 200)
    assert served == [5, 6000] * 100
    assert set(looked) == {5, 6000}
    assert looked.total() < 3 * 200
