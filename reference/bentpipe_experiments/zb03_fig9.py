"""ZB03 figure 9: response time of short transfers beside fourteen without end."""

from __future__ import annotations

import random

from bentpipe_experiments import zb03
from bentpipe_experiments.model import (
    Cells,
    Experiment,
    Judgment,
    Measurement,
    Panel,
    Published,
    Series,
)
from bentpipe_experiments.verdicts import band, less, pairs_of, ratios_of
from bentpipe_experiments.zb03 import RWBP, SACK

SHORT = 5
"""The transfer that is replaced by requests (section IV.C)."""

SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Kilobytes."""

KILOBYTE = 1000
WARM_UP_S = 20.0
REQUESTS = 25
PAUSE_S = 1.0
LARGE, MOST = 8.0, 0.7
SLOWEST, OTHERS = "slowest", "others"
SHALLOW = "rwbp-shallow"
"""RWBP before a gateway with a tenth of the printed buffer."""

_CHANGES = {SHALLOW: {"queue": 110}}
_BER = 1e-6
_LIMIT_S = 300.0

_SETTINGS = {
    **zb03.SETTINGS,
    "transfers": (
        "those of figure 7 at a bit error rate of 10^-6, but for the fifth (42 ms between server "
        "and proxy): its client requests files of one size, one after the other (IV.C)"
    ),
    "requests": (
        "each on connections of its own, which the client opens: downstream proxy, satellite, "
        "upstream proxy, server. A request leaves with the last acknowledgment of a handshake and "
        "has no size. Whether connections persist is not printed; slow start, of which IV.C "
        "speaks, begins with a connection"
    ),
    "sizes and pauses": (
        "1 to 64 kB; an exponential pause of 1 s on average before each request. Neither is printed"
    ),
    "samples": (
        "a run has 25 requests after 20 s; forty runs would be the paper's 1,000 samples of a size"
    ),
    "terrestrial links": (
        "TCP Reno packet by packet for the short transfers; for the others as in zb03-fig7"
    ),
    "gateway": (
        "1098 packets (IV.B.1); RWBP obeys its credit, and with 15 send buffers of 146 packets it "
        "fills them, so that each packet waits half a second. The third curve has a tenth of them"
    ),
}


def shortest_s(kilobytes: float) -> float:
    """Seconds that nothing undercuts: two handshakes, a request, and its answer.

    A handshake across the satellite, one with the server, the request and the first packet both
    ways, and all packets over the slowest link.
    """
    packets = -(-kilobytes * KILOBYTE // zb03.MSS)
    octets = kilobytes * KILOBYTE + 40 * packets
    handshakes = zb03.SATELLITE_RTT_S + zb03.server_rtt_s(SHORT)
    return (
        handshakes + zb03.SATELLITE_RTT_S + zb03.server_rtt_s(SHORT) + 8 * octets / zb03.WIRE_RATE
    )


def measure(
    protocol: str, kilobytes: float, seed: int, *, requests: int = REQUESTS,
    warm_up: float = WARM_UP_S,
) -> Measurement:  # fmt: skip
    """Mean response time of files of one size, in seconds.

    Args:
        protocol: ``rwbp``, ``sack`` or :data:`SHALLOW`.
        kilobytes: size of a file.
        seed: seed of errors and pauses.
        requests: how many are made.
        warm_up: seconds before the first.

    Raises:
        RuntimeError: a connection failed, a file did not arrive, or octets are not those sent.
    """
    changes = _CHANGES.get(protocol, {})
    world = zb03.World(zb03.bulk(SACK if protocol == SACK else RWBP, _BER, **changes), seed)
    numbers = [i + 1 for i in range(zb03.TRANSFERS) if i + 1 != SHORT]
    chains = [world.chain(zb03.server_rtt_s(number)) for number in numbers]
    for chain in chains:
        chain.start()
    simulation, pauses = world.simulation, random.Random(seed)
    simulation.run_until(warm_up)
    before, seconds = sum(chain.read for chain in chains), []
    for _ in range(requests):
        simulation.run_until(simulation.now + pauses.expovariate(1 / PAUSE_S))
        begin = simulation.now
        file = world.response(zb03.server_rtt_s(SHORT), round(KILOBYTE * kilobytes))
        file.start()
        simulation.run_while(lambda file=file: file.finished is None, begin + _LIMIT_S)  # type: ignore[misc]
        zb03.check([file])
        if file.finished is None:
            raise RuntimeError(f"{kilobytes:g} kB did not arrive within {_LIMIT_S:g} s.")
        seconds.append(file.finished - begin)
    zb03.check(chains)
    others = sum(chain.read for chain in chains) - before
    return Measurement(
        sum(seconds) / len(seconds),
        {SLOWEST: max(seconds), OTHERS: 8 * others / (simulation.now - warm_up) / 1e6},
    )


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What section IV.C says of the figure."""
    return [
        less(
            "faster", "short transfers are faster with RWBP than with TCP SACK (figure 9)",
            pairs_of(cells, RWBP, SACK, SIZES), "s", ("RWBP", "TCP"),
        ),
        band(
            "much-faster",
            f"no slow start: from {LARGE:g} kB on RWBP takes at most {100 * MOST:g} % of TCP's "
            "time (figure 9)",
            ratios_of(cells, RWBP, SACK, [x for x in SIZES if x >= LARGE]),
            high=MOST, scale=100, unit=" %",
        ),
        less(
            "faster-shallow",
            "the same where the gateway holds 110 packets with RWBP, a tenth of what is printed",
            pairs_of(cells, SHALLOW, SACK, SIZES), "s", ("RWBP", "TCP"),
        ),
    ]  # fmt: skip


EXPERIMENTS = (
    Experiment(
        id="zb03-fig9",
        title="Response time of short transfers",
        source="ZB03 (Zhou and Baras 2003) figure 9, section IV.C",
        series=(
            Series(RWBP, "RWBP"),
            Series(SACK, "TCP SACK"),
            Series(SHALLOW, "RWBP, gateway with 110 packets"),
        ),
        x_label="size of a file (kB)",
        y_label="mean response time (s)",
        points=SIZES,
        runs=10,
        settings=_SETTINGS,
        measure=measure,
        judge=judge,
        panels=(Panel(OTHERS, "the fourteen others (Mb/s)"),),
        published=tuple(
            Published("two handshakes, request and answer (derived)", shortest_s(x), "derived", x)
            for x in SIZES
        ),
        x_scale="log",
    ),
)
