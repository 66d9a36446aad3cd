"""Traces told packet by packet, to ask a checker about exactly one situation.

Segments are counted from 0 and have :data:`SIZE` octets, which is also the unit of both ends;
times are seconds::

    story = Story().send(*range(4)).ack(0, (1, 3), after=RTT).send(0)
    assert story.verdicts("RWBP-EC-002") == {Verdict.PASS}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.story import BaseStory, ends
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.rwbp.codec import build, option_octets
from bentpipe_conformance.protocols.rwbp.suite import SUITE
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN, Tcp

SIZE = 1000
"""Payload of a segment and unit of both ends, octets."""

RTT = 0.6
"""Round-trip time the handshake shows, seconds."""

BUFFER = 20
"""BUF of the implementation, in units."""

CLAIMS: Mapping[str, Any] = {
    "interval": 8,
    "receive_buffer": BUFFER * SIZE,
    "scheduler": "round-robin",
    "active_open": True,
    "user_aborts": True,
    "gateway": False,
    "link_rate": False,
}
"""The conformance statement of the implementation in the stories."""

PASS, FAIL, UNCLEAR = {Verdict.PASS}, {Verdict.FAIL}, {Verdict.INCONCLUSIVE}
NOTHING: set[Verdict] = set()
"""What a checker finds, for comparison with :meth:`.Story.verdicts`."""


@dataclass(kw_only=True)
class Story(BaseStory):
    """A connection told packet by packet, as captured at the implementation's side.

    Attributes:
        window: units the tester offers, in its SYN as octets.
        interval: N that the tester asks for.
        service: port of the implementation; at 19, chargen, it always has more to send.
        port: that of the tester.
        calls: whether the implementation opens the connection.
        rwbp: whether the implementation agrees to RWBP, or offers it.
        offer: options behind the others of the tester's SYN or SYN-ACK; None: the usual.
        answer: the same of the implementation.
        own: fields of the implementation's SYN or SYN-ACK.
        open: whether the handshake is completed.
    """

    suite = SUITE
    claims = CLAIMS

    window: int = 8
    interval: int = 8
    service: int = 19
    port: int = 4000
    calls: bool = False
    rwbp: bool = True
    offer: bytes | None = None
    answer: bytes | None = None
    own: Mapping[str, Any] | None = None
    sack: bool = True
    open: bool = True
    said: int = 0

    def __post_init__(self) -> None:
        if not self.calls:
            self.syn()
        self.at = 0.001
        self.own_syn()
        if not self.open:
            return
        self.at = RTT
        if self.calls:
            self.syn()
            self.put(True, flags=ACK, seq=500, after=0.001, window=BUFFER)
        else:
            self.ack(0)

    def syn(self, after: float = 0.0, *, crossing: bool = False) -> Story:
        """The tester's SYN or SYN-ACK; the former, too, where it crosses a SYN."""
        options = option_octets(self.interval, SIZE) if self.offer is None else self.offer
        answers = self.calls and not crossing
        return self.put(
            False, options, flags=SYN | ACK if answers else SYN, seq=99, after=after,
            ack=500 if answers else 0,
            window=self.window * SIZE, mss=SIZE, sack_permitted=self.sack,
        )  # fmt: skip

    def own_syn(self, after: float = 0.0, **others: Any) -> Story:
        """The implementation's SYN or SYN-ACK, with other fields."""
        options = option_octets(8, SIZE) if self.rwbp else b""
        fields = {
            "flags": SYN if self.calls else SYN | ACK, "seq": 499, "mss": SIZE,
            "window": BUFFER * SIZE, "sack_permitted": True, "ack": 0 if self.calls else 100,
            **(self.own or {}), **others,
        }  # fmt: skip
        options = options if self.answer is None else self.answer
        return self.put(True, options, after=after, **fields)

    def put(
        self, outgoing: bool, options: bytes = b"", *, flags: int, seq: int, after: float = 0.0,
        **fields: Any,
    ) -> Story:  # fmt: skip
        """Any segment; a bare acknowledgment of what has been said before if nothing else."""
        usual: dict[str, Any] = {"ack": 100 + self.said, "window": BUFFER} if outgoing else {}
        values = {"ack": 500, "window": self.window, "payload": b"", **usual, **fields}
        segment = Tcp(
            *ends(outgoing, self.service if not self.calls else self.port,
                  self.port if not self.calls else self.service),
            seq=seq, flags=flags, **values,
        )  # fmt: skip
        return self.tell(outgoing, build(segment, options), after)

    def send(self, *segments: float, after: float = 0.0, **fields: Any) -> Story:
        """The implementation sends segments."""
        self.at += after
        for index in segments:
            payload = bytes((int(index) % 251,)) * SIZE
            seq = 500 + int(index * SIZE)
            self.put(True, **{"flags": ACK, "seq": seq, "payload": payload, **fields})
        return self

    def send_octets(
        self, start: int, octets: int, after: float = 0.0, *, fin: bool = False
    ) -> Story:
        """The implementation sends any octets of its stream, and FIN behind them."""
        flags = ACK | (FIN if fin else 0)
        return self.put(True, flags=flags, seq=500 + start, after=after, payload=bytes(octets))

    def ack(
        self, segment: float, *held: tuple[float, float], after: float = 0.0, **fields: Any
    ) -> Story:
        """The tester acknowledges up to a segment and reports ranges held."""
        blocks = tuple((500 + int(a * SIZE), 500 + int(b * SIZE)) for a, b in held)
        usual = {"flags": ACK, "seq": 100 + self.said, "ack": 500 + int(segment * SIZE)}
        return self.put(False, after=after, **{**usual, "sack": blocks, **fields})

    def arrive(
        self, *segments: float, after: float = 0.0, size: int = SIZE, fin: bool = False,
        **fields: Any,
    ) -> Story:  # fmt: skip
        """The tester's segments reach the implementation, 10 ms apart, the last with FIN or not."""
        for index in segments:
            flags = ACK | (FIN if fin and index == segments[-1] else 0)
            usual = {"flags": flags, "seq": 100 + int(index * SIZE), "payload": bytes(size)}
            self.put(False, after=after, **{**usual, **fields})
            after = 0.01
        return self

    def reply(
        self, segment: float, *held: tuple[float, float], after: float = 0.0, **fields: Any
    ) -> Story:
        """The implementation acknowledges up to a segment of the tester's."""
        blocks = tuple((100 + int(a * SIZE), 100 + int(b * SIZE)) for a, b in held)
        self.said = max(self.said, int(segment * SIZE))
        usual = {"flags": ACK, "seq": 500, "ack": 100 + int(segment * SIZE), "sack": blocks}
        return self.put(True, after=after, **{**usual, **fields})

    def reset(self, after: float = 0.0, *, outgoing: bool = True, seq: int = 500) -> Story:
        """The implementation (or else the tester) resets the connection."""
        return self.put(outgoing, flags=RST | ACK, seq=seq, after=after)
