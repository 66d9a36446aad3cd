"""ZB03 figures 10 and 11: one transfer beside traffic of high priority."""

from __future__ import annotations

import math
import random
from typing import Any

from bentpipe_experiments import zb03
from bentpipe_experiments.model import Cells, Experiment, Judgment, Measurement, Panel, Series
from bentpipe_experiments.statistics import paired_difference
from bentpipe_experiments.verdicts import NOT_MEASURED, band
from bentpipe_experiments.zb03 import PACKET, RWBP, SACK, Network, World

RATE = PEAK = 600e3
TRANSFER = 5
OCTETS = 36_000_000
START_S, UDP_S, UDP_END_S = 150.0, 240.0, 960.0
QUIET = (200.0, 240.0)
LOADED = (300.0, 900.0)
STEPS_S = (1.0, 5.0, 30.0)
"""Seconds for which the priority traffic keeps its rate."""

RATES = tuple(100e3 * i for i in range(7))
"""Of a step; their mean is 300 kb/s."""

ON_OFF = (0.0, 600e3)
BURSTS = (0.0, 0.0, 0.0, 1200e3)
"""Other rates with the same mean."""

HIGH, LOW, FEWEST_TIMEOUTS, GAP = 0.97, 0.9, 5.0, 0.08
ALONE, TIMEOUTS, DROPPED = "alone", "timeouts", "dropped"

_SETTINGS = {
    **zb03.SETTINGS,
    "transfer": (
        "server 5 (42 ms), 36 MB from 150 s on; satellite link and peak rate 600 kb/s (IV.D)"
    ),
    "gateway": "75 packets of low priority, 50 of high priority (IV.D), no bit errors",
    "priority traffic": (
        "UDP packets of 512 octets from 240 to 960 s, 300 kb/s on average (IV.D). Its shape is not "
        "printed but changes: here to one of 0, 100, ..., 600 kb/s, all equally often, after as "
        "many seconds as the row says"
    ),
    "measured": "share of the link in use, by both kinds of traffic, from 300 to 900 s",
}


def network(protocol: str, **changes: Any) -> Network:
    """The network of section IV.D."""
    return Network(protocol=protocol, rate=RATE, peak=PEAK, queue=75, high_queue=50, **changes)


def staircase(
    numbers: random.Random, step_s: float, levels: tuple[float, ...] = RATES
) -> list[float]:
    """The rates of all steps, bits per second: each of ``levels`` as often as the others."""
    steps = round((UDP_END_S - UDP_S) / step_s)
    rates = list(levels) * (steps // len(levels))
    rates += [sum(levels) / len(levels)] * (steps - len(rates))
    numbers.shuffle(rates)
    return rates


class PriorityTraffic:
    """Packets of high priority at the rates of a staircase.

    Args:
        world: where they go.
        step_s: seconds of a step.
        seed: seed of the order of the steps.
        levels: the rates.
    """

    def __init__(
        self, world: World, step_s: float, seed: int, levels: tuple[float, ...] = RATES
    ) -> None:
        self._world = world
        self._step_s = step_s
        self._rates = staircase(random.Random(seed), step_s, levels)
        world.simulation.call_at(UDP_S, self._send)

    def _send(self) -> None:
        simulation = self._world.simulation
        step = int((simulation.now - UDP_S) // self._step_s)
        if step >= len(self._rates):
            return
        rate = self._rates[step]
        if not rate:
            simulation.call_at(UDP_S + (step + 1) * self._step_s, self._send)
            return
        self._world.space.send_high(_arrive, PACKET)
        simulation.call_after(8 * PACKET / rate, self._send)


def _arrive() -> None:
    """Nobody counts what arrives."""


def measure(
    protocol: str, step_s: float, seed: int, *, until: float = LOADED[1],
    levels: tuple[float, ...] = RATES, octets: int | None = OCTETS, **changes: Any,
) -> Measurement:  # fmt: skip
    """Share of the link that is in use while there is traffic of high priority.

    Args:
        protocol: ``rwbp`` or ``sack`` between the proxies.
        step_s: seconds for which the traffic of high priority keeps its rate.
        seed: seed of the traffic of high priority.
        until: when the measurement ends, seconds.
        levels: rates of the traffic of high priority.
        octets: length of the transfer, None for one without end.
        changes: what is changed of the network.
    """
    world = World(network(protocol, **changes), seed)
    chain = world.chain(zb03.server_rtt_s(TRANSFER), octets)
    simulation = world.simulation
    simulation.call_at(START_S, chain.start)
    PriorityTraffic(world, step_s, seed, levels)
    alone = _use(world, *QUIET)
    loaded = _use(world, LOADED[0], until)
    zb03.check([chain])
    (sender,) = zb03.senders([chain])
    return Measurement(
        loaded,
        {
            ALONE: alone,
            TIMEOUTS: sender.counters.timeouts,
            DROPPED: world.space.gateway.dropped,
            "dropped_high": world.space.gateway.dropped_high,
        },
    )


def _use(world: World, begin: float, end: float) -> float:
    """Share of the time from ``begin`` to ``end`` in which the link was in use."""
    world.simulation.run_until(begin)
    before = world.space.counters.octets
    world.simulation.run_until(end)
    return 8 * (world.space.counters.octets - before) / RATE / (end - begin)


CHOICES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sack": ("TCP SACK, as in zb03-fig11", SACK, {}),
    "sack-two": ("TCP SACK, send buffer of 2 PRDP", SACK, {"window": 2.0}),
    "sack-four": ("TCP SACK, buffers of 4 PRDP", SACK, {"window": 4.0, "receive": 4.0}),
    "sack-old": (
        "TCP SACK-Reno, buffers of 4 PRDP",
        SACK,
        {"window": 4.0, "receive": 4.0, "middle": (("variant", "sack-reno"),)},
    ),
    "sack-on-off": ("TCP SACK, 2 PRDP, UDP of 0 or 600 kb/s", SACK,
                    {"window": 2.0, "levels": ON_OFF}),
    "sack-bursts": ("TCP SACK, 2 PRDP, UDP of 0 or 1200 kb/s", SACK,
                    {"window": 2.0, "levels": BURSTS}),
    "rwbp-on-off": ("RWBP, UDP of 0 or 600 kb/s", RWBP, {"levels": ON_OFF}),
    "rwbp-bursts": ("RWBP, UDP of 0 or 1200 kb/s", RWBP, {"levels": BURSTS}),
}  # fmt: skip
"""What the paper leaves open: name in the figure, protocol, and what is changed."""


def measure_choice(choice: str, step_s: float, seed: int, **changes: Any) -> Measurement:
    """As :func:`measure`, with one of :data:`CHOICES` and terrestrial TCP by its window.

    The transfer has no end: where UDP takes little, 36 MB do not last until 900 s.
    """
    _, protocol, chosen = CHOICES[choice]
    return measure(protocol, step_s, seed, wired_tcp=False, octets=None, **chosen, **changes)


def judge_choices(cells: Cells, _: int) -> list[Judgment]:
    """Whether the claims stand with each choice."""
    found = []
    for name, (label, protocol, _changes) in CHOICES.items():
        low, high = (HIGH, 1.01) if protocol == RWBP else (0.0, LOW)
        found.append(_share(cells, name, label, name, None, low, high))
    return found


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What section IV.D says of figures 10 and 11, at every length of a step."""
    return [
        _share(cells, "alone", "TCP alone fills the link", SACK, ALONE, 0.95, 1.01),
        _share(cells, "rwbp-high", "beside UDP RWBP keeps the link in use", RWBP, None, HIGH, 1.01),
        _share(cells, "tcp-low", "beside UDP TCP leaves it idle", SACK, None, 0.0, LOW),
        _lossless(cells),
        _share(
            cells, "timeouts", "beside UDP TCP times out again and again", SACK, TIMEOUTS,
            FEWEST_TIMEOUTS, math.inf,
        ),
        _gap(cells),
    ]  # fmt: skip


def _share(
    cells: Cells, name: str, claim: str, series: str, note: str | None, low: float, high: float
) -> Judgment:  # fmt: skip
    found = {}
    for (which, x), whole in sorted(cells.items()):
        if which == series:
            cell = whole.of(note)
            found[x] = (cell.mean, cell.half_width)
    told = f"at least {low:g}" if low else f"at most {high:g}"
    return band(name, f"{claim}: {told} (figures 10 and 11)", found, low, high)


def _lossless(cells: Cells) -> Judgment:
    claim = "with RWBP the gateway drops nothing"
    dropped = [max(cell.of(DROPPED).values) for (name, _), cell in cells.items() if name == RWBP]
    if not dropped:
        return Judgment("lossless", claim, None, NOT_MEASURED)
    most = max(dropped)
    return Judgment("lossless", claim, most == 0, f"{most:g} packets dropped in any run")


def _gap(cells: Cells) -> Judgment:
    found = {
        x: paired_difference(cells[RWBP, x].values, cell.values)
        for (name, x), cell in sorted(cells.items())
        if name == SACK and (RWBP, x) in cells
    }
    return band(
        "gap",
        f"RWBP uses the link better than TCP, by {GAP:g} at least (figure 11)",
        found, GAP, 1.0,
    )  # fmt: skip


EXPERIMENTS = (
    Experiment(
        id="zb03-fig11",
        title="Use of the link beside priority traffic",
        source="ZB03 (Zhou and Baras 2003) figures 10 and 11, section IV.D",
        series=(Series(RWBP, "RWBP"), Series(SACK, "TCP SACK")),
        x_label="seconds for which the priority traffic keeps its rate",
        y_label="share of the link in use, 300 to 900 s",
        points=STEPS_S,
        runs=5,
        settings=_SETTINGS,
        measure=measure,
        judge=judge,
        panels=(Panel(ALONE, "the same without UDP, 200 to 240 s"), Panel(TIMEOUTS, "timeouts")),
        x_scale="log",
    ),
    Experiment(
        id="zb03-fig11-choices",
        title="The same with other choices where the paper leaves one",
        source="ZB03 (Zhou and Baras 2003) figures 10 and 11, section IV.D",
        series=tuple(Series(name, label) for name, (label, _, _) in CHOICES.items()),
        x_label="seconds for which the priority traffic keeps its rate",
        y_label="share of the link in use, 300 to 900 s",
        points=STEPS_S,
        runs=5,
        settings={
            **_SETTINGS,
            "choices": "one by one, as the legend says; the transfer has no end",
            "terrestrial links": "no packet is lost there: TCP Reno is its window, rate and delay",
        },
        measure=measure_choice,
        judge=judge_choices,
        panels=(
            Panel(ALONE, "the same without UDP, 200 to 240 s"),
            Panel(TIMEOUTS, "timeouts"),
            Panel(DROPPED, "packets dropped at the gateway"),
        ),
        x_scale="log",
    ),
)
