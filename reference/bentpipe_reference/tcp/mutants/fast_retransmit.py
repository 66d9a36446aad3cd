"""Mutants that enter fast retransmit wrongly (SNR-FR)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.mutants import with_sender
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack


class TwoDuplicatesSuffice(SackNewRenoRfcSender):
    """Takes two duplicates for a loss."""

    def duplicate_threshold(self) -> int:
        return 2


class OneDuplicateSuffices(SackNewRenoHk99Sender):
    """Takes one duplicate for a loss."""

    def loss_detected(self) -> bool:
        return self.dupacks == 1


class NeverFastRetransmits(SackNewRenoRfcSender):
    """Leaves every loss to the retransmission timer."""

    def loss_detected(self) -> bool:
        return False


class WaitsForTheFourth(SackNewRenoHk99Sender):
    """Counts one duplicate too few."""

    def duplicate_threshold(self) -> int:
        return 4


class RepeatsTheNextSegment(SackNewRenoRfcSender):
    """Repeats the segment after the missing one."""

    def first_retransmission(self, now: float) -> None:
        self.retransmit(self.snd_una + self.smss, now)
        self.snd_nxt = self.snd_max


class OneHeldSegmentSuffices(SackNewRenoRfcSender):
    """Takes everything below the highest held octet for lost, as if nothing were reordered."""

    def loss_edge(self) -> int:
        return self.scoreboard.highest or self.snd_una


class TwoReportsSuffice(SackNewRenoHk99Sender):
    """With SACK, two duplicates are enough."""

    def loss_detected(self) -> bool:
        return self.dupacks == (2 if self.sack_ok else 3)


class CountsWindowUpdates(SackNewRenoRfcSender):
    """Does not compare the window when it looks for duplicates."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        return super().is_duplicate_ack(replace(ack, window=self.snd_wnd), newly_held)


class CountsSegmentsWithData(SackNewRenoRfcSender):
    """Does not look for data when it looks for duplicates."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        return super().is_duplicate_ack(replace(ack, bare=True), newly_held)


class RepeatsOnEveryDuplicate(SackNewRenoRfcSender):
    """Repeats the missing segment on every further duplicate."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        self.first_retransmission(now)
        super().on_duplicate_in_recovery(now)


class RepeatsOnEverySixthDuplicate(SackNewRenoHk99Sender):
    """Repeats the missing segment now and then."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        if self.dupacks % 6 == 0:
            self.first_retransmission(now)
        super().on_duplicate_in_recovery(now)


class CountsDuplicatesInAll(SackNewRenoRfcSender):
    """Does not restart the count of duplicates when new data is acknowledged."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        counted = self.dupacks
        super().on_new_ack(ack, now)
        self.dupacks = counted


class CountsBareRepetitions(SackNewRenoRfcSender):
    """Counts every repeated acknowledgment although SACK is in use."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        return Sender.is_duplicate_ack(self, ack, newly_held)


class KeepsTheWindow(SackNewRenoRfcSender):
    """Repairs losses without reducing the window."""

    def ssthresh_after_loss(self) -> int:
        return max(self.window_to_halve(), 2 * self.smss)


class KeepsTheWindowHk99(SackNewRenoHk99Sender):
    """Repairs losses without reducing the window."""

    def ssthresh_after_loss(self) -> int:
        return max(self.window_to_halve(), 2 * self.smss)


MUTANTS = (
    Mutant(
        "snr-two-duplicates-suffice",
        "SNR-FR-001",
        "Fast retransmit starts at the second duplicate.",
        with_sender(TwoDuplicatesSuffice),
    ),
    Mutant(
        "snr-one-duplicate-suffices",
        "SNR-FR-001",
        "Fast retransmit starts at the first duplicate.",
        with_sender(OneDuplicateSuffices),
        "hk99",
    ),
    Mutant(
        "snr-never-fast-retransmits",
        "SNR-FR-002",
        "Losses are left to the retransmission timer.",
        with_sender(NeverFastRetransmits),
    ),
    Mutant(
        "snr-waits-for-the-fourth",
        "SNR-FR-002",
        "Fast retransmit starts at the fourth duplicate.",
        with_sender(WaitsForTheFourth),
        "hk99",
    ),
    Mutant(
        "snr-repeats-the-next-segment",
        "SNR-FR-002",
        "The segment after the missing one is retransmitted.",
        with_sender(RepeatsTheNextSegment),
    ),
    Mutant(
        "snr-one-held-segment-suffices",
        "SNR-FR-003",
        "With SACK, the first report of held data starts recovery.",
        with_sender(OneHeldSegmentSuffices),
    ),
    Mutant(
        "snr-two-reports-suffice",
        "SNR-FR-003",
        "With SACK, the second duplicate starts recovery.",
        with_sender(TwoReportsSuffice),
        "hk99",
    ),
    Mutant(
        "snr-counts-window-updates",
        "SNR-FR-004",
        "Window updates are counted as duplicates.",
        with_sender(CountsWindowUpdates),
    ),
    Mutant(
        "snr-counts-segments-with-data",
        "SNR-FR-005",
        "Segments with data are counted as duplicates.",
        with_sender(CountsSegmentsWithData),
    ),
    Mutant(
        "snr-repeats-on-every-duplicate",
        "SNR-FR-006",
        "Every duplicate during recovery repeats the missing segment.",
        with_sender(RepeatsOnEveryDuplicate),
    ),
    Mutant(
        "snr-repeats-on-every-sixth-duplicate",
        "SNR-FR-006",
        "Every sixth duplicate during recovery repeats the missing segment.",
        with_sender(RepeatsOnEverySixthDuplicate),
        "hk99",
    ),
    Mutant(
        "snr-counts-duplicates-in-all",
        "SNR-FR-007",
        "The count of duplicates is not restarted by new acknowledgments.",
        with_sender(CountsDuplicatesInAll),
    ),
    Mutant(
        "snr-counts-bare-repetitions",
        "SNR-FR-008",
        "With SACK, repetitions that report nothing are counted as duplicates.",
        with_sender(CountsBareRepetitions),
    ),
    Mutant(
        "snr-keeps-the-window",
        "SNR-FR-009",
        "The window is not reduced after a loss.",
        with_sender(KeepsTheWindow),
    ),
    Mutant(
        "snr-keeps-the-window-hk99",
        "SNR-FR-009",
        "The window is not reduced after a loss.",
        with_sender(KeepsTheWindowHk99),
        "hk99",
    ),
)
