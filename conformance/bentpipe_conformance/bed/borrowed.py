"""An interface of this machine lent to a lane, and given back as it was."""

from __future__ import annotations

import contextlib
import os
import socket

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.devices import (
    SIOCGIFFLAGS,
    interface_value,
    read_offloads,
    set_offloads,
)
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Address, Netlink, Route

SIOCGIFMTU, SIOCGIFHWADDR, SIOCGIFTXQLEN = 0x8921, 0x8927, 0x8942
IFF_UP, IFF_LOOPBACK, IFF_NOARP = 0x1, 0x8, 0x80
ARPHRD_ETHER = 1


class BorrowedInterface(Closing):
    """An interface moved from this thread's namespace into a lane's satellite.

    :meth:`close`, once, gives it back with its name, addresses, routes, MTU, queue length and
    offloads, up if it was up. When the process is killed, the kernel ends the satellite's
    namespace: it puts a physical interface back into the initial namespace, under its name but
    down and without addresses, and deletes a virtual one (veth, VLAN, macvlan, tunnel).

    Attributes:
        name: of the interface, the same in both namespaces.
        resolves: whether IPv4 neighbours behind it are found by ARP.
    """

    def __init__(self, name: str, satellite: NetworkNamespace) -> None:
        """Note how the interface is set up and move it.

        Raises:
            BedError: there is no such interface, it is needed elsewhere, or the kernel refuses.
        """
        self.name = name
        self._satellite = satellite
        try:
            index = socket.if_nametoindex(name)
        except OSError:
            others = [other for _, other in socket.if_nameindex() if other != "lo"]
            raise BedError(
                f"There is no interface {name} here, or another run is using it; "
                f"there are {', '.join(others) or 'none'}."
            ) from None
        flags = interface_value(name, SIOCGIFFLAGS, "H")
        if flags & IFF_LOOPBACK:
            raise BedError(f"{name} is the loopback; name the interface towards the box.")
        if os.path.exists(f"/sys/class/net/{name}/master"):
            raise BedError(f"{name} is part of a bridge or bond; take it out of that first.")
        ethernet = interface_value(name, SIOCGIFHWADDR, "H") == ARPHRD_ETHER
        self.resolves = ethernet and not flags & IFF_NOARP
        self._up = bool(flags & IFF_UP)
        self._mtu = interface_value(name, SIOCGIFMTU, "i")
        self._queue = interface_value(name, SIOCGIFTXQLEN, "i")
        self._offloads = read_offloads(name)
        with Netlink() as netlink:
            self._addresses: list[Address] = netlink.addresses(index)
            self._routes: list[Route] = netlink.routes(index)
            if any(route.default for route in self._routes):
                raise BedError(
                    f"{name} carries this machine's default route; "
                    "name an interface used for nothing else."
                )
            self._origin = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                netlink.move_link(name, satellite.fd)
            except BaseException:
                os.close(self._origin)
                raise

    def close(self) -> None:
        """Move the interface back and set it up as it was; nothing if it has vanished.

        Raises:
            BedError: the kernel refuses; the sentence names the interface.
        """
        try:
            with self._satellite.entered(), Netlink() as netlink:
                try:
                    socket.if_nametoindex(self.name)
                except OSError:  # unplugged, or its other end was deleted
                    return
                netlink.move_link(self.name, self._origin)
            with NetworkNamespace.of(self._origin).entered(), Netlink() as netlink:
                self._restore(netlink)
        finally:
            os.close(self._origin)

    def _restore(self, netlink: Netlink) -> None:
        set_offloads(self.name, self._offloads)
        netlink.set_link(self.name, mtu=self._mtu, queue=self._queue, up=self._up)
        for address in self._addresses:
            netlink.restore_address(self.name, address)
        for route in self._routes:
            # The kernel made some of them itself when the addresses were restored.
            with contextlib.suppress(BedError):
                netlink.restore_route(self.name, route)
