"""Recorded events on disk, and what checks them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.manifest import model_root
from bentpipe_conformance.models.rejection import Setup
from bentpipe_conformance.models.tool import cache_directory, find_tool, read_pin
from bentpipe_conformance.models.traces import Trace, read_trace


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """The model checker, if it is here."""
    pin = read_pin(model_root() / "pom.xml")
    if shutil.which("java") is None or not (cache_directory() / pin.file_name).is_file():
        pytest.skip("needs Java and the model checker: bentpipe model all")
    return Setup(find_tool(model_root()), tmp_path, timeout=240.0)


def written(path: Path, events: list[dict[str, Any]]) -> Trace:
    """The events as a trace in a file."""
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return read_trace(path)
