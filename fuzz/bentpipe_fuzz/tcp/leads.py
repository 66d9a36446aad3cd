"""What situations of TCP are made of: openings, users and receivers."""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import step
from bentpipe_fuzz.campaign.script import Step

Situation = st.SearchStrategy[list[Step]]
Times = st.SearchStrategy[float]

one, some_of, either = st.just, st.sampled_from, st.booleans()
perhaps, DAYTIME, WIDE = st.none(), 13, 1 << 20

soon = some_of([0.1, 0.7, 1.3])
timeout = some_of([1.3, 2.0, 3.5, 8.0])
"""Seconds of silence after which a sender has timed out once or twice."""


def opened(service: str | int, **offer: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    """The tester calls a service."""
    return step("open", service=one(service), **offer)


def wait(seconds: Times) -> st.SearchStrategy[Step]:
    """The tester looks at nothing for a while."""
    return step("wait", seconds=seconds)


def receive(seconds: float, **given: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    """The tester is a receiver for a while."""
    return step("receive", seconds=one(seconds), **given)


def segments(count: list[int], **given: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    """The tester receives so many segments."""
    return step("receive", segments=some_of(count), seconds=one(5.0), **given)


def place(base: str, *distances: int) -> st.SearchStrategy[tuple[str, int]]:
    """Places at these distances from a number."""
    return st.tuples(one(base), some_of(list(distances)))


settle, close = step("settle", rounds=one(3)), step("close")
text = step("write", octets=some_of([100, 1000, 2920]))
quiet_service, any_service = (some_of(["discard", "echo", "chargen"][:n]) for n in (2, 3))
bulk = opened("chargen", mss=some_of([536, 1460, 1460]), window=some_of([20_000, 40_000]),
              sack=either, timestamps=either)  # fmt: skip
bulk_with_sack = opened("chargen", window=one(40_000), sack=one(True), timestamps=either)
bulk_without = opened("chargen", window=one(40_000), sack=one(False), timestamps=either)
