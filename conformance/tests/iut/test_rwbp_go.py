"""The RWBP responder in Go: built, vetted, and its own tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from bentpipe_conformance.iut import build as building
from bentpipe_conformance.iut.build import RECIPES, build

SOURCES = Path(building.__file__).resolve().parent.parent / "iuts" / "rwbp-go"


def test_recipe_builds_the_responder_its_description_starts() -> None:
    """A machine without Go fails here with the sentence that says how to get it."""
    assert os.access(build("rwbp-go", lambda line: None) / "rwbp-go", os.X_OK)


@pytest.mark.parametrize(
    "arguments",
    [["vet", "./..."], pytest.param(["test", "-count=1", "./..."], marks=pytest.mark.slow)],
)
def test_sources_vetted_and_tested_by_go_are_clean(arguments: list[str]) -> None:
    RECIPES["rwbp-go"].toolchain()
    result = subprocess.run(
        [building._go(), *arguments],
        cwd=SOURCES,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout + result.stderr
