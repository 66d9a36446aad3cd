"""Runs that share a process of the model checker find what runs with their own find."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models import tlc
from bentpipe_conformance.models.manifest import Manifest, Run, load_models, model_root
from bentpipe_conformance.models.serving import Server, Servers
from bentpipe_conformance.models.tool import Tool, Unfinished, find_tool
from bentpipe_conformance.models.verification import Checker, Limits, Result
from bentpipe_conformance.models.watch import Cancelled

from .conftest import install
from .test_tlc import COUNT, DEPTH, DONE, PROGRESS

LIMITS = Limits(timeout=300.0, memory_mb=2048, workers=1)
SMALL_S = 3.0
VERDICT = DONE + DEPTH + COUNT


@pytest.fixture(scope="module")
def tool() -> Tool:
    found = find_tool(model_root())
    if found.server is None:
        pytest.skip("this Java has no compiler")
    return found


def whole(result: Result) -> tuple[str, str, dict[str, Any]]:
    """All that a run found, but for its seconds and where its log is."""
    assert result.outcome is not None
    found = asdict(result.outcome)
    del found["seconds"], found["log"]
    return result.verdict, result.violated, found


def served(tool: Tool, runs: list[tuple[Manifest, Run]], servers: int) -> list[Result]:
    checker = Checker(tool, LIMITS)
    return checker.each(lambda item: checker.check(*item), runs, servers)


def alone(tool: Tool, runs: list[tuple[Manifest, Run]]) -> list[Result]:
    return served(replace(tool, server=None), runs, 2)


def small(kinds: str, model: str = "") -> list[tuple[Manifest, Run]]:
    return [
        (manifest, run)
        for manifest in load_models(model_root()).values()
        for run in manifest.runs
        if run.tier == "pr" and run.kind in kinds.split() and (run.seconds or 0.0) <= SMALL_S
        if model in manifest.name
    ]


def test_one_server_finds_what_separate_processes_find(tool: Tool) -> None:
    runs = [
        min(small(kind), key=lambda item: item[1].seconds or 0.0) for kind in ("check", "mutant")
    ]
    check, mutant = map(whole, alone(tool, runs))
    assert check[0] == mutant[0] == "as expected" and mutant[2]["trace"]
    found = served(tool, [*runs, *runs], 1)  # each after another one
    assert list(map(whole, found)) == [check, mutant, check, mutant]


@pytest.mark.slow
def test_servers_find_what_separate_processes_find_in_every_small_run(tool: Tool) -> None:
    runs = small("check liveness mutant reach limit")[::-1]
    assert len(runs) > 250
    assert list(map(whole, served(tool, runs, 2))) == list(map(whole, alone(tool, runs)))


def test_server_ends_with_its_standard_input(tool: Tool) -> None:
    server = Server(tool, 2048)
    try:
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(timeout=60) == 0
    finally:
        server.close()


# -- a stand-in for Java


@pytest.fixture
def job(tmp_path: Path) -> tlc.Job:
    return tlc.Job(
        tmp_path / "M.tla", "SPECIFICATION Spec\n", (), tmp_path, timeout=20.0, short=True
    )


def stand_in(folder: Path, server: str, *, process: str = "exit 1") -> Tool:
    """A Java whose server and whose model checker do what they are told; both note their number."""
    (folder / "verdict").write_text(VERDICT, encoding="utf-8")
    (folder / "progress").write_text(PROGRESS, encoding="utf-8")
    install(
        folder,
        f"cd '{folder}'\ncase \"$*\" in *TlcServer*) echo $$ >> servers\n{server};;\n"
        f"*) echo $$ >> processes\n{process};; esac",
    )
    return Tool(str(folder / "bin" / "java"), Path("x.jar"), Path(), (), Path("server.jar"))


def told(folder: Path, who: str) -> list[int]:
    path = folder / who
    return list(map(int, path.read_text(encoding="utf-8").split())) if path.exists() else []


ASKED = "head -c 1 > /dev/null"
"""Who ends before it has been asked has not answered."""
ANSWER = "cat verdict; echo '@!@!@ENDED stays'"


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    yield
    assert not list(scratch.iterdir())
    for number in (*told(tmp_path, "servers"), *told(tmp_path, "processes")):
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


pytestmark = pytest.mark.usefixtures("nothing_left")


def test_server_takes_one_run_after_another(tmp_path: Path, job: tlc.Job) -> None:
    tool = stand_in(tmp_path, f"{ANSWER}; {ANSWER}; sleep 60")
    with Servers(tool, 2048) as servers:
        found = [servers.run(job, lambda _progress: None).distinct for _ in range(2)]
    assert found == [567, 567]
    assert (len(told(tmp_path, "servers")), told(tmp_path, "processes")) == (1, [])


def test_large_and_unusual_runs_have_processes_of_their_own(tmp_path: Path, job: tlc.Job) -> None:
    tool = stand_in(tmp_path, "exit 1", process="cat verdict")
    with Servers(tool, 2048) as servers:
        for other in (
            replace(job, short=False), replace(job, coverage=True), replace(job, workers=2),
            replace(job, memory_mb=4096), replace(job, dump=tmp_path / "graph"),
        ):  # fmt: skip
            assert servers.run(other, lambda _progress: None).distinct == 567
    assert (told(tmp_path, "servers"), len(told(tmp_path, "processes"))) == ([], 5)


@pytest.mark.parametrize(
    "server",
    [
        "exit 3",
        "cat progress; echo Terminating due to java.lang.OutOfMemoryError: Java heap; exit 3",
        "cat verdict; exit 0",
        "cat progress; echo '@!@!@ENDED stays'; sleep 60",
    ],
    ids=["at once", "memory", "after the verdict", "without a verdict"],
)
def test_run_without_a_verdict_has_a_process_of_its_own(
    tmp_path: Path, job: tlc.Job, server: str
) -> None:
    tool = stand_in(tmp_path, server, process="cat verdict")
    with Servers(tool, 2048) as servers:
        assert servers.run(job, lambda _progress: None).distinct == 567
    assert len(told(tmp_path, "processes")) == 1


def test_full_server_gives_way_to_a_new_one(tmp_path: Path, job: tlc.Job) -> None:
    tool = stand_in(tmp_path, f"{ASKED}; cat verdict; echo '@!@!@ENDED leaves'")
    with Servers(tool, 2048) as servers:
        found = [servers.run(job, lambda _progress: None).distinct for _ in range(2)]
    assert found == [567, 567]
    assert (len(told(tmp_path, "servers")), told(tmp_path, "processes")) == (2, [])


def test_server_past_the_time_limit_is_killed(tmp_path: Path, job: tlc.Job) -> None:
    tool = stand_in(tmp_path, "cat progress; exec sleep 60")
    began = time.monotonic()
    with (
        Servers(tool, 2048) as servers,
        pytest.raises(Unfinished, match=r"within 0.5 s \(found 200 distinct states\).*--timeout"),
    ):
        servers.run(replace(job, timeout=0.5), lambda _progress: None)
    assert time.monotonic() - began < 30 and not told(tmp_path, "processes")


def test_server_at_a_standstill_is_killed_and_its_run_done_again(
    tmp_path: Path, job: tlc.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tlc, "STANDSTILL_S", 0.5)
    tool = stand_in(tmp_path, "cat progress; exec sleep 60", process="cat verdict")
    with Servers(tool, 2048) as servers:
        assert servers.run(job, lambda _progress: None).distinct == 567


def test_cancelled_run_kills_its_server(tmp_path: Path, job: tlc.Job) -> None:
    cancelled = threading.Event()
    cancelled.set()
    tool = stand_in(tmp_path, "cat progress; exec sleep 60")
    with Servers(tool, 2048) as servers, pytest.raises(Cancelled):
        servers.run(job, lambda _progress: None, cancelled)


def test_killed_command_leaves_no_server(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from bentpipe_conformance.models.serving import Server\n"
        "from bentpipe_conformance.models.tool import Tool\n"
        f"Server(Tool({str(tmp_path / 'bin' / 'java')!r}, Path('x'), Path(), (), Path('y')), 64)\n"
        "print('started', flush=True)\n"
        "time.sleep(60)\n"
    )
    stand_in(tmp_path, "exec sleep 60")
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
    ) as command:
        assert command.stdout is not None and command.stdout.readline() == "started\n"
        ends_at = time.monotonic() + 30
        while not told(tmp_path, "servers") and time.monotonic() < ends_at:
            time.sleep(0.02)
        command.kill()
    (number,) = told(tmp_path, "servers")
    while time.monotonic() < ends_at:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("the server is still there")
