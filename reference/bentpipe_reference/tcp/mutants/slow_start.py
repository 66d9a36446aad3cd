"""Mutants that open the window wrongly (SNR-SS, SNR-CA)."""

from __future__ import annotations

from bentpipe_reference.tcp.mutants import mutant
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender


@mutant("snr-initial-window-of-twenty", breaks="SNR-SS-001")
class BeginsWithTwenty(SackNewRenoRfcSender):
    """The initial window is twenty segments."""

    def initial_window(self) -> int:
        return 20 * self.smss


@mutant("snr-initial-window-ignores-mss", breaks="SNR-SS-001")
class BeginsWithOctets(SackNewRenoRfcSender):
    """The initial window is 14600 octets however small the MSS."""

    def initial_window(self) -> int:
        return 14600


@mutant("snr-initial-window-of-ten-hk99", breaks="SNR-SS-001")
class BeginsWithTen(SackNewRenoHk99Sender):
    """The initial window is ten segments."""

    def initial_window(self) -> int:
        return 10 * self.smss


@mutant("snr-slow-start-grows-twice", breaks="SNR-SS-002")
class GrowsTwice(SackNewRenoRfcSender):
    """Slow start counts every octet acknowledged twice."""

    def slow_start_increase(self, acked: int) -> int:
        return 2 * acked


@mutant("snr-slow-start-counts-octets-hk99", breaks="SNR-SS-002")
class CountsOctets(SackNewRenoHk99Sender):
    """Slow start counts octets, not acknowledgments."""

    def slow_start_increase(self, acked: int) -> int:
        return acked


@mutant("snr-window-never-grows", breaks="SNR-SS-003")
class NeverGrows(SackNewRenoRfcSender):
    """The window never grows in slow start."""

    def slow_start_increase(self, acked: int) -> int:
        return 0 * acked


@mutant("snr-no-restart-after-idleness", breaks="SNR-SS-004", hk99=True)
class TrustsAnOldWindow(Sender):
    """The window of before is used after a long silence."""

    def restart_window(self) -> int:
        return self.cwnd


@mutant("snr-no-congestion-avoidance", breaks="SNR-CA-001", hk99=True)
class NeverAvoids(Sender):
    """The window doubles per round trip also above ssthresh."""

    def congestion_avoidance_increase(self, acked: int) -> int:
        return acked


@mutant("snr-timeout-keeps-ssthresh", breaks="SNR-CA-002", hk99=True)
class KeepsThresholdAtTimeout(Sender):
    """A timeout leaves ssthresh as it was."""

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        return self.ssthresh


@mutant("snr-second-timeout-collapses-ssthresh", breaks="SNR-CA-003")
class CollapsesThreshold(SackNewRenoRfcSender):
    """The second timeout of a segment reduces ssthresh to two segments."""

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        return 2 * self.smss if repeated else super().ssthresh_after_timeout(repeated)


@mutant("snr-slow-start-at-half-speed", breaks="SNR-SS-005", hk99=True)
class GrowsAtHalfSpeed(Sender):
    """Slow start adds half of what is acknowledged."""

    def slow_start_increase(self, acked: int) -> int:
        return super().slow_start_increase(acked) // 2


@mutant("snr-slow-start-ends-at-64k", breaks="SNR-SS-005")
class EndsSlowStartEarly(SackNewRenoRfcSender):
    """The first slow start ends at the largest window that there is without scaling."""

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:
        super().establish(smss, window, seq, sack_ok=sack_ok)
        self.ssthresh = 0xFFFF


@mutant("snr-no-growth-in-congestion-avoidance", breaks="SNR-CA-004", hk99=True)
class NeverGrowsAgain(Sender):
    """After a loss the window stays as it is."""

    def congestion_avoidance_increase(self, acked: int) -> int:
        return 0 * acked
