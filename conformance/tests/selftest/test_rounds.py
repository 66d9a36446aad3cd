"""Blind rounds: judged, recorded once, reviewed, summed up."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.selftest import rounds
from bentpipe_conformance.selftest.activity import activity_of, main
from bentpipe_conformance.selftest.rounds import FaultResult, cites, load_record, round_summary
from bentpipe_reference.common.blind import Fault, Variant, load_round, rounds_of, written_in
from bentpipe_spec.registry import load_requirements

EXAMPLES = {"snr": "tcp", "stp": "stp"}
CAUGHT = FaultResult("x", "does x", "RFC 1", True, "A-1", ("A-1",), "case: wrong", True)
MISSED = replace(CAUGHT, id="y", caught=False, named="", failed=(), sentence="", cites=False)


def examples(protocol: str) -> dict[str, Variant]:
    return written_in(
        importlib.import_module(f"bentpipe_reference.{protocol}.mutants.blind.example")
    )


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every eighth case alone is played."""

    def every_eighth(suite: str) -> dict[str, Case]:
        return dict(list(load_cases(suite).items())[::8])

    monkeypatch.setattr(rounds, "load_cases", every_eighth)


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "protocol"), EXAMPLES.items())
def test_first_example_is_caught_and_named_by_every_case(
    suite: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_first_example_is_caught_and_named(suite, protocol, monkeypatch, None)


@pytest.mark.parametrize(("suite", "protocol"), EXAMPLES.items())
def test_first_example_is_caught_and_named(
    suite: str, protocol: str, monkeypatch: pytest.MonkeyPatch, few: None
) -> None:
    del few
    found = examples(protocol)
    monkeypatch.setattr(rounds, "load_round", lambda *_: found)
    reported: list[FaultResult] = []
    (result,) = rounds.run_round(suite, 1, [next(iter(found))], 1, reported.append)
    assert result.caught and result.cites and result.named and not result.error
    assert reported == [result]


@pytest.mark.parametrize(("protocol", "transfers"), [("tcp", 10), ("stp", 10), ("pep", 2)])
def test_every_example_changes_packets(protocol: str, transfers: int) -> None:
    for fault in examples(protocol).values():
        assert activity_of(fault, protocol, range(1, transfers + 1)).active


def test_fault_that_changes_nothing_or_breaks_is_told_to_its_author(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from bentpipe_reference.common.blind import Fault\n"
        "FAULTS = [Fault('idle', 'nothing', 'RFC 9293', lambda setup: setup),\n"
        "          Fault('broken', 'breaks', 'RFC 9293', lambda setup: setup.nonsense)]\n"
    )
    said: list[str] = []
    assert main(["tcp", str(path)], said.append) == 1
    assert said[0] == "idle: packets differ in 0 of 20 transfers"
    assert said[1].startswith("broken: AttributeError")


@pytest.mark.usefixtures("few")
def test_fault_that_does_not_start_is_an_error_not_a_miss_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Fault("b", "breaks", "RFC 9293", lambda setup: setup.nonsense)
    monkeypatch.setattr(rounds, "load_round", lambda *_: {"b": broken})
    (result,) = rounds.run_round("snr", 1, [], 1, lambda _: None)
    assert not result.caught
    assert result.error.startswith("AttributeError")
    assert round_summary("snr", 1, [result], {})["errors"] == ["b"]


@pytest.mark.usefixtures("few")
def test_round_while_the_true_reference_is_accused_is_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = Fault("b", "breaks", "RFC 9293", lambda setup: pytest.fail("was judged"))
    faulty = next(iter(examples("tcp").values()))
    reference = rounds.played
    monkeypatch.setattr(rounds, "load_round", lambda *_: {"b": never})
    monkeypatch.setattr(rounds, "played", lambda *given: reference(*given[:3], faulty))
    with pytest.raises(ValueError, match=r"true reference is accused \(rfc\).*: SNR-"):
        rounds.run_round("snr", 1, [], 1, lambda _: None)


@pytest.mark.parametrize(
    ("clause", "cited"),
    [
        ("SNR-WIN-001", True),
        ("SNR-WIN-002", False),
        ("RFC 9293 section 3.8.6", True),
        ("RFC 9293 section 3.8", True),
        ("RFC 9293 section 3.8.6.1", True),
        ("RFC 9293 section 3.80", False),
        ("RFC 7323 section 2.3", True),
        ("RFC 7323 section 5.3; RFC 7323 section 2.2", True),
        ("RFC 6298 section 3.4", False),
        ("RFC 9293", True),
    ],
)
def test_requirement_cites_a_clause_or_not(clause: str, cited: bool) -> None:
    requirement = replace(
        load_requirements()["SNR-WIN-001"],
        source=("RFC 9293 section 3.4", "RFC 9293 section 3.8.6 (MUST-34)",
                "RFC 7323 sections 2.2 and 2.3", "HK99 section 3.1"),
    )  # fmt: skip
    assert cites(requirement, clause) is cited


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "round_1.toml"
    monkeypatch.setattr(rounds, "record_file", lambda *_: path)
    monkeypatch.setattr(rounds, "load_round", lambda *_: {"x": None, "y": None})
    return path


def test_first_run_is_recorded_once(record: Path) -> None:
    assert load_record("tcp", 1) == {}
    rounds.write_record("tcp", 1, [CAUGHT, MISSED], "2026-11-22")
    stored = load_record("tcp", 1)
    assert stored["date"] == "2026-11-22"
    assert {name: item["caught"] for name, item in stored["fault"].items()} == {
        "x": True, "y": False,
    }  # fmt: skip
    with pytest.raises(ValueError, match="only the first one counts"):
        rounds.write_record("tcp", 1, [CAUGHT, MISSED], "2026-11-23")


def test_fault_that_the_review_rejects_does_not_count(record: Path) -> None:
    rounds.write_record("tcp", 1, [CAUGHT, MISSED], "2026-11-22")
    text = record.read_text()
    place = text.index("[fault.y]")
    record.write_text(
        text[:place]
        + text[place:].replace('"valid"', '"permitted"').replace('reason = ""', 'reason = "MAY"')
    )
    outcome = round_summary("snr", 1, [CAUGHT, MISSED], load_record("tcp", 1))
    assert (outcome["faults"], outcome["valid"], outcome["caught"], outcome["right"]) == (
        2,
        1,
        1,
        1,
    )
    assert outcome["missed"] == []
    assert outcome["first"] == {"date": "2026-11-22", "valid": 1, "caught": 1, "right": 1}


def test_later_run_does_not_change_the_first(record: Path) -> None:
    rounds.write_record("tcp", 1, [CAUGHT, MISSED], "2026-11-22")
    mended = replace(CAUGHT, id="y")
    outcome = round_summary("snr", 1, [CAUGHT, mended], load_record("tcp", 1))
    assert (outcome["caught"], outcome["first"]["caught"]) == (2, 1)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('valid = "valid"', 'valid = "dubious"', "give valid, equivalent"),
        ('valid = "valid"', 'valid = "invisible"', "without a reason"),
        ("[fault.x]", "[fault.z]", "no fault z"),
    ],
)
def test_review_that_says_too_little_is_refused(
    record: Path, old: str, new: str, sentence: str
) -> None:
    rounds.write_record("tcp", 1, [CAUGHT, MISSED], "2026-11-22")
    record.write_text(record.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=sentence):
        load_record("tcp", 1)


@pytest.mark.parametrize("suite", load_suites())
def test_rounds_load_with_their_records(suite: str) -> None:
    protocol = load_suites()[suite].folder
    for number in rounds_of(protocol):
        faults = load_round(protocol, number)
        assert set(load_record(protocol, number).get("fault", faults)) == set(faults)


def test_round_that_is_not_there_is_named_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="tcp has no round 999; its rounds: "):
        load_round("tcp", 999)


def test_two_written_in_one_name_are_refused() -> None:
    module: Any = type("m", (), {"FAULTS": [*examples("tcp").values()] * 2})
    with pytest.raises(ValueError, match="two of m have the identifier tcp-example-"):
        written_in(module)
