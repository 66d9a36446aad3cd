"""Judging boxes: segments at both sides, and the connections that they belong to."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_conformance.engine.suite import Interpreter
from bentpipe_conformance.protocols.pep.replay.flow import read_flows
from bentpipe_conformance.protocols.tcp.codec import dissect

INTERPRETER = Interpreter(
    dissect=dissect,
    trusting=lambda segment: replace(segment, checksum_ok=True),
    read_flows=read_flows,
)
