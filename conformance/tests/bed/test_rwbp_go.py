"""The endpoint of RWBP/1 in Go, certified over a satellite link: its author read the text alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.cli.main import bentpipe
from click.testing import CliRunner

SAMPLE = (
    "rwbp/acknowledgment/ten-holes", "rwbp/closing/own-fin-lost",
    "rwbp/error-control/exchange-of-figure-3", "rwbp/negotiation/void-option-first",
)  # fmt: skip
"""Cases that take a moment, of the receiver, the sender, the end and the beginning."""


def certified(out: Path, *words: str) -> dict[str, str]:
    """The verdicts of the cases, by name."""
    given = ["certify", "rwbp-go", "--link", "geo", "--jobs", "2", "--out", str(out), *words]
    result = CliRunner().invoke(bentpipe, given, catch_exceptions=False)
    assert (out / "result.json").is_file(), result.output
    stored = json.loads((out / "result.json").read_text())
    return {case["id"]: case["verdict"] for case in stored["cases"]}


@pytest.mark.bed
@pytest.mark.long
def test_sample_of_the_cases_passes(virtual_kernel: Kernel, tmp_path: Path) -> None:
    only = [word for case in SAMPLE for word in ("--only", case)]
    assert certified(tmp_path / "run", *only) == dict.fromkeys(SAMPLE, "pass")


@pytest.mark.bed
@pytest.mark.slow
def test_all_cases_pass(virtual_kernel: Kernel, tmp_path: Path) -> None:
    others = {name: verdict for name, verdict in certified(tmp_path / "run").items()
              if verdict != "pass"}  # fmt: skip
    # Its statement names round robin.
    assert others == {"rwbp/scheduler/packets-of-unequal-size": "unsupported"}
