from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from bentpipe_reference.common.mutation import Mutant, load_mutants
from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.host import RwbpHost
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.subject import SETTINGS, SETUPS
from bentpipe_reference.tcp.connection import Connection

MUTANTS = [mutant for mutant in load_mutants().values() if mutant.profile in SETUPS]
SERVER, CLIENT = "10.77.0.2", "10.78.0.9"


def true_setup(mutant: Mutant) -> Setup:
    setup: Setup = SETUPS[mutant.profile]
    return SETTINGS[mutant.setting].configure(setup) if mutant.setting else setup


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_mutant_when_configured_changes_one_part_or_settings(
    mutant: Mutant, assert_changes_one_part_or_settings: Callable[[Mutant, Any], None]
) -> None:
    assert_changes_one_part_or_settings(mutant, true_setup(mutant))


class Reader:
    """Reads, or stops reading after so many octets."""

    def __init__(self, octets: int | None) -> None:
        self.left = octets

    def run(self, connection: Connection, now: float) -> None:
        if self.left is None:
            connection.read()
        elif self.left:
            self.left -= len(connection.read(self.left))


def packets(setup: Setup) -> list[tuple[float, bytes]]:
    """What a server sends to three clients of unequal segments, one of which stops reading."""
    setup = setup.configured(gateway=None)
    simulation = Simulation()
    server = RwbpHost(SERVER, setup.config, 1, parts=setup.parts)
    client = RwbpHost(CLIENT, RwbpConfig(), 2)
    sent: list[tuple[float, bytes]] = []
    numbers = random.Random(3)

    def settle() -> None:
        for host, other in ((server, client), (client, server)):
            for packet in host.transmit(simulation.now):
                if host is server:
                    sent.append((simulation.now, packet))
                if host is client or numbers.random() > 0.02:
                    simulation.call_after(0.25, partial(take, other, packet))
            alarms[host].set(host.next_deadline())

    def take(host: RwbpHost, packet: bytes) -> None:
        host.receive(packet, simulation.now)
        settle()

    def wake(host: RwbpHost) -> None:
        host.advance(simulation.now)
        settle()

    alarms = {host: Alarm(simulation, partial(wake, host)) for host in (server, client)}
    for mss, octets in ((1460, None), (500, None), (1460, 40_000)):
        client.config = RwbpConfig(mss=mss, receive_buffer=60_000)
        client.connect(SERVER, 19, Reader(octets), simulation.now)
        settle()
        simulation.run_until(simulation.now + 1.0)
    simulation.run_until(12.0)
    return sent


@pytest.mark.long
@pytest.mark.parametrize(
    "mutant",
    [mutant for mutant in MUTANTS if mutant.setting in ("link-rate", "drr")],
    ids=lambda mutant: mutant.id,
)
def test_mutant_of_the_scheduler_sends_other_packets(mutant: Mutant) -> None:
    true = true_setup(mutant)
    first, second = packets(true), packets(mutant.configure(true))
    assert first != second
    assert packets(true) == first
