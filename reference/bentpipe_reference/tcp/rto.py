"""The retransmission timeout (RFC 6298 section 2)."""

from __future__ import annotations

from bentpipe_reference.tcp.config import EndpointConfig


class RttEstimator:
    """SRTT, RTTVAR and the timeout drawn from them, in seconds.

    Attributes:
        srtt: smoothed round-trip time, None before the first measurement.
        rttvar: round-trip time variation.
        rto: current timeout, including back-off.
    """

    ALPHA = 1 / 8
    BETA = 1 / 4
    K = 4

    def __init__(self, config: EndpointConfig) -> None:
        self._config = config
        self.srtt: float | None = None
        self.rttvar = 0.0
        self.rto = config.initial_rto

    def sample(self, rtt: float) -> None:
        """Take one round-trip time measurement; this also ends any back-off (section 5)."""
        if self.srtt is None:
            self.srtt = rtt
            self.rttvar = rtt / 2
        else:
            self.rttvar += self.BETA * (abs(self.srtt - rtt) - self.rttvar)
            self.srtt += self.ALPHA * (rtt - self.srtt)
        self.rto = self.bounded(self.srtt + max(self._config.granularity, self.K * self.rttvar))

    def bounded(self, rto: float) -> float:
        """``rto`` within the configured bounds (rules 2.4 and 2.5)."""
        return min(max(rto, self.lower_bound()), self._config.max_rto)

    def lower_bound(self) -> float:
        """Rule 2.4: at least one second unless configured otherwise."""
        return self._config.min_rto

    def back_off(self) -> None:
        """Rule 5.5: double the timeout when it expires."""
        self.rto = min(self.backed_off(self.rto), self._config.max_rto)

    def backed_off(self, rto: float) -> float:
        """The timeout that follows ``rto`` after an expiry, before the upper bound."""
        return 2 * rto

    def after_lost_syn(self) -> None:
        """Rule 5.7: start data with at least three seconds when the SYN had to be repeated."""
        if self.srtt is None:
            self.rto = max(3.0, self._config.initial_rto)
