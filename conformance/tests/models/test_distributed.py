from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from bentpipe_conformance.models import distributed, tlc
from bentpipe_conformance.models.messages import Outcome
from bentpipe_conformance.models.tool import Tool, ToolProblem

READY = "TLC server at vm is ready (2026-01-01 00:00:00)\n"
COUNT = "55220 states generated, 11921 distinct states found, 0 states left on queue.\n"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "tools.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tlc2/tool/distributed/TLCServer.class", b"")
    return path


def run(jar: Path, output: str, announced: list[str] | None = None) -> Outcome:
    folder = jar.parent
    (folder / "output").write_text(output, encoding="utf-8")
    java = folder / "java"
    java.write_text(
        f"#!/bin/sh\necho \"$@\" >> '{folder}/calls'\ncat '{folder}/output'\n", encoding="utf-8"
    )
    java.chmod(0o755)
    job = tlc.Job(folder / "M.tla", "CHECK_DEADLOCK FALSE\n", (), folder, workers=2, timeout=30.0)
    note = announced.append if announced is not None else lambda _line: None
    return distributed.run(Tool(str(java), jar, folder), job, "127.0.0.1", announce=note)


def test_server_and_workers_started_and_counts_read(jar: Path) -> None:
    announced: list[str] = []
    outcome = run(jar, READY + COUNT, announced)
    assert not outcome.violated and (outcome.generated, outcome.distinct) == (55220, 11921)
    assert announced == ["java -cp tools.jar tlc2.tool.distributed.TLCWorker 127.0.0.1"]
    first = (jar.parent / "calls").read_text(encoding="utf-8").splitlines()[0]
    assert "TLCServer -deadlock" in first


def test_violation_reported(jar: Path) -> None:
    outcome = run(jar, READY + "Error: Invariant Inv is violated.\n" + COUNT)
    assert outcome.violated == "Invariant Inv is violated."


def test_server_that_does_not_finish_is_a_problem(jar: Path) -> None:
    with pytest.raises(ToolProblem, match=r"could not be checked; log"):
        run(jar, READY)


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_jar_without_distributed_mode_refused(jar: Path, content: bytes) -> None:
    jar.write_bytes(content)
    with pytest.raises(ToolProblem, match=r"no distributed mode; name the TLA\+ project's own"):
        run(jar, COUNT)
