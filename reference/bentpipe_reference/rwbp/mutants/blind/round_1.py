"""Round 1: written from RWBP/1 on 2026-11-22."""

from __future__ import annotations

from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.ranges import Range
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.option import RwbpOption
from bentpipe_reference.rwbp.outstanding import Outgoing
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import unwrap


class WindowInSegments(RwbpConnection):
    """The peer's field counts segments as large as are sent, not the peer's units."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if self.handshake.peer is not None and not segment.flags & Flags.SYN:
            ack.window = segment.window * self.handshake.smss()
        return ack


class ProgressReplacesEdge(RwbpSender):
    """An acknowledgment that advances SND.UNA sets the edge, even to a lower one."""

    def update_window(self, ack: Ack) -> bool:
        if ack.number > self.snd_una:
            self.edge = ack.number + ack.window
            return True
        return super().update_window(ack)


class FinRidesBeyondTheEdge(RwbpSender):
    """The last data takes the FIN along, whether there is room for its number or not."""

    def _cut(self) -> Outgoing:
        edge = self.edge
        self.edge += 1
        try:
            return super()._cut()
        finally:
            self.edge = edge


class BlocksFromBelow(RwbpSender):
    """A block that begins at or below the acknowledgment number of its segment is believed."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        return self.snd_una < left < right <= self.snd_max


class MeasuresDelayedByTimeout(RwbpSender):
    """What was sent once is measured, although a timeout has come since."""

    def may_measure(self, highest: Outgoing) -> bool:
        return highest.first == highest.latest


class MeasuresTheLowest(RwbpSender):
    """The lowest of the segments that an acknowledgment reports is measured."""

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        lowest = min(arrived, key=lambda segment: segment.start)
        may, self.may_measure = self.may_measure, lambda highest: False  # type: ignore[method-assign]
        try:
            if may(lowest):
                self.estimator.sample(now - lowest.sent)
            super().on_arrivals(arrived, now)
        finally:
            del self.may_measure


class TimerByNumbersOnly(RwbpSender):
    """The timer is started anew by progress of SND.UNA only; news in blocks leaves it running."""

    _una = 0

    def on_ack(self, ack: Ack, now: float) -> None:
        self._una = self.snd_una
        super().on_ack(ack, now)

    def restart_rto(self, now: float) -> None:
        if self.segments.count and self.rto_deadline is not None and self.rto_deadline > now:
            if self.snd_una == self._una:
                return
        super().restart_rto(now)


class TrustsAgainAfterTimeout(RwbpSender):
    """A timeout makes the threshold 1 again, and forgets the false losses."""

    def on_timeout(self, now: float) -> None:
        if self.segments.due() is None:
            self.threshold, self.false_losses = 1, 0
        super().on_timeout(now)


class FirstFallBackTakesAll(RwbpSender):
    """The acknowledgment that raises K still takes for lost by the old threshold."""

    def on_ack(self, ack: Ack, now: float) -> None:
        threshold, before = self.threshold, self.highest_first[0]
        super().on_ack(ack, now)
        if self.threshold != threshold and self.highest_first[0] > before:
            for segment in self.segments.sent_before(self.highest_first[0]):
                segment.suspect, segment.repaired = True, None
                self.segments.ask_for(segment, 1)


class RotationBeginsAnew(RwbpReceiver):
    """Whenever RCV.NXT has advanced, the rotation begins from the lowest run again."""

    _next = 0

    def rotated(self, others: list[Range]) -> list[Range]:
        if self.rcv_nxt != self._next:
            self._next = self.rotation = self.rcv_nxt
        return super().rotated(others)


class DuplicatesAreNotLast(RwbpReceiver):
    """A segment that brings nothing new does not become the one that arrived last."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        last = self.last
        known = any(a <= seq and seq + len(payload) <= b for a, b in self.buffer.runs)
        super().on_text(seq, payload, fin, now)
        if known and payload:
            self.last = last

    def on_refused(self, seq: int) -> None:
        pass


class TailTimerStartedAgain(RwbpReceiver):
    """Each segment in order starts the acknowledgment timer anew."""

    def on_counted(self, *, orderly: bool, now: float) -> None:
        if orderly:
            self.ack_deadline = None
        super().on_counted(orderly=orderly, now=now)


class CountSurvives(RwbpReceiver):
    """An acknowledgment because of a gap leaves the count of orderly segments as it is."""

    def note_ack_sent(self, *, complete: bool = True) -> None:
        kept = self.unacked if self.unacked < self.interval and self.ack_deadline is not None else 0
        gap = bool(self.buffer.runs)
        super().note_ack_sent(complete=complete)
        if gap and complete:
            self.unacked = kept


class FillingIsOrderly(RwbpReceiver):
    """A segment at RCV.NXT counts as orderly, though runs are held above it."""

    def is_orderly(self, seq: int, end: int) -> bool:
        return super().is_orderly(seq, end) or (
            seq == self.rcv_nxt and end <= self.edge and self.fin_seq is None
        )


class ProbesFallBack(RwbpSender):
    """The answer to a probe makes the next interval RTO again."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if self.persist_deadline is not None:
            self.probes = 0
            self.persist_deadline = None
        super().on_ack(ack, now)


class UpdatesByHalvesOnly(RwbpReceiver):
    """A closed window is opened to the peer only when half of the buffer is free."""

    def window_update_due(self) -> bool:
        return 2 * self._gain() >= self.config.receive_buffer


class RemindersSpareDuplicates(RwbpConnection):
    """Old data, too, is acknowledged once a second only."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if isinstance(receiver, RwbpReceiver) and segment.payload:
            if not segment.flags & (Flags.SYN | Flags.RST):
                receiver.on_refused(seq)
                receiver.remind(now)
                return
        super()._receive_unacceptable(segment, seq, receiver, now)


class UnitOfTheSmaller(RwbpHandshake):
    """The unit of a SYN-ACK is the smaller of both MSS options."""

    def own_option(self) -> RwbpOption:
        own = super().own_option()
        if self.peer is None or self._peer_mss is None:
            return own
        return RwbpOption(own.interval, max(48, min(own.unit, self._peer_mss)))

    _peer_mss: int | None = None

    def take_options(self, syn: Segment) -> None:
        self._peer_mss = syn.mss
        super().take_options(syn)


class FinMustBeAcknowledged(RwbpSender):
    """Data with FIN arrives by the acknowledgment number only, whatever a block says."""

    def _within(self, left: int, right: int) -> list[Outgoing]:
        segments = [item for item in self.segments.within(left, right) if not item.fin]
        for item in segments:
            self.scoreboard.add(item.start, item.end)
        return segments


class WholeOrNothingAtTheEdge(RwbpReceiver):
    """A segment that reaches beyond the edge is acknowledged, and not taken at all."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        if seq + len(payload) > self.edge:
            self.last = seq
            self.ack_now = True
            return
        super().on_text(seq, payload, fin, now)


class ResetAtTheTop(RwbpConnection):
    """A RST counts behind all that has arrived, too: at RCV.TOP."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if isinstance(receiver, RwbpReceiver) and segment.flags & Flags.RST:
            if unwrap(segment.seq, receiver.rcv_nxt) == receiver.top:
                segment.seq = receiver.rcv_nxt & 0xFFFFFFFF
        super().receive(segment, now)


def _with(part: type[Any]) -> Any:
    return lambda setup: setup.with_part(part)


FAULTS = [
    Fault(
        "rwbp-b1-window-in-segments",
        "the peer's field counts segments as sent, not the peer's units",
        "RWBP-WN-001",
        _with(WindowInSegments),
    ),
    Fault(
        "rwbp-b1-progress-replaces-edge",
        "an acknowledgment that advances SND.UNA sets the edge, even to a lower one",
        "RWBP-WN-002",
        _with(ProgressReplacesEdge),
    ),
    Fault(
        "rwbp-b1-fin-beyond-the-edge",
        "the FIN rides on the last data though there is no room for its number",
        "RWBP-WN-005; RWBP-WF-008",
        _with(FinRidesBeyondTheEdge),
    ),
    Fault(
        "rwbp-b1-blocks-from-below",
        "a block that begins at or below the segment's own acknowledgment number is believed",
        "RWBP-EC-013",
        _with(BlocksFromBelow),
    ),
    Fault(
        "rwbp-b1-measures-across-timeout",
        "what a timeout has delayed is measured",
        "RWBP-TM-002",
        _with(MeasuresDelayedByTimeout),
    ),
    Fault(
        "rwbp-b1-measures-the-lowest",
        "the lowest of the segments reported is measured",
        "RWBP-TM-002",
        _with(MeasuresTheLowest),
    ),
    Fault(
        "rwbp-b1-timer-by-numbers",
        "news in blocks does not start the timer anew",
        "RWBP-TM-003",
        _with(TimerByNumbersOnly),
    ),
    Fault(
        "rwbp-b1-trusts-after-timeout",
        "a timeout makes the loss threshold 1 again",
        "RWBP-FF-003",
        _with(TrustsAgainAfterTimeout),
    ),
    Fault(
        "rwbp-b1-fall-back-takes-all",
        "the acknowledgment that raises K still takes for lost by the old threshold",
        "RWBP-FF-003; RWBP-EC-002",
        _with(FirstFallBackTakesAll),
    ),
    Fault(
        "rwbp-b1-rotation-anew",
        "whenever RCV.NXT has advanced the rotation begins with the lowest run",
        "RWBP-AK-006",
        _with(RotationBeginsAnew),
    ),
    Fault(
        "rwbp-b1-duplicates-not-last",
        "a duplicate does not become the segment that arrived last",
        "RWBP-AK-006",
        _with(DuplicatesAreNotLast),
    ),
    Fault(
        "rwbp-b1-tail-timer-again",
        "each orderly segment starts the acknowledgment timer anew",
        "RWBP-AK-002",
        _with(TailTimerStartedAgain),
    ),
    Fault(
        "rwbp-b1-count-survives",
        "an acknowledgment because of a gap leaves UNACKED as it is",
        "RWBP-AK-001; RWBP-AK-004",
        _with(CountSurvives),
    ),
    Fault(
        "rwbp-b1-filling-is-orderly",
        "what fills a hole at RCV.NXT counts as orderly",
        "RWBP-AK-003",
        _with(FillingIsOrderly),
    ),
    Fault(
        "rwbp-b1-probes-fall-back",
        "the answer to a probe makes the next interval RTO again",
        "RWBP-WN-008",
        _with(ProbesFallBack),
    ),
    Fault(
        "rwbp-b1-updates-by-halves",
        "a closed window is opened only when half of the buffer is free",
        "RWBP-WN-007",
        _with(UpdatesByHalvesOnly),
    ),
    Fault(
        "rwbp-b1-duplicates-once-a-second",
        "old data is acknowledged once a second only",
        "RWBP-AK-003",
        _with(RemindersSpareDuplicates),
    ),
    Fault(
        "rwbp-b1-unit-of-the-smaller",
        "the unit of a SYN-ACK is the smaller of both MSS options",
        "RWBP-NG-002",
        _with(UnitOfTheSmaller),
    ),
    Fault(
        "rwbp-b1-fin-by-number-only",
        "data with FIN is sent again though its data was reported in a block",
        "RWBP-EC-010",
        _with(FinMustBeAcknowledged),
    ),
    Fault(
        "rwbp-b1-nothing-at-the-edge",
        "a segment that reaches beyond the edge is not taken at all",
        "RWBP-WN-004",
        _with(WholeOrNothingAtTheEdge),
    ),
    Fault(
        "rwbp-b1-reset-at-the-top",
        "a RST at RCV.TOP ends the connection though a gap is below",
        "RWBP-CX-005",
        _with(ResetAtTheTop),
    ),
]
