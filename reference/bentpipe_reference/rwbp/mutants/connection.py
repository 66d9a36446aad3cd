"""Mutants of opening, closing and resets (RWBP-CX)."""

from __future__ import annotations

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.mutants import mutant
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.wire import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import unwrap


@mutant("rwbp-syn-repeated-every-second", "sent", breaks="RWBP-CX-002")
def repeats_every_second(self: RwbpHandshake, now: float, *, repeated: bool) -> None:
    """SYN and SYN-ACK are repeated every second."""
    RwbpHandshake.sent(self, now, repeated=repeated)
    self.deadline = now + 1.0


@mutant("rwbp-syn-patient", "sent", breaks="RWBP-CX-002")
def waits_three_seconds(self: RwbpHandshake, now: float, *, repeated: bool) -> None:
    """SYN and SYN-ACK are repeated after three seconds."""
    RwbpHandshake.sent(self, now, repeated=repeated)
    self.deadline = now + 3.0 * self._estimator.rto


@mutant("rwbp-syn-twice", "_send_syn", breaks="RWBP-CX-002")
def repeats_twice(self: RwbpConnection, now: float, *, repeated: bool = False) -> None:
    """SYN and SYN-ACK are repeated in two copies, as data after a timeout."""
    RwbpConnection._send_syn(self, now, repeated=repeated)
    if self.handshake.attempts > 1 and not repeated:
        self._outbox.append(self._outbox[-1])


@mutant("rwbp-fin-not-taken-for-lost", "on_timeout", breaks="RWBP-CX-003")
def spares_the_fin(self: RwbpSender, now: float) -> None:
    """The timer does not repeat a FIN that is alone."""
    lowest = self.segments.lowest()
    if lowest is not None and lowest.fin and not lowest.payload:
        self.restart_rto(now)
    else:
        RwbpSender.on_timeout(self, now)


@mutant("rwbp-fin-repeated-alone", "on_timeout", breaks="RWBP-CX-003")
def strips_the_fin(self: RwbpSender, now: float) -> None:
    """A FIN that left with data is repeated without it."""
    lowest = self.segments.lowest()
    if lowest is not None and lowest.fin and lowest.payload:
        self.put(lowest.end - 1, b"", True, now)
    RwbpSender.on_timeout(self, now)


@mutant("rwbp-early-fin-forgotten", "on_text", breaks="RWBP-CX-003")
def forgets_early_fins(self: RwbpReceiver, seq: int, payload: bytes, fin: bool, now: float) -> None:
    """A FIN behind a hole is not kept."""
    RwbpReceiver.on_text(self, seq, payload, fin and seq <= self.rcv_nxt, now)


@mutant("rwbp-deaf-after-fin", "receive", breaks="RWBP-CX-004")
def deaf_after_fin(self: RwbpConnection, segment: Segment, now: float) -> None:
    """Data that arrives after the own FIN is not taken."""
    if self.agreed and self.sender.fin_queued and segment.payload:
        segment.payload = b""
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-dumb-after-fin", "can_send", breaks="RWBP-CX-004")
def dumb_after_fin(self: RwbpConnection) -> bool:
    """What waits when the peer's FIN arrives is not sent."""
    sender = self.sender
    if isinstance(sender, RwbpSender) and self.peer_has_closed and not sender.segments.due():
        end = sender.data_end
        if end is not None and end > sender.snd_nxt:
            return False
    return RwbpConnection.can_send(self)


class _Heeding(RwbpConnection):
    """A connection with rules of its own about RSTs."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`RwbpConnection`."""
        receiver = self.receiver
        if isinstance(receiver, RwbpReceiver) and segment.flags & Flags.RST:
            at = unwrap(segment.seq, receiver.rcv_nxt)
            if self.ends(at, receiver):
                self._end("the peer reset the connection", now)
                return
            if not self.heeds(at, receiver):
                return
        super().receive(segment, now)

    def ends(self, at: int, receiver: RwbpReceiver) -> bool:
        """Whether a RST at a number ends the connection, whatever else it does."""
        return False

    def heeds(self, at: int, receiver: RwbpReceiver) -> bool:
        """Whether it is processed at all."""
        return True


@mutant("rwbp-reset-anywhere-in-the-window", "ends", breaks="RWBP-CX-005")
def heeds_resets_in_the_window(self: _Heeding, at: int, receiver: RwbpReceiver) -> bool:
    """A RST anywhere in the window ends the connection."""
    return receiver.rcv_nxt < at < receiver.edge


@mutant("rwbp-reset-below-the-window", "ends", breaks="RWBP-CX-005")
def heeds_resets_below(self: _Heeding, at: int, receiver: RwbpReceiver) -> bool:
    """A RST just below the window ends the connection."""
    return receiver.rcv_nxt - 1000 < at < receiver.rcv_nxt


@mutant("rwbp-resets-not-challenged", "heeds", breaks="RWBP-CX-005")
def challenges_nothing(self: _Heeding, at: int, receiver: RwbpReceiver) -> bool:
    """A RST elsewhere in the window is dropped."""
    return at == receiver.rcv_nxt


@mutant("rwbp-every-reset-answered", "heeds", breaks="RWBP-CX-005")
def answers_every_reset(self: _Heeding, at: int, receiver: RwbpReceiver) -> bool:
    """A RST outside the window is answered."""
    receiver.ack_now |= not receiver.is_acceptable(at, 0)
    return True


@mutant("rwbp-resets-ignored", "heeds", breaks="RWBP-CX-005")
def ignores_resets(self: _Heeding, at: int, receiver: RwbpReceiver) -> bool:
    """No RST ends a connection."""
    return False


@mutant("rwbp-two-resets", "abort", breaks="RWBP-CX-006")
def resets_twice(self: RwbpConnection, reason: str, now: float) -> None:
    """An abort sends two RSTs."""
    self._put(self.sender.snd_nxt, int(Flags.RST | Flags.ACK), now)
    RwbpConnection.abort(self, reason, now)


@mutant("rwbp-reset-at-una", "abort", breaks="RWBP-CX-006")
def resets_at_una(self: RwbpConnection, reason: str, now: float) -> None:
    """The RST of an abort stands at SND.UNA."""
    RwbpConnection.abort(self, reason, now)
    for segment in self._outbox:
        if segment.flags & Flags.RST:
            segment.seq = self.sender.snd_una & 0xFFFFFFFF
