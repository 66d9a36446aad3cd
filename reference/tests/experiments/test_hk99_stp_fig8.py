from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_experiments import hk99_stp_fig8
from bentpipe_experiments.hk99_stp_fig8 import (
    appendix_a,
    compared,
    exchange,
    judge,
    measure,
    repaired_again,
    suppressed,
    transmissions,
)
from bentpipe_experiments.model import Cell

TOLD = [
    "SD 0", "SD 1", "SD 2", "SD 3", "SD 4",
    "POLL N(S)=5 N(PS)=1",
    "STAT N(R)=5 N(PS)=1, empty list",
    "SD 5", "SD 6", "SD 7", "SD 8",
    "USTAT N(R)=7, 7..8",
    "SD 9",
    "POLL N(S)=10 N(PS)=2",
    "SD 7",
    "STAT N(R)=7 N(PS)=2, list 7, 8, 10",
    "SD 10",
    "POLL N(S)=11 N(PS)=3",
    "STAT N(R)=11 N(PS)=3, empty list",
]  # fmt: skip


def test_specification_is_read_packet_by_packet() -> None:
    assert appendix_a() == TOLD


def test_sd_7_lost_once_gives_the_exchange_of_the_specification() -> None:
    assert [rung.what for rung in exchange(1)] == TOLD


def test_sd_7_lost_again_is_repaired_by_the_next_stat() -> None:
    found = [rung.what for rung in exchange(2)]
    assert found[:18] == TOLD[:18]
    assert found[18:] == ["STAT N(R)=7 N(PS)=3, list 7, 8, 11", "SD 7"]


def test_nothing_lost_needs_no_report_of_a_gap() -> None:
    rungs = exchange(0)
    assert transmissions(rungs) == 1
    assert suppressed(rungs).holds is False


@pytest.mark.parametrize("seed", [1, 2])
def test_all_claims_hold_whatever_the_numbers(seed: int) -> None:
    cells = {("stp", 1.0): Cell((measure("stp", 1.0, seed).value,), {})}
    assert [item.holds for item in judge(cells, seed)] == [True] * 4


def test_packet_out_of_order_does_not_hold() -> None:
    other = [*TOLD[:14], TOLD[15], TOLD[14], *TOLD[16:]]
    judgment = compared(other, TOLD)
    assert judgment.holds is False
    assert judgment.sentence.startswith("15: STAT N(R)=7 N(PS)=2")


def test_missing_packet_does_not_hold() -> None:
    assert compared(TOLD[:-1], TOLD).holds is False
    assert compared([], []).holds is False


def test_second_retransmission_of_sd_7_does_not_hold() -> None:
    rungs = exchange(1)
    again = next(rung for rung in rungs if rung.what == "SD 10")
    assert suppressed((*rungs, replace(again, what="SD 7"))).holds is False


def test_repair_by_another_packet_than_the_next_stat_does_not_hold() -> None:
    rungs = exchange(2)
    late = replace(rungs[-1], sent=rungs[-1].sent + 0.01)
    assert repaired_again((*rungs[:-1], late)).holds is False


def test_transmission_too_many_in_the_runs_does_not_hold() -> None:
    cells = {("stp", 1.0): Cell((2.0, 3.0), {})}
    assert judge(cells, 1)[-1].holds is False


def test_ladder_says_what_was_lost_and_when_the_rest_arrived() -> None:
    first, second = hk99_stp_fig8.ladders()
    assert first.text().count(" lost\n") == 1
    assert second.text().count(" lost\n") == 2
    assert "  -> SD 0                                  30 ms" in first.text()
