"""A stream through proxies: a chain of connections, each with bounded buffers at both ends.

A proxy moves octets from what one connection has received to what the next may send as far as
there is room, so that a full buffer holds up everything before it and nothing is dropped there.
Segments travel as objects; they are never serialised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Protocol

from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.common.stream import PatternSource, pattern
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import CreditFrame
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.uplink import Uplink
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.path import Delivery
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Segment


class Link(Protocol):
    """One direction of what is between two nodes."""

    def send(self, item: Delivery, size: int) -> None:
        """Offer a packet of ``size`` octets, whose arrival ``item`` is."""


class End:
    """One end of a connection: its timer, and its segments onto a link.

    Args:
        simulation: the clock.
        connection: the connection.
        link: takes its segments.

    Attributes:
        connection: the connection.
        peer: the other end.
        serve: called before segments are collected after each event.
    """

    peer: End
    serve: Callable[[float], None]

    def __init__(self, simulation: Simulation, connection: Connection, link: Link) -> None:
        self.connection = connection
        self._simulation = simulation
        self._link = link
        self._alarm = Alarm(simulation, self._wake)

    def receive(self, segment: Segment) -> None:
        """A segment arrived; the first one opens the connection."""
        connection, now = self.connection, self._simulation.now
        if connection.receiver is None and connection.state is State.CLOSED:
            connection.accept(segment, now)
        else:
            connection.receive(segment, now)
        self.serve(now)
        self.flush()

    def flush(self) -> None:
        """Send what is due and set the alarm."""
        for segment in self.connection.transmit(self._simulation.now):
            self._link.send(partial(self.peer.receive, segment), segment.packet_octets)
        self.set_alarm()

    def set_alarm(self) -> None:
        """Wake when a timer of the connection expires."""
        self._alarm.set(self.connection.next_deadline())

    def _wake(self) -> None:
        now = self._simulation.now
        self.connection.advance(now)
        self.serve(now)
        self.flush()


class Interface:
    """The interface of a proxy to the satellite gateway: RWBP's scheduler and IP queue.

    Args:
        simulation: the clock.
        setup: of the interface; the gateway's credit is obeyed if it names one.
        link: the gateway.
    """

    def __init__(self, simulation: Simulation, setup: Setup, link: Link) -> None:
        self.uplink = Uplink(setup.config, setup.parts)
        self._simulation = simulation
        self._link = link
        self._ends: dict[int, ScheduledEnd] = {}

    def attach(self, end: ScheduledEnd) -> None:
        """Let the segments of an end leave here."""
        self._ends[end.connection.addresses.local_port] = end

    def on_credit(self, frame: CreditFrame) -> None:
        """A valid frame arrived."""
        assert self.uplink.credit is not None
        self.uplink.credit.on_frame(frame, self._simulation.now)
        self.leave()

    def leave(self) -> None:
        """Let leave what may."""
        send, ends = self._link.send, self._ends
        leaving = self.uplink.send(self._simulation.now)
        for segment in leaving:
            send(partial(ends[segment.sport].peer.receive, segment), segment.packet_octets)
        for port in {segment.sport for segment in leaving}:
            ends[port].set_alarm()


class ScheduledEnd(End):
    """An end whose data leaves when it is scheduled.

    Args:
        simulation: the clock.
        connection: the connection.
        interface: what it shares with others.
    """

    def __init__(
        self, simulation: Simulation, connection: RwbpConnection, interface: Interface
    ) -> None:
        super().__init__(simulation, connection, interface._link)
        self._scheduled = connection
        self._interface = interface
        self._entry = interface.uplink.scheduler.add(connection)
        interface.attach(self)

    def flush(self) -> None:
        """Let data leave, then what waits for no turn."""
        interface = self._interface
        interface.uplink.scheduler.wake(self._entry)
        interface.leave()
        unscheduled = self._scheduled.transmit_unscheduled(self._simulation.now)
        if unscheduled:
            for segment in unscheduled:
                interface.uplink.queue.put(segment)
            interface.uplink.scheduler.wake(self._entry)
            interface.leave()
        self.set_alarm()


class Hop(Protocol):
    """One connection of a chain: octets go in at its near end and come out at its far end.

    Attributes:
        on_room: called when the near end may take octets; what it takes leaves afterwards.
        on_arrival: called when something has happened at the far end.
        read: octets that the last node has read, if the far end is that.
        read_at: when it last did.
        intact: whether they are those of the test pattern.
    """

    on_room: Callable[[float], None]
    on_arrival: Callable[[float], None]

    @property
    def read(self) -> int:
        """See above."""

    @property
    def read_at(self) -> float:
        """See above."""

    @property
    def intact(self) -> bool:
        """See above."""

    def start(self, now: float) -> None:
        """Open the connection."""

    def call(self, now: float) -> None:
        """Open the connection from the far end."""

    @property
    def started(self) -> bool:
        """Whether it has been opened."""

    @property
    def room(self) -> int:
        """Octets that the near end would take now."""

    def put(self, data: bytes, now: float) -> None:
        """Hand octets to the near end, no more than there is room for; :meth:`send` follows."""

    def await_room(self) -> None:
        """There is no more room: ``on_room`` is called when there is."""

    def attach(self, octets: int | None, now: float) -> None:
        """Let the near end send the test pattern, and close after ``octets`` of it."""

    def close(self, now: float) -> None:
        """Nothing more goes in; :meth:`send` follows."""

    def send(self) -> None:
        """Let the near end send what is due."""

    @property
    def readable(self) -> int:
        """Octets that :meth:`take` would return now."""

    def await_arrival(self) -> None:
        """There is nothing to take: ``on_arrival`` is called when there is."""

    def take(self, octets: int, now: float) -> bytes:
        """Octets from the far end, no more than are readable; :meth:`answer` follows."""

    def drain(self, now: float) -> None:
        """The last node reads what has arrived; :meth:`answer` follows."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come out."""

    def end(self, now: float) -> None:
        """The far end, too, has nothing more to send; :meth:`answer` follows."""

    def answer(self) -> None:
        """Let the far end send what is due."""

    @property
    def failure(self) -> str | None:
        """Why it ended early, None while it has not."""


class ConnectionHop:
    """A hop that is a connection of the reference; see :class:`Hop`.

    Args:
        near: the end that opens the connection.
        far: the other one.
    """

    def __init__(self, near: End, far: End) -> None:
        self.read = 0
        self.read_at = 0.0
        self.intact = True
        self.near, self.far = near, far
        self.sending, self.receiving = near.connection, far.connection
        near.peer, far.peer = far, near

    @property
    def on_room(self) -> Callable[[float], None]:
        """See :class:`Hop`."""
        return self.near.serve

    @on_room.setter
    def on_room(self, served: Callable[[float], None]) -> None:
        self.near.serve = served

    @property
    def on_arrival(self) -> Callable[[float], None]:
        """See :class:`Hop`."""
        return self.far.serve

    @on_arrival.setter
    def on_arrival(self, served: Callable[[float], None]) -> None:
        self.far.serve = served

    def start(self, now: float) -> None:
        """See :class:`Hop`."""
        self.sending.open(now)
        self.near.flush()

    def call(self, now: float) -> None:
        """See :class:`Hop`."""
        self.receiving.open(now)
        self.far.flush()

    @property
    def started(self) -> bool:
        """See :class:`Hop`."""
        near, far = self.sending, self.receiving
        if near.state is not State.CLOSED or far.state is not State.CLOSED:
            return True
        return near.receiver is not None or far.receiver is not None

    @property
    def room(self) -> int:
        """See :class:`Hop`; only whole segments, so that no short ones arise on the way."""
        sending = self.sending
        if sending.state is not State.ESTABLISHED:
            return 0
        return sending.write_room // sending.sender.smss * sending.sender.smss

    def put(self, data: bytes, now: float) -> None:
        """See :class:`Hop`."""
        self.sending.write(data, now)

    def attach(self, octets: int | None, now: float) -> None:
        """See :class:`Hop`."""
        if self.sending.sender.source is None and self.sending.state is State.ESTABLISHED:
            self.sending.attach(PatternSource(octets), now)
            if octets is not None:
                self.sending.close(now)

    def await_room(self) -> None:
        """See :class:`Hop`; it is called after everything that happens at the near end."""

    def close(self, now: float) -> None:
        """See :class:`Hop`."""
        self.sending.close(now)

    def send(self) -> None:
        """See :class:`Hop`."""
        self.near.flush()

    @property
    def readable(self) -> int:
        """See :class:`Hop`."""
        receiver = self.receiving.receiver
        return 0 if receiver is None else receiver.buffer.unread

    def await_arrival(self) -> None:
        """See :class:`Hop`; it is called after everything that happens at the far end."""

    def take(self, octets: int, now: float) -> bytes:  # noqa: ARG002
        """See :class:`Hop`."""
        return self.receiving.read(octets)

    def drain(self, now: float) -> None:
        """See :class:`Hop`."""
        if self.receiving.readable:
            data = self.receiving.read()
            self.intact = self.intact and data == pattern(self.read, len(data))
            self.read += len(data)
            self.read_at = now

    @property
    def ended(self) -> bool:
        """See :class:`Hop`."""
        receiver = self.receiving.receiver
        return receiver is not None and receiver.fin_received and not receiver.buffer.unread

    def end(self, now: float) -> None:
        """See :class:`Hop`."""
        self.receiving.close(now)

    def answer(self) -> None:
        """See :class:`Hop`; reading calls for an acknowledgment only now and then."""
        receiving = self.receiving
        if receiving.sender.fin_queued or (receiving.receiver and receiving.receiver.ack_now):
            self.far.flush()

    @property
    def failure(self) -> str | None:
        """See :class:`Hop`."""
        return self.sending.failure or self.receiving.failure


class Chain:
    """A stream of the test pattern through several hops.

    Args:
        simulation: the clock.
        hops: the first node's first.
        octets: length of the stream, None for one without end.
        called: whether the last node opens it, with a request that stands for the handshake's
            last acknowledgment; each proxy calls the next one when it has that.

    Attributes:
        hops: the connections.
        finished: when the last one arrived, seconds; None before.
    """

    def __init__(
        self, simulation: Simulation, *hops: Hop, octets: int | None = None, called: bool = False
    ) -> None:
        self.hops = hops
        self.finished: float | None = None
        self._simulation = simulation
        self._octets = octets
        self._called = called
        hops[0].on_room = partial(hops[0].attach, octets)
        hops[-1].on_arrival = self._drain
        for before, after in pairwise(hops):
            before.on_arrival = partial(self._push, before, after)
            after.on_room = partial(self._pull, before, after)

    def start(self) -> None:
        """Open the first connection, or the one before the last node; each opens the next."""
        now = self._simulation.now
        if self._called:
            self.hops[-2].call(now)
        else:
            self.hops[0].start(now)

    @property
    def failure(self) -> str | None:
        """Why one of the connections ended early, None while none has."""
        return next((hop.failure for hop in self.hops if hop.failure), None)

    @property
    def read(self) -> int:
        """Octets that have arrived at the last node."""
        return self.hops[-1].read

    @property
    def intact(self) -> bool:
        """Whether each is that of the pattern."""
        return self.hops[-1].intact

    def _drain(self, now: float) -> None:
        last = self.hops[-1]
        last.drain(now)
        if self.finished is None and last.read == self._octets:
            self.finished = last.read_at
        if last.ended:
            last.end(now)

    def _push(self, before: Hop, after: Hop, now: float) -> None:
        """Something arrived at a proxy."""
        if not after.started:
            after.start(now)
        elif _move(before, after, now):
            after.send()

    def _pull(self, before: Hop, after: Hop, now: float) -> None:
        """A proxy may have room again."""
        if self._called and not before.started:
            if after.room > 0:
                before.call(now)
        elif _move(before, after, now):
            before.answer()


def _move(before: Hop, after: Hop, now: float) -> bool:
    """Hand over what there is and there is room for; whether anything happened."""
    moved = False
    if (room := after.room) > 0:
        if readable := before.readable:
            after.put(before.take(readable if readable < room else room, now), now)
            moved = True
        if readable > room:
            after.await_room()
        else:
            before.await_arrival()
    else:
        after.await_room()
    if before.ended and after.room > 0:
        after.close(now)
        before.end(now)
        moved = True
    return moved
