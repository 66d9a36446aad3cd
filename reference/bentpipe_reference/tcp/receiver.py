"""The receiving half of a connection: window, acknowledgments and SACK blocks."""

from __future__ import annotations

from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.wire.sequence import before

PAWS_LIFETIME = 2_073_600.0
"""Seconds, 24 days, after which TS.Recent is no longer trusted (RFC 7323 section 5.5)."""


class Receiver:
    """State of the receiving direction; sequence numbers are unwrapped, windows in octets.

    Attributes:
        irs: initial receive sequence number.
        buffer: the reassembled stream.
        edge: one past the last sequence number the advertised window allows.
        fin_seq: sequence number of the peer's FIN, None until it is seen.
        ack_now: whether an acknowledgment is due at once.
        ack_deadline: when a delayed acknowledgment is due, None when none is.
        ts_recent: timestamp to echo, None without timestamps.
    """

    def __init__(
        self, config: EndpointConfig, irs: int, reassembly: type[Reassembly] = Reassembly
    ) -> None:
        self.config = config
        self.irs = irs
        self.buffer = reassembly(irs + 1)
        self.edge = irs + 1
        self.window_shift = 0
        self.sack_ok = False
        self.fin_seq: int | None = None
        self.fin_received = False
        self.ack_now = False
        self.ack_deadline: float | None = None
        self.ts_recent: int | None = None
        self._ts_recent_time: float
        self._last_ack_sent = irs + 1
        self._octets_unacked = 0
        self._largest_segment = 1
        self._duplicate: tuple[int, int] | None = None

    @property
    def rcv_nxt(self) -> int:
        """Next sequence number expected, the FIN counted."""
        return self.buffer.rcv_nxt + self.fin_received

    # -- the window ---------------------------------------------------------------------------

    def free_room(self) -> int:
        """Free octets of the receive buffer, as far as the window field can tell of them."""
        free = self.config.receive_buffer - self.buffer.unread
        return min(free, 0xFFFF << self.window_shift)

    def _gain(self) -> int:
        """Octets by which the edge could advance."""
        return self.rcv_nxt + self.free_room() - self.edge

    def update_edge(self) -> None:
        """Advance the advertised edge, never back (RFC 9293 section 3.8.6.2.2, SWS avoidance)."""
        gain = self._gain()
        if gain >= min(self.config.receive_buffer // 2, self.config.mss):
            self.edge += gain

    def window_field(self) -> int:
        """The 16-bit field; rounded up to the scale, so that the edge never moves back."""
        self.update_edge()
        window = max(0, self.edge - self.rcv_nxt)
        field = min(-(-window >> self.window_shift), 0xFFFF)
        self.edge = self.rcv_nxt + (field << self.window_shift)
        return field

    def window_update_due(self) -> bool:
        """Whether reading has made enough room to tell the peer (RFC 9293 section 3.8.6.2.2)."""
        return self._gain() >= min(self.config.receive_buffer // 2, 2 * self.config.mss)

    def is_acceptable(self, seq: int, length: int) -> bool:
        """The segment acceptability test (RFC 9293 section 3.10.7.4)."""
        window = self.edge - self.rcv_nxt
        if window <= 0:
            return length == 0 and seq == self.rcv_nxt
        if length == 0:
            return self.rcv_nxt <= seq < self.edge
        return seq < self.edge and seq + length > self.rcv_nxt

    # -- timestamps ---------------------------------------------------------------------------

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        """PAWS (RFC 7323 section 5.3, R1)."""
        return (
            self.ts_recent is not None
            and before(tsval, self.ts_recent)
            and now - self._ts_recent_time < PAWS_LIFETIME
        )

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        """Choose the timestamp to echo (RFC 7323 section 4.3)."""
        if self.ts_recent is None or before(tsval, self.ts_recent):
            return
        if seq <= self._last_ack_sent:
            self.echo_timestamp(tsval, now)

    def echo_timestamp(self, tsval: int, now: float) -> None:
        """Echo ``tsval`` from now on; the first comes with the SYN that negotiates timestamps."""
        self.ts_recent = tsval
        self._ts_recent_time = now

    # -- data ---------------------------------------------------------------------------------

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """Process the text of an acceptable segment and decide how to acknowledge it."""
        if fin and self.fin_seq is None:
            self.fin_seq = seq + len(payload)
            self.buffer.end_at(self.fin_seq)
        if self.fin_seq is not None:
            payload = payload[: max(0, self.fin_seq - seq)]
        payload = payload[: self.edge - seq]
        if payload:
            self._take(seq, payload, now)
        if fin:
            self.ack_now = True
        if self.fin_seq == self.buffer.rcv_nxt and not self.fin_received:
            self.fin_received = self.ack_now = True

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        buffer, end = self.buffer, seq + len(payload)
        expected = buffer.rcv_nxt
        gap_before = bool(buffer.blocks)
        if self.config.dsack:  # find the duplicate range to report (RFC 2883 section 4)
            if buffer.covered(seq, end):
                self._duplicate = seq, end
            elif seq < expected:
                self._duplicate = seq, expected
        buffer.insert(seq, payload)
        in_order = seq <= expected < end
        self._largest_segment = max(self._largest_segment, len(payload))
        if in_order:
            self._octets_unacked += buffer.rcv_nxt - expected
        if self.should_ack_now(in_order=in_order, gap=gap_before or bool(buffer.blocks)):
            self.ack_now = True
        elif self.ack_deadline is None:
            self.ack_deadline = now + self.delayed_ack_interval()

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        """RFC 5681 section 4.2: at once out of order, filling a gap, or for every second segment.

        Args:
            in_order: the segment advanced ``rcv_nxt``.
            gap: data was missing before the segment arrived, or is missing after it.
        """
        full = self._octets_unacked >= self.config.ack_every * self._largest_segment
        return not in_order or gap or full

    def delayed_ack_interval(self) -> float:
        """Seconds an acknowledgment may wait; RFC 5681 section 4.2 allows half a second."""
        return self.config.delayed_ack_timeout

    def on_old_text(self, seq: int, octets: int) -> None:
        """Text wholly outside the window; D-SACK reports it when it lies below."""
        if self.config.dsack and octets and seq + octets <= self.buffer.rcv_nxt:
            self._duplicate = seq, seq + octets

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        """At most ``most`` blocks: a D-SACK first, then what grew last first (RFC 2018)."""
        if not self.sack_ok:
            return ()
        blocks = self.buffer.blocks
        if self._duplicate is not None:
            # The block around a D-SACK has to follow it (RFC 2883 section 4): it came last.
            blocks = [self._duplicate, *blocks]
        return tuple(blocks[:most])

    def note_ack_sent(self, *, complete: bool = True) -> None:
        """An acknowledgment of everything received so far was sent.

        Without ``complete`` its SACK blocks did not fit with its data, so that a pure
        acknowledgment remains due if one was.
        """
        self.ack_deadline = None
        self._octets_unacked = 0
        self._last_ack_sent = self.rcv_nxt
        if complete:
            self.ack_now = False
            self._duplicate = None
