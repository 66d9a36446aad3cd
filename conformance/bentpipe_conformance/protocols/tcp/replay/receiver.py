"""The receiver half of a replayed connection: what reached the implementation, what it answered.

The observer sits beside the implementation under test (IUT), not in it, so two views are kept.
*Certain*: ``expected`` and ``held``, what a receiver that keeps all acceptable data has.
*Possible*: ``limit`` and ``arrived``, all that reached it; anything outside it cannot have.
Where the IUT shows that it took more or kept less than the certain view, that view follows it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, Tcp, one_of
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.direction import Direction, older
from bentpipe_conformance.protocols.tcp.replay.events import (
    Arrival,
    Feedback,
    Reply,
    admission,
    with_one_more,
)

_FEW = 8

_BURST, _EACH = 25_000, 64
"""Timestamps that may be echoed, in all and for each segment: beyond that nothing is said any more
of a connection's echoes. A clock of a millisecond has a third of them within a reaction."""


TRUSTED_S = 1800.0
"""Seconds for which TS.Recent certainly stays valid once it was taken.

RFC 7323 section 5.5 invalidates it after 24 days, in which a clock's sign wraps; Linux after 35
minutes, for the sake of faster clocks.
"""


@dataclass(slots=True)
class _Stamped:
    """A timestamped segment the IUT may not have processed when its next segment left.

    No acknowledgment beyond ``limit`` can have left before it was processed, none beyond ``reach``
    without more. ``sure`` says that its value certainly is TS.Recent if ``updated``.
    """

    time: float
    start: int
    end: int
    tsval: int
    before: frozenset[int]
    updated: bool
    limit: int
    reach: int
    sure: bool


class Receiver:
    """Replays the receiver half of one connection.

    Attributes:
        offset: makes an offset of a sequence number of the tester's direction.
        expected: next in-sequence offset.
        edge: highest right edge offered.
        shift: the IUT's window shift, once negotiated.
        timestamps: whether timestamps were negotiated.
        last_arrival: the latest segment with data or FIN that arrived.
        time: of the packet at hand, seconds.
    """

    def __init__(self, reaction: float) -> None:
        self.expected = 0
        self.edge = 0
        self.shift = 0
        self.timestamps = False
        self.last_arrival: Arrival | None = None
        self.time = self._taken = 0.0
        self._reaction = reaction
        self._into = Direction(0)
        self.offset = self._into.offset
        self._held = RangeSet()
        self._limit = 0
        self._arrived = RangeSet()
        self._widest = 0
        self._last_ack = 0
        self._duplicates = RangeSet()
        self._recent: frozenset[int] = frozenset()
        self._compared: tuple[tuple[int, frozenset[int]], tuple[bool, bool]]
        self._compared = (-1, self._recent), (False, False)
        self._recent_by_text: Collection[int] = ()  # two: as a tuple, a quarter of a set's size
        self._last_by_text = 0
        self._echoed: Collection[int] = ()
        self._said: tuple[object, ...] = ()
        self._feedback: Feedback
        self._patience = _BURST
        self._stamped: deque[_Stamped] = deque()
        self._doubt = self._broken = self._contradicted = False
        self._offered = 0
        self._moved = 0.0
        self._fin: int | None = None
        self._top = 0

    def opened(self, tcp: Tcp) -> None:
        """The tester's SYN arrived."""
        self._into = Direction(tcp.seq)
        self.offset = self._into.offset
        if tcp.tsval is not None:
            self._recent = frozenset({tcp.tsval})
            self._recent_by_text = (tcp.tsval,)
            self._last_by_text = tcp.tsval
            self._taken = self.time
        if tcp.length > 1:
            self._arrive(0, tcp.length - 1)

    def repeated_syn(self, time: float, tcp: Tcp) -> None:
        """The tester's SYN came again, which is not acceptable any more, or another one came."""
        start = self.offset(tcp.seq)
        self._stamp(time, tcp, start, start + tcp.length, usable=False)

    def offers(self, window: int) -> None:
        """The IUT offered ``window`` octets in a SYN, where it is never scaled."""
        self.edge = max(self.edge, window)
        self._offered = window
        self._widest = max(self._widest, window)

    # -- arriving

    def rejects(self, tcp: Tcp, start: int) -> bool:
        """Whether a conformant receiver drops the segment (RFC 9293 3.10.7.4, RFC 7323 5.3)."""
        return self._stale(tcp)[1] or not self._in_window(start, tcp.length)

    def is_outside(self, tcp: Tcp) -> bool:
        """Whether a segment certainly begins outside any window that the IUT has offered."""
        return not self._last_ack <= self.offset(tcp.seq) <= max(self.edge, self.expected)

    def only_its_timestamp(self, tcp: Tcp) -> bool:
        """Whether a bare acknowledgment is the next segment but for its timestamp."""
        return not tcp.length and self.offset(tcp.seq) == self.expected

    def predicts(self, tcp: Tcp) -> bool:
        """Whether a segment is the next one, with data and nothing special, and none is held."""
        plain = tcp.flags & ~PSH == ACK and not tcp.sack
        return bool(tcp.size) and plain and self.offset(tcp.seq) == self.expected and not self._held

    def is_a_tick_old(self, tcp: Tcp) -> bool:
        """Whether the timestamp is one less than what TS.Recent may be."""
        return tcp.tsval is not None and any(
            (known - tcp.tsval) % MODULUS <= 1 for known in self._recent
        )

    def may_refuse(self, tcp: Tcp, start: int) -> bool:
        """Whether a segment lies at the right edge offered, or beyond one that has moved back.

        RFC 9293 section 3.10.7.4 does not accept one without text at the edge; most implementations
        do. Into a closed window it accepts no text, also none that begins below. A segment may also
        be refused for a timestamp older than one that may have been taken, and for the lack of one
        (RFC 7323 section 3.2), and one that is old where the text of another was taken, which may
        have been dropped.
        """
        beside = self.lies_behind(start) or (start == self.edge and tcp.length == 0)
        beside = (beside and start > self.expected) or bool(tcp.length and self.is_closed)
        old = self._doubt and (start < self._limit and start + tcp.length <= self._limit)
        return beside or old or self._stale(tcp)[0] or self._is_bare(tcp)

    def lies_behind(self, start: int) -> bool:
        """Whether a segment begins at or beyond a right edge that has moved back."""
        return self._offered < self.edge and start >= self._offered

    def repeats(self, tcp: Tcp) -> bool:
        """Whether a segment that leaves next would only repeat the last acknowledgment."""
        answered = self.last_arrival is None or bool(self.last_arrival.replies)
        ack = self.offset(tcp.ack)
        edge = ack + (tcp.window << self.shift)
        return answered and not tcp.length and ack <= self._last_ack and edge <= self.edge

    @property
    def is_closed(self) -> bool:
        """Whether the window offered has been filled."""
        return self.edge <= self.expected

    def shut_out(self, tcp: Tcp) -> bool:
        """Whether a closed window alone keeps out a segment.

        RFC 9293 section 3.10.7.4 has a special allowance for its acknowledgment.
        """
        start = self.offset(tcp.seq)
        return self.is_closed and start == self.expected and not self._stale(tcp)[1]

    def is_copy(self, tcp: Tcp) -> bool:
        """Whether a segment ends where what has just been received does, or did when last answered.

        It has been offered its window all the same, and some heed its acknowledgment.
        """
        end = self.offset(tcp.seq) + tcp.length
        return self._last_ack <= end <= self.expected and not self._stale(tcp)[1]

    def _is_bare(self, tcp: Tcp) -> bool:
        """Whether it has no timestamp although both sides have negotiated them."""
        return self.timestamps and tcp.tsval is None

    def _stale(self, tcp: Tcp) -> tuple[bool, bool]:
        """Whether its timestamp is older than any value TS.Recent may have, and than all."""
        tsval, recent = tcp.tsval, self._recent
        if tsval is None or not recent or not self.timestamps:
            return False, False
        if (tsval, recent) != self._compared[0]:
            stale = [older(tsval, known) for known in recent]
            self._compared = (tsval, recent), (any(stale), all(stale))
        some, every = self._compared[1]
        return some, every and self.time - self._taken <= TRUSTED_S

    def _in_window(self, start: int, length: int) -> bool:
        """The four cases of RFC 9293 section 3.10.7.4 against the widest edge offered."""
        if length == 0:
            return self.expected <= start <= max(self.edge, self.expected)
        return start < self.edge and start + length > self.expected

    def arriving(
        self, packet: Packet, tcp: Tcp, *, unsent: bool = False, low: bool = False,
        sure: bool = True,
    ) -> Arrival | None:  # fmt: skip
        """A segment reached the IUT; what it is when it carries data or FIN.

        ``unsent`` tells that it acknowledges what was never sent, for which it is dropped, ``low``
        that it acknowledges so little that it may be dropped (RFC 5961 section 5.2), ``sure`` that
        nothing about its acknowledgment may keep it from being processed.
        """
        start = self.offset(tcp.seq)
        if start == self.expected:
            start = self.expected  # equal numbers are one object
        end = start + tcp.length
        stale, paws = self._stale(tcp)
        inside = self._in_window(start, tcp.length)
        bare = self._is_bare(tcp)
        # What lies beyond an edge that has moved back may be refused, or not.
        shrunk = inside and self._offered < min(end, self.edge)
        sure = sure and inside and not stale and not shrunk and not self._doubt and tcp.options_ok
        sure = sure and not self._contradicted
        # Nor is any text acceptable to a closed window (RFC 9293 section 3.10.7.4).
        sure = sure and not (tcp.length and self.is_closed)
        self._stamp(packet.time, tcp, start, end, usable=sure)
        if not tcp.length:
            return None
        # After a broken option list a receiver may drop the segment, or not (RFC 9293 MUST-7).
        acceptable = inside and not stale and not bare and tcp.options_ok
        # Without ACK a segment is dropped (section 3.10.7.4, fifth).
        acceptable = acceptable and bool(tcp.flags & ACK) and not unsent
        # Behind a FIN text is ignored (seventh); a peer that sends any, or a FIN below what it has
        # sent, contradicts itself.
        contradicts = acceptable and self._contradicts(tcp, end)
        acceptable = acceptable and not contradicts
        # Its text may be taken all the same, and then what repeats that is old.
        self._contradicted = self._contradicted or contradicts
        # What follows one that may have been dropped can be in sequence or not.
        perhaps = (stale and not paws) or (low and not unsent)
        self._doubt = self._doubt or shrunk or (perhaps and inside)
        acceptable = acceptable and not self._doubt
        acceptable = acceptable and not (self._broken and start > self.expected)
        self._broken = self._broken or (inside and not tcp.options_ok)
        arrival = Arrival(
            packet, start, end, tcp.size, self.expected,
            self._held.snapshot(), self.edge, self._widest,
            admission(paws, stale, bare, unsent or low, acceptable), self._last_ack,
        )  # fmt: skip
        self.last_arrival = arrival
        for left, right in () if stale else arrival.held:  # the text of an old one is not read
            self._duplicates.add(max(left, start), min(right, end))
        self._arrive(start, end)
        if inside and not paws and tcp.flags & ACK:  # an odd acknowledgment may pass unseen
            self._top = max(self._top, end - arrival.fin)
            if arrival.fin:
                self._fin = end if self._fin is None else min(self._fin, end)
        if self._stamped:
            self._stamped[-1].reach = self._limit
        if acceptable:
            # What lies beyond the edge need not be kept (RFC 9293 section 3.10.7.4).
            if max(start, self.expected) < min(end, self.edge):
                self._held.add(max(start, self.expected), min(end, self.edge))
            if self.expected < (reached := _drop_reached(self._held, self.expected)):
                self.expected, self._moved = reached, packet.time
                self._into.saw(reached)
        return arrival

    def _contradicts(self, tcp: Tcp, end: int) -> bool:
        """Whether a segment says of the end of the stream something else than one before."""
        text = end - bool(tcp.flags & FIN)
        if self._fin is not None and text >= self._fin:
            return True
        return text < end <= self._top

    def _arrive(self, start: int, end: int) -> None:
        self._arrived.add(start, end)
        self._limit = _drop_reached(self._arrived, self._limit)

    def _stamp(self, time: float, tcp: Tcp, start: int, end: int, *, usable: bool) -> None:
        """RFC 7323 section 4.3 rule 2, keeping every value the IUT may be echoing."""
        if tcp.tsval is None or not self._recent:
            return
        value, before = tcp.tsval, self._recent
        if start <= self._last_ack and (len(before) > 1 or value not in before):
            newer = frozenset(known for known in before if older(value, known))
            if time - self._taken > TRUSTED_S:
                newer = frozenset()
            # Not acceptable: section 5.3 drops it first (R2), appendix D takes its value first.
            if newer != before:
                self._recent = newer | {value} if usable else before | {value}
        if start <= self._last_ack < end and not older(value, self._last_by_text):
            self._recent_by_text = self._last_by_text, value
            self._last_by_text = value
        while self._stamped and time - self._stamped[0].time > self._reaction:
            self._stamped.popleft()
        if usable and start <= self._last_ack:
            self._taken = time
        updated = self._recent != before
        if not updated and value in before and self._stamped:
            # It makes no difference when the IUT processed it.
            return
        self._stamped.append(
            _Stamped(time, start, end, value, before, updated, self._limit, self._limit, usable)
        )

    # -- leaving

    def replying(self, packet: Packet, tcp: Tcp) -> Reply | None:
        """A segment left the IUT; what it is when it carries an acknowledgment."""
        if not tcp.flags & ACK:
            return None
        ack = self.offset(tcp.ack)
        last = self.last_arrival
        if ack >= self._limit or (last and packet.time - last.time > self._reaction):
            self._doubt = self._broken = False
        window = one_of(tcp.window << self.shift)
        edge = one_of(ack + window)
        blocks: tuple[Range, ...] = ()
        if tcp.sack:
            blocks = tuple((self.offset(left), self.offset(right)) for left, right in tcp.sack)
        self._follow(packet.time, ack, edge, blocks)
        said = (
            ack, window, edge, blocks,
            self.expected, self._held.snapshot(), self._limit, self._arrived.snapshot(),
            self._echoes(packet.time, ack), self._recent_by_text, self.last_arrival,
            self._dsack(ack, blocks),
        )  # fmt: skip
        if said != self._said:
            self._said, self._feedback = said, Feedback(*said)
        reply = Reply(packet, self._feedback)
        if self._duplicates and not self._unread(ack):
            self._duplicates.clear()
        elif self._duplicates and reply.dsack is not None:
            told = RangeSet((reply.dsack,))
            rest = (gap for item in self._duplicates.snapshot() for gap in told.gaps(*item))
            self._duplicates = RangeSet(tuple(rest))
        if last is not None:
            last.replies = with_one_more(last.replies, reply)
        self.edge = max(self.edge, edge)
        self._offered = edge
        self._widest = max(self._widest, window)
        if self._last_ack < ack <= self._limit:
            self._last_ack = ack
        return reply

    def _dsack(self, ack: int, blocks: tuple[Range, ...]) -> Range | None:
        if not blocks:
            return None
        left, right = blocks[0]
        # The block around it should be the second, but stacks put it anywhere or leave it out.
        nested = any(a <= left and right <= b for a, b in blocks[1:])
        again = self._duplicates.covers(left, right) and not self._unread(ack)
        return blocks[0] if right <= ack or nested or again else None

    def _unread(self, ack: int) -> bool:
        """Whether the text of the latest segment cannot have been read when ``ack`` was sent."""
        last = self.last_arrival
        return last is not None and last.in_order and ack < min(last.end, last.window_edge)

    def _follow(self, time: float, ack: int, edge: int, blocks: tuple[Range, ...]) -> None:
        """Let the certain view follow what the IUT shows of itself."""
        last = self.last_arrival
        if ack <= edge < self.expected:
            # What lies beyond the edge that it has moved back to has been refused.
            self.expected = ack
            self._held.clear()
        elif (
            blocks
            and time - self._moved > self._reaction
            and any(ack < a < self.expected for a, _ in blocks)
        ):
            # It reports what lies above a gap: what we thought it received there was not kept.
            self.expected = ack
            self._held.clear()
        if self.expected < ack <= self._limit:
            self.expected = _drop_reached(self._held, ack)
            self._into.saw(ack)
        elif last is not None and last.in_order and last.end <= ack < self.expected:
            # It has taken in the latest segment and acknowledges no further: what we thought it
            # holds above was not kept. RFC 9293 section 3.10.7.4 asks for that only as a SHOULD.
            self.expected = ack
            self._held.clear()
        for left, right in blocks:
            above = max(left, self._limit)
            inside = right <= self._limit or any(
                a <= above and right <= b for a, b in self._arrived.snapshot()
            )
            if left > self.expected and inside:
                self._held.add(left, right)

    def _echoes(self, time: float, ack: int) -> Collection[int]:
        if not self.timestamps or self._patience < 0:
            return ()
        possible, kept = set(self._recent), set[int]()
        later: list[int] = []
        self._patience += _EACH
        for item in reversed(self._stamped):
            self._patience -= 1
            # Segments are processed in order: all up to the one that let this number be
            # acknowledged, and any so long ago.
            if item.limit < ack <= item.reach or time - item.time > self._reaction:
                break
            covered = ack >= item.end > item.start
            # What had arrived before is covered whether the copy has been processed or not.
            if not covered or (item.end <= item.limit and not item.updated):
                if item.updated:
                    # The segment left before the IUT processed the one that moved TS.Recent ...
                    possible.update(item.before)
                elif item.start <= ack and not all(older(item.tsval, old) for old in item.before):
                    # ... or the IUT processed it after this segment, which moved Last.ACK.sent.
                    # It may then echo the value from now on, unless a later one replaces it.
                    possible.add(item.tsval)
                    if not _any_newer(later, item.tsval):
                        kept.add(item.tsval)
            if item.updated and item.sure:
                insort(later, item.tsval)
        if kept:
            self._recent |= kept
        if len(possible) != len(self._echoed) or not possible.issuperset(self._echoed):
            # Of few values, the usual case, a tuple takes a quarter of the memory.
            self._echoed = tuple(possible) if len(possible) <= _FEW else frozenset(possible)
        return self._echoed


def _drop_reached(ranges: RangeSet, limit: int) -> int:
    """Move an offset past the ranges that adjoin it, and drop these; return the new offset."""
    for left, right in ranges.snapshot():
        if left > limit:
            break
        limit = max(limit, right)
    ranges.remove_below(limit)
    return limit


def _any_newer(values: list[int], tsval: int) -> bool:
    """Whether ``tsval`` is older than any of the sorted ``values`` (modulo 2**32)."""
    half = MODULUS >> 1
    above = bisect_right(values, tsval)
    if above < len(values) and values[above] - tsval <= half:
        return True
    return bool(values) and values[0] + MODULUS - tsval <= half
