"""Round 5: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 3042, 7323 on 2026-11-22."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, parse_packet
from bentpipe_reference.tcp.wire.options import parse_options
from bentpipe_reference.tcp.wire.sequence import MASK

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))


def parts(*classes: type) -> Callable[[Setup], Setup]:
    """Replace parts by these."""

    def configure(setup: Setup) -> Setup:
        for each in classes:
            setup = setup.with_part(each)
        return setup

    return configure


# -- opening and options ----------------------------------------------------------------------


class PlainSecondSynAck(Handshake):
    """The repeated SYN-ACK falls back to fewer options; the connection does not."""

    _answers = 0

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if answering:
            self._answers += 1
            if self._answers > 1:
                syn.window_scale = None


class TimesRepeatedSyn(Handshake):
    """The round trip of the handshake is measured from the last SYN, repeated or not."""

    def complete(self, now: float) -> float | None:
        self.deadline = None
        return now - self._sent_at


class EstablishingSender(SackNewRenoRfcSender):
    establishing = False

    def loss_window(self) -> int:
        return self.initial_window() if self.establishing else super().loss_window()


class ForgivesLostSynAck(Connection):
    """The single segment after a lost SYN is a rule of the active opener only."""

    def _established(self, segment: Segment, now: float) -> None:
        self.sender.establishing = self.state is State.SYN_RECEIVED
        super()._established(segment, now)
        self.sender.establishing = False


class RoomBesideNothing(Handshake):
    """Room for SACK blocks is computed as for an empty segment."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        return super().sack_room(0)


def stops_at_unknown(octets: bytes) -> Segment:
    """What follows an unknown option is not read."""
    segment = parse_packet(octets)
    if not segment.unknown:
        return segment
    header = (octets[0] & 15) * 4
    raw = octets[header + 20 : header + (octets[header + 12] >> 4) * 4]
    at = 0
    while at < len(raw) and raw[at] in (1, 2, 3, 4, 5, 8):
        at += 1 if raw[at] == 1 else raw[at + 1]
    segment.mss = segment.window_scale = segment.timestamps = None
    segment.sack_permitted, segment.sack_blocks = False, ()
    parse_options(raw[:at], segment)
    return segment


def with_short_parser(setup: Setup) -> Setup:
    return replace(setup, parts=replace(setup.parts, parse=stops_at_unknown))


# -- timestamps -------------------------------------------------------------------------------


class LastAckOfPureAcks(Connection):
    """Last.ACK.sent is kept where pure ACKs are made; data segments acknowledge too."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        before = None if receiver is None else receiver._last_ack_sent
        super()._put(seq, flags, now, payload)
        if payload and receiver is not None:
            receiver._last_ack_sent = before


class ArrivingLength(Connection):
    def receive(self, segment: Segment, now: float) -> None:
        if self.receiver is not None:
            self.receiver.arriving = segment.sequence_length
        super().receive(segment, now)


class Rfc1323Interval(Receiver):
    """TS.Recent changes if Last.ACK.sent is within the segment, which it never is in an empty one."""

    arriving = 0

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        if self._last_ack_sent < seq + self.arriving:
            super().note_timestamp(tsval, seq, now)


class RepeatsTsval(Connection):
    """A retransmission is the stored segment, with the timestamp that it had."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._first_tsval: dict[int, int] = {}

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().put(seq, payload, fin, now)
        segment = self._outbox[-1]
        if segment.timestamps is not None:
            tsval = self._first_tsval.setdefault(seq, segment.timestamps[0])
            segment.timestamps = tsval, segment.timestamps[1]


class MeasuresDuplicates(SackNewRenoRfcSender):
    """Every echoed timestamp is a measurement, also in an ACK that does not advance SND.UNA."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number == self.snd_una and self.flight_size and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


# -- acknowledging ----------------------------------------------------------------------------


class RestartsDelay(Receiver):
    """Each segment begins the delay of the acknowledgment anew."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().on_text(seq, payload, fin, now)
        if payload and self.ack_deadline is not None:
            self.ack_deadline = now + self.delayed_ack_interval()


class DelaysPartOfGap(Receiver):
    """At once when a gap closes, but as usual when only its first part arrives."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return super().should_ack_now(in_order=in_order, gap=gap and not self.buffer.blocks)


class FullMeansMss(Receiver):
    """Full-sized is the MSS announced, of which the timestamps take twelve octets."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        full = self._octets_unacked >= self.config.ack_every * self.config.mss
        return not in_order or gap or full


class KeepsDuplicate(Receiver):
    """A D-SACK stays first as long as there are SACK blocks to send."""

    def note_ack_sent(self, *, complete: bool = True) -> None:
        duplicate = self._duplicate
        super().note_ack_sent(complete=complete)
        if self.buffer.blocks:
            self._duplicate = duplicate


class UnpermittedDuplicate(Receiver):
    """Whether SACK is permitted is asked for SACK blocks, not for a D-SACK."""

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        if not self.sack_ok and self._duplicate is not None:
            return (self._duplicate,)
        return super().sack_blocks_to_send(most)


class GrowsInPlace(Reassembly):
    """Only a new block goes to the front of the list; one that grows stays where it is."""

    def insert(self, seq: int, payload: bytes) -> None:
        old = list(self.blocks)
        in_order = seq <= self.rcv_nxt
        super().insert(seq, payload)
        if in_order or not self.blocks:
            return
        left, right = grown = self.blocks[0]
        place = next((at for at, block in enumerate(old) if left <= block[0] < right), 0)
        rest = self.blocks[1:]
        self.blocks = [*rest[:place], grown, *rest[place:]]


class DropsOverlap(Connection):
    """A segment that begins below RCV.NXT is a duplicate, wherever it ends."""

    def _take_text(self, segment: Segment, seq: int, receiver: Receiver, now: float) -> None:
        if segment.payload and seq < receiver.rcv_nxt:
            receiver.ack_now = True
            return
        super()._take_text(segment, seq, receiver, now)


class TakesFinEarly(Receiver):
    """A FIN counts when it arrives, also above a gap."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().on_text(seq, payload, fin, now)
        if fin and not self.fin_received:
            self.fin_received = self.ack_now = True


class EdgeInclusive(Receiver):
    """An empty segment is acceptable at RCV.NXT+RCV.WND too."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        at_edge = length == 0 and seq == self.edge > self.rcv_nxt
        return at_edge or super().is_acceptable(seq, length)


class SilentToEmpty(Connection):
    """An unacceptable segment without data is not worth an acknowledgment."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if segment.sequence_length:
            super()._receive_unacceptable(segment, seq, receiver, now)


class DeafToResets(Connection):
    """With a closed window nothing but acknowledgments is looked at."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        closed = receiver is not None and receiver.edge <= receiver.rcv_nxt
        if closed and segment.flags & _RST and self.state in (
            State.ESTABLISHED, State.FIN_WAIT_1, State.FIN_WAIT_2,
        ):  # fmt: skip
            return
        super().receive(segment, now)


class QuietTimeOnce(Connection):
    """A FIN in TIME-WAIT is acknowledged, but the 2 MSL do not begin again."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        until = self.time_wait_until
        super()._receive_unacceptable(segment, seq, receiver, now)
        if self.state is State.TIME_WAIT:
            self.time_wait_until = until


# -- windows, SWS, probes ---------------------------------------------------------------------


class HalfOfCurrentWindow(SackNewRenoRfcSender):
    """Half of the window as it is now, not of the largest, makes a small segment worth sending."""

    def update_window(self, ack: Ack) -> bool:
        moved = super().update_window(ack)
        self.max_snd_wnd = self.snd_wnd
        return moved


class NoOverride(SackNewRenoRfcSender):
    """The persist timer is for windows of zero; one too small to use has none."""

    def check_probe(self, now: float) -> None:
        if self.snd_wnd:
            self.persist_deadline = None
        else:
            super().check_probe(now)


class ProbesBackOff(SackNewRenoRfcSender):
    """Probes share the back-off of retransmissions, and leave it behind."""

    def on_probe_due(self, now: float) -> None:
        if not self.snd_wnd:
            self.estimator.back_off()
        super().on_probe_due(now)

    def zero_window_probe_interval(self, probes: int) -> float:  # noqa: ARG002
        return min(self.estimator.rto, self.config.max_rto)


class EdgeNeverBack(SackNewRenoRfcSender):
    """What the peer once allowed stays allowed."""

    def update_window(self, ack: Ack) -> bool:
        edge = self.right_edge
        moved = super().update_window(ack)
        self.snd_wnd = max(self.snd_wnd, edge - ack.number)
        return moved


class UnsignedWl2(SackNewRenoRfcSender):
    """SND.WL2 and SEG.ACK are compared as plain 32-bit numbers."""

    def update_window(self, ack: Ack) -> bool:
        if self.snd_wl1 == ack.seq and self.snd_wl2 & MASK > ack.number & MASK:
            self.snd_wnd = max(0, self.right_edge - ack.number)
            return False
        return super().update_window(ack)


class AckAboveNext(Connection):
    """SEG.ACK is compared with a SND.NXT that a timeout has set back."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        number = sender.snd_una + ((segment.ack - sender.snd_una + (1 << 31)) & MASK) - (1 << 31)
        late = self.state is not State.SYN_RECEIVED and number > sender.snd_nxt
        if late and not sender.probes and self.receiver is not None:
            self.receiver.ack_now = True
            return False
        return super()._take_ack(segment, seq, now)


# -- timers -----------------------------------------------------------------------------------


class TimerRunsOn(SackNewRenoRfcSender):
    """The timer is not stopped when all is acknowledged; it finds nothing to do if it expires."""

    def restart_rto(self, now: float) -> None:
        self.rto_deadline = now + self.estimator.rto

    def on_timeout(self, now: float) -> None:
        if self.flight_size:
            super().on_timeout(now)
            return
        self.rto_deadline = None
        self.check_probe(now)


class CountsAllTimeouts(SackNewRenoRfcSender):
    """The count of retransmissions restarts only when nothing is outstanding."""

    def on_ack(self, ack: Ack, now: float) -> None:
        before = self.silent_timeouts
        super().on_ack(ack, now)
        if self.flight_size:
            self.silent_timeouts = before


class IdleByReceipt(Connection):
    """Idle is who neither sends nor receives."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.sender.last_send is not None:
            self.sender.last_send = now
        super().receive(segment, now)


# -- congestion window ------------------------------------------------------------------------


class BsdConstant(SackNewRenoRfcSender):
    """4.3BSD-Reno's increase, with an eighth of a segment per ACK on top."""

    def congestion_avoidance_increase(self, acked: int) -> int:  # noqa: ARG002
        return max(1, self.smss * self.smss // self.cwnd) + self.smss // 8


class JumpsAfterTimeout(SackNewRenoRfcSender):
    """While a timeout is repaired cwnd grows by all that an ACK covers."""

    def slow_start_increase(self, acked: int) -> int:
        usual = super().slow_start_increase(acked)
        return acked if self.snd_una <= self.recover else usual


class LimitedBeyondWindow(SackNewRenoRfcSender):
    """Limited transmit adds its two segments to both windows, cwnd's and the peer's."""

    def limited_transmit(self, now: float) -> None:
        offered = self.snd_wnd
        self.snd_wnd = offered + 2 * self.smss
        super().limited_transmit(now)
        self.snd_wnd = offered


# -- loss recovery ----------------------------------------------------------------------------


class LostAtTwo(SackNewRenoRfcSender):
    """(DupThresh - 1) * SMSS octets held are enough; it takes more than that."""

    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class RescueMovesHighRxt(SackNewRenoRfcSender):
    """The rescue retransmission counts in HighRxt like any other."""

    def send_chosen(self, chosen: tuple[int, int], now: float) -> None:
        repeated = chosen[0] < self.snd_max
        super().send_chosen(chosen, now)
        if repeated:
            self.high_rxt = max(self.high_rxt, chosen[1])


class HolesBeforeNew(SackNewRenoRfcSender):
    """Rule 3 of NextSeg comes before rule 2."""

    def next_segment(self) -> tuple[int, int] | None:
        return (
            self.lost_segment()
            or self.speculative_segment()
            or self.new_segment()
            or self.rescue_segment()
        )


class OldRecoveryPoint(SackNewRenoRfcSender):
    """A timeout leaves the recovery point of the episode before it."""

    def on_timeout_in_recovery(self) -> None:
        pass


class StaysInRecovery(SackNewRenoRfcSender):
    """A timeout during recovery does not end it."""

    def on_timeout(self, now: float) -> None:
        recovering = self.in_recovery
        super().on_timeout(now)
        self.in_recovery = recovering


class SackOfPureAcks(SackNewRenoRfcSender):
    """SACK blocks of segments that carry data are not looked at."""

    def take_sack(self, ack: Ack) -> int:
        return super().take_sack(ack) if ack.bare else 0


class CountsOnAfterRecovery(SackNewRenoRfcSender):
    """The ACK that ends recovery, or continues it, does not reset the count of duplicates."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        recovering, count = self.in_recovery, self.dupacks
        super().on_new_ack(ack, now)
        if recovering:
            self.dupacks = count


FAULTS = [
    Fault("tcp-b5-plain-second-synack",
          "a repeated SYN-ACK has no Window Scale option, but windows are scaled all the same",
          "RFC 7323 section 2.2", parts(PlainSecondSynAck)),
    Fault("tcp-b5-times-repeated-syn",
          "the round trip of a SYN or SYN-ACK that was repeated is measured from its last copy",
          "RFC 6298 section 3; RFC 6298 section 5.7", parts(TimesRepeatedSyn)),
    Fault("tcp-b5-forgives-lost-synack",
          "after a SYN-ACK had to be repeated it starts with the full initial window",
          "RFC 5681 section 3.1", parts(EstablishingSender, ForgivesLostSynAck)),
    Fault("tcp-b5-room-beside-nothing",
          "SACK blocks are added to full data segments, which exceed the MSS then",
          "RFC 9293 section 3.7.1; RFC 6691 section 2", parts(RoomBesideNothing)),
    # Needs a peer that sends an option nobody knows before another: ./check has none.
    Fault("tcp-b5-stops-at-unknown",
          "options that follow one of unknown kind are not read",
          "RFC 9293 section 3.1; RFC 9293 section 3.2", with_short_parser),
    Fault("tcp-b5-last-ack-of-pure-acks",
          "acknowledgments on data segments do not count as Last.ACK.sent, so that TSecr lags",
          "RFC 7323 section 4.3", parts(LastAckOfPureAcks)),
    Fault("tcp-b5-rfc1323-interval",
          "TS.Recent is not taken from segments without data, as in RFC 1323",
          "RFC 7323 section 4.3", parts(ArrivingLength, Rfc1323Interval)),
    Fault("tcp-b5-repeats-tsval",
          "a retransmission carries the TSval of the first transmission",
          "RFC 7323 section 3.2", parts(RepeatsTsval)),
    Fault("tcp-b5-measures-duplicates",
          "ACKs that acknowledge nothing new are taken as round-trip measurements and end back-off",
          "RFC 7323 section 4.1; RFC 6298 section 5", parts(MeasuresDuplicates)),
    # Needs large segments before, then many small ones closer together than the delay.
    Fault("tcp-b5-restarts-delay",
          "each small segment restarts the delayed-ACK timer, so that ACKs take over half a second",
          "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", parts(RestartsDelay)),
    Fault("tcp-b5-delays-part-of-gap",
          "the ACK of a segment that fills the beginning of a gap is delayed while more is missing",
          "RFC 5681 section 4.2", parts(DelaysPartOfGap)),
    Fault("tcp-b5-full-means-mss",
          "with timestamps only every third full-sized segment is acknowledged",
          "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", parts(FullMeansMss)),
    Fault("tcp-b5-keeps-duplicate",
          "a duplicate is reported again in every ACK while there is a gap",
          "RFC 2883 section 4", parts(KeepsDuplicate)),
    # Needs a peer that does not offer SACK while this end does: ./check has none.
    Fault("tcp-b5-unpermitted-duplicate",
          "a D-SACK is sent to a peer that has not permitted SACK",
          "RFC 2018 section 2; RFC 2018 section 4", parts(UnpermittedDuplicate)),
    Fault("tcp-b5-grows-in-place",
          "the block that the last segment enlarged is not first if it existed before",
          "RFC 2018 section 4", parts(GrowsInPlace)),
    # Needs a retransmission that is longer than the segment it repeats.
    Fault("tcp-b5-drops-overlap",
          "a segment that repeats old data and continues with new is dropped as a whole",
          "RFC 9293 section 3.10.7.4", parts(DropsOverlap)),
    Fault("tcp-b5-takes-fin-early",
          "a FIN above a gap is counted at once: the ACK is one too high while data is missing",
          "RFC 9293 section 3.10.7.4; RFC 9293 section 3.4", parts(TakesFinEarly)),
    # Needs a segment exactly at the right edge (a RST is then challenged, not dropped).
    Fault("tcp-b5-edge-inclusive",
          "a segment without data exactly at RCV.NXT+RCV.WND is taken as acceptable",
          "RFC 9293 section 3.10.7.4; RFC 5961 section 3.2", parts(EdgeInclusive)),
    Fault("tcp-b5-silent-to-empty",
          "unacceptable segments without data, as keep-alives, are not acknowledged",
          "RFC 9293 section 3.10.7.4; RFC 9293 section 3.8.4", parts(SilentToEmpty)),
    # Needs a peer that resets while the window is closed.
    Fault("tcp-b5-deaf-to-resets",
          "a RST is ignored while the receive window is zero",
          "RFC 9293 section 3.10.7.4", parts(DeafToResets)),
    # Needs two more FINs, one of them after the first 2 MSL: answered by RST then.
    Fault("tcp-b5-quiet-time-once",
          "a FIN that arrives in TIME-WAIT does not restart the 2 MSL timeout",
          "RFC 9293 section 3.10.7.4", parts(QuietTimeOnce)),
    Fault("tcp-b5-half-of-current",
          "a small segment leaves if it is half of the current window instead of the largest",
          "RFC 9293 section 3.8.6.2.1", parts(HalfOfCurrentWindow)),
    Fault("tcp-b5-no-override",
          "nothing is ever sent into a window that is open, but too small for a segment",
          "RFC 9293 section 3.8.6.2.1", parts(NoOverride)),
    # Needs several probes, a window update and then a loss.
    Fault("tcp-b5-probes-back-off",
          "window probes double the RTO itself, so that data lost after them waits far too long",
          "RFC 6298 section 5.5; RFC 6298 section 2.3", parts(ProbesBackOff)),
    # Needs a peer that shrinks its window.
    Fault("tcp-b5-edge-never-back",
          "after the peer has shrunk its window, new data is sent up to the old right edge",
          "RFC 9293 section 3.8.6; RFC 7323 section 2.4", parts(EdgeNeverBack)),
    Fault("tcp-b5-unsigned-wl2",
          "after its sequence numbers have wrapped, a sender takes no window from a silent peer",
          "RFC 9293 section 3.10.7.4; RFC 9293 section 3.4", parts(UnsignedWl2), setting="wrap"),
    Fault("tcp-b5-ack-above-next",
          "after a timeout, ACKs of what was sent before it are refused as of data never sent",
          "RFC 9293 section 3.10.7.4", parts(AckAboveNext)),
    Fault("tcp-b5-timer-runs-on",
          "the timer is not stopped when all is acknowledged, and expires early for the next data",
          "RFC 6298 section 5.2; RFC 6298 section 5.1", parts(TimerRunsOn)),
    # Needs a dozen timeouts without a pause (0 of 20, but active at 30 % loss).
    Fault("tcp-b5-counts-all-timeouts",
          "gives up after twelve timeouts in all if something has always been outstanding",
          "RFC 9293 section 3.8.3", parts(CountsAllTimeouts)),
    # Needs an echo over an idle time with cwnd above IW, then a burst from the peer.
    Fault("tcp-b5-idle-by-receipt",
          "a segment that arrives ends idleness, so that cwnd is kept when the peer speaks first",
          "RFC 5681 section 4.1", parts(IdleByReceipt)),
    Fault("tcp-b5-bsd-constant",
          "in congestion avoidance every ACK adds an eighth of a segment more",
          "RFC 5681 section 3.1", parts(BsdConstant)),
    Fault("tcp-b5-jumps-after-timeout",
          "in the slow start after a timeout one ACK of many segments raises cwnd by all of them",
          "RFC 5681 section 3.1", parts(JumpsAfterTimeout)),
    Fault("tcp-b5-limited-beyond-window",
          "limited transmit sends up to two segments beyond the offered window",
          "RFC 3042 section 2; RFC 9293 section 3.8.6", parts(LimitedBeyondWindow)),
    Fault("tcp-b5-lost-at-two",
          "data counts as lost when exactly two segments above it are held",
          "RFC 6675 section 4", parts(LostAtTwo)),
    Fault("tcp-b5-rescue-moves-highrxt",
          "after the rescue retransmission, holes below it are not retransmitted any more",
          "RFC 6675 section 4", parts(RescueMovesHighRxt)),
    Fault("tcp-b5-holes-before-new",
          "in recovery, data not known to be lost is retransmitted although new data may be sent",
          "RFC 6675 section 4", parts(HolesBeforeNew)),
    Fault("tcp-b5-old-recovery-point",
          "a timeout does not set RecoveryPoint, so that recovery halves the window again after it",
          "RFC 6675 section 5.1; RFC 6582 section 3.2", parts(OldRecoveryPoint)),
    # Needs a timeout during recovery, as when a fast retransmission is lost (0 of 20, but active at 30 % loss).
    Fault("tcp-b5-stays-in-recovery",
          "a timeout during loss recovery does not terminate it: no slow start follows",
          "RFC 6675 section 5.1; RFC 5681 section 3.1", parts(StaysInRecovery)),
    # Needs losses while the peer sends data all the time: its SACK blocks are then on data segments.
    Fault("tcp-b5-sack-of-pure-acks",
          "SACK blocks on segments that carry data are ignored",
          "RFC 2018 section 5; RFC 6675 section 2", parts(SackOfPureAcks)),
    Fault("tcp-b5-counts-on",
          "duplicates are not counted anew after recovery: the next loss waits for the timeout",
          "RFC 5681 section 3.2", parts(CountsOnAfterRecovery), setting="no-sack"),
]  # fmt: skip
