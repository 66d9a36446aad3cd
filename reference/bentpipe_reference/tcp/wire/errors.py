"""What the codec raises."""

from __future__ import annotations


class WireError(ValueError):
    """The packet is malformed, is not TCP over IPv4, or the segment has no encoding."""
