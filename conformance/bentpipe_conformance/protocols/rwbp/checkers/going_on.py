"""What several groups ask: whether a connection goes on after an odd segment, and what TCP says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bentpipe_conformance.engine import context as engine
from bentpipe_conformance.engine.checking import load_checkers
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.rwbp.checkers.waiting import guessed
from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.events import Call, Segment, Why, after
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN
from bentpipe_conformance.protocols.tcp.replay.flow import Flow as TcpFlow
from bentpipe_conformance.protocols.tcp.replay.prepared import Prepared
from bentpipe_conformance.protocols.tcp.replay.readings import read_otherwise
from bentpipe_conformance.protocols.tcp.suite import SUITE as TCP

SILENCE_S = 60.0
"""After so long without any arrival an implementation may have given the connection up."""

SETTLED_S = 1.0
"""Within this time a user that reads has read, and one that closes has closed."""

_UNCALLED = (Why.NOTHING, Why.ARRIVED)


def by_tcp(flow: Flow, context: Context, *requirements: str) -> Iterator[Finding]:
    """What TCP's checkers find on the connection, said of the requirement of the context."""
    for name in requirements:
        found = list(_asked(name, flow.tcp, context.prepared.tcp, context))
        if _violated(found):
            # A connection is read in every permitted way before anything is a violation.
            others = read_otherwise(flow.tcp)
            if not all(_violated(_asked(name, it, Prepared(it), context)) for it in others):
                found = [item for item in found if item.verdict is not Verdict.FAIL]
        for finding in found:
            sentence = f"{finding.sentence} ({name})"
            yield replace(finding, requirement=context.requirement.id, sentence=sentence)


def _asked(name: str, tcp: TcpFlow, prepared: Prepared, context: Context) -> Iterator[Finding]:
    asked = engine.Context(
        TCP.requirements()[name], TCP.profiles[0], context.ics, context.timing_error, prepared
    )
    yield from load_checkers(TCP)[name](tcp, asked)


def _violated(findings: Iterable[Finding]) -> bool:
    return any(item.verdict is Verdict.FAIL for item in findings)


def _heard_before(flow: Flow, segment: Segment) -> float:
    """When the last segment before one arrived; of a call's first one when the call began."""
    began = flow.opening.own[0].time if flow.opening.iut_calls else segment.time
    number = segment.packet.number
    return max((i.time for i in flow.arriving if i.packet.number < number), default=began)


def goes_on(flow: Flow, context: Context, odd: Segment, what: str) -> Findings:
    """Whether the connection is used after an odd segment, was reset by it, or fell silent."""
    number = odd.packet.number
    over = None if flow.agreed else context.prepared.tcp.lifetime.over
    if number >= flow.ended or (over is not None and number > over):
        return
    if any(i.tcp.flags & RST and i.packet.number < number for i in flow.leaving):
        return  # perhaps it has given up before
    arrived = list(after(flow.arriving, number))
    ends = next(after(flow.resets, number), None)
    long_after = ends is not None and ends.time - odd.time > AT_ONCE_S + flow.slack
    waits = not flow.leaves_at_once(context.ics)
    if ends is not None and ends.time >= guessed(flow, context):
        return  # its end may have been acknowledged before anybody saw it
    # A user of its own may abort at any time, and its RST may have waited for the link.
    if ends is not None and not flow.service and (
        long_after or waits or not _directly(flow, odd, ends)
    ):  # fmt: skip
        return
    if ends is not None and ends.packet.outgoing:
        if odd.time - _heard_before(flow, odd) >= SILENCE_S:
            return  # the connection, or the attempt of a caller, may have been given up
        last = max((i.time for i in arrived if i.time <= ends.time), default=odd.time)
        if ends.time - last <= AT_ONCE_S:
            # It may answer what met no connection any more, for having been silent before.
            before = max((i.time for i in arrived if i.time < last), default=odd.time)
            last = before if last - before >= SILENCE_S else last
        if ends.packet.number <= flow.ended:
            if ends.time - last < SILENCE_S:
                yield context.violated(
                    f"the connection was reset after {what}", ends, odd,
                    expected="a connection that goes on", actual="a RST",
                )  # fmt: skip
            return
    until = min(flow.ended, ends.packet.number if ends is not None else flow.ended)
    following = next((i for i in arrived if not i.tcp.flags & RST), None)
    if following is None:
        return
    said = next(after(flow.leaving, following.packet.number), None)
    if said is not None and said.packet.number < until:
        yield context.holds(f"the connection outlived {what}", said, odd)
        return
    late = [due for due in flow.receiver.late if due.arrival.packet.number > number]
    if late and flow.leaves_at_once(context.ics):
        yield context.violated(
            f"the connection fell silent after {what}", odd, late[0].arrival,
            expected="a connection that goes on", actual="no acknowledgment",
        )  # fmt: skip


def _directly(flow: Flow, odd: Segment, ends: Segment) -> bool:
    """Whether nothing but resets passed between an odd segment and the end of the connection."""
    first, last = odd.packet.number, ends.packet.number
    between = (i for i in (*flow.arriving, *flow.leaving) if first < i.packet.number < last)
    return all(i.tcp.flags & RST for i in between)


def unasked(flow: Flow, context: Context, odd: Segment) -> Segment | None:
    """What the IUT sent at once after a segment that asks for nothing, and nothing else asked for.

    Not known where something may wait for the link: what leaves may answer an earlier segment.
    """
    if not flow.leaves_at_once(context.ics):
        return None
    number = odd.packet.number
    first = next(after(flow.leaving, number), None)
    if first is None or first.time > odd.time + AT_ONCE_S or first.tcp.length:
        return None
    if any(number < i.packet.number < first.packet.number for i in flow.arriving):
        return None
    reply = next((i for i in flow.replies if i.packet is first.packet), None)
    if reply is None:
        return first if first.tcp.flags & RST else None
    asked = reply.calls is not None or reply.probe or reply.edge > reply.edge_before
    return None if asked or reply.delay is not None else first


def first_violation(findings: Iterator[Finding]) -> Findings:
    """The first violation, or else the first finding."""
    found = list(findings)
    bad = next((item for item in found if item.verdict is Verdict.FAIL), None)
    yield from [bad] if bad is not None else found[:1]


def taken(flow: Flow, context: Context, odd: list[Segment], what: str) -> Findings:
    """Whether segments with something to be ignored are taken as any others."""
    if flow.leaves_at_once(context.ics):
        yield from _as_any_other(flow, context, odd, what)
    for item in odd[:1]:
        yield from goes_on(flow, context, item, what)


def _as_any_other(flow: Flow, context: Context, odd: list[Segment], what: str) -> Findings:
    packets = {item.packet.number for item in odd}
    late = {due.arrival.packet.number: due for due in flow.receiver.late}
    for arrival in flow.arrivals:
        number = arrival.packet.number
        flags = arrival.tcp.flags
        if number not in packets or number >= flow.ended:
            continue
        if flags & (SYN | RST) or not flags & ACK or arrival.calls is Call.REFUSED:
            continue
        if number in late:
            yield context.violated(
                f"{arrival.span} with {what} was not acknowledged", arrival,
                expected="what any other segment calls for", actual="nothing",
            )  # fmt: skip
            return
        answer = next(after(flow.replies, number), None)
        if answer is None or not arrival.payload or not arrival.acceptable:
            continue
        fin = flow.receiver.fin
        end = min(arrival.data_end, arrival.edge)
        if fin is not None and fin < end:
            continue  # not taken behind a FIN (section 5.4)
        told = answer.ack >= end or any(a < end <= b for a, b in answer.blocks)
        told = told or len(answer.runs) > len(answer.blocks)
        if flow.slack and not told and answer.time - arrival.time <= flow.slack:
            continue
        yield judged(
            context, told, f"{arrival.span} with {what} was taken", answer, arrival,
            expected=f"octets up to {end} to be reported", actual=f"up to {answer.ack}",
        )  # fmt: skip
    for ack in flow.acks:
        if ack.packet.number not in packets or not ack.counts:
            continue
        misread = next((sent for sent in ack.responses if sent.why in _UNCALLED), None)
        if misread is not None:
            yield context.violated(
                f"the acknowledgment of a segment with {what} was misread", misread, ack,
                expected="what it reports to be taken for arrived, and no more",
                actual=f"{misread.span} was sent again",
            )  # fmt: skip
            return
        before = ack.edge_after > ack.edge or bool(ack.arrived)
        moved = [sent for sent in ack.responses if sent.end > ack.edge]
        stalled = next((s for s in flow.sender.stalls if s.since.packet is ack.packet), None)
        missed = next((m for m in flow.sender.missed if m.cause is ack), None)
        if stalled is not None or missed is not None:
            yield context.violated(
                f"the acknowledgment of a segment with {what} was not heeded", ack,
                expected="what it permits, or takes for lost, to be sent at once",
                actual="nothing",
            )  # fmt: skip
            return
        if before and moved:
            yield context.holds(f"a segment with {what} was heeded", moved[0], ack)
            return
