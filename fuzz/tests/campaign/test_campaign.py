"""The engine: a campaign finds, makes small, goes on; its results can be played again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.engine.lane import Lane, LaneError
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.run.workplace import Workplace
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign import shards, worker
from bentpipe_fuzz.campaign.engine import Campaign, Discovery, Tally
from bentpipe_fuzz.campaign.replay import FORMAT, Replay, ReplayError, load
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Impairment, Script, Step
from bentpipe_fuzz.campaign.shards import run as run_shards
from bentpipe_fuzz.campaign.shrinking import shrunk, shrunk_script
from bentpipe_fuzz.campaign.storage import Figures, Order, store_figures, stored
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.common.subject import subject_of
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

Configure = Callable[[Any], Any]


def campaign(
    suite: str, seed: int, mutant: str = "", modes: tuple[str, ...] = (), **options: Any
) -> Campaign:
    record = suite_named(suite)
    mutants = load_mutants()
    profile = mutants[mutant].profile if mutant else record.profiles[0]
    configure: Configure = mutants[mutant].configure if mutant else lambda setup: setup
    lane, settings_ = stage(subject_of(record.folder), profile, "", 0, configure)
    return Campaign(record, lambda: lane, settings_, seed, modes=modes, **options)


def found(running: Campaign, conversations: int) -> list[Discovery]:
    """Its discoveries, until it has played so many conversations."""
    wanted: Callable[[Tally], bool] = lambda tally: tally.conversations < conversations  # noqa: E731
    return [item for item in running.run(wanted) if item is not None]


def test_mutant_is_found_and_made_small() -> None:
    running = campaign("snr", 1, "snr-fin-unacknowledged", ("honest",), shrink_runs=150)
    first = next(item for item in running.run(lambda tally: tally.conversations < 100) if item)
    assert first.script.length <= 5 <= first.first.length
    assert first.repeats and first.shrink_runs <= 150


def test_campaign_repeats_for_its_seed() -> None:
    def figures() -> Any:
        running = campaign("snr", 5, shrink_runs=20)
        discoveries = found(running, 25)
        tally = running.tally
        return tally.packets, tally.seen, tally.reached, [item.script for item in discoveries]

    assert figures() == figures()


class Mortal:
    """A host that ends when data arrives."""

    def __init__(self, host: Any) -> None:
        self._host = host
        self.transmit, self.advance = host.transmit, host.advance
        self.next_deadline = host.next_deadline

    def receive(self, packet: bytes, now: float) -> None:
        if len(packet) > 200:
            raise RuntimeError("out of paper")
        self._host.receive(packet, now)


def test_implementation_that_dies_is_a_finding_and_the_campaign_goes_on() -> None:
    record = suite_named("snr")
    subject = subject_of("tcp")
    mortal = replace(subject, make=lambda *how: Mortal(subject.make(*how)))  # type: ignore[arg-type, return-value]
    lane, settings_ = stage(mortal, "rfc", "", 0)
    running = Campaign(record, lambda: lane, settings_, 1, modes=["honest"], shrink_runs=60)
    discoveries = found(running, 24)
    assert running.tally.conversations == 24 and running.tally.restarts
    dead = next(item for item in discoveries if item.signature[0] == "FUZZ-ALIVE")
    assert dead.sentence == "the implementation ended: RuntimeError: out of paper"
    # An opening and what sends data.
    assert dead.script.length == 2, dead.script


def test_implementation_that_never_starts_ends_the_campaign_with_what_it_has() -> None:
    def refuses() -> Lane:
        raise LaneError("there is no such program")

    settings_ = stage(subject_of("tcp"), "rfc", "", 0)[1]
    running = Campaign(suite_named("snr"), refuses, settings_, 1)
    assert found(running, 10) == []
    assert running.tally.conversations == 0
    assert running.tally.problem == "the bed failed 3 times: there is no such program"


def played(*steps: Step, link: tuple[Impairment, ...] = (), mutant: str = "") -> Any:
    configure: Configure = load_mutants()[mutant].configure if mutant else lambda setup: setup
    lane, settings_ = stage(subject_of("tcp"), "rfc", "", 0, configure)
    return play(Script("snr", "honest", steps, link), lane, settings_)


def test_conversation_over_a_bad_link_is_judged_and_served() -> None:
    conversation = played(
        Step("open", {"service": "echo"}), Step("write", {"octets": 8000}), Step("settle"),
        Step("close"), Step("settle"), link=(Impairment("to-iut", "lose", first=3, span=2),),
    )  # fmt: skip
    assert not conversation.findings and not conversation.outcome.broken
    assert conversation.met
    assert ("established", "A+data") in conversation.reached


class Ended:
    """A guest that has played something and is gone."""

    def __init__(self, order: Order, conversations: int) -> None:
        playing = replace(REPLAY, requirement="", sentence="")
        folder = Path(order.folder)
        folder.mkdir(parents=True, exist_ok=True)
        store_figures(folder, Figures(conversations).document())
        (folder / "playing.json").write_text(playing.dumps(), encoding="utf-8")

    def running(self) -> bool:
        return False

    def close(self) -> None:
        pass


def test_guest_that_dies_leaves_what_it_played_and_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Order] = []

    def start(_shard: Any, order: Order) -> Ended:
        started.append(order)
        return Ended(order, 4)

    monkeypatch.setattr("bentpipe_fuzz.campaign.shards._Shard._start", start)
    order = Order("reference", "geo", "rfc", 1, 10, (), 0.0, 0, str(tmp_path), patience=1)
    figures, folders = run_shards(order, Workplace("simulation", ""), 2, None, lambda *_: None)
    # Of two shards with five conversations each both are started twice.
    assert [item.examples for item in started] == [5, 5, 1, 1]
    assert len({item.seed for item in started}) == 4
    assert (figures.conversations, figures.restarts, figures.problem) == (16, 2, "")
    ends = [load(path / "replay.json") for path in stored(folders)]
    assert [item.requirement for item in ends] == ["FUZZ-ALIVE"] * 2
    assert ends[0].script == ends[1].script == REPLAY.script
    assert ends[0].sentence == "its guest or process ended during this conversation"


def test_campaign_without_time_plays_one_conversation(tmp_path: Path) -> None:
    order = Order("reference", "geo", "rfc", 1, 0, (), 0.0, 0, str(tmp_path), patience=1)
    here = Workplace("simulation", "")
    figures, _ = run_shards(order, here, 1, 1e-9, lambda *_: None)
    assert (figures.conversations, figures.problem) == (1, "")


# Making small

LONG = Script(
    "snr", "honest",
    tuple(Step("write", {"octets": 100 + n, "gap": n / 10}) for n in range(60)),
    tuple(Impairment("to-iut", "delay", first=n + 1, span=4, value=8.0) for n in range(10)),
)  # fmt: skip


@given(st.sets(st.integers(0, 59), min_size=1, max_size=4), st.sets(st.integers(1, 10), max_size=2))
@settings(derandomize=True, max_examples=10, deadline=None)
def test_shrunk_script_keeps_only_what_is_needed(steps: set[int], places: set[int]) -> None:
    def fails(script: Script) -> bool:
        # Whatever its other arguments are, a step is told by its octets.
        kept = {step.given.get("octets") for step in script.steps}
        link = {item.first for item in script.link}
        return {100 + n for n in steps} <= kept and places <= link

    small = shrunk_script(LONG, fails, 4000)
    assert small.length == len(steps) + len(places)
    assert all("gap" not in step.given for step in small.steps)
    assert all((item.span, item.value) == (1, 0.0) for item in small.link)


def test_shrinking_never_exceeds_its_runs() -> None:
    runs = 0

    def fails(_: Script) -> bool:
        nonlocal runs
        runs += 1
        return runs % 2 == 0

    shrunk_script(LONG, fails, 30)
    assert runs <= 30


def test_finding_of_200_steps_becomes_one() -> None:
    steps = tuple(Step("write", {"octets": n}) for n in range(200))
    long = Script("snr", "honest", steps)
    assert shrunk_script(long, lambda script: steps[77] in script.steps).steps == (steps[77],)


# Replay files

REPLAY = Replay(
    Script("snr", "honest", (Step("open"),)), "reference", "geo", "rfc", "SNR-CON-001", "why",
    ("SNR-CON-001", "", "S"), ("a story",), ("IP()/TCP()",), 4,
)  # fmt: skip


def test_replay_file_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "replay.json"
    file.write_text(REPLAY.dumps(), encoding="utf-8")
    assert load(file) == REPLAY


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (REPLAY.dumps()[:100], "it is not JSON, or cut off"),
        (REPLAY.dumps().replace(FORMAT, "bentpipe-replay/9"), "of the format 'bentpipe-replay/9'"),
        ("[]", "its format is not bentpipe-replay/1"),
        ("[" * 100_000, "it is not JSON, or cut off"),
        (REPLAY.dumps().replace('"verb"', '"adverb"'), "is damaged"),
        (REPLAY.dumps().replace('"geo"', "7"), "link is not a text"),
    ],
)
def test_replay_file_that_is_none_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "replay.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ReplayError, match=sentence):
        load(file)
    with pytest.raises(ReplayError, match="cannot be read"):
        load(tmp_path / "none.json")


# The commands


def invoke(*words: str) -> Result:
    return CliRunner().invoke(bentpipe, list(words))


def words_for(out: Path, *more: str) -> tuple[str, ...]:
    return ("fuzz", "reference", "--seed", "1", "--only", "honest", "--out", str(out), *more)


def attack(monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    """Have the commands meet a mutant in place of the reference."""
    lane, _ = stage(subject_of("tcp"), "rfc", "", 0, load_mutants()[mutant].configure)
    monkeypatch.setattr(worker, "open_lane", lambda *_: lane)


def test_command_leaves_a_bundle_and_repeats_for_its_seed(tmp_path: Path) -> None:
    out = tmp_path / "campaign"
    words = words_for(out, "--examples", "12", "--json")
    result = invoke(*words)
    told = json.loads(result.stdout)
    assert told["conversations"] == 12 and told["packets"] > 100 and told["seconds"] > 0
    assert result.exit_code == (1 if told["findings"] else 0)
    assert json.loads((out / "exploration.json").read_text())["conversations"] == 12
    again = invoke(*words)
    assert again.exit_code == 2 and "add --fresh" in again.output
    fresh = invoke(*words, "--fresh")
    assert json.loads(fresh.stdout)["packets"] == told["packets"]
    verified = invoke("verify", str(out))
    assert verified.exit_code == 0, verified.output


@pytest.mark.parametrize(
    ("mutant", "requirement"),
    [("snr-fin-unacknowledged", "SNR-CON-015"), ("snr-equal-is-old", "FUZZ-SERVES")],
)
def test_finding_is_a_case_of_the_bundle_and_is_verified(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mutant: str, requirement: str
) -> None:
    attack(monkeypatch, mutant)
    out = tmp_path / "campaign"
    result = invoke(*words_for(out, "--examples", "30", "--shrink-runs", "30", "--json"))
    assert result.exit_code == 1, result.output
    (row,) = [item for item in json.loads(result.stdout)["findings"]
              if item["requirement"] == requirement][:1]  # fmt: skip
    folder = Path(row["folder"])
    assert {path.name for path in folder.iterdir()} == {
        "case.json", "iut.pcapng", "peer.pcapng", "replay.json"
    }  # fmt: skip
    assert load(folder / "replay.json").requirement == requirement
    assert json.loads((out / "result.json").read_text())["verdict"] == "fail"
    assert requirement in (out / "report.html").read_text()
    assert "<failure" in (out / "junit.xml").read_text()
    verified = invoke("verify", str(out))
    assert verified.exit_code == 0, verified.output
    changed = (folder / "replay.json").read_text().replace(requirement, "SNR-CON-001")
    (folder / "replay.json").write_text(changed)
    assert invoke("verify", str(out)).exit_code == 3


def test_interrupted_campaign_keeps_what_it_has_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    attack(monkeypatch, "snr-fin-unacknowledged")
    run = shards.run

    def interrupted(*given: Any) -> None:
        run(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(shards, "run", interrupted)
    out = tmp_path / "campaign"
    result = invoke(*words_for(out, "--examples", "30", "--shrink-runs", "0"))
    assert result.exit_code == 1 and "interrupted: the campaign is partial" in result.output
    assert json.loads((out / "exploration.json").read_text())["interrupted"] is True
    assert invoke("verify", str(out)).exit_code == 0


def test_replay_says_whether_the_requirement_is_still_violated(tmp_path: Path) -> None:
    file = tmp_path / "replay.json"
    steps = Step("open", {"service": "echo"}), Step("write"), Step("settle"), Step("close")
    file.write_text(replace(REPLAY, script=Script("snr", "honest", steps)).dumps())
    result = invoke("replay", str(file), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"expected": "SNR-CON-001", "findings": [], "problem": ""}
    other = invoke("replay", str(file), "--iut", "stp-reference-simulated", "--profile", "stp1e2")
    assert other.exit_code == 2 and "speaks" in other.output


def test_replay_file_becomes_a_case_that_python_reads(tmp_path: Path) -> None:
    odd = {"raw": "01", "checksum": True, "reserved": 3}
    steps = (
        Step("open", {"mss": 536}), Step("write", {"octets": 3000, "gap": 0.1}), Step("settle"),
        Step("segment", {"seq": ["edge", 1], "flags": "PA", "odd": odd}), Step("receive"),
        Step("call"), Step("offer"), Step("close"), Step("abort"), Step("wait"),
        Step("syn"), Step("syn", {"odd": {"reserved": 1}}), Step("open", {"odd": {"raw": "00"}}),
        Step("knock"), Step("segment", {"times": 3}),
        Step("stray"), Step("segment", {"sack": [[["highest", -1], ["zero", 5]]], "tsval": 3}),
    )  # fmt: skip
    script = Script("snr", "on-path", steps, (Impairment("to-iut", "lose"),))
    file = tmp_path / "replay.json"
    file.write_text(replace(REPLAY, script=script).dumps())
    result = invoke("replay", str(file), "--as-case")
    assert result.exit_code == 0, result.output
    compile(result.stdout, "case", "exec")
    assert '@case("SNR-CON-001")' in result.stdout
    assert "# The link: packet 1 to the implementation: lost." in result.stdout
    assert "at=connection.iut_edge + 1" in result.stdout
    assert "# To be written by hand: segment(times=3)." in result.stdout


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("fuzz", "nobody"), 2, "nobody"),
        (("fuzz", "reference", "--only", "rude"), 2, "there is no mode 'rude'"),
        (("fuzz", "reference", "--link", "nowhere"), 2, "there is no link profile"),
        (("fuzz", "reference", "--bed", "host"), 3, "runs inside the simulation only"),
        (("replay", "/no/such/file"), 2, "cannot be read"),
    ],
)
def test_command_says_what_is_wrong(words: tuple[str, ...], status: int, sentence: str) -> None:
    result = invoke(*words)
    assert (result.exit_code, sentence in result.output) == (status, True), result.output


@given(st.sets(st.integers(0, 60), max_size=4), st.integers(1, 60))
def test_shrunk_list_fails_and_needs_all_it_keeps(culprits: set[int], length: int) -> None:
    needed = {number for number in culprits if number < length}
    assert set(shrunk(list(range(length)), needed.issubset)) == needed


def test_shrinking_stops_when_its_time_is_up() -> None:
    ticks = iter(range(100))
    least = shrunk(
        list(range(64)), lambda given: len(given) >= 1, seconds=3, clock=lambda: next(ticks)
    )
    assert 1 < len(least) < 64
