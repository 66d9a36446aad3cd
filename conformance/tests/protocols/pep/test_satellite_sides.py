"""What the boxes of PEP/1 speak over the satellite is what they say, by the rules of that suite."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.checking import judge
from bentpipe_conformance.engine.execution import run_case
from bentpipe_conformance.engine.lane import SATELLITE_FAR, SATELLITE_NEAR
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.iut.proforma import complete, load_proforma
from bentpipe_conformance.selftest.stage import stage
from bentpipe_reference.common.subject import subject_of


@dataclass
class Side:
    """A satellite side: suite, profile, protocol in IPv4, what is claimed, and what is excepted."""

    suite: str
    profile: str
    protocol: int
    claims: dict[str, Any] = field(default_factory=dict)
    excepted: frozenset[str] = frozenset()


RWBP = Side(
    "rwbp", "rwbp1", 6, {"interval": 8, "receive_buffer": 1 << 16},
    # They speak of echo, discard and chargen; the user of a proxy's endpoint is its relay.
    frozenset({"RWBP-WF-008", "RWBP-WF-010"}),
)  # fmt: skip
STP = Side("stp", "stp1e2", 254)

SHOWN = [
    (RWBP, "pep/path/outage-of-5-seconds", {
        "RWBP-NG-002", "RWBP-NG-003", "RWBP-AK-001", "RWBP-AK-002", "RWBP-WN-003", "RWBP-EC-005",
        "RWBP-EC-007", "RWBP-TM-001", "RWBP-TM-004",
    }),
    (RWBP, "pep/flow-control/established-server-stops-and-goes-on", {
        "RWBP-FC-003", "RWBP-WN-001", "RWBP-WN-003", "RWBP-WN-005",
    }),
    (STP, "pep/path/outage-of-5-seconds", {
        "STP-CC-010", "STP-CC-035", "STP-CC-045", "STP-CG-001", "STP-CG-004", "STP-DT-002",
        "STP-DT-018", "STP-DT-027", "STP-PF-006", "STP-PL-001", "STP-PL-007", "STP-SEC-001",
    }),
    (STP, "pep/reliability/half-closed-server-answers", {
        "STP-CC-022", "STP-CC-023", "STP-CC-025", "STP-CC-028", "STP-DT-017",
    }),
    (STP, "pep/isolation/closed-ports-used-again-client-first", {"STP-CC-021", "STP-CC-035"}),
    (STP, "pep/opening/opening-server-refuses", {"STP-CC-010", "STP-CC-035", "STP-PF-017"}),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("spoken", "case", "shown"), SHOWN, ids=[f"{side.suite}-{case}" for side, case, _ in SHOWN]
)
def test_what_passes_between_two_boxes(spoken: Side, case: str, shown: set[str]) -> None:
    suite = suite_named(spoken.suite)
    lane, settings = stage(subject_of("pep"), "pep1", spoken.suite, 0)
    captured = run_case(load_cases("pep")[case], lane, settings).captured
    ics = complete(spoken.claims, load_proforma(suite))
    held = set[str]()
    for side in (SATELLITE_NEAR, SATELLITE_FAR):
        packets = [it for it in captured if it.side == side and it.data[9] == spoken.protocol]
        leg = read_trace((replace(it, side="") for it in packets), suite=suite)
        findings = list(judge(leg, spoken.profile, ics, suite=suite))
        broken = [it for it in findings if it.verdict in (Verdict.FAIL, Verdict.ERROR)]
        assert [it.sentence for it in broken if it.requirement not in spoken.excepted] == []
        held |= {it.requirement for it in findings if it.verdict is Verdict.PASS}
    assert shown <= held
