"""Round 1: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 7323 and 5961 on 2026-11-22."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import (
    SACK_BLOCK_OCTETS,
    SACK_OVERHEAD_OCTETS,
    TIMESTAMP_OCTETS,
    Handshake,
)
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import parse_packet
from bentpipe_reference.tcp.wire.options import MAXIMUM_OCTETS, parse_options
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))


def _with(*parts: type[Any]) -> Callable[[Setup], Setup]:
    """A setup with these parts."""

    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# -- the retransmission timer and its measurements ----------------------------------------------


class BackoffEndedByDuplicate(SackNewRenoRfcSender):
    """Any ACK after a timeout recomputes the RTO from SRTT and RTTVAR."""

    def on_ack(self, ack: Ack, now: float) -> None:
        timing = self.estimator
        if self.consecutive_timeouts and ack.number <= self.snd_una and timing.srtt is not None:
            timing.rto = timing.bounded(
                timing.srtt + max(timing.granularity, timing.K * timing.rttvar)
            )
        super().on_ack(ack, now)


class TimerOfAcknowledgedData(SackNewRenoRfcSender):
    """The timer goes on running when everything is acknowledged; what is sent next inherits it."""

    def restart_rto(self, now: float) -> None:
        if self.flight_size:
            super().restart_rto(now)

    def on_timer(self, now: float) -> None:
        if self.rto_deadline is not None and now >= self.rto_deadline and not self.flight_size:
            self.rto_deadline = None
            self.check_probe(now)
        super().on_timer(now)


class RepeatedSynAckMeasured(Handshake):
    """A SYN-ACK repeated because the SYN came again is not counted as a retransmission."""

    def sent(self, now: float, *, repeated: bool) -> None:
        super().sent(now, repeated=repeated)
        if repeated:
            self.attempts -= 1


class MeasuresOldEchoes(SackNewRenoRfcSender):
    """The echo in the peer's data is a measurement even where nothing new is acknowledged."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if not ack.bare and ack.ts_ecr_age is not None and ack.number == self.snd_una:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


class GivesUpClosedWindow(SackNewRenoRfcSender):
    """Answers to window probes that acknowledge nothing new do not count as answers."""

    def on_ack(self, ack: Ack, now: float) -> None:
        una, silent = self.snd_una, self.silent_timeouts
        super().on_ack(ack, now)
        if self.probes and self.snd_una == una:
            self.silent_timeouts = silent


# -- the offered window, sending side -----------------------------------------------------------


class _OtherFreshness(SackNewRenoRfcSender):
    def is_fresh(self, ack: Ack) -> bool:
        raise NotImplementedError

    def update_window(self, ack: Ack) -> bool:
        if self.is_fresh(ack):
            moved = ack.number + ack.window != self.right_edge
            self.snd_wnd = ack.window
            self.snd_wl1, self.snd_wl2 = ack.seq, ack.number
            self.max_snd_wnd = max(self.max_snd_wnd, ack.window)
            return moved
        self.snd_wnd = max(0, self.right_edge - ack.number)
        return False


class PureUpdateIgnored(_OtherFreshness):
    """SND.WL2 < SEG.ACK instead of SND.WL2 =< SEG.ACK."""

    def is_fresh(self, ack: Ack) -> bool:
        return self.snd_wl1 < ack.seq or (self.snd_wl1 == ack.seq and self.snd_wl2 < ack.number)


class UpdateAfterWrapIgnored(_OtherFreshness):
    """SND.WL1 and SEG.SEQ are compared as plain 32-bit numbers."""

    def is_fresh(self, ack: Ack) -> bool:
        last, seq = self.snd_wl1 & MASK, ack.seq & MASK
        return last < seq or (last == seq and self.snd_wl2 <= ack.number)


class HalfTheCurrentWindow(SackNewRenoRfcSender):
    """The silly window test takes SND.WND for Max(SND.WND)."""

    def sendable(self, seq: int, usable: int) -> int:
        largest, self.max_snd_wnd = self.max_snd_wnd, self.snd_wnd
        try:
            return super().sendable(seq, usable)
        finally:
            self.max_snd_wnd = largest


class FinBesideWindow(SackNewRenoRfcSender):
    """The FIN needs no room in the window."""

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        if self.fin_queued and seq + octets == self.data_end:
            return octets + 1
        return octets


class RecoveryIgnoresWindow(SackNewRenoRfcSender):
    """NextSeg's rule 2 during recovery looks at the pipe only."""

    def new_segment(self) -> tuple[int, int] | None:
        if not self.in_recovery:
            return super().new_segment()
        octets = self.sendable(self.snd_max, self.smss)
        return (self.snd_max, self.snd_max + octets) if octets else None


# -- congestion control and loss recovery ---------------------------------------------------------


class DuplicatesAddUp(SackNewRenoRfcSender):
    """Outside recovery an ACK of new data leaves DupAcks as it was."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        kept = 0 if self.in_recovery else self.dupacks
        super().on_new_ack(ack, now)
        self.dupacks = kept

    def enter_recovery(self, now: float) -> None:
        super().enter_recovery(now)
        self.dupacks = 0

    def leave_recovery(self, now: float) -> None:
        super().leave_recovery(now)
        self.dupacks = 0


class OldBlocksAreDuplicates(SackNewRenoRfcSender):
    """An ACK that repeats SACK blocks already known counts as a duplicate."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        if super().is_duplicate_ack(ack, newly_held):
            return True
        repeats = self.sack_ok and bool(ack.blocks) and not self.is_duplicate_report(ack)
        return repeats and ack.bare and ack.number == self.snd_una and self.flight_size > 0


class RescueAgain(SackNewRenoRfcSender):
    """RescueRxt becomes HighACK instead of RecoveryPoint: one rescue per cumulative ACK."""

    def send_chosen(self, chosen: tuple[int, int], now: float) -> None:
        before = self.rescue_rxt
        super().send_chosen(chosen, now)
        if self.rescue_rxt is not None and (before is None or self.rescue_rxt != before):
            self.rescue_rxt = self.snd_una


class SpeculatesFirst(SackNewRenoRfcSender):
    """NextSeg tries rule 3 before rule 2."""

    def next_segment(self) -> tuple[int, int] | None:
        return (
            self.lost_segment()
            or self.speculative_segment()
            or self.new_segment()
            or self.rescue_segment()
        )


class LostAtTwoSegments(SackNewRenoRfcSender):
    """IsLost with "at least" for "more than (DupThresh - 1) * SMSS"."""

    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class RecoveryPointMoves(SackNewRenoRfcSender):
    """A partial ACK takes the highest number sent by now for RecoveryPoint."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        super().on_partial_ack(acked, now)
        self.recover = self.recovery_point()


class TimeoutRecordsInRecoveryOnly(SackNewRenoRfcSender):
    """A timeout outside recovery does not record the highest number sent."""

    def on_timeout_in_recovery(self) -> None:
        if self.in_recovery:
            super().on_timeout_in_recovery()
        else:
            self.high_rxt = self.snd_una


class RecoverySurvivesTimeout(SackNewRenoRfcSender):
    """A timeout during recovery does not end it."""

    def on_timeout(self, now: float) -> None:
        was = self.in_recovery
        super().on_timeout(now)
        self.in_recovery = was


class NotIdleWhenHeard(SackNewRenoRfcSender):
    """Idle is who has not received for an RTO."""

    heard = 0.0

    def restart_after_idle(self, now: float) -> None:
        if now - self.heard > self.estimator.rto:
            super().restart_after_idle(now)


class NotesWhenHeard(Connection):
    """Tells the sender when a segment came."""

    def receive(self, segment: Segment, now: float) -> None:
        self.sender.heard = now  # type: ignore[attr-defined]
        super().receive(segment, now)


class AckUpToNextOnly(Connection):
    """What an ACK covers beyond SND.NXT, set back by a timeout, is not acknowledged by it."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if self.state is not State.SYN_RECEIVED:
            number = unwrap(segment.ack, sender.snd_una)
            if sender.snd_nxt < number <= sender.snd_max:
                segment = replace(segment, ack=sender.snd_nxt & MASK)
        return super()._take_ack(segment, seq, now)


# -- the receiver -----------------------------------------------------------------------------------


class HeldDataShrinksWindow(Receiver):
    """Data held out of order is taken off the window that is offered."""

    def window_field(self) -> int:
        field = super().window_field()
        held = sum(right - left for left, right in self.buffer.blocks)
        return max(0, field - (held >> self.window_shift))


class LastGapFilledLate(Receiver):
    """Only what is still missing makes an ACK leave at once, not what was missing before."""

    _segments = 0

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        self._segments += in_order
        return not in_order or bool(self.buffer.blocks) or self._segments >= self.config.ack_every

    def note_ack_sent(self, *, complete: bool = True) -> None:
        super().note_ack_sent(complete=complete)
        self._segments = 0


class DelayBeginsAnew(Receiver):
    """Each segment that need not be acknowledged at once starts the delay again."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        running = self.ack_deadline is not None
        super()._take(seq, payload, now)
        if running and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class EarlyFinForgotten(Receiver):
    """Of a segment out of order the data is kept, the FIN is not."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        if fin and seq > self.buffer.rcv_nxt:
            fin = False
            self.ack_now = True
        super().on_text(seq, payload, fin, now)


class GrowingBlockStays(Reassembly):
    """A new block goes to the front of the list; one that grows stays where it is."""

    def insert(self, seq: int, payload: bytes) -> None:
        before = self.blocks
        held = seq > self.rcv_nxt
        super().insert(seq, payload)
        if not held:
            return
        left, right = grown = self.blocks[0]
        joined = [at for at, block in enumerate(before) if left <= block[0] and block[1] <= right]
        if joined:
            rest = self.blocks[1:]
            rest.insert(joined[0], grown)
            self.blocks = rest


class BlocksWithoutRoomForgotten(Receiver):
    """Data on which the SACK blocks did not fit settles the acknowledgment all the same."""

    def note_ack_sent(self, *, complete: bool = True) -> None:
        super().note_ack_sent(complete=True)


class OverlapIsDuplicate(Receiver):
    """A segment that begins below RCV.NXT is a duplicate, wherever it ends."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        if length and seq < self.rcv_nxt:
            return False
        return super().is_acceptable(seq, length)


# -- options, timestamps ------------------------------------------------------------------------------


class RepeatedSynAckUnscaled(Connection):
    """The second SYN-ACK lacks Window Scale; the windows that follow are scaled."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is not None and self.handshake.attempts > 1:
            self._outbox[-1].window_scale = None


class BlocksBeyondMss(Handshake):
    """The room for SACK blocks is that of the header, whatever data goes with them."""

    def sack_room(self, payload: int) -> int:
        options = MAXIMUM_OCTETS - (TIMESTAMP_OCTETS if self.timestamps_ok else 0)
        return (options - SACK_OVERHEAD_OCTETS) // SACK_BLOCK_OCTETS


def _parse_to_unknown(packet: bytes) -> Segment:
    """Read a packet; the first option of unknown kind ends its option list."""
    segment = parse_packet(packet)
    if not segment.unknown:
        return segment
    start = (packet[0] & 0xF) * 4
    raw = packet[start + 20 : start + (packet[start + 12] >> 4) * 4]
    at = 0
    while at < len(raw) and raw[at] in (1, 2, 3, 4, 5, 8):
        at += 1 if raw[at] == 1 else raw[at + 1]
    segment.mss = segment.window_scale = segment.timestamps = None
    segment.sack_permitted, segment.sack_blocks = False, ()
    parse_options(raw[:at], segment)
    return segment


def _unknown_ends(setup: Setup) -> Setup:
    return replace(setup, parts=replace(setup.parts, parse=_parse_to_unknown))


class OldTimestampAgain(Connection):
    """A retransmission carries the TSval of the first transmission from the same number."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stamps: dict[int, int] = {}

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        segment = self._outbox[-1]
        if segment.timestamps is not None and (payload or flags & _FIN):
            tsval, tsecr = segment.timestamps
            segment.timestamps = self._stamps.setdefault(seq, tsval), tsecr


class PawsForResets(Connection):
    """RST segments have to pass PAWS as well."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & _RST and receiver.ts_recent is not None:
            if segment.timestamps is None:
                return
            if receiver.is_stale_timestamp(segment.timestamps[0], now):
                receiver.ack_now = True
                return
        super()._receive_synchronized(segment, receiver, now)


class LastAckOfPureAcks(Connection):
    """Last.ACK.sent is kept by the code that sends pure ACKs, not by that which sends data."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        last = None if receiver is None else receiver._last_ack_sent
        super()._put(seq, flags, now, payload)
        if payload and receiver is not None and last is not None:
            receiver._last_ack_sent = last


# -- states, resets, closing ----------------------------------------------------------------------------


class FinAgainUnanswered(Connection):
    """After the peer's FIN, its retransmission is not acknowledged."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        closing = (State.CLOSE_WAIT, State.CLOSING, State.LAST_ACK)
        if segment.flags & _FIN and self.state in closing:
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


class ResetAtLastAck(Connection):
    """A RST has to match Last.ACK.sent, which a delayed ACK leaves behind RCV.NXT."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & _RST and receiver._last_ack_sent != receiver.rcv_nxt:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if seq == receiver.rcv_nxt:
                receiver.ack_now = True
                return
        super()._receive_synchronized(segment, receiver, now)


class AckOfNothingEstablishes(Connection):
    """SYN-RECEIVED takes SND.UNA =< SEG.ACK for SND.UNA < SEG.ACK: an ACK of ISS will do."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        if self.state is State.SYN_RECEIVED and segment.ack == self.sender.iss & MASK:
            self._established(segment, now)
            return True
        return super()._take_ack(segment, seq, now)


class DataOfHandshakeDropped(Connection):
    """The segment that ends SYN-RECEIVED is processed up to its ACK."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        opening = self.state is State.SYN_RECEIVED
        return super()._take_ack(segment, seq, now) and not opening


class NoDelayedAckAfterFin(Connection):
    """In FIN-WAIT-2 the delay of an ACK ends without the ACK."""

    def advance(self, now: float) -> None:
        receiver = self.receiver
        if (
            self.state is State.FIN_WAIT_2
            and receiver is not None
            and receiver.ack_deadline is not None
            and now >= receiver.ack_deadline
        ):
            receiver.ack_deadline = None
        super().advance(now)


class AckOnFinIgnored(Connection):
    """The acknowledgment in a segment with FIN is not processed."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        if segment.flags & _FIN and self.state is not State.SYN_RECEIVED:
            return True
        return super()._take_ack(segment, seq, now)


class DataEndIsFin(SackNewRenoRfcSender):
    """The ACK of the last octet is taken for that of the FIN after it."""

    @property
    def fin_acknowledged(self) -> bool:
        end = self.data_end
        return self.fin_queued and end is not None and self.snd_una >= end


FAULTS = [
    # the retransmission timer and its measurements
    # Needs a timeout, a duplicate ACK that acknowledges nothing new, and another timeout.
    Fault(
        "tcp-b1-backoff-ended", "after a timeout a duplicate ACK, no measurement, ends the back-off",
        "RFC 6298 section 5.5; RFC 6298 section 5", _with(BackoffEndedByDuplicate),
    ),
    Fault(
        "tcp-b1-inherited-timer",
        "the timer runs on when all is acknowledged and expires early for data sent after that",
        "RFC 6298 section 5.2; RFC 6298 section 5.1", _with(TimerOfAcknowledgedData),
    ),
    Fault(
        "tcp-b1-synack-measured",
        "measures the round trip of a SYN-ACK that it repeated because the SYN came again",
        "RFC 6298 section 3; RFC 6928 section 2", _with(RepeatedSynAckMeasured),
    ),
    Fault(
        "tcp-b1-old-echo",
        "takes a measurement from the old timestamp echoed in data that acknowledges nothing new",
        "RFC 7323 section 4.1", _with(MeasuresOldEchoes),
    ),
    # Needs a window that stays closed for more than twelve probes, each of them answered.
    Fault(
        "tcp-b1-closed-given-up",
        "gives up a connection whose peer answers every probe of its closed window",
        "RFC 9293 section 3.8.6.1", _with(GivesUpClosedWindow),
    ),
    # the offered window, sending side
    Fault(
        "tcp-b1-pure-update",
        "ignores a window update whose sequence and acknowledgment numbers are those of the last",
        "RFC 9293 section 3.10.7.4", _with(PureUpdateIgnored),
    ),
    # Needs a peer whose sequence numbers wrap during the connection, such as a high ISS.
    Fault(
        "tcp-b1-window-wrap",
        "ignores all windows once the peer's sequence numbers have wrapped",
        "RFC 9293 section 3.4; RFC 9293 section 3.10.7.4", _with(UpdateAfterWrapIgnored),
    ),
    Fault(
        "tcp-b1-silly-current",
        "sends a small segment when it is half the present window, not half the largest",
        "RFC 9293 section 3.8.6.2.1", _with(HalfTheCurrentWindow),
    ),
    Fault(
        "tcp-b1-fin-beside", "sends the FIN although the window is full",
        "RFC 9293 section 3.4; RFC 9293 section 3.8.6", _with(FinBesideWindow),
    ),
    # Needs a loss while the offered window, not cwnd, limits the sender.
    Fault(
        "tcp-b1-recovery-window", "during recovery new data ignores the window offered",
        "RFC 6675 section 4; RFC 9293 section 3.8.6", _with(RecoveryIgnoresWindow),
    ),
    # congestion control and loss recovery
    Fault(
        "tcp-b1-dupacks-add-up",
        "ACKs of new data do not reset the count, so duplicates of several reorderings add up",
        "RFC 6675 section 5; RFC 5681 section 3.2", _with(DuplicatesAddUp),
    ),
    Fault(
        "tcp-b1-no-news", "counts ACKs that repeat known SACK blocks as duplicate ACKs",
        "RFC 6675 section 2", _with(OldBlocksAreDuplicates),
    ),
    Fault(
        "tcp-b1-rescue-again", "makes a rescue retransmission after every partial ACK",
        "RFC 6675 section 4; RFC 6675 section 5", _with(RescueAgain),
    ),
    Fault(
        "tcp-b1-speculates",
        "retransmits what is not lost by IsLost although there is new data to send",
        "RFC 6675 section 4", _with(SpeculatesFirst),
    ),
    Fault(
        "tcp-b1-lost-at-two", "takes data for lost when exactly two SMSS above it are held",
        "RFC 6675 section 4", _with(LostAtTwoSegments),
    ),
    Fault(
        "tcp-b1-point-moves", "every partial ACK moves RecoveryPoint to the highest number sent",
        "RFC 6675 section 5", _with(RecoveryPointMoves),
    ),
    # Needs lost ACKs, a timeout, and SACK reports of data sent before it.
    Fault(
        "tcp-b1-timeout-unrecorded",
        "after a timeout outside recovery, old duplicates start a fast retransmit",
        "RFC 6675 section 5.1; RFC 6582 section 3.2", _with(TimeoutRecordsInRecoveryOnly),
    ),
    # Needs a timeout during recovery, such as a retransmission that is lost as well.
    Fault(
        "tcp-b1-recovery-survives", "a timeout during recovery does not end it, so no slow start",
        "RFC 6582 section 3.2; RFC 5681 section 3.1", _with(RecoverySurvivesTimeout),
    ),
    # Needs an echo connection that has grown its cwnd and a large request after an idle time.
    Fault(
        "tcp-b1-heard-not-idle",
        "a segment received, such as a request, ends the idle time before cwnd is reduced",
        "RFC 5681 section 4.1", _with(NotIdleWhenHeard, NotesWhenHeard),
    ),
    Fault(
        "tcp-b1-ack-up-to-next",
        "after a timeout an ACK of all that was sent before counts only up to SND.NXT",
        "RFC 9293 section 3.10.7.4", _with(AckUpToNextOnly),
    ),
    # the receiver
    Fault(
        "tcp-b1-held-shrinks", "takes data held out of order off the window, whose edge moves back",
        "RFC 9293 section 3.8.6", _with(HeldDataShrinksWindow),
    ),
    Fault(
        "tcp-b1-last-gap", "delays the ACK of a segment that fills the last gap",
        "RFC 5681 section 4.2", _with(LastGapFilledLate),
    ),
    # Needs small segments closer together than the delay, after a full-sized one (discard).
    Fault(
        "tcp-b1-delay-anew", "each small segment starts the delay of the ACK again",
        "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", _with(DelayBeginsAnew),
    ),
    Fault(
        "tcp-b1-early-fin", "forgets the FIN of a segment out of order whose data it keeps",
        "RFC 9293 section 3.10.7.4", _with(EarlyFinForgotten),
    ),
    Fault(
        "tcp-b1-growing-block",
        "the first SACK block is the newest, not the one that the last segment extended",
        "RFC 2018 section 4", _with(GrowingBlockStays),
    ),
    Fault(
        "tcp-b1-no-room-forgotten",
        "sends no ACK for data out of order when data without room for SACK blocks leaves",
        "RFC 2018 section 4; RFC 5681 section 4.2", _with(BlocksWithoutRoomForgotten),
    ),
    # Needs a peer that cuts its retransmission otherwise than the first transmission.
    Fault(
        "tcp-b1-overlap", "discards the new octets of a segment that begins below RCV.NXT",
        "RFC 9293 section 3.10.7.4; RFC 9293 section 3.4", _with(OverlapIsDuplicate),
    ),
    # options, timestamps
    Fault(
        "tcp-b1-synack-unscaled",
        "leaves Window Scale out of a repeated SYN-ACK but scales its windows",
        "RFC 7323 section 2.2; RFC 7323 section 2.3", _with(RepeatedSynAckUnscaled),
    ),
    Fault(
        "tcp-b1-blocks-beyond-mss", "SACK blocks on full-sized data exceed the peer's MSS",
        "RFC 9293 section 3.7.1; RFC 6691 section 2", _with(BlocksBeyondMss),
    ),
    # Needs an option of unknown kind before others, as of a peer with newer extensions.
    Fault(
        "tcp-b1-unknown-ends", "ignores the options that follow one of unknown kind",
        "RFC 9293 section 3.1; RFC 9293 section 3.2", _unknown_ends,
    ),
    Fault(
        "tcp-b1-old-tsval", "a retransmission carries the timestamp of the first transmission",
        "RFC 7323 section 3.2", _with(OldTimestampAgain),
    ),
    # Needs a RST with an old timestamp or with none.
    Fault(
        "tcp-b1-paws-reset", "applies PAWS to RST segments",
        "RFC 7323 section 5.2; RFC 7323 section 5.3", _with(PawsForResets),
    ),
    Fault(
        "tcp-b1-last-ack-data",
        "data that acknowledges does not move Last.ACK.sent, so that the echo grows old",
        "RFC 7323 section 4.3", _with(LastAckOfPureAcks),
    ),
    # states, resets, closing
    Fault(
        "tcp-b1-fin-again", "does not acknowledge the peer's FIN when it comes again",
        "RFC 9293 section 3.10.7.4", _with(FinAgainUnanswered),
    ),
    # Needs a RST while an ACK is delayed.
    Fault(
        "tcp-b1-reset-last-ack",
        "challenges a RST at RCV.NXT while the ACK of what came before is delayed",
        "RFC 5961 section 3.2; RFC 9293 section 3.10.7.4", _with(ResetAtLastAck),
    ),
    # Needs a wrong ACK in SYN-RECEIVED, one below the right one.
    Fault(
        "tcp-b1-ack-of-iss", "in SYN-RECEIVED an ACK of ISS itself establishes the connection",
        "RFC 9293 section 3.10.7.4", _with(AckOfNothingEstablishes),
    ),
    Fault(
        "tcp-b1-handshake-data",
        "discards the data of the segment whose ACK ends SYN-RECEIVED",
        "RFC 9293 section 3.10.7.4", _with(DataOfHandshakeDropped),
    ),
    # Needs a single segment after the FIN of daytime has been acknowledged.
    Fault(
        "tcp-b1-fin-wait-2", "sends no delayed ACKs in FIN-WAIT-2",
        "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", _with(NoDelayedAckAfterFin),
    ),
    Fault(
        "tcp-b1-ack-on-fin", "does not process the acknowledgment in a segment with FIN",
        "RFC 9293 section 3.10.7.4", _with(AckOnFinIgnored),
    ),
    Fault(
        "tcp-b1-data-end", "takes the ACK of the last octet for the ACK of its FIN",
        "RFC 9293 section 3.10.7.4", _with(DataEndIsFin),
    ),
]  # fmt: skip
