"""ZB03 figure 8: fairness of fifteen downloads with RWBP."""

from __future__ import annotations

from bentpipe_experiments import zb03
from bentpipe_experiments.model import Cells, Experiment, Judgment, Measurement, Panel, Series
from bentpipe_experiments.statistics import within
from bentpipe_experiments.verdicts import NOT_MEASURED
from bentpipe_experiments.zb03 import RWBP

OCTETS = 6_000_000
AT_S = 60.0
LEAST = {1.0: 0.99, 10.0: 0.95}
TIMEOUTS, SLOWEST = "timeouts", "slowest"

_SETTINGS = {
    **zb03.SETTINGS,
    "transfers": (
        "15 of 6 MB, all begun at once; otherwise the network of figure 7, with RWBP (IV.B.2)"
    ),
    "measured": (
        "Jain's index of the octets that the clients have received at 60 s, of 84 s that all "
        "transfers need at least"
    ),
    "terrestrial links": "as in zb03-fig7",
}


def measure(_: str, millionths: float, seed: int, at: float = AT_S) -> Measurement:
    """Jain's index of what the fifteen clients have received.

    Args:
        _: the only series.
        millionths: bit error rate of the satellite link, in units of 10^-6.
        seed: seed of the errors.
        at: when it is taken, seconds.
    """
    world = zb03.World(zb03.bulk(RWBP, millionths / 1e6), seed)
    chains = [world.chain(zb03.server_rtt_s(i + 1), OCTETS) for i in range(zb03.TRANSFERS)]
    for chain in chains:
        chain.start()
    world.simulation.run_until(at)
    zb03.check(chains)
    read = [chain.read for chain in chains]
    return Measurement(
        sum(read) ** 2 / (len(read) * sum(octets**2 for octets in read)),
        {
            SLOWEST: min(read) * len(read) / sum(read),
            TIMEOUTS: sum(sender.counters.timeouts for sender in zb03.senders(chains)),
        },
    )


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What section IV.B.2 says of the figure; that one transfer of it stalls is one seed's."""
    return [_fair(cells, x) for x in LEAST]


def _fair(cells: Cells, x: float) -> Judgment:
    shape = "overlap" if x == min(LEAST) else "grow at close rates"
    claim = (
        f"at {x:g}x10^-6 the sequence numbers of all transfers {shape}: "
        f"Jain's index is {LEAST[x]:g} at least"
    )
    if (RWBP, x) not in cells:
        return Judgment(f"fair-{x:g}", claim, None, NOT_MEASURED)
    cell = cells[RWBP, x]
    slowest, timeouts = cell.of(SLOWEST), cell.of(TIMEOUTS)
    sentence = (
        f"{cell.mean:.4f} ± {cell.half_width:.2g}; the slowest has at least "
        f"{100 * min(slowest.values):.0f} % of the mean, {timeouts.mean:g} timeouts on average"
    )
    holds = within(cell.mean, cell.half_width, LEAST[x], 1.0 + 1e-9)
    return Judgment(f"fair-{x:g}", claim, holds, sentence)


EXPERIMENTS = (
    Experiment(
        id="zb03-fig8",
        title="Fairness of fifteen downloads",
        source="ZB03 (Zhou and Baras 2003) figure 8, section IV.B.2",
        series=(Series(RWBP, "RWBP"),),
        x_label="bit error rate (10⁻⁶)",
        y_label="Jain's index of octets received at 60 s",
        points=tuple(LEAST),
        runs=20,
        settings=_SETTINGS,
        measure=measure,
        judge=judge,
        panels=(Panel(SLOWEST, "the slowest transfer, of the mean"), Panel(TIMEOUTS, "timeouts")),
        x_scale="log",
    ),
)
