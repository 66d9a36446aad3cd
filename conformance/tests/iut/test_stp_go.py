"""The STP responder in Go: two of its processes over UDP on loopback."""

from __future__ import annotations

import hashlib
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bentpipe_conformance.iut.build import build

LOOPBACK = "127.0.0.1"
ECHO, DISCARD, CHARGEN, CLOSED = 7, 9, 19, 99
OCTETS = 2_000_000
PATIENCE = 60.0
LAST_TIMERS, A_WHILE = 1.0, 2.0


def pattern(octets: int) -> bytes:
    """The stream of section 11 of STP/1, from its beginning."""
    return bytes((index ^ index >> 8) & 0xFF for index in range(octets))


@pytest.fixture(scope="module")
def program() -> Path:
    """The responder; a machine without Go fails here with the sentence that says how to get it."""
    return build("stp-go", lambda line: None) / "stp-go"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


@contextmanager
def running(program: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A responder that listens, and its UDP port."""
    port = free_port()
    with subprocess.Popen(
        [program, "--listen", f"{LOOPBACK}:{port}", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process, port
        finally:
            process.kill()


def told(process: subprocess.Popen[str], line: str) -> dict[str, str]:
    """What a responder says after a line on its standard input."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    words = process.stdout.readline().split()
    assert words[0] == "open"
    facts = dict(word.split("=", 1) for word in words if "=" in word)
    return {"outcome": words[2], **facts}


@pytest.mark.parametrize("service", [ECHO, DISCARD, CHARGEN])
def test_two_processes_on_loopback_carry_a_stream_intact(program: Path, service: int) -> None:
    with running(program) as (_, port), running(program) as (caller, _):
        said = told(caller, f"open {LOOPBACK} {port} {service} {OCTETS}")
    assert said["outcome"] == "ok"
    assert said["sha256"] == hashlib.sha256(pattern(OCTETS)).hexdigest()


def test_call_to_a_closed_service_or_with_nonsense_is_reported(program: Path) -> None:
    with running(program) as (server, port), running(program) as (caller, _):
        said = told(caller, f"open {LOOPBACK} {port} {CLOSED}\nopen {LOOPBACK} {port} {ECHO}")
        assert said["outcome"] == "ok"  # the first line is no service, and harms nothing
        assert server.poll() is None


def test_owner_gone_ends_the_process(program: Path) -> None:
    with running(program) as (process, _):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "--listen ADDRESS:UDPPORT is required"),
        (["--listen", "nowhere"], 'needs ADDRESS:UDPPORT, not "nowhere"'),
        (["--listen", "127.0.0.1:0", "--max-sd", "511"], "--max-sd must be 512 to 65400, not 511"),
        (["--listen", "0.0.0.0", "--ip", "253"], "needs one own IP address"),
        (["--no-such"], "flag provided but not defined: -no-such"),
        (["--listen", "127.0.0.1", "--ip", "118"], "--ip can be 253 or 254, not 118"),
    ],
)
def test_bad_option_is_one_sentence_and_a_failure(
    program: Path, options: list[str], sentence: str
) -> None:
    result = subprocess.run(
        [program, *options], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert result.returncode == 1
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_idle_responder_sleeps(program: Path) -> None:
    """In virtual time a process that wakes up again and again stops the clock."""
    with running(program) as (server, port), running(program) as (caller, _):
        assert told(caller, f"open {LOOPBACK} {port} {ECHO}")["outcome"] == "ok"
        silent(server, LAST_TIMERS)
        before = switches(server.pid)
        silent(server, A_WHILE)
        assert switches(server.pid) - before <= 6


def silent(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait for the output that does not come."""
    readable, _, _ = select.select([process.stdout], [], [], seconds)
    assert not readable


def switches(pid: int) -> int:
    """How often the threads of a process have gone to sleep."""
    return sum(
        int(line.split()[1])
        for task in Path(f"/proc/{pid}/task").iterdir()
        for line in (task / "status").read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches")
    )
