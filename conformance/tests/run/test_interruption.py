"""A certification that is interrupted, or begun afresh, leaves nothing and takes nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.evidence.bundle import Bundle
from click.testing import CliRunner

pytestmark = pytest.mark.long

ONLY = ("--only", "snr/timestamps/*", "--link", "lan", "--seed", "3")


def certify(out: Path, *more: str) -> list[str]:
    words = ("certify", "reference", *ONLY, "--out", str(out), "--jobs", "2", *more)
    return [sys.executable, "-m", "bentpipe_conformance.cli.main", *words]


def verdicts(out: Path) -> dict[str, str]:
    told = json.loads((out / "result.json").read_text())
    return {row["id"]: row["verdict"] for row in told["cases"]}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    done = subprocess.run(certify(out), capture_output=True, check=False)
    assert done.returncode == 3
    return verdicts(out)


def heed_signals() -> None:
    """What runs in the background of a shell, or under nohup, is born deaf to some."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "cases"),
    [(signal.SIGTERM, 1), (signal.SIGTERM, 12), (signal.SIGHUP, 1), (signal.SIGINT, 12),
     (signal.SIGKILL, 1), (signal.SIGKILL, 12)],
)  # fmt: skip
def test_run_ended_by_a_signal_leaves_nothing_and_is_resumed(
    undisturbed: dict[str, str], tmp_path: Path, number: signal.Signals, cases: int
) -> None:
    scratch, out = tmp_path / "tmp", tmp_path / "run"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    run = subprocess.Popen(
        certify(out), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=heed_signals,
    )  # fmt: skip
    while run.poll() is None:
        if len(list(out.glob("cases/*/case.json"))) >= cases:
            break
        time.sleep(0.002)
    run.send_signal(number)
    _, said = run.communicate(timeout=60)
    if number == signal.SIGKILL:
        assert run.returncode == -signal.SIGKILL
    else:
        assert run.returncode == 130
        assert said.splitlines()[-1].startswith("bentpipe: interrupted; finished cases are in ")
    patience = time.monotonic() + 20
    while any(scratch.iterdir()) and time.monotonic() < patience:
        time.sleep(0.05)  # what supervises the workers takes their folders away
    assert not list(scratch.iterdir())
    done = subprocess.run(
        certify(out, "--resume"), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert verdicts(out) == undisturbed
    assert not list(scratch.iterdir())


def fresh(out: Path) -> tuple[int, str]:
    only = ("--only", "snr/timestamps/timestamp-clock-wraps", "--link", "lan")
    done = CliRunner().invoke(
        bentpipe, ["certify", "reference", *only, "--out", str(out), "--fresh"]
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_fresh_replaces_a_bundle(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert fresh(out)[0] == 3
    first = Bundle.open(out).run.started
    assert fresh(out)[0] == 3
    assert Bundle.open(out).run.started > first


def test_fresh_leaves_alone_what_is_not_of_a_bundle(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert fresh(out)[0] == 3
    thesis = out / "cases" / "thesis.tex"
    thesis.write_text("years of work")
    before = sorted(out.rglob("*"))
    status, said = fresh(out)
    assert status == 2
    assert "thesis.tex is no part of a bundle" in said
    assert sorted(out.rglob("*")) == before
    thesis.unlink()
    link = tmp_path / "link"
    link.symlink_to(out)
    assert fresh(link)[0] == 2
    assert (out / "result.json").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.json").write_text('{"my": "own"}')
    assert fresh(other)[0] == 2
    assert (other / "run.json").exists()


def test_fresh_leaves_a_running_certification_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert fresh(out)[0] == 3
    opened = Bundle.open(out)
    holder = Bundle.resume(out, opened.run)
    status, said = fresh(out)
    assert status == 2
    assert "is in use by another bentpipe" in said
    assert (out / "run.json").exists()
    holder.close()
