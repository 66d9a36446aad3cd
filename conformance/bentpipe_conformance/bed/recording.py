"""What a lane captures during a case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from bentpipe_conformance.bed import clocks
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.engine.lane import Captured


class Source(Protocol):
    """Where packets are captured; see :class:`~bentpipe_conformance.bed.capture.Capture`."""

    def clear(self) -> None:
        """Forget what was captured."""

    def captured(self, begun: int) -> Iterable[Captured]:
        """What was captured, its times in seconds since ``begun``, in nanoseconds."""


class Recorder:
    """The captures of a lane, and when the case began.

    Args:
        captures: those of the lane, which closes them.
    """

    def __init__(self, captures: Sequence[Source]) -> None:
        self.captures = captures
        self._start = (0, 0, 0)

    def begin(self) -> None:
        """A case begins: forget what was captured."""
        self._clear()
        self._start = clocks.look()

    def end(self, belongs: Callable[[bytes], bool]) -> list[Captured]:
        """What was captured since the case began, of the packets that belong to it, in time order.

        Raises:
            BedError: the captures are not complete or the clock was set meanwhile.
        """
        begun = self._start[1]
        found = [
            packet
            for capture in self.captures
            for packet in capture.captured(begun)
            # One too short for addresses may belong to this case.
            if len(packet.data) < 20 or belongs(packet.data)
        ]
        if clocks.was_set(self._start, clocks.look()):
            raise BedError("The host's clock was set during the case; run it again.")
        self._clear()
        return sorted(found, key=lambda packet: packet.time)

    def _clear(self) -> None:
        for capture in self.captures:
            capture.clear()
