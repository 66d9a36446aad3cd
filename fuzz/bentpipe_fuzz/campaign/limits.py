"""Oracles about what an implementation may cost: octets, packets and memory.

=================  ==========================================================================
FUZZ-AMPLIFY       to an address that has proven nothing it sends at once at most three times the
                   octets that came from there, headers included (RFC 9000 section 8.1 has that
                   limit; STP/1 has it for everything)
FUZZ-WORK          packets that carry nothing new are bounded by what arrives, and by time
FUZZ-MEMORY        what it holds after a conversation is what it held before, within bounds
=================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.trace import Packet, Trace
from bentpipe_conformance.engine.verdict import Verdict

from bentpipe_fuzz.campaign.binding import Binding, Piece

AMPLIFY, WORK, MEMORY = "FUZZ-AMPLIFY", "FUZZ-WORK", "FUZZ-MEMORY"

MOST_AMPLIFIED = 3
AT_ONCE_S = 0.05
"""What leaves this soon after an arrival answers it; later a timer may have expired, and how often
an unanswered packet is repeated is the protocol's business."""

FREE = 100
"""Packets without anything new that nobody asks about."""
PER_ARRIVAL = 5
"""Of them for each arrival: a few packets for each acknowledgment. Besides, all that was new may be
sent again once, as a single report may say that a whole flight is missing."""
PER_SECOND = 50.0
"""Of them for each second in which timers may expire."""

MOST_KEPT = 128 << 10
"""Octets by which a reference may be larger long after a conversation than before it."""


def amplifies(trace: Trace[object], binding: Binding, error: float) -> Iterator[Finding]:
    """Whether more than three times what came went to an address that has not proven itself."""
    told: set[Hashable] = set()
    came = went = 0
    latest = 0.0
    for packet in trace.at("iut"):
        known = (
            frozenset()
            if packet.content is None
            else binding.proof(packet.content, packet.outgoing)
        )
        if packet.outgoing:
            if not came:
                return  # it knows whom it calls
            told |= known
            if packet.time - latest > AT_ONCE_S + error:
                continue
            went += len(packet.data)
            if went > MOST_AMPLIFIED * came:
                sentence = f"{came} octets brought about {went} to an address not proven"
                yield Finding(AMPLIFY, Verdict.FAIL, (packet.number,), sentence)
                return
        else:
            came, latest = came + len(packet.data), packet.time
            if not told.isdisjoint(known):
                return


def works(packets: Iterable[Packet[object]], pieces: Iterable[Piece]) -> Iterator[Finding]:
    """Whether packets that carry nothing new are bounded by arrivals and time."""
    fresh = set()
    reached: dict[object, int] = {}
    for piece in pieces:
        end = piece.start + len(piece.octets)
        if piece.outgoing and end > reached.get(piece.stream, 0):
            reached[piece.stream] = end
            fresh.add(piece.packet)
    idle = came = new = 0
    began: float | None = None
    for packet in packets:
        began = packet.time if began is None else began
        if not packet.outgoing:
            came += 1
        elif packet.number in fresh:
            new += 1
        else:
            idle += 1
            most = FREE + new + PER_ARRIVAL * came + PER_SECOND * (packet.time - began)
            if idle > most:
                sentence = f"{idle} packets without anything new after {came} arrivals"
                yield Finding(WORK, Verdict.FAIL, (packet.number,), sentence)
                return


def keeps(before: int | None, after: int | None) -> str:
    """What to say of the octets held before and after a conversation; empty when nothing."""
    if before is None or after is None or after - before <= MOST_KEPT:
        return ""
    return f"{after - before} octets are still held long after the conversation"
