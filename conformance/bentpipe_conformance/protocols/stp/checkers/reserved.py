"""STP-PF: what is reserved, unknown or odd in a packet is ignored (sections 3.1 and 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answered,
    answers,
    answers_on_ports,
    is_idle,
    many_before,
    observed,
)
from bentpipe_conformance.protocols.stp.checkers.congestion import DEPTH, SLOWEST_GAIN, rate_gap
from bentpipe_conformance.protocols.stp.checkers.opening import due_answer, replies_to
from bentpipe_conformance.protocols.stp.checkers.refusals import MOST_ANEW, refusals
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    END,
    ENDAK,
    POLL,
    SDP,
    R,
    Stp,
)
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, LEAST_MAX_SD
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    At,
    ReportHeard,
    SdHeard,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State
from bentpipe_conformance.protocols.stp.replay.window import least_smss, smss

MAX_SD, COOKIE, COOKIE_SIZES = 1, 2, range(8, 33)
"""Kinds of the options, and octets that the value of a cookie may have (section 3.3)."""

RESERVED_S = 2.0
"""Seconds after which a packet that counts must have shown an effect."""


@checker("STP-PF-004")
def reserved_fields_are_ignored(flow: Flow, context: Context) -> Findings:
    """Reserved flags and fields that are set change nothing (section 3.1)."""
    for poll in flow.polls_heard:
        if not _reserved(poll.stp):
            continue
        if poll.answers:
            yield context.holds(f"{poll.name} with reserved bits set was answered", poll)
        elif observed(flow, poll):
            yield context.violated(f"{poll.name} with reserved bits set got no STAT", poll)
    for sd in flow.sds_heard:
        if _reserved(sd.stp) and not (sd.duplicate or sd.beyond or sd.misfit):
            yield from _accepted(context, sd)
    for at in flow.heard_of(BEGIN, END):
        if not _reserved(at.stp):
            continue
        what = f"{at.name} with reserved bits set"
        if at.stp.type == BEGIN:
            due = due_answer(flow, at)
            replies = [reply for reply in replies_to(flow, at) if due and due.is_met_by(reply)]
            if due is not None:
                many = due.rule == "STP-CC-019" and many_before(flow, at, (BEGIN,))
                yield from answered(flow, context, at, replies, what, excused=many)
        elif not at.stp.flags & R and flow.names(at) and flow.state_when(at) in _ENDABLE:
            yield from answered(flow, context, at, answers(flow, at, (ENDAK,)), what)
    yield from _reserved_in_strays(flow, context)
    yield from _reserved_for_callers(flow, context)
    for report in flow.reports_heard:
        if _reserved(report.stp) and report.wanted and not report.fault:
            yield from _retransmitted(flow, context, report)
    for at in flow.heard_of(ENDAK):
        if (
            _reserved(at.stp)
            and flow.state_when(at) == State.RELEASING
            and flow.is_recipient(at.stp)
        ):
            later = [
                end for end in flow.sent
                if end.time > at.time + DUE_S and end.stp.type == END and not end.stp.flags & R
            ]  # fmt: skip
            if later or flow.until - at.time > RESERVED_S:
                yield _taken(context, at, later, "an ENDAK")


_ENDABLE = (State.OPEN, State.RELEASING)
"""States in which an END with both CSNs is valid."""


def _reserved_in_strays(flow: Flow, context: Context) -> Findings:
    """Whether packets of no connection with reserved bits set are answered (section 5.5)."""
    for at in flow.heard_of(BGAK, END, SDP, POLL):
        ends_nothing = at.stp.type == END and at.stp.flags & R
        if not _reserved(at.stp) or ends_nothing or not is_idle(flow, at):
            continue
        replies = answers_on_ports(flow, at, (ENDAK if at.stp.type == END else END,))
        many = many_before(flow, at, (BGAK, END, SDP, POLL))
        what = f"{at.name} without a connection and with reserved bits set"
        yield from answered(flow, context, at, replies, what, excused=many)


def _reserved_for_callers(flow: Flow, context: Context) -> Findings:
    """Whether a caller has minded a BGAK and a BGREJ with reserved bits set."""
    for refusal in refusals(flow):
        if _reserved(refusal.at.stp) and refusal.place <= MOST_ANEW:
            replies = [refusal.anew] if refusal.anew is not None else []
            what = "a BGREJ with reserved bits set"
            yield from answered(flow, context, refusal.at, replies, what)
    for at in flow.bgaks:
        if _reserved(at.stp) and not at.outgoing and at.time == flow.established:
            own = (begin for begin in flow.begins if begin.outgoing)
            again = [begin for begin in own if begin.time > at.time + flow.due_s]
            if again or flow.until - at.time > RESERVED_S:
                yield _taken(context, at, again, "a BGAK")


def _taken(context: Context, at: At, repeated: Sequence[At], what: str) -> Finding:
    """A packet that ends a repetition was taken, unless the repetition went on."""
    what = f"{what} with reserved bits set was"
    return judged(context, not repeated, f"{what} taken", f"{what} ignored", at, *repeated[:1])


def _retransmitted(flow: Flow, context: Context, report: ReportHeard) -> Findings:
    """Whether a report has had the SDs sent again that it made await retransmission."""
    turn = _turn(flow, context, report)
    until = report.time + RESERVED_S if turn is None else turn
    soon = [sd for sd in report.responses if sd.time <= until]
    if soon:
        yield context.holds(f"{report.name} with reserved bits set was taken", report, soon[0])
        return
    # What has waited for its turn may be reported as arrived before that comes.
    arrived = {
        number for later in flow.reports_heard
        if report.frame < later.frame and later.time <= until
        for number in later.arrived
    }  # fmt: skip
    if turn is not None and flow.over > turn and not arrived.issuperset(report.wanted):
        yield context.violated(f"{report.name} with reserved bits set was ignored", report)


def _turn(flow: Flow, context: Context, report: ReportHeard) -> float | None:
    """When pacing has let something be sent again for a report; None where the window may not.

    What awaits retransmission besides may go first, and pacing may have used all its tolerance
    (STP-CG-008). Both are judged by the smallest window until then.
    """
    trips = context.prepared.round_trips(context.ics)
    windows = context.prepared.least_windows(context.ics)
    size, collapsed = smss(flow), least_smss(flow)
    least, heard, others = windows[report], report.time, 0

    def paced(now: float) -> float:
        srtt = (trips.bounds(report.time, now) or (0.0, 0.0))[1]
        octets = DEPTH * size + report.waiting + others
        held = (1 + others // size) * rate_gap(flow, context)
        return report.time + max(RESERVED_S, srtt * octets / (SLOWEST_GAIN * least) + held)

    until = paced(heard)
    for later in flow.reports_heard:
        if later.frame <= report.frame or later not in windows:
            continue
        if later.time > until:
            break
        least, heard = min(least, windows[later]), later.time
        others += len(later.wanted) * size
        until = max(until, paced(heard))
    if until - heard >= 3 * trips.silence(heard, until)[0] - flow.due_s:
        least = min(least, collapsed)  # two silences (STP-CG-007)
        until = max(until, paced(until))
    # The first retransmission after a reduction by STP-CG-005 waits for no window.
    lost = any(item.wanted for item in flow.reports_heard if item.frame < report.frame)
    first = not (lost or others) and windows[report] > collapsed
    fits = report.flight_after + report.waiting + size <= least
    return until if first or fits else None


def _reserved(stp: Stp) -> bool:
    return bool(stp.reserved_flags) or any(stp.reserved)


def _accepted(context: Context, sd: SdHeard) -> Findings:
    """Whether the first STAT after an SD knows of it."""
    for said in context.prepared.statements:
        # An earlier STAT may have left before the SD was read.
        if said.poll is None or said.poll.time <= sd.time:
            continue
        what = f"SD {sd.number} with reserved bits set"
        beyond = sd.number >= said.bound and said.certain and said.complete
        if said.misses(sd.number) or beyond:
            yield context.violated(f"{what} is reported missing", sd, said)
        elif sd.number < said.bound:
            yield context.holds(f"{what} was accepted", sd, said)
        return


@checker("STP-PF-008")
def unknown_options_are_ignored(flow: Flow, context: Context) -> Findings:
    """An option of unknown kind is skipped, and what follows it is processed (section 3.3)."""
    yield from _unknown_to_callers(flow, context)
    for at in flow.heard_of(BEGIN):
        due = due_answer(flow, at) if _has_unknown_kinds(at.stp.options) else None
        if due is None or due.kind == END:
            continue
        max_sd = at.stp.max_sd
        replies = [reply for reply in replies_to(flow, at) if due.is_met_by(reply)]
        if not replies or at is not flow.opener:
            yield from answered(flow, context, at, replies, "a BEGIN with an unknown option")
            continue
        largest = max(flow.sds_sent, key=lambda sd: len(sd.stp.data), default=None)
        most = 0 if largest is None else len(largest.stp.data)
        limit = None if max_sd is None else max(max_sd, LEAST_MAX_SD)
        if largest is not None and limit is not None and most > limit:
            large = next(sd for sd in flow.sds_sent if len(sd.stp.data) > limit)
            yield context.violated(
                f"SD {large.number} exceeds the MaxSD behind an unknown option", at, large
            )
        elif _keeps_to_the_least(flow, max_sd, most):
            yield context.violated(
                "the MaxSD behind an unknown option was not used", at, flow.sds_sent[0],
                expected=f"SDs of up to {max_sd} octets", actual=f"SDs of up to {most} octets",
            )  # fmt: skip
        else:
            yield context.holds("a BEGIN with an unknown option was processed", at, replies[0])


def _keeps_to_the_least(flow: Flow, max_sd: int | None, most: int) -> bool:
    """Whether the SDs are as long as without a MaxSD, though the IUT itself takes longer ones."""
    longer = max_sd is not None and LEAST_MAX_SD < max_sd <= (flow.iut_max_sd or 0)
    if not longer or most != LEAST_MAX_SD or len(flow.sds_sent) < 2:
        return False
    if flow.service == CHARGEN:
        return True
    # An echo has more to send only of SDs that are longer and were taken.
    taken = [sd for sd in flow.sds_heard if not (sd.duplicate or sd.misfit or sd.discarded)]
    sizes = [len(sd.stp.data) for sd in sorted(taken, key=lambda sd: sd.number)]
    ahead = sum(takewhile(lambda size: size <= most, sizes))
    return sum(len(sd.stp.data) for sd in flow.sds_sent if sd.new) > ahead + most


def _unknown_to_callers(flow: Flow, context: Context) -> Findings:
    """Whether a caller has minded the cookie behind an unknown option of a BGREJ."""
    for refusal in refusals(flow):
        if _has_unknown_kinds(refusal.at.stp.options) and refusal.place <= MOST_ANEW:
            replies = [refusal.anew] if refusal.anew is not None else []
            what = "a BGREJ with an unknown option"
            yield from answered(flow, context, refusal.at, replies, what)


def _has_unknown_kinds(octets: bytes) -> bool:
    """Whether a well-formed option field holds a kind that section 3.3 does not name."""
    return any(kind > COOKIE for kind, _ in options_of(octets))


def options_of(octets: bytes) -> list[tuple[int, int]]:
    """Kind, and octets of the value, of each option of a well-formed option field."""
    found, at = [], 0
    while at < len(octets):
        if octets[at]:
            found.append((octets[at], octets[at + 1] - 2))
        at += octets[at + 1] if octets[at] else 1
    return found


@checker("STP-PF-018")
def odd_options_are_ignored(flow: Flow, context: Context) -> Findings:
    """Options of a wrong length are skipped, and of several of a kind the first counts (3.3)."""
    for refusal in refusals(flow):
        at, anew = refusal.at, refusal.anew
        if _has_odd_options(at.stp.options) and refusal.place <= MOST_ANEW:
            right = anew is not None and anew.stp.cookie == at.stp.cookie
            if anew is not None or observed(flow, at):
                yield judged(
                    context, right,
                    "a BGREJ with odd options was taken as it is to be",
                    "a BGREJ with odd options was not taken as it is to be",
                    at, *([anew] if anew else []),
                )  # fmt: skip
    for at in flow.heard_of(BEGIN):
        due = due_answer(flow, at) if _has_odd_options(at.stp.options) else None
        if due is None:
            continue
        replies = [reply for reply in replies_to(flow, at) if due.is_met_by(reply)]
        yield from answered(flow, context, at, replies, "a BEGIN with odd options")
    opened = flow.opener or next((at for at in flow.bgaks if at.time == flow.established), None)
    if opened is None or opened.outgoing or not _has_odd_options(opened.stp.options):
        return
    most = max(opened.stp.max_sd or 0, LEAST_MAX_SD)
    # What is sent again is as it was, also where the peer has lowered its MaxSD meanwhile.
    later = (sd for sd in flow.sds_sent if sd.new and sd.frame > opened.frame)
    large = [sd for sd in later if len(sd.stp.data) > most]
    if large and opened.stp.max_sd is not None:
        yield context.violated(
            f"{large[0].name} exceeds the MaxSD that counts among odd options", opened, large[0],
            expected=f"at most {most} octets", actual=f"{len(large[0].stp.data)} octets",
        )  # fmt: skip


def _has_odd_options(octets: bytes) -> bool:
    """Whether MaxSD or Cookie has a length that it cannot have, or is there twice."""
    sizes = {MAX_SD: range(2, 3), COOKIE: COOKIE_SIZES}
    known = [(kind, size) for kind, size in options_of(octets) if kind in sizes]
    kinds = [kind for kind, _ in known]
    return len(set(kinds)) < len(kinds) or any(size not in sizes[kind] for kind, size in known)
