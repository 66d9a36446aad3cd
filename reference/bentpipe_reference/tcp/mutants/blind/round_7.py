"""Round 7: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 3042, 6928, 7323 and 5961 on 2026-11-22.

Faults that the twenty transfers may not activate, and why they are faults all the same:

* tsrecent-wrap, wrapped-block: the peer's timestamps or sequence numbers must wrap during the connection;
* rst-timestamp, stale-ack, rst-last-ack, ack-of-iss, short-option, edge-inclusive: the peer (or an attacker, or a
  very old duplicate) must send an unusual segment;
* default-mss-timestamps: the peer's SYN has no MSS option; go-back-n-timed: the peer does no timestamps;
* fin-overlap: the peer puts new boundaries around what it retransmits;
* closed-window-ack, shrunk-window, silly-half, probe-backoff-kept, half-closed-probe, limited-beyond-window,
  duplicate-needs-window: the peer's window closes, shrinks or changes, or ours closes (echo);
* closing-closed, fin-wait-2-delay: both ends close at once, or the peer sends on after our FIN (daytime);
* piggyback-last-ack, sack-over-mss: data both ways (echo);
* duplicate-keeps-order, four-blocks: the peer repeats what is held, or fills the upper holes first; five blocks or more;
* delay-restarted, idle-since-heard: small segments slowly, or a pause, then data again (echo);
* lone-fin: a FIN sent by itself is lost (daytime);
* syn-ack-*: the SYN-ACK is lost, perhaps several times, or the first data after it too.
"""

from __future__ import annotations

import dataclasses
import math

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire import Flags, Segment, parse_packet
from bentpipe_reference.tcp.wire.options import parse_options
from bentpipe_reference.tcp.wire.sequence import MASK, before, unwrap

_ACK, _SYN, _RST = int(Flags.ACK), int(Flags.SYN), int(Flags.RST)

# -- opening ----------------------------------------------------------------------------------


class SynAckTimeoutKept(Handshake):
    """The three seconds of rule 5.7 belong to the active opener only."""

    _passive = False

    def take_options(self, syn):
        if self.attempts == 0:
            self._passive = True
        super().take_options(syn)

    def complete(self, now):
        if self._passive and self.attempts > 1:
            self.deadline = None
            return None
        return super().complete(now)


class ScaledSynAck(Connection):
    """The retransmission path of the SYN-ACK fills in the window like that of any segment."""

    def _send_syn(self, now, *, repeated=False):
        again = self.receiver is not None and self.handshake.attempts > 0
        super()._send_syn(now, repeated=repeated)
        if again:
            self._outbox[-1].window = self.receiver.window_field()


class RepeatIsNoLoss(Handshake):
    """A SYN-ACK sent again because the peer repeated its SYN is not counted as a retransmission."""

    def sent(self, now, *, repeated):
        attempts = self.attempts
        super().sent(now, repeated=repeated)
        if repeated:
            self.attempts = attempts


class FiveSynAcks(Connection):
    """A half-open connection is dropped after five retransmissions of its SYN-ACK, 63 seconds."""

    def advance(self, now):
        due = now >= (self.handshake.deadline or math.inf)
        if due and self.state is State.SYN_RECEIVED and self.handshake.attempts > 5:
            self._end("the peer does not complete the handshake", now)
            return
        super().advance(now)


class AckOfIss(Connection):
    """SYN-RECEIVED tests SND.UNA =< SEG.ACK, with SND.UNA = ISS."""

    def _take_ack(self, segment, seq, now):
        sender = self.sender
        if self.state is State.SYN_RECEIVED and unwrap(segment.ack, sender.snd_una) == sender.iss:
            self._established(segment, now)
            return True
        return super()._take_ack(segment, seq, now)


# -- options ----------------------------------------------------------------------------------


class DefaultMssWithoutTimestamps(Handshake):
    """Timestamps are taken off an announced MSS, but not off the default one."""

    _announced = True

    def take_options(self, syn):
        self._announced = syn.mss is not None
        super().take_options(syn)

    def smss(self):
        if self._announced:
            return super().smss()
        return max(1, min(self._peer_mss, self._config.mss))


class SackOverMss(Handshake):
    """SACK blocks are limited by the header, not by what the payload leaves of the MSS."""

    def sack_room(self, payload):
        return super().sack_room(0)


_KNOWN = (2, 3, 4, 5, 8)


def parse_short_option_as_end(octets: bytes) -> Segment:
    """An unknown option needs a length above 2, or the list ends there."""
    segment = parse_packet(octets)
    if not segment.unknown:
        return segment
    tcp = octets[(octets[0] & 15) * 4 :]
    raw = tcp[20 : (tcp[12] >> 4) * 4]
    at = 0
    while at < len(raw) and raw[at] != 0:
        if raw[at] == 1:
            at += 1
            continue
        if raw[at] not in _KNOWN and raw[at + 1] == 2:
            segment.mss = segment.window_scale = segment.timestamps = None
            segment.sack_permitted = False
            segment.sack_blocks = ()
            parse_options(raw[:at], segment)
            break
        at += raw[at + 1]
    return segment


def short_option(setup: Setup) -> Setup:
    return dataclasses.replace(
        setup, parts=dataclasses.replace(setup.parts, parse=parse_short_option_as_end)
    )


# -- timestamps -------------------------------------------------------------------------------


class RstTimestamp(Connection):
    """TS.Recent is taken from every segment in the window, before anything looks at RST."""

    def _receive_synchronized(self, segment, receiver, now):
        if segment.flags & _RST and segment.timestamps is not None:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            recent = receiver.ts_recent
            acceptable = receiver.is_acceptable(seq, segment.sequence_length)
            if acceptable and recent is not None and before(recent, segment.timestamps[0]):
                receiver.echo_timestamp(segment.timestamps[0], now)
        super()._receive_synchronized(segment, receiver, now)


class PiggybackLastAck(Connection):
    """Last.ACK.sent is set where pure acknowledgments are made, not where data carries one."""

    def _put(self, seq, flags, now, payload=b""):
        receiver = self.receiver
        kept = None if receiver is None else receiver._last_ack_sent
        super()._put(seq, flags, now, payload)
        if receiver is not None and payload:
            receiver._last_ack_sent = kept


class StaleAck(Connection):
    """PAWS throws away text and control bits, but the acknowledgment is processed first."""

    def _receive_synchronized(self, segment, receiver, now):
        flags = segment.flags
        if (
            self.state is not State.SYN_RECEIVED
            and flags & (_ACK | _SYN | _RST) == _ACK
            and receiver.ts_recent is not None
            and segment.timestamps is not None
            and receiver.is_stale_timestamp(segment.timestamps[0], now)
        ):
            receiver.ack_now = True
            self._take_ack(segment, unwrap(segment.seq, receiver.rcv_nxt), now)
            return
        super()._receive_synchronized(segment, receiver, now)


class RecentByMagnitude(Receiver):
    """PAWS compares modulo 2**32, the update of TS.Recent as plain numbers."""

    def note_timestamp(self, tsval, seq, now):
        if self.ts_recent is not None and tsval < self.ts_recent:
            return
        super().note_timestamp(tsval, seq, now)


class BlockInsteadOfTimestamp(Connection):
    """With more than three blocks the Timestamps option makes room for the fourth."""

    def _put(self, seq, flags, now, payload=b""):
        super()._put(seq, flags, now, payload)
        segment, receiver = self._outbox[-1], self.receiver
        if receiver is None or payload or segment.timestamps is None:
            return
        if len(segment.sack_blocks) == 3 and len(receiver.buffer.blocks) > 3:
            segment.timestamps = None
            segment.sack_blocks = tuple((a & MASK, b & MASK) for a, b in receiver.buffer.blocks[:4])


class OldTsval(Connection):
    """Retransmissions leave with the TSval of the first transmission."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._built = {}

    def _put(self, seq, flags, now, payload=b""):
        super()._put(seq, flags, now, payload)
        segment = self._outbox[-1]
        if not payload or segment.timestamps is None:
            return
        key = seq, len(payload)
        if key in self._built:
            segment.timestamps = self._built[key], segment.timestamps[1]
            return
        self._built[key] = segment.timestamps[0]
        if len(self._built) > 1000:
            una = self.sender.snd_una
            self._built = {k: v for k, v in self._built.items() if sum(k) > una}


# -- receiving --------------------------------------------------------------------------------


class DelayStartsAgain(Receiver):
    """Every further segment starts the delay of the acknowledgment anew."""

    def _take(self, seq, payload, now):
        ran = self.ack_deadline is not None
        super()._take(seq, payload, now)
        if ran and self.ack_deadline is not None:
            self.ack_deadline = now + self.delayed_ack_interval()


class FullSizedIsMss(Receiver):
    """Two full-sized segments are twice the MSS option, which no segment with timestamps reaches."""

    def should_ack_now(self, *, in_order, gap):
        full = self._octets_unacked >= self.config.ack_every * self.config.mss
        return not in_order or gap or full


class FinOverlap(Receiver):
    """Trimming the front of a segment loses its FIN."""

    def on_text(self, seq, payload, fin, now):
        if fin and payload and seq < self.buffer.rcv_nxt and self.fin_seq is None:
            fin = False
        super().on_text(seq, payload, fin, now)


class ClosedWindowAck(Connection):
    """Data on a closed window is answered, but its acknowledgment and window are not looked at."""

    def _receive_unacceptable(self, segment, seq, receiver, now):
        if receiver.edge <= receiver.rcv_nxt and not segment.flags & (_SYN | _RST):
            segment = dataclasses.replace(segment, flags=segment.flags & ~_ACK)
        super()._receive_unacceptable(segment, seq, receiver, now)


class DuplicateKeepsOrder(Reassembly):
    """Only a segment with something new moves its block to the front."""

    def insert(self, seq, payload):
        if seq > self.rcv_nxt and self.covered(seq, seq + len(payload)):
            return
        super().insert(seq, payload)


class FourBlocks(Reassembly):
    """The list of blocks has four places; a fifth pushes the oldest out for good."""

    def insert(self, seq, payload):
        in_order = seq <= self.rcv_nxt
        super().insert(seq, payload)
        if in_order and self._pieces:
            self._fill()
        self.blocks = self.blocks[:4]


class WrappedBlock(Receiver):
    """A block whose right edge is numerically below its left edge is not reported."""

    def sack_blocks_to_send(self, most):
        blocks = super().sack_blocks_to_send(1 << 20)
        return tuple(b for b in blocks if b[0] & MASK < b[1] & MASK)[:most]


class EdgeInclusive(Receiver):
    """A segment without text is acceptable up to and including RCV.NXT + RCV.WND."""

    def is_acceptable(self, seq, length):
        if length == 0 and seq == self.edge > self.rcv_nxt:
            return True
        return super().is_acceptable(seq, length)


# -- sending and windows ----------------------------------------------------------------------


class SillyHalf(SackNewRenoRfcSender):
    """Half of the window offered now is enough, not half of the largest one."""

    def sendable(self, seq, usable):
        largest, self.max_snd_wnd = self.max_snd_wnd, self.snd_wnd
        try:
            return super().sendable(seq, usable)
        finally:
            self.max_snd_wnd = largest


class ProbeBackoffKept(SackNewRenoRfcSender):
    """The back-off of window probes goes on where the last closed window left it."""

    _all_probes = 0

    def on_probe_due(self, now):
        if not self.snd_wnd:
            self._all_probes += 1
        super().on_probe_due(now)

    def zero_window_probe_interval(self, probes):
        return super().zero_window_probe_interval(min(self._all_probes, 20))


class ShrunkWindow(SackNewRenoRfcSender):
    """The usable window is unsigned: negative is much."""

    def send_window(self):
        if self.snd_wnd < self.outstanding():
            return self.cwnd
        return super().send_window()


class HalfClosedProbe(Connection):
    """The persist timer is off as soon as the peer's FIN has arrived."""

    def _no_persist(self):
        if self.receiver is not None and self.receiver.fin_received:
            self.sender.persist_deadline = None

    def transmit(self, now):
        self._no_persist()
        return super().transmit(now)

    def next_deadline(self):
        self._no_persist()
        return super().next_deadline()

    def advance(self, now):
        self._no_persist()
        super().advance(now)


class IdleSinceHeard(SackNewRenoRfcSender):
    """Idle means that nothing was received either."""

    _heard = 0.0

    def on_ack(self, ack, now):
        self._heard = now
        super().on_ack(ack, now)

    def restart_after_idle(self, now):
        if now - self._heard > self.estimator.rto:
            super().restart_after_idle(now)


class LimitedBeyondWindow(SackNewRenoRfcSender):
    """The segment of limited transmit may lie one segment beyond the offered window."""

    def limited_transmit(self, now):
        offered = self.snd_wnd
        self.snd_wnd = max(offered, self.flight_size + self.smss)
        try:
            super().limited_transmit(now)
        finally:
            self.snd_wnd = offered


# -- loss recovery ----------------------------------------------------------------------------


class RunsOnly(SackNewRenoRfcSender):
    """IsLost counts discontiguous blocks, not octets."""

    def loss_edge(self):
        edge = self.scoreboard.loss_edge(self.duplicate_threshold(), 1 << 60)
        return self.snd_una if edge is None else edge


class RescueFromTheLeft(SackNewRenoRfcSender):
    """The rescue retransmission is the first segment of the last hole, not its last."""

    def rescue_segment(self):
        chosen = super().rescue_segment()
        if chosen is None:
            return None
        left, right = self.scoreboard.gaps(self.snd_una, self.snd_max)[-1]
        left = max(left, min(self.high_rxt, right - 1))
        return left, min(right, left + self.smss)


class SecondTimeoutRecover(SackNewRenoRfcSender):
    """A timeout records SND.NXT, which an earlier timeout has set back."""

    def on_timeout_in_recovery(self):
        self.recover = self.snd_nxt - 1


class DuplicateNeedsWindow(SackNewRenoRfcSender):
    """RFC 5681's "same window" outlives the change to RFC 6675's duplicate ACK."""

    def is_duplicate_ack(self, ack, newly_held):
        return super().is_duplicate_ack(ack, newly_held) and ack.window == self.snd_wnd


class BlocksOfDuplicatesOnly(SackNewRenoRfcSender):
    """The blocks of an ACK that advances SND.UNA are not read."""

    def take_sack(self, ack):
        return 0 if ack.number > self.snd_una else super().take_sack(ack)


class LeapAfterTimeout(SackNewRenoRfcSender):
    """While a timeout is repaired an ACK adds all it covers, also what had arrived before."""

    def slow_start_increase(self, acked):
        if self.snd_una <= self.recover:
            self.octets_acked = 0
            return acked
        return super().slow_start_increase(acked)


# -- timers -----------------------------------------------------------------------------------


class DuplicatesMeasure(SackNewRenoRfcSender):
    """Every acknowledgment with a timestamp is a measurement while data is outstanding."""

    def on_ack(self, ack, now):
        if ack.number == self.snd_una and self.flight_size and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


class GoBackNTimed(SackNewRenoRfcSender):
    """After a timeout only the first segment counts as retransmitted for Karn's rule."""

    def transmit(self, seq, end, now):
        again = self.snd_una < seq < self.snd_max and not self.in_recovery
        timed = self.timed
        super().transmit(seq, end, now)
        if again:
            self.timed = timed or (end, now)


class LoneFinWithoutTimer(SackNewRenoRfcSender):
    """The timer stops when all octets are acknowledged, with the FIN still outstanding."""

    def restart_rto(self, now):
        super().restart_rto(now)
        if self.fin_queued and self.snd_una == self.data_end:
            self.rto_deadline = None


# -- closing and resets -----------------------------------------------------------------------


class ClosingClosed(Connection):
    """CLOSING is left like LAST-ACK."""

    def _happen(self, happening, now):
        if self.state is State.CLOSING and happening is Happening.FIN_ACKNOWLEDGED:
            happening = Happening.ENDED
        super()._happen(happening, now)


class FinWait2Delay(Connection):
    """The timer of delayed acknowledgments does not run in FIN-WAIT-2."""

    def _no_delay(self):
        if self.state is State.FIN_WAIT_2 and self.receiver is not None:
            self.receiver.ack_deadline = None

    def transmit(self, now):
        self._no_delay()
        return super().transmit(now)

    def next_deadline(self):
        self._no_delay()
        return super().next_deadline()

    def advance(self, now):
        self._no_delay()
        super().advance(now)


class RstLastAck(Connection):
    """A RST is exact when it is at Last.ACK.sent."""

    def _receive_synchronized(self, segment, receiver, now):
        if segment.flags & _RST:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if seq == receiver.rcv_nxt and seq != receiver._last_ack_sent:
                receiver.ack_now = True
                return
        super()._receive_synchronized(segment, receiver, now)


def _part(part):
    return lambda setup: setup.with_part(part)


def _fault(name, title, clause, part):
    return Fault("tcp-b7-" + name, title, clause, part if part is short_option else _part(part))


FAULTS = [
    _fault("syn-ack-timeout-kept",
           "a retransmitted SYN-ACK leaves the backed-off timeout, 2 s, for the data; only a SYN makes it 3 s",
           "RFC 6298 section 5.7", SynAckTimeoutKept),
    _fault("syn-ack-scaled", "the window field of a retransmitted SYN-ACK is scaled",
           "RFC 7323 section 2.2", ScaledSynAck),
    _fault("syn-ack-repeat-no-loss",
           "a SYN-ACK repeated because the SYN came again leaves the full initial window and is measured",
           "RFC 5681 section 3.1; RFC 6928 section 2", RepeatIsNoLoss),
    _fault("syn-ack-five", "the SYN-ACK is given up after 63 seconds",
           "RFC 9293 section 3.8.3", FiveSynAcks),
    _fault("ack-of-iss", "in SYN-RECEIVED an acknowledgment of ISS, which covers nothing, establishes",
           "RFC 9293 section 3.10.7.4", AckOfIss),
    _fault("default-mss-timestamps",
           "without an MSS option segments have 536 octets of data besides the timestamps",
           "RFC 9293 section 3.7.1; RFC 6691 section 2", DefaultMssWithoutTimestamps),
    _fault("sack-over-mss", "a full segment of data gets SACK blocks on top and exceeds the MSS",
           "RFC 9293 section 3.7.1; RFC 6691 section 2", SackOverMss),
    _fault("short-option", "an unknown option of length 2 ends the list, what follows it is not seen",
           "RFC 9293 section 3.1", short_option),
    _fault("rst-timestamp", "an inexact RST in the window sets TS.Recent",
           "RFC 7323 section 5.2", RstTimestamp),
    _fault("piggyback-last-ack",
           "Last.ACK.sent does not follow acknowledgments carried by data, so that TS.Recent falls behind",
           "RFC 7323 section 4.3", PiggybackLastAck),
    _fault("stale-ack", "the acknowledgment of a segment that PAWS rejects is processed",
           "RFC 7323 section 5.3", StaleAck),
    _fault("tsrecent-wrap", "TS.Recent stays where it is once the peer's timestamps have wrapped",
           "RFC 7323 section 4.3; RFC 7323 section 5.2", RecentByMagnitude),
    _fault("block-for-timestamp", "an acknowledgment with a fourth SACK block has no Timestamps option",
           "RFC 7323 section 3.2", BlockInsteadOfTimestamp),
    _fault("old-tsval", "a retransmission carries the TSval of the first transmission",
           "RFC 7323 section 3.2; RFC 7323 section 4.1", OldTsval),
    _fault("delay-restarted",
           "small segments put off the delayed acknowledgment each time, beyond half a second",
           "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", DelayStartsAgain),
    _fault("full-sized-mss", "with timestamps every third full-sized segment is acknowledged",
           "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", FullSizedIsMss),
    _fault("fin-overlap", "the FIN of a segment that begins with old octets is ignored",
           "RFC 9293 section 3.10.7.4", FinOverlap),
    _fault("closed-window-ack", "with a closed window the acknowledgment of a segment with data is ignored",
           "RFC 9293 section 3.10.7.4", ClosedWindowAck),
    _fault("duplicate-keeps-order",
           "a repeated segment beyond a gap does not bring its block to the front",
           "RFC 2018 section 4", DuplicateKeepsOrder),
    _fault("four-blocks", "of more than four blocks the oldest are never reported again",
           "RFC 2018 section 4", FourBlocks),
    _fault("wrapped-block", "a block that spans the wrap of the sequence numbers is not reported",
           "RFC 2018 section 4; RFC 9293 section 3.4", WrappedBlock),
    _fault("edge-inclusive", "a segment without text one past the window is taken as acceptable",
           "RFC 9293 section 3.10.7.4", EdgeInclusive),
    _fault("silly-half", "a small segment is sent when it fills half of the present window",
           "RFC 9293 section 3.8.6.2.1", SillyHalf),
    _fault("probe-backoff-kept", "a second closed window begins with the probe interval that ended the first",
           "RFC 9293 section 3.8.6.1", ProbeBackoffKept),
    _fault("shrunk-window", "a window that shrinks below what is outstanding is no limit",
           "RFC 9293 section 3.8.6", ShrunkWindow),
    _fault("half-closed-probe", "a closed window is not probed after the peer's FIN",
           "RFC 9293 section 3.8.6.1", HalfClosedProbe),
    _fault("idle-since-heard",
           "a segment received just before ends the idle period, cwnd is not reduced",
           "RFC 5681 section 4.1", IdleSinceHeard),
    _fault("limited-beyond-window", "limited transmit sends beyond the offered window",
           "RFC 3042 section 2; RFC 6675 section 5", LimitedBeyondWindow),
    _fault("runs-only", "one long block above a hole never makes it count as lost",
           "RFC 6675 section 4", RunsOnly),
    _fault("rescue-left", "the rescue retransmission does not include the highest missing octet",
           "RFC 6675 section 4", RescueFromTheLeft),
    _fault("second-timeout-recover",
           "a second timeout lowers the recovery point to what was repeated since the first",
           "RFC 6675 section 5.1; RFC 6582 section 3.2", SecondTimeoutRecover),
    _fault("duplicate-needs-window",
           "an ACK with new SACK blocks is no duplicate when its window differs",
           "RFC 6675 section 2", DuplicateNeedsWindow),
    _fault("blocks-of-duplicates", "the SACK blocks of an ACK of new data are ignored",
           "RFC 6675 section 5", BlocksOfDuplicatesOnly),
    _fault("leap-after-timeout",
           "in the slow start after a timeout an ACK may add much more than a segment to cwnd",
           "RFC 5681 section 3.1", LeapAfterTimeout),
    _fault("duplicates-measure", "ACKs that do not advance SND.UNA give round-trip measurements",
           "RFC 7323 section 4.1", DuplicatesMeasure),
    _fault("go-back-n-timed", "without timestamps the later retransmissions after a timeout are measured",
           "RFC 6298 section 3", GoBackNTimed),
    _fault("lone-fin", "a FIN that was sent by itself is not retransmitted once the data is acknowledged",
           "RFC 6298 section 5.3; RFC 9293 section 3.8.1", LoneFinWithoutTimer),
    _fault("closing-closed", "after a simultaneous close there is no TIME-WAIT, a repeated FIN gets a RST",
           "RFC 9293 section 3.10.7.4", ClosingClosed),
    _fault("fin-wait-2-delay", "in FIN-WAIT-2 a single segment is never acknowledged",
           "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", FinWait2Delay),
    _fault("rst-last-ack", "an exact RST only draws a challenge ACK while an acknowledgment is delayed",
           "RFC 5961 section 3.2; RFC 9293 section 3.10.7.4", RstLastAck),
]  # fmt: skip
