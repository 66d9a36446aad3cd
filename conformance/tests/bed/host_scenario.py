"""Runs inside the guest for test_host_place.py: the guest is the host, with root and netem.

A box is a namespace of its own behind a veth pair: the interface ``box0`` is where a host's
interface towards the box would be. Prints what happened as JSON.
"""

import contextlib
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bentpipe_conformance.iut
from bentpipe_conformance.bed.borrowed import BorrowedInterface
from bentpipe_conformance.bed.check import ping
from bentpipe_conformance.bed.devices import clear_offloads, read_offloads
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.lanes import Attachment, KernelLane
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import RTM_DELLINK, Netlink
from bentpipe_reference.common.link.profile import load_profiles
from scenarios import play

SIOCGIFADDR, SIOCGIFNETMASK = 0x8915, 0x891B
SERVICES = str(Path(bentpipe_conformance.iut.__file__).with_name("services.py"))
GEO = load_profiles()["geo"]
BOX, GATEWAY, MINE = "192.0.2.1", "192.0.2.254", "192.0.2.200"
ATTACHMENT = Attachment(
    "address", (), interface="box0", address=BOX, gateway=GATEWAY, prefix=24
)  # fmt: skip
DESCRIPTION = """
id = "box"
name = "The box behind box0"
[attach]
kind = "address"
interface = "box0"
address = "192.0.2.1"
gateway = "192.0.2.254/24"
[ics]
sack = true
sack_sender = true
sack_receiver = true
dsack = true
timestamps = true
window_scale = true
limited_transmit = true
rack = true
tlp = true
prr = true
frto = true
byte_counting = "unlimited"
congestion_control = "reno"
initial_window_segments = 10
"""
SYSCTLS = {"net.ipv4.tcp_no_metrics_save": "1", "net.ipv4.tcp_congestion_control": "reno"}


@contextlib.contextmanager
def box() -> Iterator[None]:
    """A box that serves, and ``box0`` set up as somebody might have it."""
    namespace = NetworkNamespace()
    namespace.set_sysctls(SYSCTLS)
    with Netlink() as netlink:
        netlink.add_veth("box0", "box1", namespace.fd, 1500, 1000)
        with namespace.entered(), Netlink() as inside:
            clear_offloads("box1")
            inside.set_link("lo")
            inside.set_link("box1")
            inside.add_address("box1", BOX, 24)
            inside.add_route("0.0.0.0", 0, "box1", GATEWAY)
            served = subprocess.Popen(
                [sys.executable, "-IS", SERVICES], stdout=subprocess.PIPE, text=True
            )
        netlink.set_link("box0", mtu=1400, queue=77)
        netlink.add_address("box0", MINE, 24)
        netlink.add_route("198.51.100.0", 24, "box0", BOX)
    assert served.stdout is not None
    assert served.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        served.kill()
        served.wait()
        served.stdout.close()
        # Deleting either end of the pair deletes both, at once and wherever they are.
        with namespace.entered(), Netlink() as inside:
            which = struct.pack("=BBHiII", 0, 0, 0, socket.if_nametoindex("box1"), 0, 0)
            inside.request(RTM_DELLINK, 0, which, "delete box1")
        namespace.close()


def state() -> Any:
    """How ``box0`` is set up."""
    index = socket.if_nametoindex("box0")
    with Netlink() as netlink, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        routes = [route.through(index).hex() for route in netlink.routes(index)]
        addresses = [
            socket.inet_ntoa(fcntl.ioctl(handle, command, struct.pack("16s24x", b"box0"))[20:24])
            for command in (SIOCGIFADDR, SIOCGIFNETMASK)
        ]
    values = {
        name: Path("/sys/class/net/box0", name).read_text().strip()
        for name in ("mtu", "tx_queue_len", "address", "flags")
    }
    return {
        **values,
        "addresses": addresses,
        "routes": routes,
        "offloads": sorted(read_offloads("box0").items()),
    }


def certify(description: str, cases: str, folder: str) -> Any:
    """``bentpipe certify`` on this host; its verdicts and exit status."""
    bundle = Path(folder, "bundle")
    command = [sys.executable, "-m", "bentpipe_conformance.cli.main", "certify", description]
    ended = subprocess.run(
        [*command, "--bed", "host", "--only", cases, "--out", str(bundle)],
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, Any] = {"status": ended.returncode, "told": ended.stdout + ended.stderr}
    result = bundle / "result.json"
    if result.exists():
        told = json.loads(result.read_text())
        found["verdict"] = told["verdict"]
        found["cases"] = {case["id"]: case["verdict"] for case in told["cases"]}
    return found


def address() -> Any:
    with box(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "box.toml")
        file.write_text(DESCRIPTION)
        before = state()
        found = certify(str(file), "snr/fast-retransmit/*", folder)
        return {**found, "before": before, "after": state()}


def namespace() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return certify("linux-reno", "snr/fast-retransmit/recovery-*", folder)


def pings() -> Any:
    with box():
        lane = KernelLane(GEO, ATTACHMENT)
        address = lane.begin()
        sent = lane.port.now()
        lane.port.send(ping(address, 1, to=lane.iut_address))
        answer = lane.port.receive(sent + 5)
        captured = [(packet.point, packet.outgoing) for packet in lane.end()]
        lane.close()
        return {"took": answer and answer[0] - sent, "captured": captured}


def down() -> Any:
    with box():
        with Netlink() as netlink:
            netlink.set_link("box0", up=False)
        before = state()
        KernelLane(GEO, ATTACHMENT).close()
        return before == state()


def no_interface() -> Any:
    KernelLane(GEO, ATTACHMENT)


def loopback() -> Any:
    BorrowedInterface("lo", NetworkNamespace())


def default_route() -> Any:
    with box():
        with Netlink() as netlink:
            netlink.add_route("0.0.0.0", 0, "box0", BOX)
        KernelLane(GEO, ATTACHMENT)


def silent() -> Any:
    with box():
        before = state()
        nobody = Attachment(
            "address", (), interface="box0", address="192.0.2.9", gateway=GATEWAY, prefix=24
        )
        try:
            KernelLane(GEO, nobody)
        except BedError as error:
            return {"error": str(error), "back": state() == before}


def vanished() -> Any:
    with box():
        lane = KernelLane(GEO, ATTACHMENT)
    lane.close()
    return "box0" in [name for _, name in socket.if_nameindex()]


def without_root() -> Any:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            KernelLane(GEO, ATTACHMENT)
        except BedError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as told:
        return told.read()


SCENARIOS: tuple[Callable[[], Any], ...] = (
    pings,
    down,
    no_interface,
    loopback,
    default_route,
    silent,
    vanished,
    without_root,
    address,
    namespace,
)


if __name__ == "__main__":
    sys.exit(play(SCENARIOS))
