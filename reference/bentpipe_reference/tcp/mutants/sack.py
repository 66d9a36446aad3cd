"""Mutants of the sender's use of selective acknowledgments (SNR-SAK)."""

from __future__ import annotations

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.mutants import mutant
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.scoreboard import Scoreboard
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.options import SACK
from bentpipe_reference.tcp.wire.segment import Segment


@mutant("snr-held-data-repeated", breaks="SNR-SAK-001")
class RepeatsHeldDataRfc(SackNewRenoRfcSender):
    """Repeats everything below the loss edge, held or not."""

    def lost_segment(self) -> tuple[int, int] | None:
        seq = max(self.high_rxt, self.snd_una)
        edge = self.loss_edge()
        return (seq, min(edge, seq + self.segment_limit(seq))) if seq < edge else None


@mutant("snr-held-data-repeated-hk99", breaks="SNR-SAK-001")
class RepeatsHeldDataHk99(SackNewRenoHk99Sender):
    """Goes on from the last retransmission, held or not."""

    def next_missing(self) -> int | None:
        return max(self.high_rxt, self.snd_una)

    def repeat_end(self, seq: int) -> int | None:
        return None


@mutant("snr-reports-after-timeout-forgotten", breaks="SNR-SAK-002", hk99=True)
class ForgetsReportsAfterTimeout(Sender):
    """Goes back after a timeout as if nothing had been reported since."""

    def skip_held(self) -> None:
        return

    def repeat_end(self, seq: int) -> int | None:
        return None


@mutant("snr-highest-hole-first", breaks="SNR-SAK-003")
class SkipsTheLowestHole(SackNewRenoRfcSender):
    """Repairs the highest lost hole first."""

    def lost_segment(self) -> tuple[int, int] | None:
        holes = self.scoreboard.gaps(max(self.high_rxt, self.snd_una), self.loss_edge())
        return (holes[-1][0], min(holes[-1][1], holes[-1][0] + self.smss)) if holes else None


@mutant("snr-data-under-way-repeated", breaks="SNR-SAK-004")
class RepeatsWhatMayBeUnderWay(SackNewRenoRfcSender):
    """Once in recovery, repeats all that is outstanding and not held."""

    def lost_segment(self) -> tuple[int, int] | None:
        return self._missing_below(self.snd_max)


@mutant("snr-eligible-one-beyond", breaks="SNR-SAK-005")
class OneSegmentBeyondSuffices(SackNewRenoHk99Sender):
    """Takes a segment for eligible when the next but one is held."""

    def eligibility_distance(self) -> int:
        return self.smss


@mutant("snr-first-report-suffices", breaks="SNR-SAK-006")
class FirstReportSuffices(SackNewRenoRfcSender):
    """Begins recovery at the first report."""

    def duplicate_threshold(self) -> int:
        return 1


@mutant("snr-one-hole-per-round-trip", breaks="SNR-SAK-007")
class OneHolePerRoundTripRfc(SackNewRenoRfcSender):
    """Waits for the acknowledgment of each retransmission."""

    def lost_segment(self) -> tuple[int, int] | None:
        return None if self.high_rxt > self.snd_una else super().lost_segment()

    def speculative_segment(self) -> tuple[int, int] | None:
        return None


@mutant("snr-one-hole-per-round-trip-hk99", breaks="SNR-SAK-007")
class OneHolePerRoundTripHk99(SackNewRenoHk99Sender):
    """Waits for the acknowledgment of each retransmission."""

    def next_retransmission(self) -> int | None:
        return None if self.high_rxt > self.snd_una else super().next_retransmission()


@mutant("snr-new-data-besides-retransmission", breaks="SNR-SAK-008")
class SendsNewDataBesides(SackNewRenoHk99Sender):
    """Inflates and sends new data also on an acknowledgment that repeated a segment."""

    def use_ack(self, now: float) -> bool:
        super().use_ack(now)
        return False


@mutant("snr-two-retransmissions-per-acknowledgment", breaks="SNR-SAK-008")
class RepeatsTwoPerAcknowledgment(SackNewRenoHk99Sender):
    """Sends two eligible segments per acknowledgment."""

    def use_ack(self, now: float) -> bool:
        used = super().use_ack(now)
        return super().use_ack(now) or used


@mutant("snr-hole-repeated-at-once", breaks="SNR-SAK-009")
class RepeatsAgainAtOnceRfc(SackNewRenoRfcSender):
    """Repeats the lowest hole over and over while the pipe allows."""

    def lost_segment(self) -> tuple[int, int] | None:
        again = (self.snd_una, min(self.snd_una + self.smss, self.snd_max))
        return super().lost_segment() or (again if self.in_recovery else None)


@mutant("snr-hole-repeated-at-once-hk99", breaks="SNR-SAK-009")
class RepeatsAgainAtOnceHk99(SackNewRenoHk99Sender):
    """Repeats the lowest hole on every acknowledgment that has nothing else to repeat."""

    def next_retransmission(self) -> int | None:
        seq = super().next_retransmission()
        return self.snd_una if seq is None else seq


@mutant("snr-no-new-data-in-recovery", breaks="SNR-SAK-010")
class NoNewDataInRecoveryRfc(SackNewRenoRfcSender):
    """Sends only retransmissions during recovery."""

    def new_segment(self) -> tuple[int, int] | None:
        return None if self.in_recovery else super().new_segment()


@mutant("snr-no-new-data-in-recovery-hk99", breaks="SNR-SAK-010")
class NoNewDataInRecoveryHk99(SackNewRenoHk99Sender):
    """Sends only retransmissions during recovery."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        if not self.use_ack(now):
            self.inflate()


@mutant("snr-held-data-freed", breaks="SNR-SAK-011")
class FreesHeldData(SackNewRenoRfcSender):
    """Frees what is reported held, so that it has nothing to repeat when the receiver reneges."""

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:
        super().establish(smss, window, seq, sack_ok=sack_ok)
        self._freed = Scoreboard()

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        accepted = super().accept_sack_block(left, right, ack)
        if accepted:
            self._freed.add(left, right)
        return accepted

    def transmit(self, seq: int, end: int, now: float) -> None:
        hole = self._freed.first_gap(seq, end) if seq < self.snd_max else (seq, end)
        if hole is not None:
            super().transmit(seq, end, now)
        else:
            self.snd_nxt = max(self.snd_nxt, end)
            self.start_rto(now)


@mutant("snr-every-block-believed", breaks="SNR-SAK-012")
class BelievesEveryBlock(SackNewRenoRfcSender):
    """Takes blocks above what was sent for reports."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        return ack.number < left < right


@mutant("snr-odd-option-taken-for-loss", breaks="SNR-SAK-013")
class TakesOddOptionForLoss(Connection):
    """Repeats a segment when a SACK option has an odd length."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        if any(kind == SACK for kind, _ in segment.unknown):
            self.sender.retransmit(self.sender.snd_una, now)
        return super()._take_ack(segment, seq, now)


@mutant("snr-odd-option-is-fatal", breaks="SNR-SAK-013")
class DiesOfOddOption(Connection):
    """Reads the blocks of a SACK option without looking at its length."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        for kind, data in segment.unknown:
            if kind == SACK and len(data) % 8:
                raise IndexError("read beyond the end of the SACK option")
        return super()._take_ack(segment, seq, now)


@mutant("snr-duplicate-report-taken-for-loss", breaks="SNR-SAK-014")
class TakesDuplicateReportForLoss(SackNewRenoRfcSender):
    """Repeats a segment on a D-SACK block."""

    def take_sack(self, ack: Ack) -> int:
        newly = super().take_sack(ack)
        if self.sack_ok and ack.blocks and self.is_duplicate_report(ack) and self.flight_size:
            self.retransmit(self.snd_una, self.last_send or 0.0)
        return newly


@mutant("snr-acknowledgments-counted-only", breaks="SNR-SAK-015")
class CountsAcknowledgmentsOnly(SackNewRenoRfcSender):
    """Begins recovery only at the third duplicate, whatever one of them reports."""

    def loss_detected(self) -> bool:
        return self.dupacks >= self.duplicate_threshold()


@mutant("snr-loss-needs-three-full-segments", breaks="SNR-SAK-015")
class NeedsThreeFullSegments(SackNewRenoRfcSender):
    """Counts an octet lost when three full segments' octets are held above, as RFC 3517 does."""

    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, runs * self.smss - 1)
        return self.snd_una if edge is None else edge


@mutant("snr-sack-used-unasked", breaks="SNR-SAK-016")
class UsesSackUnasked(SackNewRenoRfcSender):
    """Uses SACK blocks on every connection."""

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:
        super().establish(smss, window, seq, sack_ok=True)


@mutant("snr-recovery-regardless-of-pipe", breaks="SNR-SAK-017")
class RecoversRegardlessOfPipe(SackNewRenoRfcSender):
    """Retransmissions are not counted as in the network."""

    def pipe(self) -> int:
        return super().pipe() - max(0, self.high_rxt - self.snd_una)


@mutant("snr-recovery-at-the-old-window", breaks="SNR-SAK-017")
class RecoversAtTheOldWindow(SackNewRenoRfcSender):
    """The window is reduced only when recovery ends."""

    def cwnd_entering_recovery(self) -> int:
        return self.cwnd if self.sack_ok else super().cwnd_entering_recovery()

    def exit_window(self) -> int:
        return self.ssthresh if self.sack_ok else super().exit_window()


@mutant("snr-one-segment-per-acknowledgment", breaks="SNR-SAK-018")
class OneSegmentPerAcknowledgment(SackNewRenoRfcSender):
    """Each acknowledgment in recovery sends one segment at most, however much room there is."""

    _used = False

    def next_segment(self) -> tuple[int, int] | None:
        chosen = None if self._used else super().next_segment()
        self._used = True
        return chosen

    def output(self, now: float) -> None:
        self._used = False
        super().output(now)


@mutant("snr-no-rescue", breaks="SNR-SAK-018")
class NeverRescues(SackNewRenoRfcSender):
    """The end of the outstanding data waits for the timer."""

    def rescue_segment(self) -> tuple[int, int] | None:
        return None


@mutant("snr-new-data-before-repairs", breaks="SNR-SAK-019")
class SendsNewDataFirst(SackNewRenoRfcSender):
    """New data goes before the retransmission of lost segments."""

    def next_segment(self) -> tuple[int, int] | None:
        return self.new_segment() or super().next_segment()


@mutant("snr-doubtful-before-new-data", breaks="SNR-SAK-019")
class RepeatsTheDoubtfulFirst(SackNewRenoRfcSender):
    """Missing segments that do not count as lost go before new data."""

    def lost_segment(self) -> tuple[int, int] | None:
        return super().lost_segment() or self.speculative_segment()


@mutant("snr-recovery-again-after-timeout", breaks="SNR-SAK-020")
class RecoversAgainAfterTimeout(SackNewRenoRfcSender):
    """A timeout during recovery does not move RecoveryPoint, and reports begin another recovery."""

    def on_timeout_in_recovery(self) -> None:
        super().on_timeout_in_recovery()
        self.recover = self.snd_una - 1


@mutant("snr-held-fin-not-believed", breaks="SNR-FR-002")
class HeldFinNotBelieved(SackNewRenoRfcSender):
    """A SACK block that ends with the FIN reports what was never sent."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        end = self.data_end
        return super().accept_sack_block(left, right, ack) and (end is None or right <= end)
