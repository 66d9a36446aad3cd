from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_experiments import zb03
from bentpipe_experiments.chain import Chain, ConnectionHop
from bentpipe_experiments.gateway import Space
from bentpipe_experiments.wire import SourceHop
from bentpipe_experiments.zb03 import MSS, RWBP, SACK, Network, World
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.rwbp.gateway import Gateway
from bentpipe_reference.tcp.path import Delivery

BOTH = pytest.mark.parametrize("protocol", [RWBP, SACK])
WIRED = pytest.mark.parametrize("wired_tcp", [True, False])


def network(protocol: str, ber: float = 0.0, *, wired_tcp: bool = True) -> Network:
    return Network(
        protocol=protocol, rate=600e3, peak=600e3, ber=ber, queue=75, wired_tcp=wired_tcp
    )


def transferred(world: World, octets: int, until: float = 300.0) -> Chain:
    chain = world.chain(0.08, octets)
    chain.start()
    world.simulation.run_until(until)
    return chain


@BOTH
@WIRED
def test_stream_with_errors_on_the_satellite_arrives_whole_and_the_chain_closes(
    protocol: str, *, wired_tcp: bool
) -> None:
    world = World(network(protocol, 1e-5, wired_tcp=wired_tcp), 1)
    chain = transferred(world, 200_001)
    assert chain.read == 200_001 and chain.intact
    assert chain.finished is not None
    assert world.space.counters.erroneous > 5
    assert chain.failure is None
    assert all(hop.ended for hop in chain.hops)


@BOTH
def test_slow_satellite_holds_up_the_server(protocol: str) -> None:
    world = World(network(protocol), 1)
    chain = world.chain(0.08)
    chain.start()
    world.simulation.run_until(60.0)
    first, middle, _ = chain.hops
    assert isinstance(first, ConnectionHop) and isinstance(middle, ConnectionHop)
    sent = first.sending.sender.snd_una - first.sending.sender.iss - 1
    buffers = zb03.buffer(600e3, 0.08) + zb03.buffer(600e3, 0.5)
    assert chain.read < sent <= chain.read + buffers + zb03.buffer(600e3, 0.5)
    assert world.space.gateway.dropped == 0
    # With 472 of 512 octets; a window of one PRDP waits for late acknowledgments.
    assert 0.85 < chain.read / (600e3 / 8 * MSS / 512 * 60) < 1


def test_window_hops_carry_as_much_as_tcp_packet_by_packet() -> None:
    both = (World(network(RWBP, 1e-6, wired_tcp=wired), 1) for wired in (True, False))
    exact, window = (transferred(world, 10**9, 60.0).read for world in both)
    assert window == pytest.approx(exact, rel=0.02)


def test_window_hop_is_as_slow_as_its_window() -> None:
    world = World(network(RWBP, wired_tcp=False), 1)
    chain = world.chain(2.0)
    room = zb03.buffer(600e3, 2.0) // 4
    first = chain.hops[0]
    assert isinstance(first, SourceHop)
    first.wire = replace(first.wire, window=room)
    chain.start()
    world.simulation.run_until(100.0)
    # A quarter of the peak rate, no faster than a window in each round trip.
    assert 0.9 * room * 45 < chain.read < room * 50


def test_packet_with_an_error_has_occupied_the_link() -> None:
    arrived: list[float] = []
    simulation = Simulation()
    gateway = Gateway[Delivery](8000.0, 10)
    space = Space(simulation, gateway, 0.25, 1.0 - 1e-12, 1)
    space.send(lambda: arrived.append(simulation.now), 100)
    space._good = 1.0
    space.send(lambda: arrived.append(simulation.now), 100)
    simulation.run_until(0.05)
    space._good = 0.0
    simulation.run_until(0.15)
    assert space.counters.erroneous == 1
    space._good = 1.0
    simulation.run_until(1.0)
    assert arrived == [pytest.approx(0.2 + 0.25)]
    assert space.counters.erroneous == 1
    assert space.counters.octets == 200


def test_credit_keeps_the_gateways_queue_from_overflowing_when_priority_takes_the_link() -> None:
    world = World(network(RWBP), 1)
    chain = world.chain(0.08)
    chain.start()
    world.simulation.run_until(30.0)

    def arrive() -> None:
        """Of no interest to the chain."""

    for at in range(2000):
        world.simulation.call_at(30.0 + at * 0.01, lambda: world.space.send_high(arrive, 512))
    before = chain.read
    world.simulation.run_until(50.0)
    assert world.space.gateway.dropped == 0
    assert world.space.gateway.longest > 20
    assert 0 < chain.read - before < 0.5 * 600e3 / 8 * 20
