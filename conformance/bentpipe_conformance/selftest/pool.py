"""Independent work spread over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TypeVar

from bentpipe_reference.common.processes import process_pool

Item = TypeVar("Item")
Result = TypeVar("Result")


def work_through(
    items: Iterable[Item], function: Callable[[Item], Result], jobs: int,
    report: Callable[[Result], None],
) -> list[Result]:  # fmt: skip
    """The results of ``function`` in the order of the items, each reported as it is known.

    With one job everything happens in this process.
    """
    results: list[Result] = []
    with ExitStack() as stack:
        if jobs == 1:
            found: Iterable[Result] = map(function, items)
        else:
            found = stack.enter_context(process_pool(jobs)).map(function, items)
        for result in found:
            results.append(result)
            report(result)
    return results
