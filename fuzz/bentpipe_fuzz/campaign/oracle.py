"""What must hold in every conversation, whatever the protocol, besides the suite's checkers.

=================  ==========================================================================
FUZZ-ALIVE         the implementation neither ends nor hangs
FUZZ-SERVES        after the conversation, on a good link, a new connection is served
FUZZ-STREAM        an octet of a stream never changes; what is echoed had been sent
FUZZ-BOUNDED       it does not send without end
FUZZ-QUIET         once the tester has forgotten a conversation and said so, it falls silent
=================  ==========================================================================

Those about what an implementation may cost are in :mod:`.limits`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.trace import Packet, Trace
from bentpipe_conformance.engine.verdict import Verdict

from bentpipe_fuzz.campaign.binding import Binding, Piece
from bentpipe_fuzz.campaign.limits import amplifies, works

ALIVE, SERVES, STREAM = "FUZZ-ALIVE", "FUZZ-SERVES", "FUZZ-STREAM"
BOUNDED, QUIET = "FUZZ-BOUNDED", "FUZZ-QUIET"

MOST_AT_ONCE = 10_000
"""Packets of the implementation between two arrivals; no buffer of a reference holds as many, not
even RWBP's in segments of 48 octets."""


FARTHEST = 8 << 20
"""Octets of a stream that are looked at."""


def violated(oracle: str, sentence: str, *packets: int) -> Finding:
    """A finding of an oracle of this module."""
    return Finding(oracle, Verdict.FAIL, packets, sentence)


class _Stream:
    """The octets of one direction, which of them are known, and what else was said of one."""

    def __init__(self) -> None:
        self._octets = bytearray()
        self._known = bytearray()
        self._others: dict[int, set[int]] = {}

    def agrees(self, start: int, octets: bytes, *, whole: bool = False) -> bool:
        """Whether the octets that are known are these; with ``whole``, all are known.

        Of a place of which the tester has said several things, any of them will do.
        """
        end = start + len(octets)
        known = self._known[start:end]
        if 0 not in known and len(known) == len(octets) and self._octets[start:end] == octets:
            return True
        if whole and (0 in known or len(known) < len(octets)):
            return False
        return all(
            self._octets[start + at] == octets[at]
            or octets[at] in self._others.get(start + at, ())
            for at, is_known in enumerate(known) if is_known
        )  # fmt: skip

    def add(self, start: int, octets: bytes) -> None:
        """These octets are known from now on, beside what was known there."""
        end = start + len(octets)
        if missing := max(0, end - len(self._octets)):
            self._octets += bytes(missing)
            self._known += bytes(missing)
        if 1 in self._known[start:end] and self._octets[start:end] != octets:
            for at, now in enumerate(octets, start):
                if self._known[at] and self._octets[at] != now:
                    self._others.setdefault(at, set()).add(self._octets[at])
        self._octets[start:end] = octets
        self._known[start:end] = b"\1" * len(octets)


def streams_hold(pieces: Iterable[Piece]) -> Iterator[Finding]:
    """The first packet whose data is not what the stream had at its place, or what was sent."""
    streams: dict[tuple[object, bool], _Stream] = {}
    for piece in pieces:
        if piece.start + len(piece.octets) > FARTHEST:
            continue
        own = streams.setdefault((piece.stream, piece.outgoing), _Stream())
        if piece.outgoing:
            if not own.agrees(piece.start, piece.octets):
                yield violated(STREAM, "sent again, the data was another", piece.packet)
                return
            theirs = streams.setdefault((piece.stream, False), _Stream())
            if piece.echoes and not theirs.agrees(piece.start, piece.octets, whole=True):
                yield violated(STREAM, "echoed data had not been sent", piece.packet)
                return
        own.add(piece.start, piece.octets)


def is_bounded(packets: Iterable[Packet[object]]) -> Iterator[Finding]:
    """Whether there are at most :data:`MOST_AT_ONCE` packets without an arrival."""
    count = 0
    for packet in packets:
        count = count + 1 if packet.outgoing else 0
        if count > MOST_AT_ONCE:
            yield violated(BOUNDED, f"{count} packets without an arrival", packet.number)
            return


def universal(trace: Trace[object], binding: Binding, died: str) -> Iterator[Finding]:
    """What the oracles that read packets find, and the end of the implementation."""
    if died:
        yield violated(ALIVE, f"the implementation ended: {died}")
    yield from is_bounded(trace.at("iut"))
    pieces = list(binding.pieces(trace))
    yield from streams_hold(pieces)
    yield from works(trace.at("iut"), pieces)
    yield from amplifies(trace, binding, trace.timing_error)


Signature = tuple[str, str, str]
"""A requirement or oracle, the state of the connection, and the packet that was answered."""


def covered(trace: Trace[object], binding: Binding) -> list[tuple[int, str, str]]:
    """Of each packet that arrived: its number, the state that it met, and what it was."""
    found = []
    state = ""
    for packet in trace.at("iut"):
        if packet.content is None:
            label = "?"
            if not packet.outgoing:
                found.append((packet.number, state, label))
            continue
        if not packet.outgoing:
            found.append((packet.number, state, binding.label(packet.content)))
        state = binding.follow(state, packet.content, packet.outgoing)
    return found


def signature(finding: Finding, arrivals: list[tuple[int, str, str]]) -> Signature:
    """What a finding is sorted by: findings of one signature are taken for one defect."""
    last = ("", "")
    limit = finding.packets[0] if finding.packets else math.inf
    for number, state, label in arrivals:
        if number > limit:
            break
        last = state, label
    return finding.requirement, *last
