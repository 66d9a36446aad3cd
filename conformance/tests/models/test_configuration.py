from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.models.configuration import read_configuration
from bentpipe_conformance.models.tool import ToolProblem

TEXT = """
SPECIFICATION Spec      \\* a comment
CONSTANTS
    N = 3
    Users = {1, 2}
    Step <- Jump
INVARIANTS TypeOK Inv
PROPERTY Small
CHECK_DEADLOCK FALSE
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "x.cfg"
    path.write_text(text, encoding="utf-8")
    return path


def test_file_read_written_and_read_again(tmp_path: Path) -> None:
    first = read_configuration(written(tmp_path, TEXT))
    assert first.constants == {"N": "3", "Users": "{1, 2}", "Step": "<- Jump"}
    assert first.invariants == ("TypeOK", "Inv") and first.properties == ("Small",)
    assert not first.check_deadlock
    assert read_configuration(written(tmp_path, first.text())) == first


def test_variation_checks_only_what_it_names(tmp_path: Path) -> None:
    base = read_configuration(written(tmp_path, TEXT))
    varied = base.varied({"N": "4"}, {"Edge": "Other"}, ["Inv", "NeverX", "Ends"], ["NeverX"])
    assert varied.invariants == ("Inv", "NeverX") and varied.properties == ("Ends",)
    assert varied.constants["N"] == "4" and varied.constants["Edge"] == "<- Other"
    assert base.varied({}, {}, [], []) == base


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("INVARIANT TypeOK", "one SPECIFICATION"),
        ("SPECIFICATION Spec\nPOSTCONDITION P", "POSTCONDITION"),
        ("SPECIFICATION Spec CONSTANT N", "NAME = VALUE"),
    ],
)
def test_file_not_understood_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ToolProblem, match=says):
        read_configuration(written(tmp_path, text))


def test_missing_file_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolProblem, match=r"cannot be read"):
        read_configuration(tmp_path / "none.cfg")
