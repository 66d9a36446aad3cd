"""A certification killed at a random moment leaves nothing, and is resumed with the same verdicts.

Either its first process is killed, by any signal that kills, or any process below it: a worker, a
supervisor, a guest, but nothing in a guest: an implementation that is killed has crashed.
``BENTPIPE_KILLS=100`` kills so many in the simulation and in the bed each (``make durability``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from bentpipe_conformance.bed import kernel as kernels
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.supervisor import descendants

from . import harness

pytestmark = pytest.mark.long
KILLS = int(os.environ.get("BENTPIPE_KILLS", "2"))
PARTS = 10 if KILLS >= 100 else 1
PLAN = ("snr/timestamps/*",)
"""Cases of each run: so many that most moments are between two of them."""
FEWEST_CASES = 15
PATIENCE = 20.0
SIGNALS = (signal.SIGKILL,) * 5 + (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(autouse=True)
def adopts() -> Iterator[None]:
    """Whatever loses its parent becomes a child of this process."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def mortal() -> None:
    """Heed signals that whoever started the tests ignores, as nohup does."""
    for number in SIGNALS:
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)


class Scene:
    """A directory that holds all that a certification may write to: bundle, scratch, cache."""

    def __init__(self, root: Path, iut: str) -> None:
        self.root, self.iut = root, iut
        (root / "tmp").mkdir(parents=True)
        (root / "cache" / "bentpipe").mkdir(parents=True)
        real = kernels.cache_directory() / "kernel"
        (root / "cache" / "bentpipe" / "kernel").symlink_to(real)
        self.environment = {
            **os.environ, "TMPDIR": str(root / "tmp"), "XDG_CACHE_HOME": str(root / "cache"),
        }  # fmt: skip

    def start(self, *more: str) -> subprocess.Popen[str]:
        words = harness.command(self.root / "run", *more, iut=self.iut, only=PLAN, jobs=2)
        return subprocess.Popen(
            words, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, preexec_fn=mortal,
        )  # fmt: skip

    def whole(self, *more: str) -> str:
        """Run it to its end; what it says in standard error."""
        process = self.start(*more)
        _, said = process.communicate(timeout=300)
        assert "Traceback" not in said, said
        return said

    def finished(self) -> int:
        """Cases that have a record."""
        return len(list(self.root.glob("run/cases/*/case.json")))

    def left(self) -> list[str]:
        """What a run that is over has left outside its bundle: processes and files."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        allowed = {self.root / name for name in ("run", "tmp", "cache")}
        found = [f"process {number}" for number in descendants()]
        found += [str(path) for path in self.root.iterdir() if path not in allowed]
        found += harness.left_over(self.root)
        cache = self.root / "cache" / "bentpipe"
        found += [str(path) for path in cache.iterdir() if path.name not in ("kernel", "locks")]
        locks = list((cache / "locks").iterdir()) if (cache / "locks").exists() else []
        return found + [str(path) for path in locks if path.stat().st_size]

    def nothing_left(self) -> list[str]:
        """What is left once everything had time to end."""
        patience = time.monotonic() + PATIENCE
        while (left := self.left()) and time.monotonic() < patience:
            time.sleep(0.05)
        return left


def kill(process: subprocess.Popen[str], draw: random.Random) -> str:
    """Kill one process of a run, and wait for its first one; what was killed."""
    below = [number for number in descendants() if not in_a_guest(number)]
    if below and draw.random() < 0.3:
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(below), signal.SIGKILL)
        process.communicate(timeout=300)
        return "SIGKILL to a process below"
    number = draw.choice(SIGNALS)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in said, said
    return signal.Signals(number).name


def in_a_guest(number: int) -> bool:
    """Whether a process is one of a guest's: of the implementation, perhaps, which then crashed."""
    with contextlib.suppress(OSError):
        parent = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1]
        names = [Path(f"/proc/{one}/comm").read_text().strip() for one in (number, parent)]
        return names == ["linux", "linux"]
    return False


def bed_of(iut: str) -> None:
    if iut == "reference":
        return
    try:
        found = kernels.find_virtual()
    except BedError as error:
        pytest.skip(str(error))
    if found is None:
        pytest.skip("no kernel with a virtual clock; build one with `bentpipe bed build`")


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("iut", ["reference", pytest.param("linux", marks=pytest.mark.bed)])
def test_run_killed_at_a_random_moment_leaves_nothing_and_is_resumed(
    iut: str, part: int, tmp_path: Path
) -> None:
    bed_of(iut)
    undisturbed = Scene(tmp_path / "undisturbed", iut)
    started = time.monotonic()
    undisturbed.whole()
    usual = time.monotonic() - started
    verdicts = harness.verdicts(undisturbed.root / "run")
    cases = undisturbed.finished()
    assert cases == sum("/" in name for name in verdicts) > FEWEST_CASES
    assert not undisturbed.nothing_left()
    draw, number, tally = random.Random(part), 0, Counter[str]()
    wanted = KILLS // PARTS if "BENTPIPE_KILLS" in os.environ or iut == "reference" else 1
    while tally.total() < wanted:
        number += 1
        assert number < 10 * KILLS
        scene = Scene(tmp_path / str(number), iut)
        process = scene.start()
        # Some in the first moments, when the plan is written and the bed is made.
        after = draw.uniform(0, usual * (0.3 if number % min(KILLS, 4) == 0 else 1))
        started = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=after)  # it was faster this time: no kill
            usual = time.monotonic() - started
            shutil.rmtree(scene.root)
            continue
        had = scene.finished()
        how = kill(process, draw)
        what = f"{how} after {after:.3f} s, {had} cases finished"
        assert scene.nothing_left() == [], what
        said = scene.whole("--resume")
        assert harness.verdicts(scene.root / "run") == verdicts, (what, said)
        assert scene.nothing_left() == [], what
        among = "among cases" if had < cases else "afterwards"
        stage = among if had else "before the first case"
        tally[f"{how}, {stage}"] += 1
        shutil.rmtree(scene.root)
    print(f"{iut}: {tally.total()} runs killed and resumed, nothing left")
    for how, count in tally.most_common():
        print(f"{count:6} {how}")
