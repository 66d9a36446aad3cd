"""The sender's clocks: round-trip measurement, retransmission timer and persist timer."""

from __future__ import annotations

from bentpipe_reference.common.sim import earliest
from bentpipe_reference.tcp.sending.congestion import CongestionRules
from bentpipe_reference.tcp.sending.variables import Ack


class ClockRules(CongestionRules):
    """When a round trip is measured and when the timers run."""

    def start_measuring(self, end: int, now: float) -> None:
        """Time the segment that ends at ``end`` unless another is being timed."""
        if self.timed is None:
            self.timed = end, now

    def forget_measurement(self) -> None:
        """Karn's rule (RFC 6298 section 3): do not measure retransmitted segments."""
        self.timed = None

    def measured_rtt(self, ack: Ack, now: float) -> float | None:
        """The round-trip time measured by ``ack``, which acknowledges new data; None for none.

        With timestamps every such ACK does (RFC 7323 section 4.1), else one that covers the
        segment being timed.
        """
        if ack.ts_ecr_age is not None:
            return ack.ts_ecr_age
        if self.timed is None or ack.number < self.timed[0]:
            return None
        rtt = now - self.timed[1]
        self.timed = None
        return rtt

    def start_rto(self, now: float) -> None:
        """Rule 5.1 of RFC 6298: sending data starts the timer unless it runs."""
        if self.rto_deadline is None:
            self.rto_deadline = now + self.estimator.rto

    def restart_rto(self, now: float) -> None:
        """Rules 5.2 and 5.3: restart the timer, or stop it when nothing is outstanding."""
        self.rto_deadline = now + self.estimator.rto if self.flight_size else None

    def restart_after_idle(self, now: float) -> None:
        """Return to the restart window after an RTO without sending (RFC 5681 section 4.1)."""
        idle = self.last_send is not None and now - self.last_send > self.estimator.rto
        if idle and not self.flight_size:
            self.cwnd = self.restart_window()

    def zero_window_probe_interval(self, probes: int) -> float:
        """Seconds until the next probe after ``probes`` unanswered ones (RFC 9293 3.8.6.1)."""
        return min(self.estimator.rto * 2.0**probes, self.config.max_rto)

    def plan_probe(self, now: float) -> None:
        """Start the persist timer unless it runs."""
        if self.persist_deadline is None:
            self.persist_deadline = now + self.zero_window_probe_interval(self.probes)

    def next_deadline(self) -> float | None:
        """When the earlier of the two timers expires, None when both are off."""
        return earliest(self.rto_deadline, self.persist_deadline)
