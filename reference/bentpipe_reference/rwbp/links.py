"""A host at two links: one with a rate and a gateway, at an address of its own, and one without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.rwbp.host import RwbpHost
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.tcp.connection import Connection

_DESTINATION = slice(16, 20)
"""Of the destination address in an IPv4 header."""


class TwoLinks:
    """What is sent from the link's address waits for its rate and its gateway, nothing else does.

    Each link has a scheduler and an IP queue (section 9.3). The user's calls leave by the other.

    Args:
        address: dotted IPv4 address on the link without rate and gateway.
        setup: settings and parts of both; the address of the other link is among them.
        seed: of the initial sequence numbers.
    """

    def __init__(self, address: str, setup: Setup, seed: int) -> None:
        config = setup.config
        assert config.link_address is not None
        free = replace(config, link_rate_bit_s=None, gateway=None)
        self.free = RwbpHost(address, free, seed, parts=setup.parts)
        self.link = RwbpHost(config.link_address, config, seed + 1, parts=setup.parts)
        self._destination = address_number(config.link_address).to_bytes(4, "big")

    def receive(self, packet: bytes, now: float) -> None:
        """Process one IPv4 packet at ``now`` seconds."""
        at_link = packet[_DESTINATION] == self._destination
        (self.link if at_link else self.free).receive(packet, now)

    def advance(self, now: float) -> None:
        """See :class:`RwbpHost`."""
        self.free.advance(now)
        self.link.advance(now)

    def transmit(self, now: float) -> list[bytes]:
        """See :class:`RwbpHost`."""
        return self.free.transmit(now) + self.link.transmit(now)

    def next_deadline(self) -> float | None:
        """See :class:`RwbpHost`."""
        return earliest(self.free.next_deadline(), self.link.next_deadline())

    def open(self, *request: Any) -> Connection:
        """See :class:`RwbpHost`."""
        return self.free.open(*request)

    def abort(self, now: float) -> None:
        """See :class:`RwbpHost`."""
        self.free.abort(now)


def make_host(address: str, setup: Setup, seed: int) -> RwbpHost | TwoLinks:
    """A host at one link or at two, as its settings say."""
    if setup.config.link_address is None:
        return RwbpHost(address, setup.config, seed, parts=setup.parts)
    return TwoLinks(address, setup, seed)
