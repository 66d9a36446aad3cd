"""Mutants that go wrong during or after the recovery phase (SNR-REC)."""

from __future__ import annotations

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.mutants import with_sender
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack


class EndsWithAnyNewAck(SackNewRenoRfcSender):
    """Leaves recovery at the first partial acknowledgment, as Reno does."""

    def ends_recovery(self) -> bool:
        return True


class WaitsAfterPartialAck(SackNewRenoHk99Sender):
    """Stays in recovery on a partial acknowledgment, but retransmits nothing."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        if self.sack_ok:
            super().on_partial_ack(acked, now)
        else:
            self.cwnd = self.cwnd_after_partial_ack(acked)


class ReducesOnPartialAck(SackNewRenoRfcSender):
    """Halves the window again at every partial acknowledgment."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        self.ssthresh = max(self.ssthresh // 2, 2 * self.smss)
        super().on_partial_ack(acked, now)


class ReducesOnPartialAckHk99(SackNewRenoHk99Sender):
    """Halves the window again at every partial acknowledgment."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        self.ssthresh = max(self.ssthresh // 2, 2 * self.smss)
        super().on_partial_ack(acked, now)


class ForgetsRecoverAtTimeout(SackNewRenoRfcSender):
    """Does not record recover when the timer expires."""

    def on_timeout_in_recovery(self) -> None:
        self.recover = self.iss


class NoGateHk99(SackNewRenoHk99Sender):
    """Does not compare an acknowledgment with recover before fast retransmit."""

    def may_enter_recovery(self) -> bool:
        return True


class LessCareful(SackNewRenoRfcSender):
    """Enters fast retransmit at exactly recover."""

    def may_enter_recovery(self) -> bool:
        return self.snd_una > self.recover


class CarefulHk99(SackNewRenoHk99Sender):
    """Refuses fast retransmit at exactly recover."""

    def may_enter_recovery(self) -> bool:
        return self.snd_una > self.recover


class KeepsInflation(SackNewRenoRfcSender):
    """Does not deflate the window when recovery ends."""

    def exit_window(self) -> int:
        return self.cwnd


class BurstsAtExitHk99(SackNewRenoHk99Sender):
    """Leaves recovery with the whole of ssthresh, however little is outstanding."""

    def exit_window(self) -> int:
        return self.ssthresh


class InflatesThrice(SackNewRenoRfcSender):
    """Takes each duplicate for three segments."""

    def inflate(self) -> None:
        self.cwnd += 3 * self.smss


class InflatesTheWholeWindow(SackNewRenoHk99Sender):
    """Inflates what was never halved."""

    def cwnd_entering_recovery(self) -> int:
        return 2 * self.ssthresh + self.duplicate_threshold() * self.smss


class BurstsOnDuplicates(SackNewRenoRfcSender):
    """Sends five segments whenever the tenth duplicate of a recovery arrives."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        super().on_duplicate_in_recovery(now)
        if self.dupacks == 10:
            for _ in range(5):
                self.transmit(self.snd_max, self.snd_max + self.smss, now)


class TwoRetransmissionsPerAck(SackNewRenoHk99Sender):
    """Uses each acknowledgment for two retransmissions."""

    def use_ack(self, now: float) -> bool:
        first = super().use_ack(now)
        return super().use_ack(now) or first


class NoTimerInRecovery(SackNewRenoRfcSender):
    """Stops the retransmission timer for the time of the recovery."""

    def start_rto(self, now: float) -> None:
        if not self.in_recovery:
            super().start_rto(now)

    def restart_rto(self, now: float) -> None:
        self.rto_deadline = None
        self.start_rto(now)


class IgnoresTheOfferedWindowInRecovery(SackNewRenoRfcSender):
    """Lets the inflated window alone decide."""

    def send_window(self) -> int:
        return self.cwnd if self.in_recovery else super().send_window()


class TimerRunsOnThroughPartialAcks(SackNewRenoRfcSender):
    """Leaves the retransmission timer alone while recovery lasts."""

    def rearms_timer_on_entry(self) -> bool:
        return False

    def restarts_timer(self, ack: Ack) -> bool:
        return not self.in_recovery


MUTANTS = (
    Mutant(
        "snr-ends-recovery-with-any-new-ack",
        "SNR-REC-001",
        "Recovery ends at the first partial acknowledgment.",
        with_sender(EndsWithAnyNewAck),
    ),
    Mutant(
        "snr-waits-after-partial-ack",
        "SNR-REC-001",
        "A partial acknowledgment brings no retransmission.",
        with_sender(WaitsAfterPartialAck),
        "hk99",
    ),
    Mutant(
        "snr-reduces-on-partial-ack",
        "SNR-REC-002",
        "Every partial acknowledgment halves the window again.",
        with_sender(ReducesOnPartialAck),
    ),
    Mutant(
        "snr-reduces-on-partial-ack-hk99",
        "SNR-REC-002",
        "Every partial acknowledgment halves the window again.",
        with_sender(ReducesOnPartialAckHk99),
        "hk99",
    ),
    Mutant(
        "snr-forgets-recover-at-timeout",
        "SNR-REC-003",
        "A timeout does not record recover.",
        with_sender(ForgetsRecoverAtTimeout),
    ),
    Mutant(
        "snr-no-gate-hk99",
        "SNR-REC-003",
        "Fast retransmit does not look at recover.",
        with_sender(NoGateHk99),
        "hk99",
    ),
    Mutant(
        "snr-less-careful",
        "SNR-REC-004",
        "Duplicates of exactly recover start a fast retransmit.",
        with_sender(LessCareful),
    ),
    Mutant(
        "snr-careful-hk99",
        "SNR-REC-004",
        "Duplicates of exactly recover start nothing.",
        with_sender(CarefulHk99),
        "hk99",
    ),
    Mutant(
        "snr-keeps-inflation",
        "SNR-REC-005",
        "The window is not deflated at the end of recovery.",
        with_sender(KeepsInflation),
    ),
    Mutant(
        "snr-bursts-at-exit-hk99",
        "SNR-REC-005",
        "Recovery ends with the whole of ssthresh.",
        with_sender(BurstsAtExitHk99),
        "hk99",
    ),
    Mutant(
        "snr-inflates-thrice",
        "SNR-REC-006",
        "A duplicate inflates the window by three segments.",
        with_sender(InflatesThrice),
    ),
    Mutant(
        "snr-inflates-the-whole-window",
        "SNR-REC-006",
        "During recovery the window is inflated but not halved.",
        with_sender(InflatesTheWholeWindow),
        "hk99",
    ),
    Mutant(
        "snr-bursts-on-duplicates",
        "SNR-REC-007",
        "One duplicate during recovery sends a burst.",
        with_sender(BurstsOnDuplicates),
    ),
    Mutant(
        "snr-two-retransmissions-per-ack",
        "SNR-REC-007",
        "One acknowledgment sends two retransmissions.",
        with_sender(TwoRetransmissionsPerAck),
        "hk99",
    ),
    Mutant(
        "snr-no-timer-in-recovery",
        "SNR-REC-008",
        "The retransmission timer does not run during recovery.",
        with_sender(NoTimerInRecovery),
    ),
    Mutant(
        "snr-ignores-the-offered-window-in-recovery",
        "SNR-REC-009",
        "During recovery only the congestion window counts.",
        with_sender(IgnoresTheOfferedWindowInRecovery),
    ),
    Mutant(
        "snr-timer-runs-on-through-partial-acks",
        "SNR-REC-010",
        "Partial acknowledgments do not restart the timer.",
        with_sender(TimerRunsOnThroughPartialAcks),
    ),
)
