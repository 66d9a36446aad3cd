"""``bentpipe pep run`` in a guest: what it sets up in the kernel, and takes back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
from bentpipe_conformance.bed.kernel import Kernel

pytestmark = [
    pytest.mark.bed,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("ip") and shutil.which("nft")), reason="needs iproute2 and nftables"
    ),
]


@pytest.fixture(scope="module")
def happened(virtual_kernel: Kernel, play: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return play(virtual_kernel, "pep_run_scenario.py")


def test_router_that_runs_it_splits_tcp_and_passes_the_rest_as_one_hop(
    happened: dict[str, Any],
) -> None:
    ran = happened["ran"]
    assert (ran["split"], ran["untouched"], ran["rules"]) == (True, True, 2)
    assert ran["hops"] == 3  # the bed routes before it and behind it


def test_second_sigterm_ends_it_and_leaves_the_router_that_was(happened: dict[str, Any]) -> None:
    ran = happened["ran"]
    assert (ran["status"], ran["left"], ran["devices"], ran["whole"]) == (143, 0, 0, True)


def test_host_routes_as_before_when_it_is_killed(happened: dict[str, Any]) -> None:
    assert happened["killed"] is True
    assert happened["killed_on_sockets"] is True


def test_sockets_answer_callers_pass_strangers_and_leave_nothing(happened: dict[str, Any]) -> None:
    assert happened["sockets"] == {
        "early": True, "strangers": True, "status": 143, "left": 0, "rules": "",
    }  # fmt: skip


def test_second_one_in_a_network_is_refused_and_disturbs_nothing(happened: dict[str, Any]) -> None:
    second = happened["second"]
    assert second["kept"]
    for told in second["told"]:
        assert "Another 'bentpipe pep run' splits connections in this network" in told


def test_sockets_whose_rules_vanish_end_it_and_leave_nothing(happened: dict[str, Any]) -> None:
    assert happened["without_nft"] == {"status": 3, "left": 0}


def test_interface_that_is_not_there_gives_one_sentence(happened: dict[str, Any]) -> None:
    assert "nonesuch" in happened["absent"]


def test_host_that_does_not_route_gives_one_sentence(happened: dict[str, Any]) -> None:
    assert "run 'sysctl -w net.ipv4.ip_forward=1'" in happened["still"]
