"""The one error of the STP codec: octets are malformed (STP-PF-003, STP-PF-007)."""

from __future__ import annotations

from bentpipe_reference.common.encapsulation import MalformedPacket

__all__ = ["MalformedPacket"]
