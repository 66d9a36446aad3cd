"""Round 12: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 3042 and 7323 on 2026-11-22."""

from __future__ import annotations

import math
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))


# -- the retransmission timer and the round trip --------------------------------------------------


class BackoffUndoneByDuplicates(SackNewRenoRfcSender):
    """Any sign of life from the peer ends the back-off."""

    def on_duplicate_ack(self, now: float) -> None:
        rtt = self.estimator
        if rtt.srtt is not None:
            rtt.rto = rtt.bounded(rtt.srtt + max(rtt.granularity, rtt.K * rtt.rttvar))
        super().on_duplicate_ack(now)


class SamplesPeersData(SackNewRenoRfcSender):
    """Every data segment of the peer gives a sample, also one that acknowledges nothing new."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number == self.snd_una and not ack.bare and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


class KeepsSynBackoff(RttEstimator):
    """At least three seconds, but the back-off of the SYN is kept when it is more."""

    def after_lost_syn(self) -> None:
        if self.srtt is None:
            self.rto = max(3.0, self.rto)


class CoarseTicks(SackNewRenoRfcSender):
    """Half-second ticks, the expiry rounded down."""

    @staticmethod
    def _tick(deadline: float) -> float:
        return math.floor(deadline * 2) / 2

    def start_rto(self, now: float) -> None:
        if self.rto_deadline is None:
            self.rto_deadline = self._tick(now + self.estimator.rto)

    def restart_rto(self, now: float) -> None:
        super().restart_rto(now)
        if self.rto_deadline is not None:
            self.rto_deadline = self._tick(self.rto_deadline)


class TimerBeforeSample(SackNewRenoRfcSender):
    """The timer is restarted first, then the sample is taken."""

    _rto_before = 1.0

    def on_new_ack(self, ack: Ack, now: float) -> None:
        self._rto_before = self.estimator.rto
        super().on_new_ack(ack, now)

    def restart_rto(self, now: float) -> None:
        self.rto_deadline = now + self._rto_before if self.flight_size else None


class TimerRunsOn(SackNewRenoRfcSender):
    """When everything is acknowledged the timer is only masked; data sent soon finds it running."""

    _masked: float | None = None

    def start_rto(self, now: float) -> None:
        if self.rto_deadline is None and self._masked is not None and self._masked > now:
            self.rto_deadline = self._masked
        self._masked = None
        super().start_rto(now)

    def restart_rto(self, now: float) -> None:
        self._masked = None if self.flight_size else self.rto_deadline
        super().restart_rto(now)


class MeasuresRepaired(SackNewRenoRfcSender):
    """A fast retransmission does not stop the measurement, only a timeout does."""

    def forget_measurement(self) -> None:
        if not self.in_recovery:
            super().forget_measurement()


# -- congestion and recovery ----------------------------------------------------------------------


class ReducedOnceOnly(SackNewRenoRfcSender):
    """A timeout during recovery: the window has been reduced for this episode already."""

    def cwnd_after_timeout(self) -> int:
        return self.cwnd if self.in_recovery else super().cwnd_after_timeout()


class JumpGrowth(SackNewRenoRfcSender):
    """While a timeout is repaired, cwnd grows by all that an ACK covers."""

    def slow_start_increase(self, acked: int) -> int:
        grown = super().slow_start_increase(acked)
        return acked if self.repairs_timeout() else grown


class LimitedBeyondEdge(SackNewRenoRfcSender):
    """The two segments of limited transmit come on top of the offered window too."""

    _limited = False

    def limited_transmit(self, now: float) -> None:
        self._limited = True
        super().limited_transmit(now)
        self._limited = False

    def new_segment(self) -> tuple[int, int] | None:
        if not self._limited:
            return super().new_segment()
        room = self.right_edge + 2 * self.smss - self.snd_max
        octets = self.sendable(self.snd_max, min(room, self.smss))
        return (self.snd_max, self.snd_max + octets) if octets else None


class ShortPipe(SackNewRenoRfcSender):
    """The pipe is counted along the scoreboard, which ends at the highest held octet."""

    def pipe(self) -> int:
        edge, top = self.loss_edge(), self.scoreboard.highest
        if not top:
            return super().pipe()
        return sum(
            max(0, right - max(left, edge)) + max(0, min(right, self.high_rxt) - left)
            for left, right in self.scoreboard.gaps(self.snd_una, top)
        )


class ExactlyTwoSegments(SackNewRenoRfcSender):
    """Exactly (DupThresh - 1) * SMSS octets held above are enough."""

    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class PartialForgetsHighRxt(SackNewRenoRfcSender):
    """A partial ACK sets HighRxt back to HighACK."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        if self.sack_ok:
            self.high_rxt = self.snd_una
        super().on_partial_ack(acked, now)


class MovingRecoveryPoint(SackNewRenoRfcSender):
    """A partial ACK moves RecoveryPoint to the highest data sent by now."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        self.recover = self.recovery_point()
        super().on_partial_ack(acked, now)


class TimeoutKeepsRecoveryPoint(SackNewRenoRfcSender):
    """A timeout during recovery ends it and leaves RecoveryPoint where it was."""

    def on_timeout_in_recovery(self) -> None:
        if not self.in_recovery:
            super().on_timeout_in_recovery()


class RescueForEachPartial(SackNewRenoRfcSender):
    """Each partial ACK permits one more rescue retransmission."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        self.rescued = False
        super().on_partial_ack(acked, now)


class KeepsDuplicates(SackNewRenoRfcSender):
    """The count of duplicates survives an ACK of new data outside recovery."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        kept = 0 if self.in_recovery else self.dupacks
        super().on_new_ack(ack, now)
        if not self.in_recovery:
            self.dupacks = kept


class DeafAfterTimeout(SackNewRenoRfcSender):
    """After a timeout SACK is ignored until everything sent before it is acknowledged."""

    def take_sack(self, ack: Ack) -> int:
        if not self.in_recovery and self.repairs_timeout():
            return 0
        return super().take_sack(ack)


class RawSackEdges(SackNewRenoRfcSender):
    """The emptiness of a SACK block is tested on its 32-bit fields."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        return left & MASK < right & MASK and super().accept_sack_block(left, right, ack)


# -- the peer's window ----------------------------------------------------------------------------


class ProbeBackoffStays(SackNewRenoRfcSender):
    """The back-off of window probes outlives the closed window it belonged to."""

    _ever_sent = 0

    def on_probe_due(self, now: float) -> None:
        if not self.snd_wnd:
            self._ever_sent += 1
        super().on_probe_due(now)

    def zero_window_probe_interval(self, probes: int) -> float:
        return super().zero_window_probe_interval(max(probes, self._ever_sent))


class NoOverride(SackNewRenoRfcSender):
    """The persist timer probes a window of zero only; a small one is waited on for ever."""

    def on_probe_due(self, now: float) -> None:
        if not self.snd_wnd:
            super().on_probe_due(now)
            return
        self.persist_deadline = None
        self.plan_probe(now)


# -- receiving ------------------------------------------------------------------------------------


class OpensByAnything(Receiver):
    """A closed window opens as soon as an octet is free."""

    def _stuck(self) -> bool:
        return self.edge == self.rcv_nxt and self._gain() > 0

    def update_edge(self) -> None:
        if self._stuck():
            self.edge += self._gain()
        super().update_edge()

    def window_update_due(self) -> bool:
        return self._stuck() or super().window_update_due()


class PushedDelay(Receiver):
    """Each segment that need not be acknowledged at once restarts the delay."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        waiting = self.ack_deadline is not None
        super()._take(seq, payload, now)
        if waiting and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class PartOfGapDelayed(Receiver):
    """Only the segment that fills the last gap is acknowledged at once."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return super().should_ack_now(in_order=in_order, gap=gap and not self.buffer.blocks)


class GrowsInPlace(Reassembly):
    """A block that grows keeps its place in the list; only a new one goes to the front."""

    def insert(self, seq: int, payload: bytes) -> None:
        before, held_back = list(self.blocks), seq > self.rcv_nxt
        super().insert(seq, payload)
        if not held_back:
            return
        left, right = self.blocks[0]
        inside = [at for at, block in enumerate(before) if left <= block[0] < right]
        if inside:
            rest = self.blocks[1:]
            self.blocks = [*rest[: inside[0]], (left, right), *rest[inside[0] :]]


class DsackAlone(Receiver):
    """A D-SACK block takes the place of the list."""

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        if self.sack_ok and self._duplicate is not None:
            return (self._duplicate,)
        return super().sack_blocks_to_send(most)


class NotesByRcvNxt(Receiver):
    """TS.Recent is taken from every segment in order, not from the first since the last ACK."""

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        kept, self._last_ack_sent = self._last_ack_sent, self.rcv_nxt
        super().note_timestamp(tsval, seq, now)
        self._last_ack_sent = kept


# -- segments -------------------------------------------------------------------------------------


class RepeatsTsval(Connection):
    """The header of a segment is built once; its retransmission has the same TSval."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._headers: dict[int, int] = {}

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        segment = self._outbox[-1]
        if payload and segment.timestamps is not None:
            value, echo = segment.timestamps
            segment.timestamps = self._headers.setdefault(seq, value), echo


class BareTimeWait(Connection):
    """What is left of a connection in TIME-WAIT does not know of timestamps."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        if self.state is State.TIME_WAIT:
            self._outbox[-1].timestamps = None


class ResetNeedsTimestamp(Connection):
    """A segment without the negotiated timestamps is dropped, a RST like any other."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if receiver.ts_recent is not None and segment.timestamps is None:
            return
        super()._receive_synchronized(segment, receiver, now)


class ResetAtLastAck(Connection):
    """A RST is compared with the acknowledgment sent last, not with RCV.NXT."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & _RST and receiver._last_ack_sent != receiver.rcv_nxt:
            if segment.seq == receiver.rcv_nxt & MASK:
                receiver.ack_now = True
                return
        super()._receive_synchronized(segment, receiver, now)


class SynAckOnceOnly(Connection):
    """A repeated SYN-ACK is a duplicate and ignored."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        both = segment.flags & _SYN and segment.flags & _ACK
        if both and self.state is not State.SYN_RECEIVED:
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


class AckAboveSndNxt(Connection):
    """After a timeout, an ACK above the SND.NXT that was set back is for data not sent yet."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender, receiver = self.sender, self.receiver
        if self.state is not State.SYN_RECEIVED and not sender.probes and receiver is not None:
            if unwrap(segment.ack, sender.snd_una) > sender.snd_nxt:
                receiver.ack_now = True
                return False
        return super()._take_ack(segment, seq, now)


class FinOnceOnly(Connection):
    """A FIN that arrives again is not acknowledged again outside TIME-WAIT."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        due = receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        if segment.flags & _FIN and receiver.fin_received and self.state is not State.TIME_WAIT:
            receiver.ack_now = due


class SecondSynAckUnscaled(Connection):
    """A retransmitted SYN-ACK has no Window Scale option; windows are scaled all the same."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is not None and self.handshake.attempts > 1:
            self._outbox[-1].window_scale = None


class SackBesideFullData(Handshake):
    """SACK blocks join a data segment whatever its size."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        return super().sack_room(0)


class IgnoresKeepAlive(Connection):
    """An empty segment below the window is an old ACK and is not answered."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if not segment.sequence_length and seq < receiver.rcv_nxt:
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


class ClosedToAcks(Connection):
    """While the window offered is zero, the ACK of a data segment is dropped with its data."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if seq == receiver.rcv_nxt and not segment.flags & (_SYN | _RST):
            receiver.ack_now = True
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


class AcksFromUna(Connection):
    """A pure ACK has the sequence number SND.UNA."""

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        for segment in segments:
            if segment.flags == _ACK and not segment.payload:
                segment.seq = self.sender.snd_una & MASK
        return segments


class PatientIw(Connection):
    """The initial window is reduced from the second lost SYN on."""

    def _established(self, segment: Segment, now: float) -> None:
        handshake = self.handshake
        once = handshake.attempts == 2
        sender = self.sender
        if once:
            made = sender.initial_window
            sender.loss_window = made  # type: ignore[method-assign]
        super()._established(segment, now)
        if once:
            del sender.loss_window


def _part(part: type[Any]) -> Any:
    return lambda setup: setup.with_part(part)


def _near_wrap(setup: Setup) -> Setup:
    return setup.configured(iss=(1 << 32) - 60000).with_part(RawSackEdges)


def _untimed(setup: Setup) -> Setup:
    return setup.configured(timestamps=False).with_part(MeasuresRepaired)


# Inactive in ./check's twenty transfers, and faults all the same:
# backoff-undone: needs a timeout, then a SACK report before new data is acknowledged, then a second timeout.
# syn-backoff: needs two or more lost SYNs or SYN-ACKs (backed-off RTO above 3 s), then a loss of the first data.
# timer-first: needs a loss right behind the ACK that ends a back-off.
# reduced-once, old-point: need a timeout while fast recovery is in progress (a lost retransmission).
# jump-growth, deaf: need a timeout while the receiver holds data above the hole.
# probe-backoff: needs two closed windows on one connection, the first long enough for several probes.
# delay-pushed: needs small segments closer together than the delay of ACKs, for longer than half a second.
# syn-ack-again: needs an active open whose third segment is lost.
# karn-fast and raw-edges differ in all twenty because of their settings (no timestamps; an ISS near 2^32); the faults
# need a fast retransmission of the timed segment, and a SACK block across the wrap.
FAULTS = [
    Fault("tcp-b12-backoff-undone", "a duplicate ACK ends the timer's back-off",
          "RFC 6298 section 5.5", _part(BackoffUndoneByDuplicates)),
    Fault("tcp-b12-samples-data", "takes an RTT sample from data of the peer that acknowledges "
          "nothing new", "RFC 7323 section 4.1", _part(SamplesPeersData)),
    Fault("tcp-b12-syn-backoff", "data starts with the backed-off RTO of the SYN when that "
          "exceeds three seconds", "RFC 6298 section 5.7", _part(KeepsSynBackoff)),
    Fault("tcp-b12-ticks", "the timer's expiry is rounded down to half a second",
          "RFC 6298 section 5.1; RFC 6298 section 2.4", _part(CoarseTicks)),
    Fault("tcp-b12-timer-first", "an ACK restarts the timer with the RTO from before its sample",
          "RFC 6298 section 5.3", _part(TimerBeforeSample)),
    Fault("tcp-b12-timer-masked", "the timer is not turned off when everything is acknowledged "
          "and expires early for data sent soon after",
          "RFC 6298 section 5.2; RFC 6298 section 5.1", _part(TimerRunsOn)),
    Fault("tcp-b12-karn-fast", "without timestamps, a segment that was fast retransmitted is "
          "measured", "RFC 6298 section 3", _untimed, ics={"timestamps": False}),
    Fault("tcp-b12-reduced-once", "a timeout during fast recovery leaves cwnd as it is",
          "RFC 5681 section 3.1", _part(ReducedOnceOnly)),
    Fault("tcp-b12-jump-growth", "while a timeout is repaired, an ACK that jumps grows cwnd by "
          "all it covers", "RFC 5681 section 3.1", _part(JumpGrowth)),
    Fault("tcp-b12-limited-edge", "limited transmit sends up to two segments beyond the offered "
          "window", "RFC 3042 section 2; RFC 6675 section 5", _part(LimitedBeyondEdge)),
    Fault("tcp-b12-short-pipe", "what was sent above the highest SACKed octet is not in the pipe",
          "RFC 6675 section 4", _part(ShortPipe)),
    Fault("tcp-b12-exactly-two", "exactly two segments held above a hole make it lost",
          "RFC 6675 section 4", _part(ExactlyTwoSegments)),
    Fault("tcp-b12-high-rxt", "a partial ACK sets HighRxt back, so that holes are repaired twice",
          "RFC 6675 section 4", _part(PartialForgetsHighRxt)),
    Fault("tcp-b12-moving-point", "a partial ACK moves the recovery point to the highest data "
          "sent", "RFC 6675 section 5", _part(MovingRecoveryPoint)),
    Fault("tcp-b12-old-point", "a timeout during recovery keeps the old recovery point",
          "RFC 6675 section 5.1", _part(TimeoutKeepsRecoveryPoint)),
    Fault("tcp-b12-rescues", "each partial ACK permits another rescue retransmission",
          "RFC 6675 section 4", _part(RescueForEachPartial)),
    Fault("tcp-b12-dupacks-kept", "an ACK of new data does not reset the count of duplicates",
          "RFC 6675 section 5", _part(KeepsDuplicates)),
    Fault("tcp-b12-deaf", "after a timeout SACK is ignored, and held data is sent again",
          "RFC 6675 section 5.1", _part(DeafAfterTimeout)),
    Fault("tcp-b12-raw-edges", "a SACK block across 2^32 is taken for an empty one",
          "RFC 9293 section 3.4; RFC 2018 section 5", _near_wrap),
    Fault("tcp-b12-probe-backoff", "the next closed window is probed with the back-off of the one "
          "before", "RFC 9293 section 3.8.6.1", _part(ProbeBackoffStays)),
    Fault("tcp-b12-no-override", "a window too small to use, but not closed, is waited on for "
          "ever", "RFC 9293 section 3.8.6.2.1", _part(NoOverride)),
    Fault("tcp-b12-opens-silly", "a closed window opens by however little is free",
          "RFC 9293 section 3.8.6.2.2", _part(OpensByAnything)),
    Fault("tcp-b12-delay-pushed", "each further small segment restarts the delay of the ACK",
          "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", _part(PushedDelay)),
    Fault("tcp-b12-part-of-gap", "a segment that fills a gap while another remains is "
          "acknowledged late", "RFC 5681 section 4.2", _part(PartOfGapDelayed)),
    Fault("tcp-b12-grows-in-place", "the first SACK block is not the one that grew last",
          "RFC 2018 section 4", _part(GrowsInPlace)),
    Fault("tcp-b12-dsack-alone", "an ACK with a D-SACK omits all other blocks",
          "RFC 2883 section 4; RFC 2018 section 4", _part(DsackAlone)),
    Fault("tcp-b12-later-echo", "a delayed ACK echoes the timestamp of the last segment it covers",
          "RFC 7323 section 4.3", _part(NotesByRcvNxt)),
    Fault("tcp-b12-repeats-tsval", "a retransmission carries the TSval of the original",
          "RFC 7323 section 3.2", _part(RepeatsTsval)),
    Fault("tcp-b12-bare-time-wait", "ACKs in TIME-WAIT have no timestamps",
          "RFC 7323 section 3.2", _part(BareTimeWait)),
    Fault("tcp-b12-reset-needs-ts", "a RST without timestamps is dropped",
          "RFC 7323 section 3.2; RFC 7323 section 5.2", _part(ResetNeedsTimestamp)),
    Fault("tcp-b12-reset-last-ack", "while an ACK is delayed, a RST at RCV.NXT is only challenged",
          "RFC 5961 section 3.2; RFC 9293 section 3.10.7.4", _part(ResetAtLastAck)),
    Fault("tcp-b12-syn-ack-again", "a SYN-ACK that arrives again is not acknowledged",
          "RFC 9293 section 3.10.7.4; RFC 5961 section 4.2", _part(SynAckOnceOnly)),
    Fault("tcp-b12-above-nxt", "after a timeout, an ACK above the SND.NXT set back is refused",
          "RFC 9293 section 3.10.7.4", _part(AckAboveSndNxt)),
    Fault("tcp-b12-fin-again", "a FIN that arrives again is not acknowledged again",
          "RFC 9293 section 3.10.7.4", _part(FinOnceOnly)),
    Fault("tcp-b12-second-syn-ack", "a retransmitted SYN-ACK omits Window Scale, but windows are "
          "scaled", "RFC 7323 section 2.2; RFC 7323 section 1.3", _part(SecondSynAckUnscaled)),
    Fault("tcp-b12-sack-overshoots", "full-sized data with SACK blocks exceeds the peer's MSS",
          "RFC 9293 section 3.7.1; RFC 6691 section 2", _part(SackBesideFullData)),
    Fault("tcp-b12-keep-alive", "an empty segment below the window is not answered",
          "RFC 9293 section 3.10.7.4; RFC 9293 section 3.8.4", _part(IgnoresKeepAlive)),
    Fault("tcp-b12-closed-to-acks", "with a closed receive window, ACKs on data are not processed",
          "RFC 9293 section 3.10.7.4", _part(ClosedToAcks)),
    Fault("tcp-b12-acks-from-una", "a pure ACK carries SND.UNA while data is outstanding",
          "RFC 9293 section 3.10.7.4", _part(AcksFromUna)),
    Fault("tcp-b12-patient-iw", "one lost SYN or SYN-ACK does not reduce the initial window",
          "RFC 5681 section 3.1; RFC 6928 section 2", _part(PatientIw)),
]  # fmt: skip
