"""A peer on paper: segments with data and acknowledgments in segment numbers, at explicit times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from bentpipe_reference.common.stream import PatternSource, pattern
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.option import RwbpOption
from bentpipe_reference.rwbp.parts import TRUE_PARTS
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.wire import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

LOCAL, REMOTE = 0x0A4D0002, 0x0A4E0002
PEER_ISN = 900_000


class Script:
    """One called connection with data to send, and its peer played by hand.

    Segments of 1000 octets, which is the unit of both, are numbered from 0 in both directions.
    """

    def __init__(
        self,
        *,
        octets: int | None = None,
        window: int = 10,
        interval: int = 8,
        unit: int = 1000,
        buffer: int = 60_000,
        iss: int = 5000,
        peer_isn: int = PEER_ISN,
        rwbp: bool = True,
        option: tuple[int, bytes] | None = None,
        connect: bool = True,
        **config: Any,
    ) -> None:
        self.config = RwbpConfig(mss=1000, receive_buffer=buffer, **config)
        self.now = 0.0
        self.iss = iss
        self.peer_isn = peer_isn
        self.window = window
        self.last: list[Segment] = []
        self.connection = RwbpConnection(
            self.config, Addresses(LOCAL, 19, REMOTE, 4000), iss, TRUE_PARTS
        )
        syn = Segment(REMOTE, LOCAL, 4000, 19, peer_isn & MASK, 0, Flags.SYN, 0)
        syn.mss, syn.sack_permitted = 1000, True
        if rwbp:
            syn.unknown = (option or RwbpOption(interval, unit).emit(),)
        self.syn = syn
        self.connection.accept(syn, self.now)
        self.flush()
        self.syn_ack = self.last[0]
        if connect:
            self.now = 0.5
            if octets != 0:
                self.source = PatternSource(octets)
                self.connection.sender.source = self.source
            self.first_flight = self.ack(0)

    @property
    def sender(self) -> Any:
        return self.connection.sender

    @property
    def receiver(self) -> Any:
        return self.connection.receiver

    def number(self, segments: float) -> int:
        """Sequence number field of the octet where our segment ``segments`` starts."""
        return self.iss + 1 + round(segments * 1000) & MASK

    def peer_number(self, segments: float) -> int:
        """The same of the peer's segments."""
        return self.peer_isn + 1 + round(segments * 1000) & MASK

    def segment(self, **fields: Any) -> Segment:
        base: dict[str, Any] = {
            "seq": self.peer_number(0),
            "ack": self.number(0),
            "flags": Flags.ACK,
            "window": self.window,
        }
        base.update(fields)
        return Segment(REMOTE, LOCAL, 4000, 19, **base)

    def give(self, segment: Segment) -> list[float]:
        """Deliver any segment; return the numbers of the data segments it sets off."""
        self.connection.receive(segment, self.now)
        return self.flush()

    def flush(self) -> list[float]:
        self.last = self.connection.transmit(self.now)
        numbers = []
        for segment in self.last:
            if segment.payload:
                offset = unwrap(segment.seq, self.iss) - self.iss - 1
                assert segment.payload == pattern(offset, len(segment.payload))
                numbers.append(offset / 1000)
        return numbers

    def ack(
        self,
        segments: float,
        sack: Sequence[tuple[float, float]] = (),
        *,
        window: int | None = None,
        after: float = 0.0,
        **fields: Any,
    ) -> list[float]:
        """Acknowledge; ``sack`` gives half-open ranges of segments, ``after`` moves the clock."""
        self.wait(after)
        if window is not None:
            self.window = window
        blocks = tuple((self.number(left), self.number(right)) for left, right in sack)
        return self.give(self.segment(ack=self.number(segments), sack_blocks=blocks, **fields))

    def data(
        self, first: float, end: float | None = None, *, after: float = 0.0, **fields: Any
    ) -> list[tuple[float, list[tuple[float, float]]]]:
        """The peer sends [first, end), one segment by default; return what acknowledges it."""
        self.wait(after)
        end = first + 1 if end is None else end
        offset = round(first * 1000)
        payload = pattern(offset, round(end * 1000) - offset)
        self.give(self.segment(seq=self.peer_number(first), payload=payload, **fields))
        return self.reports()

    def reports(self) -> list[tuple[float, list[tuple[float, float]]]]:
        """(segments acknowledged, blocks in segments) of each segment sent last."""

        def segments(field: int) -> float:
            return (unwrap(field, self.peer_isn) - self.peer_isn - 1) / 1000

        return [
            (segments(each.ack), [(segments(a), segments(b)) for a, b in each.sack_blocks])
            for each in self.last
        ]

    def wait(self, seconds: float) -> list[tuple[float, float]]:
        """Let time pass; return (time, segment number) of what timers send."""
        end = self.now + seconds
        sent = []
        while True:
            deadline = self.connection.next_deadline()
            if deadline is None or deadline > end:
                break
            self.now = deadline
            self.connection.advance(self.now)
            sent += [(round(self.now, 6), number) for number in self.flush()]
        self.now = end
        return sent

    def expire(self) -> list[float]:
        """Wait until the retransmission timer expires; return what it sends."""
        return [number for _, number in self.wait(self.sender.rto_deadline - self.now)]


@pytest.fixture
def script() -> type[Script]:
    """The class that plays a peer by hand."""
    return Script
