"""The receiving half: windows in units, few acknowledgments, blocks in rotation."""

from __future__ import annotations

import math
from bisect import bisect_right

from bentpipe_reference.common.ranges import Range
from bentpipe_reference.rwbp.config import ACKNOWLEDGMENT_DELAY, LARGEST_WINDOW
from bentpipe_reference.rwbp.option import RwbpOption
from bentpipe_reference.rwbp.reassembly import RunReassembly
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.sequence import unwrap

BLOCKS = 4
"""SACK blocks in an acknowledgment (RWBP-AK-005)."""

REMINDER_INTERVAL = 1.0
"""Seconds between two reminders (RWBP-AK-003)."""


class RwbpReceiver(Receiver):
    """State of the receiving direction of a connection with RWBP (sections 6 and 7).

    Args:
        config: settings of this end.
        irs: the peer's initial sequence number.
        reassembly: the received stream.
        peer: the peer's RWBP option.

    Attributes:
        unit: UNIT.OWN, octets.
        interval: N.
        top: RCV.TOP.
        last: RCV.LAST, None before the first segment with data.
        rotation: RCV.ROT.
        unacked: UNACKED.
        edge: RCV.EDGE.
    """

    buffer: RunReassembly

    def __init__(
        self,
        config: EndpointConfig,
        irs: int,
        reassembly: type[RunReassembly],
        peer: RwbpOption,
    ) -> None:
        super().__init__(config, irs, reassembly)
        self.unit = config.mss
        self.interval = peer.interval
        self.sack_ok = True
        self.edge = irs + 1 + self.syn_window()
        self.top = irs + 1
        self.last: int | None = None
        self.rotation = irs
        self.unacked = 0
        self._reminded = -math.inf
        self._size = config.receive_buffer
        self._most_units = min(0xFFFF, LARGEST_WINDOW // self.unit)

    # -- the window (section 6) ---------------------------------------------------------------

    def syn_window(self) -> int:
        """The field of a SYN, octets (RWBP-WN-011)."""
        return min(self.config.receive_buffer, 0xFFFF)

    def units(self) -> int:
        """W: whole units that there is room for."""
        room = self._size - self.buffer.unread - self.fin_received
        units = room // self.unit
        return units if units < self._most_units else self._most_units

    def window_field(self) -> int:
        """The field of a segment without SYN that is sent now; the edge never retreats."""
        field = self.units()
        edge = self.buffer.rcv_nxt + self.fin_received + field * self.unit
        if edge > self.edge:
            self.edge = edge
        return field

    def window_update_due(self) -> bool:
        """RWBP-WN-007."""
        window, unit = self.edge - self.buffer.rcv_nxt - self.fin_received, self.unit
        gain = self.units() * unit - window
        return 2 * gain >= self._size or (window < unit and gain >= 2 * unit)

    def is_acceptable(self, seq: int, length: int) -> bool:
        """As in TCP; what takes no number may stand at the edge, too (RWBP-WN-013)."""
        following = self.buffer.rcv_nxt + self.fin_received
        if length == 0:
            return following <= seq <= self.edge
        return following < seq + length and seq < self.edge > following

    def is_stray_reset(self, seq: int) -> bool:
        """Whether the number of a RST is not within the window; then it is discarded."""
        number = unwrap(seq, self.rcv_nxt)
        return number != self.rcv_nxt and not self.rcv_nxt < number < self.edge

    def remind(self, now: float) -> None:
        """Acknowledge what tells nothing, but not twice within a second (RWBP-AK-003)."""
        if now - self._reminded >= REMINDER_INTERVAL:
            self._reminded = now
            self.ack_now = True

    # -- segments with data (section 7.1) -----------------------------------------------------

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """Process the text of an acceptable segment and decide how to acknowledge it."""
        if not payload and not fin:
            return
        number = seq + len(payload)
        orderly = self.is_orderly(seq, number + fin)
        self.last = seq
        self._hold(seq, payload)
        if fin and self.fin_seq is None and self.top <= number < self.edge:
            self.fin_seq = number
        if self.fin_seq == self.buffer.rcv_nxt:
            self.fin_received = True
        self.on_counted(orderly=orderly and not fin, now=now)

    def is_orderly(self, seq: int, end: int) -> bool:
        """Whether a segment continues what has arrived, within the window and before a FIN."""
        return seq == self.top and end <= self.edge and self.fin_seq is None

    def _hold(self, seq: int, payload: bytes) -> None:
        """Take what is below the edge and below a FIN."""
        bound, end = self.edge, seq + len(payload)
        if self.fin_seq is not None:
            bound = min(bound, self.fin_seq)
        if end > bound:
            payload = payload[: max(0, bound - seq)]
            end = seq + len(payload)
        if payload:
            self.buffer.insert(seq, payload)
            if end > self.top:
                self.top = end

    def on_counted(self, *, orderly: bool, now: float) -> None:
        """Acknowledge at once, or every N-th, or after a while (RWBP-AK-001 to -003)."""
        if not orderly:
            self.ack_now = True
            return
        self.unacked += 1
        if self.unacked >= self.interval:
            self.ack_now = True
        elif self.ack_deadline is None:
            self.ack_deadline = now + self.delayed_ack_interval()

    def delayed_ack_interval(self) -> float:
        """Seconds for which a tail waits (RWBP-AK-002)."""
        return ACKNOWLEDGMENT_DELAY

    def on_refused(self, seq: int) -> None:
        """A segment with data that is not acceptable."""
        self.last = seq

    # -- acknowledgments (section 7.2) --------------------------------------------------------

    def sack_blocks_to_send(self, most: int = BLOCKS) -> tuple[Range, ...]:
        """The runs that a pure acknowledgment lists; the rotation proceeds."""
        runs = self.buffer.runs
        if not runs:
            return ()
        listed = list(self.first_blocks(runs))
        room = min(most, len(runs)) - len(listed)
        if room > 0:
            rotated = self.rotated([run for run in runs if run not in listed])[:room]
            self.rotation = rotated[-1][0]
            listed += rotated
        return tuple(listed[:most])

    def first_blocks(self, runs: tuple[Range, ...]) -> tuple[Range, ...]:
        """Steps 1 and 2: the run of the last arrival, and the highest of the others."""
        at = -1 if self.last is None else bisect_right(runs, self.last, key=lambda run: run[0]) - 1
        if at < 0 or self.last is None or self.last >= runs[at][1]:
            return runs[-1:]
        newest = runs[at]
        if at < len(runs) - 1:
            return newest, runs[-1]
        return newest, *runs[-2:-1]

    def rotated(self, others: list[Range]) -> list[Range]:
        """Step 3: the others, beginning above RCV.ROT."""
        self.rotation = max(self.rotation, self.rcv_nxt)
        at = bisect_right(others, self.rotation, key=lambda run: run[0])
        return others[at:] + others[:at]

    def note_ack_sent(self, *, complete: bool = True) -> None:
        """A segment was sent; unless ``complete``, an acknowledgment that is due remains due."""
        if complete:
            self.ack_deadline = None
            self.ack_now = False
            self.unacked = 0
