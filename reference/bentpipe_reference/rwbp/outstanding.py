"""The segments of a sender that have not arrived, and the order of their transmissions."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from heapq import heappop, heappush
from operator import attrgetter

START = attrgetter("start")
_SHRINKS_AT = 256


class Outgoing:
    """One segment that has been transmitted (section 2); it keeps its boundaries.

    Attributes:
        start: its first number.
        end: one above its last number; FIN counts.
        payload: its data.
        fin: whether it has FIN.
        first: FT.
        latest: LT.
        sent: when it was last transmitted, seconds.
        copies: COPIES.
        suspect: SUSPECT.
        repaired: REPAIRED, seconds.
        arrived: whether it has arrived.
    """

    __slots__ = (
        "arrived", "copies", "end", "fin", "first", "latest", "payload", "repaired", "sent",
        "start", "suspect",
    )  # fmt: skip

    def __init__(self, start: int, payload: bytes, fin: bool) -> None:
        self.start = start
        self.end = start + len(payload) + fin
        self.payload = payload
        self.fin = fin
        self.first = self.latest = 0
        self.sent = 0.0
        self.copies = 0
        self.suspect = False
        self.repaired: float | None = None
        self.arrived = False


class Outstanding:
    """Segments that are outstanding, lowest first, and those of them that await retransmission.

    Attributes:
        count: how many are outstanding.
        octets: of their data.
    """

    def __init__(self) -> None:
        self.count = 0
        self.octets = 0
        self._segments: list[Outgoing] = []
        self._head = 0
        self._due: list[tuple[int, Outgoing]] = []
        self._order: deque[tuple[int, Outgoing]] = deque()

    def add(self, segment: Outgoing) -> None:
        """A new segment, the highest, is transmitted."""
        self._segments.append(segment)
        self.count += 1
        self.octets += len(segment.payload)

    def lowest(self) -> Outgoing | None:
        """The lowest outstanding segment, None when there is none."""
        self._skip_arrived()
        return self._segments[self._head] if self.count else None

    def note_transmission(self, segment: Outgoing) -> None:
        """A segment was transmitted as its ``latest`` says."""
        self._order.append((segment.latest, segment))

    # -- retransmissions that are due ---------------------------------------------------------

    def ask_for(self, segment: Outgoing, copies: int) -> None:
        """Let a segment that awaits no retransmission await ``copies`` of them."""
        segment.copies = copies
        heappush(self._due, (segment.start, segment))

    def due(self) -> Outgoing | None:
        """The lowest segment that awaits retransmission, None when there is none."""
        due = self._due
        while due and (due[0][1].arrived or not due[0][1].copies):
            heappop(due)
        return due[0][1] if due else None

    # -- what has arrived ---------------------------------------------------------------------

    def below(self, number: int) -> list[Outgoing]:
        """The segments whose end is not above ``number``, lowest first."""
        found: list[Outgoing] = []
        self._skip_arrived()
        segments = self._segments
        for at in range(self._head, len(segments)):
            segment = segments[at]
            if segment.end > number:
                break
            if not segment.arrived:
                found.append(segment)
        return found

    def within(self, left: int, right: int) -> list[Outgoing]:
        """The segments all of whose data lies in [left, right), lowest first; no bare FIN."""
        found: list[Outgoing] = []
        segments = self._segments
        at = bisect_left(segments, left, self._head, key=START)
        while at < len(segments) and segments[at].end - segments[at].fin <= right:
            segment = segments[at]
            if not segment.arrived and segment.payload:
                found.append(segment)
            at += 1
        return found

    def remove(self, arrived: list[Outgoing]) -> None:
        """Segments have arrived; their data is released."""
        self.count -= len(arrived)
        for segment in arrived:
            segment.arrived = True
            self.octets -= len(segment.payload)
            segment.payload = b""

    def _skip_arrived(self) -> None:
        segments, head = self._segments, self._head
        while head < len(segments) and segments[head].arrived:
            head += 1
        if head > _SHRINKS_AT and 2 * head > len(segments):
            del segments[:head]
            head = 0
        self._head = head

    # -- losses -------------------------------------------------------------------------------

    def sent_before(self, number: int) -> list[Outgoing]:
        """The segments whose last transmission is below ``number``, and that await none.

        Each is returned once for each transmission; numbers must not fall from call to call.
        """
        order = self._order
        found: list[Outgoing] = []
        while order and order[0][0] < number:
            latest, segment = order.popleft()
            if segment.latest == latest and not segment.arrived and not segment.copies:
                found.append(segment)
        return found
