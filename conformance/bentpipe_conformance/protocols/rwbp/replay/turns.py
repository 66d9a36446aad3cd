"""Whose turn it was: the packets with data that left by a link, and who else could send (9.2).

A packet leaves the IP queue some time after its turn. Its turn came not before the packet that left
IPQ places earlier had left, for until then the queue was full; not before the turn before; and not
before it could be sent itself. A connection is said to have been able to send only where what it
sent next could have been sent before that.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bentpipe_conformance.protocols.rwbp.replay import Packet
from bentpipe_conformance.protocols.rwbp.replay.events import Ack, Sent, Why
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.link import Link

ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class Turn:
    """A packet with data or FIN that left.

    Attributes:
        packet: the packet.
        place: of its connection in the ring.
        sent: what it was, None on a connection without RWBP.
        rivals: places of all connections that surely could send at its turn, in place of this
            packet or after it: with the place of this one if it could send once more.
        repair: whether a retransmission of its connection surely waited.
    """

    packet: Packet
    place: int
    sent: Sent | None
    rivals: frozenset[int]
    repair: bool

    @property
    def octets(self) -> int:
        """Of the IP packet."""
        return len(self.packet.data)


class _Claims:
    """From when on each packet of a connection could be sent."""

    def __init__(self, flow: Flow) -> None:
        self.sent = flow.sent
        self.numbers = [item.packet.number for item in flow.sent]
        self._flow = flow
        least = self._longest_sample() / 2
        self._reordered = bool(flow.sender.missed) or any(
            item.repaired is None or ack.time - item.repaired < least
            for ack in flow.acks for item in ack.arrived if item.suspect
        )  # fmt: skip
        acks = [ack for ack in flow.acks if ack.counts]
        # What the window of a SYN or SYN-ACK permits, nothing later has made room for.
        offer = flow.opening.offer
        self._edges = [offer.window if offer is not None else 0, *(ack.edge_after for ack in acks)]
        self._unas = [0, *(max(ack.una, ack.ack) for ack in acks)]
        for index in range(1, len(self._unas)):
            self._unas[index] = max(self._unas[index], self._unas[index - 1])
        self._times = [self._opened(), *(ack.time for ack in acks)]
        self.surely = [self._surely(item, index) for index, item in enumerate(flow.sent)]

    def _longest_sample(self) -> float:
        """RTTMIN at most.

        What is measured is counted from its turn, and so are repairs (section 8.2): the wait in the
        IP queue is in it, which no packet shows but after a SYN, which has its answer made at once.
        """
        opening, established = self._flow.opening, self._flow.established
        if opening.iut_calls or len(opening.own) != 1 or established is None:
            return math.inf
        return established - opening.theirs[0].time

    def _opened(self) -> float:
        """When the connection could first send: by a SYN-ACK, or what answers that of the IUT."""
        opening = self._flow.opening
        if opening.iut_calls and opening.theirs:
            return opening.theirs[0].time
        return self._flow.established or 0.0

    def _surely(self, item: Sent, index: int) -> float | None:
        """From when on a packet surely could be sent; None where that is not known.

        One of two copies one behind the other may have been made by a timeout before it was taken
        for lost.
        """
        flow = self._flow
        if item.why is Why.LOST:
            beside = (*flow.sent[max(0, index - 1) : index], *flow.sent[index + 1 : index + 2])
            if self._reordered or any(other.start == item.start for other in beside):
                return None
            return max((ack.time for ack in _causes(flow, item)), default=None)
        whole = item.payload == flow.sender.smss and not item.fin
        if item.why is not Why.NEW or flow.service != "chargen" or not whole:
            return None
        room = self._room(item)
        held = bisect_left(self._unas, item.end - flow.sender.buffer)
        return max(room, self._times[held]) if held < len(self._times) else None

    def _room(self, item: Sent) -> float:
        """From when on the window had room for a new segment."""
        room = bisect_left(self._edges, item.end)
        return self._times[room] if room < len(self._times) else math.inf

    def earliest(self, index: int) -> float:
        """A time before which a packet was not sent: a new one had no room.

        Of a retransmission it is not known: a timeout may have made it, or, for what the
        implementation knows of its own queue, an earlier acknowledgment.
        """
        item = self.sent[index]
        room = self._room(item) if item.why is Why.NEW else -math.inf
        return room if room < item.time else -math.inf

    def following(self, number: int) -> int | None:
        """The index of the next packet after the one with this number."""
        at = bisect_left(self.numbers, number + 1)
        return at if at < len(self.numbers) else None


def _causes(flow: Flow, item: Sent) -> Iterator[Ack]:
    """The acknowledgments by which a segment had been taken for lost."""
    for ack in flow.acks:
        if ack.packet.number > item.packet.number:
            return
        if item.outgoing in ack.taken:
            yield ack


def _opened(flow: Flow) -> int:
    """What orders the ring: the number of the packet with the first SYN."""
    syns = [*flow.opening.theirs[:1], *flow.opening.own[:1]]
    return min((syn.packet.number for syn in syns), default=flow.packets[0].number)


def read_turns(link: Link[Flow], places: int, slack: float) -> list[Turn]:
    """The turns of a link in order.

    Args:
        link: the link.
        places: IPQ.
        slack: seconds by which the order of an arrival and a departure may be wrong.
    """
    ring = sorted(link.flows, key=_opened)
    claims = [_Claims(flow) for flow in ring]
    place_of = {id(flow): place for place, flow in enumerate(ring)}
    by_number = [
        {item.packet.number: index for index, item in enumerate(flow.sent)} for flow in ring
    ]
    turns: list[Turn] = []
    earliest = link.began
    for position, passed in enumerate(link.passed):
        if not passed.with_data or passed.flow is None:
            continue
        number, place = passed.packet.number, place_of[id(passed.flow)]
        index = by_number[place].get(number)
        if position >= places:
            earliest = max(earliest, link.passed[position - places].packet.time)
        if index is not None:
            earliest = max(earliest, claims[place].earliest(index))
        before = earliest - slack - ROUNDING_S
        rivals = frozenset(
            rival for rival, claim in enumerate(claims)
            if (following := claim.following(number)) is not None
            and (begins := claim.surely[following]) is not None and begins < before
        )  # fmt: skip
        sent = claims[place].sent[index] if index is not None else None
        turns.append(
            Turn(passed.packet, place, sent, rivals, _repair(claims[place], number, before))
        )
    return turns


def _repair(claim: _Claims, number: int, before: float) -> bool:
    """Whether a retransmission of the connection left later that could have left before."""
    at = claim.following(number)
    if at is None:
        return False
    since, item = claim.surely[at], claim.sent[at]
    return item.why is Why.LOST and since is not None and since < before


def passed_over(turns: Sequence[Turn], index: int, ring: int) -> frozenset[int]:
    """The connections that could send and stand between a turn and the next one in the ring."""
    last, turn = turns[index - 1], turns[index]
    steps = (turn.place - last.place) % ring or ring
    between = {(last.place + step) % ring for step in range(1, steps)}
    return frozenset(between & turn.rivals)
