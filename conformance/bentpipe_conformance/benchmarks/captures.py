"""The cost of judging a capture: packets each second, growth and memory.

The captures are made here, of transfers of the reference over a satellite link with losses, in
virtual time. One recorded transfer makes many connections: their ports and times differ.
"""

from __future__ import annotations

import math
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.path import Delivery
from bentpipe_reference.tcp.path import Path as Link
from bentpipe_reference.tcp.wire.codec import emit_packet

from bentpipe_conformance.benchmarks.model import Figure, Report, at_least, below, cpu_seconds
from bentpipe_conformance.evidence.frames import Frame
from bentpipe_conformance.evidence.pcapng import (
    LINKTYPE_RAW,
    Progress,
    stream_capture,
    write_pcapng,
)

SIZES = (10_000, 50_000)
CONNECTION = 5_000
"""Packets of a connection, about."""

LONG = 60_000
"""Packets of a long connection, about."""

MILLION = 1_000_000

TINY = 100
"""Packets whose judging takes hardly longer than the start."""

COMPARED = 5_000
"""Packets that Scapy dissects for comparison."""

LOSS = 0.002
RATE = 10_000
GROWTH = 1.1
"""Largest exponent of packets that still passes for linear."""

KILOBYTES = 1.0
"""Of memory for each packet."""

SNAP = 96
_STARTED_NS = 1_700_000_000 * 10**9
_PORTS = struct.Struct("!HH")


def record(
    packets: int, seed: int = 1, loss: float = LOSS, link: str = "geo", *, receiver: bool = False
) -> list[Frame]:
    """A transfer of the reference, captured at the sender's or the receiver's side of the link.

    Args:
        packets: about how many packets to record.
        link: the link's profile.
        receiver: whether to capture at the receiver's side.
        seed: what decides which packets are lost.
        loss: share of the packets that are lost, in either direction.
    """
    path = Link(load_profiles()[link], seed)
    chosen = random.Random(seed)
    for way in (path.forward, path.return_):
        way.drops.update(n for n in range(6, packets) if chosen.random() < loss)
    frames: list[Frame] = []

    def watched(
        send: Callable[[Delivery, int], None], outgoing: bool
    ) -> Callable[[Delivery, int], None]:
        def note(delivery: Delivery) -> None:
            octets = emit_packet(delivery.args[0])  # type: ignore[attr-defined]
            time = _STARTED_NS + round(path.simulation.now * 1e9)
            frames.append(
                Frame(len(frames) + 1, time, octets, LINKTYPE_RAW, outgoing=outgoing != receiver)
            )

        def sending(delivery: Delivery, size: int) -> None:
            if outgoing != receiver:
                note(delivery)
                send(delivery, size)
                return

            def arriving() -> None:
                note(delivery)
                delivery()

            send(arriving, size)

        return sending

    path.forward.send = watched(path.forward.send, True)  # type: ignore[method-assign, assignment]
    path.return_.send = watched(path.return_.send, False)  # type: ignore[method-assign, assignment]
    config = EndpointConfig()
    flow = path.flow(packets * 6 // 10 * config.mss, config)
    flow.start()
    path.simulation.run_while(lambda: flow.is_pending() and len(frames) < packets, 1e6)
    return frames


def write_capture(
    path: Path, packets: int, each: int = CONNECTION, snap: int | None = SNAP,
    link: str = "geo", *, receiver: bool = False,
) -> int:  # fmt: skip
    """Write a capture of about so many packets; return how many.

    Args:
        path: the file.
        packets: packets in all.
        each: packets of a connection.
        snap: octets of a packet that are kept; None for all.
        link: profile of the link.
        receiver: whether to capture at the receiver's side.
    """
    recorded = record(min(each, packets), link=link, receiver=receiver)
    with path.open("wb") as file:
        write_pcapng(file, _copies(recorded, packets, snap), name="bench", base_ns=_STARTED_NS)
    return max(1, packets // len(recorded)) * len(recorded)


def _copies(recorded: list[Frame], packets: int, snap: int | None) -> Iterator[Frame]:
    shift = 0
    for nth in range(max(1, packets // len(recorded))):
        for frame in recorded:
            data = bytearray(frame.data)
            ports = list(_PORTS.unpack_from(data, 20))
            # The sender called: its port is the higher one.
            ports[ports.index(max(ports))] = 10_000 + nth % 50_000
            _PORTS.pack_into(data, 20, *ports)
            kept = bytes(data[:snap])
            time = (frame.time_ns or 0) + shift
            yield replace(frame, data=kept, time_ns=time, original_length=len(data))
        shift += (recorded[-1].time_ns or 0) - _STARTED_NS + 10**9


def analyze(repeat: int) -> Report:
    """Analyze a small and a larger capture, and a long connection at either side."""
    del repeat
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as folder:
        path = Path(folder) / "capture.pcapng"
        base = _judged_nothing()
        write_capture(path, TINY)
        begin, _ = _judged(path)
        costs = []
        for size in SIZES:
            packets = write_capture(path, size)
            costs.append((packets, _judged(path)[0] - begin))
        figures: list[Figure] = []
        compared: list[float] = []
        for side in ("sender", "receiver"):
            packets = write_capture(path, LONG, LONG, receiver=side == "receiver")
            took, most = _judged(path)
            figures += _of_one_connection(side, packets, took, most - base)
            compared.append(packets / (took - begin) * _scapys(path) / COMPARED)
    (few, quick), (many, slow) = costs
    exponent = math.log(slow / quick) / math.log(many / few)
    return Report(
        f"bentpipe analyze of one connection of {LONG} packets over geo, captured at either side, "
        "in one process: CPU time with start-up, and memory beyond a command that judges nothing; "
        f"growth between {few} and {many} packets in connections of {CONNECTION}, and the rate "
        "beside that at which Scapy dissects the packets, both without start-up",
        (
            *figures,
            below("exponent (1 is linear)", exponent, GROWTH),
            *(Figure(f"times the rate of Scapy's dissection at the {side}", value)
              for side, value in zip(("sender", "receiver"), compared, strict=True)),
        ),
    )  # fmt: skip


def analyze_million(repeat: int) -> Report:
    """Analyze one connection of a million packets at either side."""
    del repeat
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as folder:
        path, base = Path(folder) / "capture.pcapng", _judged_nothing()
        for side in ("sender", "receiver"):
            packets = write_capture(path, MILLION, MILLION, receiver=side == "receiver")
            took, most = _judged(path)
            figures += _of_one_connection(side, packets, took, most - base)
    return Report(
        "bentpipe analyze of one connection over geo, captured at either side, in one process: "
        "CPU time with start-up, and memory beyond a command that judges nothing",
        tuple(figures),
    )


def _of_one_connection(side: str, packets: int, took: float, memory: int) -> tuple[Figure, Figure]:
    return (
        at_least(f"packets/s per core, {packets} at the {side}", packets / took, RATE),
        below(f"kB of memory per packet at the {side}", memory / packets / 1000, KILOBYTES),
    )


def _scapys(path: Path) -> float:
    """CPU seconds in which Scapy dissects the first packets of a capture."""
    from scapy.layers.inet import IP

    octets = [frame.data for frame in islice(stream_capture(path, Progress()), COMPARED)]
    return cpu_seconds(lambda: [IP(packet) for packet in octets])


def _judged(path: Path) -> tuple[float, int]:
    """CPU seconds and the most octets of memory that judging a capture takes in a process."""
    return _measured("analyze", str(path), "--jobs", "1", "--json")


def _judged_nothing() -> int:
    return _measured("show", "SNR-REC-001")[1]


def _measured(*command: str) -> tuple[float, int]:
    script = (
        "import sys, time; from bentpipe_conformance.cli.main import main; "
        "from bentpipe_conformance.benchmarks.model import peak_octets; "
        f"sys.argv = ['bentpipe', *{list(command)!r}]\n"
        "try: main()\nexcept SystemExit as done: status = done.code\n"
        "print(time.process_time(), peak_octets(), file=sys.stderr)\n"
        "sys.exit(status in (2, 3) and status)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"bentpipe {' '.join(command)}: {done.stderr.strip()}")
    seconds, octets = done.stderr.split()[-2:]
    return float(seconds), int(octets)
