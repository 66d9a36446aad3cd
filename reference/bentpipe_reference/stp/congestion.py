"""Congestion control (STP/1 section 7.3)."""

from __future__ import annotations

import math

from bentpipe_reference.stp.config import LEAST_MAX_SD, StpConfig

GROWTH = 2
"""SMSS for each full window that has arrived (STP-CG-004)."""


class Congestion:
    """cwnd and ssthresh, in octets of user data; an empty SD counts as one octet.

    Attributes:
        smss: most user data in one SD.
        cwnd: the congestion window.
        ssthresh: below it is slow start.
        reduced_at: serial number of the newest transmission at the last reduction, 0 before one.
        first_retransmission: the next retransmission may exceed the window (STP-CG-006).
    """

    def __init__(self, config: StpConfig) -> None:
        self._initial = config.initial_window
        self.smss = LEAST_MAX_SD
        self.cwnd: float = self.initial_window()
        self.ssthresh: float = math.inf
        self.reduced_at = 0
        self.first_retransmission = False
        self._acknowledged = 0

    def initial_window(self) -> int:
        """STP-CG-001."""
        return self._initial * self.smss

    def learn(self, smss: int) -> None:
        """The peer's MaxSD is known, so SMSS is; the initial window counts in it."""
        self.smss = smss
        self.cwnd = self.initial_window()

    @property
    def in_slow_start(self) -> bool:
        """Whether cwnd < ssthresh."""
        return self.cwnd < self.ssthresh

    def room(self, flight: int, size: int) -> bool:
        """STP-CG-002: whether ``size`` more octets may be in flight."""
        return flight + size <= self.cwnd

    def is_used(self, flight: int) -> bool:
        """STP-CG-010: whether the window may grow on a report before which so much flew."""
        return 2 * flight >= self.cwnd

    def on_arrived(self, octets: int) -> None:
        """SDs of ``octets`` are newly reported as arrived, and the window was used."""
        if self.in_slow_start:
            grown = min(self.slow_start_growth(octets), self.ssthresh - self.cwnd)
            self.cwnd += grown
            octets -= math.ceil(grown)
        if octets > 0 and not self.in_slow_start:
            self._acknowledged += octets
            while self._acknowledged >= self.cwnd:
                self._acknowledged -= int(self.cwnd)
                self.cwnd += self.avoidance_growth()

    def slow_start_growth(self, octets: int) -> float:
        """STP-CG-003."""
        return octets

    def avoidance_growth(self) -> float:
        """STP-CG-004: for each full window that has arrived."""
        return GROWTH * self.smss

    def is_new_loss(self, serial: int) -> bool:
        """STP-CG-005: whether the lost transmission was made after the last reduction."""
        return serial > self.reduced_at

    def on_loss(self, serial: int) -> None:
        """STP-CG-005: halve; ``serial`` is the newest transmission."""
        self._reduce(serial)
        self.cwnd = self.ssthresh
        self.first_retransmission = True

    def on_second_silence(self, serial: int) -> None:
        """STP-CG-007: the path has to be probed anew."""
        self._reduce(serial)
        self.cwnd = self.loss_window()

    def reduced(self) -> float:
        """Half of the window, at least two SMSS."""
        return max(self.cwnd / 2, 2 * self.smss)

    def loss_window(self) -> int:
        """STP-CG-007."""
        return self.smss

    def _reduce(self, serial: int) -> None:
        self.ssthresh = self.reduced()
        self.reduced_at = serial
        self._acknowledged = 0
