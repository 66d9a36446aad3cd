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


@mutant("rwbp-measures-copies", "may_measure", breaks="RWBP-TM-002")
def measures_copies(self: RwbpSender, highest: Outgoing) -> bool:
    """What was transmitted more than once is measured from its last transmission."""
    return True


@mutant("rwbp-measures-what-a-timeout-delayed", "may_measure", breaks="RWBP-TM-002")
def measures_what_a_timeout_delayed(self: RwbpSender, highest: Outgoing) -> bool:
    """What was sent before a timeout yields a sample, as in RFC 6298."""
    return highest.first == highest.latest


@mutant("rwbp-timer-not-started-anew", "on_arrivals", breaks="RWBP-TM-003")
def timer_not_started_anew(self: RwbpSender, arrived: list[Outgoing], now: float) -> None:
    """Progress leaves the timer as it is, unless everything has arrived."""
    deadline = self.rto_deadline
    RwbpSender.on_arrivals(self, arrived, now)
    if self.rto_deadline is not None and deadline is not None:
        self.rto_deadline = deadline


@mutant("rwbp-selective-progress-is-none", "on_arrivals", breaks="RWBP-TM-003")
def selective_progress_is_none(self: RwbpSender, arrived: list[Outgoing], now: float) -> None:
    """What blocks report leaves the timer as it is."""
    deadline = self.rto_deadline
    RwbpSender.on_arrivals(self, arrived, now)
    if self.rto_deadline is not None and arrived[0].end > self.snd_una:
        self.rto_deadline = deadline


@mutant("rwbp-no-back-off", "timeout_interval", breaks="RWBP-TM-004")
def no_back_off(self: RwbpSender) -> float:
    """Every timeout is as long as the first."""
    return self.estimator.rto


@mutant("rwbp-backs-off-for-good", "backoff_after_progress", breaks="RWBP-TM-004")
def backs_off_for_good(self: RwbpSender) -> int:
    """Progress does not end the back-off."""
    return self.backoff


@mutant("rwbp-selective-progress-keeps-back-off", "on_arrivals", breaks="RWBP-TM-004")
def selective_progress_keeps_back_off(
    self: RwbpSender, arrived: list[Outgoing], now: float
) -> None:
    """Only a cumulative acknowledgment ends the back-off."""
    backoff = self.backoff
    RwbpSender.on_arrivals(self, arrived, now)
    if arrived[0].end > self.snd_una:
        self.backoff = backoff
        self.restart_rto(now)


@mutant("rwbp-backs-off-while-held-up", "on_timeout", breaks="RWBP-TM-005")
def backs_off_while_held_up(self: RwbpSender, now: float) -> None:
    """The timer backs off while copies wait for credit."""
    self.backoff += self.segments.due() is not None
    RwbpSender.on_timeout(self, now)


mutant_setting(
    "rwbp-gives-up-after-a-minute",
    "Five timeouts in a row end the connection",
    breaks="RWBP-TM-006",
    max_retransmissions=5,
)
