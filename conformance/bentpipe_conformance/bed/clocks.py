"""Whether the clock that stamps the captures was set."""

from __future__ import annotations

import time

STEP = 1_000_000
"""Nanoseconds by which the two clocks may drift apart within a case."""

Look = tuple[int, int, int]
"""The monotonic clock, the real-time clock and the monotonic clock again, in nanoseconds."""


def look() -> Look:
    """Read the clocks."""
    return time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_REALTIME), time.monotonic_ns()


def was_set(start: Look, end: Look) -> bool:
    """Whether the real-time clock advanced otherwise than the monotonic one between two looks.

    The monotonic clock is read twice because a busy machine may stop the process for any time
    between two readings.
    """
    least, most = end[0] - start[2], end[2] - start[0]
    return not least - STEP <= end[1] - start[1] <= most + STEP
