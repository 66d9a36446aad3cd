"""When to poll: the timers of an open connection but Timer_CC (STP/1 sections 7.1, 7.2 and 8)."""

from __future__ import annotations

import math

from bentpipe_reference.stp.config import NO_RESPONSE_S, StpConfig
from bentpipe_reference.stp.rtt import RoundTrip

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.02, 2.0
"""Bounds of the poll interval (STP-PL-001)."""

LEAST_SILENCE_S, MOST_SILENCE_S = 0.2, 15.0
"""Bounds of the silence time, the upper one of its doubling (STP-PL-007)."""


class Polling:
    """Timer_POLL, Timer_SILENCE, Timer_NO-RESPONSE and Timer_KEEP-ALIVE. Times are seconds.

    Attributes:
        silences: expiries of Timer_SILENCE since the last report.
        no_response_s: Timer_NO-RESPONSE (STP-PL-008).
        most_silence_s, back_off: up to what, and by what factor, Timer_SILENCE grows (STP-PL-007).
    """

    no_response_s: float = NO_RESPONSE_S
    most_silence_s: float = MOST_SILENCE_S
    back_off: float = 2.0

    def __init__(self, config: StpConfig, rtt: RoundTrip) -> None:
        self.silences = 0
        self._initial = config.initial_interval
        self._keep_alive = config.keep_alive
        self._rtt = rtt
        self._polled_at = -math.inf  # the last POLL or SDP
        self._unpolled_since = math.inf  # the first SD that no POLL has followed
        self._silent_at = math.inf  # when Timer_SILENCE expires
        self._silence = 0.0  # for how long it was started last
        self._unanswered_since = math.inf  # the first POLL without a report since
        self._heard_at = math.inf  # the last packet received, until it has drawn a POLL

    # What happens

    def heard(self, now: float) -> None:
        """A packet of the connection arrives (STP-PL-010)."""
        self._heard_at = now

    def sent(self, now: float) -> None:
        """An SD leaves, new or again."""
        self._unpolled_since = min(self._unpolled_since, now)

    def polled(self, now: float) -> None:
        """A POLL or SDP leaves."""
        self._polled_at = now
        self._unpolled_since = math.inf
        self._unanswered_since = min(self._unanswered_since, now)
        self.start_silence(now)

    def stop(self) -> None:
        """All is acknowledged: Timer_POLL has nothing to ask about."""
        self._unpolled_since = math.inf

    def reported(self, now: float, *, opens: bool) -> None:
        """A valid STAT or USTAT arrives; ``opens`` unless the window is closed and stays so."""
        self._unanswered_since = math.inf
        if opens:
            self.stop_silence()
            self.start_silence(now)
        else:  # STP-DT-025: with the time it had
            self._silent_at = now + self._silence

    def start_silence(self, now: float) -> None:
        """Start Timer_SILENCE if it does not run."""
        if self._silent_at == math.inf:
            self.silences = 0
            self._silence = self.silence_time()
            self._silent_at = now + self._silence

    def stop_silence(self) -> None:
        """Nothing awaits an answer, and no data credit."""
        self._silent_at = math.inf

    # Times

    def poll_interval(self) -> float:
        """STP-PL-001: a third of the smoothed round-trip time, within bounds."""
        srtt = self._rtt.srtt
        if srtt is None:
            return self._initial
        return min(max(srtt / 3, LEAST_INTERVAL_S), MOST_INTERVAL_S)

    def silence_time(self) -> float:
        """STP-PL-007, before doubling."""
        srtt = self._rtt.srtt
        if srtt is None:
            return self._initial
        return max(
            srtt + max(self._rtt.K * self._rtt.rttvar, self.poll_interval()), LEAST_SILENCE_S
        )

    # Deadlines

    @property
    def is_due(self) -> bool:
        """Whether an SD has left that no POLL has followed."""
        return self._unpolled_since < math.inf

    @property
    def awaits_answer(self) -> bool:
        """Whether no report has followed a POLL."""
        return self._unanswered_since < math.inf

    def poll_at(self, *, stopped: bool) -> float:
        """When a POLL is due; ``stopped`` if no SD can follow now (STP-PL-003)."""
        if stopped and self.is_due:
            return self._polled_at + self.poll_interval()  # STP-PL-003
        return self._unpolled_since + self.poll_interval()

    def may_poll(self, now: float) -> bool:
        """STP-PL-002: whether a POLL may leave before it is due."""
        return now >= self._polled_at + self.poll_interval() / 2

    def deadline(self) -> float:
        """When :meth:`expire` has something to do; infinity for never."""
        return min(self._silent_at, self._give_up_at, self.keep_alive_at)

    def is_hopeless(self, now: float) -> bool:
        """STP-PL-008: whether the peer is to be given up."""
        return now >= self._give_up_at

    def expire(self, now: float) -> bool:
        """Whether Timer_SILENCE or Timer_KEEP-ALIVE asks for a POLL now."""
        if now >= self._silent_at:
            self.silences += 1
            longest = max(self.most_silence_s, self.silence_time())
            self._silence = min(self.back_off * self._silence, longest)
            self._silent_at = now + self._silence
            return True
        if now >= self.keep_alive_at:
            self._heard_at = math.inf
            return self._silent_at == math.inf  # else something is unacknowledged
        return False

    @property
    def _give_up_at(self) -> float:
        return self._unanswered_since + self.no_response_s

    @property
    def keep_alive_at(self) -> float:
        """When Timer_KEEP-ALIVE expires."""
        return self._heard_at + self._keep_alive
