"""Traces told packet by packet, to ask a checker about exactly one situation.

Segments are counted from 0 and have :data:`SIZE` octets; times are seconds::

    story = Story(sack=False).send(*range(10)).ack(2, after=RTT)
    story.ack(2, after=0.01).ack(2, after=0.01).ack(2, after=0.01).send(2)
    assert story.verdicts("SNR-FR-002") == {Verdict.PASS}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bentpipe_conformance.engine.story import BaseStory, ends
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH, RST, SYN, Tcp, build
from bentpipe_conformance.protocols.tcp.suite import SUITE

SIZE = 1000
"""Payload of a segment, octets."""

RTT = 0.6
"""Round-trip time the handshake shows, seconds."""

CLAIMS: Mapping[str, Any] = {
    "sack": True,
    "sack_sender": True,
    "fast_retransmit": True,
    "newreno": True,
    "limited_transmit": True,
    "congestion_control": "reno",
    "pacing": False,
    "slow_start_by_delay": False,
    "initial_window_segments": 10,
    **dict.fromkeys(("rack", "tlp", "prr", "early_retransmit", "frto", "ecn"), False),
    "byte_counting": "unlimited",
}
"""The conformance statement of the implementation in the stories."""

PASS, FAIL, UNCLEAR = {Verdict.PASS}, {Verdict.FAIL}, {Verdict.INCONCLUSIVE}
NOTHING: set[Verdict] = set()
"""What a checker finds, for comparison with :meth:`.Story.verdicts`."""


@dataclass(kw_only=True)
class Story(BaseStory):
    """A connection told packet by packet, as captured at the implementation's side.

    Attributes:
        sack: whether both sides negotiate SACK.
        window: octets the tester offers, unscaled.
        service: port of the implementation; at 19, chargen, it always has more to send.
        calls: whether the implementation opens the connection; its SYNs are the ``syn_acks``.
        syn_acks: times of the SYN-ACK and its repetitions.
        rtt: seconds until the last of them is answered.
        stamps: whether every segment has a timestamp, in milliseconds.
    """

    suite = SUITE
    claims = CLAIMS

    sack: bool = True
    window: int = 60000
    syn_acks: tuple[float, ...] = (0.001,)
    service: int = 19
    calls: bool = False
    rtt: float = RTT
    stamps: bool = False
    _said: int = 0
    _stamped: int = 0

    def __post_init__(self) -> None:
        if not self.calls:
            self._put(False, flags=SYN, seq=99)
        for time in self.syn_acks:
            self.at = time
            self._put(True, flags=SYN if self.calls else SYN | ACK, seq=499)
        self.at += self.rtt - 0.001
        if self.calls:
            self._put(False, flags=SYN | ACK, seq=99)
        else:
            self.ack(0)

    def _put(
        self, outgoing: bool, *, flags: int, seq: int, after: float = 0.0, **fields: Any
    ) -> Story:
        segment = Tcp(*ends(outgoing, self.service, 4000), seq, 0, flags, self.window, b"")
        if flags & SYN:
            segment = replace(segment, mss=SIZE, sack_permitted=self.sack)
        if self.stamps:
            tick = int(1000 * (self.at + after)) + 1
            segment = replace(segment, tsval=tick, tsecr=0 if flags == SYN else self._stamped)
            self._stamped = tick
        segment = replace(segment, ack=100 + self._said if outgoing else 500)
        return self.tell(outgoing, build(replace(segment, **fields)), after)

    def send(self, *segments: int, after: float = 0.0, push: bool = False) -> Story:
        """The implementation sends segments; with ``push``, nothing waits behind the last."""
        self.at += after
        for index in segments:
            payload = bytes((index % 251,)) * SIZE
            flags = ACK | (PSH if push and index == segments[-1] else 0)
            self._put(True, flags=flags, seq=500 + index * SIZE, payload=payload)
        return self

    def send_octets(
        self, start: int, octets: int, after: float = 0.0, *, push: bool = False, fin: bool = False,
        sack: tuple[tuple[int, int], ...] = (),
    ) -> Story:  # fmt: skip
        """The implementation sends any octets of its stream, FIN behind them, with SACK blocks."""
        flags = ACK | (PSH if push else 0) | (FIN if fin else 0)
        seq = 500 + start
        return self._put(True, flags=flags, seq=seq, after=after, payload=bytes(octets), sack=sack)

    def reset(self, after: float = 0.0, *, outgoing: bool = True, seq: int | None = None) -> Story:
        """The implementation (or else the tester) resets the connection."""
        if seq is None:
            seq = 500 if outgoing else 100 + self._said
        return self._put(outgoing, flags=RST | ACK, seq=seq, after=after)

    def ack(
        self,
        segment: float,
        *held: tuple[float, float],
        after: float = 0.0,
        window: int | None = None,
        seq: int | None = None,
        data: bytes = b"",
        fin: bool = False,
        flags: int = ACK,
    ) -> Story:
        """The tester acknowledges up to a segment, reports ranges held, may send data or FIN."""
        blocks = tuple((500 + int(a * SIZE), 500 + int(b * SIZE)) for a, b in held)
        self._put(
            False, flags=flags | (FIN if fin else 0), seq=100 + self._said if seq is None else seq,
            after=after, ack=500 + int(segment * SIZE), sack=blocks,
            window=self.window if window is None else window, payload=data,
        )  # fmt: skip
        self._said += len(data) + fin
        return self


def flight(segments: int = 8, *, sack: bool = False) -> Story:
    """A flight with its first segment acknowledged after a round trip, which releases one more."""
    return Story(sack=sack).send(*range(segments)).ack(1, after=RTT).send(segments)


def window_limited_flight(*, sack: bool = False) -> Story:
    """A flight of twelve whose first two segments are acknowledged, each releasing two more."""
    story = Story(sack=sack).send(*range(12)).ack(1, after=RTT).send(12, 13)
    return story.ack(2, after=0.01).send(14, 15)


def duplicates(story: Story, segment: float, count: int = 3) -> Story:
    """Duplicate acknowledgments of a segment, 10 ms apart."""
    for _ in range(count):
        story.ack(segment, after=0.01)
    return story


def three_reports() -> Story:
    """Ten segments, the third lost, three reports of held data 10 ms apart."""
    story = Story().send(*range(10)).ack(2, after=RTT)
    for top in (4, 5, 6):
        story.ack(2, (3, top), after=0.01)
    return story
