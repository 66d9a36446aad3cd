"""Two hosts of this kernel with a satellite between them.

Each host is a network namespace with one Ethernet device; a third namespace routes between them
over the link laid out by netem, as behind a lane. Neither host is a tester: both run real
programs, and nothing is captured.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from bentpipe_reference.common.link.profile import Direction, LinkProfile

from bentpipe_conformance.bed import netem
from bentpipe_conformance.bed.devices import await_running, clear_offloads
from bentpipe_conformance.bed.lanes import DEVICE_QUEUE, ROUTER
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink

ADDRESSES = ("10.77.0.2", "10.78.0.2")
"""Of the two hosts; the first sends in the profile's forward direction."""

_GATEWAYS = ("10.77.0.1", "10.78.0.1")
_PREFIX = 24
_HOST_MACS = (b"\x02\x00\x0a\x4d\x00\x02", b"\x02\x00\x0a\x4e\x00\x02")
_GATEWAY_MACS = (b"\x02\x00\x0a\x4d\x00\x01", b"\x02\x00\x0a\x4e\x00\x01")
_DEVICES = ("sat_a", "sat_b")


class TwoHosts:
    """Two hosts and a link; use as a context manager, leaving it ends the programs it started."""

    def __init__(self, profile: LinkProfile, seed: int = 1) -> None:
        """Lay out the link, reordering included.

        Args:
            profile: the link.
            seed: of its losses and its reordering.

        Raises:
            BedError: the kernel cannot lay it out, or it takes root.
        """
        self._namespaces: list[NetworkNamespace] = []
        self._programs: list[subprocess.Popen[str]] = []
        try:
            satellite = self._namespace()
            self.hosts = (self._namespace(), self._namespace())
            with satellite.entered(), Netlink() as netlink:
                for number in (0, 1):
                    self._lay_out(netlink, number, profile, seed)
            satellite.set_sysctls(ROUTER)
            for number, host in enumerate(self.hosts):
                _lay_out_host(host, number)
            with satellite.entered():
                await_running(*_DEVICES)
        except BaseException:
            self.close()
            raise

    def _namespace(self) -> NetworkNamespace:
        made = NetworkNamespace()
        self._namespaces.append(made)
        return made

    def _lay_out(self, netlink: Netlink, number: int, profile: LinkProfile, seed: int) -> None:
        name = _DEVICES[number]
        netlink.add_veth(name, "eth0", self.hosts[number].fd, profile.mtu, DEVICE_QUEUE)
        clear_offloads(name)
        netlink.set_link(name, address=_GATEWAY_MACS[number])
        netlink.add_address(name, _GATEWAYS[number], _PREFIX)
        netlink.add_neighbour(name, ADDRESSES[number], _HOST_MACS[number])
        # What leaves towards the second host travels forward.
        direction = profile.forward if number else profile.return_
        lay_out_direction(netlink, name, direction, 4 * seed + 2 * number)

    def start(self, host: int, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program on a host; its output and errors come through pipes as text."""
        with self.hosts[host].entered():
            program = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        self._programs.append(program)
        return program

    def close(self) -> None:
        """End what was started here and take the link down."""
        for program in self._programs:
            if program.poll() is None:
                program.kill()
            program.wait()
            for pipe in (program.stdout, program.stderr):
                if pipe is not None:
                    pipe.close()
        for namespace in self._namespaces:
            namespace.close()
        self._programs, self._namespaces = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def lay_out_direction(netlink: Netlink, name: str, direction: Direction, seed: int) -> None:
    """Lay a direction out on an Ethernet device, with its reordering if it has one."""
    in_order = replace(direction, reorder_probability=0.0, reorder_delay_s=0.0)
    netem.lay_out(netlink, name, in_order, ethernet=True, seed=seed)
    if direction.reorder_probability:
        netem.add_reordering(netlink, name, direction, seed + 1)


def _lay_out_host(host: NetworkNamespace, number: int) -> None:
    with host.entered(), Netlink() as netlink:
        clear_offloads("eth0")
        netlink.set_link("lo")
        netlink.set_link("eth0", address=_HOST_MACS[number])
        netlink.add_address("eth0", ADDRESSES[number], _PREFIX)
        netlink.add_neighbour("eth0", _GATEWAYS[number], _GATEWAY_MACS[number])
        netlink.add_route("0.0.0.0", 0, "eth0", _GATEWAYS[number])
        await_running("eth0")
