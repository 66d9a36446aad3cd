"""Mutants of the scheduler and of the link rate (RWBP-FC, RWBP-SC, RWBP-LC; section 9)."""

from __future__ import annotations

from heapq import heappush

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import Credit
from bentpipe_reference.rwbp.mutants import mutant
from bentpipe_reference.rwbp.scheduler import DeficitRoundRobin, Entry, Flow, RoundRobin
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.wire.segment import Segment


@mutant("rwbp-window-greater-than-one", "next_end", breaks="RWBP-FC-003")
def more_than_one_unit(self: RwbpSender) -> int | None:
    """A segment is sent only while the window has room for more than one, as ZB03 has it."""
    end = RwbpSender.next_end(self)
    fills = end is not None and self.edge - self.snd_nxt <= self.smss
    return self.edge + 1 if fills else end


@mutant("rwbp-served-twice", breaks="RWBP-FC-005")
class ServedTwice(RoundRobin):
    """A connection is served twice before the next one."""

    _again: Entry | None = None

    def take(self, now: float) -> Segment | None:
        """See :class:`RoundRobin`."""
        again, self._again = self._again, None
        if again is not None and not again.removed and again.flow.can_send():
            return again.flow.serve(now)
        return super().take(now)

    def served(self, entry: Entry) -> None:
        """See :class:`RoundRobin`."""
        super().served(entry)
        self._again = entry


@mutant("rwbp-served-until-it-stops", "take", breaks="RWBP-FC-005")
def served_until_it_stops(self: ServedTwice, now: float) -> Segment | None:
    """A connection is served as long as it can send."""
    before = self._again
    segment = ServedTwice.take(self, now)
    self._again = self._again or before
    return segment


@mutant("rwbp-stalled-connection-holds-the-ring", breaks="RWBP-FC-007")
class HoldsTheRing(RoundRobin):
    """A connection whose window is closed keeps its turn until it opens."""

    _stalled: Entry | None = None

    def take(self, now: float) -> Segment | None:
        """See :class:`RoundRobin`."""
        if self._stalled is not None and self._is_stalled(self._stalled):
            return None
        return super().take(now)

    def served(self, entry: Entry) -> None:
        """See :class:`RoundRobin`."""
        super().served(entry)
        self._stalled = entry

    @staticmethod
    def _is_stalled(entry: Entry) -> bool:
        flow = entry.flow
        if entry.removed or not isinstance(flow, RwbpConnection):
            return False
        sender = flow.sender
        if not isinstance(sender, RwbpSender) or sender.can_send():
            return False
        return sender.next_end() is not None


@mutant("rwbp-ring-backwards", "add", breaks="RWBP-SC-001")
def backwards(self: RoundRobin, flow: Flow) -> Entry:
    """The ring goes from the connection opened last to the first."""
    entry = RoundRobin.add(self, flow)
    entry.place = (1 << 30) - entry.place
    return entry


@mutant("rwbp-ring-begins-anew", "wake", breaks="RWBP-SC-001")
def begins_anew(self: RoundRobin, entry: Entry) -> bool:
    """After an arrival the connection opened first has the next turn."""
    while self._next_round:
        following = self._next_round.pop()
        heappush(self._round.woken, (following.place, following))
    self._last = -1
    return RoundRobin.wake(self, entry)


@mutant("rwbp-retransmission-and-new-segment-in-a-turn", "served", breaks="RWBP-SC-002")
def new_beside_retransmission(self: ServedTwice, entry: Entry) -> None:
    """The turn of a retransmission has a new segment, too."""
    ServedTwice.served(self, entry)
    flow = entry.flow
    sender = flow.sender if isinstance(flow, RwbpConnection) else None
    repairs = isinstance(sender, RwbpSender) and sender.segments.due() is not None
    self._again = entry if repairs else None


@mutant("rwbp-packets-instead-of-octets", breaks="RWBP-SC-003", setting="drr")
class PacketsInsteadOfOctets(DeficitRoundRobin):
    """A turn is one packet, whatever its size."""

    def __init__(self, quantum: int) -> None:
        super().__init__(quantum)
        self._quantum = 0

    def take(self, now: float) -> Segment | None:
        """See :class:`DeficitRoundRobin`."""
        return RoundRobin.take(self, now)


@mutant("rwbp-four-quanta", breaks="RWBP-SC-003", setting="drr")
class FourQuanta(DeficitRoundRobin):
    """A turn is four times as long as declared."""

    def __init__(self, quantum: int) -> None:
        super().__init__(4 * quantum)


@mutant("rwbp-tenth-too-fast", breaks="RWBP-LC-011", setting="link-rate")
class TooFast(IpQueue):
    """Packets leave a tenth faster than the link rate."""

    def __init__(self, places: int, rate_bit_s: float | None, credit: Credit | None) -> None:
        super().__init__(places, None if rate_bit_s is None else 1.1 * rate_bit_s, credit)


@mutant("rwbp-two-packets-at-once", breaks="RWBP-LC-011", setting="link-rate")
class TwoAtOnce(IpQueue):
    """The link rate is kept on average: packets leave in pairs."""

    _pair = False

    def next_to_leave(self, now: float) -> Segment | None:
        """See :class:`IpQueue`."""
        packet = super().next_to_leave(now)
        if packet is not None and self._rate is not None:
            self._pair = not self._pair
            octets = 8 * packet.packet_octets / self._rate
            self._free_at = now if self._pair else now + 2 * octets
        return packet


@mutant(
    "rwbp-acknowledgments-ignore-the-rate",
    "next_to_leave",
    breaks="RWBP-LC-011",
    setting="link-rate",
)
def overtaking_acknowledgments(self: IpQueue, now: float) -> Segment | None:
    """A packet without data leaves at once, whatever the link rate."""
    for at, packet in enumerate(self._packets):
        if not packet.payload and not packet.sequence_length:
            del self._packets[at]
            return packet
    return IpQueue.next_to_leave(self, now)
