"""The sender half of a replayed connection: what the implementation sent, what answered it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.protocols.tcp.codec import MODULUS, Tcp, one_of
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.direction import Direction
from bentpipe_conformance.protocols.tcp.replay.events import (
    NO_REPORT,
    Ack,
    Oddity,
    Report,
    Sent,
    standing,
    with_one_more,
)


class Transmissions:
    """How often each segment of a stream has been transmitted, by the offset it starts at.

    New data costs constant time, a retransmission time in the number of segments it covers, so
    that a flood of unacknowledged data is judged in linear time.
    """

    __slots__ = ("_counts", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._counts: dict[int, int] = {}

    def sent(self, start: int, end: int, *, new: bool) -> int:
        """Count the segment [start, end) and return which transmission of ``start`` this is."""
        starts, counts = self._starts, self._counts
        if new and (not starts or starts[-1] < start):
            starts.append(start)
            counts[start] = 1
            return 1
        for known in starts[bisect_left(starts, start) : bisect_left(starts, end)]:
            counts[known] += 1
        if start not in counts:
            insort(starts, start)
            # A segment cut anew from data sent before repeats it, wherever that segment started.
            counts[start] = 1 if new else 2
        return counts[start]

    def acknowledged(self, ack: int) -> None:
        """Forget segments that start below ``ack``."""
        gone = bisect_left(self._starts, ack)
        for start in self._starts[:gone]:
            del self._counts[start]
        del self._starts[:gone]


class Sender:
    """Replays the sender half of one connection.

    Attributes:
        sack: whether SACK was negotiated.
        offset: makes an offset of a sequence number of the IUT's direction.
        shift: the tester's window shift, once negotiated.
        edge: highest right edge the tester has offered.
        timed: numbers of packets that a timer sent, whatever has just arrived.
        strict: whether only a segment not older than the one before updates the window, by SND.WL1
            and SND.WL2 (RFC 9293 section 3.10.7.4).
        keeps_wider: whether a repeated acknowledgment only widens the window, or closes it.
        last_in: when the last segment reached the IUT, None before the first.
        widest: widest window the tester has offered (MAX.SND.WND of RFC 5961 section 5.2).
    """

    def __init__(
        self, reaction: float, *, timed: Container[int] = (), strict: bool = False,
        widest: bool = False,
    ) -> None:  # fmt: skip
        self.timed = timed
        self.strict = strict
        self.keeps_wider = widest
        self.sack = False
        self.shift = 0
        self.edge = 0
        self.last_in: float | None = None
        self._reaction = reaction
        self._out = Direction(0)
        self.offset = self._out.offset
        self._una = self._max = self._least = self._most = 0
        self._last_window = -1
        self.widest = 0
        self._edge = -1  # none yet
        # What completes the handshake of a called IUT offers its window in any case.
        self._updated = (-MODULUS, 0)
        self._duplicates = 0
        self._sacked = RangeSet()
        self._transmissions = Transmissions()
        self._probed: set[int] = set()
        self._last_ack: Ack | None = None
        self._last_out = float("-inf")

    def opened(self, tcp: Tcp) -> None:
        """The IUT's SYN left, perhaps with data (RFC 7413)."""
        self._out = Direction(tcp.seq)
        self.offset = self._out.offset
        self._max = tcp.size

    def answered(self, tcp: Tcp) -> None:
        """A SYN-ACK answered the IUT's SYN: data of the SYN that it leaves out counts as unsent.

        It is the first acknowledgment whose window another can repeat (RFC 5681 section 2).
        """
        self._last_window = tcp.window
        self._updated = (0, 0)
        self._una = self._max = min(self._max, max(0, self.offset(tcp.ack)))

    @property
    def current_edge(self) -> int:
        """The right edge offered last, which may have moved back."""
        return self.edge if self._edge < 0 else min(self.edge, self._edge)

    def leaving(self, packet: Packet, tcp: Tcp) -> Sent:
        """A segment with data or FIN left the IUT."""
        start = self.offset(tcp.seq)
        end = start + tcp.length
        transmission = self._transmissions.sent(start, end, new=start >= self._max)
        if start == self._max:
            start = self._max  # equal numbers are one object
        last_in = float("-inf") if self.last_in is None else self.last_in
        answers = packet.time - last_in <= self._reaction and packet.number not in self.timed
        cause = self._last_ack if answers else None
        sent = Sent(
            packet, start, end, tcp.size, transmission, self._una, self._max, self.edge,
            self._sacked.snapshot(), self._duplicates, cause, last_in, self._last_out,
            self._oddity(start),
        )  # fmt: skip
        # An edge that has moved back leaves no room either.
        if sent.new and start >= self.current_edge and tcp.length == 1:
            self._probed.add(start)
        if cause is not None:
            cause.responses = with_one_more(cause.responses, sent)
        self._max = max(self._max, end)
        self._out.saw(end)
        self._last_out = packet.time
        return sent

    def _oddity(self, start: int) -> Oddity | None:
        """What is odd about a segment at ``start``, None for nothing."""
        una, probed = self._una, start in self._probed
        if self._least >= una >= self._most:
            return Oddity(None, probed) if probed else None
        return Oddity((min(una, self._least), max(una, self._most)), probed)

    def is_old(self, start: int, ack: int) -> bool:
        """Whether a segment at ``start`` leaves the offered window as it is."""
        return (start, ack) < self._updated

    def acknowledged(
        self, packet: Packet, tcp: Tcp, start: int, ack: int, *, rejected: bool, may_heed: bool,
        may_refuse: bool,
    ) -> Ack:  # fmt: skip
        """A segment at ``start`` of the tester's direction, acknowledging ``ack``, arrived.

        ``rejected`` says that the IUT has to drop it, ``may_heed`` that the acknowledgment may
        count even so, ``may_refuse`` that the IUT may drop the segment. What acknowledges nothing
        new with an older sequence number offers no window (RFC 9293 section 3.10.7.4, SND.WL1).
        """
        window = tcp.window << self.shift
        if self.strict and self.is_old(start, ack):
            window = max(0, self._edge - ack)
        una, ancient, beyond = self._una, ack < self._una, ack > self._max
        if ack == una:
            ack = una  # equal numbers are one object
        if max(abs(ack - una), abs(ack - self._max)) >= MODULUS // 2:
            # Half the space away it may be either: below SND.UNA and beyond SND.NXT.
            ack, ancient, beyond = ack - MODULUS if ack > una else ack, True, False
        usable = not (ancient or beyond or rejected)
        dsack, good, bad = self._blocks(tcp, ack)
        # A window probe beyond the edge is refused again and again; that reports no loss.
        outstanding = min(self._max, self.edge) > una
        same = window == self._last_window
        if self.keeps_wider and usable:
            same = not self._widens(start, ack, window)
        window = self._last_window if same else window
        edge = ack + window
        if edge == self._edge:
            edge = self._edge
        duplicate = usable and outstanding and ack == una and tcp.length == 0 and same
        # What repeats a number that may have been refused may bring it.
        stale = ack == una and ack <= self._least and start < self._updated[0]
        newly = 0
        if usable:
            newly = sum(self._sacked.add(*block) for block in good) if good else 0
            if ack > una:
                self._una = ack
                self._sacked.remove_below(ack)
                self._transmissions.acknowledged(ack)
                self._duplicates = 0
            elif duplicate:
                self._duplicates += 1
            self._last_window = window
            self.widest = max(self.widest, window)
            self._edge = edge
            # Whoever takes the window of an older segment for its news takes its number as SND.WL1.
            taken = (start, ack)
            moved = ack > una and not self.strict
            self._updated = taken if moved else max(self._updated, taken)
        may_heed = may_heed and rejected and not (ancient or beyond)
        if ((usable and not stale) or may_heed) and edge > self.edge:
            self.edge = edge
        if (usable or may_heed) and ack > self._most:
            self._most = ack
        if usable and not may_refuse:
            self._least = ack
        report = Report(good, bad, dsack, newly) if tcp.sack else NO_REPORT
        item = Ack(
            packet, ack, una, self._max, one_of(max(0, ack - una)) if usable else 0, duplicate,
            self._duplicates, window, edge, report, self._sacked.snapshot(),
            standing(ancient, beyond, rejected, may_heed, may_refuse),
        )  # fmt: skip
        self._last_ack = item
        return item

    def predicted(self, start: int, ack: Ack) -> None:
        """What Linux has predicted arrived: it takes the number as SND.WL1, be it a lower one."""
        if ack.acceptable and ack.ack == ack.una and ack.tcp.window << self.shift == ack.window:
            self._updated = (start, ack.ack)

    def repeats(self, tcp: Tcp) -> bool:
        """Whether a segment would repeat the last acknowledgment, and its window be ignored."""
        ack, start = self.offset(tcp.ack), self._updated[0]
        return ack == self._una and not self._widens(start, ack, tcp.window << self.shift)

    def _widens(self, start: int, ack: int, window: int) -> bool:
        """Whether Linux takes the window of a segment (tcp_may_update_window)."""
        if ack > self._una or start > self._updated[0]:
            return True
        return start == self._updated[0] and (window > self._last_window or not window)

    def _blocks(
        self, tcp: Tcp, ack: int
    ) -> tuple[Range | None, tuple[Range, ...], tuple[Range, ...]]:
        """The D-SACK block of an acknowledgment, its valid and its invalid SACK blocks."""
        if not tcp.sack:
            return None, (), ()
        edges = [(self.offset(a), self.offset(b)) for a, b in tcp.sack]
        dsack: Range | None = None
        first = edges[0]
        inside_next = len(edges) > 1 and edges[1][0] <= first[0] and first[1] <= edges[1][1]
        # RFC 2883 section 4: below the acknowledgment, or inside the second block, which is one of
        # data that the receiver holds.
        inside_next = inside_next and edges[1][1] <= self._max
        if first[0] < first[1] and (first[1] <= ack or inside_next):
            dsack = edges.pop(0)
        good = tuple((a, b) for a, b in edges if self.sack and ack < a < b <= self._max)
        return dsack, good, tuple(block for block in edges if block not in good)
