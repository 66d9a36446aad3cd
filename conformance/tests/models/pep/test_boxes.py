"""What a box hears and says, against the model of split connections."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.rejection import Setup
from bentpipe_conformance.models.traces import Judgement, Trace, validate
from bentpipe_experiments.box_trace import PLAYS, Act, Play, main, record
from bentpipe_reference.common.mutation import load_mutants

from ..conftest import EXPECTED, Rejections
from ..rwbp.conftest import setup, written

__all__ = ["setup"]

Events = list[dict[str, Any]]


def drawn(seed: int) -> Play:
    """Two ends that do anything."""
    numbers = random.Random(seed)
    user, server = (
        Act(
            numbers.choice((0, 1, 499, 2000, 9000)), numbers.random() < 0.8,
            numbers.choice((None, None, 0, 2000)), numbers.choice((5.0, 60.0, 1e9)),
            numbers.choice((None, None, None, 1500)),
        )
        for _ in range(2)
    )  # fmt: skip
    return Play(user, server, numbers.choice((0.0, 0.03, 0.2)), numbers.choice((None, 1.0, 8.0)))


def recorded() -> Iterator[tuple[str, Events]]:
    """Each play, and some that are drawn."""
    for name, play in PLAYS.items():
        yield name, record(play).events
    for seed in range(20):
        yield f"drawn-{seed}", record(drawn(seed), seed=seed).events


def where(events: Events, name: str, place: int = 0) -> int:
    """Which event is the one of a kind."""
    return [at for at, event in enumerate(events) if event["event"] == name][place]


def more(name: str, octets: int, place: int = 0) -> Callable[[Events], int]:
    """One event tells of so many octets more; the line of it."""

    def change(events: Events) -> int:
        at = where(events, name, place)
        events[at] = {**events[at], "n": events[at]["n"] + octets}
        return at + 1

    return change


def without(name: str, missed: str) -> Callable[[Events], int]:
    """An event is missing; the line of the one that is missed it."""

    def change(events: Events) -> int:
        at = where(events, name)
        del events[at]
        return next(
            number + 1
            for number, event in enumerate(events)
            if number >= at and event["event"] == missed
        )

    return change


def sooner(name: str, than: str, place: int = 0) -> Callable[[Events], int]:
    """An event comes before another one; its line."""

    def change(events: Events) -> int:
        event = events.pop(where(events, name))
        at = where(events, than, place)
        events.insert(at, event)
        return at + 1

    return change


CORRUPTED: dict[str, tuple[str, Callable[[Events], int], str]] = {
    "promises-too-much": ("both-end", more("permit", 49), "must be from 0 to 4000 (PEP-FB-002)"),
    "shrinks": ("both-end", more("permit", -3000, 2), "must be from 2000 to "),
    "takes-what-was-not-permitted": ("both-end", more("take", 953), "must be from 1 to 3952 "),
    "sends-what-it-has-not": ("both-end", more("deliver", 3, 5), "from 1 to 488 (PEP-TR-001)"),
    "beyond-the-window": ("both-end", more("deliver", 1, 4), "from 1953 to 2000 (PEP-LR-001)"),
    "confirms-what-was-not-sent": ("both-end", more("confirm", 3000), "(PEP-RE-001)"),
    "end-too-soon": ("both-end", more("end", -1), "must be 3000 (PEP-RE-003)"),
    "fin-elsewhere": ("both-end", more("fin", 1), "must be 3000 (PEP-RE-003)"),
    "ends-by-itself": ("both-end", without("fin", "end"), "it must be the sender"),
    "acknowledges-early": ("both-end", sooner("ackfin", "confirm", -3), "be 3000 (PEP-RE-002)"),
    "resets-by-itself": ("user-resets", without("reset", "told"), "must be TRUE (PEP-RE-006"),
    "tells-nobody": ("user-resets", without("told", "over"), "must be {1, 2} (PEP-RE-006"),
    "forgets": ("both-end", sooner("over", "ackfin"), "must be {1, 2} (PEP-RE-006"),
    "probes-at-random": ("stalled", more("probe", 1), "must be 3953 (PEP-FB-006)"),
    "window-stays-closed": ("nothing", lambda events: closed(events), "(PEP-FB-004)"),
}  # fmt: skip
"""By name: a play, what changes of it, and what is said then."""


def closed(events: Events) -> int:
    """Nobody may send anything, and nobody does; the last line."""
    events[:] = [event for event in events if event["event"] in ("begin", "quiet")]
    return len(events)


def judged(setup: Setup, traces: list[Trace]) -> dict[str, Judgement]:
    """What the model says of each trace, by its name."""
    return {Path(item.trace.name).stem: item for item in validate(traces, setup)}


def enlarged(events: Events, seed: int) -> tuple[Events, int]:
    """The events with one of them telling of far more octets than there are, and its line."""
    chance = random.Random(seed)
    told = [at for at, event in enumerate(events) if type(event.get("n")) is int]
    at = chance.choice([at for at in told if events[at]["event"] != "room"])  # a peer's own promise
    event = {**events[at], "n": events[at]["n"] + 100_000}
    return [*events[:at], event, *events[at + 1 :]], at + 1


@pytest.mark.slow
def test_hundred_changed_boxes_are_each_rejected_with_line_rule_and_expected_value(
    setup: Setup, tmp_path: Path, rejections: Rejections
) -> None:
    plays = [events for _, events in recorded() if len(events) > 8]
    traces, expected = [], {}
    for seed in range(100):
        events, line = enlarged(plays[seed % len(plays)], seed)
        traces.append(written(tmp_path / f"{seed}.ndjson", events))
        expected[f"{seed}"] = line
    found = judged(setup, traces)
    lines = {name: item.rejected and item.rejected.line for name, item in found.items()}
    guards = {name: item.guard for name, item in found.items()}
    assert lines == expected, guards
    rejections("split-connection", guards)


@pytest.mark.long
def test_recorded_boxes_are_followed_and_changed_events_are_not(
    setup: Setup, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--play", "lossy", "--seed", "3"])
    by_hand = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    traces = [written(tmp_path / "by-hand.ndjson", by_hand)]
    expected: dict[str, int | None] = {"by-hand": None}
    for name, events in recorded():
        traces.append(written(tmp_path / f"{name}.ndjson", events))
        expected[name] = None
    for name, (play, change, _) in CORRUPTED.items():
        events = record(PLAYS[play]).events
        expected[f"{name}-bad"] = change(events)
        traces.append(written(tmp_path / f"{name}-bad.ndjson", events))
    found = judged(setup, traces)
    guards = {name: item.guard for name, item in found.items() if item.guard}
    lines = {
        name: None if item.rejected is None else item.rejected.line for name, item in found.items()
    }
    assert lines == expected, guards
    assert [said for said in guards.values() if not EXPECTED.search(said)] == []
    for name, (_, _, said) in CORRUPTED.items():
        assert said in guards[f"{name}-bad"], name
    met = {event for item in found.values() for event, times in item.followed.items() if times}
    assert met == set(traces[0].binding.forms), "every kind of event occurs"


BROKEN = {
    "pep-buffers-everything": ("server-sends", "PEP-FB-002"),
    "pep-promises-too-much": ("server-sends", "PEP-FB-002"),
    "pep-silly-windows": ("server-sends", "PEP-FB-003"),
    "pep-closed-stays-closed": ("server-sends", "PEP-FB-004"),
    "pep-repeats-an-octet": ("both-end", "PEP-TR-001"),
    "pep-acknowledges-the-end-at-once": ("both-end", "PEP-RE-002"),
    "pep-acknowledges-the-end-when-sent": ("both-end", "PEP-RE-002"),
    "pep-closes-both-directions": ("half-closed", "PEP-RE-003"),
    "pep-ends-when-idle": ("resumed", "PEP-RE-003"),
    "pep-ends-nothing": ("both-end", "PEP-RE-004"),
    "pep-swallows-resets": ("user-resets", "PEP-RE-006"),
    "pep-swallows-resets-of-the-server": ("server-resets", "PEP-RE-006"),
    "pep-reset-becomes-an-end": ("user-resets", "PEP-RE-007"),
    "pep-failure-becomes-an-end": ("cut", "PEP-RE-008"),
    "pep-failure-is-kept": ("cut", "PEP-RE-008"),
    "pep-half-closed-is-mute": ("half-closed", "PEP-FB-010"),
}
"""By the reference's mutant: a play in which it shows, and the rule that its trace breaks."""


@pytest.mark.long
def test_boxes_that_break_a_rule_are_not_followed(setup: Setup, tmp_path: Path) -> None:
    mutants = load_mutants()
    traces = [
        written(
            tmp_path / f"{name}.ndjson", record(PLAYS[play], alter=mutants[name].configure).events
        )
        for name, (play, _) in BROKEN.items()
    ]
    found = judged(setup, traces)
    for name, (_, rule) in BROKEN.items():
        assert rule in found[name].guard, (name, found[name].guard)
        assert EXPECTED.search(found[name].guard), found[name].guard


def test_connection_that_never_opens_leaves_no_events() -> None:
    assert len(record(Play(cut=0.0)).events) == 1
