"""The host as a place, and implementations at an address, in a guest that plays the host."""

from collections.abc import Callable
from typing import Any

import pytest
from bentpipe_conformance.bed.kernel import Kernel

pytestmark = pytest.mark.bed
Play = Callable[..., dict[str, Any]]
PING_SECONDS = 0.6 + 2 * 84 * 8 / 1.3e6


@pytest.fixture(scope="module")
def happened(virtual_kernel: Kernel, play: Play) -> dict[str, Any]:
    return play(virtual_kernel, "host_scenario.py")


WITHOUT_RACK = [
    "snr/fast-retransmit/established-small-reports",
    "snr/fast-retransmit/established-scattered-small-reports",
    "snr/fast-retransmit/established-reports-around-an-acknowledgment-with-data",
    "snr/fast-retransmit/established-reports-around-an-acknowledgment-with-a-report",
    "snr/fast-retransmit/established-reports-on-segments-with-data",
    "snr/fast-retransmit/established-window-narrowed",
    "snr/fast-retransmit/idle-duplicates-then-loss",
    "snr/fast-retransmit/small-flights-below-threshold",
]
"""Cases for a sender without RACK, which the box has."""


def test_box_behind_an_interface_is_certified(happened: dict[str, Any]) -> None:
    found = happened["address"]
    # Of chosen cases: partial, so that it cannot pass as a whole.
    assert (found["status"], found["verdict"]) == (3, "inconclusive"), found["told"]
    assert "verdict: partial " in found["told"]
    assert len(found["cases"]) > 5
    left = {name: verdict for name, verdict in found["cases"].items() if verdict != "pass"}
    assert left == dict.fromkeys(WITHOUT_RACK, "unsupported")


def test_certified_the_interface_is_as_it_was(happened: dict[str, Any]) -> None:
    before = happened["address"]["before"]
    assert happened["address"]["after"] == before
    assert (before["mtu"], before["tx_queue_len"]) == ("1400", "77")
    assert before["addresses"] == ["192.0.2.200", "255.255.255.0"]
    assert len(before["routes"]) == 1
    assert 1 in dict(before["offloads"]).values()


def test_kernel_of_the_host_is_certified_on_the_host(happened: dict[str, Any]) -> None:
    found = happened["namespace"]
    # Of chosen cases: partial, so that it cannot pass as a whole.
    assert (found["status"], found["verdict"]) == (3, "inconclusive"), found["told"]
    assert "verdict: partial " in found["told"]
    assert len(found["cases"]) > 1
    assert set(found["cases"].values()) == {"pass"}


def test_ping_to_a_box_takes_the_links_time_and_no_arp(happened: dict[str, Any]) -> None:
    assert happened["pings"]["took"] == pytest.approx(PING_SECONDS, abs=1e-4)
    assert happened["pings"]["captured"] == [
        ["peer", False],
        ["iut", False],
        ["iut", True],
        ["peer", True],
    ]


def test_interface_was_down_it_is_down_again(happened: dict[str, Any]) -> None:
    assert happened["down"] is True


def test_interface_vanishes_with_the_box_nothing_is_left(happened: dict[str, Any]) -> None:
    assert happened["vanished"] is False


def test_box_does_not_answer_the_interface_is_back(happened: dict[str, Any]) -> None:
    assert happened["silent"]["back"] is True
    assert happened["silent"]["error"] == (
        "192.0.2.9 does not answer behind box0; check the cable, the address and that the "
        "implementation runs."
    )


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        ("no_interface", "BedError: There is no interface box0 here"),
        ("loopback", "BedError: lo is the loopback"),
        ("default_route", "BedError: box0 carries this machine's default route"),
        ("without_root", "Making a network namespace needs root"),
    ],
)
def test_interface_cannot_be_borrowed_one_sentence_says_why(
    happened: dict[str, Any], scenario: str, sentence: str
) -> None:
    assert happened[scenario].startswith(sentence)
