"""The sender half of a connection with RWBP: section 8 beside the implementation's own."""

from __future__ import annotations

from bentpipe_conformance.protocols.rwbp.codec import LARGEST_WINDOW, Rwbp
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S, Packet
from bentpipe_conformance.protocols.rwbp.replay.estimate import Estimate
from bentpipe_conformance.protocols.rwbp.replay.events import (
    Ack,
    Expiry,
    Missed,
    Outgoing,
    Probe,
    Segment,
    Sent,
    Stall,
    Why,
)
from bentpipe_conformance.protocols.rwbp.replay.outstanding import Outstanding
from bentpipe_conformance.protocols.tcp.replay.direction import Direction

FALL_BACK = 3
"""False losses after which K is 3, and the K that it then is (section 8.5)."""

REACTION_S = 0.02
"""Beyond this time after an arrival a retransmission was timed."""

TICK_S = 0.011
"""What a timer may seem to be early or late against the capture's clock: a tick of 100 Hz."""

JUDGED_OCTETS = 16384
"""A sender may have to stop with more outstanding, for want of buffers."""


class Sender:
    """Replays the sender half.

    Attributes:
        unit: the unit of the peer's window fields.
        smss: SMSS as far as the peer's SYN tells.
        edge: SND.EDGE.
        una, nxt: SND.UNA and SND.NXT.
        estimate: RTO.
        slack: seconds by which the order of an arrival and a departure may be wrong.
        expiries, missed, stalls, probes: what was found.
        endless: whether its user always has more to write.
        written: offset up to which its user has surely written, where that is known.
        closing: whether its user has closed behind that.
        buffer: octets that its send buffer surely holds.
        patience: seconds after which what may be sent should have left.
        ready: times from which on it surely could, or could not, use a turn of the scheduler.
    """

    def __init__(self, iss: int, slack: float) -> None:
        self.unit, self.smss, self.edge = 1, 536, 0
        self.una = self.nxt = 0
        self.slack = slack
        self.estimate = Estimate(slack)
        self.expiries: list[Expiry] = []
        self.missed: list[Missed] = []
        self.stalls: list[Stall] = []
        self.probes: list[Probe] = []
        self.endless = False
        self.written: int | None = None
        self.closing = False
        self.buffer = JUDGED_OCTETS
        self.patience = AT_ONCE_S + slack
        self.ready: list[tuple[float, bool]] = []
        self.fin: int | None = None
        self.outstanding = Outstanding()
        self.k = 1
        self._out = Direction(iss)
        self._tx = 0
        self._first = [0, 0, 0]
        self._false = 0
        self._backoff = self._tx_timeout = 0
        self._timer: Expiry | None = None
        self._last_ack: Ack | None = None
        self._losses = False
        self._sendable: Segment | None = None
        self._room = 0
        self._probing: Probe | None = None
        self._probes = 0

    def offset(self, sequence: int) -> int:
        """A sequence number of the IUT's direction as an offset."""
        return self._out.offset(sequence)

    @property
    def h(self) -> int:
        """H."""
        return self._first[0] if self.k == 1 else self._first[2]

    @property
    def lowest(self) -> Outgoing | None:
        """The lowest outstanding segment."""
        return self.outstanding.lowest

    # -- time

    def passed(self, now: float) -> None:
        """It is ``now``: note what should have left before."""
        late = self.patience
        for item in self.outstanding.overdue(now - late):
            cause = item.cause if item.reason is Why.LOST else None
            self.missed.append(Missed(item, cause, now))
            item.suspect = False
        if self._sendable is not None and now > self._sendable.time + late:
            room = self._room
            self.stalls.append(Stall(self._sendable, now, self.nxt, self.edge, room, self._losses))
            self._sendable = None

    def finish(self, now: float) -> None:
        """The trace ends, or the connection does."""
        self.passed(now)
        self._give_up_waiting(now)
        if self._probing is not None:
            self._probing.until = now
            self.probes.append(self._probing)
            self._probing = None
        self._sendable = None
        self._timer = None

    def _give_up_waiting(self, now: float) -> None:
        """Something ends the run of the timer; should it have expired before?"""
        timer = self._timer
        if timer is not None and now > timer.started.time + timer.most + AT_ONCE_S + self.slack:
            timer.until = now
            self.expiries.append(timer)

    def _start_timer(self, at: Segment, why: str) -> None:
        lowest = self.lowest
        self._timer = None
        if lowest is not None:
            least, most = self.estimate.timeout(self._backoff)
            gap = self.estimate.gap(self._backoff)
            self._timer = Expiry(at, why, least, most, gap, self._backoff, lowest, [], 0.0)

    # -- leaving

    def leaving(self, packet: Packet, tcp: Rwbp) -> Sent:
        """A segment with data or FIN left the IUT."""
        start = self.offset(tcp.seq)
        end, now = start + tcp.length, packet.time
        before = self.outstanding.before(start, now - self.slack)
        cause = self._last_ack
        sent = Sent(
            packet, start, end, tcp.size, Why.NOTHING, self.outstanding.at(start), self.una,
            self.nxt, self.edge, before, cause,
            now - cause.time if cause is not None else float("inf"), self.available(),
        )  # fmt: skip
        if cause is not None:
            cause.responses.append(sent)
        self._tx += 1
        if start == self.nxt:
            sent.why = Why.NEW
            item = Outgoing(start, end, tcp.size, self._tx, self._tx, now)
            sent.outgoing = item
            self.outstanding.add(item)
            self.nxt = end
            self._out.saw(end)
            if sent.fin:
                self.fin = end
        else:
            self._again(sent, now)
        if sent.outgoing is not None:
            sent.outgoing.lt = self._tx
            sent.outgoing.last_sent = now
            sent.outgoing.transmissions.append(sent)
            self.outstanding.transmitted(sent.outgoing)
        if self._timer is None:
            self._start_timer(sent, "sent")
        self._sendable = None
        self.look(sent)
        return sent

    def _again(self, sent: Sent, now: float) -> None:
        item = sent.outgoing
        if sent.start > self.nxt:
            sent.why = Why.BEYOND
            sent.outgoing = None
        elif item is None or item.end != sent.end:
            left = max(sent.start, self.una)  # an acknowledgment may end amid a segment
            arrived = sent.end <= left or self.outstanding.has_arrived(left, sent.end)
            sent.why = Why.ARRIVED if arrived else Why.RECUT
            sent.outgoing = None
        elif item.copies:
            sent.why = item.reason
            self.outstanding.sent_again(item)
            if sent.why is Why.TIMEOUT and self.expiries:
                self.expiries[-1].copies.append(sent)
            if item.suspect and item.repaired is None:
                item.repaired = now
        elif self._expires(sent, now):
            sent.why = Why.TIMEOUT
            item.reason = Why.TIMEOUT
            self.outstanding.await_copies(item, 1, now)

    def _expires(self, sent: Sent, now: float) -> bool:
        """Whether a retransmission shows that the timer has expired; note it."""
        timer = self._timer
        if timer is None or sent.outgoing is not self.lowest:
            return False
        ran = now - timer.started.time
        error = TICK_S + self.slack
        due = timer.least - error <= ran <= timer.most + AT_ONCE_S + error
        if not due and sent.since_cause <= REACTION_S + self.slack:
            return False
        assert sent.outgoing is not None
        timer.until, timer.outgoing = now, sent.outgoing
        timer.copies.append(sent)
        self.expiries.append(timer)
        self._backoff += 1
        self._tx_timeout = self._tx - 1
        self._losses = True
        self._start_timer(sent, "timeout")
        return True

    def available(self) -> float | None:
        """Octets that wait to be sent, None where that is not known."""
        if self.endless:
            return float("inf")
        if self.written is None:
            return None
        return max(0, min(self.written, self.una + self.buffer) - self.nxt)

    # -- arriving

    def arriving(self, packet: Packet, tcp: Rwbp, acceptable: bool) -> Ack:
        """A segment with ACK flag reached the IUT (section 8.3)."""
        now = packet.time
        number = self.offset(tcp.ack)
        refused = acceptable and not self.una - LARGEST_WINDOW <= number <= self.nxt
        edges = tuple((self.offset(a), self.offset(b)) for a, b in tcp.sack)
        floor = max(self.una, number)
        true = tuple((a, b) for a, b in edges if floor < a < b <= self.nxt)
        ack = Ack(
            packet, number, acceptable and not refused, refused, self.una, self.nxt, self.edge,
            self.edge, true, tuple(block for block in edges if block not in true), k=self.k,
        )  # fmt: skip
        if ack.counts:
            self._count(ack, now)
        self._last_ack = ack
        return ack

    def named(self, ack: Ack) -> int:
        """The edge that an acknowledgment names, whether it counts or not."""
        return ack.ack + min(ack.tcp.window * self.unit, LARGEST_WINDOW)

    def _count(self, ack: Ack, now: float) -> None:
        self.edge = ack.edge_after = max(self.edge, self.named(ack))
        arrived = self.outstanding.reported(ack.ack, ack.blocks)
        self.una = max(self.una, ack.ack)
        if arrived:
            self._arrive(ack, arrived, now)
        self.outstanding.acknowledged(self.una)
        self.look(ack)

    def _arrive(self, ack: Ack, arrived: tuple[Outgoing, ...], now: float) -> None:
        ack.arrived, k, h = arrived, self.k, self.h
        highest = arrived[-1]
        if highest.ft == highest.lt and highest.ft > self._tx_timeout:
            self.estimate.sample(now - highest.last_sent)
        ack.false = tuple(item for item in arrived if self._was_false(item, now))
        ack.repeated = tuple(item for item in arrived if self._was_repeated(item, now))
        self._false += len(ack.false)
        if self._false >= FALL_BACK:
            self.k = FALL_BACK
        self._first = sorted((*self._first, *(item.ft for item in arrived)), reverse=True)[:3]
        for item in arrived:
            item.arrived = ack
            self.outstanding.remove(item)
        self._backoff = 0
        self._give_up_waiting(now)
        self._start_timer(ack, "progress")
        ack.k = self.k
        ack.rose = self.k == k and self.h > h
        if ack.rose:
            ack.taken = self.outstanding.sent_before(self.h)
        if self.k > 1:
            ack.spared = self.outstanding.sent_between(self.h, self._first[0])
        for item in ack.taken:
            item.reason = Why.LOST
            self.outstanding.await_copies(item, 1, now)
            item.suspect, item.repaired, item.cause = True, None, ack
            self._losses = True

    def _was_false(self, item: Outgoing, now: float) -> bool:
        """Section 8.5."""
        if not item.suspect:
            return False
        return item.repaired is None or self._is_soon(item.repaired, now)

    def _was_repeated(self, item: Outgoing, now: float) -> bool:
        timed = item.transmissions[-1].why is Why.TIMEOUT
        return timed and self._is_soon(item.last_sent, now)

    def _is_soon(self, sent: float, now: float) -> bool:
        """Whether less than half a round trip has passed."""
        least = self.estimate.least
        return least is not None and now - sent < least / 2

    # -- what there is to send

    def look(self, at: Segment) -> None:
        """Something has happened: is there anything to send, and room for it?"""
        available = self.available()
        if available is None or self.fin is not None:
            self.note_ready(at.time, False)
            self._sendable = None
            self._ends_probing(at)
            return
        octets = int(min(available, self.smss))
        room = self.edge - self.nxt
        held = self.outstanding.numbers
        fits = octets > 0 and self._next_octets() <= room and held + octets <= self.buffer
        self.note_ready(at.time, fits)
        if not fits:
            self._sendable = None
        elif self._sendable is None:
            self._sendable, self._room = at, octets
        # A FIN alone takes a number, too, and its user may have closed at once only (section 2).
        if room < (octets or int(self.closing)) and not self.outstanding:
            if self._probing is None:
                self._probes = 0
                self._await_probe(at, 0.0 if octets else AT_ONCE_S)
        else:
            self._ends_probing(at)

    def note_ready(self, time: float, fits: bool) -> None:
        """From now on it could, or could not, use a turn."""
        if not self.ready or self.ready[-1][1] is not fits:
            self.ready.append((time, fits))

    def _next_octets(self) -> float:
        """Octets of the next segment at most: its send buffer may hold more than it surely does."""
        if self.endless or self.written is None:
            return self.smss
        return min(self.smss, self.written - self.nxt)

    def _await_probe(self, at: Segment, late: float = 0.0) -> None:
        least, most = self.estimate.timeout(self._probes)
        self._probing = Probe(at, None, at.time, least, most + late, self._probes)

    def _ends_probing(self, at: Segment) -> None:
        probing = self._probing
        if probing is not None:
            probing.until = at.time
            self.probes.append(probing)
        self._probing = None

    def probed(self, segment: Segment) -> None:
        """A segment of the form of a probe left."""
        probing = self._probing
        if probing is not None:
            probing.segment, probing.until = segment, segment.time
            self.probes.append(probing)
            self._probes += 1
            self._await_probe(segment)
