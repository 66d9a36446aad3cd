from __future__ import annotations

import pytest
from bentpipe_reference.common.serial import SerialSpace
from hypothesis import given
from hypothesis import strategies as st

spaces = st.sampled_from((8, 24, 32)).map(SerialSpace)
far = st.integers(0, 1 << 40)


@given(spaces, far, st.data())
def test_unwrap_when_within_half_the_space_returns_the_number(
    space: SerialSpace, near: int, data: st.DataObject
) -> None:
    number = near + data.draw(st.integers(-space.half, space.half - 1))
    assert space.unwrap(space.wrap(number), near) == number


@given(spaces, far, st.data())
def test_before_when_numbers_wrap_still_orders(
    space: SerialSpace, number: int, data: st.DataObject
) -> None:
    step = data.draw(st.integers(1, space.half - 1))
    left, right = space.wrap(number), space.wrap(number + step)
    assert space.before(left, right)
    assert not space.before(right, left)
    assert space.distance(left, right) == step


@pytest.mark.parametrize("step", [0, 1 << 31])
def test_before_when_equal_or_half_apart_orders_neither(step: int) -> None:
    space = SerialSpace(32)
    assert not space.before(7, space.wrap(7 + step))
    assert not space.before(space.wrap(7 + step), 7)
