"""Blind rounds of permitted variants: judged, recorded once, reviewed, summed up."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.selftest import rounds, variants
from bentpipe_conformance.selftest.activity import Activity
from bentpipe_conformance.selftest.variants import (
    Charge,
    VariantResult,
    first_run,
    load_record,
    variants_summary,
)
from bentpipe_reference.common.blind import VARIANTS, Variant, load_round, rounds_of, written_in
from bentpipe_reference.common.mutation import load_mutants

CHARGE = Charge("A-1", "a/case", "wrong", (3, 4))
ACCUSED = VariantResult("x", "does x", "RFC 1", True, (CHARGE, replace(CHARGE, where="b/case")))
CLEAR = VariantResult("y", "does y", "RFC 2", True, ())


def examples() -> dict[str, Variant]:
    name = "bentpipe_reference.tcp.mutants.blind.variants_example"
    return written_in(importlib.import_module(name))


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every twentieth case alone is played, and one transfer."""

    def every_twentieth(suite: str) -> dict[str, Case]:
        return dict(list(load_cases(suite).items())[::20])

    monkeypatch.setattr(rounds, "load_cases", every_twentieth)
    monkeypatch.setattr(variants, "SEEDS", (2,))
    monkeypatch.setattr(variants, "_usual", variants._usual.__wrapped__)


def judged(monkeypatch: pytest.MonkeyPatch, variant: Variant) -> VariantResult:
    found = {variant.id: variant}
    monkeypatch.setattr(variants, "load_round", lambda *_: found)
    (result,) = variants.run_variants("snr", 998, [], 1, lambda _: None)
    return result


@pytest.mark.usefixtures("brief")
def test_permitted_variant_is_not_accused_and_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(monkeypatch, examples()["tcp-example-three-segments"])
    assert result.active
    assert not result.error
    assert result.charges == ()


@pytest.mark.usefixtures("brief")
def test_variant_that_is_a_mutant_is_accused_in_cases_and_transfers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guilty = load_mutants()["snr-window-never-grows"]
    result = judged(monkeypatch, Variant("w", "never grows", "RFC 5681", guilty.configure))
    assert guilty.breaks in result.accused
    assert {"transfer 2, host 1"} < {charge.where for charge in result.charges}


@pytest.mark.usefixtures("brief")
def test_variant_that_changes_nothing_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "activity_of", lambda *_: Activity(0, 1))
    result = judged(monkeypatch, Variant("i", "nothing", "RFC 9293", lambda setup: setup))
    assert not result.active
    assert variants_summary("snr", 1, [result], {})["idle"] == ["i"]


@pytest.mark.usefixtures("brief")
def test_variant_that_does_not_start_is_an_error_and_no_accusation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = judged(monkeypatch, Variant("b", "breaks", "RFC 9293", lambda setup: setup.nonsense))
    assert result.error.startswith("AttributeError")
    outcome = variants_summary("snr", 1, [result], {})
    assert (outcome["errors"], outcome["accused"]) == (["b"], [])


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "variants_1.toml"
    monkeypatch.setattr(variants, "record_file", lambda *_: path)
    known = {name: Variant(name, "", "", lambda setup: setup) for name in ("x", "y")}
    monkeypatch.setattr(variants, "load_round", lambda *_: known)
    return path


def reviewed(path: Path, review: str, reason: str = "because") -> None:
    text = path.read_text().replace('review = "open"', f'review = "{review}"')
    path.write_text(text.replace('reason = ""', f'reason = "{reason}"'))


def test_first_run_is_recorded_once(record: Path) -> None:
    assert load_record("tcp", 1) == {}
    variants.write_record("tcp", 1, [ACCUSED, CLEAR], "2026-11-23")
    stored = load_record("tcp", 1)
    assert stored["variant"]["x"]["accused"]["A-1"]["first"] == "a/case: wrong"
    assert "accused" not in stored["variant"]["y"]
    with pytest.raises(ValueError, match="only the first one counts"):
        variants.write_record("tcp", 1, [ACCUSED, CLEAR], "2026-11-24")


@pytest.mark.parametrize(
    ("review", "wrongly", "rightly", "now"),
    [("open", 0, 0, ["x"]), ("mended", 1, 0, ["x"]), ("stated", 1, 0, ["x"]),
     ("forbidden", 0, 1, []), ("advised", 0, 1, [])],
)  # fmt: skip
def test_review_says_whether_who_is_accused_still_is_so_wrongly(
    record: Path, review: str, wrongly: int, rightly: int, now: list[str]
) -> None:
    variants.write_record("tcp", 1, [ACCUSED, CLEAR], "2026-11-23")
    reviewed(record, review)
    outcome = variants_summary("snr", 1, [ACCUSED, CLEAR], load_record("tcp", 1))
    first = outcome["first"]
    assert (first["variants"], first["accused"]) == (2, 1)
    assert (first["wrongly"], first["rightly"]) == (wrongly, rightly)
    assert first["requirements"][review] == 1
    assert outcome["accused"] == now


def test_new_accusation_of_a_reviewed_variant_is_no_review(record: Path) -> None:
    variants.write_record("tcp", 1, [ACCUSED], "2026-11-23")
    reviewed(record, "forbidden")
    other = replace(ACCUSED, charges=(replace(CHARGE, requirement="A-2"),))
    outcome = variants_summary("snr", 1, [other], load_record("tcp", 1))
    assert outcome["accused"] == ["x"]
    assert outcome["table"][0]["accused"] == {"A-2": "new"}


def test_variant_that_broke_down_or_changed_nothing_does_not_count(record: Path) -> None:
    broken, idle = replace(ACCUSED, error="died"), replace(CLEAR, active=False)
    variants.write_record("tcp", 1, [broken, idle], "2026-11-23")
    assert first_run(load_record("tcp", 1))["variants"] == 0


def test_review_may_add_answers_to_the_statement(record: Path) -> None:
    variants.write_record("tcp", 1, [ACCUSED], "2026-11-23")
    record.write_text(
        record.read_text().replace("[variant.x]", "[variant.x]\nics = { item = true }")
    )
    assert variants.load_variants("tcp", 1)["x"].ics == {"item": True}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('review = "open"', 'review = "dubious"', "give open, "),
        ('review = "open"', 'review = "mended"', "without a reason"),
        ("[variant.x]", "[variant.z]", "no variant z"),
    ],
)
def test_review_that_says_too_little_is_refused(
    record: Path, old: str, new: str, sentence: str
) -> None:
    variants.write_record("tcp", 1, [ACCUSED, CLEAR], "2026-11-23")
    record.write_text(record.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=sentence):
        load_record("tcp", 1)


@pytest.mark.parametrize("suite", load_suites())
def test_rounds_of_variants_load_with_their_records(suite: str) -> None:
    protocol = load_suites()[suite].folder
    for number in rounds_of(protocol, VARIANTS):
        known = load_round(protocol, number, VARIANTS)
        stored: Any = load_record(protocol, number)
        assert set(stored.get("variant", known)) == set(known)
