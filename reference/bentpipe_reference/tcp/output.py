"""What a connection consists of, the segments it sends and the states it passes through."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SENDERS
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Event, EventSink
from bentpipe_reference.tcp.states import SENDS_DATA, TRANSITIONS, Happening, State
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK

_ACK, _SYN, _FIN, _RST, _PSH = (
    int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST, Flags.PSH)
)
TIMESTAMP_HZ = 1000
"""Ticks of the timestamp clock per second (RFC 7323 section 5.4 allows 1 to 1000)."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The two ends of a connection; addresses are 32-bit numbers."""

    local: int
    local_port: int
    remote: int
    remote_port: int

    def swapped(self) -> Addresses:
        """The same connection as its other end sees it."""
        return Addresses(self.remote, self.remote_port, self.local, self.local_port)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionParts:
    """The classes that a connection is composed of.

    Attributes:
        sender: the sending half; its base class stands for that of the configured variant.
        receiver: the receiving half.
        reassembly: the received stream.
        handshake: negotiates the options.
        estimator: measures the round trip and sets the retransmission timeout.
    """

    sender: type[Sender] = Sender
    receiver: type[Receiver] = Receiver
    reassembly: type[Reassembly] = Reassembly
    handshake: type[Handshake] = Handshake
    estimator: type[RttEstimator] = RttEstimator


class ConnectionOutput:
    """The two halves of a connection, its handshake, its state and its outbox.

    Args:
        config: settings of this end.
        addresses: the two ends.
        iss: initial send sequence number.
        parts: what the connection is composed of.
        timestamp_offset: start of the timestamp clock, in its ticks.
        on_event: called with every protocol event.

    Attributes:
        state: the connection's state.
        sender: the sending half.
        receiver: the receiving half, None until the peer's SYN has arrived.
        failure: why the connection ended other than by FINs, None while it has not.
    """

    def __init__(
        self,
        config: EndpointConfig,
        addresses: Addresses,
        iss: int,
        parts: ConnectionParts = ConnectionParts(),
        *,
        timestamp_offset: int = 0,
        on_event: EventSink | None = None,
    ) -> None:
        self.config = config
        self.addresses = addresses
        self.state = State.CLOSED
        self.parts = parts
        estimator = parts.estimator(
            initial=config.initial_rto,
            minimum=config.min_rto,
            maximum=config.max_rto,
            granularity=config.granularity,
        )
        sender_class = SENDERS[config.variant] if parts.sender is Sender else parts.sender
        self.sender = sender_class(config, self.put, iss, estimator)
        self.sender.on_event = on_event
        self.receiver: Receiver | None = None
        self.failure: str | None = None
        self.handshake = parts.handshake(config, estimator)
        self.time_wait_until: float | None = None
        self._on_event = on_event
        self._timestamp_offset = timestamp_offset
        self._outbox: list[Segment] = []

    # -- segments out -------------------------------------------------------------------------

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """Send a data segment; the sender calls this."""
        flags = _ACK | (_FIN if fin else 0)
        if payload and self.sender.data_end == seq + len(payload):
            flags |= _PSH
        self._put(seq, flags, now, payload)

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        segment = self._segment(seq, flags, payload)
        if receiver is not None:
            segment.ack = receiver.rcv_nxt & MASK
            segment.window = receiver.window_field()
            if self.handshake.timestamps_ok:
                segment.timestamps = self._timestamps(now)
            complete = True
            if receiver.buffer.blocks or self.config.dsack:
                room = self.handshake.sack_room(len(payload))
                blocks = receiver.sack_blocks_to_send(room or 1)
                complete = len(blocks) <= room
                segment.sack_blocks = tuple(
                    (left & MASK, right & MASK) for left, right in blocks[:room]
                )
            receiver.note_ack_sent(complete=complete)
        self._outbox.append(segment)

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        """Send SYN, or SYN-ACK once the peer's SYN is here, and start its timer."""
        receiver = self.receiver
        segment = self._segment(self.sender.iss, _SYN)
        segment.window = min(self.config.receive_buffer, 0xFFFF)
        segment.mss = self.config.mss
        self.handshake.offer(segment, answering=receiver is not None)
        if self.handshake.offers_timestamps(answering=receiver is not None):
            segment.timestamps = self._timestamps(now)
        if receiver is not None:
            segment.flags |= _ACK
            segment.ack = receiver.rcv_nxt & MASK
            receiver.window_shift = 0  # the window of a SYN is never scaled (RFC 7323 section 2.2)
            segment.window = receiver.window_field()
            receiver.window_shift = self.handshake.receive_shift
            receiver.note_ack_sent()
        self.handshake.sent(now, repeated=repeated)
        self._outbox.append(segment)

    def _reset_for(self, segment: Segment) -> None:
        self._outbox.append(self._segment(segment.ack, _RST))

    def _segment(self, seq: int, flags: int, payload: bytes = b"") -> Segment:
        ends = self.addresses
        return Segment(
            ends.local, ends.remote, ends.local_port, ends.remote_port, seq & MASK, 0, flags,
            0, 0, payload,
        )  # fmt: skip

    def _output(self, now: float) -> None:
        if self.state in SENDS_DATA:
            self.sender.output(now)

    def _timestamps(self, now: float) -> tuple[int, int]:
        recent = None if self.receiver is None else self.receiver.ts_recent
        return self._timestamp(now), recent or 0

    def _timestamp(self, now: float) -> int:
        return int(now * TIMESTAMP_HZ) + self._timestamp_offset & MASK

    # -- states -------------------------------------------------------------------------------

    def _happen(self, happening: Happening, now: float) -> None:
        state = TRANSITIONS.get((self.state, happening))
        if state is None:
            return
        self.state = state
        if state is State.TIME_WAIT:
            self.time_wait_until = now + self.config.time_wait
        if state is State.CLOSED:
            self._stop_timers()
        if self._on_event is not None:
            self._on_event(Event("state", now, {"state": state.value, "why": happening.value}))

    def _end(self, reason: str, now: float) -> None:
        self.failure = reason
        self._happen(Happening.ENDED, now)

    def _stop_timers(self) -> None:
        self.sender.rto_deadline = self.sender.persist_deadline = None
        self.handshake.deadline = self.time_wait_until = None
        if self.receiver is not None:
            self.receiver.ack_deadline = None
            self.receiver.ack_now = False
