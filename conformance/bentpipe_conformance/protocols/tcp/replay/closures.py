"""Times of zero window, and what the sender does during and after them."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field

from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Reply, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.order import later
from bentpipe_conformance.protocols.tcp.replay.recovery import PROMPT_S, may_be_timed
from bentpipe_conformance.protocols.tcp.replay.round_trips import measurements
from bentpipe_conformance.protocols.tcp.replay.users import data_waited, echoes


@dataclass(slots=True, eq=False)
class Closure:
    """A time of zero window with nothing outstanding but probes.

    Attributes:
        start: the acknowledgment of everything sent that left a window of zero.
        rtt, longest_rtt: smallest and largest round trip measured before, in seconds.
        longest_timeout: seconds that no timeout exceeds given those, and how often the timer has
            expired since the last of them (RFC 6298 section 5.7).
        probes: what a timer sent into it, in order.
        answered: acknowledgments that reached the sender and left the window at zero.
        arrivals: when any acknowledgment reached the sender, acceptable or not.
        end: the acknowledgment that opened it; None when the trace ends before, or when
            an acknowledgment that may have been heeded offers room.
        resumed: the first data sent after it opened, None when there was none.
        until: time of the opening, or of the end of the trace.
        waiting: whether the sender certainly had more to send than had left before.
        waited_from: since when it certainly has had; None when that is not known.
        ended_from: since when its FIN waits, perhaps behind data: its user ended its stream by then
            as its peer did; None when it has left, or when that is not known.
        renewed: whether the window may have been closed all the time since the closure before,
            and the timer have gone on.
    """

    start: Ack
    rtt: float
    longest_rtt: float
    longest_timeout: float
    probes: list[Reply] = field(default_factory=list)
    answered: list[Ack] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    end: Ack | None = None
    resumed: Sent | None = None
    until: float = 0.0
    waiting: bool = False
    waited_from: float | None = None
    ended_from: float | None = None
    renewed: bool = False

    @property
    def duration(self) -> float:
        """Seconds of zero window."""
        return self.until - self.start.time

    def silence_after(self, time: float) -> float:
        """Seconds of zero window since ``time``, or since anything told of the window later."""
        told = (item for item in self.arrivals if item < self.until)
        return self.until - max((time, *told))

    @property
    def data_waited_s(self) -> float:
        """Seconds at its end in which the sender, certainly with data to send, heard nothing."""
        return 0.0 if self.waited_from is None else self.silence_after(self.waited_from)

    @property
    def fin_waited_s(self) -> float:
        """Seconds at its end in which a FIN waited that leaves when it opens, and nothing came."""
        left = self.resumed is not None and self.resumed.fin and not self.resumed.timed
        if self.ended_from is None or not left:
            return 0.0
        probed = self.probes[-1].time if self.probes else self.start.time
        return self.silence_after(max(self.ended_from, probed))

    def data_waits(self, *, keep_alive: bool) -> bool:
        """Whether the sender certainly had data to send: it probed, or sent when it could.

        Where users ask for keep-alives (RFC 9293 section 3.8.4), probes alone do not show that.
        """
        waited = self.waited_from is not None
        if self.probes:
            return waited or not keep_alive
        return waited and self.resumed is not None and not self.resumed.timed


def _is_octet(event: Reply, closure: Closure, flow: Flow) -> bool:
    """Whether it is a probe although something has just arrived: an octet beyond the window."""
    return event.payload == 1 and event.time - closure.start.time > flow.reaction


ENDED_S = 5.0
"""Seconds after which a user of the suite's ends its stream once its peer has (SNR-CON-035)."""


def _user_ends(flow: Flow) -> float:
    """When a service has certainly ended its stream, since its peer had; infinity if never."""
    if flow.handshake.iut_opens or flow.iut[1] not in STANDARD_SERVICES.values():
        return math.inf
    fin = next((item for item in flow.arrivals if item.fin and item.in_order), None)
    if fin is None:
        return math.inf
    replies = later(flow.replies, fin.packet)
    return next((item.time for item in replies if item.ack >= fin.end), math.inf) + ENDED_S


def read_closures(flow: Flow) -> tuple[Closure, ...]:
    """The closures of one flow, in order."""
    measured = measurements(flow)
    sampled = set(measured.sampled)
    found: list[Closure] = []
    current: Closure | None = None
    opened: Closure | None = None
    # What has RST, SYN or no ACK is no event, and may be answered by an acknowledgment (RFC 5961,
    # RFC 9293 section 3.10.7.4, first).
    challenges = [
        item.time for item in flow.arriving
        if item.tcp.flags & (RST | SYN) or not item.tcp.flags & ACK
    ]  # fmt: skip
    arrived = 0.0
    ended = _user_ends(flow)
    told = edge = expired = highest = 0
    doubted = own_end = False
    echoing = echoes(flow)
    answer = flow.handshake.answer
    following = None if answer is None else (answer.seq + 1 + answer.size) % MODULUS
    for event in flow.events:
        if isinstance(event, Arrival):
            arrived = event.time
        elif isinstance(event, Ack):
            arrived = event.time
            if current is not None:
                current.arrivals.append(event.time)
            if event.may_heed and event.window > 0 and current is not None:
                current.until = event.time  # it may have opened the window
                current, doubted = None, True
            if not event.acceptable:
                continue
            doubted = doubted and event.window == 0
            expired = 0 if event.packet.number in sampled else expired
            if current is not None and event.window > 0:
                current.end, current.until = event, event.time
                opened, current = current, None
            elif current is not None:
                current.answered.append(event)
            elif event.window == 0 and event.ack >= event.max:
                number = event.packet.number
                trips, waiting = measured.before(number), data_waited(flow, event)
                current = Closure(
                    event, trips.smallest if measured.samples(number) else 0.0, trips.largest,
                    trips.longest_after(expired), until=event.time, waiting=waiting,
                    waited_from=event.time if waiting else None, renewed=doubted,
                    ended_from=None if own_end else max(ended, event.time),
                )  # fmt: skip
                found.append(current)
        elif isinstance(event, Reply):
            # The FIN that an acknowledgment may cover is not echoed.
            owed = echoing and event.ack - 1 > highest
            if current is not None and owed and current.waited_from is None:
                current.waited_from = event.time
            # A delayed acknowledgment of what has arrived is not a probe.
            news, told = event.ack > told and not event.payload, max(told, event.ack)
            # Nor is an offer of more room, the user having read.
            offers, edge = event.window_edge > edge and not event.payload, event.window_edge
            if news:
                continue
            # An acknowledgment carries SND.NXT, a probe without data the number before it.
            latest = bisect_right(challenges, event.time)
            arrived = max(arrived, challenges[latest - 1]) if latest else arrived
            probing = (event.tcp.seq + 1) % MODULUS == following
            # Some answer at once with a number below SND.NXT, which is no probe.
            probing = probing and (event.payload > 0 or event.time - arrived > PROMPT_S)
            timed = event.time - arrived > flow.reaction and not offers
            if current is not None and (probing or timed or _is_octet(event, current, flow)):
                current.probes.append(event)
        elif isinstance(event, Sent):
            highest = max(highest, event.end)
            own_end = own_end or event.fin
            if current is not None and event.fin:
                current.ended_from = None
            # What is new and leaves into a closed window is a probe: the timer backs off.
            expired += may_be_timed(event) or (event.new and current is not None)
            if event.new:
                following = (event.tcp.seq + event.tcp.length) % MODULUS
            if opened is not None:
                opened.resumed, opened = event, None
    if current is not None:
        current.until = max(flow.horizon, current.start.time)
    return tuple(found)
