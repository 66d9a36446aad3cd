"""What a box is configured to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bentpipe_reference.tcp.config import EndpointConfig

Opening = Literal["late", "early"]
Ending = Literal["confirmed", "local"]
Strangers = Literal["forward", "reset"]

OUTER, INNER = 0, 1
"""The ports of a box: towards an end, and over the satellite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxConfig:
    """Settings of a box, or of both boxes of a pair. Times are seconds, sizes octets.

    Attributes:
        outer: TCP towards the end at the box's side of the satellite.
        inner: TCP over the satellite.
        opening: whether a caller is answered before whom it calls has answered.
        end: whether a FIN is acknowledged when the stream has been delivered, or at once.
        strangers: what becomes of segments of connections whose opening it has not seen.
        paired: whether there is a box on the other side of the satellite link, too.
        most_relays: connections that it splits at once; SYNs beyond them are not answered.
        remembers: for how long it answers for connections that have ended.
        believes_refusals: after a refusal, how long nobody is answered early for that port.
    """

    outer: EndpointConfig
    inner: EndpointConfig
    opening: Opening = "late"
    end: Ending = "confirmed"
    strangers: Strangers = "forward"
    paired: bool = True
    most_relays: int = 64
    remembers: float = 60.0
    believes_refusals: float = 60.0

    @property
    def buffer(self) -> int:
        """Octets of one stream that are held at most, in all boxes together."""
        ways = (self.outer, self.inner), (self.inner, self.outer)
        one = max(source.receive_buffer + sink.send_buffer for source, sink in ways)
        return one * (1 + self.paired)
