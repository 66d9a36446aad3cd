"""What happens to packets between the box and its ends: some are lost, late, or come twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bentpipe_conformance.engine.lane import SERVER
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN, Tcp

Fate = Literal["lost", "late", "twice"]
"""What happens: *late* lets the next packet of the same way pass first."""

UP, DOWN = "up", "down"
"""The way to the server, and back."""


@dataclass
class Heard:
    """What has passed on one way at one side of the box, as far as kinds of packets hang on it.

    Attributes:
        syn: number of the SYN or SYN-ACK.
        base: the first acknowledgment number.
        segments: segments with octets that were new.
        top: one past the highest octet.
        said: acknowledgment number and window of the last segment.
    """

    syn: int | None = None
    base: int | None = None
    segments: int = 0
    top: int = 0
    said: tuple[int, int] = (0, 0)

    def offset(self, tcp: Tcp) -> int:
        """Of a segment's first octet in its stream."""
        return (tcp.seq - (self.syn or 0) - 1) % MODULUS

    def acked(self, tcp: Tcp) -> int:
        """How many octets a segment acknowledges; a FIN is one more."""
        return 0 if self.base is None or not tcp.flags & ACK else (tcp.ack - self.base) % MODULUS

    def note(self, tcp: Tcp) -> None:
        """It has been looked at."""
        if tcp.flags & SYN:
            self.syn = tcp.seq
        if tcp.flags & ACK:
            self.base = tcp.ack if self.base is None else self.base
            self.said = tcp.ack, tcp.window
        end = self.offset(tcp) + len(tcp.payload)
        if tcp.payload and self.top < end < 1 << 30:
            self.segments += 1
            self.top = end


Kind = Callable[[Heard, Tcp, int, int], bool]
"""Whether a segment is of a kind: what was heard before, and octets of its stream and of the
opposite one in all."""


def _is_pure(tcp: Tcp) -> bool:
    return not tcp.payload and tcp.flags & (SYN | FIN | RST | ACK) == ACK


def _nth(number: int) -> Kind:
    """The segment with the octets that come so many new segments after the first."""
    return lambda heard, tcp, _own, _other: (
        bool(tcp.payload) and heard.segments == number and heard.offset(tcp) >= heard.top
    )


def _opens(heard: Heard, tcp: Tcp, _own: int, _other: int) -> bool:
    number, window = heard.said
    return _is_pure(tcp) and tcp.ack == number and tcp.window > window


KINDS: Mapping[str, Kind] = {
    "SYN": lambda _heard, tcp, _own, _other: bool(tcp.flags & SYN),
    "handshake": lambda heard, tcp, _own, _other: (
        heard.said == (0, 0) and tcp.flags & (SYN | ACK) == ACK
    ),
    "first octets": _nth(0),
    "second octets": _nth(1),
    "last octets": lambda heard, tcp, own, _other: (
        bool(tcp.payload) and heard.offset(tcp) + len(tcp.payload) == own
    ),
    "FIN": lambda _heard, tcp, _own, _other: bool(tcp.flags & FIN),
    "acknowledgment": lambda heard, tcp, _own, other: (
        _is_pure(tcp) and 0 < heard.acked(tcp) <= other
    ),
    "acknowledgment of the FIN": lambda heard, tcp, _own, other: heard.acked(tcp) == other + 1,
    "window update": _opens,
    "probe": lambda _heard, tcp, own, _other: len(tcp.payload) == 1 < own,
}
"""Kinds of packets. The answer to a SYN is the SYN of the way back."""


@dataclass
class Mishap:
    """A packet of a connection on one side of the box meets its fate.

    Attributes:
        port: of the server; it tells the connection.
        side: of the box.
        way: up or down.
        kind: of the packet, see :data:`KINDS`.
        fate: what happens to the first one of that kind.
        octets: of the two streams in all, by way.
    """

    port: int
    side: str
    way: str
    kind: str
    fate: Fate
    octets: Mapping[str, int]
    met: bool = False
    _heard: Heard = field(default_factory=Heard)
    _held: Callable[[], None] | None = None

    def concerns(self, side: str, by_box: bool, tcp: Tcp) -> bool:
        """Whether a packet is of its way."""
        up = by_box == (side == SERVER)
        port = tcp.dport if up else tcp.sport
        return (side, port) == (self.side, self.port) and up == (self.way == UP)

    def meet(self, tcp: Tcp, go: Callable[[], None]) -> None:
        """A packet of its way passes; ``go`` lets it do so."""
        own, other = self.octets[self.way], self.octets[DOWN if self.way == UP else UP]
        meant = not self.met and KINDS[self.kind](self._heard, tcp, own, other)
        if not meant or self.fate != "lost":
            self._heard.note(tcp)
        if not meant:
            held, self._held = self._held, None
            go()
            if held is not None:
                held()
            return
        self.met = True
        if self.fate == "late":
            self._held = go
        elif self.fate == "twice":
            go()
            go()
