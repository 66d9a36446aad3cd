"""``certify --explore``: what a campaign finds is in the bundle, and verify makes it again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign import exploring, worker
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.common.subject import subject_of
from click.testing import CliRunner, Result

CHOSEN = (
    "certify",
    "stp-reference-simulated",
    "--only",
    "stp/opening/ready-two-connections-at-once",
)


CONVERSATIONS = 8


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign ends after so many conversations, and not by the clock."""
    usual = worker.work
    monkeypatch.setattr(
        worker, "work", lambda order, *more: usual(replace(order, examples=CONVERSATIONS), *more)
    )


def invoke(*words: str) -> Result:
    return CliRunner().invoke(bentpipe, list(words))


def certified(folder: Path, *words: str) -> dict[str, Any]:
    result = invoke(*CHOSEN, "--seed", "5", "--out", str(folder), *words)
    assert (folder / "result.json").exists(), result.output
    document: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return document


@pytest.fixture
def faulty(eight: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The campaign, and it alone, meets a mutant; its requirement."""
    mutant = load_mutants()["stp-skips-poll-numbers"]

    def opened(*_: Any) -> Any:
        return stage(subject_of("stp"), mutant.profile, "", 0, mutant.configure)[0]

    monkeypatch.setattr(worker, "open_lane", opened)
    return str(mutant.breaks)


def test_what_is_found_fails_its_requirement_and_verifies(tmp_path: Path, faulty: str) -> None:
    bundle = tmp_path / "bundle"
    document = certified(bundle, "--explore", "600")
    told = document["exploration"]
    assert told["seed"] == 5 and told["conversations"] == CONVERSATIONS and told["found"]
    assert document["verdict"] == "fail"
    row = next(row for row in document["requirements"] if row["id"] == faulty)
    assert row["verdict"] == "fail"
    name = next(name for name in told["found"] if name.startswith(f"stp/found/{faulty}"))
    folder = bundle / "cases" / name.replace("/", "__")
    assert sorted(path.name for path in folder.iterdir()) == [
        "case.json", "iut.pcapng", "peer.pcapng", "replay.json"
    ]  # fmt: skip
    again = invoke("replay", str(folder / "replay.json"))
    assert again.exit_code == 1 and faulty in again.output
    verified = invoke("verify", str(bundle), "--json")
    assert verified.exit_code in (1, 3), verified.output
    assert not json.loads(verified.stdout)["differences"], verified.output

    replay = folder / "replay.json"
    text = replay.read_text()
    for path, changed, said in (
        (replay, text.replace('"geo"', '"lan"', 1), "was changed after the run"),
        (bundle / "exploration.json", "{}", "is no case of the plan"),
    ):
        before = path.read_text()
        assert changed != before
        path.write_text(changed)
        result = invoke("verify", str(bundle))
        assert result.exit_code != 0 and said in result.output.replace("\n", " ")
        path.write_text(before)


def test_what_the_reference_is_accused_of_as_well_is_doubtful(
    tmp_path: Path, faulty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exploring._Exploration, "_accuses_the_reference", lambda *_: True)
    told = certified(tmp_path / "bundle", "--explore", "600")["exploration"]
    assert not told["found"]
    assert faulty in {row["requirement"] for row in told["doubtful"]}


def test_certification_explores_only_when_asked(tmp_path: Path) -> None:
    assert "exploration" not in certified(tmp_path / "bundle")
    document = certified(tmp_path / "other", "--explore", "2")
    assert document["exploration"]["found"] == []
    assert document["exploration"]["conversations"] > 0
