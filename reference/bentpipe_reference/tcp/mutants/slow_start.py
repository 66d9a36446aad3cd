"""Mutants that open the window wrongly (SNR-SS, SNR-CA)."""

from __future__ import annotations

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.mutants import with_sender
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender


class BeginsWithTwenty(SackNewRenoRfcSender):
    """Twenty segments before the first acknowledgment."""

    def initial_window(self) -> int:
        return 20 * self.smss


class BeginsWithOctets(SackNewRenoRfcSender):
    """The octets of ten large segments, however small the segments are."""

    def initial_window(self) -> int:
        return 14600


class BeginsWithTen(SackNewRenoHk99Sender):
    """Today's ten segments where the paper has one or 4 KB."""

    def initial_window(self) -> int:
        return 10 * self.smss


class GrowsTwice(SackNewRenoRfcSender):
    """Two segments for each segment acknowledged in slow start."""

    def slow_start_increase(self, acked: int) -> int:
        return 2 * acked


class CountsOctets(SackNewRenoHk99Sender):
    """Slow start by octets where the paper's counts acknowledgments."""

    def slow_start_increase(self, acked: int) -> int:
        return acked


class NeverGrows(SackNewRenoRfcSender):
    """The window stays as it begins."""

    def slow_start_increase(self, acked: int) -> int:
        return 0 * acked


class TrustsAnOldWindow(SackNewRenoRfcSender):
    """No restart window after idleness."""

    def restart_window(self) -> int:
        return self.cwnd


class TrustsAnOldWindowHk99(SackNewRenoHk99Sender):
    """No restart window after idleness."""

    def restart_window(self) -> int:
        return self.cwnd


class NeverAvoids(SackNewRenoRfcSender):
    """Goes on doubling above ssthresh."""

    def congestion_avoidance_increase(self, acked: int) -> int:
        return acked


class NeverAvoidsHk99(SackNewRenoHk99Sender):
    """Goes on doubling above ssthresh."""

    def congestion_avoidance_increase(self, acked: int) -> int:
        return acked


class KeepsThresholdAtTimeout(SackNewRenoRfcSender):
    """A timeout does not reduce ssthresh."""

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        return self.ssthresh


class KeepsThresholdAtTimeoutHk99(SackNewRenoHk99Sender):
    """A timeout does not reduce ssthresh."""

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        return self.ssthresh


class CollapsesThreshold(SackNewRenoRfcSender):
    """A second timeout of a segment takes ssthresh down to two segments."""

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        return 2 * self.smss if repeated else super().ssthresh_after_timeout(repeated)


MUTANTS = (
    Mutant(
        "snr-initial-window-of-twenty",
        "SNR-SS-001",
        "The initial window is twenty segments.",
        with_sender(BeginsWithTwenty),
    ),
    Mutant(
        "snr-initial-window-ignores-mss",
        "SNR-SS-001",
        "The initial window is 14600 octets however small the MSS.",
        with_sender(BeginsWithOctets),
    ),
    Mutant(
        "snr-initial-window-of-ten-hk99",
        "SNR-SS-001",
        "The initial window is ten segments.",
        with_sender(BeginsWithTen),
        "hk99",
    ),
    Mutant(
        "snr-slow-start-grows-twice",
        "SNR-SS-002",
        "Slow start counts every octet acknowledged twice.",
        with_sender(GrowsTwice),
    ),
    Mutant(
        "snr-slow-start-counts-octets-hk99",
        "SNR-SS-002",
        "Slow start counts octets, not acknowledgments.",
        with_sender(CountsOctets),
        "hk99",
    ),
    Mutant(
        "snr-window-never-grows",
        "SNR-SS-003",
        "The window never grows in slow start.",
        with_sender(NeverGrows),
    ),
    Mutant(
        "snr-no-restart-after-idleness",
        "SNR-SS-004",
        "The window of before is used after a long silence.",
        with_sender(TrustsAnOldWindow),
    ),
    Mutant(
        "snr-no-restart-after-idleness-hk99",
        "SNR-SS-004",
        "The window of before is used after a long silence.",
        with_sender(TrustsAnOldWindowHk99),
        "hk99",
    ),
    Mutant(
        "snr-no-congestion-avoidance",
        "SNR-CA-001",
        "The window doubles per round trip also above ssthresh.",
        with_sender(NeverAvoids),
    ),
    Mutant(
        "snr-no-congestion-avoidance-hk99",
        "SNR-CA-001",
        "The window doubles per round trip also above ssthresh.",
        with_sender(NeverAvoidsHk99),
        "hk99",
    ),
    Mutant(
        "snr-timeout-keeps-ssthresh",
        "SNR-CA-002",
        "A timeout leaves ssthresh as it was.",
        with_sender(KeepsThresholdAtTimeout),
    ),
    Mutant(
        "snr-timeout-keeps-ssthresh-hk99",
        "SNR-CA-002",
        "A timeout leaves ssthresh as it was.",
        with_sender(KeepsThresholdAtTimeoutHk99),
        "hk99",
    ),
    Mutant(
        "snr-second-timeout-collapses-ssthresh",
        "SNR-CA-003",
        "The second timeout of a segment reduces ssthresh to two segments.",
        with_sender(CollapsesThreshold),
    ),
)
