"""The nonsense probe: is the adapter telling the truth, before any verdict is given?

An adapter that answers everything with success would pass every case; one that reaches nothing
would make everything inconclusive. The probe therefore asks for things that must work *and* for
one that must not, and compares the declared conformance statement with the handshake. What is
asked of a protocol is in its module ``probe``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.peer import NotReached, ScriptedPeer
from bentpipe_conformance.engine.settings import RunSettings

UNUSED_PORT = 47
"""A port no upper tester serves (reserved, IANA service name registry)."""

ECHO_TEXT = b"bentpipe asks for these very octets back: 3.14159 2.71828 1.41421 ~!@#\r\n"


@dataclass(frozen=True, slots=True)
class Probe:
    """What the probe found.

    Attributes:
        problem: one sentence when the adapter cannot be trusted, else empty.
        observed: conformance-statement items as seen in the handshake.
        disagreements: sentences on items where the statement and the handshake differ.
    """

    problem: str = ""
    observed: dict[str, Any] = field(default_factory=dict)
    disagreements: tuple[str, ...] = ()


def examine(
    lane: Lane,
    settings: RunSettings,
    peer: ScriptedPeer,
    questions: Callable[[], dict[str, Any]],
    roles: Collection[str] = (),
) -> Probe:
    """Ask the questions of a suite and compare what was observed with the statement.

    Args:
        lane: the lane, on which a case was begun; it is ended here.
        settings: the run's settings.
        peer: the tester.
        questions: asks, and returns items as observed; raises :class:`NotReached` when an answer
            shows that the adapter cannot be trusted.
        roles: items that say how a negotiated feature is used: negotiated, they may be denied.
    """
    try:
        observed = questions()
    except NotReached as error:
        died = lane.iut_alive()
        cause = f"; the implementation ended: {died}" if died else ""
        return Probe(problem=f"{error}{cause}")
    finally:
        peer.finish()
        lane.end()
    disagreements = tuple(
        f"the conformance statement says {item} = {str(claimed).lower()}, "
        f"the handshake says {str(seen).lower()}"
        for item, seen in observed.items()
        for claimed in (bool(settings.ics.get(item, False)),)
        # What is negotiated need not be used in both roles; what is not negotiated cannot be.
        if (claimed and not seen) or (seen and not claimed and item not in roles)
    )
    return Probe(observed=observed, disagreements=disagreements)
