"""What one connection tells of the capture, and on whose side the capture was taken."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bentpipe_conformance.engine.observing import Appraisal, End, Observer, Sighting

FIRST_HOPS = frozenset({32, 60, 64, 128, 255})
"""TTL or hop limit of packets that no router has passed on: the initial values in use."""

COPY_S = 0.01
"""Within this time equal octets are the same packet recorded again."""

TWICE_SHARE = 0.5
"""Share of each end's packets with a copy from which on the capture recorded everything twice:
networks that duplicate do so rarely, and no host sends the same packet again."""

NEAR_SHARE = 0.25
"""An end that answers within this share of the round trip is the one the capture is at."""

LOSSES = 2
"""Packets lost between the capture and an end that show that the capture is not there."""

CLOSE_S = 0.002
"""On a path shorter than this it makes no difference which side a capture is on."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What marks an end as the capturing host, in packets that it sent.

    Attributes:
        sent, received: packets marked as sent, or received, by the capturing host.
        unsummed: packets, of a few, with a wrong checksum, as hardware that fills it in leaves it.
        passed_on: packets that a router has passed on.
        packets: all its packets.
    """

    sent: int = 0
    received: int = 0
    unsummed: int = 0
    passed_on: int = 0
    packets: int = 0


@dataclass(frozen=True, slots=True)
class Sketch:
    """One connection before it is judged.

    Attributes:
        place: its group and its position among the connections of the group.
        appraisal: what its packets tell.
        marks: what marks each end.
        packets, first: how many, and the number of the first.
        times: when it began and ended, seconds since the capture began.
        gaps: when the packets passed that show that others are missing.
        copies: how many packets were copies of the one before.
        cut: whether the capture kept only the beginning of packets.
        backwards: whether its times run backwards.
    """

    place: tuple[int, int]
    appraisal: Appraisal
    marks: Mapping[End, Marks]
    packets: int
    first: int
    times: tuple[float, float]
    gaps: tuple[float, ...]
    copies: int
    cut: bool
    backwards: bool

    @property
    def looped(self) -> bool:
        """Whether both ends have the same address, so that the capture is at both sides."""
        one, other = self.appraisal.ends
        return one[0] == other[0]

    def near(self) -> tuple[str, str]:
        """The address of the end whose side the capture is on, and why; empty when unknown."""
        one, other = self.appraisal.ends
        for mine, theirs in ((one, other), (other, one)):
            near, far = self.marks.get(mine, Marks()), self.marks.get(theirs, Marks())
            if near.sent and far.received and not near.received:
                return mine[0], "the capture marks its packets as sent"
        for mine, theirs in ((one, other), (other, one)):
            near, far = self.marks.get(mine, Marks()), self.marks.get(theirs, Marks())
            if near.unsummed > 1 and not far.unsummed:
                return mine[0], "its packets lack the checksum that its hardware fills in"
        reactions = self.appraisal.reactions
        for mine, theirs in ((one, other), (other, one)):
            if mine in reactions and theirs in reactions:
                total = reactions[mine] + reactions[theirs]
                if total > CLOSE_S and reactions[mine] <= NEAR_SHARE * total:
                    return mine[0], (
                        f"it answers within {reactions[mine] * 1000:.3g} ms, the other end after "
                        f"{reactions[theirs] * 1000:.3g} ms"
                    )
        unreached = self.appraisal.unreached
        for mine, theirs in ((one, other), (other, one)):
            if unreached.get(theirs, 0) >= LOSSES and not unreached.get(mine, 0):
                return mine[0], "packets that the capture shows did not reach the other end"
        lags = self.appraisal.lags
        for mine, theirs in ((one, other), (other, one)):
            if lags.get(theirs, 0.0) > 5 * max(CLOSE_S, lags.get(mine, CLOSE_S)):
                return mine[0], "its packets do not lag behind their timestamps"
        for mine, theirs in ((one, other), (other, one)):
            near, far = self.marks.get(mine, Marks()), self.marks.get(theirs, Marks())
            if near.packets and not near.passed_on and far.passed_on == far.packets > 0:
                return mine[0], "no router has passed its packets on"
        return "", ""


def without_copies(
    sightings: Sequence[Sighting], observer: Observer
) -> tuple[Sequence[Sighting], int]:
    """The packets without copies where all were recorded twice, and the number of copies."""
    seen: dict[bytes, float] = {}
    lately: deque[tuple[float, bytes]] = deque()
    copies: set[int] = set()
    copied: Counter[End] = Counter()
    counts: Counter[End] = Counter()
    for item in sightings:
        source = observer.ends(item.content)[0]
        while lately and item.time - lately[0][0] > COPY_S:
            passed, identity = lately.popleft()
            if seen.get(identity) == passed:
                del seen[identity]
        identity = _identity(item.octets)
        before = seen.get(identity)
        if before is not None and 0 <= item.time - before <= COPY_S:
            copies.add(item.number)
            copied[source] += 1
            del seen[identity]
            continue
        counts[source] += 1
        seen[identity] = item.time
        lately.append((item.time, identity))
    everywhere = all(copied[end] >= TWICE_SHARE * counts[end] for end in counts)
    if not copies or not everywhere:
        return sightings, 0
    return [item for item in sightings if item.number not in copies], len(copies)


def _identity(octets: bytes) -> bytes:
    """What no router changes: all but TTL and header checksum."""
    if octets[0] >> 4 == 6:
        return octets[:7] + octets[8:]
    return octets[:8] + octets[9:10] + octets[12:]


def _hops(octets: bytes) -> int:
    return octets[7] if octets[0] >> 4 == 6 else octets[8]


def sketch_connection(
    place: tuple[int, int], sightings: Sequence[Sighting], copies: int, cut: bool,
    observer: Observer,
) -> Sketch:  # fmt: skip
    """What a connection tells of the capture."""
    appraisal = observer.appraise(sightings)
    gathered: dict[End, list[int]] = {}
    backwards, last = False, float("-inf")
    for item in sightings:
        found = gathered.setdefault(observer.ends(item.content)[0], [0, 0, 0, 0, 0])
        found[0] += item.here is True
        found[1] += item.here is False
        found[2] += not item.checksum_ok
        found[3] += _hops(item.octets) not in FIRST_HOPS
        found[4] += 1
        backwards |= item.time < last
        last = item.time
    missing = set(appraisal.missing[:1000])
    gaps = tuple(item.time for item in sightings if item.number in missing)
    return Sketch(
        place, appraisal, {end: Marks(*counts) for end, counts in gathered.items()},
        len(sightings), sightings[0].number, (sightings[0].time, sightings[-1].time),
        gaps, copies, cut, backwards,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """Whose side a capture was taken on.

    Attributes:
        address: the address; empty when it cannot be told.
        how: why, as a clause; empty when it cannot be told.
        hosts: all addresses, those with most connections first.
    """

    address: str
    how: str
    hosts: tuple[str, ...]


AGREEMENT = 0.9
"""Share of the connections that tell which side a capture is on that must agree."""


def find_side(sketches: Iterable[Sketch]) -> Side:
    """Whose side a capture was taken on, as far as its connections agree."""
    votes: Counter[str] = Counter()
    hosts: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for sketch in sketches:
        ends = sketch.appraisal.ends
        hosts.update(sorted({end[0] for end in ends}))
        address, how = (
            (ends[0][0], "both ends have this address") if sketch.looped else (sketch.near())
        )
        if address:
            votes[address] += 1
            reasons.setdefault(address, how)
    ordered = tuple(address for address, _ in hosts.most_common())
    if votes:
        address, count = votes.most_common(1)[0]
        if count >= AGREEMENT * votes.total():
            return Side(address, reasons[address], ordered)
    return Side("", "", ordered)
