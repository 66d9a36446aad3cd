from __future__ import annotations

import json
import select
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_experiments import registry
from bentpipe_experiments.ladder import Ladder, Rung
from bentpipe_experiments.model import (
    Cells,
    Experiment,
    Judgment,
    Measurement,
    Panel,
    Series,
)
from bentpipe_experiments.runs import missing, run_missing, run_seed
from bentpipe_experiments.store import RUNS, Run, Store, StoreError, remove
from click.testing import CliRunner, Result

NAME = "hk99-fig13"


def measure(series: str, point: float, seed: int) -> Measurement:
    return Measurement(point * (2 if series == "fast" else 1) + seed % 3, {"seed": seed})


def judge(cells: Cells, seed: int) -> list[Judgment]:
    holds = cells["fast", 40.0].mean > cells["slow", 40.0].mean if ("fast", 40.0) in cells else None
    return [Judgment("faster", "fast is faster", holds, "by the means")]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """An experiment that measures nothing, under a name the command line knows."""
    experiment = Experiment(
        NAME, "A toy", "nowhere", (Series("fast", "Fast"), Series("slow", "Slow")), "x", "y",
        (20.0, 40.0), 3, {"toy": "yes"}, measure, judge,
    )  # fmt: skip
    monkeypatch.setitem(registry.EXPERIMENTS, NAME, experiment)
    return experiment


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(bentpipe, ["experiment", NAME, "--jobs", "1", *arguments])


def test_interrupted_experiment_goes_on_where_it_stopped(toy: Experiment, tmp_path: Path) -> None:
    store = Store(tmp_path, toy, 1)
    todo = missing(toy, store, toy.points, 3)
    assert len(todo) == 2 * 2 * 3
    assert [run.number for run in todo[:4]] == [0] * 4
    run_missing(toy, store, todo[:5], 1, 1, lambda: None)
    later = Store(tmp_path, toy, 1)
    assert missing(toy, later, toy.points, 3) == todo[5:]


def test_runs_in_processes_are_the_runs_in_one(toy: Experiment, tmp_path: Path) -> None:
    results = []
    for jobs in (1, 2):
        store = Store(tmp_path / str(jobs), toy, 5)
        run_missing(toy, store, missing(toy, store, (20.0,), 2), 5, jobs, lambda: None)
        results.append(store.cells(["fast", "slow"], (20.0,), 2))
    assert results[0] == results[1]


def test_line_cut_short_by_a_kill_is_measured_again(toy: Experiment, tmp_path: Path) -> None:
    store = Store(tmp_path, toy, 1)
    run_missing(toy, store, missing(toy, store, (20.0,), 1), 1, 1, lambda: None)
    file = tmp_path / RUNS
    file.write_bytes(file.read_bytes()[:-10])
    again = Store(tmp_path, toy, 1)
    assert missing(toy, again, (20.0,), 1) == [Run("slow", 20.0, 0)]
    run_missing(toy, again, missing(toy, again, (20.0,), 1), 1, 1, lambda: None)
    assert missing(toy, Store(tmp_path, toy, 1), (20.0,), 1) == []


def test_directory_with_another_seed_is_refused(toy: Experiment, tmp_path: Path) -> None:
    Store(tmp_path, toy, 1)
    with pytest.raises(StoreError, match=r"another seed.*--fresh"):
        Store(tmp_path, toy, 2)
    remove(tmp_path)
    Store(tmp_path, toy, 2)


def test_results_of_other_settings_are_refused(toy: Experiment, tmp_path: Path) -> None:
    Store(tmp_path, toy, 1)
    with pytest.raises(StoreError, match="another settings"):
        Store(tmp_path, replace(toy, settings={"toy": "no"}), 1)


def test_file_that_holds_no_runs_is_refused(toy: Experiment, tmp_path: Path) -> None:
    (tmp_path / RUNS).write_text("not ours\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"runs\.jsonl .* --fresh"):
        Store(tmp_path, toy, 1)


def test_seed_is_the_same_for_all_series_and_differs_between_runs() -> None:
    seeds = {
        run_seed(1, Run(series, point, number))
        for series in ("reno", "newreno")
        for point in (20.0, 600.0)
        for number in range(3)
    }
    assert len(seeds) == 6


def test_command_writes_results_and_figures(toy: Experiment, tmp_path: Path) -> None:
    result = invoke("--out", str(tmp_path))
    assert result.exit_code == 0
    assert "holds" in result.stdout
    document = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert document["holds"] is True
    assert len(document["points"]) == 4
    assert all(point["runs"] == 3 for point in document["points"])
    assert (tmp_path / f"{NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / f"{NAME}.svg").read_text(encoding="utf-8")


def test_command_with_json_prints_the_results(toy: Experiment, tmp_path: Path) -> None:
    result = invoke("--out", str(tmp_path), "--json", "--seed", "7")
    document = json.loads(result.stdout)
    assert document["seed"] == 7
    assert document == json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))


def test_command_ends_with_1_when_a_claim_does_not_hold(
    toy: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(toy, series=(Series("slow", "Slow"), Series("fast", "Fast")), judge=_refuted)
    monkeypatch.setitem(registry.EXPERIMENTS, NAME, slow)
    assert invoke("--out", str(tmp_path)).exit_code == 1


def test_command_ends_with_3_when_the_claim_was_not_measured(
    toy: Experiment, tmp_path: Path
) -> None:
    result = invoke("--out", str(tmp_path), "--rtt", "20", "--runs", "1")
    assert result.exit_code == 3
    assert "open" in result.stdout


def test_command_on_an_unwritable_place_says_so(toy: Experiment, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = invoke("--out", str(tmp_path / "file" / "below"))
    assert result.exit_code != 0
    assert "choose another --out" in str(result.exception) + result.output


def test_failed_measurement_keeps_the_others(
    toy: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.EXPERIMENTS, NAME, replace(toy, measure=_fails_at_40))
    result = invoke("--out", str(tmp_path))
    assert result.exit_code == 3
    assert "broke" in result.output
    assert len((tmp_path / RUNS).read_text(encoding="utf-8").splitlines()) == 1 + 2


def test_figure_is_the_same_for_the_same_results(toy: Experiment, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert invoke("--out", str(tmp_path / name)).exit_code == 0
    first, second = ((tmp_path / name / f"{NAME}.svg").read_bytes() for name in ("a", "b"))
    assert first == second


def test_true_experiment_runs_from_the_command_line(tmp_path: Path) -> None:
    arguments = ["experiment", NAME, "--runs", "1", "--rtt", "20", "--jobs", "1"]
    result = CliRunner().invoke(bentpipe, [*arguments, "--out", str(tmp_path), "--json"])
    document: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == 3
    assert {point["series"] for point in document["points"]} == {
        "reno", "newreno", "sack-reno", "sack-newreno-hk99",
    }  # fmt: skip


def _refuted(cells: Cells, seed: int) -> list[Judgment]:
    return [Judgment("faster", "fast is faster", False, "it is not")]


def _fails_at_40(series: str, point: float, seed: int) -> Measurement:
    if point == 40.0:
        raise RuntimeError("the measurement broke.")
    return measure(series, point, seed)


def test_killed_experiment_leaves_no_process_and_keeps_its_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bentpipe_conformance.cli.main", "experiment", NAME]
    options = ["--rtt", "20", "--jobs", "2", "--out", str(tmp_path)]
    running = subprocess.Popen([*command, *options], start_new_session=True, stderr=subprocess.PIPE)
    stored = tmp_path / RUNS
    while not stored.exists() or len(stored.read_bytes().splitlines()) < 2:
        assert running.poll() is None
        select.select([], [], [], 0.05)
    running.kill()
    # Its workers hold the pipe too, so the end of the pipe is the end of them all.
    running.communicate(timeout=60)
    assert len(stored.read_bytes().splitlines()) >= 2


def test_command_tells_a_second_quantity_of_the_same_runs(
    toy: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = replace(toy, panels=(Panel("seed", "seeds"),))
    monkeypatch.setitem(registry.EXPERIMENTS, NAME, two)
    result = invoke("--out", str(tmp_path))
    assert "seeds: mean and 95 % confidence interval" in " ".join(result.stdout.split())
    document = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    panel = document["points"][0]["panels"]["seed"]
    assert len(panel["values"]) == 3
    low, high = panel["ci95"]
    assert low <= panel["mean"] <= high


def test_command_draws_and_prints_a_ladder(
    toy: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder = Ladder("Said", "us", "them", (Rung(0.0, 0.1, True, "hello"),))
    monkeypatch.setitem(registry.EXPERIMENTS, NAME, replace(toy, ladder=lambda: [ladder]))
    result = invoke("--out", str(tmp_path))
    assert "-> hello   100 ms" in result.stdout
    assert (
        "Said" in json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["ladder"][0]
    )
    assert (tmp_path / f"{NAME}.png").read_bytes().startswith(b"\x89PNG")
