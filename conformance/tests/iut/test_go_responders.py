"""The responders in Go: built, vetted, and their own tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from bentpipe_conformance.iut import build as building
from bentpipe_conformance.iut.build import RECIPES, build

SOURCES = Path(building.__file__).resolve().parent.parent / "iuts"
RESPONDERS = ("rwbp-go", "stp-go")


@pytest.mark.parametrize("responder", RESPONDERS)
def test_recipe_builds_the_responder_its_description_starts(responder: str) -> None:
    """A machine without Go fails here with the sentence that says how to get it."""
    assert os.access(build(responder, lambda line: None) / responder, os.X_OK)


@pytest.mark.parametrize("responder", RESPONDERS)
@pytest.mark.parametrize(
    "arguments",
    [["vet", "./..."], pytest.param(["test", "-count=1", "./..."], marks=pytest.mark.slow)],
)
def test_sources_vetted_and_tested_by_go_are_clean(responder: str, arguments: list[str]) -> None:
    RECIPES[responder].toolchain()
    result = subprocess.run(
        [building._go(), *arguments],
        cwd=SOURCES / responder,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout + result.stderr
