"""STP-CC: the known caller's proof of its address (section 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.calling import EARLIEST, LATEST, TICK_S, TIMER_CC_S
from bentpipe_conformance.protocols.stp.checkers.common import DUE_S, At, path_class
from bentpipe_conformance.protocols.stp.checkers.identity import hints
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, C, Stp
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.flow import CALLING, OPEN, TAGGED, Flow


@dataclass(frozen=True, slots=True)
class Proving:
    """What a caller that was not asked went through, in order.

    Attributes:
        opened: the BGAK that opened the connection.
        steps: packets of the peer, and the caller's questions (which are outgoing).
        accepted: the BGAK after which nothing more has to be proven, None if none came.
        perhaps: the same if those count that came just before the first question.
    """

    opened: Packet
    steps: tuple[Packet, ...]
    accepted: Packet | None
    perhaps: Packet | None


def proving(flow: Flow) -> Proving | None:
    """The proof of a connection; None where none is asked for, or the packets do not tell."""
    opened = next((p for p in flow.bgaks if not p.outgoing and p.time == flow.established), None)
    if not flow.iut_calls or opened is None or opened.content is None or opened.content.flags & C:
        return None
    if flow.state_before.get(opened.number) != CALLING:
        return None
    begins = sum(packet.outgoing for packet in flow.begins)
    steps: list[Packet] = []
    answers: list[Packet] = []
    for packet in flow.packets:
        stp = packet.content
        if packet.number <= opened.number or stp is None:
            continue
        if flow.state_before.get(packet.number) != OPEN:
            break
        if packet.outgoing and _is_bgak(stp, flow.iut_csn, flow.tester_csn) and stp.flags & C:
            steps.append(packet)
        elif not packet.outgoing and _shows_the_peer(flow, stp):
            steps.append(packet)
            if stp.type == BGAK and not stp.flags & C:
                answers.append(packet)
    asked = next((packet for packet in steps if packet.outgoing), None)
    if asked is None:
        return Proving(opened, tuple(steps), None, None)
    surely = [packet for packet in answers if packet.number > asked.number]
    crossing = asked.time - DUE_S - flow.timing_error
    perhaps = [packet for packet in answers if packet.time >= crossing]
    last = begins - 1
    return Proving(
        opened, tuple(steps),
        surely[last] if len(surely) > last else None,
        perhaps[last] if len(perhaps) > last else None,
    )  # fmt: skip


def _is_bgak(stp: Stp, csn: int | None, peer_csn: int | None) -> bool:
    return stp.type == BGAK and stp.wellformed and (stp.csn, stp.peer_csn) == (csn, peer_csn)


def _shows_the_peer(flow: Flow, stp: Stp) -> bool:
    """Whether it is a packet of the peer in the sense of STP-CC-032."""
    if stp.type in TAGGED:
        return stp.wellformed and stp.tag == tag_of(flow.tester_csn or 0)
    return _is_bgak(stp, flow.tester_csn, flow.iut_csn)


@checker("STP-CC-032")
def known_caller_proves_its_address(flow: Flow, context: Context) -> Iterator[Finding]:
    """The times of questions on a connection that opened unasked."""
    found = proving(flow)
    if found is None or _challenged(flow):
        return
    initial = TIMER_CC_S.get(path_class(context), 1.0)
    error = flow.timing_error
    last, wait = found.opened, initial
    before = 0.0  # a question may leave before what has just come is worked off
    for packet in found.steps:
        waited = packet.time - last.time
        if found.accepted is not None and packet.number > found.accepted.number:
            if packet.outgoing and packet.time - found.accepted.time > DUE_S + error:
                yield context.violated(
                    "a question was asked though one had been answered",
                    At(found.accepted), At(packet),
                )  # fmt: skip
            continue
        if found.perhaps is not None and packet.number > found.perhaps.number:
            last = packet if not packet.outgoing else last
            continue
        if waited > _latest(wait) + error:
            yield _missed(context, last, packet, wait)
            return
        if not packet.outgoing:
            unread = not last.outgoing and waited <= DUE_S + error
            schedule = last.time + EARLIEST * wait
            before = min(before, schedule) if unread else schedule
            last, wait = packet, initial
            continue
        crossed = waited <= DUE_S + error and packet.time >= before - error
        if waited < EARLIEST * wait - error and not crossed:
            yield context.violated(
                f"a question was asked {waited:.2f} s after the last packet", At(last), At(packet),
                expected=f"after {wait:g} s", actual=f"{waited:.2f} s",
            )  # fmt: skip
        elif not crossed:
            yield context.holds(f"a question was asked after {waited:.2f} s", At(last), At(packet))
        last, wait = packet, wait if crossed else 2 * wait
    if found.accepted is not None:
        quiet = _end(flow) - found.accepted.time
        if quiet > _latest(initial):
            yield context.holds("no question followed the answer", At(found.accepted))
    elif found.perhaps is None and _end(flow) - last.time > _latest(wait) + error:
        yield _missed(context, last, None, wait)


def _latest(wait: float) -> float:
    return LATEST * wait + TICK_S


def _end(flow: Flow) -> float:
    return flow.until if flow.ended is None else flow.ended


def _missed(context: Context, last: Packet, following: Packet | None, wait: float) -> Finding:
    return context.violated(
        f"no question was asked for {_latest(wait):.1f} s without a packet of the peer",
        At(last), *([] if following is None else [At(following)]),
        expected=f"a BGAK with C flag after {wait:g} s",
        actual="none",
    )  # fmt: skip


def _challenged(flow: Flow) -> bool:
    """Whether something came that has to be challenged: a challenge looks like a question."""
    return bool(hints(flow)) or any(
        not packet.outgoing and packet.content is not None and packet.content.type == BEGIN
        for packet in flow.packets
    )


def unanswered_questions(flow: Flow) -> list[tuple[float, float]]:
    """From the first question without a packet of the peer to the next one, or the end."""
    found = proving(flow)
    if found is None:
        return []
    waits = []
    asked: float | None = None
    for packet in found.steps:
        if packet.outgoing:
            asked = packet.time if asked is None else asked
        elif asked is not None:
            waits.append((asked, packet.time))
            asked = None
        if packet is found.perhaps:
            return waits
    if asked is not None:
        waits.append((asked, _end(flow)))
    return waits
