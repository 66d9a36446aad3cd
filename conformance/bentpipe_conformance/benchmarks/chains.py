"""The cost of ZB03's network of proxies, connections of RWBP side by side."""

from __future__ import annotations

from bentpipe_experiments import zb03

from bentpipe_conformance.benchmarks.model import Figure, Report, below, cpu_seconds, median_of

SIMULATED_S = 20.0
OF_S = 1000.0
SECONDS = 60.0
"""CPU time for :data:`OF_S` that is aimed at, about two million packets."""

_BER = 1e-6


def rwbp_chain(repeat: int) -> Report:
    """Fifteen transfers over 9 Mb/s with bit errors, as in ZB03 section IV.B.1."""
    packets: list[int] = []
    seconds = median_of(repeat, lambda: cpu_seconds(lambda: packets.append(_carry())))
    return Report(
        f"15 transfers by RWBP through two proxies over 9 Mb/s, bit error rate {_BER:g}, in "
        f"virtual time; CPU time of {SIMULATED_S:g} s, extrapolated to {OF_S:g} s",
        (
            below(f"CPU seconds for {OF_S:g} s", seconds * OF_S / SIMULATED_S, SECONDS),
            Figure("satellite packets per CPU second", packets[-1] / seconds),
        ),
    )


def _carry() -> int:
    """Run the network; return the packets that the satellite carried."""
    world = zb03.World(zb03.bulk(zb03.RWBP, _BER), 1)
    chains = [world.chain(zb03.server_rtt_s(i + 1)) for i in range(zb03.TRANSFERS)]
    for chain in chains:
        chain.start()
    world.simulation.run_until(SIMULATED_S)
    zb03.check(chains)
    return world.space.counters.packets
