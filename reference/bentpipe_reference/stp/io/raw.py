"""STP directly over IP, protocol 253 or 254 (STP-PF-015). Takes CAP_NET_RAW."""

from __future__ import annotations

import errno
import socket
from collections.abc import Hashable
from typing import Self, cast

from bentpipe_reference.common.encapsulation import pseudo_header
from bentpipe_reference.stp.io.addresses import Place, SocketAddress, resolve
from bentpipe_reference.stp.io.carrier import (
    LARGEST_PACKET,
    SocketCarrier,
    bind,
    closed_on_error,
    prepare,
    reaching,
)
from bentpipe_reference.stp.io.errors import StpIoError

MOST_PATHS = 4096
"""Peers whose local address is remembered; when there are more, all are looked up again."""

IPV6_RECVPKTINFO = 49
_PKTINFO_OCTETS = 20
_IP_OCTETS = 60
"""An IPv4 header at its longest, which a raw socket delivers as well."""


class RawCarrier(SocketCarrier):
    """A raw socket.

    A raw socket gets every packet of its protocol to its address. Two endpoints on one host must
    therefore listen at different addresses: 127.0.0.1 and 127.0.0.2, say.
    """

    def __init__(
        self, handle: socket.socket, peer: SocketAddress | None, protocol: int, largest: int
    ) -> None:
        """Use a bound or connected socket; :meth:`listening` and :meth:`towards` make one."""
        super().__init__(handle, peer, largest + _IP_OCTETS)
        self._protocol = protocol
        self._family = handle.family
        host, _, *rest = self.address
        self.address = (host, 0, *rest)
        wildcard = host in ("0.0.0.0", "::")
        self._own = b"" if wildcard else socket.inet_pton(self._family, host.partition("%")[0])
        self._locals: dict[SocketAddress, bytes] = {}

    @classmethod
    def listening(cls, place: Place, protocol: int, largest: int = LARGEST_PACKET) -> Self:
        """Listen at ``place``, which has no UDP port.

        Raises:
            StpIoError: the address is unknown or not ours, or root is required.
        """
        family, address = resolve(Place(place.host), passive=True)
        handle = _raw_socket(family, protocol)
        with closed_on_error(handle):
            bind(handle, address, str(place))
            return cls(handle, None, protocol, largest)

    @classmethod
    def towards(cls, place: Place, protocol: int, largest: int = LARGEST_PACKET) -> Self:
        """Connect to the endpoint at ``place``.

        Raises:
            StpIoError: the name is unknown, there is no route, or root is required.
        """
        family, address = resolve(Place(place.host))
        handle = _raw_socket(family, protocol)
        with closed_on_error(handle):
            with reaching(place):
                # Bound as well: a socket that is only connected hears what others are sent.
                own = local_address(family, address)
                handle.bind((socket.inet_ntop(family, own), 0, *address[2:]))
                handle.connect(address)
            return cls(handle, address, protocol, largest)

    def pseudo_header(self, peer: Hashable) -> bytes:
        """What checksums cover beside packets from and to a peer (section 3.2).

        The sum is the same in both directions.
        """
        address = cast("SocketAddress", peer)
        other = socket.inet_pton(self._family, address[0].partition("%")[0])
        return pseudo_header(self._local(address), other, self._protocol)

    def _local(self, peer: SocketAddress) -> bytes:
        """The address of ours that the kernel uses towards a peer."""
        if self._own:
            return self._own
        known = self._locals.get(peer)
        if known is None:
            if len(self._locals) >= MOST_PATHS:
                self._locals.clear()
            try:
                known = local_address(self._family, peer)
            except OSError:
                known = bytes(4 if self._family == socket.AF_INET else 16)
            self._locals[peer] = known
        return known

    def take(self) -> tuple[bytes, SocketAddress] | None:
        """See :class:`SocketCarrier`; a packet to another address of ours is dropped."""
        return self._take_v4() if self._family == socket.AF_INET else self._take_v6()

    def _take_v4(self) -> tuple[bytes, SocketAddress] | None:
        """A whole IPv4 packet; an answer would not leave from another address than ours."""
        octets, address = self.handle.recvfrom(self.largest)
        peer = (address[0], 0)
        if octets[16:20] != self._local(peer):
            return None
        return octets[(octets[0] & 15) * 4 :], peer

    def _take_v6(self) -> tuple[bytes, SocketAddress] | None:
        """The kernel keeps the header of IPv6, and tells the destination beside the packet."""
        octets, beside, _, address = self.handle.recvmsg(
            self.largest, socket.CMSG_SPACE(_PKTINFO_OCTETS)
        )
        peer = (address[0], 0, *address[2:])
        wanted = self._local(peer)
        for level, kind, data in beside:
            if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
                return (octets, peer) if data[:16] == wanted else None
        return None

    def note(self, error: OSError) -> None:
        """See :class:`SocketCarrier`."""
        super().note(error)
        self.refused = self.refused or error.errno in (errno.ECONNREFUSED, errno.ENOPROTOOPT)


def local_address(family: int, peer: SocketAddress) -> bytes:
    """The address that the kernel sends from to a peer; asks its routes and sends nothing.

    Raises:
        OSError: there is no route.
    """
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((peer[0], 9, *peer[2:]))
        name: str = probe.getsockname()[0]
    return socket.inet_pton(family, name.partition("%")[0])


def _raw_socket(family: int, protocol: int) -> socket.socket:
    try:
        handle = socket.socket(family, socket.SOCK_RAW, protocol)
    except PermissionError:
        raise StpIoError(
            "STP directly over IP takes the capability CAP_NET_RAW; run as root or leave out --ip "
            "to use UDP."
        ) from None
    with closed_on_error(handle):
        prepare(handle)
        if family == socket.AF_INET6:
            handle.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
    return handle
