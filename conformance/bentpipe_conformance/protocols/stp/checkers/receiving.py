"""STP-DT: data transfer (section 6), the IUT as a receiver of SDs."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, takewhile

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged, transfer
from bentpipe_conformance.protocols.stp.checkers.answers import discarded
from bentpipe_conformance.protocols.stp.checkers.opening import exceeds_max_sd
from bentpipe_conformance.protocols.stp.checkers.sending import only_what_is_named_has_arrived
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, END, POLL, SDP, A, R
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, near, tag_of
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At, ReportSent, SdHeard, runs
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.statements import Statement

WAITING_SDS, WAITING_SHARE = 3, 1 / 8
"""SDs, and the share of the round-trip time, for which a USTAT may wait (STP-DT-026)."""

POLL_OCTETS = 12
"""By which an SDP is longer than an SD with the same data (section 3.5)."""

USTAT_S = 1.0
"""Seconds after which a USTAT is missing for sure, ten times what is granted to it."""


@checker("STP-DT-001", of=transfer)
def gap_begins_at_vr_h(flow: Flow, context: Context) -> Findings:
    """A gap from VR(H) up to a new SD is reported by one USTAT (section 6.2)."""
    if context.prepared.unsure:
        return
    for sd in flow.sds_heard:
        if sd.gap is None or not sd.certain:
            continue
        if len(sd.answers) == 1:
            yield context.holds(f"the gap below SD {sd.number} was reported", sd, sd.answers[0])
        elif not sd.answers and flow.over > sd.time + USTAT_S + flow.timing_error:
            yield context.violated(
                f"the gap below SD {sd.number} was not reported by a USTAT", sd,
                expected=f"a USTAT with the run [{sd.gap[0]}, {sd.gap[1]})", actual="none",
            )  # fmt: skip
    for ustat in _unprovoked(flow):
        latest = _latest(flow, ustat)
        if not _repeats_a_poll(ustat, latest):
            yield context.violated(
                "a USTAT reports no gap that an SD has just shown", ustat, *latest[:1],
                expected="a run from VR(H) up to an SD above it, once",
                actual=f"[{ustat.elements[0]}, {ustat.elements[1]})",
            )  # fmt: skip


@checker("STP-DT-031", of=transfer)
def ustats_tell_the_truth(flow: Flow, context: Context) -> Findings:
    """A USTAT, at once or held back, reports what is missing and not reported yet (section 6.2)."""
    if context.prepared.unsure:
        return
    for ustat in flow.reports_sent:
        if ustat.is_stat or not ustat.certain or len(ustat.elements) != 2:
            continue
        wrong = _untrue(flow, ustat)
        run = f"[{ustat.elements[0]}, {ustat.elements[1]})"
        yield judged(
            context, not wrong, f"a USTAT reports {run}, which is missing",
            f"a USTAT reports {run}, of which SD {wrong}", ustat,
        )  # fmt: skip
    yield from _held_too_long(flow, context)


def _untrue(flow: Flow, ustat: ReportSent) -> str:
    """Which SD of a USTAT it should not report, and why; empty if there is none."""
    first, end = ustat.elements
    early = ustat.time - flow.due_s  # it may have been composed then
    assert flow.receiver is not None
    if first < flow.receiver.delivered(early, ustat.time)[0]:
        return f"{first} had been delivered"
    if end > max(item.vr_h for item in ustat.possible):
        return f"{end - 1} is at or above VR(H)"
    heard = _heard_by_number(flow)
    for number in range(first, end):
        copies = (sd for sd in heard.get(number, ()) if not (sd.beyond or sd.misfit))
        if any(sd.time < early for sd in copies):
            return f"{number} had arrived"
    before = flow.reports_sent[: bisect_left(flow.reports_sent, ustat.frame, key=_frame)]
    told = (run for item in before if item.elements for run in runs(item.elements, 0))
    again = (max(left, first) for left, right in told if left < end and first < right)
    reported = min(again, default=None)
    return "" if reported is None else f"{reported} had been reported before"


@remembered
def _heard_by_number(flow: Flow) -> dict[int, list[SdHeard]]:
    heard: dict[int, list[SdHeard]] = {}
    for sd in flow.sds_heard:
        heard.setdefault(sd.number, []).append(sd)
    return heard


@remembered
def _with_gaps(flow: Flow) -> list[SdHeard]:
    return [sd for sd in flow.sds_heard if sd.gap]


def _frame(at: At) -> int:
    return at.frame


def _time(at: At) -> float:
    return at.time


def _held_too_long(flow: Flow, context: Context) -> Findings:
    """Gaps of which nothing was reported long after a USTAT had to leave."""
    trips = context.prepared.round_trips(context.ics)
    rtt = max(trips.longest, trips.initial)
    heard = _heard_by_number(flow)
    for sd in flow.sds_heard:
        if sd.gap is None or not sd.certain:
            continue
        due = sd.time + rtt * WAITING_SHARE
        after = islice(flow.sds_heard, bisect_right(flow.sds_heard, sd.frame, key=_frame), None)
        usable = (item for item in after if not (item.duplicate or item.beyond or item.misfit))
        third = next(islice(usable, WAITING_SDS - 1, None), None)
        if third is not None:
            due = min(due, third.time)
        due += flow.due_s
        first, end = sd.gap
        since = bisect_right(flow.reports_sent, sd.frame, key=_frame)
        until = bisect_right(flow.reports_sent, due, lo=since, key=_time)
        said = flow.reports_sent[since:until]
        left = [
            number for number in range(first, end)
            if not any(item.time <= due for item in heard.get(number, ()))
            and not any(report.misses(number) for report in said)
        ]  # fmt: skip
        if left and flow.over > due:
            yield context.violated(
                f"SD {left[0]} of the gap below SD {sd.number} was reported neither by a USTAT nor "
                "by a STAT", sd,
                expected="a USTAT when three more SDs or an eighth of the round-trip time had "
                "passed", actual="none",
            )  # fmt: skip


def _unprovoked(flow: Flow) -> list[ReportSent]:
    """The USTATs, certain ones, whose gap no SD has shown, or that was reported before."""
    return [
        report for report in flow.reports_sent
        if not report.is_stat and report.certain and len(report.elements) == 2
        and (report.cause is None or report.cause.answers[0] is not report)
    ]  # fmt: skip


def _held_back(flow: Flow, ustat: ReportSent) -> bool:
    """Whether it is the first report of what is left of a gap that an SD had shown (STP-DT-031)."""
    first, end = ustat.elements
    gaps = (sd.gap for sd in takewhile(lambda sd: sd.frame < ustat.frame, _with_gaps(flow)))
    shown = any(gap and gap[0] <= first and end <= gap[1] for gap in gaps)
    before = (report for report in flow.reports_sent if report.frame < ustat.frame)
    return shown and not any(report.misses(first) for report in before)


def _latest(flow: Flow, ustat: ReportSent) -> list[SdHeard]:
    """The SDs before a USTAT, the latest first."""
    return flow.sds_heard[: bisect_left(flow.sds_heard, ustat.frame, key=_frame)][::-1]


def _repeats_a_poll(ustat: ReportSent, latest: Sequence[SdHeard]) -> bool:
    """Whether it begins where VR(H) was before a POLL raised it, and not at VR(R)."""
    if not latest or ustat.elements[1] != latest[0].number:
        return False
    before = latest[0].before
    heard = (sd.number for sd in latest if sd.frame < latest[0].frame and not sd.beyond)
    highest = max(heard, default=-1) + 1
    return ustat.elements[0] == highest != before.vr_h and highest != before.vr_r


@checker("STP-DT-002", of=transfer)
def poll_raises_vr_h(flow: Flow, context: Context) -> Findings:
    """A POLL raises VR(H) to its N(S), so that a STAT reports its gap (section 6.3)."""
    if context.prepared.unsure:
        return
    for said in context.prepared.known:
        poll = said.poll
        if poll is None or not poll.certain:
            continue
        listed = poll.after.elements
        # The last run is missing, so nothing but a POLL can have raised VR(H).
        if poll.n_s == poll.after.vr_h and listed and not len(listed) % 2:
            yield judged(
                context, said.bound >= poll.n_s,
                f"the STAT covers everything below N(S) {poll.n_s}",
                "a POLL did not raise VR(H)", poll, said,
                expected=f"a list up to {poll.n_s}", actual=f"one up to {said.bound}",
            )  # fmt: skip
    yield from _not_raised_or_cut(flow, context)
    for ustat in _unprovoked(flow):
        latest = _latest(flow, ustat)
        if _repeats_a_poll(ustat, latest):
            yield context.violated(
                "a USTAT reports a gap again that a POLL had shown", ustat, *latest[:1]
            )


def _not_raised_or_cut(flow: Flow, context: Context) -> Findings:
    """Lists that lack just what a POLL has added, and may have been cut there (STP-PF-012).

    Nothing tells which of the two rules was broken, so that both are (decision 046).
    """
    for said in context.prepared.statements:
        poll, last = said.poll, said.parts[-1]
        if poll is None or said.complete or said.true or not said.certain:
            continue
        lacks = said.elements == poll.after.elements[:-1] and poll.n_s == poll.after.vr_h
        if lacks and flow.over > last.time + flow.due_s:
            yield context.violated(
                "a POLL did not raise VR(H), if the list has not been cut", last, poll,
                expected=f"a list up to {poll.n_s}", actual=f"one up to {said.bound}",
            )  # fmt: skip


@checker("STP-DT-006", of=transfer)
def bound_is_vr_h(flow: Flow, context: Context) -> Findings:
    """A STAT's bound is VR(H), and only what it names has arrived (sections 6.3 and 6.4)."""
    yield from only_what_is_named_has_arrived(flow, context)
    for said in context.prepared.known:
        bounds = sorted({known.vr_h for known in said.possible})
        if said.elements and said.bound in bounds:
            yield context.holds(f"a list ends at VR(H) {said.bound}", said)
        elif said.elements:
            yield context.violated(
                "a list does not end at VR(H)", said,
                expected=" or ".join(map(str, bounds)), actual=str(said.bound),
            )  # fmt: skip


@checker("STP-DT-008")
def polls_are_checked(flow: Flow, context: Context) -> Findings:
    """A POLL above VR(MR) does not raise VR(H), one with another CSN does nothing (section 6.3)."""
    for said in () if context.prepared.unsure else context.prepared.statements:
        poll = said.poll
        if poll is None or not said.certain or poll.n_s <= poll.limit:
            continue
        most = max(known.vr_h for known in said.possible)
        yield judged(
            context, said.bound <= most,
            f"a POLL with N(S) {poll.n_s}, above {poll.limit}, changed nothing",
            f"a POLL with N(S) {poll.n_s} raised VR(H)", poll, said,
            expected=f"a list up to {most}", actual=f"one up to {said.bound}",
        )  # fmt: skip
    yield from _discarded_polls(flow, context)


def _discarded_polls(flow: Flow, context: Context) -> Findings:
    """POLLs and SDPs with N(PS) 0 or with a CSN that is not the tester's."""
    if flow.tester_csn is None or flow.established is None or flow.receiver is None:
        return
    own = {(poll.n_ps, poll.timestamp) for poll in flow.polls_heard}
    for at in flow.heard_of(POLL, SDP):
        asked = at.stp.n_ps or 0, at.stp.timestamp or 0
        if (at.stp.csn == flow.tester_csn and at.stp.n_ps) or asked in own:
            continue
        open_ = flow.established <= at.time and at.time + flow.due_s < flow.over
        if not open_ or at.stp.tag != tag_of(flow.tester_csn):
            continue
        what = f"{at.name} with N(PS) 0" if not at.stp.n_ps else f"{at.name} with another CSN"
        answer = next((
            report for report in flow.reports_sent
            if report.is_stat and report.frame > at.frame
            and (report.stp.n_ps, report.stp.timestamp) == asked
        ), None)  # fmt: skip
        said = context.prepared.answer_after(at)
        number = near(at.stp.seq, flow.receiver.iss, said.n_r if said is not None else 0)
        if answer is not None:
            yield context.violated(f"{what} was answered", at, answer)
        elif at.stp.type == SDP and said is not None and not said.true and said.holds(number):
            yield context.violated(f"the SD of {what} was taken", at, said)
        else:
            yield context.holds(f"{what} was discarded", at)


@checker("STP-DT-017", of=transfer)
def polls_are_answered(flow: Flow, context: Context) -> Findings:
    """Every POLL is answered within 0.1 s by a STAT with its N(PS) (section 6.3).

    One that is due leaves before the END of a connection that has become complete (section 5.4).
    """
    release = _release_on_completion(flow, context)
    answers: dict[tuple[int | None, int | None], list[ReportSent]] = {}
    for report in flow.reports_sent:
        if report.is_stat:
            answers.setdefault((report.stp.n_ps, report.stp.timestamp), []).append(report)
    for poll in flow.polls_heard:
        due = poll.time + DUE_S
        stats = answers.get((poll.n_ps, poll.timestamp), ())
        same = next((report for report in stats if report.frame > poll.frame), None)
        what = f"the POLL with N(PS) {poll.n_ps}"
        wait = math.inf if same is None else same.time - poll.time
        over = flow.ended is not None and flow.ended <= due + flow.timing_error
        if same is not None and wait <= DUE_S - flow.timing_error:
            yield context.holds(f"{what} was answered after {1000 * wait:.1f} ms", poll, same)
        elif release is not None and same is None and over:
            if poll.frame <= release[0]:
                yield context.violated(
                    f"{what} got no STAT before the END", poll, release[1],
                    expected="a STAT, then the END", actual="the END only",
                )  # fmt: skip
        elif over:
            continue
        elif same is not None and wait <= flow.due_s:
            yield context.unclear(f"{what} was answered after {1000 * wait:.0f} ms", poll, same)
        elif flow.over > due + flow.timing_error:
            yield context.violated(
                f"{what} got no STAT in time", poll, *([] if same is None else [same]),
                expected=f"one within {DUE_S:g} s",
                actual="none" if same is None else f"one after {wait:.3f} s",
            )  # fmt: skip


def _release_on_completion(flow: Flow, context: Context) -> tuple[int, At] | None:
    """The frame of the packet that completed the connection, and the END sent for that."""
    done = context.prepared.completion
    if not done.certain or done.time is None or done.acknowledged is None:
        return None
    at_once: dict[int, int] = {}
    for sd in flow.sds_heard:
        if sd.time <= done.time:
            at_once.setdefault(sd.number, sd.frame)
    own = (
        at for at in flow.sent
        if at.stp.type == END and not at.stp.flags & (A | R) and not at.stp.fault
    )  # fmt: skip
    release = next(own, None)
    if release is None or release.time < done.time:
        return None
    return max(done.acknowledged.frame, *at_once.values()), release


@checker("STP-DT-018", of=transfer)
def stat_tells_the_truth(_flow: Flow, context: Context) -> Findings:
    """A STAT reports VR(R) and every run of missing SDs below VR(H) (section 6.3)."""
    for said in context.prepared.known:
        if said.true:
            yield context.holds(f"a STAT reports VR(R) {said.n_r} and what is missing", said)
        else:
            known = said.possible[0]
            yield context.violated(
                "a STAT does not report what the receiver had", said,
                expected=f"N(R) {known.vr_r} and the list {list(known.elements)}",
                actual=f"N(R) {said.n_r} and the list {list(said.elements)}",
            )  # fmt: skip


@checker("STP-DT-019", of=transfer)
def duplicates_are_discarded(flow: Flow, context: Context) -> Findings:
    """An SD received before evokes no USTAT and changes nothing (section 6.2)."""
    for sd, said in _followed(flow, context, lambda sd: sd.duplicate):
        what = f"SD {sd.number}, received before,"
        if isinstance(said, ReportSent):
            yield context.violated(f"{what} evoked a USTAT", sd, said)
        elif said.true:
            yield context.holds(f"{what} changed nothing", sd, said)
        elif _said_before(flow, context, sd):
            yield context.violated(f"{what} changed what the IUT reports", sd, said)


@checker("STP-DT-020", of=transfer)
def only_the_credit_is_taken(flow: Flow, context: Context) -> Findings:
    """An SD below VR(MR) is taken, one at or above it changes nothing (section 6.2)."""
    yield from _taken(flow, context)
    for sd, said in _followed(
        flow, context, lambda sd: not sd.duplicate and not sd.misfit and sd.number >= sd.vr_mr - 1
    ):
        last = not sd.beyond
        what = f"SD {sd.number}, {'the last of' if last else 'beyond'} the credit of {sd.vr_mr},"
        if not last and not sd.discarded:
            continue
        if isinstance(said, ReportSent):
            if not last:
                yield context.violated(f"{what} evoked a USTAT", sd, said)
        elif last:
            yield judged(
                context, said.holds(sd.number), f"{what} was taken", f"{what} was discarded", sd,
                said,
            )  # fmt: skip
        else:
            yield judged(
                context, said.true or not (said.holds(sd.number) or said.bound > sd.number),
                f"{what} was discarded", f"{what} was taken", sd, said,
            )  # fmt: skip


def _taken(flow: Flow, context: Context) -> Findings:
    """Whether the largest SDs and SDPs below the last of the credit are taken as any others."""
    receiver = flow.receiver
    most = None if receiver is None else receiver.max_sd
    for sd, said in _followed(
        flow, context,
        lambda sd: len(sd.stp.data) > LEAST_MAX_SD - POLL_OCTETS and sd.certain
        and not (sd.duplicate or sd.misfit) and sd.number < sd.vr_mr - 1,
    ):  # fmt: skip
        if isinstance(said, ReportSent):
            continue
        octets = len(sd.stp.data)
        what = f"SD {sd.number} with {octets} octets"
        if not said.holds(sd.number):
            yield context.violated(f"{what} was discarded", sd, said)
        elif most is not None and octets > most - POLL_OCTETS:
            yield context.holds(f"{what}, MaxSD being {most}, was taken", sd, said)


@checker("STP-DT-028")
def misfits_are_discarded(flow: Flow, context: Context) -> Findings:
    """An SD that is too large, or beyond an end, evokes no USTAT and changes nothing (6.2)."""
    for begin in filter(partial(exceeds_max_sd, flow), flow.heard_of(BEGIN)):
        what = f"a BEGIN with a good cookie and {len(begin.stp.data)} octets, more than MaxSD,"
        yield from discarded(flow, context, begin, what)
    for sd, said in _followed(flow, context, lambda sd: bool(sd.misfit) and not sd.duplicate):
        what = f"SD {sd.number} {sd.misfit}"
        if isinstance(said, ReportSent):
            yield context.violated(f"{what}, evoked a USTAT", sd, said)
        elif said.true:
            yield context.holds(f"{what}, was discarded", sd, said)
        elif said.holds(sd.number):
            yield context.violated(f"{what}, was taken", sd, said)
        elif said.bound == sd.number + 1 > max(known.vr_h for known in said.possible):
            yield context.violated(f"{what}, raised VR(H)", sd, said)


def _followed(
    flow: Flow, context: Context, wanted: Callable[[SdHeard], bool]
) -> Iterator[tuple[SdHeard, Statement | ReportSent]]:
    """SDs of a kind, each with the USTAT it evoked, or the first STAT that answers a POLL then.

    The USTAT left right after the SD, with a run up to it that no other SD has shown.
    """
    if context.prepared.unsure:
        return
    evoked: dict[int, ReportSent] = {}
    for ustat in _unprovoked(flow):
        latest = _latest(flow, ustat)
        if latest and latest[0].number == ustat.elements[1] and not _held_back(flow, ustat):
            evoked.setdefault(latest[0].frame, ustat)
    for sd in flow.sds_heard:
        if not wanted(sd):
            continue
        said = evoked.get(sd.frame) or context.prepared.answer_after(sd)
        if isinstance(said, ReportSent) or (said is not None and said.certain and said.complete):
            yield sd, said


def _said_before(flow: Flow, context: Context, sd: SdHeard) -> bool:
    """Whether the last STAT before an SD was true, and only duplicates have arrived since."""
    statements = context.prepared.statements
    before = bisect_left(statements, sd.frame, key=_frame)
    last = statements[before - 1] if before else None
    if last is None or not last.true or last.poll is None:
        return False
    first = bisect_right(flow.sds_heard, last.poll.frame, key=_frame)
    since = takewhile(lambda other: other.frame <= sd.frame, islice(flow.sds_heard, first, None))
    return all(other.duplicate for other in since)


@checker("STP-DT-021")
def credit_is_never_taken_back(flow: Flow, context: Context) -> Findings:
    """N(MR) never falls from one BGAK, STAT or USTAT to the next (section 6.6)."""
    receiver = flow.receiver
    if receiver is None or flow.established is None:
        return
    most: int | None = None
    for at in flow.sent:
        stp = at.stp
        if stp.fault or stp.n_mr is None:
            continue
        if stp.type == BEGIN:
            most = stp.n_mr
            continue
        if stp.type == BGAK and stp.peer_csn != flow.tester_csn:
            continue
        count = near(stp.n_mr, receiver.iss, most or 0)
        if most is not None:
            yield judged(
                context, count >= most,
                f"N(MR) {count} is not below {most}", "credit was taken back", at,
                expected=f"N(MR) {most} or more", actual=f"N(MR) {count}",
            )  # fmt: skip
        most = max(most or 0, count)


@checker("STP-DT-022", of=transfer)
def held_data_is_kept(flow: Flow, context: Context) -> Findings:
    """An SD that a STAT has reported as arrived is kept and delivered (section 6.2)."""
    told: dict[int, Statement] = {}
    heard = sorted({sd.number for sd in flow.sds_heard})
    below: Statement | None = None
    for said in context.prepared.statements:
        if below is not None and said.n_r < below.n_r:
            yield context.violated(f"the acknowledgment of SD {said.n_r} was revoked", below, said)
        lost = next((n for n in told if said.misses(n)), None)
        if lost is not None:
            yield context.violated(
                f"SD {lost}, reported as held before, is reported missing", told[lost], said
            )
        for number in [number for number in told if number < said.n_r]:
            yield context.holds(
                f"SD {number}, held before, is acknowledged in order", told.pop(number), said
            )
        for left, right in runs(said.elements, 1):
            first, last = (bisect_left(heard, bound) for bound in (max(left, said.n_r), right))
            told |= {number: said for number in heard[first:last] if number not in told}
        below = said if below is None or said.n_r > below.n_r else below
