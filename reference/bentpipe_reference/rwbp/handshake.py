"""Negotiation: TCP's, with the RWBP option (section 4)."""

from __future__ import annotations

from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.option import RwbpOption, counting_option
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.wire.segment import Segment


class RwbpHandshake(Handshake):
    """Options offered and agreed.

    Attributes:
        peer: the peer's RWBP option; None unless RWBP is agreed.
    """

    def __init__(self, config: EndpointConfig, estimator: RttEstimator) -> None:
        super().__init__(config, estimator)
        assert isinstance(config, RwbpConfig)
        self._offers = config.offers_rwbp
        self._own = RwbpOption(config.interval, min(config.mss, 0xFFFF))
        self.peer: RwbpOption | None = None

    @property
    def agreed(self) -> bool:
        """Whether this is a connection with RWBP (section 4.2)."""
        return self.peer is not None

    def take_options(self, syn: Segment) -> None:
        """Read the peer's SYN; agreement makes scale and timestamps void."""
        super().take_options(syn)
        option = counting_option(syn)
        if option is not None and self.may_agree(syn):
            self.peer = option
            self.timestamps_ok = self._scaling = False
            self.send_shift = self.receive_shift = 0

    def may_agree(self, syn: Segment) -> bool:
        """Whether the peer's option, if it has one, agrees to or is answered with RWBP."""
        return self._offers and syn.sack_permitted

    def offer(self, syn: Segment, *, answering: bool) -> None:
        """Put the options into an outgoing SYN; in an answer only what was agreed."""
        super().offer(syn, answering=answering)
        if self.agreed if answering else self._offers:
            syn.unknown = (*syn.unknown, self.own_option().emit())

    def own_option(self) -> RwbpOption:
        """What this end offers, the unit being its MSS."""
        return self._own

    def smss(self) -> int:
        """Data octets per segment; with RWBP no more than the peer's unit (section 5.2)."""
        octets = super().smss()
        return octets if self.peer is None else min(octets, self.peer.unit)
