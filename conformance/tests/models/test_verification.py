"""In which order, and how many at a time, runs of models are made."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.manifest import Manifest, Run, load_models, model_root
from bentpipe_conformance.models.tool import Tool
from bentpipe_conformance.models.verification import Checker, Limits, Result

MODELS = load_models(model_root())


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many runs were being made when each began; simulations wait for another one."""
    found: list[int] = []
    lock, barrier = threading.Lock(), threading.Barrier(2)
    running = 0

    def check(_self: Checker, manifest: Manifest, run: Run, *_: Any) -> Result:
        nonlocal running
        with lock:
            running += 1
            found.append(running)
        if run.simulate:
            barrier.wait(60.0)
        with lock:
            running -= 1
        return Result(manifest, run, "as expected", "", None, "", None)

    monkeypatch.setattr(Checker, "check", check)
    return found


def made(runs: list[tuple[Manifest, Run]]) -> None:
    checker = Checker(Tool("java", Path("x.jar"), Path()), Limits(1.0, 64, 2))
    checker.check_all(runs, lambda _result: None, lambda _run, _progress: None)


def test_simulations_of_a_night_have_one_thread_each_and_share_the_time(at_once: list[int]) -> None:
    model = MODELS["sack-newreno"]
    made([(model, run) for run in model.runs if run.simulate])
    assert at_once == [1, 2]


def test_searches_of_a_night_have_every_thread_one_after_the_other(at_once: list[int]) -> None:
    model = MODELS["sack-newreno"]
    made([(model, run) for run in model.runs if run.tier == "nightly" and not run.simulate])
    assert at_once == [1, 1]
