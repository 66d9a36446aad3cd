"""Runs inside the guest for test_crossing.py: a router as a box, and what its two sides see."""

import json
import sys
from typing import Any

from bentpipe_conformance.bed.crossing import SERVER_ADDRESS, CrossingLane
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.lanes import Attachment
from bentpipe_conformance.engine.codec import UDP, build_ipv4, build_udp
from bentpipe_reference.common.link.profile import load_profiles

GEO = load_profiles()["geo"]
ROUTER = ["{python}", "-IS", "-c", "import time; print('ready', flush=True); time.sleep(1e6)"]
GHOST = "10.78.200.1"
"""A second address of the tester's."""
LISTENER = """
import socket, time
time.sleep(3)
listener = socket.create_server(("", 3129))
time.sleep(1e6)
"""


def datagram(source: str, target: str, text: bytes) -> bytes:
    src, dst = (bytes(map(int, address.split("."))) for address in (source, target))
    return build_ipv4(src, dst, UDP, build_udp(src, dst, 30_000, 9, text))


def seen(lane: CrossingLane) -> list[tuple[float, str, str, bool, str]]:
    return [
        (round(it.time, 4), it.point, it.side, it.outgoing, it.data[28:].decode())
        for it in lane.end()
    ]


def exchanged(lane: CrossingLane, address: str) -> dict[str, Any]:
    """What becomes of a datagram each way."""
    began = lane.port.now()
    lane.port.send(datagram(address, SERVER_ADDRESS, b"up"))
    lane.far.send(datagram(SERVER_ADDRESS, address, b"down"))
    arrived = []
    while (item := lane.receive(began + 5.0)) is not None:
        arrived.append((round(item[0] - began, 3), item[1], item[2][28:].decode()))
    return {"arrived": arrived, "captured": seen(lane)}


def routed() -> dict[str, Any]:
    """A datagram each way, twice, the second time over a link that loses everything."""
    found: dict[str, Any] = {}
    with CrossingLane(GEO, Attachment("between", ROUTER)) as lane:
        for name, changes in (("usual", {}), ("lost", {"loss_probability": 1.0}), ("again", {})):
            address = lane.begin()
            if changes:
                lane.alter_link(**changes)
            found[name] = exchanged(lane, address)
        lane.begin()
        lane.port.send(datagram(GHOST, SERVER_ADDRESS, b"from nobody"))
        found["ghost"] = [text for *_, text in seen(lane)]
        lane.begin()
        for late in (address, GHOST):
            lane.far.send(datagram(SERVER_ADDRESS, late, b"late"))
        found["late"] = {"arrived": lane.receive(lane.port.now() + 5.0), "captured": seen(lane)}
    return found


def paired() -> dict[str, Any]:
    """A datagram each way through a pair that routes, twice, the second time into an outage."""
    found: dict[str, Any] = {}
    with CrossingLane(GEO, Attachment("pair", ROUTER)) as lane:
        for name, changes in (("usual", {}), ("lost", {"loss_probability": 1.0})):
            address = lane.begin()
            lane.alter_link(**changes)
            found[name] = exchanged(lane, address)
    return found


def refusal(attachment: Attachment, far: Attachment | None = None) -> str:
    try:
        with CrossingLane(GEO, attachment, far) as lane:
            lane.begin()
            lane.receive(lane.port.now() + 1.0)
            return f"alive: {lane.iut_alive()}"
    except BedError as error:
        return str(error)


def main() -> None:
    listener = ["{python}", "-IS", "-c", LISTENER]
    names = "sorted(name for _, name in socket.if_nameindex())"
    looks = f"import socket; assert {names} == ['client', 'lo', 'server']"
    looks_of_pair = f"import socket; assert {names} == sorted(['lo', 'satellite', '{{lan}}'])"
    dies = ["{python}", "-IS", "-c", "print('ready', flush=True); raise SystemExit(9)"]
    wrong = [["{python}", "-c", "import sys; print('no such table', file=sys.stderr); sys.exit(2)"]]
    print(json.dumps({
        "routed": routed(),
        "listens": refusal(Attachment("between", listener, ready_port=3129)),
        "silent": refusal(Attachment("between", ROUTER, ready_port=3129, ready_timeout=2.0)),
        "interfaces": refusal(
            Attachment("between", ROUTER, setup=[["{python}", "-IS", "-c", looks]])
        ),
        "wrong": refusal(Attachment("between", ROUTER, setup=wrong)),
        "paired": paired(),
        "interfaces of a pair": refusal(
            Attachment("pair", ROUTER, setup=[["{python}", "-IS", "-c", looks_of_pair]])
        ),
        "far box dies": refusal(Attachment("pair", ROUTER), Attachment("pair", dies)),
    }))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
