"""STP-SEC: robustness (section 10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings
from bentpipe_conformance.protocols.stp.checkers.answers import answers, observed
from bentpipe_conformance.protocols.stp.checkers.identity import is_hint
from bentpipe_conformance.protocols.stp.codec import BGAK, BGREJ, END, ENDAK, STAT, C, R
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    At,
    Event,
    Other,
    PollHeard,
    ReportHeard,
)
from bentpipe_conformance.protocols.stp.replay.flow import (
    CONFIRMATION_S,
    LEAST_PENDING,
    Flow,
    State,
)

PROOF_FACTOR = 3
"""Times the octets received that may be sent to an address not yet proven (STP-SEC-001)."""


@checker("STP-SEC-001")
def little_to_an_unproven_address(flow: Flow, context: Context) -> Findings:
    """Before the peer's proof at most three times the received octets are sent (section 5.1)."""
    if flow.iut_calls or flow.iut_csn is None:
        return
    proof = context.prepared.proof
    came = went = 0
    last: At | None = None
    for at in flow.passed:
        if proof is not None and at.frame >= proof.frame:
            break
        if not at.outgoing:
            came += len(at.stp.octets)
            continue
        went += len(at.stp.octets)
        last = at
        if went > PROOF_FACTOR * came:
            yield context.violated(
                f"{went} octets were sent to an unproven address that had sent {came}",
                last,
                expected=f"at most {PROOF_FACTOR * came} octets", actual=f"{went} octets",
            )  # fmt: skip
            return
    if last is not None:
        yield context.holds(f"{went} octets were sent before the proof, {came} were received", last)


@checker("STP-SEC-002")
def pending_connections_are_bounded(flow: Flow, context: Context) -> Findings:
    """A pending connection is held for 32 s beside fifteen others, and no longer (section 9)."""
    pending = next((at for at in flow.bgaks if at.outgoing), None)
    confirming = (at for at in flow.bgaks if flow.is_confirmed_by(at))
    confirmation = next(confirming, None)
    if flow.iut_calls or pending is None or not pending.stp.flags & C or confirmation is None:
        return
    waited = confirmation.time - pending.time
    ends = [at for at in answers(flow, confirmation, (END,)) if at.stp.flags & R]
    # Only an open connection sends STATs.
    opened = any(at.stp.type == STAT and at.time >= confirmation.time for at in flow.sent)
    if waited > CONFIRMATION_S + flow.due_s:
        if ends:
            yield context.holds(
                f"a connection not confirmed for {waited:.1f} s had been dropped", *ends, pending
            )
        elif opened:
            yield context.violated(
                f"a connection was still pending after {waited:.1f} s", pending, confirmation,
                expected=f"dropped after {CONFIRMATION_S:g} s", actual="it opened",
            )  # fmt: skip
    elif (
        waited < CONFIRMATION_S - DUE_S - flow.timing_error
        and flow.pending_beside < LEAST_PENDING
        and flow.state_when(confirmation) == State.CALLED
    ):
        what = f"pending for {waited:.1f} s beside {flow.pending_beside} others"
        if ends:
            yield context.violated(f"a connection {what} was forgotten", confirmation, *ends)
        elif opened:
            yield context.holds(f"a connection {what} opened when confirmed", confirmation)


@checker("STP-SEC-003")
def hostile_packets_do_no_harm(flow: Flow, context: Context) -> Findings:
    """After packets to be ignored a connection answers POLLs as before (section 10)."""
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
                    f"a POLL was answered after {hostile.name} to be ignored", hostile, event
                )
                return
        elif hostile is not None and observed(flow, event):
            unanswered.append(event)
    # A single POLL without answer is a matter of STP-DT-017.
    if hostile is not None and len(unanswered) > 1:
        yield context.violated(
            f"no further POLL was answered after {hostile.name} to be ignored",
            hostile, *unanswered,
        )  # fmt: skip


def _has_to_be_ignored(event: Event) -> TypeGuard[Other | ReportHeard]:
    if isinstance(event, ReportHeard):
        return bool(event.fault)
    return isinstance(event, Other) and not event.outgoing and bool(event.ignored)


_ENDING = (END, ENDAK, BGREJ)
"""What a forged packet must not draw from a connection, or be drawn for."""


@checker("STP-SEC-005")
def forged_packets_do_not_end_a_connection(flow: Flow, context: Context) -> Findings:
    """A packet with a wrong tag, CSN or number does not end a connection (section 10)."""
    for at, what in _forged(flow):
        if _has_other_cause(flow, at):
            continue
        ends = answers(flow, at, _ENDING)
        # An END may be the abort of a user; an ENDAK or BGREJ answers a packet.
        if ends and not flow.served and any(end.stp.type == END for end in ends):
            continue
        if ends:
            yield context.violated(f"{what} ended the connection or was acknowledged", at, *ends)
        elif any(poll.answers for poll in flow.polls_heard if poll.time > at.time) or any(
            sd.time > at.time + DUE_S for sd in flow.sds_sent
        ):
            yield context.holds(f"the connection continued after {what}", at)


def _forged(flow: Flow) -> Iterator[tuple[At, str]]:
    """Packets with a wrong tag, wrong CSNs or wrong numbers that reached the open IUT."""
    if flow.tester_csn is None:
        return
    for event in flow.events:
        if event.outgoing:
            continue
        if isinstance(event, ReportHeard) and event.fault and event.stp.type != BGAK:
            yield event, f"{event.name} that must be discarded ({event.fault})"
        if not isinstance(event, Other) or event.state != State.OPEN:
            continue
        if event.ignored:
            yield event, f"{event.name} that must be discarded ({event.ignored})"
        elif event.stp.type in (ENDAK, BGREJ):
            yield event, f"{event.name} in data transfer"
        elif event.stp.type == END and not flow.names(event) and not is_hint(flow, event):
            yield event, "an END with wrong CSNs"


def _has_other_cause(flow: Flow, at: At) -> bool:
    """Whether another packet, or the IUT itself, may have ended the connection at that moment."""
    done = flow.own_fin is not None or (flow.ended is not None and flow.ended < at.time)
    return done or flow.heard_beside(at, *_ENDING, BGAK)
