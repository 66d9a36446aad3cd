"""Smaller examples: fewer disturbances that still break the same requirement.

Not Hypothesis: its examples are choices that it can draw anew, while a run that fails has thousands
of disturbances in a recorded order, of which most can be left out. That is delta debugging's field.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_Item = TypeVar("_Item")


def shrunk(
    disturbances: list[_Item],
    still_fails: Callable[[list[_Item]], bool],
    *,
    seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> list[_Item]:
    """A sublist that still fails, from which no single disturbance can be left out.

    Unless the time expires first. The list itself is returned if it does not fail when repeated.

    Args:
        disturbances: what a failing run recorded.
        still_fails: repeats the run with these.
        seconds: time limit, after which the smallest list found so far is returned.
        clock: tells the time.
    """
    deadline = clock() + seconds
    if not still_fails(disturbances):
        return disturbances
    kept = disturbances
    size = max(1, len(kept) // 2)
    while kept:
        at, smaller = 0, False
        while at < len(kept):
            if clock() > deadline:
                return kept
            fewer = kept[:at] + kept[at + size :]
            if still_fails(fewer):
                kept, smaller = fewer, True
            else:
                at += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2) if not smaller or size > 1 else 1
    return kept
