"""STP's peer in front of the reference in the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.iut.inprocess import SimulatedLane, simulated_lane
from bentpipe_conformance.protocols.stp.peer import Peer
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.reader import read_flows
from bentpipe_conformance.protocols.stp.suite import SUITE
from bentpipe_reference.common.link.profile import load_profiles

LINK = load_profiles()["geo"]


class Bed:
    """A lane on which a case was begun, and the tester on it."""

    def __init__(self) -> None:
        self.lane: SimulatedLane = simulated_lane(SUITE, "stp1e2", LINK, 1)
        self.peer = Peer(
            self.lane.port, self.lane.begin(), self.lane.iut_address, rtt=LINK.round_trip_s,
            seed=1, opener=self.lane.open,
        )  # fmt: skip

    def flows(self) -> list[Flow]:
        """The connections, when everything on the link has arrived."""
        self.peer.wait(LINK.round_trip_s)
        return read_flows(read_trace(self.lane.end(), suite=SUITE))


@pytest.fixture
def make_bed() -> Iterator[Callable[[], Bed]]:
    """Makes beds; the reference must survive what is done to it."""
    made: list[Bed] = []

    def make() -> Bed:
        made.append(Bed())
        return made[-1]

    yield make
    assert [bed.lane.iut_alive() for bed in made] == [None] * len(made)


@pytest.fixture
def bed(make_bed: Callable[[], Bed]) -> Bed:
    """A bed."""
    return make_bed()
