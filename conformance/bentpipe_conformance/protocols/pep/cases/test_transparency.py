"""Transparency (PEP-TR, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.codec import CE, build_ipv4
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    LONG,
    MD5,
    both_ways,
    established,
    fragments,
    losing,
    of_class,
    opened_with,
    quiet,
    run_until_got,
    signed,
    transfer,
    with_ip_options,
)
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    URG,
    Tcp,
    build,
)

EF, AF, ECT = 0xB8, 0x28, 2
UNKNOWN = bytes((253, 6, 0xBE, 0xEF, 1, 2))
"""An option for experiments (RFC 6994)."""
AUTHENTICATION = bytes((29, 16, 1, 1)) + bytes(range(12))
MULTIPATH = bytes((30, 12, 1, 1)) + bytes(range(8))
STRANGE, SCTP, ESP = 253, 132, 50
KINDS = (
    (ACK,), (ACK | PSH, ACK | PSH), (FIN | ACK,), (RST,), (RST | ACK,), (SYN | ACK,),
    (ACK | PSH | URG,), (ACK | PSH, FIN | ACK, RST),
)  # fmt: skip
"""What strangers send, by its flags."""
MANY = 24


@case("PEP-TR-001", "PEP-TR-010", "PEP-LR-001", "PEP-LR-008")
def test_established_segments_in_disorder(peer: Peer) -> None:
    """Each end leaves out segments and sends them later."""
    through = peer.connect()
    for sender, receiver in ((through.client, through.server), (through.server, through.client)):
        transfer(peer, sender, receiver, 1000)
        octets = peer.octets(6000)
        first = len(sender.written)
        sender.skip(octets)
        for part in (1, 3, 5, 4, 2, 0):
            sender.segment(ACK, first + 1000 * part, octets[1000 * part :][:1000])
            peer.wait(0.1)
        peer.until(lambda got=receiver.got: len(got) >= 7000, "the octets", 30.0)  # type: ignore[misc]
    quiet(peer)


@case("PEP-TR-001")
def test_established_long_streams(peer: Peer) -> None:
    """Both ends send at the same time."""
    through = peer.connect()
    for end in (through.client, through.server):
        end.write(peer.octets(LONG))
    run_until_got(peer, through, LONG, 20.0)
    for end in (through.client, through.server):
        end.write(peer.octets(3000))
    quiet(peer)


def _sent_as(peer: Peer, end: End, octet: int, count: int = 3) -> None:
    """An end sends some segments in packets with a type of service."""
    side = SERVER if end.local[0] == peer.server else CLIENT
    for _ in range(count):
        octets = peer.octets(700)
        packet = build(end.next_segment(octets, ACK | PSH))
        end.skip(octets)
        peer.send(side, of_class(packet, octet))
        peer.wait(1.5)


@case("PEP-TR-005")
def test_established_packets_of_a_class(peer: Peer) -> None:
    """An end sends in the class EF."""
    through = peer.connect()
    _sent_as(peer, through.client, EF)
    _sent_as(peer, through.server, EF)
    quiet(peer)


@case("PEP-TR-005")
def test_established_octets_of_a_class_are_sent_again(peer: Peer) -> None:
    """Octets of the class EF are lost behind the box, or wait for a receiver that does not read."""
    for offer in (Offer(), DEAF):
        through = peer.connect(offer, offer)
        ends = through.client, through.server
        for sender, receiver in (ends, ends[::-1]):
            if offer is DEAF:
                receiver.stop()
            else:
                receiver.reached_by = losing(range(0, 100, 2))
            _sent_as(peer, sender, EF, 14 if offer is DEAF else 4)
            receiver.go_on()
            peer.run(lambda a=receiver, b=sender: len(a.got) >= len(b.written), 20.0)  # type: ignore[misc]
    quiet(peer)


@case("PEP-TR-005")
def test_established_packets_of_one_class_after_another(peer: Peer) -> None:
    """Each end sends in one class, in another one, and in none any more, the other in its own."""
    through = peer.connect()
    for first, second in ((EF, AF), (AF, 0), (0, EF), (0, 0)):
        _sent_as(peer, through.client, first, 2)
        _sent_as(peer, through.server, second, 2)
    quiet(peer)


@case("PEP-TR-006")
def test_established_packets_with_ect(peer: Peer) -> None:
    """An end sends packets with ECT though ECN was not negotiated."""
    through = peer.connect()
    _sent_as(peer, through.client, ECT)
    _sent_as(peer, through.server, ECT)
    both_ways(peer, through)


@case("PEP-TR-006")
def test_established_packets_with_ce(peer: Peer) -> None:
    """Both ends offer ECN, or accept it, and then send packets with CE."""
    through = peer.connect(Offer(ecn=True), Offer(ecn=True))
    for end in (through.client, through.server):
        _sent_as(peer, end, CE)
    both_ways(peer, through)
    quiet(peer)


@case("PEP-TR-012")
def test_opening_unknown_option(peer: Peer) -> None:
    """SYN and segments with octets have an option that nobody knows."""
    through = opened_with(peer, UNKNOWN)
    octets = peer.octets(500)
    made = through.client.next_segment(octets, ACK | PSH)
    through.client.skip(octets)
    peer.send(CLIENT, build(made, UNKNOWN))
    peer.until(lambda: len(through.server.got) >= 500, "the octets at the server", 30.0)
    both_ways(peer, through, 2000)


@case("PEP-TR-013")
def test_opening_signed_by_md5(peer: Peer) -> None:
    """The ends sign their segments by MD5 (RFC 2385)."""
    _signed(peer, MD5)


@case("PEP-TR-013")
def test_opening_signed_by_ao(peer: Peer) -> None:
    """The ends sign their segments by TCP-AO (RFC 5925)."""
    _signed(peer, AUTHENTICATION)


def _signed(peer: Peer, option: bytes) -> None:
    signed(peer, (peer.address, peer.new_port()), (peer.server, peer.new_port()), option)


@case("PEP-TR-014")
def test_opening_multipath(peer: Peer) -> None:
    """The client's SYN has MP_CAPABLE."""
    both_ways(peer, opened_with(peer, MULTIPATH), 2000)


@case("PEP-TR-015")
def test_not_tcp(peer: Peer) -> None:
    """UDP, ICMP, ESP and protocols that nobody knows, each way."""
    ends = [bytes(map(int, address.split("."))) for address in (peer.address, peer.server)]
    echo = bytes.fromhex("0800f7ff00000000")
    for _ in range(3):
        for side, (src, dst) in ((CLIENT, ends), (SERVER, ends[::-1])):
            peer.send(side, peer.datagram(peer.octets(100), back=side == SERVER))
            peer.send(side, build_ipv4(src, dst, 1, echo))
            for protocol in (STRANGE, SCTP, ESP):
                peer.send(side, build_ipv4(src, dst, protocol, peer.octets(60)))
        peer.wait(1.0)
    quiet(peer)


@case("PEP-TR-016")
def test_established_segment_in_fragments(peer: Peer) -> None:
    """An end sends a segment in fragments."""
    through = established(peer)
    _sent_in(peer, through, 1000, fragments)
    quiet(peer)


def _sent_in(
    peer: Peer, through: Through, octets: int, changed: Callable[[bytes], list[bytes]]
) -> None:
    """Each end sends a segment once, in the packets that are made of it."""
    for end, side in ((through.client, CLIENT), (through.server, SERVER)):
        payload = peer.octets(octets)
        packet = build(end.next_segment(payload, ACK | PSH))
        end.skip(payload)
        end.due = None
        for part in changed(packet):
            peer.send(side, part)
        peer.wait(6.0)


@case("PEP-TR-017")
def test_established_ip_options(peer: Peer) -> None:
    """An end sends segments in packets with IP options."""
    through = peer.connect()
    _sent_in(peer, through, 600, lambda packet: [with_ip_options(packet)])
    quiet(peer)


@case("PEP-TR-018")
def test_strangers_of_each_kind(peer: Peer) -> None:
    """Segments of each kind come of connections that were open before the box was there, often."""
    for number in range(MANY):
        for side, ends in (
            (CLIENT, (peer.address, peer.server)),
            (SERVER, (peer.server, peer.address)),
        ):
            ports = peer.new_port(), peer.new_port()
            made = Tcp(*ends, *ports, 1000, 5000, ACK, 9000, peer.octets(20))
            for flags in KINDS[number % len(KINDS)]:
                octets = b"" if flags & (RST | SYN) else made.payload
                peer.send(side, build(replace(made, flags=flags, payload=octets)))
                made = replace(made, seq=made.seq + len(octets))
                peer.wait(0.1)
    quiet(peer)


@case("PEP-TR-018")
def test_stranger_sends(peer: Peer) -> None:
    """Segments of a connection that was open before the box was there."""
    for side, ends in (
        (CLIENT, (peer.address, peer.server)),
        (SERVER, (peer.server, peer.address)),
    ):
        own, other = peer.new_port(), peer.new_port()
        for number in range(2):
            tcp = Tcp(
                *ends, own, other, 1000 + 100 * number, 5000, ACK | PSH, 9000, peer.octets(100)
            )
            peer.send(side, build(tcp))
            peer.wait(2.0)
    quiet(peer)


@case("PEP-TR-019")
def test_established_small_segments(peer: Peer) -> None:
    """An end sends single small segments, as a person who types."""
    through = peer.connect()
    for end in (through.client, through.server):
        for _ in range(6):
            end.write(peer.octets(20))
            peer.wait(1.1)
    quiet(peer)


@case("PEP-TR-020")
def test_established_urgent_octets(peer: Peer) -> None:
    """An end sends segments with URG."""
    through = established(peer)
    for end, side in ((through.client, CLIENT), (through.server, SERVER)):
        _urgent(peer, through, end, side)
    quiet(peer)


def _urgent(peer: Peer, through: Through, end: End, side: str) -> None:
    for _ in range(2):
        octets = peer.octets(300)
        packet = bytearray(build(end.next_segment(octets, ACK | PSH | URG)))
        end.skip(octets)
        _point(packet, 150)
        peer.send(side, bytes(packet))
        peer.wait(1.5)
    other = through.server if end is through.client else through.client
    transfer(peer, end, other, 1000)


def _point(packet: bytearray, offset: int) -> None:
    """Set the urgent pointer of a packet without IP options, and its checksum anew."""
    old = int.from_bytes(packet[36:38], "big")
    total = (~old & 0xFFFF) + (~0 & 0xFFFF) + offset  # RFC 1624, from an urgent pointer of 0
    packet[38:40] = offset.to_bytes(2, "big")
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    packet[36:38] = (~total & 0xFFFF).to_bytes(2, "big")
