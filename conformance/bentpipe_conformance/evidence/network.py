"""From captured frames of any usual link type to IPv4 packets."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.evidence.frames import CaptureError, Frame
from bentpipe_conformance.evidence.pcapng import read_capture

_ETHERTYPE_IPV4 = b"\x08\x00"
_VLAN_TAGS = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")

LINK_TYPES = (0, 1, 12, 14, 101, 108, 113, 228, 276)
"""LINKTYPE numbers whose frames are understood."""
_NULL, _ETHERNET, _RAW_BSD, _RAW_OPENBSD, _RAW, _LOOP, _SLL, _IPV4, _SLL2 = LINK_TYPES
_ETHERTYPE_AT = {_ETHERNET: (12, 14), _SLL: (14, 16), _SLL2: (0, 20)}
"""Where a frame's EtherType is, and where its packet begins."""


def ipv4_packet(frame: Frame) -> bytes | None:
    """The IPv4 packet a frame carries, without link-layer padding; None when it carries none.

    A packet that the capture cut short is padded with zeros to its total length, so that lengths
    and sequence numbers stay true; its checksum is then wrong (see `Frame.cut`).
    """
    start = _network_start(frame.link_type, frame.data)
    if start is None:
        return None
    packet = frame.data[start:]
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    total = int.from_bytes(packet[2:4], "big")
    if total < 20:  # segmentation offload leaves 0 in packets that were never on a wire
        return packet
    if total > len(packet) and frame.cut:
        return packet + b"\0" * (total - len(packet))
    return packet[:total]


def _network_start(link_type: int, data: bytes) -> int | None:
    if link_type in (_RAW, _RAW_BSD, _RAW_OPENBSD, _IPV4):
        return 0
    if link_type in (_NULL, _LOOP):  # address family 2, in the byte order of the capturing host
        return 4 if data[:4] in (b"\x02\0\0\0", b"\0\0\0\x02") else None
    if link_type not in _ETHERTYPE_AT:
        return None
    at, start = _ETHERTYPE_AT[link_type]
    while link_type == _ETHERNET and data[at : at + 2] in _VLAN_TAGS:
        at, start = at + 4, start + 4
    return start if data[at : at + 2] == _ETHERTYPE_IPV4 else None


@dataclass(frozen=True, slots=True)
class ForeignCapture:
    """A capture that the suite did not make, taken as one at the implementation's side.

    Attributes:
        captured: one item per frame, so that positions agree with Wireshark's numbers; frames
            that carry no IPv4 have empty data. Times are seconds since the first frame.
        cut: how many packets were cut short; their checksums cannot be judged.
        notes: sentences that a reader should know about the file.
    """

    captured: tuple[Captured, ...]
    cut: int
    notes: tuple[str, ...]


def read_foreign(
    path: str | os.PathLike[str], iut: str, *, partial: bool = False
) -> ForeignCapture:
    """Read any capture file, with the implementation under test at address ``iut``.

    With ``partial``, the packets before a truncation or damage are kept and a note says so.

    Raises:
        CaptureError: the file is unreadable, or holds no IPv4 packet from or to ``iut``.
    """
    name = os.fspath(path)
    frames, notes = read_usable(path, partial=partial)
    try:
        address = IPv4Address(iut).packed
    except ValueError as error:
        raise CaptureError(f"{iut!r} is not an IPv4 address such as 192.0.2.1.") from error
    packets = [ipv4_packet(frame) or b"" for frame in frames]
    _require_address(name, frames, packets, address)
    if any(frame.time_ns is None for frame in frames):
        raise CaptureError(f"{name} has packets without a time stamp, so it cannot be judged.")
    times = [frame.time_ns or 0 for frame in frames]
    if any(later < earlier for earlier, later in itertools.pairwise(times)):
        notes.append(f"{name} has packets whose time runs backwards; file order is kept.")
    cut = sum(frame.cut and bool(packet) for frame, packet in zip(frames, packets, strict=True))
    if cut:
        notes.append(f"{name} cut {cut} packets short; payloads and checksums are not judged.")
    captured = tuple(
        Captured((time - times[0]) / 1e9, "iut", packet[12:16] == address, packet)
        for time, packet in zip(times, packets, strict=True)
    )
    return ForeignCapture(captured, cut, tuple(notes))


def read_usable(
    path: str | os.PathLike[str], *, partial: bool
) -> tuple[Sequence[Frame], list[str]]:
    """The frames of a capture, with ``partial`` those before damage; notes on what is missing.

    Raises:
        CaptureError: as `pcapng.read_capture`, but not for damage that ``partial`` permits.
    """
    try:
        return read_capture(path), []
    except CaptureError as error:
        if not partial or not error.partial:
            raise
        return error.partial, [f"{error} The packets before are judged."]


def _require_address(
    name: str, frames: Sequence[Frame], packets: list[bytes], address: bytes
) -> None:
    if any(address in (packet[12:16], packet[16:20]) for packet in packets):
        return
    seen = sorted({IPv4Address(p[at : at + 4]) for p in packets if p for at in (12, 16)})
    if seen:
        some = ", ".join(map(str, seen[:6])) + (", ..." if len(seen) > 6 else "")
        raise CaptureError(
            f"{name} has no packet from or to {IPv4Address(address)}; it has these hosts: {some}."
        )
    foreign = sorted({frame.link_type for frame in frames} - set(LINK_TYPES))
    if foreign:
        raise CaptureError(
            f"{name} uses link type {foreign[0]}, which bentpipe does not read; capture Ethernet, "
            "Linux cooked or raw IP."
        )
    raise CaptureError(f"{name} holds no IPv4 packet.")
