"""Codecs of what a box reads besides segments, which are TCP's: ICMP messages about segments."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.trace import Packet
from bentpipe_conformance.protocols.pep.codec import reports
from bentpipe_reference.pep.passing import ICMP, Passing

from bentpipe_fuzz.inputs.harness import Harness, Reading, scapy_payload
from bentpipe_fuzz.tcp.codecs import address, undetermined
from bentpipe_fuzz.tcp.codecs import read_by_reference as read_segment
from bentpipe_fuzz.tcp.codecs import read_by_scapy as scapy_segment
from bentpipe_fuzz.tcp.codecs import read_by_tester as judge_segment

_PASSING = Passing()
UNREACHABLE, TOO_BIG = 3, 4


def read_by_tester(packet: bytes) -> Reading:
    """A segment, or the ends, the number and the MTU that an ICMP message reports."""
    if packet[9:10] != bytes((ICMP,)):
        return judge_segment(packet)
    captured = Packet[Any](1, 0.0, "iut", False, None, packet)
    for found in reports([captured]):
        return *found.ends, found.seq, found.mtu if found.too_big else None
    return None


def read_by_reference(packet: bytes) -> Reading:
    """What the reference reads, likewise."""
    if packet[9:10] != bytes((ICMP,)):
        return read_segment(packet)
    found = _PASSING.report(packet) if _PASSING.protocol(packet) == ICMP else None
    if found is None:
        return None
    ends = found.ends
    local, remote = address(ends.local), address(ends.remote)
    return local, ends.local_port, remote, ends.remote_port, found.seq, found.mtu


def read_by_scapy(packet: bytes) -> Reading:
    """What Scapy's layers read, likewise."""
    if packet[9:10] != bytes((ICMP,)):
        return scapy_segment(packet)
    from scapy.layers import inet
    from scapy.utils import checksum

    found = scapy_payload(packet, whole=False)
    if found is None or inet.TCPerror not in found[0]:
        return None
    ip, message = found
    if message.type != UNREACHABLE or checksum(packet[ip.ihl * 4 : ip.len]):
        return None
    quoted, segment = ip[inet.IPerror], ip[inet.TCPerror]
    if quoted.version != 4 or quoted.ihl < 5:
        return None
    mtu = message.nexthopmtu if message.code == TOO_BIG else None
    return quoted.src, segment.sport, quoted.dst, segment.dport, segment.seq, mtu


HARNESS = Harness(read_by_tester, read_by_reference, read_by_scapy, undetermined)
