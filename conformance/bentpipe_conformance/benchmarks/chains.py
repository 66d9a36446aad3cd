"""The cost of RWBP: ZB03's network of proxies, connections side by side, and the scheduler."""

from __future__ import annotations

from statistics import median

from bentpipe_experiments import zb03
from bentpipe_experiments.runs import collecting_rarely
from bentpipe_reference.rwbp.scheduler import DeficitRoundRobin, RoundRobin
from bentpipe_reference.tcp.wire.segment import Segment

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
    with collecting_rarely():
        world.simulation.run_until(SIMULATED_S)
    zb03.check(chains)
    return world.space.counters.packets


FLOWS = 1, 10, 100, 1_000, 10_000
"""How many flows can send, all of them at any time."""

FEW, MANY = 10, 10_000

TURNS = 100_000
RATIO = 1.5
"""A cost that does not depend on the number of flows, with room for the noise of a measurement."""


class _Busy:
    """A flow that always has a packet."""

    def __init__(self) -> None:
        self._packet = Segment(0, 0, 0, 0)

    def can_send(self) -> bool:
        return True

    def next_octets(self) -> int:
        return 1000

    def serve(self, _now: float, /) -> Segment:
        return self._packet


def rwbp_scheduler(repeat: int) -> Report:
    """Round robin and deficit round robin with few and with many flows."""
    figures: list[Figure] = []
    for name, quantum in (("round robin", None), ("deficit round robin", 1500)):
        # By turns, so that what else the machine does meets all of them.
        rounds = [{flows: _turns(flows, quantum) for flows in FLOWS} for _ in range(repeat)]
        cost = {flows: median(each[flows] for each in rounds) for flows in FLOWS}
        for flows in FLOWS:
            figures.append(Figure(f"{name}: microseconds per packet, flows {flows:,}", cost[flows]))
        figures.append(below(f"{name}: {MANY:,} flows, times {FEW}", cost[MANY] / cost[FEW], RATIO))
    return Report(
        f"the next packet of 1 to {MANY:,} flows that all can send; CPU time, mean of "
        f"{TURNS:,} packets",
        tuple(figures),
    )


def _turns(flows: int, quantum: int | None) -> float:
    """Microseconds of a turn, once all flows have had two."""
    ring = RoundRobin() if quantum is None else DeficitRoundRobin(quantum)
    for entry in [ring.add(_Busy()) for _ in range(flows)]:
        ring.wake(entry)

    def take(turns: int) -> None:
        for _ in range(turns):
            ring.take(0.0)

    take(2 * flows)
    return cpu_seconds(lambda: take(TURNS)) / TURNS * 1e6
