"""Runs inside the guest for test_ports.py: the guest is the host, a namespace is the box.

``data0`` and ``data1`` are where a host's interfaces towards the box would be. Prints what happened
as JSON.
"""

import contextlib
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bentpipe_conformance.bed.check import ping
from bentpipe_conformance.bed.devices import clear_offloads
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import RTM_DELLINK, Netlink
from bentpipe_conformance.bed.ports import PortsLane
from bentpipe_conformance.bed.wiring import ROUTER
from bentpipe_conformance.engine.crossing import PortPlace
from bentpipe_conformance.engine.lane import CLIENT, SATELLITE_FAR, SATELLITE_NEAR, SERVER
from bentpipe_conformance.iut.description import parse_description
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN, Tcp, build, dissect
from bentpipe_conformance.run.workplace import choose_workplace
from bentpipe_reference.common.link.profile import load_profiles
from scenarios import play

GEO = load_profiles()["geo"]
PEP = "{python} -m bentpipe_conformance.cli.main pep run --lan port0 --satellite port1"
ROUTED = (
    PortPlace(CLIENT, "data0", "192.0.2.1", "192.0.2.254"),
    PortPlace(SERVER, "data1", "198.51.100.1", "198.51.100.254"),
)
BRIDGED = (PortPlace(CLIENT, "data0"), PortPlace(SERVER, "data1"))
BRIDGED_PAIR = (*BRIDGED, PortPlace(SATELLITE_NEAR, "data2"), PortPlace(SATELLITE_FAR, "data3"))
BRIDGE = """
import contextlib, select, socket, sys
ports = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in "01"]
for name, port in zip(sys.argv[1:], ports):
    port.bind((name, 3))
    port.setsockopt(263, 23, 1)
print("ready", flush=True)
while True:
    for port in select.select(ports, [], [])[0]:
        with contextlib.suppress(OSError):  # one is not up yet
            ports[port is ports[0]].send(port.recv(2048))
"""
ASKING = """
import sys
from bentpipe_conformance.bed.arp import Resolver
port, own, wanted = sys.argv[1:]
with Resolver(port, own) as resolver:
    print(resolver.resolve(wanted).hex(":"))
"""
SENDER = """
import socket, time
print("ready", flush=True)
handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    handle.sendto(b"10.78.0.1", ("10.78.0.1", 9))
    time.sleep(0.1)
"""
DESCRIPTION = """
id = "rack"
name = "The box in the rack"
suite = "pep"
[attach]
kind = "ports"
[attach.client]
interface = "data0"
address = "192.0.2.1"
gateway = "192.0.2.254/24"
[attach.server]
interface = "data1"
address = "198.51.100.1"
gateway = "198.51.100.254/24"
[ics]
satellite = "none"
buffer = 131072
connections = 64
drain = true
drain_s = 30
"""


NETWORKS = {
    "port0": ("192.0.2.1", "10.78.0.0", "192.0.2.254"),
    "port1": ("198.51.100.1", "10.77.0.0", "198.51.100.254"),
    "port2": ("192.168.2.1", "10.77.0.0", "192.168.2.254"),
    "port3": ("192.168.3.1", "10.78.0.0", "192.168.3.254"),
}
"""Of each port of a box: its address, the network behind it, and the next hop to that."""
PAIR = (
    *ROUTED,
    PortPlace(SATELLITE_NEAR, "data2", "192.168.2.1", "192.168.2.254"),
    PortPlace(SATELLITE_FAR, "data3", "192.168.3.1", "192.168.3.254"),
)


@contextlib.contextmanager
def box(
    *program: str, ports: Sequence[str] = ("port0", "port1"), cables: str = "", up: bool = True,
    forwards: bool = True, routes: bool = True, offloads: bool = False,
) -> Iterator[NetworkNamespace]:  # fmt: skip
    """A box with a program in it, and a cable from each port to the interface of its number."""
    namespace = NetworkNamespace()
    namespace.set_sysctls(ROUTER if forwards else {"net.ipv4.ip_forward": "0"})
    with contextlib.ExitStack() as held:
        held.callback(namespace.close)
        for port, cable in zip(ports, cables or "".join(port[-1] for port in ports), strict=True):
            with Netlink() as netlink:
                netlink.add_veth(f"data{cable}", port, namespace.fd, 1500, 1000)
                held.callback(_delete, f"data{cable}")
                netlink.set_link(f"data{cable}")
            with namespace.entered(), Netlink() as inside:
                address, network, gateway = NETWORKS[port]
                if not offloads:
                    clear_offloads(port)
                inside.set_link(port, up=up)
                if routes and up:
                    inside.add_address(port, address, 24)
                    inside.add_route(network, 16, port, gateway)
        with namespace.entered():
            if program:
                held.enter_context(_started(program))
        yield namespace


def _delete(name: str) -> None:
    with contextlib.suppress(OSError, BedError), Netlink() as netlink:
        which = struct.pack("=BBHiII", 0, 0, 0, socket.if_nametoindex(name), 0, 0)
        netlink.request(RTM_DELLINK, 0, which, f"delete {name}")


@contextlib.contextmanager
def _started(program: Sequence[str]) -> Iterator[None]:
    words = [word.replace("{python}", sys.executable) for word in program]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        started.terminate()
        if not select.select([started.stdout], [], [], 5)[0]:
            started.kill()
        started.wait()
        started.stdout.close()


def refusal(folder: str, description: str = DESCRIPTION) -> str:
    """What ``bentpipe certify`` says of a box that cannot be judged."""
    file = Path(folder, "rack.toml")
    file.write_text(description)
    command = [sys.executable, "-m", "bentpipe_conformance.cli.main", "certify", str(file)]
    ended = subprocess.run(
        [*command, "--only", "PEP-OP-001", "--out", str(Path(folder, "bundle"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ended.stderr.splitlines()[-1]


def crossed(lane: PortsLane) -> Any:
    """When and where a SYN of the client passes, and whether the server's answer comes back."""
    client = lane.begin()
    lane.port.send(build(Tcp(client, lane.iut_address, 4000, 80, 7777, 0, SYN, 1000, b"")))
    found = lane.receive(lane.port.now() + 3.0)
    if found is None:
        return "nothing arrives"
    call = dissect(found[2])
    back = Tcp(call.dst, call.src, call.dport, call.sport, 1, call.seq + 1, SYN | ACK, 1000, b"")
    lane.far.send(build(back))
    answer = lane.receive(lane.port.now() + 3.0)
    return {
        "whole": call.seq == 7777,
        "answered": answer is not None and answer[1] == CLIENT,
        "passed": [
            (round(item.time, 3), item.point, item.side, item.outgoing) for item in lane.end()
        ],
    }


def routed() -> Any:
    with box():
        with PortsLane(GEO, ROUTED) as lane:
            found = crossed(lane)
        return {**found, "back": sorted(name for _, name in socket.if_nameindex())}


def bridged() -> Any:
    with bridge(), PortsLane(GEO, BRIDGED) as lane:
        return crossed(lane)


def bridged_pair() -> Any:
    with (
        bridge("port0", "port2"), bridge("port3", "port1"), PortsLane(GEO, BRIDGED_PAIR) as lane,
    ):  # fmt: skip
        return crossed(lane)


def bridged_and_asked() -> Any:
    """Who answers a box that bridges and asks, at the satellite, for the server."""
    with (
        bridge("port0", "port2") as near, bridge("port3", "port1"),
        PortsLane(GEO, BRIDGED_PAIR) as lane,
    ):  # fmt: skip
        lane.begin()
        with near.entered():
            asking = subprocess.Popen(
                [sys.executable, "-c", ASKING, "port2", "10.78.0.1", "10.77.0.2"],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        while asking.poll() is None:
            lane.receive(lane.port.now() + 0.1)
        told, _ = asking.communicate()
        return len(told.strip().split(":"))


def bridge(*ports: str) -> contextlib.AbstractContextManager[NetworkNamespace]:
    """A box that bridges its two ports, and splits nothing."""
    ports = ports or ("port0", "port1")
    return box(sys.executable, "-c", BRIDGE, *ports, ports=ports, routes=False)


def splitting(
    *ports: str, speak: str = "tcp"
) -> contextlib.AbstractContextManager[NetworkNamespace]:
    """The reference as a box that bridges."""
    program = Path(__file__).with_name("bridging_box.py")
    return box(sys.executable, str(program), speak, *ports, ports=ports, routes=False)


def certified(description: str, only: Sequence[str]) -> Any:
    """What `bentpipe certify` says of a box with ports."""
    with tempfile.TemporaryDirectory() as folder:
        file, bundle = Path(folder, "rack.toml"), Path(folder, "bundle")
        file.write_text(description)
        chosen = [f"--only={name}" for name in only]
        command = [sys.executable, "-m", "bentpipe_conformance.cli.main", "certify", str(file)]
        ended = subprocess.run(
            [*command, "--link", "geo", *chosen, "--out", str(bundle)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        result = json.loads((bundle / "result.json").read_text())
        return {
            "told": ended.stdout + ended.stderr,
            "requirements": {item["id"]: item["verdict"] for item in result["requirements"]},
        }


def without_places(description: str) -> str:
    """A description of a box that has no addresses."""
    lines = description.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("address", "gateway")))


BRIDGE_CASES = (
    "pep/opening/opening-server-*",
    "pep/transparency/not-tcp",
    "pep/transparency/stranger-sends",
    "pep/transparency/established-packets-of-a-class",
    "pep/reliability/half-closed-server-resets",
)


def bridging_box() -> Any:
    with splitting("port0", "port1"):
        return certified(without_places(DESCRIPTION), BRIDGE_CASES)


def bridging_pair() -> Any:
    with splitting("port0", "port2", speak="stp"), splitting("port1", "port3", speak="stp"):
        return certified(without_places(PAIR_DESCRIPTION), BRIDGE_CASES)


def pair() -> Any:
    near, far = ("port0", "port2"), ("port3", "port1")
    with box(ports=near), box(ports=far), PortsLane(GEO, PAIR) as lane:
        return crossed(lane)


SATELLITE = """
[attach.satellite-near]
interface = "data2"
address = "192.168.2.1"
gateway = "192.168.2.254/24"
[attach.satellite-far]
interface = "data3"
address = "192.168.3.1"
gateway = "192.168.3.254/24"
[ics]
satellite = "own"
end = "local"
buffer = 262144
"""


PAIR_DESCRIPTION = DESCRIPTION.replace('[ics]\nsatellite = "none"\nbuffer = 131072\n', SATELLITE)
STP_CASES = ("pep/opening/opening-server-*", "pep/reliability/half-closed-server-resets")


def pair_of_stp(only: Sequence[str] = STP_CASES) -> Any:
    """Two programs with STP over the satellite."""
    run = "{python} -m bentpipe_conformance.cli.main pep run --speak stp --buffer 131072"
    near, far = (
        f"{run} --lan {lan} --satellite {sat}"
        for lan, sat in (("port0", "port2"), ("port1", "port3"))
    )
    with (
        box(*near.split(), ports=("port0", "port2")),
        box(*far.split(), ports=("port3", "port1")),
    ):
        return certified(PAIR_DESCRIPTION, only)


def handbook() -> Any:
    """The how-to, to the letter."""
    text = (Path(__file__).parents[3] / "docs/howto/pep.rst").read_text()
    written = text[text.index("A box with two ports") :]
    description, commands = (
        textwrap.dedent(
            re.split(r"\n(?=\S)", written.split(f":: {language}\n", 1)[1], maxsplit=1)[0]
        )
        for language in ("toml", "sh")
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rack.toml").write_text(description)
        paths = [str(Path(sys.executable).parent), os.environ["PATH"], folder]
        shim = Path(folder, "ethtool")
        shim.write_text(f"#!/bin/sh\nexec {sys.executable} {__file__} --ethtool $2\n")
        shim.chmod(0o755)
        said = Path(folder, "said")
        with said.open("w") as output:
            subprocess.run(
                ["sh", "-c", commands], cwd=folder, stdout=output, stderr=output, check=False,
                env={**os.environ, "PATH": ":".join(paths)},
            )  # fmt: skip
        told = Path(folder, "bentpipe-runs/rack-geo-pep1/result.json")
        result = json.loads(told.read_text()) if told.exists() else {}
        return {
            "told": said.read_text(),
            "requirements": {
                item["id"]: item["verdict"] for item in result.get("requirements", ())
            },
        }


def absent() -> Any:
    PortsLane(GEO, ROUTED)


def switched_off() -> Any:
    with box(up=False):
        PortsLane(GEO, ROUTED)


def without_addresses() -> Any:
    with box(routes=False):
        PortsLane(GEO, ROUTED)


def cables_exchanged() -> Any:
    """Where the kernel answers for any of its addresses, and where for those of a port alone."""
    with box(cables="10"), tempfile.TemporaryDirectory() as folder:
        return refusal(folder)


def drops_everything() -> Any:
    with box(forwards=False), tempfile.TemporaryDirectory() as folder:
        return refusal(folder)


def near_drops_everything() -> Any:
    with (
        box(ports=("port0", "port2"), forwards=False), box(ports=("port3", "port1")),
        tempfile.TemporaryDirectory() as folder,
    ):  # fmt: skip
        return refusal(folder, PAIR_DESCRIPTION)


def far_drops_everything() -> Any:
    with (
        bridge("port0", "port2"), box(ports=("port3", "port1"), routes=False, forwards=False),
        tempfile.TemporaryDirectory() as folder,
    ):  # fmt: skip
        return refusal(folder, without_places(PAIR_DESCRIPTION))


def no_checksums() -> Any:
    """What a box sends itself has none where it leaves them to its hardware."""
    with box(sys.executable, "-c", SENDER, offloads=True), PortsLane(GEO, ROUTED) as lane:
        lane.begin()
        lane.receive(lane.port.now() + 1.0)


def busy() -> Any:
    with box(), PortsLane(GEO, ROUTED) as lane:
        client = lane.begin()
        lane.alter_link(delay_s=0.1)
        lane.port.send(ping(client, 1, to=lane.iut_address))
        lane.receive(lane.port.now() + 0.05)
        time.sleep(0.3)
        lane.receive(lane.port.now())
        lane.end()


def without_root() -> Any:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setuid(65534)
        try:
            description = parse_description(tomllib.loads(DESCRIPTION), Path("rack.toml"))
            choose_workplace("auto", description, GEO)
        except BedError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.wait()
    os.close(writer)
    with os.fdopen(reader) as told:
        return told.read()


SCENARIOS: tuple[Callable[[], Any], ...] = (
    routed, bridged, bridged_pair, bridged_and_asked, pair, pair_of_stp, bridging_box,
    bridging_pair, handbook, absent, switched_off, without_addresses, cables_exchanged,
    drops_everything, near_drops_everything, far_drops_everything, no_checksums, busy,
    without_root,
)  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ethtool"]:
        sys.exit(clear_offloads(sys.argv[2]))
    sys.exit(play(SCENARIOS))
