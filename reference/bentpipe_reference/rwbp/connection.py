"""One connection: TCP's, which goes over to RWBP's halves when RWBP is agreed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import cast

from bentpipe_reference.rwbp.config import LARGEST_WINDOW
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.reassembly import RunReassembly
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.scheduler import Entry
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import UplinkParts
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.states import SENDS_DATA, State
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))
_PREDICTED = int(Flags.ACK), int(Flags.ACK | Flags.PSH)

HEADER_OCTETS = 40
"""Of an IPv4 packet with a segment that has no options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halves(UplinkParts):
    """What of its parts a connection goes over to.

    Attributes:
        rwbp_sender: the sending half.
        rwbp_receiver: the receiving half.
        rwbp_reassembly: the stream that it receives.
    """

    rwbp_sender: type[RwbpSender] = RwbpSender
    rwbp_receiver: type[RwbpReceiver] = RwbpReceiver
    rwbp_reassembly: type[RunReassembly] = RunReassembly


class RwbpConnection(Connection):
    """A connection whose segments with data leave when they are scheduled.

    :meth:`transmit` schedules everything at once, as if the connection had a link of its own. A
    scheduler calls :meth:`transmit_unscheduled` after each event, and :meth:`serve` for each turn.
    On a connection without RWBP the TCP below decides what is sent, and a turn is what leaves.

    Attributes:
        entry: its place in the ring, None before its first segment.
    """

    entry: Entry | None = None
    handshake: RwbpHandshake
    _waiting: deque[Segment] | None = None
    _left = 0
    """Without RWBP, one above the highest number that has had its turn; 0 before the first one."""

    _told = -1, -1
    """The acknowledgment number and the window of the segment taken last."""

    @property
    def agreed(self) -> bool:
        """Whether this is a connection with RWBP."""
        return self.handshake.peer is not None

    # -- the user's side ----------------------------------------------------------------------

    def write(self, data: bytes, now: float) -> int:
        """Queue octets to send; return how many the send buffer took."""
        return super().write(data[: self.write_room] if self.agreed else data, now)

    @property
    def write_room(self) -> int:
        """Octets that :meth:`write` would take now; what has arrived takes no room."""
        room = super().write_room
        if not isinstance(self.sender, RwbpSender):
            return room
        return max(0, min(room, self.config.send_buffer - self.sender.buffered))

    # -- scheduling ---------------------------------------------------------------------------

    def can_send(self) -> bool:
        """Whether the connection can use a turn (section 9.2)."""
        sender = self.sender
        if isinstance(sender, RwbpSender):
            return self.state in SENDS_DATA and sender.can_send()
        return bool(self._waiting)

    def next_octets(self) -> int:
        """Octets of the IP packet of the next turn; only while :meth:`can_send`."""
        if self._waiting:
            return self._waiting[0].packet_octets
        assert isinstance(self.sender, RwbpSender)
        return HEADER_OCTETS + self.sender.next_octets()

    def serve(self, now: float) -> Segment:
        """The segment of one turn; only while :meth:`can_send`."""
        if self._waiting:
            waited = self._waiting.popleft()
            end = unwrap(waited.seq, self.sender.snd_una) + len(waited.payload)
            self._left = max(self._left, end + bool(waited.flags & _FIN))
            # It says what is so when it leaves, as if it had been cut now (RWBP-FF-001).
            self._put(waited.seq, waited.flags, now, waited.payload)
            return self._outbox.pop()
        sender = self.sender
        assert isinstance(sender, RwbpSender)
        sender.use_turn(now)
        return self._outbox.pop()

    def transmit(self, now: float) -> list[Segment]:
        """Everything that may be sent now, including an acknowledgment that is due."""
        sender = self.sender
        sends = sender.source is not None or sender.fin_queued
        if sends and isinstance(sender, RwbpSender) and self.state in SENDS_DATA:
            while sender.can_send():
                sender.use_turn(now)
        return super().transmit(now)

    def transmit_unscheduled(self, now: float) -> list[Segment]:
        """What waits for no turn (RWBP-SC-004)."""
        segments = super().transmit(now)
        if self.agreed:
            return segments
        if self._waiting is None:
            self._waiting = deque()
        at_once: list[Segment] = []
        for segment in segments:
            scheduled = segment.payload or segment.flags & _FIN
            (self._waiting if scheduled else at_once).append(segment)
            if not scheduled and self._waiting and segment.seq == self.sender.snd_max & MASK:
                left = self._left or self.sender.iss + 1
                segment.seq = min(left, self.sender.snd_max) & MASK
        return at_once

    # -- segments in --------------------------------------------------------------------------

    def receive(self, segment: Segment, now: float) -> None:
        """Take one segment; what the one before called for is sent first (RWBP-AK-003)."""
        receiver = self.receiver
        if isinstance(receiver, RwbpReceiver):
            if receiver.ack_now:
                self._put(self.sender.snd_max, _ACK, now)
            if segment.flags & _RST and receiver.is_stray_reset(segment.seq):
                return
            if self._is_predicted(segment):
                seq = unwrap(segment.seq, receiver.buffer.rcv_nxt)
                if receiver.is_acceptable(seq, len(segment.payload)):
                    self.sender.silent_timeouts = 0
                    self._take_text(segment, seq, receiver, now)
                    return
        super().receive(segment, now)

    def _is_predicted(self, segment: Segment) -> bool:
        """Whether it is data that repeats what is known: the usual one, taken in few steps."""
        return (
            segment.flags in _PREDICTED
            and bool(segment.payload)
            and (segment.ack, segment.window) == self._told
            and not (segment.sack_blocks or segment.timestamps)
            and self.state is State.ESTABLISHED
        )

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        """As TCP; what was accepted once tells nothing when it is repeated."""
        established = self.state is State.ESTABLISHED
        accepted = super()._take_ack(segment, seq, now)
        self._told = (segment.ack, segment.window) if established and accepted else (-1, -1)
        return accepted

    def _take_syn(self, segment: Segment, now: float) -> Receiver:
        """Go over to RWBP's halves if the peer's SYN or SYN-ACK agrees."""
        receiver = super()._take_syn(segment, now)
        peer = self.handshake.peer
        if peer is None:
            return receiver
        plain, config, halves = self.sender, self.config, cast(Halves, self.parts)
        self.receiver = halves.rwbp_receiver(config, segment.seq, halves.rwbp_reassembly, peer)
        edge = plain.iss + 1 + segment.window
        self.sender = halves.rwbp_sender(config, self.put, plain.iss, plain.estimator, edge)
        self.sender.take_over(plain)
        return self.receiver

    def _established(self, segment: Segment, now: float) -> None:
        """Our SYN is acknowledged; what says so may name the edge in units."""
        super()._established(segment, now)
        if not self.agreed:
            return
        receiver, sender = self.receiver, self.sender
        assert receiver is not None
        if not segment.flags & _SYN:
            seq, number = unwrap(segment.seq, receiver.rcv_nxt), unwrap(segment.ack, sender.snd_una)
            sender.on_ack(self._ack_part(segment, number, seq, now), now)
        if receiver.window_update_due():
            receiver.ack_now = True

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        """As TCP; the last arrival counts for the order of blocks (section 7.1)."""
        flags = segment.flags
        if isinstance(receiver, RwbpReceiver) and not (
            segment.payload or flags & (_SYN | _FIN | _RST)
        ):
            receiver.remind(now)
            return
        with_data = (segment.payload or flags & _FIN) and not flags & (_SYN | _RST)
        if with_data and isinstance(receiver, RwbpReceiver):
            receiver.on_refused(seq)
        super()._receive_unacceptable(segment, seq, receiver, now)

    def _refuses_ack(self, number: int, now: float) -> bool:
        """Discard an acknowledgment of what was not sent, or too old (RWBP-EC-015)."""
        receiver = self.receiver
        if not isinstance(receiver, RwbpReceiver):
            return super()._refuses_ack(number, now)
        sender = self.sender
        if sender.snd_una - LARGEST_WINDOW <= number <= sender.snd_max:
            return False
        receiver.remind(now)
        return True

    def _offered_window(self, segment: Segment) -> int:
        """The window in octets (RWBP-WN-001)."""
        peer = self.handshake.peer
        if peer is None or segment.flags & _SYN:
            return super()._offered_window(segment)
        return min(segment.window * peer.unit, LARGEST_WINDOW)

    # -- segments out -------------------------------------------------------------------------

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        """Options stand in pure acknowledgments only, and runs are reported by these only."""
        receiver = self.receiver
        if not isinstance(receiver, RwbpReceiver):
            super()._put(seq, flags, now, payload)
            return
        ends, number = self.addresses, receiver.rcv_nxt & MASK
        segment = Segment(
            ends.local, ends.remote, ends.local_port, ends.remote_port, seq & MASK, number, flags,
            receiver.window_field(), 0, payload,
        )  # fmt: skip
        pure = not payload and not flags & (_FIN | _RST)
        if pure:
            blocks = receiver.sack_blocks_to_send()
            segment.sack_blocks = tuple((left & MASK, right & MASK) for left, right in blocks)
        if receiver.unacked or receiver.ack_now:
            receiver.note_ack_sent(complete=pure or self.is_complete(receiver))
        self._outbox.append(segment)

    def is_complete(self, receiver: RwbpReceiver) -> bool:
        """Whether the segment with data that is being put acknowledges (section 7.1)."""
        assert isinstance(self.sender, RwbpSender)
        return self.sender.fresh and not receiver.buffer.runs

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        """The window field of a SYN-ACK counts octets, too."""
        receiver = self.receiver
        if not isinstance(receiver, RwbpReceiver):
            super()._send_syn(now, repeated=repeated)
            return
        edge = receiver.edge
        super()._send_syn(now, repeated=repeated)
        receiver.edge = edge
        self._outbox[-1].window = receiver.syn_window()
