"""What an early SYN-ACK saves: the latency of short transfers through a box.

A box may answer a call before whom it calls has answered (PEP/1, *opening early*). The round trip
beyond the box then passes beside the one before it, so that the shorter of both is saved, and
splitting shortens slow start either way (HK99 section 6.1).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bentpipe_reference.pep.config import BoxConfig, Opening
from bentpipe_reference.tcp.config import EndpointConfig

from bentpipe_experiments import links
from bentpipe_experiments.boxes import Network, Place
from bentpipe_experiments.model import Cell, Cells, Experiment, Judgment, Measurement, Series
from bentpipe_experiments.statistics import paired_difference, within
from bentpipe_experiments.verdicts import NOT_MEASURED, altogether, less, pairs_of

SATELLITE_S = 0.6
SATELLITE_BIT_S = 10_000_000
INTERNET_S = 0.1
SPREAD = 0.1
REQUEST = 300
KILOBYTE = 1000
SIZES = (1.0, 4.0, 16.0, 64.0, 256.0)
"""Kilobytes."""

LARGE = 64.0
WHOLE, LATE, EARLY = "whole", "gateway-late", "gateway-early"
USER_LATE, USER_EARLY = "user-late", "user-early"
SAVED = "internet_s"
"""Note of each run: the round trip of its Internet path, seconds."""

CLOSE = 0.1
"""What may differ from a round trip, as a share of it."""

_HOST = EndpointConfig(receive_buffer=1 << 20, send_buffer=1 << 20)
_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class _Way:
    """Where a box is, and when it answers."""

    place: Place
    opening: Opening


WAYS: dict[str, _Way | None] = {
    WHOLE: None,
    LATE: _Way("gateway", "late"),
    EARLY: _Way("gateway", "early"),
    USER_LATE: _Way("user", "late"),
    USER_EARLY: _Way("user", "early"),
}
"""By series; None is a connection that is not split."""


def measure(series: str, kilobytes: float, seed: int) -> Measurement:
    """Seconds from the user's SYN to the last octet of the answer.

    Args:
        series: of :data:`WAYS`.
        kilobytes: length of the answer.
        seed: seed of the round trip of the Internet and everything else random.

    Raises:
        RuntimeError: the answer did not arrive, or its octets are not those sent.
    """
    numbers = random.Random(seed)
    internet_s = INTERNET_S * numbers.uniform(1 - SPREAD, 1 + SPREAD)
    way = WAYS[series]
    box = None
    if way is not None:
        box = BoxConfig(outer=_HOST, inner=_HOST, paired=False, opening=way.opening)
    network = Network(
        links.link("pep-opening-internet", "", 1000 * internet_s, 10 * SATELLITE_BIT_S),
        links.link("pep-opening-satellite", "", 1000 * SATELLITE_S, SATELLITE_BIT_S),
        _HOST, box, numbers.getrandbits(32), "gateway" if way is None else way.place,
    )  # fmt: skip
    asking = network.ask(REQUEST, round(KILOBYTE * kilobytes))
    return Measurement(network.finish(asking, _LIMIT_S), {SAVED: internet_s})


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What follows by arithmetic, and what HK99 section 6.1 says of slow start."""
    points = sorted({x for _, x in cells})
    return [
        _saves(
            "saves",
            "an early SYN-ACK of a box at the gateway saves the round trip of the Internet, the "
            "shorter one, at every size (arithmetic)",
            cells, LATE, EARLY, points, 1.0,
        ),
        _saves(
            "saves-nothing",
            "at the user's side of the satellite it saves nothing: the box's own call crosses the "
            "satellite before the request can (arithmetic)",
            cells, USER_LATE, USER_EARLY, points, 0.0,
        ),
        _saves(
            "costs-nothing",
            "a box that answers late adds nothing to what takes one round trip after the handshake "
            "(arithmetic)",
            cells, LATE, WHOLE, [SIZES[0]], 0.0,
        ),
        less(
            "slow-start",
            "a split connection speeds up slow start (HK99 section 6.1): from 64 kB on it is "
            "faster than one from end to end, although answered late",
            pairs_of(cells, LATE, WHOLE, [x for x in points if x >= LARGE]), "s",
            ("split", "end to end"),
        ),
    ]  # fmt: skip


def _saves(
    identifier: str, claim: str, cells: Cells, slower: str, faster: str, points: list[float],
    round_trips: float,
) -> Judgment:  # fmt: skip
    """Whether what one saves against the other are so many round trips of the Internet."""
    if not points or any((name, x) not in cells for name in (slower, faster) for x in points):
        return Judgment(identifier, claim, None, NOT_MEASURED)
    verdicts, told = [], []
    for x in points:
        saved, margin = _in_round_trips(cells[slower, x], cells[faster, x])
        verdicts.append(within(saved, margin, round_trips - CLOSE, round_trips + CLOSE))
        told.append(f"{saved:.3f} ± {margin:.2g} at {x:g}")
    sentence = f"{', '.join(told)} round trips of the Internet"
    return Judgment(identifier, claim, altogether(verdicts), sentence)


def _in_round_trips(slower: Cell, faster: Cell) -> tuple[float, float]:
    trips = slower.of(SAVED).values
    more, fewer = (
        [value / trip for value, trip in zip(cell.values, trips, strict=True)]
        for cell in (slower, faster)
    )
    return paired_difference(more, fewer)


_LABELS = {
    WHOLE: "end to end",
    LATE: "box at the gateway, late SYN-ACK",
    EARLY: "box at the gateway, early SYN-ACK",
    USER_LATE: "box at the user, late SYN-ACK",
    USER_EARLY: "box at the user, early SYN-ACK",
}

EXPERIMENTS = (
    Experiment(
        id="pep-opening",
        title="Latency of short transfers with and without an early SYN-ACK",
        source="PEP/1 section 5; HK99 (UCB/CSD-99-1083) section 6.1",
        series=tuple(Series(name, label) for name, label in _LABELS.items()),
        x_label="answer (kB)",
        y_label="latency (s)",
        points=SIZES,
        runs=10,
        settings={
            "transfer": (
                "a user behind the satellite calls a server in the Internet, asks with 300 octets "
                "and gets the answer; timed from the SYN to the last octet"
            ),
            "box": "the reference of PEP/1, alone, TCP on both sides, buffers of 2 MB of a stream",
            "satellite": "600 ms and 10 Mb/s: the sizes cost round trips and hardly time to send",
            "Internet": "100 ms and 100 Mb/s; each run draws the round trip within ten per cent",
            "congestion control": "current TCP: SACK, the growth of RFC 5681, ten first segments",
        },
        measure=measure,
        judge=judge,
        x_scale="log",
    ),
)
