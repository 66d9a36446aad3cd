"""One connection as its user and the endpoint see it: stream, dispatch, timers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bentpipe_reference.stp.conditions import TAG_MASK
from bentpipe_reference.stp.events import Events, StreamError
from bentpipe_reference.stp.packets import Begin, Bgak, Flags, Packet, Reason
from bentpipe_reference.stp.procedures import Procedures
from bentpipe_reference.stp.proof import Proof
from bentpipe_reference.stp.sender import Source
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import CELLS, TAGGED, Row, State

_A, _C = int(Flags.A), int(Flags.C)


class Connection(Procedures):
    """A connection; :class:`~bentpipe_reference.stp.endpoint.StpEndpoint` makes them.

    After any call of :meth:`write`, :meth:`read`, :meth:`close` or :meth:`abort` the endpoint has
    something to transmit, perhaps.

    Attributes:
        touched: called when the user has done something.
        user: whatever the user of the endpoint wants to find again with the connection.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.touched: Callable[[Connection], None] = _nobody
        self.user: Any = None
        self._begin: Begin | None = None
        self._wants_room = False

    # The user's side

    @property
    def write_room(self) -> int:
        """Octets that :meth:`write` would take now."""
        return 0 if self.is_over or self.outgoing.sender.closed else self.outgoing.sender.room

    @property
    def readable(self) -> int:
        """Octets that :meth:`read` would return now."""
        return 0 if self.receiver is None else self.receiver.readable

    @property
    def peer_has_closed(self) -> bool:
        """STP-CC-004: the peer's stream has ended; what is readable is the last of it."""
        return self.peer_is_finished()

    @property
    def has_closed(self) -> bool:
        """Whether the user has ended its own stream."""
        return self.outgoing.sender.closed

    @property
    def is_over(self) -> bool:
        """Whether the user has been told how the connection ended."""
        return self.succeeded or self.failure is not None

    @property
    def acknowledged_octets(self) -> int:
        """Octets that the peer has reported as arrived; of the others nothing is known."""
        return self.outgoing.sender.acknowledged

    def write(self, data: bytes | memoryview) -> int:
        """Append to our stream as much of ``data`` as there is room for; return how much.

        Raises:
            StreamError: the stream is closed or the connection over.
        """
        if self.is_over:
            raise StreamError(f"the connection is over: {self.failure or 'both sides closed'}")
        if self.outgoing.sender.closed:
            raise StreamError("the stream has been closed")
        taken = self.outgoing.sender.write(data)
        self._wants_room = self._wants_room or taken < len(data)
        if taken:
            self.touched(self)
        return taken

    def attach(self, source: Source) -> None:
        """Let ``source`` feed our stream until it calls :meth:`close`.

        It is asked for so many octets when they can be sent, and may return fewer.
        """
        self.outgoing.sender.attach(source)
        self.touched(self)

    def ask_for_room(self) -> None:
        """Tell ``WRITABLE`` once half of the send buffer is free."""
        self._wants_room = True
        self.touched(self)

    def read(self, octets: int | None = None) -> bytes:
        """Take up to ``octets`` of the peer's stream, or all there are; empty when there are none.

        What has been delivered can be read even when the connection is over.
        """
        if not self.readable or self.receiver is None:
            return b""
        data = self.receiver.read(octets)
        if self.state is State.READY and self.receiver.reopened():
            self.announce_credit()
            self.touched(self)
        return data

    def announce_credit(self) -> None:
        """STP-DT-024: a STAT with the N(PS) and timestamp of the newest POLL answered."""
        assert self.receiver is not None
        n_ps, timestamp = self.receiver.last_poll
        self._send_stats(self.receiver.stat_lists(), n_ps, timestamp)
        if self._trace is not None:
            elements = self.receiver.whole_list()
            self._note("announce", None, {"n_ps": n_ps, "elements": elements})

    def close(self) -> None:
        """End our stream; harmless when it has ended already."""
        if not self.outgoing.sender.closed:
            self.outgoing.sender.close()
            self.touched(self)

    def abort(self, now: float, reason: Reason = Reason.ABORTED) -> None:
        """Section 5.5: end the connection, whatever is unsent or unacknowledged.

        Harmless when the user has been told how it ended already.
        """
        if self.is_over:
            return
        if self.state is State.OUTGOING and self._begin is None:
            self.fail("aborted by the user", reason, now)
            self.state = State.IDLE
        elif self.state in (State.OUTGOING, State.INCOMING, State.READY):
            self.send_end(self.end(_A, reason), now)
            self._note("release", now, {})
            self.fail("aborted by the user", reason, now)
        self.touched(self)

    def take_events(self) -> Events:
        """What has happened since the last call."""
        events, self.events = self.events, Events.NONE
        return events

    # Packets

    def call(self) -> None:
        """Section 5.1: begin a connection; the BEGIN leaves with the next :meth:`transmit`."""
        self.state = State.OUTGOING

    def receive(self, packet: Packet, octets: int, now: float) -> bool:
        """Handle a packet of so many octets as the state table says.

        Returns:
            Whether the packet is to be handled again, as in the state idle: the connection is gone.
        """
        self.arrived(octets)
        self.handled = packet
        kind = packet.type
        if kind in TAGGED and not self.tag_is_right(packet.tag):
            return False
        before = self.state
        if before is State.READY:
            self._hear(packet, now)
        elif before in (State.OUTGOING, State.INCOMING) and self.is_impossible(packet):
            return False
        for row in CELLS[before][kind]:
            if not row.guard or getattr(self, row.guard)(packet):
                return self._apply(row, packet, before, now)
        raise AssertionError("the last row of a cell always applies")

    def _hear(self, packet: Packet, now: float) -> None:
        """The peer shows itself: STP-CC-030, STP-CC-032."""
        if packet.type in TAGGED:
            self.outgoing.unheard = False
        elif not isinstance(packet, Bgak) or not self.has_both_csns(packet):
            return
        proof = self._proof
        if proof is None:
            return
        proof.heard(now)
        if isinstance(packet, Bgak) and not packet.flags & _C:
            proof.answered()
            self._proof = None if self.is_settled(proof) else proof

    def is_settled(self, proof: Proof) -> bool:
        """STP-CC-032: nothing more has to be proven."""
        return proof.is_accepted

    def tag_is_right(self, tag: int) -> bool:
        """STP-CC-001, section 4: the low 16 bits of the peer's CSN, where it is known."""
        if self.state is State.OUTGOING or self.peer_csn is None:
            return True
        return tag == self.peer_csn & TAG_MASK

    def _apply(self, row: Row, packet: Packet, before: State, now: float) -> bool:
        getattr(self, row.action)(packet, now)
        if row.again:
            return True
        if self.state is before and row.next is not None:
            self.state = row.next
        if isinstance(packet, Bgak) and not self.proven and self.has_both_csns(packet):
            self.proven = True
        if packet.type not in TAGGED or before is State.INCOMING:
            self._note_packet("receive", now, packet, row.when)
        return False

    def transmit(self, now: float) -> list[Packet]:
        """The packets to send at ``now``, in order."""
        state = self.state
        if state is State.READY:
            if not self.is_over:
                self._send_data(now)
                self.release_if_complete(now)
        elif state is State.OUTGOING:
            if self._begin is None:
                self._send_first_begin(now)
            self._send_early(now)
        if self.untold:
            self._note("put", now, {})
        outbox, self._outbox = self._outbox, []
        return outbox

    def gone(self, now: float) -> None:
        """The endpoint has forgotten this connection."""
        self._note("gone", now, {})

    def _send_data(self, now: float) -> None:
        sender = self.outgoing.sender
        self.outgoing.transmit(now, self.put, self.affords)
        if self._wants_room and 2 * sender.unsent <= self.config.send_buffer:
            self._wants_room = False
            self.events |= Events.WRITABLE

    def _send_early(self, now: float) -> None:
        """Section 5.1: SDs within the early credit; no timer repeats them."""
        if self.outgoing.sender.has_new and self.outgoing.sender.permitted():
            self._send_data(now)

    def _send_first_begin(self, now: float) -> None:
        """STP-CC-014: with the first data of our stream; a repetition is the same packet."""
        outgoing = self.outgoing
        data, fin = b"", 0
        if outgoing.sender.has_new:
            entry = outgoing.sender.take_new()
            data, fin = entry.data, entry.fin
        self._begin = Begin(
            *self.ports, self.tag, fin, self.iss & PACKET_MASK, self.config.credit, self.csn,
            max_sd=self.config.own_max_sd, data=data,
        )  # fmt: skip
        self._repeat_begin(now)

    def _repeat_begin(self, now: float) -> None:
        """STP-CC-016."""
        assert self._begin is not None
        if self._transmissions >= self.max_cc():
            self.fail("the peer does not answer", Reason.NO_ANSWER, now)
            self.state = State.IDLE
            return
        self.put(self._begin)
        self._asked_at = now if self._transmissions == 0 else None
        self._arm_timer_cc(now)
        self._note("begin", now, {"first": self._transmissions == 1})

    def release_if_complete(self, now: float) -> None:
        """STP-CC-025, STP-CC-031: our FIN is acknowledged, and the peer's delivered."""
        if not self.is_complete():
            return
        if self.leaves_release():
            self._release_at = now + self.release_wait()
        else:
            self._release_now(now)
        self.succeed(now)

    def leaves_release(self) -> bool:
        """STP-CC-031: whether the peer's END is awaited first."""
        return self.was_called

    def release_wait(self) -> float:
        """STP-CC-031: how long, seconds."""
        return max(self.config.timer_cc, self.outgoing.polling.silence_time())

    def _release_now(self, now: float) -> None:
        self.send_end(self.end(0, Reason.NONE), now)
        self._note("release", now, {})

    def is_complete(self) -> bool:
        """Section 5.5."""
        return self.outgoing.sender.fin_acknowledged and self.peer_is_finished()

    # Time

    def advance(self, now: float) -> None:
        """Run the timers that are due at ``now``."""
        state = self.state
        if state is State.READY:
            if self.is_over:
                if now >= self._release_at:
                    self._release_now(now)
            elif not self.outgoing.expire(now) or self.has_lost_the_listener(now):
                self.give_up(now)
            elif not self.config.fifo:
                self._send_due_ustats(now)
            if self._proof is not None and self.state is state and self._proof.due(now):
                self.put(self.bgak(_C))
        elif state is State.INCOMING:
            if now >= self._confirm_until:
                self._over()
                self.state = State.IDLE
        elif now >= self._timer_cc:
            if state is State.OUTGOING:
                self._repeat_begin(now)
            elif state is State.OUTGOING_RELEASE:
                self.repeat_end(now)

    def has_lost_the_listener(self, now: float) -> bool:
        """STP-PL-008: nothing has answered the proofs of STP-CC-032 for too long."""
        return self._proof is not None and self._proof.is_hopeless(now)

    def give_up(self, now: float) -> None:
        """STP-PL-008: the peer has not answered for too long."""
        self.send_end(self.end(_A, Reason.NO_ANSWER), now)
        self._note("release", now, {})
        self.fail("the peer does not answer any more", Reason.NO_ANSWER, now)

    def next_deadline(self) -> float:
        """When :meth:`advance` and :meth:`transmit` are to be called next; infinity for never."""
        state = self.state
        if state is State.READY:
            if self.is_over:
                return self._release_at
            deadline = self.outgoing.deadline()
            if self._proof is not None:
                deadline = min(deadline, self._proof.deadline())
            if not self.config.fifo and self.receiver is not None:
                until = self.receiver.ustat_deadline()
                return deadline if until is None else min(deadline, until)
            return deadline
        if state is State.INCOMING:
            return self._confirm_until
        if state is State.OUTGOING:
            return min(self._timer_cc, self.outgoing.paced_until())
        return self._timer_cc if state is State.OUTGOING_RELEASE else math.inf


def _nobody(_: Connection) -> None:
    """Nobody needs to know."""
