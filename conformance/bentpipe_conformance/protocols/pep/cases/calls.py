"""A table of calls: who speaks first, how each stream ends, and what happens to one packet.

The table holds each pair of levels of two factors in some row (:mod:`engine.covering`), so that
what hangs on two of them together shows, and costs seconds. Its rows are the same in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from bentpipe_conformance.engine.covering import Level, Row, covering
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.steps import DEAF
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.mishap import DOWN, UP, Fate, Mishap
from bentpipe_conformance.protocols.pep.peer import USUAL, Listener, Peer

_NONE = "none"
_NOBODY = "nobody"
_USUAL, _LARGEST = 262_144, 524_288
"""Octets of a buffer that is not declared, and of the largest that is filled."""
_SIZES = (0, 1, 1448, 20_000)
"""Octets of a stream: none, one, a segment, and more than an end that does not read holds."""

WAYS = {
    f"{kind} {way}": (kind, way)
    for kind in (
        "SYN", "first octets", "second octets", "last octets", "FIN", "acknowledgment",
        "acknowledgment of the FIN", "window update", "probe",
    )
    for way in (UP, DOWN)
} | {"handshake": ("handshake", UP)}  # fmt: skip
"""Packets that something happens to, with their kind and way."""

FACTORS: Mapping[str, Sequence[Level]] = {
    "packet": (_NONE, *WAYS),
    "fate": ("lost", "late", "twice"),
    "side": (CLIENT, SERVER),
    "first": (CLIENT, SERVER, "both", _NOBODY),
    UP: _SIZES,
    DOWN: _SIZES,
    "stops": (_NONE, CLIENT, SERVER),
    "end": (CLIENT, SERVER, "both", "client, the other later", "server, the other later"),
    "fin": ("at once", "on the last octets", "apart"),
    "answer": ("at once", "late"),
}

_PLAIN: Row = {
    "packet": _NONE, "fate": "lost", "side": CLIENT, "first": CLIENT, UP: 300, DOWN: 300,
    "answer": "at once",
}  # fmt: skip

_STOP_S, _APART_S, _LONGEST_S = 6.0, 1.0, 30.0
_FILLS, _DRAINS = 20_000, 5_000
"""Octets a second at which streams are taken, and delivered, at the least."""


def _permitted(row: Row) -> bool:
    """Whether that can happen together."""
    return _speaks(row) and _is_there(row)


def _speaks(row: Row) -> bool:
    """Whether who speaks first has something to say, and before the other stream's end."""
    first, end = row.get("first"), str(row.get("end", ""))
    up, down = row.get(UP), row.get(DOWN)
    if first == _NOBODY:
        return not up and not down
    if (first != SERVER and up == 0) or (first in (SERVER, "both") and down == 0):
        return False
    return first is None or "later" not in end or end.startswith(str(first))


def _is_there(row: Row) -> bool:
    """Whether there is a packet that something is to happen to."""
    packet = row.get("packet", _NONE)
    if packet == _NONE:
        return row.get("fate", "lost") == "lost" and row.get("side", CLIENT) == CLIENT
    kind, way = WAYS[str(packet)]
    against = DOWN if way == UP else UP
    if kind in ("first octets", "last octets") and row.get(way, 1) == 0:
        return False
    if kind == "second octets" and row.get(way, 20_000) != 20_000:
        return False
    if kind == "acknowledgment" and row.get(against, 1) == 0:
        return False
    if kind in ("window update", "probe"):
        # Of an end that stops: it opens its window, and is probed.
        stops = CLIENT if (way == UP) == (kind == "window update") else SERVER
        stream = UP if stops == SERVER else DOWN
        return (
            row.get("stops", stops) == stops and row.get("side", stops) == stops
            and row.get(stream, 20_000) == 20_000
        )  # fmt: skip
    return True


@dataclass(frozen=True, slots=True)
class Call:
    """One row: a connection, and what its ends and the weather do.

    Attributes:
        packet: that something happens to, or "none".
        fate: what happens to it.
        side: of the box where it passes.
        first: who speaks first, "both" or "nobody".
        octets: of the streams, by way.
        stops: which end does not read for a while, or "both".
        end: who ends its stream first.
        fin: how a FIN comes behind the octets.
        late: whether the server answers when it is called again.
        share: of the declared buffer, the length of a stream whose receiver does not read.
    """

    packet: str
    fate: Fate
    side: str
    first: str
    octets: Mapping[str, int]
    stops: str
    end: str
    fin: str
    late: bool
    share: float = 0.0

    def sizes(self, buffer: int) -> Mapping[str, int]:
        """Octets of the streams, by way, through a box that holds so many."""
        if not self.share:
            return self.octets
        long = int(self.share * min(buffer or _USUAL, _LARGEST))
        return {
            way: long if self.stops in ("both", receiver) else self.octets[way]
            for way, receiver in ((UP, SERVER), (DOWN, CLIENT))
        }

    def __str__(self) -> str:
        sizes = f"{self.octets[UP]} octets up, {self.octets[DOWN]} down, {self.first} first"
        if self.share:
            sizes = f"{self.share:.0%} of the buffer"
        what = "" if self.packet == _NONE else (
            f"; {self.packet} at the {self.side}'s side is {self.fate}"
        )  # fmt: skip
        reads = "" if self.stops == _NONE else f"; {self.stops} reads late"
        late = "; the server answers late" if self.late else ""
        return f"{sizes}; {self.end} ends first, its FIN {self.fin}{reads}{late}{what}"


def _call(row: Row) -> Call:
    return Call(
        str(row["packet"]), cast(Fate, row["fate"]), str(row["side"]), str(row["first"]),
        {way: int(row[way]) for way in (UP, DOWN)}, str(row["stops"]), str(row["end"]),
        str(row["fin"]), row["answer"] == "late",
    )  # fmt: skip


TOGETHER = ("packet", "fate", "first"), ("packet", "fate", "end")
"""What happens to a packet shows by who speaks and who ends first."""

CALLS = tuple(map(_call, covering(FACTORS, _permitted, TOGETHER)))

BACKLOGS = tuple(
    replace(_call({**_PLAIN, **row}), share=int(row["share"]) / 16)
    for row in covering(
        {
            "stops": (CLIENT, SERVER, "both"), "end": FACTORS["end"], "share": (6, 15),
            "fin": ("at once", "on the last octets"),
        },
        lambda row: row.get("stops") != "both" or row.get("share", 6) == 6,
    )
)  # fmt: skip
"""Calls whose ends read nothing of long streams before both have said all that they will."""


class _Speaker:
    """One end of a call, and what it has still to do."""

    def __init__(self, call: Call, way: str, octets: bytes) -> None:
        self.call, self.octets = call, octets
        self.side = CLIENT if way == UP else SERVER
        self.end: End | None = None
        self.other: _Speaker | None = None
        self.spoken = self.ended = False
        self._due: float | None = None
        self._pause = _APART_S * (call.fin == "apart")
        # The last octet comes after the others, so that it is alone under way.
        self._kept = 1 if self._pause and len(octets) > 1 else 0

    @property
    def _goes_on_alone(self) -> bool:
        return "later" in self.call.end and not self.call.end.startswith(self.side)

    def _may_speak(self, began: float, now: float) -> bool:
        assert self.other is not None and self.end is not None
        if self._goes_on_alone:
            return self.end.ended
        heard = len(self.end.got) >= min(1, len(self.other.octets))
        return self.call.first in ("both", self.side) or heard or now - began > _STOP_S

    def _may_end(self) -> bool:
        assert self.other is not None and self.end is not None
        first = self.call.end == "both" or self.call.end.startswith(self.side)
        if not first and not self.end.ended:
            return False
        return not self._pause or self.end.acked == len(self.end.written)

    def step(self, began: float, now: float) -> None:
        """Do what it is time for."""
        end = self.end
        if end is None or not end.established:
            return
        if not self.spoken and self._may_speak(began, now):
            self.spoken = True
            if self.call.fin == "on the last octets" and self._may_end():
                end.riding = end.closing = self.ended = True
            end.write(self.octets[: len(self.octets) - self._kept])
        if self.spoken and not self.ended and self._may_end():
            self._due = now + self._pause if self._due is None else self._due
            if now < self._due:
                return
            if self._kept:
                end.write(self.octets[-self._kept :])
                self._kept, self._due = 0, None
            else:
                self.ended = True
                end.close()


def play(peer: Peer, call: Call) -> None:
    """One call from its SYN to its ends, or for as long as it may take."""
    sizes = call.sizes(peer.buffer)
    speakers = {way: _Speaker(call, way, peer.octets(sizes[way])) for way in (UP, DOWN)}
    up, down = speakers[UP], speakers[DOWN]
    up.other, down.other = down, up

    def welcome(end: End) -> None:
        down.end = end
        if call.stops in (SERVER, "both"):
            end.stop()

    port, listener = peer.listen(
        "nothing" if call.late else "accept", DEAF if call.stops in (SERVER, "both") else USUAL,
        welcome=welcome,
    )  # fmt: skip
    client = up.end = peer.call(port, DEAF if call.stops in (CLIENT, "both") else USUAL)
    if call.stops in (CLIENT, "both"):
        client.stop()
    if call.packet != _NONE:
        kind, way = WAYS[call.packet]
        peer.mishaps = [Mishap(port, call.side, way, kind, call.fate, call.octets)]
    _drive(peer, listener, (up, down))
    peer.mishaps = []


def _drive(peer: Peer, listener: Listener, speakers: Sequence[_Speaker]) -> None:
    """Let the ends do what they do until both streams have ended."""
    began = peer.now()
    octets = sum(len(it.octets) for it in speakers)
    until = began + _LONGEST_S + 20 * peer.rtt + octets / _DRAINS
    stopped = _STOP_S + 2 * peer.rtt + octets / _FILLS
    while peer.now() < until:
        now = peer.now()
        if listener.syns and now - began > 0.5:
            listener.answer = "accept"
        for speaker in speakers:
            speaker.step(began, now)
            end = speaker.end
            if end is not None and not end.reading and now - began > stopped:
                end.go_on()
        if all(it.end is not None and it.end.is_over for it in speakers):
            return
        peer.run(_something_new(speakers), 0.5)


def _something_new(speakers: Sequence[_Speaker]) -> Callable[[], bool]:
    """Whether an end has heard anything, so that it may have to act."""
    ends = [it.end for it in speakers]
    before = [None if end is None else len(end.seen) for end in ends]

    def heard() -> bool:
        now = [it.end for it in speakers]
        return [None if end is None else len(end.seen) for end in now] != before

    return heard
