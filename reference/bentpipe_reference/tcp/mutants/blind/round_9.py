"""Round 9: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 3042, 6928, 7323 and 5961.

Faults that ordinary transfers may not show, and what they need:

* shrunk-window, wl-unrecorded, frozen-largest-window, answered-probes: a peer that varies its window;
* reset-closed-window, data-right-edge: a closed or overrun receive window;
* unwrapped-paws, wrapped-sack: timestamps or sequence numbers that wrap;
* restarted-delay: a train of small segments, less than the delay apart, after a larger one;
* unknown-option: an option of an unknown kind before the others;
* careful-boundary, cleared-back-off: a peer without SACK or without timestamps;
* octet-initial-window: a peer with a small MSS;
* lost-syn-ack-timeout, unscaled-second-answer, first-data: SYN-ACKs or the last ACK of an opening lost;
* second-syn-ack: an active open whose last ACK is lost; second-fin: a FIN whose ACK is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import MAXIMUM_OCTETS, TIMESTAMP_OCTETS, Handshake
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import PAWS_LIFETIME, Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, parse_packet
from bentpipe_reference.tcp.wire.options import parse_options

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))


def parts(*classes: type[Any]) -> Callable[[Setup], Setup]:
    """The setup with these parts."""

    def configure(setup: Setup) -> Setup:
        for each in classes:
            setup = setup.with_part(each)
        return setup

    return configure


# -- the offered window ---------------------------------------------------------------------------


class KeepsRightEdge(SackNewRenoRfcSender):
    """A right edge that moves back is not believed, unless the window is closed."""

    def update_window(self, ack: Ack) -> bool:
        edge = self.right_edge
        moved = super().update_window(ack)
        if ack.window and self.snd_wnd == ack.window and ack.number + ack.window < edge:
            self.snd_wnd = edge - ack.number
        return moved


class RecordsChangesOnly(SackNewRenoRfcSender):
    """SND.WL1 and SND.WL2 are set where the window is assigned: only when it changes."""

    def update_window(self, ack: Ack) -> bool:
        before, recorded = self.snd_wnd, (self.snd_wl1, self.snd_wl2)
        moved = super().update_window(ack)
        if ack.window == before:
            self.snd_wl1, self.snd_wl2 = recorded
        return moved


class FrozenLargestWindow(SackNewRenoRfcSender):
    """Max(SND.WND) is that of the handshake."""

    def update_window(self, ack: Ack) -> bool:
        largest = self.max_snd_wnd
        moved = super().update_window(ack)
        self.max_snd_wnd = largest
        return moved


class AnsweredProbes(SackNewRenoRfcSender):
    """An answer to a window probe starts its back-off again."""

    _answered = 0

    def on_ack(self, ack: Ack, now: float) -> None:
        super().on_ack(ack, now)
        self._answered = self.probes

    def zero_window_probe_interval(self, probes: int) -> float:
        return super().zero_window_probe_interval(max(0, probes - self._answered))


# -- what is sent ---------------------------------------------------------------------------------


class MinshallNagle(SackNewRenoRfcSender):
    """A small segment waits only for another small segment (the draft, not the RFC)."""

    _small_end = -1

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        if octets or not self.config.nagle or seq < self.snd_max or self._small_end > self.snd_una:
            return octets
        limit, end = self.segment_limit(seq), self.sending_end
        wanted = limit if end is None else min(limit, end - seq)
        return wanted if 0 < wanted <= usable else 0

    def transmit(self, seq: int, end: int, now: float) -> None:
        if seq >= self.snd_max and end - seq < self.smss:
            self._small_end = end
        super().transmit(seq, end, now)


class IdleSinceHeard(SackNewRenoRfcSender):
    """Idle is a connection on which nothing was sent or received."""

    last_heard = 0.0

    def restart_after_idle(self, now: float) -> None:
        if now - self.last_heard > self.estimator.rto:
            super().restart_after_idle(now)


class NotesHeard(Connection):
    """Records when a segment arrived."""

    def receive(self, segment: Segment, now: float) -> None:
        self.sender.last_heard = now  # type: ignore[attr-defined]
        super().receive(segment, now)


class OctetInitialWindow(SackNewRenoRfcSender):
    """The bound of RFC 6928 is taken for the window."""

    def initial_window(self) -> int:
        return max(2 * self.smss, self.config.initial_segments * 1460)


class GenerousLimitedTransmit(SackNewRenoRfcSender):
    """The two segments of limited transmit are added to both windows."""

    _limited = False

    def limited_transmit(self, now: float) -> None:
        self._limited = True
        super().limited_transmit(now)
        self._limited = False

    def new_segment(self) -> tuple[int, int] | None:
        if not self._limited:
            return super().new_segment()
        room = self.right_edge + 2 * self.smss - self.snd_max
        octets = self.sendable(self.snd_max, min(room, self.smss))
        return (self.snd_max, self.snd_max + octets) if octets else None


# -- loss and SACK at the sender ------------------------------------------------------------------


class KeepsSsthreshInRecovery(SackNewRenoRfcSender):
    """A timeout during fast recovery does not lower ssthresh: that was done on entry."""

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        return super().ssthresh_after_timeout(repeated or self.in_recovery)


class RemembersDuplicates(SackNewRenoRfcSender):
    """New data acknowledged outside recovery leaves the count of duplicates."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        kept = 0 if self.in_recovery else self.dupacks
        super().on_new_ack(ack, now)
        self.dupacks = kept


class BareSackOnly(SackNewRenoRfcSender):
    """SACK blocks beside data are not read."""

    def take_sack(self, ack: Ack) -> int:
        return super().take_sack(ack) if ack.bare else 0


class RefusesLastOctet(SackNewRenoRfcSender):
    """A block may not reach SND.MAX."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        return right < self.snd_max and super().accept_sack_block(left, right, ack)


class DuplicateReportOnly(SackNewRenoRfcSender):
    """After a D-SACK block the others are not read."""

    def take_sack(self, ack: Ack) -> int:
        if self.sack_ok and ack.blocks and self.is_duplicate_report(ack):
            return 0
        return super().take_sack(ack)


class LostAtTwo(SackNewRenoRfcSender):
    """IsLost holds from exactly two segments above, instead of more."""

    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class KeepsRecoveryPoint(SackNewRenoRfcSender):
    """A timeout during recovery leaves RecoveryPoint where the episode put it."""

    def on_timeout_in_recovery(self) -> None:
        if not self.in_recovery:
            super().on_timeout_in_recovery()


class CarefulBoundary(SackNewRenoRfcSender):
    """Without SACK an ACK of exactly recover permits another fast retransmit."""

    def may_enter_recovery(self) -> bool:
        return self.snd_una - 1 >= self.recover


class SpeculatesFirst(SackNewRenoRfcSender):
    """Rule 3 of NextSeg comes before rule 2."""

    def next_segment(self) -> tuple[int, int] | None:
        return (
            self.lost_segment()
            or self.speculative_segment()
            or self.new_segment()
            or self.rescue_segment()
        )


class WrappedSack(Connection):
    """A block whose edges are in no order as plain numbers is taken for damaged."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        blocks = tuple(block for block in segment.sack_blocks if block[0] < block[1])
        return super()._ack_part(replace(segment, sack_blocks=blocks), number, seq, now)


# -- timers and round trips -----------------------------------------------------------------------


class NewDataRestartsTimer(SackNewRenoRfcSender):
    """New data sent in recovery restarts the running timer."""

    def transmit(self, seq: int, end: int, now: float) -> None:
        new = seq >= self.snd_max
        super().transmit(seq, end, now)
        if new and self.in_recovery:
            self.rto_deadline = now + self.estimator.rto


class FinNeedsNoTimer(SackNewRenoRfcSender):
    """The timer stops when all data is acknowledged, though the FIN is not."""

    def restart_rto(self, now: float) -> None:
        super().restart_rto(now)
        if self.fin_queued and self.snd_una == self.data_end:
            self.rto_deadline = None


class ClearsBackOff(SackNewRenoRfcSender):
    """An ACK of retransmitted data ends the back-off, although it measures nothing."""

    def measured_rtt(self, ack: Ack, now: float) -> float | None:
        rtt = super().measured_rtt(ack, now)
        made = self.estimator
        if rtt is None and self.consecutive_timeouts and made.srtt is not None:
            made.rto = made.bounded(made.srtt + max(made.granularity, made.K * made.rttvar))
        return rtt


class MeasuresEverything(SackNewRenoRfcSender):
    """Segments that acknowledge nothing new measure the round trip too."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number == self.snd_una and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


class FourDoublings(RttEstimator):
    """The table of back-off factors ends at sixteen."""

    _doublings = 0

    def sample(self, rtt: float) -> None:
        super().sample(rtt)
        self._doublings = 0

    def back_off(self) -> None:
        if self._doublings < 4:
            self._doublings += 1
            super().back_off()


# -- opening --------------------------------------------------------------------------------------


class LostSynAckTimeout(Handshake):
    """Only a lost SYN raises the first timeout to three seconds, not a lost SYN-ACK."""

    _answering = False

    def offer(self, syn: Segment, *, answering: bool) -> None:
        self._answering = answering
        super().offer(syn, answering=answering)

    def complete(self, now: float) -> float | None:
        rtt = super().complete(now)
        if rtt is None and self._answering and self._estimator.srtt is None:
            self._estimator.rto = self._estimator.initial
        return rtt


class UnscaledSecondAnswer(Handshake):
    """A repeated SYN-ACK lacks Window Scale; the windows are scaled all the same."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if answering and self.attempts:
            syn.window_scale = None


class LosesFirstData(Connection):
    """The text of the segment that completes the handshake is dropped."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        opening = self.state is State.SYN_RECEIVED
        goes_on = super()._take_ack(segment, seq, now)
        return goes_on and not (opening and segment.payload)


class IgnoresSecondSynAck(Connection):
    """A SYN-ACK that arrives once more is dropped without an ACK."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        both = segment.flags & (_SYN | _ACK) == _SYN | _ACK
        if both and seq == receiver.irs and self.state is not State.SYN_RECEIVED:
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


def stops_at_unknown(packet: bytes) -> Segment:
    """Options behind one of an unknown kind are not read."""
    segment = parse_packet(packet)
    if not segment.unknown:
        return segment
    start = (packet[0] & 15) * 4
    raw = packet[start + 20 : start + (packet[start + 12] >> 4) * 4]
    at = 0
    while at < len(raw) and raw[at] in (1, 2, 3, 4, 5, 8):
        at += 1 if raw[at] == 1 else raw[at + 1]
    segment.mss = segment.window_scale = segment.timestamps = None
    segment.sack_permitted = False
    segment.sack_blocks = ()
    parse_options(raw[:at], segment)
    return segment


def unknown_option(setup: Setup) -> Setup:
    """The parser replaced."""
    return replace(setup, parts=replace(setup.parts, parse=stops_at_unknown))


class RoomyOptions(Handshake):
    """SACK blocks beside data are limited by the header only, not by the MSS."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        options = MAXIMUM_OCTETS - (TIMESTAMP_OCTETS if self.timestamps_ok else 0)
        return (options - 4) // 8


# -- acknowledging and SACK at the receiver -------------------------------------------------------


class DelaysLastFill(Receiver):
    """Whether data is missing is asked after the segment was stored."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        if in_order and gap and not self.buffer.blocks:
            return False
        return super().should_ack_now(in_order=in_order, gap=gap)


class RestartsDelay(Receiver):
    """Every segment restarts the timer of the delayed ACK."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        if payload:
            self.ack_deadline = None
        super().on_text(seq, payload, fin, now)


class GrownStaysBehind(Reassembly):
    """A block that grows keeps its place in the list; only new ones come first."""

    def insert(self, seq: int, payload: bytes) -> None:
        before, held = self.blocks, seq > self.rcv_nxt
        super().insert(seq, payload)
        if not held:
            return
        grown, rest = self.blocks[0], self.blocks[1:]
        places = [i for i, block in enumerate(before) if grown[0] <= block[0] < grown[1]]
        rest.insert(places[0] if places else 0, grown)
        self.blocks = rest


class ReportsTwice(Receiver):
    """A duplicate is reported in two acknowledgments."""

    _reported: tuple[int, int] | None = None

    def note_ack_sent(self, *, complete: bool = True) -> None:
        duplicate = self._duplicate
        super().note_ack_sent(complete=complete)
        if not complete:
            return
        if duplicate is not None and duplicate != self._reported:
            self._duplicate = self._reported = duplicate
        else:
            self._reported = None


class WholeSegmentsOnly(Receiver):
    """A segment that reaches beyond the right edge is refused as a whole."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        fits = not length or seq + length <= self.edge
        return fits and super().is_acceptable(seq, length)


# -- timestamps -----------------------------------------------------------------------------------


class DataIsNoAck(Connection):
    """Last.ACK.sent follows pure acknowledgments only."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        last = None if receiver is None else receiver._last_ack_sent
        super()._put(seq, flags, now, payload)
        if payload and receiver is not None and last is not None:
            receiver._last_ack_sent = last


class EchoesOldSegments(Connection):
    """TS.Recent is taken before the segment is known to be in the window."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if segment.timestamps is not None and not segment.flags & (_SYN | _RST):
            receiver.note_timestamp(segment.timestamps[0], seq, now)
        super()._receive_unacceptable(segment, seq, receiver, now)


class UnwrappedPaws(Receiver):
    """PAWS compares timestamps as plain numbers."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        recent = self.ts_recent
        return recent is not None and tsval < recent and now - self._ts_recent_time < PAWS_LIFETIME


class RepeatsTimestamps(Connection):
    """A retransmitted segment carries the timestamp of its first transmission."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stamps: dict[int, int] = {}

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        segment = self._outbox[-1]
        if payload and segment.timestamps is not None:
            if len(self._stamps) > 4096:
                una = self.sender.snd_una
                self._stamps = {at: value for at, value in self._stamps.items() if at >= una}
            value, echo = segment.timestamps
            segment.timestamps = self._stamps.setdefault(seq, value), echo


# -- resets and closing ---------------------------------------------------------------------------


class ResetClosedWindow(Connection):
    """A RST that arrives while the receive window is closed is dropped."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & _RST and receiver.edge <= receiver.rcv_nxt:
            return
        super()._receive_synchronized(segment, receiver, now)


class IgnoresSecondFin(Connection):
    """A FIN that arrives once more is not acknowledged while our own FIN is."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if segment.flags & _FIN and self.state in (State.LAST_ACK, State.CLOSING):
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


FAULTS = [
    Fault("tcp-b9-shrunk-window", "new data is sent beyond a right edge that was taken back",
          "RFC 9293 section 3.8.6", parts(KeepsRightEdge)),
    Fault("tcp-b9-wl-unrecorded", "SND.WL1 and SND.WL2 are not recorded when the window is the same, "
          "so that an older segment changes the window later",
          "RFC 9293 section 3.10.7.4", parts(RecordsChangesOnly)),
    Fault("tcp-b9-frozen-largest-window", "the largest window of the SWS rule is the handshake's for ever",
          "RFC 9293 section 3.8.6.2.1", parts(FrozenLargestWindow)),
    Fault("tcp-b9-answered-probes", "an answer to a window probe resets the probes' back-off",
          "RFC 9293 section 3.8.6.1", parts(AnsweredProbes)),
    Fault("tcp-b9-minshall", "a small segment leaves while only full-sized ones are outstanding",
          "RFC 9293 section 3.7.4", parts(MinshallNagle)),
    Fault("tcp-b9-idle-heard", "the window survives an idle period that a received segment ends",
          "RFC 5681 section 4.1", parts(IdleSinceHeard, NotesHeard)),
    Fault("tcp-b9-octet-initial-window", "the initial window is 14600 octets however small the segments",
          "RFC 6928 section 2", parts(OctetInitialWindow)),
    Fault("tcp-b9-generous-limited-transmit", "limited transmit sends two segments beyond the offered window",
          "RFC 3042 section 2", parts(GenerousLimitedTransmit)),
    Fault("tcp-b9-ssthresh-in-recovery", "a timeout during fast recovery keeps ssthresh",
          "RFC 5681 section 3.1", parts(KeepsSsthreshInRecovery)),
    Fault("tcp-b9-remembered-duplicates", "a cumulative ACK does not reset the count of duplicate ACKs",
          "RFC 6675 section 5", parts(RemembersDuplicates)),
    Fault("tcp-b9-bare-sack", "SACK blocks on segments with data are ignored",
          "RFC 6675 section 5; RFC 2018 section 5", parts(BareSackOnly)),
    Fault("tcp-b9-last-octet", "a SACK block that ends with the last octet sent is ignored",
          "RFC 2018 section 5; RFC 6675 section 4", parts(RefusesLastOctet)),
    Fault("tcp-b9-duplicate-report", "the SACK blocks behind a D-SACK block are ignored",
          "RFC 2883 section 4; RFC 6675 section 4", parts(DuplicateReportOnly)),
    Fault("tcp-b9-lost-at-two", "a segment counts as lost with exactly two segments held above it",
          "RFC 6675 section 4", parts(LostAtTwo)),
    Fault("tcp-b9-recovery-point", "a timeout during recovery does not raise RecoveryPoint to HighData",
          "RFC 6675 section 5.1", parts(KeepsRecoveryPoint)),
    Fault("tcp-b9-careful-boundary", "without SACK, duplicates of an ACK of exactly recover retransmit again",
          "RFC 6582 section 3.2", parts(CarefulBoundary)),
    Fault("tcp-b9-speculates-first", "data not counted as lost is retransmitted before new data is sent",
          "RFC 6675 section 4", parts(SpeculatesFirst)),
    Fault("tcp-b9-wrapped-sack", "a SACK block across the wrap of the sequence numbers is ignored",
          "RFC 9293 section 3.4; RFC 2018 section 5", parts(WrappedSack)),
    Fault("tcp-b9-new-data-timer", "new data sent during recovery restarts the retransmission timer",
          "RFC 6298 section 5.1", parts(NewDataRestartsTimer)),
    Fault("tcp-b9-fin-timer", "the timer stops when all but the FIN is acknowledged",
          "RFC 6298 section 5.2; RFC 9293 section 3.8.1", parts(FinNeedsNoTimer)),
    Fault("tcp-b9-cleared-back-off", "an ACK of retransmitted data ends the back-off without a measurement",
          "RFC 6298 section 5; RFC 9293 section 3.8.1", parts(ClearsBackOff)),
    Fault("tcp-b9-measures-everything", "segments that acknowledge no new data measure the round trip",
          "RFC 7323 section 4.1", parts(MeasuresEverything)),
    Fault("tcp-b9-four-doublings", "the timeout is not doubled any more after the fourth time",
          "RFC 6298 section 5.5", parts(FourDoublings)),
    Fault("tcp-b9-lost-syn-ack-timeout", "after a lost SYN-ACK data starts with a timeout of one second",
          "RFC 6298 section 5.7", parts(LostSynAckTimeout)),
    Fault("tcp-b9-unscaled-second-answer", "a repeated SYN-ACK has no Window Scale, yet windows are scaled",
          "RFC 7323 section 2.2", parts(UnscaledSecondAnswer)),
    Fault("tcp-b9-first-data", "data in the segment that completes the handshake is lost",
          "RFC 9293 section 3.10.7.4", parts(LosesFirstData)),
    Fault("tcp-b9-second-syn-ack", "a repeated SYN-ACK is not answered",
          "RFC 9293 section 3.10.7.4; RFC 5961 section 4.2", parts(IgnoresSecondSynAck)),
    Fault("tcp-b9-unknown-option", "options behind an unknown one are not read",
          "RFC 9293 section 3.1", unknown_option),
    Fault("tcp-b9-roomy-options", "SACK blocks make full-sized data segments larger than the MSS",
          "RFC 9293 section 3.7.1; RFC 6691 section 2", parts(RoomyOptions)),
    Fault("tcp-b9-last-fill", "the segment that fills the last gap is acknowledged with a delay",
          "RFC 5681 section 4.2", parts(DelaysLastFill)),
    Fault("tcp-b9-restarted-delay", "each small segment postpones the delayed acknowledgment",
          "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", parts(RestartsDelay)),
    Fault("tcp-b9-grown-block", "a block that grows is not reported first",
          "RFC 2018 section 4", parts(GrownStaysBehind)),
    Fault("tcp-b9-reports-twice", "a duplicate is reported in two D-SACKs",
          "RFC 2883 section 4", parts(ReportsTwice)),
    Fault("tcp-b9-data-right-edge", "a segment that crosses the right edge is refused as a whole",
          "RFC 9293 section 3.10.7.4", parts(WholeSegmentsOnly)),
    Fault("tcp-b9-data-is-no-ack", "Last.ACK.sent does not follow acknowledgments that travel with data",
          "RFC 7323 section 4.3", parts(DataIsNoAck)),
    Fault("tcp-b9-echoes-old-segments", "the timestamp of a segment below the window is echoed",
          "RFC 7323 section 5.3", parts(EchoesOldSegments)),
    Fault("tcp-b9-unwrapped-paws", "PAWS refuses everything once the peer's timestamp has wrapped",
          "RFC 7323 section 5.2", parts(UnwrappedPaws)),
    Fault("tcp-b9-repeated-timestamps", "retransmissions carry the timestamp of the first transmission",
          "RFC 7323 section 3.2", parts(RepeatsTimestamps)),
    Fault("tcp-b9-reset-closed-window", "a RST is ignored while the receive window is closed",
          "RFC 9293 section 3.8.6; RFC 9293 section 3.10.7.4", parts(ResetClosedWindow)),
    Fault("tcp-b9-second-fin", "a repeated FIN is not acknowledged in LAST-ACK and CLOSING",
          "RFC 9293 section 3.10.7.4", parts(IgnoresSecondFin)),
]  # fmt: skip
