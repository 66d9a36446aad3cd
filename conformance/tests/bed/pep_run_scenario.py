"""Runs inside the guest for test_pep_run.py: `bentpipe pep run` between two interfaces."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bentpipe_conformance.bed.crossing import SERVER_ADDRESS, CrossingLane
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.lanes import Attachment
from bentpipe_conformance.engine.codec import UDP, build_ipv4, build_udp
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN, Tcp, build, dissect
from bentpipe_reference.common.link.profile import load_profiles

LAN = load_profiles()["lan"]
COMMAND = ["{python}", "-m", "bentpipe_conformance.cli.main", "pep", "run", "--lan", "client"]
RUN = [*COMMAND, "--satellite", "server"]


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


def packets(lane: CrossingLane, packet: bytes) -> list[bytes]:
    """What reaches the server of what the client sends."""
    lane.port.send(packet)
    found = []
    while (item := lane.receive(lane.far.now() + 0.5)) is not None:
        found += [item[2]] if item[1] == "server" else []
    return found[:1]


def ran() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with CrossingLane(LAN, Attachment("between", RUN)) as lane:
        client = lane.begin()
        call = build(Tcp(client, SERVER_ADDRESS, 4000, 80, 7777, 0, SYN, 1000, b""))
        (split,) = packets(lane, call)
        found["split"] = dissect(split).seq != 7777
        src, dst = call[12:16], call[16:20]
        datagram = build_ipv4(src, dst, UDP, build_udp(src, dst, 30_000, 9, b"up"))
        (passed,) = packets(lane, datagram)
        found["hops"] = datagram[8] - passed[8]
        found["untouched"] = passed[28:] == b"up"
        with lane._boxes[0].entered():
            found["rules"] = ip("rule").count("iif")
        process = lane._processes[0]._process
        for _ in range(2):
            os.kill(process.pid, signal.SIGTERM)
            time.sleep(0.5)
        found["status"] = process.wait(timeout=10)
        with lane._boxes[0].entered():
            found["left"] = ip("rule").count("iif")
            found["devices"] = ip("link").count("pep-")
        (whole,) = packets(lane, build(Tcp(client, SERVER_ADDRESS, 4001, 80, 8888, 0, SYN, 9, b"")))
        found["whole"] = dissect(whole).seq == 8888
    return found


def on_sockets() -> dict[str, Any]:
    """What it does with --sockets until it is told to end."""
    found: dict[str, Any] = {}
    with CrossingLane(LAN, Attachment("between", [*RUN, "--sockets"])) as lane:
        client = lane.begin()
        call = build(Tcp(client, SERVER_ADDRESS, 4000, 80, 7777, 0, SYN, 1000, b""))
        found["early"] = not packets(lane, call)
        stranger = build(Tcp(client, SERVER_ADDRESS, 4002, 80, 5, 6, ACK, 1000, b"mine"))
        found["strangers"] = packets(lane, stranger)[0][20:] == stranger[20:]
        process = lane._processes[0]._process
        for _ in range(2):
            os.kill(process.pid, signal.SIGTERM)
            time.sleep(0.5)
        found["status"] = process.wait(timeout=10)
        with lane._boxes[0].entered():
            found["left"] = ip("rule").count("fwmark") + ip("route", "show", "table", "all").count(
                "table 7300"
            )
            found["rules"] = subprocess.run(
                ["nft", "list", "ruleset"], capture_output=True, text=True, check=True
            ).stdout
    return found


def killed(*more: str) -> bool:
    """Whether a call passes whole after the program was killed."""
    with CrossingLane(LAN, Attachment("between", [*RUN, *more])) as lane:
        client = lane.begin()
        lane._processes[0]._process.kill()
        lane._processes[0]._process.wait(timeout=10)
        (whole,) = packets(lane, build(Tcp(client, SERVER_ADDRESS, 4001, 80, 8888, 0, SYN, 9, b"")))
        return dissect(whole).seq == 8888


def second() -> dict[str, Any]:
    """What another one says, and whether the first one goes on as if nothing had been."""
    with CrossingLane(LAN, Attachment("between", [*RUN, "--sockets"])) as lane:
        words = [word.replace("{python}", sys.executable) for word in RUN]
        with lane._boxes[0].entered():
            before = ip("rule") + ip("route", "show", "table", "all")
            told = [
                subprocess.run([*words, *more], capture_output=True, text=True, check=False).stderr
                for more in ((), ("--sockets",))
            ]
            after = ip("rule") + ip("route", "show", "table", "all")
        return {"told": told, "kept": before == after}


def without_nft() -> dict[str, Any]:
    """What it does when its rules vanish."""
    with CrossingLane(LAN, Attachment("between", [*RUN, "--sockets"])) as lane:
        process = lane._processes[0]._process
        for entry in Path("/proc").glob("[0-9]*/comm"):
            if entry.read_text() == "nft\n":
                os.kill(int(entry.parent.name), signal.SIGKILL)
        status = process.wait(timeout=10)
        with lane._boxes[0].entered():
            return {"status": status, "left": ip("rule").count("fwmark")}


def refusal(command: list[str], **sysctls: str) -> str:
    try:
        with CrossingLane(LAN, Attachment("between", command, sysctls=sysctls)):
            return "it runs"
    except BedError as error:
        return str(error)


def main() -> None:
    print(json.dumps({
        "ran": ran(),
        "killed": killed(),
        "sockets": on_sockets(),
        "killed_on_sockets": killed("--sockets"),
        "second": second(),
        "without_nft": without_nft(),
        "absent": refusal([*COMMAND, "--satellite", "nonesuch"]),
        "still": refusal(RUN, **{"net.ipv4.ip_forward": "0"}),
    }))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
