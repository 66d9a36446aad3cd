"""Mutants of the TCP reference, a module per group of requirements; each declares its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.wire.segment import Segment


class Altering(Connection):
    """A connection that alters each segment it sends."""

    def transmit(self, now: float) -> list[Segment]:
        """See :class:`Connection`."""
        segments = super().transmit(now)
        for segment in segments:
            self.alter(segment, now)
        return segments

    def alter(self, segment: Segment, now: float) -> None:
        """Change ``segment`` before it is sent."""
        raise NotImplementedError


MUTANTS: list[Mutant] = []
"""Every mutant declared so far."""

_SENDERS: dict[str, type[Sender]] = {"rfc": SackNewRenoRfcSender, "hk99": SackNewRenoHk99Sender}

Part = TypeVar("Part", bound=Callable[..., object])


def mutant(
    identifier: str, *, breaks: str, profile: str = "", hk99: bool = False, part: str = "parse"
) -> Callable[[Part], Part]:
    """Declare a mutant: a subclass of one of the reference's parts, or a function in its place.

    Its title is the first line of the docstring. A subclass of no profile's own sender is put in
    front of the one of the mutant's profile.

    Args:
        identifier: of the mutant.
        breaks: the requirement it violates.
        profile: the profile it mutates; that of the sender it is derived from, or else ``rfc``.
        hk99: whether ``identifier-hk99`` is a second mutant, the same defect in that profile.
        part: the name of the part that a function replaces.
    """

    def declare(mutated_part: Part) -> Part:
        title = (mutated_part.__doc__ or "").partition("\n")[0]
        of_hk99 = isinstance(mutated_part, type) and issubclass(mutated_part, SackNewRenoHk99Sender)
        own = "hk99" if of_hk99 else "rfc"
        for mutated, name in _identifiers(identifier, profile or own, hk99).items():
            change = _replacing(mutated_part, mutated, part)
            MUTANTS.append(Mutant(name, breaks, title, change, mutated))
        return mutated_part

    return declare


def mutant_setting(
    name: str, title: str, *, breaks: str, profile: str = "rfc", hk99: bool = False, **settings: Any
) -> None:
    """Declare a mutant that is the true reference with other settings; see :func:`mutant`."""
    for mutated, identifier in _identifiers(name, profile, hk99).items():
        MUTANTS.append(
            Mutant(identifier, breaks, title, lambda setup: setup.configured(**settings), mutated)
        )


def _identifiers(name: str, profile: str, hk99: bool) -> dict[str, str]:
    """Profile to identifier of a mutant, or of the two that are one defect."""
    return {profile: name} | ({"hk99": f"{name}-hk99"} if hk99 else {})


def _replacing(part: Any, profile: str, name: str) -> Callable[[Setup], Setup]:
    """The change of a setup that replaces the true part."""
    if not isinstance(part, type):
        return lambda setup: replace(setup, parts=replace(setup.parts, **{name: part}))
    if issubclass(part, Sender) and not issubclass(part, _SENDERS[profile]):
        part = type(part.__name__, (part, _SENDERS[profile]), {})
    return lambda setup: setup.with_part(part)
