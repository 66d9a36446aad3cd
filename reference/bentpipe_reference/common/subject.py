"""A reference as the exam sees it: how its hosts are made, set up and used.

Each protocol has a module ``subject`` with one :class:`Subject`. The in-process adapter and the
self-test load it by the protocol's name and depend on nothing else of the protocol.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.sim import Simulation


class Host(Protocol):
    """A reference with the standard services, as a simulation drives it."""

    def receive(self, packet: bytes, now: float) -> None:
        """Process one IPv4 packet."""

    def advance(self, now: float) -> None:
        """Let timers expire."""

    def transmit(self, now: float) -> Sequence[bytes]:
        """The IPv4 packets to send now."""

    def next_deadline(self) -> float | None:
        """When the next timer expires, None when none runs."""


class Box(Protocol):
    """A reference that stands between two networks, with a port to each of them: 0 and 1."""

    def receive(self, port: int, packet: bytes, now: float) -> None:
        """Process one IPv4 packet that arrives at a port."""

    def advance(self, now: float) -> None:
        """Let timers expire."""

    def transmit(self, now: float) -> Sequence[tuple[int, bytes]]:
        """The IPv4 packets to send now, each with the port by which it leaves."""

    def next_deadline(self) -> float | None:
        """When the next timer expires, None when none runs."""


class Station(Protocol):
    """A host on a link in virtual time."""

    def step(self, action: Callable[[float], object]) -> None:
        """Act on the host, then transmit the packets it has to send."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a user.

    Attributes:
        at: when it begins, seconds.
        port: the service it calls.
        octets: how many it sends.
        at_once: octets it writes at most each time it is run.
        reading: octets it reads at most each time it is run.
        ends_at: when it closes at the latest, seconds.
        aborts: whether it then aborts instead.
        endless: whether the service sends without end, so that the user closes only at the latest
            time.
        gap_s: seconds between two writes; 0.0 to write whenever there is room.
        silence: (from, to), seconds: a time in which it writes nothing.
        deaf: (from, to), seconds: a time in which it reads nothing.
    """

    at: float
    port: int
    octets: int
    at_once: int
    reading: int
    ends_at: float
    aborts: bool
    endless: bool
    gap_s: float = 0.0
    silence: tuple[float, float] = (0.0, 0.0)
    deaf: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A host drawn at random, and what its conformance statement says of it.

    Attributes:
        setup: see :class:`Subject`.
        ics: answers.
        profile: a profile of the suite.
        latency_s: what passes before each packet leaves the host that has made it, seconds.
    """

    setup: Any
    ics: Mapping[str, Any]
    profile: str
    latency_s: float = 0.0


Configure = Callable[[Any], Any]
"""Turns the setup of a true reference into another setting's or a mutant's."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Another way to set up the true reference, in which it must remain conformant.

    Attributes:
        configure: turns its usual setup into this one.
        ics: answers of its conformance statement that then differ.
        ip_protocol: what carries its packets in IP directly, 0 for the usual carriage.
        latency_s: see :class:`Drawn`.
        profiles: of the suite, in which it is permitted; empty for all.
        undecided: requirements whose situation cannot be brought about in it.
        bounds: modules of the reference whose bounds it brings within reach: their mutants may show
            in it though the same lines are executed as usual.
    """

    configure: Configure
    ics: Mapping[str, Any]
    ip_protocol: int = 0
    latency_s: float = 0.0
    profiles: tuple[str, ...] = ()
    undecided: frozenset[str] = frozenset()
    bounds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Subject:
    """The true reference of a protocol.

    A *setup* is everything a host is made from; its type is known to the protocol only.

    Attributes:
        ics: the conformance statement of its usual setups.
        setups: the usual setup of each profile.
        variants: further setups, by the ``variant`` of a description of kind ``in-process``.
        make: makes a host from its dotted IPv4 address, a setup and a seed.
        draw: draws a host for a link.
        call: makes a host call another, by its address, at the time of the call.
        settings: further settings of the true reference, by name.
        boxes: of a protocol whose implementations stand between two networks, and have no address:
            makes from a setup and a seed one box, which has the client at its port 0 and the
            satellite link at its port 1, or two, each with the satellite link at its port 1.
            ``make``, ``draw`` and ``call`` then have no meaning.
    """

    ics: Mapping[str, Any]
    setups: Mapping[str, Any]
    variants: Mapping[str, Any]
    make: Callable[[str, Any, int], Host]
    draw: Callable[[random.Random, LinkProfile], Drawn]
    call: Callable[[Simulation, Station, Any, str, Call], None]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    boxes: Callable[[Any, int], Sequence[Box]] | None = None


def subject_of(protocol: str) -> Subject:
    """The reference of a protocol, by the name of its folder.

    Raises:
        ModuleNotFoundError: there is no reference of that protocol.
    """
    found: Subject = importlib.import_module(f"bentpipe_reference.{protocol}.subject").SUBJECT
    return found
