"""The record of the suite stp: what the engine needs to know before it loads anything else."""

from __future__ import annotations

from bentpipe_conformance.engine.suite import Suite

SUITE = Suite(
    name="stp",
    title="Satellite Transport Protocol, version 1",
    protocol="STP",
    profiles=("stp1e2",),
    package="bentpipe_conformance.protocols.stp",
    encapsulated=True,
)
