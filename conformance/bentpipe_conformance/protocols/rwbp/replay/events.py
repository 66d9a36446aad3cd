"""The events of a connection with RWBP, and what the implementation knew just before each.

Sequence numbers are *offsets*: numbers that do not wrap, 0 being the first octet of data in that
direction. The implementation under test (IUT) is a sender, of ``Sent`` segments, to which ``Ack``
segments arrive, and a receiver, to which ``Arrival`` segments come and which sends ``Reply``
segments. One packet can be two of these. Names in capitals are variables of the specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TypeVar

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.rwbp.codec import Rwbp
from bentpipe_conformance.protocols.rwbp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.order import count_through


@dataclass(slots=True, eq=False)
class Segment:
    """A segment on the wire, in a packet."""

    packet: Packet

    @property
    def time(self) -> float:
        """Seconds since the trace began."""
        return self.packet.time

    @property
    def tcp(self) -> Rwbp:
        """The dissected segment."""
        assert self.packet.content is not None
        return self.packet.content


class Span:
    """Offsets [start, end) of which ``payload`` are octets of data; a FIN occupies one."""

    __slots__ = ()

    start: int
    end: int
    payload: int

    @property
    def data_end(self) -> int:
        """Where the data ends."""
        return self.start + self.payload

    @property
    def fin(self) -> bool:
        """Whether there is a FIN."""
        return self.end > self.data_end

    @property
    def span(self) -> str:
        """The offsets, for a sentence."""
        return f"[{self.start}, {self.end})"


class Why(Enum):
    """Why a segment with data left, as far as the specification knows a reason."""

    NEW = "new"
    LOST = "taken for lost"
    TIMEOUT = "the timer expired"
    ARRIVED = "it had arrived"
    RECUT = "cut anew"
    BEYOND = "beyond what was sent"
    NOTHING = "no reason"


@dataclass(slots=True, eq=False)
class Outgoing(Span):
    """A segment that has been sent, as section 8 counts it.

    Attributes:
        start, end: START and END; a FIN occupies one.
        payload: octets of data.
        ft, lt: FT and LT.
        last_sent: SENT.
        copies: COPIES.
        reason: why they are due.
        due: since when.
        cause: the acknowledgment by which it was taken for lost last.
        suspect, repaired: SUSPECT and REPAIRED.
        transmissions: its packets.
        arrived: the acknowledgment that reported it.
    """

    start: int
    end: int
    payload: int
    ft: int
    lt: int
    last_sent: float
    copies: int = 0
    reason: Why = Why.NEW
    due: float = 0.0
    suspect: bool = False
    repaired: float | None = None
    transmissions: list[Sent] = field(default_factory=list)
    arrived: Ack | None = None
    cause: Ack | None = None


@dataclass(slots=True, eq=False)
class Sent(Segment, Span):
    """A segment with data or FIN leaving the IUT.

    Attributes:
        start, end: offsets [start, end); a FIN occupies one.
        payload: octets of data.
        why: see :class:`Why`.
        outgoing: what it is a transmission of; None where it is cut as none that is outstanding.
        una, nxt, edge: SND.UNA, SND.NXT and SND.EDGE before it.
        before: start of the lowest segment that awaited retransmission and is below it.
        cause: the acknowledgment that arrived last before it.
        since_cause: seconds since that, or infinity.
        available: octets that the user has surely written and that were not sent; None: unknown.
    """

    start: int
    end: int
    payload: int
    why: Why
    outgoing: Outgoing | None
    una: int
    nxt: int
    edge: int
    before: int | None
    cause: Ack | None
    since_cause: float
    available: float | None


@dataclass(slots=True, eq=False)
class Ack(Segment):
    """A segment with an acknowledgment reaching the IUT.

    Attributes:
        ack: SEG.ACK as an offset.
        counts: whether it counts by section 8.3.
        refused: whether RWBP-EC-015 discards it.
        una, nxt, edge: SND.UNA, SND.NXT and SND.EDGE before it.
        edge_after: SND.EDGE after it.
        blocks, untrue: its SACK blocks as offsets, the true ones and the others.
        arrived: the segments that it reports for the first time.
        rose: whether H rose.
        taken: the segments that are taken for lost because of it.
        false: those of ``arrived`` whose loss was false.
        repeated: those that a timeout has repeated just before, so that theirs would have been.
        k: K after it.
        spared: what is not taken for lost because K is 3.
        at_edge: whether it stands at RCV.EDGE, above RCV.NXT.
        responses: the segments with data that left before the next one arrived, in order.
    """

    ack: int
    counts: bool
    refused: bool
    una: int
    nxt: int
    edge: int
    edge_after: int
    blocks: tuple[Range, ...]
    untrue: tuple[Range, ...]
    arrived: tuple[Outgoing, ...] = ()
    rose: bool = False
    taken: tuple[Outgoing, ...] = ()
    false: tuple[Outgoing, ...] = ()
    repeated: tuple[Outgoing, ...] = ()
    k: int = 1
    spared: tuple[Outgoing, ...] = ()
    at_edge: bool = False
    responses: list[Sent] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Expiry:
    """A run of the retransmission timer that ended with its expiry, or should have.

    Attributes:
        started: the segment that started it.
        why: ``sent``, ``progress`` or ``timeout``.
        least, most: seconds for which it has to run.
        gap: seconds between which it must not expire, though they lie between the others.
        backoff: BACKOFF when it was started.
        outgoing: the segment that was lowest then.
        copies: what it sent; empty where nothing was sent.
        until: when the silence was over: the first copy, or what else ended the wait.
    """

    started: Segment
    why: str
    least: float
    most: float
    gap: tuple[float, float]
    backoff: int
    outgoing: Outgoing
    copies: list[Sent]
    until: float

    @property
    def lasted(self) -> float:
        """Seconds that it ran."""
        return self.until - self.started.time


@dataclass(slots=True, eq=False)
class Missed:
    """A segment that was taken for lost, or owed as a copy, and was not sent in time."""

    outgoing: Outgoing
    cause: Ack | None
    until: float


@dataclass(slots=True, eq=False)
class Stall:
    """A time during which there was something to send, and room, and nothing was sent.

    Attributes:
        since: what began it.
        until: when it was over.
        nxt, edge: SND.NXT and SND.EDGE.
        octets: what could have been sent.
        losses: whether any segment had been lost before.
    """

    since: Segment
    until: float
    nxt: int
    edge: int
    octets: int
    losses: bool


@dataclass(slots=True, eq=False)
class Probe:
    """The time before a probe of a closed window.

    Attributes:
        started: what began it: what closed the window, or the probe before.
        segment: the probe, None where none came.
        until: when the wait was over.
        least, most: seconds of the probe interval.
        count: PROBES.
    """

    started: Segment
    segment: Segment | None
    until: float
    least: float
    most: float
    count: int


class Call(Enum):
    """What calls for an acknowledgment (section 7.1)."""

    COUNT = "N orderly segments"
    TIMER = "the acknowledgment timer"
    DISORDER = "a segment that is not orderly"
    FIN = "a FIN"
    UNACCEPTABLE = "an unacceptable segment"
    CHALLENGE = "a SYN or RST"
    REFUSED = "an acknowledgment number out of range"
    HANDSHAKE = "the handshake"


@dataclass(slots=True, eq=False)
class Arrival(Segment, Span):
    """A segment reaching the IUT that is judged as a receiver: data, FIN, or odd.

    Attributes:
        start, end: offsets [start, end); a FIN occupies one.
        payload: octets of data.
        acceptable: by RFC 9293 section 3.10.7.4, with RCV.EDGE.
        orderly: by section 7.1.
        expected, edge: RCV.NXT and RCV.EDGE before it.
        named: the edge that the IUT has named last.
        runs: the runs before it.
        calls: what it calls for at once, None where it calls for nothing.
        expected_after: RCV.NXT after it.
        runs_after: the runs after it.
        answer: the acknowledgment that answers its call.
    """

    start: int
    end: int
    payload: int
    acceptable: bool
    orderly: bool
    expected: int
    edge: int
    named: int
    runs: tuple[Range, ...]
    calls: Call | None = None
    expected_after: int = 0
    runs_after: tuple[Range, ...] = ()
    answer: Reply | None = None


@dataclass(slots=True, eq=False)
class Reset(Segment):
    """A RST reaching the IUT on an open connection (RWBP-CX-005).

    Attributes:
        start: its sequence number as an offset.
        expected, edge: RCV.NXT and RCV.EDGE before it.
        arrival: what it calls for, None where it calls for nothing.
    """

    start: int
    expected: int
    edge: int
    arrival: Arrival | None

    @property
    def exact(self) -> bool:
        """Whether it ends the connection."""
        return self.start == self.expected


@dataclass(slots=True, eq=False)
class Reply(Segment):
    """A segment with an acknowledgment leaving the IUT.

    Attributes:
        ack: SEG.ACK as an offset.
        field: its window field.
        edge: the edge that it names.
        blocks: SACK blocks as offsets, in wire order.
        payload: octets of data.
        start: its sequence number as an offset in the IUT's direction.
        pure: whether it is a pure acknowledgment.
        expected: RCV.NXT.
        runs: the runs.
        listed: the blocks that section 7.2 gives.
        edge_before: RCV.EDGE before it.
        edge_called: RCV.EDGE when an update that it is may have been called for: before what named
            the window a moment before, and is no complete acknowledgment (RWBP-AK-008).
        calls: what called for it; None where nothing did but perhaps the window.
        arrival: the segment that did.
        delay: seconds since what started the acknowledgment timer, None where it did not run.
        probe: whether it has the form of a probe.
    """

    ack: int
    field: int
    edge: int
    blocks: tuple[Range, ...]
    payload: int
    start: int
    pure: bool
    expected: int
    runs: tuple[Range, ...]
    listed: tuple[Range, ...]
    edge_before: int
    edge_called: int
    calls: Call | None
    arrival: Arrival | None
    delay: float | None
    probe: bool


@dataclass(slots=True, eq=False)
class Due:
    """An acknowledgment that was called for and did not come in time.

    Attributes:
        call: what called for it.
        arrival: the segment.
        until: when it had still not left.
        limit: when it should have left at the latest.
    """

    call: Call
    arrival: Arrival
    until: float
    limit: float


Event = Sent | Ack | Arrival | Reply

_Segment = TypeVar("_Segment", bound=Segment)


def after(segments: Sequence[_Segment], number: int) -> Iterator[_Segment]:
    """Those of segments in order whose packets come after the one with this number."""
    return islice(segments, count_through(segments, number), None)
