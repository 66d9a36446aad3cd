"""NewReno of RFC 6582: the "Careful" and "Impatient" variant.

``recover`` is the *highest* number sent when the episode began, one less than HK99's
``snd_recover``.
"""

from __future__ import annotations

from bentpipe_reference.tcp.recovery.newreno import NewRenoSender
from bentpipe_reference.tcp.sending.congestion import CongestionRules
from bentpipe_reference.tcp.sending.variables import Ack


class Rfc6582Sender(NewRenoSender):
    """The NewReno of RFC 6582, section 3.2."""

    _partial_acks: int

    def initial_recover(self) -> int:
        """Step 1: the initial send sequence number."""
        return self.iss

    def may_enter_recovery(self) -> bool:
        """Step 2: the cumulative ACK covers more than ``recover``."""
        return self.snd_una - 1 > self.recover

    def recovery_point(self) -> int:
        """Step 2: the highest sequence number sent."""
        return self.snd_max - 1

    def window_to_halve(self) -> int:
        """RFC 5681 halves what is outstanding, not the congestion window."""
        return CongestionRules.window_to_halve(self)

    def enter_recovery(self, now: float) -> None:
        """Step 2."""
        self._partial_acks = 0
        super().enter_recovery(now)

    def ends_recovery(self) -> bool:
        """Step 3: the ACK covers ``recover``."""
        return self.snd_una > self.recover

    def exit_window(self) -> int:
        """Step 3, full acknowledgments, option 1."""
        return min(self.ssthresh, max(self.flight_size, self.smss) + self.smss)

    def cwnd_after_partial_ack(self, acked: int) -> int:
        """Step 3, partial acknowledgments: add a segment back only if one was acknowledged."""
        add_back = self.smss * (acked >= self.smss)
        return max(self.cwnd - acked + add_back, self.smss)

    def restarts_timer(self, ack: Ack) -> bool:
        """Only the first partial ACK of an episode restarts the timer ("Impatient")."""
        if self.in_recovery and ack.number <= self.recover:
            self._partial_acks += 1
            return self._partial_acks == 1
        return True

    def on_timeout_in_recovery(self) -> None:
        """Step 4: after a timeout, duplicates of what was sent before it prove nothing."""
        self.recover = self.snd_max - 1
