"""The round-trip time of an RWBP connection: RFC 6298, and the smallest sample."""

from __future__ import annotations

from bentpipe_reference.common.rtt import RttEstimator


class RwbpEstimator(RttEstimator):
    """Smoothed times as TCP has them; RWBP backs off elsewhere.

    Attributes:
        smallest: RTTMIN, seconds, None before the first sample.
    """

    smallest: float | None = None

    def sample(self, rtt: float) -> None:
        """Take one sample."""
        super().sample(rtt)
        self.smallest = rtt if self.smallest is None else min(self.smallest, rtt)
