"""How a host and the satellite that routes its packets are set up, besides the link itself."""

from __future__ import annotations

from pathlib import Path

from bentpipe_conformance.bed.devices import await_running, clear_offloads
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink

DEVICE_QUEUE = 10_000
"""Packets a device may hold beyond netem, so that it never drops any."""
ROUTER = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
}
"""Kernel parameters of the satellite's namespace."""


def lay_out_host(
    host: NetworkNamespace, end: tuple[str, bytes], gateway: tuple[str, bytes], prefix: int
) -> None:
    """Set up ``eth0`` in a host's namespace.

    ``end`` are the IPv4 and Ethernet address of the host, ``gateway`` those of the satellite
    towards it; ``prefix`` is the length of their network's prefix.

    Raises:
        BedError: the kernel refuses.
    """
    with host.entered(), Netlink() as netlink:
        clear_offloads("eth0")
        netlink.set_link("lo")
        netlink.set_link("eth0", address=end[1])
        netlink.add_address("eth0", end[0], prefix)
        netlink.add_neighbour("eth0", *gateway)
        netlink.add_route("0.0.0.0", 0, "eth0", gateway[0])
        await_running("eth0")


def quieten(*interfaces: str) -> None:
    """Switch IPv6 off, so that the kernel sends nothing of its own accord."""
    for name in interfaces:
        switch = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
        if switch.exists():
            switch.write_text("1\n", encoding="ascii")
