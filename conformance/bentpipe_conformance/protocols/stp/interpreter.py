"""Judging STP: packets and connections; nothing of the statement is negotiated in its handshake."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.suite import Interpreter
from bentpipe_conformance.protocols.stp.codec import Stp, dissect
from bentpipe_conformance.protocols.stp.replay.prepared import Prepared
from bentpipe_conformance.protocols.stp.replay.reader import read_flows


def _trusting(packet: Stp) -> Stp:
    return replace(packet, checksum_ok=True, udp_checksum_ok=True, ip_checksum_ok=True)


INTERPRETER = Interpreter(
    dissect=dissect,
    trusting=_trusting,
    read_flows=read_flows,
    prepare=Prepared,
)
