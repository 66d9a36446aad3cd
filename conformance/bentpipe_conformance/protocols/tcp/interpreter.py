"""Judging TCP: segments, connections, recovery episodes and the handshake's claims."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import Interpreter
from bentpipe_conformance.protocols.tcp.checkers import Context
from bentpipe_conformance.protocols.tcp.claims import HANDSHAKE_ITEMS
from bentpipe_conformance.protocols.tcp.codec import dissect
from bentpipe_conformance.protocols.tcp.replay.events import Segment
from bentpipe_conformance.protocols.tcp.replay.flow import Flow, read_flows
from bentpipe_conformance.protocols.tcp.replay.prepared import Prepared
from bentpipe_conformance.protocols.tcp.replay.readings import read_otherwise, read_with_habits

SMALLEST_MSS = 28
"""Payload of the smallest datagram every link carries unfragmented (68 octets, RFC 791)."""


def _refused(flow: Flow, context: Context) -> Finding | None:
    attribute, name = HANDSHAKE_ITEMS.get(context.requirement.condition, ("", ""))
    handshake = flow.handshake
    # A SYN with an impossible MSS may be taken for one without options.
    ordinary = handshake.ordinary and flow.mss >= SMALLEST_MSS
    if not name or handshake.iut is None or not ordinary:
        return None
    if not handshake.offered(attribute) or handshake.answered(attribute):
        return None
    return context.violated(
        f"the conformance statement claims {name}, which the SYN-ACK does not carry",
        Segment(handshake.iut),
        expected=f"a SYN-ACK with {name} in answer to a SYN that offers it",
        actual=f"no {name} in the SYN-ACK",
    )


INTERPRETER = Interpreter(
    dissect=dissect,
    trusting=lambda segment: replace(segment, checksum_ok=True),
    read_flows=read_flows,
    prepare=Prepared,
    refused=_refused,
    otherwise=read_otherwise,
    with_habits=read_with_habits,
)
