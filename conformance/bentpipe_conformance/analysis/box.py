"""Two captures that the suite did not make, one on each side of a box, judged as one.

Their clocks need not agree. What has come out of the box had gone in before, which bounds how far
they are apart. Everything is judged at three differences within these bounds; what one of them
does not show is not held against the box.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bentpipe_conformance.analysis.capture import Analysis, Told, rows_of
from bentpipe_conformance.analysis.judging import Entry, Judged, entries_of
from bentpipe_conformance.analysis.quality import Quality, Remark
from bentpipe_conformance.analysis.spool import SOME
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.engine.observing import Passed, Sides, Sighting
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import Packet, Trace, dissected
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.frames import CaptureError
from bentpipe_conformance.evidence.network import ip_packet
from bentpipe_conformance.evidence.pcapng import Progress, stream_capture

MOST_PACKETS = 1_000_000
"""Of both files together; they are held in memory."""

TIMING_ERROR_S = 0.001
"""Seconds by which a capturing host's times may be wrong."""

AGREE_S = 0.5
"""Seconds by which clocks may be apart without a remark, and within which a box is taken to call
where nothing else says when it did."""

_OFFLOADED_SHARE = 0.5
"""Share of wrong checksums in one direction from which on hardware fills them in."""

_SHARES = (0.0, 0.5, 1.0)
"""Places between the bounds of the clocks' difference. What is wrong in one order only is not wrong
at one of the bounds."""

_UNSURE = "it depends on how far the clocks of both files are apart: "


@dataclass(slots=True)
class _File:
    """One of the two.

    Attributes:
        path: the file.
        label: what distinguishes it from the other one in sentences.
        began: of its first frame, nanoseconds since 1970.
        frames: how many it has.
        ended: of its last frame, seconds since ``began``.
        cut: of how many it has kept only the beginning.
        passed: packets of connections that open in it, their times seconds since ``began``.
        late: packets of others.
        damage: why it was not read to its end; empty when it was.
    """

    path: Path
    label: str
    began: int = 0
    frames: int = 0
    ended: float = 0.0
    cut: int = 0
    passed: Sequence[Passed] = ()
    late: int = 0
    damage: str = ""


def analyze_box(
    client: Path, server: Path, suite: Suite, profile: str, *, stated: Ics | None = None,
    partial: bool = False, told: Told = lambda *_: None,
) -> Analysis:  # fmt: skip
    """Judge the box between two captures.

    Args:
        client: a pcapng or pcap file, taken at the box towards its clients.
        server: one taken towards its servers.
        suite: whose requirements.
        profile: a profile of the suite.
        stated: what is stated of the box.
        partial: judge what precedes a truncation or damage.
        told: hears of progress.

    Raises:
        CaptureError: a file is unreadable, the two have no connection in common or none that was
            split, or are not of two sides of one box in this order.
    """
    sides = suite.sides
    if sides is None:
        raise CaptureError(f"Captures of both sides of {suite.protocol} cannot be judged.")
    alike = client.name == server.name
    files = [
        _read(_File(path, str(path) if alike else path.name), suite, sides, partial, told)
        for path in (client, server)
    ]
    least, most = _bounds(files, sides)
    tries = [_judge(files, apart, suite, sides, profile, stated or {}) for apart in
             _differences(least, most)]  # fmt: skip
    judged = [_merged([one[name] for one in tries if name in one]) for name in tries[1]]
    connections = [each.judged for each in judged]
    return Analysis(
        Path(f"{client} and {server}"), suite, profile, "the box",
        _quality(files, judged, least, most), tuple(connections),
        tuple(rows_of(suite, profile, connections)), stated or {}, files[0].began / 1e9,
    )  # fmt: skip


def _read(found: _File, suite: Suite, sides: Sides, partial: bool, told: Told) -> _File:
    path = found.path
    sightings: list[Sighting] = []
    try:
        _take(found, suite, sightings, told)
    except CaptureError as error:
        if not partial or not sightings:
            error.partial = SOME if sightings else ()
            raise
        found.damage = str(error)
    found.passed = _summed(sides.passed(sightings), suite)
    found.late = len(sightings) - len(found.passed)
    if not found.passed:
        raise CaptureError(
            f"{path} shows the opening of no connection; capture both directions, from before it."
        )
    if found.cut:
        raise CaptureError(
            f"{path} has kept only the beginning of {found.cut} packets; capture them whole "
            "(tcpdump -s 0)."
        )
    return found


def _take(found: _File, suite: Suite, sightings: list[Sighting], told: Told) -> None:
    """Read what the file has."""
    path, progress = found.path, Progress()
    size = path.stat().st_size
    for frame in stream_capture(path, progress):
        if frame.time_ns is None:
            raise CaptureError(f"{path} has packets without a time stamp.")
        found.frames += 1
        if found.frames == 1:
            found.began = frame.time_ns
        found.ended = max(found.ended, (frame.time_ns - found.began) / 1e9)
        if found.frames > MOST_PACKETS // 2:
            raise CaptureError(
                f"{path} has more than {MOST_PACKETS // 2} frames; give a part of it."
            )
        if found.frames % 4096 == 0:
            told("reading", progress.octets, size)
        packet = ip_packet(frame)
        if packet is None:
            continue
        octets, wire = packet
        found.cut += wire > len(octets)
        content = dissected(suite.interpreter.dissect, octets)
        if content is not None:
            time = (frame.time_ns - found.began) / 1e9
            sightings.append(Sighting(frame.number, time, content, octets))


def _summed(packets: Sequence[Passed], suite: Suite) -> list[Passed]:
    """The packets; where hardware fills in the checksums of a direction, they are taken for right.

    Others that are wrong are what they seem: damaged.
    """
    wrong = Counter(item.up for item in packets if not item.sighting.content.checksum_ok)
    every = Counter(item.up for item in packets)
    trusted = {up for up in wrong if wrong[up] > _OFFLOADED_SHARE * every[up]}
    trusting = suite.interpreter.trusting
    return [
        replace(item, sighting=replace(item.sighting, content=trusting(item.sighting.content)))
        if item.up in trusted
        else item
        for item in packets
    ]


def _bounds(files: Sequence[_File], sides: Sides) -> tuple[float, float]:
    """How many seconds the second file's own times are ahead of the first one's."""
    one, other = (file.passed for file in files)
    try:
        least, most = sides.bounds(one, other)
    except ValueError as error:
        raise CaptureError(f"{files[0].path} and {files[1].path} {error}") from None
    if least > most:
        swapped = sides.bounds(other, one)
        remedy = (
            "give them in the other order"
            if swapped[0] <= swapped[1]
            else ("one of them was not taken at the box, or its clock was set meanwhile")
        )
        raise CaptureError(
            f"In {files[1].path} packets appear before the box can have had them from "
            f"{files[0].path}: {remedy}."
        )
    return least, most


def _differences(least: float, most: float) -> list[float]:
    """What to subtract from the second file's times, three of all that are possible."""
    if least == -math.inf:
        least = most - AGREE_S
    return [least + share * (most - least) for share in _SHARES]


@dataclass(frozen=True, slots=True)
class _Found:
    """A connection judged.

    Attributes:
        judged: the connection.
        names: what its packets' numbers are in the files.
        lacking: why it could not be judged; empty when it could.
    """

    judged: Judged
    names: Mapping[int, str]
    lacking: str


def _judge(
    files: Sequence[_File], apart: float, suite: Suite, sides: Sides, profile: str, ics: Ics
) -> dict[str, _Found]:
    """All connections, with the second file's clock so much ahead."""
    placed = sorted(
        (
            (round(item.sighting.time - shift, 9), side, item)
            for file, side, shift in zip(files, (CLIENT, SERVER), (0.0, apart), strict=True)
            for item in file.passed
        ),
        # Of the same moment, what comes in may be why something leaves.
        key=lambda it: (it[0], it[2].up == (it[1] == SERVER)),
    )
    packets: list[Packet[Any]] = []
    names: dict[int, str] = {}
    labels = {CLIENT: files[0].label, SERVER: files[1].label}
    for number, (time, side, item) in enumerate(placed, 1):
        sighting = item.sighting
        outgoing = item.up == (side == SERVER)
        packets.append(
            Packet(number, time, "iut", outgoing, sighting.content, sighting.octets, side)
        )
        names[number] = f"{labels[side]} {sighting.number}"
    ends = {CLIENT: files[0].ended, SERVER: round(files[1].ended - apart, 9)}
    found: dict[str, _Found] = {}
    for flow in _flows(packets, ends, sides):
        lacking = sides.lacking(flow)
        judged = _connection(flow, len(found), suite, sides, profile, ics, lacking)
        # The same ports may be used again; the number of a frame is the same in each try.
        found[names[judged.first]] = _Found(judged, names, lacking)
    return found


def _flows(packets: Sequence[Packet[Any]], ends: Mapping[str, float], sides: Sides) -> list[Any]:
    """The connections, each as far as both files show what still goes on in it.

    What happens on one side after the other file has ended has no cause that could be seen.
    """
    found = []
    shorter: dict[float, dict[int, Any]] = {}
    for flow in sides.flows(Trace(tuple(packets), TIMING_ERROR_S)):
        until = min((ends[side] for side in sides.going_on(flow)), default=math.inf)
        if flow.packets[-1].time <= until:
            found.append(flow)
            continue
        if until not in shorter:
            seen = tuple(packet for packet in packets if packet.time <= until)
            shorter[until] = {
                each.packets[0].number: each for each in sides.flows(Trace(seen, TIMING_ERROR_S))
            }
        # It may open after the other file has ended.
        if (cut := shorter[until].get(flow.packets[0].number)) is not None:
            found.append(cut)
    return found


def _connection(
    flow: Any, place: int, suite: Suite, sides: Sides, profile: str, ics: Ics, lacking: str
) -> Judged:
    client, server = sides.ends(flow)
    first, last = flow.packets[0], flow.packets[-1]
    barred = {
        name: why for name in suite.requirements()
        if (why := lacking or sides.unjudgeable(name, flow))
    }  # fmt: skip
    entries, unclaimed = entries_of(flow, TIMING_ERROR_S, suite, profile, ics, barred)
    return Judged(
        (0, place), client, server, len(flow.packets), first.number, first.time,
        last.time - first.time, (), entries, unclaimed,
    )  # fmt: skip


def _merged(tries: Sequence[_Found]) -> _Found:
    """One connection at several differences: only what all of them show is a violation."""
    usually = tries[len(tries) // 2]
    middle, names = usually.judged, usually.names
    entries: dict[str, Entry] = {}
    for name in {name for each in tries for name in each.judged.entries}:
        found = [(each.judged.entries.get(name, Entry()), each.names) for each in tries]
        broken = [(entry, their) for entry, their in found if entry.violations]
        usual = middle.entries.get(name, Entry())
        if broken and len(broken) < len(tries):
            entry, their = broken[0]
            entries[name] = Entry(unclear=_named(map(_unsure, entry.violations), their))
        else:
            entries[name] = replace(
                usual, violations=_named(usual.violations, names),
                unclear=_named(usual.unclear, names),
            )  # fmt: skip
    first = int(names[middle.first].rpartition(" ")[2])
    return replace(usually, judged=replace(middle, entries=entries, first=first))


def _unsure(finding: Finding) -> Finding:
    return replace(finding, verdict=Verdict.INCONCLUSIVE, sentence=_UNSURE + finding.sentence)


def _named(findings: Iterable[Finding], names: Mapping[int, str]) -> tuple[Finding, ...]:
    """Findings that say which frames of the two files they are about, instead of numbers."""
    return tuple(
        replace(
            item,
            packets=(),
            sentence=f"{item.sentence} ({', '.join(names[number] for number in item.packets)})",
        )
        for item in findings
    )


def _quality(
    files: Sequence[_File], judged: Sequence[_Found], least: float, most: float
) -> Quality:
    remarks: list[Remark] = []
    offset = (files[1].began - files[0].began) / 1e9
    clocks = least + offset, most + offset
    if clocks[0] > AGREE_S or clocks[1] < -AGREE_S:
        apart = clocks[1] if least == -math.inf else sum(clocks) / 2
        remarks.append(
            Remark("clocks", f"the clock of {files[1].label} is {apart:.3f} s ahead of that of "
                   f"{files[0].label}, which is taken into account")
        )  # fmt: skip
    if least > -math.inf and most - least > AGREE_S:
        remarks.append(
            Remark("clocks", f"what passes the box says how far the clocks are apart within "
                   f"{most - least:.3f} s only: what depends on it is unclear")
        )  # fmt: skip
    if least == -math.inf:
        remarks.append(
            Remark("clocks", "nothing comes from a server, so that only the calls tell how far the "
                   "clocks are apart")
        )  # fmt: skip
    for file in files:
        if file.damage:
            remarks.append(Remark("damage", f"{file.damage} What precedes is judged"))
        if file.late:
            remarks.append(
                Remark("late", f"{file.late} packets of {file.label} belong to connections "
                       "that it does not see open: they are not judged")
            )  # fmt: skip
    lacks = Counter(each.lacking for each in judged if each.lacking)
    remarks += [Remark("gaps", f"{why}: it is not judged", count) for why, count in lacks.items()]
    return Quality(
        "", sum(file.frames for file in files), sum(len(file.passed) for file in files),
        len(judged), len(judged) - sum(lacks.values()), TIMING_ERROR_S, tuple(remarks),
    )  # fmt: skip


__all__ = ["analyze_box"]
