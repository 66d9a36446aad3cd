"""The events of a connection, each a segment and what the implementation knew just before it.

Sequence numbers are *offsets*: numbers that do not wrap, 0 being the first octet of data in that
direction (the SYN is -1).

Vocabulary, for the implementation under test (IUT) as a sender of data:

``Sent``
    a segment that left the IUT with data or FIN;
``Ack``
    a segment that reached the IUT and carried an acknowledgment;
and as a receiver:

``Arrival``
    a segment that reached the IUT with data or FIN;
``Reply``
    a segment that left the IUT with an acknowledgment (with or without data).
One packet can be two of these: a data segment with a moved acknowledgment field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar, Protocol, TypeVar, cast

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.tcp.codec import Tcp
from bentpipe_conformance.protocols.tcp.replay import Packet

DUPLICATE_THRESHOLD = 3
"""RFC 5681 section 3.2 step 2, HK99 appendix rule 5, and DupThresh of RFC 6675 section 2."""


def octets(ranges: Iterable[Range]) -> int:
    """How many octets disjoint ranges hold."""
    return sum(right - left for left, right in ranges)


_Value = TypeVar("_Value", covariant=True)
_Item = TypeVar("_Item")


class Part(Protocol[_Value]):
    """An attribute of a part, read as one of the whole."""

    def __get__(self, whole: object, owner: type) -> _Value: ...


def part(path: str) -> Part[Any]:
    """Such an attribute; a method would take twice the time, and checkers ask tens a packet."""
    return cast(Part[Any], property(attrgetter(path)))


_FEW = 4


def with_one_more(known: Sequence[_Item], item: _Item) -> Sequence[_Item]:
    """The items known and another one: few, the usual case, are a tuple, which is smaller."""
    if isinstance(known, list):
        known.append(item)
        return known
    return (*known, item) if len(known) < _FEW else [*known, item]


@dataclass(slots=True, eq=False)
class Segment:
    """A TCP segment on the wire.

    Attributes:
        packet: the packet it was captured in.
        time: seconds since the trace began.
        tcp: the dissected segment.
    """

    packet: Packet
    time: ClassVar[Part[float]] = part("packet.time")
    tcp: ClassVar[Part[Tcp]] = part("packet.content")


@dataclass(slots=True, eq=False)
class Data(Segment):
    """A segment with data or FIN.

    Attributes:
        start, end: offsets [start, end); a FIN occupies one.
        payload: octets of data.
    """

    start: int
    end: int
    payload: int

    @property
    def length(self) -> int:
        """Sequence numbers it occupies."""
        return self.end - self.start

    @property
    def fin(self) -> bool:
        """Whether it carries a FIN."""
        return self.end - self.start > self.payload

    @property
    def span(self) -> str:
        """Its offsets, for a sentence."""
        return f"[{self.start}, {self.end})"


@dataclass(frozen=True, slots=True)
class Oddity:
    """What few segments have.

    Attributes:
        doubt: lowest and highest offset that ``una`` may be for the IUT, which may have refused an
            acknowledgment at the right edge of its window, or heeded that of a segment to be
            dropped (RFC 9293 section 3.10.7.4); None when only itself.
        probed: it begins with what a window probe carried, which leaves again without any loss once
            the window has opened.
    """

    doubt: Range | None
    probed: bool


@dataclass(slots=True, eq=False)
class Sent(Data):
    """A segment with data or FIN leaving the IUT, and the sender's state just before it.

    Attributes:
        transmission: 1 for new data, 2 for the first retransmission of ``start``, ...
        una: lowest unacknowledged offset.
        max: highest offset sent so far, exclusive (snd_max).
        window_edge: highest right edge the tester has ever offered, exclusive.
        sacked: ranges the tester has reported held above ``una`` (never forgotten on a timeout).
        duplicates: duplicate acknowledgments received in a row.
        cause: the acknowledgment that triggered it, None when a timer or the application did.
        last_arrival: when the last packet reached the IUT, minus infinity before the first.
        last_sent: when the IUT last sent data, likewise.
        oddity: what few segments have, None when it has nothing of that.
    """

    transmission: int
    una: int
    max: int
    window_edge: int
    sacked: tuple[Range, ...]
    duplicates: int
    cause: Ack | None
    last_arrival: float
    last_sent: float
    oddity: Oddity | None

    @property
    def possible(self) -> Range:
        """Lowest and highest offset that ``una`` may be for the IUT."""
        return (self.oddity and self.oddity.doubt) or (self.una, self.una)

    @property
    def probed(self) -> bool:
        """Whether it begins with what a window probe carried."""
        return self.oddity is not None and self.oddity.probed

    @property
    def since_arrival(self) -> float:
        """Seconds since the last packet that reached the IUT, or infinity."""
        return self.packet.time - self.last_arrival

    @property
    def since_sent(self) -> float:
        """Seconds since the IUT last sent data, or infinity."""
        return self.packet.time - self.last_sent

    @property
    def new(self) -> bool:
        """Whether it carries data never sent before."""
        return self.end > self.max

    @property
    def retransmission(self) -> bool:
        """Whether it carries data sent before."""
        return self.start < self.max

    @property
    def flight(self) -> int:
        """Octets sent and not acknowledged before this segment (RFC 5681 FlightSize)."""
        return self.max - self.una

    @property
    def outstanding(self) -> int:
        """Octets from ``una`` to the end of this segment."""
        return self.end - self.una

    @property
    def timed(self) -> bool:
        """Whether no arrival explains it: a timer expired (or the application wrote)."""
        return self.cause is None


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether an acknowledgment counts.

    Attributes:
        ancient: acknowledges less than una.
        beyond: acknowledges data never sent.
        rejected: the IUT has to drop the segment: sequence number outside its window, or an old
            timestamp (RFC 7323 section 5.3).
        may_heed: the acknowledgment of a rejected segment may count even so.
        may_refuse: that of a segment at the right edge of the window, or beyond one that has moved
            back, may not count.
        acceptable: a conformant sender processes it.
    """

    ancient: bool
    beyond: bool
    rejected: bool
    may_heed: bool
    may_refuse: bool
    acceptable: bool


@lru_cache
def standing(
    ancient: bool, beyond: bool, rejected: bool, may_heed: bool, may_refuse: bool
) -> Standing:
    """The one object that says so."""
    acceptable = not (ancient or beyond or rejected)
    return Standing(ancient, beyond, rejected, may_heed, may_refuse, acceptable)


@dataclass(frozen=True, slots=True)
class Report:
    """What the SACK blocks of an acknowledgment say.

    Attributes:
        blocks: SACK blocks inside (una, max], as offsets; an invalid block is left out.
        invalid_blocks: SACK blocks that are malformed or outside what was sent.
        dsack: the D-SACK block of RFC 2883, if the first block is one.
        newly_sacked: octets reported held for the first time.
    """

    blocks: tuple[Range, ...]
    invalid_blocks: tuple[Range, ...]
    dsack: Range | None
    newly_sacked: int


NO_REPORT = Report((), (), None, 0)
"""That of an acknowledgment without blocks; nearly all share it."""


@dataclass(slots=True, eq=False)
class Ack(Segment):
    """A segment with an acknowledgment reaching the IUT.

    Attributes:
        ack: acknowledgment number as an offset.
        una: lowest unacknowledged offset before it.
        max: snd_max when it arrived.
        advance: octets newly acknowledged.
        duplicate: a duplicate acknowledgment as RFC 5681 section 2 defines it.
        duplicates: duplicates in a row, this one included.
        window: offered window in octets, scaled.
        window_edge: ack + window.
        report: what its SACK blocks say; each part can be asked of the acknowledgment itself.
        sacked: ranges held above the acknowledgment after this segment.
        standing: whether it counts; what it says can be asked of the acknowledgment itself.
        responses: what the IUT sent because of it, in order.
    """

    ack: int
    una: int
    max: int
    advance: int
    duplicate: bool
    duplicates: int
    window: int
    window_edge: int
    report: Report
    sacked: tuple[Range, ...]
    standing: Standing
    responses: Sequence[Sent] = ()
    blocks: ClassVar[Part[tuple[Range, ...]]] = part("report.blocks")
    invalid_blocks: ClassVar[Part[tuple[Range, ...]]] = part("report.invalid_blocks")
    dsack: ClassVar[Part[Range | None]] = part("report.dsack")
    newly_sacked: ClassVar[Part[int]] = part("report.newly_sacked")
    ancient: ClassVar[Part[bool]] = part("standing.ancient")
    beyond: ClassVar[Part[bool]] = part("standing.beyond")
    rejected: ClassVar[Part[bool]] = part("standing.rejected")
    may_heed: ClassVar[Part[bool]] = part("standing.may_heed")
    may_refuse: ClassVar[Part[bool]] = part("standing.may_refuse")
    acceptable: ClassVar[Part[bool]] = part("standing.acceptable")

    @property
    def flight(self) -> int:
        """Octets outstanding when it arrived, before it took effect."""
        return self.max - self.una

    @property
    def round_end(self) -> int:
        """What has to be acknowledged before a round trip has passed since it.

        That is all data outstanding after it, or what it released if nothing was.
        """
        if self.max > self.ack:
            return self.max
        return max((sent.end for sent in self.responses), default=self.max + 1)


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a segment is taken in.

    Attributes:
        paws_rejected: its timestamp is older than the last one accepted (RFC 7323 section 5.3).
        may_be_stale: its timestamp is older than one the IUT may have accepted.
        lacks_timestamp: it carries no Timestamps option although they were negotiated.
        dropped: it is, for what it acknowledges (RFC 9293 section 3.10.7.4, RFC 5961 section 5.2).
        acceptable: it certainly passes the sequence check of RFC 9293 section 3.10.7.4 and PAWS.
    """

    paws_rejected: bool
    may_be_stale: bool
    lacks_timestamp: bool
    dropped: bool
    acceptable: bool


admission = lru_cache(Admission)
"""The one object that says so."""


@dataclass(slots=True, eq=False)
class Arrival(Data):
    """A segment with data or FIN reaching the IUT, and the receiver's state just before it.

    Attributes:
        expected: next in-sequence offset (rcv_nxt) before it.
        held: ranges above ``expected`` the IUT must be holding before it.
        window_edge: highest right edge the IUT had offered, exclusive.
        widest_window: widest window the IUT had offered, in octets.
        admission: whether it is taken in; what it says can be asked of the arrival itself.
        last_ack: highest acknowledgment number the IUT had sent.
        replies: acknowledgments the IUT sent after it and before the next arrival.
    """

    expected: int
    held: tuple[Range, ...]
    window_edge: int
    widest_window: int
    admission: Admission
    last_ack: int
    replies: Sequence[Reply] = ()
    paws_rejected: ClassVar[Part[bool]] = part("admission.paws_rejected")
    may_be_stale: ClassVar[Part[bool]] = part("admission.may_be_stale")
    lacks_timestamp: ClassVar[Part[bool]] = part("admission.lacks_timestamp")
    dropped: ClassVar[Part[bool]] = part("admission.dropped")
    acceptable: ClassVar[Part[bool]] = part("admission.acceptable")

    @property
    def in_order(self) -> bool:
        """Whether it starts at the next expected offset (or overlaps it) with something new."""
        return self.acceptable and self.start <= self.expected < self.end

    @property
    def out_of_order(self) -> bool:
        """Whether it leaves a hole below itself."""
        return self.acceptable and self.start > self.expected

    @property
    def duplicate(self) -> bool:
        """Whether everything in it had been received in sequence."""
        return self.end <= self.expected

    @property
    def held_duplicate(self) -> bool:
        """Whether everything in it was held out of sequence already."""
        return any(left <= self.start and self.end <= right for left, right in self.held)

    @property
    def fills_gap(self) -> bool:
        """Whether it arrives in order while something above is held."""
        return self.in_order and bool(self.held)


@dataclass(slots=True, eq=False)
class Feedback:
    """What a receiver says, and what it could say then; segments that repeat it share it.

    Attributes:
        ack: acknowledgment number as an offset in the tester's direction.
        window: offered window in octets, scaled.
        window_edge: ack + window.
        blocks: SACK blocks as offsets, in wire order.
        expected: the offset a receiver that keeps everything acknowledges then.
        held: ranges above ``expected`` such a receiver holds then.
        limit: the highest offset the IUT can have received in sequence.
        arrived: ranges above ``limit`` that reached it.
        echoes: TSecr values that echo TS.Recent by RFC 7323 section 4.3; empty without timestamps,
            and once too many of them came at once.
        older_echoes: what only RFC 1323 section 3.4 permits besides, by which a segment without
            text leaves TS.Recent as it is.
        last_arrival: the latest segment with data that reached the IUT before it.
        dsack: the D-SACK block, if the first block is one (RFC 2883 section 4).
    """

    ack: int
    window: int
    window_edge: int
    blocks: tuple[Range, ...]
    expected: int
    held: tuple[Range, ...]
    limit: int
    arrived: tuple[Range, ...]
    echoes: Collection[int]
    older_echoes: Collection[int]
    last_arrival: Arrival | None
    dsack: Range | None


@dataclass(slots=True, eq=False)
class Reply(Segment):
    """A segment with an acknowledgment leaving the IUT.

    Attributes:
        feedback: what it says; each part can be asked of the reply itself.
        payload: octets of data it also carries.
    """

    feedback: Feedback
    ack: ClassVar[Part[int]] = part("feedback.ack")
    window: ClassVar[Part[int]] = part("feedback.window")
    window_edge: ClassVar[Part[int]] = part("feedback.window_edge")
    blocks: ClassVar[Part[tuple[Range, ...]]] = part("feedback.blocks")
    payload: ClassVar[Part[int]] = part("packet.content.size")
    expected: ClassVar[Part[int]] = part("feedback.expected")
    held: ClassVar[Part[tuple[Range, ...]]] = part("feedback.held")
    limit: ClassVar[Part[int]] = part("feedback.limit")
    arrived: ClassVar[Part[tuple[Range, ...]]] = part("feedback.arrived")
    echoes: ClassVar[Part[Collection[int]]] = part("feedback.echoes")
    older_echoes: ClassVar[Part[Collection[int]]] = part("feedback.older_echoes")
    last_arrival: ClassVar[Part[Arrival | None]] = part("feedback.last_arrival")
    dsack: ClassVar[Part[Range | None]] = part("feedback.dsack")

    @property
    def sack(self) -> tuple[Range, ...]:
        """The blocks that report data held out of sequence: all but a D-SACK block."""
        return self.blocks[1:] if self.dsack is not None else self.blocks


Event = Sent | Ack | Arrival | Reply
