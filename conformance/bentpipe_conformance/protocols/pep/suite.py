"""The record of the suite pep: what the engine needs to know before it loads anything else."""

from __future__ import annotations

from bentpipe_conformance.engine.suite import Suite

SUITE = Suite(
    name="pep",
    title="Boxes that split TCP connections",
    protocol="PEP/1",
    profiles=("pep1",),
    package="bentpipe_conformance.protocols.pep",
    between=True,
)
