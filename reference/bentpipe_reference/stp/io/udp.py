"""STP in UDP: each packet is the whole payload of one datagram (STP-PF-014)."""

from __future__ import annotations

import errno
import socket
from typing import Self

from bentpipe_reference.stp.io.addresses import Place, SocketAddress, resolve
from bentpipe_reference.stp.io.carrier import (
    LARGEST_PACKET,
    SocketCarrier,
    bind,
    closed_on_error,
    prepare,
    reaching,
)


class UdpCarrier(SocketCarrier):
    """A UDP socket.

    A connected one hears only its peer, costs the kernel less, and learns when nobody is there.
    """

    pseudo_header = None
    """None in UDP, whose own checksum covers the addresses (section 3.2)."""

    late_errors = frozenset({errno.ECONNREFUSED})

    @classmethod
    def listening(cls, place: Place, largest: int = LARGEST_PACKET) -> Self:
        """Listen at ``place``; a UDP port of 0 means any that is free.

        Args:
            place: address and UDP port of this host.
            largest: octets of the longest packet expected.

        Raises:
            StpIoError: the address is unknown, not ours or in use.
        """
        family, address = resolve(place, passive=True)
        handle = socket.socket(family, socket.SOCK_DGRAM)
        with closed_on_error(handle):
            if family == socket.AF_INET6:
                handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            prepare(handle)
            bind(handle, address, str(place))
            return cls(handle, None, largest)

    @classmethod
    def towards(cls, place: Place, largest: int = LARGEST_PACKET) -> Self:
        """Connect to the endpoint at ``place``, from a UDP port that is free.

        Raises:
            StpIoError: the name is unknown, or there is no route.
        """
        family, address = resolve(place)
        handle = socket.socket(family, socket.SOCK_DGRAM)
        with closed_on_error(handle):
            prepare(handle)
            with reaching(place):
                handle.connect(address)
            return cls(handle, handle.getpeername(), largest)

    def take(self) -> tuple[bytes, SocketAddress]:
        """See :class:`SocketCarrier`."""
        if self.connected_to is None:
            return self.handle.recvfrom(self.largest)
        return self.handle.recv(self.largest), self.connected_to

    def note(self, error: OSError) -> None:
        """See :class:`SocketCarrier`."""
        super().note(error)
        if error.errno == errno.ECONNREFUSED:
            self.refused = True
            self.fault = "nobody is at this UDP port"
