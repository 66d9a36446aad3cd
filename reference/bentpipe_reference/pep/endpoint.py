"""One of the two connections of a relay: TCP that does not acknowledge a FIN by itself."""

from __future__ import annotations

from typing import Protocol

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire.segment import Segment


class End(Protocol):
    """What a relay knows of either of its connections, whatever is spoken there."""

    @property
    def failure(self) -> str | None:
        """Why it has failed, None if it has not."""

    @property
    def is_opening(self) -> bool:
        """Whether the handshake goes on."""

    @property
    def is_closed(self) -> bool:
        """Whether it is over."""

    @property
    def only_waits(self) -> bool:
        """Whether both streams have ended, and what is left waits for late packets only."""

    @property
    def awaits_caller(self) -> bool:
        """Whether the caller has not completed its handshake."""

    @property
    def has_heard(self) -> bool:
        """Whether an octet of the peer has arrived."""

    @property
    def readable(self) -> int:
        """Octets that :meth:`read` would return."""

    @property
    def write_room(self) -> int:
        """Octets that :meth:`write` takes."""

    @property
    def stream_has_ended(self) -> bool:
        """Whether the peer's end is here and every octet before it."""

    @property
    def end_is_acknowledged(self) -> bool:
        """Whether the peer has acknowledged the end of our stream."""

    def open(self, now: float) -> None:
        """Call."""

    def accept(self, segment: Segment, now: float) -> None:
        """Answer a call."""

    def read(self, octets: int) -> bytes:
        """Take octets of the peer's stream."""

    def write(self, data: bytes, now: float) -> object:
        """Append octets to our stream, no more than there is room for."""

    def close(self, now: float) -> None:
        """End our stream."""

    def confirm_end(self, now: float) -> None:
        """Acknowledge the end of the peer's stream."""

    def abort(self, reason: str, now: float) -> None:
        """Reset it."""

    def advance(self, now: float) -> None:
        """Run its timers that are due."""

    def next_deadline(self) -> float | None:
        """When :meth:`advance` must be called, None for never."""


def tcp(end: End | None) -> Endpoint:
    """An end that is known to be TCP's."""
    assert isinstance(end, Endpoint)
    return end


SMALLEST_MTU = 68
"""Octets that every link carries (RFC 791)."""

_HEADERS = 40


class RelayReceiver(Receiver):
    """Acknowledges all octets at once, and the FIN when that is confirmed (PEP-RE-002).

    Until then it answers the FIN as if it had been lost.
    """

    confirmed = False

    @property
    def has_ended(self) -> bool:
        """Whether the FIN is here and every octet before it."""
        return self.fin_seq is not None and self.fin_seq == self.buffer.rcv_nxt

    def window_field(self) -> int:
        """See :class:`Receiver`; rounded down to the scale, so that no octet finds no room.

        What was offered before is taken nevertheless (RFC 7323 section 2.4).
        """
        self.update_edge()
        return min(max(0, self.edge - self.rcv_nxt) >> self.window_shift, 0xFFFF)

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Receiver`."""
        waits, due = self.has_ended and not self.confirmed, self.ack_now
        super().on_text(seq, payload, fin, now)
        if waits and not payload and not fin:
            self.ack_now = due  # nothing has come, although the FIN is here
        if not self.confirmed:
            self.fin_received = False


class Endpoint(Connection):
    """A connection of a relay."""

    @property
    def is_opening(self) -> bool:
        """Whether the handshake goes on."""
        return self.state in (State.SYN_SENT, State.SYN_RECEIVED)

    @property
    def is_closed(self) -> bool:
        """See :class:`End`."""
        return self.state is State.CLOSED

    @property
    def only_waits(self) -> bool:
        """See :class:`End`."""
        return self.state in (State.CLOSED, State.TIME_WAIT)

    @property
    def awaits_caller(self) -> bool:
        """See :class:`End`."""
        return self.state is State.SYN_RECEIVED

    @property
    def has_heard(self) -> bool:
        """See :class:`End`."""
        return self.receiver is not None and self.receiver.rcv_nxt != self.receiver.irs + 1

    @property
    def end_is_acknowledged(self) -> bool:
        """See :class:`End`."""
        return self.sender.fin_acknowledged

    @property
    def stream_has_ended(self) -> bool:
        """Whether the peer's FIN is here and every octet before it."""
        return isinstance(self.receiver, RelayReceiver) and self.receiver.has_ended

    def confirm_end(self, now: float) -> None:
        """Acknowledge the peer's FIN."""
        receiver = self.receiver
        if not isinstance(receiver, RelayReceiver) or receiver.confirmed:
            return
        receiver.confirmed = receiver.fin_received = receiver.ack_now = True
        self._happen(Happening.FIN_RECEIVED, now)

    def is_outstanding(self, seq: int) -> bool:
        """Whether a number of 32 bits is one that the peer has not acknowledged."""
        sender = self.sender
        if self.is_opening:
            return seq == sender.iss & 0xFFFFFFFF
        return (seq - sender.snd_una) & 0xFFFFFFFF < sender.snd_max - sender.snd_una

    def fail(self, reason: str, now: float) -> None:
        """End without a word: the peer cannot be reached."""
        self._end(reason, now)

    def fit(self, mtu: int, now: float) -> None:
        """Send packets of ``mtu`` octets at most from now on (RFC 1191)."""
        sender = self.sender
        smss = max(mtu, SMALLEST_MTU) - _HEADERS - 12 * self.handshake.timestamps_ok
        if not self.is_opening and smss < sender.smss:
            sender.smss = smss
            sender.snd_nxt = sender.snd_una
            sender.forget_measurement()
            self._output(now)
