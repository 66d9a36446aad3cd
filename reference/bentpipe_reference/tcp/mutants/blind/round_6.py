"""Round 6: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 7323, 6691 and 5961 on 2026-11-22."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import (
    SACK_BLOCK_OCTETS,
    SACK_OVERHEAD_OCTETS,
    TIMESTAMP_OCTETS,
    Handshake,
)
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender as Base
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire.options import MAXIMUM_OCTETS
from bentpipe_reference.tcp.wire.segment import Flags
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))

# -- opening and options ------------------------------------------------------------------------


class WideAfterLostSynAck(Connection):
    """Only the end that opened remembers that its SYN was lost."""

    def _established(self, segment, now):
        if self.state is State.SYN_RECEIVED:
            self.sender.loss_window = self.sender.initial_window
        super()._established(segment, now)
        self.sender.__dict__.pop("loss_window", None)


class PlainSecondSynAck(Connection):
    """The fallback SYN-ACK is bare of timestamps; the connection's state is not told."""

    def _send_syn(self, now, *, repeated=False):
        again = self.handshake.attempts > 0 and self.receiver is not None
        super()._send_syn(now, repeated=repeated)
        if again:
            self._outbox[-1].timestamps = None


class BlocksBesideData(Handshake):
    """Room for SACK is what the header has, whatever the payload."""

    def sack_room(self, payload):
        options = MAXIMUM_OCTETS - (TIMESTAMP_OCTETS if self.timestamps_ok else 0)
        return (options - SACK_OVERHEAD_OCTETS) // SACK_BLOCK_OCTETS


class LateScale(Connection):
    """Options are parsed by one routine, SYN or not."""

    def _receive_synchronized(self, segment, receiver, now):
        if segment.window_scale is not None and not segment.flags & _SYN:
            self.handshake.send_shift = min(segment.window_scale, 14)
        super()._receive_synchronized(segment, receiver, now)


class AckOfIss(Connection):
    """SND.UNA <= SEG.ACK in SYN-RECEIVED, where SND.UNA is the ISS."""

    def _take_ack(self, segment, seq, now):
        if self.state is State.SYN_RECEIVED and segment.ack == self.sender.iss & MASK:
            segment = replace(segment, ack=self.sender.iss + 1 & MASK)
        return super()._take_ack(segment, seq, now)


class FirstDataLost(Connection):
    """The segment that establishes is used for its ACK only."""

    def _take_ack(self, segment, seq, now):
        was = self.state is State.SYN_RECEIVED
        goes_on = super()._take_ack(segment, seq, now)
        return goes_on and not was


# -- the offered window -------------------------------------------------------------------------


class CurrentForLargest(Base):
    """Max(SND.WND) is overwritten with each new window."""

    def update_window(self, ack):
        largest = self.max_snd_wnd
        moved = super().update_window(ack)
        if self.max_snd_wnd > largest or (self.snd_wl1, self.snd_wl2) == (ack.seq, ack.number):
            self.max_snd_wnd = self.snd_wnd
        return moved


class ProbeBackOffCarried(Base):
    """The persist timer's exponent survives the opening of the window."""

    _exponent = 0

    def on_probe_due(self, now):
        if not self.snd_wnd:
            self._exponent += 1
        super().on_probe_due(now)

    def zero_window_probe_interval(self, probes):
        return super().zero_window_probe_interval(min(self._exponent, 20))


class WindowOfBareAcks(Base):
    """Data segments take the path that reads the acknowledgment but not the window."""

    def update_window(self, ack):
        if ack.bare:
            return super().update_window(ack)
        self.snd_wnd = max(0, self.right_edge - ack.number)
        return False


class EdgeNeverLeft(Base):
    """A right edge once offered is taken for granted."""

    def update_window(self, ack):
        edge = self.right_edge
        moved = super().update_window(ack)
        self.snd_wnd = max(self.snd_wnd, edge - ack.number)
        return moved


class FinForFree(Base):
    """The FIN joins the last data without having room in the window."""

    def sendable(self, seq, usable):
        end = self.data_end
        if self.fin_queued and end is not None and end - seq == usable:
            usable += 1
        return super().sendable(seq, usable)


class ClosedWindowNoAck(Connection):
    """With its own window closed, what is not acceptable is acknowledged and forgotten."""

    def _receive_unacceptable(self, segment, seq, receiver, now):
        if not segment.flags & _SYN:
            segment = replace(segment, flags=segment.flags & ~_ACK)
        super()._receive_unacceptable(segment, seq, receiver, now)


class Minshall(Base):
    """draft-minshall-nagle: only an outstanding small segment holds back another."""

    _small_end = 0

    def sendable(self, seq, usable):
        octets = super().sendable(seq, usable)
        if octets or seq < self.snd_max or self._small_end > self.snd_una:
            return octets
        end = self.sending_end
        limit = self.segment_limit(seq)
        wanted = limit if end is None else min(limit, end - seq)
        return wanted if 0 < wanted <= usable else 0

    def transmit(self, seq, end, now):
        new = seq >= self.snd_max
        super().transmit(seq, end, now)
        if new and end - seq < self.smss:
            self._small_end = end


# -- the congestion window ----------------------------------------------------------------------


class AvoidanceInherits(Base):
    """The octet counter of congestion avoidance also runs in slow start."""

    def slow_start_increase(self, acked):
        counted = self.octets_acked + acked
        increase = super().slow_start_increase(acked)
        self.octets_acked = counted
        return increase


class IdleByReceipt(Base):
    """Idle is the time since something was heard, not since something was sent."""

    _heard = None

    def on_ack(self, ack, now):
        self._heard = now
        super().on_ack(ack, now)

    def restart_after_idle(self, now):
        if self._heard is None or now - self._heard > self.estimator.rto:
            super().restart_after_idle(now)


class RestartRaises(Base):
    """RW is IW."""

    def restart_window(self):
        return self.initial_window()


class GrowsInRecovery(Base):
    """Every ACK of new data grows cwnd, partial ones too."""

    def on_partial_ack(self, acked, now):
        super().on_partial_ack(acked, now)
        self.cwnd += min(acked, self.smss)


# -- loss recovery ------------------------------------------------------------------------------


class RecoverOnlyIfApplicable(Base):
    """ "If applicable" is taken to cover the whole of step 4."""

    def on_timeout_in_recovery(self):
        if self.in_recovery:
            super().on_timeout_in_recovery()


class RescueMovesHighRxt(Base):
    """The rescue retransmission is recorded like any other."""

    def send_chosen(self, chosen, now):
        before = self.rescued
        super().send_chosen(chosen, now)
        if self.rescued and not before:
            self.high_rxt = chosen[1]


class RenegedAtSecondTimeout(Base):
    """The scoreboard is cleared by the first timeout of a series only."""

    def on_timeout(self, now):
        kept = self.scoreboard.snapshot() if self.consecutive_timeouts else ()
        super().on_timeout(now)
        for left, right in kept:
            self.scoreboard.add(left, right)


class RecoverySurvivesTimeout(Base):
    """A timeout does not end the recovery phase."""

    def on_timeout(self, now):
        was = self.in_recovery
        super().on_timeout(now)
        self.in_recovery = was


class SpeculativeFirst(Base):
    """Rules 2 and 3 of NextSeg are exchanged."""

    def next_segment(self):
        return (
            self.lost_segment()
            or self.speculative_segment()
            or self.new_segment()
            or self.rescue_segment()
        )


class HighRxtBack(Base):
    """A partial ACK begins the search for holes anew."""

    def on_partial_ack(self, acked, now):
        super().on_partial_ack(acked, now)
        self.high_rxt = self.snd_una


class StraddlingBlockIgnored(Connection):
    """A block's edges are put in order before they are unwrapped."""

    def _ack_part(self, segment, number, seq, now):
        blocks = tuple(block for block in segment.sack_blocks if block[0] < block[1])
        return super()._ack_part(replace(segment, sack_blocks=blocks), number, seq, now)


# -- timers -------------------------------------------------------------------------------------


class FinUntimed(Base):
    """Nothing is outstanding when the last data octet is acknowledged."""

    def restart_rto(self, now):
        super().restart_rto(now)
        end = self.data_end
        if self.fin_queued and end is not None and self.snd_una >= end:
            self.rto_deadline = None


class RtoCreepsBack(RttEstimator):
    """After back-off the RTO is smoothed like SRTT."""

    _backed_off = False

    def back_off(self):
        super().back_off()
        self._backed_off = True

    def sample(self, rtt):
        before = self.rto
        super().sample(rtt)
        if self._backed_off:
            lowest = before - self.ALPHA * (before - self.rto)
            self._backed_off = lowest > 1.1 * self.rto
            self.rto = max(self.rto, lowest)


class KarnNotInRecovery(Base):
    """The measurement is abandoned at a timeout, not at a fast retransmission."""

    def forget_measurement(self):
        if not self.in_recovery:
            super().forget_measurement()


class GhostTimer(Base):
    """The timer runs on when everything is acknowledged, and covers what is sent meanwhile."""

    _ghost = None

    def restart_rto(self, now):
        super().restart_rto(now)
        self._ghost = None if self.flight_size else now + self.estimator.rto

    def start_rto(self, now):
        ghost, self._ghost = self._ghost, None
        if ghost is not None and self.rto_deadline is None:
            if now < ghost:
                self.rto_deadline = ghost
                return
            self.estimator.back_off()
        super().start_rto(now)


# -- acknowledgments, SACK and timestamps of the receiver -----------------------------------------


class DelayPushed(Receiver):
    """Each segment that may wait starts the delay anew."""

    def _take(self, seq, payload, now):
        super()._take(seq, payload, now)
        if self.ack_deadline is not None and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class PartialFillWaits(Receiver):
    """Only what closes the last gap is acknowledged at once."""

    def should_ack_now(self, *, in_order, gap):
        return super().should_ack_now(in_order=in_order, gap=gap and not self.buffer.blocks)


class DsackStays(Receiver):
    """While data is missing the D-SACK block stays in the list."""

    def note_ack_sent(self, *, complete=True):
        duplicate = self._duplicate
        super().note_ack_sent(complete=complete)
        if self.buffer.blocks:
            self._duplicate = duplicate


class BlockAtEdge(Reassembly):
    """A block is removed when RCV.NXT passes its end, not when it reaches it."""

    def _fill(self):
        before = self.blocks
        super()._fill()
        self.blocks = [block for block in before if block[1] >= self.rcv_nxt]


class CachedTimestamp(Connection):
    """Retransmissions are copies of the segment, timestamp included."""

    def __init__(self, *args, **kwargs):
        self._stamps = {}
        super().__init__(*args, **kwargs)

    def put(self, seq, payload, fin, now):
        super().put(seq, payload, fin, now)
        segment = self._outbox[-1]
        if segment.timestamps is not None:
            value = self._stamps.setdefault(seq, segment.timestamps[0])
            segment.timestamps = value, segment.timestamps[1]


class TimestampOfUnacceptable(Connection):
    """TS.Recent is updated before the segment is found to be outside the window."""

    def _receive_synchronized(self, segment, receiver, now):
        if segment.timestamps is not None and not segment.flags & _RST:
            receiver.note_timestamp(
                segment.timestamps[0], unwrap(segment.seq, receiver.rcv_nxt), now
            )
        super()._receive_synchronized(segment, receiver, now)


class OldBareSilent(Connection):
    """A segment without text from before RCV.NXT is an old ACK and needs no answer."""

    def _receive_unacceptable(self, segment, seq, receiver, now):
        if segment.sequence_length or seq >= receiver.rcv_nxt:
            super()._receive_unacceptable(segment, seq, receiver, now)


class TrimLosesFin(Receiver):
    """Cutting off what arrived before clears the FIN."""

    def on_text(self, seq, payload, fin, now):
        trimmed = seq < self.buffer.rcv_nxt < seq + len(payload)
        super().on_text(seq, payload, fin and not trimmed, now)


# -- resets and closing -------------------------------------------------------------------------


class ResetAtLastAck(Connection):
    """A reset is valid at Last.ACK.sent, even with more received since."""

    def _receive_synchronized(self, segment, receiver, now):
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        if segment.flags & _RST and seq == receiver._last_ack_sent:
            self._end("the peer reset the connection", now)
            return
        super()._receive_synchronized(segment, receiver, now)


class ClosingEnds(Connection):
    """From CLOSING the ACK of the FIN leads to CLOSED, as from LAST-ACK."""

    def _happen(self, happening, now):
        before = self.state
        super()._happen(happening, now)
        if before is State.CLOSING and self.state is State.TIME_WAIT:
            super()._happen(Happening.QUIET_TIME_OVER, now)


class NoDelayedAckAfterClose(Connection):
    """The delayed-ACK timer serves ESTABLISHED; after the own FIN it expires in vain."""

    def advance(self, now):
        receiver = self.receiver
        if self.state in (State.FIN_WAIT_1, State.FIN_WAIT_2) and receiver is not None:
            if receiver.ack_deadline is not None and now >= receiver.ack_deadline:
                receiver.ack_deadline = None
        super().advance(now)


class LastAckSilent(Connection):
    """LAST-ACK waits for one thing; the peer's repeated FIN is not acknowledged again."""

    def receive(self, segment, now):
        receiver = self.receiver
        due = receiver is not None and receiver.ack_now
        silent = self.state is State.LAST_ACK and segment.flags & _FIN
        super().receive(segment, now)
        if silent and receiver is not None and not due:
            receiver.ack_now = False


def part(*classes):
    """A configure function that puts the classes into the setup."""

    def configure(setup):
        for each in classes:
            setup = setup.with_part(each)
        return setup

    return configure


FAULTS = [
    Fault("tcp-b6-synack-lost-window", "a passive opener starts with ten segments although its SYN-ACK was lost",
          "RFC 5681 section 3.1", part(WideAfterLostSynAck)),
    # Breaks the connection of a peer that answers the second SYN-ACK: it sends no timestamps.
    Fault("tcp-b6-synack-again-plain", "a repeated SYN-ACK has no Timestamps option, but the connection uses it",
          "RFC 7323 section 3.2", part(PlainSecondSynAck)),
    Fault("tcp-b6-sack-beside-data", "a full data segment with SACK blocks exceeds the peer's MSS",
          "RFC 6691 section 2; RFC 9293 section 3.7.1", part(BlocksBesideData)),
    # Needs a peer that sends a Window Scale option outside its SYN.
    Fault("tcp-b6-late-scale", "a Window Scale option in a segment without SYN changes the scale",
          "RFC 7323 section 2.2", part(LateScale)),
    # Needs a peer that acknowledges one less than the SYN.
    Fault("tcp-b6-ack-of-iss", "SYN-RECEIVED accepts an ACK of the ISS itself instead of resetting",
          "RFC 9293 section 3.10.7.4", part(AckOfIss)),
    Fault("tcp-b6-first-data-lost", "text and FIN of the segment that ends SYN-RECEIVED are dropped",
          "RFC 9293 section 3.10.7.4", part(FirstDataLost)),
    Fault("tcp-b6-current-for-largest", "silly-window avoidance compares with half the current window, not the largest",
          "RFC 9293 section 3.8.6.2.1", part(CurrentForLargest)),
    # Rare in ./check (1 of 60 other seeds): needs a window that closes twice.
    Fault("tcp-b6-probe-back-off-carried", "the first probe of a second closed window waits as long as the last of the first",
          "RFC 9293 section 3.8.6.1", part(ProbeBackOffCarried)),
    # Rare in ./check (1 of 60 other seeds): needs a peer that changes its window in data segments.
    Fault("tcp-b6-window-of-bare-acks", "the window field of segments with data is not taken",
          "RFC 9293 section 3.10.7.4", part(WindowOfBareAcks)),
    # Needs a peer that moves its right edge to the left.
    Fault("tcp-b6-edge-never-left", "new data is sent beyond the right edge after the peer has shrunk its window",
          "RFC 9293 section 3.8.6", part(EdgeNeverLeft)),
    Fault("tcp-b6-fin-for-free", "a FIN is sent when the window has room for the data before it only",
          "RFC 9293 section 3.4; RFC 9293 section 3.8.6", part(FinForFree)),
    Fault("tcp-b6-closed-window-no-ack", "while its own window is closed, ACKs in segments with text are not processed",
          "RFC 9293 section 3.10.7.4", part(ClosedWindowNoAck)),
    Fault("tcp-b6-minshall", "a small segment leaves while full ones are outstanding (draft-minshall-nagle)",
          "RFC 9293 section 3.7.4", part(Minshall)),
    Fault("tcp-b6-avoidance-inherits", "octets acknowledged in slow start count in congestion avoidance: more than a segment per round trip",
          "RFC 5681 section 3.1", part(AvoidanceInherits)),
    # Rare in ./check (1 of 60 other seeds): needs a grown cwnd, silence, and a request that ends it.
    Fault("tcp-b6-idle-by-receipt", "cwnd is kept after idleness when the peer's request ends it",
          "RFC 5681 section 4.1", part(IdleByReceipt)),
    # Rare in ./check (2 of 60 other seeds): needs a loss and then silence.
    Fault("tcp-b6-restart-raises", "idleness raises a cwnd below the initial window to it",
          "RFC 5681 section 4.1", part(RestartRaises)),
    Fault("tcp-b6-grows-in-recovery", "partial ACKs in recovery grow cwnd",
          "RFC 6675 section 5; RFC 5681 section 3.2", part(GrowsInRecovery)),
    # Rare in ./check (3 of 60 other seeds): needs duplicates after a timeout.
    Fault("tcp-b6-recover-if-applicable", "a timeout outside recovery does not set recover, so it may be followed by another reduction",
          "RFC 6582 section 3.2; RFC 6675 section 5.1", part(RecoverOnlyIfApplicable)),
    Fault("tcp-b6-rescue-moves-highrxt", "the rescue retransmission updates HighRxt, so holes below it are not repaired",
          "RFC 6675 section 4", part(RescueMovesHighRxt)),
    # Needs SACK blocks between two timeouts of one segment, and a receiver that reneges.
    Fault("tcp-b6-reneged-at-second-timeout", "what was reported between two timeouts counts as held after the second",
          "RFC 2018 section 5.1; RFC 2018 section 8", part(RenegedAtSecondTimeout)),
    # Rare in ./check (7 of 60 other seeds): needs a retransmission that is lost too.
    Fault("tcp-b6-recovery-survives-timeout", "a timeout in recovery does not end it: no slow start follows",
          "RFC 5681 section 3.1; RFC 6582 section 3.2", part(RecoverySurvivesTimeout)),
    Fault("tcp-b6-speculative-first", "NextSeg prefers holes that are not lost yet to new data",
          "RFC 6675 section 4", part(SpeculativeFirst)),
    Fault("tcp-b6-highrxt-back", "after a partial ACK, holes that were retransmitted are retransmitted again",
          "RFC 6675 section 5", part(HighRxtBack)),
    Fault("tcp-b6-straddling-block", "a SACK block across the wrap of the sequence numbers is ignored",
          "RFC 9293 section 3.4; RFC 2018 section 5",
          lambda setup: setup.configured(iss=(1 << 32) - 20000).with_part(StraddlingBlockIgnored)),
    # Rare in ./check (3 of 60 other seeds): needs the loss of a FIN sent after the last data.
    Fault("tcp-b6-fin-untimed", "the retransmission timer stops when all data but not the FIN is acknowledged",
          "RFC 6298 section 5.2", part(FinUntimed)),
    Fault("tcp-b6-rto-creeps-back", "after back-off each measurement takes away an eighth of the excess instead of setting the RTO",
          "RFC 6298 section 2.3", part(RtoCreepsBack)),
    # Needs a peer without timestamps.
    Fault("tcp-b6-karn-not-in-recovery", "without timestamps, a fast retransmitted segment is measured from its first transmission",
          "RFC 6298 section 3", part(KarnNotInRecovery)),
    # Rare in ./check (7 of 60 other seeds): needs new data less than an RTO after the last ACK.
    Fault("tcp-b6-ghost-timer", "the timer is not stopped when all is acknowledged: data sent soon after is timed out too early",
          "RFC 6298 section 5.2", part(GhostTimer)),
    # Rare in ./check (1 of 60 other seeds): needs small segments less than 0.2 s apart.
    Fault("tcp-b6-delay-pushed", "every small segment postpones the delayed ACK",
          "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", part(DelayPushed)),
    Fault("tcp-b6-partial-fill-waits", "a segment that fills a gap while another remains is acknowledged with delay",
          "RFC 5681 section 4.2", part(PartialFillWaits)),
    Fault("tcp-b6-dsack-stays", "while a gap is open, a D-SACK block is reported again and again",
          "RFC 2883 section 4", part(DsackStays)),
    Fault("tcp-b6-block-at-edge", "a block that the cumulative ACK has just reached is still reported, and looks like a D-SACK",
          "RFC 2018 section 3; RFC 2883 section 4", part(BlockAtEdge)),
    Fault("tcp-b6-cached-timestamp", "retransmissions carry the TSval of the first transmission",
          "RFC 7323 section 3.2", part(CachedTimestamp)),
    Fault("tcp-b6-timestamp-of-unacceptable", "the timestamp of a segment outside the window is echoed",
          "RFC 7323 section 5.3", part(TimestampOfUnacceptable)),
    Fault("tcp-b6-old-bare-silent", "an empty segment below RCV.NXT, such as a keep-alive, is not answered",
          "RFC 9293 section 3.10.7.4", part(OldBareSilent)),
    # Needs a peer that puts old data, new data and its FIN into one segment.
    Fault("tcp-b6-trim-loses-fin", "the FIN of a segment that begins with old data is lost",
          "RFC 9293 section 3.10.7.4", part(TrimLosesFin)),
    # Needs a reset at the last ACK sent, while a later segment awaits its delayed ACK.
    Fault("tcp-b6-reset-at-last-ack", "a RST below RCV.NXT at the last ACK sent resets the connection",
          "RFC 5961 section 3.2; RFC 9293 section 3.10.7.4", part(ResetAtLastAck)),
    # Needs FINs that cross.
    Fault("tcp-b6-closing-ends", "after a simultaneous close there is no TIME-WAIT; a repeated FIN is answered with RST",
          "RFC 9293 section 3.10.7.4", part(ClosingEnds)),
    Fault("tcp-b6-no-delayed-ack-after-close", "after its own FIN a single segment of the peer is not acknowledged within half a second",
          "RFC 5681 section 4.2", part(NoDelayedAckAfterClose)),
    Fault("tcp-b6-last-ack-silent", "in LAST-ACK the peer's repeated FIN is not acknowledged",
          "RFC 9293 section 3.10.7.4", part(LastAckSilent)),
]  # fmt: skip
