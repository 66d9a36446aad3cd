"""The cases of ``cases/test_states.py`` follow the state table, and reach its states."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.protocols.stp.cases.test_states import OUT_OF_REACH, STIMULI
from bentpipe_conformance.protocols.stp.replay.flow import State
from bentpipe_conformance.protocols.stp.replay.reader import read_flows
from bentpipe_conformance.protocols.stp.suite import SUITE as STP
from bentpipe_spec.document import state_table

ROWS = {(row.state, row.packet, row.when) for row in state_table("stp")}

CASES = {
    "idle-every-packet": State.IDLE,
    "calling-every-packet": State.CALLING,
    "ready-every-packet": State.OPEN,
    "releasing-every-packet": State.RELEASING,
}


def test_every_row_has_a_stimulus_or_a_reason() -> None:
    assert set(STIMULI) | set(OUT_OF_REACH) >= ROWS
    assert not set(STIMULI) & set(OUT_OF_REACH)


@pytest.mark.parametrize("name", CASES)
def test_case_brings_every_packet_into_its_state(name: str, bed: Any) -> None:
    load_cases("stp")[f"stp/states/{name}"].script(bed.peer)
    flows = read_flows(read_trace(bed.lane.end(), suite=STP))
    reached = {
        packet.content.name
        for flow in flows
        for packet in flow.packets
        if packet.content is not None
        and not packet.outgoing
        and flow.state_before[packet.number] == CASES[name]
    }
    assert reached == {row.packet for row in state_table("stp")}
