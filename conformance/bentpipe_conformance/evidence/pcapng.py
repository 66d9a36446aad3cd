"""pcapng capture files, read and written (draft-ietf-opsawg-pcapng).

Scapy 2.8's `RawPcapNgReader` is not strict enough for evidence: it ends silently at a truncation,
ignores ``if_tsoffset``, keeps the interfaces of an earlier section (so that frames of a second
section get the wrong link type), drops the octets of simple packet blocks when the snap length is
0, returns less data than announced, and allocates 4 GiB when a block length says so. The tests use
Scapy as an independent second opinion.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from bentpipe_conformance.engine.lane import NANO
from bentpipe_conformance.evidence.frames import CaptureError, Frame, Source
from bentpipe_conformance.evidence.pcap import MAGICS, read_pcap

LINKTYPE_RAW = 101

LATEST_NS = 1 << 63
"""Nanoseconds since 1970: nobody captures later, and differences of times stay small enough."""

_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_STATISTICS = 5
_FIXED_OCTETS = {_PACKET: 20, _OLD_PACKET: 20, _SIMPLE_PACKET: 4}
"""Packet blocks and the octets before their data."""
_ENDIAN: dict[str, Literal["little", "big"]] = {"<": "little", ">": "big"}
_HEADS = {order: struct.Struct(order + "II") for order in _ENDIAN}
"""Type and length of a block, by byte order."""
_LAYOUTS = {
    (order, kind): struct.Struct(order + layout)
    for order in _ENDIAN
    for kind, layout in ((_PACKET, "IIIII"), (_OLD_PACKET, "HxxIIII"))
}
"""Interface, high and low part of the time, octets captured and on the wire."""
_SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
_BYTE_ORDER = 0x1A2B3C4D

_OPT_END, _OPT_USERAPPL, _OPT_FLAGS = 0, 4, 2
_OPT_IF_DROPPED, _OPT_OS_DROPPED = 5, 7
_OPT_IF_NAME, _OPT_IF_DESCRIPTION, _OPT_TSRESOL, _OPT_TSOFFSET = 2, 3, 9, 14


@dataclass(frozen=True, slots=True)
class _Interface:
    link_type: int
    snap_length: int
    name: str
    units: int
    offset_ns: int

    def time_ns(self, stamp: int) -> int:
        return stamp * NANO // self.units + self.offset_ns


def read_octets(octets: bytes, name: str) -> Iterator[Frame]:
    """Frames of the content of a pcapng or classic pcap file; ``name`` is its name in errors.

    Raises:
        CaptureError: it is not a capture, is truncated or damaged; the frames before the damage
            have been delivered by then.
    """
    return _frames(Source(io.BytesIO(octets), name))


def read_capture(path: str | os.PathLike[str]) -> tuple[Frame, ...]:
    """All frames of a pcapng or classic pcap file.

    Raises:
        CaptureError: the file cannot be opened, or as `read_octets`; its ``partial`` holds the
            frames before the damage.
    """
    name = os.fspath(path)
    frames: list[Frame] = []
    try:
        with Path(path).open("rb") as file:
            for frame in _frames(Source(file, name)):
                frames.append(frame)  # one by one, so that those before an error are kept
    except OSError as error:
        raise CaptureError(f"{name} cannot be opened: {error.strerror}.") from error
    except CaptureError as error:
        error.partial = tuple(frames)
        raise
    return tuple(frames)


@dataclass(slots=True)
class Progress:
    """How far a capture has been read.

    Attributes:
        octets: octets of the file that have been read.
        dropped: packets that the capturing host says it lost, by interface.
    """

    octets: int = 0
    dropped: dict[int, int] = field(default_factory=dict)


def stream_capture(path: str | os.PathLike[str], progress: Progress) -> Iterator[Frame]:
    """The frames of a pcapng or classic pcap file, one by one; ``progress`` is kept up to date.

    Raises:
        CaptureError: as `read_capture`, once the frames before the damage have been delivered.
    """
    name = os.fspath(path)
    try:
        with Path(path).open("rb", buffering=1 << 20) as file:
            source = Source(file, name)
            source.dropped = progress.dropped
            for frame in _frames(source):
                progress.octets = source.offset
                yield frame
    except OSError as error:
        raise CaptureError(f"{name} cannot be opened: {error.strerror}.") from error


def _frames(source: Source) -> Iterator[Frame]:
    magic = source.header(4)
    if not magic:
        raise CaptureError(f"{source.name} is empty.")
    if magic in MAGICS:
        yield from read_pcap(source, magic)
    elif magic == _SECTION_MAGIC:
        yield from _read_pcapng(source)
    elif magic[:2] == b"\x1f\x8b":
        raise CaptureError(f"{source.name} is compressed; unpack it with gunzip first.")
    else:
        raise CaptureError(
            f"{source.name} is neither a pcapng nor a pcap file: it begins with {magic.hex(' ')}."
        )


def _read_pcapng(source: Source) -> Iterator[Frame]:
    order = _read_section(source, source.take(4))
    interfaces: list[_Interface] = []
    while head := source.header(8):
        if head.startswith(_SECTION_MAGIC):
            order = _read_section(source, head[4:])
            interfaces.clear()
            continue
        kind, length = _HEADS[order].unpack(head)
        if length < 12 or length % 4:
            raise source.damaged(f"a block length of {length} octets is impossible")
        body = b""
        if kind in _FIXED_OCTETS or kind in (_INTERFACE, _STATISTICS):
            body = source.take(length - 8)
            _check_trailer(source, order, length, body[-4:])
            body = body[:-4]
        else:
            source.skip(length - 12)
            _check_trailer(source, order, length, source.take(4))
        if kind == _INTERFACE:
            interfaces.append(_parse_interface(source, order, body))
        elif kind == _STATISTICS:
            _parse_statistics(source, order, body)
        elif kind in _FIXED_OCTETS:
            frame = _parse_packet(source, order, kind, body, interfaces)
            source.frames += 1
            yield frame


def _read_section(source: Source, length_field: bytes) -> str:
    """Consume the rest of a section header; return the byte order of its section."""
    head = length_field + source.take(4)
    for order in "<>":
        length, magic = struct.unpack(order + "II", head)
        if magic == _BYTE_ORDER:
            break
    else:
        raise source.damaged("a section header has no byte-order magic")
    if length < 28 or length % 4:
        raise source.damaged(f"a section header of {length} octets is impossible")
    body = source.take(length - 16)
    (major,) = struct.unpack_from(order + "H", body)
    if major != 1:
        raise source.damaged(f"pcapng version {major} is unknown")
    _check_trailer(source, order, length, source.take(4))
    return order


def _check_trailer(source: Source, order: str, length: int, field: bytes) -> None:
    trailer = int.from_bytes(field, _ENDIAN[order])
    if trailer != length:
        raise source.damaged(f"a block says {length} octets at its start and {trailer} at its end")


def _options(source: Source, order: str, octets: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(octets):
        code, length = struct.unpack_from(order + "HH", octets, at)
        if code == _OPT_END:
            return
        at += 4
        if at + length > len(octets):
            raise source.damaged(f"option {code} reaches beyond its block")
        yield code, octets[at : at + length]
        at += length + -length % 4


def _parse_interface(source: Source, order: str, body: bytes) -> _Interface:
    if len(body) < 8:
        raise source.damaged("an interface description is too short")
    link_type, snap_length = struct.unpack_from(order + "HxxI", body)
    name, units, offset = "", 1_000_000, 0
    for code, value in _options(source, order, body[8:]):
        if code == _OPT_IF_NAME:
            name = value.decode("utf-8", "replace")
        elif code == _OPT_TSRESOL and len(value) == 1:
            units = (2 if value[0] & 0x80 else 10) ** (value[0] & 0x7F)
        elif code == _OPT_TSOFFSET and len(value) == 8:
            (offset,) = struct.unpack(order + "q", value)
    return _Interface(link_type, snap_length, name, units, offset * NANO)


def _parse_statistics(source: Source, order: str, body: bytes) -> None:
    if len(body) < 12:
        raise source.damaged("interface statistics are too short")
    (interface,) = struct.unpack_from(order + "I", body)
    dropped = [
        struct.unpack(order + "Q", value)[0]
        for code, value in _options(source, order, body[12:])
        if code in (_OPT_IF_DROPPED, _OPT_OS_DROPPED) and len(value) == 8
    ]
    source.dropped[interface] = max([source.dropped.get(interface, 0), *dropped])


def _parse_packet(
    source: Source, order: str, kind: int, body: bytes, interfaces: list[_Interface]
) -> Frame:
    fixed = _FIXED_OCTETS[kind]
    if len(body) < fixed:
        raise source.damaged("a packet block is too short for its header")
    index, stamp = 0, None
    if kind == _SIMPLE_PACKET:
        (original,) = struct.unpack_from(order + "I", body)
        captured = original
    else:
        index, high, low, captured, original = _LAYOUTS[order, kind].unpack_from(body)
        stamp = high << 32 | low
    if index >= len(interfaces):
        raise source.damaged(f"a packet names interface {index}, which is not described")
    interface = interfaces[index]
    if kind == _SIMPLE_PACKET and interface.snap_length:
        captured = min(captured, interface.snap_length)
    if captured > len(body) - fixed:
        raise source.damaged(
            f"a packet claims {captured} octets, its block holds {len(body) - fixed}"
        )
    outgoing = None
    if kind != _SIMPLE_PACKET:
        options = body[fixed + captured + -captured % 4 :]
        for code, value in _options(source, order, options) if options else ():
            if code == _OPT_FLAGS and len(value) == 4:
                direction = struct.unpack(order + "I", value)[0] & 3
                outgoing = {1: False, 2: True}.get(direction)
    time_ns = None if stamp is None else interface.time_ns(stamp)
    if time_ns is not None and not 0 <= time_ns < LATEST_NS:
        raise source.damaged("a packet's time lies before 1970 or after 2262")
    return Frame(
        source.frames + 1,
        time_ns,
        body[fixed : fixed + captured],
        interface.link_type,
        interface.offset_ns,
        original,
        interface.name,
        outgoing,
    )


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


_END = _option(_OPT_END, b"")


def write_pcapng(
    file: BinaryIO,
    frames: Iterable[Frame],
    *,
    name: str,
    description: str = "",
    link_type: int = LINKTYPE_RAW,
    base_ns: int = 0,
    interfaces: Sequence[str] = (),
) -> None:
    """Write one section; equal input gives equal octets.

    Time stamps are nanoseconds counted from ``base_ns``, which must be whole seconds. The
    numbers and link types of ``frames`` are not used, nor their interfaces, unless it has several:
    then ``interfaces`` are their names, and each frame names one of them.

    Raises:
        CaptureError: a frame has no time, or one before ``base_ns``.
        OSError: the file cannot be written.
    """
    if base_ns % NANO:
        raise CaptureError(f"a capture begins at a whole second, not {base_ns} ns.")
    section = struct.pack("<IHHq", _BYTE_ORDER, 1, 0, -1) + _option(_OPT_USERAPPL, b"bentpipe")
    file.write(_block(_SECTION, section + _END))
    for known in interfaces or (name,):
        interface = struct.pack("<HxxI", link_type, 0) + _option(_OPT_IF_NAME, known.encode())
        if description:
            interface += _option(_OPT_IF_DESCRIPTION, description.encode())
        interface += _option(_OPT_TSRESOL, b"\x09")
        if base_ns:
            interface += _option(_OPT_TSOFFSET, struct.pack("<q", base_ns // NANO))
        file.write(_block(_INTERFACE, interface + _END))
    for frame in frames:
        index = interfaces.index(frame.interface) if interfaces else 0
        file.write(_packet_block(frame, base_ns, index))


def _packet_block(frame: Frame, base_ns: int, interface: int) -> bytes:
    stamp = -1 if frame.time_ns is None else frame.time_ns - base_ns
    if not 0 <= stamp < 1 << 64:
        raise CaptureError(f"packet {frame.number} has no time that a capture can hold.")
    data = frame.data
    original = max(frame.original_length, len(data))
    body = struct.pack("<IIIII", interface, stamp >> 32, stamp & 0xFFFFFFFF, len(data), original)
    body += data + b"\0" * (-len(data) % 4)
    if frame.outgoing is not None:
        body += _option(_OPT_FLAGS, struct.pack("<I", 2 if frame.outgoing else 1)) + _END
    return _block(_PACKET, body)
