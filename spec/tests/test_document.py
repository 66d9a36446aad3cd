"""Specifications as one text."""

from __future__ import annotations

import pytest
from bentpipe_spec.document import specification, specifications, state_table
from bentpipe_spec.protocols import SpecificationError
from bentpipe_spec.registry import load_requirements


def test_every_stp_requirement_stands_in_the_text() -> None:
    text = specification("stp")
    for requirement in load_requirements().values():
        if requirement.id.startswith("STP-"):
            assert text.count(f"**{requirement.id}**") >= 1, requirement.id
            assert " ".join(requirement.text.split()) in " ".join(text.split())


def test_no_directive_is_left_in_the_text() -> None:
    for name in specifications():
        assert "\n.. " not in specification(name)


def test_every_cell_of_the_state_table_is_whole_and_cites_known_requirements() -> None:
    rows = state_table("stp")
    cells = {(row.state, row.packet): row for row in rows}
    assert len(cells) == 4 * 10
    assert [row for row in cells.values() if row.when] == []
    assert {name for row in rows for name in row.requirements} <= set(load_requirements())


@pytest.mark.parametrize("read", [specification, state_table])
def test_an_unknown_name_is_refused(read: object) -> None:
    with pytest.raises(SpecificationError, match="called 'nothing'"):
        read("nothing")  # type: ignore[operator]
