"""The tester's end of the link."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Sequence

from bentpipe_conformance.bed.capture import Capture
from bentpipe_conformance.bed.errors import BedError


class TunPort:
    """The tester's end of the link: a TUN device read without ever polling the clock.

    Attributes:
        address: the tester's IPv4 address in this case; other packets are discarded.
        fd: the device.
    """

    def __init__(self, fd: int, captures: Sequence[Capture]) -> None:
        """Use the TUN device behind ``fd``; drain ``captures`` whenever the tester waits."""
        self.fd = fd
        self._captures = captures
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
            os.write(self.fd, packet)
        except OSError as error:
            raise BedError(
                f"The kernel does not take a packet of {len(packet)} octets ({error.strerror})."
            ) from None

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """Block until a packet for this case's address arrives or ``deadline`` passes."""
        while (packet := self.take()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            select.select([self.fd], [], [], left)
        return time.monotonic(), packet

    def take(self) -> bytes | None:
        """A packet for this case's address that has arrived; None when there is none."""
        for capture in self._captures:
            capture.drain()
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = os.read(self.fd, 65536)
                if len(packet) < 20 or packet[16:20] == self.address:
                    return packet
        return None

    def discard(self) -> None:
        """Throw away what has arrived."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 65536):
                pass
