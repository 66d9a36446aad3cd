"""The segments of the implementation that have not arrived, kept for long captures.

What is asked of them costs by what is found, and not by how many are outstanding.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from operator import attrgetter

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.protocols.rwbp.replay.events import Outgoing

_START = attrgetter("start")
_SHRINKS_AT = 256


class Outstanding:
    """Outstanding segments by number, by their last transmission, and those that are due again.

    Attributes:
        numbers: how many numbers they occupy.
    """

    def __init__(self) -> None:
        self.numbers = 0
        self._at: dict[int, Outgoing] = {}
        self._segments: list[Outgoing] = []
        self._head = 0
        self._arrived = RangeSet()
        self._waiting: list[Outgoing] = []
        self._since: deque[tuple[float, Outgoing]] = deque()
        self._order: deque[tuple[int, Outgoing]] = deque()

    def __bool__(self) -> bool:
        return bool(self._at)

    def at(self, start: int) -> Outgoing | None:
        """The one that begins there."""
        return self._at.get(start)

    @property
    def lowest(self) -> Outgoing | None:
        """The lowest of them."""
        return self._segments[self._head] if self._at else None

    def add(self, item: Outgoing) -> None:
        """The highest segment is sent for the first time."""
        self._at[item.start] = item
        self._segments.append(item)
        self.numbers += item.end - item.start

    def transmitted(self, item: Outgoing) -> None:
        """A segment left as its LT says."""
        self._order.append((item.lt, item))

    # -- what has arrived

    def has_arrived(self, start: int, end: int) -> bool:
        """Whether all numbers of a range above SND.UNA have been reported."""
        return self._arrived.covers(start, end)

    def reported(self, number: int, blocks: tuple[Range, ...]) -> tuple[Outgoing, ...]:
        """Those that an acknowledgment up to a number, with true blocks, reports, lowest first."""
        found: dict[int, Outgoing] = {}
        for item in self._from(self._head):
            if item.end > number:
                break
            found[item.start] = item
        for block in blocks:
            for left, right in self._arrived.gaps(*block):
                for item in self._from(bisect_left(self._segments, left, self._head, key=_START)):
                    if item.data_end > right:
                        break
                    if item.payload:
                        found[item.start] = item
        return tuple(sorted(found.values(), key=_START))

    def _from(self, place: int) -> Iterator[Outgoing]:
        for at in range(place, len(self._segments)):
            item = self._segments[at]
            if item.start in self._at:
                yield item

    def remove(self, item: Outgoing) -> None:
        """A segment has arrived."""
        del self._at[item.start]
        self.numbers -= item.end - item.start
        self._arrived.add(item.start, item.end)
        if item.copies:
            self._forget(item)
        segments, head = self._segments, self._head
        while head < len(segments) and segments[head].start not in self._at:
            head += 1
        if head > _SHRINKS_AT and 2 * head > len(segments):
            del segments[:head]
            head = 0
        self._head = head

    def acknowledged(self, una: int) -> None:
        """SND.UNA has risen; nothing below is asked for any more."""
        self._arrived.remove_below(una)

    # -- what awaits retransmission

    def await_copies(self, item: Outgoing, copies: int, due: float) -> None:
        """A segment awaits retransmission from then on."""
        if not item.copies:
            insort(self._waiting, item, key=_START)
        item.copies, item.due = copies, due
        self._since.append((due, item))

    def sent_again(self, item: Outgoing) -> None:
        """One of the copies that are due has left."""
        item.copies -= 1
        if not item.copies:
            self._forget(item)

    def _forget(self, item: Outgoing) -> None:
        del self._waiting[bisect_left(self._waiting, item.start, key=_START)]

    def before(self, start: int, due: float) -> int | None:
        """The lowest start below another one that has been due since then or longer."""
        for item in self._waiting:
            if item.start >= start:
                return None
            if item.due <= due:
                return item.start
        return None

    def overdue(self, due: float) -> Iterator[Outgoing]:
        """Those that have been due since before then; none is waited for any longer."""
        since = self._since
        while since and since[0][0] < due:
            began, item = since.popleft()
            if item.copies and item.due == began and item.start in self._at:
                self._forget(item)
                item.copies = 0
                self._order.appendleft((item.lt, item))
                yield item

    # -- what counts as lost

    def sent_before(self, bound: int) -> tuple[Outgoing, ...]:
        """Those with LT below H that await no copies, lowest first; each once a transmission."""
        found: list[Outgoing] = []
        order = self._order
        while order and order[0][0] < bound:
            lt, item = order.popleft()
            if item.lt == lt and not item.copies and item.start in self._at:
                found.append(item)
        return tuple(sorted(found, key=_START))

    def sent_between(self, least: int, bound: int) -> tuple[Outgoing, ...]:
        """Those with LT in a range above H that await no copies, lowest first."""
        found: list[Outgoing] = []
        for lt, item in self._order:
            if lt >= bound:
                break
            if lt >= least and item.lt == lt and not item.copies and item.start in self._at:
                found.append(item)
        return tuple(sorted(found, key=_START))
