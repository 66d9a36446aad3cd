"""A peer on paper: scripted acknowledgments in segment numbers, at explicit times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from bentpipe_reference.common.stream import PatternSource, pattern
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.wire import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

LOCAL, REMOTE = 0x0A4D0002, 0x0A4E0002
PEER_ISN = 900_000


class Script:
    """One connection with data to send, and its peer played by hand.

    Segments of 1000 octets are numbered from 0; ``ack(n)`` acknowledges the first n of them.
    """

    mss = 1000

    def __init__(
        self,
        variant: str = "sack-newreno-rfc",
        *,
        octets: int | None = None,
        window: int = 1 << 20,
        sack: bool = True,
        timestamps: bool = False,
        peer_mss: int | None = 1000,
        iss: int = 5000,
        initial: int = 10,
        connect: bool = True,
        **config: Any,
    ) -> None:
        config.setdefault("mss", 1000)
        self.config = EndpointConfig(
            variant=variant,  # type: ignore[arg-type]
            timestamps=timestamps,
            initial_window_segments=initial,
            **config,
        )
        self.now = 0.0
        self.iss = iss
        self.window = window
        self.timestamps = timestamps
        self.peer_sent = 0
        self.last: list[Segment] = []
        self.connection = Connection(self.config, Addresses(LOCAL, 19, REMOTE, 4000), iss)
        syn = self.segment(seq=PEER_ISN, flags=Flags.SYN, ack=0)
        syn.mss, syn.sack_permitted, syn.window_scale = peer_mss, sack, 6
        syn.window = 65535
        self.connection.accept(syn, self.now)
        self.flush()
        self.syn_ack = self.last[0]
        if connect:
            self.now = 0.6
            self.source = PatternSource(octets)
            self.connection.sender.source = self.source
            self.first_flight = self.ack(0)

    @property
    def sender(self) -> Any:
        return self.connection.sender

    @property
    def cwnd(self) -> float:
        """Congestion window in segments."""
        return self.sender.cwnd / self.sender.smss

    @property
    def ssthresh(self) -> float:
        """Slow start threshold in segments."""
        return self.sender.ssthresh / self.sender.smss

    @property
    def flight(self) -> float:
        """Outstanding segments."""
        return self.sender.flight_size / self.sender.smss

    def number(self, segments: float) -> int:
        """Sequence number field of the octet where segment ``segments`` starts."""
        return self.iss + 1 + round(segments * 1000) & MASK

    def segment(self, **fields: Any) -> Segment:
        base: dict[str, Any] = {
            "seq": PEER_ISN + 1 + self.peer_sent & MASK,
            "flags": Flags.ACK,
            "window": min(self.window >> 6, 65535),
            "timestamps": (int(self.now * 1000), 0) if self.timestamps else None,
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
            sent += [(self.now, number) for number in self.flush()]
        self.now = end
        return sent


@pytest.fixture
def script() -> type[Script]:
    """The class that plays a peer by hand."""
    return Script
