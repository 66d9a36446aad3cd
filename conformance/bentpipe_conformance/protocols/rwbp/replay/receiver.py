"""The receiver half of a connection with RWBP: section 7 beside the implementation's own."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.engine.lane import SIMULATION_ERROR_S
from bentpipe_conformance.protocols.rwbp.codec import Rwbp
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S, Packet
from bentpipe_conformance.protocols.rwbp.replay.events import Arrival, Call, Due, Reply
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN
from bentpipe_conformance.protocols.tcp.replay.direction import Direction

BLOCKS = 4
"""SACK blocks of an acknowledgment at most (section 7.2)."""

DELAY_S = 0.1
"""The acknowledgment timer, RWBP-AK-002."""

REMINDER_S = 1.0
"""A reminder may be left out for so long after another one, RWBP-AK-003."""


def listed_blocks(
    runs: tuple[Range, ...], last: int, rotation: int
) -> tuple[tuple[Range, ...], int]:
    """The blocks that section 7.2 gives, and RCV.ROT after them."""
    if not runs:
        return (), rotation
    found = [run for run in runs if run[0] <= last < run[1]]
    found += [run for run in runs if run not in found][-1:]
    others = [run for run in runs if run not in found]
    turned = [run for run in others if run[0] > rotation]
    turned += [run for run in others if run[0] <= rotation]
    turned = turned[: BLOCKS - len(found)]
    return (*found, *turned), turned[-1][0] if turned else rotation


@dataclass(slots=True)
class _Owed:
    """An acknowledgment that is due."""

    call: Call
    arrival: Arrival
    limit: float
    reminder: bool


class Receiver:
    """Replays the receiver half.

    Attributes:
        interval: N, which the tester asks for.
        unit: the unit of the IUT's window fields.
        nxt, edge, top, last: RCV.NXT, RCV.EDGE, RCV.TOP and RCV.LAST.
        late: the acknowledgments that did not come in time.
        fin: the number of the FIN that has arrived, None before.
        over: whether the connection answers no more.
        spared: numbers of the packets whose reminder may be left out.
    """

    def __init__(self, irs: int, slack: float) -> None:
        self.interval, self.unit = 8, 1
        self.nxt = self.edge = self.top = 0
        self.named = 0
        self.last = -1
        self.fin: int | None = None
        self.over = False
        self.late: list[Due] = []
        self._slack = slack
        self._into = Direction(irs)
        self._runs = RangeSet()
        self._rotation = -1
        self._counted: list[Arrival] = []
        self._timer: Arrival | None = None
        self.spared: set[int] = set()
        self._owed: deque[_Owed] = deque()
        self._spare: deque[_Owed] = deque()
        self._reminded = -math.inf
        self._incomplete: deque[tuple[float, int]] = deque()
        self._states: deque[tuple[float, int, tuple[Range, ...], int]] = deque()

    @property
    def runs(self) -> tuple[Range, ...]:
        """The runs, lowest first."""
        return self._runs.snapshot()

    @property
    def delivered(self) -> int:
        """RCV.NXT, a FIN not counted: less than that if the FIN has been received in sequence."""
        return self.nxt if self.fin is None else min(self.nxt, self.fin)

    def offset(self, sequence: int) -> int:
        """A sequence number of the tester's direction as an offset."""
        return self._into.offset(sequence)

    def acceptable(self, tcp: Rwbp) -> bool:
        """The sequence check of RFC 9293 section 3.10.7.4, with RCV.EDGE (RWBP-WN-004)."""
        start, length = self.offset(tcp.seq), tcp.length
        if not length and not tcp.flags & RST:
            return self.nxt <= start <= self.edge  # RWBP-WN-013
        if self.edge <= self.nxt:
            return not length and start == self.nxt
        if not length:
            return self.nxt <= start < self.edge
        return start < self.edge and self.nxt < start + length

    # -- time

    def passed(self, now: float) -> None:
        """It is ``now``: note what should have left before."""
        while self._owed and now > self._owed[0].limit + self._slack:
            owed = self._owed.popleft()
            self.late.append(Due(owed.call, owed.arrival, now, owed.limit))
        while self._spare and now > self._spare[0].limit + self._slack:
            self._spare.popleft()
        if self._timer is not None:
            limit = self._timer.time + DELAY_S + AT_ONCE_S
            if now > limit + self._slack:
                self.late.append(Due(Call.TIMER, self._timer, now, limit))
                self._timer = None

    # -- arriving

    def arriving(self, packet: Packet, tcp: Rwbp, refused: bool) -> Arrival | None:
        """A segment reached the IUT; ``refused`` if RWBP-EC-015 discards it."""
        start = self.offset(tcp.seq)
        acceptable = self.acceptable(tcp)
        arrival = Arrival(
            packet, start, start + tcp.length, tcp.size, acceptable, False, self.nxt, self.edge,
            self.named, self.runs,
        )  # fmt: skip
        if tcp.flags & RST:
            if self.nxt < start < self.edge:
                self._call(arrival, Call.CHALLENGE)
        elif not acceptable:
            if tcp.length and not tcp.flags & SYN:
                self.last = start
            self._call(arrival, Call.UNACCEPTABLE, reminder=not tcp.length)
        elif tcp.flags & SYN:
            self._call(arrival, Call.CHALLENGE)
        elif refused:
            self._call(arrival, Call.REFUSED, reminder=True)
        elif tcp.flags & ACK and tcp.length:
            self._take(arrival, tcp)
        arrival.expected_after, arrival.runs_after = self.nxt, self.runs
        self._states.append((packet.time, self.nxt, self.runs, self.last))
        interesting = tcp.length or arrival.calls is not None
        return arrival if interesting else None

    def _take(self, arrival: Arrival, tcp: Rwbp) -> None:
        start, data_end = arrival.start, arrival.start + tcp.size
        fin = self.fin
        arrival.orderly = start == self.top and arrival.end <= self.edge and fin is None
        self.last = start
        self._into.saw(start)
        stop = min(data_end, self.edge, self.edge if fin is None else fin)
        self._runs.add(max(start, self.nxt), stop)
        if max(start, self.nxt) < stop:
            self.top = max(self.top, stop)
        if tcp.flags & FIN and fin is None and self.top <= data_end < self.edge:
            self.fin = data_end
        self._advance()
        if not arrival.orderly or tcp.flags & FIN:
            self._call(arrival, Call.FIN if tcp.flags & FIN else Call.DISORDER)
            return
        self._counted.append(arrival)
        if len(self._counted) >= self.interval:
            if not any(owed.call is Call.COUNT for owed in self._owed):
                self._call(arrival, Call.COUNT)
        elif self._timer is None:
            self._timer = arrival

    def _advance(self) -> None:
        while self.runs and self.runs[0][0] <= self.nxt:
            self.nxt = max(self.nxt, self.runs[0][1])
            self._runs.remove_below(self.nxt)
        if self.nxt == self.fin:
            self.nxt += 1
        self._rotation = max(self._rotation, self.nxt)
        self._into.saw(max(self.top, self.nxt))

    def _call(self, arrival: Arrival, call: Call, *, reminder: bool = False) -> None:
        if self.over:
            return
        arrival.calls = call
        owed = _Owed(call, arrival, arrival.time + AT_ONCE_S, reminder)
        # A tester that asks once a second meets the very end of the second.
        tie = REMINDER_S + max(self._slack, SIMULATION_ERROR_S)
        recent = arrival.time - self._reminded < tie
        if reminder and (recent or any(other.reminder for other in self._owed)):
            self.spared.add(arrival.packet.number)
            self._spare.append(owed)
        else:
            self._owed.append(owed)

    def opening(self, packet: Packet, call: Call, *, certainly: bool) -> None:
        """A SYN or SYN-ACK of the handshake reached the IUT, which acknowledges it.

        ``certainly`` where a SYN-ACK answers its call: who gets one after SYNs that crossed, or
        another SYN in SYN-RECEIVED, may say its own SYN again or go back to LISTEN instead.
        """
        arrival = Arrival(packet, -1, 0, 0, True, False, 0, self.edge, self.edge, ())
        if certainly:
            self._call(arrival, call)
        else:
            limit = arrival.time + AT_ONCE_S
            self._spare.append(_Owed(call, arrival, limit, reminder=False))

    # -- leaving

    def leaving(self, packet: Packet, tcp: Rwbp, start: int, snd_nxt: int) -> Reply:
        """A segment with ACK flag, without SYN and RST, left the IUT, SND.NXT being ``snd_nxt``."""
        ack, pure = self.offset(tcp.ack), not tcp.length
        self._forget(packet.time)
        _, nxt, runs, last = self._seen(packet.time, ack)
        listed, rotation = listed_blocks(runs, last, self._rotation)
        blocks = tuple((self.offset(a), self.offset(b)) for a, b in tcp.sack)
        edge = ack + tcp.window * self.unit
        # Only a pure acknowledgment at SND.NXT - 1 can be a probe.
        probe = pure and start == snd_nxt - 1
        reply = Reply(
            packet, ack, tcp.window, edge, blocks, tcp.size, start, pure, nxt, runs, listed,
            self.edge, self._called(packet.time), None, None,
            packet.time - self._timer.time if self._timer is not None else None, probe,
        )  # fmt: skip
        self.edge, self.named = max(self.edge, edge), edge
        if pure or (not runs and start >= snd_nxt):
            self._answered(reply)
            self._incomplete.clear()
        else:
            self._incomplete.append((packet.time, reply.edge_before))
        if pure:
            self._rotation = blocks[-1][0] if len(blocks) > 2 else rotation
            if len(blocks) <= 2 and listed[:2] == blocks:
                self._rotation = rotation
        return reply

    def _called(self, now: float) -> int:
        """RCV.EDGE when what leaves now may have been called for."""
        while self._incomplete and now > self._incomplete[0][0] + AT_ONCE_S + self._slack:
            self._incomplete.popleft()
        return self._incomplete[0][1] if self._incomplete else self.edge

    def _forget(self, now: float) -> None:
        """Forget the states that are too old to be seen in a segment that leaves now."""
        while len(self._states) > 1 and self._states[0][0] < now - self._slack:
            self._states.popleft()

    def _seen(self, now: float, ack: int) -> tuple[float, int, tuple[Range, ...], int]:
        current = (now, self.nxt, self.runs, self.last)
        if not self._slack or ack == self.nxt:
            return current
        return next((state for state in self._states if state[1] == ack), current)

    def _answered(self, reply: Reply) -> None:
        """A complete acknowledgment left (section 7.1)."""
        queue = self._owed or self._spare
        if queue and not self._crossed(reply, queue[0]):
            owed = queue.popleft()
            if owed.reminder:
                self._reminded = reply.time
            reply.calls, reply.arrival = owed.call, owed.arrival
            owed.arrival.answer = reply
            if not reply.pure or owed.call is Call.COUNT:
                self._owed.clear()
        elif reply.delay is not None and reply.delay >= DELAY_S - self._slack - 1e-6:
            reply.calls, reply.arrival = Call.TIMER, self._timer
        # What is not in it, though it arrived a moment before, was processed after it had left.
        late = reply.time - self._slack
        self._counted = [
            item for item in self._counted
            if self._slack and item.time >= late and not _tells(reply, item)
        ]  # fmt: skip
        self._timer = self._counted[0] if self._counted else None

    def _crossed(self, reply: Reply, owed: _Owed) -> bool:
        """Whether a reply left before the arrival was processed that was captured before it."""
        arrival = owed.arrival
        told = owed.call in (Call.COUNT, Call.DISORDER, Call.FIN)
        if not told or not self._slack or reply.time - arrival.time > self._slack:
            return False
        if arrival.expected_after > arrival.expected:
            return reply.ack < arrival.expected_after
        news = arrival.runs_after != arrival.runs
        return news and not any(a <= arrival.start < b for a, b in reply.blocks)


def _tells(reply: Reply, arrival: Arrival) -> bool:
    """Whether an acknowledgment covers a segment."""
    start, end = arrival.start, arrival.end
    return reply.ack >= end or any(a <= start and end <= b for a, b in reply.blocks)
