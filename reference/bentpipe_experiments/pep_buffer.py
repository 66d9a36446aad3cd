"""How large the buffers of a box have to be: throughput of a split connection over them.

HK99 section 6.1: roughly two to three times the bandwidth-delay product of the satellite link or of
the Internet path, whichever is smaller.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from bentpipe_reference.pep.config import BoxConfig
from bentpipe_reference.tcp.config import EndpointConfig

from bentpipe_experiments import links
from bentpipe_experiments.boxes import Network
from bentpipe_experiments.model import Cells, Experiment, Judgment, Measurement, Series
from bentpipe_experiments.verdicts import band, ratios_of

SATELLITE_BIT_S = 1_300_000
SATELLITE_MS = 600.0
QUEUE = 50
WIDE_BIT_S = 10_000_000
OCTETS = 5_000_000
AMPLE = 8.0
"""Products: so many are more than enough."""

RTT_MS = {"near": 20.0, "far": 200.0}
"""Round trip of the Internet path, by series; ten per cent either way."""

NEAR, FAR = "near", "far"
ENOUGH, TOO_LITTLE = 0.95, 0.8

_REQUEST = 100
_HOST = EndpointConfig(receive_buffer=1 << 20, send_buffer=1 << 20)
_LIMIT_S = 3600.0


def product(rate_bit_s: float, rtt_ms: float) -> float:
    """Octets that a path of this rate and round trip holds."""
    return rate_bit_s * rtt_ms / 8000


SATELLITE_PRODUCT = product(SATELLITE_BIT_S, SATELLITE_MS)


def measure(series: str, products: float, seed: int, *, octets: int = OCTETS) -> Measurement:
    """Throughput of a transfer through a box in kb/s.

    Args:
        series: of :data:`RTT_MS`.
        products: what the box holds of a stream, in products of the satellite's rate and round
            trip.
        seed: seed of the round trip of the Internet and everything else random.
        octets: length of the transfer.

    Raises:
        RuntimeError: the transfer did not complete, or its octets are not those sent.
    """
    numbers = random.Random(seed)
    rtt_ms = RTT_MS[series] * numbers.uniform(0.9, 1.1)
    half = round(products * SATELLITE_PRODUCT / 2)
    ends = EndpointConfig(receive_buffer=half, send_buffer=half)
    network = Network(
        links.link("pep-buffer-internet", "HK99 section 6.1", rtt_ms, WIDE_BIT_S),
        links.link(
            "pep-buffer-satellite", "HK99 section 5.2.1", SATELLITE_MS, SATELLITE_BIT_S, QUEUE
        ),
        _HOST,
        BoxConfig(outer=ends, inner=ends, paired=False),
        numbers.getrandbits(32),
    )
    seconds = network.finish(network.ask(_REQUEST, octets), _LIMIT_S)
    return Measurement(8 * octets / seconds / 1000, {})


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What section 6.1 says of buffers."""
    return [
        band(
            "enough",
            "two to three products of the satellite's rate and round trip are enough (HK99 section "
            f"6.1): {100 * ENOUGH:g} % of the throughput with {AMPLE:g}",
            _kept(cells, FAR, (2.0, 3.0)), ENOUGH, scale=100, unit=" %",
        ),
        band(
            "too-little",
            f"half a product is not: less than {100 * TOO_LITTLE:g} %",
            _kept(cells, FAR, (0.5,)), high=TOO_LITTLE, scale=100, unit=" %",
        ),
        band(
            "smaller",
            "where the product of the Internet path is the smaller one, two to three of these are "
            f"enough (HK99 section 6.1): at 20 ms, with three quarters of the satellite's, "
            f"{100 * ENOUGH:g} %",
            _kept(cells, NEAR, (0.75,)), ENOUGH, scale=100, unit=" %",
        ),
    ]  # fmt: skip


def _kept(cells: Cells, series: str, points: Sequence[float]) -> dict[float, tuple[float, float]]:
    """Throughput as a share of that with ample buffers, by point."""
    if any((series, x) not in cells for x in (*points, AMPLE)):
        return {}
    found = {("some", x): cells[series, x] for x in points}
    ample = {("ample", x): cells[series, AMPLE] for x in points}
    return ratios_of({**found, **ample}, "some", "ample", points)


EXPERIMENTS = (
    Experiment(
        id="pep-buffer",
        title="Throughput over the buffer of a box",
        source="HK99 (UCB/CSD-99-1083) section 6.1",
        series=(Series(FAR, "Internet path of 200 ms"), Series(NEAR, "Internet path of 20 ms")),
        x_label="buffer of a stream (products of the satellite's rate and round trip)",
        y_label="throughput (kb/s)",
        points=(0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, AMPLE),
        runs=6,
        settings={
            "transfer": (
                "5 MB from a server in the Internet to a user behind the satellite, who has asked "
                "for them; timed from the user's SYN to the last octet read"
            ),
            "box": (
                "the reference of PEP/1 at the gateway, TCP on both sides. Half of the buffer "
                "holds what has arrived and is not handed over, half what is sent and not "
                "acknowledged; the paper does not say how its gateway divides them"
            ),
            "satellite": (
                "1.3 Mb/s, 600 ms, no bit errors (section 5.2.1), a queue of 50 packets: 97,500 "
                "octets are one product"
            ),
            "Internet": (
                "10 Mb/s (section 5.2.1). 20 ms is the paper's, 25,000 octets; 200 ms, 250,000 "
                "octets, has the larger product. Each run draws the round trip within ten per cent"
            ),
            "congestion control": "current TCP: SACK, the growth of RFC 5681, ten first segments",
            "windows": "1 MB at both ends, so that only the box limits",
        },
        measure=measure,
        judge=judge,
    ),
)
