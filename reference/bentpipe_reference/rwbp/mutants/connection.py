"""Mutants of opening, closing and resets (RWBP-CX)."""

from __future__ import annotations

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.mutants import mutant
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.wire import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import unwrap


@mutant("rwbp-syn-repeated-every-second", breaks="RWBP-CX-002")
class RepeatsEverySecond(RwbpHandshake):
    """SYN and SYN-ACK are repeated every second."""

    def sent(self, now: float, *, repeated: bool) -> None:
        super().sent(now, repeated=repeated)
        self.deadline = now + 1.0


@mutant("rwbp-syn-patient", breaks="RWBP-CX-002")
class WaitsThreeSeconds(RwbpHandshake):
    """SYN and SYN-ACK are repeated after three seconds."""

    def sent(self, now: float, *, repeated: bool) -> None:
        super().sent(now, repeated=repeated)
        self.deadline = now + 3.0 * self._estimator.rto


@mutant("rwbp-syn-twice", breaks="RWBP-CX-002")
class RepeatsTwice(RwbpConnection):
    """SYN and SYN-ACK are repeated in two copies, as data after a timeout."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.handshake.attempts > 1 and not repeated:
            self._outbox.append(self._outbox[-1])


@mutant("rwbp-fin-not-taken-for-lost", breaks="RWBP-CX-003")
class SparesTheFin(RwbpSender):
    """The timer does not repeat a FIN that is alone."""

    def on_timeout(self, now: float) -> None:
        lowest = self.segments.lowest()
        if lowest is not None and lowest.fin and not lowest.payload:
            self.restart_rto(now)
        else:
            super().on_timeout(now)


@mutant("rwbp-fin-repeated-alone", breaks="RWBP-CX-003")
class StripsTheFin(RwbpSender):
    """A FIN that left with data is repeated without it."""

    def on_timeout(self, now: float) -> None:
        lowest = self.segments.lowest()
        if lowest is not None and lowest.fin and lowest.payload:
            self.put(lowest.end - 1, b"", True, now)
        super().on_timeout(now)


@mutant("rwbp-early-fin-forgotten", breaks="RWBP-CX-003")
class ForgetsEarlyFins(RwbpReceiver):
    """A FIN behind a hole is not kept."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().on_text(seq, payload, fin and seq <= self.rcv_nxt, now)


@mutant("rwbp-deaf-after-fin", breaks="RWBP-CX-004")
class DeafAfterFin(RwbpConnection):
    """Data that arrives after the own FIN is not taken."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.agreed and self.sender.fin_queued and segment.payload:
            segment.payload = b""
        super().receive(segment, now)


@mutant("rwbp-dumb-after-fin", breaks="RWBP-CX-004")
class DumbAfterFin(RwbpConnection):
    """What waits when the peer's FIN arrives is not sent."""

    def can_send(self) -> bool:
        sender = self.sender
        if isinstance(sender, RwbpSender) and self.peer_has_closed and not sender.segments.due():
            end = sender.data_end
            if end is not None and end > sender.snd_nxt:
                return False
        return super().can_send()


@mutant("rwbp-reset-anywhere-in-the-window", breaks="RWBP-CX-005")
class HeedsResetsInTheWindow(RwbpConnection):
    """A RST anywhere in the window ends the connection."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if self.agreed and segment.flags & Flags.RST and isinstance(receiver, RwbpReceiver):
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if receiver.rcv_nxt < seq < receiver.edge:
                self._end("the peer reset the connection", now)
                return
        super().receive(segment, now)


@mutant("rwbp-reset-below-the-window", breaks="RWBP-CX-005")
class HeedsResetsBelow(RwbpConnection):
    """A RST just below the window ends the connection."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if self.agreed and segment.flags & Flags.RST and receiver is not None:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if receiver.rcv_nxt - 1000 < seq < receiver.rcv_nxt:
                self._end("the peer reset the connection", now)
                return
        super().receive(segment, now)


@mutant("rwbp-resets-not-challenged", breaks="RWBP-CX-005")
class ChallengesNothing(RwbpConnection):
    """A RST elsewhere in the window is dropped."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        odd = receiver is not None and unwrap(segment.seq, receiver.rcv_nxt) != receiver.rcv_nxt
        if self.agreed and segment.flags & Flags.RST and odd:
            return
        super().receive(segment, now)


@mutant("rwbp-every-reset-answered", breaks="RWBP-CX-005")
class AnswersEveryReset(RwbpConnection):
    """A RST outside the window is answered."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if self.agreed and segment.flags & Flags.RST and isinstance(receiver, RwbpReceiver):
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            receiver.ack_now |= not receiver.is_acceptable(seq, 0)
        super().receive(segment, now)


@mutant("rwbp-resets-ignored", breaks="RWBP-CX-005")
class IgnoresResets(RwbpConnection):
    """No RST ends a connection."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.agreed and segment.flags & Flags.RST:
            return
        super().receive(segment, now)


@mutant("rwbp-two-resets", breaks="RWBP-CX-006")
class ResetsTwice(RwbpConnection):
    """An abort sends two RSTs."""

    def abort(self, reason: str, now: float) -> None:
        self._put(self.sender.snd_nxt, int(Flags.RST | Flags.ACK), now)
        super().abort(reason, now)


@mutant("rwbp-reset-at-una", breaks="RWBP-CX-006")
class ResetsAtUna(RwbpConnection):
    """The RST of an abort stands at SND.UNA."""

    def abort(self, reason: str, now: float) -> None:
        super().abort(reason, now)
        for segment in self._outbox:
            if segment.flags & Flags.RST:
                segment.seq = self.sender.snd_una & 0xFFFFFFFF
