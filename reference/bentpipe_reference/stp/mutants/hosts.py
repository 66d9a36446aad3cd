"""Mutants of the codec: hosts that change packets on their way in and out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.encapsulation import UDP, emit_datagram, parse_datagram
from bentpipe_reference.stp.codec import MalformedPacket
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.packets import Type
from bentpipe_reference.stp.variables import Address


class MeddlingHost(StpHost):
    """Changes packets between the endpoint and the wire; in UDP, where no pseudo-header is.

    Attributes:
        peer: the address that the last packet came from, as the endpoint has it.
    """

    peer: Address = ()

    def leaving(self, octets: bytes) -> bytes:
        """A packet of the endpoint as it goes on the wire."""
        return octets

    def arriving(self, octets: bytes) -> bytes | None:
        """A packet from the wire as the endpoint gets it; None when it does not."""
        return octets

    def _emit(self, peer: Any, octets: bytes) -> bytes:
        return super()._emit(peer, self.leaving(octets))

    def receive(self, packet: bytes, now: float) -> None:
        """Take one IPv4 packet at ``now`` seconds."""
        try:
            datagram = parse_datagram(packet)
        except MalformedPacket:
            return
        self.peer = (datagram.source, datagram.udp_sport)
        payload = self.arriving(datagram.payload) if datagram.protocol == UDP else None
        if payload is not None:
            super().receive(emit_datagram(replace(datagram, payload=payload)), now)


def type_of(octets: bytes) -> int:
    """A packet's type."""
    return octets[4] & 15


def rechecked(octets: bytes) -> bytes:
    """A packet with the right checksum for what it holds."""
    blank = octets[:8] + b"\0\0" + octets[10:]
    field = checksum_field(ones_complement_residue(blank))
    return octets[:8] + field.to_bytes(2, "big") + octets[10:]


def altering(kind: Type, change: Callable[[bytes], bytes]) -> type[MeddlingHost]:
    """A host that changes its packets of one type, and sends them with the right checksum."""

    class Altering(MeddlingHost):
        def leaving(self, octets: bytes) -> bytes:
            return rechecked(change(octets)) if type_of(octets) == kind else octets

    return Altering
