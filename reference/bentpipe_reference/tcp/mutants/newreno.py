"""Mutants that go wrong during or after the recovery phase (SNR-REC)."""

from __future__ import annotations

from bentpipe_reference.tcp.mutants import mutant
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.recovery.newreno import NewRenoSender
from bentpipe_reference.tcp.sending.variables import Ack


@mutant("snr-ends-recovery-with-any-new-ack", breaks="SNR-REC-001")
class EndsWithAnyNewAck(SackNewRenoRfcSender):
    """Recovery ends at the first partial acknowledgment."""

    def ends_recovery(self) -> bool:
        return True


@mutant("snr-waits-after-partial-ack", breaks="SNR-REC-001")
class WaitsAfterPartialAck(SackNewRenoHk99Sender):
    """A partial acknowledgment brings no retransmission."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        if self.sack_ok:
            super().on_partial_ack(acked, now)
        else:
            self.cwnd = self.cwnd_after_partial_ack(acked)


@mutant("snr-reduces-on-partial-ack", breaks="SNR-REC-002", hk99=True)
class ReducesOnPartialAck(NewRenoSender):
    """Every partial acknowledgment halves the window again."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        self.ssthresh = max(self.ssthresh // 2, 2 * self.smss)
        super().on_partial_ack(acked, now)


@mutant("snr-forgets-recover-at-timeout", breaks="SNR-REC-003")
class ForgetsRecoverAtTimeout(SackNewRenoRfcSender):
    """A timeout does not record recover."""

    def on_timeout_in_recovery(self) -> None:
        self.recover = self.iss


@mutant("snr-records-what-is-repeated", breaks="SNR-REC-003")
class RecordsWhatIsRepeated(SackNewRenoRfcSender):
    """A second timeout records what has been repeated since the first."""

    def on_timeout_in_recovery(self) -> None:
        self.recover = self.snd_nxt - 1


@mutant("snr-no-gate-hk99", breaks="SNR-REC-003")
class NoGateHk99(SackNewRenoHk99Sender):
    """Fast retransmit does not look at recover."""

    def may_enter_recovery(self) -> bool:
        return True


@mutant("snr-less-careful", breaks="SNR-REC-004")
class LessCareful(SackNewRenoRfcSender):
    """Duplicates of exactly recover start a fast retransmit."""

    def may_enter_recovery(self) -> bool:
        return self.snd_una > self.recover


@mutant("snr-careful-hk99", breaks="SNR-REC-004")
class CarefulHk99(SackNewRenoHk99Sender):
    """Duplicates of exactly recover start nothing."""

    def may_enter_recovery(self) -> bool:
        return self.snd_una > self.recover


@mutant("snr-keeps-inflation", breaks="SNR-REC-005")
class KeepsInflation(SackNewRenoRfcSender):
    """The window is not deflated at the end of recovery."""

    def exit_window(self) -> int:
        return self.cwnd


@mutant("snr-bursts-at-exit-hk99", breaks="SNR-REC-005")
class BurstsAtExitHk99(SackNewRenoHk99Sender):
    """Recovery ends with the whole of ssthresh."""

    def exit_window(self) -> int:
        return self.ssthresh


@mutant("snr-inflates-thrice", breaks="SNR-REC-006")
class InflatesThrice(SackNewRenoRfcSender):
    """A duplicate inflates the window by three segments."""

    def inflate(self) -> None:
        self.cwnd += 3 * self.smss


@mutant("snr-inflates-the-whole-window", breaks="SNR-REC-006")
class InflatesTheWholeWindow(SackNewRenoHk99Sender):
    """During recovery the window is inflated but not halved."""

    def cwnd_entering_recovery(self) -> int:
        return 2 * self.ssthresh + self.duplicate_threshold() * self.smss


@mutant("snr-bursts-on-duplicates", breaks="SNR-REC-007")
class BurstsOnDuplicates(SackNewRenoRfcSender):
    """One duplicate during recovery sends a burst."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        super().on_duplicate_in_recovery(now)
        if self.dupacks == 10:
            for _ in range(5):
                self.transmit(self.snd_max, self.snd_max + self.smss, now)


@mutant("snr-two-retransmissions-per-ack", breaks="SNR-REC-007")
class TwoRetransmissionsPerAck(SackNewRenoHk99Sender):
    """One acknowledgment sends two retransmissions."""

    def use_ack(self, now: float) -> bool:
        first = super().use_ack(now)
        return super().use_ack(now) or first


@mutant("snr-no-timer-in-recovery", breaks="SNR-REC-008")
class NoTimerInRecovery(SackNewRenoRfcSender):
    """The retransmission timer does not run during recovery."""

    def start_rto(self, now: float) -> None:
        if not self.in_recovery:
            super().start_rto(now)

    def restart_rto(self, now: float) -> None:
        self.rto_deadline = None
        self.start_rto(now)


@mutant("snr-ignores-the-offered-window-in-recovery", breaks="SNR-REC-009")
class IgnoresTheOfferedWindowInRecovery(SackNewRenoRfcSender):
    """During recovery only the congestion window counts."""

    def send_window(self) -> int:
        return self.cwnd if self.in_recovery else super().send_window()


@mutant("snr-timer-runs-on-through-partial-acks", breaks="SNR-REC-010")
class TimerRunsOnThroughPartialAcks(SackNewRenoRfcSender):
    """Partial acknowledgments do not restart the timer."""

    def rearms_timer_on_entry(self) -> bool:
        return False

    def restarts_timer(self, ack: Ack) -> bool:
        return not self.in_recovery


@mutant("snr-no-deflation", breaks="SNR-REC-011", hk99=True)
class NeverDeflates(NewRenoSender):
    """A partial acknowledgment leaves the inflated window as it is."""

    def cwnd_after_partial_ack(self, acked: int) -> int:
        return self.cwnd


@mutant("snr-partial-ack-adds-two-back", breaks="SNR-REC-011", hk99=True)
class AddsTwoBack(NewRenoSender):
    """Deflation adds back two segments for a partial acknowledgment."""

    def cwnd_after_partial_ack(self, acked: int) -> int:
        return super().cwnd_after_partial_ack(acked) + self.smss


@mutant("snr-recovery-outlasts-recover", breaks="SNR-REC-012")
class OutlastsRecover(SackNewRenoRfcSender):
    """An acknowledgment of all that was sent before is taken for a partial one."""

    def recovery_point(self) -> int:
        return self.snd_max


@mutant("snr-exit-below-the-flight", breaks="SNR-REC-013", hk99=True)
class ExitsBelowTheFlight(NewRenoSender):
    """Recovery ends with a window below what is outstanding."""

    def exit_window(self) -> int:
        return max(self.smss, self.flight_size - self.smss)


@mutant("snr-never-inflates", breaks="SNR-REC-014", hk99=True)
class NeverInflates(NewRenoSender):
    """Duplicates do not inflate the window."""

    def inflate(self) -> None:
        return
