"""Streams over links that lose, delay and double packets: intact, or reported lost."""

from __future__ import annotations

import random
from typing import Any

from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.transfer import StpPath
from hypothesis import given, settings
from hypothesis import strategies as st


class Side:
    """A user that writes a stream of its own in pieces and keeps what it reads."""

    def __init__(self, stream: bytes, pieces: random.Random) -> None:
        self.left = stream
        self.read = b""
        self.ended = False
        self.told = Events.NONE
        self.connection: Connection | None = None
        self._pieces = pieces

    def drain(self, connection: Connection) -> None:
        self.read += connection.read()
        self.ended = connection.peer_has_closed

    def run(self, connection: Connection, events: Events, _: float) -> None:
        self.told |= events
        self.connection = connection
        assert not (self.ended and connection.readable), "data after the end of the stream"
        self.read += connection.read(self._pieces.choice([None, 1, 700, 5000]))
        if connection.peer_has_closed and not connection.readable:
            self.ended = True
        if connection.is_over or connection.has_closed:
            return
        taken = connection.write(self.left[: self._pieces.choice([1, 600, 10_000])])
        self.left = self.left[taken:]
        if not self.left:
            connection.close()


FAULTS = st.builds(
    Direction,
    rate_bit_s=st.sampled_from([None, 200_000.0, 2_000_000.0]),
    delay_s=st.sampled_from([0.005, 0.3]),
    queue_packets=st.sampled_from([3, 50]),
    loss_probability=st.sampled_from([0.0, 0.05, 0.3]),
    reorder_probability=st.sampled_from([0.0, 0.2]),
    reorder_delay_s=st.sampled_from([0.01, 0.4]),
    duplicate_probability=st.sampled_from([0.0, 0.2]),
)


class Exchange:
    """Two sides on a path; every user is run again and again, whatever happens."""

    def __init__(
        self, link: LinkProfile, there: bytes, back: bytes, seed: int, **config: Any
    ) -> None:
        pieces = random.Random(seed)
        self.near, self.far = Side(there, pieces), Side(back, pieces)
        self.back = back
        settings = StpConfig(**config)
        self.path = StpPath(link, settings, self.near.run, self.far.run, seed=seed)
        self.connection = self.path.connect()

    @property
    def peer(self) -> Connection | None:
        """The called connection, once its user has been told of it."""
        return self.far.connection

    def run(self, limit_s: float) -> None:
        simulation = self.path.simulation
        self.near.run(self.connection, Events.NONE, 0.0)
        self.path.near.settle()
        tick = 0.0
        while tick < limit_s:
            tick += 0.5
            simulation.run_until(tick)
            self.near.run(self.connection, Events.NONE, tick)
            self.path.near.settle()
            if self.peer is not None:
                self.far.run(self.peer, Events.NONE, tick)
                self.path.far.settle()
            if not self.path.near.endpoint.connections and not self.path.far.endpoint.connections:
                break
        # What has been delivered can be read after the end.
        self.near.drain(self.connection)
        if self.peer is not None:
            self.far.drain(self.peer)


@settings(max_examples=60)
@given(
    forward=FAULTS,
    backward=FAULTS,
    sizes=st.tuples(st.integers(0, 60_000), st.integers(0, 60_000)),
    fifo=st.booleans(),
    credit=st.sampled_from([4, 16, 2048]),
    iss=st.sampled_from([None, 2**24 - 2]),
    seed=st.integers(0, 2**16),
)
def test_both_streams_arrive_whole_or_a_failure_is_reported(
    forward: Direction,
    backward: Direction,
    sizes: tuple[int, int],
    fifo: bool,
    credit: int,
    iss: int | None,
    seed: int,
) -> None:
    numbers = random.Random(seed)
    there, back = numbers.randbytes(sizes[0]), numbers.randbytes(sizes[1])
    link = LinkProfile("random", "", "", forward, backward)
    exchange = Exchange(link, there, back, seed, fifo=fifo, credit=credit, iss=iss)
    exchange.run(2500.0)
    near, far = exchange.near, exchange.far
    assert there.startswith(far.read) and back.startswith(near.read)
    connection = exchange.connection
    assert connection.is_over, "every connection ends (STP-CC-009)"
    if connection.succeeded:
        assert far.read == there and near.read == back and near.ended
    else:
        assert connection.failure
    if exchange.peer is not None and exchange.peer.succeeded:
        assert far.read == there and near.read == back and far.ended
    if max(forward.loss_probability, backward.loss_probability) < 0.1:
        assert connection.succeeded
