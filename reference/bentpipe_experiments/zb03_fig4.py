"""ZB03 figures 4 to 6: one transfer, over the acknowledgment interval, and its reorder buffer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from statistics import correlation
from typing import Any

from bentpipe_reference.rwbp.receiver import RwbpReceiver

from bentpipe_experiments import zb03
from bentpipe_experiments.chain import Chain, ConnectionHop
from bentpipe_experiments.model import (
    Cells,
    Experiment,
    Judgment,
    Measurement,
    Panel,
    Published,
    Series,
)
from bentpipe_experiments.statistics import (
    median_interval,
    paired_difference,
    paired_ratio,
    within,
)
from bentpipe_experiments.verdicts import NOT_MEASURED, altogether, band, ratios_of
from bentpipe_experiments.zb03 import PACKET, RWBP, SACK, Network, World

RATE = PEAK = 600e3
SERVER_RTT_S = 0.08
OCTETS = 3_000_000
INTERVALS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
ENDLESS = 10_000.0
"""PRDP: a buffer without bound."""

LATE = "late"
"""RWBP whose acknowledgments wait until there are N of them, as ZB03 has no timer for a tail."""

USAGE = "return_kb_s"
PACKETS_S = RATE / 8 / PACKET
_ACK = 40
_LIMIT_S = 600.0
_SAMPLE_S = 0.01
_TOLERANCE = 0.15

_SOURCE = "ZB03 (Zhou and Baras 2003) figures 4 and 5, section IV.A"
_SETTINGS = {
    **zb03.SETTINGS,
    "transfer": (
        "3 MB at 600 kb/s, the peak rate, too; 80 ms between server and proxy, links of 2 Mb/s; "
        "the downstream proxy's receive buffer has no bound (IV.A)"
    ),
    "send buffer": (
        "80 packets across the satellite. With 79 the throughput at N = 8 is 97.1 % of that at "
        "N = 1, with 80 more than 98 %: figure 5's claim holds for whole packets, rounded up"
    ),
    "gateway": "75 packets, as in section IV.D; RWBP obeys its credit",
    "measured": (
        "throughput from the server's SYN to the last octet at the client; use of the return "
        "channel in octets of IP packets over the same time"
    ),
    "tail": (
        "ZB03 does not say what acknowledges fewer than N packets. RWBP/1 waits 0.1 s, less than N "
        "packets take beyond 14; the other curve waits 1 s"
    ),
}


class LateAcknowledgments(RwbpReceiver):
    """Waits a second for the N-th segment."""

    def delayed_ack_interval(self) -> float:
        """Longer than 32 packets at 600 kb/s."""
        return 1.0


def network(protocol: str, interval: int = zb03.INTERVAL, ber: float = 0.0) -> Network:
    """The network of section IV.A."""
    late = protocol == LATE
    return Network(
        protocol=RWBP if late else protocol,
        rate=RATE, peak=PEAK, ber=ber, queue=75, interval=interval, receive=ENDLESS,
        parts=(LateAcknowledgments,) if late else (),
    )  # fmt: skip


def finish(world: World, chain: Chain, limit_s: float = _LIMIT_S) -> float:
    """Start a chain and wait for its end; seconds.

    Raises:
        RuntimeError: it did not end, or octets are not those sent.
    """
    begin = world.simulation.now
    chain.start()
    world.simulation.run_while(lambda: chain.finished is None, begin + limit_s)
    zb03.check([chain])
    if chain.finished is None:
        raise RuntimeError(f"not finished within {limit_s:g} s.")
    return chain.finished - begin


def measure(
    protocol: str, interval: float, seed: int, *, octets: int = OCTETS, **changes: Any
) -> Measurement:
    """Throughput of one transfer in kb/s, and what the return channel carried meanwhile."""
    world = World(replace(network(protocol, int(interval)), **changes), seed)
    seconds = finish(world, world.chain(SERVER_RTT_S, octets))
    counters = world.return_.counters
    return Measurement(
        8 * octets / seconds / 1000,
        {
            USAGE: 8 * counters.offered_octets / seconds / 1000,
            "acknowledgments": counters.offered,
            "erroneous": world.space.counters.erroneous,
        },
    )


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What section IV.A says of figures 4 and 5."""
    return [
        _usage(cells),
        _slope(cells),
        band(
            "quarter",
            "with N = 8 RWBP uses a quarter of TCP's return channel (figure 4)",
            ratios_of(cells, LATE, SACK, [8.0], USAGE), 0.2, 0.3,
        ),
        _close(cells),
        _falls(cells),
    ]  # fmt: skip


def derived_usage(interval: float) -> float:
    """An acknowledgment of 40 octets for each N packets of a link that is full, kb/s."""
    return PACKETS_S * 8 * _ACK / interval / 1000


def _usage(cells: Cells) -> Judgment:
    claim = (
        "the return channel carries an acknowledgment of 40 octets for every N packets (figure 4)"
    )
    full = RATE / 1000 * zb03.MSS / PACKET
    ratios = {
        x: (cell.of(USAGE).mean / derived_usage(x) / (cell.mean / full), 0.0)
        for x in INTERVALS
        if (cell := cells.get((LATE, x))) is not None
    }
    complete = ratios if len(ratios) == len(INTERVALS) else {}
    return band("usage", claim, complete, 1 - _TOLERANCE, 1 + _TOLERANCE, unit=" of 1/N")


def _slope(cells: Cells) -> Judgment:
    claim = "the use of the return channel falls as 1/N up to 16 (figure 4): slope -1 ± 0.1"
    points = [x for x in INTERVALS if x <= 16]
    if any((LATE, x) not in cells for x in points):
        return Judgment("slope", claim, None, NOT_MEASURED)
    found = slope((x, cells[LATE, x].of(USAGE).mean) for x in points)
    return Judgment("slope", claim, abs(found + 1) <= 0.1, f"the slope is {found:.3f}")


def slope(points: Iterable[tuple[float, float]]) -> float:
    """Of the least-squares line through the logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    xs, ys = zip(*logs, strict=True)
    spread = [math.sqrt(sum((v - sum(vs) / len(vs)) ** 2 for v in vs)) for vs in (xs, ys)]
    return correlation(xs, ys) * spread[1] / spread[0]


def _close(cells: Cells) -> Judgment:
    claim = "the throughput at N = 4 and 8 is very close to that at N = 1 (figure 5): 98 % at least"
    ratios: dict[float, tuple[float, float]] = {}
    if {(LATE, 1.0), (LATE, 4.0), (LATE, 8.0)} <= set(cells):
        first = cells[LATE, 1.0].values
        ratios = {x: paired_ratio(cells[LATE, x].values, first) for x in (4.0, 8.0)}
    return band("insensitive", claim, ratios, 0.98, scale=100, unit=" %")


def _falls(cells: Cells) -> Judgment:
    claim = "the throughput begins to fall at N = 16 (figure 5)"
    if any((LATE, x) not in cells for x in (8.0, 16.0)):
        return Judgment("falls", claim, None, NOT_MEASURED)
    value, margin = paired_difference(cells[LATE, 8.0].values, cells[LATE, 16.0].values)
    holds = within(value, margin, math.nextafter(0, 1), math.inf)
    return Judgment(
        "falls", claim, holds, f"from 8 to 16 it falls by {value:.3g} ± {margin:.2g} kb/s"
    )


# -- figure 6 -------------------------------------------------------------------------------------

MAXIMUM, PERCENTILE = "maximum", "percentile_99"
PRDP = PEAK * zb03.SATELLITE_RTT_S / 8 / PACKET * zb03.MSS
"""Octets of data in 37,500 octets of packets: a peak rate counts headers, too."""

_SETTINGS_6 = {
    **_SETTINGS,
    "transfer": (
        "3 MB at 600 kb/s with N = 8, the downstream proxy's receive buffer without bound (IV.A)"
    ),
    "measured": (
        "octets that have arrived at the downstream proxy and wait for others, every 10 ms: the "
        "largest number of each run, in PRDP (37,500 octets of packets, 73 of them)"
    ),
}


def measure_reordering(_: str, millionths: float, seed: int, octets: int = OCTETS) -> Measurement:
    """The most that the reorder buffer held, in PRDP.

    Args:
        _: the only series.
        millionths: bit error rate, in units of 10^-6.
        seed: seed of the errors.
        octets: length of the transfer.
    """
    world = World(network(RWBP, ber=millionths / 1e6), seed)
    chain = world.chain(SERVER_RTT_S, octets)
    middle = chain.hops[1]
    assert isinstance(middle, ConnectionHop)
    held: list[float] = []

    def sample() -> None:
        receiver = middle.receiving.receiver
        if isinstance(receiver, RwbpReceiver):
            held.append(sum(right - left for left, right in receiver.buffer.runs) / PRDP)
        world.simulation.call_after(_SAMPLE_S, sample)

    sample()
    seconds = finish(world, chain)
    held.sort()
    return Measurement(
        held[-1],
        {
            PERCENTILE: held[int(0.99 * len(held))],
            "throughput_kb_s": 8 * octets / seconds / 1000,
            "erroneous": world.space.counters.erroneous,
        },
    )


ONCE, TWICE = 1.0, 10.0
"""Bit error rates in millionths, at which retransmissions arrive, or are lost twice."""

THREE = (2.5, 4.0)
_MOST = {ONCE: (0.7, 1.5), TWICE: (2.0, 4.0)}
_RECOMMENDED = {ONCE: 2.0, TWICE: 4.0}


def judge_reordering(cells: Cells, _: int) -> list[Judgment]:
    """What section IV.A says of figure 6."""
    return [
        *(_held(cells, x) for x in _MOST),
        _thrice(cells),
        *(_enough(cells, x) for x in _RECOMMENDED),
    ]


def _held(cells: Cells, x: float) -> Judgment:
    low, high = _MOST[x]
    times = "about one" if x == ONCE else "about three"
    claim = (
        f"at {x:g}x10^-6 the reorder buffer holds {times} PRDP at times (figure 6): "
        f"the median of the largest numbers is {low:g} to {high:g}"
    )
    if (RWBP, x) not in cells:
        return Judgment(f"held-{x:g}", claim, None, NOT_MEASURED)
    values = cells[RWBP, x].values
    found, least, most = median_interval(values)
    holds = within((least + most) / 2, (most - least) / 2, low, high)
    sentence = (
        f"median {found:.2f} ({least:.2f} to {most:.2f} with 95 %) "
        f"of {min(values):.2f} to {max(values):.2f} PRDP"
    )
    return Judgment(f"held-{x:g}", claim, holds, sentence)


def _thrice(cells: Cells) -> Judgment:
    """A packet and two repairs in a row are lost: in a third of all transfers of this length."""
    claim = (
        f"at {TWICE:g}x10^-6 repairs are lost twice at times, and the reorder buffer then holds "
        f"about three PRDP (figure 6): {THREE[0]:g} to {THREE[1]:g} in some transfers"
    )
    if (RWBP, TWICE) not in cells:
        return Judgment("thrice", claim, None, NOT_MEASURED)
    values = cells[RWBP, TWICE].values
    found = sum(THREE[0] <= value <= THREE[1] for value in values)
    lost = 1 - (1 - TWICE / 1e6) ** (8 * PACKET)
    expected = 1 - math.exp(-OCTETS / zb03.MSS * lost**3)
    sentence = (
        f"{found} of {len(values)} transfers; a packet and two repairs are lost in "
        f"{100 * expected:.0f} % of them"
    )
    return Judgment("thrice", claim, found > 0, sentence)


def _enough(cells: Cells, x: float) -> Judgment:
    most = _RECOMMENDED[x]
    claim = f"at {x:g}x10^-6 a buffer of {most:g} PRDP is enough (figure 6), 99 % of the time"
    if (RWBP, x) not in cells:
        return Judgment(f"enough-{x:g}", claim, None, NOT_MEASURED)
    values = cells[RWBP, x].of(PERCENTILE).values
    holds = altogether(value <= most for value in values)
    return Judgment(f"enough-{x:g}", claim, holds, f"at most {max(values):.2f} PRDP in any run")


EXPERIMENTS = (
    Experiment(
        id="zb03-fig4",
        title="Acknowledgment interval of RWBP",
        source=_SOURCE,
        series=(
            Series(LATE, "RWBP, every N-th packet"),
            Series(RWBP, "RWBP/1"),
            Series(SACK, "TCP SACK, every second packet"),
        ),
        x_label="acknowledgment interval N of RWBP (packets)",
        y_label="throughput (kb/s)",
        points=INTERVALS,
        runs=5,
        settings=_SETTINGS,
        measure=measure,
        judge=judge,
        panels=(Panel(USAGE, "use of the return channel (kb/s)"),),
        published=tuple(
            Published("an ACK of 40 octets for N packets (derived)", derived_usage(x), "derived",
                      x, LATE, USAGE)
            for x in INTERVALS
        ),
        x_scale="log",
    ),
    Experiment(
        id="zb03-fig6",
        title="The reorder buffer of the downstream proxy",
        source="ZB03 (Zhou and Baras 2003) figure 6, section IV.A",
        series=(Series(RWBP, "RWBP"),),
        x_label="bit error rate (10⁻⁶)",
        y_label="most that it held (PRDP)",
        points=(ONCE, TWICE),
        runs=40,
        settings=_SETTINGS_6,
        measure=measure_reordering,
        judge=judge_reordering,
        panels=(Panel(PERCENTILE, "held 99 % of the time (PRDP)"),),
        published=(
            Published("at times, as printed", 1.0, "section IV.A", ONCE, RWBP),
            Published("sometimes, as printed", 3.0, "section IV.A", TWICE, RWBP),
        ),
        x_scale="log",
    ),
)  # fmt: skip
