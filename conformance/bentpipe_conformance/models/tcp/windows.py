"""A captured connection cut into windows that the model ``CaptureSackSender`` can check.

A *piece* is the run of octets between neighbouring edges of segments, acknowledgments and SACK
blocks; a segment longer than the path's (offload) is cut to that length first. Nothing else is
rounded. A window begins where the sender's state is known: nothing is held above SND.UNA and all
that is outstanding was sent once; a recovery longer than `LONGEST` is cut and goes on with an
unknown past, in which everything outstanding may be repeated once more.

Only times are judged here, because the model has no clock: whether a timer can have expired, and
whether the sender must have processed an acknowledgment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.models.values import record_text
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.recovery import read_episodes
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.scoreboard import read_scoreboard

LONGEST = 600
"""Events; TLC's time per state grows with what is outstanding."""

USUAL = 120
"""Events after which a window ends as soon as the state is known again."""

RACE_S = 0.005
"""A sender may take this long to process what was captured, or to send what it had decided on; at
least, because its own queue counts in it too: `RACE_RTTS` of a round trip."""

RACE_RTTS = 0.05

TIMEOUT_RTTS = 0.95
"""No retransmission timeout and no probe is shorter than the smoothed round trip (RFC 6298 section
2, RFC 8985 section 7.2), which the smallest one measured does not exceed."""

SURELY_POSSIBLE_RTTS, SURELY_POSSIBLE_S = 2.0, 0.5
"""After so long without progress a timeout is likely enough, whatever else the packets explain."""

REORDERING_RTTS = 1.1
"""Least age, in smallest round trips, at which RACK takes a segment for lost without three
segments held: a round trip and a quarter at first (RFC 8985 section 6.2 step 4)."""

FEW_SEGMENTS = 4
"""Below this many outstanding segments an early retransmit needs no three duplicates (RFC 5827)."""


@dataclass(frozen=True, slots=True)
class Item:
    """One event of a window.

    Attributes:
        packet: its number in the capture.
        text: the event as a record of TLA+.
        offsets: [start, end) of a segment sent, None for an acknowledgment.
        again: whether the segment repeats data only.
    """

    packet: int
    text: str
    offsets: tuple[int, int] | None
    again: bool


@dataclass(slots=True)
class Window:
    """Consecutive events of a connection.

    Attributes:
        base: first piece, in the numbering of the whole connection.
        outstanding: pieces sent and not acknowledged at its start.
        weak: its start cuts a recovery, whose past is left open.
        fresh: nothing has been retransmitted on the connection before.
        items: its events; the first ``repeated`` of them belong to the window before as well.
    """

    base: int
    outstanding: int
    weak: bool
    fresh: bool
    repeated: int = 0
    items: list[Item] = field(default_factory=list)
    acks: list[int] = field(default_factory=list)
    ack_times: list[float] = field(default_factory=list)
    pieces: int = 0

    @property
    def retransmissions(self) -> int:
        """Segments in it that repeat data."""
        return sum(item.again for item in self.items)

    def text(self) -> str:
        """The window as a record of TLA+."""
        head = {"max": self.outstanding, "pieces": self.pieces, "weak": self.weak}
        fields = record_text({**head, "fresh": self.fresh, "acks": self.acks})
        log = ",\n  ".join(item.text for item in self.items)
        return f"{fields[:-1]},\n log |-> <<{log}>>]"


def race_of(flow: Flow) -> float:
    """Seconds within which a sender may not know yet what was captured."""
    return max(RACE_S, RACE_RTTS * minimum_rtt(flow))


def unit_of(flow: Flow) -> int:
    """Octets of a full-sized segment on the wire (options deducted)."""
    stamped = 12 if flow.handshake.timestamps else 0  # RFC 7323 appendix A: padded to 12
    return max(1, min(flow.segment, flow.mss - stamped))


def cut_windows(flow: Flow, events: Sequence[Sent | Ack]) -> list[Window]:
    """Windows over ``events``, which are the beginning of the flow's own, in order."""
    return _Cutter(flow, events).run()


class _Cutter:
    def __init__(self, flow: Flow, events: Sequence[Sent | Ack]) -> None:
        self.events = events
        self.unit = unit_of(flow)
        self.offload = flow.segment > self.unit
        self.rtt = minimum_rtt(flow)
        self.race = race_of(flow)
        board = read_scoreboard(flow, tuple(read_episodes(flow)))
        self.reordered = {id(item.sent) for item in board.repeats if item.reordered}
        self.edges = self._edges()
        self.windows: list[Window] = []
        self.held = RangeSet()
        self.una = self.max = self.recover = 0
        self.fresh = True
        self.calm_since = float("-inf")
        self.last_sent: dict[int, float] = {}
        self.progress: list[tuple[float, int]] = []
        self.started = 0.0

    def _edges(self) -> list[int]:
        found = {0}
        for event in self.events:
            if isinstance(event, Sent):
                found.update(range(event.start, event.start + event.payload, self.unit))
                found.update((event.start, event.start + event.payload, event.end))
            else:
                found.add(event.ack)
                found.update(edge for block in event.blocks for edge in block)
        return sorted(edge for edge in found if edge >= 0)

    def run(self) -> list[Window]:
        """Walk the events once."""
        window: Window | None = None
        for index, event in enumerate(self.events):
            if window is None or self._full(window, event.time):
                window = self._begin(index, event.time)
                self.windows.append(window)
            if isinstance(event, Sent):
                self._sent(window, event)
            else:
                self._ack(window, event)
                self._learn(event)
        return self.windows

    def _calm(self, now: float) -> bool:
        return self.calm_since <= now - self.race

    def _full(self, window: Window, now: float) -> bool:
        length = len(window.items) - window.repeated
        return length >= LONGEST or (length >= USUAL and self._calm(now))

    def _begin(self, index: int, now: float) -> Window:
        """A window that begins with this event; acknowledgments just before it are pending."""
        first = index
        while first and self.events[first - 1].time > now - self.race:
            first -= 1
        pending = [item for item in self.events[first:index] if isinstance(item, Ack)]
        una = next((item.una for item in pending), self.una)
        base = self._piece(una)
        window = Window(base, self._piece(self.max) - base, not self._calm(now), self.fresh)
        window.pieces = window.outstanding
        for ack in pending:
            self._ack(window, ack)
        window.repeated = len(window.items)
        return window

    def _piece(self, offset: int) -> int:
        return bisect_left(self.edges, max(0, offset))

    # -- events

    def _ack(self, window: Window, ack: Ack) -> None:
        blocks = [
            [max(0, self._piece(left) - window.base), self._piece(right) - window.base]
            for left, right in ack.blocks
            if self._piece(right) > window.base
        ]
        bare = ack.packet.content is not None and not ack.packet.content.payload
        number = max(0, self._piece(ack.ack) - window.base)
        text = record_text(
            {"k": "ack", "n": number, "b": blocks,
             "d": bare and not ack.advance and ack.max > ack.una,
             "o": ack.rejected or ack.ancient}
        )  # fmt: skip
        window.items.append(Item(ack.packet.number, text, None, again=False))
        window.acks.append(len(window.items))
        window.ack_times.append(ack.time)

    def _learn(self, ack: Ack) -> None:
        for block in ack.blocks:
            self.held.add(*block)
        if ack.advance:
            for piece in range(self._piece(self.una), self._piece(ack.ack)):
                self.last_sent.pop(piece, None)
            self.una = ack.ack
            self.held.remove_below(self.una)
            self.progress.append((ack.time, self.una))
        if self.held or self.una < self.recover:
            self.calm_since = float("inf")
        elif self.calm_since == float("inf"):
            self.calm_since = ack.time

    def _sent(self, window: Window, sent: Sent) -> None:
        if sent.payload <= 1 and sent.end <= self.una and sent.timed:
            return  # a keep-alive (RFC 9293 section 3.8.4)
        again = sent.end <= self.max
        first, end = self._piece(sent.start), self._piece(sent.end)
        age = sent.time - self.last_sent.get(first, float("inf"))
        window.items.append(
            Item(sent.packet.number, self._text(window, sent, first, end, age),
                 (sent.start, sent.end), again)
        )  # fmt: skip
        window.pieces = max(window.pieces, end - window.base)
        if sent.flight == 0:
            self.started = sent.time
        self.last_sent.update(dict.fromkeys(range(first, end), sent.time))
        self.max = max(self.max, sent.end)
        if again:
            self.recover = self.max
            self.fresh = False
            self.calm_since = float("inf")

    def _text(self, window: Window, sent: Sent, first: int, end: int, age: float) -> str:
        # One octet beyond a closed window probes it (RFC 9293 section 3.8.6.1), or is a FIN.
        edge = max(0, bisect_right(self.edges, sent.window_edge + 1) - 1 - window.base)
        surely = bisect_right(window.ack_times, sent.time - self.race)
        few = self.offload or sent.flight < FEW_SEGMENTS * self.unit
        old = self.offload or age >= REORDERING_RTTS * self.rtt
        return record_text(
            {"k": "send", "n": max(0, first - window.base), "m": max(0, end - window.base),
             "w": edge, "c": surely, "t": self._timer(sent, age), "old": old, "few": few,
             "r": id(sent) in self.reordered}
        )  # fmt: skip

    def _timer(self, sent: Sent, age: float) -> int:
        """Whether a timer can have sent it: 2 yes, 1 if nothing else explains it, 0 no."""
        at = bisect_right(self.progress, (sent.time - self.race, self.max + 1)) - 1
        moved = self.progress[at][0] if at >= 0 else float("-inf")
        waited = sent.time - max(moved, self.started)
        if waited >= SURELY_POSSIBLE_RTTS * self.rtt + SURELY_POSSIBLE_S:
            return 2
        if max(waited, age if age != float("inf") else 0.0) < TIMEOUT_RTTS * self.rtt:
            return 0
        return 2 if sent.timed or sent.transmission > 2 else 1
