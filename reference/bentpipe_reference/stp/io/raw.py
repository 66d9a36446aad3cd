"""STP directly over IP, protocol 253 or 254 (STP-PF-015). Takes CAP_NET_RAW."""

from __future__ import annotations

import errno
import socket
from collections.abc import Hashable
from functools import lru_cache
from typing import cast

from bentpipe_reference.common.encapsulation import pseudo_header
from bentpipe_reference.stp.io.addresses import SocketAddress
from bentpipe_reference.stp.io.carrier import Carrier
from bentpipe_reference.stp.io.errors import StpIoError

MOST_PATHS = 4096
"""Peers whose local address is remembered; when there are more, the others are looked up again."""

_BESIDE_OCTETS = socket.CMSG_SPACE(20)
_IP_OCTETS = 60
"""An IPv4 header at its longest, which a raw socket delivers as well."""


class RawCarrier(Carrier):
    """A raw socket.

    A raw socket gets every packet of its protocol to its address. Two endpoints on one host must
    therefore listen at different addresses: 127.0.0.1 and 127.0.0.2, say.
    """

    def __init__(
        self, handle: socket.socket, peer: SocketAddress | None, protocol: int, largest: int
    ) -> None:
        """Use a bound or connected socket; :meth:`listening` and :meth:`towards` make one."""
        super().__init__(handle, peer, protocol, largest + _IP_OCTETS)
        self._family = handle.family
        host, _, *rest = self.address
        self.address = (host, 0, *rest)
        self._own = b"" if host in ("0.0.0.0", "::") else _packed(self._family, host)
        self._local = lru_cache(MOST_PATHS)(self._find_local)

    @classmethod
    def open(cls, family: int, protocol: int) -> socket.socket:
        """See :class:`Carrier`."""
        try:
            handle = socket.socket(family, socket.SOCK_RAW, protocol)
        except PermissionError:
            raise StpIoError(
                "STP directly over IP takes the capability CAP_NET_RAW; run as root or leave out "
                "--ip to use UDP."
            ) from None
        if family == socket.AF_INET6:
            handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        return handle

    @classmethod
    def connect(cls, handle: socket.socket, address: SocketAddress) -> SocketAddress:
        """See :class:`Carrier`; bound as well: one only connected hears what others are sent."""
        own = local_address(handle.family, address)
        handle.bind((socket.inet_ntop(handle.family, own), 0, *address[2:]))
        handle.connect(address)
        return address

    def pseudo_header(self, peer: Hashable) -> bytes:
        """What checksums cover beside packets from and to a peer (section 3.2).

        The sum is the same in both directions.
        """
        address = cast("SocketAddress", peer)
        return pseudo_header(self._local(address), _packed(self._family, address[0]), self.protocol)

    def _find_local(self, peer: SocketAddress) -> bytes:
        """The address of ours that the kernel uses towards a peer."""
        if self._own:
            return self._own
        try:
            return local_address(self._family, peer)
        except OSError:
            return bytes(4 if self._family == socket.AF_INET else 16)

    def take(self) -> tuple[bytes, SocketAddress] | None:
        """See :class:`Carrier`; a packet to another address of ours is dropped."""
        octets, beside, _, address = self.handle.recvmsg(self.largest, _BESIDE_OCTETS)
        peer = (address[0], 0, *address[2:])
        if self._family == socket.AF_INET:
            destination, octets = octets[16:20], octets[(octets[0] & 15) * 4 :]
        else:
            # The kernel keeps the header of IPv6, and tells the destination beside the packet.
            info = (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO)
            destination = next((data[:16] for *kind, data in beside if tuple(kind) == info), b"")
        # An answer would not leave from another address than ours.
        return (octets, peer) if destination == self._local(peer) else None

    def note(self, error: OSError) -> None:
        """See :class:`Carrier`."""
        super().note(error)
        self.refused = self.refused or error.errno in (errno.ECONNREFUSED, errno.ENOPROTOOPT)


def local_address(family: int, peer: SocketAddress) -> bytes:
    """The address that the kernel sends from to a peer; asks its routes and sends nothing.

    Raises:
        OSError: there is no route.
    """
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((peer[0], 9, *peer[2:]))
        return _packed(family, probe.getsockname()[0])


def _packed(family: int, host: str) -> bytes:
    return socket.inet_pton(family, host.partition("%")[0])
