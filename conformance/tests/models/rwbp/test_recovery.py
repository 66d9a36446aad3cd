"""Recorded RWBP senders against the model of error control."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.rejection import Setup
from bentpipe_conformance.models.traces import read_trace, validate
from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.parts import Setup as Parts
from bentpipe_reference.rwbp.tracing import main, record

from ..conftest import EXPECTED, Rejections
from .conftest import written

SEGMENT = 472


def recorded(
    seed: int, *, mutant: str = "", loss: float = 0.1, interval: int = 8
) -> list[dict[str, Any]]:
    """A transfer over a link of 600 kb/s and 0.5 s that loses packets both ways."""
    link = LinkProfile(
        id="satellite",
        title="",
        source="ZB03",
        forward=Direction(600e3, 0.25, queue_packets=1000, loss_probability=loss),
        return_=Direction(None, 0.25, loss_probability=loss / 2),
    )
    config = RwbpConfig(mss=SEGMENT, receive_buffer=30_000, interval=interval)
    true = Parts(config)
    parts = (load_mutants()[mutant].configure(true) if mutant else true).parts
    return record(link, config, 70 * SEGMENT, parts=parts, seed=seed, limit_s=200.0).events


def corrupted(events: list[dict[str, Any]], seed: int) -> tuple[list[dict[str, Any]], int]:
    """The events with one of them changed, and its line."""
    numbers = random.Random(seed)
    at = numbers.choice(
        [i for i, event in enumerate(events) if event["event"] in ("again", "state")]
    )
    changed = dict(events[at])
    if changed["event"] == "again":
        changed["n"] += 1
    else:
        changed["edge"] += numbers.choice((-1, 1))
    return [*events[:at], changed, *events[at + 1 :]], at + 1


@pytest.mark.parametrize(
    ("seeds", "changes"),
    [
        pytest.param(range(0, 16, 5), 1, id="each-loss-and-interval-once"),
        pytest.param(range(16), 7, id="all", marks=pytest.mark.slow),
    ],
)
def test_recorded_senders_are_followed_and_changed_events_are_not(
    setup: Setup, tmp_path: Path, capsys: pytest.CaptureFixture[str], rejections: Rejections,
    seeds: Sequence[int], changes: int,
) -> None:  # fmt: skip
    main(["--drops", "5,9"])
    (tmp_path / "by-hand.ndjson").write_text(capsys.readouterr().out)
    traces, expected = [read_trace(tmp_path / "by-hand.ndjson")], [None]
    for seed in seeds:
        loss, interval = (0.0, 0.02, 0.1, 0.3)[seed % 4], (1, 4, 8, 64)[seed // 4]
        events = recorded(seed, loss=loss, interval=interval)
        traces.append(written(tmp_path / f"{seed}.ndjson", events))
        expected.append(None)
        for number in range(changes):
            changed, line = corrupted(events, seed + 100 * number)
            traces.append(written(tmp_path / f"{seed}-bad-{number}.ndjson", changed))
            expected.append(line)
    found = validate(traces, setup)
    assert [None if item.rejected is None else item.rejected.line for item in found] == expected
    rejections("rwbp-recovery", {item.trace.name: item.guard for item in found if item.guard})


BROKEN = {
    "rwbp-literal-list": "RWBP-EC-002",
    "rwbp-last-match": "RWBP-EC-002",
    "rwbp-one-loss-at-a-time": "RWBP-EC-002",
    "rwbp-first-transmissions-only": "RWBP-EC-002",
    "rwbp-new-data-first": "RWBP-EC-004",
    "rwbp-highest-repair-first": "RWBP-EC-004",
    "rwbp-one-copy": "RWBP-EC-007",
    "rwbp-three-copies": "RWBP-EC-012",
}


def test_senders_that_break_a_rule_are_not_followed(setup: Setup, tmp_path: Path) -> None:
    traces = [
        written(tmp_path / f"{mutant}-{seed}.ndjson", recorded(seed, mutant=mutant, loss=loss))
        for mutant in BROKEN
        for seed, loss in enumerate((0.1, 0.1, 0.2, 0.3))
    ]
    found = validate(traces, setup)
    for mutant, requirement in BROKEN.items():
        guards = [item.guard for item in found if item.trace.name.count(f"{mutant}-")]
        assert any(requirement in (guard or "") for guard in guards), (mutant, guards)
        assert all(EXPECTED.search(guard) for guard in guards if guard), (mutant, guards)
