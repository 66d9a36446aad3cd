"""Children do their work, and are lost singly."""

from __future__ import annotations

import os
import time
import weakref

from bentpipe_conformance.selftest.mutation.forking import Lost, in_children
from bentpipe_conformance.selftest.mutation.trial import COLLECTING, limit_memory

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


def test_child_collects_its_garbage_though_seldom() -> None:
    class Link:
        """Refers to itself."""

        def __init__(self) -> None:
            self.itself = self

    def left_over(_: int) -> bool:
        limit_memory()
        first = weakref.ref(Link())
        links = [Link() for _ in range(2 * COLLECTING[0])]
        return first() is None and len(links) > 0

    assert list(in_children([0], left_over, 1, 60.0)) == [(0, True)]
