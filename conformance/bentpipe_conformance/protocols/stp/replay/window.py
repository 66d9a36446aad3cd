"""Bounds that the packets put on the IUT's congestion window, which is hidden.

From below: while more than a window's worth of octets left, the window cannot have been smaller.
From above: it begins with at most the declared initial window and grows by what has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from bentpipe_conformance.protocols.stp.numbers import ECHO, LEAST_MAX_SD
from bentpipe_conformance.protocols.stp.replay.events import ReportHeard, SdHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow

LOW_WINDOW = 10
"""SMSS below which the last packet of a burst polls (STP-PL-003)."""

MOST_INITIAL_WINDOW = 10
"""SMSS (STP-CG-001)."""


class Span(NamedTuple):
    """A time in which something is known for sure, seconds."""

    start: float
    end: float


def smss(flow: Flow) -> int:
    """The most user data the IUT has put into one SD: SMSS is no smaller; 1 without any SD."""
    # A BEGIN and early SDs are cut before the peer's MaxSD is known.
    open_ = flow.established if flow.established is not None else 0.0
    sizes = [len(sd.stp.data) for sd in flow.sds_sent if sd.time >= open_]
    return max(sizes, default=1) or 1


def largest_smss(flow: Flow) -> int:
    """The peer's MaxSD: SMSS is no larger, though a stream of small writes may never show it."""
    return max(flow.tester_max_sd or 0, LEAST_MAX_SD, smss(flow))


def high_spans(flow: Flow, quiet: float = 1.0) -> list[Span]:
    """When the window was surely at or above ten SMSS.

    It is once so much is in flight, and stays so until a loss is reported or, at the earliest
    after ``quiet`` seconds without a report, a silence may be taken for congestion.
    """
    enough = LOW_WINDOW * largest_smss(flow)
    spans: list[Span] = []
    start: float | None = None
    heard = flow.established if flow.established is not None else 0.0
    events: list[SdSent | ReportHeard] = [*flow.sds_sent, *flow.reports_heard]
    for event in sorted(events, key=lambda item: item.frame):
        silent = event.time - heard > quiet
        # A report of a loss makes the window smaller (STP-CG-005), or may do so.
        lost = isinstance(event, ReportHeard) and not event.fault and bool(event.wanted)
        if start is not None and (silent or lost):
            spans.append(Span(start, min(event.time, heard + quiet)))
            start = None
        if isinstance(event, ReportHeard):
            if not event.fault:
                heard = event.time
        elif start is None and not silent and event.new and event.flight_with >= enough:
            start = event.time
    if start is not None:
        spans.append(Span(start, min(flow.passed[-1].time, heard + quiet)))
    return [span for span in spans if span.end > span.start]


def surely_low_until(flow: Flow, initial_window: int) -> float:
    """Until when a window that begins with ``initial_window`` SMSS surely has less than ten.

    Seconds; minus infinity for never.
    """
    size = smss(flow)
    most = initial_window * size
    if initial_window >= LOW_WINDOW:
        return -math.inf
    for report in flow.reports_heard:
        if report.fault:
            continue
        assert flow.sender is not None
        most += sum(max(len(flow.sender.data[number]), 1) for number in report.arrived)
        if most >= LOW_WINDOW * size:
            return report.time
    return flow.passed[-1].time


def idle_flights(flow: Flow) -> Mapping[int, int]:
    """Octets in flight with each SD, by its count, after which none could follow (STP-CG-010).

    Lack of data or credit held the IUT back, and not its window. Credit is seen on the wire. Data
    is seen where the IUT echoes: it cannot send what it has not received. Where neither shows a
    lack, there is none.
    """
    found: dict[int, int] = {}
    sizes: dict[int, int] = {}
    heard = echoed = following = 0
    for event in flow.events:
        if isinstance(event, SdHeard):
            sizes.setdefault(event.number, len(event.stp.data))
            while following in sizes:  # octets count once they are in sequence
                heard += sizes[following]
                following += 1
        elif isinstance(event, SdSent) and event.new:
            echoed += len(event.stp.data)
            no_data = flow.service == ECHO and not flow.iut_calls and echoed >= heard
            if no_data or event.number + 1 >= event.vt_ms:
                found[event.number] = event.flight_with
        elif isinstance(event, SdSent):
            found.pop(event.number, None)
    return found
