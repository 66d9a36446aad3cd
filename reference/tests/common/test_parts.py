from __future__ import annotations

from dataclasses import dataclass

import pytest
from bentpipe_reference.common.parts import with_part


class Engine:
    pass


class Wheel:
    pass


class Flat(Wheel):
    pass


@dataclass(frozen=True, slots=True)
class Car:
    engine: type[Engine] = Engine
    wheel: type[Wheel] = Wheel


def test_part_when_derived_from_a_true_one_replaces_it_alone() -> None:
    assert with_part(Car(), Flat) == Car(Engine, Flat)


def test_part_when_derived_from_none_is_refused() -> None:
    with pytest.raises(TypeError, match="int derives from no part"):
        with_part(Car(), int)
