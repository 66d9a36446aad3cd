"""ZB03 figure 7: aggregate throughput of fifteen transfers over the bit error rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from bentpipe_experiments.verdicts import band, ratios_of
from bentpipe_experiments.zb03 import MSS, PACKET, RWBP, SACK

WARM_UP_S = 20.0
SECONDS = 50.0
CAPACITY = 9.0 * MSS / PACKET
"""Mb/s of user data on 9 Mb/s."""

NONE, FEW, SOME, MANY = 0.0, 0.01, 1.0, 10.0
"""Bit error rates of the claims, in millionths."""

HIGH = 0.9
HIGH_WITH_ERRORS = {SOME: 0.85, MANY: 0.7}
DEGRADED = {SOME: 0.6, MANY: 0.2}
TIMEOUTS = "timeouts"

_SOURCE = "ZB03 (Zhou and Baras 2003) figure 7, section IV.B.1"
_SETTINGS = {
    **zb03.SETTINGS,
    "transfers": (
        "15 without end; the satellite link has 9 Mb/s, those of servers and clients 2 Mb/s; "
        "10 i - 8 ms between server i and the proxy; peak rate 1.2 Mb/s (IV.B.1)"
    ),
    "gateway": "1098 packets, the link's rate times 500 ms (IV.B.1); RWBP obeys its credit",
    "time": (
        "each run is measured for 50 s after 20 s; twenty runs make up the 1,000 s of the paper, "
        "and give an interval"
    ),
    "terrestrial links": (
        "no packet is lost there; so TCP Reno is its window, rate and delay from the first packet "
        "on. zb03-fig7-choices has it packet by packet"
    ),
}


def measure(
    protocol: str,
    millionths: float,
    seed: int,
    *,
    seconds: float = SECONDS,
    warm_up: float = WARM_UP_S,
    **changes: Any,
) -> Measurement:
    """Aggregate throughput of user data at the clients, Mb/s.

    Args:
        protocol: ``rwbp`` or ``sack`` between the proxies.
        millionths: bit error rate of the satellite link, in units of 10^-6.
        seed: seed of the errors.
        seconds: how long it is measured.
        warm_up: seconds before that.
        changes: what is changed of the network.

    Raises:
        RuntimeError: a connection failed, or octets are not those sent.
    """
    world = zb03.World(zb03.bulk(protocol, millionths / 1e6, **changes), seed)
    chains = [world.chain(zb03.server_rtt_s(i + 1)) for i in range(zb03.TRANSFERS)]
    for chain in chains:
        chain.start()
    world.simulation.run_until(warm_up)
    before = [chain.read for chain in chains]
    world.simulation.run_until(warm_up + seconds)
    zb03.check(chains)
    rates = [8 * (c.read - b) / seconds / 1e6 for c, b in zip(chains, before, strict=True)]
    counters = [sender.counters for sender in zb03.senders(chains)]
    return Measurement(
        sum(rates),
        {
            TIMEOUTS: sum(item.timeouts for item in counters),
            "fairness": sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates)),
            "retransmissions": sum(item.retransmissions for item in counters),
            "erroneous": world.space.counters.erroneous,
            "dropped": world.space.gateway.dropped,
        },
    )


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What section IV.B.1 says of the figure."""
    return [
        *(_filled(cells, name) for name in (RWBP, SACK)),
        *(_kept(cells, x) for x in (SOME, MANY)),
        *(_degraded(cells, x) for x in (SOME, MANY)),
        _timeouts(cells),
    ]


def _shares(cells: Cells, series: str, points: Sequence[float]) -> dict[float, tuple[float, float]]:
    """Shares of the capacity with half their intervals; empty if a point is missing."""
    if any((series, x) not in cells for x in points):
        return {}
    found = {x: cells[series, x] for x in points}
    return {x: (cell.mean / CAPACITY, cell.half_width / CAPACITY) for x, cell in found.items()}


def _filled(cells: Cells, series: str) -> Judgment:
    name = "RWBP" if series == RWBP else "TCP SACK"
    return band(
        f"filled-{series}",
        f"{name} achieves very high throughput when the bit error rate is very low: at least "
        f"{100 * HIGH:g} % of the link up to 10^-8",
        _shares(cells, series, [NONE, FEW]), HIGH, scale=100, unit=" %",
    )  # fmt: skip


def _kept(cells: Cells, x: float) -> Judgment:
    least = HIGH_WITH_ERRORS[x]
    return band(
        f"kept-{x:g}",
        f"RWBP's throughput is high at {x:g}x10^-6: at least {100 * least:g} % of the link",
        _shares(cells, RWBP, [x]), least, scale=100, unit=" %",
    )  # fmt: skip


def _degraded(cells: Cells, x: float) -> Judgment:
    most = DEGRADED[x]
    word = "degraded" if x == SOME else "very low"
    return band(
        f"degraded-{x:g}",
        f"TCP SACK's throughput is {word} at {x:g}x10^-6: at most {100 * most:g} % of RWBP's",
        ratios_of(cells, SACK, RWBP, [x]), high=most, scale=100, unit=" %",
    )  # fmt: skip


def _timeouts(cells: Cells) -> Judgment:
    """Every transfer waits for its timer, some of the time."""
    cell = cells.get((SACK, MANY))
    found = {} if cell is None else {MANY: (cell.of(TIMEOUTS).mean, cell.of(TIMEOUTS).half_width)}
    return band(
        "timeouts",
        f"at {MANY:g}x10^-6 TCP SACK has to wait for timeouts: one for each transfer at least",
        found, zb03.TRANSFERS, unit=" timeouts",
    )  # fmt: skip


PUBLISHED = tuple(
    Published("TCP by the square-root law (derived)", value, "derived", x, SACK)
    for x, value in ((SOME, 2.3), (MANY, 0.75))
)

CHOICES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rwbp-reno": ("RWBP, terrestrial TCP Reno packet by packet", RWBP, {"wired_tcp": True}),
    "sack-reno": ("TCP SACK, the same", SACK, {"wired_tcp": True}),
    "rwbp-return": ("RWBP, errors on the return channel", RWBP, {"errors_back": True}),
    "sack-return": ("TCP SACK, the same", SACK, {"errors_back": True}),
    "sack-wide": ("TCP SACK, buffers of 4 PRDP", SACK, {"window": 4.0, "receive": 4.0}),
    "rwbp-four": ("RWBP, receive buffer of 4 PRDP", RWBP, {"receive": 4.0}),
    "sack-old": (
        "TCP SACK-Reno",
        SACK,
        {"middle": (("variant", "sack-reno"),)},
    ),
}
"""What the paper leaves open: name in the figure, protocol, and what is changed."""


def measure_choice(choice: str, millionths: float, seed: int, **timing: float) -> Measurement:
    """As :func:`measure`, with one of :data:`CHOICES`."""
    _, protocol, changes = CHOICES[choice]
    changes = dict(changes)
    if changes.pop("errors_back", False):
        changes["return_ber"] = millionths / 1e6
    return measure(protocol, millionths, seed, **timing, **changes)


def judge_choices(cells: Cells, _: int) -> list[Judgment]:
    """Whether the claims stand with each choice."""
    found = []
    for name, (label, protocol, _changes) in CHOICES.items():
        for x in (SOME, MANY):
            low, high = (HIGH_WITH_ERRORS[x], 2.0) if protocol == RWBP else (0.0, DEGRADED[x])
            claim = f"{label}: {'at least' if protocol == RWBP else 'at most'} " + (
                f"{100 * (low if protocol == RWBP else high):g} % of the link at {x:g}x10^-6"
            )
            shares = _shares(cells, name, [x])
            found.append(band(f"{name}-{x:g}", claim, shares, low, high, scale=100, unit=" %"))
    return found


EXPERIMENTS = (
    Experiment(
        id="zb03-fig7",
        title="Aggregate throughput of fifteen transfers",
        source=_SOURCE,
        series=(Series(RWBP, "RWBP"), Series(SACK, "TCP SACK")),
        x_label="bit error rate (10⁻⁶)",
        y_label="aggregate throughput of user data (Mb/s)",
        points=(NONE, FEW, 0.1, SOME, MANY),
        runs=20,
        settings=_SETTINGS,
        measure=measure,
        judge=judge,
        panels=(Panel(TIMEOUTS, "timeouts"),),
        published=PUBLISHED,
        x_scale="symlog",
    ),
    Experiment(
        id="zb03-fig7-choices",
        title="The same with other choices where the paper leaves one",
        source=_SOURCE,
        series=tuple(Series(name, label) for name, (label, _, _) in CHOICES.items()),
        x_label="bit error rate (10⁻⁶)",
        y_label="aggregate throughput of user data (Mb/s)",
        points=(SOME, MANY),
        runs=5,
        settings={**_SETTINGS, "choices": "one by one, as the legend says"},
        measure=measure_choice,
        judge=judge_choices,
        x_scale="log",
    ),
)
