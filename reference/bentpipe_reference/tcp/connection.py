"""One TCP connection, sans IO: segments and time in, segments out (RFC 9293)."""

from __future__ import annotations

import math

from bentpipe_reference.common.sim import earliest
from bentpipe_reference.common.stream import Source, WriteBuffer
from bentpipe_reference.tcp.output import TIMESTAMP_HZ, ConnectionOutput
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import RECEIVES_DATA, Happening, State
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))


class Connection(ConnectionOutput):
    """A connection; call :meth:`open` or :meth:`accept` first, :meth:`transmit` after each call."""

    # -- the application's side ---------------------------------------------------------------

    def open(self, now: float) -> None:
        """Active open: send a SYN."""
        self._happen(Happening.ACTIVE_OPEN, now)
        self._send_syn(now)

    def accept(self, syn: Segment, now: float) -> None:
        """Passive open: answer the SYN of a peer."""
        self._happen(Happening.PASSIVE_OPEN, now)
        self._take_syn(syn, now)
        self._send_syn(now)

    def attach(self, source: Source, now: float) -> None:
        """Let the connection send what ``source`` yields."""
        self.sender.source = source
        self._output(now)

    def write(self, data: bytes, now: float) -> int:
        """Queue octets to send; return how many the send buffer took."""
        if self.sender.source is None:
            self.sender.source = WriteBuffer(self.config.send_buffer)
        source = self.sender.source
        if self.sender.fin_queued or not isinstance(source, WriteBuffer):
            raise ValueError("nothing can be written after close, or while a source is attached.")
        taken = source.write(data)
        self._output(now)
        return taken

    @property
    def write_room(self) -> int:
        """Octets that :meth:`write` would take now."""
        if self.sender.fin_queued:
            return 0
        source = self.sender.source
        return source.room if isinstance(source, WriteBuffer) else self.config.send_buffer

    @property
    def readable(self) -> int:
        """Octets that :meth:`read` would return now."""
        return 0 if self.receiver is None else self.receiver.buffer.unread

    def read(self, octets: int | None = None) -> bytes:
        """Received octets in order, at most ``octets``; empty when there are none."""
        receiver = self.receiver
        if receiver is None or not receiver.buffer.unread:
            return b""
        data = receiver.buffer.read(octets)
        if not receiver.ack_now and self.state in RECEIVES_DATA and receiver.window_update_due():
            receiver.ack_now = True
        return data

    @property
    def peer_has_closed(self) -> bool:
        """Whether the peer's FIN has arrived in order."""
        return self.receiver is not None and self.receiver.fin_received

    def close(self, now: float) -> None:
        """Send FIN after everything queued; receiving continues."""
        if self.sender.fin_queued:
            return
        self.sender.fin_queued = True
        self._happen(Happening.CLOSE, now)
        self._output(now)

    def abort(self, reason: str, now: float) -> None:
        """Reset the connection."""
        if self.state not in (State.CLOSED, State.SYN_SENT, State.TIME_WAIT):
            self._put(self.sender.snd_nxt, _RST | _ACK, now)
        self._end(reason, now)

    # -- the driver's side --------------------------------------------------------------------

    def transmit(self, now: float) -> list[Segment]:
        """Segments to send now, including an acknowledgment that is due."""
        receiver = self.receiver
        if receiver is not None and receiver.ack_now and self.state is not State.CLOSED:
            self._put(self.sender.snd_max, _ACK, now)
        outbox, self._outbox = self._outbox, []
        return outbox

    def next_deadline(self) -> float | None:
        """When :meth:`advance` must be called next, None when no timer runs."""
        sender, receiver = self.sender, self.receiver
        first = sender.rto_deadline if sender.persist_deadline is None else sender.next_deadline()
        delayed = None if receiver is None else receiver.ack_deadline
        if delayed is not None and (first is None or delayed < first):
            first = delayed
        if self.handshake.deadline is None and self.time_wait_until is None:
            return first
        return earliest(first, self.handshake.deadline, self.time_wait_until)

    def advance(self, now: float) -> None:
        """Run the timers that are due."""
        if now >= (self.handshake.deadline or math.inf):
            if self.handshake.attempts > self.config.max_syn_retransmissions:
                self._end("the peer does not complete the handshake", now)
                return
            self._send_syn(now)
        if self.sender.has_given_up(now):
            self.abort("the peer answers no retransmission", now)
        self.sender.on_timer(now)
        receiver = self.receiver
        if receiver is not None and now >= (receiver.ack_deadline or math.inf):
            receiver.ack_now = True
        if now >= (self.time_wait_until or math.inf):
            self._happen(Happening.QUIET_TIME_OVER, now)

    def receive(self, segment: Segment, now: float) -> None:
        """Take one segment addressed to this connection."""
        if self.state is State.SYN_SENT:
            self._receive_in_syn_sent(segment, now)
        elif self.state is not State.CLOSED and self.receiver is not None:
            self._receive_synchronized(segment, self.receiver, now)

    # -- segments in --------------------------------------------------------------------------

    def _receive_in_syn_sent(self, segment: Segment, now: float) -> None:
        """RFC 9293 section 3.10.7.3."""
        flags = segment.flags
        if flags & _ACK and segment.ack != self.sender.snd_una & MASK:
            if not flags & _RST:
                self._reset_for(segment)
            return
        if flags & _RST:
            if flags & _ACK:
                self._end("the peer refused the connection", now)
            return
        if not flags & _SYN:
            return
        receiver = self._take_syn(segment, now)
        if flags & _ACK:
            receiver.ack_now = True
            self._established(segment, now)
        else:
            self._happen(Happening.SYN_CROSSED, now)
            self._send_syn(now)

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        """RFC 9293 section 3.10.7.4, with PAWS first (RFC 7323 section 5.3)."""
        flags = segment.flags
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        length = segment.sequence_length
        if receiver.ts_recent is not None and not flags & _RST:
            if segment.timestamps is None:
                return
            if receiver.is_stale_timestamp(segment.timestamps[0], now):
                receiver.ack_now = True
                return
        # The peer's SYN again is below the window, whatever data it carries.
        again = self.state is State.SYN_RECEIVED and flags & _SYN and seq == receiver.irs
        if again or not receiver.is_acceptable(seq, length):
            self._receive_unacceptable(segment, seq, receiver, now)
            return
        if flags & _RST:
            if seq == receiver.rcv_nxt:
                self._end("the peer reset the connection", now)
            elif seq > receiver.rcv_nxt:  # one that begins below the window is outside it
                receiver.ack_now = True
            return
        if flags & _SYN:
            receiver.ack_now = True
            return
        if not flags & _ACK:
            return
        if segment.timestamps is not None:
            receiver.note_timestamp(segment.timestamps[0], seq, now)
        if self._take_ack(segment, seq, now):
            self._take_text(segment, seq, receiver, now)

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        """Outside the window: acknowledge; with a closed window still process the ACK."""
        flags = segment.flags
        if flags & _RST:
            if seq == receiver.rcv_nxt:  # a closed window keeps out the data of one, not the reset
                self._end("the peer reset the connection", now)
            return
        if flags & _SYN and self.state is State.SYN_RECEIVED and seq == receiver.irs:
            if flags & _ACK:  # the SYN-ACK of a simultaneous open, which establishes
                self._take_ack(segment, seq, now)
            else:
                self._send_syn(now, repeated=True)
            return
        if self.state is State.TIME_WAIT and flags & _FIN:
            self.time_wait_until = now + self.config.time_wait
        receiver.ack_now = True
        # A SYN is challenged, and what it carries is not looked at (RFC 5961 section 4.2).
        receiver.on_old_text(seq, 0 if flags & _SYN else len(segment.payload))
        if flags & _ACK and not flags & _SYN and seq == receiver.rcv_nxt:
            self._take_ack(segment, seq, now)

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        """Process the acknowledgment; False when the segment must be processed no further."""
        sender = self.sender
        number = unwrap(segment.ack, sender.snd_una)
        if self.state is State.SYN_RECEIVED:
            if not sender.snd_una <= number <= sender.snd_max:
                self._reset_for(segment)
                return False
            self._established(segment, now)
        elif self._refuses_ack(number, now):
            return False
        else:
            sender.on_ack(self._ack_part(segment, number, seq, now), now)
            if sender.fin_acknowledged:
                self._happen(Happening.FIN_ACKNOWLEDGED, now)
        return True

    def _refuses_ack(self, number: int, now: float) -> bool:  # noqa: ARG002
        """Whether an acknowledgment is of what was not sent; then it is answered."""
        if number <= self.sender.snd_max:
            return False
        if self.receiver is not None:
            self.receiver.ack_now = True
        return True

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        age = None
        if segment.timestamps is not None and self.handshake.timestamps_ok:
            age = (self._timestamp(now) - segment.timestamps[1] & MASK) / TIMESTAMP_HZ
        blocks = segment.sack_blocks
        if blocks:
            una = self.sender.snd_una
            blocks = tuple((unwrap(left, una), unwrap(right, una)) for left, right in blocks)
        window = self._offered_window(segment)
        return Ack(number, window, seq, blocks, age, not segment.sequence_length)

    def _offered_window(self, segment: Segment) -> int:
        """The window of a segment, octets."""
        return segment.window << self.handshake.send_shift

    def _take_text(self, segment: Segment, seq: int, receiver: Receiver, now: float) -> None:
        receiver.on_text(seq, segment.payload, bool(segment.flags & _FIN), now)
        if receiver.fin_received:
            self._happen(Happening.FIN_RECEIVED, now)

    def _take_syn(self, segment: Segment, now: float) -> Receiver:
        receiver = self.parts.receiver(self.config, segment.seq, self.parts.reassembly)
        self.handshake.take_options(segment)
        receiver.sack_ok = self.handshake.sack_ok
        timestamps = segment.timestamps if self.handshake.timestamps_ok else None
        if timestamps is not None:
            receiver.echo_timestamp(timestamps[0], now)
        self.receiver = receiver
        return receiver

    def _established(self, segment: Segment, now: float) -> None:
        """Our SYN is acknowledged."""
        handshake = self.handshake
        receiver = self.receiver
        assert receiver is not None
        if (rtt := handshake.complete(now)) is not None:
            self.sender.estimator.sample(rtt)
        receiver.window_shift = handshake.receive_shift
        shift = 0 if segment.flags & _SYN else handshake.send_shift
        self.sender.establish(
            handshake.smss(),
            segment.window << shift,
            unwrap(segment.seq, receiver.rcv_nxt),
            sack_ok=handshake.sack_ok,
        )
        if handshake.attempts > 1:
            self.sender.cwnd = self.sender.loss_window()
        self._happen(Happening.SYN_ACKNOWLEDGED, now)
        if self.sender.fin_queued:
            self._happen(Happening.CLOSE, now)
        self._output(now)
