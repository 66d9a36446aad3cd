"""Crews: who is at work, how the first that failed ended, and that stopping ends them all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from bentpipe_conformance.run.assignment import Assignment
from bentpipe_conformance.run.crew import Crew, process_crew


def order(folder: Path, iut: str = "reference") -> Assignment:
    return Assignment(iut, "geo", "rfc", "snr", ("x",), str(folder / "b"), str(folder), 1)


class Hand:
    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.ended = False
        self.closed = False

    def running(self) -> bool:
        return not self.ended

    def failure(self) -> str:
        assert self.ended
        return self.fails

    def close(self) -> None:
        self.closed = True


def crew_of(folder: Path, *hands: Hand, size: int | None = None) -> Crew:
    left = list(hands)

    def start(_command: Sequence[str], _folder: Path) -> Hand:
        return left.pop(0)

    return Crew(order(folder), len(hands) if size is None else size, start)


def test_members_that_end_are_closed_and_the_first_failure_is_told(tmp_path: Path) -> None:
    hands = Hand(), Hand("signal 9"), Hand("exit status 2")
    crew = crew_of(tmp_path, *hands)
    assert crew.alive()
    hands[0].ended = hands[1].ended = True
    assert crew.alive()
    assert [hand.closed for hand in hands] == [True, True, False]
    hands[2].ended = True
    assert not crew.alive()
    assert crew.why() == "signal 9"


def test_crew_of_several_stopped_at_work_says_so(tmp_path: Path) -> None:
    hands = Hand(), Hand()
    crew = crew_of(tmp_path, *hands)
    crew.stop()
    assert all(hand.closed for hand in hands)
    assert crew.why() == "it was stopped"


def test_member_that_cannot_be_started_leaves_none_at_work(tmp_path: Path) -> None:
    hand = Hand()
    with pytest.raises(IndexError):
        crew_of(tmp_path, hand, size=2)
    assert hand.closed


def test_process_that_fails_is_quoted(tmp_path: Path) -> None:
    crew = process_crew(order(tmp_path, "nothing-like-it"), 1)
    while crew.alive():
        time.sleep(0.02)
    assert "there is no implementation 'nothing-like-it'" in crew.why()
    crew.stop()
