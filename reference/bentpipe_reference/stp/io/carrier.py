"""What carries packets: sockets, and what the kernel says about their path."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar, Self

from bentpipe_reference.common.encapsulation import UDP
from bentpipe_reference.stp.io.addresses import Place, SocketAddress, resolve
from bentpipe_reference.stp.io.errors import StpIoError

BATCH = 256
"""Packets taken in one go, so that a flood cannot keep timers and sending from their turn."""

BUFFER_OCTETS = 8 << 20
"""Asked for in each direction: a window of 4 MB of user data with the kernel's own overhead."""

LARGEST_PACKET = 9216
"""Octets read per packet at least: STATs of peers on jumbo frames are longer than our own SDs."""

SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_DO = 10, 23, 2

REMEDIES = {
    errno.EADDRINUSE: "choose another port or stop the program that has it.",
    errno.EADDRNOTAVAIL: "give an address of this host.",
    errno.EACCES: "choose a port above 1023 or run as root.",
}
"""For an address that cannot be listened on, by the kernel's reason."""


class Carrier:
    """A socket that carries STP packets and never blocks: for any number of peers, or for one.

    A subclass opens and connects sockets, takes packets with ``take``, and interprets errors with
    ``note``.

    Attributes:
        address: this end, as the kernel has it.
        fault: the newest sentence the kernel gave about the path, None while it has none:
            nobody at the port, no route, or a packet beyond the MTU.
        refused: whether the other host has said that nobody is at the port.
        too_long: whether a packet was beyond the MTU, and so can never arrive.
    """

    late_errors: ClassVar[frozenset[int]] = frozenset()
    """Those that concern an earlier packet than the one at hand, which has not been sent."""

    def __init__(
        self, handle: socket.socket, peer: SocketAddress | None, protocol: int, largest: int
    ) -> None:
        """Use a bound or connected socket; ``listening`` and ``towards`` make one."""
        self.handle = handle
        self.connected_to = peer
        self.protocol = protocol
        self.largest = max(largest, LARGEST_PACKET)
        self.address: SocketAddress = handle.getsockname()
        self.fault: str | None = None
        self.refused = self.too_long = False

    @classmethod
    def listening(cls, place: Place, protocol: int = UDP, largest: int = LARGEST_PACKET) -> Self:
        """Listen at ``place``; a UDP port of 0 means any that is free.

        Args:
            place: address of this host, and UDP port, which is ignored directly over IP.
            protocol: IP's number for UDP, or for STP itself.
            largest: octets of the longest packet expected.

        Raises:
            StpIoError: the address is unknown, not ours, in use or forbidden, or root is required.
        """
        at = place if protocol == UDP else Place(place.host)
        family, address = resolve(at, passive=True)
        with cls._opened(family, protocol) as handle:
            if protocol == UDP and family == socket.AF_INET6:
                handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                handle.bind(address)
            except OSError as error:
                remedy = REMEDIES.get(error.errno or 0, "choose another address.")
                raise StpIoError(
                    f"{place} cannot be listened on ({error.strerror}); {remedy}"
                ) from None
            return cls(handle, None, protocol, largest)

    @classmethod
    def towards(cls, place: Place, protocol: int = UDP, largest: int = LARGEST_PACKET) -> Self:
        """Connect to the endpoint at ``place``, from a UDP port that is free.

        Raises:
            StpIoError: the name is unknown, there is no route, or root is required.
        """
        family, address = resolve(place if protocol == UDP else Place(place.host))
        with cls._opened(family, protocol) as handle:
            try:
                peer = cls.connect(handle, address)
            except OSError as error:
                raise StpIoError(
                    f"{place} cannot be reached ({error.strerror}); check address and routes."
                ) from None
            return cls(handle, peer, protocol, largest)

    @classmethod
    @contextlib.contextmanager
    def _opened(cls, family: int, protocol: int) -> Iterator[socket.socket]:
        """A new socket, which is closed if its setup fails."""
        handle = cls.open(family, protocol)
        try:
            prepare(handle)
            yield handle
        except BaseException:
            handle.close()
            raise

    @classmethod
    def open(cls, family: int, protocol: int) -> socket.socket:
        """A new socket.

        Raises:
            StpIoError: root is required.
        """
        raise NotImplementedError

    @classmethod
    def connect(cls, handle: socket.socket, address: SocketAddress) -> SocketAddress:
        """Connect a socket; its peer.

        Raises:
            OSError: there is no route.
        """
        raise NotImplementedError

    @property
    def pseudo_header(self) -> Callable[[Hashable], bytes] | None:
        """What checksums cover beside a packet from or to a peer, None for nothing."""
        return None

    @property
    def peer(self) -> SocketAddress:
        """The one peer of a connected socket.

        Raises:
            ValueError: it is not connected.
        """
        if self.connected_to is None:
            raise ValueError("the socket is not connected to one peer")
        return self.connected_to

    def take(self) -> tuple[bytes, SocketAddress] | None:
        """One packet from the socket, None for one that is dropped.

        Raises:
            OSError: the kernel has none, or reports an error.
        """
        raise NotImplementedError

    def note(self, error: OSError) -> None:
        """Record what the kernel says about the path."""
        if error.errno == errno.EMSGSIZE:
            self.too_long = True
            self.fault = "a packet is longer than the path carries"
        else:
            self.fault = error.strerror or str(error)

    def fileno(self) -> int:
        """For selectors."""
        return self.handle.fileno()

    def receive(self) -> list[tuple[bytes, SocketAddress]]:
        """What has arrived, at most :data:`BATCH` packets; empty when there is no more."""
        found: list[tuple[bytes, SocketAddress]] = []
        take = self.take
        for _ in range(BATCH):
            try:
                packet = take()
            except BlockingIOError:
                break
            except OSError as error:
                self.note(error)
                continue
            if packet is not None:
                found.append(packet)
        return found

    def send(self, packets: Sequence[tuple[SocketAddress, bytes]]) -> int:
        """Send packets in order until the kernel's buffer is full; how many it took.

        A packet that the kernel refuses for good counts as taken: the path has lost it, and
        ``fault`` says why.
        """
        connected = self.connected_to is not None
        put: Callable[..., Any] = self.handle.send if connected else self.handle.sendto
        for number, (address, packet) in enumerate(packets):
            arguments = (packet,) if connected else (packet, address)
            try:
                put(*arguments)
            except BlockingIOError:
                return number
            except OSError as error:
                self.note(error)
                if error.errno in self.late_errors:
                    try:
                        put(*arguments)
                    except OSError as another:
                        self.note(another)
        return len(packets)

    def close(self) -> None:
        """Close the socket."""
        self.handle.close()


def prepare(handle: socket.socket) -> None:
    """Large buffers, Don't Fragment (STP-PF-016), no blocking."""
    handle.setblocking(False)
    for forced, usual in ((SO_RCVBUFFORCE, socket.SO_RCVBUF), (SO_SNDBUFFORCE, socket.SO_SNDBUF)):
        # Without CAP_NET_ADMIN the kernel grants what net.core.rmem_max and wmem_max permit.
        try:
            handle.setsockopt(socket.SOL_SOCKET, forced, BUFFER_OCTETS)
        except OSError:
            handle.setsockopt(socket.SOL_SOCKET, usual, BUFFER_OCTETS)
    with contextlib.suppress(OSError):
        v6 = handle.family == socket.AF_INET6
        level = socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP
        handle.setsockopt(level, IPV6_MTU_DISCOVER if v6 else IP_MTU_DISCOVER, PMTUDISC_DO)
