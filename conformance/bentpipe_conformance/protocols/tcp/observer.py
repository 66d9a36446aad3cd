"""Judging TCP in foreign captures: what the packets tell of the capture's quality.

An acknowledgment of octets that were never seen shows that the capture lacks packets once their
sender goes on behind them; without that, it may be one of unsent data (SNR-ACK-002).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from bentpipe_conformance.engine.codec import MalformedPacket, locate
from bentpipe_conformance.engine.observing import Appraisal, Defect, End, Observer, Sighting
from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.protocols.tcp.claims import HANDSHAKE_ITEMS
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, RST, SYN, Tcp, nearest, skim
from bentpipe_conformance.protocols.tcp.replay.flow import DEFAULT_MSS, DEFAULT_MSS_IPV6, Flow

_PROTOCOL = 6
_ECHO = STANDARD_SERVICES["echo"].to_bytes(2, "big")
_HALF = MODULUS >> 1

REUSE_S = 60.0
"""Seconds of silence after which a SYN with another number opens a new connection even if the
earlier one was not seen to end: the shortest TIME-WAIT in use."""

_LARGEST = 1460
"""A segment beyond the peer's MSS that is longer than this was merged, or not yet cut, by hardware;
a shorter one may be the sender's mistake (SNR-OPT-009, SNR-OPT-010)."""

_CLOCKS_HZ = (1000, 500, 250, 200, 100, 64, 10, 2, 1)
"""Timestamp clocks in use (RFC 7323 section 5.4)."""

_LONGEST_LAG_S = 2.0
"""A longer lag is no queue's: the clock is not what it seems (SNR-TS-003)."""

_PASSED_S = 0.002
"""A segment that passed the capture so long ago has reached the end beside it, or never will."""

_PENDING = 64
"""Segments per direction whose acknowledgment is awaited to measure reactions."""


def _party(packet: bytes, wire: int) -> tuple[Hashable, int] | None:
    try:
        src, dst, protocol, start, end = locate(packet, wire)
    except MalformedPacket:
        return None
    if protocol != _PROTOCOL or len(packet) < start + 20:
        return None
    one, other = src + packet[start : start + 2], dst + packet[start + 2 : start + 4]
    # Payload is compared on echo connections alone (SNR-RCV-018).
    echo = _ECHO in (one[-2:], other[-2:])
    keep = end if echo else start + (packet[start + 12] >> 4) * 4
    return (one + other if one < other else other + one), keep


def _ends(tcp: Tcp) -> tuple[End, End]:
    return (tcp.src, tcp.sport), (tcp.dst, tcp.dport)


def _separate(sightings: Sequence[Sighting]) -> list[list[Sighting]]:
    """Successive connections on the same ports."""
    found: list[list[Sighting]] = []
    syns: dict[End, int] = {}
    finished: set[End] = set()
    last = float("-inf")
    for item in sightings:
        tcp: Tcp = item.content
        source = tcp.src, tcp.sport
        if tcp.flags & (SYN | ACK) == SYN:
            over = len(finished) > 1 or item.time - last > REUSE_S
            if not found or (over and syns.get(source, tcp.seq) != tcp.seq):
                found.append([])
                syns, finished = {}, set()
            syns.setdefault(source, tcp.seq)
        elif not found:
            found.append([])
        found[-1].append(item)
        if tcp.flags & RST:
            finished |= set(_ends(tcp))
        elif tcp.flags & FIN:
            finished.add(source)
        last = item.time
    return found


def _beyond(number: int, other: int) -> bool:
    """Whether a sequence number lies beyond another one."""
    return 0 < (number - other) % MODULUS < _HALF


@dataclass(slots=True)
class _Side:
    """What has been seen of one end's stream.

    Attributes:
        first: the number from which offsets are counted.
        top: offset behind all that was seen; None before the first segment.
        holes: what was left out below it, as ranges of offsets in order.
    """

    first: int = 0
    top: int | None = None
    mss: int | None = None
    opened: int = 0
    holes: list[tuple[int, int]] = field(default_factory=list)
    waiting: dict[int, float] = field(default_factory=dict)
    skipped: int = 0
    begun: dict[int, float] = field(default_factory=dict)
    times: array[float] = field(default_factory=lambda: array("d"))
    stamps: array[int] = field(default_factory=lambda: array("L"))

    def sent(self, item: Sighting, tcp: Tcp) -> None:
        if self.top is None or (tcp.flags & SYN and self.opened == 1):
            self.holes.clear()
            self.first, self.top = tcp.seq, tcp.length
        else:
            start = self._offset(tcp.seq)
            if start > self.top:
                self.holes.append((self.top, start))
                self.skipped += 1
            elif self.holes:
                self._fill(start, start + tcp.length)
            self.top = max(self.top, start + tcp.length)
        end = (tcp.seq + tcp.length) % MODULUS
        if not tcp.length:
            return
        self.begun.setdefault(tcp.seq, item.time)
        if end in self.waiting or (tcp.flags & SYN and self.opened > 1):
            self.waiting.pop(end, None)  # which copy is answered is unknown
        elif len(self.waiting) < _PENDING:
            self.waiting[end] = item.time

    def lacks(self, number: int, blocks: Sequence[tuple[int, int]], time: float) -> bool:
        """Whether the octet at ``number``, long since passed, has not arrived: later ones have."""
        since = self.begun.get(number)
        late = since is not None and time - since > _PASSED_S
        return late and any(_beyond(left, number) for left, _ in blocks)

    def forget(self, number: int) -> None:
        """Everything below ``number`` is acknowledged."""
        while self.begun and _beyond(number, first := next(iter(self.begun))):
            del self.begun[first]

    def lag(self) -> float | None:
        """How far its packets lag behind its timestamp clock at most, seconds."""
        if len(self.times) < 2 or self.times[-1] <= self.times[0]:
            return None
        first = self.stamps[0]
        ticks = [(stamp - first) % MODULUS for stamp in self.stamps]
        rate = ticks[-1] / (self.times[-1] - self.times[0])
        spreads = []
        # A queue that fills or drains makes the clock seem faster or slower than it is.
        for nominal in (known for known in _CLOCKS_HZ if known / 2 < rate < known * 2):
            behind = [time - tick / nominal for time, tick in zip(self.times, ticks, strict=True)]
            # The clock's own steps are no lag.
            spreads.append(max(0.0, max(behind) - min(behind) - 2 / nominal))
        least = min(spreads, default=_LONGEST_LAG_S)
        return least if least < _LONGEST_LAG_S else None

    def _offset(self, number: int) -> int:
        return nearest(number - self.first, self.top or 0)

    def _holes_in(self, start: int, end: int) -> slice:
        """Where the holes are that reach into [start, end)."""
        first = bisect_right(self.holes, start, key=itemgetter(1))
        return slice(first, max(first, bisect_left(self.holes, end, key=itemgetter(0))))

    def _fill(self, start: int, end: int) -> None:
        among = self._holes_in(start, end)
        self.holes[among] = [
            (left, right)
            for hole in self.holes[among]
            for left, right in ((hole[0], start), (end, hole[1]))
            if left < right
        ]

    def acknowledged(self, number: int, blocks: Iterable[tuple[int, int]]) -> bool:
        """Whether an acknowledgment covers octets that were never seen although others followed."""
        before = len(self.holes)
        for left, right in blocks:
            del self.holes[self._holes_in(self._offset(left), self._offset(right))]
        del self.holes[: bisect_left(self.holes, self._offset(number), key=itemgetter(0))]
        return len(self.holes) < before


def _appraise(sightings: Sequence[Sighting]) -> Appraisal:
    sides: dict[End, _Side] = defaultdict(_Side)
    reactions: dict[End, float] = {}
    merged: dict[End, int] = defaultdict(int)
    unreached: dict[End, set[int]] = defaultdict(set)
    missing: list[int] = []
    called = caller = answered = None
    for item in sightings:
        tcp: Tcp = item.content
        source, destination = _ends(tcp)
        if called is None or caller is None:
            # Where no SYN shows who called, services have the lower port.
            ends = sorted((source, destination), key=lambda end: end[1])
            called, caller = (destination, source) if tcp.flags & SYN else (ends[0], ends[1])
            if tcp.flags & (SYN | ACK) == SYN | ACK:
                called, caller = source, destination
        mine, other = sides[source], sides[destination]
        if tcp.flags & RST:
            continue
        if tcp.flags & SYN:
            mine.opened += 1
            mine.mss = tcp.mss or (DEFAULT_MSS_IPV6 if ":" in tcp.src else DEFAULT_MSS)
            answered = answered or bool(tcp.flags & ACK)
        mine.sent(item, tcp)
        if tcp.tsval is not None:
            mine.times.append(item.time)
            mine.stamps.append(tcp.tsval)
        if tcp.flags & ACK:
            sent_at = other.waiting.pop(tcp.ack, None)
            if sent_at is not None:
                took = item.time - sent_at
                reactions[source] = min(took, reactions.get(source, took))
            other.forget(tcp.ack)
            if tcp.sack and other.lacks(tcp.ack, tcp.sack, item.time):
                unreached[source].add(tcp.ack)
            if len(other.waiting) == _PENDING:
                other.waiting.clear()
            if other.holes and other.acknowledged(tcp.ack, tcp.sack):
                missing.append(item.number)
        if other.mss is not None and tcp.size > max(other.mss, _LARGEST):
            merged[source] += 1
    assert called is not None and caller is not None
    whole = bool(sides[caller].opened and sides[called].opened)
    lags = {end: lag for end, side in sides.items() if (lag := side.lag()) is not None}
    lost = {end: len(numbers) for end, numbers in unreached.items()}
    skipped = {end: side.skipped for end, side in sides.items() if side.skipped}
    return Appraisal(
        (called, caller), whole, reactions, lags, lost, skipped, tuple(missing), dict(merged)
    )


def _claims(flow: Flow, stated: Ics) -> Ics:
    """What is stated, as far as this connection's handshake negotiates it.

    Without a statement an item that shows in the handshake is claimed where it was negotiated;
    any other one is not claimed.
    """
    claims = dict(stated)
    for item, (attribute, _) in HANDSHAKE_ITEMS.items():
        claims[item] = bool(stated.get(item, True)) and flow.handshake.negotiated(attribute)
    return claims


def _all_of(*groups: str) -> frozenset[str]:
    return frozenset(f"SNR-{name}" for group in groups for name in group.split())


_HANDSHAKE = _all_of("OPT-001 OPT-002 OPT-003 OPT-007")
"""What the implementation's SYN or SYN-ACK shows alone, wherever it is seen."""

_OWN_SEGMENTS = _HANDSHAKE | _all_of("OPT-004 OPT-005 OPT-006 RCV-005 RCV-017 TS-002 TS-003")
"""What its segments show in the order in which it sent them."""

_COUNTS_ARRIVALS = _all_of("RCV-004")
_COUNTS_SENT = _all_of("OPT-009 OPT-010")
_CONTENT = _all_of("RCV-018")

_LEFT: Mapping[Defect, tuple[frozenset[str], str]] = {
    Defect.ELSEWHERE: (_HANDSHAKE, "the capture was not taken at the implementation's side"),
    Defect.GAPS: (_OWN_SEGMENTS, "the capture lacks packets"),
    Defect.BACKWARDS: (_HANDSHAKE, "the capture's times run backwards"),
}
"""What can still be judged in spite of a defect, and what to say of the rest."""

_LOST: Mapping[Defect, tuple[frozenset[str], str]] = {
    Defect.CUT: (_CONTENT, "the capture did not keep the data"),
    Defect.MERGED_RECEIVED: (_COUNTS_ARRIVALS, "receive offload merged segments"),
    Defect.MERGED_SENT: (_COUNTS_SENT, "the capture shows segments before segmentation offload"),
}
"""What can no longer be judged because of a defect, and what to say of it."""


_CHECKSUMS = _all_of("CON-002 CON-040")
"""What depends on checksums, which hardware fills in after the capture, or has looked at before."""


def _unjudgeable(requirement: str, defects: Collection[Defect]) -> str:
    if requirement in _CHECKSUMS:
        return "checksums are the hardware's"
    for defect, (left, why) in _LEFT.items():
        if defect in defects and requirement not in left:
            return why
    for defect, (lost, why) in _LOST.items():
        if defect in defects and requirement in lost:
            return why
    return ""


OBSERVER = Observer(
    party=_party,
    skim=skim,
    ends=_ends,
    ports=_ends,
    separate=_separate,
    appraise=_appraise,
    claims=_claims,
    unjudgeable=_unjudgeable,
)
