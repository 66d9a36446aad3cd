"""Judging RWBP: segments, connections with and without it."""

from __future__ import annotations

from bentpipe_conformance.engine.suite import Interpreter
from bentpipe_conformance.protocols.rwbp.codec import dissect, trusting
from bentpipe_conformance.protocols.rwbp.replay.flow import read_flows
from bentpipe_conformance.protocols.rwbp.replay.prepared import Prepared

INTERPRETER = Interpreter(
    dissect=dissect, trusting=trusting, read_flows=read_flows, prepare=Prepared
)
