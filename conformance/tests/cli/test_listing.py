"""``bentpipe list`` and ``bentpipe show``, read by people and by programs."""

from __future__ import annotations

import json
import re

import pytest
from bentpipe_conformance.cli.main import main
from bentpipe_conformance.cli.output import output


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit status and what a command prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["bentpipe", *words])
        with pytest.raises(SystemExit) as end:
            main()
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


@pytest.mark.parametrize("kind", ["requirements", "cases", "iuts", "links"])
def test_list_into_a_pipe_keeps_each_row_on_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = json.loads(run(capsys, "list", kind, "--json")[1])
    lines = run(capsys, "list", kind)[1].splitlines()
    assert [line.split()[0] for line in lines[1:]] == [row["id"] for row in rows]


def test_text_into_a_pipe_is_not_folded(capsys: pytest.CaptureFixture[str]) -> None:
    output().print("word " * 1000)
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize(
    ("identifier", "meant"),
    [
        ("snr-rec-001", "did you mean SNR-REC-001?"),
        ("SNR-RECC-001", "did you mean SNR-REC-001"),
        ("GEO", "did you mean geo?"),
        ("qqqq", "see 'bentpipe list requirements'"),
    ],
)
def test_unknown_identifier_is_answered_with_those_alike(
    capsys: pytest.CaptureFixture[str], identifier: str, meant: str
) -> None:
    status, _, said = run(capsys, "show", identifier)
    assert (status, meant in said) == (2, True), said


@pytest.mark.parametrize("identifier", ["SNR-REC-001", "linux", "geo", "stp"])
def test_identifier_is_shown_as_one_object(
    capsys: pytest.CaptureFixture[str], identifier: str
) -> None:
    status, said, _ = run(capsys, "show", identifier, "--json")
    assert (status, json.loads(said)["id"]) == (0, identifier)


@pytest.mark.parametrize("words", [("show", "SNR-REC-001"), ("list", "iuts")])
def test_table_into_a_pipe_ends_each_line_with_its_text(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    lines = run(capsys, *words)[1].splitlines()
    assert len(lines) > 2
    assert [line for line in lines if line != line.rstrip()] == []


def test_selftest_without_a_matching_mutant_names_a_requirement_to_show(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, _, said = run(capsys, "selftest", "snr", "--only", "qqqq")
    shown = re.findall(r"'bentpipe show (\S+)'", said)
    assert (status, len(shown)) == (2, 1), said
    assert run(capsys, "show", shown[0])[0] == 0
