"""Which packets belong to which connection, and how connections displace each other.

The same ports can carry one connection after the other, calls side by side, and packets of none.
What the IUT put into its BGAKs and BEGINs says which connections there were; CSNs and tags say to
which a packet belongs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ, END, ENDAK, C, Stp
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay import Trace
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import CONFIRMATION_S, Ends, Flow


def separate(trace: Trace) -> list[Flow]:
    """The connections of a trace in the order of their first packets."""
    by_ends: dict[Ends, list[At]] = defaultdict(list)
    for packet in trace.at("iut"):
        if packet.content is not None:
            by_ends[_ends(packet.content, packet.outgoing)].append(At(packet))
    found = [item for ends, passed in by_ends.items() for item in _incarnations(ends, passed)]
    return sorted(found, key=lambda item: item.passed[0].frame)


def _ends(stp: Stp, outgoing: bool) -> Ends:
    if outgoing:
        return stp.dst, stp.udp_dport, stp.dport, stp.udp_sport, stp.sport
    return stp.src, stp.udp_sport, stp.sport, stp.udp_dport, stp.dport


def _incarnations(ends: Ends, passed: Sequence[At]) -> list[Flow]:
    started: list[Flow] = []
    waiting = deque(sorted(_named(ends, passed), key=lambda item: item.start))
    before = Flow(ends, None, None)
    for at in passed:
        while waiting and waiting[0].start <= at.frame:
            started.append(waiting.popleft())
        owner = _owner(at, started) or (started[-1] if started else before)
        owner.passed.append(at)
        _confirm(at, owner, started)
    return [item for item in (before, *started) if item.passed]


def _confirm(at: At, owner: Flow, started: list[Flow]) -> None:
    """Of calls that wait side by side, the first one confirmed gets the ports (STP-CC-033)."""
    if owner.confirmed is not None or owner not in started or not owner.is_confirmed_by(at):
        return
    owner.confirmed = at.frame
    if all(item is owner or (item.confirmed or 0) < owner.start for item in started):
        started.remove(owner)
        started.append(owner)


def _named(ends: Ends, passed: Sequence[At]) -> list[Flow]:
    """The connections that the IUT's own BEGINs and BGAKs name, and calls it never accepted."""
    found: dict[tuple[int | None, int | None], Flow] = {}
    begins: dict[int, int] = {}
    latest: dict[int, int] = {}
    calls: dict[int, int] = {}
    for at in passed:
        stp = at.stp
        if stp.fault or stp.csn is None:
            continue
        if stp.type == BEGIN:
            (calls if at.outgoing else begins).setdefault(stp.csn, at.frame)
            latest[stp.csn] = at.frame
        if stp.type != BGAK:
            continue
        iut, tester = (stp.csn, stp.peer_csn) if at.outgoing else (stp.peer_csn, stp.csn)
        assert iut is not None and tester is not None
        if not at.outgoing and iut not in calls:
            continue
        if iut in calls and any(item.iut_csn == iut for item in found.values()):
            # A second BGAK with another CSN is an intruder on the connection that is there.
            continue
        # Earlier BEGINs met the connection that held the ports before (STP-CC-018).
        called = (latest if found else begins).get(tester)
        start = min(number for number in (called, calls.get(iut), at.frame) if number is not None)
        pair = tester, iut
        if pair not in found:
            found[pair] = Flow(ends, tester, iut, iut in calls, start)
    for csn, number in calls.items():
        if not any(item.iut_csn == csn for item in found.values()):
            found[None, csn] = Flow(ends, None, csn, True, number)
    accepted = {item.tester_csn for item in found.values()}
    for csn, number in begins.items():
        open_then = any(item.start <= number for item in found.values())
        if csn not in accepted and not open_then:
            found[csn, None] = Flow(ends, csn, None, False, number)
    return list(found.values())


def _owner(at: At, started: Sequence[Flow]) -> Flow | None:
    """The latest connection whose CSNs or tag the packet carries."""
    stp = at.stp
    for item in reversed(started):
        mine, other = (
            (item.iut_csn, item.tester_csn) if at.outgoing else (item.tester_csn, item.iut_csn)
        )
        if stp.type in (BEGIN, BGAK, END) and not stp.fault:
            if stp.csn == mine:
                return item
        elif stp.type in (BGREJ, ENDAK) and not stp.fault:
            if stp.peer_csn == other:
                return item
        elif mine is not None and stp.tag == tag_of(mine):
            return item
    return None


@dataclass(frozen=True, slots=True)
class Encounter:
    """What happens to another connection on the same ports.

    Attributes:
        at: its first packet, or the BGAK that confirms it.
        confirms: whether it is the latter.
        asked: whether the IUT asked it for confirmation, and a BGAK that confirms is in time.
    """

    at: At
    confirms: bool
    asked: bool


def encounters(item: Flow, every: Sequence[Flow]) -> list[Encounter]:
    """The beginnings of later connections on the same ports, and confirmations of any."""
    found = []
    for other in every:
        if other is item or other.ends != item.ends or other.iut_csn is None:
            continue
        bgaks = [at for at in other.passed if at.stp.type == BGAK]
        first = next((at for at in bgaks if at.outgoing), None)
        asked = first is not None and bool(first.stp.flags & C) and not other.iut_calls
        if other.start > item.start:
            begin = next((at for at in other.passed if at.frame >= other.start), None)
            if begin is not None:
                found.append(Encounter(begin, False, asked))
        confirmed = next((at for at in bgaks if other.is_confirmed_by(at)), None)
        if confirmed is None or confirmed.frame < item.start:
            continue
        if asked and first is not None:
            in_time = confirmed.time - first.time < 0.99 * CONFIRMATION_S
            found.append(Encounter(confirmed, True, in_time))
    return sorted(found, key=lambda encounter: encounter.at.frame)


def count_pending(flows: Sequence[Flow]) -> None:
    """Count, for every call asked for confirmation, the others that waited at the same time."""
    spans = {id(flow): span for flow in flows if (span := _pending_span(flow)) is not None}
    starts = sorted(start for start, _ in spans.values())
    ends = sorted(end for _, end in spans.values())
    for flow in flows:
        span = spans.get(id(flow))
        if span is not None:
            overlapping = bisect_right(starts, span[1]) - bisect_left(ends, span[0])
            flow.pending_beside = overlapping - 1


def _pending_span(flow: Flow) -> tuple[float, float] | None:
    asked = next((at.time for at in flow.bgaks if at.outgoing and at.stp.flags & C), None)
    if flow.iut_calls or flow.known or asked is None:
        return None
    ends = [time for time in (flow.established, flow.ended) if time is not None]
    return asked, min([*ends, asked + CONFIRMATION_S])
