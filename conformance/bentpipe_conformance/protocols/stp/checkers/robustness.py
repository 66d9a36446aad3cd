"""STP-SEC: robustness (section 10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings
from bentpipe_conformance.protocols.stp.checkers.answers import answers, gone_after, observed
from bentpipe_conformance.protocols.stp.checkers.calling import MAX_CC, latest
from bentpipe_conformance.protocols.stp.checkers.opening import due_answer
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    POLL,
    SDP,
    STAT,
    USTAT,
)
from bentpipe_conformance.protocols.stp.numbers import NO_ANSWER
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    At,
    Event,
    Other,
    PollHeard,
    ReportHeard,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State
from bentpipe_conformance.protocols.stp.replay.reader import is_valid_end
from bentpipe_conformance.protocols.stp.replay.round_trip import first_wait

MOST_TIMES = 3
"""Times the octets received that may be sent to an unproven address (STP-SEC-001)."""


@checker("STP-SEC-001")
def little_to_an_unproven_address(flow: Flow, context: Context) -> Findings:
    """Without a connection a packet draws one packet of three times its octets (section 10)."""
    if flow is not flow.same_ports[0]:
        return
    came, went = [0, 0], [0, 0]
    last: At | None = None
    passed = (at for other in flow.same_ports for at in other.passed)
    for at in sorted(passed, key=lambda at: at.frame):
        if any(at.frame >= other.start for other in flow.same_ports if other.iut_csn is not None):
            break
        if at.outgoing and not came[0]:
            return  # drawn by nothing that was seen: of a connection opened before, or a call
        count = went if at.outgoing else came
        count[0] += 1
        count[1] += len(at.stp.octets)
        last = at if at.outgoing else last
        if went[0] > came[0] or went[1] > MOST_TIMES * came[1]:
            yield context.violated(
                f"{went[0]} packets with {went[1]} octets were sent to an unproven address that "
                f"had sent {came[0]} with {came[1]}",
                at,
                expected=f"at most {came[0]} packets and {MOST_TIMES * came[1]} octets",
            )  # fmt: skip
            return
    if last is not None:
        yield context.holds(
            f"{went[0]} packets with {went[1]} octets answered {came[0]} with {came[1]}", last
        )


@checker("STP-SEC-003")
def hostile_packets_do_no_harm(flow: Flow, context: Context) -> Findings:
    """After packets to be ignored a connection answers POLLs as before (section 10)."""
    hostile: Other | ReportHeard | None = None
    unanswered: list[PollHeard] = []
    answered = False
    for event in flow.events:
        if answered and hostile is None and _has_to_be_ignored(event):
            hostile = event
        if not isinstance(event, PollHeard):
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


_OPEN_ONLY = (POLL, SDP, STAT, USTAT)
"""What is sent in data transfer and in no other state."""

_ENDING = (END, ENDAK, BGREJ)
"""What a forged packet must not draw from a connection, or be drawn for."""


@checker("STP-SEC-005")
def forged_packets_do_not_end_a_connection(flow: Flow, context: Context) -> Findings:
    """A packet with a wrong tag, CSN or number does not end a connection (section 10)."""
    yield from _calls_survive(flow, context)
    for at, what in _forged(flow):
        if _has_other_cause(flow, at):
            continue
        ends = answers(flow, at, _ENDING)
        if at.stp.type == BEGIN:  # which may be refused, or told of no connection
            ends = [end for end in ends if end.stp.peer_csn == flow.tester_csn]
        # A peer that is given up is a matter of STP-PL-008.
        ends = [end for end in ends if end.stp.type != END or end.stp.reason != NO_ANSWER]
        # An END may be the abort of a user; an ENDAK or BGREJ answers a packet.
        if ends and not flow.served and any(end.stp.type == END for end in ends):
            continue
        gone = gone_after(flow, at) if flow.ended is None else None
        deaf = _deaf_after(flow, at)
        if deaf and not ends and gone is None:
            yield context.violated(f"no POLL was answered after {what}", at, *deaf)
        elif ends or gone is not None:
            where = ends or [item for item in (gone,) if item is not None]
            yield context.violated(f"{what} ended the connection or was acknowledged", at, *where)
        elif any(poll.answers for poll in flow.polls_heard if poll.time > at.time) or any(
            sd.time > at.time + DUE_S for sd in flow.sds_sent
        ):
            yield context.holds(f"the connection continued after {what}", at)


def _deaf_after(flow: Flow, at: At) -> list[PollHeard]:
    """The first two POLLs after a packet if they have no answer, though one before it had."""
    polls = [poll for poll in flow.polls_heard if observed(flow, poll)]
    after = [poll for poll in polls if poll.frame > at.frame][:2]
    before = any(poll.answers for poll in polls if poll.frame < at.frame)
    quiet = len(after) == 2 and not any(poll.answers for poll in after)
    over = flow.ended is not None and bool(after) and flow.ended <= after[-1].time
    return after if before and quiet and not over else []


def _calls_survive(flow: Flow, context: Context) -> Findings:
    """Whether a call outlives packets that do not fit it."""
    begins = [at for at in flow.begins if at.outgoing]
    for at in flow.heard_of(BGAK, BGREJ, END):
        if flow.state_when(at) != State.CALLING:
            continue
        fits = flow.is_recipient(at.stp) and (at.stp.type != BGAK or flow.is_possible(at.stp))
        if fits or (at.stp.type == END and is_valid_end(flow, at.stp, known=False)):
            continue
        what = f"{at.name} that does not fit"
        opened = next((item for item in flow.sent if _shows_an_open_call(flow, at, item)), None)
        if opened is not None:
            yield context.violated(f"{what} opened the call", at, opened)
            continue
        anew = flow.displaced_by
        if anew is not None and anew.outgoing and 0 <= anew.time - at.time <= flow.due_s:
            if not flow.heard_beside(at, BGREJ, END):
                yield context.violated(f"a call was begun anew after {what}", at, anew)
            continue
        again = [begin for begin in begins if begin.time > at.time]
        due = begins[-1].time + latest(first_wait(context.ics) * 2.0 ** (len(begins) - 1))
        if again or (flow.established or -1.0) >= at.time:
            yield context.holds(f"the call went on after {what}", at)
        elif flow.ended is None and len(begins) < MAX_CC and flow.until > due + flow.timing_error:
            yield context.violated(f"a call was given up after {what}", at)


def _shows_an_open_call(flow: Flow, at: At, item: At) -> bool:
    """Whether the IUT sends what only an open connection sends, soon after a packet."""
    soon = at.frame < item.frame and item.time <= at.time + flow.due_s
    return soon and flow.state_when(item) == State.CALLING and item.stp.type in _OPEN_ONLY


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
        elif event.stp.type == BGAK:
            yield event, "a BGAK in data transfer"
        elif event.stp.type == END and not is_valid_end(flow, event.stp, known=True):
            yield event, "an END with wrong CSNs"
        elif event.stp.type == BEGIN and event.stp.csn != flow.tester_csn:
            due = due_answer(flow, event)
            if due is not None and due.rule != "STP-CC-012":
                yield event, f"{due.about}, of another connection"


def _has_other_cause(flow: Flow, at: At) -> bool:
    """Whether another packet, or the IUT itself, may have ended the connection at that moment."""
    closing = flow.own_fin is not None and flow.own_fin.time <= at.time + flow.due_s
    done = closing or (flow.ended is not None and flow.ended < at.time)
    return done or flow.heard_beside(at, *_ENDING, BGAK, BEGIN)
