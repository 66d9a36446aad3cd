"""Round 11: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 3042, 7323 and 5961 on 2026-11-22."""

from __future__ import annotations

from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))


# -- opening and options --------------------------------------------------------------------------


class BareSynAckAgain(Handshake):
    """The second SYN-ACK is built without the negotiated options, which stay in use."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if answering and self.attempts:
            syn.sack_permitted = False
            syn.window_scale = None

    def offers_timestamps(self, *, answering: bool) -> bool:
        if answering and self.attempts:
            return False
        return super().offers_timestamps(answering=answering)


class MeasuresRepeatedSyn(Handshake):
    """The round trip of a repeated SYN or SYN-ACK is measured from its last copy."""

    def complete(self, now: float) -> float | None:
        self.deadline = None
        return now - self._sent_at


class EstablishedByOldAck(Connection):
    """In SYN-RECEIVED an ACK of exactly ISS, which acknowledges nothing, will do."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        if self.state is State.SYN_RECEIVED:
            una = self.sender.snd_una
            if unwrap(segment.ack, una) == una - 1:
                self._established(segment, now)
                return True
        return super()._take_ack(segment, seq, now)


class SackBesideFullData(Handshake):
    """SACK blocks are added to segments that are full already."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        return super().sack_room(0)


# -- loss recovery --------------------------------------------------------------------------------


class RecoveryPointAtHighestHeld(SackNewRenoRfcSender):
    """RecoveryPoint is the highest octet reported as held."""

    def recovery_point(self) -> int:
        if not self.sack_ok:
            return super().recovery_point()
        return max(self.scoreboard.highest, self.snd_una + 1) - 1


class PartialAckForgetsRetransmissions(SackNewRenoRfcSender):
    """A partial ACK sets HighRxt back to the new HighACK."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        super().on_partial_ack(acked, now)
        self.high_rxt = self.snd_una


class RescueOfTheFirst(SackNewRenoRfcSender):
    """The rescue retransmission takes the beginning of the last hole."""

    def rescue_segment(self) -> tuple[int, int] | None:
        chosen = super().rescue_segment()
        if chosen is None:
            return None
        left, right = self.scoreboard.gaps(self.snd_una, self.snd_max)[-1]
        return left, min(right, left + self.smss)


class LimitedTransmitPastWindow(SackNewRenoRfcSender):
    """Limited transmit asks the congestion window only."""

    def limited_transmit(self, now: float) -> None:
        offered = self.snd_wnd
        self.snd_wnd = offered + 2 * self.smss
        super().limited_transmit(now)
        self.snd_wnd = offered


class StillTheSameTimeout(SackNewRenoRfcSender):
    """A timeout of another segment counts as repeated until all old data is acknowledged."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        before = self.consecutive_timeouts
        repairing = ack.number <= self.recover
        super().on_new_ack(ack, now)
        if repairing:
            self.consecutive_timeouts = before


class TimeoutOutsideRecovery(SackNewRenoRfcSender):
    """A timeout is recorded in recover only if it ends a fast recovery."""

    def on_timeout_in_recovery(self) -> None:
        if self.in_recovery:
            super().on_timeout_in_recovery()


class NoNewsIsADuplicate(SackNewRenoRfcSender):
    """Any ACK with SACK blocks that does not move SND.UNA counts as a duplicate."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        if not self.sack_ok:
            return super().is_duplicate_ack(ack, newly_held)
        return ack.number == self.snd_una and self.flight_size > 0 and bool(ack.blocks)


class NoBackOffInRecovery(SackNewRenoRfcSender):
    """A timeout during fast recovery does not back off the timer."""

    def on_timeout(self, now: float) -> None:
        within, rto = self.in_recovery, self.estimator.rto
        super().on_timeout(now)
        if within:
            self.estimator.rto = rto
            self.rto_deadline = now + rto


class AnyRoomWillDo(SackNewRenoRfcSender):
    """In recovery a segment leaves when pipe is below cwnd by any amount."""

    def output(self, now: float) -> None:
        if not (self.in_recovery and self.sack_ok):
            super().output(now)
            return
        pipe = self.pipe()
        while self.cwnd > pipe and (chosen := self.next_segment()) is not None:
            self.send_chosen(chosen, now)
            pipe += chosen[1] - chosen[0]


class WindowUpdateIsADuplicate(SackNewRenoRfcSender):
    """Without SACK, an ACK that only changes the window counts as a duplicate."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        if self.sack_ok:
            return super().is_duplicate_ack(ack, newly_held)
        return ack.number == self.snd_una and self.flight_size > 0 and not self.probes and ack.bare


class WrappedBlocks(Connection):
    """A SACK block whose edges lie on both sides of zero is taken for an empty one."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        segment.sack_blocks = tuple(b for b in segment.sack_blocks if b[0] < b[1])
        return super()._ack_part(segment, number, seq, now)


class AckAboveSndNxt(Connection):
    """After a timeout, ACKs of what was sent before it are above SND.NXT and refused."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if self.state is not State.SYN_RECEIVED and not sender.probes:
            number = unwrap(segment.ack, sender.snd_una)
            if sender.snd_nxt < number <= sender.snd_max:
                if self.receiver is not None:
                    self.receiver.ack_now = True
                return False
        return super()._take_ack(segment, seq, now)


class RecoveryWithoutFin(Connection):
    """The last data segment, retransmitted in fast recovery, has lost its FIN."""

    _fin_sent = False

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        if fin and payload and self._fin_sent and self.sender.in_recovery:
            fin = False
        self._fin_sent = self._fin_sent or fin
        super().put(seq, payload, fin, now)


# -- timers and congestion window -----------------------------------------------------------------


class TimerNotStopped(SackNewRenoRfcSender):
    """With everything acknowledged the timer runs on, and the next data finds it running."""

    _left: float | None = None

    def restart_rto(self, now: float) -> None:
        super().restart_rto(now)
        if self.rto_deadline is None:
            self._left = now + self.estimator.rto

    def start_rto(self, now: float) -> None:
        left, self._left = self._left, None
        if self.rto_deadline is None and left is not None and left > now:
            self.rto_deadline = left
        super().start_rto(now)


class RestartWindowIsInitial(SackNewRenoRfcSender):
    """After an idle time cwnd becomes the initial window even if it was smaller."""

    def restart_window(self) -> int:
        return self.initial_window()


class IdleSinceReceipt(SackNewRenoRfcSender):
    """Idle time is counted from the last segment received."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if self.last_send is not None:
            self.last_send = now
        super().on_ack(ack, now)


class ProbeBackOffKept(SackNewRenoRfcSender):
    """The back-off of window probes goes on where the last closed window left it."""

    _ever = 0

    def on_probe_due(self, now: float) -> None:
        if not self.snd_wnd:
            self._ever += 1
        super().on_probe_due(now)

    def zero_window_probe_interval(self, probes: int) -> float:
        return super().zero_window_probe_interval(max(probes, self._ever))


class AnsweredProbesCount(SackNewRenoRfcSender):
    """Only an ACK of new data clears the count after which the connection is given up."""

    def on_ack(self, ack: Ack, now: float) -> None:
        count = self.silent_timeouts
        moves = ack.number > self.snd_una
        super().on_ack(ack, now)
        if not moves:
            self.silent_timeouts = count


# -- the offered window ---------------------------------------------------------------------------


class RightEdgeNeverBack(SackNewRenoRfcSender):
    """A window that shrinks is not believed."""

    def update_window(self, ack: Ack) -> bool:
        edge = self.right_edge
        moved = super().update_window(ack)
        if ack.number + self.snd_wnd < edge:
            self.snd_wnd = edge - ack.number
        return moved


class CloseWaitKeepsWindow(Connection):
    """Once the peer has sent its FIN, the window field is no longer read."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if self.state in (State.CLOSE_WAIT, State.LAST_ACK):
            ack.window = self.sender.snd_wnd
        return ack


class HeldDataShrinksWindow(Receiver):
    """Data held out of order is taken off the window, and the right edge moves back."""

    def window_field(self) -> int:
        field = super().window_field()
        held = sum(right - left for left, right in self.buffer.blocks)
        return max(0, field - (held >> self.window_shift))


class SillyAfterZero(Receiver):
    """A closed window opens by whatever has become free."""

    def update_edge(self) -> None:
        if self.edge <= self.rcv_nxt:
            self.edge += max(0, self._gain())
        else:
            super().update_edge()


class ClosedToAcks(Connection):
    """While the own window is closed, a segment with data is answered but its ACK ignored."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if (
            receiver.edge <= receiver.rcv_nxt
            and segment.payload
            and not segment.flags & (_RST | _SYN)
            and self.state is State.ESTABLISHED
        ):
            receiver.ack_now = True
            receiver.on_old_text(seq, len(segment.payload))
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


# -- acknowledgments and SACK ---------------------------------------------------------------------


class DelayStartsAnew(Receiver):
    """Each segment restarts the timer of the delayed ACK."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if self.ack_deadline is not None and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class PartOfAGapDelayed(Receiver):
    """Data that fills part of a gap, with more missing above, is acknowledged with delay."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        if in_order and self.buffer.blocks:
            gap = False
        return super().should_ack_now(in_order=in_order, gap=gap)


class CountsOwnMss(Receiver):
    """Full-sized is the own MSS; segments with timestamps are smaller, so every third is ACKed."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        full = self._octets_unacked >= self.config.ack_every * self.config.mss
        return not in_order or gap or full


class SackLostOnData(Receiver):
    """A data segment without room for the SACK blocks counts as the ACK that was due."""

    def note_ack_sent(self, *, complete: bool = True) -> None:  # noqa: ARG002
        super().note_ack_sent(complete=True)


class DsackKept(Receiver):
    """While data is missing, a D-SACK is repeated in every ACK."""

    def note_ack_sent(self, *, complete: bool = True) -> None:
        duplicate = self._duplicate
        super().note_ack_sent(complete=complete)
        if duplicate is not None and self.buffer.blocks:
            self._duplicate = duplicate


class KeepAliveAcceptable(Receiver):
    """An empty segment one below RCV.NXT passes as acceptable and gets no answer."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        return (length == 0 and seq == self.rcv_nxt - 1) or super().is_acceptable(seq, length)


# -- timestamps -----------------------------------------------------------------------------------


class LastAckSentBare(Connection):
    """Last.ACK.sent is kept up to date by pure ACKs only, not by data segments."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        before = None if receiver is None else receiver._last_ack_sent
        super()._put(seq, flags, now, payload)
        if payload and receiver is not None and before is not None:
            receiver._last_ack_sent = before


class OldTextSetsTimestamp(Connection):
    """TS.Recent is taken from segments below the window."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if segment.timestamps is not None and not segment.flags & (_RST | _SYN):
            receiver.note_timestamp(segment.timestamps[0], seq, now)
        super()._receive_unacceptable(segment, seq, receiver, now)


class OriginalTimestampAgain(Connection):
    """A retransmission carries the TSval of the first transmission."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stamps: dict[int, int] = {}

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().put(seq, payload, fin, now)
        sent = self._outbox[-1]
        if sent.timestamps is not None:
            first = self._stamps.setdefault(seq, sent.timestamps[0])
            sent.timestamps = first, sent.timestamps[1]


# -- closing and resets ---------------------------------------------------------------------------


class FinOfTrimmedSegment(Receiver):
    """When old octets are cut off the front of a segment with new ones, its FIN goes too."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        if fin and seq < self.buffer.rcv_nxt < seq + len(payload):
            fin = False
        super().on_text(seq, payload, fin, now)


class EarlyFinForgotten(Receiver):
    """Out of order, the data of a segment is held but its FIN is not."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        if fin and seq > self.buffer.rcv_nxt:
            fin = False
            self.ack_now = True
        super().on_text(seq, payload, fin, now)


class AckOfFinEndsSegment(Connection):
    """In FIN-WAIT-1, the text and FIN of the segment that acknowledges the FIN are dropped."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        waiting = self.state is State.FIN_WAIT_1
        taken = super()._take_ack(segment, seq, now)
        return taken and not (waiting and self.state is State.FIN_WAIT_2)


class ResetAtLastAck(Connection):
    """The number of a RST is compared with the last ACK sent instead of RCV.NXT."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & _RST:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if seq == receiver.rcv_nxt != receiver._last_ack_sent:
                receiver.ack_now = True
                return
        super()._receive_synchronized(segment, receiver, now)


def _part(part: type[Any]) -> Any:
    def configure(setup: Setup) -> Setup:
        return setup.with_part(part)

    return configure


def _few_answered_probes(setup: Setup) -> Setup:
    # Seven from one second on take more than the 100 s of R2, so that the number itself is allowed.
    return setup.configured(max_retransmissions=7).with_part(AnsweredProbesCount)


FAULTS = [
    Fault("tcp-b11-bare-syn-ack", "a repeated SYN-ACK lacks the options that the connection goes on using",
          "RFC 7323 section 2.2; RFC 7323 section 3.2", _part(BareSynAckAgain)),
    Fault("tcp-b11-syn-karn", "the round trip of a repeated SYN-ACK is measured, and the RTO is not set to 3 s",
          "RFC 6298 section 3; RFC 6298 section 5.7", _part(MeasuresRepeatedSyn)),
    # Needs a peer that acknowledges ISS in SYN-RECEIVED.
    Fault("tcp-b11-ack-of-iss", "in SYN-RECEIVED an ACK of exactly ISS establishes the connection",
          "RFC 9293 section 3.10.7.4", _part(EstablishedByOldAck)),
    Fault("tcp-b11-oversized", "SACK blocks beside full data make segments larger than the peer's MSS allows",
          "RFC 9293 section 3.7.1", _part(SackBesideFullData)),
    Fault("tcp-b11-recovery-point", "RecoveryPoint is the highest octet held, so recovery ends too early",
          "RFC 6675 section 5", _part(RecoveryPointAtHighestHeld)),
    Fault("tcp-b11-high-rxt", "a partial ACK sets HighRxt back, and holes are retransmitted twice",
          "RFC 6675 section 4", _part(PartialAckForgetsRetransmissions)),
    Fault("tcp-b11-rescue", "the rescue retransmission does not include the highest octet outstanding",
          "RFC 6675 section 4", _part(RescueOfTheFirst)),
    Fault("tcp-b11-limited-window", "limited transmit exceeds the peer's window",
          "RFC 3042 section 2; RFC 6675 section 5", _part(LimitedTransmitPastWindow)),
    # Inactive in ./check: needs a timeout of a second segment while an older one is being repaired.
    Fault("tcp-b11-same-timeout", "ssthresh is kept at a timeout of another segment while an older one is repaired",
          "RFC 5681 section 3.1", _part(StillTheSameTimeout)),
    # Inactive in ./check: needs SACK reports right after a timeout that came outside fast recovery.
    Fault("tcp-b11-recover-timeout", "a timeout outside fast recovery does not set recover; duplicates begin an episode",
          "RFC 6582 section 3.2; RFC 6675 section 5.1", _part(TimeoutOutsideRecovery)),
    Fault("tcp-b11-no-news", "ACKs whose SACK blocks report nothing new count as duplicates",
          "RFC 6675 section 2; RFC 3042 section 2", _part(NoNewsIsADuplicate)),
    # Inactive in ./check: needs the loss of a fast retransmission, and of it again.
    Fault("tcp-b11-recovery-backoff", "a timeout during fast recovery does not double the RTO",
          "RFC 6298 section 5.5", _part(NoBackOffInRecovery)),
    Fault("tcp-b11-any-room", "in recovery a segment is sent when cwnd exceeds pipe by less than SMSS",
          "RFC 6675 section 5", _part(AnyRoomWillDo)),
    Fault("tcp-b11-update-duplicate", "without SACK, window updates count as duplicate ACKs",
          "RFC 5681 section 2", _part(WindowUpdateIsADuplicate), setting="no-sack"),
    # Inactive in ./check: needs numbers that wrap, and a loss just there.
    Fault("tcp-b11-wrapped-block", "a SACK block across the wrap of the numbers is ignored",
          "RFC 9293 section 3.4; RFC 2018 section 5", _part(WrappedBlocks), setting="wrap"),
    Fault("tcp-b11-above-snd-nxt", "after a timeout an ACK of data sent before it is refused as above SND.NXT",
          "RFC 9293 section 3.10.7.4; RFC 9293 section 3.4", _part(AckAboveSndNxt)),
    Fault("tcp-b11-recovery-fin", "the last segment, retransmitted in fast recovery, has no FIN",
          "RFC 9293 section 3.8.1; RFC 9293 section 3.4", _part(RecoveryWithoutFin)),
    # Inactive in ./check: needs an echoed message shortly before the timer left running expires.
    Fault("tcp-b11-running-timer", "the timer is not stopped when all is acknowledged, and expires early for new data",
          "RFC 6298 section 5.2; RFC 6298 section 5.1", _part(TimerNotStopped)),
    # Inactive in ./check: needs a timeout, few ACKs, then an idle time.
    Fault("tcp-b11-restart-window", "an idle time raises a cwnd below the initial window to it",
          "RFC 5681 section 4.1", _part(RestartWindowIsInitial)),
    # Inactive in ./check: needs a long idle time before a large request to echo.
    Fault("tcp-b11-idle-receipt", "idle time is counted from the last segment received, so a request hides it",
          "RFC 5681 section 4.1", _part(IdleSinceReceipt)),
    # Inactive in ./check: needs a window that closes a second time.
    Fault("tcp-b11-probe-backoff", "the back-off of window probes survives the opening of the window",
          "RFC 9293 section 3.8.6.1", _part(ProbeBackOffKept)),
    # Inactive in ./check: needs a window closed for minutes, with every probe answered.
    Fault("tcp-b11-probe-give-up", "a connection is given up although the peer answers every window probe",
          "RFC 9293 section 3.8.6.1", _few_answered_probes),
    # Needs a peer that shrinks its window.
    Fault("tcp-b11-shrunk-window", "new data is sent beyond a window that has shrunk",
          "RFC 9293 section 3.8.6", _part(RightEdgeNeverBack)),
    # Inactive in ./check: needs a half-closed peer whose window changes after its FIN.
    Fault("tcp-b11-close-wait-window", "in CLOSE-WAIT and LAST-ACK the peer's window is no longer updated",
          "RFC 9293 section 3.10.7.4", _part(CloseWaitKeepsWindow)),
    Fault("tcp-b11-held-window", "data held out of order shrinks the window",
          "RFC 9293 section 3.8.6", _part(HeldDataShrinksWindow)),
    Fault("tcp-b11-silly-zero", "a closed window is opened by less than a segment",
          "RFC 9293 section 3.8.6.2.2", _part(SillyAfterZero)),
    # Inactive in ./check: needs an echo peer with a closed window that sends until ours is closed too.
    Fault("tcp-b11-closed-acks", "with its own window closed, the ACK of a segment with data is not processed",
          "RFC 9293 section 3.10.7.4", _part(ClosedToAcks)),
    # Inactive in ./check: needs small segments, less than 200 ms apart, after a full one.
    Fault("tcp-b11-delay-anew", "each small segment postpones the delayed ACK",
          "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", _part(DelayStartsAnew)),
    Fault("tcp-b11-part-of-gap", "a segment that fills part of a gap is acknowledged with delay",
          "RFC 5681 section 4.2", _part(PartOfAGapDelayed)),
    Fault("tcp-b11-own-mss", "with timestamps only every third full-sized segment is acknowledged",
          "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", _part(CountsOwnMss)),
    Fault("tcp-b11-sack-on-data", "a full data segment without SACK blocks replaces the duplicate ACK that was due",
          "RFC 2018 section 3; RFC 5681 section 4.2", _part(SackLostOnData)),
    Fault("tcp-b11-dsack-kept", "while data is missing, the same duplicate is reported in every ACK",
          "RFC 2883 section 4", _part(DsackKept)),
    # Needs a peer that sends an empty keep-alive.
    Fault("tcp-b11-keep-alive", "an empty segment at RCV.NXT-1 passes the acceptability test and is not answered",
          "RFC 9293 section 3.10.7.4", _part(KeepAliveAcceptable)),
    Fault("tcp-b11-last-ack-sent", "ACKs on data segments do not set Last.ACK.sent, and old timestamps are echoed",
          "RFC 7323 section 4.3", _part(LastAckSentBare)),
    Fault("tcp-b11-old-text-timestamp", "TS.Recent is taken from duplicates below the window",
          "RFC 7323 section 5.3", _part(OldTextSetsTimestamp)),
    Fault("tcp-b11-original-tsval", "retransmissions carry the TSval of the first transmission",
          "RFC 7323 section 3.2", _part(OriginalTimestampAgain)),
    # Needs a peer that repacketizes its last data.
    Fault("tcp-b11-trimmed-fin", "a segment with old and new octets and a FIN loses the FIN when trimmed",
          "RFC 9293 section 3.10.7.4", _part(FinOfTrimmedSegment)),
    Fault("tcp-b11-early-fin", "of a segment out of order the data is held and the FIN forgotten",
          "RFC 9293 section 3.10.7.4", _part(EarlyFinForgotten)),
    Fault("tcp-b11-fin-wait-text", "text and FIN in the segment that acknowledges the own FIN are dropped",
          "RFC 9293 section 3.10.7.4", _part(AckOfFinEndsSegment)),
    Fault("tcp-b11-reset-last-ack", "a RST at RCV.NXT is only challenged while a delayed ACK is due",
          "RFC 5961 section 3.2; RFC 9293 section 3.10.7.4", _part(ResetAtLastAck)),
]  # fmt: skip
