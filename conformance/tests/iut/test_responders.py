"""The bundled responders, built and driven for real over a TUN."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.iut.build import RECIPES, IutUnavailable, build
from bentpipe_conformance.iut.description import load_iut

TRIAL = Path(__file__).with_name("responder_trial.py")
NOT_HERE = 77
MSS, WINDOW_SCALE, SACK_PERMITTED, TIMESTAMPS = 2, 3, 4, 8
SYN_ACK = 0x12
A_FEW_TICKS = 0.05
MEBIBYTE = 1 << 20

pytestmark = pytest.mark.bed


@pytest.fixture(scope="module", params=["smoltcp", "lwip", "gvisor"])
def trial(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """What one responder did."""
    try:
        RECIPES[request.param].toolchain()
    except IutUnavailable as error:
        pytest.skip(str(error))
    cache = build(request.param, lambda line: None)
    place = {"cache": cache, "address": "10.77.0.2", "gateway": "10.77.0.1", "mtu": 1500}
    command = load_iut(request.param).start.words(place)
    result = subprocess.run(
        [sys.executable, TRIAL, *command], capture_output=True, text=True, check=False, timeout=120
    )
    if result.returncode == NOT_HERE:
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stderr
    return request.param, json.loads(result.stdout)


def test_listening_syn_offering_every_option_is_answered_as_the_stack_is_built(
    trial: tuple[str, dict[str, Any]],
) -> None:
    name, did = trial
    options = {
        "smoltcp": [MSS, WINDOW_SCALE, SACK_PERMITTED],
        "lwip": [MSS, WINDOW_SCALE],
        "gvisor": [MSS, WINDOW_SCALE, SACK_PERMITTED, TIMESTAMPS],
    }
    assert did["handshake"] == {"flags": SYN_ACK, "ack": 1001, "options": options[name]}


def test_handshake_options_are_those_of_the_conformance_statement(
    trial: tuple[str, dict[str, Any]],
) -> None:
    name, did = trial
    statement, seen = load_iut(name).ics, did["handshake"]["options"]
    assert statement["sack"] == (SACK_PERMITTED in seen)
    assert statement["timestamps"] == (TIMESTAMPS in seen)
    assert statement["window_scale"] == (WINDOW_SCALE in seen)


@pytest.mark.parametrize(
    "service", ["echo", "discard", "chargen", "chargen_half_close", "eight_at_once"]
)
def test_peer_using_a_service_is_served(trial: tuple[str, dict[str, Any]], service: str) -> None:
    assert trial[1][service] is True


def test_many_short_connections_leave_nothing_behind(trial: tuple[str, dict[str, Any]]) -> None:
    did = trial[1]
    assert did["churn"] is True
    assert did["churn_again"] is True
    assert did["running"] is True
    # 20 kB for each of 400 connections: a collector may not have come by yet.
    assert did["grown_by_churn"] < 8 * MEBIBYTE


def test_nothing_to_do_costs_no_processor_time(trial: tuple[str, dict[str, Any]]) -> None:
    did = trial[1]
    assert did["idle_cpu"] <= A_FEW_TICKS
    assert did["idle_cpu_after_churn"] <= A_FEW_TICKS


def test_peer_that_stops_reading_costs_neither_time_nor_memory(
    trial: tuple[str, dict[str, Any]],
) -> None:
    stalled = trial[1]["stalled"]
    assert stalled["cpu"] <= A_FEW_TICKS
    assert stalled["grown"] < MEBIBYTE


def test_owner_gone_or_terminating_ends_the_responder(trial: tuple[str, dict[str, Any]]) -> None:
    assert trial[1]["ends_with_stdin"] is True
    assert trial[1]["ends_on_sigterm"] is True
