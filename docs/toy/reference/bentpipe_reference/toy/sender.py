"""The sending side of a connection: one packet outstanding, one timer."""

from __future__ import annotations

from bentpipe_reference.common.stream import WriteBuffer
from bentpipe_reference.toy.codec import Kind

MOST_OCTETS = 512
"""Of user data in a DATA."""

BUFFER_OCTETS = 4 * MOST_OCTETS
MOST_TRANSMISSIONS = 5

Message = tuple[Kind, int, bytes]
"""Type, sequence bit and data of a packet."""


class Sender:
    """What the user writes, packet by packet.

    Args:
        timeout_s: seconds until a packet is sent again.
        calls: whether an OPEN goes before the data.

    Attributes:
        calling: whether the OPEN is not accepted yet.
        buffer: what is not acknowledged.
        closing: whether the stream ends behind the buffer.
        finished: whether its end is acknowledged.
        gave_up: whether the last permitted transmission was in vain.
        deadline: when the timer expires, None while nothing is outstanding.
    """

    def __init__(self, timeout_s: float, *, calls: bool) -> None:
        self.calling = calls
        self.buffer = WriteBuffer(BUFFER_OCTETS)
        self.closing = False
        self.finished = False
        self.gave_up = False
        self.deadline: float | None = None
        self._timeout_s = timeout_s
        self._outstanding: Message | None = None
        self._bit = 0
        self._offset = 0
        self._transmissions = 0

    def timeout(self) -> float:
        """Seconds until the outstanding packet is sent again."""
        return self._timeout_s

    def message(self, now: float) -> Message | None:
        """What to send now: the next packet, the outstanding one again, or nothing."""
        if self._outstanding is None:
            self._outstanding = self._next()
            self._transmissions = 0
        elif self.deadline is None or now < self.deadline:
            return None
        elif self._transmissions == MOST_TRANSMISSIONS:
            self.gave_up = True
            return None
        if self._outstanding is not None:
            self._transmissions += 1
            self.deadline = now + self.timeout()
        return self._outstanding

    def accepted(self) -> None:
        """An ACCEPT has arrived."""
        if self.calling:
            self.calling = False
            self._outstanding = self.deadline = None

    def acknowledge(self, bit: int) -> None:
        """An ACK has arrived."""
        if self._outstanding is None or self.calling or bit != self._bit:
            return
        kind, _, data = self._outstanding
        self._offset += len(data)
        self.buffer.release(self._offset)
        self.finished = kind is Kind.CLOSE
        self._outstanding = self.deadline = None
        self._bit ^= 1

    def _next(self) -> Message | None:
        if self.calling:
            return Kind.OPEN, 0, b""
        data = self.buffer.read(self._offset, MOST_OCTETS)
        if data:
            return Kind.DATA, self._bit, data
        if self.closing and not self.finished:
            return Kind.CLOSE, self._bit, b""
        return None
