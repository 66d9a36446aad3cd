"""Implementations that do not start, lie, die, hang or babble: one sentence each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.bed, pytest.mark.usefixtures("virtual_kernel")]
CASES = "snr/fast-retransmit/established-third-duplicate-*"

STACK = """
import os, sys, time
mode, fd = sys.argv[1], int(sys.argv[2])
os.set_blocking(fd, True)
if mode == "mute": time.sleep(10000)
if mode == "quits": sys.exit("configuration missing")
print("ready", flush=True)
sys.path[:0] = {path!r}
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, Tcp, build, dissect
while True:
    packet = os.read(fd, 65536)
    if mode == "garbage": os.write(fd, b"E" + bytes(range(60)))
    if mode == "mirror": os.write(fd, packet)
    if mode == "resets":
        t = dissect(packet)
        answer = Tcp(t.dst, t.src, t.dport, t.sport, 0, t.seq + t.length, RST | ACK, 0, b"")
        os.write(fd, build(answer))
    while mode == "flood": os.write(fd, packet)
"""

DYING_SERVICES = """
import os, sys, threading
sys.path[:0] = {path!r}
from bentpipe_conformance.iut import services
served = 0
accept = services.Services._accept
def counted(self, *arguments):
    global served
    served += 1
    if served > 4: os.kill(os.getpid(), 11)
    return accept(self, *arguments)
services.Services._accept = counted
sys.exit(services.main())
"""


def describe(folder: Path, mode: str, command: list[str], kind: str = "tun") -> Path:
    path = folder / f"{mode}.toml"
    path.write_text(
        f'id = "{mode}"\nname = "{mode}"\n[attach]\nkind = "{kind}"\n'
        f"[start]\ncommand = {json.dumps(command)}\n"
        '[isolation]\nfiles = ["{packages}"]\n'
    )
    return path


def certify(description: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = ["certify", str(description), "--only", CASES, "--jobs", "1", "--out", str(out), *more]
    return subprocess.run(
        [sys.executable, "-m", "bentpipe_conformance.cli.main", *words],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "complaint"),
    [
        ("absent", "/no/such/stack: No such file or directory"),
        pytest.param("mute", "did not print 'ready'", marks=pytest.mark.slow),
        ("quits", "configuration missing"),
        ("silent", "no SYN-ACK"),
        pytest.param("garbage", "no SYN-ACK", marks=pytest.mark.slow),
        pytest.param("mirror", "no SYN-ACK", marks=pytest.mark.slow),
        ("resets", "refused the connection"),
    ],
)
def test_implementation_that_cannot_be_judged_gets_one_sentence(
    mode: str, complaint: str, tmp_path: Path
) -> None:
    stack = tmp_path / "stack.py"
    stack.write_text(STACK.format(path=sys.path))
    command = ["{python}", str(stack), mode, "{fd}"]
    if mode == "absent":
        command = ["/no/such/stack", "{fd}"]
    done = certify(describe(tmp_path, mode, command), tmp_path / "run")
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"bentpipe: {mode} cannot be judged: ")
    assert complaint in last
    assert "Traceback" not in done.stderr


def test_implementation_that_floods_is_given_up(tmp_path: Path) -> None:
    stack = tmp_path / "stack.py"
    stack.write_text(STACK.format(path=sys.path))
    description = describe(tmp_path, "flood", ["{python}", str(stack), "flood", "{fd}"])
    done = certify(description, tmp_path / "run", "--case-timeout", "4")
    assert done.returncode == 3
    assert "hung" in done.stderr


def test_implementation_that_dies_mid_run_fails_that_case_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    dying = tmp_path / "dying.py"
    dying.write_text(DYING_SERVICES.format(path=sys.path))
    description = describe(tmp_path, "dying", ["{python}", str(dying)], kind="namespace")
    done = certify(description, tmp_path / "run", "--only", "snr/receiver/*")
    assert done.returncode == 1, done.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    verdicts = [case["verdict"] for case in result["cases"]]
    assert "fail" in verdicts
    assert "pass" in verdicts
    reasons = " ".join(case["reason"] for case in result["cases"])
    assert "the implementation ended during the case" in reasons
