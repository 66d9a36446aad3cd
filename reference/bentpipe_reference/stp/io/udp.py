"""STP in UDP: each packet is the whole payload of one datagram (STP-PF-014)."""

from __future__ import annotations

import errno
import socket

from bentpipe_reference.stp.io.addresses import SocketAddress
from bentpipe_reference.stp.io.carrier import Carrier


class UdpCarrier(Carrier):
    """A UDP socket, whose own checksum covers the addresses (section 3.2).

    A connected one hears only its peer, costs the kernel less, and learns when nobody is there.
    """

    late_errors = frozenset({errno.ECONNREFUSED})

    @classmethod
    def open(cls, family: int, protocol: int) -> socket.socket:
        """See :class:`Carrier`."""
        return socket.socket(family, socket.SOCK_DGRAM, protocol)

    @classmethod
    def connect(cls, handle: socket.socket, address: SocketAddress) -> SocketAddress:
        """See :class:`Carrier`."""
        handle.connect(address)
        peer: SocketAddress = handle.getpeername()
        return peer

    def take(self) -> tuple[bytes, SocketAddress]:
        """See :class:`Carrier`."""
        if self.connected_to is None:
            return self.handle.recvfrom(self.largest)
        return self.handle.recv(self.largest), self.connected_to

    def note(self, error: OSError) -> None:
        """See :class:`Carrier`."""
        super().note(error)
        if error.errno == errno.ECONNREFUSED:
            self.refused = True
            self.fault = "nobody is at this UDP port"
