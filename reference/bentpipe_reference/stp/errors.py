"""The one error of the STP codec."""

from __future__ import annotations


class MalformedPacket(ValueError):
    """The octets are no intact packet (STP-PF-003, STP-PF-007), or a packet has no encoding."""
