"""Packet ladders: who sent what when, around the packets that prove a finding."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.lane import CLIENT, SATELLITE_FAR, SATELLITE_NEAR, SERVER
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.report.transit import Transit

AROUND = 6
"""Packets shown before and after each packet of interest."""

OPENING = 30
"""Rows shown of a case without packets of interest."""

LIMIT = 90
"""Rows of one ladder; a longer one would not be read."""

_LANES = {CLIENT: 0, SATELLITE_NEAR: 1, SATELLITE_FAR: 1, SERVER: 2}
"""Where the sides of a box are, from left to right."""
_ALONE = (("IUT", "tester"),)
_BOX = (("client", "box"), ("", "server"))
_PAIR = (("client", "box"), ("", "box"), ("", "server"))
"""Who is at the ends of each lane; who ends one begins the next."""


@dataclass(frozen=True, slots=True)
class Row:
    """One packet, or a gap of ``skipped`` packets that are not shown.

    Attributes:
        number: frame number in ``iut.pcapng``; 0 for a packet that never got there.
        lane: where it passes, from the left.
        at_iut, at_peer: seconds at either side; None where it was not seen.
        rightward: whether its arrow points to the right: from the implementation to the tester, or
            from a client towards its server.
        what: kind and numbers.
        notes: remarks.
        marked: whether a finding names it.
    """

    number: int = 0
    at_iut: float | None = None
    at_peer: float | None = None
    rightward: bool = False
    what: str = ""
    notes: tuple[str, ...] = ()
    marked: bool = False
    lost: bool = False
    skipped: int = 0
    lane: int = 0


def thousands(number: float, layout: str = "") -> str:
    """Digits in groups of three, separated by narrow no-break spaces."""
    return f"{number:,{layout}}".replace(",", "\u202f")


def span(start: int, end: int) -> str:
    """A range of offsets or numbers."""
    return f"{thousands(start)}–{thousands(end)}"


def lanes(trace: Trace[Any]) -> tuple[tuple[str, str], ...]:
    """Who is at the ends of each lane of a ladder, from left to right."""
    sides = {packet.side for packet in trace.at("iut")} - {""}
    if not sides:
        return _ALONE
    return _PAIR if sides & {SATELLITE_NEAR, SATELLITE_FAR} else _BOX


def ladder(trace: Trace[Any], transit: Transit, numbers: Sequence[int], suite: Suite) -> list[Row]:
    """Rows around the frame ``numbers``; the beginning of the trace when there are none."""
    packets = list(trace.at("iut"))
    if not packets:
        return []
    reporter = suite.reporter
    events = reporter.describe(trace)
    marked = set(numbers)
    last = len(lanes(trace)) - 1
    rows = [
        Row(
            packet.number,
            packet.time,
            transit.at_peer.get(packet.number),
            packet.outgoing == (packet.side in ("", SATELLITE_NEAR, SERVER)),
            *events.get(packet.number, reporter.plain(packet)),
            marked=packet.number in marked,
            lost=packet.number in transit.lost_forward,
            lane=min(_LANES.get(packet.side, 0), last),
        )
        for packet in packets
    ]
    rows += [
        Row(0, None, packet.time, False, *reporter.plain(packet), lost=True, lane=last)
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
