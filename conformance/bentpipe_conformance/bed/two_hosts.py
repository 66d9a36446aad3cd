"""Two hosts of this kernel with a satellite between them.

Each host is a network namespace with one Ethernet device; a third namespace routes between them
over the link laid out by netem, as in a lane. Neither host is a tester: both run real programs.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from dataclasses import replace

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.bed import netem
from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.devices import await_running, clear_offloads
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink
from bentpipe_conformance.bed.wiring import DEVICE_QUEUE, ROUTER, lay_out_host

ADDRESSES = ("10.77.0.2", "10.78.0.2")
"""Of the two hosts; the first sends in the profile's forward direction."""

_HOST_MACS = (b"\x02\x00\x0a\x4d\x00\x02", b"\x02\x00\x0a\x4e\x00\x02")
_GATEWAYS = ("10.77.0.1", b"\x02\x00\x0a\x4d\x00\x01"), ("10.78.0.1", b"\x02\x00\x0a\x4e\x00\x01")
_PREFIX = 24
_DEVICES = ("sat_a", "sat_b")


class TwoHosts(Closing):
    """Two hosts and a link; closing it ends the programs that it started.

    Attributes:
        hosts: their namespaces.
        satellite: the namespace of the link.
        devices: the satellite's device towards each host.
    """

    devices = _DEVICES

    def __init__(self, profile: LinkProfile, seed: int = 1) -> None:
        """Lay out the link, reordering included; ``seed`` is that of its losses and reordering.

        Raises:
            BedError: the kernel cannot lay it out, or that needs root.
        """
        self._held = contextlib.ExitStack()
        try:
            self.satellite, *self.hosts = (
                self._held.enter_context(NetworkNamespace()) for _ in range(3)
            )
            satellite = self.satellite
            with satellite.entered(), Netlink() as netlink:
                for number in (0, 1):
                    self._lay_out(netlink, number, profile, seed)
            satellite.set_sysctls(ROUTER)
            ends = zip(ADDRESSES, _HOST_MACS, strict=True)
            for host, end, gateway in zip(self.hosts, ends, _GATEWAYS, strict=True):
                lay_out_host(host, end, gateway, _PREFIX)
            with satellite.entered():
                await_running(*_DEVICES)
        except BaseException:
            self.close()
            raise

    def _lay_out(self, netlink: Netlink, number: int, profile: LinkProfile, seed: int) -> None:
        name = _DEVICES[number]
        address, mac = _GATEWAYS[number]
        netlink.add_veth(name, "eth0", self.hosts[number].fd, profile.mtu, DEVICE_QUEUE)
        clear_offloads(name)
        netlink.set_link(name, address=mac)
        netlink.add_address(name, address, _PREFIX)
        netlink.add_neighbour(name, ADDRESSES[number], _HOST_MACS[number])
        # What leaves towards the second host travels forward.
        direction = profile.forward if number else profile.return_
        in_order = replace(direction, reorder_probability=0.0, reorder_delay_s=0.0)
        drawn = 4 * seed + 2 * number
        netem.lay_out(netlink, name, in_order, ethernet=True, seed=drawn)
        if direction.reorder_probability:
            netem.add_reordering(netlink, name, direction, drawn + 1)

    def start(self, host: int, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program on a host; its output and errors come through pipes as text."""
        with self.hosts[host].entered():
            program = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        self._held.enter_context(program)
        self._held.callback(program.kill)
        return program

    def close(self) -> None:
        """End the programs and take the link down."""
        self._held.close()
