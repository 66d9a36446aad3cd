"""Checkers for the recovery phase (SNR-REC) other than its window."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged, within_window
from bentpipe_conformance.protocols.tcp.checkers.window_bounds import follows_rfc_5681
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import REACTION_S, Flow
from bentpipe_conformance.protocols.tcp.replay.moments import (
    Moment,
    acts_at_once,
    answer_window,
    disturbed_at,
    may_be_tail_probe,
    reaction,
)
from bentpipe_conformance.protocols.tcp.replay.order import (
    count_before,
    count_through,
    latest_first,
)
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    PROMPT_S,
    ROUND_TRIP_SHARE,
    Cause,
    Episode,
    may_be_undone,
    outlives_inflation,
)
from bentpipe_conformance.protocols.tcp.replay.round_trips import measurements, minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.users import (
    always_sends,
    data_waited,
    largest_segment,
    may_be_last,
    may_have_been_full,
    newest_before,
    stopped_at,
)

LONGEST_TIMEOUT_S = 30.0
"""No sane retransmission timeout before back-off, even over a satellite, is longer."""


def _in_fast_recovery(context: Context) -> Iterator[tuple[Moment, Episode]]:
    """Acknowledgments during recoveries that acknowledgments started, the ending one left out.

    One that shows the retransmission unnecessary may end it, too.
    """
    undone: Episode | None = None
    for m in context.prepared.moments:
        episode = m.episode
        if episode is None or not episode.fast or episode.end is m.ack or m.disturbed:
            continue
        if may_be_undone(episode.first, m.ack):
            undone = episode
        if m.ack.acceptable and episode is not undone:
            yield m, episode


@checker("SNR-REC-001")
def partial_acknowledgment_is_answered(flow: Flow, context: Context) -> Findings:
    """A partial acknowledgment is answered by a retransmission (RFC 6582 section 3.2 step 3)."""
    # Exercised by partial acknowledgments without SACK.
    if flow.handshake.sack:
        return
    for m, episode in _in_fast_recovery(context):
        ack = m.ack
        if not ack.advance or _repeated_before(ack, episode):
            continue
        if context.permitted("every_partial") or follows_rfc_5681(context):
            yield from _answer_at_once(flow, context, m)
        elif _earned(m, episode):
            yield from _answer_in_time(flow, context, m)


def _repeated_before(ack: Ack, episode: Episode) -> bool:
    """Whether an episode has already retransmitted what an acknowledgment asks for."""
    number = ack.packet.number
    return ack.ack in (s.start for s in episode.retransmissions if s.packet.number < number)


def _answer_at_once(flow: Flow, context: Context, m: Moment) -> Findings:
    ack = m.ack
    answer = _repetition(flow, ack, ack.time + answer_window(m, context.ics))
    took = reaction(m, answer, context.ics, context.timing_error)
    if answer is not None and took == "at once":
        yield context.holds(f"the partial acknowledgment of {ack.ack} was answered", answer, ack)
    elif answer is not None and took == "unclear":
        delay = answer.time - ack.time
        sentence = f"offset {ack.ack} was retransmitted {delay:.3f} s later"
        yield context.unclear(sentence, answer, ack)
    elif ack.responses or flow.horizon >= ack.time + REACTION_S:
        yield _unanswered(context, ack, answer, "at once")


def _answer_in_time(flow: Flow, context: Context, m: Moment) -> Findings:
    """Proportional rate reduction may leave the answer to the next acknowledgments."""
    ack = m.ack
    at = count_through(flow.acks, ack.packet.number)
    after = [a for a in flow.acks[at : at + 50] if a.packet.number < flow.first_reset]
    decided = (a for a in after if a.advance or a.duplicates >= DUPLICATE_THRESHOLD)
    third = next(decided, None)
    if third is not None and third.advance:
        third = None
    # Behind a long queue the duplicates, and with them the budget, come long after.
    until = max(ack.time + answer_window(m, context.ics), third.time if third is not None else 0.0)
    answer = _repetition(flow, ack, until)
    if answer is not None and (third is None or answer.packet.number < third.packet.number):
        yield context.holds(f"the partial acknowledgment of {ack.ack} was answered", answer, ack)
    elif third is not None and acts_at_once(context.ics):
        yield _unanswered(context, ack, answer, "before its third duplicate")


def _repetition(flow: Flow, ack: Ack, until: float) -> Sent | None:
    """The retransmission of the segment that an acknowledgment asks for.

    One that is acknowledged in part may leave whole again (RFC 9293 section 3.10.7.4).
    """
    answers = flow.after(ack.packet, until)
    return next((s for s in answers if s.retransmission and s.start <= ack.ack < s.end), None)


def _unanswered(context: Context, ack: Ack, answer: Sent | None, when: str) -> Finding:
    delay = "not at all" if answer is None else f"{answer.time - ack.time:.3f} s later"
    sentence = f"the partial acknowledgment of offset {ack.ack} caused no retransmission {when}"
    expected = f"a retransmission of offset {ack.ack} {when}"
    actual = f"it was retransmitted {delay}"
    return context.violated(sentence, ack, *ack.responses, expected=expected, actual=actual)


def _earned(m: Moment, episode: Episode) -> bool:
    """Whether a retransmission, not a late original, caused a partial acknowledgment."""
    repeats = (sent for sent in episode.retransmissions if sent.start == m.ack.una)
    return any(m.ack.time - sent.time >= ROUND_TRIP_SHARE * m.rtt for sent in repeats)


def _lost_by_time(flow: Flow, context: Context, episode: Episode, again: Sent) -> bool:
    """Whether a repetition left, when last sent, before a retransmission that has been delivered.

    One that judges by time then counts it as lost (RFC 8985 section 6.2 step 5).
    """
    if not flow.handshake.sack or not context.ics.get("rack", True) or episode.end is None:
        return False
    number = again.packet.number
    earlier = [s for s in flow.sent if s.packet.number < number and s.start <= again.start < s.end]
    delivered = [s for s in episode.retransmissions if s.end <= episode.end.ack]
    return bool(earlier and delivered) and earlier[-1].time < delivered[-1].time


@checker("SNR-REC-012")
def full_acknowledgment_ends_recovery(flow: Flow, context: Context) -> Findings:
    """A full acknowledgment retransmits nothing (RFC 6582 section 3.2 step 3)."""
    # Exercised by every acknowledgment that ends a fast recovery and reports nothing held.
    for episode in context.prepared.episodes:
        end = episode.end
        if not episode.fast or end is None or end.sacked or disturbed_at(episode) < math.inf:
            continue
        if any(may_be_undone(episode.first, ack) for ack in episode.acks):
            continue  # then a later retransmission may have begun another recovery
        again = [sent for sent in end.responses if sent.retransmission and not sent.probed]
        if again and may_be_tail_probe(again[0], context.ics):
            continue
        if again and _lost_by_time(flow, context, episode, again[0]):
            continue
        if again:
            yield context.violated(
                f"the acknowledgment of {end.ack}, which ended recovery, retransmitted "
                f"{again[0].span}",
                again[0],
                end,
                expected="no retransmission: recovery is over",
                actual="a retransmission",
            )
        else:
            yield context.holds("a full acknowledgment retransmitted nothing", end, episode.first)


def _was_put_off(flow: Flow, ack: Ack) -> bool:
    """Whether the next acknowledgment lets out more than its own share, so that some waited.

    Some senders put segments off to send several at once.
    """
    at = count_through(flow.acks, ack.packet.number)
    following = next((item for item in flow.acks[at:] if item.acceptable), None)
    if following is None or following.time - ack.time > flow.reaction:
        return False
    let_out = sum(sent.length for sent in following.responses if sent.new)
    return let_out >= following.advance + largest_segment(flow)


def _halved(flow: Flow, first: Sent) -> int:
    """Octets outstanding when a recovery began but for what duplicates had let out.

    RFC 5681 section 3.2 step 2 leaves that out of ssthresh; who waits longer than RFC 3042's two
    duplicates, as RFC 8985 does, sends more of it.
    """
    flight = first.flight
    for sent in latest_first(flow.sent, count_before(flow.sent, first.packet.number)):
        if sent.una != first.una:
            break
        ack = sent.cause
        if sent.new and ack is not None and (ack.duplicate or ack.newly_sacked) and not ack.advance:
            flight -= sent.length
    return flight


@checker("SNR-REC-013")
def full_acknowledgment_lets_data_out(flow: Flow, context: Context) -> Findings:
    """A full acknowledgment that leaves less than ssthresh lets data out (RFC 6582 3.2 step 3)."""
    # Exercised by the acknowledgment that ends a fast recovery of a busy sender.
    if not always_sends(flow) or not acts_at_once(context.ics):
        return
    segment = largest_segment(flow)
    pushed = context.permitted("pushed_is_last", False)
    ended: Ack | None = None
    for episode in context.prepared.episodes:
        (before, ended), end = (ended, episode.end), episode.end
        if not episode.fast or end is None or disturbed_at(episode) < math.inf:
            continue
        if outlives_inflation(before, episode):
            continue
        flight = end.max - end.ack
        room = end.window_edge - end.max >= 2 * segment and end.packet.number < stopped_at(flow)
        target = context.permitted("share") * _halved(flow, episode.first) - 2 * segment
        if not room or flight + segment > target:
            continue
        new = [sent for sent in end.responses if sent.new]
        if not new and (_was_put_off(flow, end) or any(s.retransmission for s in end.responses)):
            continue  # SNR-REC-012 asks whether a retransmission may leave, as of the next recovery
        last = newest_before(flow, end.packet.number)
        if pushed and last is not None and may_be_last(flow, last):
            continue
        yield judged(
            context,
            bool(new),
            f"recovery ended with {flight} octets outstanding",
            end,
            *new[:1],
            episode.first,
            expected="a segment of new data at least",
            actual="nothing",
        )


@checker("SNR-REC-003")
def no_fast_retransmit_below_recover(flow: Flow, context: Context) -> Findings:
    """Duplicates below recover start no fast retransmit (RFC 6582 section 3.2 steps 2 and 4)."""
    # Exercised by third duplicates after a timeout, for a segment retransmitted since.
    every_timeout = context.permitted("timeout_records_recover")
    if every_timeout and (flow.handshake.sack or flow.handshake.timestamps):
        return
    for m in context.prepared.moments:
        ack, episode = m.ack, m.episode
        if episode is None or episode.fast or not m.third:
            continue
        if ack.ack >= (m.recover if every_timeout else m.fast_recover):
            continue
        if _heuristic_permits(m, flow, context) or not _repeated_before(ack, episode):
            continue
        again = [sent for sent in m.retransmissions if sent.start == ack.ack]
        if not acts_at_once(context.ics):
            # What is put off leaves within a round trip of the last progress, or looks timed.
            until = m.progress + ROUND_TRIP_SHARE * m.rtt
            if not ack.time < until - flow.reaction or flow.horizon < until:
                continue
            after = flow.after(ack.packet, until)
            again = [s for s in after if s.retransmission and s.start == ack.ack]
        if again:
            yield context.violated(
                f"offset {ack.ack} was fast retransmitted below recover after a timeout",
                again[0],
                ack,
                episode.first,
                expected="no fast retransmit of a segment retransmitted since the timeout",
                actual="one more retransmission",
            )
        else:
            sentence = f"the third duplicate of offset {ack.ack} started nothing"
            yield context.holds(sentence, ack, episode.first)


def _heuristic_permits(m: Moment, flow: Flow, context: Context) -> bool:
    """Whether RFC 6582 section 4.1 may interpret the duplicates as a loss."""
    jump = m.last_advance.advance if m.last_advance is not None else 0
    return jump <= int(context.permitted("heuristic_segments", 0)) * largest_segment(flow)


@checker("SNR-REC-004")
def duplicates_exactly_at_recover(flow: Flow, context: Context) -> Findings:
    """Duplicates at recover start one in hk99 only (HK99 rule 2, RFC 6582 section 3.2 step 2)."""
    # Exercised by three duplicates of the acknowledgment that ended a recovery at recover, or in
    # rfc what a timeout repairs, unless F-RTO may have found that to be spurious.
    enters = context.permitted("enter_at_recover")
    if enters and not acts_at_once(context.ics):
        return
    if not enters and (flow.handshake.sack or flow.handshake.timestamps):
        return
    timeouts = not enters and not context.ics.get("frto", True)
    ended = {
        episode.end: episode
        for episode in context.prepared.episodes
        if (disturbed_at(episode) == math.inf if episode.fast else timeouts)
    }
    for m in context.prepared.moments:
        ack = m.ack
        if m.episode is not None or not m.third or not m.pure or m.last_advance is None:
            continue
        episode = ended.get(m.last_advance)
        if episode is None or ack.ack != episode.recover or ack.ack < m.reach:
            continue
        if not enters and _heuristic_permits(m, flow, context):
            continue
        again = [sent for sent in m.retransmissions if sent.start == ack.ack]
        if not again and any(s.retransmission and s.start == ack.ack for s in ack.responses):
            # A timeout may have caused that.
            continue
        sentence = (
            f"offset {ack.ack}, exactly recover, was fast retransmitted"
            if again
            else f"the third duplicate of offset {ack.ack}, exactly recover, started nothing"
        )
        if bool(again) == bool(enters):
            yield context.holds(sentence, ack, *again)
        else:
            expected = "a fast retransmit" if enters else "no fast retransmit"
            actual = "a fast retransmit" if again else "none"
            yield context.violated(sentence, *again, ack, expected=expected, actual=actual)


@checker("SNR-REC-007")
def transmissions_per_acknowledgment(flow: Flow, context: Context) -> Findings:
    """One acknowledgment causes few transmissions (HK99 rules 4 and 6, RFC 5681 section 3.2)."""
    # Exercised by acknowledgments during recovery that cause something to be sent.
    per_ack = context.permitted("retransmissions")
    per_duplicate = context.permitted("segments_per_duplicate")
    sack = flow.handshake.sack
    if not acts_at_once(context.ics):
        return
    for m, episode in _in_fast_recovery(context):
        repeats, new = m.retransmissions, m.new_data
        if not repeats and not new:
            continue
        octets = sum(sent.length for sent in (*repeats, *new))
        what = f"{len(repeats)} retransmissions and {len(new)} new segments"
        if per_ack is not None:
            # On a partial acknowledgment HK99's rule 4 calls for output in any case.
            both = sack and bool(repeats) and bool(new) and data_waited(flow, m.ack)
            both = both and not m.ack.advance
            broken = len(repeats) > per_ack or both
            expected = "one retransmission" + (", or new data instead" if sack else "")
        elif sack or not m.ack.duplicate or _just_written(flow, m.ack):
            continue
        else:
            most = max(per_duplicate * largest_segment(flow), _inflation(flow, m, episode))
            broken = octets > most
            expected = f"at most {most} octets"
        if broken and _answers_may_be_bunched(flow, m.ack, context.timing_error):
            sentence = f"{what} left after acknowledgments that the bed cannot tell apart"
            yield context.unclear(sentence, m.ack, *repeats, *new)
        elif broken:
            sentence = f"one acknowledgment caused {what}"
            where = *repeats, *new, m.ack
            yield context.violated(
                sentence, *where, expected=f"{expected} per acknowledgment", actual=what
            )
        else:
            yield context.holds(f"one acknowledgment caused {what}", m.ack, *repeats, *new)


def _just_written(flow: Flow, ack: Ack) -> bool:
    """Whether new data may have been written, or found room in the send buffer, only then.

    It left late, or the duplicate before it let nothing out of what may have been an empty queue.
    """
    first = next((sent for sent in ack.responses if sent.new), None)
    if first is None:
        return False
    at = count_before(flow.acks, ack.packet.number)
    idle = at > 0 and flow.acks[at - 1].duplicate and not flow.acks[at - 1].responses
    if first.since_arrival <= PROMPT_S:
        return idle and may_have_been_full(flow, first)
    return may_have_been_full(flow, first) or not data_waited(flow, ack)


def _inflation(flow: Flow, m: Moment, episode: Episode) -> int:
    """Octets that the inflated window may exceed what is outstanding by (RFC 5681 section 3.2).

    It can when little was outstanding, and more duplicates arrive than that can have caused.
    """
    segment = largest_segment(flow)
    threshold = max(episode.flight // 2, 2 * segment)
    return threshold + m.ack.duplicates * segment - m.ack.flight


def _answers_may_be_bunched(flow: Flow, ack: Ack, timing_error: float) -> bool:
    """Whether unanswered acknowledgments arrived so recently that this response answers them too.

    On a busy machine a sender processes several arrivals together, and the capture shows its
    answers after the last of them.
    """
    at = bisect_left(flow.acks, ack.time, key=lambda item: item.time)
    earlier = flow.acks[at - 1] if at else None
    return earlier is not None and ack.time - earlier.time <= timing_error and not earlier.responses


@checker("SNR-REC-008")
def lost_retransmission_is_repaired(flow: Flow, context: Context) -> Findings:
    """A lost retransmission is repeated (RFC 6298 section 5, RFC 9293 section 3.8.1)."""
    # Exercised by segments that stay unacknowledged a round trip after their retransmission.
    rtt = minimum_rtt(flow)
    repeated: dict[int, Sent] = {}
    timeouts = una = 0
    for event in flow.events:
        if isinstance(event, Ack):
            una = max(una, event.ack) if event.acceptable else una
        if not isinstance(event, Sent):
            continue
        if not event.retransmission:
            continue
        before = repeated.get(event.start)
        repeated[event.start] = event
        if before is None or event.start != event.una:
            continue
        timeouts += event.timed
        if event.time - before.time >= ROUND_TRIP_SHARE * rtt:
            age = event.time - before.time
            yield context.holds(f"offset {event.start} left again after {age:.3f} s", event, before)
    last = repeated.get(una)
    if last is None or flow.own_reset is not None:
        return
    silence = flow.horizon - last.time
    patience = min(LONGEST_TIMEOUT_S * 2**timeouts, 8 * LONGEST_TIMEOUT_S)
    # What met an arrival may have been timed as well.
    patience = max(patience, measurements(flow).at_last.longest_after(timeouts + 1))
    # What was repeated before may have backed the timer off; it had not begun before this segment.
    earlier = (sent.time for sent in flow.sent if sent.start == una and sent.time < last.time)
    if silence > max(patience, 2 * (last.time - max(earlier, default=last.time))):
        yield context.violated(
            f"offset {una} was retransmitted once and then forgotten",
            last,
            expected="another retransmission when it stays unacknowledged",
            actual=f"none in the {silence:.0f} s that followed",
        )


@checker("SNR-REC-009")
def window_holds_during_recovery(flow: Flow, context: Context) -> Findings:
    """Recovery keeps to the receiver's window (RFC 5681 section 3.2 step 5)."""
    # Exercised by acknowledgments during recovery while the receiver's window is full.
    for m, _ in _in_fast_recovery(context):
        what = f"the acknowledgment of {m.ack.ack} during recovery"
        yield from within_window(flow, context, m, what)


@checker("SNR-REC-010")
def partial_acknowledgment_restarts_the_timer(flow: Flow, context: Context) -> Findings:
    """The first partial acknowledgment restarts the timer (RFC 6582 section 3.2 step 3)."""
    # Exercised by the first partial acknowledgment of a recovery without SACK.
    if flow.handshake.sack or not acts_at_once(context.ics):
        return
    rtt = minimum_rtt(flow)
    for episode in context.prepared.episodes:
        if not episode.fast or not episode.partial_acks or rtt <= 0:
            continue
        if disturbed_at(episode) <= episode.partial_acks[0].time:
            continue
        partial = episode.partial_acks[0]
        timeout = episode.interrupted
        after = episode.acks[-1].time if timeout is None else timeout.first.time
        if timeout is not None and timeout.cause is Cause.TIMEOUT and timeout.first.timed:
            waited = timeout.first.time - partial.time
            if waited < ROUND_TRIP_SHARE * rtt:
                yield context.violated(
                    f"the timer expired {waited:.3f} s after the first partial acknowledgment",
                    timeout.first,
                    partial,
                    expected=f"no timeout within the round trip of {rtt:.3f} s",
                    actual=f"a timeout after {waited:.3f} s",
                )
                continue
        if after - partial.time >= ROUND_TRIP_SHARE * rtt:
            sentence = "no timeout followed the first partial acknowledgment within a round trip"
            yield context.holds(sentence, partial)
