"""A box that speaks RWBP/1 over the satellite: one of RWBP/1's proxies (RWBP/1 section 9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import UDP
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.pep.box import Box, BoxParts
from bentpipe_reference.pep.config import INNER, BoxConfig
from bentpipe_reference.pep.endpoint import End, Endpoint, RelayReceiver
from bentpipe_reference.pep.passing import TCP
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.rwbp import parts as rwbp
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import MalformedFrame
from bentpipe_reference.rwbp.uplink import Uplink
from bentpipe_reference.tcp import parts as tcp
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.wire.segment import Segment

_DESTINATION = slice(16, 20)
"""Of the destination address in an IPv4 header."""


class RwbpEndpoint(RwbpConnection, Endpoint):
    """The satellite's end of a relay.

    With RWBP a FIN is acknowledged when it has arrived (RWBP/1 section 7.1), so that the end of a
    stream is confirmed from box to box only.

    Attributes:
        on_turn: called after each turn, which may have started a timer.
    """

    on_turn: Callable[[], None]

    @property
    def stream_has_ended(self) -> bool:
        """See :class:`Endpoint`."""
        return self.peer_has_closed if self.agreed else super().stream_has_ended

    def fit(self, mtu: int, now: float) -> None:
        """See :class:`Endpoint`; what RWBP has sent keeps its boundaries (RWBP-EC-011)."""
        if not self.agreed:
            super().fit(mtu, now)

    def serve(self, now: float) -> Segment:
        """See :class:`RwbpConnection`."""
        segment = super().serve(now)
        self.on_turn()
        return segment


class RwbpBox(Box):
    """Connections over the satellite take turns, and leave by one IP queue.

    Of the packets of others those of TCP need the gateway's credit, too, and are lost without it.

    Args:
        config: settings; those of the satellite side are RWBP's, its ``link_address`` that to which
            the gateway sends its credit.
        parts: what the box is composed of but for its satellite side.
        seed: see :class:`Box`.

    Attributes:
        uplink: the scheduler and the IP queue of the satellite side.
    """

    def __init__(self, config: BoxConfig, parts: BoxParts, seed: int) -> None:
        super().__init__(config, parts, seed)
        satellite = config.inner
        assert isinstance(satellite, RwbpConfig)
        self._rwbp = replace(rwbp.TRUE_PARTS, connection=RwbpEndpoint, receiver=RelayReceiver)
        self.uplink = Uplink(satellite, self._rwbp)
        self._gateway = address_number(satellite.gateway or "0.0.0.0")
        self._address = address_number(satellite.link_address or "0.0.0.0")
        self._now = 0.0

    def receive(self, port: int, packet: bytes, now: float) -> None:
        """See :class:`Box`; a frame of credit goes no further."""
        self._now = now
        if port == INNER and self.uplink.credit is not None and self._is_for_us(packet):
            try:
                frame = self._rwbp.read_credit(packet, self._gateway, self._address)
            except MalformedFrame:
                self.dropped += 1
            else:
                self.uplink.credit.on_frame(frame, now)
        else:
            super().receive(port, packet, now)
        self._leave(now)

    def advance(self, now: float) -> None:
        """See :class:`Box`."""
        super().advance(now)
        self._leave(now)

    def next_deadline(self) -> float | None:
        """See :class:`Box`."""
        return earliest(super().next_deadline(), self.uplink.queue.next_deadline())

    def forward(self, port: int, packet: bytes) -> None:
        """See :class:`Box`; each packet of TCP that is passed counts (RWBP-LC-007)."""
        credit = self.uplink.credit
        if port != INNER and credit is not None and self._passing.protocol(packet) == TCP:
            if not credit.may_pass(self._now):
                self.dropped += 1
                return
            credit.on_pass(self._now)
        super().forward(port, packet)

    def send(self, port: int, segment: Segment, dscp: int = 0) -> None:
        """See :class:`Box`; what belongs to no connection waits only if there is room."""
        if port != INNER:
            super().send(port, segment, dscp)
        elif self.uplink.queue.has_room():
            self.uplink.queue.put(segment)

    def parts_at(self, port: int) -> tcp.Parts:
        """See :class:`Box`."""
        return self._rwbp if port == INNER else super().parts_at(port)

    def collect(self, relay: Relay, port: int, endpoint: End, now: float) -> None:
        """See :class:`Box`."""
        if isinstance(endpoint, RwbpEndpoint):
            endpoint.on_turn = lambda: self._agenda.plan(relay, endpoint.next_deadline())
            self._pass_on(self.uplink.collect(endpoint, now))
        else:
            super().collect(relay, port, endpoint, now)

    def _forget(self, relay: Relay, now: float) -> None:
        super()._forget(relay, now)
        endpoint = relay.endpoint(INNER)
        if isinstance(endpoint, RwbpEndpoint):
            self.uplink.remove(endpoint)

    def _is_for_us(self, packet: bytes) -> bool:
        """Whether it is a datagram that only the gateway has reason to send."""
        to_us = packet[_DESTINATION] == self._address.to_bytes(4, "big")
        return to_us and self._passing.protocol(packet) == UDP

    def _leave(self, now: float) -> None:
        """Fill the IP queue, and let leave what may."""
        self._pass_on(self.uplink.send(now))

    def _pass_on(self, leaving: list[Segment]) -> None:
        for segment in leaving:
            ends = Addresses(segment.source, segment.sport, segment.destination, segment.dport)
            relay = self._by_ends.get((INNER, ends))
            super().send(INNER, segment, 0 if relay is None else relay.classes[1 - INNER])
