"""A certification killed at a random moment leaves nothing, and is resumed with the same verdicts.

``BENTPIPE_KILLS=200`` kills so many in the simulation and in the bed (``make durability``).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bentpipe_conformance.bed import kernel as kernels
from bentpipe_conformance.bed.errors import BedError

from . import harness

pytestmark = pytest.mark.long
KILLS = int(os.environ.get("BENTPIPE_KILLS", "4"))
PARTS = 10 if KILLS >= 100 else 1
LONGEST = {"reference": 2.5, "linux": 7.0}
"""Seconds within which the run is killed; a quiet machine takes about so long."""


def bed_of(iut: str) -> None:
    if iut == "reference":
        return
    try:
        found = kernels.find_virtual()
    except BedError as error:
        pytest.skip(str(error))
    if found is None:
        pytest.skip("no kernel with a virtual clock; build one with `bentpipe bed build`")


def processes_of(root: Path) -> list[str]:
    """Processes that name a directory, in their command or their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            told = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if str(root).encode() in told and state != "Z":
            found.append(folder.name)
    return found


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("iut", ["reference", pytest.param("linux", marks=pytest.mark.bed)])
def test_run_killed_at_a_random_moment_leaves_nothing_and_is_resumed(
    iut: str, part: int, tmp_path: Path
) -> None:
    bed_of(iut)
    undisturbed = tmp_path / "undisturbed"
    done = harness.run(undisturbed, iut=iut)
    verdicts = harness.verdicts(undisturbed / "run")
    moments = random.Random(part)
    for number in range(KILLS // PARTS):
        root = tmp_path / str(number)
        (root / "tmp").mkdir(parents=True)
        # A third in the first moments, when scratch folders are made.
        after = moments.uniform(0, 0.8 if number % 3 == 0 else LONGEST[iut])
        process = subprocess.Popen(
            harness.command(root / "run", iut=iut), env={**os.environ, "TMPDIR": str(root / "tmp")},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
        process.wait()
        patience = time.monotonic() + 20
        while (processes_of(root) or harness.left_over(root)) and time.monotonic() < patience:
            time.sleep(0.05)
        what = f"killed after {after:.3f} s"
        assert not processes_of(root), what
        assert not harness.left_over(root), what
        assert {path.name for path in root.iterdir()} <= {"run", "tmp"}, what
        done = harness.run(root, "--resume", iut=iut)
        assert "Traceback" not in done.stderr, (what, done.stderr)
        assert harness.verdicts(root / "run") == verdicts, (what, done.stderr)
        assert not harness.left_over(root), what
        shutil.rmtree(root)
