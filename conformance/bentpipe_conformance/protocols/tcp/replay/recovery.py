"""Loss-recovery episodes inferred from what an implementation sent.

The sender's variables are hidden; an episode is what an observer can be sure of: it starts with a
retransmission, and ends when everything outstanding at that moment is acknowledged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.protocols.tcp.codec import PSH, nearest
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.option_list import options_length
from bentpipe_conformance.protocols.tcp.replay.order import count_before, latest_first
from bentpipe_conformance.protocols.tcp.replay.round_trips import FIRST_TIMEOUT_S, timed_rtt

PROMPT_S = 0.0003
"""That a timer expires this soon after an arrival by chance is unlikely: one in thirty, when a
satellite link delivers an acknowledgment every 9 ms."""


_SOONEST_TIMEOUT_RTTS = 1.3


ROUND_TRIP_SHARE = 0.95
"""Share of the smallest round trip that certainly has not passed when less has."""


def soonest_timeout(rtt: float) -> float:
    """Seconds below which the timers of common stacks do not expire, given the smallest round trip.

    So the unlikely is not even possible there. Over long round trips that hardly vary, RFC 6298's
    timeout comes as close as a clock tick to them; it is no less than a second (rule 2.4).
    """
    return min(_SOONEST_TIMEOUT_RTTS * rtt, least_timeout(rtt))


def least_timeout(rtt: float) -> float:
    """The shortest timeout of RFC 6298 (rules 2.3 and 2.4), seconds.

    Where time is virtual it is the one that meets arrivals, at the very instant: timeouts of a
    second, constant delays and a peer with the same timers make for that.
    """
    return max(FIRST_TIMEOUT_S, rtt)


class Cause(StrEnum):
    """Why an episode's first retransmission left."""

    ACK = "acknowledgment"
    TIMEOUT = "timeout"
    REORDER_TIMER = "reordering timer"
    """RACK's reordering timer (RFC 8985 section 6.2 step 5): timed, but short."""
    PROBE_OR_TIMEOUT = "probe or timeout"
    """Only one segment was outstanding: a tail loss probe and a timeout look alike."""


@dataclass(slots=True, eq=False)
class Episode:
    """One loss-recovery episode.

    Attributes:
        cause: what started it.
        first: its first retransmission.
        sent: what the IUT sent from ``first`` until the end.
        acks: acknowledgments that arrived after the trigger, the ending one included.
        end: the acknowledgment that reached ``recover``; None when the trace or a timeout ended it.
        interrupted: the timeout that cut it short.
        nested: it started while an earlier episode was not over.
        late: it started so long after the last progress that a timeout may have met an arrival.
        overdue: so long that it may have met the very arrival that asked for it.
        soon: it started within a round trip of the last progress: no timer can have expired.
        restarts: further retransmissions of the earliest data that no progress lets out: with each
            another episode may have begun, so that recover moves.
        timer: when the retransmission timer may first have expired, having met an arrival.
        doubtful: it may be none, as its first segment begins with what a window probe carried, or
            is shorter than it was, the path having refused it; or continue a recovery that began
            at a restart of an earlier one: only with SACK can a partial acknowledgment have
            retransmitted nothing (HK99 rule 6).
    """

    cause: Cause
    first: Sent
    nested: bool
    late: bool = False
    overdue: bool = False
    soon: bool = False
    sent: list[Sent] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    end: Ack | None = None
    interrupted: Episode | None = None
    restarts: list[Sent] = field(default_factory=list)
    timer: float = math.inf
    doubtful: bool = False

    @property
    def trigger(self) -> Ack | None:
        """The acknowledgment that started it, None for timers."""
        return self.first.cause

    @property
    def flight(self) -> int:
        """Octets outstanding when it started (RFC 5681 FlightSize)."""
        return self.first.flight

    @property
    def recover(self) -> int:
        """snd_max when it started; the episode ends when this is acknowledged."""
        return self.first.max

    @property
    def fast(self) -> bool:
        """Whether acknowledgments (or RACK's timer), not a timeout, started it."""
        return self.cause in (Cause.ACK, Cause.REORDER_TIMER)

    @property
    def retransmissions(self) -> list[Sent]:
        """The retransmissions in it."""
        return [item for item in self.sent if item.retransmission]

    @property
    def partial_acks(self) -> list[Ack]:
        """Acknowledgments of new data below ``recover`` (RFC 6582 section 3.2)."""
        return [item for item in self.acks if item.advance and item.ack < self.recover]


def may_be_undone(first: Sent, ack: Ack | None) -> bool:
    """Whether an acknowledgment shows a retransmission unnecessary, so that the window is restored.

    Its data is reported received twice (RFC 3708), or new data was acknowledged by an echo older
    than the fast retransmission (RFC 3522, RFC 4015).
    """
    if ack is not None and ack.dsack is not None:
        return True
    if ack is None or ack.tcp.tsecr is None or first.tcp.tsval is None or not ack.advance:
        return False
    return nearest(ack.tcp.tsecr - first.tcp.tsval, 0) < 0


def all_came_twice(again: RangeSet, twice: RangeSet) -> bool:
    """Whether all that was retransmitted is reported received twice: it was needless (RFC 3708)."""
    return all(twice.covers(*item) for item in again.snapshot())


def outlives_inflation(before: Ack | None, episode: Episode) -> bool:
    """Whether an episode's flight is left of the recovery that ``before`` ended.

    An inflated window has let it out, so that it may exceed the window in use.
    """
    return before is not None and before.max > max(before.ack, episode.first.una)


def read_episodes(flow: Flow) -> list[Episode]:
    """The recovery episodes of one flow, in order.

    A retransmission while an episode is running belongs to it, except that a timeout ends it and
    starts another. A tail loss probe (RFC 8985 section 7) of a segment that is not the earliest
    outstanding one starts none. A RST ends the last one: nothing need be sent any more.
    """
    episodes: list[Episode] = []
    current: Episode | None = None
    progress = restarted = news = 0.0
    partially = False
    reach = -1
    for event in flow.until_reset:
        if isinstance(event, Ack):
            if event.advance:
                # Of the partial acknowledgments only the first may count (RFC 6582 section 3.2).
                restarted = restarted if partially else event.time
                partially = current is not None and current.fast
                progress = event.time
            if event.advance or event.newly_sacked:
                news = event.time
            if current is not None:
                current.acks.append(event)
                if event.acceptable and event.ack >= current.recover:
                    current.end = event
                    current = None
                    restarted, partially = event.time, False
        elif isinstance(event, Sent):
            if not event.flight:
                progress = restarted = event.time
            if event.retransmission:
                rtt = timed_rtt(flow, event.time)
                if current is not None and _begins_anew(event):
                    current.restarts.append(event)
                    reach = event.max
                    if event.time - restarted >= ROUND_TRIP_SHARE * rtt:
                        current.timer = min(current.timer, event.time)
                cause = _cause(event, rtt, event.time - progress, news)
                if cause is Cause.ACK and event.probed and not _asked_for(event):
                    cause = None
                timeout = cause in (Cause.TIMEOUT, Cause.PROBE_OR_TIMEOUT)
                if cause is not None and (current is None or timeout):
                    waited = event.time - progress
                    episode = Episode(
                        cause, event, current is not None,
                        late=waited >= soonest_timeout(rtt),
                        overdue=waited >= least_timeout(rtt),
                        soon=waited < ROUND_TRIP_SHARE * rtt,
                        doubtful=event.probed
                        or (flow.handshake.sack and event.una < reach)
                        or _is_cut(flow, event),
                    )  # fmt: skip
                    if current is not None:
                        current.interrupted = episode
                    episodes.append(episode)
                    current, partially = episode, False
            if current is not None:
                current.sent.append(event)
    return episodes


def _is_cut(flow: Flow, again: Sent) -> bool:
    """Whether a retransmission is shorter than what it repeats, though the window has room.

    Who has tried how much the path takes at once repeats what was lost in smaller segments, and
    neither enters a recovery nor reduces its window (RFC 4821 section 7.6.2, RFC 9293 section
    3.7.5).
    """
    earlier = latest_first(flow.sent, count_before(flow.sent, again.packet.number))
    before = next((sent for sent in earlier if sent.start == again.start), None)
    if before is None or before.payload > flow.mss or again.end >= again.window_edge:
        return False  # a larger one than the peer takes was cut after it had been captured
    whole, part = (item.payload + options_length(item.packet) for item in (before, again))
    return part < whole


def reports_something(ack: Ack | None) -> bool:
    """Whether an arrival tells a sender that something arrived, so that it may retransmit."""
    return ack is not None and bool(ack.advance or ack.newly_sacked or ack.duplicate)


def may_be_timed(sent: Sent) -> bool:
    """Whether a timer may have sent the first outstanding segment again: nothing reports a loss.

    In a simulation, or on a busy machine, it may have met an arrival.
    """
    at_una = sent.start == sent.una and not reports_something(sent.cause)
    return sent.retransmission and (sent.timed or at_una)


def _may_have_met_an_arrival(sent: Sent) -> bool:
    """Whether it left late after an arrival that reports nothing, so that a timer may have sent it.

    On a busy connection something has always just arrived.
    """
    if sent.cause is None or sent.start != sent.una or sent.since_arrival <= PROMPT_S:
        return False
    return not reports_something(sent.cause)


def _asked_for(sent: Sent) -> bool:
    """Whether duplicates, or what is held, may have asked for a retransmission."""
    return bool(sent.sacked) or sent.duplicates >= DUPLICATE_THRESHOLD


def _begins_anew(sent: Sent) -> bool:
    """Whether it repeats the earliest data, not as the first that acknowledged data lets out.

    That would be the answer to a partial acknowledgment (RFC 6582 section 3.2 step 3).
    """
    if sent.start != sent.una:
        return False
    return sent.cause is None or not sent.cause.advance or sent.cause.responses[0] is not sent


def _cause(sent: Sent, rtt: float, waited: float, news: float) -> Cause | None:
    """Why a retransmission left ``waited`` seconds after the last progress."""
    # A retransmission timeout is never shorter than a round trip from the last progress; what has
    # been retransmitted since does not restart the timer (RFC 6298 rules 5.1 to 5.3).
    if not sent.timed and not (_may_have_met_an_arrival(sent) and waited >= rtt > 0):
        return Cause.ACK
    if sent.start != sent.una:
        return None
    # RACK's timer is at most a round trip after the report that set it.
    if sent.sacked and (waited < rtt or sent.time - news <= rtt / 4 + 0.01):
        return Cause.REORDER_TIMER
    if sent.end >= sent.max:
        return Cause.PROBE_OR_TIMEOUT
    return Cause.TIMEOUT


def begins_last_buffer(flow: Flow, sent: Sent) -> bool:
    """Whether a timer repeats the beginning of what left last at once, in a longer segment.

    PSH ends what leaves at once.
    """
    if not sent.timed or sent.sacked:
        return False
    earlier = flow.sent[: count_before(flow.sent, sent.packet.number)]
    first = next((item for item in reversed(earlier) if item.start == sent.start), None)
    if first is None or first.payload >= sent.payload:
        return False
    pushed = {item.end for item in earlier if item.tcp.flags & PSH}
    return sent.start in pushed and not any(sent.start < end < sent.max for end in pushed)
