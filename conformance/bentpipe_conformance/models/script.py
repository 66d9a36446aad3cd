"""The environment's choices on a path of a model: the script that a suite can impose.

A path of the state graph mixes what the endpoints did with what the environment did to them. A
:class:`Script` keeps the environment's part alone: which transmissions were lost, which were
overtaken by later ones, and when timers expired. Transmissions are counted per kind of message, in
order of sending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

COPY = " copy"
"""After the kind of a second copy that the channel has made."""


class Message(NamedTuple):
    """A transmission: its kind, and which of that kind it is, from 1."""

    kind: str
    nth: int


@dataclass(frozen=True, slots=True)
class Channel:
    """A variable that holds messages in flight.

    Attributes:
        variable: its name.
        kind: the kind of all its messages; empty where each has a ``type``.
    """

    variable: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the environment's choices are in a model.

    Attributes:
        channels: the channels.
        losses: actions that lose the message they take out of a channel.
        duplications: actions that put a second copy of a message behind it.
        timers: actions that are the expiry of a timer, with what their moments are counted in:
            ``taken KIND`` or ``sent KIND``, messages taken in or sent before.
    """

    channels: tuple[Channel, ...]
    losses: frozenset[str]
    duplications: frozenset[str]
    timers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Script:
    """The environment's choices on a path.

    Attributes:
        lost: transmissions that do not arrive.
        overtaking: transmissions that arrive before earlier ones, with the number of those.
            Lost ones do not count.
        doubled: transmissions that arrive twice.
        expiries: per timer, in the layout's order, its moments.
    """

    lost: frozenset[Message]
    overtaking: frozenset[tuple[Message, int]]
    doubled: frozenset[Message]
    expiries: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class Journey:
    """What became of each transmission on a path.

    Attributes:
        sent: per channel, in order of sending; copies behind what they are copies of.
        arrived: per channel, in order of arrival.
        lost: what did not arrive.
        doubled: what arrived twice.
        numbers: the sequence number that each carried, if any.
        expiries: per timer, its moments.
    """

    sent: list[list[Message]]
    arrived: list[list[Message]]
    lost: set[Message]
    doubled: set[Message]
    numbers: dict[Message, int | None]
    expiries: list[list[int]]

    def script(self) -> Script:
        """The environment's choices."""
        overtaking = set()
        for sent, arrived in zip(self.sent, self.arrived, strict=True):
            waiting = [message for message in sent if message not in self.lost]
            for message in arrived:
                if passed := waiting.index(message):
                    overtaking.add((message, passed))
                waiting.remove(message)
        # A copy that is lost leaves no trace.
        doubled = {message for message in self.doubled if copy_of(message) not in self.lost}
        lost = {message for message in self.lost if not message.kind.endswith(COPY)}
        return Script(
            frozenset(lost), frozenset(overtaking), frozenset(doubled),
            tuple(map(tuple, self.expiries)),
        )  # fmt: skip

    def delayed(self) -> dict[Message, Message]:
        """What was overtaken, and the last later transmission that arrived before it."""
        found: dict[Message, Message] = {}
        for sent, arrived in zip(self.sent, self.arrived, strict=True):
            order = {message: at for at, message in enumerate(sent)}
            there = set(arrived)
            waiting = [m for m in sent if m not in there and m not in self.lost]
            at_all = [*arrived, *waiting]
            for at, message in enumerate(at_all):
                later = [m for m in at_all[:at] if order[m] > order[message]]
                if later:
                    found[message] = later[-1]
        return found


def copy_of(message: Message) -> Message:
    """The second copy that a channel made of a message."""
    return Message(message.kind + COPY, message.nth)
