"""Specifications as one text."""

from __future__ import annotations

import re

import pytest
from bentpipe_spec.document import specification, specifications, state_table
from bentpipe_spec.protocols import SpecificationError
from bentpipe_spec.registry import load_requirements


@pytest.mark.parametrize("name", specifications())
def test_every_requirement_stands_in_the_text_of_its_protocol_once(name: str) -> None:
    text = specification(name)
    folded = " ".join(text.split())
    for requirement in load_requirements().values():
        if requirement.id.startswith(f"{name.upper()}-"):
            assert text.count(f"**{requirement.id}**") == 1, requirement.id
            assert requirement.text in folded


@pytest.mark.parametrize("name", specifications())
def test_the_text_cites_existing_requirements_only(name: str) -> None:
    cited = set(re.findall(rf"\b{name.upper()}-[A-Z]{{2,4}}-\d+", specification(name)))
    assert cited - set(load_requirements()) == set()


def test_sections_that_rwbp_refers_to_exist() -> None:
    text = specification("rwbp").partition("Appendix C. Errata")[0]
    headings = set(re.findall(r"^(\d+(?:\.\d+)?)\. \S", text, re.MULTILINE))
    foreign = r"(?:RFC \d+|ZB03) sections? [\w.]+(?: and [\w.]+)?"
    own = re.sub(foreign, "", " ".join(text.split()))
    named = set(re.findall(r"(?:[Ss]ections?|rule) (\d+(?:\.\d+)?)", own))
    assert len(named) > 15
    assert sorted(named - headings) == []


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
