"""The timeout of RFC 6298 as section 8.4 computes it: between two bounds, for G is free."""

from __future__ import annotations

GRANULARITY_S = 0.1
"""G at most, RWBP-TM-001."""

FIRST_S, AFTER_REPETITION_S = 1.0, 3.0
"""RTO before the first sample; where SYN or SYN-ACK had to be repeated (RFC 6298 rule 5.7)."""

LEAST_S, MOST_S = 1.0, 60.0


class Estimate:
    """SRTT, RTTVAR and RTTMIN of one connection, given ``error`` seconds in each sample.

    Attributes:
        least: RTTMIN, None before the first sample.
    """

    def __init__(self, error: float) -> None:
        self.least: float | None = None
        self._error = error
        self._smoothed = self._variation = 0.0
        self._first = (FIRST_S, FIRST_S)

    def repeated(self, certainly: bool) -> None:
        """SYN or SYN-ACK was sent again, perhaps only because the peer's SYN was."""
        self._first = (AFTER_REPETITION_S if certainly else FIRST_S, AFTER_REPETITION_S)

    def sample(self, seconds: float) -> None:
        """Take a sample (RFC 6298 rules 2.2 and 2.3)."""
        if self.least is None:
            self._smoothed, self._variation = seconds, seconds / 2
        else:
            off = abs(self._smoothed - seconds)
            self._variation = 0.75 * self._variation + 0.25 * off
            self._smoothed = 0.875 * self._smoothed + 0.125 * seconds
        self.least = seconds if self.least is None else min(self.least, seconds)

    def timeout(self, doublings: int = 0) -> tuple[float, float]:
        """The least and the most seconds of min(60, RTO x 2^``doublings``)."""
        low, high = self._first
        if self.least is not None:
            spread = 4 * self._variation
            low = self._smoothed + spread - 5 * self._error
            high = self._smoothed + max(spread, GRANULARITY_S) + 5 * self._error
        factor = _factor(doublings)
        bounded = (min(MOST_S, max(LEAST_S, bound)) for bound in (low, high))
        low, high = (min(MOST_S, bound * factor) for bound in bounded)
        return low, high

    def gap(self, doublings: int = 0) -> tuple[float, float]:
        """Seconds between which it does not lie: it is one of two where a SYN-ACK may count twice.

        Of equal numbers there is nothing between.
        """
        if self.least is not None:
            return 0.0, 0.0
        low, high = (min(MOST_S, first * _factor(doublings)) for first in self._first)
        return low, high


def _factor(doublings: int) -> int:
    return 1 << min(doublings, 16)
