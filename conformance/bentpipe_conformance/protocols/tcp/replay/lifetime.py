"""When a connection began and ended, as far as its packets show, and what arrived for none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeVar

from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN
from bentpipe_conformance.protocols.tcp.replay.answers import THROTTLED_S
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Segment, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.order import count_before, later, latest_first
from bentpipe_conformance.protocols.tcp.replay.resets import Expected, latest_before

_E = TypeVar("_E", bound=Segment)

LEAST_TIME_WAIT_S = 30.0
"""Seconds of TIME-WAIT that an implementation has to keep at least, unless it is permitted less."""


GIVEN_UP_S = 60.0
"""Seconds of silence after which the IUT may have given up, without a word, what it waited for."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The turning points of a connection; each None if it never came.

    Attributes:
        established: the acknowledgment that completed the handshake.
        own_fin: the first segment of the IUT with its FIN.
        fin: the first segment of the tester with its FIN that arrived in sequence.
        closed: that segment, or what filled the gap below a FIN that had arrived before.
        own_fin_acked: the acknowledgment of the IUT's FIN.
        reset: the tester's RST that the IUT must have heeded: at the next expected octet, or one
            that acknowledges the IUT's SYN.
    """

    established: Ack | None
    own_fin: Sent | None
    fin: Arrival | None
    closed: Arrival | None
    own_fin_acked: Ack | None
    reset: Segment | None

    @property
    def iut_closed_first(self) -> bool:
        """Whether the IUT's FIN left before the tester's arrived."""
        if self.own_fin is None:
            return False
        return self.closed is None or self.own_fin.packet.number < self.closed.packet.number

    @property
    def time_wait(self) -> float | None:
        """When the TIME-WAIT of an IUT that closed first began: both FINs are acknowledged."""
        if not self.iut_closed_first or self.closed is None or self.own_fin_acked is None:
            return None
        return max(self.closed.time, self.own_fin_acked.time)

    @property
    def over(self) -> int | None:
        """Number of the packet after which the IUT has no connection any more."""
        ends = [] if self.reset is None else [self.reset.packet.number]
        acked, closed = self.own_fin_acked, self.closed
        if acked is not None and closed is not None and not self.iut_closed_first:
            ends.append(max(acked.packet.number, closed.packet.number))
        return min(ends, default=None)


def read_lifetime(flow: Flow) -> Lifetime:
    """The turning points of one connection."""
    sure = (ack for ack in flow.acks if ack.acceptable and not ack.may_refuse)
    established = next(sure, None)
    own_fin = next((sent for sent in flow.sent if sent.fin), None)
    fin = next((item for item in flow.arrivals if item.fin and _received(item)), None)
    acked = None
    if own_fin is not None:
        covering = (a for a in flow.acks if a.acceptable and a.ack >= own_fin.end)
        acked = next((a for a in covering if a.packet.number > own_fin.packet.number), None)
    resets = (Segment(item) for item in flow.resets if not item.outgoing)
    # One whose options cannot be read may be dropped.
    sound = (item for item in resets if item.tcp.options_ok)
    expected = Expected(flow)
    heeded = next((item for item in sound if expected.is_next(item) or _refuses(flow, item)), None)
    return Lifetime(established, own_fin, fin, fin or _filled(flow), acked, heeded)


def _refuses(flow: Flow, reset: Segment) -> bool:
    """Whether a RST ends the attempt to connect (RFC 9293 section 3.10.7.3, second)."""
    syn, answer = flow.handshake.answer, flow.handshake.tester
    if syn is None or not flow.handshake.iut_opens or not reset.tcp.flags & ACK:
        return False
    early = answer is None or reset.packet.number < answer.number
    return early and reset.tcp.ack == (syn.seq + 1) % MODULUS


def _filled(flow: Flow) -> Arrival | None:
    """What filled the gap below a FIN, which is acknowledged then."""
    ends = {item.end: item for item in flow.arrivals if item.fin and item.out_of_order}
    for reply in flow.replies if ends else ():
        fin = ends.get(reply.ack)
        if fin is not None and fin.packet.number < reply.packet.number:
            return reply.last_arrival
    return None


def _received(fin: Arrival) -> bool:
    """Whether a FIN has arrived in sequence, and not with what the window has cut off."""
    if not fin.in_order:  # below what is held above a gap, which it belies
        return fin.end > fin.expected and any(reply.ack == fin.end for reply in fin.replies)
    return fin.end <= fin.window_edge or any(reply.ack >= fin.end for reply in fin.replies)


def least_end(flow: Flow) -> float:
    """The lowest end that the tester has named of its stream by a FIN; infinity without one.

    What it sends above that, before or after it, contradicts it. A FIN below what has been received
    in sequence names none.
    """
    fins = (item.end for item in flow.arrivals if item.fin and item.end > item.expected)
    return min(fins, default=math.inf)


def leaving_after(
    flow: Flow, segment: Segment, within: float, match: Callable[[Segment], bool]
) -> Segment | None:
    """The first matching segment that left after ``segment``, ``within`` seconds at most."""
    for item in later(flow.leaving, segment.packet):
        if item.time - segment.time > within:
            return None
        if match(item):
            return item
    return None


def may_have_given_up(flow: Flow, segment: Segment) -> bool:
    """Whether the IUT was silent for so long before that it may have no connection any more."""
    latest = latest_before(flow, segment.packet.number)
    return latest is None or segment.time - latest.time > GIVEN_UP_S


def lasts(flow: Flow, segment: Segment, seconds: float) -> bool:
    """Whether the capture goes on for so long after a segment."""
    return flow.last_time - segment.time > seconds


def throttled(flow: Flow, odd: Segment) -> bool:
    """Whether something else that is odd had to be answered so lately that a limit may hold."""
    since, opened = odd.time - THROTTLED_S, flow.handshake.tester

    def lately(events: Sequence[_E]) -> Iterator[_E]:
        before = latest_first(events, count_before(events, odd.packet.number))
        return takewhile(lambda item: item.time > since, before)

    return (
        any(s.tcp.flags & (SYN | RST) and s.packet is not opened for s in lately(flow.arriving))
        or any(not ack.acceptable for ack in lately(flow.acks))
        or any(not arrival.acceptable for arrival in lately(flow.arrivals))
    )


def strays(flow: Flow, lifetime: Lifetime) -> Iterator[Segment]:
    """What arrived at the IUT while it certainly had no connection for it.

    At a port on which something listens a SYN opens one, and a segment without ACK need not be
    answered (RFC 9293 section 3.10.7.2); neither is mentioned.
    """
    begins = not flow.arriving or flow.arriving[0].tcp.flags & SYN
    if flow.handshake.iut_opens or (not begins and any(not is_reset(s) for s in flow.leaving)):
        return  # the IUT called, or the capture begins in the middle of the connection
    # That nobody called a service in this trace does not show that nothing listens there.
    listens = flow.listening or flow.iut[1] in STANDARD_SERVICES.values()
    closed = flow.handshake.iut is None and not listens
    begun = math.inf if closed else next(
        (s.packet.number for s in flow.arriving if s.tcp.flags & (SYN | ACK) == SYN), math.inf
    )  # fmt: skip
    over = lifetime.over
    for item in flow.arriving:
        number, flags = item.packet.number, item.tcp.flags
        if over is not None and number > over and flags & SYN:
            return
        if begun <= number and (over is None or number <= over):
            continue
        # One whose options cannot be read may be dropped.
        if (closed or flags & (RST | ACK)) and item.tcp.options_ok:
            yield item


def answers_as_none(reset: Segment, segment: Segment) -> bool:
    """Whether a RST has the numbers that RFC 9293 section 3.10.7.1 gives it for a segment."""
    tcp, answer = segment.tcp, reset.tcp
    if tcp.flags & ACK:
        return answer.seq == tcp.ack
    acknowledged = answer.flags & ACK and answer.ack == (tcp.seq + tcp.length) % MODULUS
    return bool(acknowledged) and answer.seq == 0


def is_early(flow: Flow, segment: Segment) -> bool:
    """Whether it acknowledges something else than the SYN that is still to be acknowledged.

    A RST answers that (RFC 9293 section 3.10.7.3, first, and section 3.10.7.4, fifth).
    """
    handshake, syn = flow.handshake, flow.handshake.answer
    opened = handshake.established is not None and handshake.established < segment.time
    return not opened and syn is not None and segment.tcp.ack != (syn.seq + 1) % MODULUS


def is_reset(segment: Segment) -> bool:
    """Whether a segment is a RST."""
    return bool(segment.tcp.flags & RST)


def reset_by_sender(flow: Flow, after: float, before: float) -> Segment | None:
    """The implementation's RST in that time, unless the tester's came first."""
    first = next((packet for packet in flow.resets if packet.time >= after), None)
    return Segment(first) if first and first.outgoing and first.time <= before else None


def silent_before(flow: Flow, reset: Segment) -> float:
    """Seconds for which nothing had arrived when a RST left."""
    heard = (item.time for item in flow.arriving if item.packet.number < reset.packet.number)
    return reset.time - max(heard, default=0.0)
