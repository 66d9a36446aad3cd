"""What the environment did where the order of all that it does makes a script.

Such a model's network is a set from which nothing leaves, and which message arrived does not show
in a state. ``NETWORK`` of ``models.PROTOCOL.network`` infers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.models.graph import Graph


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of the network.

    Attributes:
        kind: its type.
        nth: which of its kind, in order of sending, from 1.
        number: its sequence number; None where it has none.
        text: all of it.
        to_server: its direction.
    """

    kind: str
    nth: int
    number: int | None
    text: str
    to_server: bool


@dataclass(frozen=True, slots=True)
class History:
    """What the environment did on a path.

    Attributes:
        order: users' calls, restarts and deliveries, in order, in words.
        sent: every message, in order of sending.
        delivered: what was delivered, in order, repetitions included.
    """

    order: tuple[str, ...]
    sent: tuple[Sent, ...]
    delivered: tuple[Sent, ...]

    def fates(self) -> list[dict[str, Any]]:
        """What became of messages that did not arrive once and in order.

        A message counts as lost when it never arrived and one sent later in its direction did.
        """
        found = []
        place = {message: at for at, message in enumerate(self.sent)}
        for message in self.sent:
            times = self.delivered.count(message)
            event: dict[str, Any] = {"message": message.kind, "nth": message.nth}
            if message.number is not None:
                event |= {"number": message.number, "transmission": 1}
            first = self.delivered.index(message) if times else len(self.delivered)
            later = [
                other
                for other in self.delivered[:first]
                if other.to_server == message.to_server and place[other] > place[message]
            ]
            if later:
                fate = {"fate": "delayed", "behind": [later[-1].kind, later[-1].nth]}
                found.append(event | (fate if times else {"fate": "lost"}))
            if times > 1:
                found.append(event | {"fate": "doubled"})
        return found


@dataclass(frozen=True, slots=True)
class Network:
    """How a protocol's histories are inferred.

    Attributes:
        variables: the variables of a state that the inference examines.
        history: what the environment did on a path of a state graph.
    """

    variables: tuple[str, ...]
    history: Callable[[Graph, Sequence[int]], History]
