"""What the ends do while the satellite link carries nothing (PEP-PC, section 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.steps import DEAF, asking, both_ways, quiet
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer, Through

HELD = 9000
REPAIRED_S = 140.0
"""Seconds behind an outage of 60 s in which everything is repaired."""


def _writes(peer: Peer, end: End) -> None:
    end.write(peer.octets(3000))


def _ends(_: Peer, end: End) -> None:
    end.close()


def _writes_and_ends(peer: Peer, end: End) -> None:
    end.riding = end.closing = True
    end.write(peer.octets(500))


def _reads(_: Peer, end: End) -> None:
    end.go_on()


def _stops(_: Peer, end: End) -> None:
    end.stop()


ACTS: Mapping[str, Callable[[Peer, End], None]] = {
    "writes": _writes, "ends": _ends, "writes and ends": _writes_and_ends, "reads again": _reads,
    "stops": _stops,
}  # fmt: skip
"""What an end does during an outage."""


@dataclass(frozen=True, slots=True)
class Outage(Row):
    """An outage, during which each connection sees something else.

    Attributes:
        seconds: for which nothing passes.
        half_closed: whether the other end of each has ended its stream before.
    """

    seconds: float = 0.0
    half_closed: bool = False


def _open(peer: Peer, act: str, which: int, *, half_closed: bool) -> tuple[Through, End, End]:
    through = peer.connect(DEAF, DEAF)
    both_ways(peer, through, 800)
    ends = through.client, through.server
    end, other = ends[which], ends[1 - which]
    if act == "reads again":
        end.stop()
        other.write(peer.octets(HELD))
    if half_closed:
        other.close()
    return through, end, other


def _drive(peer: Peer, row: Outage) -> None:
    asking(peer, 3.0)
    acts = list(product(ACTS, (0, 1)))
    found = [_open(peer, act, which, half_closed=row.half_closed) for act, which in acts]
    asking(peer, 2 * peer.rtt + 2.0)
    peer.lane.alter_link(loss_probability=1.0)
    asking(peer, row.seconds / 3)
    for (act, _), (_, end, other) in zip(acts, found, strict=True):
        ACTS[act](peer, end)
        if act == "stops" and not other.closing:
            other.write(peer.octets(HELD))
    port, listener = peer.listen()
    client = peer.call(port)
    asking(peer, row.seconds * 2 / 3)
    peer.lane.alter_link(loss_probability=0.0)
    asking(peer, 3.0)
    peer.run(lambda: client.established and bool(listener.ends), 60.0)
    client.write(peer.octets(2000))
    both = [it for through, *_ in found for it in (through.client, through.server)]
    both += [client, *listener.ends[-1:]]
    for end in both:
        end.go_on()
        if not end.closing:
            end.write(peer.octets(700))
            end.close()
    peer.run(lambda: all(end.is_over for end in both), REPAIRED_S)
    quiet(peer)


def _rows() -> Iterator[Outage]:
    for seconds, half_closed in product((6, 20, 60), (False, True)):
        which = ", half closed" if half_closed else ""
        yield Outage(
            f"outage-of-{seconds}-seconds-and-what-the-ends-do{'-half-closed' * half_closed}",
            f"Nothing passes for {seconds} s; meanwhile ends of open connections{which}, write, "
            "end, read again or stop, and a client calls.",
            ("PEP-PC-001", "PEP-PC-002", "PEP-RE-004"), seconds=float(seconds),
            half_closed=half_closed,
        )  # fmt: skip


each(globals(), _rows(), _drive)
