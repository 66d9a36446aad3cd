"""What a bulk transfer over a link profile came to, whatever protocol carried it."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_reference.common.link.virtual import LinkCounters


@dataclass(slots=True, kw_only=True)
class Transferred:
    """What a transfer came to.

    Attributes:
        octets: octets the receiving application read.
        intact: whether they are those that were sent, none missing.
        seconds: from the first packet to the last octet read.
        forward: counters of the link that carried the data.
        return_: counters of the other direction.
        failure: why the transfer did not complete, None when it did.
    """

    octets: int
    intact: bool
    seconds: float
    forward: LinkCounters
    return_: LinkCounters
    failure: str | None = None

    @property
    def throughput_bit_s(self) -> float:
        """Application-level throughput, bits per second."""
        return 8 * self.octets / self.seconds if self.seconds else 0.0

    @property
    def return_bit_s(self) -> float:
        """Load of the return direction, bits per second of IP packets."""
        return 8 * self.return_.offered_octets / self.seconds if self.seconds else 0.0
