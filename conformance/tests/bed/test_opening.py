"""Making an implementation open a connection: a line on its standard input, or a command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.process import IutProcess, run_beside

LISTENER = """
import pathlib, sys
print("ready", flush=True)
pathlib.Path(sys.argv[1]).write_text(sys.stdin.readline())
"""


def test_line_reaches_the_standard_input_of_the_program(tmp_path: Path) -> None:
    target = tmp_path / "heard"
    process = IutProcess([sys.executable, "-c", LISTENER, str(target)], ready="ready", listens=True)
    try:
        process.tell("open 10.78.0.1 7253 9 2000")
        process._process.wait(timeout=30)
    finally:
        process.close()
    assert target.read_text() == "open 10.78.0.1 7253 9 2000\n"


def test_line_for_a_program_that_has_ended_names_the_mend() -> None:
    process = IutProcess([sys.executable, "-c", "print('ready')"], ready="ready", listens=True)
    try:
        process._process.wait(timeout=30)
        with pytest.raises(BedError, match=r"takes no line .* correct \[open\]"):
            process.tell("open")
    finally:
        process.close()


def test_command_that_succeeds_is_silent() -> None:
    run_beside([sys.executable, "-c", "pass"])


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["/nowhere/at-all"], "does not start"),
        ([sys.executable, "-c", "import sys; sys.exit('no route')"], "no route"),
    ],
)
def test_command_that_fails_says_why(command: list[str], sentence: str) -> None:
    with pytest.raises(BedError, match=sentence):
        run_beside(command)
