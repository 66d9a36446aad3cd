"""The round-trip time and the retransmission timeout (RFC 6298 section 2)."""

from __future__ import annotations


class SmoothedRtt:
    """SRTT and RTTVAR, in seconds.

    Attributes:
        srtt: smoothed round-trip time, None before the first measurement.
        rttvar: round-trip time variation, absent before the first measurement.
    """

    ALPHA = 1 / 8
    BETA = 1 / 4
    K = 4

    def __init__(self) -> None:
        self.srtt: float | None = None
        self.rttvar: float

    def sample(self, rtt: float) -> None:
        """Take one round-trip time measurement (rules 2.2 and 2.3)."""
        if self.srtt is None:
            self.srtt = rtt
            self.rttvar = rtt / 2
        else:
            self.rttvar += self.BETA * (abs(self.srtt - rtt) - self.rttvar)
            self.srtt += self.ALPHA * (rtt - self.srtt)


class RttEstimator(SmoothedRtt):
    """The timeout computed from both, in seconds.

    Args:
        initial: timeout before the first measurement.
        minimum: lower bound of the timeout, one second by rule 2.4.
        maximum: upper bound of the timeout, also after back-off.
        granularity: G, the tick of the clock that runs the timer.

    Attributes:
        rto: current timeout, including back-off.
    """

    def __init__(
        self, *, initial: float, minimum: float, maximum: float, granularity: float
    ) -> None:
        super().__init__()
        self.initial = initial
        self.minimum = minimum
        self.maximum = maximum
        self.granularity = granularity
        self.rto = initial

    def sample(self, rtt: float) -> None:
        """Take one round-trip time measurement; this also ends any back-off (section 5)."""
        super().sample(rtt)
        assert self.srtt is not None
        self.rto = self.bounded(self.srtt + max(self.granularity, self.K * self.rttvar))

    def bounded(self, rto: float) -> float:
        """``rto`` within its bounds (rules 2.4 and 2.5)."""
        return min(max(rto, self.minimum), self.maximum)

    def back_off(self) -> None:
        """Rule 5.5: double the timeout when it expires."""
        self.rto = min(self.backed_off(self.rto), self.maximum)

    def backed_off(self, rto: float) -> float:
        """The timeout that follows ``rto`` after it has expired, before the upper bound."""
        return 2 * rto

    def after_lost_syn(self) -> None:
        """Rule 5.7: start data with at least three seconds when the SYN had to be repeated."""
        if self.srtt is None:
            self.rto = max(3.0, self.initial)
