"""One direction of a split connection: octets that come in at one side and leave at the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.protocols.pep.replay.leg import Leg, Packet, Segment
from bentpipe_conformance.protocols.tcp.codec import RST


@dataclass(frozen=True, slots=True)
class Step:
    """What was true of a stream after one segment, at either side.

    Attributes:
        segment: that segment.
        inlet: whether it passed at the sender's side of the box.
        sent: one past the highest octet that the sender has sent.
        arrived: octets that have arrived from the sender without a gap.
        taken: octets that the box has acknowledged.
        limit: how many octets the box has ever permitted the sender.
        relayed: one past the highest octet that the box has sent to the receiver.
        delivered: octets that the receiver has acknowledged.
        heard: the same as far as the box has to know of it.
        outlet: how many octets the receiver has ever permitted the box.
        told: whether it has named a window at all.
        end: how long the stream is; None while the sender has not ended it.
        end_taken: whether the box has acknowledged the sender's FIN.
        end_relayed: whether the box has sent a FIN.
        end_delivered: whether the receiver has acknowledged it.
    """

    segment: Segment
    inlet: bool
    sent: int = 0
    arrived: int = 0
    taken: int = 0
    limit: int = 0
    relayed: int = 0
    delivered: int = 0
    heard: int = 0
    outlet: int = 0
    told: bool = False
    end: int | None = None
    end_taken: bool = False
    end_relayed: bool = False
    end_delivered: bool = False

    @property
    def packet(self) -> Packet:
        """Of the segment."""
        return self.segment.packet

    @property
    def time(self) -> float:
        """Of the segment."""
        return self.segment.time

    @property
    def by_box(self) -> bool:
        """Whether the box has sent the segment."""
        return self.segment.outgoing

    @property
    def has_whole_stream(self) -> bool:
        """Whether the sender has ended the stream, and all of it has arrived."""
        return self.end is not None and self.arrived >= self.end


class Stream:
    """A stream from one leg to another.

    Attributes:
        name: what it is called in sentences.
        source, sink: legs of the sender and of the receiver; the latter None while there is none.
        steps: what happened, in order.
        octets: what the sender has sent, as far as it has arrived without a gap.
        differs: the first segment of the box with other octets, and the first of these.
        beyond: the first segment of the box with octets that had not arrived.
    """

    def __init__(self, name: str, source: Leg, sink: Leg | None) -> None:
        self.name = name
        self.source, self.sink = source, sink
        self.steps: list[Step] = []
        self.octets = bytearray()
        self.differs: tuple[Segment, int] | None = None
        self.beyond: Segment | None = None
        self._pieces: dict[int, bytes] = {}
        self._arrived = RangeSet()
        self._read()

    def _read(self) -> None:
        inlet = [(item.packet.number, True, item) for item in self.source.segments]
        outlet = (
            [(item.packet.number, False, item) for item in self.sink.segments] if self.sink else []
        )
        now: Step | None = None
        for _, at_inlet, segment in sorted(inlet + outlet, key=lambda item: item[0]):
            now = (
                Step(segment, at_inlet)
                if now is None
                else replace(now, segment=segment, inlet=at_inlet)
            )
            if segment.counts and not segment.tcp.flags & RST:
                now = self._after(now, segment)
            self.steps.append(now)

    def _after(self, step: Step, segment: Segment) -> Step:
        match step.inlet, segment.outgoing:
            case True, False:
                return self._sent(step, segment)
            case True, True:
                return self._answered(step, segment)
            case False, True:
                return self._relayed(step, segment)
            case _:
                return self._delivered(step, segment)

    def _sent(self, step: Step, segment: Segment) -> Step:
        """A segment of the sender; octets beyond what the box has permitted may be refused."""
        payload = segment.payload
        if step.end is not None:
            # What lies behind the end is none of the stream (RFC 9293 section 3.10.7.4).
            payload = payload[: max(0, step.end - segment.start)]
        if payload and segment.start >= 0:
            self._arrived.add(segment.start, segment.start + len(payload))
            self._pieces[segment.start] = max(
                self._pieces.get(segment.start, b""), payload, key=len
            )
            if segment.start <= len(self.octets):
                self._join()
        end = step.end
        if segment.fin is not None and end is None:
            end = segment.fin
        sent = max(step.sent, segment.end if end is None else min(segment.end, end))
        return replace(step, sent=sent, arrived=self._known(step.limit, step.taken), end=end)

    def _known(self, limit: int, taken: int) -> int:
        """Octets that have arrived; what lies beyond the window counts if the box takes it."""
        return min(len(self.octets), max(limit, taken))

    def _join(self) -> None:
        octets = self.octets
        for start in sorted(self._pieces):
            if start > len(octets):
                return
            octets += self._pieces.pop(start)[len(octets) - start :]

    def _answered(self, step: Step, segment: Segment) -> Step:
        """A segment of the box to the sender."""
        if segment.ack is None or segment.edge is None:
            return step
        end = step.end
        taken = max(step.taken, segment.ack if end is None else min(segment.ack, end))
        limit = max(step.limit, segment.edge)
        return replace(
            step,
            arrived=self._known(limit, taken),
            taken=taken,
            limit=limit,
            end_taken=step.end_taken or (end is not None and segment.ack > end),
        )

    def _relayed(self, step: Step, segment: Segment) -> Step:
        """A segment of the box to the receiver."""
        payload = segment.payload
        if payload:
            known = self.octets[segment.start : segment.end]
            if segment.end > len(self.octets) and self.beyond is None:
                self.beyond = segment
            if self.differs is None and not payload.startswith(bytes(known)):
                pairs = zip(payload, known, strict=False)
                first = next(index for index, (one, other) in enumerate(pairs) if one != other)
                self.differs = segment, segment.start + first
        return replace(
            step,
            relayed=max(step.relayed, segment.end if payload else 0),
            end_relayed=step.end_relayed or segment.fin is not None,
        )

    def _delivered(self, step: Step, segment: Segment) -> Step:
        """A segment of the receiver."""
        if segment.ack is None or segment.edge is None:
            return step
        delivered = min(segment.ack, step.relayed)
        return replace(
            step,
            delivered=max(step.delivered, delivered),
            heard=step.heard if segment.old else max(step.heard, delivered),
            outlet=max(step.outlet, segment.edge),
            told=True,
            end_delivered=step.end_delivered or (step.end_relayed and segment.ack > step.relayed),
        )

    @property
    def last(self) -> Step | None:
        """What was true in the end."""
        return self.steps[-1] if self.steps else None

    def first(self, steps: Iterable[Step]) -> Step | None:
        """The first of some steps."""
        return next(iter(steps), None)
