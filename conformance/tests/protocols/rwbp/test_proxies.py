"""RWBP's proxies, which are boxes of PEP/1: what they speak over the satellite is RWBP/1."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.checking import judge
from bentpipe_conformance.engine.execution import run_case
from bentpipe_conformance.engine.lane import SATELLITE_FAR, SATELLITE_NEAR
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.rwbp.suite import SUITE
from bentpipe_conformance.selftest.stage import stage
from bentpipe_reference.common.subject import subject_of

SERVICES = {"RWBP-WF-008", "RWBP-WF-010"}
"""They speak of echo, discard and chargen; the user of a proxy's endpoint is its relay."""

ICS = {"interval": 8, "receive_buffer": 1 << 16}

SHOWN = {
    "pep/path/outage-of-5-seconds": {
        "RWBP-NG-002", "RWBP-NG-003", "RWBP-AK-001", "RWBP-AK-002", "RWBP-WN-003", "RWBP-EC-005",
        "RWBP-EC-007", "RWBP-TM-001", "RWBP-TM-004",
    },
    "pep/flow-control/established-server-stops-and-goes-on": {
        "RWBP-FC-003", "RWBP-WN-001", "RWBP-WN-003", "RWBP-WN-005",
    },
}  # fmt: skip


@pytest.mark.parametrize("case", SHOWN)
def test_what_passes_between_two_proxies(case: str) -> None:
    lane, settings = stage(subject_of("pep"), "pep1", "rwbp", 0)
    captured = run_case(load_cases("pep")[case], lane, settings).captured
    held = set[str]()
    for side in (SATELLITE_NEAR, SATELLITE_FAR):
        leg = read_trace((replace(it, side="") for it in captured if it.side == side), suite=SUITE)
        findings = list(judge(leg, "rwbp1", ICS, suite=SUITE))
        broken = [it for it in findings if it.verdict in (Verdict.FAIL, Verdict.ERROR)]
        assert [it.sentence for it in broken if it.requirement not in SERVICES] == []
        held |= {it.requirement for it in findings if it.verdict is Verdict.PASS}
    assert SHOWN[case] <= held
