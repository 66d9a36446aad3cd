"""What boxes that split connections carry between two veth pairs: ours, and HAProxy beside them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink
from bentpipe_conformance.benchmarks.model import Figure, Report, at_least, below

MEGABITS = 300
MEMORY_MB = 300
CONNECTIONS = 1000
PER_MINUTE = 10_000

STREAM_S = 3.0
OCTETS = 3000
"""Of each connection's request, which comes back."""

ONE_AFTER_ANOTHER = 1000
AT_ONCE = 20

CLIENT, SERVER = "10.91.1.2", "10.91.2.2"
_PORT = 5000
_MTU, _QUEUE, _PREFIX = 1500, 1000, 24
_READY_S, _LIMIT_S = 20.0, 120.0
_PIECE = 1 << 18
_CORE = {0}

_HAPROXY = """\
global
    maxconn 4000
    nbthread 1
defaults
    mode tcp
    timeout connect 30s
    timeout client 3h
    timeout server 3h
listen split
    bind 0.0.0.0:3129 transparent
    option transparent
    source 0.0.0.0 usesrc client
"""


@dataclass(frozen=True, slots=True)
class _Box:
    """A box: what is run before it, it, and whether it says that it is ready."""

    name: str
    before: Sequence[Sequence[str]]
    command: Sequence[str]
    says_ready: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """What was measured of one."""

    megabits: float
    memory_mb: float
    per_minute: float


def boxes(repeat: int) -> Report:
    """Each box after the other, on one core, as often as is said; the best of each is told."""
    if os.geteuid():
        return Report("", skipped="needs root, for network namespaces of its own")
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        for box in _boxes(Path(folder)):
            runs = [_measured(box) for _ in range(repeat)]
            best = _Found(
                max(run.megabits for run in runs),
                min(run.memory_mb for run in runs),
                max(run.per_minute for run in runs),
            )
            figures += _told(box, best)
    return Report(
        "a box on one core between two veth pairs, with the kernel's TCP at both ends: one stream "
        f"of {STREAM_S:g} s; the most memory with {CONNECTIONS} connections at once, each of which "
        f"gets {OCTETS} octets back; {ONE_AFTER_ANOTHER} connections opened and closed, {AT_ONCE} "
        "at a time, by the wall clock",
        tuple(figures),
    )


def _told(box: _Box, found: _Found) -> list[Figure]:
    names = (
        f"{box.name}: Mb/s",
        f"{box.name}: MB with {CONNECTIONS} connections",
        f"{box.name}: connections a minute",
    )
    if not box.name.startswith("pep run --sockets"):
        return [
            Figure(names[0], found.megabits),
            Figure(names[1], found.memory_mb),
            Figure(names[2], found.per_minute),
        ]
    return [
        at_least(names[0], found.megabits, MEGABITS),
        below(names[1], found.memory_mb, MEMORY_MB),
        at_least(names[2], found.per_minute, PER_MINUTE),
    ]


def _boxes(folder: Path) -> Iterator[_Box]:
    ours = [sys.executable, "-m", "bentpipe_conformance.cli.main", "pep", "run", "--lan", "client"]
    ours += ["--satellite", "server", "--log-level", "warning", "--connections", "4000"]
    yield _Box("pep run --sockets", (), [*ours, "--sockets"], says_ready=True)
    yield _Box("pep run", (), [*ours, "--buffer", "131072"], says_ready=True)
    program = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        return
    config = folder / "haproxy.cfg"
    config.write_text(_HAPROXY, encoding="ascii")
    rules = Path(__file__).resolve().parent.parent / "iuts" / "pep-haproxy" / "rules.nft"
    setup = [
        ["ip", "rule", "add", "fwmark", "1", "lookup", "100"],
        ["ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", "100"],
        ["nft", "-f", str(rules)],
    ]
    yield _Box("HAProxy", setup, [program, "-db", "-f", str(config)], says_ready=False)


def _measured(box: _Box) -> _Found:
    """All three figures of one box.

    Raises:
        BedError: it does not start, or does not carry what it is given.
    """
    with contextlib.ExitStack() as held:
        client, middle, server = (held.enter_context(NetworkNamespace()) for _ in range(3))
        _join(client, middle, "client", "10.91.1")
        _join(server, middle, "server", "10.91.2")
        routes = {"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.rp_filter": "2"}
        middle.set_sysctls({**routes, "net.ipv4.conf.client.rp_filter": "0"})
        held.enter_context(_driver(server, "serve"))
        with middle.entered():
            for words in box.before:
                subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
            process = held.enter_context(
                subprocess.Popen(
                    box.command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            held.callback(process.kill)
            os.sched_setaffinity(process.pid, _CORE)
            _await_ready(box, process)
        stream = _asked(client, "stream")
        _asked(client, "many")
        memory = _peak_mb(process.pid)
        turns = _asked(client, "turns")
    return _Found(stream, memory, turns)


def _join(end: NetworkNamespace, middle: NetworkNamespace, name: str, network: str) -> None:
    """A veth pair between an end and the box, with addresses and routes."""
    with end.entered(), Netlink() as netlink:
        netlink.add_veth("box", name, middle.fd, _MTU, _QUEUE)
        netlink.set_link("lo")
        netlink.set_link("box")
        netlink.add_address("box", f"{network}.2", _PREFIX)
    with middle.entered(), Netlink() as netlink:
        netlink.set_link("lo")
        netlink.set_link(name)
        netlink.add_address(name, f"{network}.1", _PREFIX)
    with end.entered(), Netlink() as netlink:
        netlink.add_route("0.0.0.0", 0, "box", f"{network}.1")


def _await_ready(box: _Box, process: subprocess.Popen[str]) -> None:
    if box.says_ready:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise BedError(f"{box.name} does not start")
        return
    until = time.monotonic() + _READY_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", 3129), 1.0).close()
            return
        time.sleep(0.05)
    raise BedError(f"{box.name} does not start")


def _peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


# -- what runs at the ends ------------------------------------------------------------------------


@contextlib.contextmanager
def _driver(space: NetworkNamespace, role: str) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "bentpipe_conformance.benchmarks.boxes", role]
    with space.entered():
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
    with process:
        try:
            if role == "serve":
                assert process.stdout is not None
                process.stdout.readline()
            yield process
        finally:
            process.kill()


def _asked(space: NetworkNamespace, role: str) -> float:
    """What one of the programs at the client has found.

    Raises:
        BedError: it has failed.
    """
    with _driver(space, role) as process:
        told, _ = process.communicate(timeout=_LIMIT_S)
    if process.returncode:
        raise BedError(f"the benchmark's part {role!r} has failed")
    return float(json.loads(told))


def _stream() -> float:
    """Mb/s of one stream; each octet is counted by the server."""
    piece = bytes(_PIECE)
    with socket.create_connection((SERVER, _PORT + 1), 10.0) as one:
        began, octets = time.monotonic(), 0
        while time.monotonic() < began + STREAM_S:
            one.sendall(piece)
            octets += len(piece)
        one.shutdown(socket.SHUT_WR)
        if int(one.makefile().readline()) != octets:
            sys.exit("not all octets have arrived")
        return 8e-6 * octets / (time.monotonic() - began)


async def _echoed(hold: asyncio.Barrier | None) -> None:
    reader, writer = await asyncio.open_connection(SERVER, _PORT)
    data = os.urandom(OCTETS)
    writer.write(data)
    if await reader.readexactly(OCTETS) != data:
        sys.exit("other octets have come back")
    if hold is not None:
        await hold.wait()
    writer.write_eof()
    await reader.read()
    writer.close()


async def _many() -> float:
    """All connections at once; 1 when all have got their octets back."""
    hold = asyncio.Barrier(CONNECTIONS)
    await asyncio.gather(*(_echoed(hold) for _ in range(CONNECTIONS)))
    return 1.0


async def _turns() -> float:
    """Connections a minute, some at a time."""
    left = iter(range(ONE_AFTER_ANOTHER))

    async def some() -> None:
        for _ in left:
            await _echoed(None)

    began = time.monotonic()
    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return 60 * ONE_AFTER_ANOTHER / (time.monotonic() - began)


async def _serve() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_PIECE):
                writer.write(data)
            writer.close()

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        octets = 0
        while data := await reader.read(_PIECE):
            octets += len(data)
        writer.write(f"{octets}\n".encode())
        writer.close()

    first = await asyncio.start_server(echo, SERVER, _PORT, backlog=2 * CONNECTIONS)
    second = await asyncio.start_server(count, SERVER, _PORT + 1, limit=4 * _PIECE)
    print("ready", flush=True)
    async with first, second:
        await asyncio.gather(first.serve_forever(), second.serve_forever())


def _play(role: str) -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if role == "serve":
        asyncio.run(_serve())
    elif role == "stream":
        print(json.dumps(_stream()))
    else:
        print(json.dumps(asyncio.run(_many() if role == "many" else _turns())))


if __name__ == "__main__":
    _play(sys.argv[1])
