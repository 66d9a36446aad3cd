"""What the STP reference carries over UDP on loopback: two processes, and many connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median

from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.io.addresses import Place
from bentpipe_reference.stp.io.programs import DEFAULT_PORT, Program, dial, serve_place
from bentpipe_reference.stp.io.streams import open_connection, start_server

from bentpipe_conformance.benchmarks.model import (
    Figure,
    Report,
    at_least,
    below,
    cpu_seconds,
    peak_octets,
)

PACKET_OCTETS = 1400
MEGABITS = 400
FIRST_OCTETS, OCTETS = 10_000_000, 100_000_000
"""Carried before the memory is looked at first, and altogether."""
LIMIT_S = 600
"""Wall-clock seconds after which either process ends."""
CONNECTIONS = 1000
CONNECTIONS_S = 1.0
"""CPU seconds for all of them, both ends."""
CREDIT = 2048
KEPT_PER_SD = 3000
"""Octets that one SD of 1,400 octets takes in Python while it is in flight, and some to spare."""
GROWTH_MB = CREDIT * KEPT_PER_SD / 1e6
"""The memory may grow by one window after the first octets, however many follow."""

CONFIG = StpConfig(max_sd=PACKET_OCTETS, credit=CREDIT)


@dataclass(frozen=True, slots=True)
class _Side:
    """What one process reports of itself."""

    cpu: float
    wall: float
    growth_mb: float


def sockets(repeat: int) -> Report:
    """One stream between two processes."""
    runs = [_carry() for _ in range(repeat)]
    senders = [sending.cpu for sending, _ in runs]
    receivers = [receiving.cpu for _, receiving in runs]
    megabits = 8 * OCTETS / 1e6
    each = [megabits / (sending.cpu + receiving.cpu) for sending, receiving in runs]
    walls = [megabits / sending.wall for sending, _ in runs]
    growth = max(side.growth_mb for run in runs for side in run)
    return Report(
        f"{OCTETS / 1e6:g} MB over UDP on loopback in packets of {PACKET_OCTETS} octets of user "
        "data, a sending and a receiving process on the selector loop; the rate is what one core "
        "does that runs both, from the CPU time of the whole processes but their start",
        (
            at_least("Mb/s on one core, sender and receiver together", median(each), MEGABITS),
            Figure("CPU seconds of the sending process", median(senders)),
            Figure("CPU seconds of the receiving process", median(receivers)),
            Figure("Mb/s by the wall clock, on this machine as busy as it was", median(walls)),
            below(
                f"MB by which a process grows after the first {FIRST_OCTETS / 1e6:g} MB",
                growth,
                GROWTH_MB,
            ),
        ),
    )


def connections(repeat: int) -> Report:
    """A thousand connections at once."""
    seconds = median(cpu_seconds(lambda: asyncio.run(_thousand())) for _ in range(repeat))
    return Report(
        f"{CONNECTIONS} connections open at once in one process, both ends, over UDP on loopback "
        "by asyncio: each sends 3,000 octets, gets them back and closes; CPU time",
        (
            below("CPU seconds", seconds, CONNECTIONS_S),
            Figure("milliseconds per connection, both ends", 1e3 * seconds / CONNECTIONS),
        ),
    )


async def _thousand() -> None:
    there = 0
    all_there = asyncio.Event()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal there
        there += 1
        if there == CONNECTIONS:
            all_there.set()
        await all_there.wait()
        writer.write(await reader.read())
        writer.close()

    async def call(port: int, number: int) -> None:
        reader, writer = await open_connection("127.0.0.1", port, 7)
        data = random.Random(number).randbytes(3000)
        writer.write(data)
        writer.write_eof()
        if await reader.read() != data:
            raise RuntimeError(f"connection {number} returned other octets than it was sent")
        writer.close()
        await writer.wait_closed()

    config = StpConfig()
    async with await start_server(echo, "127.0.0.1", 0, 7, config=config) as server:
        await asyncio.gather(*(call(server.address[1], n) for n in range(CONNECTIONS)))


def _carry() -> tuple[_Side, _Side]:
    """One stream between two new processes; their reports, the sender's first."""
    words = (sys.executable, "-m", "bentpipe_conformance.benchmarks.stp_sockets")
    with subprocess.Popen([*words, "receive"], stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        port = receiver.stdout.readline().strip()
        try:
            told = subprocess.run(
                [*words, "send", port], stdout=subprocess.PIPE, text=True, check=True
            ).stdout
        except BaseException:
            receiver.kill()
            raise
        return _Side(**json.loads(told)), _Side(**json.loads(receiver.stdout.read()))


def _side(role: str, port: str) -> None:
    """One of the two processes."""
    if role == "receive":
        node = serve_place(Place("127.0.0.1"), CONFIG)
        program = Program.called(node, DEFAULT_PORT)
        program.download_to(os.open(os.devnull, os.O_WRONLY), lambda: None)
        print(node.place.udp_port, flush=True)
    else:
        program = dial(Place("127.0.0.1", int(port)), CONFIG, DEFAULT_PORT)
        program.upload_from(_file(OCTETS))
    peaks = []

    def look() -> None:
        """Note the peak of the memory once the window has been full."""
        if program.octets >= FIRST_OCTETS:
            peaks.append(_peak_mb())
        else:
            program.node.loop.call_at(program.node.loop.clock() + 0.01, look)

    look()
    cpu, wall = time.process_time(), time.monotonic()
    result = program.run()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    if not result.success or result.octets != OCTETS:
        sys.exit(result.sentence)
    print(json.dumps({"cpu": cpu, "wall": wall, "growth_mb": _peak_mb() - peaks[0]}))


def _peak_mb() -> float:
    return peak_octets() / 2**20


def _file(octets: int) -> int:
    """A descriptor of a file of random octets: zeros would make checksums cheap."""
    descriptor = os.memfd_create("octets")
    piece = random.Random(1).randbytes(1_000_000)
    for _ in range(octets // len(piece)):
        os.write(descriptor, piece)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


if __name__ == "__main__":
    # Nothing is left behind when the benchmark is killed.
    signal.alarm(LIMIT_S)
    with contextlib.suppress(KeyboardInterrupt):
        _side(sys.argv[1], (sys.argv[2:] or ["0"])[0])
