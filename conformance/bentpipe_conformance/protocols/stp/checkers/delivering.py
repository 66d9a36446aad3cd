"""STP-DT: what sequence numbers, credit and the stream come to (section 6), as far as it shows."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import DUE_S, At, name
from bentpipe_conformance.protocols.stp.checkers.sending import old_stats_are_discarded
from bentpipe_conformance.protocols.stp.codec import BEGIN, FIN
from bentpipe_conformance.protocols.stp.numbers import MAX_CREDIT, MODULUS, near
from bentpipe_conformance.protocols.stp.ports import ECHO
from bentpipe_conformance.protocols.stp.replay.events import ReportSent, SdHeard
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.statements import Statement, statements, unsure

SURELY_REOPENED = 16
"""SDs of credit that must be announced, however small the buffer (STP-DT-024)."""

OVERTAKEN = 1 << 15
"""How far the N(S) of a POLL may lie below VR(R) for its N(PS) to count (STP-DT-024)."""

QUIET_S = 1.0
"""Seconds without a packet in which a standard service has read all it can."""


@checker("STP-DT-005")
def numbers_mean_one_packet(flow: Flow, context: Context) -> Iterator[Finding]:
    """The credit of everything the IUT sends, and SDs on either side of the wrap."""
    for packet in flow.packets:
        stp = packet.content
        if not packet.outgoing or stp is None or stp.fault or stp.n_mr is None:
            continue
        n_r = 0 if stp.type == BEGIN else stp.seq if stp.n_r is None else stp.n_r
        credit = (stp.n_mr - n_r) % MODULUS
        if credit > MAX_CREDIT:
            yield context.violated(
                f"{name(stp)} gives a credit of {credit} SDs", At(packet),
                expected=f"at most {MAX_CREDIT}",
                actual=str(credit),
            )  # fmt: skip
    if not unsure(flow):
        yield from _beyond_the_wrap(flow, context)


def _beyond_the_wrap(flow: Flow, context: Context) -> Iterator[Finding]:
    """Whether SDs numbered from zero on, after 2^24 - 1, were taken for what they are."""
    receiver = flow.receiver
    assert receiver is not None
    wrap = MODULUS - receiver.iss
    for sd in flow.sds_heard:
        if sd.number < wrap or sd.duplicate or sd.beyond or sd.early or not sd.certain:
            continue
        said = _first_after(flow, sd)
        if said is None or not said.certain or not said.complete:
            continue
        what = f"SD {sd.number}, the {sd.number - wrap + 1}. after the wrap,"
        before = [
            other.number
            for other in flow.sds_heard
            if other.packet.number < sd.packet.number and other.number < wrap and not other.early
        ]
        if said.holds(sd.number):
            yield context.holds(f"{what} was taken", sd, said)
        elif before and all(said.holds(number) for number in before):
            yield context.violated(f"{what} was not taken", sd, said)


def _first_after(flow: Flow, sd: SdHeard) -> Statement | None:
    """The first STAT that answers a POLL which came with an SD or after it."""
    return next(
        (
            said
            for said in statements(flow)
            if said.poll is not None and said.poll.packet.number >= sd.packet.number
        ),
        None,
    )


@checker("STP-DT-007")
def nothing_moves_backwards(flow: Flow, context: Context) -> Iterator[Finding]:
    """STATs that a newer one has overtaken; VR(R) and VR(H) in all reports."""
    yield from old_stats_are_discarded(flow, context)
    if unsure(flow):
        return
    before: Statement | None = None
    for said in statements(flow):
        if not said.certain or not said.complete:
            continue
        poll = said.poll
        if before is not None and (said.n_r < before.n_r or said.bound < before.bound):
            which = "VR(R)" if said.n_r < before.n_r else "VR(H)"
            yield context.violated(
                f"{which} moved backwards", before, said,
                expected=f"N(R) {before.n_r} or more, and a bound of {before.bound} or more",
                actual=f"N(R) {said.n_r} and a bound of {said.bound}",
            )  # fmt: skip
            continue
        if before is not None and poll is not None and poll.n_s < before.bound:
            yield context.holds(
                f"an old POLL with N(S) {poll.n_s} left VR(H) at {said.bound}", poll, said
            )
        before = said


@checker("STP-DT-012")
def stream_is_delivered_in_order_once(flow: Flow, context: Context) -> Iterator[Finding]:
    """What the echo service returned against what it must have been given."""
    if flow.service != ECHO or flow.iut_calls or unsure(flow) or flow.sender is None:
        return
    receiver = flow.receiver
    assert receiver is not None
    if not receiver.certain or not flow.sds_sent:
        return
    given = bytes(receiver.reception.stream)
    returned = bytearray()
    number = 0
    for number in range(flow.sender.vt_s):
        if number not in flow.sender.data:
            break
        returned += flow.sender.data[number]
    last = max(flow.sds_sent, key=lambda sd: sd.number)
    if len(returned) > len(given):
        yield context.violated(
            "the user was given more than was sent", last,
            expected=f"at most {len(given)} octets",
            actual=f"{len(returned)} octets",
        )  # fmt: skip
    elif bytes(returned) != given[: len(returned)]:
        at = next(i for i, octet in enumerate(returned) if octet != given[i])
        yield context.violated(
            f"the user was given other octets than were sent, from offset {at} on",
            _carrier(flow, at),
        )
    elif receiver.reception.ended and last.stp.flags & FIN:
        if len(returned) < len(given):
            yield context.violated(
                f"the user was given the end of the stream after {len(returned)} octets", last,
                expected=f"{len(given)} octets",
                actual=f"{len(returned)} octets",
            )  # fmt: skip
        else:
            yield context.holds(f"all {len(given)} octets were delivered in order, once", last)
    elif returned and _out_of_order(flow):
        yield context.holds(f"{len(returned)} octets were delivered in order, once", last)


def _carrier(flow: Flow, offset: int) -> At:
    """The SD that returned the octet at an offset."""
    passed = 0
    for sd in sorted((sd for sd in flow.sds_sent if sd.new), key=lambda sd: sd.number):
        passed += len(sd.stp.data)
        if passed > offset:
            return At(sd.packet)
    return At(flow.sds_sent[-1].packet)


def _out_of_order(flow: Flow) -> bool:
    """Whether SDs came twice or not in their order."""
    return any(sd.duplicate or sd.number > sd.before.vr_r for sd in flow.sds_heard)


@checker("STP-DT-024")
def reopened_window_is_announced(flow: Flow, context: Context) -> Iterator[Finding]:
    """The first report after a STAT without credit beyond VR(H)."""
    # How fast another user reads cannot be known.
    if flow.iut_calls:
        return
    closed: Statement | None = None
    newest = 0
    for said in _spoken(flow):
        if isinstance(said, Statement):
            if said.poll is not None and _answers(said):
                if not _in_window(said):
                    continue  # no report
                newest = max(newest, near(said.poll.n_ps, 0, newest))
            if closed is not None:
                yield from _after_closed(flow, context, closed, said, newest)
            shut = said.complete and said.first.n_mr <= said.bound
            closed = said if shut else None
        else:
            closed = None


def _answers(said: Statement) -> bool:
    """Whether it answers a POLL; an announcement only names one."""
    return said.poll is not None and said.poll.answers[:1] == [said.first]


def _in_window(said: Statement) -> bool:
    """Whether the N(S) of the POLL that it answers was within its window."""
    assert said.poll is not None
    low = said.first.n_r - OVERTAKEN
    return low + (said.poll.n_s - low) % MODULUS <= said.first.n_mr


def _spoken(flow: Flow) -> list[Statement | ReportSent]:
    ustats = [report for report in flow.reports_sent if not report.is_stat]
    return sorted([*statements(flow), *ustats], key=lambda said: said.packet.number)


def _after_closed(
    flow: Flow, context: Context, closed: Statement, said: Statement, newest: int
) -> Iterator[Finding]:
    n_ps = said.first.stp.n_ps
    rise = said.first.n_mr - closed.first.n_mr
    poll = said.poll if _answers(said) else None
    if poll is not None and poll.packet.number > closed.packet.number:
        if rise >= SURELY_REOPENED and _quiet_before(flow, closed, poll.time):
            yield context.violated(
                f"a credit of {rise} SDs was not announced until a POLL asked", closed, said
            )
        return
    if rise <= 0:
        return
    if n_ps != newest % MODULUS:
        yield context.violated(
            "a STAT that reopens the window has not the N(PS) of the newest POLL answered",
            closed, said,
            expected=f"N(PS) {newest % MODULUS}",
            actual=f"N(PS) {n_ps}",
        )  # fmt: skip
        return
    before = [p.time for p in flow.packets if p.number < said.packet.number]
    waited = said.first.time - max(before, default=said.first.time)
    if waited <= DUE_S + flow.timing_error:
        yield context.holds(f"a reopened window was announced with {rise} SDs", closed, said)
    else:
        yield context.unclear(
            f"a reopened window was announced {waited:.2f} s after anything came", closed, said
        )


def _quiet_before(flow: Flow, closed: Statement, time: float) -> bool:
    start = time - QUIET_S - flow.timing_error
    return closed.first.time < start and not any(
        start <= packet.time < time for packet in flow.packets
    )
