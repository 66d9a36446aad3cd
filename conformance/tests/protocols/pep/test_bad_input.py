"""Whatever passed a box is read, and judged, without an exception."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.checking import judge
from bentpipe_conformance.engine.execution import run_case
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.pep.suite import SUITE
from bentpipe_conformance.selftest.stage import stage
from bentpipe_reference.common.subject import subject_of

CASES = (
    "pep/opening/closed-client-calls",
    "pep/path/outage-of-5-seconds",
    "pep/security/established-guessed-message",
    "pep/transparency/established-segment-in-fragments",
)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_captured_packets_damaged(name: str) -> None:
    lane, settings = stage(subject_of("pep"), "pep1", "", 0)
    captured = run_case(load_cases("pep")[name], lane, settings).captured
    chance = random.Random(name)
    for _ in range(12):
        damaged = []
        for item in captured:
            octets = bytearray(item.data)
            if chance.random() < 0.3:
                for _ in range(chance.randrange(1, 4)):
                    octets[chance.randrange(len(octets))] = chance.randrange(256)
                octets = (
                    octets[: chance.randrange(len(octets) + 1)] if chance.random() < 0.2 else octets
                )
            damaged.append(replace(item, data=bytes(octets)))
        trace = read_trace(damaged, suite=SUITE, trust_checksums=True)
        findings = judge(trace, "pep1", settings.ics, suite=SUITE)
        broken = [found.sentence for found in findings if found.verdict is Verdict.ERROR]
        assert broken == []
