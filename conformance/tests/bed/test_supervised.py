"""What is supervised ends with its owner."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bentpipe_conformance.bed.commands import run_followed, tail
from bentpipe_conformance.bed.supervised import Supervised

FAMILY = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); {then}"
SLEEPER = "import time; time.sleep(600)"
OWNER = """
import sys
from bentpipe_conformance.bed.supervised import Supervised
program = Supervised([sys.executable, "-c", {family!r}], env={{}}, cwd="/", console={console!r},
                     timeout=600, isolate={isolate}, keep=[{keep!r}], inherited=[{pipe}])
program.wait()
"""


def supervised(code: str, tmp_path: Path, timeout: float = 60.0) -> Supervised:
    return Supervised(
        [sys.executable, "-c", code],
        env={},
        cwd="/",
        console=tmp_path / "console",
        timeout=timeout,
    )


def test_program_exits_its_status_is_told(tmp_path: Path) -> None:
    program = supervised("import sys; print('said'); sys.exit(7)", tmp_path)
    ending = program.wait()
    program.close()
    assert (ending.ending, ending.status) == ("exited", 7)
    assert (tmp_path / "console").read_text(encoding="utf-8") == "said\n"


def test_program_is_killed_its_signal_is_told(tmp_path: Path) -> None:
    program = supervised("import os; os.kill(os.getpid(), 9)", tmp_path)
    assert program.wait().status == -signal.SIGKILL
    program.close()


def test_program_missing_the_console_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run_followed(["/nowhere/program"], log=log) == 127
    assert "cannot start /nowhere/program" in tail(log)


def test_isolated_program_aborts_it_ends(tmp_path: Path) -> None:
    """As User-Mode Linux does; the first process of a namespace would survive its own signals."""
    program = Supervised(
        [sys.executable, "-c", "import os\nwhile True: os.kill(os.getpid(), 6)"], env={}, cwd="/",
        console=tmp_path / "console", timeout=20, isolate=True,
    )  # fmt: skip
    ending = program.wait()
    program.close()
    assert (ending.ending, ending.status) in (("exited", -6), ("exited", 128 + 6))


def test_time_is_over_program_is_killed(tmp_path: Path) -> None:
    program = supervised(SLEEPER, tmp_path, timeout=0.2)
    assert program.wait().ending == "timeout"
    program.close()


def test_program_leaves_children_they_are_killed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    family = FAMILY.format(child=SLEEPER, then="sys.exit(0)").replace(
        "])", "], close_fds=False, start_new_session=True)"
    )
    program = Supervised(
        [sys.executable, "-c", family],
        env={},
        cwd="/",
        console=tmp_path / "console",
        timeout=60,
        inherited=[writing],
    )
    os.close(writing)
    assert os.read(reading, 1) == b""
    assert program.wait().status == 0
    program.close()
    os.close(reading)


@pytest.mark.parametrize("isolate", [False, True])
def test_owner_is_killed_everything_below_ends(tmp_path: Path, isolate: bool) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    reading, writing = os.pipe()
    family = FAMILY.format(child=SLEEPER, then=SLEEPER).replace(
        "])", "], close_fds=False, start_new_session=True); print('up', flush=True)"
    )
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            OWNER.format(
                family=family,
                console=str(tmp_path / "console"),
                isolate=isolate,
                keep=str(keep),
                pipe=writing,
            ),
        ],
        pass_fds=[writing],
    )
    os.close(writing)
    console = tmp_path / "console"
    while not (console.exists() and console.read_text(encoding="utf-8")):
        assert owner.poll() is None
    owner.kill()
    owner.wait()
    # Every process of the family holds the pipe, so its end means that all are gone.
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert not keep.exists()


def test_owner_is_killed_once_the_program_has_ended_nothing_is_left(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    owner = (
        "import sys, time\n"
        "from bentpipe_conformance.bed.supervised import Supervised\n"
        "program = Supervised([sys.executable, '-c', ''], env={}, cwd='/', "
        f"console={str(tmp_path / 'console')!r}, timeout=60, keep=[{str(keep)!r}])\n"
        "assert program.wait().status == 0\n"
        "print('ended', flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ended\n"
        assert keep.exists()
        process.kill()
    deadline = time.monotonic() + 20
    while keep.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not keep.exists()


def test_owner_closes_what_has_ended_and_keeps_what_it_wants(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    program = Supervised(
        [sys.executable, "-c", ""], env={}, cwd="/", console=tmp_path / "console", timeout=60,
        keep=[str(keep)],
    )  # fmt: skip
    program.wait()
    assert not program.running()
    program.close()
    assert keep.exists()


def test_output_is_followed_line_by_line(tmp_path: Path) -> None:
    lines: list[str] = []
    code = "print('one', flush=True); print('two')"
    status = run_followed([sys.executable, "-c", code], log=tmp_path / "log", follow=lines.append)
    assert (status, lines) == (0, ["one", "two"])
