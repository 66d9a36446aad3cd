"""One connection as its user and the endpoint see it: stream, dispatch, timers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bentpipe_reference.stp.events import Events, StreamError
from bentpipe_reference.stp.packets import Packet, Reason
from bentpipe_reference.stp.sender import Source
from bentpipe_reference.stp.states import TAGGED, State
from bentpipe_reference.stp.table import Machine
from bentpipe_reference.stp.tracing import note, note_packet
from bentpipe_reference.stp.variables import Variables


@dataclass(eq=False, repr=False, kw_only=True)
class Connection(Variables):
    """A connection; :class:`~bentpipe_reference.stp.endpoint.StpEndpoint` makes them.

    After any call of :meth:`write`, :meth:`read`, :meth:`close` or :meth:`abort` the endpoint may
    have something to transmit.

    Attributes:
        machine: the state table and its functions.
        touched: called when the user has done something.
        user: anything that the endpoint's user wants to keep with the connection.
    """

    machine: Machine
    touched: Callable[[Connection], None] = lambda _: None
    user: Any = None

    def __post_init__(self) -> None:
        """Trace the steps of our stream, if anything is traced."""
        if self.trace is not None:
            self.outgoing.on_step = partial(note, self)

    # The user's side

    @property
    def write_room(self) -> int:
        """Octets that :meth:`write` would take now."""
        return 0 if self.is_over or self.has_closed else self.outgoing.sender.room

    @property
    def readable(self) -> int:
        """Octets that :meth:`read` would return now."""
        return 0 if self.receiver is None else self.receiver.readable

    @property
    def peer_has_closed(self) -> bool:
        """STP-CC-004: the peer's stream has ended; what is readable is the last of it."""
        return self.machine.guards.peer_is_finished(self)

    @property
    def has_closed(self) -> bool:
        """Whether the user has ended its own stream."""
        return self.outgoing.sender.closed

    @property
    def acknowledged_octets(self) -> int:
        """Octets that the peer has acknowledged in sequence."""
        return self.outgoing.sender.acknowledged

    def write(self, data: bytes | memoryview) -> int:
        """Append to our stream as much of ``data`` as there is room for; return how much.

        Raises:
            StreamError: the stream is closed or the connection over.
        """
        if self.is_over:
            raise StreamError(f"the connection is over: {self.failure or 'both sides closed'}")
        if self.has_closed:
            raise StreamError("the stream has been closed")
        taken = self.outgoing.sender.write(data)
        self.wants_room = self.wants_room or taken < len(data)
        if taken:
            self.touched(self)
        return taken

    def attach(self, source: Source) -> None:
        """Let ``source`` feed our stream until it calls :meth:`close`.

        It is asked for a number of octets when they can be sent, and may return fewer.
        """
        self.outgoing.sender.attach(source)
        self.touched(self)

    def ask_for_room(self) -> None:
        """Report ``WRITABLE`` once half of the send buffer is free; never when our stream ended."""
        if not self.has_closed:
            self.wants_room = True
            self.touched(self)

    def read(self, octets: int | None = None) -> bytes:
        """Take up to ``octets`` of the peer's stream, or all that is readable; perhaps nothing.

        What has been delivered can be read even when the connection is over.
        """
        if not self.readable or self.receiver is None:
            return b""
        data = self.receiver.read(octets)
        if self.state is State.READY and self.receiver.reopened():
            self.machine.actions.announce_credit(self)
            self.touched(self)
        return data

    def close(self) -> None:
        """End our stream; harmless when it has ended already."""
        if not self.has_closed:
            self.outgoing.sender.close()
            self.touched(self)

    def abort(self, now: float, reason: Reason = Reason.ABORTED) -> None:
        """Section 5.4: end the connection, whatever is unsent or unacknowledged.

        Harmless when the user has been told how it ended already.
        """
        if self.is_over:
            return
        actions, text = self.machine.actions, "aborted by the user"
        if self.state is State.OUTGOING and self.begin is None:
            actions.fail(self, text, reason, now)
            self.state = State.IDLE
        elif self.state in (State.OUTGOING, State.READY):
            actions.abort(self, text, reason, now)
        self.touched(self)

    def take_events(self) -> Events:
        """What has happened since the last call."""
        events, self.events = self.events, Events.NONE
        return events

    # Packets

    def receive(self, packet: Packet, now: float) -> bool:
        """Handle a packet as the state table says.

        Returns:
            Whether the packet is to be handled again, as in the state idle.
        """
        guards, actions, table = self.machine.guards, self.machine.actions, self.machine.table
        self.handled, self.handled_at = packet, now
        tagged, before = packet.type in TAGGED, self.state
        if tagged and not guards.tag_is_right(self, packet.tag):
            return False
        for row in table[before][packet.type]:
            if row.guard(guards, self, packet):
                break
        row.action(actions, self, packet, now)
        if row.again:
            return True
        if self.state is before:
            self.state = row.next
        if before is State.READY:
            self.outgoing.polling.heard(now)
        if not tagged:
            note_packet(self, "receive", now, packet, row.when)
        return False

    def transmit(self, now: float) -> list[Packet]:
        """The packets to send at ``now``, in order."""
        if self.state is State.READY:
            if not self.is_over:
                self.send_data(now)
                self.machine.actions.release_if_complete(self, now)
        elif self.state is State.OUTGOING:
            if self.begin is None:
                self.machine.actions.send_first_begin(self, now)
            if self.ticket is not None:
                self.send_data(now)  # STP-CC-002: within the early credit; no timer repeats it
        if self.untold:
            note(self, "put", now, {})
        outbox, self.outbox = self.outbox, []
        return outbox

    def send_data(self, now: float) -> None:
        """Send what may leave of our stream, and look after the user who waits for room."""
        self.outgoing.transmit(now, partial(self.machine.actions.put, self))
        if self.wants_room and 2 * self.outgoing.sender.unsent <= self.config.send_buffer:
            self.wants_room = False
            self.events |= Events.WRITABLE

    # Time

    def advance(self, now: float) -> None:
        """Run the timers that are due at ``now``."""
        actions, state = self.machine.actions, self.state
        if state is State.READY:
            if self.is_over:
                if now >= self.release_at:
                    actions.release(self, now)
            elif not self.outgoing.expire(now):
                actions.abort(self, "the peer does not answer any more", Reason.NO_ANSWER, now)
            elif not self.config.fifo:
                actions.send_due_ustats(self, now)
        elif now >= self.timer_cc:
            if state is State.OUTGOING:
                actions.repeat_begin(self, now)
            elif state is State.OUTGOING_RELEASE:
                actions.repeat_end(self, now)

    def next_deadline(self) -> float:
        """When :meth:`advance` and :meth:`transmit` are to be called next; infinity for never."""
        state = self.state
        if state is State.READY:
            if self.is_over:
                return self.release_at
            deadline = self.outgoing.deadline()
            if not self.config.fifo and self.receiver is not None:
                return min(deadline, self.receiver.ustat_deadline())
            return deadline
        if state is State.OUTGOING:
            return min(self.timer_cc, self.outgoing.paced_until())
        return self.timer_cc if state is State.OUTGOING_RELEASE else math.inf
