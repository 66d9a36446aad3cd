"""A crowded server ends connections of peers that are idle or drip, and no others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from bentpipe_reference.stp.io.shedding import LEAST, Shedding
from bentpipe_reference.stp.packets import Reason


class Peer:
    """A connection whose peer sends so many octets in a second."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.is_over = False
        self.reason: Reason | None = None
        self.receiver = SimpleNamespace(delivered=0)
        self.acknowledged_octets = 0

    def abort(self, _now: float, reason: Reason) -> None:
        self.is_over, self.reason = True, reason


class Server:
    """An endpoint with these peers and a clock."""

    def __init__(self, most: int, *peers: Peer, short_of_memory: bool = False) -> None:
        self.now = 0.0
        self.alarms: list[tuple[float, Callable[[], None]]] = []
        self.short_of_memory = short_of_memory
        self.config = SimpleNamespace(max_connections=most)
        self.connections = dict(enumerate(peers))
        endpoint: Any = self
        self.shedding = Shedding(endpoint, lambda: self.now, self.call_at)

    @property
    def crowded(self) -> bool:
        return 2 * len(self.connections) > self.config.max_connections or self.short_of_memory

    def call_at(self, when: float, what: Callable[[], None]) -> None:
        self.alarms.append((when, what))

    def run(self, seconds: int) -> None:
        self.shedding.accepted()
        for _ in range(seconds):
            self.now += 1
            for peer in self.connections.values():
                peer.receiver.delivered = int(peer.rate * self.now)
            due = [alarm for alarm in self.alarms if alarm[0] <= self.now]
            self.alarms = [alarm for alarm in self.alarms if alarm[0] > self.now]
            for _, what in due:
                what()
            self.connections = {
                key: peer for key, peer in self.connections.items() if not peer.is_over
            }


def test_crowded_by_idle_peers_those_beyond_half_are_ended() -> None:
    idle = [Peer(0) for _ in range(9)]
    busy = Peer(5000)
    Server(10, *idle, busy).run(100)
    assert sum(peer.is_over for peer in idle) == 5
    assert {peer.reason for peer in idle} == {None, Reason.RESOURCES}
    assert not busy.is_over


def test_peer_that_drips_is_ended_and_a_slow_honest_one_is_not() -> None:
    dripping = [Peer(1) for _ in range(6)]
    slow = [Peer(LEAST / 50) for _ in range(4)]
    Server(10, *dripping, *slow).run(600)
    assert sum(peer.is_over for peer in dripping) == 5
    assert not any(peer.is_over for peer in slow)


def test_idle_peers_stay_while_there_is_room() -> None:
    idle = [Peer(0) for _ in range(5)]
    server = Server(10, *idle)
    server.run(10_000)
    assert not any(peer.is_over for peer in idle)
    assert not server.alarms


def test_short_of_memory_one_idle_peer_is_ended_at_a_time() -> None:
    idle = [Peer(0) for _ in range(4)]
    server = Server(100, *idle, short_of_memory=True)
    server.run(65)
    assert sum(peer.is_over for peer in idle) == 1
    server.run(20)
    assert sum(peer.is_over for peer in idle) == 3
