"""The receiving side of a connection."""

from __future__ import annotations

from bentpipe_reference.toy.codec import Kind, Packet


class Receiver:
    """What has arrived in order.

    Attributes:
        octets: what the user has not read.
        ended: whether the peer's stream has ended.
    """

    def __init__(self) -> None:
        self.octets = bytearray()
        self.ended = False
        self._expected = 0

    def take(self, packet: Packet) -> bool:
        """Take a DATA or CLOSE; whether to acknowledge it."""
        if not self.is_duplicate(packet):
            self.octets += packet.data
            self.ended = packet.kind is Kind.CLOSE
            self._expected ^= 1
        return True

    def is_duplicate(self, packet: Packet) -> bool:
        """Whether the packet has been taken before."""
        return packet.bit != self._expected or self.ended
