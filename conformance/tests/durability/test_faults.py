"""Whatever fails while a certification writes, resuming gives the same verdicts, or says why not.

Every system call that writes, of every process, fails in every way once: half of a write, a full
disk, a read error of the disk, the end of the process; and the power goes off between any two. By
default a few of them; ``BENTPIPE_FAULTS=all`` tries all (``make durability``).
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from . import harness

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing"),
]
ALL = os.environ.get("BENTPIPE_FAULTS", "") == "all"
PARTS = 10 if ALL else 1
KINDS = ("short", "enospc", "eio", "crash")


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return harness.compile_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture(scope="session")
def undisturbed(
    shim: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, str], int, Path]:
    """Verdicts, number of calls and journal of a run in which nothing fails."""
    root = tmp_path_factory.mktemp("undisturbed")
    done, count = harness.faulty(root, shim, "none", 0, root / "journal")
    assert done.returncode == 3, done.stderr
    assert not harness.left_over(root)
    return harness.verdicts(root / "run"), count, root


def chosen(count: int, part: int, *places: int) -> list[int]:
    """The numbers from 0 that are this part's; else those at these places of as many as kinds."""
    if ALL:
        return list(range(part, count, PARTS))
    return [count * (2 * place + 1) // (2 * len(KINDS)) for place in places]


def goes_on(root: Path, verdicts: dict[str, str], what: str) -> None:
    """Resume, and compare; what cannot be resumed says so in one sentence."""
    done = harness.run(root, "--resume")
    assert "Traceback" not in done.stderr, what
    if (root / "run" / "manifest.sha256").exists():
        assert done.returncode == 3, (what, done.stderr)
        assert harness.verdicts(root / "run") == verdicts, what
    else:
        assert done.returncode in (2, 3), what
        assert done.stderr.splitlines()[-1].startswith("bentpipe: "), (what, done.stderr)
        print(f"{what}: {done.stderr.splitlines()[-1]}")
    assert not harness.left_over(root), what


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_call_that_writes_fails_and_the_run_is_resumed(
    kind: str, part: int, shim: Path, undisturbed: tuple[dict[str, str], int, Path], tmp_path: Path
) -> None:
    verdicts, count, old = undisturbed
    numbers = list(range(1, count + 1))
    if kind == "short":
        numbers = [call[0] for call in harness.calls(old / "journal") if call[1] == harness.WRITE]
    for index in chosen(len(numbers), part, KINDS.index(kind)):
        root = tmp_path / f"{kind}-{numbers[index]}"
        done, _ = harness.faulty(root, shim, kind, numbers[index])
        what = f"{kind} at call {numbers[index]} of {count}"
        assert done.returncode in (3, 2, -9), (what, done.stderr)
        assert "Traceback" not in done.stderr, (what, done.stderr)
        patience = time.monotonic() + 10
        while harness.left_over(root) and time.monotonic() < patience:
            time.sleep(0.05)
        assert not harness.left_over(root), what
        goes_on(root, verdicts, what)
        shutil.rmtree(root)


@pytest.mark.parametrize("part", range(PARTS))
def test_power_cut_and_the_run_is_resumed(
    part: int, undisturbed: tuple[dict[str, str], int, Path], tmp_path: Path
) -> None:
    verdicts, _, old = undisturbed
    states = harness.power_cuts(old / "journal", old / "run")
    assert len(states) > 20
    for index in chosen(len(states), part, 1, 3):
        root = tmp_path / f"cut-{index}"
        harness.put_down(states[index], old / "run", root / "run")
        goes_on(root, verdicts, f"power cut {index} of {len(states)}")
        shutil.rmtree(root)
