"""Round 2: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 3042 and 7323 on 2026-11-22."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, parse_packet
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

ACK, SYN, FIN, RST = int(Flags.ACK), int(Flags.SYN), int(Flags.FIN), int(Flags.RST)


def part(*classes):
    """A configuration with these classes in place of what they derive from."""

    def configure(setup):
        for each in classes:
            setup = setup.with_part(each)
        return setup

    return configure


# -- opening and options ----------------------------------------------------------------------


class ShortRepeatedSynAck(Connection):
    """A SYN-ACK that is repeated is rebuilt without Window Scale; windows stay scaled."""

    def _send_syn(self, now, *, repeated=False):
        again = self.handshake.attempts > 0 and self.receiver is not None
        super()._send_syn(now, repeated=repeated)
        if again:
            self._outbox[-1].window_scale = None


class ForgetsLostSynAck(Handshake):
    """After a lost SYN-ACK the passive side starts with its usual initial window."""

    _answering = False

    def offer(self, syn, *, answering):
        self._answering = answering
        super().offer(syn, answering=answering)

    def complete(self, now):
        rtt = super().complete(now)
        if self._answering:
            self.attempts = 1
        return rtt


class KeepsSynBackOff(RttEstimator):
    """Data start with what the back-off of the SYN left."""

    def after_lost_syn(self):
        pass


class SackBesideFullData(Handshake):
    """SACK blocks are put beside data without regard to the room that the MSS leaves."""

    def sack_room(self, payload):  # noqa: ARG002
        return super().sack_room(0)


def parse_until_unknown(octets):
    """The option loop ends at the first kind it does not know."""
    segment = parse_packet(octets)
    header = (octets[0] & 15) * 4
    raw = octets[header + 20 : header + (octets[header + 12] >> 4) * 4]
    at, stopped = 0, False
    while at < len(raw):
        kind = raw[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if stopped:
            if kind == 2:
                segment.mss = None
            elif kind == 3:
                segment.window_scale = None
            elif kind == 4:
                segment.sack_permitted = False
            elif kind == 5:
                segment.sack_blocks = ()
            elif kind == 8:
                segment.timestamps = None
        elif kind not in (2, 3, 4, 5, 8):
            stopped = True
        at += raw[at + 1]
    return segment


def stops_at_unknown(setup):
    return replace(setup, parts=replace(setup.parts, parse=parse_until_unknown))


class BadAckKillsSynReceived(Connection):
    """The RST for a wrong ACK in SYN-RECEIVED also ends the connection."""

    def _take_ack(self, segment, seq, now):
        half_open = self.state is State.SYN_RECEIVED
        goes_on = super()._take_ack(segment, seq, now)
        if half_open and not goes_on:
            self._end("wrong ACK of the SYN", now)
        return goes_on


# -- timers and round-trip times --------------------------------------------------------------


class MeasuresAnySegment(SackNewRenoRfcSender):
    """TSecr of data segments is measured although they acknowledge nothing new."""

    def on_ack(self, ack, now):
        if ack.number == self.snd_una and not ack.bare and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


class OldTimestampAgain(Connection):
    """The retransmission queue keeps segments with the TSval of their first transmission."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._stamps = {}

    def transmit(self, now):
        segments = super().transmit(now)
        for segment in segments:
            if segment.timestamps is None or not segment.payload:
                continue
            value, echo = segment.timestamps
            segment.timestamps = self._stamps.setdefault(segment.seq, value), echo
        return segments


class GivesUpProbing(SackNewRenoRfcSender):
    """Answers that still offer no window do not count as signs of life."""

    def on_ack(self, ack, now):
        silent, una, probing = self.silent_timeouts, self.snd_una, self.probes
        super().on_ack(ack, now)
        if probing and not ack.window and self.snd_una == una:
            self.silent_timeouts = silent


# -- congestion window ------------------------------------------------------------------------


class IdleSinceHeard(SackNewRenoRfcSender):
    """Idle time counts from the last segment received, which may be the request itself."""

    _heard = None

    def on_ack(self, ack, now):
        self._heard = now
        super().on_ack(ack, now)

    def restart_after_idle(self, now):
        if self._heard is None or now - self._heard > self.estimator.rto:
            super().restart_after_idle(now)


class LimitedTransmitGrows(SackNewRenoRfcSender):
    """What limited transmit sends is added to cwnd and never taken back."""

    def limited_transmit(self, now):
        before = self.snd_max
        super().limited_transmit(now)
        self.cwnd += self.snd_max - before


class InflatesWithSack(SackNewRenoRfcSender):
    """Three segments are added to ssthresh on entry, although pipe counts what has left."""

    def cwnd_entering_recovery(self):
        return self.ssthresh + self.duplicate_threshold() * self.smss


# -- loss recovery ----------------------------------------------------------------------------


class RecoverOnlyInRecovery(SackNewRenoRfcSender):
    """A timeout sets the recovery point only when a fast recovery was under way."""

    def on_timeout_in_recovery(self):
        if self.in_recovery:
            super().on_timeout_in_recovery()


class CoversExactlyRecover(SackNewRenoRfcSender):
    """Without SACK an ACK that covers no more than recover permits the next episode."""

    def may_enter_recovery(self):
        return super().may_enter_recovery() or (
            not self.sack_ok and self.snd_una - 1 == self.recover
        )


class LostAtExactlyTwo(SackNewRenoRfcSender):
    """Exactly two segments above a hole count as more than two."""

    def loss_edge(self):
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class DuplicatesAddUp(SackNewRenoRfcSender):
    """DupAcks is cleared by the end of a recovery only, not by a cumulative ACK."""

    def on_new_ack(self, ack, now):
        kept = 0 if self.in_recovery else self.dupacks
        super().on_new_ack(ack, now)
        self.dupacks = kept


class OldBlocksCount(SackNewRenoRfcSender):
    """Every ACK with SACK blocks counts as a duplicate, whether they tell anything new or not."""

    def is_duplicate_ack(self, ack, newly_held):
        if not self.sack_ok:
            return super().is_duplicate_ack(ack, newly_held)
        return ack.number == self.snd_una and bool(ack.blocks) and self.flight_size > 0


class WindowFromHighestSack(SackNewRenoRfcSender):
    """New data during recovery: the offered window begins at the highest SACKed octet."""

    def new_segment(self):
        edge = max(self.snd_una, self.scoreboard.highest) + self.snd_wnd
        octets = self.sendable(self.snd_max, min(edge - self.snd_max, self.smss))
        return (self.snd_max, self.snd_max + octets) if octets else None


class RescueMovesHighRxt(SackNewRenoRfcSender):
    """The rescue retransmission raises HighRxt."""

    def send_chosen(self, chosen, now):
        left, right = chosen
        old = left < self.snd_max
        super().send_chosen(chosen, now)
        if old:
            self.high_rxt = max(self.high_rxt, right)


class RecoveryPointMoves(SackNewRenoRfcSender):
    """Recovery ends when everything is acknowledged, what was sent meanwhile included."""

    def ends_recovery(self):
        return self.snd_una >= self.snd_max if self.sack_ok else super().ends_recovery()


class ClampsToSndNxt(SackNewRenoRfcSender):
    """After a timeout an ACK counts only up to SND.NXT, which was set back."""

    def on_ack(self, ack, now):
        if not self.probes and ack.number > self.snd_nxt:
            ack = replace(ack, number=self.snd_nxt)
        super().on_ack(ack, now)


class BlocksAcrossWrap(Connection):
    """A SACK block whose right edge is numerically below its left is discarded."""

    def _ack_part(self, segment, number, seq, now):
        ack = super()._ack_part(segment, number, seq, now)
        ack.blocks = tuple(each for each in ack.blocks if each[0] & MASK < each[1] & MASK)
        return ack


# -- acknowledgments --------------------------------------------------------------------------


class CountsOwnMss(Receiver):
    """A full-sized segment has the octets of the MSS option, timestamps or not."""

    def should_ack_now(self, *, in_order, gap):
        full = self._octets_unacked >= self.config.ack_every * self.config.mss
        return not in_order or gap or full


class DelaysTheFilling(Receiver):
    """The segment that fills the last gap counts as one segment in order, like any other."""

    _length = _before = 0

    def _take(self, seq, payload, now):
        self._length, self._before = len(payload), self._octets_unacked
        super()._take(seq, payload, now)

    def should_ack_now(self, *, in_order, gap):  # noqa: ARG002
        if in_order:
            self._octets_unacked = self._before + self._length
        return super().should_ack_now(in_order=in_order, gap=bool(self.buffer.blocks))


class SilentOnHeld(Receiver):
    """A segment that waits in the reassembly queue already is dropped without an ACK."""

    def on_text(self, seq, payload, fin, now):
        held = payload and not fin and seq > self.buffer.rcv_nxt
        if held and self.buffer.covered(seq, seq + len(payload)):
            return
        super().on_text(seq, payload, fin, now)


class GrownStaysInPlace(Reassembly):
    """Only a new block comes first; one that grows stays where it is in the list."""

    def insert(self, seq, payload):
        before, in_order = self.blocks, seq <= self.rcv_nxt
        super().insert(seq, payload)
        if in_order or not self.blocks:
            return
        grown, *others = self.blocks
        places = [at for at, each in enumerate(before) if grown[0] <= each[0] < grown[1]]
        if places:
            others.insert(places[0], grown)
            self.blocks = others


class DsackWhileGap(Receiver):
    """A D-SACK is forgotten only by an ACK without a gap."""

    def note_ack_sent(self, *, complete=True):
        kept = self._duplicate if self.buffer.blocks else None
        super().note_ack_sent(complete=complete)
        if kept is not None:
            self._duplicate = kept


class TimerSurvivesPiggyback(Receiver):
    """An ACK that leaves with data does not stop the timer of the delayed ACK."""

    def note_ack_sent(self, *, complete=True):
        pending, due = self.ack_deadline, self.ack_now
        super().note_ack_sent(complete=complete)
        if not due:
            self.ack_deadline = pending


class DelayBeginsAnew(Receiver):
    """Each small segment starts the delay of the ACK anew."""

    def _take(self, seq, payload, now):
        running = self.ack_deadline is not None
        super()._take(seq, payload, now)
        if running and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class Rfc1323Length(Connection):
    """Tells the receiver how long a segment is, for the rule below."""

    def _receive_synchronized(self, segment, receiver, now):
        receiver.arriving = segment.sequence_length
        super()._receive_synchronized(segment, receiver, now)


class Rfc1323Echo(Receiver):
    """TS.Recent only from a segment that spans Last.ACK.sent, as RFC 1323 had it."""

    arriving = 0

    def note_timestamp(self, tsval, seq, now):
        if self._last_ack_sent < seq + self.arriving:
            super().note_timestamp(tsval, seq, now)


class OldAckDropsData(Connection):
    """A segment with an ACK below SND.UNA is dropped with its data."""

    def _take_ack(self, segment, seq, now):
        una = self.sender.snd_una
        if self.state is not State.SYN_RECEIVED and unwrap(segment.ack, una) < una:
            return False
        return super()._take_ack(segment, seq, now)


# -- windows ----------------------------------------------------------------------------------


class HeldShrinksWindow(Receiver):
    """Octets held out of order are taken off the window, whose edge so moves back."""

    def window_field(self):
        field = super().window_field()
        held = sum(right - left for left, right in self.buffer.blocks)
        return max(0, field - (held >> self.window_shift))


class SillyFromZero(Receiver):
    """A closed window opens by whatever is free."""

    def update_edge(self):
        super().update_edge()
        if self.edge <= self.rcv_nxt:
            self.edge = max(self.edge, self.rcv_nxt + self.free_room())


class HalfOfCurrentWindow(SackNewRenoRfcSender):
    """SWS avoidance with half of the current instead of the largest window."""

    def update_window(self, ack):
        moved = super().update_window(ack)
        self.max_snd_wnd = self.snd_wnd
        return moved


class WindowFromOldAck(SackNewRenoRfcSender):
    """The window of an ACK below SND.UNA is taken although its number is ignored."""

    def on_ack(self, ack, now):
        super().on_ack(ack, now)
        if ack.number < self.snd_una and ack.window != self.snd_wnd:
            self.snd_wnd = ack.window
            self.output(now)


class EdgeNeverBack(SackNewRenoRfcSender):
    """A window that the peer has shrunk is used as it was offered before."""

    def update_window(self, ack):
        edge = self.right_edge
        moved = super().update_window(ack)
        self.snd_wnd = max(self.snd_wnd, edge - ack.number)
        return moved


class NothingAtZero(Receiver):
    """With a window of zero not even an empty segment at RCV.NXT is acceptable."""

    def is_acceptable(self, seq, length):
        return self.edge > self.rcv_nxt and super().is_acceptable(seq, length)


# -- closing and resets -----------------------------------------------------------------------


class SilentAfterFin(Connection):
    """Once the peer's FIN is in, what lies outside the window is dropped without an ACK."""

    def _receive_unacceptable(self, segment, seq, receiver, now):
        if self.state not in (State.CLOSE_WAIT, State.CLOSING, State.LAST_ACK):
            super()._receive_unacceptable(segment, seq, receiver, now)


class ResetNeedsTimestamps(Connection):
    """A RST without timestamps is dropped like other segments without them."""

    def receive(self, segment, now):
        agreed = self.receiver is not None and self.receiver.ts_recent is not None
        if agreed and segment.flags & RST and segment.timestamps is None:
            return
        super().receive(segment, now)


class ResetAtHighestSack(Connection):
    """A RST at the end of the highest block held is taken for exact."""

    def receive(self, segment, now):
        receiver = self.receiver
        if segment.flags & RST and receiver is not None and receiver.buffer.blocks:
            highest = max(right for _, right in receiver.buffer.blocks)
            if unwrap(segment.seq, receiver.rcv_nxt) == highest < receiver.edge:
                self._end("the peer reset the connection", now)
                return
        super().receive(segment, now)


FAULTS = [
    Fault("tcp-b2-synack-no-scale", "a repeated SYN-ACK lacks Window Scale, yet later windows are scaled",
          "RFC 7323 section 2.2; RFC 7323 section 2.3", part(ShortRepeatedSynAck)),
    Fault("tcp-b2-synack-lost-iw", "after a lost SYN-ACK the passive side starts with more than one segment",
          "RFC 5681 section 3.1", part(ForgetsLostSynAck)),
    Fault("tcp-b2-syn-backoff-kept", "after a lost SYN, data start with an RTO below three seconds or backed off",
          "RFC 6298 section 5.7", part(KeepsSynBackOff)),
    Fault("tcp-b2-sack-beside-data", "full data segments carry SACK blocks too and exceed the peer's MSS",
          "RFC 9293 section 3.7.1; RFC 6691 section 2", part(SackBesideFullData)),
    # Needs a peer that puts an option of an unknown kind before others.
    Fault("tcp-b2-unknown-ends-options", "options after one of unknown kind are not read",
          "RFC 9293 section 3.1; RFC 9293 section 3.2", stops_at_unknown),
    # Needs a peer that answers the SYN-ACK with a wrong ACK, then with the right one.
    Fault("tcp-b2-bad-ack-ends", "a wrong ACK in SYN-RECEIVED ends the connection, not only draws a RST",
          "RFC 9293 section 3.10.7.4", part(BadAckKillsSynReceived)),
    Fault("tcp-b2-rttm-any", "the RTT is measured by data segments that acknowledge nothing new",
          "RFC 7323 section 4.1", part(MeasuresAnySegment)),
    Fault("tcp-b2-old-tsval", "a retransmission carries the TSval of the first transmission",
          "RFC 7323 section 3.2; RFC 7323 section 5.4", part(OldTimestampAgain)),
    # Needs a window that stays closed for about seven minutes while probes are answered.
    Fault("tcp-b2-zero-window-abort", "a peer that answers every probe with a closed window is given up",
          "RFC 9293 section 3.8.6.1", part(GivesUpProbing)),
    # Needs a cwnd above the initial window, a pause of more than an RTO, then a request echoed at length.
    Fault("tcp-b2-idle-since-heard", "idle time is counted from the last segment received",
          "RFC 5681 section 4.1", part(IdleSinceHeard)),
    Fault("tcp-b2-limited-grows", "limited transmit raises cwnd",
          "RFC 3042 section 2; RFC 5681 section 3.2", part(LimitedTransmitGrows)),
    Fault("tcp-b2-inflated-sack", "with SACK, recovery begins with cwnd three segments above ssthresh",
          "RFC 6675 section 5", part(InflatesWithSack)),
    # Needs a timeout outside recovery, then SACKs of what was sent before it, after a cumulative ACK.
    Fault("tcp-b2-timeout-no-recover", "a timeout outside recovery sets no recovery point",
          "RFC 6675 section 5.1; RFC 6582 section 3.2", part(RecoverOnlyInRecovery)),
    Fault("tcp-b2-exactly-recover", "without SACK, an ACK of exactly recover permits a fast retransmit",
          "RFC 6582 section 3.2", part(CoversExactlyRecover), setting="no-sack"),
    Fault("tcp-b2-lost-at-two", "exactly two SACKed segments above a hole make it lost",
          "RFC 6675 section 4", part(LostAtExactlyTwo)),
    Fault("tcp-b2-dupacks-add-up", "duplicate ACKs are counted across cumulative ACKs",
          "RFC 6675 section 5", part(DuplicatesAddUp)),
    Fault("tcp-b2-old-blocks-count", "ACKs whose SACK blocks tell nothing new count as duplicates",
          "RFC 6675 section 2", part(OldBlocksCount)),
    Fault("tcp-b2-window-from-sack", "in recovery, new data exceed the offered window by what is SACKed",
          "RFC 6675 section 4; RFC 9293 section 3.8.6", part(WindowFromHighestSack)),
    Fault("tcp-b2-rescue-highrxt", "after a rescue retransmission the holes below it are not retransmitted",
          "RFC 6675 section 4", part(RescueMovesHighRxt)),
    Fault("tcp-b2-recovery-point-moves", "recovery does not end at the RecoveryPoint but when all is acknowledged",
          "RFC 6675 section 5", part(RecoveryPointMoves)),
    Fault("tcp-b2-ack-clamped", "after a timeout, ACKs above SND.NXT count only up to it; acknowledged data go again",
          "RFC 9293 section 3.10.7.4", part(ClampsToSndNxt)),
    # Needs a loss just where the numbers wrap.
    Fault("tcp-b2-sack-across-wrap", "a SACK block across 2^32 is discarded",
          "RFC 2018 section 5; RFC 9293 section 3.4", part(BlocksAcrossWrap), setting="wrap"),
    Fault("tcp-b2-own-mss-counts", "with timestamps only every third full segment is acknowledged at once",
          "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", part(CountsOwnMss)),
    Fault("tcp-b2-filling-delayed", "the segment that fills the last gap gets a delayed ACK",
          "RFC 5681 section 4.2", part(DelaysTheFilling)),
    Fault("tcp-b2-held-silent", "a duplicate of a segment held out of order gets no ACK",
          "RFC 5681 section 4.2; RFC 9293 section 3.10.7.4", part(SilentOnHeld)),
    Fault("tcp-b2-grown-in-place", "the block that a segment extends is not reported first",
          "RFC 2018 section 4", part(GrownStaysInPlace)),
    Fault("tcp-b2-dsack-while-gap", "while there is a gap, every ACK repeats the last D-SACK",
          "RFC 2883 section 4", part(DsackWhileGap)),
    Fault("tcp-b2-piggyback-timer", "after an ACK with data the delayed ACK follows all the same",
          "RFC 5681 section 4.2", part(TimerSurvivesPiggyback)),
    # Needs a large segment, then small ones to discard that are less than the delay (0.2 s) apart.
    Fault("tcp-b2-delay-anew", "small segments in a row put off the ACK beyond half a second",
          "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", part(DelayBeginsAnew)),
    Fault("tcp-b2-rfc1323-echo", "pure ACKs never change TS.Recent",
          "RFC 7323 section 4.3", part(Rfc1323Length, Rfc1323Echo)),
    Fault("tcp-b2-old-ack-data", "data on a segment with an old ACK number are dropped",
          "RFC 9293 section 3.10.7.4", part(OldAckDropsData)),
    Fault("tcp-b2-held-shrinks", "data out of order shrink the offered window",
          "RFC 9293 section 3.8.6", part(HeldShrinksWindow)),
    Fault("tcp-b2-silly-from-zero", "a closed window opens by less than a segment",
          "RFC 9293 section 3.8.6.2.2", part(SillyFromZero)),
    Fault("tcp-b2-half-of-current", "small segments fill half of a window that is small now",
          "RFC 9293 section 3.8.6.2.1", part(HalfOfCurrentWindow)),
    # Needs ACKs with different windows that overtake each other while the window limits.
    Fault("tcp-b2-old-ack-window", "the window of an overtaken ACK is used",
          "RFC 9293 section 3.10.7.4", part(WindowFromOldAck)),
    # Needs a peer that shrinks its window; the reference never does.
    Fault("tcp-b2-edge-never-back", "after the peer has shrunk its window, new data beyond it are sent",
          "RFC 9293 section 3.8.6", part(EdgeNeverBack)),
    Fault("tcp-b2-nothing-at-zero", "with a window of zero, empty ACKs at RCV.NXT are answered and RSTs ignored",
          "RFC 9293 section 3.10.7.4", part(NothingAtZero)),
    Fault("tcp-b2-fin-silent", "a repeated FIN in CLOSE-WAIT, CLOSING or LAST-ACK gets no ACK",
          "RFC 9293 section 3.10.7.4", part(SilentAfterFin)),
    Fault("tcp-b2-rst-timestamps", "a RST without timestamps is ignored",
          "RFC 7323 section 3.2; RFC 7323 section 5.3", part(ResetNeedsTimestamps)),
    # Needs a peer that sends a RST at the right edge of a SACK block.
    Fault("tcp-b2-rst-at-sack", "a RST at the right edge of the highest block held resets",
          "RFC 9293 section 3.10.7.4; RFC 5961 section 3.2", part(ResetAtHighestSack)),
]  # fmt: skip
