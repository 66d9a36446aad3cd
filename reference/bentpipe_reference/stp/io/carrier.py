"""What carries packets: sockets, and what the kernel says about their path."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar, Protocol

from bentpipe_reference.stp.io.addresses import Place, SocketAddress
from bentpipe_reference.stp.io.errors import StpIoError

BATCH = 256
"""Packets taken in one go, so that a flood cannot keep timers and sending from their turn."""

BUFFER_OCTETS = 8 << 20
"""Asked for in each direction: a window of 4 MB of user data with the kernel's own overhead."""

LARGEST_PACKET = 9216
"""Octets read per packet at least: STATs of peers on jumbo frames are longer than our own SDs."""

SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_DO = 10, 23, 2


class Carrier(Protocol):
    """A socket that carries STP packets and never blocks.

    Attributes:
        address: this end, as the kernel has it.
        fault: the newest sentence the kernel gave about the path, None while it has none:
            nobody at the port, no route, or a packet beyond the MTU.
        refused: whether the other host has said that nobody is at the port.
        too_long: whether a packet was beyond the MTU, and so can never arrive.
    """

    address: SocketAddress
    fault: str | None
    refused: bool
    too_long: bool

    @property
    def pseudo_header(self) -> Callable[[Hashable], bytes] | None:
        """What checksums cover beside a packet from or to a peer, None for nothing."""

    def fileno(self) -> int:
        """For selectors."""

    def receive(self) -> list[tuple[bytes, SocketAddress]]:
        """What has arrived, at most :data:`BATCH` packets; empty when there is no more."""

    def send(self, packets: Sequence[tuple[SocketAddress, bytes]]) -> int:
        """Send packets in order until the kernel's buffer is full; how many it took.

        A packet that the kernel refuses for good counts as taken: the path has lost it, and
        ``fault`` says why.
        """

    def close(self) -> None:
        """Close the socket."""


class SocketCarrier:
    """A socket for any number of peers, or connected to one; see :class:`Carrier`.

    A subclass takes packets with ``take``, and interprets errors with ``note``.
    """

    late_errors: ClassVar[frozenset[int]] = frozenset()
    """Those that concern an earlier packet than the one at hand, which has not been sent."""

    def __init__(self, handle: socket.socket, peer: SocketAddress | None, largest: int) -> None:
        """Use a bound or connected socket; ``listening`` and ``towards`` make one."""
        self.handle = handle
        self.connected_to = peer
        self.largest = max(largest, LARGEST_PACKET)
        self.address: SocketAddress = handle.getsockname()
        self.fault: str | None = None
        self.refused = False
        self.too_long = False

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
        """See :class:`Carrier`."""
        return self.handle.fileno()

    def receive(self) -> list[tuple[bytes, SocketAddress]]:
        """See :class:`Carrier`."""
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
        """See :class:`Carrier`."""
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
        """See :class:`Carrier`."""
        self.handle.close()


@contextlib.contextmanager
def closed_on_error(handle: socket.socket) -> Iterator[None]:
    """Close a socket whose setup fails."""
    try:
        yield
    except BaseException:
        handle.close()
        raise


@contextlib.contextmanager
def reaching(place: Place) -> Iterator[None]:
    """Turn an error of connecting into one sentence.

    Raises:
        StpIoError: there is no route.
    """
    try:
        yield
    except OSError as error:
        raise StpIoError(
            f"{place} cannot be reached ({error.strerror}); check address and routes."
        ) from None


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
        if handle.family == socket.AF_INET6:
            handle.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_DO)
        else:
            handle.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_DO)


def bind(handle: socket.socket, address: SocketAddress, name: str) -> None:
    """Bind, or say in one sentence why not.

    Raises:
        StpIoError: somebody else has the address, it is not of this host, or is forbidden.
    """
    try:
        handle.bind(address)
    except OSError as error:
        remedies = {
            errno.EADDRINUSE: "choose another port or stop the program that has it.",
            errno.EADDRNOTAVAIL: "give an address of this host.",
            errno.EACCES: "choose a port above 1023 or run as root.",
        }
        remedy = remedies.get(error.errno or 0, "choose another address.")
        raise StpIoError(f"{name} cannot be listened on ({error.strerror}); {remedy}") from None
