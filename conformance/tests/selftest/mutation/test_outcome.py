"""What a run says in sum."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.selftest.mutation.campaign import Choice, Store, read_trial
from bentpipe_conformance.selftest.mutation.division import KILLED, STILLBORN, SURVIVED
from bentpipe_conformance.selftest.mutation.explaining import Explanation
from bentpipe_conformance.selftest.mutation.outcome import as_text, continued, outcome_of
from bentpipe_conformance.selftest.mutation.scope import Limits, Scope
from bentpipe_conformance.selftest.mutation.sites import Mutant, mutants_of_source
from bentpipe_conformance.selftest.mutation.trial import (
    CHANGED,
    NAMED,
    UNREACHED,
    Kill,
    Runs,
    Trial,
    merged,
)

SOURCE = "def f(a, b):\n    return a < b and a > 1\n"
MUTANTS = mutants_of_source("m", SOURCE)
ONE = Runs.of(["toy/a/b rfc"])


class OneModule(Scope):
    """A scope whose only module is the source above."""

    def source(self, module: str) -> str:
        return SOURCE


SCOPE = OneModule("toy", {"m": ""}, {}, frozenset(), Limits(0.95, 0.25, 0.5))


def trial(item: Mutant, result: str) -> Trial:
    kills = [Kill("toy/a/b rfc", ("TOY-1",), "failed", "wrong")] if result == KILLED else []
    kind = CHANGED if result == SURVIVED else ""
    return Trial(item.id, result, kind, kills, 1, ONE, ONE)


def told(*results: str, explained: int = 0, complete: bool = True) -> dict[str, Any]:
    chosen = MUTANTS[: len(results)]
    trials = {item.id: trial(item, result) for item, result in zip(chosen, results, strict=True)}
    survivors = [item for item in chosen if trials[item.id].result == SURVIVED]
    explanations = {
        item.id: Explanation(item.id, item.text, "equivalent", "why", "who")
        for item in survivors[:explained]
    }
    return outcome_of("toy", SCOPE, chosen, trials, explanations, MUTANTS, complete=complete)


def test_score_is_what_is_killed_of_what_is_not_explained() -> None:
    outcome = told(KILLED, KILLED, KILLED, SURVIVED, SURVIVED, STILLBORN, explained=1)
    names = ("mutants", "killed", "survived", "explained", "stillborn", "score")
    assert [outcome[name] for name in names] == [5, 3, 1, 1, 1, 0.75]


def test_survivors_run_again_join_the_stored_result() -> None:
    whole = told(KILLED, SURVIVED, SURVIVED, SURVIVED, SURVIVED)
    again = told(KILLED, KILLED, SURVIVED, SURVIVED, explained=1)
    shown = continued(whole, again)  # the first was killed before, of the last the line has changed
    names = ("mutants", "killed", "survived", "explained", "score")
    assert [shown[name] for name in names] == [5, 2, 2, 1, 0.5]
    assert [shown["modules"][0][name] for name in names[:2]] == [5, 2]
    assert shown["rerun"] == {
        "survivors": 4, "killed": 1, "explained": 1, "survived": 1, "changed": 1, "score": 0.2,
    }  # fmt: skip


def test_whole_run_below_its_limits_says_so_and_a_part_does_not() -> None:
    whole = told(KILLED, SURVIVED, SURVIVED, explained=1)["problems"]
    assert whole == ["the score is 50.0%, below 95%", "33.3% are explained, more than 25%"]
    assert told(KILLED, SURVIVED, complete=False)["problems"] == []


def test_survivor_is_printed_with_its_change_and_where_it_shows() -> None:
    text = "\n".join(as_text(told(SURVIVED)))
    for part in ("- return a < b and a > 1", "+ return a ", CHANGED, "1 runs show it: toy/a/b rfc"):
        assert part in text
    assert "wrong" in "\n".join(as_text(told(KILLED), kills=True))


def test_sample_of_a_seed_is_the_same_and_of_another_seed_is_not() -> None:
    def drawn(seed: int) -> list[str]:
        return [item.id for item in Choice(sample=3, seed=seed).of(MUTANTS)]

    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(8)}) > 1
    assert Choice(sample=1000).of(MUTANTS) == MUTANTS


def test_pattern_chooses_modules_and_mutants() -> None:
    assert Choice(modules=["m"]).of(MUTANTS) == MUTANTS
    assert Choice(modules=["n.*"]).of(MUTANTS) == []
    only = Choice(only=["m:f:lt-to-*"]).of(MUTANTS)
    assert [item.operator for item in only] == ["lt-to-ge", "lt-to-le"]


def test_store_goes_on_with_the_same_sources_alone(tmp_path: Any) -> None:
    path = tmp_path / "deep" / "result.json"
    store = Store(path, "one")
    store.trials = {item.id: trial(item, KILLED) for item in MUTANTS}
    store.save()
    same, other = Store(path, "one"), Store(path, "two")
    same.load()
    other.load()
    assert same.trials == store.trials
    assert other.trials == {}


def test_store_that_is_no_result_is_begun_anew(tmp_path: Any) -> None:
    path = tmp_path / "result.json"
    path.write_text("[]")
    store = Store(path, "one")
    store.load()
    assert store.trials == {}


@pytest.mark.parametrize("result", [KILLED, SURVIVED, STILLBORN])
def test_trial_survives_json(result: str) -> None:
    from dataclasses import asdict
    from json import dumps, loads

    made = trial(MUTANTS[0], result)
    assert read_trial(loads(dumps(asdict(made)))) == made


def test_survivor_in_the_usual_setting_may_be_killed_or_reached_in_another() -> None:
    usual = Trial("m:f:x:0", SURVIVED, UNREACHED, lost=["TOY-2"])
    dead = trial(MUTANTS[0], KILLED)
    assert merged(usual, dead) == dead
    found = merged(usual, Trial("m:f:x:0", SURVIVED, CHANGED, [], 2, ONE, ONE, ["TOY-9"]))
    assert (found.kind, found.reaching, found.lost, found.settled) == (
        CHANGED, ONE, ["TOY-2"], True,
    )  # fmt: skip


def test_runs_of_a_survivor_are_counted_and_only_the_first_are_named() -> None:
    names = [f"toy/case-{number} rfc" for number in range(7000)]
    found = Runs.of(names) + Runs.of(names)
    assert (found.count, found.first) == (14000, tuple(names[:NAMED]))


def test_saving_that_takes_long_is_done_seldom(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    saved = []

    def told() -> dict[str, Any]:
        nonlocal now
        saved.append(now)
        now += 3.0
        return {}

    store = Store(tmp_path / "result.json", "one", told=told)
    for item in range(400):
        now += 1.0
        store.put(Trial(f"m:f:x:{item}", KILLED))
    assert saved == [11.0, 165.0, 319.0]
