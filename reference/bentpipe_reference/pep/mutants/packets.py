"""Mutants of what becomes of single packets (PEP-RE-015, PEP-TR-013, -015, PEP-PC-005)."""

from __future__ import annotations

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.pep.box import Box, of_class
from bentpipe_reference.pep.endpoint import Endpoint
from bentpipe_reference.pep.fragments import OFFSET, is_fragment
from bentpipe_reference.pep.mutants import mutant
from bentpipe_reference.pep.passing import ICMP
from bentpipe_reference.tcp.wire import Flags, Segment, WireError, parse_packet

_UDP = 17


def _summed(packet: bytes) -> bytes:
    """A TCP segment with the right checksum, in a packet of any header length."""
    start, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
    body = packet[start:total]
    pseudo = int.from_bytes(packet[12:16], "big") + int.from_bytes(packet[16:20], "big") + 6
    bare = body[:16] + bytes(2) + body[18:]
    field = checksum_field((ones_complement_residue(bare) + pseudo + len(body)) % 0xFFFF)
    return packet[:start] + body[:16] + field.to_bytes(2, "big") + body[18:]


def _believing(packet: bytes, believed: int) -> Segment:
    """Reads a segment with any of these flags whatever its checksum."""
    try:
        return parse_packet(packet)
    except WireError:
        start = (packet[0] & 15) * 4
        if len(packet) < start + 20 or not packet[start + 13] & believed:
            raise
        return parse_packet(_summed(packet))


@mutant("pep-zero-is-no-checksum", breaks="PEP-RE-015")
def zero_is_no_checksum(packet: bytes) -> Segment:
    """A checksum of zero is not looked at."""
    start = (packet[0] & 15) * 4
    zero = len(packet) >= start + 20 and packet[start + 16 : start + 18] == bytes(2)
    return parse_packet(_summed(packet) if zero else packet)


@mutant("pep-syns-unchecked", breaks="PEP-RE-015")
def syns_unchecked(packet: bytes) -> Segment:
    """The checksum of a SYN is not looked at."""
    return _believing(packet, Flags.SYN)


@mutant("pep-resets-unchecked", breaks="PEP-RE-015")
def resets_unchecked(packet: bytes) -> Segment:
    """The checksum of a RST is not looked at."""
    return _believing(packet, Flags.RST)


@mutant("pep-fins-unchecked", breaks="PEP-RE-015")
def fins_unchecked(packet: bytes) -> Segment:
    """The checksum of a FIN is not looked at."""
    return _believing(packet, Flags.FIN)


@mutant("pep-unsummed-datagrams-dropped", "forward", breaks="PEP-TR-015")
def drops_unsummed(self: Box, port: int, packet: bytes) -> None:
    """A datagram without checksum is dropped."""
    first = not int.from_bytes(packet[6:8], "big") & OFFSET
    if packet[9] != _UDP or not first or packet[26:28] != bytes(2) or len(packet) < 28:
        Box.forward(self, port, packet)


@mutant("pep-class-of-datagrams-lost", "forward", breaks="PEP-TR-015")
def class_lost(self: Box, port: int, packet: bytes) -> None:
    """What passes has the class of best effort."""
    plain = packet[:1] == b"\x45" and len(packet) >= 20
    Box.forward(self, port, of_class(packet, 0) if plain else packet)


@mutant("pep-fragments-of-datagrams-dropped", "forward", breaks="PEP-TR-015")
def fragments_dropped(self: Box, port: int, packet: bytes) -> None:
    """Of a datagram in fragments the first passes."""
    if not (packet[9] == _UDP and int.from_bytes(packet[6:8], "big") & OFFSET):
        Box.forward(self, port, packet)


@mutant("pep-messages-about-strangers-dropped", "forward", breaks="PEP-TR-015")
def messages_dropped(self: Box, port: int, packet: bytes) -> None:
    """An ICMP message that a port cannot be reached is dropped."""
    if packet[9] != ICMP or is_fragment(packet) or packet[20:22] != bytes((3, 3)):
        Box.forward(self, port, packet)


@mutant("pep-time-to-live-renewed", "forward", breaks="PEP-TR-013")
def time_to_live_renewed(self: Box, port: int, packet: bytes) -> None:
    """What passes has another time to live, a longer one."""
    octets = bytearray(packet)
    octets[8] = 255
    Box.forward(self, port, of_class(bytes(octets), packet[1]))


class _OneSize(Endpoint):
    """The first message about a packet that is too big is the last that is believed."""

    fitted = False

    def fit(self, mtu: int, now: float) -> None:
        """See :class:`Endpoint`."""
        if not self.fitted:
            super().fit(mtu, now)
        self.fitted = True


mutant("pep-one-size-change", breaks="PEP-PC-005")(_OneSize)


@mutant("pep-fits-what-is-short", "fit", breaks="PEP-PC-005")
def fits_large_only(self: Endpoint, mtu: int, now: float) -> None:
    """A path that carries less than 1000 octets is not believed."""
    if mtu >= 1000:
        Endpoint.fit(self, mtu, now)
