"""STP-CC: which connection a packet belongs to: tags and CSNs (sections 4 and 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings
from bentpipe_conformance.protocols.stp.checkers.answers import discarded
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, ENDAK, STAT, USTAT
from bentpipe_conformance.protocols.stp.numbers import MODULUS, near, newer, tag_of
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow, State


@checker("STP-CC-001")
def other_incarnations_are_discarded(flow: Flow, context: Context) -> Findings:
    """A packet whose tag is not that of the present connection is discarded (section 4)."""
    for event in flow.others:
        if event.ignored.startswith("its tag"):
            what = f"{event.name} with a wrong tag ({event.ignored})"
            led = _led_to(flow, event)
            if led is not None:
                yield context.violated(f"{what} gave credit", event, led)
            else:
                yield from discarded(flow, context, event, what)
    for at in flow.heard:
        state = flow.state_when(at)
        if not at.stp.wellformed:
            continue
        if at.stp.type in TAGGED and state is None:
            present = _present(flow, at)
            if present is not None and tag_of(present.tester_csn or 0) != at.stp.tag:
                yield from discarded(present, context, at, f"{at.name} of the connection before")
        elif at.stp.type in (*TAGGED, ENDAK) and state == State.CALLING:
            yield from discarded(flow, context, at, f"{at.name} before the call was answered")


def _led_to(flow: Flow, event: At) -> SdSent | None:
    """The first SD that the credit of a report permits, and nothing else that has arrived."""
    sender = flow.sender
    if sender is None or event.stp.type not in (STAT, USTAT):
        return None
    later = (sd for sd in flow.sds_sent if sd.time >= event.time and sd.number >= sd.vt_ms)
    found = next(later, None)
    if found is None or found.number >= near(event.stp.n_mr or 0, sender.iss, found.vt_ms):
        return None
    return found


def _present(flow: Flow, at: At) -> Flow | None:
    """The connection in data transfer that has taken a flow's ports, if there is one."""
    found = (
        other for other in flow.same_ports
        if other.start > flow.start and other.established is not None
        and other.established < at.time - DUE_S - flow.timing_error
        and (other.ended is None or other.ended > at.time + flow.due_s)
    )  # fmt: skip
    return next(found, None)


@checker("STP-CC-010")
def csns_rise(flow: Flow, context: Context) -> Findings:
    """A CSN is newer than all chosen for the same peer address before (section 5.1)."""
    if not flow.begins or flow.iut_csn is None:
        return
    # It can have been chosen from the BEGIN on, its own or the one heard.
    own = flow.opener or flow.begins[0]
    earlier = [
        other for other in flow.neighbours
        if other is not flow and (first := _first_shown(other)) is not None
        and first.time < own.time - flow.timing_error
    ]  # fmt: skip
    stale = [other for other in earlier if not newer(flow.iut_csn, other.iut_csn or 0)]
    if stale:
        before = _first_shown(stale[-1])
        assert before is not None
        yield context.violated(
            f"CSN {flow.iut_csn} was chosen after {stale[-1].iut_csn}, which is not older",
            before, own,
        )  # fmt: skip
    elif earlier:
        yield context.holds(
            f"CSN {flow.iut_csn} is newer than the {len(earlier)} chosen before", own
        )


def _first_shown(flow: Flow) -> At | None:
    """The first packet that shows the IUT's CSN."""
    shown = (
        at for at in flow.sent
        if at.stp.type in (BEGIN, BGAK) and not at.stp.fault and at.stp.csn == flow.iut_csn
    )  # fmt: skip
    return next(shown, None)


ENOUGH = 8
"""Connections of one trace that suffice to tell ISSs that are not random from chance."""

MANY = 36
"""Connections of one trace in which each bit of a random ISS takes both values, but for one in
a thousand million times."""

NARROW = MODULUS // 16
"""Eight random numbers lie within so small an arc once in 30 million times."""


@checker("STP-CC-011")
def initial_numbers_are_hard_to_guess(flow: Flow, context: Context) -> Findings:
    """ISSs are random; the first CSN after a start is a single sample (section 5.1)."""
    if flow is not flow.neighbours[-1]:
        return
    shown = [
        (first, other.sender.iss) for other in flow.neighbours
        if other.sender is not None and (first := _first_shown(other)) is not None
    ]  # fmt: skip
    if len(shown) < ENOUGH:
        return
    numbers = [number for _, number in shown]
    where = [first for first, _ in shown]
    steps = {(b - a) % MODULUS for a, b in pairwise(numbers)}
    if len(steps) == 1:
        yield context.violated(
            f"{len(numbers)} ISSs follow each other at a distance of {steps.pop()}", *where
        )
    elif _arc(numbers) < NARROW:
        yield context.violated(
            f"{len(numbers)} ISSs lie within {_arc(numbers)} numbers of {MODULUS}", *where
        )
    elif len(numbers) >= MANY and (fixed := _fixed_bits(numbers)):
        yield context.violated(
            f"in {len(numbers)} ISSs the bits {fixed:#08x} are always the same", *where
        )
    else:
        yield context.holds(f"{len(numbers)} ISSs are spread over {_arc(numbers)}", *where)


def _fixed_bits(numbers: Sequence[int]) -> int:
    """The bits in which none of the numbers differs from the first."""
    varying = 0
    for number in numbers:
        varying |= number ^ numbers[0]
    return (MODULUS - 1) & ~varying


def _arc(numbers: Sequence[int]) -> int:
    """How much of the circle of numbers the shortest arc with all of them takes."""
    ordered = sorted(numbers)
    gaps = [b - a for a, b in pairwise(ordered)]
    gaps.append(ordered[0] + MODULUS - ordered[-1])
    return MODULUS - max(gaps)
