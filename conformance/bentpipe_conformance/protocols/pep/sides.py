"""Judging two captures that the suite did not make, one on each side of a box.

Nobody knows what else happened: whether the path was disturbed, whom a silent server belongs to,
what passed beside these connections. So no deadline accuses, and only rules are judged that follow
from numbers and octets of one connection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.engine.observing import End, Passed, Sides, Sighting
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene, Trace, read_flows
from bentpipe_conformance.protocols.pep.replay.leg import DEFAULT_MSS, Leg
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN, Tcp

_Ends = tuple[str, int, str, int]

JUDGED = frozenset(
    f"PEP-{name}"
    for name in (
        "TR-001", "TR-002", "TR-003", "TR-005", "TR-006", "TR-007", "TR-008", "TR-009", "TR-010",
        "TR-011", "TR-020", "OP-001", "RE-002", "RE-003", "RE-004", "RE-005", "RE-006", "RE-007",
        "RE-008", "RE-009", "RE-010", "FB-001", "FB-002", "RX-006", "SEC-001", "SEC-002", "SEC-003",
    )
)  # fmt: skip
"""Rules about one connection that need no deadline."""

_SIZES = frozenset({"PEP-TR-007"})
"""Rules about the sizes of segments, which the offload of the capturing host changes."""


def _ends(tcp: Tcp, *, up: bool) -> _Ends:
    """Client and server of a segment."""
    if up:
        return tcp.src, tcp.sport, tcp.dst, tcp.dport
    return tcp.dst, tcp.dport, tcp.src, tcp.sport


def passed(sightings: Sequence[Sighting]) -> list[Passed]:
    """See :class:`Sides`; what precedes the first SYN of its ports belongs to nothing."""
    opened: set[_Ends] = set()
    found = []
    for sighting in sightings:
        tcp = sighting.content
        if not isinstance(tcp, Tcp) or not tcp.offset_ok:
            continue
        if tcp.flags & (SYN | ACK | RST) == SYN and _ends(tcp, up=False) not in opened:
            opened.add(_ends(tcp, up=True))
        for up in (True, False):
            if _ends(tcp, up=up) in opened:
                found.append(Passed(sighting, up))
                break
    return found


@dataclass(slots=True)
class _Seen:
    """When things were first seen of a connection in one file, by their place in the streams.

    Attributes:
        began: the SYN.
        numbers: of the SYNs, by direction.
        octets: first and last ones of segments that were new, by direction and place.
        shown: all octets, by direction.
        over: whether the ports have been used again.
    """

    began: float
    numbers: dict[bool, int] = field(default_factory=dict)
    octets: dict[tuple[bool, int], float] = field(default_factory=dict)
    shown: dict[bool, RangeSet] = field(
        default_factory=lambda: {True: RangeSet(), False: RangeSet()}
    )
    over: bool = False

    def add(self, up: bool, start: int, end: int, time: float) -> None:
        """A segment with octets."""
        for octet in (start, end - 1):
            if not self.shown[up].covers(octet, octet + 1):
                self.octets[up, octet] = time
        self.shown[up].add(start, end)


def _seen(packets: Sequence[Passed]) -> Mapping[_Ends, _Seen]:
    """The first connection of each pair of ends."""
    found: dict[_Ends, _Seen] = {}
    for item in packets:
        tcp, time = item.sighting.content, item.sighting.time
        seen = found.setdefault(_ends(tcp, up=item.up), _Seen(time))
        if tcp.flags & SYN:
            seen.over |= seen.numbers.setdefault(item.up, tcp.seq) != tcp.seq
        elif item.up in seen.numbers and tcp.size and not seen.over:
            place = (tcp.seq - seen.numbers[item.up] - 1) % MODULUS
            seen.add(item.up, place, place + tcp.size, time)
    return found


def bounds(client: Sequence[Passed], server: Sequence[Passed]) -> tuple[float, float]:
    """See :class:`Sides`: what has come out of the box had gone in before."""
    here, there = _seen(client), _seen(server)
    least, most = -math.inf, math.inf
    for one, other in _pairs(here, there):
        most = min(most, other.began - one.began)
        for key in one.octets.keys() & other.octets.keys():
            apart = other.octets[key] - one.octets[key]
            least, most = (least, min(most, apart)) if key[0] else (max(least, apart), most)
    if most == math.inf:
        raise ValueError("have no connection in common: do they show both sides of one box?")
    if all(one.numbers == other.numbers for one, other in _pairs(here, there)):
        raise ValueError(
            "show the same segments: take each on one interface of the box, one towards its "
            "clients and one towards servers; what it leaves whole is not judged."
        )
    return least, most


def _pairs(
    here: Mapping[_Ends, _Seen], there: Mapping[_Ends, _Seen]
) -> Iterator[tuple[_Seen, _Seen]]:
    """Connections with the same ends; where a box calls by its own, those alone to one server."""
    shared = here.keys() & there.keys()
    if shared:
        yield from ((here[ends], there[ends]) for ends in shared)
        return
    for ends, one in here.items():
        if sum(each[2:] == ends[2:] for each in here) == 1:
            others = [seen for each, seen in there.items() if each[2:] == ends[2:]]
            if len(others) == 1:
                yield one, others[0]


def flows(trace: Trace) -> list[Relay]:
    """See :class:`Sides`."""
    found = read_flows(trace)
    for each in found:
        if isinstance(each, Scene):
            # Nobody has asked the path: it may have been disturbed all the time.
            each.quiet_since = each.repaired_at = math.inf
    return [each for each in found if isinstance(each, Relay)]


def ends(relay: Relay) -> tuple[End, End]:
    """See :class:`Sides`."""
    client, cport, server, sport = relay.client.ends
    return (client, cport), (server, sport)


def going_on(relay: Relay) -> set[str]:
    """See :class:`Sides`; where no call is seen, it may yet come."""
    ended = {leg.side for leg in relay.legs if _has_ended(leg)}
    return {CLIENT, SERVER} - ended


def _has_ended(leg: Leg) -> bool:
    both = leg.own.fin is not None and leg.box.fin is not None
    return both or any(it.tcp.flags & RST and it.counts for it in leg.segments)


def lacking(relay: Relay) -> str:
    """See :class:`Sides`."""
    if relay.server is None:
        return "the server's side shows no call for it"
    if relay.is_whole:
        return "the box has left it whole"
    for leg in relay.legs:
        if _is_one_way(leg):
            return f"the capture on the {leg.side}'s side lacks the answers to calls"
        if _has_gaps(leg, by_box=True) or _has_gaps(leg, by_box=False):
            return f"the capture on the {leg.side}'s side lacks packets that passed"
    return ""


def _is_one_way(leg: Leg) -> bool:
    """Whether the caller acknowledges what the capture does not show."""
    calls = leg.side == SERVER
    return leg.answered is None and any(
        it.outgoing == calls and it.tcp.flags & ACK and not it.tcp.flags & RST
        for it in leg.segments
    )


def _has_gaps(leg: Leg, *, by_box: bool) -> bool:
    """Whether octets are acknowledged that the capture does not show."""
    shown, acknowledged, end = RangeSet(), 0, None
    for it in leg.segments:
        if it.tcp.flags & (SYN | RST):
            continue
        if it.outgoing == by_box:
            if it.payload:
                shown.add(it.start, it.end)
            end = it.fin if end is None else end
        elif it.ack is not None:
            acknowledged = max(acknowledged, it.ack)
    needed = acknowledged if end is None else min(acknowledged, end)
    return needed > 0 and not shown.covers(0, needed)


def unjudgeable(requirement: str, relay: Relay) -> str:
    """See :class:`Sides`."""
    if requirement not in JUDGED:
        return "captures from elsewhere do not show what else was going on"
    if requirement in _SIZES and any(map(_is_merged, relay.legs)):
        return "the capturing host merged segments, or had not cut them yet"
    return ""


def _is_merged(leg: Leg) -> bool:
    for half, outgoing in ((leg.own, True), (leg.box, False)):
        most = DEFAULT_MSS if half.first is None else half.first.mss or DEFAULT_MSS
        if any(it.outgoing == outgoing and it.tcp.size > 2 * most for it in leg.segments):
            return True
    return False


SIDES = Sides(passed, bounds, flows, ends, going_on, lacking, unjudgeable)
