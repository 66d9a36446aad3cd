"""Checkers of what a path carries at most (PEP-PC-005, PEP-PC-007)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.pep.checkers import (
    Context,
    all_octets,
    of_relay,
    watched,
)
from bentpipe_conformance.protocols.pep.codec import Report
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.stream import Stream

ADAPTS_S = 130.0
_FLAGS, _DONT_FRAGMENT = 6, 0x40
"""Of an IPv4 header (RFC 791)."""
SMALLEST_MTU = 68
"""Octets that every link carries (RFC 791); a message that names less names no size."""


@of_relay("PEP-PC-005")
def smaller_packets(relay: Relay, context: Context) -> Iterator[Finding]:
    """A smaller packet is sent when that is asked for."""
    # Exercised by an ICMP message that a segment of the box was too big.
    for report, stream in _too_big(relay):
        if stream.sink is None or stream.last is None:
            continue
        late = [
            it for it in stream.sink.segments
            if it.outgoing and it.time - report.time > relay.crossing_s + 1.0
            and len(it.packet.data) > report.mtu >= SMALLEST_MTU
            and it.packet.data[_FLAGS] & _DONT_FRAGMENT  # else a router makes it fit
        ]  # fmt: skip
        if late:
            yield context.violated(
                f"packets of {len(late[0].packet.data)} octets are sent after the message", late[0],
                report, expected=f"packets of at most {report.mtu} octets", actual="larger ones",
            )  # fmt: skip
            continue
        yield from all_octets(
            stream.last.delivered, stream.last.arrived, report, context,
            missed=watched(relay, report.time, ADAPTS_S),
            good="smaller packets deliver the stream",
            bad="the stream is not delivered after the message",
        )  # fmt: skip


@of_relay("PEP-PC-007")
def packet_sizes_of_one_side(relay: Relay, context: Context) -> Iterator[Finding]:
    """One side's packet size is not the other's."""
    # Exercised by an ICMP message that a segment of the box was too big.
    for report, stream in _too_big(relay):
        side = stream.source.side
        passed = next(
            (it for it in relay.scene.reports
             if it.packet.outgoing and it.packet.side == side and it.too_big
             and it.packet.number > report.packet.number),
            None,
        )  # fmt: skip
        back = relay.opposite(stream)
        small = _largest(back, after=report) if back is not None else None
        before = _largest(back, before=report) if back is not None else None
        later = _smallest_later(relay, side, report)
        small = min((it for it in (small, later) if it is not None), default=None)
        if passed is not None:
            yield context.violated(
                "a message about a packet of the box is passed on", passed, report,
                expected="the box itself sends smaller packets", actual="the message",
            )  # fmt: skip
        elif small is not None and before is not None and small <= report.mtu < before:
            yield context.violated(
                f"packets to the {side} have become smaller, too", report,
                expected=f"packets of {before} octets there", actual=f"{small}",
            )  # fmt: skip
        elif relay.scene.until - report.time > 3.0:
            yield context.holds("the message is kept to its side", report)


def _too_big(relay: Relay) -> Iterator[tuple[Report, Stream]]:
    """Messages about segments of the box that are outstanding, with the stream that these carry."""
    for report in relay.scene.reports:
        if report.packet.outgoing or not report.too_big:
            continue
        for stream in relay.streams:
            sink = stream.sink
            if sink is None or report.packet.side != sink.side:
                continue
            if sink.is_guess(report.seq, report.packet):
                continue
            acked = sink.acked_before(report.packet.number)
            if any(
                it.outgoing and it.tcp.seq == report.seq and it.payload and it.end > acked
                and it.packet.number < report.packet.number
                for it in sink.segments
            ):  # fmt: skip
                yield report, stream


def _smallest_later(relay: Relay, side: str, report: Report) -> int | None:
    """Octets of the largest packet to a side in each later connection of the same hosts, the least.

    None without one, or once that side has been reported as narrow, too.
    """
    narrow = _narrow_since(relay.scene, side)
    of_hosts = _largest_by_hosts(relay.scene).get((_hosts(relay), side), ())
    return min(
        (largest for first, last, largest in of_hosts
         if report.packet.number < first and last < narrow),
        default=None,
    )  # fmt: skip


def _hosts(relay: Relay) -> tuple[str, str]:
    return relay.client.ends[0], relay.client.ends[2]


@remembered
def _narrow_since(scene: Scene, side: str) -> float:
    """Number of the first message that a packet was too big for a side, infinity without one."""
    return min(
        (it.packet.number for it in scene.reports
         if it.too_big and it.packet.side == side and not it.packet.outgoing),
        default=math.inf,
    )  # fmt: skip


@remembered
def _largest_by_hosts(
    scene: Scene,
) -> Mapping[tuple[tuple[str, str], str], Sequence[tuple[int, int, int]]]:
    """First and last packet of each connection and its largest to a side, by hosts and side."""
    found: dict[tuple[tuple[str, str], str], list[tuple[int, int, int]]] = {}
    for relay in scene.relays:
        for stream in relay.streams:
            largest = _largest(stream)
            if stream.sink is not None and largest is not None:
                span = relay.client.packets[0].number, relay.packets[-1].number
                key = _hosts(relay), stream.sink.side
                found.setdefault(key, []).append((*span, largest))
    return found


def _largest(
    stream: Stream, *, before: Report | None = None, after: Report | None = None
) -> int | None:
    """Octets of the largest packet of a stream that the box has sent, None of less than ten."""
    sizes = [
        len(it.packet.data) for it in (stream.sink.segments if stream.sink else ())
        if it.outgoing and it.payload
        and (before is None or it.packet.number < before.packet.number)
        and (after is None or it.time > after.time + 1.0)
    ]  # fmt: skip
    return max(sizes) if len(sizes) >= 10 else None
