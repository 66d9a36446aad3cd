"""Checkers for entering fast retransmit (SNR-FR-001 to SNR-FR-008)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.tcp.checkers.window_bounds import follows_rfc_5681
from bentpipe_conformance.protocols.tcp.replay.direction import older
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent, octets
from bentpipe_conformance.protocols.tcp.replay.flow import REACTION_S, Flow
from bentpipe_conformance.protocols.tcp.replay.moments import (
    Moment,
    acts_at_once,
    answer_window,
    may_be_tail_probe,
    reaction,
)
from bentpipe_conformance.protocols.tcp.replay.order import (
    count_before,
    count_through,
    later,
    latest_first,
)
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    PROMPT_S,
    ROUND_TRIP_SHARE,
    Episode,
)
from bentpipe_conformance.protocols.tcp.replay.users import (
    largest_segment,
    smss_may_vary,
)

REORDERING_WINDOW_SHARE = 0.2
"""Share of a round trip; RFC 8985 section 6.2 uses a quarter of the smallest one."""

TIMESTAMP_TICK_S = 0.001
"""Of the fastest clock that timestamps may have (RFC 7323 section 5.4)."""


def _small_flight(m: Moment, flow: Flow, context: Context) -> bool:
    """Whether Early Retransmit (RFC 5827) may apply."""
    if not context.ics.get("early_retransmit", True):
        return False
    below = int(context.permitted("early_retransmit_below_segments", 0))
    return m.ack.flight < below * largest_segment(flow)


def _nothing_retransmitted(context: Context, m: Moment, when: str, expected: str) -> Finding:
    """The finding about an acknowledgment that must cause no retransmission."""
    if caused := [s for s in m.retransmissions if not may_be_tail_probe(s, context.ics)]:
        sentence = f"offset {caused[0].start} was retransmitted {when}"
        actual = "a retransmission"
        return context.violated(sentence, caused[0], m.ack, expected=expected, actual=actual)
    return context.holds(f"no retransmission {when}", m.ack)


@checker("SNR-FR-001")
def no_fast_retransmit_before_the_third_duplicate(flow: Flow, context: Context) -> Findings:
    """Fewer than three duplicates cause no retransmission (RFC 5681 section 3.2 step 2)."""
    # Exercised by every duplicate below the threshold outside recovery.
    if flow.handshake.sack:
        return
    for m in context.prepared.moments:
        ack = m.ack
        if m.episode or not ack.duplicate or ack.duplicates >= DUPLICATE_THRESHOLD:
            continue
        if ack.ack < m.shadow:
            continue
        if _small_flight(m, flow, context):
            continue
        expected = f"no retransmission before duplicate {DUPLICATE_THRESHOLD}"
        yield _nothing_retransmitted(context, m, f"on duplicate {ack.duplicates}", expected)


@checker("SNR-FR-002")
def third_duplicate_starts_fast_retransmit(flow: Flow, context: Context) -> Findings:
    """The third duplicate causes a fast retransmit (RFC 5681 section 3.2 steps 2 and 3)."""
    # Exercised by every third duplicate outside recovery and above recover.
    needs_sack = flow.handshake.sack and context.permitted("dupacks_need_sack", False)
    plain = follows_rfc_5681(context) and not flow.handshake.sack
    for m in context.prepared.moments:
        ack = m.ack
        if ack.beyond:
            # Whether the sender took it or not, what it takes for duplicates is unknown now.
            return
        reported = needs_sack and not context.ics.get("rack", True) and _third_report(m)
        if not m.opened(plain=plain) or not ((m.third and (m.pure or plain)) or reported):
            continue
        later = m.reach >= 0 and not plain
        # More duplicates than there are segments beside the first: the path has doubled some.
        doubled = ack.duplicates * largest_segment(flow) >= ack.flight
        if context.permitted("adaptive_threshold", False) and (m.reordered or later or doubled):
            continue
        if ack.window < min(flow.segment, flow.mss):
            continue  # the window has closed, or moved back, over what would leave again
        if context.permitted("newer_is_update", False) and _began_with_update(flow, ack):
            continue
        if needs_sack and m.informative < DUPLICATE_THRESHOLD:
            continue
        by_time = needs_sack and context.ics.get("rack", True)
        if by_time and held_segments(flow, ack) < DUPLICATE_THRESHOLD:
            # RFC 8985 section 6.2 counts segments held, not acknowledgments.
            continue
        if by_time and _shows_reordering(flow, ack):
            continue
        if ack.ack == 0 and context.permitted("first_octet_exempt", False):
            continue
        if reports_parts(flow, context, ack):
            continue
        yield from _answer_to_third(flow, context, m)


def _shows_reordering(flow: Flow, ack: Ack) -> bool:
    """Whether it reports what lies below the highest octet held before, which was sent once.

    Then RFC 8985 section 6.2 step 4 waits for its reordering window.
    """
    at = count_before(flow.acks, ack.packet.number)
    before = flow.acks[at - 1] if at else ack
    return (
        ack.newly_sacked > 0
        and before.sacked[-1:] != ()
        and (before.sacked[-1][1] == ack.sacked[-1][1])
    )


def reports_parts(flow: Flow, context: Context, ack: Ack) -> bool:
    """Whether its blocks may be parts of larger packets, whose report gets lost.

    That is so with the alternative ``whole_packets``, the segments of the largest packet: at either
    edge of a block all but one of them may be such a part.
    """
    segment = largest_segment(flow)
    lost: int = 2 * (context.permitted("whole_packets", 0) - 1) * segment
    held = sum(max(0, right - left - lost) for left, right in ack.sacked)
    return lost >= 0 and held < DUPLICATE_THRESHOLD * segment


def _began_with_update(flow: Flow, third: Ack) -> bool:
    """Whether the first duplicate of a row begins beyond the acknowledgment before it."""
    at = count_through(flow.acks, third.packet.number)
    acceptable = [item for item in flow.acks[:at] if item.acceptable]
    *_, before, first, _, _ = acceptable
    return older(before.tcp.seq, first.tcp.seq)


def _third_report(m: Moment) -> bool:
    """Whether it is the third to report newly held data while the number stands.

    RFC 6675 section 2 asks for nothing else, such as the same window.
    """
    moved = m.last_advance is not None and m.last_advance.newly_sacked > 0
    return m.ack.newly_sacked > 0 and m.informative - moved == DUPLICATE_THRESHOLD


def _arrived_meanwhile(flow: Flow, context: Context, m: Moment) -> bool:
    """Whether an acknowledgment made the retransmission unnecessary before it was due.

    A sender that paces may hold it back that long.
    """
    ack = m.ack
    due = ack.time + (flow.reaction if acts_at_once(context.ics) else answer_window(m, context.ics))
    meanwhile = takewhile(lambda item: item.time <= due, later(flow.acks, ack.packet))
    return any(item.ack > ack.ack for item in meanwhile)


def _answer_to_third(flow: Flow, context: Context, m: Moment) -> Findings:
    ack = m.ack
    answers = flow.after(ack.packet, ack.time + answer_window(m, context.ics))
    first = next((sent for sent in answers if sent.retransmission), None)
    took = reaction(m, first, context.ics, context.timing_error)
    expected = f"a retransmission of offset {ack.ack}"
    if first is not None and context.ics.get("rack", True) and first.start == ack.ack:
        # RFC 8985 section 6.2 step 4: a reordering window of a quarter of the smallest round trip.
        took = "at once" if first.time - ack.time <= m.rtt / 4 + flow.reaction else took
    ahead = [s for s in ack.responses if s.new and first and s.packet.number < first.packet.number]
    if first is not None and took == "unclear":
        waited = f"{first.time - ack.time:.3f} s"
        sentence = f"pacing or a busy bed could have kept the retransmission back for {waited}"
        yield context.unclear(sentence, first, ack)
    elif first is None or took == "late":
        if flow.horizon < ack.time + REACTION_S and not ack.responses:
            return
        if first is None and _arrived_meanwhile(flow, context, m):
            return
        episode = next((e for e in context.prepared.episodes if e.first.time >= ack.time), None)
        yield context.violated(
            f"the third duplicate for offset {ack.ack} started no fast retransmit",
            ack,
            *([episode.first] if episode else []),
            expected=expected,
            actual="nothing was retransmitted" if episode is None
            else f"offset {episode.first.start} was retransmitted "
            f"{episode.first.time - ack.time:.3f} s later ({episode.cause.value})",
        )  # fmt: skip
    elif first.start != ack.ack:
        sentence = f"the third duplicate for offset {ack.ack} made offset {first.start} leave first"
        actual = f"a retransmission of offset {first.start}"
        yield context.violated(sentence, first, ack, expected=expected, actual=actual)
    elif ahead and acts_at_once(context.ics):
        sentence = f"the third duplicate for offset {ack.ack} sent new data first"
        actual = f"new data {ahead[0].span}, then the retransmission"
        yield context.violated(sentence, *ahead, first, ack, expected=expected, actual=actual)
    else:
        yield context.holds(f"offset {first.start} was retransmitted on duplicate 3", first, ack)


@checker("SNR-FR-003")
def no_recovery_on_insufficient_sack_evidence(flow: Flow, context: Context) -> Findings:
    """With SACK, recovery needs the profile's evidence (RFC 6675 4, RFC 8985 6.2)."""
    # Exercised by acknowledgments outside recovery that newly report held data.
    if smss_may_vary(flow, context.ics):
        return
    if not flow.handshake.sack:
        return
    kinds, rack = evidence_kinds(context), context.ics.get("rack", True)
    lingering, hidden = False, -1
    for m in context.prepared.moments:
        ack = m.ack
        # While something stays held after a recovery, time alone may begin another (RFC 8985
        # section 6.2), which shows only when it retransmits.
        if ack.acceptable:
            ended = m.episode is not None and m.episode.end is ack
            lingering = rack and bool(ack.sacked) and (lingering or ended)
            hidden = ack.max if lingering else hidden
        if m.episode or not ack.newly_sacked or _small_flight(m, flow, context):
            continue
        if ack.ack < hidden:
            continue
        # Without RACK a recovery ends at its RecoveryPoint, whatever it has sent beyond that.
        if ack.ack < (m.shadow if rack else m.reach):
            continue
        # Only the first starts recovery; others that the same acknowledgment causes belong to it.
        early = [
            sent for sent in m.retransmissions[:1]
            if not (_evidence(sent, m, flow, kinds) or may_be_tail_probe(sent, context.ics))
        ]  # fmt: skip
        if early:
            yield context.violated(
                f"offset {early[0].start} left again with {octets(ack.sacked)} octets held, after "
                f"{ack.duplicates} duplicates",
                early[0],
                ack,
                expected="no retransmission on this evidence",
                actual="a retransmission",
            )
        elif not m.retransmissions and not _evidence(None, m, flow, kinds):
            yield context.holds(f"no retransmission with {octets(ack.sacked)} octets held", ack)


def evidence_kinds(context: Context) -> list[str]:
    """The kinds of evidence of a loss that an implementation may act on."""
    claimed = context.ics.get("rack", True)
    by_time = context.permitted("rack_evidence", []) if claimed else []
    return [*context.permitted("evidence", []), *by_time]


def _evidence(sent: Sent | None, m: Moment, flow: Flow, kinds: list[str]) -> bool:
    """Whether the segment that ``sent`` repeats may be considered lost when it leaves.

    When nothing was sent, the question is about the segment at the acknowledgment number.
    """
    start, time = (m.ack.ack, m.ack.time) if sent is None else (sent.start, sent.time)
    above = [(max(a, start), b) for a, b in m.ack.sacked if b > start]
    tests: dict[str, Callable[[], bool]] = {
        "duplicates": lambda: m.ack.duplicates >= DUPLICATE_THRESHOLD,
        "reports": lambda: m.informative >= DUPLICATE_THRESHOLD,
        "octets": lambda: octets(above) > (DUPLICATE_THRESHOLD - 1) * flow.segment,
        "ranges": lambda: len(above) >= DUPLICATE_THRESHOLD,
        "segments": lambda: held_segments(flow, m.ack) >= DUPLICATE_THRESHOLD,
        "time": lambda: any(
            overdue(start, at, ack, m.rtt, flow) for ack, at in _reports(time, m, flow)
        ),
    }
    return any(tests[kind]() for kind in kinds)


def held_segments(flow: Flow, ack: Ack) -> int:
    """How many segments, however small, an acknowledgment and those before it report held."""
    return sum(
        not sent.retransmission and any(a <= sent.start and sent.end <= b for a, b in ack.sacked)
        for sent in _sent_from(ack.sacked[0][0] if ack.sacked else ack.max, flow, ack)
    )


def _sent_from(offset: int, flow: Flow, ack: Ack) -> Iterator[Sent]:
    """What had been sent from an offset on when an acknowledgment arrived, the latest first."""
    for sent in latest_first(flow.sent, count_before(flow.sent, ack.packet.number)):
        if not sent.retransmission and sent.end <= offset:
            return
        yield sent


def _reports(time: float, m: Moment, flow: Flow) -> list[tuple[Ack, float]]:
    """An acknowledgment and what repeated its number before, each with when it was last the latest.

    What a reordering timer took for lost stays so, and a full window may keep it until the next
    arrival; that arrival a timer may have met.
    """
    number = count_before(flow.acks, m.ack.packet.number)
    met = flow.timing_error < time - m.ack.time <= PROMPT_S
    found, until = [(m.ack, time)], time if met else m.ack.time
    for ack in latest_first(flow.acks, number):
        if ack.ack != m.ack.ack or len(found) > DUPLICATE_THRESHOLD:
            break
        found.append((ack, until))
        until = ack.time
    return found


def overdue(start: int, time: float, ack: Ack, rtt: float, flow: Flow) -> bool:
    """Whether RFC 8985 may consider the segment at ``start`` lost at ``time``.

    It may once the segment has been on its way longer, by a reordering window, than the newest of
    the held segments was.
    """
    held = [(max(a, start), b) for a, b in ack.sacked if b > start]
    own = newest = None
    for sent in _sent_from(start, flow, ack):
        if own is None and sent.start <= start < sent.end:
            own = sent.time
        if newest is None and any(a <= sent.start < b for a, b in held):
            newest = sent.time
        if own is not None and newest is not None:
            break
    else:
        return False
    # What is delivered is itself measured (section 6.2 step 1), the smallest round trip perhaps by
    # timestamps, which may make it shorter by a tick.
    took = _last_news(flow, ack) - newest
    coarse = TIMESTAMP_TICK_S if flow.handshake.timestamps else 0.0
    return (time - own) - took >= REORDERING_WINDOW_SHARE * max(0.0, min(rtt, took) - coarse)


def _last_news(flow: Flow, ack: Ack) -> float:
    """When an acknowledgment, or one before it, last told of new data delivered."""
    acks = latest_first(flow.acks, count_through(flow.acks, ack.packet.number))
    return next((item.time for item in acks if item.newly_sacked or item.advance), ack.time)


@checker("SNR-FR-004")
def window_update_is_no_duplicate(flow: Flow, context: Context) -> Findings:
    """A window update is not counted as a duplicate (RFC 5681 section 2, condition e)."""
    # Exercised by repeated acknowledgments, at least one of which offers another window.
    updates: set[Ack] = set()
    last = -1
    plain = follows_rfc_5681(context)
    for ack in flow.acks:
        other = last < ack.window or (plain and last > ack.window)
        if not ack.tcp.length and last >= 0 and other:
            updates.add(ack)
        if ack.acceptable:
            last = ack.window
    yield from _not_counted(flow, context, updates.__contains__, "window update")
    if plain and not flow.handshake.sack:
        yield from _not_inflating(flow, context, updates.__contains__)


def _not_inflating(flow: Flow, context: Context, updates: Callable[[Ack], bool]) -> Findings:
    """Window updates in a recovery whose window is used up: each duplicate has let one out."""
    size = largest_segment(flow)
    full = False
    edge = 0
    for m in context.prepared.moments:
        ack = m.ack
        sent = [item for item in ack.responses if item.new]
        room, edge = edge - ack.max >= size, m.window_edge
        if m.episode is None or not m.episode.fast or m.disturbed or ack.advance:
            full = False
        elif ack.duplicate:
            full = bool(sent) and all(item.payload >= size for item in sent)
        elif full and room and updates(ack) and ack.acceptable:
            octets = sum(item.payload for item in sent)
            sentence = f"a window update in recovery sent {octets} octets of new data"
            expected = "nothing: only a duplicate inflates the window (RFC 5681 section 3.2 step 4)"
            yield judged(
                context, not sent, sentence, *sent[:1], ack, expected=expected,
                actual=f"{octets} octets",
            )  # fmt: skip
            if sent:
                return


@checker("SNR-FR-005")
def segment_with_data_is_no_duplicate(flow: Flow, context: Context) -> Findings:
    """A segment with data is not counted as a duplicate (RFC 5681 section 2, condition b)."""
    # Exercised by repeated acknowledgments, at least one of which carries data.
    yield from _not_counted(flow, context, lambda ack: ack.tcp.length > 0, "segment with data")


def _not_counted(flow: Flow, context: Context, kind: Callable[[Ack], bool], name: str) -> Findings:
    """Repeats that only together with segments of a kind reach the threshold."""
    seen = 0
    for m in context.prepared.moments:
        ack = m.ack
        if m.episode or ack.advance or m.repeats <= 1:
            seen = 0
        if m.episode or not ack.acceptable or ack.advance or not ack.flight or ack.sacked:
            continue
        seen += kind(ack)
        if not seen or ack.duplicates >= DUPLICATE_THRESHOLD or ack.ack < m.shadow:
            continue
        if ack.flight < 4 * largest_segment(flow) or seen + ack.duplicates < DUPLICATE_THRESHOLD:
            continue
        count = f"{ack.duplicates} duplicates and {seen} times a {name}"
        expected = f"a {name} is not counted as a duplicate"
        yield _nothing_retransmitted(context, m, f"after {count}", expected)


@checker("SNR-FR-006")
def one_fast_retransmission_of_a_segment(flow: Flow, context: Context) -> Findings:
    """Duplicates do not repeat a fast retransmission (RFC 5681 section 3.2 step 4)."""
    # Exercised by duplicates during a recovery that acknowledgments started.
    repeated: dict[int, Sent] = {}
    current: Episode | None = None
    rescues = 0
    for m in context.prepared.moments:
        episode = m.episode
        if episode is None or not episode.fast or m.disturbed:
            continue
        if episode is not current:
            current = episode
            rescues = context.permitted("rescue_retransmissions") if flow.handshake.sack else 0
            number = m.ack.packet.number
            earlier = (s for s in episode.retransmissions if s.packet.number < number)
            repeated = {sent.start: sent for sent in earlier}
        again = None
        for sent in m.retransmissions:
            before = repeated.get(sent.start)
            repeated[sent.start] = sent
            if before is None or (
                context.permitted("repeat_after_round_trip")
                and sent.time - before.time >= ROUND_TRIP_SHARE * m.rtt
            ):
                continue
            if rescues:
                rescues -= 1
            else:
                again = before, sent
        if again is not None:
            before, sent = again
            sentence = f"an acknowledgment repeated the retransmission of offset {sent.start}"
            expected = "one retransmission of the segment in this recovery phase"
            actual = f"a second one {sent.time - before.time:.3f} s later"
            yield context.violated(sentence, sent, before, m.ack, expected=expected, actual=actual)
        elif m.ack.duplicate:
            yield context.holds("a further duplicate repeated no retransmission", m.ack)


@checker("SNR-FR-007")
def new_acknowledgments_restart_the_count(flow: Flow, context: Context) -> Findings:
    """New data acknowledged restarts the count of duplicates (RFC 5681 section 3.2 step 2)."""
    # Exercised by three duplicates in all, but not in a row.
    if flow.handshake.sack:
        return
    total = 0
    for m in context.prepared.moments:
        ack = m.ack
        if m.episode:
            total = 0
            continue
        if not ack.duplicate:
            continue
        total += 1
        if ack.duplicates >= DUPLICATE_THRESHOLD or total < DUPLICATE_THRESHOLD:
            continue
        if ack.ack < m.shadow:
            continue
        if _small_flight(m, flow, context):
            continue
        when = f"on duplicate {ack.duplicates} in a row, {total} in all"
        expected = "no retransmission: the count restarts with every new acknowledgment"
        yield _nothing_retransmitted(context, m, when, expected)


@checker("SNR-FR-008")
def bare_repetition_with_sack_is_no_duplicate(flow: Flow, context: Context) -> Findings:
    """With SACK, repetitions that report nothing new start no recovery (RFC 6675 section 2)."""
    # Exercised by three repeats outside recovery that report nothing, or what has been reported.
    if not flow.handshake.sack:
        return
    kinds = [kind for kind in evidence_kinds(context) if kind != "duplicates"]
    for m in context.prepared.moments:
        ack = m.ack
        if m.episode or not ack.duplicate or ack.newly_sacked:
            continue
        if ack.duplicates < DUPLICATE_THRESHOLD or ack.flight < 4 * largest_segment(flow):
            continue
        if ack.ack < m.shadow:
            continue
        caused = m.retransmissions[0] if m.retransmissions else None
        if ack.sacked and _evidence(caused, m, flow, kinds):
            continue
        when = f"on repetition {ack.duplicates} of an acknowledgment, which reports nothing new"
        expected = "no recovery without new SACK information"
        yield _nothing_retransmitted(context, m, when, expected)
