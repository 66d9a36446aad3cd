"""Users of connections: what a call drawn at random makes of any stream."""

from __future__ import annotations

from collections.abc import Callable

from bentpipe_reference.common.services import Stream
from bentpipe_reference.common.subject import Call


class Caller:
    """A user that does what its call says; a protocol's own user says when it may.

    Attributes:
        call: the call.
        left: octets that it has not written.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.left = call.octets
        self._next_write = call.at

    def reads(self, now: float) -> bool:
        """Whether it reads now."""
        start, end = self.call.deaf
        return not start <= now < end

    def wake(self, now: float) -> float | None:
        """When it does something next without anything happening to it, None when it does not."""
        call = self.call
        times = (
            self._next_write if self.left else 0.0,
            call.silence[1],
            call.deaf[1],
            call.ends_at,
        )
        return min((time for time in times if time > now), default=None)

    def _writes(self, now: float) -> bool:
        start, end = self.call.silence
        return now >= self._next_write and not start <= now < end

    def go_on(self, stream: Stream, now: float, abort: Callable[[], object], *times: float) -> None:
        """Write, and end as the call says.

        Args:
            stream: the connection.
            now: the time, seconds.
            abort: aborts the connection.
            times: the time again, for a stream whose methods ask for it.
        """
        call = self.call
        if now >= call.ends_at and call.aborts:
            abort()
            return
        if self.left and stream.write_room and self._writes(now):
            self.left -= stream.write(bytes(min(self.left, call.at_once)), *times)
            self._next_write = now + call.gap_s
        if (not self.left and not call.endless) or now >= call.ends_at:
            stream.close(*times)
