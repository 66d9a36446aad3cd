"""Mutants of the retransmission timer (SNR-RTO)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.mutants import with_sender
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack


def _estimating(estimator: type[RttEstimator]) -> Callable[[EndpointConfig], EndpointConfig]:
    """The ``configure`` of an rfc mutant with that timeout estimator."""
    sender = type("MutantSender", (SackNewRenoRfcSender,), {"rtt_estimator_class": estimator})
    return with_sender(sender)


class TooShort(RttEstimator):
    """Half the smoothed round-trip time."""

    def bounded(self, rto: float) -> float:
        return super().bounded(rto) if self.srtt is None else self.srtt / 2


class FifthOfASecond(RttEstimator):
    """A minimum of 200 ms."""

    def lower_bound(self) -> float:
        return 0.2


class NeverBacksOff(RttEstimator):
    """Every timeout as long as the first."""

    def backed_off(self, rto: float) -> float:
        return rto


class BacksOffByHalf(RttEstimator):
    """Half as long again instead of twice as long."""

    def backed_off(self, rto: float) -> float:
        return 1.5 * rto


class ForgetsTheLostSyn(RttEstimator):
    """A repeated SYN-ACK leaves the initial timeout in force."""

    def after_lost_syn(self) -> None:
        self.rto = self.initial


class RepeatsSynAckSteadily(Handshake):
    """The SYN-ACK every second."""

    def sent(self, now: float, *, repeated: bool) -> None:
        super().sent(now, repeated=repeated)
        self._estimator.rto = self._estimator.initial


class RepeatingSynAckSteadily(Endpoint):
    """An endpoint with that handshake."""

    handshake_class = RepeatsSynAckSteadily


class SendsFourAtTimeout(SackNewRenoRfcSender):
    """A loss window of four segments, used at once."""

    def loss_window(self) -> int:
        return 4 * self.smss

    def on_timeout(self, now: float) -> None:
        super().on_timeout(now)
        self.output(now)


class SendsAllAtTimeout(SackNewRenoHk99Sender):
    """Everything outstanding goes out again when the timer expires."""

    def loss_window(self) -> int:
        return self.flight_size

    def on_timeout(self, now: float) -> None:
        super().on_timeout(now)
        self.output(now)


class SkipsTheEarliest(SackNewRenoRfcSender):
    """Retransmits the second segment when the timer expires."""

    def on_timeout(self, now: float) -> None:
        self._skips = self.flight_size > 2 * self.smss
        super().on_timeout(now)
        self._skips = False

    def retransmit(self, seq: int, now: float) -> int:
        return super().retransmit(seq + self.smss * getattr(self, "_skips", False), now)


class NoSlowStartAfterTimeout(SackNewRenoRfcSender):
    """Half the flight at once after a timeout."""

    def cwnd_after_timeout(self) -> int:
        return self.ssthresh


class NoSlowStartAfterTimeoutHk99(SackNewRenoHk99Sender):
    """Half the flight at once after a timeout."""

    def cwnd_after_timeout(self) -> int:
        return self.ssthresh


class TimerRunsOn(SackNewRenoRfcSender):
    """Acknowledgments of new data do not restart the timer."""

    def restart_rto(self, now: float) -> None:
        if not self.flight_size or self.rto_deadline is None:
            super().restart_rto(now)


class NoTimerForOne(SackNewRenoRfcSender):
    """No timer while a single segment is outstanding."""

    def start_rto(self, now: float) -> None:
        if self.flight_size > self.smss or self.snd_max - self.snd_una > 1000:
            super().start_rto(now)


class WaitsForEachTimeout(SackNewRenoRfcSender):
    """One segment per timeout until everything is repaired."""

    def sends_after_ack(self) -> bool:
        return self.snd_nxt >= self.snd_max


class ForgetsTheBackOff(SackNewRenoRfcSender):
    """Any acknowledgment of new data ends the back-off."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        estimator = self.estimator
        if estimator.srtt is not None:
            estimator.rto = estimator.bounded(estimator.srtt + 4 * estimator.rttvar)
        super().on_new_ack(ack, now)


class ForgetsTheBackOffHk99(SackNewRenoHk99Sender):
    """Any acknowledgment of new data ends the back-off."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        estimator = self.estimator
        if estimator.srtt is not None:
            estimator.rto = estimator.bounded(estimator.srtt + 4 * estimator.rttvar)
        super().on_new_ack(ack, now)


MUTANTS = (
    Mutant(
        "snr-timeout-within-a-round-trip",
        "SNR-RTO-001",
        "The timeout is half the smoothed round-trip time.",
        _estimating(TooShort),
    ),
    Mutant(
        "snr-timeout-of-200-ms",
        "SNR-RTO-002",
        "The timeout has a lower bound of 200 ms.",
        _estimating(FifthOfASecond),
    ),
    Mutant(
        "snr-initial-timeout-of-half-a-second",
        "SNR-RTO-003",
        "The first SYN-ACK times out after half a second.",
        lambda config: replace(config, initial_rto=0.5),
    ),
    Mutant(
        "snr-initial-timeout-of-half-a-second-hk99",
        "SNR-RTO-003",
        "The first SYN-ACK times out after half a second.",
        lambda config: replace(config, initial_rto=0.5),
        "hk99",
    ),
    Mutant(
        "snr-syn-ack-without-back-off",
        "SNR-RTO-004",
        "The SYN-ACK is repeated every second.",
        lambda config: replace(config, endpoint_class=RepeatingSynAckSteadily),
    ),
    Mutant(
        "snr-lost-syn-ack-forgotten",
        "SNR-RTO-005",
        "After a repeated SYN-ACK data times out after a second.",
        _estimating(ForgetsTheLostSyn),
    ),
    Mutant(
        "snr-no-back-off",
        "SNR-RTO-006",
        "Timeouts in a row are equally long.",
        _estimating(NeverBacksOff),
    ),
    Mutant(
        "snr-back-off-by-half",
        "SNR-RTO-006",
        "Each timeout is only half as long again as the one before.",
        _estimating(BacksOffByHalf),
    ),
    Mutant(
        "snr-back-off-ends-at-20-s",
        "SNR-RTO-006",
        "Back-off stops at 20 seconds.",
        lambda config: replace(config, max_rto=20.0),
    ),
    Mutant(
        "snr-four-segments-at-timeout",
        "SNR-RTO-007",
        "A timeout sends four segments.",
        with_sender(SendsFourAtTimeout),
    ),
    Mutant(
        "snr-whole-window-at-timeout-hk99",
        "SNR-RTO-007",
        "A timeout sends all that is outstanding.",
        with_sender(SendsAllAtTimeout),
        "hk99",
    ),
    Mutant(
        "snr-second-segment-at-timeout",
        "SNR-RTO-008",
        "A timeout retransmits the second outstanding segment.",
        with_sender(SkipsTheEarliest),
    ),
    Mutant(
        "snr-no-slow-start-after-timeout",
        "SNR-RTO-009",
        "After a timeout half the flight is sent at once.",
        with_sender(NoSlowStartAfterTimeout),
    ),
    Mutant(
        "snr-no-slow-start-after-timeout-hk99",
        "SNR-RTO-009",
        "After a timeout half the flight is sent at once.",
        with_sender(NoSlowStartAfterTimeoutHk99),
        "hk99",
    ),
    Mutant(
        "snr-timer-not-restarted",
        "SNR-RTO-010",
        "An acknowledgment of new data does not restart the timer.",
        with_sender(TimerRunsOn),
    ),
    Mutant(
        "snr-no-timer-for-the-last-segment",
        "SNR-RTO-011",
        "No timer runs while only a small segment is outstanding.",
        with_sender(NoTimerForOne),
    ),
    Mutant(
        "snr-one-timeout-per-segment",
        "SNR-RTO-012",
        "After a timeout every missing segment waits for a timeout of its own.",
        with_sender(WaitsForEachTimeout),
    ),
    Mutant(
        "snr-any-acknowledgment-ends-back-off",
        "SNR-RTO-013",
        "The acknowledgment of a retransmission ends the back-off.",
        with_sender(ForgetsTheBackOff),
    ),
    Mutant(
        "snr-any-acknowledgment-ends-back-off-hk99",
        "SNR-RTO-013",
        "The acknowledgment of a retransmission ends the back-off.",
        with_sender(ForgetsTheBackOffHk99),
        "hk99",
    ),
    Mutant(
        "snr-gives-up-after-three-timeouts",
        "SNR-RTO-014",
        "The connection is reset after three timeouts without an answer.",
        lambda config: replace(config, max_retransmissions=3),
    ),
)
