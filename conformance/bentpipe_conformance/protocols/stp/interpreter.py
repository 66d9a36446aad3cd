"""Judging STP: packets and connections; nothing of the statement is negotiated in its handshake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.suite import Interpreter
from bentpipe_conformance.protocols.stp.codec import Stp, dissect
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.prepared import Prepared
from bentpipe_conformance.protocols.stp.replay.reader import read_flows


def _trusting(packet: Stp) -> Stp:
    return replace(packet, checksum_ok=True, udp_checksum_ok=True)


def _observed(flows: Sequence[Flow]) -> dict[str, Any]:
    return {"active_open": any(flow.iut_calls for flow in flows), "fifo": True}


def _payload(packet: Stp) -> tuple[str, int]:
    return packet.src, len(packet.data) if packet.wellformed else 0


INTERPRETER = Interpreter(
    dissect=dissect,
    trusting=_trusting,
    read_flows=read_flows,
    prepare=Prepared,
    observed=_observed,
    payload=_payload,
)
