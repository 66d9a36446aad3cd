"""Packet ladders: who sent what when, around the packets that prove a finding."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.report.transit import Transit

AROUND = 6
"""Packets shown before and after each packet of interest."""

OPENING = 30
"""Rows shown of a case without packets of interest."""

LIMIT = 90
"""Rows of one ladder; a longer one would not be read."""


@dataclass(frozen=True, slots=True)
class Row:
    """One packet, or a gap of ``skipped`` packets that are not shown.

    Attributes:
        number: frame number in ``iut.pcapng``; 0 for a packet that never got there.
        at_iut, at_peer: seconds at either side; None where it was not seen.
        outgoing: True from the implementation to the tester.
        what: kind and numbers.
        notes: remarks.
        marked: whether a finding names it.
    """

    number: int = 0
    at_iut: float | None = None
    at_peer: float | None = None
    outgoing: bool = False
    what: str = ""
    notes: tuple[str, ...] = ()
    marked: bool = False
    lost: bool = False
    skipped: int = 0


def thousands(number: float, layout: str = "") -> str:
    """Digits in groups of three, separated by narrow no-break spaces."""
    return f"{number:,{layout}}".replace(",", "\u202f")


def span(start: int, end: int) -> str:
    """A range of offsets or numbers."""
    return f"{thousands(start)}–{thousands(end)}"


def ladder(trace: Trace[Any], transit: Transit, numbers: Sequence[int], suite: Suite) -> list[Row]:
    """Rows around the frame ``numbers``; the beginning of the trace when there are none."""
    packets = list(trace.at("iut"))
    if not packets:
        return []
    reporter = suite.reporter
    events = reporter.describe(trace)
    marked = set(numbers)
    rows = [
        Row(
            packet.number,
            packet.time,
            transit.at_peer.get(packet.number),
            packet.outgoing,
            *events.get(packet.number, reporter.plain(packet)),
            marked=packet.number in marked,
            lost=packet.number in transit.lost_forward,
        )
        for packet in packets
    ]
    rows += [
        Row(0, None, packet.time, False, *reporter.plain(packet), lost=True)
        for packet in transit.lost_return
    ]
    rows.sort(key=lambda row: (row.at_peer or 0.0) if row.at_iut is None else row.at_iut)
    return _only(rows, marked)


def _only(rows: list[Row], marked: Collection[int]) -> list[Row]:
    places = [index for index, row in enumerate(rows) if row.number in marked]
    keep: set[int] = set() if places else set(range(min(OPENING, len(rows))))
    for place in places:
        keep.update(range(max(0, place - AROUND), min(len(rows), place + AROUND + 1)))
        if len(keep) >= LIMIT:
            break
    shown: list[Row] = []
    expected = 0
    for index in (*sorted(keep), len(rows)):
        if index > expected:
            shown.append(Row(skipped=index - expected))
        shown += rows[index : index + 1]
        expected = index + 1
    return shown
