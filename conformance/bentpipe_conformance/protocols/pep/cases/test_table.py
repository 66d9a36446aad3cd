"""The table of calls: each pair of what may happen in one (PEP-OP, PEP-RE, PEP-FB)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.calls import BACKLOGS, CALLS, Call, play
from bentpipe_conformance.protocols.pep.cases.steps import quiet
from bentpipe_conformance.protocols.pep.peer import Peer

EIGHT = 8


@dataclass(frozen=True, slots=True)
class Part(Row):
    """Some rows of the table, one after another."""

    calls: tuple[Call, ...] = ()


def _parts(name: str, title: str, table: Sequence[Call]) -> Iterator[Part]:
    for start in range(0, len(table), EIGHT):
        calls = tuple(table[start : start + EIGHT])
        said = "\n".join(f"* {call}" for call in calls)
        yield Part(
            f"{name}-{start // EIGHT + 1}", f"{title}.\n\n{said}",
            ("PEP-RE-003", "PEP-RE-004", "PEP-RE-017"), calls=calls,
        )  # fmt: skip


def _drive(peer: Peer, part: Part) -> None:
    for call in part.calls:
        play(peer, call)
        peer.wait(1.0)
    quiet(peer)


each(globals(), _parts("closed-calls", "Calls of the table, one after another", CALLS), _drive)
each(
    globals(),
    _parts("stopped-calls", "Long streams whose receivers do not read before they end", BACKLOGS),
    _drive,
)
