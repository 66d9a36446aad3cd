"""Resets of either end in each state of a connection (PEP-RE-006, PEP-RE-007)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.states import BOTH, STATES, State, bring
from bentpipe_conformance.protocols.pep.cases.steps import quiet
from bentpipe_conformance.protocols.pep.peer import Peer


@dataclass(frozen=True, slots=True)
class Part(Row):
    """An end that resets in each state, on a connection of its own."""

    side: str = CLIENT
    states: tuple[State, ...] = STATES


def _reset(peer: Peer, side: str, state: State) -> None:
    it, other, _ = bring(peer, side, state)
    it.reset()
    peer.run(lambda: other.was_reset, 4.0 + 2 * peer.rtt)
    peer.wait(1.0)


def _drive(peer: Peer, part: Part) -> None:
    for state in part.states:
        _reset(peer, part.side, state)
    quiet(peer)


def _parts() -> Iterator[Part]:
    confirmed, local = ("end=confirmed",), ("end=local", "satellite=none|tcp")
    tables = (
        ("", STATES, (), ("PEP-RE-006", "PEP-RE-007")),
        ("-once-both-have-ended", BOTH, confirmed, ("PEP-RE-006",)),
        # What else is acknowledged by itself leaves no way for a reset, see decision 139.
        ("-once-both-have-ended-locally", BOTH, local, ("PEP-RE-005", "PEP-RE-006")),
    )
    for side in (CLIENT, SERVER):
        for name, states, needs, requirements in tables:
            said = "\n".join(f"* {state.what}" for state in states)
            yield Part(
                f"established-{side}-resets{name}",
                f"The {side} resets one connection after another, each when\n\n{said}",
                requirements, needs, side=side, states=states,
            )  # fmt: skip


each(globals(), _parts(), _drive)
