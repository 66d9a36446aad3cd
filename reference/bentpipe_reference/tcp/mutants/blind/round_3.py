"""Round 3: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 5961 and 7323 on 2026-11-22.

Faults that `./check` may call inactive say in their docstring what brings them about.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.ranges import RangeSet
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender as Rfc
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Segment, parse_packet
from bentpipe_reference.tcp.wire.options import parse_options
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


# -- opening and options ----------------------------------------------------------------------


class UnscaledAgain(Connection):
    """A SYN-ACK that the timer repeats lacks Window Scale, which stays in use."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is not None and self.handshake.attempts > 1 and not repeated:
            self._outbox[-1].window_scale = None


def parse_until_empty_option(packet: bytes) -> Segment:
    """An unknown option of length 2 (no data) is taken for the end of the list.

    Inactive in ./check: needs a peer whose SYN has such an option before others, for example
    kind 253 with length 2 before MSS and Window Scale.
    """
    segment = parse_packet(packet)
    if not segment.unknown:
        return segment
    start = (packet[0] & 15) * 4
    raw = packet[start + 20 : start + (packet[start + 12] >> 4) * 4]
    at = 0
    while at < len(raw) and raw[at]:
        if raw[at] == 1:
            at += 1
            continue
        if raw[at + 1] == 2 and raw[at] != 4:
            segment.mss = segment.window_scale = segment.timestamps = None
            segment.sack_permitted, segment.sack_blocks = False, ()
            parse_options(raw[:at], segment)
            break
        at += raw[at + 1]
    return segment


def short_option(setup: Setup) -> Setup:
    return replace(setup, parts=replace(setup.parts, parse=parse_until_empty_option))


class RepacketizesTooLarge(Rfc):
    """Retransmissions are cut at the MSS, not at what the timestamps leave of it."""

    def segment_limit(self, seq: int) -> int:
        limit = super().segment_limit(seq)
        if seq < self.snd_max and limit == self.smss and self.config.uses_timestamps:
            return min(self.smss + 12, max(self.smss, self.config.mss))
        return limit


class SynGrows(Rfc):
    """The ACK of our SYN grows cwnd as one of data does."""

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:
        super().establish(smss, window, seq, sack_ok=sack_ok)
        self.cwnd += smss


class SynAckTimerStays(Connection):
    """Data that acknowledges the SYN-ACK does not stop its timer; a later bare ACK does."""

    _left_running = False

    def _established(self, segment: Segment, now: float) -> None:
        deadline = self.handshake.deadline
        data = self.state is State.SYN_RECEIVED and segment.payload
        super()._established(segment, now)
        if data:
            self.handshake.deadline = deadline
            self._left_running = True

    def receive(self, segment: Segment, now: float) -> None:
        super().receive(segment, now)
        if self._left_running and not segment.payload and segment.flags & ACK:
            self._left_running = False
            self.handshake.deadline = None


class OldSynIgnored(Connection):
    """A SYN-ACK that comes again is dropped as a duplicate, and not acknowledged again.

    Rare in ./check: needs the third ACK lost on a connection that sends nothing, so that only the
    repeated SYN-ACK (or a stray SYN) asks for an ACK.
    """

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        early = (State.SYN_SENT, State.SYN_RECEIVED, State.CLOSED)
        if (
            segment.flags & SYN and receiver is not None and self.state not in early
            and unwrap(segment.seq, receiver.rcv_nxt) < receiver.rcv_nxt
        ):  # fmt: skip
            return
        super().receive(segment, now)


# -- acknowledging ----------------------------------------------------------------------------


class DelayBeginsAnew(Receiver):
    """Every segment that is not acknowledged at once starts the delay again.

    Rare in ./check: needs a full-sized segment first, and then small ones closer together than the
    delay and fewer octets than two full ones; then the ACK takes more than half a second.
    """

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if not self.ack_now and self.ack_deadline is not None:
            self.ack_deadline = now + self.delayed_ack_interval()


class FullIsMss(Receiver):
    """Two segments are two MSS; with timestamps, segments are smaller than that."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        full = self._octets_unacked >= self.config.ack_every * self.config.mss
        return not in_order or gap or full


class PartOfGapWaits(Receiver):
    """What fills a gap in part, so that others remain, is acknowledged like any data."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return super().should_ack_now(in_order=in_order, gap=gap and not self.buffer.blocks)


class DuplicateMovesNothing(Reassembly):
    """A duplicate above the gap does not bring its block to the front, behind the D-SACK.

    Rare in ./check: needs two blocks, and a duplicate of the older one.
    """

    def insert(self, seq: int, payload: bytes) -> None:
        if seq > self.rcv_nxt and self.covered(seq, seq + len(payload)):
            return
        super().insert(seq, payload)


class SwallowedBlockStays(Reassembly):
    """When a block grows to the left or into its neighbour, the old one stays in the list."""

    def insert(self, seq: int, payload: bytes) -> None:
        before, above = self.blocks, seq > self.rcv_nxt
        super().insert(seq, payload)
        if above:
            grown = self.blocks[0]
            self.blocks = [grown, *(block for block in before if block[0] != grown[0])]


class DataTakesSack(Receiver):
    """A data segment too full for SACK blocks counts as the duplicate ACK that was due."""

    def note_ack_sent(self, *, complete: bool = True) -> None:  # noqa: ARG002
        super().note_ack_sent(complete=True)


class FourthBlock(Connection):
    """To make room for a fourth block, an ACK leaves out its timestamps."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        handshake, receiver = self.handshake, self.receiver
        agreed = handshake.timestamps_ok
        if receiver is not None and not payload and not flags & (FIN | RST):
            handshake.timestamps_ok = agreed and len(receiver.sack_blocks_to_send(4)) < 4
        super()._put(seq, flags, now, payload)
        handshake.timestamps_ok = agreed


class FourHoles(Reassembly):
    """There is room for four ranges; a fifth replaces the oldest, which SACK had reported."""

    def insert(self, seq: int, payload: bytes) -> None:
        super().insert(seq, payload)
        while len(self.blocks) > 4:
            left, right = self.blocks.pop()
            kept = tuple(each for each in self._held.snapshot() if not left <= each[0] < right)
            self._held = RangeSet(kept)
            self._pieces = [each for each in self._pieces if not left <= each[0] < right]


class SegmentLength(Connection):
    """Tells the receiver the length of the segment being processed."""

    def receive(self, segment: Segment, now: float) -> None:
        if isinstance(self.receiver, Echo1323):
            self.receiver.length = segment.sequence_length
        super().receive(segment, now)


class Echo1323(Receiver):
    """RFC 1323's rule: Last.ACK.sent has to lie within the segment, so bare ACKs do not count."""

    length = 0

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        if self._last_ack_sent < seq + self.length:
            super().note_timestamp(tsval, seq, now)


class EchoesUnacceptable(Connection):
    """TS.Recent is taken before the acceptability test, so from old segments too."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if segment.timestamps is not None and not segment.flags & (SYN | RST):
            receiver.note_timestamp(segment.timestamps[0], seq, now)
        super()._receive_unacceptable(segment, seq, receiver, now)


class StampedOnce(Connection):
    """A segment keeps the TSval with which it was first sent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stamps: dict[int, int] = {}

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        segment = self._outbox[-1]
        if segment.timestamps is None or not (payload or flags & FIN):
            return
        own, echo = segment.timestamps
        segment.timestamps = self._stamps.setdefault(seq, own), echo
        if len(self._stamps) > 512:
            una = self.sender.snd_una
            self._stamps = {at: stamp for at, stamp in self._stamps.items() if at >= una}


# -- the receiver's window, and what arrives --------------------------------------------------


class HeldCountsTwice(Receiver):
    """Data out of order, above RCV.NXT anyway, is subtracted from the window."""

    def window_field(self) -> int:
        super().window_field()
        held = sum(right - left for left, right in self.buffer.blocks)
        window = max(0, self.edge - self.rcv_nxt - held)
        return min(-(-window >> self.window_shift), 0xFFFF)


class EarlyFinForgotten(Receiver):
    """A FIN beyond a gap is not kept, although the data before it is."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        if fin and seq > self.rcv_nxt:
            fin, self.ack_now = False, True
        super().on_text(seq, payload, fin, now)


class TextWithAckOfFin(Connection):
    """The segment that moves FIN-WAIT-1 to FIN-WAIT-2 is done with then; its text is lost."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        waiting = self.state is State.FIN_WAIT_1
        goes_on = super()._take_ack(segment, seq, now)
        return goes_on and not (waiting and self.state is State.FIN_WAIT_2)


class ResetAtLastAck(Connection):
    """A RST has to match the last ACK sent, not RCV.NXT."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if not segment.flags & RST:
            super()._receive_synchronized(segment, receiver, now)
            return
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        if seq == receiver._last_ack_sent:
            self._end("the peer reset the connection", now)
        elif receiver._last_ack_sent < seq < receiver.edge:
            receiver.ack_now = True


class WrapsOutOfOrder(Connection):
    """Out of order beyond the wrap, data seems older than RCV.NXT: acknowledged, not kept.

    Inactive in ./check unless the peer's numbers pass 2**32: needs an initial number of the peer
    shortly before that, and the last segment before the wrap lost or late.
    """

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if receiver is not None and segment.payload and self.state is State.ESTABLISHED:
            nxt = receiver.rcv_nxt
            if unwrap(segment.seq, nxt) > nxt and segment.seq < nxt & MASK:
                receiver.ack_now = True
                return
        super().receive(segment, now)


# -- congestion window ------------------------------------------------------------------------


class IdleForgetsThreshold(Rfc):
    """After an idle time ssthresh is lowered to the restart window too: no slow start.

    Rare in ./check: needs a burst, a pause longer than the timeout and another burst that is large
    enough for the growth of cwnd to show.
    """

    def restart_after_idle(self, now: float) -> None:
        before = self.cwnd
        super().restart_after_idle(now)
        if self.cwnd < before:
            self.ssthresh = self.cwnd


class DuplicatesSurvive(Rfc):
    """New ACKs do not reset the count of duplicates in recovery, nor the one that ends it."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        recovering, count = self.in_recovery, self.dupacks
        super().on_new_ack(ack, now)
        if recovering:
            self.dupacks = count


class LostAtTwo(Rfc):
    """IsLost at (DupThresh - 1) * SMSS octets, not only at more than that."""

    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class RescuesAgain(Rfc):
    """Every partial ACK permits another rescue retransmission."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        super().on_partial_ack(acked, now)
        self.rescued = False


class PointMoves(Rfc):
    """New data sent in recovery moves the recovery point."""

    def send_chosen(self, chosen: tuple[int, int], now: float) -> None:
        super().send_chosen(chosen, now)
        self.recover = max(self.recover, self.snd_max - 1)


class TimeoutKeepsPoint(Rfc):
    """A timeout in recovery keeps the recovery point of the episode.

    Rare in ./check: needs new data sent in recovery, a lost retransmission, and duplicate ACKs once
    the old point, but not what was sent beyond it, is acknowledged.
    """

    def on_timeout_in_recovery(self) -> None:
        if not self.in_recovery:
            super().on_timeout_in_recovery()


class AckAboveNext(Rfc):
    """After a timeout, an ACK counts only up to SND.NXT, which was set back to SND.UNA."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number > self.snd_nxt > self.snd_una and not self.probes:
            ack.number = self.snd_nxt
        super().on_ack(ack, now)


class UndoneByOne(Rfc):
    """One D-SACK, whatever it reports, gives back the window of before the last recovery."""

    _prior: tuple[int, int] | None = None

    def enter_recovery(self, now: float) -> None:
        self._prior = self.cwnd, self.ssthresh
        super().enter_recovery(now)

    def take_sack(self, ack: Ack) -> int:
        newly = super().take_sack(ack)
        if self._prior and self.sack_ok and ack.blocks and self.is_duplicate_report(ack):
            self.cwnd, self.ssthresh = map(max, self._prior, (self.cwnd, self.ssthresh))
            self._prior = None
        return newly


class DuplicateNeedsWindow(Rfc):
    """With SACK too, an ACK is a duplicate only if it offers the same window."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        return super().is_duplicate_ack(ack, newly_held) and ack.window == self.snd_wnd


class PipeOnce(Rfc):
    """Within one ACK, retransmissions are not added to the pipe."""

    def output(self, now: float) -> None:
        if not (self.in_recovery and self.sack_ok):
            super().output(now)
            return
        pipe = self.pipe()
        while self.cwnd - pipe >= self.smss and (chosen := self.next_segment()) is not None:
            if chosen[0] >= self.snd_max:
                pipe += chosen[1] - chosen[0]
            self.send_chosen(chosen, now)


# -- timers -----------------------------------------------------------------------------------


class FinNotTimed(Rfc):
    """The ACK of the last data stops the timer, although a FIN is outstanding.

    Rare in ./check: needs a FIN in a segment of its own, sent before the last data is acknowledged
    and lost; it is then never repeated.
    """

    def restart_rto(self, now: float) -> None:
        super().restart_rto(now)
        if self.fin_queued and self.snd_una == self.data_end:
            self.rto_deadline = None


class DuplicateEndsBackOff(Rfc):
    """An ACK of nothing new computes the timeout afresh, without its back-off.

    Rare in ./check: needs a timeout, a duplicate ACK and another timeout of the same segment.
    """

    def on_ack(self, ack: Ack, now: float) -> None:
        una = self.snd_una
        super().on_ack(ack, now)
        estimator = self.estimator
        if ack.number == una == self.snd_una and estimator.srtt is not None:
            spread = max(estimator.granularity, estimator.K * estimator.rttvar)
            estimator.rto = estimator.bounded(estimator.srtt + spread)


class MeasuresEveryEcho(Rfc):
    """Every TSecr is a measurement, also one that comes with no new acknowledgment."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number == self.snd_una and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


class DuplicateRestartsTimer(Rfc):
    """In recovery, duplicate ACKs restart the timer.

    Rare in ./check: needs a retransmission lost in recovery while duplicate ACKs go on arriving.
    """

    def on_duplicate_in_recovery(self, now: float) -> None:
        self.restart_rto(now)
        super().on_duplicate_in_recovery(now)


class TimerAfterPiggyback(Rfc):
    """A last ACK that comes with data does not stop the timer; when it expires, cwnd is cut."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        deadline = self.rto_deadline
        super().on_new_ack(ack, now)
        if not ack.bare and not self.flight_size and self.rto_deadline is None:
            self.rto_deadline = deadline

    def on_timeout(self, now: float) -> None:
        if self.flight_size:
            super().on_timeout(now)
            return
        self.ssthresh = self.ssthresh_after_loss()
        self.cwnd = self.cwnd_after_timeout()
        self.estimator.back_off()
        self.rto_deadline = None


class ProbesRemembered(Rfc):
    """The interval of window probes begins where that of the last closed window ended.

    Rare in ./check: needs a window closed twice, each time for several timeouts.
    """

    _all_probes = 0

    def on_probe_due(self, now: float) -> None:
        self._all_probes += 1
        super().on_probe_due(now)

    def zero_window_probe_interval(self, probes: int) -> float:
        return super().zero_window_probe_interval(max(probes, self._all_probes))


class SmallWindowNotProbed(Rfc):
    """Probes are for a window of zero; one too small to use is waited out."""

    def check_probe(self, now: float) -> None:
        if self.snd_wnd > 0:
            self.persist_deadline = None
        else:
            super().check_probe(now)


class Minshall(Rfc):
    """Nagle as modified by Minshall's draft: small data waits for small data only."""

    _small_end = 0

    def transmit(self, seq: int, end: int, now: float) -> None:
        if seq >= self.snd_max and end - seq < self.smss:
            self._small_end = end
        super().transmit(seq, end, now)

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        if octets or not self.config.nagle or self.snd_una < self._small_end or seq < self.snd_max:
            return octets
        end = self.sending_end
        limit = self.segment_limit(seq)
        wanted = limit if end is None else min(limit, end - seq)
        return wanted if wanted <= usable else 0


def part(*parts: type[Any]) -> Any:
    def configure(setup: Setup) -> Setup:
        for each in parts:
            setup = setup.with_part(each)
        return setup

    return configure


def fault(name: str, title: str, clause: str, *parts: type[Any]) -> Fault:
    return Fault("tcp-b3-" + name, title, clause, part(*parts))


FAULTS = [
    fault("unscaled-again", "a SYN-ACK repeated by the timer lacks Window Scale, yet windows are scaled",
          "RFC 7323 section 2.2", UnscaledAgain),
    Fault("tcp-b3-short-option", "an unknown option without data ends the option list",
          "RFC 9293 section 3.1", short_option),
    fault("too-large-again", "retransmissions do not leave room for the timestamps within the MSS",
          "RFC 9293 section 3.7.1; RFC 6691 section 2", RepacketizesTooLarge),
    fault("syn-grows", "the acknowledgment of the SYN or SYN-ACK grows cwnd",
          "RFC 5681 section 3.1", SynGrows),
    fault("syn-ack-timer", "the SYN-ACK is repeated although data has acknowledged it",
          "RFC 6298 section 5.2; RFC 9293 section 3.10.7.4", SynAckTimerStays),
    fault("old-syn-ignored", "a repeated SYN-ACK, or any SYN below the window, is not acknowledged",
          "RFC 9293 section 3.10.7.4; RFC 5961 section 4.2", OldSynIgnored),
    fault("delay-anew", "every small segment starts the delay of the ACK again",
          "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", DelayBeginsAnew),
    fault("full-is-mss", "with timestamps only every third full-sized segment is acknowledged",
          "RFC 5681 section 4.2", FullIsMss),
    fault("part-of-gap", "a segment that fills a gap in part is acknowledged with delay",
          "RFC 5681 section 4.2", PartOfGapWaits),
    fault("dsack-order", "a D-SACK above the ACK is not followed by the block that contains it",
          "RFC 2883 section 4", DuplicateMovesNothing),
    fault("swallowed-block", "SACK goes on to report a block that has become part of another",
          "RFC 2018 section 3", SwallowedBlockStays),
    fault("data-takes-sack", "full data segments take the place of the duplicate ACK with SACK",
          "RFC 2018 section 4", DataTakesSack),
    fault("fourth-block", "an ACK with four SACK blocks has no timestamps",
          "RFC 7323 section 3.2", FourthBlock),
    fault("four-holes", "the fifth range out of order makes the receiver discard one it has SACKed",
          "RFC 2018 section 8; RFC 9293 section 3.10.7.4", FourHoles),
    fault("echo-1323", "bare ACKs do not update the timestamp to echo",
          "RFC 7323 section 4.3", Echo1323, SegmentLength),
    fault("echo-unacceptable", "the timestamp of a segment below the window is echoed",
          "RFC 7323 section 5.3; RFC 7323 section 4.3", EchoesUnacceptable),
    fault("stamped-once", "a retransmission has the TSval of the first transmission",
          "RFC 7323 section 3.2", StampedOnce),
    fault("held-twice", "data out of order shrinks the window",
          "RFC 9293 section 3.8.6", HeldCountsTwice),
    fault("early-fin", "a FIN that arrives beyond a gap is forgotten",
          "RFC 9293 section 3.10.7.4", EarlyFinForgotten),
    fault("text-with-ack-of-fin", "data or FIN in the segment that acknowledges our FIN is ignored",
          "RFC 9293 section 3.10.7.4", TextWithAckOfFin),
    fault("reset-at-last-ack", "a RST is compared with the last ACK sent instead of RCV.NXT",
          "RFC 5961 section 3.2; RFC 9293 section 3.10.7.4", ResetAtLastAck),
    fault("wrap-out-of-order", "data out of order beyond the wrap of the numbers is not kept",
          "RFC 9293 section 3.4", WrapsOutOfOrder),
    fault("idle-threshold", "after an idle time ssthresh falls to the restart window",
          "RFC 5681 section 4.1", IdleForgetsThreshold),
    fault("duplicates-survive", "the count of duplicate ACKs survives recovery",
          "RFC 6675 section 5", DuplicatesSurvive),
    fault("lost-at-two", "two SACKed full-sized segments make the one before them lost",
          "RFC 6675 section 4", LostAtTwo),
    fault("rescues-again", "more than one rescue retransmission in an episode",
          "RFC 6675 section 4", RescuesAgain),
    fault("point-moves", "new data sent in recovery moves the recovery point",
          "RFC 6675 section 5", PointMoves),
    fault("timeout-keeps-point", "a timeout in recovery does not set the recovery point to HighData",
          "RFC 6675 section 5.1", TimeoutKeepsPoint),
    fault("ack-above-next", "data acknowledged after a timeout is sent again",
          "RFC 9293 section 3.10.7.4", AckAboveNext),
    fault("undone-by-one", "a single D-SACK restores cwnd and ssthresh of before the recovery",
          "RFC 6675 section 5; RFC 5681 section 3.2", UndoneByOne),
    fault("duplicate-needs-window", "with SACK, an ACK whose window differs is no duplicate",
          "RFC 6675 section 2", DuplicateNeedsWindow),
    fault("pipe-once", "retransmissions caused by one ACK are not counted in the pipe",
          "RFC 6675 section 5", PipeOnce),
    fault("fin-not-timed", "the ACK of the last data stops the timer of an outstanding FIN",
          "RFC 6298 section 5.3; RFC 6298 section 5.2", FinNotTimed),
    fault("duplicate-ends-back-off", "a duplicate ACK ends the back-off of the timeout",
          "RFC 6298 section 5.5", DuplicateEndsBackOff),
    fault("measures-every-echo", "timestamps measure round trips without new acknowledgment",
          "RFC 7323 section 4.1", MeasuresEveryEcho),
    fault("duplicate-restarts", "duplicate ACKs in recovery restart the retransmission timer",
          "RFC 6298 section 5.3", DuplicateRestartsTimer),
    fault("timer-after-piggyback", "a last ACK that comes with data does not stop the timer",
          "RFC 6298 section 5.2", TimerAfterPiggyback),
    fault("probes-remembered", "the back-off of window probes goes on at the next closed window",
          "RFC 9293 section 3.8.6.1", ProbesRemembered),
    fault("small-window", "a sender stuck at a small window neither sends nor probes",
          "RFC 9293 section 3.8.6.2.1", SmallWindowNotProbed),
    fault("minshall", "small data is held for outstanding small data only",
          "RFC 9293 section 3.7.4", Minshall),
]  # fmt: skip
