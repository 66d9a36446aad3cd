"""What both ends do within a round trip, so that it crosses in the box or between two (PEP-RE)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bentpipe_conformance.engine.covering import Level, covering
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    SHORT,
    both_ways,
    established,
    quiet,
)
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN

_NONE = "none"
HELD = 9000
"""Octets that wait for an end that does not read: more than its window."""


def _writes(peer: Peer, end: End) -> None:
    if not end.closing:
        end.write(peer.octets(1500))


def _ends(_: Peer, end: End) -> None:
    end.close()


def _writes_and_ends(peer: Peer, end: End) -> None:
    if not end.closing:
        end.riding = end.closing = True
        end.write(peer.octets(700))


def _resets(_: Peer, end: End) -> None:
    end.reset()


def _reads(_: Peer, end: End) -> None:
    end.go_on()


def _calls_again(peer: Peer, end: End) -> None:
    """Its SYN, or its answer to one, comes once more, as if it had been on its way all the time."""
    end.segment(SYN if end.local[0] == peer.address else SYN | ACK, -1)


def _asks(_: Peer, end: End) -> None:
    end.segment(ACK, len(end.written) - 1 + end.end_acked)


EVENTS: Mapping[str, Callable[[Peer, End], None]] = {
    "writes": _writes, "ends": _ends, "writes and ends": _writes_and_ends, "resets": _resets,
    "reads again": _reads, "repeats its SYN": _calls_again, "asks": _asks,
}  # fmt: skip
"""What an end does; one that reads again has had octets waiting for it."""

ENDINGS = "writes", "writes and ends", "ends"
"""What nobody does who has ended its stream."""

APART = (-55, -30, -10, 3, 20, 45)
"""Per cent of the satellite's round trip by which the server does it after the client."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """What client and server do, and in which order.

    Attributes:
        ended: who has ended its stream long before, or "none".
        acts: of client and server.
        apart: per cent of a round trip between them.
    """

    ended: str
    acts: tuple[str, str]
    apart: int

    def __str__(self) -> str:
        before = "" if self.ended == _NONE else f"the {self.ended} has ended; "
        client, server = self.acts
        first = "the server first" if self.apart < 0 else "the client first"
        return f"{before}client {client}, server {server}, {first} by {abs(self.apart)} %"


def _permitted(row: Mapping[str, Level]) -> bool:
    """Whether who has ended does something else now."""
    return all(
        row.get("ended") != side or row.get(side, "asks") not in ENDINGS
        for side in (CLIENT, SERVER)
    )  # fmt: skip


CROSSINGS = tuple(
    Crossing(str(row["ended"]), (str(row[CLIENT]), str(row[SERVER])), int(row["apart"]))
    for row in covering(
        {CLIENT: tuple(EVENTS), SERVER: tuple(EVENTS), "apart": APART,
         "ended": (_NONE, CLIENT, SERVER)},
        _permitted,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part(Row):
    """Some crossings, one after another, beside a connection that goes on."""

    crossings: tuple[Crossing, ...] = ()


def _open(peer: Peer, crossing: Crossing) -> Through:
    """A connection on which octets wait for whoever is going to read again."""
    through = peer.connect(DEAF, DEAF)
    both_ways(peer, through, 800)
    ends = through.client, through.server
    for end, other, act in zip(ends, ends[::-1], crossing.acts, strict=True):
        if act == "reads again":
            end.stop()
            other.write(peer.octets(HELD))
    peer.wait(2 * peer.rtt + 1.0)
    for side, end, other in zip((CLIENT, SERVER), ends, ends[::-1], strict=True):
        if crossing.ended == side:
            end.close()
            peer.run(lambda it=other: it.ended, 4.0)  # type: ignore[misc]
    return through


def _cross(peer: Peer, crossing: Crossing) -> None:
    through = _open(peer, crossing)
    acts = [
        (end, EVENTS[act])
        for end, act in zip((through.client, through.server), crossing.acts, strict=True)
    ]
    first, second = acts if crossing.apart > 0 else acts[::-1]
    first[1](peer, first[0])
    peer.wait(abs(crossing.apart) / 100 * max(peer.rtt, 0.05))
    if not second[0].was_reset:
        second[1](peer, second[0])
    ends = through.client, through.server
    peer.run(lambda: any(end.was_reset for end in ends), 2 * peer.rtt + 1.5)
    if "resets" in crossing.acts:
        return
    for end in ends:
        end.go_on()
        end.close()
    peer.run(lambda: all(end.is_over for end in ends), 40.0)


def _drive(peer: Peer, part: Part) -> None:
    beside = established(peer)
    for crossing in part.crossings:
        _cross(peer, crossing)
        for end in (beside.client, beside.server):
            end.write(peer.octets(300))
    both_ways(peer, beside, SHORT)
    quiet(peer)


def _parts(most: int = 13) -> Iterator[Part]:
    for start in range(0, len(CROSSINGS), most):
        some = CROSSINGS[start : start + most]
        said = "\n".join(f"* {crossing}" for crossing in some)
        yield Part(
            f"established-crossings-{start // most + 1}",
            "Both ends do something within a round trip, on one connection after another, beside "
            f"another one that goes on.\n\n{said}",
            ("PEP-TR-001", "PEP-RE-003", "PEP-RE-017"), crossings=some,
        )  # fmt: skip


each(globals(), _parts(), _drive)
