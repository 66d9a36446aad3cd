"""Connections between the same addresses: how they displace each other, and wait side by side."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe_conformance.protocols.stp.codec import BGAK, C
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import CONFIRMATION_S, Flow


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
