"""When to poll: intervals, silence, zero window, keep-alive (STP/1 sections 7.1 and 7.2)."""

from __future__ import annotations

import math
from enum import Enum

from bentpipe_reference.stp.config import KEEP_ALIVE_S, NO_RESPONSE_S, StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.rtt import RoundTrip

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.05, 2.0
"""Bounds of the poll interval (STP-PL-001)."""

LEAST_SILENCE_S = 1.0
MOST_BACKED_OFF_S = 60.0
"""Bounds of the silence time and of doubled intervals (STP-PL-007)."""

MOST_PROBING_S = 15.0
"""Between POLLs into a closed window (STP-DT-025); several precede giving the peer up."""


class Need(Enum):
    """Why the POLL timer runs (section 7.1)."""

    NONE = 0
    """Nothing is unacknowledged or waiting: the connection is silent (STP-PL-010)."""
    DATA = 1
    """Something is unacknowledged (STP-DT-004)."""
    HEARD = 4
    """All is acknowledged, but the peer has not yet been heard (STP-CC-030)."""
    PROBE = 2
    """All is acknowledged, and data awaits credit (STP-DT-025)."""
    IDLE = 3
    """The user has asked for keep-alive (STP-PL-010)."""


class Expiry(Enum):
    """What an expiry of the timer means."""

    NOTHING = 0
    POLL = 1
    SECOND_SILENCE = 2
    """Poll, and treat it as congestion (STP-CG-007)."""
    GIVE_UP = 3
    """STP-PL-008."""


class Polling:
    """The POLL timer.

    Attributes:
        need: why it runs.
        silences: silences in a row (STP-PL-007).
        probes: POLLs sent into a closed window in a row.
    """

    no_response_s: float = NO_RESPONSE_S
    keep_alive_s: float = KEEP_ALIVE_S
    most_probing_s: float = MOST_PROBING_S

    def __init__(self, config: StpConfig, congestion: Congestion, rtt: RoundTrip) -> None:
        self.need = Need.NONE
        self.silences = 0
        self.probes = 0
        self._initial = config.initial_interval
        self._congestion = congestion
        self._rtt = rtt
        self._base = 0.0  # the last POLL or SDP, or when the timer was started
        self._silent_since: float | None = None  # of a POLL without STAT or USTAT since
        self._unanswered_since: float | None = None  # of a POLL without STAT since

    # What happens

    def require(self, need: Need, now: float) -> None:
        """Start, continue or stop the timer."""
        if need is self.need:
            return
        if need is Need.NONE or self.need in (Need.NONE, Need.IDLE):
            self._base = now
            self.silences = 0
            self._silent_since = None
        if need is Need.NONE:
            self._unanswered_since = None
        self.probes = 0
        self.need = need

    def polled(self, now: float) -> None:
        """A POLL or SDP leaves."""
        self._base = now
        if self._silent_since is None:
            self._silent_since = now
        if self._unanswered_since is None:
            self._unanswered_since = now
        if self.need is Need.PROBE:
            self.probes += 1

    def postpone(self, now: float) -> None:
        """A POLL could not be sent; try again after the interval."""
        self._base = now

    def answered(self, now: float, *, outstanding: bool) -> None:
        """A valid STAT arrives; ``outstanding`` if later POLLs are unanswered."""
        self.silences = 0
        self._silent_since = self._unanswered_since = now if outstanding else None

    def reported(self, now: float) -> None:
        """A valid USTAT arrives: the peer is alive, but no POLL is answered."""
        if self._silent_since is not None and not self.silences:
            self._silent_since = now

    @property
    def unanswered(self) -> bool:
        """Whether a POLL is unanswered."""
        return self._unanswered_since is not None

    # Times

    def poll_interval(self) -> float:
        """STP-PL-001: a third of the smoothed round-trip time, within bounds."""
        srtt = self._rtt.srtt
        if srtt is None:
            return self._initial
        return min(max(srtt / 3, LEAST_INTERVAL_S), MOST_INTERVAL_S)

    def low_window_interval(self) -> float:
        """STP-PL-003."""
        time = self._rtt.with_deviation
        return self._initial if time is None else max(time, LEAST_INTERVAL_S)

    def interval(self) -> float:
        """Seconds from one POLL to the next while the peer answers."""
        if self.need is Need.IDLE:
            return self.keep_alive_s
        if self.need is Need.PROBE:
            return self.probe_interval()
        low = self._congestion.low and self.need is not Need.HEARD
        return self.low_window_interval() if low else self.poll_interval()

    def probe_interval(self) -> float:
        """STP-DT-025: the poll interval at first, doubled each time."""
        return min(self.poll_interval() * 2.0 ** min(self.probes, 16), self.most_probing_s)

    def silence_time(self) -> float:
        """STP-PL-007."""
        time = self._rtt.with_deviation
        return max(LEAST_SILENCE_S, self.poll_interval() + (time or 0.0))

    def backed_off(self) -> float:
        """STP-PL-007: from one silence to the next, seconds."""
        return min(self.silence_time() * 2.0 ** min(self.silences, 16), MOST_BACKED_OFF_S)

    # Deadlines

    def due(self, now: float) -> bool:
        """Whether the interval has passed, so that the next SD may as well be an SDP."""
        return self.need is Need.DATA and not self.silences and now >= self._base + self.interval()

    def deadline(self) -> float:
        """When :meth:`expire` has something to do, infinity when the timer does not run."""
        if self.need is Need.NONE:
            return math.inf
        return min(self._poll_at(), self._give_up_at())

    def expire(self, now: float) -> Expiry:
        """What is due at ``now``."""
        if self.need is Need.NONE or now < self.deadline():
            return Expiry.NOTHING
        if now >= self._give_up_at():
            return Expiry.GIVE_UP
        if now < self._silent_at():
            return Expiry.POLL
        self.silences += 1
        self._silent_since = now
        return Expiry.SECOND_SILENCE if self.silences == 2 else Expiry.POLL

    def _poll_at(self) -> float:
        silent_at = self._silent_at()
        if self.silences and self.need in (Need.DATA, Need.HEARD):
            return silent_at
        return min(self._base + self.interval(), silent_at)

    def _silent_at(self) -> float:
        """When the next silence is over."""
        if self._silent_since is None or self.need in (Need.IDLE, Need.PROBE):
            return math.inf
        wait = self.backed_off() if self.silences else self.silence_time()
        return self._silent_since + wait

    def _give_up_at(self) -> float:
        since = self._unanswered_since
        return math.inf if since is None else since + self.no_response_s
