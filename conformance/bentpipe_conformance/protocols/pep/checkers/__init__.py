"""What a box must do, judged on what its ends see.

Most checkers are asked about each split connection, or about each of its streams; some about a
whole trace. :func:`of_relay`, :func:`of_stream` and :func:`of_scene` register them so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol, TypeVar

from bentpipe_conformance.engine import context as engine
from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.context import HasPacket
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.replay.flow import Flow, Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import Packet

Context = engine.Context[Any]

QUIET_S = 2 * 3600 + 4 * 60.0
"""Seconds for which a connection may be quiet (RFC 5382 section 5)."""
CROWD = 50
"""Connections beside which a box may give one up for want of room, or that flood it."""
RECOVERS_S = 130.0
"""Seconds after an outage: a timeout that has doubled during 100 s, and slow start."""
HEARD_S = 0.1
"""Seconds until the box has taken what an end sends; a program does not look at once."""
QUEUES_S = 2.0
"""What queues before the satellite link may add to a time: they cannot be seen from the ends."""

_Check = TypeVar("_Check", bound=Callable[..., Iterable[Finding]])


def of_relay(requirement: str) -> Callable[[_Check], _Check]:
    """Register a checker that is asked about each connection that is split, or is to be.

    Its arguments are the relay and the context.
    """
    return _register(requirement, lambda flow: [(flow,)] if isinstance(flow, Relay) else [])


def of_stream(requirement: str) -> Callable[[_Check], _Check]:
    """Register a checker that is asked about each stream through the box.

    Its arguments are the relay, the stream and the context.
    """
    return _register(
        requirement,
        lambda flow: [(flow, stream) for stream in flow.streams] if isinstance(flow, Relay) else [],
    )


def of_scene(requirement: str) -> Callable[[_Check], _Check]:
    """Register a checker that is asked about each trace as a whole.

    Its arguments are the scene and the context.
    """
    return _register(requirement, lambda flow: [(flow,)] if isinstance(flow, Scene) else [])


def _register(
    requirement: str, subjects: Callable[[Flow], Sequence[tuple[Any, ...]]]
) -> Callable[[_Check], _Check]:
    """Register a checker that is asked about each subject that a flow holds."""

    def register(check: _Check) -> _Check:
        @wraps(check)
        def ask(flow: Flow, context: Context) -> Iterator[Finding]:
            for subject in subjects(flow):
                yield from check(*subject, context)

        checker(requirement)(ask)
        return check

    return register


@dataclass(frozen=True, slots=True)
class At:
    """A packet, where something is wanted that has one."""

    packet: Packet


def allowed(relay: Relay, seconds: float) -> float:
    """Seconds that something may take at most: what a rule says, the way, and queues."""
    return seconds + relay.crossing_s + QUEUES_S


def watched(relay: Relay, since: float, seconds: float) -> bool:
    """Whether the trace goes on long enough after a moment to miss something with certainty.

    Nothing is missed that began within a time in which the path was disturbed, or before it.
    """
    scene = relay.scene
    return scene.until - since > allowed(relay, seconds) and since > scene.quiet_since


class Timed(HasPacket, Protocol):
    """A segment, a message or a step, with the packet that shows it."""

    @property
    def time(self) -> float:
        """When it was captured."""


def soon(
    cause: Timed, answer: Timed | None, what: str, seconds: float, relay: Relay, context: Context,
    *, good: str, bad: str,
) -> Iterator[Finding]:  # fmt: skip
    """Whether the box answers something in time: ``what``, within so many seconds and the way."""
    if answer is not None and answer.time - cause.time <= allowed(relay, seconds):
        yield context.holds(good, answer, cause)
    elif watched(relay, cause.time, seconds) or (
        answer is not None and cause.time > relay.scene.quiet_since
    ):
        yield context.violated(
            bad, cause, expected=f"{what} within {seconds:.0f} s",
            actual="none" if answer is None else f"{what} too late",
        )  # fmt: skip


def all_octets(
    octets: int, wanted: int, at: HasPacket, context: Context, *, missed: bool, good: str, bad: str
) -> Iterator[Finding]:
    """Whether so many octets have passed; where they have not, they may not be ``missed`` yet."""
    if octets >= wanted:
        yield context.holds(good, at)
    elif missed:
        yield context.violated(bad, at, expected=f"{wanted} octets", actual=f"{octets} octets")
