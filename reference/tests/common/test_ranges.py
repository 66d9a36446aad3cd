"""Range sets against plain sets of numbers."""

from __future__ import annotations

from bentpipe_reference.common.ranges import RangeSet
from hypothesis import given, settings
from hypothesis import strategies as st

ranges = st.tuples(st.integers(0, 40), st.integers(0, 40))
operations = st.lists(st.tuples(st.sampled_from(["add", "remove_below"]), ranges), max_size=12)


@given(operations, ranges)
@settings(max_examples=400, derandomize=True)
def test_any_operations_agree_with_a_set_of_numbers(
    steps: list[tuple[str, tuple[int, int]]], window: tuple[int, int]
) -> None:
    fast, plain = RangeSet(), set[int]()
    for name, (left, right) in steps:
        if name == "add":
            new = set(range(left, right)) - plain
            assert fast.add(left, right) == len(new)
            plain |= new
        else:
            fast.remove_below(left)
            plain = {number for number in plain if number >= left}
    held = {number for a, b in fast.snapshot() for number in range(a, b)}
    assert held == plain
    assert all(a < b for a, b in fast.snapshot())
    assert all(b < c for (_, b), (c, _) in zip(fast.snapshot(), fast.snapshot()[1:], strict=False))
    low, high = window
    if low < high:
        assert fast.covers(low, high) == (set(range(low, high)) <= plain)
    assert fast.overlap(low, high) == len(plain & set(range(low, high)))
    assert fast.above(low) == len({number for number in plain if number >= low})
    missing = {number for a, b in fast.gaps(low, high) for number in range(a, b)}
    assert missing == set(range(low, high)) - plain
    assert fast.first_gap(low, high) == next(iter(fast.gaps(low, high)), None)
    assert {number for held in plain for number in range(*fast.around(held))} == plain
