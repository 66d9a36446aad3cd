"""Children do their work, and are lost singly."""

from __future__ import annotations

import os
import time

from bentpipe_conformance.selftest.mutation.forking import Lost, in_children

SPOILED: list[int] = []


def test_results_come_back_and_nothing_else() -> None:
    def work(item: int) -> int:
        SPOILED.append(item)
        return item * len(SPOILED)

    assert sorted(in_children([1, 2, 3], work, 2, 60.0)) == [(1, 1), (2, 2), (3, 3)]
    assert SPOILED == []


def test_child_that_ends_or_hangs_is_lost_and_the_others_are_not() -> None:
    def work(item: str) -> str:
        if item == "ends":
            os._exit(3)
        if item == "hangs":
            time.sleep(600)
        return item

    found = dict(in_children(["ends", "hangs", "works"], work, 3, 0.5))
    assert found["works"] == "works"
    assert found["ends"] == Lost("the process ended without a result")
    assert found["hangs"] == Lost("the process took too long")


def test_generator_closed_its_children_are_ended() -> None:
    running = in_children([1, 2], lambda item: item if item == 1 else time.sleep(600), 2, 600.0)
    assert next(running) == (1, 1)
    running.close()  # type: ignore[attr-defined]
    assert next(running, None) is None
