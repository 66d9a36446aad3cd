"""Packet numbers and connection sequence numbers, modular on the wire (STP/1 section 2), and ports.

Everything else of this package counts a direction's SDs from 0, the one numbered ISS, and never
wraps; these functions translate.
"""

from __future__ import annotations

from bentpipe_conformance.engine.peer import STANDARD_SERVICES

ECHO, DISCARD, CHARGEN = (STANDARD_SERVICES[name] for name in ("echo", "discard", "chargen"))
"""Ports of the services that listen (section 11)."""

MODULUS = 1 << 24
"""Packet numbers."""

CSN_MODULUS = 1 << 32
"""Connection sequence numbers."""

MAX_CREDIT = 1 << 23
"""The most SDs that a credit may permit (STP-DT-005)."""

EARLY_CREDIT = 4
"""SDs that may be sent before the peer gives credit (section 8)."""

LEAST_MAX_SD = 512
"""The most octets of user data in an SD until the peer's MaxSD is known (STP-PF-009)."""

NO_ANSWER = 7
"""Reason of an END when the peer does not answer (section 3.4)."""

NO_RESPONSE_S = 60.0
"""When a peer that does not answer is given up (STP-PL-008)."""


def near(wire: int, iss: int, expected: int) -> int:
    """The count, from ISS, that a number on the wire stands for: the one nearest to ``expected``.

    Half the modulus away, it is taken as ahead.
    """
    distance = (wire - iss - expected) % MODULUS
    return expected + (distance if distance <= MODULUS // 2 else distance - MODULUS)


def on_wire(count: int, iss: int) -> int:
    """The number on the wire of a count from ISS."""
    return (iss + count) % MODULUS


def newer(csn: int, than: int) -> bool:
    """Whether one connection sequence number is newer than another (section 2)."""
    return 0 < (csn - than) % CSN_MODULUS < CSN_MODULUS // 2


def tag_of(csn: int) -> int:
    """The tag that an endpoint with this CSN puts into its packets (STP-PF-005)."""
    return csn & 0xFFFF
