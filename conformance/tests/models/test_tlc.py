"""Reading TLC's messages, by a stand-in for Java that prints what TLC printed once."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from bentpipe_conformance.models import tlc
from bentpipe_conformance.models.tool import Tool, ToolProblem
from bentpipe_conformance.models.watch import Cancelled


def message(code: int, severity: int, text: str) -> str:
    return f"@!@!@STARTMSG {code}:{severity} @!@!@\n{text}\n@!@!@ENDMSG {code} @!@!@\n"


COUNT = message(
    2199, 0, "1,234 states generated, 567 distinct states found, 0 states left on queue."
)
DEPTH = message(2194, 0, "The depth of the complete state graph search is 9.")
DONE = message(2193, 0, "Model checking completed. No error has been found.")
PROGRESS = message(
    2200, 0,
    "Progress(4) at 2026-01-01 00:00:00: 300 states generated (300 s/min), 200 distinct states "
    "found (200 ds/min), 50 states left on queue.",
)  # fmt: skip
START = message(2217, 4, "1: <Initial predicate>\n/\\ x = 0\n/\\ y = <<1,\n   2>>\n")
STEP = message(
    2217, 4, "2: <Next line 7, col 9 to line 7, col 29 of module B>\n/\\ x = 1\n/\\ y = {}"
)


@pytest.fixture
def job(tmp_path: Path) -> tlc.Job:
    return tlc.Job(tmp_path / "M.tla", "SPECIFICATION Spec\n", (), tmp_path, timeout=20.0)


def java(folder: Path, output: str, status: int = 0, then: str = "") -> str:
    (folder / "output").write_text(output, encoding="utf-8")
    (folder / "rest").write_text(DONE + DEPTH + COUNT, encoding="utf-8")
    script = folder / "java"
    script.write_text(
        f"#!/bin/sh\ncat '{folder}/output'\n{then}\nexit {status}\n", encoding="utf-8"
    )
    script.chmod(0o755)
    return str(script)


def tool(java: str) -> Tool:
    return Tool(java, Path("x.jar"), Path())


def run(job: tlc.Job, output: str, status: int = 0, then: str = "") -> tlc.Outcome:
    return tlc.run(tool(java(job.directory, output, status, then)), job)


def test_finished_run_counted(job: tlc.Job) -> None:
    outcome = run(job, DONE + DEPTH + COUNT)
    assert not outcome.violated
    assert (outcome.generated, outcome.distinct, outcome.depth) == (1234, 567, 9)
    assert "Model checking completed" in outcome.log.read_text(encoding="utf-8")


def test_progress_reported_as_it_comes(job: tlc.Job) -> None:
    seen: list[tlc.Progress] = []
    tlc.run(tool(java(job.directory, PROGRESS + DONE + COUNT)), job, seen.append)
    assert (seen[0].generated, seen[0].distinct, seen[0].queue, seen[0].depth) == (300, 200, 50, 4)
    assert seen[-1].distinct == 567 and seen[0].rate > 0


@pytest.mark.parametrize(
    ("code", "sentence", "name"),
    [
        (2110, "Invariant TypeOK is violated.", "TypeOK"),
        (2112, "Action property Small is violated.", "Small"),
        (2112, "Action property line 3, col 1 to line 3, col 9 of module M is violated.", ""),
        (2116, "Temporal properties were violated.", ""),
    ],
)
def test_violation_and_its_trace_read(job: tlc.Job, code: int, sentence: str, name: str) -> None:
    outcome = run(job, message(code, 1, sentence) + START + STEP + COUNT, 12)
    assert outcome.violated and outcome.name == name
    assert [state.action for state in outcome.trace] == ["Initial predicate", "Next"]
    assert outcome.trace[0].variables == {"x": "0", "y": "<<1, 2>>"}


@pytest.mark.parametrize(
    ("code", "sentence", "name"),
    [
        (2107, "Invariant Inv is violated", "Inv"),
        (2108, "Property line 3, col 1 to line 3, col 9 of module M is violated", ""),
    ],
)
def test_violation_at_the_start_read(job: tlc.Job, code: int, sentence: str, name: str) -> None:
    text = f"{sentence} by the initial state:\n/\\ x = 1\n/\\ y = 2"
    outcome = run(job, message(code, 1, text), 12)
    assert outcome.name == name and outcome.trace[0].variables == {"x": "1", "y": "2"}


def test_property_that_constants_make_false_is_violated_without_a_trace(job: tlc.Job) -> None:
    outcome = run(job, message(2230, 1, "The property of Arrives is equal to FALSE"), 13)
    assert outcome.name == "Arrives" and outcome.violated and not outcome.trace


def test_loops_of_temporal_counterexamples_read(job: tlc.Job) -> None:
    found = message(2116, 1, "Temporal properties were violated.") + START + STEP
    assert run(job, found + message(2218, 4, "3: Stuttering"), 13).loop == 1
    assert run(job, found + message(2122, 4, "1: Back to state: <Next line 1>"), 13).loop == 0


@pytest.mark.parametrize(
    "complaint", ['Was expecting "====" at line 2', 'Encountered ")" at line 2, column 3']
)
def test_broken_module_is_told_by_its_file_and_line(job: tlc.Job, complaint: str) -> None:
    chatter = (
        f"Parsing file /x/M.tla\n***Parse Error***\n{complaint}\n"
        "*** Abort messages: 1\nCould not parse module N from file N.tla\n"
    )
    told = rf"M could not be checked: N.tla: {re.escape(complaint)}.*; correct"
    with pytest.raises(ToolProblem, match=told):
        run(job, chatter + message(3002, 1, "Parsing or semantic analysis failed."), 150)


def test_fault_of_the_configuration_is_told_by_its_text_and_its_own_name(job: tlc.Job) -> None:
    text = (
        "TLC found an error in the configuration file at line 1\n"
        "It was expecting = or <-, but did not find it."
    )
    told = r"error in pr.cfg near 'SPECIFICATION Spec' It was expecting = or <-.*; correct that"
    with pytest.raises(ToolProblem, match=told):
        run(replace(job, source="pr.cfg"), message(5001, 1, text), 150)


def test_process_that_the_system_kills_has_another_remedy(job: tlc.Job) -> None:
    with pytest.raises(ToolProblem, match=r"TLC was killed, .*; allow less with --memory, or run"):
        run(job, COUNT, then="kill -9 $$")


def test_heap_that_the_system_refuses_has_another_remedy(job: tlc.Job) -> None:
    text = "Error: Could not reserve enough space for 2097152KB object heap\n"
    with pytest.raises(ToolProblem, match="object heap; allow less with --memory"):
        run(job, text, 1)


def test_evaluation_that_fails_is_told_with_its_place(job: tlc.Job) -> None:
    output = (
        message(1000, 1, "TLC threw an unexpected exception.\n"
                "This was probably caused by an error in the spec or model.\n"
                "See the User Output or TLC Console for clues to what happened.\n"
                "The exception was a java.lang.RuntimeException\n"
                ": Attempted to compute the value of an expression of form\n"
                "CHOOSE x \\in S: P, but no element of S satisfied P.\n"
                "line 166, col 15 to line 166, col 62 of module M")
        + message(2121, 1, "The behavior up to this point is:") + START
    )  # fmt: skip
    with pytest.raises(ToolProblem, match=r"no element of S satisfied P. line 166, .*of module M"):
        run(job, output, status=75)


def test_simulation_ends_without_a_word_of_success(job: tlc.Job) -> None:
    drawn = message(2209, 0, "Progress(-1) at 2026-01-01 00:00:00: 1,348 states generated, -1 "
                    "distinct states found, -1 states left on queue.")  # fmt: skip
    outcome = run(replace(job, simulate=(10, 200)), drawn + message(2186, 0, "Finished in 9ms"))
    assert (outcome.behaviours, outcome.generated, outcome.violated) == (10, 1348, "")


def test_unknown_property_explained(job: tlc.Job) -> None:
    quoted = (
        "@!@!@STARTMSG 1000:1 @!@!@\nTLC threw an unexpected exception.\n: "
        + message(5001, 0, "The invariant Nothing is not defined in the specification.")
        + "@!@!@ENDMSG 1000 @!@!@\n"
    )
    with pytest.raises(ToolProblem, match=r"The invariant Nothing is not defined"):
        run(job, quoted, 255)


def test_silent_failure_explained(job: tlc.Job) -> None:
    with pytest.raises(ToolProblem, match=r"TLC ended with status 7 and said nothing"):
        run(job, "", 7)


def test_exhausted_memory_explained(job: tlc.Job) -> None:
    with pytest.raises(ToolProblem, match=r"out of memory at 2048 MiB.*--memory"):
        run(job, message(1001, 1, "Java ran out of memory."), 1)


def refuse(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Have the system refuse the next processes, as one out of memory does."""
    start = subprocess.Popen
    left = iter(range(times))

    def popen(*args: object, **keywords: object) -> subprocess.Popen[str]:
        if next(left, None) is not None:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        return start(*args, **keywords)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(tlc, "_PAUSES", (0.0, 0.0))


def test_process_refused_for_a_moment_asked_for_again(
    job: tlc.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, 2)
    assert run(job, DONE + DEPTH + COUNT).distinct == 567


def test_process_refused_for_good_explained(job: tlc.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, 3)
    with pytest.raises(ToolProblem, match=r"could not be started: .*Cannot allocate memory"):
        run(job, DONE)


def test_run_past_its_time_killed(job: tlc.Job) -> None:
    started = time.monotonic()
    late = tlc.Job(job.module, job.config, (), job.directory, timeout=0.5)
    with pytest.raises(ToolProblem, match=r"within 0.5 s \(found 200 distinct states\).*--timeout"):
        run(late, PROGRESS, then=f"echo $$ > '{job.directory}/pid'\nsleep 60")
    assert time.monotonic() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((job.directory / "pid").read_text(encoding="utf-8")), 0)


def test_run_that_comes_to_a_standstill_started_again(
    job: tlc.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tlc, "STANDSTILL_S", 0.5)
    once = f"test -e '{job.directory}/again' || {{ touch '{job.directory}/again'; exec sleep 60; }}"
    assert run(job, PROGRESS, then=f"{once}\ncat '{job.directory}/rest'").distinct == 567


def test_run_that_comes_to_a_standstill_twice_told(
    job: tlc.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tlc, "STANDSTILL_S", 0.5)
    with pytest.raises(ToolProblem, match=r"a standstill twice; try again with fewer workers"):
        run(job, PROGRESS, then="exec sleep 60")


def test_busy_run_left_alone(job: tlc.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tlc, "STANDSTILL_S", 0.5)
    busy = "end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do :; done"
    assert run(job, DONE + DEPTH + COUNT, then=busy).distinct == 567


def test_cancelled_run_killed(job: tlc.Job) -> None:
    cancelled = threading.Event()
    cancelled.set()
    started = time.monotonic()
    waiting = java(job.directory, PROGRESS, then="sleep 60")
    with pytest.raises(Cancelled):
        tlc.run(tool(waiting), job, cancelled=cancelled)
    assert time.monotonic() - started < 10
