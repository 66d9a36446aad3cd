"""Round 10: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 3042, 7323, 5961 and 6691."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import DEFAULT_MSS, Handshake
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

ACK, SYN, FIN, RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))
Base = SackNewRenoRfcSender


# -- loss recovery ----------------------------------------------------------------------------


class RecoverOnlyInRecovery(Base):
    def on_timeout_in_recovery(self) -> None:
        if self.in_recovery:
            super().on_timeout_in_recovery()


class HalvedAlready(Base):
    def ssthresh_after_timeout(self, repeated: bool) -> int:
        return super().ssthresh_after_timeout(repeated or self.in_recovery)


class RescuesAgain(Base):
    def on_partial_ack(self, acked: int, now: float) -> None:
        self.rescued = False
        super().on_partial_ack(acked, now)


class PipeOfEpisode(Base):
    def pipe(self) -> int:
        if not self.in_recovery:
            return super().pipe()
        edge, last = self.loss_edge(), min(self.snd_max, self.recover + 1)
        return sum(
            max(0, right - max(left, edge)) + max(0, min(right, self.high_rxt) - left)
            for left, right in self.scoreboard.gaps(self.snd_una, last)
        )


class CountsOnly(Base):
    def loss_detected(self) -> bool:
        if not self.sack_ok:
            return super().loss_detected()
        return self.dupacks >= self.duplicate_threshold()


class LostAtTwo(Base):
    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class BareOnly(Base):
    def is_duplicate_ack(self, ack: Any, newly_held: int) -> bool:
        return super().is_duplicate_ack(ack, newly_held) and ack.bare


class LimitedBeyondWindow(Base):
    def limited_transmit(self, now: float) -> None:
        offered = self.snd_wnd
        self.snd_wnd = max(offered, self.flight_size + self.smss)
        super().limited_transmit(now)
        self.snd_wnd = offered


class PartialAcksKept(Base):
    _partial_acks = 0

    def enter_recovery(self, now: float) -> None:
        before = self._partial_acks
        super().enter_recovery(now)
        self._partial_acks = before


# -- timers and round trips -------------------------------------------------------------------


class DuplicateEndsBackOff(Base):
    def on_ack(self, ack: Any, now: float) -> None:
        timer = self.estimator
        if self.consecutive_timeouts and ack.number == self.snd_una and timer.srtt is not None:
            timer.rto = timer.bounded(timer.srtt + max(timer.granularity, timer.K * timer.rttvar))
        super().on_ack(ack, now)


class KarnNotFast(Base):
    def transmit(self, seq: int, end: int, now: float) -> None:
        repeated, timed = seq < self.snd_max, self.timed
        super().transmit(seq, end, now)
        if repeated and self.in_recovery:
            self.timed = timed


class KarnNotForRepeatedSyn(Handshake):
    def sent(self, now: float, *, repeated: bool) -> None:
        attempts = self.attempts
        super().sent(now, repeated=repeated)
        if repeated:
            self.attempts = attempts


class IdleEnlarges(Base):
    def restart_window(self) -> int:
        return self.initial_window()


class ProbesRemembered(Base):
    _all = 0

    def on_probe_due(self, now: float) -> None:
        if not self.snd_wnd:
            self._all += 1
        super().on_probe_due(now)

    def zero_window_probe_interval(self, probes: int) -> float:
        return super().zero_window_probe_interval(max(probes, self._all))


# -- the peer's window ------------------------------------------------------------------------


class NewerAckOnly(Base):
    def update_window(self, ack: Any) -> bool:
        if self.snd_wl1 == ack.seq and self.snd_wl2 == ack.number:
            return False
        return super().update_window(ack)


class LastWindowIsLargest(Base):
    def update_window(self, ack: Any) -> bool:
        moved = super().update_window(ack)
        if moved:
            self.max_snd_wnd = self.snd_wnd
        return moved


class NoOverride(Base):
    def check_probe(self, now: float) -> None:
        if self.snd_wnd:
            self.persist_deadline = None
        else:
            super().check_probe(now)


# -- the receiving half -----------------------------------------------------------------------


class DeadlinePushed(Receiver):
    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if self.ack_deadline is not None and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class FullIsOwnMss(Receiver):
    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        full = self._octets_unacked >= self.config.ack_every * self.config.mss
        return not in_order or gap or full


class PartOfGapWaits(Receiver):
    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return super().should_ack_now(in_order=in_order, gap=gap and not self.buffer.blocks)


class KnownBlockStays(Reassembly):
    def insert(self, seq: int, payload: bytes) -> None:
        if seq > self.rcv_nxt and self._held.covers(seq, seq + len(payload)):
            return
        super().insert(seq, payload)


class BlockAtAck(Reassembly):
    def _fill(self) -> None:
        before = self.blocks
        super()._fill()
        self.blocks = [block for block in before if block[1] >= self.rcv_nxt]


class DsackAlone(Receiver):
    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        blocks = super().sack_blocks_to_send(most)
        return blocks if self._duplicate is None else blocks[:1]


class RoundsDown(Receiver):
    def window_field(self) -> int:
        self.update_edge()
        return min(max(0, self.edge - self.rcv_nxt) >> self.window_shift, 0xFFFF)


class ForgetsEarlyFin(Receiver):
    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().on_text(seq, payload, fin, now)
        if fin and not self.fin_received:
            self.fin_seq = None


class EchoesOld(Connection):
    def _receive_unacceptable(self, segment: Any, seq: int, receiver: Any, now: float) -> None:
        if segment.timestamps is not None:
            receiver.note_timestamp(segment.timestamps[0], seq, now)
        super()._receive_unacceptable(segment, seq, receiver, now)


class DataAcksNothing(Connection):
    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        before = self.receiver._last_ack_sent
        super().put(seq, payload, fin, now)
        self.receiver._last_ack_sent = before


class EchoOfFirstSending(Connection):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._echoed: dict[int, int] = {}

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        segment = self._outbox[-1]
        if payload and segment.timestamps is not None:
            value, echo = segment.timestamps
            segment.timestamps = value, self._echoed.setdefault(seq, echo)


# -- options ----------------------------------------------------------------------------------


class RepeatedWithoutScale(Handshake):
    def offer(self, syn: Any, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if answering and self.attempts:
            syn.window_scale = None


class AtLeastDefault(Handshake):
    def take_options(self, syn: Any) -> None:
        super().take_options(syn)
        self._peer_mss = max(DEFAULT_MSS, self._peer_mss)


class SackBesideAnything(Handshake):
    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        return super().sack_room(0)


# -- unexpected segments ----------------------------------------------------------------------


class ResetNotWhileDelaying(Connection):
    def _receive_synchronized(self, segment: Any, receiver: Any, now: float) -> None:
        if segment.flags & RST and unwrap(segment.seq, receiver.rcv_nxt) != receiver._last_ack_sent:
            receiver.ack_now = True
            return
        super()._receive_synchronized(segment, receiver, now)


class AnswersOldSyn(Connection):
    def _receive_unacceptable(self, segment: Any, seq: int, receiver: Any, now: float) -> None:
        again = self.state is State.ESTABLISHED and seq == receiver.irs
        if again and segment.flags & (SYN | ACK | RST) == SYN:
            self._send_syn(now, repeated=True)
            self.handshake.deadline = None
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


class OneAbove(Connection):
    def _take_ack(self, segment: Any, seq: int, now: float) -> bool:
        sender = self.sender
        number = unwrap(segment.ack, sender.snd_una)
        more = sender.data_end is None or sender.data_end >= number
        if self.state is not State.SYN_RECEIVED and number == sender.snd_max + 1 and more:
            sender.snd_max = number
        return super()._take_ack(segment, seq, now)


class AckOfNothing(Connection):
    def _take_ack(self, segment: Any, seq: int, now: float) -> bool:
        if self.state is State.SYN_RECEIVED and segment.ack == self.sender.iss & MASK:
            self._established(segment, now)
            return True
        return super()._take_ack(segment, seq, now)


class ClosedIsDeaf(Connection):
    def _receive_unacceptable(self, segment: Any, seq: int, receiver: Any, now: float) -> None:
        if seq == receiver.rcv_nxt and segment.payload and not segment.flags & (RST | SYN):
            receiver.ack_now = True
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


class BareOldUnanswered(Connection):
    def _receive_unacceptable(self, segment: Any, seq: int, receiver: Any, now: float) -> None:
        if not segment.sequence_length and seq < receiver.rcv_nxt:
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


class SackNotAcrossWrap(Connection):
    def _ack_part(self, segment: Any, number: int, seq: int, now: float) -> Any:
        kept = tuple(block for block in segment.sack_blocks if block[0] < block[1])
        return super()._ack_part(replace(segment, sack_blocks=kept), number, seq, now)


# -- closing ----------------------------------------------------------------------------------


class FinAnsweredOnce(Connection):
    def _receive_unacceptable(self, segment: Any, seq: int, receiver: Any, now: float) -> None:
        before = receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        if segment.flags & FIN and self.state in (State.CLOSE_WAIT, State.CLOSING, State.LAST_ACK):
            receiver.ack_now = before


class AckAtFin(Connection):
    def transmit(self, now: float) -> list[Any]:
        segments = super().transmit(now)
        for segment in segments:
            if self.sender.fin_acknowledged and segment.flags == ACK and not segment.payload:
                segment.seq = segment.seq - 1 & MASK
        return segments


def _fault(name: str, title: str, clause: str, part: type[Any], setting: str = "") -> Fault:
    return Fault(
        f"tcp-b10-{name}", title, clause, lambda setup: setup.with_part(part), setting=setting
    )


FAULTS = [
    # 0 of 20: needs new SACK reports or duplicates of the old flight after a timeout outside recovery.
    _fault("recover-timeout", "a timeout outside fast recovery does not set recover, so that duplicates of what was sent before it begin an episode",
           "RFC 6675 section 5.1; RFC 6582 section 3.2", RecoverOnlyInRecovery),
    # 0 of 20: needs a timeout in recovery with less in flight than at its beginning.
    _fault("halved-already", "a timeout during fast recovery leaves ssthresh as the episode's beginning set it, although less is in flight",
           "RFC 5681 section 3.1", HalvedAlready),
    _fault("rescue-again", "every partial ACK permits another rescue retransmission",
           "RFC 6675 section 4", RescuesAgain),
    _fault("pipe-of-episode", "the pipe does not count new data sent during recovery",
           "RFC 6675 section 4", PipeOfEpisode),
    _fault("counts-only", "recovery begins at the third duplicate only, whatever one SACK reports",
           "RFC 6675 section 5", CountsOnly),
    _fault("lost-at-two", "a hole counts as lost with exactly 2 * SMSS held above it",
           "RFC 6675 section 4", LostAtTwo),
    # 0 of 20: needs data both ways with a loss (echo).
    _fault("bare-only", "new SACK information on a segment with data is no duplicate ACK",
           "RFC 6675 section 2", BareOnly),
    _fault("limited-beyond-window", "limited transmit does not ask the offered window",
           "RFC 3042 section 2", LimitedBeyondWindow),
    _fault("partial-acks-kept", "without SACK, the first partial ACK restarts the timer in the first episode of a connection only",
           "RFC 6582 section 3.2", PartialAcksKept),
    _fault("duplicate-ends-back-off", "after a timeout a duplicate ACK sets the RTO back to what SRTT and RTTVAR say",
           "RFC 6298 section 5.5; RFC 6298 section 3", DuplicateEndsBackOff),
    # Shows only with a peer without timestamps.
    _fault("karn-not-fast", "without timestamps, a retransmission in fast recovery does not end the measurement",
           "RFC 6298 section 3", KarnNotFast),
    _fault("karn-repeated-syn", "a SYN-ACK repeated because the SYN was repeated does not count as retransmitted: measured, and IW not reduced",
           "RFC 6298 section 3; RFC 5681 section 3.1", KarnNotForRepeatedSyn),
    # 0 of 20: needs an idle user with cwnd below IW after a loss.
    _fault("idle-enlarges", "after an idle period cwnd is IW even if it was smaller",
           "RFC 5681 section 4.1", IdleEnlarges),
    # 0 of 20: needs a window that closes twice for longer than the RTO.
    _fault("probes-remembered", "the probes of a second zero window go on with the interval of the first",
           "RFC 9293 section 3.8.6.1", ProbesRemembered),
    _fault("newer-ack-only", "a window update with the same SEQ and ACK as the last is not taken",
           "RFC 9293 section 3.10.7.4", NewerAckOnly),
    _fault("last-window-largest", "the latest window stands for the largest one in the sender's SWS avoidance",
           "RFC 9293 section 3.8.6.2.1", LastWindowIsLargest),
    # Needs a window that is open, but too small for a segment and for half the largest.
    _fault("no-override", "no override timeout when the window is small but not zero",
           "RFC 9293 section 3.8.6.2.1", NoOverride),
    # 0 of 20: needs small segments less than the delay apart, to a user that does not answer.
    _fault("deadline-pushed", "each further small segment restarts the delayed-ACK timer",
           "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", DeadlinePushed),
    _fault("full-is-own-mss", "segments count as full against the own MSS, so that with timestamps every third is acknowledged",
           "RFC 5681 section 4.2", FullIsOwnMss),
    _fault("part-of-gap", "the ACK for a segment that fills part of the gaps is delayed",
           "RFC 5681 section 4.2", PartOfGapWaits),
    _fault("known-block-stays", "a duplicate of held data does not bring its block to the front",
           "RFC 2018 section 4; RFC 2883 section 4", KnownBlockStays),
    _fault("block-at-ack", "the block that has just joined the stream is reported once more beside the ACK that covers it",
           "RFC 2018 section 4; RFC 2883 section 4", BlockAtAck),
    _fault("dsack-alone", "an ACK with a D-SACK block has no other blocks",
           "RFC 2883 section 4; RFC 2018 section 4", DsackAlone),
    _fault("rounds-down", "the scaled window is rounded down, so that small segments move its right edge back",
           "RFC 7323 section 2.4; RFC 9293 section 3.8.6", RoundsDown),
    _fault("early-fin", "a FIN that arrives before a gap is filled is forgotten",
           "RFC 9293 section 3.10.7.4", ForgetsEarlyFin),
    _fault("echoes-old", "the timestamp of an old duplicate outside the window becomes TS.Recent",
           "RFC 7323 section 5.3", EchoesOld),
    _fault("data-acks-nothing", "Last.ACK.sent does not follow acknowledgments that travel with data",
           "RFC 7323 section 4.3", DataAcksNothing),
    _fault("echo-of-first-sending", "a retransmission carries the TSecr of the first transmission",
           "RFC 7323 section 4.3; RFC 7323 section 3.2", EchoOfFirstSending),
    _fault("repeated-without-scale", "a repeated SYN-ACK has no window scale, yet windows are scaled",
           "RFC 7323 section 2.2", RepeatedWithoutScale),
    # 0 of 20: needs a peer with an MSS below 536.
    _fault("at-least-default", "an MSS option below 536 is taken for 536",
           "RFC 9293 section 3.7.1", AtLeastDefault),
    _fault("sack-beside-data", "SACK blocks are put beside a full payload, beyond the peer's MSS",
           "RFC 6691 section 2; RFC 9293 section 3.7.1", SackBesideAnything),
    # Needs a reset while an ACK is delayed.
    _fault("reset-while-delaying", "a RST at RCV.NXT gets a challenge ACK while an ACK is delayed: compared with the last ACK sent",
           "RFC 9293 section 3.10.7.4; RFC 5961 section 3.2", ResetNotWhileDelaying),
    _fault("answers-old-syn", "the peer's SYN, repeated once the connection is open, gets another SYN-ACK",
           "RFC 9293 section 3.10.7.4; RFC 5961 section 4.2", AnswersOldSyn),
    # Needs a peer that acknowledges what was not sent.
    _fault("one-above", "an ACK one above what was sent is accepted, and that octet is skipped",
           "RFC 9293 section 3.10.7.4", OneAbove),
    # Needs a peer that acknowledges ISS instead of ISS + 1.
    _fault("ack-of-iss", "in SYN-RECEIVED an ACK of ISS opens the connection instead of a RST",
           "RFC 9293 section 3.10.7.4", AckOfNothing),
    # Needs data of the peer into a closed window, with news in its ACK or window fields.
    _fault("closed-is-deaf", "with a closed window the ACK of a segment with data is not processed",
           "RFC 9293 section 3.10.7.4", ClosedIsDeaf),
    # Needs a peer that keeps its connection alive.
    _fault("keep-alive", "a bare segment below the window, such as a keep-alive, is not answered",
           "RFC 9293 section 3.10.7.4", BareOldUnanswered),
    _fault("sack-wrap", "a SACK block that spans the wrap of sequence numbers is dropped",
           "RFC 2018 section 3; RFC 9293 section 3.4", SackNotAcrossWrap, "wrap"),
    _fault("fin-answered-once", "a repeated FIN is acknowledged in TIME-WAIT only, not in CLOSE-WAIT, CLOSING and LAST-ACK",
           "RFC 9293 section 3.10.7.4", FinAnsweredOnce),
    _fault("ack-at-fin", "ACKs sent once the own FIN is acknowledged have the number of the FIN instead of SND.NXT",
           "RFC 9293 section 3.10.7.4", AckAtFin),
]  # fmt: skip
