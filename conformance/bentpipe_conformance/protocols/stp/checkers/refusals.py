"""STP-CC: calls that are refused, and calling anew (section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.probe import chargen
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.calling import later_calls, own_call
from bentpipe_conformance.protocols.stp.codec import BGREJ
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State

CALL_ANEW = 6
"""Reason of a BGREJ that brings a cookie (section 3.4)."""

MOST_ANEW = 5
"""How often a caller calls anew (STP-CC-037)."""


END_S = 2.0
"""Seconds in which a call has surely sent the FIN for which it has credit and nothing is left."""


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
    begin = own_call(flow)
    at = gift_of(flow)
    if begin is None or at is None:
        return []
    before = [
        other for other in flow.same_ports if other.iut_calls and other.start < flow.start
    ]  # fmt: skip
    place, first = 1, begin
    for other in reversed(before):
        gift = gift_of(other)
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
        gifts = [(other, gift_of(other)) for other in flow.neighbours if other.ends != flow.ends]
        others = [
            answer for other, gift in gifts if gift is not None
            for answer in timely(other.same_ports, gift)[:1]
        ]  # fmt: skip
        own = [other for other in timely(flow.neighbours, at) if other not in others]
    return min((other.begins[0] for other in own), key=lambda item: item.frame, default=None)


def gift_of(flow: Flow) -> At | None:
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
            problem = (
                _wrong_anew(refusal, anew) or _other_stream(flow, anew) or _endless(flow, anew)
            )
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
    later = [other.begins[0] for other in later_calls(flow)]
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


def _endless(flow: Flow, anew: At) -> str:
    """Whether a call anew does not end a stream whose end the call before has sent."""
    if flow.own_fin is None:
        return ""
    for other in flow.neighbours:
        if anew not in other.begins[:1] or other.own_fin is not None:
            continue
        done = next(
            (at for at in other.reports_heard
             if not at.fault and at.acknowledges_all and at.n_r < at.n_mr),
            None,
        )  # fmt: skip
        whole = len(_stream(other)) >= len(_stream(flow))
        if done is not None and whole and other.over > done.time + END_S + other.timing_error:
            return f"and did not end its stream within {END_S:g} s"
    return ""


def _stream(flow: Flow) -> bytes:
    """The octets that a call has sent without a gap from its first SD on."""
    data = {} if flow.sender is None else flow.sender.data
    return b"".join(data[number] for number in takewhile(data.__contains__, count()))
