"""Checkers for the progress of a recovery with SACK (SNR-SAK-007, -008, -010 and -015)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.checkers import Context, Findings
from bentpipe_conformance.protocols.tcp.checkers.fast_retransmit import reports_parts
from bentpipe_conformance.protocols.tcp.checkers.sack_retransmission import negotiated_scoreboard
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, octets
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import acts_at_once, is_evidence
from bentpipe_conformance.protocols.tcp.replay.order import count_before, count_through
from bentpipe_conformance.protocols.tcp.replay.pacing import longest_pause
from bentpipe_conformance.protocols.tcp.replay.recovery import PROMPT_S, Episode
from bentpipe_conformance.protocols.tcp.replay.scoreboard import Report, Scoreboard
from bentpipe_conformance.protocols.tcp.replay.users import (
    data_waited,
    largest_segment,
    latest,
    may_be_last,
    most_outstanding,
)


def _arrived(report: Report) -> float:
    return report.ack.time


def _pause(flow: Flow, context: Context, ack: Ack) -> float:
    """Seconds for which a pacing timer may hold back what an acknowledgment lets out."""
    return 0.0 if acts_at_once(context.ics) else longest_pause(flow, ack.packet.number)


def _certain(board: Scoreboard, context: Context) -> set[Episode]:
    """The fast recoveries that certainly began and end where the packets show it.

    After a timeout, or a recovery that left something held behind, the sender may be in a recovery
    that began with no retransmission of its own.
    """
    certain = set()
    timer = next((r.sent.time for r in board.repeats if r.timer), None)
    for episode in context.prepared.episodes:
        timed = timer is not None and timer <= episode.first.time
        if not episode.fast or episode.nested or episode.doubtful or timed:
            break
        certain.add(episode)
        if episode.end is None or episode.end.sacked:
            break
    return certain


@checker("SNR-SAK-007")
def several_holes_are_repaired_per_round_trip(flow: Flow, context: Context) -> Findings:
    """Several holes are repaired in one round trip (HK99 rule 6, RFC 6675 section 5 step C)."""
    # Exercised when a recovery knows of several holes before its first repair is acknowledged.
    if not flow.handshake.sack:
        return
    board = context.prepared.scoreboard
    certain = _certain(board, context)
    for episode in context.prepared.episodes:
        if not episode.fast or episode.nested or episode.flight < 8 * largest_segment(flow):
            continue
        first = episode.first
        repaired = next((ack for ack in episode.acks if ack.ack >= first.end), None)
        if repaired is None or repaired.packet.number > flow.first_reset:
            continue
        # First retransmissions of a segment; tails are left out.
        again = (s for s in episode.retransmissions if s.transmission == 2 and s is not first)
        others = [sent for sent in again if sent.packet.number < repaired.packet.number]
        if others:
            yield context.holds(
                f"{1 + len(others)} holes were repaired within a round trip", first, others[-1]
            )
            continue
        if episode not in certain:
            continue
        if first.since_arrival > PROMPT_S and not is_evidence(first):
            continue  # a timeout may have met an arrival
        if repaired.time - first.time <= _pause(flow, context, repaired):
            continue
        since = bisect_left(board.reports, first.time, key=_arrived)
        reports = board.reports[since : bisect_left(board.reports, repaired.time, key=_arrived)]
        # Data of the peer that reports nothing lets nothing out.
        before = [report for report in reports if report.ack.newly_sacked]
        if len(before) < 3 or any(report.forgiven or report.reordered for report in before):
            continue
        lasting = set(before[-3].eligible).intersection(before[-1].eligible)
        # RFC 6675 section 4 (IsLost) counts what is held above, not how far it reaches; with the
        # alternative ``whole_packets`` the report of a part of a larger packet gets lost.
        whole = context.permitted("whole_packets", 0) * largest_segment(flow)
        held = [item for item in before[-3].ack.sacked if item[1] - item[0] >= whole]
        above = DUPLICATE_THRESHOLD * largest_segment(flow)
        waiting = sorted(
            start for start in lasting
            if start >= first.end and octets(r for r in held if r[0] > start) >= above
        )  # fmt: skip
        # By then half the window and three segments have left the network, so that every
        # permitted window reduction lets something out.
        arrived = octets(before[-1].ack.sacked)
        if waiting and arrived >= episode.flight / 2 + 3 * largest_segment(flow):
            sentence = f"the hole at {waiting[0]} waited for the acknowledgment of {first.span}"
            expected = "the next hole within the same round trip"
            actual = "one retransmission per round trip"
            yield context.violated(sentence, repaired, first, expected=expected, actual=actual)


@checker("SNR-SAK-008")
def one_retransmission_per_acknowledgment(flow: Flow, context: Context) -> Findings:
    """Each acknowledgment in recovery causes one retransmission (HK99 rule 6)."""
    # Exercised by every acknowledgment in a recovery while a segment is certainly eligible.
    if not flow.handshake.sack:
        return
    board = context.prepared.scoreboard
    certain = _certain(board, context)
    for episode in context.prepared.episodes:
        if episode.trigger is None or episode not in certain:
            continue
        for ack in episode.acks:
            report = board.report_of.get(ack)
            if report is None or report.forgiven:
                continue
            if ack is episode.end or not (ack.advance or ack.duplicate):
                continue
            # A report of a duplicate asks for nothing (RFC 2883 section 5).
            if not ack.acceptable or ack.ack >= episode.recover or ack.dsack is not None:
                continue
            if not report.eligible:
                continue
            again = [sent for sent in ack.responses if sent.retransmission]
            sure = [sent for sent in again if not board.timed(sent)]
            # What a user has just written leaves as well.
            new = [sent for sent in ack.responses if sent.new and data_waited(flow, ack)]
            # On a partial acknowledgment rule 4 calls for output in any case.
            new = [] if ack.advance else new
            if len(sure) <= 1 <= len(again) and not new:
                sentence = f"{again[0].span} alone answered the acknowledgment"
                yield context.holds(sentence, ack, again[0])
            else:
                sentence = f"not the eligible hole at {report.eligible[0]} alone was retransmitted"
                expected = "exactly one retransmission"
                actual = f"{len(again)} retransmissions, {len(new)} new segments"
                where = ack, *ack.responses
                yield context.violated(sentence, *where, expected=expected, actual=actual)


@checker("SNR-SAK-010")
def new_data_is_sent_during_recovery(flow: Flow, context: Context) -> Findings:
    """New data is sent once nothing is eligible (HK99 rule 6, RFC 6675 section 4)."""
    # Exercised by a recovery in which most of the window is reported held. Sending nothing new is
    # a violation only when the sender certainly had data, buffer and offered window: a full
    # segment, which Nagle's rule does not hold back, leaves as soon as recovery ends, and more was
    # outstanding before.
    if not flow.handshake.sack:
        return
    board = context.prepared.scoreboard
    segment = largest_segment(flow)
    certain = _certain(board, context)
    for episode in context.prepared.episodes:
        if not episode.fast or episode.nested or episode.end is None:
            continue
        end = episode.end
        new = next((sent for sent in episode.sent if sent.new), None)
        if new is not None:
            yield context.holds("new data was sent before recovery ended", new)
            continue
        if episode not in certain or any(map(board.timed, episode.sent)):
            continue
        if end.time - episode.first.time <= _pause(flow, context, end):
            continue
        acks = [ack for ack in episode.acks if ack is not end]
        arrived = max((octets(ack.sacked) for ack in acks), default=0)
        if context.permitted("counts") == "acknowledgments":
            arrived = min(arrived, sum(ack.duplicate for ack in acks) * flow.segment)
        if arrived < episode.flight / 2 + context.permitted("margin_segments") * segment:
            continue
        before = most_outstanding(flow, episode.first.packet.number)
        # A window that moved back may have left no room.
        edge = min((ack.window_edge for ack in acks), default=episode.first.window_edge)
        room = edge >= episode.recover + 2 * segment
        full = any(sent.new and sent.payload >= segment for sent in end.responses)
        waiting = full and data_waited(flow, end) and not _may_be_full(flow, episode)
        if room and waiting and before >= episode.flight + 2 * segment:
            yield context.violated(
                f"no new data was sent in a recovery in which {arrived} octets were reported held",
                end,
                episode.first,
                expected="new data once nothing is eligible and the window allows it",
                actual="new data only after recovery",
            )


def _may_be_full(flow: Flow, episode: Episode) -> bool:
    """Whether the send buffer may have held no more than was outstanding."""
    last = latest(flow, episode.acks[0])
    return last is not None and may_be_last(flow, last)


def _advances(flow: Flow, ack: Ack, until: float) -> bool:
    """Whether something new is acknowledged after an acknowledgment, no later than a time."""
    advances = _news(flow)
    following = count_through(advances, ack.packet.number)
    return following < len(advances) and advances[following].time <= until


@remembered
def _news(flow: Flow) -> list[Ack]:
    """What acknowledged something new."""
    return [ack for ack in flow.acks if ack.advance]


def _third_is_short(flow: Flow, report: Report) -> bool:
    """Whether more octets than two full segments' are held above, and they are three segments.

    SMSS is no larger than the peer's MSS; a FIN takes a number, and is no octet.
    """
    ack, size = report.ack, largest_segment(flow)
    if report.above <= 2 * max(size, flow.mss) + 1:
        return False
    before = flow.sent[: count_before(flow.sent, ack.packet.number)]
    held = (
        sent for sent in before
        if sent.new and any(a <= sent.start and sent.end <= b for a, b in ack.sacked)
    )  # fmt: skip
    # What segmentation offload cuts later counts as what it is cut into.
    return sum(-(-sent.payload // size) for sent in held) >= DUPLICATE_THRESHOLD


@checker("SNR-SAK-015")
def one_acknowledgment_can_show_a_loss(flow: Flow, context: Context) -> Findings:
    """One acknowledgment that shows a loss starts recovery (RFC 6675 section 5 step 2)."""
    # Exercised by an acknowledgment that shows a loss with fewer than three duplicates.
    board = negotiated_scoreboard(flow, context)
    if not board.rtt:
        return
    allowed = context.permitted("react_rtts") * board.rtt + 2 * context.timing_error
    last = flow.horizon
    recover = -1
    unrepaired = frozenset(context.prepared.unrepaired_ends)
    waiting = iter(context.prepared.episodes)
    episode = next(waiting, None)
    for report in board.reports:
        ack = report.ack
        while episode is not None and episode.first.packet.number < ack.packet.number:
            recover = max(recover, episode.recover)
            episode = next(waiting, None)
        if ack in unrepaired:
            recover = ack.max
        if not ack.newly_sacked or ack.advance or ack.una < recover or not ack.acceptable:
            continue
        if report.reordered or report.forgiven or report.una_repeats:
            continue
        if ack.duplicates >= DUPLICATE_THRESHOLD or reports_parts(flow, context, ack):
            continue
        scattered = not context.ics.get("rack", True) and len(ack.sacked) >= DUPLICATE_THRESHOLD
        full = report.above >= 3 * largest_segment(flow)
        if not (full or scattered or _third_is_short(flow, report)):
            continue
        end = ack.time + max(allowed, _pause(flow, context, ack))
        first = bisect_left(flow.sent, ack.time, key=attrgetter("packet.time"))
        until = bisect_right(flow.sent, end, lo=first, key=attrgetter("packet.time"))
        soon = (flow.sent[at] for at in range(first, until))
        answer = next((sent for sent in soon if sent.start <= ack.una < sent.end), None)
        if answer is not None:
            yield context.holds(f"{report.above} octets held started recovery", answer, ack)
        elif last > end and not _advances(flow, ack, end):
            sentence = f"{report.above} octets held above offset {ack.una} started no recovery"
            expected = f"a retransmission of offset {ack.una} within {allowed:.3f} s"
            yield context.violated(sentence, ack, expected=expected, actual="none")
        recover = max(recover, ack.max)
