"""What connections share over the satellite (PEP-FI-003)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.pep.cases.steps import both_ways, quiet
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK

OTHERS = 3
LOST, BEHIND, SMALL = 1000, 9000, 300
"""Octets: what is lost, what follows it closely, and what others send at a time."""

PIECE = 1400

FAILS_S = 0.05
"""Seconds in which the satellite link loses everything that is handed to it."""

TIMES, EVERY_S = 4, 0.15

SHORT_S = 0.2
"""Round trip below which duplicate acknowledgments repair so soon that no time shows it."""


@case("PEP-FI-003")
def test_segment_of_one_connection_lost_beside_others(peer: Peer) -> None:
    """A segment of one connection is lost on the satellite while others send; before, none was."""
    for back in (False, True):
        found = [peer.connect() for _ in range(1 + OTHERS)]
        for through in found:
            both_ways(peer, through, 3000)
        quiet(peer, 2.0)
        ends = [it.server if back else it.client for it in found]
        for loses in (False, False, True, True):
            _burst(peer, ends[0], ends[1:], loses=loses)


def _burst(peer: Peer, first: End, others: list[End], *, loses: bool) -> None:
    """Each sends a little; the first segment of all is lost."""
    if loses:
        peer.lane.alter_link(loss_probability=1.0)
    _say(peer, first, LOST)
    peer.wait(FAILS_S)
    if loses:
        peer.lane.alter_link(loss_probability=0.0)
    if peer.rtt >= SHORT_S:
        _say(peer, first, BEHIND)
    for _ in range(TIMES):
        for other in others:
            _say(peer, other, SMALL)
        peer.wait(EVERY_S)
    quiet(peer, 4.0)


def _say(peer: Peer, end: End, count: int) -> None:
    """Octets without PSH, which need not leave at once (PEP-TR-019) while some are lost."""
    octets = peer.octets(count)
    at = len(end.written)
    end.skip(octets)
    for start in range(0, count, PIECE):
        end.segment(ACK, at + start, octets[start : start + PIECE])
