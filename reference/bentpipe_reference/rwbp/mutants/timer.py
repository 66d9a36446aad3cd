"""Mutants of the retransmission timer (RWBP-TM, section 8.4)."""

from __future__ import annotations

from bentpipe_reference.rwbp.mutants import mutant, mutant_setting
from bentpipe_reference.rwbp.outstanding import Outgoing
from bentpipe_reference.rwbp.rtt import RwbpEstimator
from bentpipe_reference.rwbp.sender import RwbpSender


@mutant("rwbp-two-variations", breaks="RWBP-TM-001")
class TwoVariations(RwbpEstimator):
    """The timeout exceeds the smoothed round-trip time by two variations, not four."""

    K = 2


@mutant("rwbp-hasty-average", breaks="RWBP-TM-001")
class HastyAverage(RwbpEstimator):
    """A sample counts for half of the smoothed round-trip time."""

    ALPHA = 1 / 2


@mutant("rwbp-measures-copies", breaks="RWBP-TM-002")
class MeasuresCopies(RwbpSender):
    """What was transmitted more than once is measured from its last transmission."""

    def may_measure(self, highest: Outgoing) -> bool:
        """See :class:`RwbpSender`."""
        return True


@mutant("rwbp-measures-what-a-timeout-delayed", breaks="RWBP-TM-002")
class MeasuresWhatATimeoutDelayed(RwbpSender):
    """What was sent before a timeout yields a sample, as in RFC 6298."""

    def may_measure(self, highest: Outgoing) -> bool:
        """See :class:`RwbpSender`."""
        return highest.first == highest.latest


@mutant("rwbp-timer-not-started-anew", breaks="RWBP-TM-003")
class TimerNotStartedAnew(RwbpSender):
    """Progress leaves the timer as it is, unless everything has arrived."""

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        """See :class:`RwbpSender`."""
        deadline = self.rto_deadline
        super().on_arrivals(arrived, now)
        if self.rto_deadline is not None and deadline is not None:
            self.rto_deadline = deadline


@mutant("rwbp-selective-progress-is-none", breaks="RWBP-TM-003")
class SelectiveProgressIsNone(RwbpSender):
    """What blocks report leaves the timer as it is."""

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        """See :class:`RwbpSender`."""
        deadline = self.rto_deadline
        super().on_arrivals(arrived, now)
        if self.rto_deadline is not None and arrived[0].end > self.snd_una:
            self.rto_deadline = deadline


@mutant("rwbp-no-back-off", breaks="RWBP-TM-004")
class NoBackOff(RwbpSender):
    """Every timeout is as long as the first."""

    def timeout_interval(self) -> float:
        """See :class:`RwbpSender`."""
        return self.estimator.rto


@mutant("rwbp-backs-off-for-good", breaks="RWBP-TM-004")
class BacksOffForGood(RwbpSender):
    """Progress does not end the back-off."""

    def backoff_after_progress(self) -> int:
        """See :class:`RwbpSender`."""
        return self.backoff


@mutant("rwbp-selective-progress-keeps-back-off", breaks="RWBP-TM-004")
class SelectiveProgressKeepsBackOff(RwbpSender):
    """Only a cumulative acknowledgment ends the back-off."""

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        """See :class:`RwbpSender`."""
        backoff = self.backoff
        super().on_arrivals(arrived, now)
        if arrived[0].end > self.snd_una:
            self.backoff = backoff
            self.restart_rto(now)


mutant_setting(
    "rwbp-gives-up-after-a-minute",
    "Five timeouts in a row end the connection",
    breaks="RWBP-TM-006",
    max_retransmissions=5,
)
