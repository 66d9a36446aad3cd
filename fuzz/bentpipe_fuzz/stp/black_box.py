"""Any implementation of STP over UDP as a black box: it must survive and keep serving."""

from __future__ import annotations

import contextlib
import random
import select
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.packets import Begin, Bgrej, End, Endak, Packet
from bentpipe_reference.stp.sequence import CSN_MASK
from bentpipe_reference.stp.states import State

from bentpipe_fuzz.stp.forging import any_cookie, damaged, invented, mutated
from bentpipe_fuzz.stp.users import stream

ECHO, CHARGEN = 7, 19
_OCTETS = 30_000
_ROUND_S = 15.0
"""For one echo of the honest peer, over loopback."""

_READY_S = 10.0
_ATTACK_EVERY_S = 0.002
_KEPT = 300
_GROWTH_KB = 64 << 10
_ADDRESS = ("target", 1)


class BlackBoxError(Exception):
    """The implementation cannot be attacked; one sentence says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is attacked.

    Attributes:
        command: starts it, with ``{address}`` and ``{port}``; empty if it runs already.
        address: its IPv4 address and UDP port; a free port for a command.
    """

    command: tuple[str, ...]
    address: tuple[str, int]

    @classmethod
    def of(cls, told: str) -> Target:
        """From the command line: a command with ``{port}``, or ``ADDRESS:PORT``.

        Raises:
            ValueError: it is neither.
        """
        if "{port}" in told:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
                free.bind(("127.0.0.1", 0))
                address: tuple[str, int] = free.getsockname()
            words = (
                word.replace("{address}", address[0]).replace("{port}", str(address[1]))
                for word in shlex.split(told)
            )
            return cls(tuple(words), address)
        host, _, port = told.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"{told!r} is neither a command with {{port}} nor ADDRESS:PORT")
        return cls((), (host, int(port)))


@dataclass(slots=True)
class BlackBoxResult:
    """The result of an attack.

    Attributes:
        rounds: echoes that the honest peer got back whole.
        forged: hostile packets sent.
        grown_kb: memory (RSS) that the process took since its first echo; None if unknown.
        violation: what went wrong; empty if nothing did.
    """

    rounds: int = 0
    forged: int = 0
    grown_kb: int | None = None
    violation: str = ""

    @property
    def sentence(self) -> str:
        """The result for people."""
        grown = "" if self.grown_kb is None else f", {self.grown_kb} kB more memory"
        return self.violation or f"{self.rounds} echoes amid {self.forged} hostile packets{grown}"


class _Peer:
    """A reference endpoint on a UDP socket."""

    def __init__(self, address: tuple[str, int], seed: int) -> None:
        self.endpoint = StpEndpoint(StpConfig(), seed)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(address)
        self.socket.setblocking(False)
        self.sent: list[bytes] = []

    def pump(self, now: float) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    self.endpoint.receive(self.socket.recv(65536), _ADDRESS, now)
                except ConnectionRefusedError:
                    continue
        for _, octets in self.endpoint.transmit(now):
            self.send(octets)
            self.sent = [*self.sent[1 - _KEPT :], octets]
        self.endpoint.take_events()

    def send(self, octets: bytes) -> None:
        with contextlib.suppress(OSError):
            self.socket.send(octets)


class _Attack:
    """One attack: an honest peer with its echo, a hostile one with connections of its own."""

    def __init__(self, address: tuple[str, int], seed: int) -> None:
        self.numbers = random.Random(f"black box {seed}")
        self.honest, self.hostile = _Peer(address, seed), _Peer(address, seed + 1)
        self.forged = 0
        self._victim: Connection | None = None
        self._next = 0.0

    def close(self) -> None:
        self.honest.socket.close()
        self.hostile.socket.close()

    def echo(self, alive: subprocess.Popen[bytes] | None) -> str:
        """One echo amid hostile packets; what went wrong, or an empty string."""
        connection = self.honest.endpoint.connect(_ADDRESS, ECHO)
        began = time.monotonic()
        written = read = 0
        while not connection.succeeded:
            now = time.monotonic()
            if alive is not None and alive.poll() is not None:
                return f"STP-SEC-003: the implementation ended with status {alive.returncode}"
            if connection.failure is not None:
                return f"STP-SEC-003: the honest peer was told {connection.failure!r}"
            if now - began > _ROUND_S:
                return f"STP-SEC-003: the honest peer had {read} octets back after {_ROUND_S:g} s"
            if written < _OCTETS:
                written += connection.write(stream(1, written, min(5000, _OCTETS - written)))
                if written == _OCTETS:
                    connection.close()
            self._attack(now, connection)
            self.honest.pump(now)
            self.hostile.pump(now)
            data = connection.read()
            if data != stream(1, read, len(data)):
                return "STP-DT-012: the honest peer was sent other data than its own"
            read += len(data)
            sockets = [self.honest.socket, self.hostile.socket]
            select.select(sockets, [], [], _ATTACK_EVERY_S)
        if read != _OCTETS:
            return f"STP-CC-005: success with {read} of {_OCTETS} octets"
        return ""

    def _attack(self, now: float, honest: Connection) -> None:
        if now < self._next:
            return
        self._next = now + _ATTACK_EVERY_S
        numbers = self.numbers
        victim = self._victim
        if victim is None or victim.is_over or numbers.random() < 0.003:
            self._abandon(now)
            victim = self._victim = self.hostile.endpoint.connect(
                _ADDRESS, numbers.choice([ECHO, ECHO, CHARGEN])
            )
            victim.write(bytes(numbers.randrange(3000)))
        victim.read(numbers.choice([None, 0, 100]))
        for _ in range(numbers.choice([1, 2, 8])):
            way = numbers.random()
            if way < 0.25 and honest.state is State.READY:
                packet = self._wrong(honest)
                if packet is not None:
                    self._send(self.honest, encode(packet))
            elif way < 0.5 and self.hostile.sent:
                self._send(self.hostile, numbers.choice(self.hostile.sent))
            elif self.hostile.sent:
                self._send(self.hostile, self._forged(victim))

    def _abandon(self, now: float) -> None:
        if self._victim is not None and self.numbers.random() < 0.9:
            self._victim.abort(now)
        elif self._victim is not None:
            # The peer falls silent: nothing answers for this connection any more.
            self.hostile.endpoint.connections.pop(self._victim.identity, None)
            self.hostile.endpoint._alarms.pop(self._victim, None)
            self._victim.share.give_back()

    def _send(self, peer: _Peer, octets: bytes) -> None:
        self.forged += 1
        peer.send(octets)

    def _forged(self, victim: Connection) -> bytes:
        numbers = self.numbers
        packet: Packet
        if numbers.random() < 0.5:
            try:
                packet = decode(numbers.choice(self.hostile.sent))
            except MalformedPacket:
                return b""
            for _ in range(numbers.randint(1, 3)):
                packet = mutated(packet, numbers)
        else:
            receiver, sender = victim.receiver, victim.outgoing.sender
            theirs = 0 if receiver is None else receiver.vr_r
            packet = invented(
                numbers, (victim.identity.local_port, victim.identity.peer_port),
                victim.tag, (victim.csn, victim.peer_csn or 0), sender.vt_a, theirs,
                None if receiver is None else receiver.vr_h, cookie=any_cookie(numbers),
            )  # fmt: skip
        octets = encode(packet)
        return damaged(octets, numbers) if numbers.random() < 0.1 else octets

    def _wrong(self, honest: Connection) -> Packet | None:
        """For the honest peer's own connection, from its own address, guessed wrong."""
        numbers, sender, receiver = self.numbers, honest.outgoing.sender, honest.receiver
        assert receiver is not None
        tag = honest.tag ^ numbers.randrange(1, 1 << 16)
        wrong = honest.csn ^ numbers.randrange(1, 1 << 32)
        other = (honest.peer_csn or 0) ^ numbers.randrange(1, 1 << 32)
        packet = invented(
            numbers, (honest.identity.local_port, honest.identity.peer_port), tag,
            (wrong & CSN_MASK, other & CSN_MASK), sender.vt_a, receiver.vr_r,
        )  # fmt: skip
        if isinstance(packet, Begin | Bgrej | End | Endak) and numbers.random() < 0.5:
            return None
        right = honest.csn, honest.peer_csn
        return None if getattr(packet, "csn", None) in right else packet


@contextlib.contextmanager
def _running(target: Target) -> Iterator[subprocess.Popen[bytes] | None]:
    if not target.command:
        yield None
        return
    try:
        process = subprocess.Popen(target.command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    except OSError as error:
        raise BlackBoxError(f"{target.command[0]} cannot be started: {error.strerror}.") from None
    try:
        _await(target, process)
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


def _await(target: Target, process: subprocess.Popen[bytes]) -> None:
    """Until it answers a BEGIN, or anything at all."""
    begin = encode(Begin(1, 1, 1, 0, 0, 4, 1))
    deadline = time.monotonic() + _READY_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(target.address)
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise BlackBoxError(f"{target.command[0]} ended with {process.returncode}.")
            with contextlib.suppress(OSError):
                probe.send(begin)
                if select.select([probe], [], [], 0.1)[0] and probe.recv(2048):
                    return
    raise BlackBoxError(f"{target.command[0]} does not answer at port {target.address[1]}.")


def _memory_kb(process: subprocess.Popen[bytes] | None) -> int | None:
    if process is None:
        return None
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return None


def attack(
    target: Target, seed: int, *, seconds: float, rounds: int | None = None
) -> BlackBoxResult:
    """Attack for ``seconds``, or for ``rounds`` echoes of the honest peer.

    Raises:
        BlackBoxError: it does not start or answer.
    """
    result = BlackBoxResult()
    with _running(target) as process:
        attacker = _Attack(target.address, seed)
        ends = time.monotonic() + seconds
        first: int | None = None
        try:
            while time.monotonic() < ends and (rounds is None or result.rounds < rounds):
                result.violation = attacker.echo(process)
                if result.violation:
                    break
                result.rounds += 1
                first = _memory_kb(process) if first is None else first
        finally:
            attacker.close()
        result.forged = attacker.forged
        last = _memory_kb(process)
        if first is not None and last is not None:
            result.grown_kb = last - first
            if not result.violation and result.grown_kb > _GROWTH_KB:
                result.violation = f"STP-SEC-003: {result.grown_kb} kB more memory are in use"
    return result
