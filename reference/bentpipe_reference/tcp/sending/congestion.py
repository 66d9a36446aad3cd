"""The congestion window outside loss recovery (RFC 5681, RFC 6928)."""

from __future__ import annotations

from bentpipe_reference.tcp.sending.variables import SenderVariables


class CongestionRules(SenderVariables):
    """How cwnd and ssthresh move on ordinary ACKs, losses, timeouts and idle periods."""

    def initial_window(self) -> int:
        """IW in octets: the configured number of segments.

        RFC 6928 bounds ten segments by max(2*MSS, 14600 octets); the bound applies when the
        segments are larger than usual, so that a large MSS does not inflate the burst.
        """
        octets = self.config.initial_segments * self.smss
        return min(octets, max(2 * self.smss, self.config.initial_segments * 1460))

    def loss_window(self) -> int:
        """LW of RFC 5681: one segment."""
        return self.smss

    def restart_window(self) -> int:
        """RW of RFC 5681 section 4.1."""
        return min(self.initial_window(), self.cwnd)

    def in_slow_start(self) -> bool:
        """Whether cwnd grows exponentially (RFC 5681 section 3.1)."""
        return self.cwnd < self.ssthresh

    def growth_on_ack(self, acked: int) -> int:
        """Octets to add to cwnd for an ACK of ``acked`` new octets outside recovery."""
        if self.in_slow_start():
            return self.slow_start_increase(acked)
        return self.congestion_avoidance_increase(acked)

    def slow_start_increase(self, acked: int) -> int:
        """min(N, L * SMSS), so that ACK division gains nothing.

        L is 1 in equation 2 of RFC 5681, and with RFC 3465 while a timeout is repaired.
        """
        self.octets_acked = 0
        repairing = self.snd_una <= self.recover
        return min(acked, (1 if repairing else self.config.byte_counting) * self.smss)

    def congestion_avoidance_increase(self, acked: int) -> int:
        """One segment per window of acknowledged octets (RFC 5681 section 3.1).

        What was counted towards a larger window, before a reduction, does not count: it could
        make two increases within one round trip.
        """
        self.octets_acked += acked
        if self.octets_acked < self.cwnd:
            return 0
        self.octets_acked -= self.cwnd
        return self.smss

    def ssthresh_after_loss(self) -> int:
        """max(FlightSize / 2, 2*SMSS), equation 4 of RFC 5681."""
        return max(self.window_to_halve() // 2, 2 * self.smss)

    def window_to_halve(self) -> int:
        """FlightSize without what limited transmit sent (RFC 5681 section 3.2, step 2)."""
        return self.flight_size - self.limited_transmit_octets

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        """Return ssthresh at a timeout: kept if the segment timed out before (RFC 5681, 3.1)."""
        return self.ssthresh if repeated else self.ssthresh_after_loss()

    def cwnd_after_timeout(self) -> int:
        """Return cwnd at a timeout: the loss window."""
        return self.loss_window()
