"""Checkers for the sender's use of selective acknowledgments (SNR-SAK-001 to -011 and -015)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.analysis.flow import Ack, Flow, Sent
from bentpipe_conformance.analysis.recovery import Episode
from bentpipe_conformance.analysis.scoreboard import Repeat, Report, Scoreboard, read_scoreboard
from bentpipe_conformance.checking import Context, Finding, checker

DUPLICATE_THRESHOLD = 3
"""RFC 5681 section 3.2 and DupThresh of RFC 6675."""


def _scoreboard(flow: Flow, context: Context) -> Scoreboard | None:
    """The flow's scoreboard, None when SACK was not negotiated."""
    if not flow.handshake.sack:
        return None
    return read_scoreboard(flow, context.episodes, context.timing_error)


def _repeats(flow: Flow, context: Context) -> list[Repeat]:
    board = _scoreboard(flow, context)
    return board.repeats if board else []


def _name(sent: Sent) -> str:
    return f"[{sent.start}, {sent.end})"


@checker("SNR-SAK-001")
def held_data_is_not_retransmitted(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every retransmission while something is held, timeouts aside."""
    for repeat in _repeats(flow, context):
        if repeat.timer or repeat.going_back or not repeat.reported:
            continue
        if repeat.held:
            yield context.violated(
                f"{_name(repeat.sent)} was retransmitted although it was reported held",
                repeat.sent,
                expected="retransmissions of what is missing only",
                actual=f"a retransmission of held data {_name(repeat.sent)}",
            )
        else:
            yield context.holds(f"{_name(repeat.sent)} was missing when retransmitted", repeat.sent)


@checker("SNR-SAK-002")
def new_reports_are_used_after_a_timeout(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every retransmission of a go-back while something newly reported is held."""
    for repeat in _repeats(flow, context):
        if repeat.timer or not repeat.going_back or not repeat.reported:
            continue
        if repeat.held:
            yield context.violated(
                f"{_name(repeat.sent)} was retransmitted after a timeout although a report that "
                "followed the timeout shows it held",
                repeat.sent,
                expected="held data is passed over",
                actual=f"a retransmission of {_name(repeat.sent)}",
            )
        else:
            yield context.holds(f"{_name(repeat.sent)} was missing when retransmitted", repeat.sent)
    yield from _went_past_held_data(flow, context)


def _went_past_held_data(flow: Flow, context: Context) -> Iterator[Finding]:
    """New data sent while going back, with held data between: the held data was passed over."""
    board = _scoreboard(flow, context)
    if board is None:
        return
    for episode in context.episodes:
        if episode.fast or episode.end is None:
            continue
        acks = [ack for ack in episode.acks if ack.newly_sacked or ack.blocks]
        new = next((sent for sent in episode.sent if sent.new and sent.sacked), None)
        if acks and new is not None and acks[0].time < new.time:
            yield context.holds("held data was passed over after the timeout", new)


@checker("SNR-SAK-003")
def holes_are_repaired_lowest_first(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every first retransmission of an acknowledgment-driven recovery after one."""
    started: set[int] = set()
    for repeat in _repeats(flow, context):
        if repeat.timer or repeat.forgiven or repeat.repeats or repeat.tail:
            continue
        if repeat.lower is not None:
            yield context.violated(
                f"{_name(repeat.sent)} was retransmitted before the lower hole at {repeat.lower}",
                repeat.sent,
                expected=f"the hole at {repeat.lower} first",
                actual=f"offset {repeat.sent.start} first",
            )
            continue
        episode = next((e for e in context.episodes if e.first.time <= repeat.sent.time and (
            e.end is None or repeat.sent.time <= e.end.time)), None)  # fmt: skip
        if episode is not None and id(episode) in started:
            yield context.holds(f"{_name(repeat.sent)} was the lowest hole", repeat.sent)
        if episode is not None:
            started.add(id(episode))


@checker("SNR-SAK-004")
def retransmission_has_evidence(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every first retransmission that no timer explains."""
    for repeat in _repeats(flow, context):
        sent = repeat.sent
        if repeat.timer or repeat.forgiven or repeat.repeats or sent.timed:
            continue
        if repeat.delivered_later:
            yield context.holds(f"data sent after {_name(sent)} had arrived", sent)
        elif sent.start == sent.una and repeat.duplicates >= DUPLICATE_THRESHOLD:
            yield context.holds(f"{repeat.duplicates} duplicates asked for {_name(sent)}", sent)
        elif not repeat.tail:
            yield context.violated(
                f"{_name(sent)} was retransmitted although nothing sent after it is known to have "
                "arrived",
                sent,
                expected="something held above it, three duplicates, or a timeout",
                actual=f"held above it: {repeat.above} octets; duplicates: {repeat.duplicates}",
            )


@checker("SNR-SAK-005")
def only_eligible_segments_are_retransmitted(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every retransmission that no timer explains."""
    for repeat in _repeats(flow, context):
        sent = repeat.sent
        if repeat.timer or repeat.forgiven:
            continue
        distant = repeat.highest > sent.start + DUPLICATE_THRESHOLD * flow.segment
        asked = sent.start == sent.una and repeat.duplicates >= DUPLICATE_THRESHOLD
        if repeat.repeats or not (distant or asked):
            why = "it had been retransmitted" if repeat.repeats else "the receiver holds too little"
            yield context.violated(
                f"{_name(sent)} was not eligible: {why}",
                sent,
                expected="three duplicates, or data held at least three segments beyond",
                actual=f"duplicates: {repeat.duplicates}; highest held octet: {repeat.highest}; "
                f"retransmitted before: {repeat.repeats} times",
            )
        else:
            yield context.holds(f"{_name(sent)} was eligible", sent)


@checker("SNR-SAK-006")
def recovery_begins_at_the_threshold(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by the first retransmission of every recovery an acknowledgment starts."""
    runs = context.permitted("held_runs")
    octets = context.permitted("held_segments") * flow.segment
    distance = context.permitted("distance_segments") * flow.segment
    board = _scoreboard(flow, context)
    firsts = {id(e.first) for e in context.episodes if e.trigger is not None and not e.nested}
    for repeat in board.repeats if board else []:
        sent = repeat.sent
        if id(sent) not in firsts or repeat.timer or repeat.forgiven or repeat.repeats:
            continue
        if sent.start != sent.una or sent.flight < 4 * flow.segment:
            continue
        if (
            repeat.duplicates >= DUPLICATE_THRESHOLD
            or repeat.runs >= runs
            or repeat.above > octets
            or repeat.highest > sent.start + distance
        ):
            yield context.holds(f"recovery began with {repeat.above} octets held", sent)
        elif repeat.age < context.permitted("reordering_rtts") * board.rtt if board else False:
            yield context.violated(
                f"recovery began after {repeat.duplicates} duplicates with {repeat.above} octets "
                f"held above {_name(sent)}",
                sent,
                expected="three duplicates, three runs or more than two segments held, or a wait",
                actual=f"a retransmission {repeat.age:.3f} s after the transmission",
            )


def _repaired(episode: Episode) -> list[Sent]:
    """First retransmissions of an episode, tails left out."""
    return [s for s in episode.retransmissions if s.transmission == 2]


@checker("SNR-SAK-007")
def several_holes_are_repaired_per_round_trip(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised when a recovery knows of several holes before its first repair is acknowledged."""
    board = _scoreboard(flow, context)
    if board is None:
        return
    for episode in context.episodes:
        if episode.trigger is None or episode.nested or episode.flight < 8 * flow.segment:
            continue
        first = episode.first
        repaired = next((ack for ack in episode.acks if ack.ack >= first.end), None)
        if repaired is None:
            continue
        before = [r for r in board.reports if first.time <= r.ack.time < repaired.time]
        told = [r for r in before[:-2] if any(start >= first.end for start in r.eligible)]
        arrived = sum(b - a for a, b in before[-1].ack.sacked) if before else 0
        # By then half the window and three segments have left the network, so that every
        # permitted window reduction lets something out.
        if not told or arrived < episode.flight / 2 + 3 * flow.segment:
            continue
        if any(report.forgiven for report in before):
            continue
        others = [s for s in _repaired(episode) if s is not first and s.time < repaired.time]
        if others:
            yield context.holds(
                f"{1 + len(others)} holes were repaired within a round trip", first, others[-1]
            )
        else:
            yield context.violated(
                f"the hole at {told[-1].eligible[-1]} waited until {_name(first)} was acknowledged",
                repaired,
                first,
                expected="the next hole within the same round trip",
                actual="one retransmission per round trip",
            )


@checker("SNR-SAK-008")
def one_retransmission_per_acknowledgment(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every acknowledgment inside a recovery while a segment is surely eligible."""
    board = _scoreboard(flow, context)
    if board is None:
        return
    by_ack = {id(report.ack): report for report in board.reports}
    for episode in context.episodes:
        if episode.trigger is None or episode.interrupted is not None:
            continue
        for ack in episode.acks:
            report = by_ack[id(ack)]
            if ack is episode.end or not (ack.advance or ack.duplicate) or report.forgiven:
                continue
            if not ack.acceptable or ack.ack >= episode.recover:
                continue
            yield from _one_each(report, context)


def _one_each(report: Report, context: Context) -> Iterator[Finding]:
    if not report.eligible:
        return
    ack = report.ack
    again = [sent for sent in ack.responses if sent.retransmission]
    new = [sent for sent in ack.responses if sent.new]
    if len(again) == 1 and not new:
        yield context.holds(f"{_name(again[0])} alone answered the acknowledgment", ack, again[0])
    else:
        yield context.violated(
            f"an acknowledgment with the hole at {report.eligible[0]} eligible sent {len(again)} "
            f"retransmissions and {len(new)} new segments",
            ack,
            *ack.responses,
            expected="exactly one retransmission",
            actual=f"{len(again)} retransmissions, {len(new)} new segments",
        )


@checker("SNR-SAK-009")
def no_second_retransmission_without_reason(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every retransmission in an acknowledgment-driven recovery."""
    board = _scoreboard(flow, context)
    patience = context.permitted("repeat_after_rtts") * (board.rtt if board else 0.0)
    for repeat in board.repeats if board else []:
        sent = repeat.sent
        if repeat.timer or repeat.forgiven:
            continue
        if not repeat.repeats:
            yield context.holds(f"{_name(sent)} was retransmitted once", sent)
        elif patience and (repeat.tail or repeat.age >= patience - context.timing_error):
            yield context.holds(f"{_name(sent)} was retransmitted again with reason", sent)
        else:
            yield context.violated(
                f"{_name(sent)} was retransmitted again after {repeat.age:.3f} s",
                sent,
                expected="no second retransmission before a timeout"
                if not patience
                else f"no second retransmission within {patience:.3f} s",
                actual=f"retransmission number {repeat.repeats + 1}",
            )


@checker("SNR-SAK-010")
def new_data_is_sent_during_recovery(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by a recovery in which most of the window is reported held.

    That nothing new was sent counts against the sender only when it surely had data, buffer and
    offered window: data leaves as soon as recovery ends, and more was outstanding before.
    """
    if not flow.handshake.sack:
        return
    largest = 0
    ends: list[tuple[float, int]] = []
    for sent in flow.sent:
        largest = max(largest, sent.end - sent.una)
        ends.append((sent.time, largest))
    for episode in context.episodes:
        if episode.trigger is None or episode.nested or episode.end is None:
            continue
        end = episode.end
        new = next((sent for sent in episode.sent if sent.new), None)
        if new is not None:
            yield context.holds("new data was sent before recovery ended", new)
            continue
        arrived = max(
            (sum(b - a for a, b in ack.sacked) for ack in episode.acks if ack is not end), default=0
        )
        if arrived < episode.flight / 2 + 4 * flow.segment:
            continue
        before = max((seen for time, seen in ends if time < episode.first.time), default=0)
        room = episode.first.window_edge >= episode.recover + 2 * flow.segment
        waiting = any(sent.new for sent in end.responses)
        if room and waiting and before >= episode.flight + 2 * flow.segment:
            yield context.violated(
                f"no new data was sent in a recovery in which {arrived} octets were reported held",
                end,
                episode.first,
                expected="new data once nothing is eligible and the window allows it",
                actual="new data only after recovery",
            )


@checker("SNR-SAK-011")
def reneged_data_is_retransmitted(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised when the cumulative acknowledgment stops at data that had been reported held."""
    if not flow.handshake.sack:
        return
    patience = max(
        context.permitted("patience_s"),
        context.permitted("patience_rtts") * read_scoreboard(
            flow, context.episodes, context.timing_error
        ).rtt,
    )  # fmt: skip
    original: dict[int, bytes] = {}
    timeouts = [e.first.time for e in context.episodes if not e.fast]
    last = flow.packets[-1].time if flow.packets else 0.0
    for index, event in enumerate(flow.events):
        if isinstance(event, Sent) and event.packet.tcp and not event.retransmission:
            original[event.start] = event.packet.tcp.payload
        if not isinstance(event, Ack) or not event.acceptable:
            continue
        if event.advance:
            original = {k: v for k, v in original.items() if k + len(v) > event.ack}
        reneged = event.sacked and event.sacked[0][0] <= event.ack < event.max
        if not reneged or (not event.advance and not event.newly_sacked):
            continue
        answer = _next_of_una(flow, index)
        backed_off = any(event.time - 60 < time <= event.time for time in timeouts)
        if isinstance(answer, Sent):
            yield _same_octets(context, answer, original, event)
        elif answer is None and last - event.time > patience and not backed_off:
            yield context.violated(
                f"data that was reported held and then not acknowledged was not retransmitted "
                f"within {patience:.0f} s",
                event,
                expected=f"a retransmission of offset {event.ack}",
                actual="none",
            )


def _next_of_una(flow: Flow, index: int) -> Sent | Ack | None:
    """What comes first after event ``index``: a repetition of its ACK's offset, or its advance."""
    ack = flow.events[index]
    assert isinstance(ack, Ack)
    for event in flow.events[index + 1 :]:
        if isinstance(event, Sent) and event.retransmission and event.start <= ack.ack < event.end:
            return event
        if isinstance(event, Ack) and event.advance:
            return event
    return None


def _same_octets(context: Context, sent: Sent, original: dict[int, bytes], sign: Ack) -> Finding:
    payload = sent.packet.tcp.payload if sent.packet.tcp else b""
    before = original.get(sent.start)
    if before is not None and payload[: len(before)] != before[: len(payload)]:
        return context.violated(
            f"{_name(sent)} was retransmitted with other octets than before",
            sent,
            sign,
            expected="the same octets",
            actual="different octets",
        )
    return context.holds(f"{_name(sent)} was retransmitted although once reported held", sent, sign)


@checker("SNR-SAK-015")
def one_acknowledgment_can_show_a_loss(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by an acknowledgment that shows a loss with fewer than three duplicates."""
    board = _scoreboard(flow, context)
    if board is None:
        return
    allowed = context.permitted("react_rtts") * board.rtt + 2 * context.timing_error
    last = flow.packets[-1].time if flow.packets else 0.0
    recover = -1
    waiting = iter(context.episodes)
    episode = next(waiting, None)
    for report in board.reports:
        ack = report.ack
        while episode is not None and episode.first.time < ack.time:
            recover = max(recover, episode.recover)
            episode = next(waiting, None)
        if not ack.newly_sacked or ack.advance or ack.una < recover or not ack.acceptable:
            continue
        if report.reordered or report.forgiven or report.una_repeats:
            continue
        if report.above < 3 * flow.segment or ack.duplicates >= DUPLICATE_THRESHOLD:
            continue
        end = ack.time + allowed
        answer = next(
            (s for s in flow.sent if ack.time <= s.time <= end and s.start <= ack.una < s.end), None
        )
        if answer is not None:
            yield context.holds(f"{report.above} octets held started recovery", answer, ack)
        elif last > end and not any(a.advance and ack.time < a.time <= end for a in flow.acks):
            yield context.violated(
                f"{report.above} octets held above offset {ack.una} started no recovery",
                ack,
                expected=f"a retransmission of offset {ack.una} within {allowed:.3f} s",
                actual="none",
            )
        recover = max(recover, ack.max)
