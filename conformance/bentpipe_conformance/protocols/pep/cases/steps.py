"""What several cases do."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Collection
from dataclasses import replace

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.engine.codec import build_ipv4
from bentpipe_conformance.engine.lane import CLIENT, OTHER_SIDE, SERVER
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.pep.codec import question
from bentpipe_conformance.protocols.pep.end import End, Offer, Place
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, PSH, SYN, Tcp, build

HOP = "10.77.255.1"
"""A router between the box and an end."""

MD5 = bytes((19, 18)) + bytes(range(16))
"""An option of RFC 2385."""

SHORT, LONG = 20_000, 150_000
"""Octets of a stream: some segments, and more than a window without scale."""

FLOOD = 200
"""SYNs; in the usual setup of the reference three times as many as it serves at once."""

DEAF = Offer(buffer=5 * 1448)
"""An end whose buffer is full after five segments."""


def transfer(peer: Peer, sender: End, receiver: End, octets: int = SHORT) -> None:
    """One end sends, the other gets it.

    Raises:
        NotReached: it did not.
    """
    wanted = len(receiver.got) + octets
    sender.write(peer.octets(octets))
    peer.until(lambda: len(receiver.got) >= wanted or sender.was_reset, "the octets", 120.0)
    if sender.was_reset:
        raise NotReached("the connection was reset")


def both_ways(peer: Peer, through: Through, octets: int = SHORT) -> None:
    """Each end sends, and gets what the other has sent."""
    transfer(peer, through.client, through.server, octets)
    transfer(peer, through.server, through.client, octets)


def established(peer: Peer, octets: int = 2000) -> Through:
    """A connection that has carried octets each way."""
    through = peer.connect()
    both_ways(peer, through, octets)
    return through


def flood(
    peer: Peer, through: Through, port: int, *, network: int, rest: float, within: float
) -> None:
    """Clients that do not exist call a port; ``through`` goes on, and later others call.

    Args:
        peer: the tester.
        through: an open connection.
        port: of the server.
        network: third octet of the clients' addresses.
        rest: seconds between the last SYN and the others' calls.
        within: seconds in which these may open.
    """
    for number in range(FLOOD):
        ghost = peer.draft(port)
        ghost.local = (f"10.78.{network}.{number % 250 + 1}", ghost.local[1])
        ghost.segment(SYN, -1)
        ghost.vanish()
        peer.wait(0.02)
    for end in (through.client, through.server):
        end.write(peer.octets(2000))
    peer.wait(rest)
    clients = [peer.call(peer.listen()[0]) for _ in range(3)]
    peer.run(lambda: all(client.established for client in clients), within)
    for client in clients:
        client.write(peer.octets(2000))
    quiet(peer)


def opened_with(peer: Peer, option: bytes) -> Through:
    """A connection whose client has an option in its SYN."""
    port, _ = peer.listen("nothing")
    client = peer.draft(port)
    made: list[Tcp] = []
    client.segment(SYN, -1, changed=made.append)
    peer.send(CLIENT, build(replace(made[0], tsval=None, tsecr=None), option))
    listener = peer.listener(port)
    listener.answer = "accept"
    return peer.opened(client, listener)


def run_until_got(peer: Peer, through: Through, octets: int, seconds: float) -> None:
    """Let time pass until each end has got so many octets in all, or for so long."""
    ends = through.client, through.server
    peer.run(lambda: all(len(end.got) >= octets for end in ends), seconds)


def close(peer: Peer, first: End, second: End) -> None:
    """Both ends close, one after the other, and both hear of it.

    Raises:
        NotReached: they did not.
    """
    first.close()
    peer.until(lambda: second.ended, "the first FIN", 60.0)
    second.close()
    peer.until(lambda: first.ended and first.end_acked and second.end_acked, "the ends", 60.0)


def let_go(*ends: End) -> None:
    """Ends that the box has told nothing reset what they have, as their users give up."""
    for end in ends:
        if end.was_reset or not end.established:
            end.vanish()
        elif end.alive and not end.is_over:
            end.reset()


def settle(peer: Peer, end: End) -> None:
    """An end that does not hear of the reset of the other one has its connection for a while."""
    if not peer.run(lambda: end.was_reset, 4.0):
        let_go(end)
        peer.wait(1.0)


def quiet(peer: Peer, seconds: float = 8.0) -> None:
    """Nothing is sent; what a box must do without being asked shows."""
    peer.wait(seconds)


def asking(peer: Peer, seconds: float, every: float = 0.5) -> None:
    """Let time pass and ask whether the path works: a datagram now and then, each way."""
    until = peer.now() + seconds
    while peer.now() < until:
        number, now = next(peer.questions), peer.elapsed()
        peer.send(CLIENT, peer.datagram(question(number, now, up=True)))
        peer.send(SERVER, peer.datagram(question(number, now, up=False), back=True))
        peer.wait(min(every, until - peer.now()))


def fragments(packet: bytes, octets: int = 256) -> list[bytes]:
    """An IPv4 packet in fragments; its identification is drawn from its octets."""
    head, payload = bytearray(packet[:20]), packet[20:]
    head[4:6] = (sum(payload) & 0xFFFF or 1).to_bytes(2, "big")
    found = []
    for offset in range(0, len(payload), octets):
        part = payload[offset : offset + octets]
        more = 0x2000 if offset + octets < len(payload) else 0
        whole = bytearray(build_ipv4(bytes(head[12:16]), bytes(head[16:20]), head[9], part))
        whole[4:6] = head[4:6]
        whole[6:8] = (more | offset // 8).to_bytes(2, "big")
        found.append(summed(whole))
    return found


def summed(packet: bytes | bytearray) -> bytes:
    """An IPv4 packet with the right checksum of its header."""
    octets = bytearray(packet)
    start = (octets[0] & 15) * 4
    octets[10:12] = bytes(2)
    octets[10:12] = internet_checksum(bytes(octets[:start])).to_bytes(2, "big")
    return bytes(octets)


def of_class(packet: bytes, octet: int) -> bytes:
    """An IPv4 packet with another type of service."""
    octets = bytearray(packet)
    octets[1] = octet
    return summed(octets)


def with_ip_options(packet: bytes) -> bytes:
    """An IPv4 packet with three No Operation options and the end of the list."""
    octets = bytearray(packet[:20]) + bytearray((1, 1, 1, 0)) + bytearray(packet[20:])
    octets[0] = 0x46
    octets[2:4] = len(octets).to_bytes(2, "big")
    return summed(octets)


def unreachable(quoted: bytes, source: str, target: str, code: int, mtu: int = 0) -> bytes:
    """An ICMP message of type 3 about a packet (RFC 792, RFC 1191)."""
    body = struct.pack("!HH", 0, mtu) + quoted[:28]
    message = bytes((3, code)) + bytes(2) + body
    check = internet_checksum(message).to_bytes(2, "big")
    src, dst = socket.inet_aton(source), socket.inet_aton(target)
    return build_ipv4(src, dst, 1, message[:2] + check + message[4:])


def narrow(peer: Peer, end: End, side: str, mtu: int) -> None:
    """Larger packets do not reach an end any more; a message tells so of each."""

    def deliver(tcp: Tcp) -> bool:
        packet = build(tcp)
        if len(packet) <= mtu:
            return True
        peer.send(side, unreachable(packet, HOP, tcp.src, 4, mtu))
        return False

    end.reached_by = deliver


def signed(peer: Peer, client: Place, server: Place, option: bytes = MD5) -> None:
    """A conversation of two ends of which each segment has an option."""
    seqs = {CLIENT: peer.random.getrandbits(32), SERVER: peer.random.getrandbits(32)}

    def say(side: str, flags: int, payload: bytes = b"") -> None:
        own, other = (client, server) if side == CLIENT else (server, client)
        ack = seqs[OTHER_SIDE[side]] if flags & ACK else 0
        tcp = Tcp(own[0], other[0], own[1], other[1], seqs[side], ack, flags, 9000, payload)
        seqs[side] = (seqs[side] + len(payload) + bool(flags & SYN)) % MODULUS
        peer.send(side, build(tcp, option))
        peer.wait(1.5)

    peer.listen("nothing", port=server[1])
    say(CLIENT, SYN)
    say(SERVER, SYN | ACK)
    say(CLIENT, ACK)
    say(CLIENT, ACK | PSH, peer.octets(300))
    say(SERVER, ACK | PSH, peer.octets(300))
    say(CLIENT, ACK)
    quiet(peer, 4.0)


def losing(lost: Collection[int]) -> Callable[[Tcp], bool]:
    """Loses segments by their place among those with octets, the first time that they are sent."""
    seen: set[int] = set()

    def reaches(tcp: Tcp) -> bool:
        if not tcp.payload or tcp.seq in seen:
            return True
        seen.add(tcp.seq)
        return len(seen) - 1 not in lost

    return reaches
