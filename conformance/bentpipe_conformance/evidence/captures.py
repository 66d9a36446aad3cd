"""A case's packets as pcapng octets and back, exactly.

Times are kept to the nanosecond. A verdict given live and one given from the stored captures
must agree, so both judge `as_recorded`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping

from bentpipe_conformance.engine.lane import (
    CLIENT,
    NANO,
    SATELLITE_FAR,
    SATELLITE_NEAR,
    SERVER,
    Captured,
    Point,
    as_recorded,
    nanoseconds,
)
from bentpipe_conformance.evidence.frames import CaptureError, Frame
from bentpipe_conformance.evidence.pcapng import LINKTYPE_RAW, read_octets, write_pcapng

_PLACES: dict[Point, str] = {
    "iut": "at the implementation's side of the link",
    "peer": "at the tester's side of the link",
}

SIDES = CLIENT, SERVER, SATELLITE_NEAR, SATELLITE_FAR


def _interface(point: Point, side: str) -> str:
    """The name of the interface at which a packet was seen."""
    return f"{point}-{side}" if side else point


def dump_captured(
    captured: Iterable[Captured], point: Point, case_id: str, started: float
) -> bytes:
    """The pcapng file of one capture point.

    Packets are marked outbound when the implementation sent them, at both points. ``started``
    (seconds since 1970) becomes the file's time offset, in whole seconds.

    Raises:
        CaptureError: a packet has a time before the case began.
    """
    base_ns = max(0, math.floor(started)) * NANO
    chosen = [item for item in as_recorded(captured) if item.point == point]
    frames = [
        Frame(
            number,
            base_ns + nanoseconds(item),
            item.data,
            LINKTYPE_RAW,
            interface=_interface(point, item.side),
            outgoing=item.outgoing,
        )
        for number, item in enumerate(chosen, 1)
    ]
    text = f"{case_id}, {_PLACES[point]}; outbound: sent by the implementation"
    file = io.BytesIO()
    sides = [side for side in SIDES if any(item.side == side for item in chosen)]
    write_pcapng(
        file, frames, name=point, description=text, base_ns=base_ns,
        interfaces=[_interface(point, side) for side in sides],
    )  # fmt: skip
    return file.getvalue()


def load_captured(octets: Mapping[Point, bytes], where: str) -> list[Captured]:
    """The packets of both points from their pcapng files, as `as_recorded` orders them.

    Raises:
        CaptureError: a file is damaged or was not written by `dump_captured`.
    """
    found = []
    for point, content in octets.items():
        name = f"{where}/{point}.pcapng"
        for frame in read_octets(content, name):
            if frame.time_ns is None or frame.outgoing is None or frame.link_type != LINKTYPE_RAW:
                raise CaptureError(
                    f"{name} was not written by bentpipe: packet {frame.number} lacks its time, "
                    "its direction or the link type of raw IP."
                )
            time = (frame.time_ns - frame.base_ns) / NANO
            side = frame.interface.removeprefix(point).removeprefix("-")
            if side and side not in SIDES:
                raise CaptureError(
                    f"{name} was not written by bentpipe: it has an interface {frame.interface!r}."
                )
            found.append(Captured(time, point, frame.outgoing, frame.data, side))
    return as_recorded(found)
