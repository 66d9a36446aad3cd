"""Forty faults of a TCP stack, written from the RFCs without knowledge of the suite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire import Flags, Segment, parse_packet
from bentpipe_reference.tcp.wire.sequence import MASK, before

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))


def using(part: type[Any]) -> Callable[[Setup], Setup]:
    """The setup with one part replaced."""
    return lambda setup: setup.with_part(part)


# -- recovery and the scoreboard --------------------------------------------------------------


class OldRecoveryPoint(SackNewRenoRfcSender):
    """A timeout ends fast recovery, but the point below which no new episode begins stays."""

    def on_timeout_in_recovery(self) -> None:
        if not (self.sack_ok and self.in_recovery):
            super().on_timeout_in_recovery()


class CountsDuplicateReports(SackNewRenoRfcSender):
    """A D-SACK is one of three duplicate ACKs."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        if super().is_duplicate_ack(ack, newly_held):
            return True
        return bool(
            self.sack_ok
            and ack.number == self.snd_una
            and self.flight_size
            and ack.bare
            and ack.blocks
            and self.is_duplicate_report(ack)
        )


class RescuesAgain(SackNewRenoRfcSender):
    """The mark of the rescue retransmission does not survive a partial ACK."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        super().on_partial_ack(acked, now)
        self.rescued = False


class PointBelowLimitedTransmit(SackNewRenoRfcSender):
    """The recovery point is what had been sent before limited transmit."""

    def recovery_point(self) -> int:
        return super().recovery_point() - self.limited_transmit_octets


class KeepsHeldMarks(SackNewRenoRfcSender):
    """A timeout that ends fast recovery leaves the scoreboard as it is."""

    def on_timeout(self, now: float) -> None:
        kept = self.scoreboard.snapshot() if self.in_recovery else ()
        super().on_timeout(now)
        for left, right in kept:
            self.scoreboard.add(left, right)


class ReadsBareReports(SackNewRenoRfcSender):
    """Header prediction of the data path does not look at SACK blocks."""

    def take_sack(self, ack: Ack) -> int:
        return super().take_sack(ack) if ack.bare else 0


class PlainComparison(SackNewRenoRfcSender):
    """The edges of a SACK block are compared as plain numbers."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        return super().accept_sack_block(left, right, ack) and left & MASK < right & MASK


class SameWindowOnly(SackNewRenoRfcSender):
    """RFC 5681's condition on the window, kept with SACK."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        same = not self.sack_ok or ack.window == self.last_window
        return same and super().is_duplicate_ack(ack, newly_held)


class SumsDuplicates(SackNewRenoRfcSender):
    """One and two duplicates are remembered over ACKs of new data."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        counted = 0 if self.in_recovery else self.dupacks
        super().on_new_ack(ack, now)
        if counted < self.duplicate_threshold():
            self.dupacks = counted


class NoHeldFin(SackNewRenoRfcSender):
    """A SACK block must be one of data."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        end = self.data_end
        return super().accept_sack_block(left, right, ack) and (end is None or right <= end)


# -- the retransmission timer -----------------------------------------------------------------


class SamplesDuplicates(SackNewRenoRfcSender):
    """Every echoed timestamp is a measurement while data is outstanding."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number == self.snd_una and self.flight_size and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


class EndsBackOff(SackNewRenoRfcSender):
    """Without timestamps the ACK of what timed out restores the timeout."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        estimator = self.estimator
        if self.consecutive_timeouts and ack.ts_ecr_age is None:
            if estimator.srtt is None:
                estimator.rto = estimator.initial
            else:
                spread = max(estimator.granularity, estimator.K * estimator.rttvar)
                estimator.rto = estimator.bounded(estimator.srtt + spread)
        super().on_new_ack(ack, now)


class LazyTimer(SackNewRenoRfcSender):
    """With nothing outstanding the timer runs on, and expires without effect."""

    def restart_rto(self, now: float) -> None:
        self.rto_deadline = now + self.estimator.rto

    def on_timer(self, now: float) -> None:
        due = self.rto_deadline is not None and now >= self.rto_deadline
        if due and not self.flight_size:
            self.rto_deadline = None
        super().on_timer(now)

    def check_probe(self, now: float) -> None:
        kept = self.rto_deadline
        if not self.flight_size:
            self.rto_deadline = None
        super().check_probe(now)
        self.rto_deadline = kept


class SmoothsFirst(RttEstimator):
    """SRTT is updated before RTTVAR."""

    def sample(self, rtt: float) -> None:
        if self.srtt is None:
            super().sample(rtt)
            return
        self.srtt += self.ALPHA * (rtt - self.srtt)
        self.rttvar += self.BETA * (abs(self.srtt - rtt) - self.rttvar)
        self.rto = self.bounded(self.srtt + max(self.granularity, self.K * self.rttvar))


class WrapsBackOff(RttEstimator):
    """The index into the table of timeouts wraps round."""

    def back_off(self) -> None:
        if self.rto >= self.maximum:
            self.rto = self.minimum
        else:
            super().back_off()


class DuplicatesRestart(SackNewRenoRfcSender):
    """A duplicate ACK restarts the timer."""

    def on_duplicate_ack(self, now: float) -> None:
        super().on_duplicate_ack(now)
        self.restart_rto(now)


# -- the congestion window --------------------------------------------------------------------


class IdleSinceHeard(SackNewRenoRfcSender):
    """Idle is the time without a segment in either direction."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if self.last_send is not None:
            self.last_send = now
        super().on_ack(ack, now)


class RestartsWide(SackNewRenoRfcSender):
    """The restart window is the initial window."""

    def restart_window(self) -> int:
        return self.initial_window()


class JumpsInRepair(SackNewRenoRfcSender):
    """While a timeout is repaired, slow start adds all that an ACK covers."""

    def slow_start_increase(self, acked: int) -> int:
        usual = super().slow_start_increase(acked)
        return acked if self.snd_una <= self.recover else usual


class KeepsHalf(SackNewRenoRfcSender):
    """A timeout in fast recovery finds the window reduced already."""

    def cwnd_after_timeout(self) -> int:
        return self.ssthresh if self.in_recovery else super().cwnd_after_timeout()


class RoundsToNothing(SackNewRenoRfcSender):
    """SMSS * SMSS / cwnd in integers, which may be zero."""

    def congestion_avoidance_increase(self, acked: int) -> int:
        if self.smss * self.smss // self.cwnd == 0:
            return 0
        return super().congestion_avoidance_increase(acked)


class DeflatesWithoutRepeating(SackNewRenoHk99Sender):
    """A partial ACK that is used up by a retransmission does not deflate the window."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        inflated = self.cwnd
        super().on_partial_ack(acked, now)
        if self.sack_ok and self._ack_used:
            self.cwnd = inflated


# -- the receiver -----------------------------------------------------------------------------


class NothingNewNothingMoves(Reassembly):
    """Blocks are put in order only by what is new in them."""

    def insert(self, seq: int, payload: bytes) -> None:
        if seq > self.rcv_nxt and self._held.covers(seq, seq + len(payload)):
            return
        super().insert(seq, payload)


class RepeatsDuplicate(Receiver):
    """A D-SACK is forgotten only when no hole is left."""

    def note_ack_sent(self, *, complete: bool = True) -> None:
        duplicate = self._duplicate
        super().note_ack_sent(complete=complete)
        if self.buffer.blocks:
            self._duplicate = duplicate


class OneBlockAfterFilling(Receiver):
    """An ACK that advances, while data is missing, reports one block."""

    _advanced = False

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        expected = self.buffer.rcv_nxt
        super()._take(seq, payload, now)
        self._advanced = self.buffer.rcv_nxt > expected

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        blocks = super().sack_blocks_to_send(most)
        if self._advanced:
            return blocks[: 1 + (self._duplicate is not None)]
        return blocks


class SparesAcks(Connection):
    """Old data is acknowledged once in half a second."""

    _last_answer = -math.inf

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        due = receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        old = segment.payload and seq + len(segment.payload) <= receiver.rcv_nxt
        if not old or segment.flags & (_SYN | _FIN | _RST):
            return
        if now - self._last_answer < 0.5:
            receiver.ack_now = due
        else:
            self._last_answer = now


class DelaysAgain(Receiver):
    """Each segment that may wait starts the timer of the delayed ACK anew."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if self.ack_deadline is not None and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class EchoesLatest(Receiver):
    """TS.Recent follows every segment in order, acknowledged before or not."""

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        if self.ts_recent is None or before(tsval, self.ts_recent):
            return
        if seq <= self.rcv_nxt:
            self.echo_timestamp(tsval, now)


# -- windows ----------------------------------------------------------------------------------


class RecoversBeyondWindow(SackNewRenoRfcSender):
    """New data in fast recovery is bounded by cwnd and the pipe alone."""

    def new_segment(self) -> tuple[int, int] | None:
        if not self.in_recovery:
            return super().new_segment()
        octets = self.sendable(self.snd_max, self.smss)
        return (self.snd_max, self.snd_max + octets) if octets else None


class RoundsDown(Receiver):
    """The window field is the window shifted, and the edge follows it."""

    def window_field(self) -> int:
        self.update_edge()
        window = max(0, self.edge - self.rcv_nxt)
        field = min(window >> self.window_shift, 0xFFFF)
        self.edge = self.rcv_nxt + (field << self.window_shift)
        return field


class DeafWhenClosed(Connection):
    """With a closed window a RST fails the test of acceptability."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & _RST and receiver.edge <= receiver.rcv_nxt:
            return
        super()._receive_synchronized(segment, receiver, now)


class ProbesFromWhereItWas(SackNewRenoRfcSender):
    """The back-off of the probes survives the opening of the window."""

    _most = 0

    def zero_window_probe_interval(self, probes: int) -> float:
        self._most = max(self._most, probes)
        return super().zero_window_probe_interval(self._most)


class NeverShrinks(SackNewRenoRfcSender):
    """The right edge never moves back."""

    def update_window(self, ack: Ack) -> bool:
        edge = self.right_edge
        moved = super().update_window(ack)
        if ack.number + self.snd_wnd < edge:
            self.snd_wnd = edge - ack.number
        return moved


# -- states and options -----------------------------------------------------------------------


class NoTimeWait(Connection):
    """From CLOSING straight to CLOSED."""

    def _happen(self, happening: Happening, now: float) -> None:
        if happening is Happening.FIN_ACKNOWLEDGED and self.state is State.CLOSING:
            happening = Happening.ENDED
        super()._happen(happening, now)


class StopsInClosing(Connection):
    """The peer's FIN stops the retransmission timer when ours is on its way."""

    def _happen(self, happening: Happening, now: float) -> None:
        waited = self.state is State.FIN_WAIT_1
        super()._happen(happening, now)
        if waited and self.state is State.CLOSING:
            self.sender.rto_deadline = None


class BareSecondAnswer(Connection):
    """A SYN-ACK sent again has the MSS option only; what was negotiated stays in force."""

    _answers = 0

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is None:
            return
        self._answers += 1
        if self._answers > 1:
            segment = self._outbox[-1]
            segment.window_scale = segment.timestamps = None
            segment.sack_permitted = False


class StoredPackets(Connection):
    """A retransmission carries the TSval of the first transmission."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._stamped: dict[tuple[int, int], int] = {}
        super().__init__(*args, **kwargs)

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().put(seq, payload, fin, now)
        segment = self._outbox[-1]
        if segment.timestamps is not None:
            value, echo = segment.timestamps
            segment.timestamps = self._stamped.setdefault((seq, len(payload)), value), echo


def parse_quickly(packet: bytes) -> Segment:
    """The fast path finds the timestamps only where most stacks put them."""
    segment = parse_packet(packet)
    if segment.timestamps is not None and not segment.flags & _SYN:
        options = (packet[0] & 15) * 4 + 20
        if packet[options : options + 4] != b"\x01\x01\x08\x0a":
            segment.timestamps = None
    return segment


class BlindToCrossingSyn(Connection):
    """The options of a SYN without ACK are not read in SYN-SENT."""

    def _receive_in_syn_sent(self, segment: Segment, now: float) -> None:
        if segment.flags & (_SYN | _ACK) == _SYN:
            segment = replace(
                segment, mss=None, window_scale=None, sack_permitted=False, timestamps=None
            )
        super()._receive_in_syn_sent(segment, now)


class CountsForLife(SackNewRenoRfcSender):
    """Timeouts are counted over the life of the connection."""

    def has_given_up(self, now: float) -> bool:
        due = now >= (self.next_deadline() or math.inf)
        spent = self.counters.timeouts >= self.config.max_retransmissions
        return super().has_given_up(now) or (due and spent)


FAULTS = [
    # Recovery and the scoreboard.
    Fault(
        "tcp-b13-old-recovery-point",
        "a timeout during SACK recovery leaves RecoveryPoint, so that a new recovery phase begins"
        " before what was sent by then is acknowledged",
        "RFC 6675 section 5.1", using(OldRecoveryPoint),
    ),
    Fault(
        "tcp-b13-dsack-is-duplicate",
        "a bare ACK whose only news is a D-SACK counts as a duplicate ACK while data is outstanding",
        "RFC 6675 section 2; RFC 6675 section 5", using(CountsDuplicateReports),
    ),
    Fault(
        "tcp-b13-rescue-again",
        "after each partial ACK of an episode the end of the data may be rescued once more",
        "RFC 6675 section 4", using(RescuesAgain),
    ),
    Fault(
        "tcp-b13-point-below-limited",
        "RecoveryPoint leaves out what limited transmit sent, so that the loss of that is another"
        " episode",
        "RFC 6675 section 5", using(PointBelowLimitedTransmit),
    ),
    Fault(
        "tcp-b13-timeout-keeps-marks",
        "a timeout during recovery keeps the SACK marks, so that what a reneging receiver dropped"
        " is not sent again after it",
        "RFC 2018 section 8", using(KeepsHeldMarks),
    ),
    Fault(
        "tcp-b13-blocks-beside-data",
        "SACK blocks of a segment that carries data are not read",
        "RFC 2018 section 5; RFC 6675 section 5", using(ReadsBareReports),
    ),
    Fault(
        "tcp-b13-block-across-wrap",
        "a SACK block whose left edge is before the wrap of the numbers and its right edge after"
        " it is refused",
        "RFC 2018 section 3; RFC 9293 section 3.4", using(PlainComparison),
    ),
    Fault(
        "tcp-b13-window-unlike",
        "with SACK, a duplicate ACK that also changes the window does not count",
        "RFC 6675 section 2", using(SameWindowOnly),
    ),
    Fault(
        "tcp-b13-duplicates-add-up",
        "duplicate ACKs before the threshold are not forgotten at an ACK of new data",
        "RFC 6675 section 5", using(SumsDuplicates),
    ),
    Fault(
        "tcp-b13-fin-not-held",
        "a SACK block that ends with our FIN is refused",
        "RFC 2018 section 5; RFC 6675 section 4", using(NoHeldFin),
    ),
    # The retransmission timer.
    Fault(
        "tcp-b13-samples-duplicates",
        "the timestamp of an ACK that acknowledges nothing new is a round-trip measurement",
        "RFC 7323 section 4.1", using(SamplesDuplicates),
    ),
    Fault(
        "tcp-b13-back-off-ends",
        "without timestamps, the ACK of a segment that timed out ends the back-off although it"
        " measures nothing",
        "RFC 6298 section 5; RFC 9293 section 3.8.1", using(EndsBackOff),
    ),
    Fault(
        "tcp-b13-timer-runs-on",
        "the timer is not stopped when everything is acknowledged, and data sent then inherits"
        " what is left of it",
        "RFC 6298 section 5.2; RFC 6298 section 5.1", using(LazyTimer),
    ),
    Fault(
        "tcp-b13-smooths-first",
        "RTTVAR is computed from the SRTT that has already moved towards the sample",
        "RFC 6298 section 2.3", using(SmoothsFirst),
    ),
    Fault(
        "tcp-b13-back-off-wraps",
        "the timeout that follows one at the upper bound is the shortest again",
        "RFC 6298 section 5.5", using(WrapsBackOff),
    ),
    Fault(
        "tcp-b13-duplicates-restart",
        "each duplicate ACK restarts the retransmission timer",
        "RFC 6298 section 5.3", using(DuplicatesRestart),
    ),
    # The congestion window.
    Fault(
        "tcp-b13-idle-since-heard",
        "idle time ends with what the peer sends, so that an answer after a long silence is a"
        " burst of the old window",
        "RFC 5681 section 4.1", using(IdleSinceHeard),
    ),
    Fault(
        "tcp-b13-restarts-wide",
        "after idle time the window is the initial one even if it was smaller before",
        "RFC 5681 section 4.1", using(RestartsWide),
    ),
    Fault(
        "tcp-b13-jumps-in-repair",
        "while a timeout is repaired, slow start adds all octets that an ACK covers",
        "RFC 5681 section 3.1; RFC 3465 section 2.3", using(JumpsInRepair),
    ),
    Fault(
        "tcp-b13-keeps-half",
        "a timeout during fast recovery sets cwnd to ssthresh instead of one segment",
        "RFC 5681 section 3.1", using(KeepsHalf),
    ),
    Fault(
        "tcp-b13-rounds-to-nothing",
        "in congestion avoidance a window above SMSS squared, with a tiny MSS, grows no more",
        "RFC 5681 section 3.1", using(RoundsToNothing),
    ),
    Fault(
        "tcp-b13-hk99-no-deflation",
        "a partial ACK that causes a retransmission does not deflate the window",
        "HK99 appendix, rule 4", using(DeflatesWithoutRepeating), profile="hk99",
    ),
    # The receiver.
    Fault(
        "tcp-b13-old-block-stays",
        "the block of a duplicate above the hole does not move to the front of the SACK blocks",
        "RFC 2018 section 4; RFC 2883 section 4", using(NothingNewNothingMoves),
    ),
    Fault(
        "tcp-b13-dsack-repeated",
        "while data is missing, every ACK repeats the last D-SACK",
        "RFC 2883 section 4", using(RepeatsDuplicate),
    ),
    Fault(
        "tcp-b13-one-block-left",
        "an ACK that advances to a further hole reports one block of several",
        "RFC 2018 section 4", using(OneBlockAfterFilling),
    ),
    Fault(
        "tcp-b13-spares-acks",
        "of the old data that arrives again within half a second only the first is acknowledged",
        "RFC 9293 section 3.10.7.4", using(SparesAcks),
    ),
    Fault(
        "tcp-b13-delays-again",
        "each small segment starts the timer of the delayed ACK anew, which can wait for more than"
        " half a second",
        "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", using(DelaysAgain),
    ),
    Fault(
        "tcp-b13-echoes-latest",
        "a delayed ACK echoes the timestamp of the last segment it acknowledges",
        "RFC 7323 section 4.3", using(EchoesLatest),
    ),
    # Windows.
    Fault(
        "tcp-b13-recovers-beyond",
        "in SACK recovery new data goes beyond the offered window",
        "RFC 6675 section 4; RFC 9293 section 3.8.6", using(RecoversBeyondWindow),
    ),
    Fault(
        "tcp-b13-rounds-down",
        "the window is rounded down to its scale, which moves the right edge back",
        "RFC 9293 section 3.8.6; RFC 7323 section 2.4", using(RoundsDown),
    ),
    Fault(
        "tcp-b13-deaf-when-closed",
        "a RST in sequence is ignored while our receive window is closed",
        "RFC 9293 section 3.8.6; RFC 9293 section 3.10.7.4", using(DeafWhenClosed),
    ),
    Fault(
        "tcp-b13-probes-from-there",
        "when the window closes again, the probes begin with the interval at which they had ended",
        "RFC 9293 section 3.8.6.1", using(ProbesFromWhereItWas),
    ),
    Fault(
        "tcp-b13-never-shrinks",
        "when the peer moves the right edge of its window back, new data is sent to the old one",
        "RFC 9293 section 3.8.6", using(NeverShrinks),
    ),
    # States and options.
    Fault(
        "tcp-b13-no-time-wait",
        "a simultaneous close ends without TIME-WAIT, so that a FIN repeated then is reset",
        "RFC 9293 section 3.10.7.4; RFC 9293 section 3.6", using(NoTimeWait),
    ),
    Fault(
        "tcp-b13-stops-in-closing",
        "the peer's FIN before the ACK of ours stops the retransmission timer: what was lost is"
        " not sent again",
        "RFC 6298 section 5.1; RFC 9293 section 3.8.1", using(StopsInClosing),
    ),
    Fault(
        "tcp-b13-bare-second-answer",
        "a SYN-ACK sent again has no options but MSS, and yet they are used afterwards",
        "RFC 7323 section 2.2; RFC 7323 section 3.2", using(BareSecondAnswer),
    ),
    Fault(
        "tcp-b13-stored-packets",
        "a retransmitted segment carries the TSval of its first transmission",
        "RFC 7323 section 3.2", using(StoredPackets),
    ),
    Fault(
        "tcp-b13-two-nops-first",
        "timestamps that do not stand behind two NOPs at the head of the options are not seen",
        "RFC 9293 section 3.1; RFC 7323 section 3.2",
        lambda setup: replace(setup, parts=replace(setup.parts, parse=parse_quickly)),
    ),
    Fault(
        "tcp-b13-crossing-options",
        "in a simultaneous open the options of the peer's SYN are not read",
        "RFC 9293 section 3.7.1; RFC 7323 section 2.2; RFC 7323 section 3.2",
        using(BlindToCrossingSyn),
    ),
    Fault(
        "tcp-b13-twelve-for-life",
        "the connection is given up at the thirteenth timeout of its life, though each was"
        " answered",
        "RFC 9293 section 3.8.3", using(CountsForLife),
    ),
]  # fmt: skip
