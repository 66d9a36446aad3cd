"""Captured frames, and reading capture files without trusting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from bentpipe_reference.common.record import record

MAX_BLOCK = 16 << 20
"""Octets; no packet, header or option list of an honest capture file is longer."""

_CHUNK = 1 << 16


@record
class Frame:
    """One frame of a capture file.

    Attributes:
        number: position in the file, from 1, as Wireshark shows it.
        time_ns: nanoseconds since 1970, None when the file has no time.
        data: the octets as captured, link-layer header included.
        link_type: the LINKTYPE number of its interface.
        base_ns: nanoseconds since 1970 that the file adds to its timestamps.
        original_length: octets on the wire; more than ``len(data)`` when cut short.
        interface: the interface's name, empty without one.
        outgoing: True when marked as sent, False when marked as received, else None.
    """

    number: int
    time_ns: int | None
    data: bytes
    link_type: int
    base_ns: int = 0
    original_length: int = -1
    interface: str = ""
    outgoing: bool | None = None

    @property
    def cut(self) -> bool:
        """Whether the capture kept only a part of the frame."""
        return self.original_length > len(self.data)


class CaptureError(Exception):
    """A capture file cannot be read (to its end); the message is one sentence.

    Attributes:
        partial: the frames before the damage.
    """

    def __init__(self, message: str, partial: Sequence[Frame] = ()) -> None:
        super().__init__(message)
        self.partial = tuple(partial)


class Source:
    """Octets of a capture file, read in small pieces so that a false length costs no memory."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Read ``file``; error messages call it ``name``."""
        self._file = file
        self.name = name
        self.offset = 0
        self.frames = 0
        """Frames delivered so far; the parser keeps it up to date."""
        self.dropped: dict[int, int] = {}
        """Packets that the capturing host says it lost, by interface, of the formats that say."""

    def damaged(self, why: str) -> CaptureError:
        """The error for impossible content."""
        return CaptureError(f"{self.name} is damaged after packet {self.frames}: {why}.")

    def truncated(self, why: str) -> CaptureError:
        """The error for a file that ends too soon."""
        return CaptureError(f"{self.name} is truncated after packet {self.frames}: {why}.")

    def _read(self, count: int) -> bytes:
        try:
            octets = self._file.read(count)
        except OSError as error:
            raise CaptureError(
                f"{self.name} cannot be read after packet {self.frames}: {error.strerror}."
            ) from error
        self.offset += len(octets)
        return octets

    def header(self, count: int) -> bytes:
        """The next ``count`` octets, none at the end of the file.

        Raises:
            CaptureError: the file ends within them.
        """
        first = self._read(count)
        if not first or len(first) == count:
            return first
        return first + self._rest(count, len(first))

    def take(self, count: int) -> bytes:
        """The next ``count`` octets.

        Raises:
            CaptureError: the file ends within them, or they are more than `MAX_BLOCK`.
        """
        if count > MAX_BLOCK:
            raise self.damaged(
                f"octet {self.offset} announces {count} octets, more than any packet has"
            )
        first = self._read(min(_CHUNK, count))
        return first if len(first) == count else first + self._rest(count, len(first))

    def skip(self, count: int) -> None:
        """Pass over ``count`` octets, however many, without keeping them."""
        for start in range(0, count, _CHUNK):
            self._rest(min(_CHUNK, count - start), 0)

    def _rest(self, count: int, have: int) -> bytes:
        pieces = []
        while have < count:
            piece = self._read(min(_CHUNK, count - have))
            if not piece:
                raise self.truncated(
                    f"{count} octets should end there but the file has only {have} of them"
                )
            pieces.append(piece)
            have += len(piece)
        return b"".join(pieces)
