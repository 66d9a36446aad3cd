"""What the ends offer, each pair of it together, and numbers that wrap (PEP-TR, PEP-LR)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bentpipe_conformance.engine.covering import Level, covering
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.steps import losing, quiet
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import MODULUS

_NONE = "none"
LARGEST, WIDE = 14, 200_000
"""The largest scale, and a buffer that it can name."""
OCTETS, FIRST = 16_000, 1000
"""Octets of each stream, and of its beginning, which nothing disturbs."""

NUMBERS: Mapping[str, int | None] = {
    "drawn": None, "zero": MODULUS - 1, "wraps in the first segment": MODULUS - 100,
    "wraps later": MODULUS - 9000, "turns negative": (MODULUS >> 1) - 5000,
}  # fmt: skip
"""Initial sequence numbers; octets have those behind them."""

_LOST = (3, 4, 7)
"""Which of the segments with new octets are lost once."""

_OF_EACH: Mapping[str, Sequence[Level]] = {
    "mss": (_NONE, 536, 1000, 1460), "scale": (_NONE, 0, 2, LARGEST), "sack": ("yes", "no"),
    "stamps": ("yes", "no"), "number": tuple(NUMBERS), "buffer": (6000, 65_535, WIDE),
}  # fmt: skip

FACTORS: Mapping[str, Sequence[Level]] = {
    **{f"{CLIENT}'s {name}": levels for name, levels in _OF_EACH.items()},
    **{f"{SERVER}'s {name}": levels for name, levels in _OF_EACH.items()},
    "loses": (_NONE, CLIENT, SERVER), "stops": (_NONE, CLIENT, SERVER),
    "ends": (CLIENT, SERVER, "both"),
}  # fmt: skip


def _permitted(row: Mapping[str, Level]) -> bool:
    """Whether windows can be named: a buffer is many units of the scale."""
    return all(
        row.get(f"{side}'s scale") != LARGEST or int(row.get(f"{side}'s buffer", WIDE)) == WIDE
        for side in (CLIENT, SERVER)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """What two ends offer each other, and what happens to them.

    Attributes:
        offers: of client and server.
        loses, stops: the end that loses segments, or that does not read for a while, or "none".
        ends: which ends its stream first, or "both".
    """

    offers: tuple[Offer, Offer]
    loses: str
    stops: str
    ends: str

    def __str__(self) -> str:
        said = "; ".join(
            f"{side}: MSS {it.mss}, scale {it.scale}, SACK {it.sack}, timestamps {it.timestamps}, "
            f"first number {it.number}, buffer {it.buffer}"
            for side, it in zip((CLIENT, SERVER), self.offers, strict=True)
        )
        return f"{said}; loses: {self.loses}; stops: {self.stops}; ends first: {self.ends}"


def _offer(row: Mapping[str, Level], side: str) -> Offer:
    def said(name: str) -> Level:
        return row[f"{side}'s {name}"]

    mss, scale = (None if said(name) == _NONE else int(said(name)) for name in ("mss", "scale"))
    return Offer(
        mss=mss, scale=scale, sack=said("sack") == "yes", timestamps=said("stamps") == "yes",
        buffer=int(said("buffer")), number=NUMBERS[str(said("number"))],
    )  # fmt: skip


PAIRS = tuple(
    Pair(
        (_offer(row, CLIENT), _offer(row, SERVER)), str(row["loses"]), str(row["stops"]),
        str(row["ends"]),
    )
    for row in covering(FACTORS, _permitted)
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part(Row):
    """Some pairs, one after another."""

    pairs: tuple[Pair, ...] = ()


def _converse(peer: Peer, pair: Pair) -> None:
    through = peer.connect(*pair.offers)
    ends: dict[str, End] = {CLIENT: through.client, SERVER: through.server}
    for end in ends.values():
        end.write(peer.octets(FIRST))
    peer.run(lambda: all(len(end.got) >= FIRST for end in ends.values()), 20.0)
    if pair.loses in ends:
        ends[pair.loses].reached_by = losing(_LOST)
    if pair.stops in ends:
        ends[pair.stops].stop()
    for end in ends.values():
        end.write(peer.octets(OCTETS))
    peer.run(lambda: all(len(end.got) >= FIRST + OCTETS for end in ends.values()), 4.0)
    for end in ends.values():
        end.go_on()
    first = [end for side, end in ends.items() if pair.ends in (side, "both")]
    for end in first:
        end.close()
    others = [end for end in ends.values() if end not in first]
    peer.run(lambda: all(end.ended for end in others), 40.0)
    for end in others:
        end.close()
    peer.run(lambda: all(end.is_over for end in ends.values()), 40.0)


def _drive(peer: Peer, part: Part) -> None:
    for pair in part.pairs:
        _converse(peer, pair)
    quiet(peer, 5.0)


def _parts(most: int = 9) -> Iterator[Part]:
    for start in range(0, len(PAIRS), most):
        pairs = PAIRS[start : start + most]
        said = "\n".join(f"* {pair}" for pair in pairs)
        yield Part(
            f"opening-offers-{start // most + 1}",
            f"Ends that offer this and that, one pair after another.\n\n{said}",
            ("PEP-TR-001", "PEP-RE-017"), pairs=pairs,
        )  # fmt: skip


each(globals(), _parts(), _drive)
