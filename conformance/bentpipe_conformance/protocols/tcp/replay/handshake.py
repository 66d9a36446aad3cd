"""The opening segments of a connection and what they negotiate."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_conformance.protocols.tcp.claims import carries
from bentpipe_conformance.protocols.tcp.codec import MODULUS, Tcp
from bentpipe_conformance.protocols.tcp.replay import Packet

ODD_MSS = 64
"""An MSS option below this (in octets) is an attack or a test: IPv4 carries 68 (RFC 791)."""


@dataclass(slots=True, eq=False)
class Handshake:
    """The SYN of the tester and the SYN-ACK of the IUT (or the reverse when the IUT opens).

    Attributes:
        tester: the tester's SYN or SYN-ACK.
        iut: the IUT's SYN or SYN-ACK, the first if it was repeated.
        iut_opens: whether the IUT sent the SYN without ACK.
        established: time the IUT saw the handshake complete, None if it never did.
    """

    tester: Packet | None = None
    iut: Packet | None = None
    iut_opens: bool = False
    established: float | None = None

    @property
    def offer(self) -> Tcp | None:
        """The tester's SYN or SYN-ACK, dissected."""
        return self.tester.content if self.tester else None

    @property
    def answer(self) -> Tcp | None:
        """The IUT's SYN-ACK or SYN, dissected."""
        return self.iut.content if self.iut else None

    @property
    def ordinary(self) -> bool:
        """Whether nothing about the tester's SYN excuses an answer without options."""
        offer = self.offer
        return (
            offer is not None and offer.options_ok and (offer.mss is None or offer.mss >= ODD_MSS)
        )

    @property
    def sack(self) -> bool:
        """Whether both sides sent SACK-permitted."""
        return self.negotiated("sack_permitted")

    @property
    def timestamps(self) -> bool:
        """Whether both sides sent a Timestamps option."""
        return self.negotiated("tsval")

    @property
    def window_scale(self) -> bool:
        """Whether both sides sent a Window Scale option."""
        return self.negotiated("window_scale")

    def negotiated(self, attribute: str) -> bool:
        """Whether both sides sent ``attribute`` (``sack_permitted``, ``tsval``, ...)."""
        return self.offered(attribute) and self.answered(attribute)

    def offered(self, attribute: str) -> bool:
        """Whether the tester's SYN carried ``attribute``."""
        return carries(self.offer, attribute)

    def answered(self, attribute: str) -> bool:
        """Whether the IUT's SYN-ACK carried ``attribute``."""
        return carries(self.answer, attribute)


def passed_over(syn: Tcp, plain: Tcp | None) -> bool:
    """Whether a SYN was dropped for options that cannot be read.

    What its receiver acknowledges first (``plain``) shows that: it is another SYN.
    """
    if syn.options_ok or plain is None:
        return False
    return (plain.ack - syn.seq - 1) % MODULUS > syn.size
