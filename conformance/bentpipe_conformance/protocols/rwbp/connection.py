"""One connection of the tester with the implementation under test (IUT), with RWBP or without.

Offsets count octets of a direction, 0 being the first octet of data. The tester speaks RWBP as a
script asks, as sender and as receiver: blocks of an acknowledgment in any order, windows of any
number of units, an interval of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.engine.peer import BasePeer
from bentpipe_conformance.protocols.rwbp.codec import Rwbp, counting_in, option_octets
from bentpipe_conformance.protocols.tcp import connection as tcp_connection
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, SYN, Tcp

SEGMENT = 1460
"""Octets of a full-sized segment on the links of the profiles."""

WINDOW = 16 * SEGMENT
"""Octets that the tester offers: far less than the queues of the links hold."""

Segment = tcp_connection.Segment


class Connection(tcp_connection.Connection):
    """One connection of the tester with the IUT; see that of TCP, too.

    Attributes:
        unit: octets for which one stands in the tester's window fields, once RWBP is agreed.
        iut_unit: the same of the IUT.
        interval: N that the IUT asks for.
    """

    def __init__(
        self,
        peer: BasePeer[Tcp, Any],
        port: int,
        source_port: int,
        *,
        rwbp: bool = True,
        interval: int = 8,
        unit: int | None = None,
        option: bytes | None = None,
        mss: int | None = SEGMENT,
        window: int = WINDOW,
        syn_window: int | None = None,
        window_scale: int | None = None,
        **offer: Any,
    ) -> None:
        """What the tester offers.

        Args:
            peer: the tester.
            port: the IUT's port.
            source_port: the tester's port.
            rwbp: offer RWBP.
            interval: N that the IUT is asked to use.
            unit: that of the option; when omitted, that of ``option``, or the MSS.
            option: octets in place of the RWBP option.
            mss: MSS option, None to leave it out.
            window: octets to offer once established.
            syn_window: window field of the SYN; as much when omitted.
            window_scale: shift to offer, None to leave the option out.
            offer: see TCP's connection.
        """
        super().__init__(
            peer, port, source_port, mss=mss, window=window, window_scale=window_scale,
            syn_window=min(window, 0xFFFF) if syn_window is None else syn_window, **offer,
        )  # fmt: skip
        self.unit = unit if unit is not None else mss if mss is not None else 536
        self.iut_unit = 1
        self.interval = 8
        if option is not None:
            self.appended = option
        elif rwbp:
            self.appended = option_octets(interval, self.unit)
        self._offers = counting_in(self.appended)
        self._they_offer = False
        if unit is None and self._offers is not None:
            self.unit = self._offers.unit

    @property
    def agreed(self) -> bool:
        """Whether the SYN-ACK, or the SYN, of the IUT agrees with what the tester offers."""
        return self._they_offer and self._offers is not None and self.syn.sack_permitted

    @property
    def timestamps(self) -> bool:
        """Whether timestamps were negotiated; never with RWBP."""
        return super().timestamps and not self.agreed

    def _negotiate(self, syn_ack: Tcp) -> None:
        super()._negotiate(syn_ack)
        option = syn_ack.counting if isinstance(syn_ack, Rwbp) else None
        self._they_offer = option is not None and syn_ack.sack_permitted
        if self.agreed and option is not None:
            self._shift = self._iut_shift = 0
            self.iut_unit, self.interval = option.unit, option.interval

    def _learn(self, time: float, tcp: Tcp) -> Segment:
        segment = super()._learn(time, tcp)
        self.iut_window = tcp.window * self.iut_unit if self.agreed else self.iut_window
        return segment

    def answer(self, *, flags: int = SYN | ACK, ack: int = 0) -> None:
        """Send the SYN-ACK that accepts the IUT's SYN; see TCP's connection.

        It agrees to RWBP if the IUT offered it.
        """
        kept, scale = self.appended, self.syn.window_scale
        if not self._they_offer:
            self.appended = b""
        elif self.agreed:
            self.syn = replace(self.syn, window_scale=None)
        super().answer(flags=flags, ack=ack)
        self.appended, self.syn = kept, replace(self.syn, window_scale=scale)

    def compose(
        self, payload: bytes = b"", *, flags: int = ACK, sack: Sequence[Range] | None = None,
        **usual: Any,
    ) -> Tcp:  # fmt: skip
        """A segment of this connection, see TCP's; with RWBP, one with data has no options."""
        if self.agreed and sack is None and (payload or flags & FIN):
            sack = ()
        return super().compose(payload, flags=flags, sack=sack, **usual)

    def window_field(self) -> int:
        """See TCP's; with RWBP, in units."""
        return self.window // self.unit if self.agreed else super().window_field()
