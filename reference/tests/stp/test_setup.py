"""What a host is made from, and how mutants change it."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import pytest
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.mutants import MUTANTS, mutant
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.subject import FAR_SDS, SOON_SDS, SoonWrapping


class Deaf(StpHost):
    pass


@pytest.mark.parametrize("role", [field.name for field in fields(Parts)])
def test_subclass_of_a_part_takes_its_place_and_no_other(role: str) -> None:
    true = getattr(TRUE_PARTS, role)
    part = type("Other", (true,), {})
    setup = Setup(StpConfig(credit=8)).with_part(part)
    changed = [
        field.name for field in fields(Parts)
        if getattr(setup.parts, field.name) is not getattr(TRUE_PARTS, field.name)
    ]  # fmt: skip
    assert changed == [role] and getattr(setup.parts, role) is part
    assert setup.config == StpConfig(credit=8) and setup.host is StpHost


def test_subclass_of_the_host_takes_its_place() -> None:
    setup = Setup().with_part(Deaf).configured(credit=16)
    assert type(setup.make("10.0.0.1", 1)) is Deaf
    assert setup.parts is TRUE_PARTS and setup.config.credit == 16


def test_class_that_is_no_part_is_an_error() -> None:
    with pytest.raises(TypeError, match="dict derives from no part"):
        Setup().with_part(dict)


def test_mutant_gets_its_title_from_its_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bentpipe_reference.stp.mutants.MUTANTS", found := [*MUTANTS])

    @mutant("stp-is-deaf", breaks="STP-CC-019", setting="vbdc", used_cookies=16)
    class Mute(Deaf):
        """Says nothing.

        More of it.
        """

    made = found[-1]
    assert (made.id, made.breaks, made.title) == ("stp-is-deaf", "STP-CC-019", "says nothing")
    assert (made.profile, made.setting) == ("stp1e2", "vbdc")
    setup = made.configure(Setup())
    assert setup.host is Mute and setup.config.used_cookies == 16


def test_streams_of_the_usual_reference_begin_anywhere_or_soon_before_the_wrap() -> None:
    csns = SoonWrapping(Random(1), None)
    numbers = [csns.iss() for _ in range(64)]
    soon = [number for number in numbers if number >= (1 << 24) - SOON_SDS]
    assert 20 < len(soon) < 44 and len(set(soon)) > 10
    assert min(numbers) < 1 << 20


def test_streams_of_the_usual_reference_do_not_all_begin_near_the_wrap() -> None:
    """Eight connections that did would look like a reference that draws from a few numbers.

    Of so many, random numbers lie near it now and then.
    """
    csns = SoonWrapping(Random(2), None)
    numbers = [csns.iss() for _ in range(5000)]
    far = [FAR_SDS <= number <= (1 << 24) - FAR_SDS for number in numbers]
    assert all(any(far[at : at + 4]) for at in range(len(far) - 3))
