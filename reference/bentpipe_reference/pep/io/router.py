"""A box between two devices, in an event loop of asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from bentpipe_reference.pep.box import Box

LARGEST_PACKET = 65_535
"""Octets of an IPv4 packet."""

BATCH = 64
"""Packets that are taken from one device before the other one has its turn."""

_IPV4 = 4
_TTL_AT, _SUM_AT = 8, 10


class Router:
    """Moves packets between two descriptors and a box, and wakes it when a timer is due.

    Args:
        box: the box.
        descriptors: of its ports; each read or write is one IPv4 packet.
        loop: the event loop, whose clock the box sees.

    Attributes:
        lost: packets that the kernel did not take.
    """

    def __init__(
        self, box: Box, descriptors: tuple[int, int], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.box = box
        self.lost = 0
        self._descriptors = descriptors
        self._loop = loop
        self._alarm: asyncio.TimerHandle | None = None
        self._ended: Callable[[], None] | None = None
        for port, descriptor in enumerate(descriptors):
            os.set_blocking(descriptor, False)
            loop.add_reader(descriptor, self._arrived, port)

    def drain(self, seconds: float, ended: Callable[[], None]) -> None:
        """Split no more, and call ``ended`` when nothing is left; reset what then is (PEP-RE-014).

        Called again, it does not wait.
        """
        if self.box.draining:
            self.finish()
            return
        self.box.draining, self._ended = True, ended
        self._loop.call_later(seconds, self.finish)
        self._flush()

    def finish(self) -> None:
        """Reset what is left."""
        self.box.stop(self._loop.time())
        self._flush()

    def close(self) -> None:
        """Leave the descriptors alone; they are their owner's."""
        for descriptor in self._descriptors:
            self._loop.remove_reader(descriptor)
        if self._alarm is not None:
            self._alarm.cancel()

    def _arrived(self, port: int) -> None:
        """Give the box what a device has; after each packet the answers leave."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(BATCH):
                packet = os.read(self._descriptors[port], LARGEST_PACKET)
                if (
                    not packet or packet[0] >> 4 != _IPV4
                ):  # the kernel looks for IPv6's routers everywhere
                    continue
                self.box.receive(port, packet, self._loop.time())
                self._leave()
        self._flush()

    def _flush(self) -> None:
        """Let timers expire and packets leave, and plan the next time."""
        self.box.advance(self._loop.time())
        self._leave()
        if self._alarm is not None:
            self._alarm.cancel()
        deadline = self.box.next_deadline()
        self._alarm = None if deadline is None else self._loop.call_at(deadline, self._flush)
        if self._ended is not None and all(relay.only_waits for relay in self.box.relays):
            ended, self._ended = self._ended, None
            ended()

    def _leave(self) -> None:
        for port, packet in self.box.transmit(self._loop.time()):
            try:
                os.write(self._descriptors[port], with_one_hop_more(packet))
            except OSError:
                self.lost += 1


def with_one_hop_more(packet: bytes) -> bytes:
    """A packet that will be counted twice by one router, on its way to us and from us.

    Its checksum is as right or wrong as it was (RFC 1624).
    """
    if packet[_TTL_AT] == 0xFF:
        return packet
    total = 0xFFFF - int.from_bytes(packet[_SUM_AT : _SUM_AT + 2], "big") + 0x0100
    found = bytearray(packet)
    found[_TTL_AT] += 1
    found[_SUM_AT : _SUM_AT + 2] = (0xFFFF - (total + (total >> 16) & 0xFFFF)).to_bytes(2, "big")
    return bytes(found)
