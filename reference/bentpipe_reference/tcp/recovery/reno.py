"""TCP Reno: fast retransmit and fast recovery that ends with the first new ACK (RFC 2001)."""

from __future__ import annotations

from bentpipe_reference.tcp.sender import Sender


class RenoSender(Sender):
    """Halves the window at every third duplicate ACK and leaves recovery at any new ACK."""

    def enter_recovery(self, now: float) -> None:
        """RFC 5681 section 3.2, steps 2 and 3."""
        self.ssthresh = self.ssthresh_after_loss()
        self.in_recovery = True
        if self.rearms_timer_on_entry():
            self.rto_deadline = None
        self.first_retransmission(now)
        self.cwnd = self.cwnd_entering_recovery()

    def window_to_halve(self) -> int:
        """The window in use (RFC 2001 section 4), which is HK99's reference for fast retransmit.

        After a timeout it is smaller than what is outstanding, so that false fast retransmits
        cut ssthresh as the paper observes; otherwise the two agree.
        """
        return min(self.send_window(), super().window_to_halve())

    def rearms_timer_on_entry(self) -> bool:
        """Whether the fast retransmission restarts the retransmission timer.

        4.4BSD does; RFC 6298 is silent and RFC 6675 section 6 permits it. Without it, a slow
        start that fills the satellite's queue ends in a spurious timeout: the first partial ACK
        comes one full round trip, queue included, after the last ACK that set the timer.
        """
        return True

    def first_retransmission(self, now: float) -> int:
        """Retransmit the segment the duplicate ACKs ask for, regardless of cwnd; return its end.

        As in 4.4BSD, transmission then resumes where it was. After a timeout that is below
        ``snd_max``; resuming at ``snd_max`` would skip segments still to be retransmitted.
        """
        return self.retransmit(self.snd_una, now)

    def cwnd_entering_recovery(self) -> int:
        """Return ssthresh plus the three segments that have left the network."""
        return self.ssthresh + self.duplicate_threshold() * self.smss

    def on_duplicate_in_recovery(self, now: float) -> None:
        """Step 4: another segment has left the network; step 5: send what that allows."""
        self.inflate()
        self.output(now)

    def inflate(self) -> None:
        """Grow cwnd by the segment that has left the network."""
        self.cwnd += self.smss

    def on_ack_in_recovery(self, acked: int, now: float) -> None:  # noqa: ARG002
        """Step 6: any new ACK ends recovery and deflates the window."""
        self.leave_recovery(now)

    def leave_recovery(self, now: float) -> None:
        """End the recovery phase."""
        self.cwnd = self.exit_window()
        self.octets_acked = 0
        self.in_recovery = False
        self.emit("leave_recovery", now)

    def exit_window(self) -> int:
        """Return cwnd after recovery: ssthresh."""
        return self.ssthresh
