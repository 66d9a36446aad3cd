"""STP directly over IP, protocol 253 or 254 (STP-PF-015). Takes CAP_NET_RAW."""

from __future__ import annotations

import errno
import socket
from collections.abc import Hashable, Sequence
from typing import cast

from bentpipe_reference.stp.encapsulation import pseudo_header
from bentpipe_reference.stp.io.addresses import Place, SocketAddress, resolve
from bentpipe_reference.stp.io.carrier import BATCH, LARGEST_PACKET, bind, prepare
from bentpipe_reference.stp.io.errors import StpIoError

MOST_PATHS = 4096
"""Peers whose local address is remembered; when there are more, all are looked up again."""

IPV6_RECVPKTINFO = 49
_PKTINFO_OCTETS = 20


class RawCarrier:
    """A raw socket, for any number of peers or connected to one; see :class:`carrier.Carrier`.

    A raw socket gets every packet of its protocol to its address. Two endpoints on one host must
    therefore listen at different addresses: 127.0.0.1 and 127.0.0.2, say.
    """

    def __init__(
        self, handle: socket.socket, peer: SocketAddress | None, protocol: int, largest: int
    ) -> None:
        """Use a bound or connected socket; :meth:`listening` and :meth:`towards` make one."""
        self._handle = handle
        self._peer = peer
        self._protocol = protocol
        self._largest = max(largest + 60, LARGEST_PACKET)
        self._family = handle.family
        name = handle.getsockname()
        self.address: SocketAddress = (name[0], 0, *name[2:])
        wildcard = name[0] in ("0.0.0.0", "::")
        self._own = b"" if wildcard else socket.inet_pton(self._family, name[0].partition("%")[0])
        self._locals: dict[SocketAddress, bytes] = {}
        self.fault: str | None = None
        self.refused = False
        self.too_long = False

    @classmethod
    def listening(cls, place: Place, protocol: int, largest: int = LARGEST_PACKET) -> RawCarrier:
        """Listen at ``place``, which has no UDP port.

        Raises:
            StpIoError: the address is not known or not ours, or it takes root.
        """
        family, address = resolve(Place(place.host), passive=True)
        handle = _raw_socket(family, protocol)
        try:
            bind(handle, address, str(place))
            return cls(handle, None, protocol, largest)
        except BaseException:
            handle.close()
            raise

    @classmethod
    def towards(cls, place: Place, protocol: int, largest: int = LARGEST_PACKET) -> RawCarrier:
        """Connect to the endpoint at ``place``.

        Raises:
            StpIoError: the name is not known, there is no route, or it takes root.
        """
        family, address = resolve(Place(place.host))
        handle = _raw_socket(family, protocol)
        try:
            try:
                # Bound as well: a socket that is only connected hears what others are sent.
                own = local_address(family, address)
                handle.bind((socket.inet_ntop(family, own), 0, *address[2:]))
                handle.connect(address)
            except OSError as error:
                raise StpIoError(
                    f"{place} cannot be reached ({error.strerror}); check address and routes."
                ) from None
            return cls(handle, address, protocol, largest)
        except BaseException:
            handle.close()
            raise

    @property
    def peer(self) -> SocketAddress:
        """The one peer of a connected socket.

        Raises:
            ValueError: it is not connected.
        """
        if self._peer is None:
            raise ValueError("the socket is not connected to one peer")
        return self._peer

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

    def fileno(self) -> int:
        """See :class:`carrier.Carrier`."""
        return self._handle.fileno()

    def receive(self) -> list[tuple[bytes, SocketAddress]]:
        """See :class:`carrier.Carrier`; a packet to another address of ours is dropped."""
        found: list[tuple[bytes, SocketAddress]] = []
        take = self._take_v4 if self._family == socket.AF_INET else self._take_v6
        for _ in range(BATCH):
            try:
                packet = take()
            except BlockingIOError:
                break
            except OSError as error:
                self._note(error)
                continue
            if packet is not None:
                found.append(packet)
        return found

    def _take_v4(self) -> tuple[bytes, SocketAddress] | None:
        """A whole IPv4 packet; an answer would not leave from another address than ours."""
        octets, address = self._handle.recvfrom(self._largest)
        peer = (address[0], 0)
        if octets[16:20] != self._local(peer):
            return None
        return octets[(octets[0] & 15) * 4 :], peer

    def _take_v6(self) -> tuple[bytes, SocketAddress] | None:
        """The kernel keeps the header of IPv6, and tells the destination beside the packet."""
        octets, beside, _, address = self._handle.recvmsg(
            self._largest, socket.CMSG_SPACE(_PKTINFO_OCTETS)
        )
        peer = (address[0], 0, *address[2:])
        wanted = self._local(peer)
        for level, kind, data in beside:
            if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
                return (octets, peer) if data[:16] == wanted else None
        return None

    def send(self, packets: Sequence[tuple[SocketAddress, bytes]]) -> int:
        """See :class:`carrier.Carrier`."""
        connected = self._peer is not None
        for number, (address, packet) in enumerate(packets):
            try:
                if connected:
                    self._handle.send(packet)
                else:
                    self._handle.sendto(packet, address)
            except BlockingIOError:
                return number
            except OSError as error:
                self._note(error)
        return len(packets)

    def _note(self, error: OSError) -> None:
        if error.errno == errno.EMSGSIZE:
            self.too_long = True
            self.fault = "a packet is longer than the path carries"
        else:
            self.refused = self.refused or error.errno in (errno.ECONNREFUSED, errno.ENOPROTOOPT)
            self.fault = error.strerror or str(error)

    def close(self) -> None:
        """See :class:`carrier.Carrier`."""
        self._handle.close()


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
    try:
        prepare(handle)
        if family == socket.AF_INET6:
            handle.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
    except BaseException:
        handle.close()
        raise
    return handle
