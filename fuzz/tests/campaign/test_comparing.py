"""Two implementations, one script: what their differences are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.comparing import Difference, Played, compared
from bentpipe_fuzz.campaign.replay import Replay
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.common.subject import subject_of
from click.testing import CliRunner, Result

TCP = suite_named("snr")
BINDING = binding_of(TCP)
REPEATING = (
    Step("open", {"service": "discard"}), Step("write"), Step("receive"),
    Step("segment", {"seq": ["zero", 0], "octets": 100}), Step("wait", {"seconds": 2.0}),
)  # fmt: skip
WRITING = Step("open", {"service": "discard"}), Step("write", {"octets": 4380}), Step("receive")


def played(configure: Callable[[Any], Any], *steps: Step) -> Played:
    lane, settings = stage(subject_of("tcp"), "rfc", "", 0, configure)
    found = play(Script("snr", "honest", steps), lane, settings)
    trace = read_trace(found.outcome.captured, 0.0, suite=TCP)
    violated = {item.requirement: item.sentence for item in found.findings.values()}
    return Played(trace, violated, "rfc", settings.ics)


def against(mutant: str, *steps: Step) -> Difference:
    broken = load_mutants()[mutant].configure
    return compared(played(lambda setup: setup, *steps), played(broken, *steps), TCP, BINDING)


def test_reference_beside_itself_behaves_alike() -> None:
    usual = played(lambda setup: setup, *REPEATING)
    assert compared(usual, usual, TCP, BINDING).kind == "same"


def test_mutant_beside_the_reference_violates() -> None:
    found = against("snr-duplicates-ignored", *REPEATING)
    assert found.kind == "one violates" and "SNR-RCV-013" in found.requirements
    assert "not answered" in " ".join(found.sentences)


def test_what_both_violate_is_of_neither_alone() -> None:
    broken = played(load_mutants()["snr-duplicates-ignored"].configure, *REPEATING)
    other = played(lambda setup: setup, *REPEATING)
    both = compared(broken, Played(other.trace, broken.violated, "rfc", other.ics), TCP, BINDING)
    assert both.kind == "both violate"


def test_other_timer_of_acknowledgments_is_permitted() -> None:
    left, right = played(lambda setup: setup, *WRITING), played(_eager, *WRITING)
    found = compared(left, right, TCP, BINDING)
    assert found.kind == "both allowed", found
    assert "SNR-RCV-003" in found.requirements
    assert [str(item) for item in found.exchanges] == ["A+data -> nothing", "A+data -> A"]


def _eager(setup: Any) -> Any:
    return replace(setup, config=replace(setup.config, ack_every=1))


def test_where_no_requirement_speaks_the_specification_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bentpipe_fuzz.campaign.comparing.load_checkers", lambda _suite: {})
    left, right = played(lambda setup: setup, *WRITING), played(_eager, *WRITING)
    assert compared(left, right, TCP, BINDING).kind == "silent"


# The command


def invoke(*words: str) -> Result:
    return CliRunner().invoke(bentpipe, ["compare", *words])


def test_command_compares_replay_files_and_keeps_the_packets(tmp_path: Path) -> None:
    file, out = tmp_path / "replay.json", tmp_path / "out"
    script = Script("snr", "honest", REPEATING)
    file.write_text(Replay(script, "reference", "geo", "rfc").dumps())
    result = invoke("reference", "reference-hk99", str(file), "--profile", "rfc", "--json",
                    "--out", str(out))  # fmt: skip
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["scripts"], document["played"]) == (1, 1)
    assert sum(document["counts"].values()) == 1
    assert (out / "1" / "1" / "iut.pcapng").stat().st_size > 1000
    again = invoke("reference", "reference", "--examples", "3", "--seed", "1")
    assert again.exit_code == 0 and "3  they behave alike" in again.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("reference", "nobody"), "nobody"),
        (("reference", "rwbp-reference"), "rwbp-reference RWBP"),
        (("reference", "reference", "--only", "rude"), "there is no mode 'rude'"),
        (("reference", "reference", "/no/such/file"), "cannot be read"),
    ],
)
def test_command_says_what_is_wrong(words: tuple[str, ...], sentence: str) -> None:
    result = invoke(*words)
    assert (result.exit_code, sentence in result.output) == (2, True), result.output
