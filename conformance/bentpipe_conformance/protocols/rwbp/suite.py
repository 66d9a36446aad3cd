"""The record of the suite rwbp: what the engine needs to know before it loads anything else."""

from __future__ import annotations

from bentpipe_conformance.engine.suite import Suite

SUITE = Suite(
    name="rwbp",
    title="RWBP/1",
    protocol="RWBP/1",
    profiles=("rwbp1",),
    package="bentpipe_conformance.protocols.rwbp",
)
