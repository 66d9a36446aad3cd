"""The record of the suite snr: what the engine needs to know before it loads anything else."""

from __future__ import annotations

from bentpipe_conformance.engine.suite import Suite

SUITE = Suite(
    name="snr",
    title="TCP loss recovery (SACK-NewReno)",
    protocol="TCP",
    profiles=("rfc", "hk99"),
    package="bentpipe_conformance.protocols.tcp",
)
