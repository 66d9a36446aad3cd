"""Sources of outgoing octets: an endless or bounded test pattern, or an application."""

from __future__ import annotations

from typing import Protocol

_PERIOD = 1 << 16
_TABLE = bytes((i ^ i >> 8) & 0xFF for i in range(_PERIOD)) * 2


def pattern(offset: int, octets: int) -> bytes:
    """The test pattern at a stream offset: octet ``i`` is ``(i ^ i >> 8) & 0xFF``.

    It repeats after 65536 octets, so data displaced by less than that never matches it.
    """
    start = offset % _PERIOD
    if octets <= _PERIOD:
        return _TABLE[start : start + octets]
    return (_TABLE[start : start + _PERIOD] * (octets // _PERIOD + 1))[:octets]


class Source(Protocol):
    """Outgoing octets by stream offset; offset 0 is the first octet after the SYN."""

    def end(self) -> int | None:
        """Offset one past the last octet available now, None for an endless stream."""

    def read(self, offset: int, octets: int) -> bytes:
        """Octets from ``offset``, which has not been released."""

    def release(self, offset: int) -> None:
        """Octets before ``offset`` will not be read again."""


class PatternSource:
    """The test pattern, generated when it is sent.

    Args:
        octets: length of the stream, None for no end.
    """

    def __init__(self, octets: int | None = None) -> None:
        self._octets = octets

    def end(self) -> int | None:
        """See :class:`Source`."""
        return self._octets

    def stop_at(self, offset: int) -> None:
        """Let the stream end at ``offset``."""
        self._octets = offset

    def read(self, offset: int, octets: int) -> bytes:
        """See :class:`Source`."""
        return pattern(offset, octets)

    def release(self, offset: int) -> None:
        """See :class:`Source`."""


class WriteBuffer:
    """Octets an application wrote, kept until they are acknowledged.

    Args:
        capacity: octets it holds at most.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._octets = bytearray()
        self._base = 0

    @property
    def room(self) -> int:
        """Octets that :meth:`write` would take now."""
        return self._capacity - len(self._octets)

    def write(self, data: bytes) -> int:
        """Take as much of ``data`` as there is room for; return how many octets."""
        taken = min(len(data), self.room)
        self._octets += data[:taken]
        return taken

    def end(self) -> int:
        """See :class:`Source`."""
        return self._base + len(self._octets)

    def read(self, offset: int, octets: int) -> bytes:
        """See :class:`Source`."""
        start = offset - self._base
        return bytes(self._octets[start : start + octets])

    def release(self, offset: int) -> None:
        """See :class:`Source`."""
        del self._octets[: offset - self._base]
        self._base = offset
