"""States of a connection, as far as they differ for a packet that arrives."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_conformance.engine.lane import CLIENT
from bentpipe_conformance.protocols.pep.cases.steps import DEAF, SHORT
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, PSH

HOLE = 100
"""Octets that are missing where others are held behind them."""


@dataclass(frozen=True, slots=True)
class State:
    """What has happened before one end resets.

    Attributes:
        what: in words.
        writes, ends: which ends have written a stream, and have ended it: "it", the end of which
            the case speaks, or "the other".
        reads: which ends read.
        hole: whether octets of it lie behind a hole.
        wait: seconds between that and what is tried.
    """

    what: str
    writes: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    reads: bool = True
    hole: bool = False
    wait: float = 6.0


IT, OTHER = "it", "the other"

STATES = (
    State("nothing was said"),
    State("its octets are under way", writes=(IT,), wait=0.0),
    State("octets for it are under way", writes=(OTHER,), wait=0.0),
    State("its octets lie behind a hole", hole=True),
    State("what it has sent is not read", writes=(IT,), reads=False),
    State("it does not read", writes=(OTHER,), reads=False),
    State("it has ended", ends=(IT,)),
    State("the other has ended", ends=(OTHER,)),
    State("the other has ended, its octets behind a hole", ends=(OTHER,), hole=True),
    State("its FIN is under way", ends=(IT,), wait=0.0),
    State("it has ended what is not read", writes=(IT,), ends=(IT,), reads=False),
    State("the other has ended what it does not read", (OTHER,), (OTHER,), reads=False),
)
"""What may have happened to a connection."""

BOTH = (
    State("both have ended, and it does not read", (OTHER,), (IT, OTHER), reads=False),
    State("both have ended what is not read", (IT, OTHER), (IT, OTHER), reads=False),
)


def bring(peer: Peer, side: str, state: State) -> tuple[End, End, bytes]:
    """A new connection in a state: the end at a side, the other one, and octets not yet sent whole.

    Raises:
        NotReached: it does not open.
    """
    through = peer.connect(DEAF, DEAF)
    ends = (through.client, through.server)[:: 1 if side == CLIENT else -1]
    named = dict(zip((IT, OTHER), ends, strict=True))
    for end in ends if not state.reads else ():
        end.stop()
    for name in state.writes:
        named[name].write(peer.octets(SHORT))
    for name in state.ends:
        named[name].close()
    it, other = ends
    octets = peer.octets(4 * HOLE) if state.hole else b""
    if octets:
        it.segment(ACK | PSH, len(it.written) + HOLE, octets[HOLE:])
    peer.wait(state.wait)
    return it, other, octets
