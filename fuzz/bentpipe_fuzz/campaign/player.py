"""What the players of all protocols share: the tester's side of one conversation.

Every verb acts on the newest connection, or the one that was turned to, and does nothing while
there is none. Its arguments are numbers that mean something in any run: octets, seconds, and
distances from what the connection knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from bentpipe_conformance.engine.lane import LaneError
from bentpipe_conformance.engine.peer import BasePeer, NotReached

LONGEST_S = 60.0
"""Seconds that one step lasts at most."""

Place = Sequence[Any]
"""A number as ``[base, distance]``; the bases are names that :meth:`BasePlayer.places` knows."""

PeerT = TypeVar("PeerT", bound=BasePeer[Any, Any])
ConnectionT = TypeVar("ConnectionT")
Verb = Callable[..., None]
_Verb = TypeVar("_Verb", bound=Verb)


def verb(function: _Verb) -> _Verb:
    """Mark a method of a player as one that a script may call."""
    function.is_verb = True  # type: ignore[attr-defined]
    return function


def long_verb(function: _Verb) -> _Verb:
    """Mark a verb that takes many packets; a conversation with one may have more than others."""
    function.is_long = True  # type: ignore[attr-defined]
    return verb(function)


def verbs_of(player: type[BasePlayer[Any, Any]]) -> Mapping[str, Verb]:
    """The verbs of a player, by name."""
    named = ((name, getattr(player, name)) for name in dir(player))
    return {name: found for name, found in named if getattr(found, "is_verb", False)}


class BasePlayer(ABC, Generic[PeerT, ConnectionT]):
    """One conversation.

    Args:
        peer: the tester.

    Attributes:
        connection: the newest one, or the one that was turned to, if there is one.
        expressive: whether every packet that a verb makes on purpose is one of Scapy.
        longest: what a verb waits at most, seconds.
    """

    def __init__(self, peer: PeerT) -> None:
        self.peer = peer
        self.connection: ConnectionT | None = None
        self.expressive = False
        self.longest = LONGEST_S

    @verb
    def wait(self, seconds: float = 1.0) -> None:
        """Look at nothing for a while."""
        self.peer.wait(min(seconds, self.longest))

    @verb
    def turn(self, back: int = 1) -> None:
        """Go on with another of the connections that are open, so many before the newest."""
        if among := self.peer.open_connections:
            self.connection = among[-1 - back % len(among)]

    @verb
    def abort(self) -> None:
        """Abort the connection."""
        if self.connection is not None:
            self.connection.abort()  # type: ignore[attr-defined]
            self.connection = None

    @verb
    def quit(self) -> None:
        """Have the implementation's user abort every connection that it has opened."""
        # Not every implementation can be asked to.
        with suppress(NotReached, LaneError):
            self.peer.have_aborted()

    @abstractmethod
    def rest(self) -> None:
        """What an honest tester does at the end: wait for what is still to come, and repair."""

    @abstractmethod
    def places(self) -> Mapping[str, int]:
        """Numbers of the connection that a :data:`Place` may start from."""

    def number(self, place: Place) -> int:
        """The number that a place is now; a base that nobody knows is 0."""
        base, distance = place
        return int(self.places().get(base, 0)) + int(distance)
