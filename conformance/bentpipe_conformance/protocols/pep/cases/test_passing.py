"""What is not TCP, in all its forms and beside an open connection (PEP-TR-015)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from socket import inet_aton

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.codec import UDP, build_ipv4, build_udp
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.steps import (
    both_ways,
    established,
    fragments,
    of_class,
    quiet,
    summed,
    with_ip_options,
)
from bentpipe_conformance.protocols.pep.codec import ICMP
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, Tcp, build

COPIES = 3
PARTS = (0,), (1,), (3,), (0, 1, 2), (1, 2, 3), (0, 2, 3)
"""Which of four fragments arrive: one, or all but one."""
CLASSES = (0x04, 0x28, 0xB8, 0xBA, 0x01, 0x02, 0x03)
"""Types of service: low effort, AF11, EF, EF with ECT, and ECT and CE."""
ESP, EXPERIMENT = 50, 253
PROTOCOLS = (0x5E, 33, 41, 47, ESP, 51, 103, 132, 136, EXPERIMENT)
"""IPIP's kin, DCCP, IPv6, GRE, ESP, AH, PIM, SCTP, UDP-Lite and one for experiments."""
UNREACHABLE = (0, 1, 2, 3, 5, 9, 10, 13)
OTHER_ERRORS = ((4, 0), (11, 0), (11, 1), (12, 0))
"""Source quench, time exceeded on the way and while fragments are awaited, a bad parameter."""
QUERIES = (8, 0, 13, 14)
"""Echo and timestamp, asked and answered."""

_DONT_FRAGMENT = 0x40


def _icmp(src: bytes, dst: bytes, kind: int, code: int, body: bytes, flaw: int = 0) -> bytes:
    message = bytes((kind, code, 0, 0)) + body
    checksum = internet_checksum(message) ^ flaw
    return build_ipv4(src, dst, ICMP, message[:2] + checksum.to_bytes(2, "big") + message[4:])


def _numbered(packet: bytes, number: int) -> bytes:
    """With an identification, and not protected from fragmentation."""
    octets = bytearray(packet)
    octets[4:6] = number.to_bytes(2, "big")
    octets[6] &= ~_DONT_FRAGMENT
    return summed(octets)


def _packets(peer: Peer, src: bytes, dst: bytes, sport: int, dport: int) -> Iterator[bytes]:
    """One of each form, from one end to the other, with the ports of a connection."""

    def datagram(octets: int) -> bytes:
        return build_udp(src, dst, sport, dport, peer.octets(octets))

    usual = build_ipv4(src, dst, UDP, datagram(100))
    yield usual
    yield build_ipv4(src, dst, UDP, datagram(0))
    yield build_ipv4(src, dst, UDP, datagram(1400))
    for checksum in (0, 0x1234):
        whole = datagram(60)
        yield build_ipv4(src, dst, UDP, whole[:6] + checksum.to_bytes(2, "big") + whole[8:])
    yield build_ipv4(src, dst, UDP, datagram(60) + b"beyond its length")
    yield from (of_class(build_ipv4(src, dst, UDP, datagram(40)), octet) for octet in CLASSES)
    yield _numbered(build_ipv4(src, dst, UDP, datagram(50)), 4711)
    yield with_ip_options(build_ipv4(src, dst, UDP, datagram(70)))
    for protocol in PROTOCOLS:
        yield build_ipv4(src, dst, protocol, peer.octets(60))
    for kind in QUERIES:
        yield _icmp(src, dst, kind, 0, peer.octets(16))
    yield _icmp(src, dst, 8, 0, peer.octets(16), flaw=1)
    back = build_ipv4(dst, src, UDP, build_udp(dst, src, dport, sport, peer.octets(30)))
    for kind, code in (*((3, code) for code in UNREACHABLE), *OTHER_ERRORS):
        yield _icmp(src, dst, kind, code, bytes(4) + back[:28])
    yield _icmp(src, dst, 3, 4, struct.pack("!HH", 0, 900) + back[:28])
    here, there = (".".join(map(str, address)) for address in (src, dst))
    ports = peer.new_port(), peer.new_port()
    stranger = build(Tcp(there, here, *ports, 4000, 5000, ACK, 9000, peer.octets(40)))
    for code, mtu in ((1, 0), (3, 0), (4, 900)):
        yield _icmp(src, dst, 3, code, struct.pack("!HH", 0, mtu) + stranger[:28])


@case("PEP-TR-015")
def test_established_all_that_is_not_tcp(peer: Peer) -> None:
    """Datagrams, messages and unknown protocols in all forms pass beside a connection, thrice."""
    through = established(peer)
    client, server = inet_aton(peer.address), inet_aton(peer.server)
    ways = (
        (CLIENT, client, server, through.client.local[1], through.client.remote[1]),
        (SERVER, server, client, through.server.local[1], through.server.remote[1]),
    )
    for side, src, dst, sport, dport in ways:
        found = list(_packets(peer, src, dst, sport, dport))
        for _ in range(COPIES):
            for packet in found:
                peer.send(side, packet)
                peer.wait(0.02)
    both_ways(peer, through, 2000)
    quiet(peer, 6.0)


@case("PEP-TR-015")
def test_datagrams_in_fragments(peer: Peer) -> None:
    """Datagrams arrive in fragments, in order and otherwise, each way."""
    client, server = inet_aton(peer.address), inet_aton(peer.server)
    for side, src, dst in ((CLIENT, client, server), (SERVER, server, client)):
        for order in (0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1):
            payload = build_udp(src, dst, peer.new_port(), peer.new_port(), peer.octets(900))
            parts = fragments(build_ipv4(src, dst, UDP, payload))
            for _ in range(COPIES):
                for index in order:
                    peer.send(side, parts[index])
                peer.wait(0.3)
    quiet(peer, 6.0)


@case("PEP-TR-015")
def test_fragments_of_what_never_is_whole(peer: Peer) -> None:
    """One fragment of each packet arrives, or all but one, of several protocols and each way."""
    client, server = inet_aton(peer.address), inet_aton(peer.server)
    found = []
    for side, src, dst in ((CLIENT, client, server), (SERVER, server, client)):
        for number, wanted in enumerate(PARTS):
            echo = _icmp(src, dst, 8, 0, bytes((ord("a") + number,)) * 900)
            datagram = build_udp(src, dst, peer.new_port(), peer.new_port(), peer.octets(900))
            packets = [echo, build_ipv4(src, dst, UDP, datagram)]
            packets += [build_ipv4(src, dst, it, peer.octets(900)) for it in (ESP, EXPERIMENT)]
            for parts in map(fragments, packets):
                found += [(side, parts[index]) for index in wanted]
    for _ in range(COPIES):
        for side, part in found:
            peer.send(side, part)
            peer.wait(0.02)
    quiet(peer, 6.0)
