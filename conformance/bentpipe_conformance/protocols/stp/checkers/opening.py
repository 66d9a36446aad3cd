"""STP-CC: opening a connection (sections 5.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answered,
    answers,
    answers_on_ports,
    discarded,
    is_alone,
    observed,
)
from bentpipe_conformance.protocols.stp.numbers import (
    CHARGEN,
    CSN_MODULUS,
    DISCARD,
    EARLY_CREDIT,
    ECHO,
    MODULUS,
    newer,
    tag_of,
)
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At
from bentpipe_conformance.protocols.stp.replay.flow import LEAST_PENDING, Flow, State

NO_RESOURCES, NOBODY_LISTENS, OTHER_VERSION = 5, 3, 4
"""Reasons of BGREJ (section 3.5)."""

ANSWERS_PER_S = 10
"""BGREJs, and ENDs without a connection, that may not be refused in one second."""

REMEMBERED_S = 600.0
"""Seconds for which a confirmed CSN is remembered (STP-CC-013)."""

NEARLY_HALF = CSN_MODULUS // 2 - 256
"""Distance of two confirmed CSNs after which nothing newer can be remembered from before."""


def _confirmed_before(flow: Flow) -> list[Flow]:
    """Calls that were confirmed, by the tester's BGAK, before the first BEGIN of this one."""
    until = flow.begins[0].time - flow.due_s
    return [
        other for other in flow.neighbours
        if other is not flow and not other.iut_calls and other.begins
        and other.established is not None and any(
            not at.outgoing and at.time < until and other.names(at) for at in other.bgaks
        )
    ]  # fmt: skip


def _first_answer(flow: Flow) -> At | None:
    """The IUT's first BGAK to a call."""
    if flow.iut_calls or not flow.begins:
        return None
    return next((at for at in flow.bgaks if at.outgoing), None)


def _above_iss(flow: Flow, number: int) -> int:
    """A number of the tester's direction as a count, ahead of ISS."""
    iss = flow.receiver.iss if flow.receiver is not None else 0
    return (number - iss) % MODULUS


@checker("STP-CC-003")
def data_at_once_only_of_a_known_caller(flow: Flow, context: Context) -> Findings:
    """Data of a caller not known as such waits until its BGAK returns the CSN (section 5.2)."""
    bgak = _first_answer(flow)
    if bgak is None or flow.receiver is None:
        return
    if not bgak.stp.flags & codec.C:
        yield from _accepted_at_once(flow, context, bgak)
        return
    acted = _acts_early(flow)
    carried = [sd for sd in flow.sds_heard if sd.early and sd.number < EARLY_CREDIT]
    until = flow.established if flow.established is not None else flow.until
    if acted is not None:
        yield context.violated(
            f"{acted.name} shows that data was acted on before the caller had returned the CSN",
            bgak, acted,
        )  # fmt: skip
    elif carried and until - carried[0].time > DUE_S:
        yield context.holds("early data was held back until the confirmation", bgak, carried[0])
    yield from _ignored_while_pending(flow, context)


def _accepted_at_once(flow: Flow, context: Context, bgak: At) -> Findings:
    """A call that was not asked: some confirmed CSN must be older than its own.

    What the IUT knows from before the trace cannot be seen, so only what it must know counts.
    """
    confirmed = _confirmed_before(flow)
    csn = flow.tester_csn
    if csn is None or not confirmed:
        return
    known = [other.tester_csn or 0 for other in confirmed]
    stale = next((item for item in reversed(known) if not newer(csn, item)), None)
    yield judged(
        context, stale is None,
        "a BEGIN newer than every confirmed one was accepted",
        f"a BEGIN with CSN {csn} was accepted at once, though {stale} of the same address, "
        "which is not older, had been confirmed",
        flow.begins[0], bgak,
    )  # fmt: skip


def _acts_early(flow: Flow) -> At | None:
    """The first packet of the IUT before the confirmation that depends on received data."""
    for at in flow.sent:
        stp = at.stp
        if stp.fault or (flow.established is not None and at.time >= flow.established):
            continue
        if stp.type == codec.BGAK and stp.csn == flow.iut_csn and _above_iss(flow, stp.n_r or 0):
            return at
        if stp.type in (codec.STAT, codec.USTAT):
            return at
        # These two services send and end nothing except in response to data.
        if stp.type in (codec.SD, codec.SDP) and flow.service in (ECHO, DISCARD):
            return at
    return None


def _ignored_while_pending(flow: Flow, context: Context) -> Findings:
    """What must not move a pending connection (section 9)."""
    ignored = (codec.BGREJ, codec.ENDAK, codec.STAT, codec.USTAT)
    for at in flow.heard:
        stp = at.stp
        if flow.state_when(at) != State.CALLED or not stp.wellformed:
            continue
        wrong = stp.type == codec.BGAK and (
            not flow.names(at) or (flow.sender is not None and stp.n_r != flow.sender.iss)
        )
        what = f"{at.name} while confirmation was awaited"
        if wrong or stp.type in ignored:
            yield from discarded(flow, context, at, what)
        elif stp.type in (codec.POLL, codec.SDP) and stp.tag == tag_of(flow.tester_csn or 0):
            # The caller takes the connection for open: the question may have been lost.
            questions = [
                reply for reply in answers(flow, at, (codec.BGAK,)) if reply.stp.flags & codec.C
            ]
            excused = not is_alone(flow, at) or flow.pending_beside >= LEAST_PENDING
            how = "answered with the question"
            yield from answered(flow, context, at, questions, what, how, excused=excused)


@checker("STP-CC-012")
def begins_are_answered(flow: Flow, context: Context) -> Findings:
    """A valid BEGIN to a service that listens is answered with a BGAK (section 5.2)."""
    for at in flow.heard_of(codec.BEGIN):
        begin = at.stp
        if begin.version != 1 or not _has_to_be_answered(flow, at, begin):
            continue
        every = answers_on_ports(flow, at)
        replies = _for_begin(every, begin)
        if any(reply.stp.type == codec.BGAK for reply in replies):
            yield context.holds("a BEGIN was answered with a BGAK", at, replies[0])
        elif any(reply.stp.type == codec.BGAK for reply in every):
            # A challenge: it has a connection on these ports that the trace does not show.
            continue
        elif not replies:
            yield from answered(flow, context, at, replies, f"a BEGIN to port {begin.dport}")
        elif replies[0].stp.reason != NO_RESOURCES:
            yield context.violated(
                f"a BEGIN to port {begin.dport}, where a service must listen, was refused",
                at, replies[0],
            )  # fmt: skip


def _for_begin(replies: Sequence[At], begin: codec.Stp) -> list[At]:
    """The BGAKs and BGREJs for a BEGIN."""
    found = [reply for reply in replies if reply.stp.type in (codec.BGAK, codec.BGREJ)]
    return [reply for reply in found if reply.stp.peer_csn == begin.csn]


def _has_to_be_answered(flow: Flow, at: At, begin: codec.Stp) -> bool:
    state = flow.state_when(at)
    if state == State.CALLING:
        return True
    if begin.dport not in (ECHO, DISCARD, CHARGEN):
        return False
    if state == State.CALLED:
        return True
    if state == State.RELEASING:
        return _newer(begin.csn, flow.tester_csn)
    if state != State.IDLE or flow.iut_calls:
        return False
    # Packets of two connections can share ports; the other one must be gone.
    return all(
        other is flow or other.ended is not None or other.iut_csn is None
        or other.state_at(at.time) == State.CALLED
        for other in flow.same_ports if other.passed[0].frame < at.frame
    )  # fmt: skip


def _newer(csn: int | None, than: int | None) -> bool:
    return csn is not None and than is not None and newer(csn, than)


@checker("STP-CC-013")
def known_callers_are_not_asked(flow: Flow, context: Context) -> Findings:
    """A BEGIN newer than the remembered CSN of its address is accepted at once (section 5.2)."""
    bgak = _first_answer(flow)
    if bgak is None or flow.tester_csn is None:
        return
    begin = flow.begins[0]
    known = _sure_newest(_confirmed_before(flow))
    if known is None or not _newest_of_all(flow, known):
        return
    beside = [other.state_at(begin.time) for other in flow.same_ports if other is not flow]
    if State.CALLED in beside or None in beside:
        return  # beside another call every caller is asked (STP-CC-033)
    carries = int(bool(begin.stp.data) or bool(begin.stp.flags & codec.FIN))
    if bgak.stp.flags & codec.C:
        yield context.violated(
            "a caller was asked for confirmation, though an older CSN of its address had been "
            "confirmed",
            begin, bgak,
        )  # fmt: skip
    else:
        yield judged(
            context, _above_iss(flow, bgak.stp.n_r or 0) >= carries,
            "a known caller's BEGIN was accepted at once",
            "the data of a known caller's BEGIN was not acknowledged in the BGAK", begin, bgak,
        )  # fmt: skip


def _newest_of_all(flow: Flow, known: int) -> bool:
    """Whether the call is newer than every recent CSN of its address."""
    csn, start = flow.tester_csn, flow.begins[0].time
    lately = [
        other for other in flow.neighbours
        if other is not flow and other.established is not None and other.tester_csn is not None
        and other.passed[0].time < start
    ]  # fmt: skip
    last = max(at.time for other in lately for at in other.passed)
    return (
        _newer(csn, known)
        and all(_newer(csn, other.tester_csn) for other in lately)
        and start - last < REMEMBERED_S - flow.timing_error
    )


def _sure_newest(confirmed: Sequence[Flow]) -> int | None:
    """The newest CSN that the IUT must remember, regardless of what precedes the trace.

    Of two CSNs almost 2^31 apart, the second is newer than any CSN that is newer than the first.
    """
    csns = [other.tester_csn for other in confirmed if other.tester_csn is not None]
    for place, first in enumerate(csns):
        for newest in csns[place + 1 :]:
            if NEARLY_HALF <= (newest - first) % CSN_MODULUS < CSN_MODULUS // 2:
                return newest
    return None


@checker("STP-CC-015")
def repeated_begin_is_answered_again(flow: Flow, context: Context) -> Findings:
    """A repeated BEGIN is answered with a BGAK and changes nothing else (section 5.2)."""
    first = _first_answer(flow)
    for at in flow.begins[1:]:
        state = flow.state_when(at)
        if first is None or at.outgoing or state not in (State.CALLED, State.OPEN):
            continue
        replies = answers(flow, at, (codec.BGAK, codec.BGREJ, codec.END))
        if not replies:
            yield from answered(flow, context, at, replies, "a repeated BEGIN")
            continue
        problem = _changed_by_repetition(flow, first.stp, replies[0], state)
        yield judged(
            context, not problem,
            "a repeated BEGIN was answered with the same numbers",
            f"a repeated BEGIN was answered {problem}", at, replies[0],
        )  # fmt: skip


def _changed_by_repetition(flow: Flow, first: codec.Stp, reply: At, state: int | None) -> str:
    """What is wrong with the answer to a repeated BEGIN; empty when nothing is."""
    stp = reply.stp
    if stp.type != codec.BGAK:
        # The IUT may have ended the connection for another reason at that moment.
        ends = stp.type == codec.END and not stp.flags & codec.R
        return "" if ends else f"with {reply.name}"
    if (stp.csn, stp.peer_csn, stp.seq) != (first.csn, first.peer_csn, first.seq):
        return "with other numbers than before"
    if state == State.CALLED and not stp.flags & codec.C and flow.established is None:
        return "without C flag, though confirmation was awaited"
    before = [
        _above_iss(flow, (at.stp.n_r if at.stp.type == codec.BGAK else at.stp.seq) or 0)
        for at in flow.sent
        if at.frame < reply.frame and not at.stp.fault
        and at.stp.type in (codec.BGAK, codec.STAT, codec.USTAT)
    ]  # fmt: skip
    if _above_iss(flow, stp.n_r or 0) < max(before, default=0):
        return "with an N(R) below one sent before"
    return ""


@checker("STP-CC-019")
def nobody_there(flow: Flow, context: Context) -> Findings:
    """A BEGIN of another version, or to a port without listener, is refused (section 5.2)."""
    for at in flow.heard_of(codec.BEGIN):
        begin = at.stp
        other_version = begin.version != 1
        idle = flow.state_when(at) == State.IDLE
        if not other_version and not (idle and begin.dport == UNUSED_PORT):
            continue
        reason = OTHER_VERSION if other_version else NOBODY_LISTENS
        about = f"a BEGIN of version {begin.version} to port {begin.dport}"
        replies = _for_begin(answers_on_ports(flow, at), begin)
        if replies:
            reply = replies[0]
            refused = reply.stp.type == codec.BGREJ
            yield judged(
                context, refused and reply.stp.reason == reason,
                f"{about} was refused with reason {reason}", f"{about} was not refused as required",
                at, reply,
                expected=f"a BGREJ with reason {reason}",
                actual=reply.name + (f" with reason {reply.stp.reason}" if refused else ""),
            )  # fmt: skip
        elif observed(flow, at) and not many_before(flow, at, (codec.BEGIN,)):
            yield context.violated(f"{about} was not answered in time", at)


def many_before(flow: Flow, at: At, kinds: Sequence[int]) -> bool:
    """Whether enough packets of these types arrived to permit refusing an answer."""
    start = at.time - 1.0 - flow.timing_error
    came = sum(
        other.stp.type in kinds and start <= other.time <= at.time
        for neighbour in flow.neighbours
        for other in neighbour.heard
    )
    return came > ANSWERS_PER_S


@checker("STP-CC-029")
def early_credit_is_given(flow: Flow, context: Context) -> Findings:
    """BEGIN and BGAK permit at least four SDs (section 5.1)."""
    for at in flow.sent:
        stp = at.stp
        if stp.fault or stp.type not in (codec.BEGIN, codec.BGAK):
            continue
        if stp.type == codec.BGAK and (flow.receiver is None or stp.peer_csn != flow.tester_csn):
            continue
        begins = stp.type == codec.BEGIN
        credit = (stp.n_mr or 0) if begins else _above_iss(flow, stp.n_mr or 0)
        yield judged(
            context, EARLY_CREDIT <= credit <= MODULUS // 2,
            f"{at.name} permits {credit} SDs", f"{at.name} gives too little credit", at,
            expected=f"at least ISS + {EARLY_CREDIT}", actual=f"ISS + {credit}",
        )  # fmt: skip
