"""STP implementations in a box behind one or two ports, in a guest that plays the host."""

from collections.abc import Callable
from typing import Any

import pytest
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.iut.build import IutUnavailable, build

pytestmark = pytest.mark.bed
Play = Callable[..., dict[str, Any]]
CASES = (
    "stp/credit/ready-credit-*", "stp/calling/calling-answered", "stp/calling/calling-peer-aborts",
    "stp/calling/calling-several-times",
)  # fmt: skip


@pytest.fixture(scope="module")
def happened(virtual_kernel: Kernel, play: Play) -> dict[str, Any]:
    try:
        go = build("stp-go")
    except IutUnavailable as error:
        pytest.skip(str(error))
    boxes = ("go-ip", "go-udp-two-ports")
    return play(virtual_kernel, "stp_box_scenario.py", str(go / "stp-go"), *boxes, *CASES)


@pytest.mark.parametrize("box", ["go-ip", "go-udp-two-ports"])
def test_stp_in_a_box_is_certified_and_calls_when_told(happened: dict[str, Any], box: str) -> None:
    found = happened[box]
    assert found["status"] == 3, found["told"]
    assert "verdict: partial " in found["told"]  # of chosen cases; none of them failed
    assert len(found["cases"]) > 3
    assert any(case.startswith("stp/calling/") for case in found["cases"])
    assert set(found["cases"].values()) == {"pass"}


@pytest.mark.parametrize("box", ["go-ip", "go-udp-two-ports"])
def test_certified_the_ports_are_back(happened: dict[str, Any], box: str) -> None:
    assert happened[box]["interfaces"] == ["ctl0", "data0", "data1", "lo"]
