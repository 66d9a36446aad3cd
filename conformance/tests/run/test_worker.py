"""Workers before the first case: one probes, the others load, and all wait for the claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.engine.probe import Probe
from bentpipe_conformance.evidence.serialization import decode, loads
from bentpipe_conformance.run import worker
from bentpipe_conformance.run.assignment import Assignment


@pytest.fixture
def order(tmp_path: Path) -> Path:
    probe, bundle, claims = (str(tmp_path / name) for name in ("probe.json", "b", "claims"))
    asked = Assignment("reference", "geo", "rfc", "snr", ("x",), bundle, claims, 1, probe=probe)
    asked.dump(tmp_path / "order.json")
    return tmp_path / "order.json"


@pytest.fixture
def done(order: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a worker does; the claims are there after a second look."""
    told: list[str] = []

    def wait(_seconds: float) -> None:
        told.append("waits")
        if told.count("waits") == 2:
            (order.parent / "claims").mkdir()

    monkeypatch.setattr(worker.time, "sleep", wait)
    monkeypatch.setattr(worker.Worker, "load", lambda _: told.append("loads"))
    monkeypatch.setattr(worker.Worker, "run", lambda _: told.append("runs"))
    monkeypatch.setattr(worker.Worker, "probe", lambda _: Probe(problem="it lies"))
    return told


def test_first_worker_probes_then_waits_for_the_claims(order: Path, done: list[str]) -> None:
    assert worker.main([str(order)]) == 0
    text = (order.parent / "probe.json").read_text(encoding="utf-8")
    assert decode(Probe, loads(text)).problem == "it lies"
    assert done == ["waits", "waits", "runs"]


def test_worker_while_another_probes_loads_and_waits(order: Path, done: list[str]) -> None:
    (order.parent / "probe.begun").mkdir()
    assert worker.main([str(order)]) == 0
    assert not (order.parent / "probe.json").exists()
    assert done == ["loads", "waits", "waits", "runs"]
