"""What a box must do, judged on what its ends see.

Most checkers are asked about each split connection, or about each of its streams; some about a
whole trace. :func:`of_relay`, :func:`of_stream` and :func:`of_scene` register them so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

from bentpipe_conformance.engine import context as engine
from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.replay.flow import Flow, Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import Packet
from bentpipe_conformance.protocols.pep.replay.stream import Stream

Context = engine.Context[Any]

QUEUES_S = 2.0
"""What queues before the satellite link may add to a time: they cannot be seen from the ends."""

_OfRelay = Callable[[Relay, Context], Iterable[Finding]]
_OfStream = Callable[[Relay, Stream, Context], Iterable[Finding]]
_OfScene = Callable[[Scene, Context], Iterable[Finding]]


def of_relay(requirement: str) -> Callable[[_OfRelay], _OfRelay]:
    """Register a checker that is asked about each connection that is split, or is to be."""

    def register(check: _OfRelay) -> _OfRelay:
        @wraps(check)
        def ask(flow: Flow, context: Context) -> Iterator[Finding]:
            if isinstance(flow, Relay):
                yield from check(flow, context)

        checker(requirement)(ask)
        return check

    return register


def of_stream(requirement: str) -> Callable[[_OfStream], _OfStream]:
    """Register a checker that is asked about each stream through the box."""

    def register(check: _OfStream) -> _OfStream:
        @wraps(check)
        def ask(flow: Flow, context: Context) -> Iterator[Finding]:
            if isinstance(flow, Relay):
                for stream in flow.streams:
                    yield from check(flow, stream, context)

        checker(requirement)(ask)
        return check

    return register


def of_scene(requirement: str) -> Callable[[_OfScene], _OfScene]:
    """Register a checker that is asked about each trace as a whole."""

    def register(check: _OfScene) -> _OfScene:
        @wraps(check)
        def ask(flow: Flow, context: Context) -> Iterator[Finding]:
            if isinstance(flow, Scene):
                yield from check(flow, context)

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
