"""Which packets belong to which connection.

The same ports can carry one connection after the other, calls that are refused, and packets of no
connection. What the IUT put into its BGAKs and BEGINs says which connections there were; CSNs and
tags say to which a packet belongs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ, END, ENDAK, POLL, SDP, Stp
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.replay import Trace
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import Ends, Flow


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
    return [item for item in (before, *started) if item.passed]


def _named(ends: Ends, passed: Sequence[At]) -> list[Flow]:
    """The connections that the IUT's own BEGINs and BGAKs name, and calls it never accepted."""
    found: dict[tuple[int | None, int | None], Flow] = {}
    first: dict[int, int] = {}
    latest: dict[int, int] = {}
    calls: dict[int, int] = {}
    for at in passed:
        stp = at.stp
        # What arrives with a wrong checksum names no connection.
        if stp.fault or stp.csn is None or not (at.outgoing or stp.wellformed):
            continue
        if stp.type == BEGIN:
            (calls if at.outgoing else first).setdefault(stp.csn, at.frame)
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
        # Of a call, the BEGIN that was answered; those before it may have been refused.
        start = calls.get(iut, latest.get(tester, at.frame))
        found.setdefault((tester, iut), Flow(ends, tester, iut, iut in calls, start))
    for csn, number in calls.items():
        if not any(item.iut_csn == csn for item in found.values()):
            found[None, csn] = Flow(ends, None, csn, True, number)
    accepted = {item.tester_csn for item in found.values()}
    for csn, number in first.items():
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
        if stp.type in (BEGIN, BGAK, END, SDP, POLL) and not stp.fault:
            if stp.csn == mine:
                return item
        elif stp.type in (BGREJ, ENDAK) and not stp.fault:
            if stp.peer_csn == other:
                return item
        elif mine is not None and stp.tag == tag_of(mine):
            return item
    return None
