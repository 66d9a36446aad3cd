"""The campaign of hostile and unlucky STP peers: a slice of it, and that it sees what is broken.

``make fuzz-stp SECONDS=...`` runs the whole.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from bentpipe_fuzz.campaign.shrinking import shrunk
from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp import campaign as campaigns
from bentpipe_fuzz.stp.__main__ import main
from bentpipe_fuzz.stp.black_box import BlackBoxError, Target, attack
from bentpipe_fuzz.stp.disturbance import (
    Fault,
    Injection,
    as_json,
    corrupted,
    from_json,
)
from bentpipe_fuzz.stp.flood import MOST_GROWTH, flood
from bentpipe_fuzz.stp.plan import MODES, Mode, draw
from bentpipe_fuzz.stp.runs import run
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.packets import Begin, Bgrej, Reason, Sd, Stat, Ustat
from bentpipe_reference.stp.parts import Parts
from bentpipe_reference.stp.sender import Sender
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

SLICE: dict[Mode, range] = {
    "unlucky": range(1, 25),
    "vanish": range(1, 25),
    "restart": range(1, 13),
    "off-path": range(1, 4),
    "on-path": range(1, 4),
}


@pytest.mark.parametrize("mode", MODES)
def test_reference_survives_a_slice_of_the_campaign(mode: Mode) -> None:
    ends = 0
    for seed in SLICE[mode]:
        outcome = run(draw(mode, seed))
        assert outcome.violation is None, campaigns.command(outcome)
        ends += outcome.succeeded + outcome.failed
    assert ends >= len(SLICE[mode]), "a campaign in which nothing happens proves nothing"


CAUGHT: list[tuple[str, Mode, int, str]] = [
    ("stp-delivers-twice", "off-path", 1, "STP-DT-012"),
    ("stp-delivers-as-it-comes", "unlucky", 1, "STP-DT-012"),
    ("stp-repeats-half", "unlucky", 1, "STP-DT-012"),
    ("stp-forgets-what-it-repeated", "unlucky", 3, "STP-CC-009"),
    ("stp-takes-the-rest-for-received", "unlucky", 14, "STP-CC-009"),
    ("stp-drops-what-it-holds", "unlucky", 14, "STP-CC-009"),
    ("stp-forgets-the-wrap", "unlucky", 1, "STP-CC-009"),
    ("stp-polls-only-with-data", "unlucky", 1, "STP-CC-009"),
    ("stp-gives-up-soon", "unlucky", 5, "STP-CC-009"),
    ("stp-gives-up-a-closed-window", "unlucky", 17, "STP-CC-009"),
    ("stp-never-gives-up", "vanish", 2, "STP-CC-009"),
    ("stp-never-keeps-alive", "vanish", 2, "STP-CC-009"),
    ("stp-calls-anew-with-its-number", "unlucky", 7, "STP-CC-009"),
    ("stp-alters-cookies", "off-path", 1, "STP-CC-009"),
    ("stp-takes-beyond-the-credit", "off-path", 1, "STP-CC-009"),
    ("stp-believes-ends", "off-path", 1, "STP-CC-009"),
    ("stp-aborts-on-invalid-stat", "off-path", 1, "STP-CC-009"),
    ("stp-ignores-tags", "off-path", 1, "STP-DT-012"),
    ("stp-yields-to-any-call", "off-path", 1, "STP-CC-009"),
    ("stp-delivers-without-a-cookie", "off-path", 1, "STP-SEC-003"),
    ("stp-signs-nothing", "off-path", 1, "STP-CC-009"),
    ("stp-signs-no-address", "off-path", 1, "STP-SEC-005"),
    ("stp-signs-briefly", "off-path", 2, "STP-SEC-005"),
]
"""What the campaign finds, how soon, and as a breach of what: data, ends and security."""


@pytest.mark.parametrize(("mutant", "mode", "seed", "requirement"), CAUGHT)
def test_mutant_is_caught(mutant: str, mode: Mode, seed: int, requirement: str) -> None:
    found = run(draw(mode, seed), None, load_mutants()[mutant].configure).violation
    assert found is not None and found.requirement == requirement
    true = run(draw(mode, seed)).violation
    assert true is None, "the same run of the true reference"


class WalksTheNumbers(Sender):
    """Looks at every number that a report names, which may be millions; at 50,000 of them here."""

    def _walk(self, elements: tuple[int, ...]) -> None:
        for first, end in itertools.pairwise(elements):
            for _ in range(min((end - first) % (1 << 24), 50_000)):
                pass

    def read_report(self, packet: Stat | Ustat) -> tuple[int | None, int, list[int]] | None:
        self._walk(packet.elements)
        return super().read_report(packet)


def test_work_that_grows_with_a_number_in_a_packet_is_seen() -> None:
    plan = draw("on-path", 1)
    assert plan.attack is not None
    metered = replace(plan, attack=replace(plan.attack, metered=True, rate=200.0, ends=3.0))
    outcome = run(metered)
    assert outcome.violation is None and outcome.costliest > 1
    found = run(metered, None, lambda setup: setup.with_part(WalksTheNumbers))
    assert found.violation is not None and found.violation.requirement == "STP-SEC-004"


@pytest.mark.parametrize("begins", [30_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_flood_of_forged_begins_leaves_nothing_and_the_honest_peer_served(begins: int) -> None:
    result = flood(begins, 1)
    assert result.begins == begins and result.grown < MOST_GROWTH
    assert 1 < result.largest <= 3 and result.delivered > 1000


class Remembers(Idle):
    """Keeps what it has answered with a cookie."""

    kept: ClassVar[list[tuple[Arrival, Begin]]] = []

    def give_cookie(self, arrival: Arrival, begin: Begin) -> None:
        self.kept.append((arrival, begin))
        super().give_cookie(arrival, begin)


class AnswersAtLength(Idle):
    """Its BGREJ has an option of 30 octets."""

    def bgrej(self, begin: Begin, reason: Reason, cookie: bytes | None = None) -> Bgrej:
        return replace(super().bgrej(begin, reason, cookie), options=((9, bytes(28)),))


@pytest.mark.parametrize(
    ("idle", "says"),
    [
        (Remembers, r"STP-CC-036: \d+ entries and \d+ octets more are kept after 2000"),
        (AnswersAtLength, r"STP-SEC-001: 3\.\d octets"),
    ],
)
def test_flood_shows_an_endpoint_that_is_not_stateless_or_amplifies(
    idle: type[Idle], says: str
) -> None:
    with pytest.raises(Violation, match=says):
        flood(2000, 1, Parts(idle=idle))


# Repeating and shrinking


def test_failing_run_is_written_small_and_repeats(tmp_path: Path) -> None:
    configure = load_mutants()["stp-forgets-what-it-repeated"].configure
    tally = campaigns.Tally(3)
    campaigns.campaign(
        tally, modes=["unlucky"], runs=1, folder=tmp_path, configure=configure, shrink_s=60.0
    )
    (name,) = tally.failures
    told = json.loads((tmp_path / name).read_text())
    whole = run(draw("unlucky", 3), None, configure).disturbances
    assert len(told["disturbances"]) == 4 < len(whole)
    assert told["repeat"].endswith("--only unlucky --seed 3 --runs 1")
    assert told["packets"] and told["violation"].startswith("STP-CC-009")
    again = campaigns.replay(tmp_path / name, configure)
    assert str(again.violation) == told["violation"]
    assert campaigns.replay(tmp_path / name).violation is None


def test_recorded_faults_repeat_a_run_exactly() -> None:
    plan = draw("unlucky", 2)
    first = run(plan)
    assert first.disturbances
    again = run(plan, first.disturbances)
    assert again.log == first.log


@given(st.sets(st.integers(0, 60), max_size=4), st.integers(1, 60))
def test_shrunk_list_fails_and_needs_all_it_keeps(culprits: set[int], length: int) -> None:
    needed = {number for number in culprits if number < length}
    whole = [Fault("a>b", number, "lost") for number in range(length)]

    def fails(given: Any) -> bool:
        return needed <= {fault.ordinal for fault in given}

    assert {fault.ordinal for fault in shrunk(whole, fails)} == needed  # type: ignore[union-attr]


def test_shrinking_stops_when_its_time_is_up() -> None:
    ticks = iter(range(100))
    whole = [Fault("a>b", number, "lost") for number in range(64)]
    least = shrunk(whole, lambda given: len(given) >= 1, seconds=3, clock=lambda: next(ticks))
    assert 1 < len(least) < 64


@pytest.mark.parametrize("one", [Fault("a>b", 3, "late", 0.25), Injection(1.5, "b", "x3", "00ff")])
def test_disturbance_comes_back_from_a_file(one: Fault | Injection) -> None:
    assert from_json(json.loads(json.dumps(as_json(one)))) == one


@given(st.integers(0, (1 << 28) - 1), st.integers(1, (1 << 15) - 1), st.binary(max_size=50))
def test_corrupted_packet_is_never_taken_for_right(at: int, mask: int, data: bytes) -> None:
    octets = encode(Sd(1, 2, 3, 0, 4, data))
    with pytest.raises(MalformedPacket):
        decode(corrupted(octets, at << 16 | mask))


# The command


def invoke(*words: str) -> Any:
    return CliRunner().invoke(main, list(words))


def test_command_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out = str(tmp_path / "campaign")
    first = invoke("--only", "vanish", "--runs", "3", "--out", out)
    assert first.exit_code == 0, first.output
    again = invoke("--only", "vanish", "--runs", "2", "--out", out, "--json")
    told = json.loads(again.stdout)
    assert (told["verdict"], told["runs"]) == ("pass", {"vanish": 5})
    fresh = invoke("--only", "vanish", "--runs", "1", "--out", out, "--fresh", "--json")
    assert json.loads(fresh.stdout)["runs"] == {"vanish": 1}


def test_command_finds_a_mutant_and_says_how_to_repeat_it() -> None:
    words = ("--mutant", "stp-delivers-twice", "--only", "off-path", "--seed", "1", "--runs", "1",
             "--shrink", "1")  # fmt: skip
    result = invoke(*words)
    assert result.exit_code == 1
    assert "STP-DT-012" in result.output
    assert "again: python -m bentpipe_fuzz.stp --only off-path --seed 1" in result.output


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("--mutant", "nobody", "--runs", "1"), 2, "there is no mutant 'nobody'"),
        (("--only", "elsewhere"), 2, "is not one of"),
        (("--against", "nowhere"), 3, "neither a command with {port} nor ADDRESS:PORT"),
        (("--against", "/no/such/program {port}"), 3, "cannot be started"),
        (("--replay", __file__), 3, "is not a failing run"),
    ],
)
def test_command_says_what_is_wrong(words: tuple[str, ...], status: int, sentence: str) -> None:
    result = invoke(*words)
    assert (result.exit_code, sentence in result.output) == (status, True), result.output


def test_help_has_examples() -> None:
    assert "--only off-path --seed 7 --runs 1" in invoke("--help").output


# Another implementation, over UDP

SERVE = f"{sys.executable} -m bentpipe_conformance.cli.main stp serve --listen {{address}}:{{port}}"

DIES = """
import socket, sys
handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
handle.bind(("127.0.0.1", int(sys.argv[1])))
octets, peer = handle.recvfrom(2048)
handle.sendto(octets, peer)
handle.recvfrom(2048)
sys.exit(9)
"""


def test_reference_as_a_process_serves_amid_hostile_packets() -> None:
    result = attack(Target.of(SERVE), 1, seconds=60.0, rounds=3)
    assert result.violation == "" and result.rounds == 3 and result.forged > 50
    assert result.grown_kb is not None


def test_process_that_dies_of_a_packet_is_a_violation() -> None:
    target = Target.of(f"{sys.executable} -c '{DIES}' {{port}}")
    result = attack(target, 1, seconds=60.0, rounds=1)
    assert result.violation == "STP-SEC-003: the implementation ended with status 9"


def test_process_that_never_answers_is_an_error() -> None:
    with pytest.raises(BlackBoxError, match="ended with 0"):
        attack(Target.of(f"{sys.executable} -c pass {{port}}"), 1, seconds=5.0)


def test_plans_follow_from_their_seeds_alone() -> None:
    for mode in MODES:
        assert draw(mode, 7) == draw(mode, 7)
        assert len({str(draw(mode, seed)) for seed in range(20)}) == 20
    random.seed(1)
    assert StpConfig(**draw("unlucky", 1).configs["a"])
