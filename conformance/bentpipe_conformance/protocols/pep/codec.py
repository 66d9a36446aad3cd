"""Packets that are not segments: ICMP messages, and what asks whether the path carries anything."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.engine.codec import address_text
from bentpipe_conformance.engine.trace import Packet as EnginePacket
from bentpipe_conformance.protocols.tcp.codec import Tcp

Packet = EnginePacket[Tcp]

TCP, ICMP, UDP = 6, 1, 17
_UNREACHABLE, _TOO_BIG = 3, 4
_FRAGMENT, _OFFSET = 0x3FFF, 0x1FFF
"""Of a field in the IPv4 header: More Fragments with the offset, and the offset (RFC 791)."""

PING = b"bentpipe asks whether the path works: "
"""How the payload of a datagram begins that does so."""

_QUESTION = re.compile(re.escape(PING) + rb"(up|down) ([0-9]{1,9}) ([0-9]{1,9}\.[0-9]{6})")

_WAYS = b"up", b"down"
_IN_A_ROW = 3
"""Questions that are lost where nothing passes; chance takes fewer."""

LAST = b"bentpipe has ended the case"
"""The payload of the datagram behind which the tester only cleans up."""


def header(packet: Packet) -> tuple[int, bytes] | None:
    """Protocol and payload of an IPv4 packet, None when it is none."""
    data = packet.data
    if len(data) < 20 or data[0] >> 4 != 4:
        return None
    start, total = (data[0] & 15) * 4, int.from_bytes(data[2:4], "big")
    return None if start < 20 else (data[9], data[start:total])


@dataclass(frozen=True, slots=True)
class Report:
    """An ICMP message that a segment has not arrived.

    Attributes:
        packet: where it was captured.
        kind: type and code.
        ends: of the quoted segment, its sender first.
        seq: of the quoted segment.
        mtu: that it names, if the packet was too big.
    """

    packet: Packet
    kind: tuple[int, int]
    ends: tuple[str, int, str, int]
    seq: int
    mtu: int

    @property
    def time(self) -> float:
        """When it was captured."""
        return self.packet.time

    @property
    def too_big(self) -> bool:
        """Whether a packet did not fit (RFC 1191)."""
        return self.kind == (_UNREACHABLE, _TOO_BIG)


def reports(packets: Iterable[Packet]) -> Iterator[Report]:
    """ICMP messages about TCP segments, in order.

    A message in fragments or with a wrong checksum says nothing (RFC 1122 section 3.2.2), and a
    fragment that is not the first of its segment has no ports to quote.
    """
    for packet in packets:
        found = header(packet)
        if found is None or found[0] != ICMP or _fragment(packet.data, _FRAGMENT):
            continue
        message = found[1]
        if len(message) < 36 or message[0] != _UNREACHABLE or internet_checksum(message):
            continue
        quoted = message[8:]
        at = (quoted[0] & 15) * 4
        if quoted[0] >> 4 != 4 or at < 20 or quoted[9] != TCP or len(quoted) < at + 8:
            continue
        if _fragment(quoted, _OFFSET):
            continue
        sport, dport, seq = struct.unpack_from("!HHI", quoted, at)
        ends = address_text(quoted[12:16]), sport, address_text(quoted[16:20]), dport
        yield Report(
            packet, (message[0], message[1]), ends, seq, int.from_bytes(message[6:8], "big")
        )


def _fragment(ip: bytes, bits: int) -> bool:
    return bool(int.from_bytes(ip[6:8], "big") & bits)


def is_last(packet: Packet) -> bool:
    """Whether the tester has said that the case is over."""
    found = None if packet.outgoing else header(packet)
    return found is not None and found[0] == UDP and found[1][8:] == LAST


def question(number: int, now: float, *, up: bool) -> bytes:
    """What asks whether the path works: numbered from 0, with the seconds since the case began."""
    return PING + f"{'up' if up else 'down'} {number} {now:.6f}".encode()


def disturbances(packets: Iterable[Packet]) -> list[tuple[float, float]]:
    """When the path did not work as usual, as the tester's questions show: spans of seconds.

    A question that is lost, or takes twice as long as the fastest, was asked while it did not. A
    link between box and tester is part of the path; so each question says when it was asked. A
    span begins with the last question before it that was answered in time, and ends with the
    first behind it; the end of the last one is infinite where there is none.
    """
    asked, came = _questions(packets)
    ways = {
        way: 2 * min((took for (at, _), took in came.items() if at == way), default=0.0) + 0.1
        for way in _WAYS
    }
    spans: list[tuple[float, float]] = []
    good, bad = 0.0, False
    for number, time in sorted(asked.items()):
        late = any(came.get((way, number), most + 1.0) > most for way, most in ways.items())
        if bad and not late:
            spans.append((good, time))
        good, bad = (good, late) if late else (time, False)
    return [*spans, (good, inf)] if bad else spans


def is_cut(packets: Iterable[Packet]) -> bool:
    """Whether nothing passed for a while: the tester's questions were lost, and not only late.

    A box stands before the link, so that it is the way from the server on which they are lost.
    """
    asked, came = _questions(packets)
    for way in _WAYS:
        lost = 0
        for number in sorted(asked):
            lost = 0 if (way, number) in came else lost + 1
            if lost == _IN_A_ROW:
                return True
    return False


def _questions(
    packets: Iterable[Packet],
) -> tuple[dict[int, float], dict[tuple[bytes, int], float]]:
    """When each question was asked, and how long it took each way, as far as it has come."""
    asked: dict[int, float] = {}
    came: dict[tuple[bytes, int], float] = {}
    for packet in packets:
        found = header(packet)
        words = None if found is None or found[0] != UDP else _QUESTION.fullmatch(found[1][8:])
        if words is None:
            continue
        way, which, when = words[1], int(words[2]), float(words[3])
        asked.setdefault(which, when)
        if packet.outgoing:
            came.setdefault((way, which), packet.time - when)
    return asked, came
