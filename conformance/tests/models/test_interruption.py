"""Ctrl-C and SIGTERM end the model checker with the command, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from bentpipe_conformance.models.manifest import format_manifest, model_root

READY = "TLC server at vm is ready (2026-01-01 00:00:00)"
LONG = 60  # seconds; no test waits for it


HEED_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""What runs in the background of a shell is born deaf to SIGINT."""

MAIN = "from bentpipe_conformance.cli.main import main; main()"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "tla" / "toy"
    folder.mkdir(parents=True)
    pom = (model_root() / "pom.xml").read_text(encoding="utf-8")
    (folder.parent / "pom.xml").write_text(pom, encoding="utf-8")
    (folder / "M.tla").write_text("---- MODULE M ----\n====\n", encoding="utf-8")
    (folder / "M.cfg").write_text("SPECIFICATION Spec\nINVARIANT Inv\n", encoding="utf-8")
    runs = [
        {"name": name, "kind": "check", "tier": tier, "module": "M.tla", "config": "M.cfg"}
        for name, tier in (("one", "pr"), ("two", "pr"), ("large", "nightly"))
    ]
    data = {"title": "t", "ladder": {}, "invariants": ["Inv"], "properties": {"Inv": []},
            "runs": runs}  # fmt: skip
    (folder / "manifest.json").write_text(format_manifest(data), encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "tools.jar", "w") as archive:
        archive.writestr("tlc2/tool/distributed/TLCServer.class", b"")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        f"#!/bin/sh\n[ \"$1\" = -version ] && exit 0\necho $$ >> '{tmp_path}/pids'\n"
        f"echo '{READY}'\nexec sleep {LONG}\n",
        encoding="utf-8",
    )
    java.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    return folder.parent


def started(models: Path, *arguments: str) -> subprocess.Popen[str]:
    place = models.parent
    return subprocess.Popen(
        [sys.executable, "-c", f"{HEED_INTERRUPTS}; {MAIN}",
         "model", "toy", "--models", str(models), "--workers", "2", *arguments],
        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TLA2TOOLS_JAR": str(place / "tools.jar"), "JAVA_HOME": str(place),
             "TMPDIR": str(place / "scratch")},
    )  # fmt: skip


def running(place: Path, wanted: int) -> list[int]:
    """The stand-ins for Java, once as many as wanted have started."""
    listed = place / "pids"
    limit = time.monotonic() + LONG / 2
    while time.monotonic() < limit:
        pids = listed.read_text(encoding="utf-8").split() if listed.exists() else []
        if len(pids) >= wanted:
            return [int(pid) for pid in pids]
        time.sleep(0.05)
    raise AssertionError(f"fewer than {wanted} processes have started")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def survivors(pids: list[int]) -> list[int]:
    """Those that still live once the kernel has had time to end the ones it has to."""
    limit = time.monotonic() + LONG / 4
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < limit:
        time.sleep(0.05)
    return left


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("arguments", "processes"),
    [
        ((), 2),
        (("--tier", "nightly"), 1),
        (("--only", "one", "--distributed", "127.0.0.1"), 3),
        (("--only", "large", "--distributed", "127.0.0.1"), 3),
    ],
)
def test_running_check_ended_by_a_signal(
    models: Path, arguments: tuple[str, ...], processes: int, number: signal.Signals
) -> None:
    place = models.parent
    before = (models / "toy" / "manifest.json").read_bytes()
    command = started(models, "--update-manifest", *arguments)
    try:
        pids = running(place, processes)
        command.send_signal(number)
        output, errors = command.communicate(timeout=LONG / 2)
    finally:
        command.kill()
        command.wait()
    assert command.returncode == 130
    assert errors.splitlines()[-1] == "bentpipe: interrupted; nothing is kept or recorded."
    assert "Traceback" not in output + errors
    assert survivors(pids) == []
    assert list((place / "scratch").iterdir()) == []
    assert (models / "toy" / "manifest.json").read_bytes() == before


def test_finished_runs_are_kept_when_the_others_are_interrupted(models: Path) -> None:
    place = models.parent
    java = place / "bin" / "java"
    text = java.read_text(encoding="utf-8")
    done = "@!@!@STARTMSG 2193:0 @!@!@\\nfine\\n@!@!@ENDMSG 2193 @!@!@\\n"
    first = f"mkdir '{place}/first' 2>/dev/null && printf '{done}' && exit 0\n"
    java.write_text(text.replace("exec sleep", f"{first}exec sleep"), encoding="utf-8")
    command = started(models, "--workers", "1", "--out", str(place / "out"))
    try:
        pids = running(place, 2)
        command.send_signal(signal.SIGINT)
        _, errors = command.communicate(timeout=LONG / 2)
    finally:
        command.kill()
        command.wait()
    assert command.returncode == 130
    kept = place / "out" / "result.json"
    assert errors.splitlines()[-1] == (
        "bentpipe: interrupted after 1 finished runs; nothing is recorded; what they show is in "
        f"{kept}."
    )
    assert [row["run"] for row in json.loads(kept.read_text(encoding="utf-8"))] == ["one"]
    assert survivors(pids) == []


@pytest.mark.parametrize(
    ("arguments", "processes"), [((), 2), (("--only", "one", "--distributed", "127.0.0.1"), 3)]
)
def test_java_ends_with_a_check_that_is_killed(
    models: Path, arguments: tuple[str, ...], processes: int
) -> None:
    command = started(models, *arguments)
    try:
        pids = running(models.parent, processes)
    finally:
        command.kill()
        command.communicate()
    assert survivors(pids) == []
