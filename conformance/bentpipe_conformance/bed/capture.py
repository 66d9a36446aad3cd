"""Captures by the kernel: every packet of one interface, with the kernel's own time stamps.

A packet socket with a memory-mapped ring (Linux ``packet_mmap``, TPACKET_V2), because a system call
per packet would be the tester's main cost inside User-Mode Linux.
"""

from __future__ import annotations

import math
import mmap
import socket
import struct
from collections.abc import Iterator, Mapping

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.engine.lane import Captured, Point

SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 263, 5, 6, 10
TPACKET_V2 = 1
ETH_P_ALL, ETH_P_IP = 0x0003, 0x0800
PACKET_OUTGOING = 4
STATUS_KERNEL, STATUS_USER, STATUS_NO_CHECKSUM = 0, 1, 8
FRAME = 2048
"""Octets of a ring slot: the ring's own header and one packet of at most 1500 octets or so."""
BLOCK = 4 * FRAME
_HEADER = struct.Struct("=IIIHHII")
_PROTOCOL = struct.Struct("!H")
_PROTOCOL_AT, _PACKET_TYPE_AT = 32 + 2, 32 + 10
_INDEX = struct.Struct("=i")
_INDEX_AT = 32 + 4

Record = tuple[int, bool, bytes]
"""Time in nanoseconds of CLOCK_REALTIME, whether the interface sent it, the IPv4 packet."""


class Capture(Closing):
    """Captures the IPv4 packets of one interface of this thread's namespace.

    Attributes:
        point: the side of the link at which it is.
    """

    whole = "choose a link profile with a smaller MTU"
    """What lets packets fit that are too big for it."""
    _refused = 0
    """A status that no packet may have which an interface has received."""

    def __init__(self, point: Point, interface: str, frames: int) -> None:
        """Start to capture; the ring holds ``frames`` packets between two calls of :meth:`drain`.

        Raises:
            BedError: no permission or no memory for the ring.
        """
        self.point: Point = point
        self._interface = interface
        self._records: list[Record] = []
        self._frames = frames
        self._next = 0
        try:
            # Without a protocol it takes nothing until it is bound, with one from every interface.
            protocol = 0 if interface else socket.htons(ETH_P_ALL)
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, protocol)
            self._socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
            ring = struct.pack("=IIII", BLOCK, frames * FRAME // BLOCK, FRAME, frames)
            self._socket.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
            self._ring = mmap.mmap(self._socket.fileno(), frames * FRAME)
            if interface:
                self._socket.bind((interface, ETH_P_ALL))
        except OSError as error:
            raise BedError(
                f"Capturing on {interface} failed ({error.strerror}); it needs root and "
                f"{2 * frames * FRAME >> 20} MiB, use `--bed uml-virtual` or fewer lanes."
            ) from None

    def drain(self) -> None:
        """Take over what the kernel has captured since the last call, in its order."""
        ring = self._ring
        while True:
            at = self._next * FRAME
            status, length, kept, _, net, seconds, nanoseconds = _HEADER.unpack_from(ring, at)
            if not status & STATUS_USER:
                return
            if _PROTOCOL.unpack_from(ring, at + _PROTOCOL_AT)[0] == ETH_P_IP:
                sent = ring[at + _PACKET_TYPE_AT] == PACKET_OUTGOING
                if kept < length:
                    raise BedError(
                        f"A packet of {length} octets on {self._interface} does not fit the "
                        f"capture; {self.whole}."
                    )
                if status & self._refused and not sent:
                    raise BedError(
                        f"What arrives on {self._interface or 'the ports'} has no checksums yet; "
                        "where it is sent, run `ethtool -K INTERFACE tx off tso off gso off`."
                    )
                data = ring[at + net : at + net + kept]
                index = _INDEX.unpack_from(ring, at + _INDEX_AT)[0]
                self._take((seconds * 1_000_000_000 + nanoseconds, sent, data), index)
            struct.pack_into("=I", ring, at, STATUS_KERNEL)
            self._next = (self._next + 1) % self._frames

    def _take(self, record: Record, index: int) -> None:  # noqa: ARG002
        """Keep a packet of the interface with an index."""
        self._records.append(record)

    def captured(self, begun: int) -> Iterator[Captured]:
        """What :meth:`finish` gives, its times in seconds since ``begun``, in nanoseconds."""
        for time, sent, data in self.finish():
            yield Captured((time - begun) / 1e9, self.point, sent == (self.point == "peer"), data)

    @property
    def count(self) -> int:
        """Packets taken over since the last call of :meth:`clear`."""
        return len(self._records)

    def clear(self) -> None:
        """Forget what was captured, and what was lost."""
        self.drain()
        self._records = []
        self._lost()

    def finish(self, enough: float = math.inf) -> list[Record]:
        """What was captured since the last call of :meth:`clear`.

        Only the first ``enough`` if more than the ring holds came at once: what was lost came last.

        Raises:
            BedError: the kernel could not capture everything.
        """
        self.drain()
        lost = self._lost()
        if lost and enough <= self._frames:
            return self._records[: int(enough)]
        if lost:
            raise BedError(
                f"The capture on {self._interface} lost {lost} packets; "
                "run fewer lanes side by side."
            )
        return self._records

    def _lost(self) -> int:
        """Packets that the kernel could not capture since the last call."""
        packed = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", packed)[1])

    def close(self) -> None:
        """Stop capturing."""
        self._ring.close()
        self._socket.close()


class SidesCapture(Capture):
    """Captures several interfaces of an implementation, as one capture, in its own namespace.

    So packets are in the order in which they passed even where the clock stood still meanwhile.

    Args:
        sides: the implementation's side at which an interface is, by the interface's name.
        frames: see :class:`Capture`.
    """

    def __init__(self, sides: Mapping[str, str], frames: int) -> None:
        self._by_index = {socket.if_nametoindex(name): side for name, side in sides.items()}
        self._sides: list[str] = []
        super().__init__("iut", "", frames)

    def _take(self, record: Record, index: int) -> None:
        if (side := self._by_index.get(index)) is not None:
            self._records.append(record)
            self._sides.append(side)

    def clear(self) -> None:
        """See :meth:`Capture.clear`."""
        super().clear()
        self._sides = []

    def captured(self, begun: int) -> Iterator[Captured]:
        """See :meth:`Capture.captured`; what an interface sends, the implementation sends."""
        for (time, sent, data), side in zip(self.finish(), self._sides, strict=True):
            yield Captured((time - begun) / 1e9, "iut", sent, data, side)


class FacingCapture(SidesCapture):
    """Captures our ends of an implementation's cables.

    Attributes:
        arrived: what the implementation has sent since somebody emptied it: seconds on the
            real-time clock, side and packet.
    """

    whole = "where it is sent, run `ethtool -K INTERFACE tso off gso off`"
    _refused = STATUS_NO_CHECKSUM

    def __init__(self, sides: Mapping[str, str], frames: int) -> None:
        super().__init__(sides, frames)
        self.arrived: list[tuple[float, str, bytes]] = []
        self.fd = self._socket.fileno()

    def _take(self, record: Record, index: int) -> None:
        if (side := self._by_index.get(index)) is None:
            return
        time, sent, data = record
        # Ethernet pads short packets.
        octets = int.from_bytes(data[2:4], "big")
        data = data[:octets] if octets >= 20 else data
        super()._take((time, sent, data), index)
        if not sent:
            self.arrived.append((time / 1e9, side, data))

    def captured(self, begun: int) -> Iterator[Captured]:
        """See :meth:`Capture.captured`; what an interface receives, the implementation sends."""
        for item in super().captured(begun):
            yield Captured(item.time, item.point, not item.outgoing, item.data, item.side)
