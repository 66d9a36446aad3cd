"""What the handshake of a connection offers and agrees to (section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_conformance.protocols.rwbp.codec import Rwbp
from bentpipe_conformance.protocols.rwbp.replay.events import Segment
from bentpipe_conformance.protocols.tcp.codec import ACK


@dataclass(slots=True, eq=False)
class Opening:
    """The SYNs of a connection.

    Attributes:
        theirs: the tester's SYNs and SYN-ACKs that reached the IUT, in order.
        own: those of the IUT.
    """

    theirs: list[Segment] = field(default_factory=list)
    own: list[Segment] = field(default_factory=list)

    @property
    def offer(self) -> Rwbp | None:
        """The tester's SYN or SYN-ACK."""
        return self.theirs[0].tcp if self.theirs else None

    @property
    def answer(self) -> Rwbp | None:
        """The IUT's."""
        return self.own[0].tcp if self.own else None

    @property
    def iut_calls(self) -> bool:
        """Whether the IUT is the caller."""
        return bool(self.own) and not self.own[0].tcp.flags & ACK

    @property
    def crossed(self) -> bool:
        """Whether the tester called a caller, too, before it answered."""
        return self.iut_calls and bool(self.theirs) and not self.theirs[0].tcp.flags & ACK

    @property
    def agreed(self) -> bool:
        """Whether RWBP is agreed (section 4.2)."""
        offer, answer = self.offer, self.answer
        return offer is not None and answer is not None and offer.offers and answer.offers
