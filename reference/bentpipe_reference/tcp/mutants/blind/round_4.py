"""Round 4: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 3042, 7323 and 5961 on 2026-11-22."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import PAWS_LIFETIME, Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import parse_packet
from bentpipe_reference.tcp.wire.options import parse_options
from bentpipe_reference.tcp.wire.refusal import reset_for
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))


def part(made: type[Any]) -> Callable[[Setup], Setup]:
    """Put one part in."""
    return lambda setup: setup.with_part(made)


# -- timers and measurement ---------------------------------------------------------------------


class WindowRearms(SackNewRenoRfcSender):
    """An ACK that changes only the window restarts the running timer."""

    def on_ack(self, ack: Ack, now: float) -> None:
        una, window = self.snd_una, self.snd_wnd
        super().on_ack(ack, now)
        same = ack.number == una == self.snd_una
        if same and self.snd_wnd != window and self.rto_deadline is not None:
            self.restart_rto(now)


class KarnFirstOnly(SackNewRenoRfcSender):
    """Karn's rule for the segment at the left edge; those resent behind it are timed."""

    def transmit(self, seq: int, end: int, now: float) -> None:
        behind = self.snd_una < seq < self.snd_max
        timed = self.timed
        super().transmit(seq, end, now)
        if behind:
            self.timed = timed or (end, now)


class SynAckKarn(Handshake):
    """A SYN-ACK repeated because the SYN came again does not count as a retransmission."""

    def sent(self, now: float, *, repeated: bool) -> None:
        if not repeated:
            super().sent(now, repeated=False)
            return
        self._sent_at = now
        self.deadline = now + self._estimator.rto


class RttFromDuplicates(SackNewRenoRfcSender):
    """TSecr of segments that acknowledge nothing new is measured, too."""

    def on_ack(self, ack: Ack, now: float) -> None:
        age = ack.ts_ecr_age
        if ack.number == self.snd_una and self.flight_size and age is not None:
            self.estimator.sample(age)
        super().on_ack(ack, now)


class TimerBareOnly(SackNewRenoRfcSender):
    """ACKs that ride on data do not restart the timer; they only stop it."""

    def restarts_timer(self, ack: Ack) -> bool:
        return super().restarts_timer(ack) and (ack.bare or not self.flight_size)


class ProbeBackOffKept(SackNewRenoRfcSender):
    """The back-off of window probes is never reset."""

    _most = 0

    def zero_window_probe_interval(self, probes: int) -> float:
        self._most = max(self._most, probes)
        return super().zero_window_probe_interval(self._most)


# -- the congestion window outside recovery -----------------------------------------------------


class SynLostTwice(Connection):
    """One retransmission of the SYN makes the initial window one segment, two do not."""

    def _established(self, segment: Segment, now: float) -> None:
        super()._established(segment, now)
        if self.handshake.attempts > 2 and not self.sender.flight_size:
            self.sender.cwnd = self.sender.initial_window()


class IdleFromReceipt(Connection):
    """Whatever arrives ends an idle period, before anything is sent."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.sender.last_send is not None:
            self.sender.last_send = now
        super().receive(segment, now)


class IdleRaises(SackNewRenoRfcSender):
    """The restart window is the initial one even when cwnd is smaller."""

    def restart_window(self) -> int:
        return self.initial_window()


class AvoidanceCredit(SackNewRenoRfcSender):
    """What slow start acknowledged is counted for congestion avoidance as well."""

    def slow_start_increase(self, acked: int) -> int:
        counted = self.octets_acked
        increase = super().slow_start_increase(acked)
        self.octets_acked = counted + acked
        return increase


# -- detection and recovery ---------------------------------------------------------------------


class LimitedBeyondWindow(SackNewRenoRfcSender):
    """Limited transmit looks at the congestion window only."""

    def limited_transmit(self, now: float) -> None:
        before = self.snd_max
        super().limited_transmit(now)
        if not self.sack_ok or self.snd_max > before or self.snd_nxt < self.snd_max:
            return
        if self.cwnd - self.pipe() >= self.smss:
            octets = self.sendable(self.snd_max, self.smss)
            if octets:
                self.transmit(self.snd_max, self.snd_max + octets, now)
                self.limited_transmit_octets += octets


class DupacksDataAck(SackNewRenoRfcSender):
    """Only pure ACKs of new data reset the count of duplicates."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        counted = self.dupacks
        super().on_new_ack(ack, now)
        if not ack.bare:
            self.dupacks = counted


class RescueStart(SackNewRenoRfcSender):
    """The rescue retransmission is the first segment of the last gap, not its end."""

    def rescue_segment(self) -> tuple[int, int] | None:
        chosen = super().rescue_segment()
        if chosen is None:
            return None
        left, right = self.scoreboard.gaps(self.snd_una, self.snd_max)[-1]
        return left, min(left + self.smss, right)


class LostAtTwo(SackNewRenoRfcSender):
    """Two full segments held above a hole are enough: "at least" instead of "more than"."""

    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class RecoverHeld(SackNewRenoRfcSender):
    """The episode ends at the highest octet held, not at the highest sent."""

    def recovery_point(self) -> int:
        if self.sack_ok and self.scoreboard:
            return self.scoreboard.highest - 1
        return super().recovery_point()


class TimeoutInRecovery(SackNewRenoRfcSender):
    """A timeout within recovery leaves the recovery point where it was."""

    def on_timeout_in_recovery(self) -> None:
        if not self.in_recovery:
            super().on_timeout_in_recovery()


class RenegeSecond(SackNewRenoRfcSender):
    """A second timeout in a row does not clear what SACK reported since the first."""

    _kept: tuple[tuple[int, int], ...] = ()

    def on_timeout(self, now: float) -> None:
        self._kept = self.scoreboard.snapshot() if self.consecutive_timeouts else ()
        super().on_timeout(now)

    def retransmit(self, seq: int, now: float) -> int:
        for left, right in self._kept:
            self.scoreboard.add(left, right)
        self._kept = ()
        return super().retransmit(seq, now)


class OldSackCounts(SackNewRenoRfcSender):
    """An ACK with blocks above it is a duplicate even if they tell nothing new."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        if super().is_duplicate_ack(ack, newly_held):
            return True
        above = any(left > ack.number for left, _ in ack.blocks)
        return self.sack_ok and above and ack.number == self.snd_una and self.flight_size > 0


class SackWrap(Connection):
    """A block whose right edge has wrapped looks empty and is ignored."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        if segment.sack_blocks:
            kept = tuple(block for block in segment.sack_blocks if block[0] < block[1])
            segment = replace(segment, sack_blocks=kept)
        return super()._ack_part(segment, number, seq, now)


class NewRenoAfterPartial(SackNewRenoRfcSender):
    """Without SACK: a full ACK after partial ones leaves the inflated window as it is."""

    def exit_window(self) -> int:
        if not self.sack_ok and self._partial_acks:
            return self.cwnd
        return super().exit_window()


# -- what the peer's window allows, and small segments ------------------------------------------


class ThirdAckUnscaled(Connection):
    """The ACK that ends a passive open is read like a SYN: its window is not scaled."""

    def _established(self, segment: Segment, now: float) -> None:
        if not segment.flags & _SYN:
            segment = replace(segment, window=segment.window >> self.handshake.send_shift)
        super()._established(segment, now)


class Minshall(SackNewRenoRfcSender):
    """draft-minshall-nagle: only an unacknowledged small segment holds the next one."""

    _small_end = 0

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        if octets or seq < self.snd_max or self.snd_una < self._small_end:
            return octets
        end = self.sending_end
        limit = self.segment_limit(seq)
        left = limit if end is None else min(limit, end - seq)
        return left if 0 < left <= usable else 0

    def transmit(self, seq: int, end: int, now: float) -> None:
        if end - seq < self.smss:
            self._small_end = max(self._small_end, end)
        super().transmit(seq, end, now)


class CurrentWindow(SackNewRenoRfcSender):
    """Half of the window as it is, not of the largest ever offered, justifies a segment."""

    def update_window(self, ack: Ack) -> bool:
        moved = super().update_window(ack)
        self.max_snd_wnd = self.snd_wnd
        return moved


class FreeFin(SackNewRenoRfcSender):
    """A FIN joins the last data although these fill the window to the last octet."""

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        if octets and self.fin_queued and seq + octets == self.data_end:
            octets += 1
        return octets


# -- acknowledging, SACK, windows ---------------------------------------------------------------


class NoSuperset(Receiver):
    """The block that surrounds a D-SACK is left out as if it were reported twice."""

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        twice = self._duplicate
        if not self.sack_ok or twice is None:
            return super().sack_blocks_to_send(most)
        others = [
            (left, right) for left, right in self.buffer.blocks
            if not (left <= twice[0] and twice[1] <= right)
        ]  # fmt: skip
        return tuple([twice, *others][:most])


class GrownInPlace(Reassembly):
    """A block that grows keeps its place in the list; only a new one comes first."""

    def insert(self, seq: int, payload: bytes) -> None:
        old, out_of_order = list(self.blocks), seq > self.rcv_nxt
        super().insert(seq, payload)
        if not out_of_order:
            return
        grown = self.blocks[0]
        joined = [block for block in old if grown[0] <= block[0] < grown[1]]
        if joined:
            kept = [block for block in old if block not in joined[1:]]
            self.blocks = [grown if block == joined[0] else block for block in kept]


class PiggybackSwallows(Receiver):
    """Any segment that leaves settles the acknowledgment, whether its blocks fitted or not."""

    def note_ack_sent(self, *, complete: bool = True) -> None:  # noqa: ARG002
        super().note_ack_sent(complete=True)


class DelayRearmed(Receiver):
    """Each segment starts the delay of the acknowledgment anew."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class FillDelayed(Receiver):
    """The segment that closes the last gap is in order again and may wait."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        if in_order and gap and not self.buffer.blocks:
            return False
        return super().should_ack_now(in_order=in_order, gap=gap)


class HeldShrinks(Receiver):
    """Octets held out of order are subtracted from the window on top of what was promised."""

    def window_field(self) -> int:
        field = super().window_field()
        held = sum(right - left for left, right in self.buffer.blocks)
        return max(0, field - (held >> self.window_shift))


class ZeroOpensEarly(Receiver):
    """A closed window opens with the first octet read; the rule applies to open ones only."""

    def update_edge(self) -> None:
        if self.edge <= self.rcv_nxt:
            self.edge = max(self.edge, self.rcv_nxt + self.free_room())
        else:
            super().update_edge()

    def window_update_due(self) -> bool:
        if self.edge <= self.rcv_nxt and self.free_room():
            return True
        return super().window_update_due()


# -- timestamps ---------------------------------------------------------------------------------


class TimestampPiggyback(Connection):
    """Last.ACK.sent follows pure ACKs only, not those on data."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        before = None if receiver is None else receiver._last_ack_sent
        super()._put(seq, flags, now, payload)
        if receiver is not None and before is not None and payload:
            receiver._last_ack_sent = before


class PawsUnsigned(Receiver):
    """PAWS compares timestamps as plain numbers: none passes after a wrap."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        recent = self.ts_recent
        return recent is not None and tsval < recent and now - self._ts_recent_time < PAWS_LIFETIME


class SackOverTimestamps(Connection):
    """With four blocks to report the Timestamps option makes room for the fourth."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        blocks = () if receiver is None else receiver.sack_blocks_to_send(4)
        super()._put(seq, flags, now, payload)
        segment = self._outbox[-1]
        if len(blocks) == 4 and not payload and segment.timestamps is not None:
            segment.timestamps = None
            segment.sack_blocks = tuple((left & MASK, right & MASK) for left, right in blocks)


# -- resets, SYNs, FINs, options ----------------------------------------------------------------


class ResetHighest(Connection):
    """A RST is compared with the highest octet received, not with the next one expected."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        blocks = receiver.buffer.blocks
        acceptable = receiver.is_acceptable(seq, segment.sequence_length)
        if not segment.flags & _RST or not blocks or not acceptable:
            super()._receive_synchronized(segment, receiver, now)
        elif seq == max(right for _, right in blocks):
            self._end("the peer reset the connection", now)
        else:
            receiver.ack_now = True


class SynAfterFin(Connection):
    """After the peer's FIN a SYN in the window resets, as in RFC 793."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        closing = self.state in (State.CLOSE_WAIT, State.CLOSING, State.LAST_ACK)
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        if (
            closing
            and segment.flags & (_SYN | _RST) == _SYN
            and (receiver.ts_recent is None or segment.timestamps is not None)
            and receiver.is_acceptable(seq, segment.sequence_length)
        ):
            self.abort("a SYN in the window", now)
            return
        super()._receive_synchronized(segment, receiver, now)


class OutOfOrderFin(Receiver):
    """Data out of order is kept, the FIN on it is not."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        early = fin and seq > self.buffer.rcv_nxt
        super().on_text(seq, payload, fin and not early, now)
        if early:
            self.ack_now = True


class LastAckDeaf(Connection):
    """While its own FIN waits for an ACK, a repeated FIN of the peer is not acknowledged."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if self.state not in (State.CLOSING, State.LAST_ACK):
            super()._receive_unacceptable(segment, seq, receiver, now)


def refuse(segment: Segment) -> Segment | None:
    """The RST to a SYN acknowledges the SYN only, not the data that came with it."""
    reset = reset_for(segment)
    if reset is not None and segment.flags & (_SYN | _ACK) == _SYN:
        reset.ack = segment.seq + 1 & MASK
    return reset


def parse(octets: bytes) -> Segment:
    """Stop at the first option that is not known."""
    segment = parse_packet(octets)
    if not segment.unknown:
        return segment
    start = (octets[0] & 15) * 4
    raw = octets[start + 20 : start + (octets[start + 12] >> 4) * 4]
    at = 0
    while at < len(raw) and raw[at] in (1, 2, 3, 4, 5, 8):
        at += 1 if raw[at] == 1 else raw[at + 1]
    segment.mss = segment.window_scale = segment.timestamps = None
    segment.sack_permitted, segment.sack_blocks, segment.unknown = False, (), ()
    parse_options(raw[:at], segment)
    return segment


FAULTS = [
    # 0 of 20: needs window updates while a lost segment waits for its timeout.
    Fault("tcp-b4-window-rearms", "a pure window update restarts the retransmission timer",
          "RFC 6298 section 5.3", part(WindowRearms)),
    Fault("tcp-b4-karn-first-only", "segments resent behind the left edge are timed",
          "RFC 6298 section 3", part(KarnFirstOnly), setting="no-timestamps"),
    Fault("tcp-b4-synack-karn", "a SYN-ACK repeated for a repeated SYN is measured as if sent once",
          "RFC 6298 section 3; RFC 5681 section 3.1", part(SynAckKarn)),
    Fault("tcp-b4-rtt-from-duplicates", "echoed timestamps are measured on ACKs of nothing new",
          "RFC 7323 section 4.1", part(RttFromDuplicates)),
    # 0 of 20: needs steady two-way data, the timer late by more than a round trip.
    Fault("tcp-b4-timer-bare-only", "an ACK of new data on a data segment leaves the timer running",
          "RFC 6298 section 5.3", part(TimerBareOnly)),
    # 0 of 20: needs a window closed for several probes, opened, and closed again.
    Fault("tcp-b4-probe-back-off-kept", "a later zero window is probed at the last one's interval",
          "RFC 9293 section 3.8.6.1", part(ProbeBackOffKept)),
    # 0 of 20: needs two lost SYNs or SYN-ACKs, then more than a segment to send.
    Fault("tcp-b4-syn-lost-twice", "after two lost SYNs the initial window is the full one again",
          "RFC 5681 section 3.1; RFC 6928 section 2", part(SynLostTwice)),
    # 0 of 20: needs a request after an idle period, answered by more than IW.
    Fault("tcp-b4-idle-from-receipt", "idle time counts from the last segment received",
          "RFC 5681 section 4.1", part(IdleFromReceipt)),
    # 0 of 20: needs an idle period with cwnd still small after a timeout.
    Fault("tcp-b4-idle-raises", "an idle period raises a smaller cwnd to the initial window",
          "RFC 5681 section 4.1", part(IdleRaises)),
    Fault("tcp-b4-avoidance-credit", "octets acknowledged in slow start count for avoidance, too",
          "RFC 5681 section 3.1", part(AvoidanceCredit)),
    Fault("tcp-b4-limited-beyond-window", "limited transmit sends beyond the offered window",
          "RFC 3042 section 2; RFC 9293 section 3.8.6", part(LimitedBeyondWindow)),
    # 0 of 20: needs two-way data, reordering before and after an ACK on data.
    Fault("tcp-b4-dupacks-data-ack", "new data acknowledged on a data segment keeps the duplicates",
          "RFC 6675 section 5", part(DupacksDataAck)),
    Fault("tcp-b4-rescue-start", "the rescue retransmission is not the end of the last gap",
          "RFC 6675 section 4", part(RescueStart)),
    Fault("tcp-b4-lost-at-two", "exactly two full segments held above mean a loss",
          "RFC 6675 section 4", part(LostAtTwo)),
    Fault("tcp-b4-recover-held", "recovery ends at the highest octet held when it began",
          "RFC 6675 section 5", part(RecoverHeld)),
    # 0 of 20: needs a timeout in recovery after new data, then duplicates.
    Fault("tcp-b4-timeout-in-recovery", "a timeout within recovery does not move RecoveryPoint",
          "RFC 6675 section 5.1; RFC 6582 section 3.2", part(TimeoutInRecovery)),
    # 0 of 20: needs SACK reports between two timeouts, and a peer that reneges or not.
    Fault("tcp-b4-renege-second", "the second timeout in a row trusts SACK reports",
          "RFC 2018 section 8", part(RenegeSecond)),
    Fault("tcp-b4-old-sack-counts", "repeated SACK blocks without news count as duplicate ACKs",
          "RFC 6675 section 2", part(OldSackCounts)),
    # 0 of 20: needs a loss just before the wrap.
    Fault("tcp-b4-sack-wrap", "a SACK block across the wrap of sequence numbers is ignored",
          "RFC 9293 section 3.4; RFC 6675 section 4", part(SackWrap), setting="wrap"),
    Fault("tcp-b4-newreno-after-partial", "the window stays inflated when partial ACKs came first",
          "RFC 6582 section 3.2", part(NewRenoAfterPartial), setting="no-sack"),
    # 0 of 20: needs a scale that leaves less than IW, and data sent at once.
    Fault("tcp-b4-third-ack-unscaled", "the window of the ACK of a SYN-ACK is not scaled",
          "RFC 7323 section 2.3", part(ThirdAckUnscaled)),
    Fault("tcp-b4-minshall", "a small segment leaves while full ones are unacknowledged",
          "RFC 9293 section 3.7.4", part(Minshall)),
    Fault("tcp-b4-current-window", "SWS avoidance compares with the current, not the largest window",
          "RFC 9293 section 3.8.6.2.1", part(CurrentWindow)),
    # 0 of 20: needs a stream that ends exactly where the window does.
    Fault("tcp-b4-free-fin", "a FIN is sent although the data fill the window exactly",
          "RFC 9293 section 3.4; RFC 9293 section 3.8.6", part(FreeFin)),
    Fault("tcp-b4-no-superset", "a D-SACK is not followed by the block around it",
          "RFC 2883 section 4", part(NoSuperset)),
    Fault("tcp-b4-grown-in-place", "a block that grew last is not the first reported",
          "RFC 2018 section 4", part(GrownInPlace)),
    Fault("tcp-b4-piggyback-swallows", "data without room for SACK blocks replaces a due ACK",
          "RFC 2018 section 4; RFC 5681 section 4.2", part(PiggybackSwallows)),
    # 0 of 20: needs small segments at intervals shorter than the delay.
    Fault("tcp-b4-delay-rearmed", "every small segment postpones the delayed ACK",
          "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", part(DelayRearmed)),
    Fault("tcp-b4-fill-delayed", "the segment that closes the last gap is acknowledged late",
          "RFC 5681 section 4.2", part(FillDelayed)),
    Fault("tcp-b4-held-shrinks", "data out of order moves the window's right edge back",
          "RFC 9293 section 3.8.6", part(HeldShrinks)),
    Fault("tcp-b4-zero-opens-early", "a closed window opens by a few octets",
          "RFC 9293 section 3.8.6.2.2", part(ZeroOpensEarly)),
    Fault("tcp-b4-timestamp-piggyback", "ACKs on data do not advance Last.ACK.sent",
          "RFC 7323 section 4.3", part(TimestampPiggyback)),
    # 0 of 20: needs a peer whose timestamps wrap during the connection.
    Fault("tcp-b4-paws-unsigned", "timestamps are compared without regard to their wrap",
          "RFC 7323 section 5.2; RFC 7323 section 5.3", part(PawsUnsigned)),
    Fault("tcp-b4-sack-over-timestamps", "an ACK with four SACK blocks lacks timestamps",
          "RFC 7323 section 3.2", part(SackOverTimestamps)),
    # 0 of 20: needs a RST in the window while data is missing.
    Fault("tcp-b4-reset-highest", "with a gap a RST must match the highest octet received",
          "RFC 9293 section 3.10.7.4; RFC 5961 section 3.2", part(ResetHighest)),
    # 0 of 20: needs a SYN in the window after a FIN.
    Fault("tcp-b4-syn-after-fin", "a SYN in the window resets once the peer has closed",
          "RFC 9293 section 3.10.7.4; RFC 5961 section 4.2", part(SynAfterFin)),
    Fault("tcp-b4-out-of-order-fin", "a FIN ahead of missing data is forgotten",
          "RFC 9293 section 3.10.7.4", part(OutOfOrderFin)),
    Fault("tcp-b4-last-ack-deaf", "a repeated FIN is not acknowledged in LAST-ACK and CLOSING",
          "RFC 9293 section 3.10.7.4", part(LastAckDeaf)),
    # 0 of 20: needs a SYN with data for a closed port.
    Fault("tcp-b4-refusal-length", "the RST to a SYN with data does not acknowledge the data",
          "RFC 9293 section 3.10.7.1",
          lambda setup: replace(setup, parts=replace(setup.parts, refuse=refuse))),
    # 0 of 20: needs an option unknown here before others.
    Fault("tcp-b4-unknown-ends-options", "options behind an unknown one are ignored",
          "RFC 9293 section 3.1", lambda setup: replace(setup, parts=replace(setup.parts, parse=parse))),
]  # fmt: skip
