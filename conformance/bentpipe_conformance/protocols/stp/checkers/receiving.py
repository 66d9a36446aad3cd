"""STP-DT: data transfer (section 6), the IUT as a receiver of SDs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import DUE_S, At
from bentpipe_conformance.protocols.stp.checkers.sending import only_what_is_named_has_arrived
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT, near
from bentpipe_conformance.protocols.stp.replay.events import ReportSent, SdHeard
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.statements import (
    Statement,
    early_sds,
    statements,
    unsure,
)

USTAT_S = 1.0
"""Seconds after which a USTAT is missing for sure: no time is named for it."""


@checker("STP-DT-001")
def gap_begins_at_vr_h(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs above VR(H), and every USTAT."""
    if unsure(flow):
        return
    for sd in flow.sds_heard:
        if sd.gap is None or not sd.certain:
            continue
        if len(sd.answers) == 1:
            yield context.holds(f"the gap below SD {sd.number} was reported", sd, sd.answers[0])
        elif not sd.answers and _open_until(flow) > sd.time + USTAT_S + flow.timing_error:
            yield context.violated(
                f"the gap below SD {sd.number} was not reported by a USTAT", sd,
                expected=f"a USTAT with the run [{sd.gap[0]}, {sd.gap[1]})",
                actual="none",
            )  # fmt: skip
    for ustat in _ustats(flow):
        if _unprovoked(ustat) and not _repeats_a_poll(flow, ustat):
            yield context.violated(
                "a USTAT reports no gap that an SD has just shown", ustat, *_latest(flow, ustat),
                expected="a run from VR(H) up to an SD above it, once",
                actual=f"[{ustat.elements[0]}, {ustat.elements[1]})",
            )  # fmt: skip


def _open_until(flow: Flow) -> float:
    return flow.until if flow.ended is None else flow.ended


def _ustats(flow: Flow) -> list[ReportSent]:
    """The USTATs about which something is certain."""
    early = any(early_sds(flow))
    return [
        report
        for report in flow.reports_sent
        if not report.is_stat
        and report.certain
        and len(report.elements) == 2
        # What a receiver does about gaps among SDs held back is not said.
        and not (early and report.elements[1] <= EARLY_CREDIT)
    ]


def _unprovoked(ustat: ReportSent) -> bool:
    """Whether no SD has shown the gap, or it was reported before."""
    return ustat.cause is None or ustat.cause.answers[0] is not ustat


def _latest(flow: Flow, ustat: ReportSent) -> list[SdHeard]:
    """The latest SD before a USTAT."""
    before = [sd for sd in flow.sds_heard if sd.packet.number < ustat.packet.number]
    return before[-1:]


def _repeats_a_poll(flow: Flow, ustat: ReportSent) -> bool:
    """Whether it begins where VR(H) was before a POLL raised it, and not at VR(R)."""
    latest = _latest(flow, ustat)
    if not latest or ustat.elements[1] != latest[0].number:
        return False
    before = latest[0].before
    heard = [
        sd.number
        for sd in flow.sds_heard
        if sd.packet.number < latest[0].packet.number and not sd.beyond
    ]
    highest = max(heard, default=-1) + 1
    return ustat.elements[0] == highest != before.vr_h and highest != before.vr_r


@checker("STP-DT-002")
def poll_raises_vr_h(flow: Flow, context: Context) -> Iterator[Finding]:
    """STATs in answer to POLLs which told of SDs that have not arrived."""
    if unsure(flow):
        return
    for said in statements(flow):
        poll = said.poll
        if poll is None or not said.certain or not said.complete or not poll.certain:
            continue
        listed = poll.after.elements
        # The last run is missing, so nothing but a POLL can have raised VR(H).
        if poll.n_s != poll.after.vr_h or not listed or len(listed) % 2:
            continue
        if said.bound >= poll.n_s:
            yield context.holds(f"the STAT speaks of everything below N(S) {poll.n_s}", poll, said)
        else:
            yield context.violated(
                "a POLL did not raise VR(H)", poll, said,
                expected=f"a list up to {poll.n_s}",
                actual=f"one up to {said.bound}",
            )  # fmt: skip
    for ustat in _ustats(flow):
        if _unprovoked(ustat) and _repeats_a_poll(flow, ustat):
            yield context.violated(
                "a USTAT reports a gap again of which a POLL had told", ustat, *_latest(flow, ustat)
            )


@checker("STP-DT-006")
def bound_is_vr_h(flow: Flow, context: Context) -> Iterator[Finding]:
    """The bound of every list, and what the sender took for received without being told."""
    yield from only_what_is_named_has_arrived(flow, context)
    if unsure(flow):
        return
    for said in statements(flow):
        if not said.elements or not said.certain or not said.complete:
            continue
        bounds = sorted({known.vr_h for known in said.possible})
        if said.bound in bounds:
            yield context.holds(f"a list ends at VR(H) {said.bound}", said)
        elif not any(early_sds(flow)):
            yield context.violated(
                "a list does not end at VR(H)", said,
                expected=" or ".join(map(str, bounds)),
                actual=str(said.bound),
            )  # fmt: skip


@checker("STP-DT-008")
def n_s_is_checked(flow: Flow, context: Context) -> Iterator[Finding]:
    """POLLs whose N(S) is above VR(MR)."""
    if unsure(flow):
        return
    for said in statements(flow):
        poll = said.poll
        # Credit never falls, so what is beyond it now was beyond it when the POLL came.
        if poll is None or not said.certain or poll.n_s <= said.first.n_mr:
            continue
        most = max(known.vr_h for known in said.possible)
        if said.bound > most:
            yield context.violated(
                f"a POLL with N(S) {poll.n_s} raised VR(H)", poll, said,
                expected=f"a list up to {most}",
                actual=f"one up to {said.bound}",
            )  # fmt: skip
        else:
            yield context.holds(
                f"a POLL with N(S) {poll.n_s}, above VR(MR) {said.first.n_mr}, changed nothing",
                poll, said,
            )  # fmt: skip


@checker("STP-DT-017")
def polls_are_answered(flow: Flow, context: Context) -> Iterator[Finding]:
    """POLLs that reached the open IUT."""
    for poll in flow.polls_heard:
        due = poll.time + DUE_S
        if not poll.open or (flow.ended is not None and flow.ended <= due + flow.timing_error):
            continue
        same = [
            report
            for report in flow.reports_sent
            if report.is_stat
            and report.packet.number > poll.packet.number
            and (report.stp.n_ps, report.stp.timestamp) == (poll.n_ps, poll.timestamp)
        ]
        wait = same[0].time - poll.time if same else None
        what = f"the POLL with N(PS) {poll.n_ps}"
        if wait is not None and wait <= DUE_S - flow.timing_error:
            yield context.holds(f"{what} was answered after {1000 * wait:.1f} ms", poll, same[0])
        elif wait is not None and wait <= DUE_S + flow.timing_error:
            yield context.unclear(f"{what} was answered after {1000 * wait:.0f} ms", poll, same[0])
        elif _open_until(flow) > due + flow.timing_error:
            yield context.violated(
                f"{what} got no STAT in time", poll, *same[:1],
                expected=f"one within {DUE_S:g} s",
                actual="none" if wait is None else f"one after {wait:.3f} s",
            )  # fmt: skip


@checker("STP-DT-018")
def stat_tells_the_truth(flow: Flow, context: Context) -> Iterator[Finding]:
    """Every STAT against what the receiver must have had."""
    if unsure(flow):
        return
    for said in statements(flow):
        if not said.certain or not said.complete:
            continue
        if said.true:
            yield context.holds(f"a STAT reports VR(R) {said.n_r} and what is missing", said)
        elif not any(early_sds(flow)):
            known = said.possible[0]
            yield context.violated(
                "a STAT does not report what the receiver had", said,
                expected=f"N(R) {known.vr_r} and the list {list(known.elements)}",
                actual=f"N(R) {said.n_r} and the list {list(said.elements)}",
            )  # fmt: skip


@checker("STP-DT-019")
def duplicates_are_discarded(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs that had arrived before: USTATs for them, and the first STAT after them."""
    if unsure(flow):
        return
    for sd, said in _followed(flow, lambda sd: sd.duplicate):
        what = f"SD {sd.number}, received before,"
        ustat = _ustat_for(flow, sd)
        if ustat is not None:
            yield context.violated(f"{what} evoked a USTAT", sd, ustat)
        elif said is None:
            continue
        elif said.true:
            yield context.holds(f"{what} changed nothing", sd, said)
        elif _said_before(flow, sd):
            yield context.violated(f"{what} changed what the IUT reports", sd, said)


@checker("STP-DT-020")
def nothing_beyond_the_credit_is_taken(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs at or above VR(MR): USTATs for them, and the first STAT after them."""
    if unsure(flow):
        return
    for sd, said in _followed(flow, lambda sd: sd.beyond and not sd.duplicate and sd.discarded):
        what = f"SD {sd.number}, beyond the credit of {sd.vr_mr},"
        ustat = _ustat_for(flow, sd)
        if ustat is not None:
            yield context.violated(f"{what} evoked a USTAT", sd, ustat)
        elif said is None:
            continue
        elif said.holds(sd.number) or said.bound > sd.number:
            yield context.violated(f"{what} was taken", sd, said)
        else:
            yield context.holds(f"{what} was discarded", sd, said)


def _followed(
    flow: Flow, wanted: Callable[[SdHeard], bool]
) -> Iterator[tuple[SdHeard, Statement | None]]:
    """SDs of a kind, each with the first STAT that answers a POLL from then on."""
    every = statements(flow)
    for sd in flow.sds_heard:
        if not wanted(sd) or sd.early:
            continue
        later = (
            said for said in every
            if said.poll is not None and said.poll.packet.number >= sd.packet.number
        )  # fmt: skip
        said = next(later, None)
        sound = said is not None and said.certain and said.complete
        yield sd, said if sound else None


def _ustat_for(flow: Flow, sd: SdHeard) -> ReportSent | None:
    """A USTAT that left right after an SD, with a run up to it that no other SD has shown."""
    for ustat in _ustats(flow):
        latest = _latest(flow, ustat)
        if latest == [sd] and ustat.elements[1] == sd.number and _unprovoked(ustat):
            return ustat
    return None


def _said_before(flow: Flow, sd: SdHeard) -> bool:
    """Whether the last STAT before an SD was true, and nothing but duplicates came since."""
    before = [said for said in statements(flow) if said.packet.number < sd.packet.number]
    if not before or not before[-1].true or before[-1].poll is None:
        return False
    since = before[-1].poll.packet.number
    return all(
        other.duplicate
        for other in flow.sds_heard
        if since < other.packet.number <= sd.packet.number
    )


@checker("STP-DT-021")
def credit_is_never_taken_back(flow: Flow, context: Context) -> Iterator[Finding]:
    """N(MR) of every BGAK, STAT and USTAT against the highest before."""
    receiver = flow.receiver
    if receiver is None or flow.established is None:
        return
    most: int | None = None
    for packet in flow.packets:
        stp = packet.content
        if not packet.outgoing or stp is None or stp.fault or stp.n_mr is None:
            continue
        if stp.type == BEGIN:
            most = stp.n_mr
            continue
        if stp.type == BGAK and stp.peer_csn != flow.tester_csn:
            continue
        count = near(stp.n_mr, receiver.iss, most or 0)
        if most is not None and count < most:
            yield context.violated(
                "credit was taken back", At(packet),
                expected=f"N(MR) {most} or more",
                actual=f"N(MR) {count}",
            )  # fmt: skip
        elif most is not None:
            yield context.holds(f"N(MR) {count} is not below {most}", At(packet))
        most = max(most or 0, count)


@checker("STP-DT-022")
def held_data_is_kept(flow: Flow, context: Context) -> Iterator[Finding]:
    """What STATs have reported as arrived against what later ones report missing."""
    told: dict[int, Statement] = {}
    heard = {sd.number for sd in flow.sds_heard}
    below: Statement | None = None
    for said in statements(flow):
        if below is not None and said.n_r < below.n_r:
            yield context.violated(f"SD {said.n_r}, acknowledged before, is no longer", below, said)
        lost = next((n for n in told if said.misses(n)), None)
        if lost is not None:
            yield context.violated(
                f"SD {lost}, reported as held before, is reported missing", told[lost], said
            )
        for number in [number for number in told if number < said.n_r]:
            yield context.holds(
                f"SD {number}, held before, is acknowledged in order", told.pop(number), said
            )
        held = (n for n in heard if n >= said.n_r and n not in told and said.holds(n))
        told |= dict.fromkeys(held, said)
        below = said if below is None or said.n_r > below.n_r else below
