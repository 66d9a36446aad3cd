"""Judging TCP: segments, connections, recovery episodes and the handshake's claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import Interpreter
from bentpipe_conformance.protocols.tcp.checkers import Context
from bentpipe_conformance.protocols.tcp.claims import HANDSHAKE_ITEMS
from bentpipe_conformance.protocols.tcp.codec import Tcp, dissect
from bentpipe_conformance.protocols.tcp.replay.flow import Flow, read_flows
from bentpipe_conformance.protocols.tcp.replay.prepared import Prepared

SMALLEST_MSS = 28
"""Payload of the smallest datagram every link carries unfragmented (68 octets, RFC 791)."""


def _trusting(segment: Tcp) -> Tcp:
    return replace(segment, checksum_ok=True)


def _refused(flow: Flow, context: Context) -> Finding | None:
    item = HANDSHAKE_ITEMS.get(context.requirement.condition)
    syn_ack = flow.handshake.iut
    if item is None or syn_ack is None or not flow.handshake.offered(item.attribute):
        return None
    if not flow.handshake.ordinary:
        return None
    # A SYN with an impossible MSS may be taken for one without options.
    if flow.handshake.answered(item.attribute) or flow.mss < SMALLEST_MSS:
        return None
    finding = context.violated(
        f"the conformance statement claims {item.name}, which the SYN-ACK does not carry",
        expected=f"a SYN-ACK with {item.name} in answer to a SYN that offers it",
        actual=f"no {item.name} in the SYN-ACK",
    )
    return Finding(
        finding.requirement, finding.verdict, (syn_ack.number,), finding.sentence,
        finding.expected, finding.actual,
    )  # fmt: skip


def _observed(flows: Sequence[Flow]) -> dict[str, Any]:
    ics: dict[str, Any] = {"fast_retransmit": True, "newreno": True}
    for item, known in HANDSHAKE_ITEMS.items():
        ics[item] = any(flow.handshake.answered(known.attribute) for flow in flows)
    return ics


def _payload(segment: Tcp) -> tuple[str, int]:
    return segment.src, len(segment.payload)


INTERPRETER = Interpreter(
    dissect=dissect,
    trusting=_trusting,
    read_flows=read_flows,
    prepare=Prepared,
    refused=_refused,
    observed=_observed,
    payload=_payload,
)
