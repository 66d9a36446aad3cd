"""Mutants that enter fast retransmit wrongly (SNR-FR)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.tcp.mutants import mutant
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack


@mutant("snr-two-duplicates-suffice", breaks="SNR-FR-001")
class TwoDuplicatesSuffice(SackNewRenoRfcSender):
    """Fast retransmit starts at the second duplicate."""

    def duplicate_threshold(self) -> int:
        return 2


@mutant("snr-one-duplicate-suffices", breaks="SNR-FR-001")
class OneDuplicateSuffices(SackNewRenoHk99Sender):
    """Fast retransmit starts at the first duplicate."""

    def loss_detected(self) -> bool:
        return self.dupacks == 1


@mutant("snr-never-fast-retransmits", breaks="SNR-FR-002")
class NeverFastRetransmits(SackNewRenoRfcSender):
    """Losses are left to the retransmission timer."""

    def loss_detected(self) -> bool:
        return False


@mutant("snr-waits-for-the-fourth", breaks="SNR-FR-002")
class WaitsForTheFourth(SackNewRenoHk99Sender):
    """Fast retransmit starts at the fourth duplicate."""

    def duplicate_threshold(self) -> int:
        return 4


@mutant("snr-repeats-the-next-segment", breaks="SNR-FR-002")
class RepeatsTheNextSegment(SackNewRenoRfcSender):
    """The segment after the missing one is retransmitted."""

    def first_retransmission(self, now: float) -> int:
        end = self.retransmit(self.snd_una + self.smss, now)
        self.snd_nxt = self.snd_max
        return end


@mutant("snr-one-held-segment-suffices", breaks="SNR-FR-003")
class OneHeldSegmentSuffices(SackNewRenoRfcSender):
    """With SACK, the first report of held data starts recovery."""

    def loss_edge(self) -> int:
        return self.scoreboard.highest or self.snd_una


@mutant("snr-two-reports-suffice", breaks="SNR-FR-003")
class TwoReportsSuffice(SackNewRenoHk99Sender):
    """With SACK, the second duplicate starts recovery."""

    def loss_detected(self) -> bool:
        return self.dupacks == (2 if self.sack_ok else 3)


@mutant("snr-counts-window-updates", breaks="SNR-FR-004")
class CountsWindowUpdates(SackNewRenoRfcSender):
    """Window updates are counted as duplicates."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        return super().is_duplicate_ack(replace(ack, window=self.last_window), newly_held)


@mutant("snr-counts-segments-with-data", breaks="SNR-FR-005")
class CountsSegmentsWithData(SackNewRenoRfcSender):
    """Segments with data are counted as duplicates."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        return super().is_duplicate_ack(replace(ack, bare=True), newly_held)


@mutant("snr-repeats-on-every-duplicate", breaks="SNR-FR-006")
class RepeatsOnEveryDuplicate(SackNewRenoRfcSender):
    """Every duplicate during recovery repeats the missing segment."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        self.first_retransmission(now)
        super().on_duplicate_in_recovery(now)


@mutant("snr-repeats-on-every-sixth-duplicate", breaks="SNR-FR-006")
class RepeatsOnEverySixthDuplicate(SackNewRenoHk99Sender):
    """Every sixth duplicate during recovery repeats the missing segment."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        if self.dupacks % 6 == 0:
            self.first_retransmission(now)
        super().on_duplicate_in_recovery(now)


@mutant("snr-counts-duplicates-in-all", breaks="SNR-FR-007")
class CountsDuplicatesInAll(SackNewRenoRfcSender):
    """The count of duplicates is not restarted by new acknowledgments."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        counted = self.dupacks
        super().on_new_ack(ack, now)
        self.dupacks = counted


@mutant("snr-counts-bare-repetitions", breaks="SNR-FR-008")
class CountsBareRepetitions(SackNewRenoRfcSender):
    """With SACK, repetitions that report nothing are counted as duplicates."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        return Sender.is_duplicate_ack(self, ack, newly_held)


@mutant("snr-keeps-the-window", breaks="SNR-FR-009", hk99=True)
class KeepsTheWindow(Sender):
    """The window is not reduced after a loss."""

    def ssthresh_after_loss(self) -> int:
        return max(self.window_to_halve(), 2 * self.smss)


@mutant("snr-window-updates-inflate", breaks="SNR-FR-004")
class InflatesForWindowUpdates(SackNewRenoRfcSender):
    """Without SACK, in a recovery, whatever repeats the number inflates the window."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        if self.in_recovery and not self.sack_ok:
            return ack.number == self.snd_una and ack.bare
        return super().is_duplicate_ack(ack, newly_held)
