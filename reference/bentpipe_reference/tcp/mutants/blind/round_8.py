"""Round 8: written from RFC 9293, 5681, 6298, 6582, 6675, 2018, 2883, 7323, 5961 on 2026-11-22."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire import Segment, parse_packet
from bentpipe_reference.tcp.wire.sequence import unwrap

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10


# -- opening ------------------------------------------------------------------------------------


class KindStart(SackNewRenoRfcSender):
    kind_start = False

    def loss_window(self) -> int:
        return self.initial_window() if self.kind_start else super().loss_window()


class OneLostSynIsNoLoss(Connection):
    """Off by one: the SYN must have been repeated twice before the window is one segment."""

    def _established(self, segment: Segment, now: float) -> None:
        self.sender.kind_start = self.handshake.attempts == 2
        super()._established(segment, now)
        self.sender.kind_start = False


class KeepsSynBackOff(RttEstimator):
    """Raises the timeout to three seconds, but leaves a longer one of the SYN as it is."""

    def after_lost_syn(self) -> None:
        if self.srtt is None:
            self.rto = max(3.0, self.rto)


class ScalesRepeatedSynAck(Connection):
    """The repetition is built after scaling has been switched on."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is not None and self.handshake.attempts > 1:
            self._outbox[-1].window >>= self.handshake.receive_shift


class DropsTextOfThirdSegment(Connection):
    """The segment that establishes is processed no further, although it carries data."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        opening = self.state is State.SYN_RECEIVED
        go_on = super()._take_ack(segment, seq, now)
        return go_on and not (opening and bool(segment.payload))


class UnscaledFirstWindow(Connection):
    """The window of the ACK that establishes is taken like that of a SYN."""

    def _established(self, segment: Segment, now: float) -> None:
        handshake = self.handshake
        shift, handshake.send_shift = handshake.send_shift, 0
        super()._established(segment, now)
        handshake.send_shift = shift


class MuteToSynAck(Connection):
    """A SYN-ACK that comes again, because our ACK was lost, is only a duplicate."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        again = segment.flags & SYN and segment.flags & ACK and seq == receiver.irs
        if again and self.state is not State.SYN_RECEIVED:
            return
        super()._receive_unacceptable(segment, seq, receiver, now)


# -- options ------------------------------------------------------------------------------------


def stops_at_unknown(octets: bytes) -> Segment:
    """The first option of unknown kind ends the list."""
    segment = parse_packet(octets)
    tcp = octets[(octets[0] & 15) * 4 :]
    options = tcp[20 : (tcp[12] >> 4) * 4]
    seen, at = set(), 0
    while at < len(options) and options[at] != 0:
        kind = options[at]
        if kind == 1:
            at += 1
            continue
        if kind not in (2, 3, 4, 5, 8):
            break
        seen.add(kind)
        at += options[at + 1]
    if 2 not in seen:
        segment.mss = None
    if 3 not in seen:
        segment.window_scale = None
    if 4 not in seen:
        segment.sack_permitted = False
    if 5 not in seen:
        segment.sack_blocks = ()
    if 8 not in seen:
        segment.timestamps = None
    return segment


def with_parser(setup: Setup) -> Setup:
    return replace(setup, parts=replace(setup.parts, parse=stops_at_unknown))


class SackBesideFullSegment(Handshake):
    """SACK blocks take only header room into account, not the peer's MSS."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        return super().sack_room(0)


# -- resets -------------------------------------------------------------------------------------


class ResetAtLastAck(Connection):
    """A RST must match the last acknowledgment sent, not RCV.NXT; they differ while one waits."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & RST:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if seq == receiver.rcv_nxt and seq != receiver._last_ack_sent:
                receiver.ack_now = True
                return
        super()._receive_synchronized(segment, receiver, now)


class NoResetAtClosedWindow(Connection):
    """With a closed window nothing is acceptable, not even a RST."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & RST and receiver.edge <= receiver.rcv_nxt:
            return
        super()._receive_synchronized(segment, receiver, now)


class SynAfterFinResets(Connection):
    """Once the peer's FIN has come, a SYN in the window gets the answer of RFC 793."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        flags = segment.flags
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        if (
            flags & SYN
            and not flags & RST
            and receiver.fin_received
            and self._timestamps_allow(segment, receiver, now)
            and receiver.is_acceptable(seq, segment.sequence_length)
        ):
            self.abort("a SYN in the window", now)
            return
        super()._receive_synchronized(segment, receiver, now)

    def _timestamps_allow(self, segment: Segment, receiver: Receiver, now: float) -> bool:
        if receiver.ts_recent is None:
            return True
        stamps = segment.timestamps
        return stamps is not None and not receiver.is_stale_timestamp(stamps[0], now)


# -- closing ------------------------------------------------------------------------------------


class FinUntimed(SackNewRenoRfcSender):
    """When all data is acknowledged the timer stops, although the FIN is outstanding."""

    def restart_rto(self, now: float) -> None:
        super().restart_rto(now)
        end = self.data_end
        if self.fin_queued and end is not None and self.snd_una >= end:
            self.rto_deadline = None


class ClosingEndsAtOnce(Connection):
    """After a simultaneous close there is no TIME-WAIT."""

    def _happen(self, happening: Happening, now: float) -> None:
        before = self.state
        super()._happen(happening, now)
        if before is State.CLOSING and self.state is State.TIME_WAIT:
            super()._happen(Happening.QUIET_TIME_OVER, now)


class FinAfterTrim(Receiver):
    """A segment is cut at the right edge of the window first, and its FIN is then at the cut."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().on_text(seq, payload[: max(0, self.edge - seq)], fin, now)


# -- sending and its windows --------------------------------------------------------------------


class WindowByPipe(SackNewRenoRfcSender):
    """Holds the pipe, not all that is outstanding, against the offered window."""

    def new_segment(self) -> tuple[int, int] | None:
        octets = self.sendable(self.snd_max, min(self.snd_wnd - self.pipe(), self.smss))
        return (self.snd_max, self.snd_max + octets) if octets else None


class RemembersProbes(SackNewRenoRfcSender):
    """The back-off of the probes is not forgotten when the window opens."""

    _most_probes = 0

    def zero_window_probe_interval(self, probes: int) -> float:
        self._most_probes = max(self._most_probes, probes)
        return super().zero_window_probe_interval(self._most_probes)


class NoOverride(SackNewRenoRfcSender):
    """The persist timer runs for a window of zero only, not for one too small to use."""

    def check_probe(self, now: float) -> None:
        if self.snd_wnd:
            self.persist_deadline = None
        else:
            super().check_probe(now)


class ZeroWindowStopsTimer(SackNewRenoRfcSender):
    """A window that closes over outstanding data hands over to the persist timer."""

    def update_window(self, ack: Ack) -> bool:
        moved = super().update_window(ack)
        if moved and not self.snd_wnd:
            self.rto_deadline = None
        return moved


class RestartRaises(SackNewRenoRfcSender):
    """The restart window is IW, also where cwnd is smaller."""

    def restart_window(self) -> int:
        return self.initial_window()


class Minshall(SackNewRenoRfcSender):
    """Holds a small segment only while another small one is outstanding (a draft's Nagle)."""

    _small_end = 0

    def transmit(self, seq: int, end: int, now: float) -> None:
        if seq >= self.snd_max and end - seq < self.smss:
            self._small_end = end
        super().transmit(seq, end, now)

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        if octets or seq < self.snd_max or self.snd_una < self._small_end:
            return octets
        limit = self.segment_limit(seq)
        end = self.sending_end
        wanted = limit if end is None else min(limit, end - seq)
        return wanted if 0 < wanted <= usable else 0


class ClampsToSndNxt(SackNewRenoRfcSender):
    """After a timeout an ACK counts up to SND.NXT only, which has been set back."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number > self.snd_nxt:
            ack = replace(ack, number=self.snd_nxt)
        super().on_ack(ack, now)


# -- congestion and recovery --------------------------------------------------------------------


class CreditOfRecovery(SackNewRenoRfcSender):
    """What is acknowledged during recovery counts for congestion avoidance after it."""

    def on_ack_in_recovery(self, acked: int, now: float) -> None:
        credit = self.octets_acked + acked
        super().on_ack_in_recovery(acked, now)
        self.octets_acked = credit


class OneReductionPerRepair(SackNewRenoRfcSender):
    """A timeout of another segment, while an earlier timeout is repaired, leaves ssthresh."""

    _repair_end: int | None = None

    def ssthresh_after_timeout(self, repeated: bool) -> int:
        repairing = self._repair_end is not None and self.snd_una < self._repair_end
        return super().ssthresh_after_timeout(repeated or repairing)

    def on_timeout(self, now: float) -> None:
        super().on_timeout(now)
        self._repair_end = self.snd_max


class LostAtEquality(SackNewRenoRfcSender):
    """Two full segments held above are enough; more than two are asked for."""

    def loss_edge(self) -> int:
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss - 1)
        return self.snd_una if edge is None else edge


class KeepsRecoveryPoint(SackNewRenoRfcSender):
    """A timeout during recovery leaves RecoveryPoint as that recovery had set it."""

    def on_timeout_in_recovery(self) -> None:
        if not self.in_recovery:
            super().on_timeout_in_recovery()


class InflatesForUpdates(SackNewRenoRfcSender):
    """Without SACK: during recovery also a window update inflates cwnd."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        if not self.sack_ok and self.in_recovery:
            return ack.number == self.snd_una and self.flight_size > 0 and ack.bare
        return super().is_duplicate_ack(ack, newly_held)


class SackOfBareAcks(SackNewRenoRfcSender):
    """SACK blocks beside data are not read."""

    def take_sack(self, ack: Ack) -> int:
        return super().take_sack(ack) if ack.bare else 0


class DropsStraddlingBlocks(Connection):
    """A SACK block that contains sequence number zero looks empty."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        blocks = tuple((left, right) for left, right in segment.sack_blocks if left < right)
        return super()._ack_part(replace(segment, sack_blocks=blocks), number, seq, now)


# -- timers -------------------------------------------------------------------------------------


class RestartsWithOldRto(SackNewRenoRfcSender):
    """The timer is restarted before the ACK's round trip is taken, back-off included."""

    _rto_before = 1.0

    def on_new_ack(self, ack: Ack, now: float) -> None:
        self._rto_before = self.estimator.rto
        super().on_new_ack(ack, now)

    def restart_rto(self, now: float) -> None:
        self.rto_deadline = now + self._rto_before if self.flight_size else None


class SackRestartsTimer(SackNewRenoRfcSender):
    """What SACK newly reports counts as an ACK of new data."""

    def on_duplicate_ack(self, now: float) -> None:
        super().on_duplicate_ack(now)
        if self.sack_ok:
            self.restart_rto(now)


class MeasuresDuplicates(SackNewRenoRfcSender):
    """TSecr is also measured on ACKs that acknowledge nothing new."""

    def on_ack(self, ack: Ack, now: float) -> None:
        same = ack.number == self.snd_una and self.flight_size > 0 and ack.bare
        if same and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


# -- receiving ----------------------------------------------------------------------------------


class PushesDelayedAck(Receiver):
    """Each segment starts the delay of the acknowledgment anew."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if self.ack_deadline is not None:
            self.ack_deadline = now + self.delayed_ack_interval()


class DuplicateKeepsOrder(Reassembly):
    """A duplicate above a gap does not bring its block forward, so that another follows D-SACK."""

    def insert(self, seq: int, payload: bytes) -> None:
        if seq > self.rcv_nxt and self._held.covers(seq, seq + len(payload)):
            return
        super().insert(seq, payload)


class MergedBlockLast(Reassembly):
    """A segment that joins two blocks leaves the joint block in the place of the older."""

    def insert(self, seq: int, payload: bytes) -> None:
        above, before = seq > self.rcv_nxt, len(self.blocks)
        super().insert(seq, payload)
        if above and len(self.blocks) < before:
            self.blocks.append(self.blocks.pop(0))


class HeldDataShrinksWindow(Receiver):
    """Data out of order takes room from the window, whose right edge so moves back."""

    def free_room(self) -> int:
        held = sum(right - left for left, right in self.buffer.blocks)
        return max(0, super().free_room() - held)

    def window_field(self) -> int:
        if self.buffer.blocks:
            self.edge = min(self.edge, self.rcv_nxt + self.free_room())
        return super().window_field()


class SillyBesideData(Connection):
    """A segment with data announces every octet of room; only pure ACKs wait for a segment's."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        if payload and receiver is not None:
            receiver.edge += max(0, receiver._gain())
        super()._put(seq, flags, now, payload)


class LastOctetOfWindow(Receiver):
    """A segment that fills the window to its last octet does not fit."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        if length and seq + length == self.edge:
            return False
        return super().is_acceptable(seq, length)


# -- timestamps ---------------------------------------------------------------------------------


class LastAckOfPureAcks(Connection):
    """Last.ACK.sent does not follow the acknowledgments that travel with data."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        before = None if receiver is None else receiver._last_ack_sent
        super()._put(seq, flags, now, payload)
        if payload and receiver is not None:
            receiver._last_ack_sent = before


class StaleButAcknowledges(Connection):
    """PAWS discards the data of an old segment, not its acknowledgment and window."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        flags, stamps = segment.flags, segment.timestamps
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        if (
            flags & (ACK | SYN | RST) == ACK
            and stamps is not None
            and self.state is not State.SYN_RECEIVED
            and receiver.is_stale_timestamp(stamps[0], now)
            and receiver.is_acceptable(seq, segment.sequence_length)
        ):
            self._take_ack(segment, seq, now)
            receiver.ack_now = self.state is not State.CLOSED
            return
        super()._receive_synchronized(segment, receiver, now)


class BareRefusal(Connection):
    """The ACK that answers a segment outside the window is built without options."""

    _refuses = False

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        super()._receive_unacceptable(segment, seq, receiver, now)
        self._refuses = receiver.ack_now

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        if self._refuses:
            self._refuses = False
            if segments and segments[-1].flags == ACK and not segments[-1].payload:
                segments[-1].timestamps = None
        return segments


def part(*classes: type) -> object:
    def configure(setup: Setup) -> Setup:
        for each in classes:
            setup = setup.with_part(each)
        return setup

    return configure


FAULTS = [
    Fault("tcp-b8-one-lost-syn", "starts with ten segments after a SYN-ACK that was repeated once",
          "RFC 5681 section 3.1", part(KindStart, OneLostSynIsNoLoss)),
    Fault("tcp-b8-syn-back-off", "data starts with the backed-off timeout of the SYN, not with three seconds",
          "RFC 6298 section 5.7", part(KeepsSynBackOff)),
    Fault("tcp-b8-scaled-syn-ack", "a repeated SYN-ACK announces a scaled window",
          "RFC 7323 section 2.2", part(ScalesRepeatedSynAck)),
    Fault("tcp-b8-third-text", "data in the segment that completes the handshake is lost",
          "RFC 9293 section 3.10.7.4", part(DropsTextOfThirdSegment)),
    Fault("tcp-b8-third-window", "the window of the ACK that completes the handshake is not scaled",
          "RFC 7323 section 2.3", part(UnscaledFirstWindow)),
    Fault("tcp-b8-mute-syn-ack", "a repeated SYN-ACK is not acknowledged again",
          "RFC 9293 section 3.10.7.4", part(MuteToSynAck)),
    # Needs an option of unknown kind.
    Fault("tcp-b8-unknown-ends", "options behind one of unknown kind are not read",
          "RFC 9293 section 3.1; RFC 9293 section 3.2", with_parser),
    Fault("tcp-b8-sack-over-mss", "SACK blocks beside a full segment exceed the peer's MSS",
          "RFC 9293 section 3.7.1; RFC 6691 section 2", part(SackBesideFullSegment)),
    # The three of resets need a RST or a SYN from the peer at a certain moment.
    Fault("tcp-b8-rst-last-ack", "a RST at RCV.NXT is challenged while an acknowledgment is delayed",
          "RFC 5961 section 3.2", part(ResetAtLastAck)),
    Fault("tcp-b8-rst-closed-window", "a RST is ignored while the own window is closed",
          "RFC 9293 section 3.8.6; RFC 9293 section 3.10.7.4", part(NoResetAtClosedWindow)),
    Fault("tcp-b8-syn-after-fin", "a SYN in the window resets once the peer's FIN has been received",
          "RFC 5961 section 4.2; RFC 9293 section 3.10.7.4", part(SynAfterFinResets)),
    Fault("tcp-b8-fin-untimed", "an ACK of all data stops the timer although the FIN is outstanding",
          "RFC 6298 section 5.2; RFC 9293 section 3.8.1", part(FinUntimed)),
    Fault("tcp-b8-closing-no-wait", "a simultaneous close ends without TIME-WAIT",
          "RFC 9293 section 3.6.1; RFC 9293 section 3.10.7.4", part(ClosingEndsAtOnce)),
    # Needs a peer that sends beyond the window.
    Fault("tcp-b8-fin-trimmed", "the FIN of a segment cut at the window's edge is taken at the cut",
          "RFC 9293 section 3.10.7.4", part(FinAfterTrim)),
    Fault("tcp-b8-window-by-pipe", "with SACKed data, new data goes beyond the offered window",
          "RFC 6675 section 4; RFC 9293 section 3.8.6", part(WindowByPipe)),
    Fault("tcp-b8-probe-memory", "a second closed window starts with the probe interval of the first",
          "RFC 9293 section 3.8.6.1", part(RemembersProbes)),
    Fault("tcp-b8-no-override", "a window too small to use is waited for without end",
          "RFC 9293 section 3.8.6.2.1", part(NoOverride)),
    Fault("tcp-b8-zero-stops-timer", "a window that closes over outstanding data stops the retransmission timer",
          "RFC 9293 section 3.8.6; RFC 6298 section 5.1", part(ZeroWindowStopsTimer)),
    Fault("tcp-b8-restart-raises", "an idle period raises a cwnd smaller than IW to IW",
          "RFC 5681 section 4.1", part(RestartRaises)),
    Fault("tcp-b8-minshall", "a small segment leaves although full ones are outstanding",
          "RFC 9293 section 3.7.4", part(Minshall)),
    Fault("tcp-b8-ack-to-nxt", "after a timeout an ACK counts only up to the SND.NXT set back",
          "RFC 9293 section 3.10.7.4; RFC 9293 section 3.4", part(ClampsToSndNxt)),
    Fault("tcp-b8-recovery-credit", "what recovery acknowledged grows cwnd repeatedly after it",
          "RFC 5681 section 3.1", part(CreditOfRecovery)),
    Fault("tcp-b8-second-timeout", "a timeout of another segment during a repair leaves ssthresh",
          "RFC 5681 section 3.1", part(OneReductionPerRepair)),
    Fault("tcp-b8-lost-at-two", "exactly two segments' octets held above count as a loss",
          "RFC 6675 section 4", part(LostAtEquality)),
    Fault("tcp-b8-recovery-point", "a timeout during recovery does not move RecoveryPoint",
          "RFC 6675 section 5.1; RFC 6582 section 3.2", part(KeepsRecoveryPoint)),
    # Without SACK only.
    Fault("tcp-b8-inflating-updates", "without SACK a window update during recovery inflates cwnd",
          "RFC 5681 section 2; RFC 5681 section 3.2", part(InflatesForUpdates)),
    Fault("tcp-b8-sack-beside-data", "SACK blocks of segments with data are ignored",
          "RFC 2018 section 5; RFC 6675 section 5", part(SackOfBareAcks)),
    # Needs sequence numbers that wrap.
    Fault("tcp-b8-straddling-block", "a SACK block across the wrap of sequence numbers is ignored",
          "RFC 9293 section 3.4; RFC 6675 section 5", part(DropsStraddlingBlocks), setting="wrap"),
    Fault("tcp-b8-old-rto", "the timer restarts with the timeout from before the ACK's measurement",
          "RFC 6298 section 5.3", part(RestartsWithOldRto)),
    Fault("tcp-b8-sack-restarts", "new SACK information alone restarts the retransmission timer",
          "RFC 6298 section 5.3", part(SackRestartsTimer)),
    Fault("tcp-b8-measures-duplicates", "duplicate ACKs are measured by their TSecr",
          "RFC 7323 section 4.1", part(MeasuresDuplicates)),
    Fault("tcp-b8-pushed-ack", "each small segment puts the delayed ACK off, beyond half a second",
          "RFC 9293 section 3.8.6.3; RFC 1122 section 4.2.3.2", part(PushesDelayedAck)),
    Fault("tcp-b8-dsack-order", "after a D-SACK above the ACK another block than its own follows",
          "RFC 2883 section 4; RFC 2018 section 4", part(DuplicateKeepsOrder)),
    Fault("tcp-b8-merged-last", "the block of a segment that joins two blocks is reported last",
          "RFC 2018 section 4", part(MergedBlockLast)),
    Fault("tcp-b8-held-shrinks", "data out of order moves the window's right edge back",
          "RFC 9293 section 3.8.6", part(HeldDataShrinksWindow)),
    Fault("tcp-b8-silly-beside-data", "segments with data open the window in small steps",
          "RFC 9293 section 3.8.6.2.2", part(SillyBesideData)),
    # Needs a peer that fills the window.
    Fault("tcp-b8-last-octet", "a segment that ends at the window's edge is refused",
          "RFC 9293 section 3.10.7.4", part(LastOctetOfWindow)),
    Fault("tcp-b8-last-ack-pure", "after an ACK beside data the timestamp echoed is not renewed",
          "RFC 7323 section 4.3", part(LastAckOfPureAcks)),
    # Needs a segment with an old timestamp.
    Fault("tcp-b8-stale-acks", "the ACK of a segment that PAWS discards is processed",
          "RFC 7323 section 5.3", part(StaleButAcknowledges)),
    Fault("tcp-b8-bare-refusal", "the ACK that answers a segment outside the window has no timestamps",
          "RFC 7323 section 3.2", part(BareRefusal)),
]  # fmt: skip

# Not brought about by ordinary transfers, but by a peer or by losses at a certain moment:
# syn-back-off: two SYN-ACKs lost, then no answer to the first data. third-window: a small raw window with a
# scale in the third segment. mute-syn-ack: active open, its ACK lost. closing-no-wait: FINs cross, the peer's comes
# again. rst-*, syn-after-fin: a RST or SYN. fin-trimmed, last-octet: a peer at or beyond the window's edge.
# zero-stops-timer: the window is closed by an ACK of nothing new while data is lost and no more is pending, or
# until a probe. second-timeout: timeout, ACK of new data, timeout again. dsack-order, merged-last: three blocks or a
# duplicate of the older of two. inflating-updates: no SACK. straddling-block: the wrap. unknown-ends: such an option.
