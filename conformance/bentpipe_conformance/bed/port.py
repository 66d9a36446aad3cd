"""The tester's end of the link, and the captures that are emptied while it waits."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence

from bentpipe_conformance.bed.capture import Capture, Record
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.engine.lane import Point


class CapturePoint:
    """A capture and what it has gathered in this case."""

    def __init__(self, name: Point, interface: str, frames: int) -> None:
        """Start to capture on ``interface`` with room for ``frames`` packets."""
        self.name: Point = name
        self._capture = Capture(interface, frames)
        self._records: list[Record] = []

    def drain(self) -> None:
        """Take over what the kernel has captured since the last call."""
        self._records += self._capture.drain()

    def clear(self) -> None:
        """Forget what was gathered."""
        self.drain()
        self._records = []
        self._capture.lost()

    def finish(self) -> list[Record]:
        """What was gathered.

        Raises:
            BedError: the capture lost packets.
        """
        self.drain()
        if lost := self._capture.lost():
            raise BedError(
                f"The capture on {self._capture.interface} lost {lost} packets; "
                "run fewer lanes side by side."
            )
        return self._records

    def close(self) -> None:
        """Stop capturing."""
        self._capture.close()


class TunPort:
    """The tester's end of the link: a TUN device read without ever polling the clock.

    Attributes:
        address: the tester's IPv4 address in this case; other packets are discarded.
    """

    def __init__(self, fd: int, points: Sequence[CapturePoint]) -> None:
        """Use the TUN device behind ``fd``; drain ``points`` whenever the tester waits."""
        self._fd = fd
        self._points = points
        self.address = b""
        os.set_blocking(fd, False)

    def now(self) -> float:
        """Seconds on the place's monotonic clock."""
        return time.monotonic()

    def send(self, packet: bytes) -> None:
        """Put one IPv4 packet on the link.

        Raises:
            BedError: the kernel refuses it.
        """
        try:
            os.write(self._fd, packet)
        except OSError as error:
            raise BedError(
                f"The kernel does not take a packet of {len(packet)} octets ({error.strerror})."
            ) from None

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """Block until a packet for this case's address arrives or ``deadline`` passes."""
        while True:
            for point in self._points:
                point.drain()
            try:
                packet = os.read(self._fd, 65536)
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                select.select([self._fd], [], [], left)
                continue
            if len(packet) < 20 or packet[16:20] == self.address:
                return time.monotonic(), packet

    def discard(self) -> None:
        """Throw away what has arrived."""
        try:
            while os.read(self._fd, 65536):
                pass
        except BlockingIOError:
            pass
