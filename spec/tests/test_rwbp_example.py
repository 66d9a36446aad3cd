"""The worked exchange of RWBP/1, appendix A, carried out by sections 7 and 8 read literally.

Segments are numbered from 1 and have one number each; windows and queues are never full.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bentpipe_spec.document import specification

ONE_WAY = 0.25
GAP = 0.01
ACK_DELAY = 0.1
INTERVAL = 8
WRITES = {0.0: 6, 0.7: 4, 1.4: 4}
LOST = {2, 4, 8, 13, 15}
"""Transmissions that do not arrive."""


@dataclass
class Outstanding:
    """What section 2 has the sender know of a segment."""

    ft: int
    lt: int
    copies: int = 0


@dataclass
class Exchange:
    """A sender, a receiver and the FIFO link between them, as an agenda of events."""

    lines: list[str] = field(default_factory=list)
    outstanding: dict[int, Outstanding] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    tx: int = 0
    f1: int = 0
    next_new: int = 1
    rcv_nxt: int = 1
    unacked: int = 0
    last: int = 0
    timer: float | None = None
    free_at: float = 0.0
    _agenda: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    _count: int = 0

    def at(self, time: float, do: Callable[[float], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (round(time, 6), self._count, do))

    def run(self) -> list[str]:
        for time, segments in WRITES.items():
            self.at(time, lambda now, count=segments: self.write(count, now))  # type: ignore[misc]
        while self._agenda:
            time, _, do = heapq.heappop(self._agenda)
            do(time)
        return self.lines

    def say(self, now: float, text: str) -> None:
        self.lines.append(f"{now:.2f}  {text}".rstrip())

    # -- the sender, section 8 ----------------------------------------------------------------

    def write(self, count: int, now: float) -> None:
        self.waiting += range(self.next_new, self.next_new + count)
        self.next_new += count
        self.output(now)

    def output(self, now: float) -> None:
        """Section 8.2, one segment for each GAP."""
        if now < self.free_at:
            return
        due = sorted(number for number, segment in self.outstanding.items() if segment.copies)
        if not due and not self.waiting:
            return
        self.tx += 1
        tx = self.tx
        if due:
            number = due[0]
            self.outstanding[number].copies -= 1
            self.outstanding[number].lt = tx
        else:
            number = self.waiting.pop(0)
            self.outstanding[number] = Outstanding(tx, tx)
        fate = "lost" if tx in LOST else "->"
        self.say(now, f"segment {number:<2} TX {tx:<2} {fate}")
        self.free_at = round(now + GAP, 6)
        self.at(self.free_at, self.output)
        if tx not in LOST:
            self.at(now + ONE_WAY, lambda then: self.arrive(number, then))

    def acknowledged(self, ack: int, blocks: tuple[tuple[int, int], ...], now: float) -> None:
        """Section 8.3, steps 2 to 5."""
        arrived = {
            number
            for number in self.outstanding
            if number < ack or any(left <= number < right for left, right in blocks)
        }
        before = self.f1
        for number in arrived:
            self.f1 = max(self.f1, self.outstanding.pop(number).ft)
        taken = []
        if self.f1 > before:
            for number, segment in sorted(self.outstanding.items()):
                if not segment.copies and segment.lt < self.f1:
                    segment.copies = 1
                    taken.append(number)
        told = f"  taken for lost: {', '.join(map(str, taken))}" if taken else ""
        self.say(now, f"{'':19}*  F1 = {self.f1}{told}")
        self.output(now)

    # -- the receiver, section 7 --------------------------------------------------------------

    def arrive(self, number: int, now: float) -> None:
        """Section 7.1."""
        top = max(self.held, default=self.rcv_nxt - 1) + 1
        orderly = number == top
        self.last = number
        self.held.add(number)
        while self.rcv_nxt in self.held:
            self.held.remove(self.rcv_nxt)
            self.rcv_nxt += 1
        if orderly:
            self.unacked += 1
        if not orderly or self.unacked >= INTERVAL:
            self.acknowledge(now)
        elif self.timer is None:
            self.timer = round(now + ACK_DELAY, 6)
            self.at(self.timer, self.expire)

    def expire(self, now: float) -> None:
        if self.timer == now:
            self.acknowledge(now)

    def runs(self) -> Iterator[tuple[int, int]]:
        for first in sorted(self.held):
            if first - 1 not in self.held:
                end = first
                while end in self.held:
                    end += 1
                yield first, end

    def acknowledge(self, now: float) -> None:
        """Section 7.2; there are never more than two runs."""
        runs = sorted(self.runs(), reverse=True)
        assert len(runs) <= 2
        runs.sort(key=lambda run: not run[0] <= self.last < run[1])
        self.unacked, self.timer = 0, None
        ack, blocks = self.rcv_nxt, tuple(runs)
        told = ", ".join(f"[{left}, {right})" for left, right in blocks)
        self.say(now, f"{'':19}<- ACK {ack}" + (f", blocks {told}" if told else ""))
        self.at(now + ONE_WAY, lambda then: self.acknowledged(ack, blocks, then))


def test_the_exchange_of_figure_3_is_what_sections_7_and_8_make_of_it() -> None:
    exchange = Exchange()
    lines = exchange.run()
    assert not exchange.outstanding and exchange.rcv_nxt == 15
    printed = "".join(f"   {line}\n" for line in lines)
    assert printed in specification("rwbp"), printed


def test_segment_4_is_lost_three_times_and_no_timer_expires() -> None:
    exchange = Exchange()
    lines = exchange.run()
    of_4 = [line for line in lines if "segment 4 " in line]
    assert [line.endswith("lost") for line in of_4] == [True, True, True, False]
    assert exchange.tx == 14 + len(LOST)


# -- the small examples of the text ------------------------------------------------------------


def folded() -> str:
    return " ".join(specification("rwbp").split())


def test_the_edge_of_section_6_1_stands_while_a_part_of_a_unit_is_unread() -> None:
    unit, room, edge = 1000, 4000, 0
    told = []
    for rcv_nxt, rcv_user in ((1, 1), (101, 1), (101, 101)):
        field = min(65535, 2**30 // unit, (rcv_user + room - rcv_nxt) // unit)
        edge = max(edge, rcv_nxt + field * unit)
        told.append((field, edge))
    assert told == [(4, 4001), (3, 4001), (4, 4101)]
    example = folded().partition("Example: UNIT 1,000")[2].partition("RWBP-WN-001")[0]
    for number in ("the edge is 4,001", "W = floor(3,900 / 1,000) = 3", "3,101", "is 4,101"):
        assert number in example


def listed(runs: list[int], last: int, rotation: int) -> tuple[list[int], int]:
    """Section 7.2, with runs named by their first numbers, and the new RCV.ROT."""
    blocks = [last]
    blocks.append(max(run for run in runs if run not in blocks))
    others = [run for run in runs if run not in blocks]
    start = next((at for at, run in enumerate(others) if run > rotation), 0)
    turned = (others[start:] + others[:start])[: 4 - len(blocks)]
    return blocks + turned, turned[-1]


def test_the_blocks_of_section_7_2_come_round() -> None:
    runs = [20, 30, 40, 50, 60, 70]
    first, rotation = listed(runs, 40, 30)
    second, _ = listed(runs, 40, rotation)
    assert (first, rotation, second) == ([40, 70, 50, 60], 60, [40, 70, 20, 30])
    example = folded().partition("Example: the runs begin at")[2]
    assert "those of 40, 70, 50 and 60, and RCV.ROT becomes 60" in example
    assert "the next ones are 40, 70, 20 and 30." in example


def test_the_first_call_of_appendix_a_names_its_edges() -> None:
    room, unit = 292_000, 1460
    assert room // unit == 200 and room % unit == 0
    assert room - 65535 >= room / 2
    assert "window 200 (292,000 octets)" in folded()
    assert room >> 3 == 36500 and "window 36500 (with Window Scale 3)" in folded()
