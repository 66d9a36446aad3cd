"""Runs inside the guest for test_stp_box.py: the guest is the host, with root and netem.

The box is a namespace of its own with an STP implementation in it. ``data0`` and ``data1`` stand
for the host's interfaces towards its two ports, ``ctl0`` for that towards its control port.
Prints what ``bentpipe certify`` came to as JSON.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe_conformance.bed.devices import clear_offloads
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import RTM_DELLINK, Netlink

BOX, GATEWAY = "192.0.2.1", "192.0.2.254"
SECOND, SECOND_GATEWAY = "198.51.100.1", "198.51.100.254"
CONTROL, CONTROLLER, CONTROL_PORT = "203.0.113.1", "203.0.113.2", 2000
CASES = ("stp/credit/*", "stp/calling/*", "stp/polling/*")

SHELL = """
import socket, subprocess, sys
child = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(child.stdout.readline(), end="", flush=True)
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as control:
    while True:
        with control.accept()[0] as one, one.makefile() as lines:
            for line in lines:
                child.stdin.write(line)
                child.stdin.flush()
"""
TELL = (
    "import socket, sys; "
    "one = socket.create_connection((sys.argv[1], int(sys.argv[2]))); "
    "one.sendall((' '.join(sys.argv[3:]) + chr(10)).encode())"
)

DESCRIPTION = """
id = "stp-box"
name = "STP in a box"
suite = "stp"
[attach]
kind = "address"
interface = "data0"
address = "{box}"
gateway = "{gateway}/24"
{second}
[encapsulation]
{encapsulation}
[open]
command = ["{{python}}", "-c", "{tell}", "{control}", "{control_port}", "open", "{{tester}}",
           "{{udp_port}}", "{{port}}", "{word}"]
on_host = true
[ics]
active_open = true
fifo = true
initial_window_sds = 4
keep_alive_s = 600
path_class = "geo"
"""


@dataclass(frozen=True)
class Box:
    """A box and how it is certified."""

    command: tuple[str, ...]
    encapsulation: str
    word: str
    two_ports: bool = False


def boxes(go: str) -> dict[str, Box]:
    serve = (sys.executable, "-m", "bentpipe_conformance.cli.main", "stp", "serve")
    native, udp = 'kind = "ip"\nprotocol = 253', 'kind = "udp"\nport = 7253'
    return {
        "go-ip": Box((go, "--listen", BOX, "--ip", "253"), native, "{octets}"),
        "go-ip-two-ports": Box((go, "--listen", BOX, "--ip", "253"), native, "{octets}", True),
        "go-udp-two-ports": Box((go, "--listen", f"{BOX}:7253"), udp, "{octets}", True),
        "reference-ip": Box((*serve, "--listen", BOX, "--ip", "253"), native, "{service}"),
    }


@contextlib.contextmanager
def running(box: Box) -> Iterator[None]:
    """The box, cabled to this host."""
    namespace = NetworkNamespace()
    cables = [("data0", "port0", BOX), ("data1", "port1", SECOND), ("ctl0", "ctl1", CONTROL)]
    with Netlink() as netlink:
        for near, far, _ in cables:
            netlink.add_veth(near, far, namespace.fd, 1500, 1000)
            netlink.set_link(near)
        netlink.add_address("ctl0", CONTROLLER, 24)
        with namespace.entered(), Netlink() as inside:
            inside.set_link("lo")
            for _, far, address in cables:
                clear_offloads(far)
                inside.set_link(far)
                inside.add_address(far, address, 24)
            out = ("port1", SECOND_GATEWAY) if box.two_ports else ("port0", GATEWAY)
            inside.add_route("10.78.0.0", 16, *out)
            shell = [sys.executable, "-c", SHELL, CONTROL, str(CONTROL_PORT), *box.command]
            served = subprocess.Popen(
                shell, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
    assert served.stdout is not None
    assert served.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        os.killpg(served.pid, signal.SIGKILL)
        served.wait()
        served.stdout.close()
        # Deleting either end of a pair deletes both, at once and wherever they are.
        with Netlink() as netlink:
            for near, _, _ in cables:
                which = struct.pack("=BBHiII", 0, 0, 0, socket.if_nametoindex(near), 0, 0)
                netlink.request(RTM_DELLINK, 0, which, f"delete {near}")
        namespace.close()


def certify(box: Box, cases: tuple[str, ...]) -> Any:
    with running(box), tempfile.TemporaryDirectory() as folder:
        second = f'sends_on = "data1"\nsends_to = "{SECOND_GATEWAY}/24"' if box.two_ports else ""
        file = Path(folder, "box.toml")
        text = DESCRIPTION.format(
            box=BOX, gateway=GATEWAY, second=second, encapsulation=box.encapsulation, tell=TELL,
            control=CONTROL, control_port=CONTROL_PORT, word=box.word,
        )  # fmt: skip
        file.write_text(text)
        command = [sys.executable, "-m", "bentpipe_conformance.cli.main", "certify", str(file)]
        only = [word for case in cases for word in ("--only", case)]
        out = str(Path(folder, "bundle"))
        ended = subprocess.run(
            [*command, "--bed", "host", *only, "--out", out],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        found = {"status": ended.returncode, "told": ended.stdout + ended.stderr}
        result = Path(out, "result.json")
        if result.exists():
            told = json.loads(result.read_text())
            found["cases"] = {case["id"]: case["verdict"] for case in told["cases"]}
        found["interfaces"] = sorted(name for _, name in socket.if_nameindex())
        return found


def main() -> int:
    go, *wanted = sys.argv[1:]
    names, cases = [word for word in wanted if "/" not in word], [w for w in wanted if "/" in w]
    known = boxes(go)
    print(json.dumps({name: certify(known[name], tuple(cases) or CASES) for name in names}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
