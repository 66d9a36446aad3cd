"""The requirement registry: what it accepts, what it refuses, and that our files are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bentpipe_spec.protocols import SpecificationError, file, protocols, read_table
from bentpipe_spec.registry import (
    Requirement,
    load_file,
    load_requirements,
    parse_requirement,
)

GOOD: dict[str, Any] = {
    "id": "SNR-TST-001",
    "title": "A title",
    "level": "MUST",
    "text": "It MUST\n  work.",
    "source": ["RFC 0000 section 1"],
    "testability": "wire",
    "profiles": ["rfc"],
}


def test_good_table_becomes_a_record_with_folded_text() -> None:
    requirement = parse_requirement(GOOD, "file")
    assert requirement.text == "It MUST work."
    assert requirement.permitted("rfc", "anything", 7) == 7


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"title": None}, "lacks 'title'"),
        ({"title": 3}, "'title' must be a str"),
        ({"id": "SNR-1"}, "not of the form"),
        ({"level": "OUGHT"}, "not one of MUST"),
        ({"testability": "faith"}, "not one of wire"),
        ({"profiles": []}, "profiles must be among"),
        ({"profiles": ["dream"]}, "profiles must be among"),
        ({"source": []}, "names no source"),
        ({"alternatives": {"hk99": {}}}, "which is not its profile"),
        ({"conditions": {"hk99": "sack"}}, "which is not its profile"),
    ],
)
def test_bad_table_is_refused_in_one_sentence(change: dict[str, Any], complaint: str) -> None:
    entry = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(SpecificationError, match=complaint) as caught:
        parse_requirement(entry, "file.toml")
    assert str(caught.value).startswith("file.toml: ")
    assert "\n" not in str(caught.value)


def test_condition_of_a_profile_is_one_more_there_and_none_elsewhere() -> None:
    found = parse_requirement(
        {**GOOD, "condition": "sack", "profiles": ["hk99", "rfc"], "conditions": {"rfc": "a=b|c"}},
        "file.toml",
    )
    assert found.condition_in("rfc") == "sack, a=b|c"
    assert found.condition_in("hk99") == "sack"


@pytest.mark.parametrize("text", ["[[requirement", "[table]\nx = 1"])
def test_broken_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(SpecificationError, match=r"broken\.toml"):
        load_file(path)


@pytest.mark.parametrize("requirement", load_requirements().values(), ids=lambda item: item.id)
def test_every_requirement_speaks_at_its_level(requirement: Requirement) -> None:
    assert requirement.level in requirement.text
    assert requirement.title == requirement.title.strip()
    assert not requirement.title.endswith(".")
    for source in requirement.source:
        assert source.startswith(("HK99", "ITU-T ", "RFC ", "ZB03", "project decision: ")), source


@pytest.mark.parametrize("name", [name for name in protocols() if file(name, "ics.toml").is_file()])
def test_conditions_name_items_of_the_conformance_statement(name: str) -> None:
    items = read_table(name, "ics.toml", "conformance statement proforma")["item"]
    prefix = {"tcp": "SNR"}.get(name, name.upper())
    for requirement in load_requirements().values():
        if requirement.id.startswith(f"{prefix}-") and requirement.condition:
            for part in requirement.condition.split(","):
                item, _, answers = part.strip().partition("=")
                assert item in items, requirement.id
                choices = items[item].get("choices", answers.split("|"))
                assert set(filter(None, answers.split("|"))) <= set(choices), requirement.id


RETIRED = {"STP-CC": (3, 7, 13, 17, 18, 30, 32, 33), "STP-SEC": (2,)}
"""Rules that only the first edition of STP/1 has; an identifier is not used again."""


def test_identifiers_of_a_group_have_no_gaps() -> None:
    groups: dict[str, list[int]] = {}
    for name in load_requirements():
        group, number = name.rsplit("-", 1)
        groups.setdefault(group, []).append(int(number))
    for group, numbers in groups.items():
        numbers += RETIRED.get(group, ())
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), group
