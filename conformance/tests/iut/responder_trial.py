"""Drive a responder over a TUN in a network namespace of its own and print what it did as JSON.

Run as a program: ``python responder_trial.py COMMAND...`` where ``{fd}`` in the command stands for
the TUN's descriptor. The kernel at the other end of the TUN is the well-behaved peer. The exit
status is 77 where no such namespace or TUN can be had.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

IUT = "10.77.0.2"
KERNEL = "10.77.0.1"
STRANGER = "10.77.0.9"  # not an address of the kernel, so that it resets nothing
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, IFF_UP = 0x8914, 0x8916, 0x891C, 0x1
PATTERN = bytes((index ^ index >> 8) & 0xFF for index in range(1 << 16))
MEGABYTE = 1 << 20
NOT_HERE = 77


def enter_own_network() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWUSER | CLONE_NEWNET
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def open_tun() -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"sat_a", IFF_TUN | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, address in ((SIOCSIFADDR, KERNEL), (SIOCSIFNETMASK, "255.255.255.0")):
            packed = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(control, request, struct.pack("16s16s8x", b"sat_a", packed))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", b"sat_a", IFF_UP))
    os.set_inheritable(fd, True)
    return fd


def checksum(data: bytes) -> int:
    words = array.array("H", data + b"\0" * (len(data) % 2))
    words.byteswap()
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def segment(port: int, seq: int, ack: int, flags: int, options: bytes = b"") -> bytes:
    source, destination = socket.inet_aton(STRANGER), socket.inet_aton(IUT)
    offset = (5 + len(options) // 4) << 4
    tcp = struct.pack("!HHIIBBHHH", 40000, port, seq, ack, offset, flags, 65535, 0, 0) + options
    pseudo = source + destination + struct.pack("!BBH", 0, 6, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, source, destination
    )
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + tcp


def option_kinds(options: bytes) -> list[int]:
    kinds, at = [], 0
    while at < len(options) and options[at] != 0:
        kinds.append(options[at])
        at += 1 if options[at] == 1 else options[at + 1]
    return kinds


def raw_handshake() -> dict[str, Any]:
    """A SYN offering everything, its answer, then a reset."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)) as raw:
        raw.bind(("sat_a", 0x0800))
        offer = bytes.fromhex("020405b40402080a000000010000000001030307")
        raw.send(segment(19, 1000, 0, 0x02, offer))
        while select.select([raw], [], [], 3)[0]:
            packet, where = raw.recvfrom(65535)
            if where[2] == socket.PACKET_OUTGOING or packet[9] != 6:
                continue
            tcp = packet[(packet[0] & 15) * 4 :]
            seq, ack, offset, flags = struct.unpack("!IIBB", tcp[4:14])
            raw.send(segment(19, 1001, (seq + 1) & 0xFFFFFFFF, 0x14))
            kinds = option_kinds(tcp[20 : (offset >> 4) * 4])
            return {"flags": flags, "ack": ack, "options": sorted({*kinds} - {1})}
    return {}


def connect(port: int) -> socket.socket:
    return socket.create_connection((IUT, port), timeout=20)


def read(stream: socket.socket, octets: int | None = None) -> bytes:
    """So many octets, or everything until the end."""
    data = bytearray()
    while octets is None or len(data) < octets:
        chunk = stream.recv(65536 if octets is None else min(65536, octets - len(data)))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def reset(stream: socket.socket) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


def echo() -> bool:
    """Everything comes back, also what was still under way when the peer half-closed."""
    sent = os.urandom(MEGABYTE)
    with connect(7) as stream:
        back = bytearray()
        view = memoryview(sent)
        stream.setblocking(False)
        while view:
            readable, writable, _ = select.select([stream], [stream], [], 20)
            if not readable and not writable:
                return False
            if readable:
                back += stream.recv(65536)
            if writable:
                view = view[stream.send(view[:65536]) :]
        stream.setblocking(True)
        stream.settimeout(20)
        stream.shutdown(socket.SHUT_WR)
        return bytes(back) + read(stream) == sent


def discard() -> bool:
    with connect(9) as stream:
        stream.sendall(bytes(MEGABYTE))
        stream.shutdown(socket.SHUT_WR)
        return read(stream) == b""


def patterned(data: bytes) -> bool:
    return data == (PATTERN * (len(data) // len(PATTERN) + 1))[: len(data)]


def chargen(concurrent: int, octets: int) -> bool:
    streams = [connect(19) for _ in range(concurrent)]
    good = all(patterned(read(stream, octets)) for stream in streams)
    for stream in streams:
        reset(stream)
    return good


def chargen_half_close() -> bool:
    """After the peer's FIN the stream ends; what arrived is still the pattern."""
    with connect(19) as stream:
        start = read(stream, 1000)
        stream.shutdown(socket.SHUT_WR)
        return patterned(start + read(stream))


def churn(connections: int) -> bool:
    for number in range(connections):
        stream = connect((7, 9, 19)[number % 3])
        if number % 3 != 2:
            stream.sendall(b"hello")
        if number % 3 != 1 and len(read(stream, 5)) != 5:
            return False
        if number % 2:
            reset(stream)
        else:
            stream.close()
    return True


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_while(pid: int, seconds: float) -> float:
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return cpu_seconds(pid) - before


def stalled(pid: int) -> dict[str, Any]:
    """A reader that stops reading must cost neither processor time nor memory."""
    with connect(19) as stream:
        read(stream, 1000)
        time.sleep(0.3)
        before = resident(pid)
        cpu = cpu_while(pid, 0.5)
        return {"cpu": cpu, "grown": resident(pid) - before}


def start(command: list[str], fd: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [word.replace("{fd}", str(fd)) for word in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[fd],
    )
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], 10)[0]:
        raise TimeoutError("the responder did not become ready")
    line = process.stdout.readline()
    if line != b"ready\n":
        raise RuntimeError(f"the responder said {line!r} and not ready")
    return process


def ended(process: subprocess.Popen[bytes], stop: Callable[[], object]) -> bool:
    stop()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def main(command: list[str]) -> dict[str, Any]:
    try:
        enter_own_network()
        fd = open_tun()
    except OSError as error:
        print(f"no TUN in a network namespace of its own: {error}", file=sys.stderr)
        sys.exit(NOT_HERE)
    process = start(command, fd)
    pid = process.pid
    findings: dict[str, Any] = {
        "handshake": raw_handshake(),
        "idle_cpu": cpu_while(pid, 1.0),
        "echo": echo(),
        "discard": discard(),
        "chargen": chargen(2, MEGABYTE),
        "chargen_half_close": chargen_half_close(),
        "eight_at_once": chargen(8, 200_000),
        "churn": churn(200),
        "idle_cpu_after_churn": cpu_while(pid, 0.5),
        "stalled": stalled(pid),
        "running": process.poll() is None,
    }
    before = resident(pid)
    findings["churn_again"] = churn(400)
    findings["grown_by_churn"] = resident(pid) - before
    assert process.stdin is not None
    findings["ends_with_stdin"] = ended(process, process.stdin.close)
    second = start(command, fd)
    findings["ends_on_sigterm"] = ended(second, lambda: second.send_signal(signal.SIGTERM))
    return findings


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
