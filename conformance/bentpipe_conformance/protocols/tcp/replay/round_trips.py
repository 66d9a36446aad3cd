"""The round-trip times an implementation could measure."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right, insort
from collections import deque

from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.codec import SYN
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Segment, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow

MOST_DOUBLINGS = 6
"""Of a timeout that may be limited to a minute or more (RFC 6298 rule 2.5)."""

FIRST_TIMEOUT_S = 0.99
"""Shortest timeout before a measurement (RFC 6298 rule 2.1), less a tick of the bed's clock."""

INITIAL_TIMEOUT_S = 3.0
"""Longest timeout before any measurement (RFC 1122 section 4.2.3.1, RFC 6298 rule 5.7)."""

TIMEOUT_RTTS = 5.0
"""SRTT + 4 * RTTVAR, with neither above the largest sample (RFC 6298 section 2)."""


@record
class RoundTrips:
    """The round-trip times measured until some moment (Karn's rule, RFC 6298 section 3).

    Attributes:
        smallest, largest: seconds; 0.0 before the first.
        echoed: the largest age of an echoed timestamp, seconds: with timestamps retransmitted
            segments are measured too (RFC 7323 section 4), which ``smallest`` includes.
    """

    smallest: float
    largest: float
    echoed: float

    @property
    def longest_timeout(self) -> float:
        """Seconds that no timeout without back-off exceeds, but for the timer's own ticks."""
        return max(INITIAL_TIMEOUT_S, TIMEOUT_RTTS * max(self.largest, self.echoed))

    def longest_after(self, expired: int) -> float:
        """Seconds that no timeout exceeds that has expired so often (RFC 6298 rule 5.5)."""
        return self.longest_timeout * 2.0 ** min(expired, MOST_DOUBLINGS)


class Measurements:
    """All round-trip times that the IUT could measure on a connection, and when.

    Few measurements are the smallest or the largest so far, so that few states are kept.

    Attributes:
        minimum: the smallest of all samples and ages, seconds; infinity without any.
        sampled: numbers of the packets that brought a sample for certain: of several segments the
            first since the last retransmission is timed by everybody, any other perhaps, and so is
            a probe of a closed window.
    """

    def __init__(self, flow: Flow) -> None:
        self.minimum = math.inf
        self.sampled = array("q")
        self._smallest = self._largest = self._echoed = 0.0
        self._opening = math.inf
        # Ends of what was new, and when it left: what is unacknowledged, and of that what has left
        # once and was not reported.
        self._pending: deque[tuple[int, float]] = deque()
        self._unheard: list[tuple[int, float]] = []
        self._spoiled: set[int] = set()
        self._fresh: int | None = None
        self._edge = math.inf  # offered last; it may have moved back
        opened, self._stamped = _departures(flow)
        established = flow.handshake.established
        self._of_handshake = 0
        # A repeated SYN or SYN-ACK does not tell which copy was answered, but for its timestamp.
        if len(opened) == 1 and established is not None:
            self._take(established - opened[0])
            self._of_handshake = 1
        elif established is not None:
            self._echo(answer_of_handshake(flow, established).tcp.tsecr, established)
            self._smallest = self._echoed
            # That measurement is one that need not be taken.
            self._opening, self.minimum = self.minimum, math.inf
        self._numbers = [-1]
        self._states = [RoundTrips(self._smallest, self._largest, self._echoed)]
        for event in flow.events:
            if isinstance(event, Sent):
                self._sent(event)
            elif isinstance(event, Ack):
                self._edge = event.window_edge
                if event.advance or event.newly_sacked:
                    self._acknowledged(event)

    def before(self, number: float) -> RoundTrips:
        """What had been measured when the packet of a number passed, by itself included."""
        return self._states[bisect_right(self._numbers, number) - 1]

    def samples(self, number: float) -> int:
        """How many samples there were for certain by then, that of the handshake included."""
        return self._of_handshake + bisect_right(self.sampled, number)

    @property
    def at_first(self) -> RoundTrips:
        """What the handshake measures."""
        return self._states[0]

    @property
    def at_last(self) -> RoundTrips:
        """What has been measured in the end."""
        return self._states[-1]

    def _take(self, sample: float) -> None:
        if sample > self._largest:
            self._largest = sample
        self._smallest = self.minimum = min(self.minimum, self._opening, sample)

    def _sent(self, item: Sent) -> None:
        """Note a transmission."""
        if item.retransmission:
            self._spoiled.add(item.end)
            self._forget(item.start, item.end)
            self._fresh = None
            return
        left = item.end, item.time
        self._pending.append(left)
        if self._unheard and left < self._unheard[-1]:
            insort(self._unheard, left)
        else:
            self._unheard.append(left)
        if item.end <= self._edge:
            self._fresh = self._fresh or item.end

    def _forget(self, start: float, end: int) -> list[tuple[int, float]]:
        """What ends within (start, end], which is not looked for again."""
        among = slice(
            bisect_right(self._unheard, (start, math.inf)),
            bisect_right(self._unheard, (end, math.inf)),
        )
        found = self._unheard[among]
        del self._unheard[among]
        return found

    def _acknowledged(self, ack: Ack) -> None:
        """Note an acknowledgment; one of new data, or a report of it, may be a measurement.

        What a SACK block reports was on its way no longer, whatever is missing below it.
        """
        before = self._smallest, self._largest, self._echoed
        for block in ack.blocks if ack.newly_sacked else ():
            for _, left in self._forget(*block):
                self._take(ack.time - left)
        if ack.advance:
            self._advanced(ack, ack.ack, ack.tcp.tsecr)
        now = self._smallest, self._largest, self._echoed
        if now != before:
            self._numbers.append(ack.packet.number)
            self._states.append(RoundTrips(*now))

    def _advanced(self, ack: Ack, number: int, echoed: int | None) -> None:
        self._forget(-math.inf, number)
        end, left = -1, 0.0
        while self._pending and self._pending[0][0] <= number:
            end, left = self._pending.popleft()
        if end == number and end not in self._spoiled:
            self._take(ack.time - left)
            timed = self._fresh is not None and number >= self._fresh
            if timed or echoed in self._stamped:
                self.sampled.append(ack.packet.number)
        self._echo(echoed, ack.time)

    def _echo(self, echoed: int | None, time: float) -> None:
        stamped_at = self._stamped.get(echoed) if echoed is not None else None
        if stamped_at is not None:
            age = time - stamped_at
            if age > self._echoed:
                self._echoed = age
            if age < self.minimum:
                self.minimum = min(self._opening, age)
            if age < self._smallest and (self._of_handshake or self.sampled):
                self._smallest = age


def answer_of_handshake(flow: Flow, established: float) -> Segment:
    """The segment that established a connection at a time, or the last that had come by then."""
    first = bisect_left(flow.arriving, established, key=_arrived)
    last = bisect_right(flow.arriving, established, key=_arrived) - 1
    return flow.arriving[min(first, last)]


def _arrived(segment: Segment) -> float:
    return segment.time


@remembered
def _departures(flow: Flow) -> tuple[list[float], dict[int, float]]:
    """When the IUT sent its SYNs, and when it first sent each timestamp value."""
    opened: list[float] = []
    stamped: dict[int, float] = {}
    timestamps = flow.handshake.timestamps
    for segment in flow.leaving:
        tcp = segment.tcp
        if tcp.flags & SYN:
            opened.append(segment.time)
        if tcp.tsval is not None and timestamps:
            stamped.setdefault(tcp.tsval, segment.time)
    return opened, stamped


@remembered
def measurements(flow: Flow) -> Measurements:
    """All that the IUT could measure; remembered for the flow at hand: many checkers ask."""
    return Measurements(flow)


@remembered
def _measured_from(flow: Flow) -> float:
    """When data was acknowledged first that everybody times; infinity when never."""
    sampled = measurements(flow).sampled
    if not sampled:
        return math.inf
    return next(ack.time for ack in flow.acks if ack.packet.number == sampled[0])


def timed_rtt(flow: Flow, at: float) -> float:
    """The smallest round-trip time, as far as a timeout certainly follows it at a time.

    Before data is measured, and a handshake need not be, the timeout may be a second, however long
    a round trip takes (RFC 6298 rule 2.1).
    """
    rtt = minimum_rtt(flow)
    return rtt if at > _measured_from(flow) else min(rtt, FIRST_TIMEOUT_S)


@remembered
def _deliveries(flow: Flow) -> tuple[list[int], list[float]]:
    """Numbers of the packets that report something delivered, with the longest way until then."""
    starts: list[int] = []
    left: dict[int, float] = {}
    numbers: list[int] = []
    longest: list[float] = [0.0]
    for event in flow.events:
        if isinstance(event, Sent):
            if event.start not in left:
                insort(starts, event.start)
            repeated = slice(bisect_left(starts, event.start), bisect_left(starts, event.end))
            left |= dict.fromkeys(starts[repeated], event.time)
        elif isinstance(event, Ack) and (event.advance or event.newly_sacked):
            ways = [0.0]
            for begin, end in ((0, event.ack), *event.blocks):
                among = slice(bisect_left(starts, begin), bisect_left(starts, end))
                ways += [event.time - left.pop(start) for start in starts[among]]
                del starts[among]
            numbers.append(event.packet.number)
            longest.append(max(longest[-1], *ways))
    return numbers, longest


def longest_delivery(flow: Flow, number: int) -> float:
    """Seconds at most from the last transmission of a segment to its report, before a packet.

    RFC 8985 section 6.2 step 1 measures repeated segments too, where nothing shows that the report
    is that of an earlier copy.
    """
    numbers, longest = _deliveries(flow)
    return longest[bisect_left(numbers, number)]


def minimum_rtt(flow: Flow) -> float:
    """The smallest round-trip time the IUT could measure, in seconds; 0.0 when unknown."""
    least = measurements(flow).minimum
    return least if least < math.inf else 0.0


def longest_timeout(flow: Flow) -> float:
    """Seconds that no timeout without back-off exceeds on a connection."""
    return measurements(flow).at_last.longest_timeout


def longest_rtt(flow: Flow) -> float:
    """The largest, in seconds; 0.0 when unknown."""
    trips = measurements(flow).at_last
    return max(trips.largest, trips.echoed)
