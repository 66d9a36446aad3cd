from __future__ import annotations

from collections.abc import Mapping

import pytest
from bentpipe_experiments.model import Cell, Judgment
from bentpipe_experiments.zb03 import RWBP, SACK
from bentpipe_experiments.zb03_fig9 import OTHERS, SHALLOW, SIZES, judge, measure, shortest_s

Table = Mapping[tuple[str, float], Cell]


def cell(seconds: float) -> Cell:
    """Three runs that differ a little."""
    return Cell(tuple(seconds * share for share in (0.99, 1.0, 1.01)), {})


def published() -> dict[tuple[str, float], Cell]:
    """What the paper says, roughly."""
    times = {RWBP: 0.6, SACK: 1.0, SHALLOW: 0.6}
    return {(name, x): cell(time * (1 + x / 8)) for name, time in times.items() for x in SIZES}


def judged(changes: Table) -> dict[str, Judgment]:
    return {item.id: item for item in judge({**published(), **changes}, 1)}


def test_all_claims_hold_for_what_the_paper_says() -> None:
    assert {item.holds for item in judged({}).values()} == {True}
    assert {item.holds for item in judge({}, 1)} == {None}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("faster", {(RWBP, 1.0): cell(1.3)}),
        ("much-faster", {(RWBP, 64.0): cell(8.0)}),
        ("faster-shallow", {(SHALLOW, 2.0): cell(1.5)}),
    ],
)
def test_result_that_contradicts_a_claim_is_told(name: str, changes: Table) -> None:
    assert judged(changes)[name].holds is False


def test_response_takes_no_less_than_handshakes_request_and_answer() -> None:
    found = measure(SACK, 1.0, 1, requests=2, warm_up=1.0)
    assert shortest_s(1.0) < found.value < 2 * shortest_s(1.0)


def test_large_file_is_faster_without_slow_start_and_leaves_the_others_the_link() -> None:
    rwbp, sack = (measure(name, 16.0, 1, requests=1, warm_up=2.0) for name in (SHALLOW, SACK))
    assert rwbp.value < 0.7 * sack.value
    assert rwbp.notes[OTHERS] > 0.9 * 9 * 472 / 512
