"""The nonsense probe: is the adapter telling the truth, before any verdict is given?

An adapter that answers everything with success would pass every case; one that reaches nothing
would make everything inconclusive. The probe therefore asks for things that must work *and* for
one that must not, and compares the declared conformance statement with the handshake. A protocol
supplies its :class:`Interview`: how each thing is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.peer import UNUSED_PORT, NotReached, ScriptedPeer
from bentpipe_conformance.engine.settings import RunSettings

ECHO_TEXT = b"bentpipe asks for these very octets back: 3.14159 2.71828 1.41421 ~!@#\r\n"


_PERIOD = bytes((i ^ i >> 8) & 0xFF for i in range(1 << 16))
"""The stream repeats itself after so many octets."""


def chargen(offset: int, octets: int) -> bytes:
    """Octets of the stream that an implementation's chargen service sends, from an offset on."""
    start = offset % len(_PERIOD)
    times = -(-(start + octets) // len(_PERIOD))
    return (_PERIOD * times)[start : start + octets]


Link = TypeVar("Link")
"""A protocol's connection."""


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


class Interview(Protocol[Link]):
    """How a protocol asks the questions of the probe.

    Each method raises :class:`NotReached` when there is no answer.
    """

    def open(self, service: str | int) -> Link:
        """Open a connection to a service by name or port."""

    def observed(self, connection: Link) -> dict[str, Any]:
        """Items of the conformance statement as the handshake shows them."""

    def echo(self, connection: Link) -> bytes:
        """Send :data:`ECHO_TEXT`; return the octets that come back."""

    def generate(self, connection: Link) -> str:
        """Receive generated data; return one sentence on what is wrong with it, or nothing."""

    def take(self, connection: Link) -> None:
        """Send :data:`ECHO_TEXT` and wait until it is acknowledged."""


def examine(
    lane: Lane, settings: RunSettings, peer: ScriptedPeer, interview: Interview[Any],
    roles: Collection[str] = (),
) -> Probe:  # fmt: skip
    """Ask the questions and compare what was observed with the statement.

    Args:
        lane: the lane, on which a case was begun; it is ended here.
        settings: the run's settings.
        peer: the tester.
        interview: asks.
        roles: items that say how a negotiated feature is used: negotiated, they may be denied.
    """
    try:
        observed = _ask(interview)
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


def _ask(interview: Interview[Any]) -> dict[str, Any]:
    """Ask the questions; the items as observed.

    Raises:
        NotReached: an answer shows that the adapter cannot be trusted.
    """
    connection = _open(interview, "echo")
    observed = interview.observed(connection)
    with _explained("the echo service returned nothing"):
        returned = interview.echo(connection)
    if returned != ECHO_TEXT:
        raise NotReached("the echo service returned other octets than were sent")
    connection = _open(interview, "chargen")
    with _explained("the chargen service sends no data"):
        fault = interview.generate(connection)
    if fault:
        raise NotReached(fault)
    connection = _open(interview, "discard")
    with _explained("the discard service takes no data"):
        interview.take(connection)
    try:
        interview.open(UNUSED_PORT)
    except NotReached:
        return observed
    opened = f"port {UNUSED_PORT}, which nothing serves, accepted a connection"
    raise NotReached(f"{opened}, so a success of this adapter means nothing")


def _open(interview: Interview[Link], service: str) -> Link:
    with _explained(f"the {service} service cannot be opened"):
        return interview.open(service)


@contextmanager
def _explained(sentence: str) -> Iterator[None]:
    """Say what it means when something is not reached."""
    try:
        yield
    except NotReached as error:
        raise NotReached(f"{sentence}: {error}") from error
