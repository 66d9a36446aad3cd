"""Checkers for slow start (SNR-SS) and congestion avoidance (SNR-CA).

The window is hidden; what an observer sees is the data outstanding, which never exceeds it. So
these checkers bound the data outstanding by the largest window a conformant sender could have.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, at_most, judged
from bentpipe_conformance.protocols.tcp.checkers.window_bounds import exceeded, follows_rfc_5681
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN
from bentpipe_conformance.protocols.tcp.replay.bounds import Phase
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import acts_at_once, timer_within
from bentpipe_conformance.protocols.tcp.replay.order import later
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    PROMPT_S,
    ROUND_TRIP_SHARE,
    Episode,
    all_came_twice,
    soonest_timeout,
)
from bentpipe_conformance.protocols.tcp.replay.round_trips import (
    longest_rtt,
    measurements,
    minimum_rtt,
)
from bentpipe_conformance.protocols.tcp.replay.timeouts import timed_syn_acks
from bentpipe_conformance.protocols.tcp.replay.users import (
    always_sends,
    data_waited,
    largest_segment,
    last_before_reports,
    latest,
    may_be_last,
    may_have_been_full,
    more_waited,
    most_outstanding,
    short_of_data,
    smss_may_vary,
    was_held_down,
)


def largest_initial_window(flow: Flow, context: Context) -> int:
    """Octets that the profile's formula permits before the first acknowledgment of data."""
    segments, octets = context.permitted("segments", 10), context.permitted("octets", 14600)
    return int(min(segments * flow.mss, max(2 * flow.mss, octets)))


MOST_ROUNDS = 100
"""Round trips in which a window grows by a factor; half as much again in each is beyond any window
long before."""

SHORTEST_IN_USE_S = 0.2
"""The shortest retransmission timeout in use.

Where nothing has been measured, a tail loss probe is due after a second (RFC 8985 section 7.2), or
sooner by what is remembered of an earlier connection (RFC 9040 section 4).
"""

CLEAR_TARGET_SEGMENTS = 6
"""Below this the windows of the right and the wrong sender differ by less than two segments."""


@dataclass(slots=True)
class Opening:
    """A connection from its beginning to the first sign of loss, or the first probe for one.

    Attributes:
        steps: new data with the acknowledgments of new data received before it.
        acks: those acknowledgments.
        last: the one of them after which something other than an acknowledgment of new data came.
    """

    steps: list[tuple[Sent, int]] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    last: Ack | None = None

    @property
    def first_flight(self) -> int:
        """Octets sent before the first of those."""
        return max((sent.end for sent, acks in self.steps if not acks), default=0)


def _may_be_probe(flow: Flow, sent: Sent, progressed: float, rtt: float) -> bool:
    """Whether new data may be a tail loss probe, which no window limits (RFC 8985 section 7.3).

    A probe waits for a round trip or more from the last progress (section 7.2: for two, or for
    what is left of the retransmission timeout).
    """
    waited = sent.time - progressed
    least = ROUND_TRIP_SHARE * (rtt or SHORTEST_IN_USE_S)
    return waited >= least and sent.flight > 0 and flow.handshake.sack


def _restarts(sent: Sent, rtt: float) -> bool:
    """Whether the restart window may apply to a segment (RFC 5681 section 4.1).

    It does after a retransmission timeout without sending, nothing being outstanding.
    """
    return sent.flight == 0 and sent.since_sent > max(soonest_timeout(rtt), SHORTEST_IN_USE_S)


def read_opening(flow: Flow) -> Opening:
    """The beginning of a connection, up to the first loss, probe or idleness."""
    opening = Opening()
    rtt = measurements(flow).at_first.smallest
    progressed = 0.0
    for event in flow.events:
        if isinstance(event, Ack) and event.acceptable:
            if event.duplicate or event.sacked or event.dsack:
                break
            if event.advance:
                opening.acks.append(event)
                progressed = event.time
        elif isinstance(event, Sent):
            progressed = progressed if event.flight else event.time
            if event.retransmission or _may_be_probe(flow, event, progressed, rtt):
                break
            if opening.acks and _restarts(event, rtt):
                break
            opening.steps.append((event, len(opening.acks)))
    opening.last = opening.acks[-1] if opening.acks else None
    return opening


def _repeated_handshakes(flow: Flow) -> int:
    """How often the IUT's timer has repeated its SYN or SYN-ACK, for all that it can know.

    An echo of the first one's timestamp proves that it was late and not lost (RFC 3522).
    """
    calls = [item for item in flow.leaving if item.tcp.flags & (SYN | ACK) == SYN]
    sent = calls or timed_syn_acks(flow)
    if not sent:
        return 0
    first = sent[0]
    answers = (i.tcp for i in later(flow.arriving, first.packet) if i.tcp.flags & ACK)
    answer = next(answers, None)
    if answer and answer.tsecr is not None and answer.tsecr == first.tcp.tsval:
        return 0
    return len(sent) - 1


@checker("SNR-SS-001")
def initial_window(flow: Flow, context: Context) -> Findings:
    """The first flight keeps to the initial window (RFC 5681 section 3.1, RFC 6928 section 2)."""
    # Exercised by data sent before the first acknowledgment of data.
    allowed = largest_initial_window(flow, context)
    if _repeated_handshakes(flow) > 1:
        allowed = flow.mss
    first = [sent for sent, acks in read_opening(flow).steps if acks == 0]
    beyond = next((sent for sent in first if sent.end > allowed), None)
    if beyond is not None:
        yield context.violated(
            f"{first[-1].end} octets were sent before any was acknowledged",
            beyond,
            expected=f"at most {allowed} octets with an MSS of {flow.mss}",
            actual=f"{first[-1].end} octets in {len(first)} segments",
        )
    elif first:
        yield context.holds(f"{first[-1].end} of at most {allowed} octets were sent", first[-1])


def growth_per_acknowledgment(context: Context) -> float:
    """Segments that one acknowledgment may add to the window in slow start."""
    if context.permitted("counts", "octets") != "octets":
        return 1
    return {"no": 1, "abc": 2}.get(context.ics.get("byte_counting", ""), math.inf)


def _covered(opening: Opening, ack: Ack) -> int:
    """How many segments, of whatever size, an acknowledgment covers for the first time."""
    return sum(ack.ack - ack.advance < sent.end <= ack.ack for sent, _ in opening.steps)


@checker("SNR-SS-002")
def slow_start_growth(flow: Flow, context: Context) -> Findings:
    """Slow start grows by what is acknowledged (RFC 5681 section 3.1, RFC 3465 section 2.2)."""
    # Exercised by new data after an acknowledgment, before any sign of loss.
    if smss_may_vary(flow, context.ics):
        return
    opening, segment = read_opening(flow), largest_segment(flow)
    # A first flight that is too large violates SNR-SS-001 and is not counted twice.
    base = max(opening.first_flight, largest_initial_window(flow, context))
    most = growth_per_acknowledgment(context)
    whole = context.permitted("counts_segments", False)
    growths = list(
        accumulate(
            max(segment, min(a.advance, most * segment), whole and segment * _covered(opening, a))
            for a in opening.acks
        )
    )
    grown = [(sent, acks) for sent, acks in opening.steps if acks]
    for sent, acks in grown:
        # One segment of tolerance: some implementations count windows in whole segments.
        limit = base + growths[acks - 1] + segment
        if sent.outstanding > limit:
            sentence = f"too much is outstanding after {acks} acknowledgments of {sent.una} octets"
            yield at_most(context, sent.outstanding, limit, sentence, sent, opening.acks[acks - 1])
            return
    if grown:
        yield context.holds("the window opened by what was acknowledged at most", grown[-1][0])
    if opening.last is not None:
        yield from _growth_across_duplicates(flow, context, base)


def _growth_across_duplicates(flow: Flow, context: Context, base: int) -> Findings:
    """Duplicates that report no loss leave the window as it is (RFC 3042 section 2)."""
    # Exercised by new data after duplicates that brought no retransmission, nothing being held.
    if context.permitted("counts_segments", False):
        return
    segment, most = largest_segment(flow), growth_per_acknowledgment(context)
    rtt = measurements(flow).at_first.smallest
    limit, progressed = base + segment, 0.0
    met: Ack | None = None
    found: Sent | None = None
    for event in flow.events:
        if isinstance(event, Ack) and event.acceptable:
            if event.dsack:
                break
            if event.advance:
                # Small segments may be counted, so that one octet adds a segment.
                limit += int(max(segment, min(event.advance, most * segment)))
                progressed = event.time
            elif event.duplicate or event.sacked:
                met = event
        elif isinstance(event, Sent):
            progressed = progressed if event.flight else event.time
            if event.retransmission or _may_be_probe(flow, event, progressed, rtt):
                break
            if met is None or event.duplicates or event.sacked:
                continue
            if event.outstanding > limit:
                sentence = "too much is outstanding after duplicates that brought no recovery"
                yield at_most(context, event.outstanding, limit, sentence, event, met)
                return
            found = event
    if met is not None and found is not None:
        yield context.holds("duplicates did not open the window", found, met)


@checker("SNR-SS-003")
def slow_start_opens_the_window(flow: Flow, context: Context) -> Findings:
    """Slow start opens the window (RFC 5681 section 3.1)."""
    # Exercised by a busy sender whose first flight has been acknowledged three times over.
    opening = read_opening(flow)
    first, largest = opening.first_flight, 0
    before: Sent | None = None
    acked = 0
    put_off = False
    for sent, acks in opening.steps:
        # Data that an acknowledgment did not clock out: the application, not the window, held it.
        edge = sent.window_edge if sent.cause is None else sent.cause.window_edge
        if acks and (sent.timed or edge < sent.end + 2 * largest_segment(flow)):
            return
        # What came with data of the peer may have made the user write (an echo, little by little).
        if acks and sent.cause is not None and sent.cause.tcp.length and not always_sends(flow):
            return
        # What left before this acknowledgment has to have filled the window.
        if before is not None and acks > acked and not more_waited(flow, before):
            return
        before, acked = sent, acks
        largest = max(largest, sent.outstanding)
        put_off = put_off or (acks > 0 and sent.since_arrival > PROMPT_S)
        if acks and sent.una >= 3 * first:
            if largest <= first and put_off and not acts_at_once(context.ics):
                return  # the rate at which it spaces its segments may be its user's
            yield judged(
                context,
                largest > first,
                f"at most {largest} octets were outstanding until {sent.una} were acknowledged",
                sent,
                expected=f"more than the first flight of {first} octets",
                actual=f"never more than {largest} octets outstanding",
            )
            return


@checker("SNR-SS-004")
def restart_after_idleness(flow: Flow, context: Context) -> Findings:
    """After idleness the initial window applies again (RFC 5681 section 4.1)."""
    # Exercised by a burst after idleness of a sender whose flight had outgrown the window, or whose
    # window a loss had made smaller.
    allowed = largest_initial_window(flow, context)
    yield from exceeded(flow, context, Phase.RESTART)
    measured = measurements(flow)
    # Back-off may have made the timeout longer.
    exact = follows_rfc_5681(context) and not any(sent.retransmission for sent in flow.sent)
    timeouts = 1 if exact else context.permitted("idle_timeouts", 4)
    largest = 0
    restart: Sent | None = None
    answered = False
    progressed = 0.0
    for event in flow.events:
        if isinstance(event, Ack) and event.acceptable and event.advance:
            answered, progressed = True, event.time
        elif isinstance(event, Ack) and event.duplicates >= DUPLICATE_THRESHOLD:
            answered = True
        elif isinstance(event, Sent):
            progressed = progressed if event.flight else event.time
            trips = measured.before(event.packet.number)
            idle = timeouts * trips.longest_timeout
            if event.flight == 0 and event.since_sent > idle and largest > allowed:
                restart, answered = event, False
                idle_for = f"{event.since_sent:.1f} s"
            # Each of two duplicates may send a segment (RFC 3042 section 2), and a probe is one.
            besides = event.duplicates + _may_be_probe(flow, event, progressed, trips.smallest)
            octets = event.end - besides * largest_segment(flow)
            if restart is not None and not answered and octets - restart.start > allowed:
                octets = event.end - restart.start
                sentence = f"{octets} octets left, none acknowledged, after a silence of {idle_for}"
                yield at_most(context, octets, allowed, sentence, event, restart)
                return
            largest = max(largest, event.outstanding)
            if restart is not None and event.una > restart.start:
                sentence = f"a silence of {idle_for} was followed by no more than {allowed} octets"
                yield context.holds(sentence, restart)
                restart = None


def _algorithm(context: Context) -> tuple[float, float]:
    """Reduced share and growth factor per round trip of the algorithm that governs the window."""
    name = context.ics.get("congestion_control", "reno")
    return float(context.permitted("share")[name]), float(context.permitted("factor")[name])


def _grown(octets: float, factor: float, rounds: int) -> float:
    """A window some round trips later, but for the segment that each of them may add."""
    return octets * factor ** min(rounds, MOST_ROUNDS)


@dataclass(slots=True)
class _Round:
    """The time from one moment until all that was outstanding then is acknowledged."""

    end: int
    peak: int = 0
    largest: Sent | None = None


def read_rounds(
    flow: Flow, episode: Episode, at_once: bool, any_copy_counts: bool = False
) -> list[_Round]:
    """Rounds after an episode, up to the next sign of loss, or that it was needless (RFC 3708).

    With ``at_once``, without pacing, also up to the first data sent by a timer or the application.
    With ``any_copy_counts`` whatever is received twice is such a sign.
    """
    assert episode.end is not None
    rounds: list[_Round] = []
    rtt = minimum_rtt(flow)
    rounds.append(_Round(episode.end.round_end))
    again, twice = RangeSet(), RangeSet()
    for item in episode.retransmissions:
        again.add(item.start, item.end)
    for ack in episode.acks:
        twice.add(*ack.dsack or (0, 0))
    for event in later(flow.events, episode.end.packet):
        if isinstance(event, Ack) and event.dsack is not None and not event.beyond:
            twice.add(*event.dsack)
            if any_copy_counts or all_came_twice(again, twice):
                break
        if isinstance(event, Ack) and event.acceptable:
            if event.duplicate or event.sacked:
                break
            if event.ack >= rounds[-1].end:
                rounds.append(_Round(event.round_end))
        elif isinstance(event, Sent):
            if event.retransmission or (at_once and event.timed) or _restarts(event, rtt):
                break
            flight = event.outstanding
            if flight > rounds[-1].peak:
                rounds[-1].peak, rounds[-1].largest = flight, event
    return rounds


def _segments(flow: Flow, last: Sent) -> int:
    """How many segments, of whatever size, are outstanding with one."""
    ends = _ends_of_new(flow)
    return bisect_right(ends, last.end) - bisect_right(ends, last.una)


@remembered
def _ends_of_new(flow: Flow) -> list[int]:
    return sorted(sent.end for sent in flow.sent if not sent.retransmission)


@checker("SNR-CA-001")
def congestion_avoidance_after_recovery(flow: Flow, context: Context) -> Findings:
    """After recovery the window grows as in congestion avoidance (RFC 5681 section 3.1)."""
    # Exercised by three round trips without loss after a recovery phase.
    yield from exceeded(flow, context, Phase.AVOIDANCE)
    share, factor = _algorithm(context)
    segment = largest_segment(flow)
    for episode in context.prepared.episodes:
        if episode.end is None or not episode.fast or timer_within(episode) < math.inf:
            # After a timeout slow start grows to half of what was outstanding at the timeout.
            continue
        if episode.doubtful or short_of_data(flow, episode.first):
            continue
        if episode.first.window_edge - episode.first.max < 2 * segment:
            continue  # the receiver's window held the flight down, which does not show ssthresh
        before = most_outstanding(flow, episode.first.packet.number)
        copies = bool(context.permitted("any_copy_counts", False))
        rounds = read_rounds(flow, episode, acts_at_once(context.ics), copies)
        shown = rounds[0].peak
        if rounds[0].largest is not None and context.permitted("counts_segments", False):
            shown = segment * _segments(flow, rounds[0].largest)
        base = max(shown, share * before, 2 * segment)
        for number, item in enumerate(rounds[1:], start=1):
            limit = _grown(base, factor, number) + (number + 1) * segment
            if item.largest is not None and item.peak > limit:
                last = last_before_reports(flow, episode.first)
                if last is not None and may_be_last(flow, last):
                    break  # a full buffer, not the window, may have ended the flight
                sentence = f"the flight grew from {base:.0f} octets in {number} round trips"
                yield at_most(context, item.peak, limit, sentence, item.largest, episode.end)
                break
        else:
            if len(rounds) >= 4:
                yield context.holds(
                    f"the flight grew from {base:.0f} to {rounds[-1].peak} octets in "
                    f"{len(rounds) - 1} round trips",
                    episode.end,
                )


@checker("SNR-CA-002")
def slow_start_after_timeout_ends(flow: Flow, context: Context) -> Findings:
    """Slow start after a timeout ends at ssthresh (RFC 5681 section 3.1, equation 4)."""
    # Exercised by two round trips after slow start should have ended.
    yield from exceeded(flow, context, Phase.REPAIRED)
    share, factor = _algorithm(context)
    segment = largest_segment(flow)
    # Round trips may be shorter after the timeout than all before it: the queue has drained.
    rtt = minimum_rtt(flow)
    for aftermath in context.prepared.aftermaths(acts_at_once(context.ics)):
        before = aftermath.expiry.sent
        pushed = context.permitted("pushed_is_last", False)
        if short_of_data(flow, before) or (pushed and may_have_been_full(flow, before)):
            continue
        flight = aftermath.expiry.flight
        if context.permitted("halves_window", False):
            # In slow start the window grows to twice of what holds it down.
            times = 2 if was_held_down(flow, before) else 1
            flight = times * (most_outstanding(flow, before.packet.number) or flight)
        threshold = max(share * flight, 2 * segment)
        crossed: float | None = None
        exercised = False
        for step in aftermath.steps:
            if crossed is None:
                if segment + step.delivered >= threshold:
                    crossed = step.sent.time
                continue
            if not rtt:
                break
            rounds = int((step.sent.time - crossed) / rtt) + 1
            limit = _grown(threshold, factor, rounds) + (rounds + 2) * segment
            if step.pipe > limit:
                sentence = f"slow start went on above {threshold:.0f} octets after a timeout"
                yield at_most(context, step.pipe, limit, sentence, step.sent, aftermath.expiry.sent)
                break
            # Two round trips later endless slow start would be far above the limit.
            exercised = exercised or rounds > 2
        else:
            if exercised:
                yield context.holds(
                    f"slow start ended near {threshold:.0f} octets", aftermath.expiry.sent
                )


@checker("SNR-CA-003")
def repeated_timeouts_keep_ssthresh(flow: Flow, context: Context) -> Findings:
    """Timeouts in a row keep ssthresh (RFC 5681 section 3.1)."""
    # Exercised by slow start after a second timeout of one segment, when ssthresh is reached.
    segment = largest_segment(flow)
    for aftermath in context.prepared.aftermaths(acts_at_once(context.ics)):
        expiry = aftermath.expiry
        target = expiry.flight // 2 // segment
        if expiry.rank < 2 or target < CLEAR_TARGET_SEGMENTS or aftermath.lowered:
            continue
        reached = next((item for item in aftermath.reactions if item.acks == target - 1), None)
        if reached is None or reached.disturbed or reached.ack.ack >= aftermath.recover:
            continue
        counted = (item.ack for item in aftermath.reactions if item.acks <= reached.acks)
        if any(0 < ack.advance < segment for ack in counted):
            continue  # what acknowledges a part adds no more than that (RFC 5681 equation 2)
        needed = reached.ack.ack + target * segment
        if reached.ack.window_edge < needed:
            continue
        if needed > reached.ack.max and not data_waited(flow, reached.ack):
            continue
        last = latest(flow, reached.ack)
        pushed = context.permitted("pushed_is_last", False)
        if pushed and last is not None and may_be_last(flow, last):
            continue  # a full buffer, not the window, may have ended the flight
        pipe = reached.pipe
        if not acts_at_once(context.ics):
            # What waits for a pacing timer leaves within a round trip.
            until = reached.ack.time + longest_rtt(flow)
            after = [item for item in aftermath.reactions if item.acks >= reached.acks]
            if after[-1].ack.time < until:
                continue
            pipe = max(item.pipe for item in after if item.ack.time <= until)
        yield judged(
            context,
            pipe >= 0.75 * target * segment,
            f"{reached.acks} acknowledgments were taken after timeout {expiry.rank} in a row",
            reached.ack,
            expiry.sent,
            expected=f"slow start up to half of {expiry.flight} octets",
            actual=f"{pipe} octets in the network",
        )
