"""What the codecs of all protocols share."""

from __future__ import annotations


class MalformedPacket(ValueError):
    """The octets do not hold a packet of the protocol; the message says why."""
