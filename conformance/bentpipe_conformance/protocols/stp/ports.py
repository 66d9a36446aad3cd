"""STP ports the tests know."""

from __future__ import annotations

from bentpipe_conformance.engine.peer import STANDARD_SERVICES

ECHO, DISCARD, CHARGEN = (STANDARD_SERVICES[name] for name in ("echo", "discard", "chargen"))
"""Ports of the services that listen (section 11)."""

UNUSED_PORT = 47
"""A port that no upper tester serves."""
