"""The first pass over a capture: what is worth keeping of its packets, sorted into files.

Packets that have to be judged together come into the same file, so that a large capture is judged
one file at a time and on several cores. Of a packet its headers are kept, and more only where the
protocol's observer asks for it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Container, Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.observing import Observer, Sighting
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.evidence.frames import CaptureError, Frame
from bentpipe_conformance.evidence.network import LINK_TYPES, ip_packet, sent_here
from bentpipe_conformance.evidence.pcapng import Progress, stream_capture

FILES = 64
"""Files that the packets are sorted into: enough for the cores of a large machine."""

SAMPLED = 8
"""Packets of a group whose checksums are computed, to find out who leaves them to its hardware."""

_FLUSH = 1 << 18
_RECORD = struct.Struct("<IIqIIB")
_SENT, _RECEIVED, _BAD, _CUT = 1, 2, 4, 8
_WAYS = {None: 0, True: _SENT, False: _RECEIVED}
_REPORT_EVERY = 4096


@dataclass(slots=True)
class Spool:
    """A capture sorted into files.

    Attributes:
        files: the files, the largest first.
        packets: frames in the capture.
        relevant: packets of the protocol.
        foreign: link types that could not be read, with their frames.
        fragments: IP fragments and other packets whose headers could not be read.
        dropped: packets that the capturing host says it lost.
        backwards: frames whose time lies before that of the frame before them.
        damage: why the file could not be read to its end; empty when it could.
        started: nanoseconds since 1970 of the first frame.
    """

    files: tuple[Path, ...] = ()
    packets: int = 0
    relevant: int = 0
    foreign: dict[int, int] = field(default_factory=dict)
    dropped: int = 0
    backwards: int = 0
    damage: str = ""
    started: int = 0


@dataclass(slots=True)
class _Group:
    index: int
    packets: int = 0


def spool_capture(
    path: str | os.PathLike[str], folder: Path, suite: Suite, observer: Observer, *,
    partial: bool = False, told: Callable[[int], None] = lambda _: None,
) -> Spool:  # fmt: skip
    """Sort the packets of a capture into files in ``folder``.

    Args:
        path: a pcapng or pcap file.
        folder: an empty directory.
        suite: whose packets.
        observer: its observer.
        partial: keep what precedes a truncation or damage.
        told: called now and then with the octets read so far.

    Raises:
        CaptureError: the file is unreadable, or packets have no time.
    """
    writer = _Writer(folder, suite, observer)
    progress = Progress()
    try:
        for frame in stream_capture(path, progress):
            writer.add(frame)
            if frame.number % _REPORT_EVERY == 0:
                told(progress.octets)
    except CaptureError as error:
        if not partial or not writer.spool.packets:
            error.partial = () if not writer.spool.packets else SOME
            raise
        writer.spool.damage = str(error)
    finally:
        writer.close()
    told(progress.octets)
    writer.spool.dropped = sum(progress.dropped.values())
    return writer.spool


SOME = (Frame(1, None, b"", 0),)
"""Says in a :class:`CaptureError` that packets precede the damage."""


class _Writer:
    def __init__(self, folder: Path, suite: Suite, observer: Observer) -> None:
        self.spool = Spool()
        self._dissect = suite.interpreter.dissect
        self._party, self._skim = observer.party, observer.skim
        self._groups: dict[Hashable, _Group] = {}
        self._paths = [folder / f"{number:02d}" for number in range(FILES)]
        self._buffers = [bytearray() for _ in range(FILES)]
        self._last = 0

    def add(self, frame: Frame) -> None:
        spool = self.spool
        spool.packets += 1
        if frame.time_ns is None:
            raise CaptureError("The capture has packets without a time stamp.")
        if spool.packets == 1:
            spool.started = frame.time_ns
        elif frame.time_ns < self._last:
            spool.backwards += 1
        self._last = frame.time_ns
        found = ip_packet(frame)
        if found is None:
            if frame.link_type not in LINK_TYPES:
                spool.foreign[frame.link_type] = spool.foreign.get(frame.link_type, 0) + 1
            return
        packet, wire = found
        party = self._party(packet, wire)
        if party is None:
            return
        key, keep = party
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(len(self._groups))
        flags = _WAYS[sent_here(frame)]
        if wire > len(packet):
            flags |= _CUT
        elif group.packets < SAMPLED and not self._sound(packet):
            flags |= _BAD
        group.packets += 1
        spool.relevant += 1
        octets = packet[:keep]
        buffer = self._buffers[group.index % FILES]
        buffer += _RECORD.pack(
            group.index, frame.number, frame.time_ns - spool.started, wire, len(octets), flags
        )
        buffer += octets
        if len(buffer) > _FLUSH:
            self._flush(group.index % FILES)

    def _flush(self, number: int) -> None:
        with self._paths[number].open("ab", buffering=0) as file:
            file.write(self._buffers[number])
        self._buffers[number].clear()

    def _sound(self, packet: bytes) -> bool:
        try:
            return bool(getattr(self._dissect(packet), "checksum_ok", True))
        except MalformedPacket:
            return True

    def close(self) -> None:
        for number, buffer in enumerate(self._buffers):
            if buffer:
                self._flush(number)
        filled = [path for path in self._paths if path.exists()]
        self.spool.files = tuple(sorted(filled, key=lambda path: -path.stat().st_size))


@dataclass(frozen=True, slots=True)
class Kept:
    """The packets of one group as they were kept.

    Attributes:
        sightings: its packets, in the order of the capture.
        cut: of how many the capture kept only the beginning.
    """

    sightings: list[Sighting]
    cut: int


def read_groups(
    path: Path, observer: Observer, only: Container[int] | None = None
) -> Iterator[tuple[int, Kept]]:
    """The groups of one file, or some, with their indices, in the order of their first packets."""
    places: dict[int, list[int]] = {}
    octets = path.read_bytes()
    at, end, size = 0, len(octets), _RECORD.size
    while at < end:
        group, _, _, _, length, _ = _RECORD.unpack_from(octets, at)
        if only is None or group in only:
            places.setdefault(group, []).append(at)
        at += size + length
    while places:
        group = next(iter(places))
        kept = _kept(octets, places.pop(group), observer)
        if not places:
            octets = b""
        yield group, kept


def _kept(octets: bytes, starts: list[int], observer: Observer) -> Kept:
    sightings: list[Sighting] = []
    cut = 0
    skim, size = observer.skim, _RECORD.size
    for at in starts:
        _, number, time_ns, wire, length, flags = _RECORD.unpack_from(octets, at)
        data = octets[at + size : at + size + length]
        try:
            content = skim(data, wire)
        except MalformedPacket:
            continue
        cut += bool(flags & _CUT)
        here = bool(flags & _SENT) if flags & (_SENT | _RECEIVED) else None
        sightings.append(Sighting(number, time_ns / 1e9, content, data, here, not flags & _BAD))
    return Kept(sightings, cut)
