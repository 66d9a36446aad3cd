"""Times of zero window, and what the sender does during and after them."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_conformance.protocols.tcp.codec import MODULUS
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Reply, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.round_trips import RoundTrips
from bentpipe_conformance.protocols.tcp.replay.users import data_waited


@dataclass(slots=True, eq=False)
class Closure:
    """A time of zero window with nothing outstanding but probes.

    Attributes:
        start: the acknowledgment of everything sent that left a window of zero.
        rtt, longest_rtt: smallest and largest round trip measured before, in seconds.
        longest_timeout: seconds that no timeout exceeds given those.
        probes: what a timer sent into it, in order.
        answered: acknowledgments that reached the sender and left the window at zero.
        end: the acknowledgment that opened it; None when the trace ends before.
        resumed: the first data sent after it opened, None when there was none.
        until: time of the opening, or of the end of the trace.
        waiting: whether the sender certainly had more to send than had left before.
    """

    start: Ack
    rtt: float
    longest_rtt: float
    longest_timeout: float
    probes: list[Reply] = field(default_factory=list)
    answered: list[Ack] = field(default_factory=list)
    end: Ack | None = None
    resumed: Sent | None = None
    until: float = 0.0
    waiting: bool = False

    @property
    def duration(self) -> float:
        """Seconds of zero window."""
        return self.until - self.start.time

    @property
    def data_waits(self) -> bool:
        """Whether the sender certainly had data to send: it probed, or sent when it could."""
        resumed = self.resumed is not None and not self.resumed.timed
        return bool(self.probes) or (resumed and self.waiting)


def read_closures(flow: Flow) -> tuple[Closure, ...]:
    """The closures of one flow, in order."""
    trips = RoundTrips(flow)
    found: list[Closure] = []
    current: Closure | None = None
    opened: Closure | None = None
    arrived = 0.0
    told = 0
    following: int | None = None
    for event in flow.events:
        if isinstance(event, Arrival):
            arrived = event.time
        elif isinstance(event, Ack):
            arrived = event.time
            if not event.acceptable:
                continue
            if event.advance:
                trips.acknowledged(event)
            if current is not None and event.window > 0:
                current.end, current.until = event, event.time
                opened, current = current, None
            elif current is not None:
                current.answered.append(event)
            elif event.window == 0 and event.ack >= event.max:
                current = Closure(
                    event, trips.smallest, trips.largest, trips.longest_timeout, until=event.time,
                    waiting=data_waited(flow, event),
                )  # fmt: skip
                found.append(current)
        elif isinstance(event, Reply):
            # A delayed acknowledgment of what has arrived is not a probe.
            news, told = event.ack > told and not event.payload, max(told, event.ack)
            if news:
                continue
            # An acknowledgment carries SND.NXT, a probe without data the number before it.
            probing = (event.tcp.seq + 1) % MODULUS == following
            if current is not None and (probing or event.time - arrived > flow.reaction):
                current.probes.append(event)
        elif isinstance(event, Sent):
            trips.sent(event)
            if event.new:
                following = (event.tcp.seq + event.tcp.length) % MODULUS
            if opened is not None:
                opened.resumed, opened = event, None
    if current is not None:
        current.until = max(flow.horizon, current.start.time)
    return tuple(found)
