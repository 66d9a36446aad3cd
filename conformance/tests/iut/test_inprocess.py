"""The simulated lane: what it makes of hosts that do not come to an end."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from bentpipe_conformance.engine.lane import LARGEST_PACKET, LaneError
from bentpipe_conformance.iut.inprocess import SimulatedLane
from bentpipe_reference.common.link.profile import load_profiles


class Host:
    """Sends nothing; says when it is to be called next."""

    def __init__(self, deadline: float | None, pause_s: float) -> None:
        self.deadline, self.pause_s = deadline, pause_s

    def receive(self, packet: bytes, now: float) -> None:
        self.deadline = now

    def advance(self, now: float) -> None:
        self.deadline = now + self.pause_s

    def transmit(self, now: float) -> list[bytes]:
        return []

    def next_deadline(self) -> float | None:
        return self.deadline


def lane(pause_s: float) -> SimulatedLane:
    def make(address: str, setup: Any, seed: int) -> Any:
        return Host(None, pause_s)

    return SimulatedLane(make, None, load_profiles()["geo"])


@pytest.mark.parametrize(("pause_s", "died"), [(0.0, True), (0.0001, False)])
def test_host_that_is_always_due_is_held_to_hang(pause_s: float, died: bool) -> None:
    begun = lane(pause_s)
    begun.port.send(bytes(40))
    begun.port.receive(2.0)
    assert begun.port.now() == 2.0
    assert (begun.iut_alive() is not None) is died
    assert not died or "it hung" in str(begun.iut_alive())


def test_packet_that_no_test_bed_could_capture_is_refused() -> None:
    port = lane(0.0).port
    port.send(bytes(LARGEST_PACKET))
    with pytest.raises(LaneError, match="a packet of 1901 octets is sent"):
        port.send(bytes(LARGEST_PACKET + 1))


def test_what_a_case_leaves_behind_goes_when_the_next_begins() -> None:
    """What was planned and never happened holds the host and its packets, in a circle."""
    begun = lane(1.0)
    begun.port.send(bytes(40))
    begun.port.receive(2.0)
    host = weakref.ref(begun.host)
    gc.disable()
    try:
        begun.begin()
        assert host() is None
    finally:
        gc.enable()
