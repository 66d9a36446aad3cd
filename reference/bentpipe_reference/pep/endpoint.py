"""One of the two connections of a relay: TCP that does not acknowledge a FIN by itself."""

from __future__ import annotations

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.states import Happening, State

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
        super().on_text(seq, payload, fin, now)
        if not self.confirmed:
            self.fin_received = False


class Endpoint(Connection):
    """A connection of a relay."""

    @property
    def is_opening(self) -> bool:
        """Whether the handshake goes on."""
        return self.state in (State.SYN_SENT, State.SYN_RECEIVED)

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
        first = sender.iss if self.is_opening else sender.snd_una
        return (seq - first) & 0xFFFFFFFF < max(1, sender.snd_max - first)

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
