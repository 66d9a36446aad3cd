"""STP-CC: the use that a caller makes of cookies (section 5.1)."""

from __future__ import annotations

import math

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.calling import own_call
from bentpipe_conformance.protocols.stp.checkers.refusals import CALL_ANEW, gift_of, refusals
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGREJ, V
from bentpipe_conformance.protocols.stp.replay.cookies import GOOD_S, alike
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import Flow


@checker("STP-CC-039")
def cookies_are_used_once(flow: Flow, context: Context) -> Findings:
    """A cookie is returned unchanged, for one call, and none from before a failure (5.1)."""
    begin = own_call(flow)
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
    """Whether a call was made after one that had failed, and none with V flag has opened since.

    A user may call again the moment it aborts a call.
    """
    failed = max(_failures(flow, _made(flow).time - flow.due_s), default=-math.inf)
    return failed > -math.inf and not any(
        _has_voided(other)
        and (other.established or 0.0) <= begin.time
        and _made(other).time >= failed
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
        gift = gift_of(other)
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
    # A BGAK that opens nothing is discarded, and its cookie with it.
    opening = {other.established for other in flow.neighbours}
    came = [
        at for at in flow.ledger.handed.values()
        if at.frame < begin.frame
        and (at.stp.reason == CALL_ANEW if at.stp.type == BGREJ else at.time in opening)
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
    """When calls to the address whose BEGIN carried a cookie ended in state 2, up to a time.

    A user may have aborted one the moment it calls again.
    """
    return [
        other.ended for other in flow.neighbours
        if other.iut_calls and other.established is None and other.ended is not None
        and other.ended <= until and other.begins[0].stp.cookie is not None
        and not _called_anew(other)
    ]  # fmt: skip


def _called_anew(flow: Flow) -> bool:
    return any(refusal.anew is not None for refusal in refusals(flow))


@checker("STP-CC-040")
def known_callers_begin_at_once(flow: Flow, context: Context) -> Findings:
    """A caller with a cookie puts it and its first data into its BEGIN (section 5.1)."""
    begin = own_call(flow)
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
