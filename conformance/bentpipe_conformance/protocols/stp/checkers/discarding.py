"""Whether a packet that had to be discarded was."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    answers,
    observed_long_enough,
)
from bentpipe_conformance.protocols.stp.checkers.robustness import LEAST_PENDING
from bentpipe_conformance.protocols.stp.codec import (
    BGAK,
    BGREJ,
    END,
    ENDAK,
    SD,
    SDP,
    STAT,
    USTAT,
    R,
    Stp,
)
from bentpipe_conformance.protocols.stp.numbers import near
from bentpipe_conformance.protocols.stp.replay.events import ReportSent
from bentpipe_conformance.protocols.stp.replay.flow import CALLED, Flow

_REPLIES = (BGAK, BGREJ, END, ENDAK, STAT, USTAT)
"""What a packet can evoke at once; SDs and POLLs also leave by timer."""

_BY_TIMER = (0, 7)
"""Reasons of ENDs that leave because a stream is complete, or the peer silent."""


def on_same_ports(flow: Flow) -> list[Flow]:
    """The connections that were on a flow's ports one after the other, itself included."""
    ends = flow.incarnation.ends
    return [other for other in flow.neighbours if other.incarnation.ends == ends]


def discarded(flow: Flow, context: Context, at: At, what: str) -> Iterator[Finding]:
    """No answer, and nothing that later reports could know from it alone.

    Args:
        flow: the connection that the packet reached.
        context: of the requirement.
        at: the packet.
        what: the packet with its article and why it had to be discarded.
    """
    if flow.state_before.get(at.packet.number) == CALLED and flow.pending_beside >= LEAST_PENDING:
        # It may have made room for another call, and be forgotten (STP-SEC-002).
        return
    alone = is_alone(flow, at)
    replies = [reply for reply in replies_to(flow, at) if _is_evoked(flow, at, reply)]
    if replies and alone:
        yield context.violated(f"{what} was answered", at, *replies[:1])
        return
    knowing = _report_that_knows(flow, at)
    if knowing is not None:
        yield context.violated(f"{what} was taken in, as a later report shows", at, knowing)
    elif not replies and alone and observed_long_enough(flow, at):
        yield context.holds(f"{what} was neither answered nor taken in", at)


def is_alone(flow: Flow, at: At) -> bool:
    """Whether no other packet arrived about the same time, so that an answer has one cause."""
    near_it = DUE_S + flow.timing_error
    return not any(
        not packet.outgoing
        and packet.number != at.packet.number
        and abs(packet.time - at.packet.time) <= near_it
        for other in on_same_ports(flow)
        for packet in other.packets
    )


def replies_to(flow: Flow, at: At, within: float = DUE_S) -> list[At]:
    """What could be an answer to a packet, on whatever connection of its ports."""
    return [
        reply for other in on_same_ports(flow) for reply in answers(other, at, _REPLIES, within)
    ]


def _is_evoked(flow: Flow, at: At, reply: At) -> bool:
    """Whether a packet cannot be explained without the one that it may answer."""
    stp, cause = reply.packet.content, at.packet.content
    assert stp is not None
    assert cause is not None
    before = [
        packet.content for packet in flow.packets
        if packet.outgoing and packet.content is not None and packet.number < reply.packet.number
    ]  # fmt: skip
    if stp.type == STAT:
        if cause.type in (SD, STAT, USTAT) and not cause.fault:
            return False
        # A reopened window is announced with the numbers of the last STAT (STP-DT-024).
        asked = stp.n_ps, stp.timestamp
        return all((item.n_ps, item.timestamp) != asked for item in before if item.type == STAT)
    if stp.type != END or stp.flags & R:
        return True
    # A timer repeats ENDs, and sends them when a stream is complete or the peer silent.
    return stp.reason not in _BY_TIMER and all(item.octets != stp.octets for item in before)


def _report_that_knows(flow: Flow, at: At) -> ReportSent | None:
    """A later report that has the SD of a discarded packet, of which no good copy had come."""
    stp = at.packet.content
    receiver = flow.receiver
    if stp is None or receiver is None or stp.type not in (SD, SDP):
        return None
    if stp.fault and len(stp.octets) < 12:
        return None
    number = _number_of(flow, at, stp)
    if number is None or number < 0:
        return None
    for report in flow.reports_sent:
        if report.time < at.packet.time or not report.certain:
            continue
        if any(sd.number == number and sd.time <= report.time for sd in flow.sds_heard):
            return None
        runs = zip(report.elements[1::2], report.elements[2::2], strict=False)
        if number < report.n_r or (
            report.is_stat and any(first <= number < second for first, second in runs)
        ):
            return report
    return None


def _number_of(flow: Flow, at: At, stp: Stp) -> int | None:
    """The count of an SD that the IUT has to ignore, near what it then expected."""
    if flow.receiver is None:
        return None
    heard = (sd.number + 1 for sd in flow.sds_heard if sd.time <= at.packet.time)
    return near(stp.seq, flow.receiver.iss, max(heard, default=0))
