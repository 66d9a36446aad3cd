"""Checkers of equal room (PEP-FI-002) and of losses that are one connection's own (PEP-FI-003).

Both go by what the ends see. A segment that is lost and one that waits in a queue look alike there.
So only that counts as lost which takes half of the way longer than anything took before when as
much was under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import CROWD, Context, of_scene
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import DEFAULT_MSS, Packet
from bentpipe_conformance.protocols.pep.replay.stream import Step, Stream
from bentpipe_conformance.protocols.tcp.codec import RST

MOST_RELAYS, LEAST_RELAYS = 24, 3
WAITING = 3
"""Pieces of at least two other connections that are on their way during a repair."""
CLOSEST = 3
"""Of what was delivered before, so many with the least more under way bound a queue's time."""
CLEAR_S = 0.1
"""Seconds before a repair in which something has to be expected, so that it is before it."""
EQUAL = 3
"""The largest room of a connection beside the smallest."""


@of_scene("PEP-FI-002")
def equal_room(scene: Scene, context: Context) -> Iterator[Finding]:
    """Equal connections get equal shares."""
    # Exercised by receivers of several connections that read nothing until their senders have
    # filled all that they are permitted.
    found: dict[object, list[tuple[int, Step]]] = {}
    for stream in (it for relay in scene.relays for it in relay.streams):
        if (step := _full(stream)) is not None:
            found.setdefault(_situation(stream), []).append((step.taken - step.delivered, step))
    for full in found.values():
        if not 1 < len(full) <= CROWD:
            continue
        (least, where), (most, other) = (pick(full, key=itemgetter(0)) for pick in (min, max))
        yield judged(
            context, EQUAL * least >= most,
            f"of one connection {least} octets are taken, of another one {most}", where, other,
            expected=f"at least {most // EQUAL} octets", actual=f"{least} octets",
        )  # fmt: skip


def _situation(stream: Stream) -> object:
    """What the ends of a stream have offered, by which its room may differ from another one's."""
    halves = [leg.own.first for leg in (stream.source, stream.sink) if leg is not None]
    offers = [(it.mss, it.window_scale, it.tsval is None) for it in halves if it is not None]
    return stream.source.side, *offers


def _full(stream: Stream) -> Step | None:
    """What was true in the end of a stream that is stopped from its receiver to its sender."""
    last, sink = stream.last, stream.sink
    if last is None or sink is None or last.end is not None or last.segment.tcp.flags & RST:
        return None
    shut = last.outlet - last.delivered < DEFAULT_MSS <= last.relayed
    stopped = last.limit - last.taken < DEFAULT_MSS and last.sent >= last.taken
    return last if shut and stopped else None


@dataclass(slots=True)
class _Piece:
    """Octets that have arrived at the box together.

    Attributes:
        relay: whose they are.
        packet: that brought them.
        came: when that was.
        under_way: octets of all connections that were not delivered then, these included.
        room: whether their receiver had answered and permitted them by then; they wait for it else.
        parted: whether some of them waited until the receiver had acknowledged others.
        took: seconds until their receiver had acknowledged them; None if it never has.
    """

    relay: Relay
    packet: Packet
    came: float
    under_way: int
    room: bool
    parted: bool = False
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
        if piece.took is None or not piece.room or piece.parted or piece.took <= way + half:
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
    begins: dict[int, int] = {}
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
                begins[key], piece = queue.pop(0)
                piece.took = step.time - piece.came
            if queue and step.delivered > begins.get(key, 0) and step.relayed < queue[0][0]:
                queue[0][1].parted = True
    return found
