"""Walks: a condition, and amid it a few kinds of events that follow each other in any order.

Situations are what somebody has thought of. What two or three things at once bring about is not
among them, unless chance adds the others: a walk has two to four kinds of events and pauses of its
own, so that the same ones meet each other again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, weighted
from bentpipe_fuzz.campaign.script import Step

Event = st.SearchStrategy[list[Step]]

PAUSES = ((0.02, 0.05), (0.15, 0.25), (0.35, 0.7), (0.7, 0.9), (1.3, 2.0), (3.5, 8.0), (20.0, 45.0))
"""Seconds: less than half a round trip, more, a timeout, several."""


def events(*kinds: st.SearchStrategy[Any]) -> tuple[Event, ...]:
    """Steps and lists of steps as kinds of events."""
    return tuple(episode(kind) for kind in kinds)


@st.composite
def walk(
    draw: st.DrawFn, kinds: Sequence[Event], pauses: Sequence[Sequence[float]], most: int
) -> list[Step]:
    """Four to so many events of two to four kinds, with pauses of one kind or two between them."""
    some = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=4, unique=True))
    among = [0.0, *draw(st.sampled_from(pauses)), *draw(st.sampled_from(pauses))]
    steps: list[Step] = []
    for _ in range(draw(st.integers(4, most))):
        steps += draw(weighted(*some))
        pause = draw(st.sampled_from(among))
        if pause:
            steps.append(Step("wait", {"seconds": pause}))
    return steps
