"""Runs inside the guest for test_guest.py: tries lanes and prints what happened as JSON."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import bentpipe_conformance.iut
from bentpipe_conformance.bed.check import datagram, ping
from bentpipe_conformance.bed.lanes import Attachment, KernelLane
from bentpipe_conformance.protocols.tcp.codec import Tcp, build, dissect
from bentpipe_reference.common.link.profile import load_profiles
from scenarios import play

SERVICES = str(Path(bentpipe_conformance.iut.__file__).with_name("services.py"))
GEO = load_profiles()["geo"]
LAN = load_profiles()["lan"]
NOTHING = Attachment("namespace", ())
CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
SYN, RST, PSH_ACK, ACK = 2, 4, 24, 16
MIRROR = """
import os, sys
print("warming up"); print("ready", flush=True)
while True:
    packet = os.read({fd}, 2000)
    if len(packet) > 200:
        print("too long for me", file=sys.stderr)
        sys.exit(3)
    os.write({fd}, packet[:12] + packet[16:20] + packet[12:16] + packet[20:])
"""

TAP_MIRROR = """
import os
print("ready", flush=True)
while True:
    frame = os.read({fd}, 2000)
    if frame[12:14] == bytes([8, 0]):
        ethernet = frame[6:12] + frame[:6] + frame[12:14]
        os.write({fd}, ethernet + frame[14:26] + frame[30:34] + frame[26:30] + frame[34:])
"""


def linux(sysctls: Mapping[str, str] | None = None) -> Attachment:
    return Attachment("namespace", ["{python}", "-IS", SERVICES], sysctls=sysctls or {})


def script(text: str, ready: str | None = "ready", timeout: float = 5.0) -> Attachment:
    return Attachment("tun", ["{python}", "-IS", "-c", text], ready=ready, ready_timeout=timeout)


def pings() -> Any:
    lane = KernelLane(GEO, NOTHING)
    address = lane.begin()
    sent = lane.port.now()
    lane.port.send(ping(address, 1))
    answer = lane.port.receive(sent + 5)
    captured = [(packet.time, packet.point, packet.outgoing) for packet in lane.end()]
    lane.close()
    return {"took": answer and answer[0] - sent, "captured": captured, "address": address}


def handshake(lane: KernelLane, address: str, port: int) -> tuple[Tcp, Tcp]:
    """Open a connection; the SYN-ACK and a segment to copy further ones from."""
    syn = Tcp(
        src=address,
        dst=lane.iut_address,
        sport=5000 + port,
        dport=port,
        seq=1000,
        ack=0,
        flags=SYN,
        window=65535,
        payload=b"",
        mss=1460,
        sack_permitted=True,
    )
    lane.port.send(build(syn))
    answer = lane.port.receive(lane.port.now() + 5)
    assert answer is not None
    synack = dissect(answer[1])
    base = replace(syn, seq=1001, ack=(synack.seq + 1) % 2**32, flags=ACK, mss=None)
    base = replace(base, sack_permitted=False)
    lane.port.send(build(base))
    return synack, base


def services() -> Any:
    lane = KernelLane(GEO, linux())
    address = lane.begin()
    synack, base = handshake(lane, address, 7)
    lane.port.send(build(replace(base, flags=PSH_ACK, payload=b"hello")))
    echoed = b""
    while not echoed and (arrival := lane.port.receive(lane.port.now() + 5)):
        echoed = dissect(arrival[1]).payload
    lane.port.send(build(replace(base, seq=base.seq + 5, flags=RST)))
    _, chargen = handshake(lane, address, 19)
    stream: dict[int, bytes] = {}
    deadline = lane.port.now() + 2
    while (arrival := lane.port.receive(deadline)) is not None:
        segment = dissect(arrival[1])
        stream[segment.seq - chargen.ack] = segment.payload
    lane.port.send(build(replace(chargen, flags=RST)))
    lane.port.receive(lane.port.now() + 1)
    captured = lane.end()
    alive = lane.iut_alive()
    lane.close()
    return {
        "synack": {"mss": synack.mss, "sack": synack.sack_permitted, "flags": synack.flags},
        "echoed": echoed.decode(),
        "stream": b"".join(stream[at] for at in sorted(stream))[:300].hex(),
        "offsets": sorted(stream)[:3],
        "largest": max(len(packet.data) for packet in captured),
        "bad checksums": sum(not dissect(packet.data).checksum_ok for packet in captured),
        "both points": [
            sum(packet.point == point and packet.outgoing for packet in captured)
            for point in ("iut", "peer")
        ],
        "in order": captured == sorted(captured, key=lambda packet: packet.time),
        "alive": alive,
    }


def sysctl() -> Any:
    lane = KernelLane(GEO, linux({"net.ipv4.tcp_sack": "0"}))
    synack, _ = handshake(lane, lane.begin(), 7)
    lane.close()
    return synack.sack_permitted


def queue() -> Any:
    lane = KernelLane(GEO, NOTHING)
    address = lane.begin()
    for _ in range(80):
        lane.port.send(datagram(address, 1500))
    deadline = lane.port.now() + 2
    while lane.port.receive(deadline):
        pass
    captured = [packet for packet in lane.end() if not packet.outgoing and packet.data[9] == 17]
    arrived = [packet.time for packet in captured if packet.point == "iut"]
    lane.close()
    return {"sent": sum(p.point == "peer" for p in captured), "arrived": arrived}


def former_case() -> Any:
    lane = KernelLane(GEO, NOTHING)
    lane.port.send(ping(lane.begin(), 1))
    lane.end()
    second = lane.begin()
    late = lane.port.receive(lane.port.now() + 2)
    captured = lane.end()
    lane.close()
    return {"late": late is not None, "captured": len(captured), "address": second}


def side_by_side() -> Any:
    fast, slow = KernelLane(LAN, NOTHING), KernelLane(GEO, NOTHING)
    times = []
    for lane in (fast, slow):
        address = lane.begin()
        sent = lane.port.now()
        lane.port.send(ping(address, 1))
        answer = lane.port.receive(sent + 3)
        times.append(answer and answer[0] - sent)
    fast.close()
    slow.close()
    return times


def tun() -> Any:
    lane = KernelLane(GEO, script(MIRROR))
    address = lane.begin()
    packet = ping(address, 1)
    lane.port.send(packet)
    answer = lane.port.receive(lane.port.now() + 3)
    before = lane.iut_alive()
    lane.port.send(datagram(address, 300))
    lane.port.receive(lane.port.now() + 1)
    after = lane.iut_alive()
    points = {packet.point for packet in lane.end()}
    lane.close()
    mirrored = answer is not None and answer[1][20:] == packet[20:]
    return {"mirrored": mirrored, "before": before, "after": after, "points": sorted(points)}


def tap() -> Any:
    lane = KernelLane(GEO, Attachment("tap", ["{python}", "-IS", "-c", TAP_MIRROR]))
    address = lane.begin()
    sent = lane.port.now()
    lane.port.send(ping(address, 1))
    answer = lane.port.receive(sent + 3)
    captured = [len(packet.data) for packet in lane.end()]
    lane.close()
    return {"took": answer and answer[0] - sent, "octets": captured}


def overflow() -> Any:
    lane = KernelLane(LAN, NOTHING, capture_frames=16)
    address = lane.begin()
    for _ in range(40):
        lane.port.send(datagram(address, 100))
    try:
        lane.end()
    finally:
        lane.close()


def unready() -> Any:
    KernelLane(LAN, script("import time; time.sleep(1e6)", timeout=3))


def dies_early() -> Any:
    KernelLane(LAN, script("import sys; sys.exit('no licence')"))


def missing_program() -> Any:
    KernelLane(LAN, Attachment("namespace", ["/nowhere/stack"]))


def unknown_sysctl() -> Any:
    KernelLane(LAN, linux({CONGESTION_CONTROL: "nonesuch"}))


def congestion_controls() -> Any:
    chosen = []
    for name in ("vegas", "hybla", "westwood", "bbr"):
        lane = KernelLane(LAN, linux({CONGESTION_CONTROL: name}))
        assert lane.iut_namespace is not None
        with lane.iut_namespace.entered():
            chosen.append(Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip())
        lane.close()
    return chosen


def descriptors() -> Any:
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        KernelLane(LAN, linux()).close()
    return before == sorted(os.listdir("/proc/self/fd"))


SCENARIOS: tuple[Callable[[], Any], ...] = (
    pings,
    services,
    sysctl,
    queue,
    former_case,
    side_by_side,
    tun,
    tap,
    overflow,
    unready,
    dies_early,
    missing_program,
    unknown_sysctl,
    congestion_controls,
    descriptors,
)


if __name__ == "__main__":
    sys.exit(play(SCENARIOS))
