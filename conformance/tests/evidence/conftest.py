"""Records the evidence tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import Bundle
from bentpipe_conformance.evidence.records import (
    Bed,
    CaseRecord,
    Implementation,
    RunRecord,
)


@pytest.fixture
def run() -> RunRecord:
    return RunRecord(
        bentpipe="0.1.0",
        command=("bentpipe", "certify", "linux"),
        iut=Implementation("linux", "Linux 6.1", "the bed's own TCP", {"sack": True}),
        link={"id": "geo", "rtt": 0.6},
        profile="rfc",
        bed=Bed("uml-virtual", "the kernel is cached", "6.1.0", 1e-6, {"delay": 0.3}),
        seed=7,
        started=1000.5,
    )


@pytest.fixture
def case() -> CaseRecord:
    finding = Finding("SNR-REC-003", Verdict.FAIL, (1,), "it did not", "this", "that")
    return CaseRecord(
        id="snr/recovery/third-duplicate-ack",
        title="Third duplicate ACK",
        purpose="to see",
        requirements=("SNR-REC-003", "SNR-REC-004"),
        verdict=Verdict.FAIL,
        reason="it did not",
        findings=(finding,),
        started=1001.75,
        link_seconds=12.5,
        wall_seconds=0.25,
        tester_address="10.78.0.1",
        lane={"number": 1},
    )


@pytest.fixture
def captured() -> list[Captured]:
    return [
        Captured(0.1, "iut", True, b"E" * 40),
        Captured(0.4000000001, "peer", True, b"E" * 40),
        Captured(1 / 3, "iut", False, b"F" * 40),
    ]


@pytest.fixture
def stored(tmp_path: Path, run: RunRecord, case: CaseRecord, captured: list[Captured]) -> Bundle:
    """An unfinished bundle in ``tmp_path`` that holds one case."""
    bundle = Bundle.create(tmp_path, run)
    bundle.add_case(case, captured)
    return bundle
