"""STP implementations in a box behind one or two ports, in a guest that plays the host."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.bed import kernel as kernels
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.uml import run
from bentpipe_conformance.iut.build import IutUnavailable, build

pytestmark = pytest.mark.bed
SCENARIO = Path(__file__).with_name("stp_box_scenario.py")
CASES = ("stp/credit/ready-credit-*", "stp/opening/calling-*")


@pytest.fixture(scope="module")
def happened() -> dict[str, Any]:
    try:
        kernel = kernels.find_virtual()
        go = build("stp-go")
    except (BedError, IutUnavailable) as error:
        pytest.skip(str(error))
    if kernel is None:
        pytest.skip("no kernel with a virtual clock is built")
    boxes = ("go-ip", "go-udp-two-ports")
    command = [sys.executable, str(SCENARIO), str(go / "stp-go"), *boxes, *CASES]
    result = run(kernel, command, virtual=True, timeout=240)
    assert result.status == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


@pytest.mark.parametrize("box", ["go-ip", "go-udp-two-ports"])
def test_stp_in_a_box_is_certified_and_calls_when_told(happened: dict[str, Any], box: str) -> None:
    found = happened[box]
    assert found["status"] == 0, found["told"]
    assert len(found["cases"]) > 3
    assert any(case.startswith("stp/opening/") for case in found["cases"])
    assert set(found["cases"].values()) == {"pass"}


@pytest.mark.parametrize("box", ["go-ip", "go-udp-two-ports"])
def test_certified_the_ports_are_back(happened: dict[str, Any], box: str) -> None:
    assert happened[box]["interfaces"] == ["ctl0", "data0", "data1", "lo"]
