"""A lane on which a box stands between two ends, in a guest with a virtual clock."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from bentpipe_conformance.bed.crossing import SERVER_ADDRESS, Callers
from bentpipe_conformance.bed.kernel import Kernel

pytestmark = pytest.mark.bed
ONE_WAY = 0.3


@pytest.fixture(scope="module")
def happened(virtual_kernel: Kernel, play: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return play(virtual_kernel, "crossing_scenario.py")


@pytest.mark.parametrize("case", ["usual", "again"])
def test_datagrams_that_are_routed_reach_the_other_port(
    happened: dict[str, Any], case: str
) -> None:
    arrived = happened["routed"][case]["arrived"]
    assert {(side, text) for _, side, text in arrived} == {("client", "down"), ("server", "up")}
    assert [time for time, _, _ in arrived] == pytest.approx([ONE_WAY] * 2, abs=0.01)


def test_datagrams_that_are_routed_are_captured_in_the_order_in_which_they_pass(
    happened: dict[str, Any],
) -> None:
    captured = happened["routed"]["usual"]["captured"]
    own = [(side, outgoing, text) for _, point, side, outgoing, text in captured if point == "iut"]
    assert own == [
        ("client", False, "up"), ("server", True, "up"),
        ("server", False, "down"), ("client", True, "down"),
    ]  # fmt: skip
    peer = [(outgoing, text) for _, point, _, outgoing, text in captured if point == "peer"]
    assert sorted(peer) == [(False, "down"), (True, "up")]


def test_link_that_is_altered_is_captured_at_the_box_only(happened: dict[str, Any]) -> None:
    assert happened["routed"]["lost"]["arrived"] == []
    captured = happened["routed"]["lost"]["captured"]
    assert {(point, text) for _, point, _, _, text in captured} == {("iut", "up")}


def test_datagrams_through_a_pair_cross_the_link_between_its_boxes(
    happened: dict[str, Any],
) -> None:
    found = happened["paired"]["usual"]
    assert {(side, text) for _, side, text in found["arrived"]} == {
        ("client", "down"), ("server", "up"),
    }  # fmt: skip
    assert [time for time, _, _ in found["arrived"]] == pytest.approx([ONE_WAY] * 2, abs=0.01)
    own = [item for item in found["captured"] if item[1] == "iut"]
    up = [(side, outgoing) for *_, side, outgoing, text in own if text == "up"]
    assert up == [
        ("client", False), ("satellite-near", True), ("satellite-far", False), ("server", True),
    ]  # fmt: skip
    down = [(side, outgoing) for *_, side, outgoing, text in own if text == "down"]
    assert down == [
        ("server", False), ("satellite-far", True), ("satellite-near", False), ("client", True),
    ]  # fmt: skip


def test_datagrams_through_a_pair_in_an_outage_reach_the_satellite_alone(
    happened: dict[str, Any],
) -> None:
    found = happened["paired"]["lost"]
    assert found["arrived"] == []
    sides = {(side, text) for _, _, side, _, text in found["captured"]}
    assert sides == {
        ("client", "up"), ("satellite-near", "up"), ("server", "down"), ("satellite-far", "down"),
    }  # fmt: skip


def test_boxes_of_a_pair_are_told_which_interface_is_the_lan_s(happened: dict[str, Any]) -> None:
    assert happened["interfaces of a pair"] == "alive: None"


def test_far_box_that_dies_is_told(happened: dict[str, Any]) -> None:
    assert "exit status 9" in happened["far box dies"]


def test_packet_of_a_second_client_belongs_to_the_case(happened: dict[str, Any]) -> None:
    assert set(happened["routed"]["ghost"]) == {"from nobody"}


def test_packets_of_the_clients_of_earlier_cases_are_nobody_s(happened: dict[str, Any]) -> None:
    assert happened["routed"]["late"] == {"arrived": None, "captured": []}


def test_box_that_goes_on_with_what_a_case_left_behind_is_not_accused_in_the_next() -> None:
    one, ghost, other = (socket.inet_aton(f"10.78.0.{number}") for number in (1, 9, 2))
    server = socket.inet_aton(SERVER_ADDRESS)
    callers = Callers()
    callers.begin(one)
    callers.note(_packet(ghost, server))
    callers.note(_packet(server, one))  # a forgery
    callers.begin(other)
    assert not callers.belongs(_packet(ghost, server))
    assert not callers.belongs(_packet(server, one))
    assert callers.belongs(_packet(other, server))
    assert callers.belongs(_packet(socket.inet_aton("10.78.0.77"), server))  # an invention
    callers.note(_packet(ghost, server))
    assert callers.belongs(_packet(ghost, server))


def _packet(source: bytes, target: bytes) -> bytes:
    return bytes(12) + source + target


def test_box_that_listens_at_last_is_ready(happened: dict[str, Any]) -> None:
    assert happened["listens"] == "alive: None"


def test_box_that_never_listens_gives_one_sentence(happened: dict[str, Any]) -> None:
    assert "did not listen at port 3129 within 2 s" in happened["silent"]
    assert "correct [start] ready_port" in happened["silent"]


def test_setup_that_fails_gives_one_sentence(happened: dict[str, Any]) -> None:
    assert "failed with exit status 2" in happened["wrong"]
    assert "no such table" in happened["wrong"]
    assert happened["wrong"].endswith("correct [start] setup in the implementation's TOML file.")


def test_setup_runs_in_the_namespace_of_the_box(happened: dict[str, Any]) -> None:
    assert happened["interfaces"] == "alive: None"
