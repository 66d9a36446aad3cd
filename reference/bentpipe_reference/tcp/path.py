"""Connections over one satellite link in virtual time, and their users."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import count
from operator import call

from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.services import DISCARD
from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.common.stream import PatternSource, pattern
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.sending.variables import EventSink
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_SENDER_ADDRESS = address_number("10.77.0.2")
_RECEIVER_ADDRESS = address_number("10.78.0.2")

Delivery = Callable[[], None]
"""What the links of a path carry: a packet's arrival, as a call at the far end."""


class ConnectionDriver:
    """Runs one connection on a simulation: timers, and segments onto a link."""

    def __init__(
        self,
        simulation: Simulation,
        connection: Connection,
        send: Callable[[Segment, int], None],
        serve: Callable[[Connection, float], None],
    ) -> None:
        self.connection = connection
        self._simulation = simulation
        self._send = send
        self._serve = serve
        self._alarm = Alarm(simulation, self._wake)

    def receive(self, segment: Segment) -> None:
        """A segment arrived."""
        self.connection.receive(segment, self._simulation.now)
        self.settle()

    def settle(self) -> None:
        """Serve the application, send what is due and set the alarm."""
        now = self._simulation.now
        connection = self.connection
        self._serve(connection, now)
        for segment in connection.transmit(now):
            self._send(segment, segment.packet_octets)
        self._alarm.set(connection.next_deadline())

    def _wake(self) -> None:
        self.connection.advance(self._simulation.now)
        self.settle()


class Flow:
    """A stream of the test pattern from one end of a path to the other, then FINs.

    Attributes:
        sending: the connection that sends the stream.
        receiving: the connection that reads it.
        read: octets the receiving application has read.
        intact: whether each of them is that of the pattern.
        finished: when the last octet was read, None before that.
    """

    def __init__(self, path: Path, sending: Connection, receiving: Connection, octets: int) -> None:
        self.sending = sending
        self.receiving = receiving
        self.read = 0
        self.intact = True
        self.finished: float | None = None
        self._octets = octets
        self._simulation = path.simulation
        self._forward = path.forward
        self._return = path.return_
        self._sender = ConnectionDriver(path.simulation, sending, self._send, self._feed)
        self._receiver = ConnectionDriver(path.simulation, receiving, self._answer, self._drain)

    @property
    def failure(self) -> str | None:
        """Why the connection ended before the stream was complete, None while it has not."""
        return self.sending.failure or self.receiving.failure

    def is_pending(self) -> bool:
        """Whether the stream is neither complete nor given up by its sender."""
        return self.finished is None and self.sending.failure is None

    def start(self) -> None:
        """Open the connection."""
        self.sending.open(self._simulation.now)
        self._sender.settle()

    def _send(self, segment: Segment, octets: int) -> None:
        self._forward.send(partial(self._arrive, segment), octets)

    def _answer(self, segment: Segment, octets: int) -> None:
        self._return.send(partial(self._sender.receive, segment), octets)

    def _arrive(self, segment: Segment) -> None:
        receiving = self.receiving
        first = receiving.state is State.CLOSED and receiving.receiver is None
        if first and segment.flags & Flags.SYN:
            receiving.accept(segment, self._simulation.now)
            self._receiver.settle()
        else:
            self._receiver.receive(segment)

    def _feed(self, connection: Connection, now: float) -> None:
        if connection.sender.source is None and connection.state is State.ESTABLISHED:
            connection.attach(PatternSource(self._octets), now)
            connection.close(now)

    def _drain(self, connection: Connection, now: float) -> None:
        data = connection.read()
        if data:
            self.intact = self.intact and data == pattern(self.read, len(data))
            self.read += len(data)
        if self.read >= self._octets and self.finished is None:
            self.finished = now
        if connection.peer_has_closed:
            connection.close(now)


class Path:
    """The two directions of a link, shared by every flow started on it.

    Args:
        profile: the link; flows send in its forward direction.
        seed: seed of the links' faults and of the flows' initial sequence numbers.
        simulation: a clock shared with other paths; one of its own when omitted.

    Attributes:
        simulation: the clock and event queue.
        forward: the direction of the data.
        return_: the direction of the acknowledgments.
    """

    def __init__(
        self, profile: LinkProfile, seed: int = 0, *, simulation: Simulation | None = None
    ) -> None:
        self.simulation = simulation or Simulation()
        self._numbers = random.Random(seed)
        self.forward, self.return_ = (
            VirtualLink[Delivery](self.simulation, way, call, self._numbers.getrandbits(32))
            for way in (profile.forward, profile.return_)
        )
        self._ports = count(40000)

    def flow(
        self, octets: int, setup: EndpointConfig | Setup, *, on_event: EventSink | None = None
    ) -> Flow:
        """A flow of ``octets``, to be started.

        Args:
            octets: length of the stream.
            setup: both ends; settings alone are those of the true reference.
            on_event: called with the sender's protocol events.
        """
        if isinstance(setup, EndpointConfig):
            setup = Setup(setup)
        config, parts, number = setup.config, setup.parts, self._numbers.getrandbits
        ends = Addresses(_SENDER_ADDRESS, next(self._ports), _RECEIVER_ADDRESS, DISCARD)
        sending = parts.connection(config, ends, number(32), parts, on_event=on_event)
        receiving = parts.connection(config, ends.swapped(), number(32), parts)
        return Flow(self, sending, receiving, octets)
