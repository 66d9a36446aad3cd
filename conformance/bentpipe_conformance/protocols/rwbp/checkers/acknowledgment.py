"""Checkers for acknowledgments (RWBP-AK, section 7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.rwbp.checkers import (
    TICK_S,
    Context,
    Findings,
    judged,
    rule,
    spans,
)
from bentpipe_conformance.protocols.rwbp.checkers.going_on import SILENCE_S
from bentpipe_conformance.protocols.rwbp.replay.events import Arrival, Call, Due, Reply, after
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.receiver import BLOCKS, DELAY_S
from bentpipe_conformance.protocols.rwbp.replay.sender import REACTION_S
from bentpipe_conformance.protocols.tcp.codec import RST
from bentpipe_conformance.protocols.tcp.replay.order import count_through


def _answered(
    flow: Flow, context: Context, calls: Collection[Call], expected: str
) -> Iterator[Finding]:
    """Whether each segment that calls for an acknowledgment got it in time."""
    for due in flow.receiver.late:
        if due.call in calls and not _may_be_given_up(flow, due.arrival):
            yield context.violated(
                f"{due.arrival.span} called for an acknowledgment by {due.call.value}",
                due.arrival, expected=expected,
                actual=f"none for {due.until - due.arrival.time:.2f} s",
            )  # fmt: skip
    for reply in flow.replies:
        call = reply.calls
        if call is not None and call in calls and reply.arrival is not None:
            sentence = f"{reply.arrival.span} was acknowledged because of {call.value}"
            yield context.holds(sentence, reply, reply.arrival)


def _may_be_given_up(flow: Flow, arrival: Arrival) -> bool:
    """Whether a segment is answered by a RST after a silence in which the IUT may have given up."""
    before = count_through(flow.leaving, arrival.packet.number)
    around = flow.leaving[max(0, before - 1) : before + 1]
    if len(around) < 2:
        return False
    said, answer = around
    return bool(answer.tcp.flags & RST) and arrival.time - said.time >= SILENCE_S


@rule("RWBP-AK-001", at_once=True)
def every_nth(flow: Flow, context: Context) -> Findings:
    """N orderly segments are acknowledged at once (section 7.1, step 5)."""
    # Exercised by N segments in order, faster than the acknowledgment timer.
    yield from _answered(flow, context, (Call.COUNT,), "an acknowledgment within 0.05 s")


@rule("RWBP-AK-002", at_once=True)
def tail_after_the_timer(flow: Flow, context: Context) -> Findings:
    """Fewer than N orderly segments are acknowledged after 0.1 s."""
    # Exercised by fewer than N segments in order, and silence.
    expected = "an acknowledgment 0.10 to 0.15 s after the first of them"
    yield from _answered(flow, context, (Call.TIMER,), expected)
    for reply in flow.replies:
        if reply.calls is None and reply.pure and not reply.probe and reply.delay is not None:
            waiting = reply.delay < DELAY_S - TICK_S - context.timing_error
            if waiting and not is_update(flow, context, reply) and not _prompted(flow, reply):
                yield context.violated(
                    f"octets up to {reply.ack} were acknowledged early", reply,
                    expected="an acknowledgment of fewer than N segments after 0.1 s",
                    actual=f"one after {reply.delay:.3f} s",
                )  # fmt: skip


def _prompted(flow: Flow, reply: Reply) -> bool:
    """Whether a segment called forth an acknowledgment, and no timer did (RWBP-AK-004)."""
    since, number = reply.time - REACTION_S - flow.slack, reply.packet.number
    return any(since <= a.time and a.packet.number < number and a.payload for a in flow.arrivals)


@rule("RWBP-AK-003", at_once=True)
def disorder_at_once(flow: Flow, context: Context) -> Findings:
    """What is not orderly, has FIN or is unacceptable has an acknowledgment of its own at once."""
    # Exercised by holes, by what fills them, by duplicates, by FINs and by unacceptable segments.
    calls = (Call.DISORDER, Call.FIN, Call.UNACCEPTABLE)
    yield from _answered(flow, context, calls, "an acknowledgment of its own within 0.05 s")


@rule("RWBP-AK-004", at_once=True)
def nothing_else(flow: Flow, context: Context) -> Findings:
    """No acknowledgment is sent that nothing calls for."""
    # Exercised by every acknowledgment.
    for reply in flow.replies:
        if not reply.pure:
            continue
        early = reply.delay is not None and reply.delay < DELAY_S - TICK_S - context.timing_error
        if reply.calls is not None:
            yield context.holds(f"{reply.calls.value} called for it", reply)
        elif (
            is_update(flow, context, reply)
            or reply.probe
            or (reply.delay is not None and not early)
        ):
            yield context.holds("the window, or a timer, called for it", reply)
        else:
            yield context.violated(
                f"an acknowledgment of octets up to {reply.ack} that nothing called for", reply,
                expected="N segments, 0.1 s, a segment that is not orderly, or a window update",
                actual=f"UNACKED below N; the edge rose by {reply.edge - reply.edge_called}",
            )  # fmt: skip


def is_update(flow: Flow, context: Context, reply: Reply) -> bool:
    """Whether RWBP-WN-007 calls for an acknowledgment: for the window that it names."""
    unit, rise = flow.receiver.unit, reply.edge - reply.edge_called
    narrow = reply.edge_called - reply.expected < unit
    # BUF has a part of a unit that no field shows.
    return 2 * rise > buffer_octets(flow, context) - unit or (narrow and rise >= 2 * unit)


def buffer_octets(flow: Flow, context: Context) -> int:
    """BUF, as the statement says, or the most that was ever named of it."""
    stated = int(context.ics.get("receive_buffer", 0))
    named = max((reply.field * flow.receiver.unit for reply in flow.replies), default=0)
    return stated or named


@rule("RWBP-AK-005", at_once=True)
def as_many_as_fit(flow: Flow, context: Context) -> Findings:
    """Every run is reported, or four of them."""
    # Exercised by pure acknowledgments while a run is held; a probe is one, too.
    for reply in until_deviating(flow):
        if reply.pure and reply.runs:
            wanted = min(BLOCKS, len(reply.runs))
            yield judged(
                context, len(set(reply.blocks)) >= wanted,
                f"{len(reply.runs)} runs were held", reply,
                expected=f"{wanted} blocks", actual=f"{len(set(reply.blocks))}",
            )  # fmt: skip


@rule("RWBP-AK-006", at_once=True, once=True)
def order_of_blocks(flow: Flow, context: Context) -> Findings:
    """The run of the last arrival, the highest of the others, then the rotation (section 7.2)."""
    # Exercised by acknowledgments of two runs or more.
    for reply in until_deviating(flow):
        if reply.pure and len(reply.runs) > 1 and len(reply.blocks) == len(reply.listed):
            yield judged(
                context, reply.blocks == reply.listed,
                f"of the runs {spans(reply.runs)} these were listed: {spans(reply.blocks)}",
                reply, expected=spans(reply.listed), actual=spans(reply.blocks),
            )  # fmt: skip


@rule("RWBP-AK-007", at_once=True, once=True)
def whole_runs(flow: Flow, context: Context) -> Findings:
    """A block is a whole run, listed once."""
    # Exercised by acknowledgments with blocks, and by duplicates.
    for reply in until_deviating(flow):
        if not reply.blocks:
            continue
        others = [block for block in reply.blocks if block not in reply.runs]
        twice = len(set(reply.blocks)) < len(reply.blocks)
        yield judged(
            context, not others and not twice, f"the blocks {spans(reply.blocks)} were sent",
            reply, expected=f"runs of {spans(reply.runs)}, each at most once",
            actual=spans(others) if others else "a block listed twice",
        )  # fmt: skip


def until_deviating(flow: Flow) -> Iterator[Reply]:
    """What the IUT acknowledged for as long as it had what a receiver has, and once more."""
    for reply in flow.replies:
        yield reply
        if reply.ack != reply.expected:
            return


@rule("RWBP-AK-008", at_once=True)
def data_acknowledges_as_well(flow: Flow, context: Context) -> Findings:
    """A segment with data carries the present RCV.NXT, and replaces nothing while a run is held."""
    # Exercised by segments with data after data has arrived.
    for reply in flow.replies:
        if not reply.pure and reply.expected > 0:
            yield judged(
                context, reply.ack == reply.expected,
                f"a segment with data acknowledged up to {reply.ack}", reply,
                expected=f"acknowledgment {reply.expected}", actual=str(reply.ack),
            )  # fmt: skip
            if reply.ack != reply.expected:
                return
    for due in flow.receiver.late:
        if due.arrival.runs_after and due.call in (Call.DISORDER, Call.COUNT, Call.TIMER):
            instead = next(_data_after(flow, due), None)
            if instead is not None:
                yield context.violated(
                    f"data was sent in place of the acknowledgment of {due.arrival.span}",
                    instead, due.arrival,
                    expected="an acknowledgment with blocks as well", actual="data alone",
                )  # fmt: skip


def _data_after(flow: Flow, due: Due) -> Iterator[Reply]:
    for reply in after(flow.replies, due.arrival.packet.number):
        if reply.time > due.limit:
            return
        if not reply.pure:
            yield reply


@rule("RWBP-EC-008", at_once=True)
def never_reneges(flow: Flow, context: Context) -> Findings:
    """What has been reported is kept, a FIN that came with it as well."""
    # Exercised by a run that is reported, and later joined by what was missing.
    told: set[tuple[int, int]] = set()
    for reply in until_deviating(flow):
        kept = [(a, b) for a, b in told if b > reply.ack]
        covered = [(a, b) for a, b in told if a <= reply.expected and b <= reply.expected]
        lost = [
            (a, b) for a, b in kept
            if (b <= reply.expected or a < reply.ack)
        ]  # fmt: skip
        if lost and reply.ack < reply.expected:
            yield context.violated(
                f"{spans(lost)} was reported, and is asked for again", reply,
                expected=f"acknowledgment {reply.expected}", actual=str(reply.ack),
            )  # fmt: skip
            return
        gone = [
            (a, b) for a, b in kept
            if reply.pure and len(reply.runs) <= BLOCKS and a >= reply.expected
            and not any(left <= a and b <= right for left, right in reply.blocks)
        ]  # fmt: skip
        if gone and not reply.probe:
            yield context.violated(
                f"{spans(gone)} was reported, and is not any more", reply,
                expected="every run to be reported until it has been delivered",
                actual=spans(reply.blocks),
            )  # fmt: skip
            return
        if covered:
            yield context.holds(f"{spans(covered[:1])} was kept and then acknowledged", reply)
        told = {(a, b) for a, b in told if b > reply.ack} | set(reply.blocks)
