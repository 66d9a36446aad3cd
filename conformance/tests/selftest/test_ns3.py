"""Encounters of hosts of ns-3: drawn, written for the program, and judged where ns-3 is."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.cli.outcome import OPEN
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.iut import build
from bentpipe_conformance.iut.proforma import complete, load_proforma
from bentpipe_conformance.selftest import ns3, strangers
from click.testing import CliRunner

COMMON = ("SNR-RTO-002", "SNR-FR-005", "SNR-RCV-006", "SNR-WIN-001")


def test_encounter_of_one_seed_is_the_same_again_and_another_differs() -> None:
    assert ns3.draw_encounter(3) == ns3.draw_encounter(3)
    assert ns3.draw_encounter(3) != ns3.draw_encounter(4)


def test_statement_of_any_host_answers_items_of_the_proforma() -> None:
    proforma = load_proforma(suite_named("snr"))
    claimed = [
        complete(ns3.statement(host, {}), proforma)
        for seed in range(40)
        for host in ns3.draw_encounter(seed).sysctls
    ]
    for name in ("sack", "timestamps", "prr", "nagle", "ecn", "byte_counting"):
        assert len({answers[name] for answers in claimed}) > 1


def test_settings_name_what_the_peer_has_set_too() -> None:
    encounter = ns3.draw_encounter(1)
    found = ns3.settings(encounter, encounter.meetings[0], 0)
    assert found["SegmentSize"] == encounter.sysctls[0]["SegmentSize"]
    assert found["peer.SegmentSize"] == encounter.sysctls[1]["SegmentSize"]


def test_order_states_each_user_of_each_connection() -> None:
    encounter = ns3.draw_encounter(1)
    lines = [line.split() for line in ns3.order(encounter).splitlines()]
    kinds = [words[0] for words in lines]
    assert kinds.count("way") == 2
    assert kinds.count("user") == 2 * kinds.count("meeting") == 2 * len(encounter.meetings)
    sockets = [words[3] for words in lines if words[2:3] == ["SocketType"]]
    assert sockets == [f"ns3::{host['SocketType']}" for host in encounter.sysctls]
    for words in (words for words in lines if words[0] == "user"):
        assert len(words) == 10 + 2 * int(words[9])


@pytest.mark.parametrize(("found", "missing"), [("", "ns-3"), ("3.37", "a C++ compiler")])
def test_ns3_not_installed_the_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, found: str, missing: str
) -> None:
    said = {"--modversion": found, "--version": "g++ 12" if not found else ""}
    monkeypatch.setattr(build, "_said", lambda command: said[command[1]])
    done = CliRunner().invoke(bentpipe, ["selftest", "snr", "--ns3", "1"])
    assert done.exit_code == OPEN
    assert f"lacks {missing}" in done.output
    assert "apt-get install libns3-dev" in done.output
    assert "Traceback" not in done.output


def test_program_that_captures_nothing_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "meet"
    program.write_text("#!/bin/sh\necho 'no attribute X takes y' >&2; exit 2\n")
    program.chmod(0o755)
    with pytest.raises(BedError, match="seed 1: no attribute X takes y"):
        ns3.play_one(program, ns3.draw_encounter(1))


@pytest.mark.slow
def test_hosts_of_ns3_that_meet_are_not_accused_and_meet_again_alike() -> None:
    try:
        build.RECIPES["ns3"].toolchain()
    except build.IutUnavailable as error:
        pytest.skip(str(error))
    encounters = [ns3.draw_encounter(seed) for seed in (1, 4, 11)]
    played = ns3.play(encounters)
    assert ns3.play(encounters[:1]) == played[:1]
    passed: set[str] = set()
    for encounter, evidence in zip(encounters, played, strict=True):
        heard = strangers.hear(encounter, evidence, stranger=strangers.NS3)
        assert not heard.accusations
        assert heard.known
        passed |= heard.passed
    assert passed >= set(COMMON)
