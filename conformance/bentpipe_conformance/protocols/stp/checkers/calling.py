"""STP-CC: calling (section 5.1): early data, repetition by Timer_CC, cookies and calling anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.probe import chargen
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGREJ, END, FIN, V
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT
from bentpipe_conformance.protocols.stp.replay.cookies import GOOD_S, alike
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State
from bentpipe_conformance.protocols.stp.replay.round_trip import first_wait

MAX_CC = 5
"""Transmissions of a BEGIN or END (section 8)."""

CALL_ANEW = 6
"""Reason of a BGREJ that brings a cookie (section 3.4)."""

NO_ANSWER = 7
"""Reason of an END when the peer does not answer (section 3.4)."""

MOST_ANEW = 5
"""How often a caller calls anew (STP-CC-037)."""

POLL_S = 0.02
"""Seconds within which a caller whose SDs are unacknowledged polls (STP-CC-042)."""

EARLIEST, LATEST, TICK_S = 0.95, 1.1, 0.1
"""A timer may be coarse: the part of its time after which it may, and must, have expired."""


def latest(wait: float) -> float:
    """Seconds after which a timer set for ``wait`` must have expired."""
    return LATEST * wait + TICK_S


def _call(flow: Flow) -> At | None:
    """The first BEGIN of the IUT's own call."""
    begins = (at for at in flow.begins if at.outgoing)
    return next(begins, None) if flow.iut_calls else None


@checker("STP-CC-047")
def calls_begin_with_a_begin(flow: Flow, context: Context) -> Findings:
    """An endpoint whose user calls sends a BEGIN (section 5.1); a script says where none came."""
    if flow.iut_calls and flow.begins:
        yield context.holds("the user's call began with a BEGIN", flow.begins[0])


@checker("STP-CC-002")
def early_data_within_early_credit(flow: Flow, context: Context) -> Findings:
    """Before its BEGIN is acknowledged, a caller sends at most four SDs (section 5.1)."""
    begin = _call(flow)
    if begin is None:
        return
    until = flow.until if flow.established is None else flow.established - flow.timing_error
    early = [sd for sd in flow.sds_sent if sd.time < until]
    numbers = {sd.number for sd in early}
    above = [sd for sd in early if sd.number >= EARLY_CREDIT]
    behind = [sd for sd in early if sd.stp.type != BEGIN]
    if behind and begin.stp.cookie is None:
        yield context.violated(
            f"SD {behind[0].number} was sent behind a BEGIN without a cookie", begin, behind[0]
        )
    elif above or len(numbers) > EARLY_CREDIT:
        yield context.violated(
            f"{len(numbers)} SDs, up to number {max(numbers)}, were sent before the BEGIN was "
            "acknowledged",
            *(above or early)[:1],
            expected=f"at most {EARLY_CREDIT}, numbered 0 to {EARLY_CREDIT - 1}",
            actual=f"{len(numbers)}",
        )  # fmt: skip
    elif min(until, flow.over) - begin.time >= TICK_S:
        yield context.holds(
            f"{len(numbers)} SDs were sent before the BEGIN was acknowledged", begin
        )


@checker("STP-CC-034")
def begin_without_a_cookie_is_empty(flow: Flow, context: Context) -> Findings:
    """A BEGIN without Cookie option carries neither data nor FIN (section 5.1)."""
    begin = _call(flow)
    if begin is None or begin.stp.cookie is not None or begin.stp.fault:
        return
    carries = len(begin.stp.data) or bool(begin.stp.flags & FIN)
    yield judged(
        context, not carries,
        "a BEGIN without a cookie carries nothing",
        "a BEGIN without a cookie carries data or the FIN flag", begin,
        expected="no data, no FIN flag", actual=f"{len(begin.stp.data)} octets",
    )  # fmt: skip


@checker("STP-CC-014")
def repeated_begin_is_equal(flow: Flow, context: Context) -> Findings:
    """A repeated BEGIN equals the first in all fields, options and data (section 5.1)."""
    sent = [at for at in flow.begins if at.outgoing]
    for again in sent[1:]:
        first = sent[0]
        yield judged(
            context, first.stp.octets == again.stp.octets,
            "a BEGIN was repeated as it was", "a BEGIN was repeated with other contents",
            first, again,
            expected=first.stp.octets.hex(), actual=again.stp.octets.hex(),
        )  # fmt: skip


@checker("STP-CC-016")
def begin_is_repeated_by_timer(flow: Flow, context: Context) -> Findings:
    """An unanswered BEGIN is repeated by Timer_CC, an answered one is not (section 5.1)."""
    if not flow.iut_calls:
        return
    sent = [at for at in flow.begins if at.outgoing]
    ends = [time for time in (flow.established, flow.ended) if time is not None]
    # Whether another BEGIN could take the place of this one is judged by STP-CC-037.
    ends += [other.begins[0].time for other in _later_calls(flow)]
    done = min(ends, default=None)
    yield from repetitions(flow, context, sent, done)
    answer = next((at for at in flow.heard if at.time == done), None)
    if answer is not None:
        yield from left_alone(flow, context, sent, answer)
    over = next((at for at in flow.sent if at.stp.type == END and at.stp.csn == flow.iut_csn), None)
    again = [at for at in sent if over is not None and at.frame > over.frame]
    if over is not None and again:
        yield context.violated("a BEGIN was sent after the END of its call", over, again[0])
    given_up = next(
        (at for at in flow.sent if at.stp.type == END and at.stp.reason == NO_ANSWER), None
    )
    if given_up is not None and flow.established is None and len(sent) < MAX_CC:
        yield context.violated(
            "a call was given up before its BEGIN had been sent often enough", *sent[-1:], given_up,
            expected=f"{MAX_CC} BEGINs", actual=f"{len(sent)}",
        )  # fmt: skip


def _later_calls(flow: Flow) -> list[Flow]:
    """The IUT's later calls from and to the same ports."""
    return [
        other for other in flow.same_ports
        if other.iut_calls and other.begins and other.start > flow.start
    ]  # fmt: skip


def repetitions(
    flow: Flow, context: Context, sent: Sequence[At], answered: float | None
) -> Findings:
    """Whether a BEGIN or END is repeated when Timer_CC expires, and not too often.

    The wait may have ended at ``answered``, None if nothing arrived that could end it.
    """
    until = flow.until if answered is None else answered
    # One that leaves at the time of the answer is an answer to it.
    waiting = [at for at in sent if answered is None or at.time < answered]
    wait = first_wait(context.ics)
    for place, at in enumerate(waiting):
        what = waiting[0].name
        if place >= MAX_CC:
            yield context.violated(f"{what} was sent {place + 1} times", at)
            return
        most = latest(wait) + flow.timing_error
        later = waiting[place + 1] if place + 1 < len(waiting) else None
        gap = (later.time if later else until) - at.time
        if later is not None:
            yield judged(
                context, EARLIEST * wait - flow.timing_error <= gap <= most,
                f"{what} was repeated after {gap:.2f} s", f"{what} was repeated after {gap:.2f} s",
                at, later,
                expected=f"{wait:g} s", actual=f"{gap:.2f} s",
            )  # fmt: skip
        elif gap > most and place + 1 < MAX_CC:
            yield context.violated(
                f"{what} was not repeated within {gap:.2f} s", at, expected=f"{wait:g} s"
            )
        wait *= 2


def left_alone(flow: Flow, context: Context, sent: Sequence[At], answer: At) -> Findings:
    """Whether a BEGIN or END was not sent again once ``answer`` had ended the wait."""
    if not sent:
        return
    late = [at for at in sent if at.time > answer.time + flow.due_s]
    due = sent[-1].time + latest(first_wait(context.ics) * 2.0 ** (len(sent) - 1))
    if late:
        yield context.violated(f"{late[0].name} was sent again after its answer", answer, late[0])
    elif len(sent) < MAX_CC and flow.until > due + flow.timing_error:
        yield context.holds(f"{sent[0].name} was not sent again after its answer", sent[-1], answer)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call of the IUT that was given a cookie.

    Attributes:
        at: the BGREJ.
        begin: the BEGIN that it refuses.
        place: 1 for the first in a row of calls, 2 for the one called anew, ...
        anew: the BEGIN that followed in time, None without one.
    """

    at: At
    begin: At
    place: int
    anew: At | None


def refusals(flow: Flow) -> list[Refusal]:
    """The BGREJ that made this call be made anew, if there was one."""
    begin = _call(flow)
    at = _gift(flow)
    if begin is None or at is None:
        return []
    before = [
        other for other in flow.same_ports if other.iut_calls and other.start < flow.start
    ]  # fmt: skip
    place, first = 1, begin
    for other in reversed(before):
        gift = _gift(other)
        if gift is None or not 0 <= first.time - gift.time <= flow.due_s:
            break
        place, first = place + 1, other.begins[0]
    return [Refusal(at, begin, place, _anew(flow, at))]


def _anew(flow: Flow, at: At) -> At | None:
    """The BEGIN that answers a BGREJ with a cookie: rather from the ports of the call than others.

    One from other ports may be the answer to the BGREJ of another call, made at the same time.
    """

    def timely(calls: Sequence[Flow], given: At) -> list[Flow]:
        return [
            other for other in calls
            if other.iut_calls and other.ends[2] == flow.ends[2] and other.begins
            and other.start > given.frame and other.begins[0].time <= given.time + flow.due_s
        ]  # fmt: skip

    own = timely(flow.same_ports, at)
    if not own:
        gifts = [(other, _gift(other)) for other in flow.neighbours if other.ends != flow.ends]
        others = [
            answer for other, gift in gifts if gift is not None
            for answer in timely(other.same_ports, gift)[:1]
        ]  # fmt: skip
        own = [other for other in timely(flow.neighbours, at) if other not in others]
    return min((other.begins[0] for other in own), key=lambda item: item.frame, default=None)


def _gift(flow: Flow) -> At | None:
    """The BGREJ with a cookie that ended a call of the IUT."""
    found = (
        at for at in flow.heard_of(BGREJ)
        if flow.state_when(at) == State.CALLING and flow.is_recipient(at.stp)
        and at.stp.reason == CALL_ANEW and at.stp.cookie is not None
    )  # fmt: skip
    return next(found, None) if flow.iut_calls else None


@checker("STP-CC-037")
def callers_call_anew(flow: Flow, context: Context) -> Findings:
    """A caller that is given a cookie calls anew with it, five times at most (section 5.1)."""
    yield from _refused_for_good(flow, context)
    yield from _refused_before(flow, context)
    for refusal in refusals(flow):
        at, anew = refusal.at, refusal.anew
        if refusal.place > MOST_ANEW:
            if anew is not None:
                yield context.violated(f"the IUT called anew for the {refusal.place}th time", anew)
            elif flow.until > at.time + flow.due_s:
                yield context.holds(f"BGREJ {refusal.place} ended the call", at)
        elif anew is None:
            if flow.until > at.time + flow.due_s:
                yield context.violated("a caller that was given a cookie did not call anew", at)
        else:
            problem = _wrong_anew(refusal, anew) or _other_stream(flow, anew)
            yield judged(
                context, not problem,
                "a caller that was given a cookie called anew",
                f"a caller that was given a cookie called anew {problem}", at, anew,
            )  # fmt: skip


def _refused_for_good(flow: Flow, context: Context) -> Findings:
    """Whether a BGREJ with another reason, or without a cookie, ended the call (section 9)."""
    for at in flow.heard_of(BGREJ) if flow.iut_calls else ():
        if flow.state_when(at) != State.CALLING or not flow.is_recipient(at.stp):
            continue
        if at.stp.reason == CALL_ANEW and at.stp.cookie is not None:
            continue
        anew = [
            other.begins[0] for other in flow.same_ports
            if other.iut_calls and other.start > at.frame and other.begins
            and other.begins[0].time <= at.time + flow.due_s
        ]  # fmt: skip
        what = f"a BGREJ with reason {at.stp.reason}"
        what += " and no cookie" if at.stp.reason == CALL_ANEW else ""
        if anew:
            yield context.violated(f"the IUT called anew for {what}", at, anew[0])
        elif flow.until > at.time + flow.due_s:
            yield context.holds(f"{what} ended the call", at)


def _refused_before(flow: Flow, context: Context) -> Findings:
    """Whether a BGREJ for an earlier CSN of the call, or of another one, was discarded."""
    later = [other.begins[0] for other in _later_calls(flow)]
    for at in (at for other in flow.same_ports for at in other.heard_of(BGREJ)):
        if not flow.iut_calls or flow.is_recipient(at.stp) or at.frame < flow.start:
            continue
        anew = [
            begin for begin in later
            if begin.frame > at.frame and begin.time <= at.time + flow.due_s
        ]  # fmt: skip
        own = any(
            abs(other.time - at.time) <= flow.due_s and flow.is_recipient(other.stp)
            for other in flow.heard_of(BGREJ)
        )
        if anew and not own and flow.state_at(at.time) == State.CALLING:
            yield context.violated("the IUT called anew for a BGREJ with another CSN", at, anew[0])


def _wrong_anew(refusal: Refusal, anew: At) -> str:
    """What is wrong with a call anew; empty when nothing is."""
    old, new = refusal.begin.stp, anew.stp
    if new.csn == old.csn:
        return "with the same CSN"
    if new.seq == old.seq:
        return "with the same ISS"
    if (new.sport, new.dport) != (old.sport, old.dport):
        return "from another port"
    if new.cookie != refusal.at.stp.cookie:
        return "without the cookie it was given"
    shared = min(len(old.data), len(new.data))
    if old.data[:shared] != new.data[:shared] or (old.data and not new.data):
        return "with other data than before"
    return ""


def _other_stream(flow: Flow, anew: At) -> str:
    """Whether what a call anew sent, its early SDs included, is not what the call before sent."""
    streams = [_stream(flow)]
    streams += [_stream(other) for other in flow.neighbours if anew in other.begins[:1]]
    shared = min(map(len, streams))
    if len({stream[:shared] for stream in streams}) != 1:
        return "and sent other data than before in its SDs"
    before, after = streams[0], max(streams, key=len)
    if before and before == chargen(0, len(before)) and after != chargen(0, len(after)):
        return "and sent other data than that of chargen, which calls"
    return ""


def _stream(flow: Flow) -> bytes:
    """The octets that a call has sent without a gap from its first SD on."""
    data = {} if flow.sender is None else flow.sender.data
    return b"".join(data[number] for number in takewhile(data.__contains__, count()))


@checker("STP-CC-039")
def cookies_are_used_once(flow: Flow, context: Context) -> Findings:
    """A cookie is returned unchanged, for one call, and none from before a failure (5.1)."""
    begin = _call(flow)
    if begin is None:
        return
    cookie, handed = begin.stp.cookie, flow.ledger.handed
    yield from _voids_when_it_has_to(flow, context, begin)
    if cookie is None:
        return
    before = _earlier_calls(flow)
    twice = next((at for at in before if at.stp.cookie == cookie), None)
    came = handed.get(cookie)
    if twice is not None:
        yield context.violated("a cookie was used with two CSNs", twice, begin)
    elif came is None or came.frame > begin.frame:
        if cookie in flow.ledger.handed_elsewhere:
            yield context.violated("a cookie was used for another address", begin)
        known = next((item for item in handed if alike(cookie, item)), None)
        if known is not None:
            yield context.violated(
                "a cookie was returned altered", handed[known], begin,
                expected=known.hex(), actual=cookie.hex(),
            )  # fmt: skip
    else:
        yield judged(
            context, not _from_before_a_failure(flow, begin, came),
            "a cookie was returned unchanged, and for the first time",
            "a call that was made after one had failed used a cookie that answers a BEGIN sent "
            "before", came, begin,
        )  # fmt: skip


def _voids_when_it_has_to(flow: Flow, context: Context, begin: At) -> Findings:
    """Whether the V flag is set after a start or failure until a call has opened, then no more.

    When the endpoint has started the packets do not show, unless the address is new to it.
    """
    voids = bool(begin.stp.flags & V)
    if begin.stp.cookie is None:
        if voids:
            yield context.violated("a BEGIN without a cookie has the V flag", begin)
        return
    if _is_under_a_failure(flow, begin):
        yield judged(
            context, voids,
            "after a call had failed, a BEGIN had the V flag",
            "after a call had failed, a BEGIN had no V flag", begin,
        )  # fmt: skip
        return
    opened = [
        other for other in flow.neighbours
        if _has_voided(other) and (other.established or 0.0) < begin.time - flow.due_s
    ]  # fmt: skip
    if not opened:
        # Who opens a connection by a BEGIN without a cookie breaks a rule; then all is open.
        before = [other for other in flow.neighbours if other.start < flow.start]
        if flow.unmet and not any(other.established is not None for other in before):
            yield judged(
                context, voids,
                "a BEGIN to an address that had not been called had the V flag",
                "a BEGIN to an address that had not been called had no V flag", begin,
            )  # fmt: skip
        return
    last = max(opened, key=lambda other: _made(other).time)
    # What has failed since the call was made does not concern it.
    failures = _failures(flow, min(begin.time, _made(flow).time + flow.due_s))
    if all(time < _made(last).time - flow.due_s for time in failures):
        yield judged(
            context, not voids,
            "once a call with V flag had opened, a BEGIN had none",
            "a BEGIN had the V flag, though a call with it had opened and none had failed since",
            last.begins[0], begin,
        )  # fmt: skip


def _earlier_calls(flow: Flow) -> list[At]:
    """The first BEGINs of the IUT's earlier calls to the address."""
    return [
        other.begins[0] for other in flow.neighbours
        if other.iut_calls and other.start < flow.start and other.begins
    ]  # fmt: skip


def _from_before_a_failure(flow: Flow, begin: At, came: At) -> bool:
    """Whether a call made after one that had failed uses a cookie it must not use any more."""
    if not _is_under_a_failure(flow, begin):
        return False
    failed = max(_failures(flow, _made(flow).time - flow.due_s))
    asked = [at for at in _earlier_calls(flow) if at.stp.csn == came.stp.peer_csn]
    return bool(asked) and asked[0].time < failed - flow.due_s


def _is_under_a_failure(flow: Flow, begin: At) -> bool:
    """Whether a call was made after one that had failed, and none with V flag has opened since."""
    failed = max(_failures(flow, _made(flow).time - flow.due_s), default=-math.inf)
    return failed > -math.inf and not any(
        _has_voided(other)
        and (other.established or 0.0) <= begin.time
        and _made(other).time > failed
        for other in flow.neighbours
    )


def _has_voided(flow: Flow) -> bool:
    """Whether this is a call of the IUT whose BEGIN had the V flag, and which has opened."""
    if not flow.iut_calls or flow.established is None:
        return False
    return bool(flow.begins[0].stp.flags & V)


def _made(flow: Flow) -> At:
    """The first BEGIN of a call, from which it may have been called anew."""
    first = flow.begins[0]
    for other in reversed(flow.neighbours):
        gift = _gift(other)
        anew = gift is not None and 0 <= first.time - gift.time <= flow.due_s
        if anew and other.start < flow.start and other.ends == flow.ends:
            first = other.begins[0]
    return first


def _unused(flow: Flow, begin: At) -> list[At]:
    """The packets that brought cookies which the IUT holds for its call, in order.

    A BGREJ with a cookie says that those before it are worth nothing; so does a call with a cookie
    that ends in state 2, except for cookies that answer a BEGIN first sent since (STP-CC-039).
    """
    calls = _earlier_calls(flow)
    used = {at.stp.cookie for at in calls}
    came = [
        at for at in flow.ledger.handed.values()
        if at.frame < begin.frame and (at.stp.type != BGREJ or at.stp.reason == CALL_ANEW)
    ]  # fmt: skip
    last = max((at.frame for at in came if at.stp.type == BGREJ), default=0)
    failed = max(_failures(flow, begin.time), default=-math.inf)
    first = {at.stp.csn: at.time for at in reversed(calls)}
    return [
        at for at in came
        if at.frame >= last and at.stp.cookie not in used
        and first.get(at.stp.peer_csn, 0.0) > failed
        and begin.time - at.time < GOOD_S - flow.due_s and begin.time - at.time > flow.due_s
    ]  # fmt: skip


def _failures(flow: Flow, until: float) -> list[float]:
    """When calls to the address whose BEGIN carried a cookie ended in state 2, up to a time."""
    return [
        other.ended for other in flow.neighbours
        if other.iut_calls and other.established is None and other.ended is not None
        and other.ended < until and other.begins[0].stp.cookie is not None
        and not _called_anew(other)
    ]  # fmt: skip


def _called_anew(flow: Flow) -> bool:
    return any(refusal.anew is not None for refusal in refusals(flow))


@checker("STP-CC-040")
def known_callers_begin_at_once(flow: Flow, context: Context) -> Findings:
    """A caller with a cookie puts it and its first data into its BEGIN (section 5.1)."""
    begin = _call(flow)
    if begin is None or begin.stp.fault:
        return
    held = _unused(flow, begin)
    if begin.stp.cookie is None:
        if held:
            yield context.violated(
                "a caller that holds a cookie called without one", held[0], begin
            )
        return
    # What the user had offered then is hidden, except where more of it follows at once.
    behind = [
        sd for sd in flow.sds_sent
        if sd.stp.type != BEGIN and sd.stp.data and sd.time - begin.time <= flow.due_s
    ]  # fmt: skip
    if behind and not begin.stp.data:
        yield context.violated(
            "a caller put no data into its BEGIN, and sent some behind it", begin, behind[0]
        )
    else:
        yield context.holds(
            f"a caller put its cookie and {len(begin.stp.data)} octets into its BEGIN", begin
        )


@checker("STP-CC-042")
def callers_do_not_poll(flow: Flow, context: Context) -> Findings:
    """No POLL leaves in state 2; one follows the BGAK if SDs are unacknowledged (section 5.1)."""
    begin = _call(flow)
    if begin is None:
        return
    early = [poll for poll in flow.polls_sent if flow.state_when(poll) == State.CALLING]
    if early:
        yield context.violated("a POLL was sent before the BEGIN was answered", begin, early[0])
        return
    if flow.established is None or flow.sender is None:
        if flow.over - begin.time >= TICK_S:
            yield context.holds("no POLL was sent before the BEGIN was answered", begin)
        return
    bgak = next(at for at in flow.bgaks if at.time == flow.established and not at.outgoing)
    acknowledged = next(
        (report for report in flow.reports_heard if report.frame == bgak.frame), None
    )
    sent = {sd.number for sd in flow.sds_sent if sd.frame < bgak.frame}
    left = acknowledged is not None and any(number >= acknowledged.n_r for number in sent)
    due = flow.established + POLL_S + flow.timing_error
    if not left or flow.over <= due:
        if flow.established - begin.time >= TICK_S:
            yield context.holds("no POLL was sent before the BEGIN was answered", begin)
        return
    polls = [poll for poll in flow.polls_sent if poll.frame > bgak.frame]
    yield judged(
        context, bool(polls) and polls[0].time <= due,
        "a POLL followed the BGAK at once", "no POLL followed the BGAK at once",
        bgak, *polls[:1],
        expected=f"within {POLL_S:g} s",
    )  # fmt: skip
