"""STP-SEC: robustness (section 10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    answers,
    heard_packets,
    name,
    observed_long_enough,
    proven_at,
    user_may_abort,
)
from bentpipe_conformance.protocols.stp.codec import BGAK, BGREJ, END, ENDAK, STAT, C, R
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay.events import Event, Other, PollHeard, ReportHeard
from bentpipe_conformance.protocols.stp.replay.flow import CALLED, CONFIRMATION_S, OPEN, Flow

PROOF_FACTOR = 3
"""Times the octets received that may be sent to an address not yet proven (STP-SEC-001)."""

LEAST_PENDING = 16
"""Connections that an endpoint must be able to hold in state 3 (STP-SEC-002)."""


@checker("STP-SEC-001")
def little_to_an_unproven_address(flow: Flow, context: Context) -> Iterator[Finding]:
    """Octets both ways on a connection that the IUT was called on, until its peer has answered."""
    if flow.iut_calls or flow.iut_csn is None:
        return
    proof = proven_at(flow)
    came = went = 0
    last: At | None = None
    for packet in flow.packets:
        if proof is not None and packet.number >= proof:
            break
        if packet.content is None:
            continue
        if not packet.outgoing:
            came += len(packet.content.octets)
            continue
        went += len(packet.content.octets)
        last = At(packet)
        if went > PROOF_FACTOR * came:
            yield context.violated(
                f"{went} octets were sent to an address that had sent {came} and proven nothing",
                last,
                expected=f"at most {PROOF_FACTOR * came} octets",
                actual=f"{went} octets",
            )
            return
    if last is not None:
        yield context.holds(f"{went} octets were sent before the proof, {came} had come", last)


@checker("STP-SEC-002")
def pending_connections_are_bounded(flow: Flow, context: Context) -> Iterator[Finding]:
    """A confirmation, by whether it came while the connection had to be held or after its end."""
    pending = _pending(flow)
    confirmation = _confirmation(flow)
    if pending is None or confirmation is None:
        return
    waited = confirmation.packet.time - pending.packet.time
    ends = [at for at in answers(flow, confirmation, (END,)) if _is_reflected(at)]
    if waited > CONFIRMATION_S + DUE_S + flow.timing_error:
        if ends:
            yield context.holds(
                f"a connection not confirmed for {waited:.1f} s had been dropped", *ends, pending
            )
        elif _carries_on(flow, confirmation):
            yield context.violated(
                f"a connection was still pending after {waited:.1f} s", pending, confirmation,
                expected=f"dropped after {CONFIRMATION_S:g} s",
                actual="it opened",
            )  # fmt: skip
    elif waited < CONFIRMATION_S - DUE_S - flow.timing_error and (
        flow.pending_beside < LEAST_PENDING
        and flow.state_before.get(confirmation.packet.number) == CALLED
    ):
        if ends:
            yield context.violated(
                f"a connection that had been pending for {waited:.1f} s beside "
                f"{flow.pending_beside} others was forgotten",
                confirmation, *ends,
            )  # fmt: skip
        elif _carries_on(flow, confirmation):
            yield context.holds(
                f"a connection pending for {waited:.1f} s beside {flow.pending_beside} others "
                "opened when confirmed",
                confirmation,
            )


def _pending(flow: Flow) -> At | None:
    """The IUT's first BGAK, if it asks for confirmation of a call."""
    first = next((packet for packet in flow.bgaks if packet.outgoing), None)
    if flow.iut_calls or first is None or first.content is None or not first.content.flags & C:
        return None
    return At(first)


def _confirmation(flow: Flow) -> At | None:
    """The first BGAK with both CSNs that reached the IUT."""
    for packet in flow.bgaks:
        stp = packet.content
        if packet.outgoing or stp is None or not stp.wellformed:
            continue
        if stp.peer_csn == flow.iut_csn and stp.csn == flow.tester_csn:
            return At(packet)
    return None


def _is_reflected(at: At) -> bool:
    return at.packet.content is not None and bool(at.packet.content.flags & R)


def _carries_on(flow: Flow, confirmation: At) -> bool:
    """Whether the IUT does on the connection what only an open one does."""
    later = (
        packet.content
        for packet in flow.packets
        if packet.outgoing and packet.time >= confirmation.packet.time
    )
    return any(stp is not None and stp.type == STAT for stp in later)


@checker("STP-SEC-003")
def hostile_packets_do_no_harm(flow: Flow, context: Context) -> Iterator[Finding]:
    """POLLs on a connection that had answered before packets arrived which it has to ignore."""
    hostile: Other | ReportHeard | None = None
    unanswered: list[PollHeard] = []
    answered = False
    for event in flow.events:
        if answered and hostile is None and _has_to_be_ignored(event):
            hostile = event
        if not isinstance(event, PollHeard) or not event.open:
            continue
        if event.answers:
            answered = True
            if hostile is not None:
                yield context.holds(
                    f"a POLL was answered after {name(hostile.stp)} to be ignored", hostile, event
                )
                return
        elif hostile is not None and observed_long_enough(flow, At(event.packet)):
            unanswered.append(event)
    # A single POLL without answer is a matter of STP-DT-017.
    if hostile is not None and len(unanswered) > 1:
        yield context.violated(
            f"no POLL was answered any more after {name(hostile.stp)} to be ignored",
            hostile, *unanswered,
        )  # fmt: skip


def _has_to_be_ignored(event: Event) -> TypeGuard[Other | ReportHeard]:
    if isinstance(event, ReportHeard):
        return bool(event.fault)
    return isinstance(event, Other) and not event.packet.outgoing and bool(event.ignored)


_ENDING = (END, ENDAK, BGREJ)
"""What a forged packet must not draw from a connection, or be drawn for."""


@checker("STP-SEC-005")
def forged_packets_do_not_end_a_connection(flow: Flow, context: Context) -> Iterator[Finding]:
    """Packets that the open IUT has to discard, and whether it ended the connection for them."""
    for at, what in _forged(flow):
        if _cause_unclear(flow, at):
            continue
        ends = answers(flow, at, _ENDING)
        if ends and user_may_abort(flow) and not _answers_alone(ends):
            continue
        if ends:
            yield context.violated(f"{what} ended the connection or was acknowledged", at, *ends)
        elif any(poll.answers for poll in flow.polls_heard if poll.time > at.packet.time) or any(
            sd.time > at.packet.time + DUE_S for sd in flow.sds_sent
        ):
            yield context.holds(f"the connection went on after {what}", at)


def _forged(flow: Flow) -> Iterator[tuple[At, str]]:
    """Packets with a wrong tag, wrong CSNs or wrong numbers that reached the open IUT."""
    if flow.tester_csn is None:
        return
    for event in flow.events:
        if event.packet.outgoing:
            continue
        if isinstance(event, ReportHeard) and event.fault and event.stp.type != BGAK:
            yield At(event.packet), f"{name(event.stp)} that has to be discarded ({event.fault})"
        if not isinstance(event, Other) or event.state != OPEN:
            continue
        stp = event.stp
        if event.ignored:
            yield At(event.packet), f"{name(stp)} that has to be discarded ({event.ignored})"
        elif stp.type in (ENDAK, BGREJ):
            yield At(event.packet), f"{name(stp)} in data transfer"
        elif stp.type == END and not _may_end(flow, event):
            yield At(event.packet), "an END with wrong CSNs"


def _answers_alone(ends: list[At]) -> bool:
    """Whether all of them answer packets, as nothing that a user does makes them leave."""
    return all(at.packet.content is not None and at.packet.content.type != END for at in ends)


def _may_end(flow: Flow, event: Other) -> bool:
    """Whether an END is valid in data transfer, or a hint that has to be challenged."""
    stp = event.stp
    if stp.flags & R and stp.csn == 0 and stp.peer_csn == tag_of(flow.iut_csn or 0):
        return True
    own = flow.iut_csn is not None and stp.peer_csn == flow.iut_csn
    return own and stp.csn == flow.tester_csn


def _cause_unclear(flow: Flow, at: At) -> bool:
    """Whether another packet, or the IUT itself, may have ended the connection at that moment."""
    start, end = at.packet.time, at.packet.time + DUE_S + flow.timing_error
    if any(
        other.packet.number != at.packet.number
        and stp.type in (*_ENDING, BGAK)
        and abs(other.packet.time - start) <= DUE_S + flow.timing_error
        for other, stp in heard_packets(flow)
    ):
        return True
    sender = flow.sender
    completing = sender is not None and sender.fin is not None
    return completing or (flow.ended is not None and flow.ended <= end and flow.ended < start)
