"""A box with two or four ports, between interfaces of a host that a guest plays."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.bed.kernel import Kernel

pytestmark = pytest.mark.bed
QUICK = (
    "routed", "bridged", "bridged_pair", "bridged_and_asked", "pair", "absent", "switched_off",
    "without_addresses", "cables_exchanged", "drops_everything", "near_drops_everything",
    "far_drops_everything", "no_checksums", "busy", "without_root",
)  # fmt: skip
UNSHARE = ("unshare", "--user", "--map-root-user", "--net")


@pytest.fixture(scope="module")
def happened(virtual_kernel: Kernel, play: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return play(virtual_kernel, "ports_scenario.py", *QUICK)


@pytest.fixture(scope="module")
def certified(virtual_kernel: Kernel, play: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return play(virtual_kernel, "ports_scenario.py", "handbook", "pair_of_stp")


@pytest.fixture(scope="module")
def bridging(virtual_kernel: Kernel, play: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return play(virtual_kernel, "ports_scenario.py", "bridging_box", "bridging_pair")


THROUGH_ONE = [
    [0.0, "iut", "client", False], [0.0, "iut", "server", True], [0.301, "peer", "", True],
    [0.301, "peer", "", False], [0.601, "iut", "server", False], [0.601, "iut", "client", True],
]  # fmt: skip
"""When a call and its answer pass which point, and whether the box sends it there."""


@pytest.mark.parametrize("box", ["routed", "bridged"])
def test_call_through_a_box_takes_the_time_of_the_link_behind_it(
    happened: dict[str, Any], box: str
) -> None:
    found = happened[box]
    assert (found["whole"], found["answered"]) == (True, True)
    assert found["passed"] == THROUGH_ONE


@pytest.mark.parametrize("pair", ["pair", "bridged_pair"])
def test_call_through_a_pair_is_captured_at_all_four_ports(
    happened: dict[str, Any], pair: str
) -> None:
    assert happened[pair]["answered"]
    assert happened[pair]["passed"] == [
        [0.0, "iut", "client", False], [0.0, "iut", "satellite-near", True],
        [0.301, "iut", "satellite-far", False], [0.301, "iut", "server", True],
        [0.301, "iut", "server", False], [0.301, "iut", "satellite-far", True],
        [0.601, "iut", "satellite-near", False], [0.601, "iut", "client", True],
    ]  # fmt: skip


@pytest.mark.slow
def test_pair_of_programs_with_stp_over_the_satellite_passes(certified: dict[str, Any]) -> None:
    found = certified["pair_of_stp"]
    verdicts = list(found["requirements"].values())
    assert verdicts.count("pass") > 15, found["told"]
    assert set(verdicts) == {"pass", "unsupported"}


def test_pair_that_bridges_and_asks_for_the_server_at_the_satellite_is_answered(
    happened: dict[str, Any],
) -> None:
    assert happened["bridged_and_asked"] == 6  # octets of an Ethernet address


@pytest.mark.slow
@pytest.mark.parametrize("what", ["bridging_box", "bridging_pair"])
def test_boxes_that_split_and_bridge_pass(bridging: dict[str, Any], what: str) -> None:
    found = bridging[what]
    verdicts = list(found["requirements"].values())
    assert verdicts.count("pass") > 15, found["told"]
    assert set(verdicts) == {"pass", "unsupported"}, found["told"]


def test_used_interfaces_are_given_back(happened: dict[str, Any]) -> None:
    assert happened["routed"]["back"] == ["data0", "data1", "lo"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2")
def test_howto_followed_to_the_letter_ends_in_a_report(certified: dict[str, Any]) -> None:
    found = certified["handbook"]
    assert "verdict: partial   report: bentpipe-runs/rack-geo-pep1/report.html" in found["told"]
    verdicts = list(found["requirements"].values())
    assert verdicts.count("pass") > 20, found["told"]
    assert set(verdicts) == {"pass", "unsupported"}


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("absent", "There is no interface data0 here"),
        ("switched_off", "check the cable"),
        ("without_addresses", "192.0.2.1 does not answer behind data0; check the cable"),
        ("cables_exchanged", "the box asks for 198.51.100.254 at data0, and its gateway is at "
         "data1: the ports are swapped, exchange the cables."),
        ("drops_everything", "nothing has come from the box to data1, where the server is; check "
         "that it forwards and routes 10.77.0.0/16 to 198.51.100.254."),
        ("near_drops_everything", "nothing has come from the box to data2, where the satellite is; "
         "check that it forwards and routes 10.77.0.0/16 to 192.168.2.254."),
        ("far_drops_everything", "nothing has come from the box to data1, where the server is; "
         "check that it forwards."),
        ("no_checksums", "run `ethtool -K INTERFACE tx off tso off gso off`"),
        ("busy", "This machine was too busy: a packet left the link 250 ms late"),
        ("without_root", "taking them needs root; run the command as root, or inside `unshare"),
    ],
)  # fmt: skip
def test_what_is_wrong_gives_one_sentence(
    happened: dict[str, Any], what: str, sentence: str
) -> None:
    assert sentence in happened[what]
    assert "Traceback" not in happened[what]


def test_user_without_rights_examines_a_box_of_namespaces() -> None:
    if (
        shutil.which("unshare") is None
        or subprocess.run((*UNSHARE, "true"), check=False).returncode
    ):
        pytest.skip("user namespaces are not allowed here")
    scenario = str(Path(__file__).with_name("ports_scenario.py"))
    ended = subprocess.run(
        (*UNSHARE, sys.executable, scenario, "routed"), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["routed"]
    assert (found["whole"], found["answered"]) == (True, True)
    # By the clock: a busy machine is later, never earlier.
    times = [time for time, point, _, _ in found["passed"] if point == "peer"]
    assert all(time >= 0.3 for time in times)
    assert [step[1:] for step in found["passed"]] == [step[1:] for step in THROUGH_ONE]
