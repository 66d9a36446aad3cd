"""Mutants of the retransmission timer (SNR-RTO)."""

from __future__ import annotations

import math

from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.mutants import mutant, mutant_setting
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack


@mutant("snr-timeout-within-a-round-trip", breaks="SNR-RTO-001")
class TooShort(RttEstimator):
    """The timeout is half the smoothed round-trip time."""

    def bounded(self, rto: float) -> float:
        return super().bounded(rto) if self.srtt is None else self.srtt / 2


mutant_setting(
    "snr-timeout-of-200-ms",
    "The timeout has a lower bound of 200 ms.",
    breaks="SNR-RTO-002",
    min_rto=0.2,
)
mutant_setting(
    "snr-initial-timeout-of-half-a-second",
    "The first SYN-ACK times out after half a second.",
    breaks="SNR-RTO-003",
    hk99=True,
    initial_rto=0.5,
)


@mutant("snr-syn-ack-without-back-off", breaks="SNR-RTO-004")
class RepeatsSynAckSteadily(Handshake):
    """The SYN-ACK is repeated every second."""

    def sent(self, now: float, *, repeated: bool) -> None:
        super().sent(now, repeated=repeated)
        self._estimator.rto = self._estimator.initial


@mutant("snr-lost-syn-ack-forgotten", breaks="SNR-RTO-005")
class ForgetsTheLostSyn(RttEstimator):
    """After a repeated SYN-ACK data times out after a second."""

    def after_lost_syn(self) -> None:
        self.rto = self.initial


@mutant("snr-no-back-off", breaks="SNR-RTO-006")
class NeverBacksOff(RttEstimator):
    """Timeouts in a row are equally long."""

    def backed_off(self, rto: float) -> float:
        return rto


@mutant("snr-back-off-by-half", breaks="SNR-RTO-006")
class BacksOffByHalf(RttEstimator):
    """Each timeout is only half as long again as the one before."""

    def backed_off(self, rto: float) -> float:
        return 1.5 * rto


mutant_setting(
    "snr-back-off-ends-at-20-s", "Back-off stops at 20 seconds.", breaks="SNR-RTO-006", max_rto=20.0
)


@mutant("snr-four-segments-at-timeout", breaks="SNR-RTO-007")
class SendsFourAtTimeout(SackNewRenoRfcSender):
    """A timeout sends four segments."""

    def loss_window(self) -> int:
        return 4 * self.smss

    def on_timeout(self, now: float) -> None:
        super().on_timeout(now)
        self.output(now)


@mutant("snr-whole-window-at-timeout-hk99", breaks="SNR-RTO-007")
class SendsAllAtTimeout(SackNewRenoHk99Sender):
    """A timeout sends all that is outstanding."""

    def loss_window(self) -> int:
        return self.flight_size

    def on_timeout(self, now: float) -> None:
        super().on_timeout(now)
        self.output(now)


@mutant("snr-second-segment-at-timeout", breaks="SNR-RTO-008")
class SkipsTheEarliest(SackNewRenoRfcSender):
    """A timeout retransmits the second outstanding segment."""

    def on_timeout(self, now: float) -> None:
        self._skips = self.flight_size > 2 * self.smss
        super().on_timeout(now)
        self._skips = False

    def retransmit(self, seq: int, now: float) -> int:
        return super().retransmit(seq + self.smss * getattr(self, "_skips", False), now)


@mutant("snr-no-slow-start-after-timeout", breaks="SNR-RTO-009", hk99=True)
class NoSlowStartAfterTimeout(Sender):
    """After a timeout half the flight is sent at once."""

    def cwnd_after_timeout(self) -> int:
        return self.ssthresh


@mutant("snr-timer-not-restarted", breaks="SNR-RTO-010")
class TimerRunsOn(SackNewRenoRfcSender):
    """An acknowledgment of new data does not restart the timer."""

    def restart_rto(self, now: float) -> None:
        if not self.flight_size or self.rto_deadline is None:
            super().restart_rto(now)


@mutant("snr-no-timer-for-the-last-segment", breaks="SNR-RTO-011")
class NoTimerForOne(SackNewRenoRfcSender):
    """No timer runs while only a small segment is outstanding."""

    def start_rto(self, now: float) -> None:
        if self.flight_size > self.smss or self.snd_max - self.snd_una > 1000:
            super().start_rto(now)


@mutant("snr-one-timeout-per-segment", breaks="SNR-RTO-012")
class WaitsForEachTimeout(SackNewRenoRfcSender):
    """After a timeout every missing segment waits for a timeout of its own."""

    def sends_after_ack(self) -> bool:
        return self.snd_nxt >= self.snd_max


@mutant("snr-any-acknowledgment-ends-back-off", breaks="SNR-RTO-013", hk99=True)
class ForgetsTheBackOff(Sender):
    """The acknowledgment of a retransmission ends the back-off."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        estimator = self.estimator
        if estimator.srtt is not None:
            estimator.rto = estimator.bounded(estimator.srtt + 4 * estimator.rttvar)
        super().on_new_ack(ack, now)


mutant_setting(
    "snr-gives-up-after-three-timeouts",
    "The connection is reset after three timeouts without an answer.",
    breaks="SNR-RTO-014",
    max_retransmissions=3,
)


@mutant("snr-timeouts-counted-for-life", breaks="SNR-RTO-014")
class CountsTimeoutsForLife(SackNewRenoRfcSender):
    """The connection is given up after so many timeouts, each of which was answered."""

    def has_given_up(self, now: float) -> bool:
        due = now >= (self.next_deadline() or math.inf)
        return due and self.counters.timeouts >= self.config.max_retransmissions


@mutant("snr-variance-ignored", breaks="SNR-RTO-015")
class IgnoresTheVariance(RttEstimator):
    """The timeout allows for one variance, not for four."""

    K = 1


@mutant("snr-variance-of-half-gain", breaks="SNR-RTO-015")
class VarianceOfHalfGain(RttEstimator):
    """A new measurement changes the variance by an eighth."""

    BETA = 1 / 8


@mutant("snr-back-off-never-collapses", breaks="SNR-RTO-016", hk99=True)
class NeverCollapses(RttEstimator):
    """A measurement does not end back-off."""

    def sample(self, rtt: float) -> None:
        before = self.rto
        super().sample(rtt)
        if before > 2 * self.initial:
            self.rto = before


@mutant("snr-timeout-of-ten-variances", breaks="SNR-RTO-016")
class AllowsForTenVariances(RttEstimator):
    """The timeout allows for ten variances."""

    K = 10


@mutant("snr-new-data-restarts-timer", breaks="SNR-RTO-016")
class NewDataRestartsTimer(Sender):
    """Whatever is sent restarts the timer (RFC 6298 rule 5.1 has it run on)."""

    def start_rto(self, now: float) -> None:
        self.rto_deadline = now + self.estimator.rto


@mutant("snr-restarts-with-old-timeout", breaks="SNR-RTO-016", hk99=True)
class RestartsWithOldTimeout(Sender):
    """An acknowledgment restarts the timer before it is measured."""

    _before = 0.0

    def on_new_ack(self, ack: Ack, now: float) -> None:
        self._before = self.estimator.rto
        super().on_new_ack(ack, now)

    def restart_rto(self, now: float) -> None:
        super().restart_rto(now)
        if self.rto_deadline is not None:
            self.rto_deadline = now + self._before


@mutant("snr-keeps-back-off-of-syn-ack", breaks="SNR-RTO-005")
class KeepsBackOffOfSynAck(RttEstimator):
    """Data starts with the timeout of the SYN-ACK if that is longer than three seconds."""

    def after_lost_syn(self) -> None:
        if self.srtt is None:
            self.rto = max(3.0, self.rto)


@mutant("snr-measures-fast-retransmissions", breaks="SNR-RTO-016")
class MeasuresFastRetransmissions(SackNewRenoRfcSender):
    """Karn's rule is kept for what a timeout repeats only."""

    def forget_measurement(self) -> None:
        if not self.in_recovery:
            super().forget_measurement()


@mutant("snr-closed-window-stops-timer", breaks="SNR-RTO-011", hk99=True)
class ClosedWindowStopsTimer(Sender):
    """A window that closes over outstanding data stops the timer."""

    def update_window(self, ack: Ack) -> bool:
        moved = super().update_window(ack)
        if not self.snd_wnd:
            self.rto_deadline = None
        return moved


@mutant("snr-one-reduction-for-all-timeouts", breaks="SNR-CA-002")
class ReducesOncePerRepair(SackNewRenoRfcSender):
    """Another segment that times out before a timeout is repaired leaves ssthresh as it is."""

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        return super().ssthresh_after_timeout(repeated or self.repairs_timeout())


@mutant("snr-no-growth-after-timeout", breaks="SNR-RTO-017", hk99=True)
class GrowsNoMoreAfterTimeout(Sender):
    """After a timeout two segments are in the network until all is repaired."""

    _repairing = 0

    def on_timeout(self, now: float) -> None:
        self._repairing = self.snd_max
        super().on_timeout(now)

    def slow_start_increase(self, acked: int) -> int:
        growth = super().slow_start_increase(acked)
        return min(growth, 2 * self.smss - self.cwnd) if self.snd_una < self._repairing else growth
