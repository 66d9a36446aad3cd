"""The record of the suite toy: what the engine needs to know before it loads anything else."""

from __future__ import annotations

from bentpipe_conformance.engine.suite import Suite

SUITE = Suite(
    name="toy",
    title="Stop and wait with one sequence bit",
    protocol="TOY",
    profiles=("toy1",),
    package="bentpipe_conformance.protocols.toy",
    encapsulated=True,
)
