"""Address resolution (RFC 826) with an implementation that the bed did not set up itself."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError

ETH_P_ARP = 0x0806
SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20
REQUEST, REPLY = 1, 2
PATIENCE, AGAIN = 5.0, 0.5
BROADCAST = b"\xff" * 6
_PACKET = struct.Struct("!HHBBH6s4s6s4s")
_ETHERNET, _IPV4 = 1, 0x0800


class Resolver(Closing):
    """Speaks ARP for the gateway on one Ethernet interface of this thread's namespace.

    It bypasses netem: a delayed answer would hold back the implementation's packets by a round trip
    that is in no link profile.
    """

    def __init__(
        self, interface: str, gateway: str, owns: Callable[[bytes], bool] = lambda _: False
    ) -> None:
        """Open the interface; requests for addresses that it ``owns`` are answered.

        Raises:
            BedError: this process has no permission.
        """
        self._interface = interface
        self._gateway = socket.inet_aton(gateway)
        self._owns = owns
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP))
            self._socket.bind((interface, ETH_P_ARP))
            self._socket.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        except OSError as error:
            raise BedError(f"Speaking ARP on {interface} needs root ({error.strerror}).") from None
        self.mac: bytes = self._socket.getsockname()[4]
        self.fd = self._socket.fileno()

    def resolve(self, address: str) -> bytes:
        """The Ethernet address of an IPv4 address.

        Raises:
            BedError: no answer arrives.
        """
        wanted = socket.inet_aton(address)
        deadline = time.monotonic() + PATIENCE
        while (now := time.monotonic()) < deadline:
            self._send(REQUEST, BROADCAST, self._gateway, wanted)
            if found := self._answer(wanted, min(now + AGAIN, deadline)):
                return found
        raise BedError(
            f"{address} does not answer behind {self._interface}; check the cable, the address "
            "and that the implementation runs."
        )

    def announce(self, address: str, mac: bytes) -> None:
        """Refresh the gateway's entry in the implementation's table, to spare it a request."""
        self._send(REPLY, mac, self._gateway, socket.inet_aton(address))

    def serve(self) -> None:
        """Answer what has been asked."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._reply(self._socket.recv(2048, socket.MSG_DONTWAIT))

    def close(self) -> None:
        """Close the interface."""
        self._socket.close()

    def _send(self, operation: int, to: bytes, sender: bytes, address: bytes) -> None:
        target = bytes(6) if operation == REQUEST else to
        packet = _PACKET.pack(_ETHERNET, _IPV4, 6, 4, operation, self.mac, sender, target, address)
        try:
            self._socket.send(to + self.mac + struct.pack("!H", ETH_P_ARP) + packet)
        except OSError as error:
            raise BedError(
                f"The interface {self._interface} does not send ({error.strerror}); "
                "check the cable and that nothing else sets it up or down."
            ) from None

    def _answer(self, wanted: bytes, deadline: float) -> bytes | None:
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._socket], [], [], left)[0]:
                return None
            frame = self._socket.recv(2048)
            if found := sender(frame, wanted):
                return found
            self._reply(frame)
        return None

    def _reply(self, frame: bytes) -> None:
        if (asked := request(frame)) is not None and self._owns(asked[0]):
            wanted, mac, address = asked
            self._send(REPLY, mac, wanted, address)


def request(frame: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Whom an ARP frame asks for, and the Ethernet and IPv4 address of who asks, or None."""
    if len(frame) < 14 + _PACKET.size:
        return None
    hardware, protocol, _, _, operation, mac, asking, _, wanted = _PACKET.unpack_from(frame, 14)
    known = (hardware, protocol, operation) == (_ETHERNET, _IPV4, REQUEST)
    return (wanted, mac, asking) if known and wanted != asking else None


def sender(frame: bytes, address: bytes) -> bytes | None:
    """The Ethernet address that an ARP frame gives for an IPv4 address, or None."""
    if len(frame) < 14 + _PACKET.size:
        return None
    hardware, protocol, _, _, _, mac, said, _, _ = _PACKET.unpack_from(frame, 14)
    told: bytes = mac
    return told if (hardware, protocol, said) == (_ETHERNET, _IPV4, address) else None
