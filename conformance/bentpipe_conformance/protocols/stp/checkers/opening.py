"""STP-CC: being called (section 5.2): what answers a BEGIN, and which cookies open a connection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    ANSWERS_PER_S,
    answers,
    answers_on_ports,
    ended_the_wait,
    gone_after,
    holder,
    is_alone,
    many_before,
    observed,
    state_on_ports,
)
from bentpipe_conformance.protocols.stp.codec import A, R
from bentpipe_conformance.protocols.stp.numbers import (
    CHARGEN,
    DISCARD,
    EARLY_CREDIT,
    ECHO,
    LEAST_MAX_SD,
    MODULUS,
)
from bentpipe_conformance.protocols.stp.replay.cookies import Worth
from bentpipe_conformance.protocols.stp.replay.events import At, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow, State

NOBODY_LISTENS, OTHER_VERSION, NO_RESOURCES, CALL_ANEW = 3, 4, 5, 6
"""Reasons of BGREJ (section 3.4)."""

SERVICES = (ECHO, DISCARD, CHARGEN)
"""Ports on which somebody listens for sure."""


MANY_CALLS = 100
"""Calls within 900 s whose cookies an endpoint may have no room to remember (STP-CC-012)."""


@dataclass(frozen=True, slots=True)
class Due:
    """What a BEGIN must be answered with.

    Attributes:
        rule: the requirement that says so.
        kind: BGAK, BGREJ or END.
        reason: of a BGREJ.
        about: the BEGIN, with its article.
    """

    rule: str
    kind: int
    reason: int | None
    about: str

    def is_met_by(self, reply: At) -> bool:
        """Whether a packet is that answer; a good cookie may also find no resources."""
        stp = reply.stp
        if stp.type == codec.BGREJ and self.kind == codec.BGAK:
            return stp.reason == NO_RESOURCES and self.rule == "STP-CC-012"
        right = self.reason is None or stp.reason == self.reason
        return stp.type == self.kind and right

    @property
    def wanted(self) -> str:
        """The answer in words."""
        reason = "" if self.reason is None else f" with reason {self.reason}"
        return f"a {codec.NAMES[self.kind]}{reason}"


def due_answer(flow: Flow, at: At) -> Due | None:
    """What section 9 has a BEGIN answered with; None when that is nothing, or not sure."""
    due = _due_unless_too_long(flow, at)
    opens = due is not None and due.rule == "STP-CC-012"
    return None if opens and len(at.stp.data) > flow.ledger.max_sd[0] else due


def exceeds_max_sd(flow: Flow, at: At) -> bool:
    """Whether a BEGIN has a good cookie, but more data than any MaxSD announced (STP-DT-028)."""
    due, most = _due_unless_too_long(flow, at), flow.ledger.max_sd[1]
    return due is not None and due.rule == "STP-CC-012" and len(at.stp.data) > most


@remembered
def _due_answers(flow: Flow) -> Mapping[int, Due | None]:
    """What each BEGIN is due that reached the IUT, by its frame, were its data not too long."""
    return {at.frame: _due_whatever_its_size(flow, at) for at in flow.heard_of(codec.BEGIN)}


def _due_unless_too_long(flow: Flow, at: At) -> Due | None:
    known = _due_answers(flow)
    return known[at.frame] if at.frame in known else _due_whatever_its_size(flow, at)


def _due_whatever_its_size(flow: Flow, at: At) -> Due | None:
    begin = at.stp
    if begin.version != codec.VERSION:
        about = f"a BEGIN of version {begin.version}"
        return Due("STP-CC-019", codec.BGREJ, OTHER_VERSION, about)
    state, there = state_on_ports(flow, at), holder(flow, at)
    if state is None:
        return None
    if state == State.CALLING:
        return Due("STP-CC-043", codec.BGREJ, NOBODY_LISTENS, "a BEGIN to a port that calls")
    of_peer = there is not None and there.is_of_peer(begin)
    if of_peer and state == State.RELEASING:
        return None  # discarded, whoever called (STP-CC-028)
    if of_peer and state == State.OPEN and there is not None and not there.iut_calls:
        return Due("STP-CC-015", codec.BGAK, None, "a repeated BEGIN")
    calls = there is not None and there.iut_calls and state != State.IDLE
    if begin.dport == UNUSED_PORT or calls:
        about = "a BEGIN to a port where nobody listens"
        return Due("STP-CC-019", codec.BGREJ, NOBODY_LISTENS, about)
    if begin.dport not in SERVICES:
        return None
    standing = flow.ledger.standing(at)
    about = f"a BEGIN {standing.why}"
    if standing.worth == Worth.USED:
        return Due("STP-CC-038", codec.END, None, about)
    if standing.worth in (Worth.STALE, Worth.FORGED):
        return Due("STP-CC-036", codec.BGREJ, CALL_ANEW, about)
    if standing.worth == Worth.GOOD:
        return Due("STP-CC-012", codec.BGAK, None, about)
    return None


def replies_to(flow: Flow, at: At) -> list[At]:
    """The BGAKs and BGREJs for a BEGIN, and the ENDs that tell its caller of no connection."""
    csn = at.stp.csn
    return [
        reply
        for reply in answers_on_ports(flow, at, (codec.BGAK, codec.BGREJ, codec.END))
        if reply.stp.peer_csn == csn and (reply.stp.type != codec.END or reply.stp.flags & R)
    ]


def _begins_due(flow: Flow, rule: str) -> Sequence[_Begin]:
    """The BEGINs whose answer a rule governs, what they are due, and their replies.

    Those that cannot be told apart from others with the same CSN are left out.
    """
    return _begins_by_rule(flow).get(rule, ())


_Begin = tuple[At, Due, list[At]]


@remembered
def _begins_by_rule(flow: Flow) -> Mapping[str, Sequence[_Begin]]:
    found: dict[str, list[_Begin]] = {}
    begins = [at for other in flow.same_ports for at in other.heard_of(codec.BEGIN)]
    for at in flow.heard_of(codec.BEGIN):
        due = due_answer(flow, at)
        if due is None:
            continue
        crowded = any(
            other is not at and other.stp.csn == at.stp.csn
            and abs(other.time - at.time) <= flow.due_s
            for other in begins
        )  # fmt: skip
        if not crowded:
            found.setdefault(due.rule, []).append((at, due, replies_to(flow, at)))
    return found


def _answered(flow: Flow, context: Context, at: At, due: Due, replies: Sequence[At]) -> Findings:
    """Whether the first reply to a BEGIN is the one that is due."""
    if replies:
        reply = replies[0]
        reason = "" if reply.stp.type == codec.BGAK else f" with reason {reply.stp.reason}"
        yield judged(
            context, due.is_met_by(reply),
            f"{due.about} was answered with {due.wanted}",
            f"{due.about} was not answered as required", at, reply,
            expected=due.wanted, actual=f"{reply.name}{reason}",
        )  # fmt: skip
    elif observed(flow, at):
        yield context.violated(f"{due.about} was not answered in time", at, expected=due.wanted)


@checker("STP-CC-012")
def begins_are_answered(flow: Flow, context: Context) -> Findings:
    """A BEGIN with a good cookie is answered with a BGAK that covers its data (section 5.2)."""
    for given in (at for at in flow.bgaks if at.outgoing and at.stp.cookie is not None):
        by = [at for at in flow.ledger.opened if at.stp.cookie == given.stp.cookie]
        if by and by[0].frame < given.frame:
            yield context.violated("a BGAK brings a cookie that has been used", given, by[0])
    for at, due, replies in _begins_due(flow, "STP-CC-012"):
        if not replies and flow.state_when(at) in (State.OPEN, State.RELEASING):
            continue  # STP-CC-041 judges that
        bgak = replies[0] if replies and replies[0].stp.type == codec.BGAK else None
        most = LEAST_MAX_SD if bgak is None else bgak.stp.max_sd or LEAST_MAX_SD
        carries = bool(at.stp.data or at.stp.flags & codec.FIN) and len(at.stp.data) <= most
        if bgak is not None and carries:
            covered = ((bgak.stp.n_r or 0) - at.stp.seq) % MODULUS
            if not 1 <= covered < MODULUS // 2:
                yield context.violated(
                    "a BGAK does not acknowledge the data of the BEGIN", at, bgak,
                    expected="N(R) ISS + 1 or above", actual=f"ISS + {covered}",
                )  # fmt: skip
                continue
        if bgak is not None and at is flow.opener and (most_r := _arrived(flow, bgak)) is not None:
            told = _above_iss(flow, bgak.stp.n_r or 0)
            if told > most_r:
                yield context.violated(
                    "a BGAK acknowledges what has not arrived", at, bgak,
                    expected=f"N(R) ISS + {most_r} at most", actual=f"ISS + {told}",
                )  # fmt: skip
                continue
        if replies and _is_needlessly_refused(flow, at, replies[0]):
            yield context.violated(
                "a call was refused for want of resources, though no other connection has them",
                at, replies[0],
            )  # fmt: skip
            continue
        yield from _answered(flow, context, at, due, replies)


def _is_needlessly_refused(flow: Flow, at: At, reply: At) -> bool:
    """Whether a BGREJ says that there are no resources, though nothing can have used them up.

    What the IUT did before, and for other addresses, only the trace of a case tells.
    """
    if not flow.whole or reply.stp.type != codec.BGREJ or reply.stp.reason != NO_RESOURCES:
        return False
    if flow.ledger.elsewhere or len(flow.ledger.opened) >= MANY_CALLS:
        return False
    there = holder(flow, at)
    if there is not None and there.state_at(at.time) == State.OPEN:
        return True  # it makes room (STP-CC-041)
    before = (
        other for other in flow.neighbours if other.iut_csn is not None and other.start < at.frame
    )
    last = {other.ends: other for other in sorted(before, key=lambda other: other.start)}
    last.pop(flow.ends, None)
    return all(
        other.state_at(time) == State.IDLE
        for other in last.values()
        for time in (at.time - flow.due_s, at.time)
    )


@checker("STP-CC-015")
def repeated_begin_is_answered_again(flow: Flow, context: Context) -> Findings:
    """A repeated BEGIN is answered with a BGAK and changes nothing else (section 5.2)."""
    first = next((at for at in flow.bgaks if at.outgoing), None)
    for at, due, replies in _begins_due(flow, "STP-CC-015"):
        if first is None or first.frame > at.frame or at.time - first.time <= flow.due_s:
            continue  # the first BGAK may answer it
        over = flow.ended is not None and flow.ended <= at.time + flow.due_s
        if not replies and over:
            continue
        given = _credit_by_repetition(flow, at)
        if given is not None:
            yield context.violated("a repeated BEGIN gave credit", at, given)
            continue
        bgak = next((reply for reply in replies if reply.stp.type == codec.BGAK), None)
        problem = "" if bgak is None else _changed_by_repetition(flow, first.stp, bgak)
        if bgak is not None and problem:
            yield context.violated(f"a repeated BEGIN was answered {problem}", at, bgak)
        else:
            yield from _answered(flow, context, at, due, replies)


def _credit_by_repetition(flow: Flow, at: At) -> SdSent | None:
    """The first new SD beyond the credit, if it left at once behind a repetition."""
    beyond = next((sd for sd in flow.sds_sent if sd.new and sd.number >= sd.vt_ms), None)
    if beyond is None or not at.time <= beyond.time <= at.time + flow.due_s:
        return None
    return beyond


def _changed_by_repetition(flow: Flow, first: codec.Stp, reply: At) -> str:
    """What is wrong with the BGAK for a repeated BEGIN; empty when nothing is."""
    stp = reply.stp
    if (stp.csn, stp.seq) != (first.csn, first.seq):
        return "with other numbers than before"
    before = [
        _above_iss(flow, (at.stp.n_r if at.stp.type == codec.BGAK else at.stp.seq) or 0)
        for at in flow.sent
        if at.frame < reply.frame and not at.stp.fault
        and at.stp.type in (codec.BGAK, codec.STAT, codec.USTAT)
    ]  # fmt: skip
    if _above_iss(flow, stp.n_r or 0) < max(before, default=0):
        return "with an N(R) below one sent before"
    most = _arrived(flow, reply)
    if most is not None and _above_iss(flow, stp.n_r or 0) > most:
        return "with an N(R) above what has arrived"
    told = [
        at.stp.n_mr for at in flow.sent
        if at.frame < reply.frame and not at.stp.fault
        and at.stp.type in (codec.BGAK, codec.STAT, codec.USTAT)
    ]  # fmt: skip
    return "" if told[-1:] == [stp.n_mr] else "with other credit than that last announced"


def _arrived(flow: Flow, reply: At) -> int | None:
    """The highest VR(R) that the IUT can have when it sends a BGAK; None when that is not sure."""
    receiver = flow.receiver
    if receiver is None or any(sd.beyond and not sd.duplicate for sd in flow.sds_heard):
        return None
    return receiver.delivered(reply.time, reply.time)[1]


def _above_iss(flow: Flow, number: int) -> int:
    """A number of the tester's direction as a count, ahead of ISS."""
    iss = flow.receiver.iss if flow.receiver is not None else 0
    return (number - iss) % MODULUS


@checker("STP-CC-019")
def nobody_there(flow: Flow, context: Context) -> Findings:
    """A BEGIN of another version, or to a port without listener, is refused (section 5.2)."""
    for at, due, replies in _begins_due(flow, "STP-CC-019"):
        if replies or not _many_refused_before(flow, at):
            yield from _answered(flow, context, at, due, replies)


def _many_refused_before(flow: Flow, at: At) -> bool:
    """Whether enough BEGINs of the rule arrived before one to permit leaving it unanswered."""
    if not many_before(flow, at, (codec.BEGIN,)):
        return False
    start = at.time - 1.0 - flow.timing_error
    came = sum(
        start <= other.time <= at.time and _may_be_refused(neighbour, other)
        for neighbour in flow.neighbours
        for other in neighbour.heard_of(codec.BEGIN)
    )
    return came > ANSWERS_PER_S


def _may_be_refused(flow: Flow, begin: At) -> bool:
    """Whether a BEGIN may be one of those whose answers an endpoint may limit."""
    due = _due_whatever_its_size(flow, begin)
    return due is None or due.rule == "STP-CC-019"


@checker("STP-CC-043")
def caller_does_not_listen(flow: Flow, context: Context) -> Findings:
    """A BEGIN that meets a call of the IUT's own is refused with reason 3 (section 5.1)."""
    for at, due, replies in _begins_due(flow, "STP-CC-043"):
        if flow.state_at(at.time + flow.due_s) == State.CALLING or replies:
            yield from _answered(flow, context, at, due, replies)


@checker("STP-CC-035")
def good_cookies_open_connections(flow: Flow, context: Context) -> Findings:
    """A connection is opened by a BEGIN with a good cookie only (section 5.2).

    Forged cookies are judged by STP-SEC-006, used ones by STP-CC-038.
    """
    for at in flow.heard_of(codec.BEGIN):
        if at.stp.version != codec.VERSION:
            continue
        standing = flow.ledger.standing(at)
        if at is flow.opener and standing.worth in (Worth.STALE, Worth.SPENT):
            yield context.violated(f"a BEGIN {standing.why} opened a connection", at)
        elif at is flow.opener and standing.worth == Worth.GOOD:
            yield context.holds("a BEGIN with a good cookie opened a connection", at)
        elif standing.worth == Worth.STALE and observed(flow, at) and is_alone(flow, at):
            yield from _opened_nothing(flow, context, at, standing.why)


def _opened_nothing(flow: Flow, context: Context, at: At, why: str) -> Findings:
    """Whether a BEGIN without a good cookie left its data, and SDs behind it, undelivered."""
    state = state_on_ports(flow, at)
    if state != State.IDLE:
        return
    tag = (at.stp.csn or 0) & 0xFFFF
    later = [
        item
        for other in flow.same_ports
        for item in other.passed
        if item.frame > at.frame
    ]  # fmt: skip
    until = min((item.frame for item in later if item.stp.type == codec.BEGIN), default=math.inf)
    acted = [
        item for item in later
        if item.outgoing and item.stp.type in TAGGED and item.frame < until
    ]  # fmt: skip
    yield judged(
        context, not acted,
        f"a BEGIN {why} opened nothing",
        f"after a BEGIN {why} (tag {tag:#06x}) the IUT sent packets of an open connection",
        at, *acted[:1],
    )  # fmt: skip


@checker("STP-CC-036")
def callers_are_given_a_cookie(flow: Flow, context: Context) -> Findings:
    """A BEGIN without a good cookie draws a BGREJ with a fresh one (section 5.2)."""
    for at, due, replies in _begins_due(flow, "STP-CC-036"):
        if replies and replies[0].stp.type == codec.BGAK:
            continue  # STP-CC-035 and STP-SEC-006 judge that
        cookie = replies[0].stp.cookie if replies else None
        before = flow.ledger.given.get(cookie) if cookie is not None else None
        if before is not None and before.frame < replies[0].frame:
            yield context.violated(
                "a BGREJ carries a cookie that was given before", before, at, replies[0]
            )
        else:
            yield from _answered(flow, context, at, due, replies)


@checker("STP-CC-038")
def used_cookies_open_nothing(flow: Flow, context: Context) -> Findings:
    """A used cookie of a connection that is gone draws an END (sections 5.2 and 5.5)."""
    for at, due, replies in _begins_due(flow, "STP-CC-038"):
        wrong = [reply for reply in replies if reply.stp.type == codec.END]
        right = A | R, 2, 0, 0
        if wrong and _end_fields(wrong[0]) != right:
            yield context.violated(
                "a used cookie was answered with a wrong END", at, wrong[0],
                expected=f"flags, reason, tag and N(R) {right}", actual=f"{_end_fields(wrong[0])}",
            )  # fmt: skip
        else:
            yield from _answered(flow, context, at, due, replies)


def _end_fields(end: At) -> tuple[int, int | None, int, int]:
    return end.stp.flags, end.stp.reason, end.stp.tag, end.stp.seq


@checker("STP-SEC-006")
def cookies_cannot_be_forged(flow: Flow, context: Context) -> Findings:
    """A cookie of another address, or an altered one, opens nothing (section 10)."""
    for at in flow.heard_of(codec.BEGIN):
        standing = flow.ledger.standing(at)
        if standing.worth != Worth.FORGED or at.stp.version != codec.VERSION:
            continue
        bgaks = [reply for reply in replies_to(flow, at) if reply.stp.type == codec.BGAK]
        there = holder(flow, at)
        if there is not None and there.is_of_peer(at.stp):
            continue  # a repetition is answered, whatever it carries
        if at is flow.opener or bgaks:
            yield context.violated(f"a BEGIN {standing.why} opened a connection", at, *bgaks)
        elif observed(flow, at):
            yield context.holds(f"a BEGIN {standing.why} opened nothing", at)


@checker("STP-CC-041")
def later_calls_replace_the_connection(flow: Flow, context: Context) -> Findings:
    """A BEGIN with a good cookie replaces a connection, another one changes nothing (5.2)."""
    new = flow.displaced_by
    if new is not None and new.stp.type == codec.BEGIN and not new.outgoing:
        after = [
            at for at in flow.sent
            if at.time > new.time + flow.due_s and at.stp.type in (*TAGGED, codec.END)
            and not at.stp.flags & R and not at.stp.fault
        ]  # fmt: skip
        # A tag may be that of the new connection.
        after = [at for at in after if at.stp.type in (codec.SDP, codec.POLL, codec.END)]
        if flow.ended == new.time:
            yield judged(
                context, not after,
                "a later call replaced the connection",
                "a connection that a later call has replaced went on", new, *after[:1],
            )  # fmt: skip
    for at in flow.heard_of(codec.BEGIN):
        state = flow.state_when(at)
        foreign = not flow.is_of_peer(at.stp) and at.stp.version == codec.VERSION
        if state not in (State.OPEN, State.RELEASING) or not foreign:
            continue
        due = due_answer(flow, at)
        if due is None or due.rule != "STP-CC-012":
            yield from _left_alone(flow, context, at, state)
        elif not any(due.is_met_by(reply) for reply in replies_to(flow, at)) and observed(flow, at):
            yield context.violated(
                "a BEGIN with a good cookie did not replace the connection on its ports", at
            )


def _left_alone(flow: Flow, context: Context, at: At, state: State) -> Findings:
    """Whether a BEGIN that opens nothing has left the connection as it was."""
    ends = [
        end for end in answers(flow, at, (codec.END,))
        if not end.stp.flags & R and end.stp.reason not in (0, 7)
    ]  # fmt: skip
    if ends and flow.served and is_alone(flow, at) and state == State.OPEN:
        yield context.violated("a BEGIN that opens nothing ended the connection", at, *ends)
        return
    if ended_the_wait(flow, context, at):
        yield context.violated(
            "a BEGIN that opens nothing ended the wait for an ENDAK: no END was repeated", at
        )
        return
    gone = gone_after(flow, at) if state == State.OPEN else None
    if gone is not None and gone.time < flow.over:
        yield context.violated("a BEGIN that opens nothing ended the connection", at, gone)
        return
    polls = [poll for poll in flow.polls_heard if poll.time > at.time]
    unanswered = [poll for poll in polls if not poll.answers and observed(flow, poll)]
    told = [
        end for end in flow.sent
        if end.time > at.time and end.stp.type == codec.END and end.stp.flags & R
        and end.stp.peer_csn == flow.tester_csn
    ]  # fmt: skip
    if told and unanswered and state == State.OPEN and flow.ended is None:
        yield context.violated("a BEGIN that opens nothing ended the connection", at, told[0])
    elif any(poll.answers for poll in polls) or (
        state == State.RELEASING
        and any(end.time > at.time and end.stp.type == codec.END for end in flow.sent)
    ):
        yield context.holds("a BEGIN that opens nothing left the connection as it was", at)


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
