"""The one error of the STP codec."""

from __future__ import annotations


class MalformedPacket(ValueError):
    """Octets are malformed (STP-PF-003, STP-PF-007), or a packet cannot be encoded."""
