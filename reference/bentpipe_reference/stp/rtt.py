"""The round-trip time, measured by POLLs and their first STATs (STP-PL-009)."""

from __future__ import annotations

from bentpipe_reference.common.rtt import SmoothedRtt


class RoundTrip(SmoothedRtt):
    """RFC 6298's smoothing with gains 1/8 and 1/4, seconds.

    A measurement runs from a POLL that this endpoint noted to the STAT with its number, or from a
    BEGIN or BGAK to the BGAK; the timestamp a peer returns is not trusted with a timer.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sent: dict[int, float] = {}

    def polled(self, number: int, now: float) -> None:
        """A POLL with the unwrapped N(PS) ``number`` leaves."""
        self._sent[number] = now

    def answered(self, number: int, now: float) -> None:
        """A valid STAT with this N(PS) has arrived; only the first one counts."""
        sent = self._sent.pop(number, None)
        if sent is None:
            return
        # The sender discards STATs of older POLLs (STP-DT-007), so these will not be measured.
        self._sent = {later: time for later, time in self._sent.items() if later > number}
        self.sample(now - sent)

    @property
    def with_deviation(self) -> float | None:
        """SRTT + 4 RTTVAR, None before the first measurement."""
        return None if self.srtt is None else self.srtt + self.K * self.rttvar
