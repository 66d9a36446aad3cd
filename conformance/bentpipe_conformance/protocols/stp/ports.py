"""STP ports the tests know."""

from __future__ import annotations

from bentpipe_conformance.engine import peer

ECHO, DISCARD, CHARGEN = (peer.STANDARD_SERVICES[name] for name in ("echo", "discard", "chargen"))
"""Ports of the services that listen (section 11)."""

UNUSED_PORT = peer.UNUSED_PORT
"""A port that no upper tester serves."""
