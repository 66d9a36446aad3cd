from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bentpipe_conformance.engine import checking
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.frames import Frame
from bentpipe_conformance.models import rejection
from bentpipe_conformance.models.tcp.foreign import ForeignJudgement, judge_transfers
from bentpipe_conformance.models.tcp.transfers import read_transfer
from bentpipe_conformance.protocols.tcp.codec import dissect
from bentpipe_conformance.protocols.tcp.observer import OBSERVER
from bentpipe_conformance.protocols.tcp.replay.flow import read_flows
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.tcp.config import EndpointConfig, Variant
from bentpipe_reference.tcp.parts import Setup

from .conftest import Recorder, found_tool, write

pytestmark = pytest.mark.slow

MUTANTS = {
    "snr-held-data-repeated": "SNR-SAK-001",
    "snr-held-data-repeated-hk99": "SNR-SAK-001",
    "snr-first-report-suffices": "SNR-SAK-006",
    "snr-hole-repeated-at-once": "SNR-SAK-009",
    "snr-hole-repeated-at-once-hk99": "SNR-SAK-009",
    "snr-repeats-on-every-duplicate": "SNR-SAK-009",
}


@pytest.fixture
def judge(tmp_path: Path) -> Callable[[dict[str, list[Frame]]], dict[str, ForeignJudgement]]:
    tool = found_tool()

    def judging(captures: dict[str, list[Frame]]) -> dict[str, ForeignJudgement]:
        files = [write(tmp_path / f"{name}.pcapng", frames) for name, frames in captures.items()]
        transfers = [read_transfer(path) for path in files]
        found = judge_transfers(transfers, rejection.Setup(tool, tmp_path, timeout=500.0))
        return dict(zip(captures, found, strict=True))

    return judging


def transfers(
    recorded: Recorder, some_drops: Callable[[int, int], list[int]], variant: Variant
) -> dict[str, list[Frame]]:
    return {
        f"{link}-{seed}": recorded(
            EndpointConfig(variant=variant), 120, some_drops(seed, 120), link, seed
        )
        for link in ("geo", "leo-40")
        for seed in range(3)
    }


@pytest.mark.parametrize("variant", ["sack-newreno-rfc", "sack-newreno-hk99"])
def test_transfers_of_the_reference_are_consistent_and_fully_checked(
    recorded: Recorder,
    some_drops: Callable[[int, int], list[int]],
    judge: Callable[[dict[str, list[Frame]]], dict[str, ForeignJudgement]],
    variant: Variant,
) -> None:
    for name, item in judge(transfers(recorded, some_drops, variant)).items():
        assert (item.outcome, item.violation) == ("consistent", None), name
        assert item.checked == item.transfer.total and item.retransmissions >= 5, name


def test_needless_repetition_is_found_at_its_packet(
    recorded: Recorder,
    some_drops: Callable[[int, int], list[int]],
    judge: Callable[[dict[str, list[Frame]]], dict[str, ForeignJudgement]],
) -> None:
    captures, expected = {}, {}
    for seed in range(20):
        frames = recorded(
            EndpointConfig(variant="sack-newreno-rfc"), 120, some_drops(seed, 120), "geo", seed
        )
        sent = [i for i, frame in enumerate(frames) if frame.outgoing and len(frame.data) > 1000]
        # Not the newest segment: that could be a rescue retransmission.
        at, copied = sent[20 + seed] + 1, sent[20 + seed - 2]
        again = replace(frames[copied], time_ns=frames[at - 1].time_ns)
        captures[f"bad-{seed}"] = [*frames[:at], again, *frames[at:]]
        expected[f"bad-{seed}"] = at + 1
    found = judge(captures)
    assert {n: i.violation.packet if i.violation else 0 for n, i in found.items()} == expected


def test_repair_before_the_third_duplicate_is_found_at_its_packet(
    recorded: Recorder,
    judge: Callable[[dict[str, list[Frame]]], dict[str, ForeignJudgement]],
) -> None:
    frames = recorded(EndpointConfig(variant="sack-newreno-rfc"), 100, drops=[30])
    sent: dict[int, int] = {}
    for again, frame in enumerate(frames):
        if frame.outgoing and len(frame.data) > 1000:
            lost = sent.setdefault(dissect(frame.data).seq, again)
            if lost != again:
                break
    una = dissect(frames[lost].data).seq
    duplicates = [
        at for at in range(lost, again)
        if not frames[at].outgoing and dissect(frames[at].data).ack == una
    ][1:]  # fmt: skip
    captures, expected = {}, {}
    for name, after in (("none", lost + 1), ("one", duplicates[0]), ("two", duplicates[1])):
        early = replace(frames[again], time_ns=frames[after].time_ns)
        rest = [*frames[after + 1 : again], *frames[again + 1 :]]
        captures[name] = [*frames[: after + 1], early, *rest]
        expected[name] = after + 2
    found = judge(captures)
    assert {n: i.violation.packet if i.violation else 0 for n, i in found.items()} == expected
    for name, item in found.items():
        assert item.violation is not None and "SNR-SAK-00" in item.violation.guard, name


def first_violation(frames: list[Frame], requirement: str) -> int:
    """The packet that the checker, which knows nothing of the model, finds first."""
    sender = dissect(frames[0].data).src
    captured = [
        Captured((f.time_ns or 0) / 1e9, "iut", dissect(f.data).src == sender, f.data)
        for f in frames
    ]
    trace = read_trace(captured, suite=SNR)
    (flow,) = read_flows(trace)
    claims = OBSERVER.claims(flow, {"fast_retransmit": True, "newreno": True})
    found = checking.judge(trace, "rfc", claims, [requirement], suite=SNR)
    failed = (item for item in found if item.verdict is Verdict.FAIL)
    return min((packet for item in failed for packet in item.packets[:1]), default=0)


def test_mutants_are_found_at_the_packet_their_checker_finds(
    recorded: Recorder,
    judge: Callable[[dict[str, list[Frame]]], dict[str, ForeignJudgement]],
) -> None:
    captures, expected = {}, {}
    for name, requirement in MUTANTS.items():
        mutant = load_mutants()[name]
        variant: Variant = "sack-newreno-hk99" if mutant.profile == "hk99" else "sack-newreno-rfc"
        setup = mutant.configure(Setup(EndpointConfig(variant=variant)))
        captures[name] = recorded(setup, 100, drops=[30, 37])
        expected[name] = first_violation(captures[name], requirement)
    assert all(expected.values())
    found = judge(captures)
    assert {n: i.violation.packet if i.violation else 0 for n, i in found.items()} == expected
    for name, item in found.items():
        assert item.violation is not None and MUTANTS[name] in item.violation.guard


def test_violation_before_a_gap_stands_and_a_gap_alone_is_insufficient(
    recorded: Recorder,
    judge: Callable[[dict[str, list[Frame]]], dict[str, ForeignJudgement]],
) -> None:
    mutant = load_mutants()["snr-held-data-repeated"]
    bad = recorded(
        mutant.configure(Setup(EndpointConfig(variant="sack-newreno-rfc"))), 100, [30, 37]
    )
    good = recorded(EndpointConfig(variant="sack-newreno-rfc"), 100, [30, 37])
    found = judge({"bad": bad[:-30] + bad[-20:], "good": good[:-30] + good[-20:]})
    assert found["bad"].outcome == "violates"
    assert found["good"].outcome == "capture insufficient"
    assert 0 < found["good"].checked < found["good"].transfer.total
