"""What the checkers of several groups ask."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.codec import END, R, Stp
from bentpipe_conformance.protocols.stp.ports import CHARGEN, DISCARD, ECHO
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.prepared import Prepared
from bentpipe_conformance.protocols.stp.replay.retransmission import Retransmissions
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips
from bentpipe_conformance.protocols.stp.replay.window import largest_smss
from bentpipe_conformance.protocols.stp.replay.window_bound import Bounded

DUE_S = 0.1
"""Seconds within which answers are due, where packets enter and leave the IUT (section 8)."""


@dataclass(frozen=True, slots=True)
class At:
    """A bare packet, to be named as evidence."""

    packet: Packet


def sent_packets(flow: Flow) -> Iterator[tuple[At, Stp]]:
    """Everything the IUT sent, malformed or not."""
    return (
        (At(packet), packet.content)
        for packet in flow.packets
        if packet.outgoing and packet.content
    )


def heard_packets(flow: Flow) -> Iterator[tuple[At, Stp]]:
    """Everything that reached the IUT, malformed or not."""
    return (
        (At(packet), packet.content)
        for packet in flow.packets
        if not packet.outgoing and packet.content
    )


def ends_sent(flow: Flow) -> list[tuple[At, Stp]]:
    """The ENDs without R flag by which the IUT ended this connection."""
    return [
        (at, stp) for at, stp in sent_packets(flow)
        if stp.type == END and not stp.flags & R and not stp.fault and stp.csn == flow.iut_csn
        and stp.peer_csn in (flow.tester_csn, 0)
    ]  # fmt: skip


_WITH_AN = ("END", "ENDAK", "SD", "SDP")
"""Types that are read letter by letter, or begin with a vowel."""


def name(stp: Stp) -> str:
    """A packet's type with its article."""
    return f"{'an' if stp.name in _WITH_AN else 'a'} {stp.name}"


def answers(flow: Flow, at: At, kinds: tuple[int, ...], within: float = DUE_S) -> list[At]:
    """The IUT's packets of these types from a moment on, in time (and timing error) to be due."""
    start = at.packet.time
    found = flow.after(start, within + flow.timing_error)
    return [
        At(packet)
        for packet in found
        if packet.number > at.packet.number and packet.content and packet.content.type in kinds
    ]


def observed_long_enough(flow: Flow, at: At, within: float = DUE_S) -> bool:
    """Whether the capture of the connection goes on past the time an answer is due."""
    return flow.until >= at.packet.time + within + flow.timing_error


def proven_at(flow: Flow) -> int | None:
    """Frame number of the BGAK or STAT by which the peer showed that it receives (STP-SEC-001)."""
    reports = [report.packet.number for report in flow.reports_heard if not report.fault]
    bgaks = [
        packet.number
        for packet in flow.bgaks
        if not packet.outgoing
        and packet.content is not None
        and packet.content.peer_csn == flow.iut_csn
    ]
    return min((*reports, *bgaks), default=None)


def unproven_until(flow: Flow) -> float:
    """Until when STP-SEC-001 may have held the IUT back, seconds; infinity for always."""
    if flow.iut_calls:
        return -math.inf
    number = proven_at(flow)
    times = (packet.time for packet in flow.packets if packet.number == number)
    return next(times, math.inf)


RATE_TOLERANCE = 4
"""Packets by which a maximum rate may be exceeded in a tenth of a second (STP-CG-009)."""


def rate_gap(flow: Flow, context: Context) -> float:
    """Seconds for which a declared maximum rate may hold an SD back; 0 without one.

    A sender that has used its tolerance waits until it is gained again.
    """
    rate = int(context.ics.get("rate_limit_bps", 0))
    if rate <= 0:
        return 0.0
    return (RATE_TOLERANCE + 1) * 8 * largest_packet(flow) / rate


def largest_packet(flow: Flow) -> int:
    """Octets of the IP packet of an SD of SMSS octets; 0 when there was no SD."""
    headers = [len(sd.packet.data) - len(sd.stp.data) for sd in flow.sds_sent]
    return max(headers) + largest_smss(flow) if headers else 0


def user_may_abort(flow: Flow) -> bool:
    """Whether an abort of the IUT can be its user's: the services of section 11 never abort."""
    return flow.iut_calls or flow.service not in (ECHO, DISCARD, CHARGEN)


def path_class(context: Context) -> str:
    """The path class of section 8 that the IUT's timers are set for."""
    return str(context.ics.get("path_class", "geo"))


def round_trips_of(context: Context) -> RoundTrips:
    """What the IUT can have measured on the connection."""
    return _prepared(context).round_trips(path_class(context))


def retransmissions_of(context: Context) -> Retransmissions:
    """What was neglected on the connection, and what was sent unasked."""
    return _prepared(context).retransmissions(path_class(context))


def bounded_of(context: Context) -> Sequence[Bounded]:
    """Every SD of the connection with the largest window the rules permit."""
    return _prepared(context).bounded(path_class(context))


def _prepared(context: Context) -> Prepared:
    found: Prepared = context.prepared
    return found
