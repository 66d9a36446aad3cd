"""The checker of losses that are one connection's own (PEP-FI-003), by what the ends see.

A segment that is lost and one that waits in a queue look alike there. So only that counts as lost
which takes half of the way longer than anything took before when as much was under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import Context, of_scene
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import Packet
from bentpipe_conformance.protocols.pep.replay.stream import Step

MOST_RELAYS, LEAST_RELAYS = 24, 3
WAITING = 3
"""Pieces of at least two other connections that are on their way during a repair."""
CLOSEST = 3
"""Of what was delivered before, so many with the least more under way bound a queue's time."""
CLEAR_S = 0.1
"""Seconds before a repair in which something has to be expected, so that it is before it."""


@dataclass(slots=True)
class _Piece:
    """Octets that have arrived at the box together.

    Attributes:
        relay: whose they are.
        packet: that brought them.
        came: when that was.
        under_way: octets of all connections that were not delivered then, these included.
        room: whether their receiver had answered and permitted them by then; they wait for it else.
        took: seconds until their receiver had acknowledged them; None if it never has.
    """

    relay: Relay
    packet: Packet
    came: float
    under_way: int
    room: bool
    took: float | None = None

    @property
    def ended(self) -> float:
        """When it was delivered."""
        return float("inf") if self.took is None else self.came + self.took


@of_scene("PEP-FI-003")
def losses_are_their_own(scene: Scene, context: Context) -> Iterator[Finding]:
    """Losses of one connection are its own."""
    # Exercised by octets that arrive late, as they were lost on the satellite link, while octets of
    # two other connections are under way; as much has passed without a loss before. What is taken
    # before its receiver has answered, or has room, is not under way yet.
    relays = [it for it in scene.relays if len(it.streams) == 2]
    if not LEAST_RELAYS <= len(relays) <= MOST_RELAYS:
        return
    for up in (True, False):
        pieces = _pieces(relays, up)
        way = min((it.took for it in pieces if it.took is not None), default=None)
        if way is None:
            continue
        judged_until = scene.quiet_since
        for late in _lost(pieces, way):
            others = [
                it for it in pieces if it.relay is not late.relay and it.room
                and late.came < it.came and it.came + way < late.ended - CLEAR_S
            ]  # fmt: skip
            if late.came <= judged_until or len({id(it.relay) for it in others}) < 2:
                continue
            if len(others) < WAITING:
                continue
            judged_until = late.ended
            first = min(others, key=lambda it: it.ended)
            yield judged(
                context, first.ended < late.ended - CLEAR_S / 2,
                f"octets of one connection arrive after {late.took or 0:.2f} s, the first of "
                f"those of others at {first.ended - late.came:.2f} s", late, first,
                expected="others go on while one is repaired",
                actual="all of them wait until it is",
            )  # fmt: skip


def _lost(pieces: Sequence[_Piece], way: float) -> Iterator[_Piece]:
    """Pieces that took longer than any queue that was seen explains, in order."""
    half = max(way / 2, 2 * CLEAR_S)
    for piece in pieces:
        if piece.took is None or not piece.room or piece.took <= way + half:
            continue
        before = sorted(
            (it.under_way, it.took) for it in pieces
            if it.took is not None and it.ended < piece.came and it.under_way >= piece.under_way
        )[:CLOSEST]  # fmt: skip
        if before and piece.took > max(took for _, took in before) + half:
            yield piece


def _pieces(relays: Sequence[Relay], up: bool) -> list[_Piece]:
    """What has arrived at the box from one side, in order, with what became of it."""
    steps: list[tuple[Step, Relay]] = sorted(
        ((step, it) for it in relays for step in (it.up if up else it.streams[1]).steps),
        key=lambda item: item[0].packet.number,
    )
    found: list[_Piece] = []
    waiting: dict[int, list[tuple[int, _Piece]]] = {}
    arrived: dict[int, int] = {}
    delivered: dict[int, int] = {}
    for step, relay in steps:
        key = id(relay)
        if step.arrived > arrived.get(key, 0):
            arrived[key] = step.arrived
            under_way = sum(arrived.values()) - sum(delivered.values())
            piece = _Piece(relay, step.packet, step.time, under_way, step.outlet >= step.arrived)
            found.append(piece)
            waiting.setdefault(key, []).append((step.arrived, piece))
        if step.delivered > delivered.get(key, 0):
            delivered[key] = step.delivered
            queue = waiting.get(key, [])
            while queue and queue[0][0] <= step.delivered:
                piece = queue.pop(0)[1]
                piece.took = step.time - piece.came
    return found
