"""Repeated certifications: their agreement is reported, and so is what flips."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bentpipe_conformance.run.stability import differences, main
from click.testing import CliRunner

PATIENCE_S = 30.0

REPEATED = (
    sys.executable, "-c",
    "import signal; from bentpipe_conformance.run import stability\n"
    "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"  # nohup's descendants ignore it
    "stability.main()",
    "rwbp-reference", "--only", "acknowledgment/one-hole", "--load",
)  # fmt: skip


def test_verdict_that_flips_is_a_difference_even_where_the_machine_is_loaded() -> None:
    runs = [{"SNR-A": "pass", "SNR-B": "pass"}, {"SNR-A": "fail", "SNR-B": "inconclusive"}]
    assert differences(runs) == {"SNR-A": ["pass", "fail"], "SNR-B": ["pass", "inconclusive"]}
    assert differences(runs, only_flips=True) == {"SNR-A": ["pass", "fail"]}


def test_suite_with_a_profile_of_its_own_is_certified_again_without_naming_it() -> None:
    arguments = ["rwbp-reference", "--runs", "2", "--only", "acknowledgment/one-hole", "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"runs": 2, "load": False, "different": {}}


def test_profile_of_another_suite_is_refused_in_one_sentence() -> None:
    result = CliRunner().invoke(main, ["rwbp-reference", "--profile", "rfc"])
    assert result.exit_code == 2
    assert "the suite rwbp has no profile 'rfc'; it has rwbp1" in result.stderr


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_loaded_certifications_ended_by_a_signal_leave_no_load(
    tmp_path: Path, number: signal.Signals
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.Popen(
        REPEATED, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert run.stderr is not None
        assert run.stderr.readline().startswith(b"run 1 of 20")
        run.send_signal(number)
        told, _ = run.communicate(timeout=PATIENCE_S)  # what it has started holds its pipes
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == {signal.SIGTERM: 130, signal.SIGKILL: -signal.SIGKILL}[number]
    if number == signal.SIGTERM:
        assert not list(tmp_path.iterdir())
        assert b"certifications of rwbp-reference under load: 0 of " in told
