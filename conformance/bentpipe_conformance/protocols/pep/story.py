"""Stories of a box: what passes at both its sides, told segment by segment."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from bentpipe_conformance.engine.codec import UDP, build_ipv4, build_udp
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.engine.story import BaseStory
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.pep.codec import question
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.pep.suite import SUITE
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN, Tcp, build

PASS, FAIL = {Verdict.PASS}, {Verdict.FAIL}
NOTHING: set[Verdict] = set()

CLIENT_ADDRESS, SERVER_ADDRESS = "10.78.0.1", "10.77.0.2"
BUFFER = 20_000


def octets(start: int, end: int) -> bytes:
    """The octets of each stream."""
    return bytes((index * 7 + index // 251) & 0xFF for index in range(start, end))


@dataclass(kw_only=True)
class Story(BaseStory):
    """A connection through a box, as both sides see it; windows are not scaled.

    Attributes:
        ports: of client and server.
        numbers: initial sequence number by side and speaker, the box or not.
    """

    suite: ClassVar[Suite] = SUITE
    claims: ClassVar[Mapping[str, Any]] = {
        "addressing": "transparent", "opening": "late", "end": "confirmed", "buffer": BUFFER,
        "strangers": "forward", "connections": 0,
    }  # fmt: skip

    ports: tuple[int, int] = (20_001, 20_002)
    numbers: dict[tuple[str, bool], int] = field(
        default_factory=lambda: {
            (CLIENT, False): 1_000, (CLIENT, True): 4_000_000_000, (SERVER, True): 77_000_000,
            (SERVER, False): 3_000_000_000,
        }
    )  # fmt: skip

    def say(
        self, side: str, by_box: bool, flags: int, start: int = 0, ack: int = 0,
        payload: bytes = b"", *, after: float = 0.01, window: int = 10_000, **fields: Any,
    ) -> Self:  # fmt: skip
        """Any segment; ``start`` and ``ack`` are offsets, -1 for the SYN's own number."""
        up = by_box == (side == SERVER)
        ends = (CLIENT_ADDRESS, SERVER_ADDRESS, *self.ports)
        src, dst, sport, dport = ends if up else (ends[1], ends[0], ends[3], ends[2])
        seq = (self.numbers[side, by_box] + 1 + start) % MODULUS
        number = (self.numbers[side, not by_box] + 1 + ack) % MODULUS if flags & ACK else 0
        made = Tcp(src, dst, sport, dport, seq, number, flags, window, payload, **fields)
        return self.tell(by_box, build(made), after, side)

    def syn(self, side: str, *, answer: bool = False, after: float = 0.01) -> Self:
        """A SYN towards the server, or the SYN-ACK that comes back."""
        by_box = (side == SERVER) != answer
        return self.say(side, by_box, SYN | ACK if answer else SYN, -1, 0, after=after, mss=1460)

    def opened(self) -> Self:
        """Both sides have opened, the server's first."""
        self.syn(CLIENT).syn(SERVER, after=0.3).syn(SERVER, answer=True)
        self.say(SERVER, True, ACK).syn(CLIENT, answer=True, after=0.3)
        return self.say(CLIENT, False, ACK)

    def data(self, side: str, by_box: bool, start: int, end: int, **how: Any) -> Self:
        """Octets of a stream."""
        return self.say(side, by_box, ACK, start, payload=octets(start, end), **how)

    def ack(self, side: str, by_box: bool, number: int, **how: Any) -> Self:
        """An acknowledgment; its sender has sent nothing."""
        return self.say(side, by_box, ACK, 0, number, **how)

    def fin(self, side: str, by_box: bool, at: int, **how: Any) -> Self:
        """A FIN behind so many octets."""
        return self.say(side, by_box, FIN | ACK, at, **how)

    def reset(self, side: str, by_box: bool, at: int = 0, **how: Any) -> Self:
        """A RST with the number of an octet."""
        return self.say(side, by_box, RST, at, **how)

    def over(self, after: float = 20.0) -> Self:
        """The case ends."""
        return self.tell(False, Peer.last_datagram(CLIENT_ADDRESS, SERVER_ADDRESS), after, CLIENT)


def questions(number: int, when: float) -> tuple[bytes, bytes]:
    """The packets by which the tester asks whether the path works, to the server and from it."""
    client, server = (socket.inet_aton(address) for address in (CLIENT_ADDRESS, SERVER_ADDRESS))
    up, down = (
        build_ipv4(src, dst, UDP, build_udp(src, dst, 30_000, 9, question(number, when, up=up)))
        for src, dst, up in ((client, server, True), (server, client, False))
    )
    return up, down


def asked(story: Story, number: int, *, lost: bool = False) -> Story:
    """The path is asked both ways whether it works; a question to the server may be lost."""
    up, down = questions(number, story.at + 0.01)
    story.tell(False, up, 0.01, CLIENT).tell(False, down, 0.0, SERVER)
    if not lost:
        story.tell(True, up, 0.3, SERVER)
    return story.tell(True, down, 0.0 if not lost else 0.3, CLIENT)
