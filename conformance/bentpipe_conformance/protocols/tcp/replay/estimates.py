"""The retransmission timeout that RFC 6298 computes, where every implementation measures the same.

Which acknowledgments are measured is up to the implementation (one in a round trip, or each with
timestamps), so that SRTT and RTTVAR are hidden. They are not while it never has more than one
segment outstanding: then each acknowledgment is a measurement of its own. Afterwards they are
bounded by what could be measured (:class:`_Largest`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from itertools import takewhile

from bentpipe_reference.common.rtt import RttEstimator

from bentpipe_conformance.protocols.tcp.codec import SYN
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Reply, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.round_trips import (
    INITIAL_TIMEOUT_S,
    answer_of_handshake,
)

STEADY = 0.9
"""A sample is no shorter than this share of the smoothed round trip while the path does not speed
up; how a sender weighs a shorter one is not judged."""


COARSEST_S = 0.5
"""Ticks of the coarsest clock in use (G of RFC 6298)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the timeout of a segment should be, in seconds, its lower bound of a second left out.

    Attributes:
        least: the smallest value that the rules can give; 0.0 when there may be no sample.
        most: the largest, for a clock of half-second ticks at the coarsest.
        samples: samples since the last timeout.
    """

    least: float
    most: float
    samples: int


@dataclass(frozen=True, slots=True)
class Estimates:
    """What timeouts should be.

    Attributes:
        alone: of each segment that leaves while nothing is outstanding, and of its repetitions.
        longest: the largest timeout after each event of the flow, no less than a second, and than
            the initial one while there may be no sample.
    """

    alone: dict[Sent, Estimate]
    longest: array[float]


class _Variant:
    """One way to take samples: with the handshake's or not, with repeated segments' or not.

    A timestamp may be that of an acknowledgment sent later than what it measures (RFC 7323 section
    4.1), so that there is also one with timestamps and one without.
    """

    def __init__(self, coarse: float) -> None:
        self._estimator = RttEstimator(
            initial=1.0, minimum=0.0, maximum=float("inf"), granularity=coarse
        )
        self.steady = True

    def sample(self, seconds: float) -> None:
        smoothed = self._estimator.srtt
        self.steady = self.steady and (smoothed is None or seconds >= STEADY * smoothed)
        self._estimator.sample(seconds)

    @property
    def value(self) -> float:
        return 0.0 if self._estimator.srtt is None else self._estimator.rto


class _Variants:
    def __init__(self) -> None:
        self._kinds = [
            (_Variant(coarse), handshake, again, echoed)
            for coarse in (0.0, 0.5)
            for handshake in (False, True)
            for again in (False, True)
            for echoed in (False, True)
        ]

    def sample(
        self, seconds: float, age: float | None = None, *, handshake: bool = False,
        again: bool = False,
    ) -> None:  # fmt: skip
        """Take a measurement; ``age`` is what the echoed timestamp says."""
        for variant, takes_handshake, takes_again, echoed in self._kinds:
            if (takes_handshake or not handshake) and (takes_again or not again):
                variant.sample(age if echoed and age is not None else seconds)

    def estimate(self, samples: int) -> Estimate:
        values = [variant.value for variant, *_ in self._kinds]
        steady = all(variant.steady for variant, *_ in self._kinds)
        return Estimate(min(values) if steady else 0.0, max(values), samples)


class _Largest:
    """The largest that SRTT and RTTVAR can be, whichever of the permitted samples were taken.

    Attributes:
        measured: there has been a sample that everyone takes.
    """

    def __init__(self) -> None:
        self._seen = self._sure = False
        self.measured = False
        self._low = self._high = self._variation = 0.0

    def sample(self, least: float, most: float, *, sure: bool) -> None:
        """A sample between two values was taken or, unless ``sure``, may have been."""
        if not self._seen:
            self._seen, self._sure = True, sure
            self._low, self._high, self._variation = least, most, most / 2
            return
        alpha, beta = RttEstimator.ALPHA, RttEstimator.BETA
        away = max(abs(most - self._low), abs(self._high - least))
        variation = max((1 - beta) * self._variation + beta * away, beta * away)
        low = (1 - alpha) * self._low + alpha * least
        high = (1 - alpha) * self._high + alpha * most
        if not self._sure:  # it may be the first that is taken
            variation = max(variation, most / 2)
            low, high = min(low, least), max(high, most)
        if not sure:
            variation = max(variation, self._variation)
            low, high = min(low, self._low), max(high, self._high)
        self._sure = self._sure or sure
        self._low, self._high, self._variation = low, high, variation

    @property
    def value(self) -> float:
        """The largest timeout; 0.0 before the first sample."""
        most = self._high + max(COARSEST_S, RttEstimator.K * self._variation)
        return most if self._seen else 0.0

    @property
    def timeout(self) -> float:
        """The largest timeout within its lower bounds (RFC 6298 rules 2.1, 2.4 and 5.7)."""
        return max(self.value, 1.0 if self.measured else INITIAL_TIMEOUT_S)


def read_estimates(flow: Flow) -> Estimates:
    """The timeouts of one flow.

    Once more than one segment has been outstanding there is no lower bound any more.
    """
    variants = _Variants()
    largest = _Largest()
    opened = [item for item in flow.leaving if item.tcp.flags & SYN]
    if len(opened) == 1 and flow.handshake.established is not None:
        first = flow.handshake.established - opened[0].time
        variants.sample(first, handshake=True)
        largest.sample(first, first, sure=False)
    elif flow.handshake.established is not None and flow.handshake.timestamps:
        answer = answer_of_handshake(flow, flow.handshake.established)
        for item in opened:
            if item.tcp.tsval == answer.tcp.tsecr:
                first = answer.time - item.time
                variants.sample(first, handshake=True, again=True)
                largest.sample(first, first, sure=False)
    found: dict[Sent, Estimate] = {}
    longest = array("d")
    ends: list[int] = []  # of new data
    sent_at: dict[int, float] = {}  # by the end of new data, in its order
    probes: dict[int, float] = {}  # of a window, which need not be measured
    # Even that of a SYN may be echoed later.
    stamped = {item.tcp.tsval: item.time for item in opened if item.tcp.tsval is not None}
    # After the last that advances nothing is measured: a receiver of data would keep all it sends.
    advances = (ack.packet.number for ack in reversed(flow.acks) if ack.acceptable and ack.advance)
    until = next(advances, 0)
    samples = 0
    fresh: int | None = None
    lone: int | None = None  # the end of what left with nothing outstanding, timed for certain
    alone = True
    timeout, timestamps = INITIAL_TIMEOUT_S, flow.handshake.timestamps
    for event in flow.events:
        if isinstance(event, Sent):
            timeout = largest.timeout
            again = event.retransmission
            probing = event.timed and event.payload == 1 and not (event.flight or again)
            fresh = None if again else fresh if fresh or probing else event.end
            alone = alone and (again or not event.flight) and not probing
            samples = 0 if again else samples
            lone = event.end if not (event.flight or again or probing) else None if again else lone
            if alone:
                found[event] = variants.estimate(samples)
            elif not (event.flight or probing):
                found[event] = Estimate(0.0, largest.value, samples)
            if event.tcp.tsval is not None:
                stamped[event.tcp.tsval] = event.time
            if again:
                first = bisect_right(ends, event.start)
                for end in ends[first : bisect_right(ends, event.end, lo=first)]:
                    sent_at.pop(end, None)
            elif probing:
                probes[event.end] = event.time
            else:
                sent_at[event.end] = event.time
                ends.append(event.end)
        elif isinstance(event, Reply):
            # Of a pure acknowledgment the peer may echo the timestamp too.
            if event.packet.number < until and event.tcp.tsval is not None:
                stamped.setdefault(event.tcp.tsval, event.time)
        elif isinstance(event, Ack) and event.acceptable and event.advance:
            echoed = event.tcp.tsecr
            age = None
            if echoed in stamped and timestamps:
                age = event.time - stamped[echoed]
            for end in [end for end in probes if end <= event.ack]:
                possible = event.time - probes.pop(end)
                largest.sample(possible, possible, sure=False)
            started = sent_at.get(event.ack)
            reached = list(takewhile(event.ack.__ge__, sent_at))
            ages = [event.time - sent_at.pop(end) for end in reached]
            if alone and started is not None:
                variants.sample(event.time - started, age)
            elif alone and age is not None:
                variants.sample(age, again=True)
            candidates = ages if age is None else [*ages, age]
            if candidates:
                # Of several, which is timed is open, and none is any more once one has left again.
                sure = lone == event.ack and started is not None and len(ages) == 1
                largest.sample(min(candidates), max(candidates), sure=sure)
            # Everyone measures the first segment since the last retransmission, once a round trip.
            measured = fresh is not None and event.ack >= fresh
            largest.measured = largest.measured or measured
            samples += measured and started is not None
            timeout = largest.timeout
        longest.append(timeout)
    return Estimates(found, longest)
