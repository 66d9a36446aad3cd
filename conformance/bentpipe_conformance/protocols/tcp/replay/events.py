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

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.tcp.codec import Tcp
from bentpipe_conformance.protocols.tcp.replay import Packet

DUPLICATE_THRESHOLD = 3
"""RFC 5681 section 3.2 step 2, HK99 appendix rule 5, and DupThresh of RFC 6675 section 2."""


def octets(ranges: Iterable[Range]) -> int:
    """How many octets disjoint ranges hold."""
    return sum(right - left for left, right in ranges)


@dataclass(slots=True, eq=False)
class Segment:
    """A TCP segment on the wire.

    Attributes:
        packet: the packet it was captured in.
    """

    packet: Packet

    @property
    def time(self) -> float:
        """Seconds since the trace began."""
        return self.packet.time

    @property
    def tcp(self) -> Tcp:
        """The dissected segment."""
        assert self.packet.content is not None
        return self.packet.content


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
        return self.length > self.payload

    @property
    def span(self) -> str:
        """Its offsets, for a sentence."""
        return f"[{self.start}, {self.end})"


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
        possible: lowest and highest offset that ``una`` may be for the IUT, which may have refused
            an acknowledgment at the right edge of its window, or heeded that of a segment to be
            dropped (RFC 9293 section 3.10.7.4).
        probed: it begins with what a window probe carried, which leaves again without any loss once
            the window has opened.
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
    possible: Range
    probed: bool

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
        blocks: SACK blocks inside (una, max], as offsets; an invalid block is left out.
        invalid_blocks: SACK blocks that are malformed or outside what was sent.
        dsack: the D-SACK block of RFC 2883, if the first block is one.
        newly_sacked: octets reported held for the first time.
        sacked: ranges held above the acknowledgment after this segment.
        ancient: acknowledges less than una.
        beyond: acknowledges data never sent.
        rejected: the IUT has to drop the segment: sequence number outside its window, or an old
            timestamp (RFC 7323 section 5.3).
        may_heed: the acknowledgment of a rejected segment may count even so.
        may_refuse: that of a segment at the right edge of the window, or beyond one that has moved
            back, may not count.
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
    blocks: tuple[Range, ...]
    invalid_blocks: tuple[Range, ...]
    dsack: Range | None
    newly_sacked: int
    sacked: tuple[Range, ...]
    ancient: bool
    beyond: bool
    rejected: bool
    may_heed: bool
    may_refuse: bool
    responses: list[Sent] = field(default_factory=list)

    @property
    def flight(self) -> int:
        """Octets outstanding when it arrived, before it took effect."""
        return self.max - self.una

    @property
    def acceptable(self) -> bool:
        """Whether a conformant sender processes it."""
        return not (self.ancient or self.beyond or self.rejected)

    @property
    def round_end(self) -> int:
        """What has to be acknowledged before a round trip has passed since it.

        That is all data outstanding after it, or what it released if nothing was.
        """
        if self.max > self.ack:
            return self.max
        return max((sent.end for sent in self.responses), default=self.max + 1)


@dataclass(slots=True, eq=False)
class Arrival(Data):
    """A segment with data or FIN reaching the IUT, and the receiver's state just before it.

    Attributes:
        expected: next in-sequence offset (rcv_nxt) before it.
        held: ranges above ``expected`` the IUT must be holding before it.
        window_edge: highest right edge the IUT had offered, exclusive.
        widest_window: widest window the IUT had offered, in octets.
        paws_rejected: its timestamp is older than the last one accepted (RFC 7323 section 5.3).
        may_be_stale: its timestamp is older than one the IUT may have accepted.
        lacks_timestamp: it carries no Timestamps option although they were negotiated.
        dropped: it is, for what it acknowledges (RFC 9293 section 3.10.7.4, RFC 5961 section 5.2).
        acceptable: it certainly passes the sequence check of RFC 9293 section 3.10.7.4 and PAWS.
        last_ack: highest acknowledgment number the IUT had sent.
        replies: acknowledgments the IUT sent after it and before the next arrival.
    """

    expected: int
    held: tuple[Range, ...]
    window_edge: int
    widest_window: int
    paws_rejected: bool
    may_be_stale: bool
    lacks_timestamp: bool
    dropped: bool
    acceptable: bool
    last_ack: int
    replies: list[Reply] = field(default_factory=list)

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
class Reply(Segment):
    """A segment with an acknowledgment leaving the IUT.

    Attributes:
        ack: acknowledgment number as an offset in the tester's direction.
        window: offered window in octets, scaled.
        window_edge: ack + window.
        blocks: SACK blocks as offsets, in wire order.
        payload: octets of data it also carries.
        expected: the offset a receiver that keeps everything acknowledges then.
        held: ranges above ``expected`` such a receiver holds then.
        limit: the highest offset the IUT can have received in sequence.
        arrived: ranges above ``limit`` that reached it.
        echoes: TSecr values that echo TS.Recent by RFC 7323 section 4.3; empty without timestamps.
        older_echoes: what only RFC 1323 section 3.4 permits besides, by which a segment without
            text leaves TS.Recent as it is.
        last_arrival: the latest segment with data that reached the IUT before it.
        dsack: the D-SACK block, if the first block is one (RFC 2883 section 4).
    """

    ack: int
    window: int
    window_edge: int
    blocks: tuple[Range, ...]
    payload: int
    expected: int
    held: tuple[Range, ...]
    limit: int
    arrived: tuple[Range, ...]
    echoes: Collection[int]
    older_echoes: frozenset[int]
    last_arrival: Arrival | None
    dsack: Range | None

    @property
    def sack(self) -> tuple[Range, ...]:
        """The blocks that report data held out of sequence: all but a D-SACK block."""
        return self.blocks[1:] if self.dsack is not None else self.blocks


Event = Sent | Ack | Arrival | Reply
