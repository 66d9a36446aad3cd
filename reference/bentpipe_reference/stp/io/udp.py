"""STP in UDP: each packet is the whole payload of one datagram (STP-PF-014)."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

from bentpipe_reference.stp.io.addresses import Place, SocketAddress, resolve
from bentpipe_reference.stp.io.carrier import BATCH, LARGEST_PACKET, bind, prepare
from bentpipe_reference.stp.io.errors import StpIoError


class UdpCarrier:
    """A UDP socket, for any number of peers or connected to one; see :class:`carrier.Carrier`.

    A connected one hears only its peer, costs the kernel less, and learns when nobody is there.
    """

    pseudo_header = None
    """None in UDP, whose own checksum covers the addresses (section 3.2)."""

    def __init__(self, handle: socket.socket, peer: SocketAddress | None, largest: int) -> None:
        """Use a bound or connected socket; :meth:`listening` and :meth:`towards` make one."""
        self._handle = handle
        self._peer = peer
        self._largest = max(largest, LARGEST_PACKET)
        self.address: SocketAddress = handle.getsockname()
        self.fault: str | None = None
        self.refused = False
        self.too_long = False

    @classmethod
    def listening(cls, place: Place, largest: int = LARGEST_PACKET) -> UdpCarrier:
        """Listen at ``place``; a UDP port of 0 means any that is free.

        Args:
            place: address and UDP port of this host.
            largest: octets of the longest packet expected.

        Raises:
            StpIoError: the address is not known, not ours or in use.
        """
        family, address = resolve(place, passive=True)
        handle = socket.socket(family, socket.SOCK_DGRAM)
        try:
            if family == socket.AF_INET6:
                handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            prepare(handle)
            bind(handle, address, str(place))
            return cls(handle, None, largest)
        except BaseException:
            handle.close()
            raise

    @classmethod
    def towards(cls, place: Place, largest: int = LARGEST_PACKET) -> UdpCarrier:
        """Connect to the endpoint at ``place``, from a UDP port that is free.

        Raises:
            StpIoError: the name is not known, or there is no route.
        """
        family, address = resolve(place)
        handle = socket.socket(family, socket.SOCK_DGRAM)
        try:
            prepare(handle)
            try:
                handle.connect(address)
            except OSError as error:
                raise StpIoError(
                    f"{place} cannot be reached ({error.strerror}); check address and routes."
                ) from None
            return cls(handle, handle.getpeername(), largest)
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

    def fileno(self) -> int:
        """See :class:`carrier.Carrier`."""
        return self._handle.fileno()

    def receive(self) -> list[tuple[bytes, SocketAddress]]:
        """See :class:`carrier.Carrier`."""
        found: list[tuple[bytes, SocketAddress]] = []
        peer, largest = self._peer, self._largest
        one, any_ = self._handle.recv, self._handle.recvfrom
        for _ in range(BATCH):
            try:
                found.append(any_(largest) if peer is None else (one(largest), peer))
            except BlockingIOError:
                break
            except OSError as error:
                self._note(error)
        return found

    def send(self, packets: Sequence[tuple[SocketAddress, bytes]]) -> int:
        """See :class:`carrier.Carrier`."""
        connected = self._peer is not None
        one, any_ = self._handle.send, self._handle.sendto
        for number, (address, packet) in enumerate(packets):
            try:
                if connected:
                    one(packet)
                else:
                    any_(packet, address)
            except BlockingIOError:
                return number
            except OSError as error:
                self._note(error)
                if error.errno == errno.ECONNREFUSED:
                    # That was said of an earlier packet, and this one has not been sent.
                    self._send_again(packet, address)
        return len(packets)

    def _send_again(self, packet: bytes, address: SocketAddress) -> None:
        try:
            if self._peer is not None:
                self._handle.send(packet)
            else:
                self._handle.sendto(packet, address)
        except OSError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        if error.errno == errno.ECONNREFUSED:
            self.refused = True
            self.fault = "nobody is at this UDP port"
        elif error.errno == errno.EMSGSIZE:
            self.too_long = True
            self.fault = "a packet is longer than the path carries"
        else:
            self.fault = error.strerror or str(error)

    def close(self) -> None:
        """See :class:`carrier.Carrier`."""
        self._handle.close()
