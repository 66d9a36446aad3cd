"""How exact the bed is: delay, rate and loss of a link laid out here and now.

The kernel's ICMP echo behind the link answers the pings that measure the delay; bursts of UDP each
way measure the rates. Every run checks its bed first, since no verdict is more exact than the bed.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.common.link.profile import Direction, LinkProfile

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.lanes import IUT_ADDRESS, Attachment, KernelLane

PINGS = 20
PING_OCTETS = 84
PING_GAP = 0.02
"""Seconds between pings; more where serialising one takes longer."""
BURST_OCTETS = 500
BURST_SECONDS = 0.4
SMALLEST_BURST, LARGEST_BURST = 4, 30
GRACE = 2.0
"""Seconds to wait beyond the time a packet should take before it counts as lost."""
SMALLEST_ERROR = 1e-6
RATE_TOLERANCE = 0.02
ATTEMPTS = 3
"""How often a faulty bed is measured: on the wall clock a busy moment of the machine passes. The
timing error of each case is measured on its own packets, whatever the outcome of this check."""
PORT = 9
ICMP, UDP = 1, 17
ECHO_REQUEST, ECHO_REPLY = 8, 0


@dataclass(frozen=True, slots=True)
class BedReport:
    """What the bed's check measured.

    Attributes:
        place: ``uml-virtual``, ``uml`` or ``host``.
        profile: the link's identifier.
        rtt_expected: seconds that a ping should take, with its serialisation both ways.
        rtt_mean: seconds that it took on average.
        rtt_error_mean, rtt_error_p99: mean and 99th percentile of the differences, seconds.
        forward_bit_s, return_bit_s: rates measured towards the tester and towards the
            implementation; None if unlimited.
        forward_expected, return_expected: the profile's rates; None if unlimited.
        sent, lost: packets sent by the check, and those of them that did not arrive.
        lossy: whether the profile itself loses packets.
        timing_error: seconds by which a time taken in this bed may be wrong.
        attempts: how often it was measured until it showed no fault.
    """

    place: str
    profile: str
    rtt_expected: float
    rtt_mean: float
    rtt_error_mean: float
    rtt_error_p99: float
    forward_bit_s: float | None
    return_bit_s: float | None
    forward_expected: float | None
    return_expected: float | None
    sent: int
    lost: int
    lossy: bool
    timing_error: float
    attempts: int = 1

    def faults(self) -> tuple[str, ...]:
        """What is wrong with the bed, a sentence each; empty when it may be used."""
        found = []
        if self.lost and not self.lossy:
            found.append(
                f"The bed lost {self.lost} of {self.sent} packets; let the machine rest or choose "
                "a slower link."
            )
        for way, measured, expected in (
            ("to the tester", self.forward_bit_s, self.forward_expected),
            ("to the implementation", self.return_bit_s, self.return_expected),
        ):
            if measured and expected and abs(measured / expected - 1) > RATE_TOLERANCE:
                found.append(
                    f"The bed's rate {way} is {measured / 1e3:.1f} kb/s instead of "
                    f"{expected / 1e3:.1f}; let the machine rest or choose a slower link."
                )
        return tuple(found)


def measure(
    profile: LinkProfile, once: Callable[[LinkProfile], BedReport] | None = None
) -> BedReport:
    """Measure a link in this place, again while it shows a fault, at most :data:`ATTEMPTS` times.

    Raises:
        BedError: it cannot be laid out, or nothing arrives.
    """
    for attempt in range(1, ATTEMPTS + 1):
        report = replace((once or measure_once)(profile), attempts=attempt)
        if not report.faults():
            break
    return report


def measure_once(profile: LinkProfile) -> BedReport:
    """Lay out a link in this place, measure it, take it down.

    Raises:
        BedError: it cannot be laid out, or nothing arrives.
    """
    with KernelLane(profile, Attachment("namespace", ())) as lane:
        times, lost = _round_trips(lane, profile)
        forward, forward_lost = _rate_to_tester(lane, profile)
        back, back_lost = _rate_to_iut(lane, profile)
    if not times:
        raise BedError(
            "Nothing came back through the bed's link; "
            "update or rebuild its kernel with `bentpipe bed build`."
        )
    expected = _expected(profile)
    errors = [abs(time - expected) for time in times]
    p99 = percentile(errors, 0.99)
    to_tester, to_iut = profile.forward, profile.return_
    return BedReport(
        place=os.environ.get("BENTPIPE_PLACE", "host"),
        profile=profile.id,
        rtt_expected=expected,
        rtt_mean=sum(times) / len(times),
        rtt_error_mean=sum(errors) / len(errors),
        rtt_error_p99=p99,
        forward_bit_s=forward,
        return_bit_s=back,
        forward_expected=to_tester.rate_bit_s,
        return_expected=to_iut.rate_bit_s,
        sent=PINGS + _burst(to_tester) + _burst(to_iut),
        lost=lost + forward_lost + back_lost,
        lossy=bool(to_tester.loss_probability or to_iut.loss_probability),
        timing_error=max(p99, SMALLEST_ERROR),
    )


def _round_trips(lane: KernelLane, profile: LinkProfile) -> tuple[list[float], int]:
    """Ping; the times of those that came back, and how many did not."""
    address, port, expected = lane.begin(), lane.port, _expected(profile)
    ways = profile.forward, profile.return_
    gap = max(PING_GAP, *(2 * _serialising(way, PING_OCTETS) for way in ways))
    sent: dict[int, float] = {}
    times: list[float] = []
    due = port.now()
    for number in range(PINGS + 1):
        last = number == PINGS
        deadline = due + number * gap if not last else port.now() + expected + GRACE
        while (arrival := port.receive(deadline)) is not None:
            identifier = _echo_reply(arrival[1])
            if identifier in sent:
                times.append(arrival[0] - sent.pop(identifier))
            if last and not sent:
                break
        if not last:
            sent[number] = port.now()
            port.send(ping(address, number))
    lane.end()
    return times, len(sent)


def _rate_to_tester(lane: KernelLane, profile: LinkProfile) -> tuple[float | None, int]:
    address = lane.begin()
    count = _burst(profile.forward)
    assert lane.iut_namespace is not None
    with lane.iut_namespace.entered(), socket.socket(type=socket.SOCK_DGRAM) as sender:
        for _ in range(count):
            sender.sendto(bytes(BURST_OCTETS - 28), (address, PORT))
    return _rate(lane, profile.forward, count, outgoing=True)


def _rate_to_iut(lane: KernelLane, profile: LinkProfile) -> tuple[float | None, int]:
    address = lane.begin()
    count = _burst(profile.return_)
    for _ in range(count):
        lane.port.send(datagram(address, BURST_OCTETS))
    return _rate(lane, profile.return_, count, outgoing=False)


def _rate(
    lane: KernelLane, way: Direction, count: int, *, outgoing: bool
) -> tuple[float | None, int]:
    """Let a burst arrive; its rate and how many packets of it were lost."""
    needed = way.delay_s + count * _serialising(way, BURST_OCTETS)
    deadline = lane.port.now() + needed + 0.05
    while lane.port.receive(deadline) is not None:
        pass
    end = "peer" if outgoing else "iut"
    arrived = [
        packet.time
        for packet in lane.end()
        if (packet.point, packet.outgoing) == (end, outgoing)
        and (packet.data[9], len(packet.data)) == (UDP, BURST_OCTETS)
    ]
    span = arrived[-1] - arrived[0] if len(arrived) > 1 else 0.0
    limited = way.rate_bit_s is not None and span
    rate = 8 * BURST_OCTETS * (len(arrived) - 1) / span if limited else None
    return rate, count - len(arrived)


def _burst(way: Direction) -> int:
    """How many packets measure the rate soon and without overflowing the queue."""
    if way.rate_bit_s is None:
        return SMALLEST_BURST
    fitting = int(BURST_SECONDS * way.rate_bit_s / (8 * BURST_OCTETS))
    return max(SMALLEST_BURST, min(fitting, LARGEST_BURST, way.queue_packets))


def _serialising(way: Direction, octets: int) -> float:
    return 0.0 if way.rate_bit_s is None else 8 * octets / way.rate_bit_s


def _expected(profile: LinkProfile) -> float:
    ways = profile.forward, profile.return_
    return profile.round_trip_s + sum(_serialising(way, PING_OCTETS) for way in ways)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that ``share`` of the values do not exceed; 0 without values."""
    ordered: list[float] = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def ping(source: str, number: int, to: str = IUT_ADDRESS) -> bytes:
    """An ICMP echo request of :data:`PING_OCTETS` to the implementation."""
    body = struct.pack("!BBHHH", ECHO_REQUEST, 0, 0, 1, number) + bytes(PING_OCTETS - 28)
    body = body[:2] + struct.pack("!H", internet_checksum(body)) + body[4:]
    return _packet(source, to, ICMP, body)


def datagram(source: str, octets: int) -> bytes:
    """A UDP datagram of ``octets``, IP header included, to the implementation."""
    # A UDP checksum of zero means none.
    header = struct.pack("!HHHH", PORT, PORT, octets - 20, 0)
    return _packet(source, IUT_ADDRESS, UDP, header + bytes(octets - 28))


def _packet(source: str, to: str, protocol: int, body: bytes) -> bytes:
    addresses = socket.inet_aton(source) + socket.inet_aton(to)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0) + addresses
    return header[:10] + struct.pack("!H", internet_checksum(header)) + header[12:] + body


def _echo_reply(packet: bytes) -> int:
    """The sequence number of an ICMP echo reply, -1 for any other packet."""
    if len(packet) < 28 or packet[9] != ICMP or packet[20] != ECHO_REPLY:
        return -1
    return int.from_bytes(packet[26:28], "big")


def profile_from_json(text: str) -> LinkProfile:
    """A profile from the JSON of its fields."""
    fields: dict[str, Any] = json.loads(text)
    forward, back = Direction(**fields.pop("forward")), Direction(**fields.pop("return_"))
    return LinkProfile(**fields, forward=forward, return_=back)


def main(arguments: Sequence[str]) -> int:
    """``python -m bentpipe_conformance.bed.check PROFILE-JSON``: print the report as JSON."""
    try:
        print(json.dumps(asdict(measure(profile_from_json(arguments[0])))))
    except BedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
