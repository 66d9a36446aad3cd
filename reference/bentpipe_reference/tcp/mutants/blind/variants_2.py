"""Right implementations of TCP that differ from the reference: round 2, written from RFCs on 2026-11-24."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Variant
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.output import TIMESTAMP_HZ
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet, parse_packet
from bentpipe_reference.tcp.wire.sequence import unwrap

_FIN, _SYN, _RST, _PSH, _ACK, _ECE, _CWR = (
    int(flag)
    for flag in (
        Flags.FIN, Flags.SYN, Flags.RST, Flags.PSH, Flags.ACK, Flags.ECE, Flags.CWR,
    )
)  # fmt: skip


def parts(*classes: type[Any]) -> Callable[[Setup], Setup]:
    """Classes in place of the parts they derive from."""

    def configure(setup: Setup) -> Setup:
        for each in classes:
            setup = setup.with_part(each)
        return setup

    return configure


# -- the receiver -------------------------------------------------------------------------------


class CountsOctets(Receiver):
    """An ACK for every 2*RMSS octets, RMSS being what its own MSS option said."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        """Two segments shortened by timestamps are less than 2*RMSS octets."""
        return not in_order or gap or self._octets_unacked >= 2 * self.config.mss


class AcknowledgesPushes(Connection):
    """An ACK at once for a segment with PSH."""

    def _take_text(self, segment: Segment, seq: int, receiver: Receiver, now: float) -> None:
        super()._take_text(segment, seq, receiver, now)
        if segment.flags & _PSH and segment.payload:
            receiver.ack_now = True


class AdaptsDelay(Receiver):
    """The delay of an ACK is twice the usual time between segments, 40 to 200 ms."""

    _last_text: float | None = None
    _spacing = 0.02

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """Measure the time between segments."""
        if payload:
            if self._last_text is not None:
                self._spacing += (now - self._last_text - self._spacing) / 2
            self._last_text = now
        super().on_text(seq, payload, fin, now)

    def delayed_ack_interval(self) -> float:
        """See :class:`Receiver`."""
        return min(max(0.04, 2 * self._spacing), self.config.delayed_ack_timeout)


class QuickAfterGap(Receiver):
    """After a gap, sixteen segments are acknowledged one by one."""

    _quick = 0

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        """See :class:`Receiver`."""
        if gap or not in_order:
            self._quick = 16
            return True
        if self._quick:
            self._quick -= 1
            return True
        return super().should_ack_now(in_order=in_order, gap=gap)


class Reneges(Receiver):
    """Has memory for 32 KiB out of order; reports the newest segment, then discards the rest."""

    most_out_of_order = 32 * 1024

    def note_ack_sent(self, *, complete: bool = True) -> None:
        """Once the newest is reported, the highest octets beyond the memory are discarded."""
        super().note_ack_sent(complete=complete)
        if not complete:
            return
        room = self.most_out_of_order
        for left, right in sorted(self.buffer.blocks):
            if right - left > room:
                self.buffer.end_at(left + room)
                return
            room -= right - left


class EdgeInSteps(Receiver):
    """The edge moves by four segments or a quarter of the buffer, as lwIP's does."""

    def _step(self) -> int:
        return min(self.config.receive_buffer // 4, 4 * self.config.mss)

    def update_edge(self) -> None:
        """See :class:`Receiver`."""
        gain = self._gain()
        if gain >= self._step():
            self.edge += gain

    def window_update_due(self) -> bool:
        """See :class:`Receiver`."""
        return self._gain() >= self._step()


class ShiftSeven(Handshake):
    """A shift of seven, good for 8 MiB, to which the buffer could be set later."""

    def take_options(self, syn: Segment) -> None:
        """See :class:`Handshake`."""
        super().take_options(syn)
        if self._scaling:
            self.receive_shift = max(7, self.receive_shift)

    def offer(self, syn: Segment, *, answering: bool) -> None:
        """See :class:`Handshake`."""
        super().offer(syn, answering=answering)
        if syn.window_scale is not None:
            syn.window_scale = max(7, syn.window_scale)


class ReportsParts(Receiver):
    """D-SACK also for the first part of a segment that is held already above a gap."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        end = seq + len(payload)
        part = None
        if self.config.dsack and seq >= self.buffer.rcv_nxt:
            missing = self.buffer._held.gaps(seq, end)
            if missing and missing != [(seq, end)]:
                left = seq if missing[0][0] > seq else missing[0][1]
                right = next((a for a, _ in missing if a > left), end)
                part = left, right
        super()._take(seq, payload, now)
        if part is not None:
            self._duplicate = part


class KeepsDataOfSyn(Connection):
    """Data that comes with a SYN is kept, and acknowledged once the connection stands."""

    _early: tuple[bytes, bool] | None = None

    def _take_syn(self, segment: Segment, now: float) -> Receiver:
        if segment.payload or segment.flags & _FIN:
            self._early = segment.payload, bool(segment.flags & _FIN)
        return super()._take_syn(segment, now)

    def _established(self, segment: Segment, now: float) -> None:
        super()._established(segment, now)
        early, self._early = self._early, None
        receiver = self.receiver
        if early is None or receiver is None or receiver.buffer.rcv_nxt > receiver.irs + 1:
            return
        receiver.update_edge()
        receiver.on_text(receiver.irs + 1, *early, now)
        receiver.ack_now = True
        if receiver.fin_received:
            self._happen(Happening.FIN_RECEIVED, now)


class ThrottlesChallenges(Connection):
    """At most one challenge ACK in half a second."""

    _challenged = -math.inf

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        synchronized = self.state is not State.SYN_RECEIVED
        due = receiver.ack_now
        super()._receive_synchronized(segment, receiver, now)
        sender = self.sender
        suspicious = segment.flags & (_SYN | _RST) or (
            unwrap(segment.ack, sender.snd_una) > sender.snd_max
        )
        if not (synchronized and suspicious) or due or not receiver.ack_now:
            return
        if now - self._challenged < 0.5:
            receiver.ack_now = False
        else:
            self._challenged = now


class RefusesOldAcks(Connection):
    """An ACK older than the largest window is challenged, and its segment not processed."""

    def _refuses_ack(self, number: int, now: float) -> bool:
        sender = self.sender
        if number < sender.snd_una - sender.max_snd_wnd and self.receiver is not None:
            self.receiver.ack_now = True
            return True
        return super()._refuses_ack(number, now)


# -- congestion control -------------------------------------------------------------------------


class Vegas(SackNewRenoRfcSender):
    """Congestion avoidance that keeps two to four segments in the queue."""

    _base = _least = math.inf
    _round_end = 0

    def measured_rtt(self, ack: Ack, now: float) -> float | None:
        """Remember the least round trip, and that of this round."""
        rtt = super().measured_rtt(ack, now)
        if rtt is not None and rtt > 0:
            self._base = min(self._base, rtt)
            self._least = min(self._least, rtt)
        return rtt

    def congestion_avoidance_increase(self, acked: int) -> int:
        """Decided once per round; a rise is never faster than RFC 5681's."""
        if not math.isfinite(self._least):
            return super().congestion_avoidance_increase(acked)
        queued = self.cwnd * (self._least - self._base) / self._least
        round_over = self.snd_una >= self._round_end
        if round_over:
            self._round_end = self.snd_max
            self._least = math.inf
        if queued < 2 * self.smss:
            return super().congestion_avoidance_increase(acked)
        self.octets_acked = 0
        if round_over and queued > 4 * self.smss and self.cwnd > 3 * self.smss:
            return -self.smss
        return 0


class Westwood(SackNewRenoRfcSender):
    """After a loss, what the path delivered in its shortest round trip if that is less."""

    _rate: float | None = None
    _counted = 0
    _since: float | None = None
    _shortest = math.inf

    def measured_rtt(self, ack: Ack, now: float) -> float | None:
        """Remember the shortest round trip."""
        rtt = super().measured_rtt(ack, now)
        if rtt:
            self._shortest = min(self._shortest, rtt)
        return rtt

    def on_new_ack(self, ack: Ack, now: float) -> None:
        """Estimate the rate once per round trip."""
        self._counted += ack.number - self.snd_una
        srtt = self.estimator.srtt
        if self._since is None:
            self._since, self._counted = now, 0
        elif srtt is not None and now - self._since >= max(srtt, 0.05):
            rate = self._counted / (now - self._since)
            self._rate = rate if self._rate is None else (3 * self._rate + rate) / 4
            self._since, self._counted = now, 0
        super().on_new_ack(ack, now)

    def ssthresh_after_loss(self) -> int:
        """Never more than equation 4 of RFC 5681."""
        half = super().ssthresh_after_loss()
        if self._rate is None or not math.isfinite(self._shortest):
            return half
        return min(half, max(2 * self.smss, int(self._rate * self._shortest)))


class Rfc3390Window(SackNewRenoRfcSender):
    """min(4*SMSS, max(2*SMSS, 4380 octets)) to begin with."""

    def initial_window(self) -> int:
        """See :class:`CongestionRules`."""
        return min(4 * self.smss, max(2 * self.smss, 4380))


class RestartsWithOne(SackNewRenoRfcSender):
    """After an idle time, one segment."""

    def restart_window(self) -> int:
        """No more than RW."""
        return min(self.cwnd, self.smss)


class GrowsWhenUsed(SackNewRenoRfcSender):
    """cwnd grows only by ACKs that find it full."""

    def growth_on_ack(self, acked: int) -> int:
        """``snd_una`` has advanced by ``acked``."""
        if self.flight_size + acked + self.smss <= self.cwnd:
            self.octets_acked = 0
            return 0
        return super().growth_on_ack(acked)


class CountsPackets(SackNewRenoRfcSender):
    """cwnd counts segments: a small one takes as much of it as a full one."""

    _ends: tuple[int, ...] = ()

    def transmit(self, seq: int, end: int, now: float) -> None:
        """Remember where segments end."""
        if end > self.snd_max:
            self._ends = *(each for each in self._ends if each > self.snd_una), end
        super().transmit(seq, end, now)

    def send_next(self, now: float) -> bool:
        """One more only if there are fewer than cwnd holds."""
        held = self.scoreboard.covers
        packets = sum(
            self.snd_una < end <= self.snd_nxt and not held(end - 1, end) for end in self._ends
        )
        if packets and (packets + 1) * self.smss > self.cwnd:
            return False
        return super().send_next(now)


# -- loss detection and recovery ----------------------------------------------------------------


class TwoAtATime(SackNewRenoRfcSender):
    """In recovery, each ACK is answered by at most two segments."""

    def output(self, now: float) -> None:
        """Step C, at most twice."""
        if not (self.in_recovery and self.sack_ok):
            super().output(now)
            return
        pipe = self.pipe()
        for _ in range(2):
            if self.cwnd - pipe < self.smss or (chosen := self.next_segment()) is None:
                break
            self.send_chosen(chosen, now)
            pipe += chosen[1] - chosen[0]


class KeepsTimer(SackNewRenoRfcSender):
    """A fast retransmission does not restart the retransmission timer."""

    def rearms_timer_on_entry(self) -> bool:
        """See :class:`RenoSender`."""
        return False


class EarlyRetransmits(SackNewRenoRfcSender):
    """Fewer duplicates suffice with fewer than four segments outstanding and nothing to send."""

    def duplicate_threshold(self) -> int:
        """RFC 5827 section 3.1."""
        segments = -(-self.flight_size // self.smss)
        if self.in_recovery or not 2 <= segments < 4 or self.repairs_timeout():
            return 3
        end = self.sending_end
        more = (end is None or end > self.snd_max) and self.right_edge > self.snd_max
        return 3 if more else segments - 1


class ForgetsRoundTrip(SackNewRenoRfcSender):
    """SRTT and RTTVAR are cleared at the third timeout in a row."""

    def on_timeout(self, now: float) -> None:
        """The timeout stays backed off until the next measurement, which is taken as the first."""
        super().on_timeout(now)
        if self.consecutive_timeouts == 3:
            self.estimator.srtt = None


class ForwardRto(SackNewRenoRfcSender):
    """F-RTO; after a spurious timeout half the window, and no retransmission of the rest."""

    _step = 0
    _held_back = False
    _recover_before = 0

    def on_timeout(self, now: float) -> None:
        """Step 1; not while a loss is being repaired."""
        first = not (self.consecutive_timeouts or self.in_recovery or self.repairs_timeout())
        self._recover_before = self.recover
        super().on_timeout(now)
        self._step = 2 if first else 0

    def sends_after_ack(self) -> bool:
        """Step 2b sends new data instead."""
        return not self._held_back and super().sends_after_ack()

    def on_ack(self, ack: Ack, now: float) -> None:
        """Steps 2 and 3."""
        step = self._step
        if not step or ack.number < self.snd_una:
            super().on_ack(ack, now)
        elif ack.number > self.snd_una:
            if ack.number > self.recover:  # the retransmission filled the only gap
                self._step = 0
                super().on_ack(ack, now)
            elif step == 2:
                self._send_new(ack, now)
            else:
                self._spurious(ack, now)
        elif ack.bare:
            self._step = 0
            if step == 3:  # step 3a
                self.snd_nxt = self.snd_una
                self.cwnd = min(self.cwnd + self.smss, 3 * self.smss)
                super().on_ack(ack, now)
                self.output(now)
            else:
                super().on_ack(ack, now)
        else:
            super().on_ack(ack, now)

    def _send_new(self, ack: Ack, now: float) -> None:
        """Step 2b: up to two new segments; without any, go on as usual."""
        self._held_back = True
        super().on_ack(ack, now)
        self._held_back = False
        self._step = 0
        for _ in range(2):
            octets = self.sendable(self.snd_max, min(self.right_edge - self.snd_max, self.smss))
            if octets <= 0:
                break
            self.snd_nxt = self.snd_max
            self.transmit(self.snd_max, self.snd_max + octets, now)
            self._step = 3
        if not self._step:
            self.output(now)

    def _spurious(self, ack: Ack, now: float) -> None:
        """Step 3b."""
        self._step = 0
        self.snd_nxt = self.snd_max
        self.cwnd = self.ssthresh
        self.recover = self._recover_before
        super().on_ack(ack, now)


class Eifel(SackNewRenoRfcSender):
    """Tells a spurious timeout by the echoed timestamp and undoes it."""

    _pipe: int | None = None
    _before: tuple[float, float] = (0.0, 0.0)
    _retransmitted_at = 0
    _recover_before = 0
    _held_back = False

    def on_timeout(self, now: float) -> None:
        """RFC 3522 steps 1 to 3, RFC 4015 section 3.2."""
        estimator = self.estimator
        first = not (self.consecutive_timeouts or self.in_recovery or self.repairs_timeout())
        self._pipe = None
        if first and estimator.srtt is not None:
            self._pipe = max(self.flight_size, 2 * self.smss)
            self._before = estimator.srtt + 2 * estimator.granularity, estimator.rttvar
            self._retransmitted_at = int(now * TIMESTAMP_HZ)
            self._recover_before = self.recover
        super().on_timeout(now)

    def sends_after_ack(self) -> bool:
        """Not before the window is restored."""
        return not self._held_back and super().sends_after_ack()

    def on_ack(self, ack: Ack, now: float) -> None:
        """RFC 3522 steps 4 to 6 at the first acceptable ACK."""
        pipe = self._pipe
        if pipe is None or ack.number <= self.snd_una:
            super().on_ack(ack, now)
            return
        self._pipe = None
        age = ack.ts_ecr_age
        if age is None or int(now * TIMESTAMP_HZ) - round(age * TIMESTAMP_HZ) >= (
            self._retransmitted_at
        ):
            super().on_ack(ack, now)
            return
        acked = ack.number - self.snd_una
        self.snd_nxt = self.snd_max
        self.recover = self._recover_before
        self._held_back = True
        super().on_ack(ack, now)
        self._held_back = False
        self.cwnd = self.flight_size + min(acked, self.initial_window())
        self.ssthresh = pipe
        estimator = self.estimator
        estimator.srtt = max(self._before[0], age)
        estimator.rttvar = max(self._before[1], age / 2)
        estimator.rto = estimator.bounded(
            estimator.srtt + max(estimator.granularity, 4 * estimator.rttvar)
        )
        self.restart_rto(now)
        self.output(now)


class Sent:
    """What RACK knows of a segment that is not delivered."""

    __slots__ = ("end", "lost", "repeated", "seq", "time")

    def __init__(self, seq: int, end: int, time: float, *, repeated: bool, lost: bool) -> None:
        self.seq, self.end, self.time = seq, end, time
        self.repeated, self.lost = repeated, lost


class RackTlpSender(SackNewRenoRfcSender):
    """RACK says what is lost, and a tail loss probe comes before the timeout."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._sent: list[Sent] = []
        self._latest = (-math.inf, 0)
        self._rtt = 0.0
        self._min_rtt = math.inf
        self._highest = 0
        self._selected: list[int] = []
        self._reordering = False
        self._now = 0.0
        self._reorder_deadline: float | None = None
        self._probe_deadline: float | None = None
        self._probe_end: int | None = None
        self._probe_repeats = False

    @property
    def extra_deadline(self) -> float | None:
        """When the reordering timer or the probe timer expires."""
        return earliest(self._reorder_deadline, self._probe_deadline)

    # -- RACK -----------------------------------------------------------------------------------

    def transmit(self, seq: int, end: int, now: float) -> None:
        """Record when each octet was last sent; plan a probe behind new data."""
        if not self.sack_ok:
            super().transmit(seq, end, now)
            return
        repeated = seq < self.snd_max
        kept: list[Sent] = []
        for each in self._sent:
            if each.end <= seq or each.seq >= end:
                kept.append(each)
                continue
            for left, right in ((each.seq, seq), (end, each.end)):
                if left < right:
                    kept.append(
                        Sent(left, right, each.time, repeated=each.repeated, lost=each.lost)
                    )
        kept.append(Sent(seq, end, now, repeated=repeated, lost=False))
        kept.sort(key=lambda each: each.seq)
        self._sent = kept
        super().transmit(seq, end, now)
        if not repeated:
            self._plan_probe(now)

    def on_ack(self, ack: Ack, now: float) -> None:
        """RACK after the scoreboard is updated, then what may have been found lost."""
        self._now = now
        advances = ack.number > self.snd_una
        self._judge_probe(ack)
        super().on_ack(ack, now)
        self._recover_lost(now)
        if advances:
            self._plan_probe(now)
        elif self.scoreboard:
            self._probe_deadline = None

    def take_sack(self, ack: Ack) -> int:
        """Steps 1 to 5 of RFC 8985 section 6.2."""
        newly = super().take_sack(ack)
        if self.sack_ok:
            self._take_delivered(ack)
            self._detect(self._now)
        return newly

    def _take_delivered(self, ack: Ack) -> None:
        kept: list[Sent] = []
        for each in self._sent:
            if each.end > ack.number and not self.scoreboard.covers(each.seq, each.end):
                if each.seq < ack.number:
                    each.seq = ack.number
                kept.append(each)
                continue
            if each.end > ack.number:
                self._selected.append(each.end)
            rtt = self._now - each.time
            if each.repeated and rtt < self._min_rtt:  # of the transmission before
                continue
            if not each.repeated:
                self._min_rtt = min(self._min_rtt, rtt)
                if each.end < self._highest:
                    self._reordering = True
            self._highest = max(self._highest, each.end)
            if (each.time, each.end) > self._latest:
                self._latest = each.time, each.end
                self._rtt = rtt
        self._sent = kept
        self._selected = [end for end in self._selected if end > ack.number]

    def _detect(self, now: float) -> None:
        self._reorder_deadline = None
        if not math.isfinite(self._min_rtt):
            return
        window = self._min_rtt / 4
        if not self._reordering and (self.in_recovery or len(self._selected) >= 3):
            window = 0.0
        later: list[float] = []
        for each in self._sent:
            if each.lost or (each.time, each.end) >= self._latest:
                continue
            due = each.time + self._rtt + window
            if due <= now + 1e-9:
                each.lost = True
            else:
                later.append(due)
        self._reorder_deadline = max(later, default=None)

    def _recover_lost(self, now: float) -> None:
        if not self.sack_ok or not any(each.lost for each in self._sent):
            return
        if self.in_recovery:
            self.output(now)
        elif self.may_enter_recovery() and not self.repairs_timeout():
            self.counters.fast_recoveries += 1
            self.enter_recovery(now)

    def loss_detected(self) -> bool:
        """RACK replaces the count of duplicates."""
        if not self.sack_ok:
            return super().loss_detected()
        return any(each.lost for each in self._sent)

    def enter_recovery(self, now: float) -> None:
        """The episode replaces the probe."""
        self._probe_deadline = self._probe_end = None
        super().enter_recovery(now)

    def first_retransmission(self, now: float) -> int:
        """The first lost segment, which with reordering need not be the first missing one."""
        chosen = self.lost_segment() if self.sack_ok else None
        if chosen is None:
            return super().first_retransmission(now)
        self.transmit(*chosen, now)
        self.high_rxt = max(self.high_rxt, chosen[1])
        return chosen[1]

    def lost_segment(self) -> tuple[int, int] | None:
        """The lowest lost segment, also one whose retransmission is lost."""
        for each in self._sent:
            if each.lost:
                hole = self.scoreboard.first_gap(max(each.seq, self.snd_una), each.end)
                if hole is not None:
                    return hole[0], min(hole[1], hole[0] + self.segment_limit(hole[0]))
        return None

    def send_chosen(self, chosen: tuple[int, int], now: float) -> None:
        """HighRxt does not move back."""
        before = self.high_rxt
        super().send_chosen(chosen, now)
        self.high_rxt = max(before, self.high_rxt)

    def pipe(self) -> int:
        """Octets neither delivered nor lost."""
        return sum(
            each.end - each.seq - self.scoreboard.overlap(each.seq, each.end)
            for each in self._sent
            if not each.lost
        )

    # -- TLP ------------------------------------------------------------------------------------

    def _plan_probe(self, now: float) -> None:
        """RFC 8985 section 7.2."""
        self._probe_deadline = None
        srtt, timer = self.estimator.srtt, self.rto_deadline
        quiet = self.in_recovery or self.repairs_timeout() or self.scoreboard
        if not self.sack_ok or srtt is None or timer is None or not self.flight_size or quiet:
            return
        if self._probe_end is not None or self.consecutive_timeouts:
            return
        wait = 2 * srtt + (0.2 if self.flight_size <= self.smss else 0.0)
        self._probe_deadline = min(now + wait, timer)

    def _probe(self, now: float) -> None:
        """RFC 8985 section 7.3: new data, else the last segment; the RTO starts anew."""
        self._probe_deadline = None
        if not self.flight_size or self.in_recovery:
            return
        octets = self.sendable(self.snd_max, min(self.right_edge - self.snd_max, self.smss))
        seq, self._probe_repeats = self.snd_max, octets <= 0
        if octets > 0:
            end = seq + octets
        else:
            seq, end = max(self.snd_una, self._sent[-1].seq), self.snd_max
        self._probe_end = end
        self.transmit(seq, end, now)
        self.rto_deadline = now + self.estimator.rto

    def _judge_probe(self, ack: Ack) -> None:
        """RFC 8985 section 7.4."""
        end = self._probe_end
        if end is None or ack.number < end:
            return
        reported = bool(ack.blocks) and ack.blocks[0][1] == end and self.is_duplicate_report(ack)
        if not self._probe_repeats or reported:
            self._probe_end = None
        elif ack.number > end:
            self._probe_end = None
            if not self.in_recovery:
                self.ssthresh = self.ssthresh_after_loss()
                self.cwnd = min(self.cwnd, self.ssthresh)
        elif ack.number == self.snd_una and ack.bare and not ack.blocks:
            self._probe_end = None

    # -- timers ---------------------------------------------------------------------------------

    def on_timer(self, now: float) -> None:
        """The two more timers first: a probe puts the timeout off."""
        if self._reorder_deadline is not None and now >= self._reorder_deadline:
            self._detect(now)
            self._recover_lost(now)
        if self._probe_deadline is not None and now >= self._probe_deadline:
            self._probe(now)
        super().on_timer(now)

    def on_timeout(self, now: float) -> None:
        """What was outstanding is repaired in slow start, as the reference does it."""
        self._reorder_deadline = self._probe_deadline = self._probe_end = None
        self._selected = []
        for each in self._sent:
            each.lost = False
        super().on_timeout(now)
        self._probe_deadline = None


class RackTlpConnection(Connection):
    """Runs the two more timers."""

    def next_deadline(self) -> float | None:
        """See :class:`Connection`."""
        if self.state is State.CLOSED:
            return super().next_deadline()
        sender = self.sender
        more = sender.extra_deadline if isinstance(sender, RackTlpSender) else None
        return earliest(super().next_deadline(), more)


# -- explicit congestion notification -----------------------------------------------------------

_CE, _ECT = 0x1000, 0x2000
"""Bits of ``Segment.flags`` beyond those of the header: congestion was experienced; ECT(0)."""


def parse_with_ecn(packet: bytes) -> Segment:
    """The segment, with the mark of its packet."""
    segment = parse_packet(packet)
    if packet[1] & 3 == 3:
        segment.flags |= _CE
    return segment


def emit_with_ecn(segment: Segment) -> bytes:
    """The packet, ECN-capable where the segment asks for it."""
    marked = segment.flags & _ECT
    segment.flags &= 0x1FF
    packet = emit_packet(segment)
    if not marked:
        return packet
    header = bytearray(packet[:20])
    header[1] |= 2
    header[10:12] = b"\0\0"
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (~total & 0xFFFF).to_bytes(2, "big")
    return bytes(header) + packet[20:]


class EcnSender(SackNewRenoRfcSender):
    """Answers an ECN-Echo like a loss, once per window."""

    ecn = False
    echoed = False
    fresh = False
    cwr_due = False
    _answered = 0

    def transmit(self, seq: int, end: int, now: float) -> None:
        """Only new data within the window is ECN-capable."""
        self.fresh = seq >= self.snd_max and end <= self.right_edge
        super().transmit(seq, end, now)
        self.fresh = False

    def on_ack(self, ack: Ack, now: float) -> None:
        """RFC 3168 section 6.1.2."""
        valid = ack.number >= self.snd_una
        if self.echoed and valid and ack.number > self._answered:
            self._answered = self.snd_max
            if not self.in_recovery and not self.repairs_timeout():
                self.ssthresh = self.ssthresh_after_loss()
                self.cwnd = min(self.cwnd, self.ssthresh)
                self.octets_acked = 0
            self.cwr_due = True
        super().on_ack(ack, now)
        self.echoed = False

    def growth_on_ack(self, acked: int) -> int:
        """An ACK with ECN-Echo adds nothing."""
        return 0 if self.echoed else super().growth_on_ack(acked)

    def enter_recovery(self, now: float) -> None:
        """CWR tells of each reduction."""
        self.cwr_due = self.ecn
        self._answered = self.snd_max
        super().enter_recovery(now)

    def on_timeout(self, now: float) -> None:
        """CWR tells of each reduction."""
        self.cwr_due = self.ecn
        self._answered = self.snd_max
        super().on_timeout(now)


class EcnConnection(Connection):
    """Accepts ECN when the peer offers it."""

    _ecn = False
    _echoing = False

    def _take_syn(self, segment: Segment, now: float) -> Receiver:
        offered = segment.flags & (_SYN | _ACK | _ECE | _CWR) == _SYN | _ECE | _CWR
        self._ecn = offered and self.state is State.SYN_RECEIVED
        if isinstance(self.sender, EcnSender):
            self.sender.ecn = self._ecn
        return super()._take_syn(segment, now)

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self._ecn:
            self._outbox[-1].flags |= _ECE

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if self.state is State.SYN_RECEIVED and segment.flags & (_SYN | _ECE | _CWR) == _SYN:
            self._ecn = False  # the peer repeats its SYN without the offer
            if isinstance(self.sender, EcnSender):
                self.sender.ecn = False
        if self._ecn and segment.payload and not segment.flags & (_SYN | _RST):
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if receiver.is_acceptable(seq, segment.sequence_length):
                if segment.flags & _CWR:
                    self._echoing = False
                if segment.flags & _CE:
                    self._echoing = True
        super()._receive_synchronized(segment, receiver, now)

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        if isinstance(self.sender, EcnSender):
            self.sender.echoed = self._ecn and bool(segment.flags & _ECE)
        return super()._ack_part(segment, number, seq, now)

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        if not self._ecn or flags & _RST:
            return
        segment, sender = self._outbox[-1], self.sender
        if self._echoing:
            segment.flags |= _ECE
        if payload and isinstance(sender, EcnSender) and sender.fresh:
            segment.flags |= _ECT
            if sender.cwr_due:
                segment.flags |= _CWR
                sender.cwr_due = False


def with_ecn(setup: Setup) -> Setup:
    """The codec reads and writes the ECN field."""
    setup = setup.with_part(EcnConnection).with_part(EcnSender)
    return replace(setup, parts=replace(setup.parts, parse=parse_with_ecn, emit=emit_with_ecn))


# -- segments and timers ------------------------------------------------------------------------


class Minshall(SackNewRenoRfcSender):
    """A small segment waits only for an earlier small one."""

    _small_end = 0

    def transmit(self, seq: int, end: int, now: float) -> None:
        """SND.SML of RFC 9293 appendix A.3."""
        if seq >= self.snd_max and end - seq < self.smss:
            self._small_end = end
        super().transmit(seq, end, now)

    def sendable(self, seq: int, usable: int) -> int:
        """As :class:`Sender`, but for Nagle's rule."""
        limit = self.segment_limit(seq)
        end = self.sending_end
        wanted = limit if end is None else min(limit, end - seq)
        if seq < self.snd_max and (stop := self.repeat_end(seq)) is not None:
            wanted = min(wanted, stop - seq)
        octets = min(wanted, usable)
        held = self.config.nagle and self._small_end > self.snd_una and seq >= self.snd_max
        held = held and not self.fin_queued
        fits = octets == wanted or 2 * octets >= self.max_snd_wnd
        return octets if octets >= self.smss or (fits and not held) else 0


class PushesBursts(Connection):
    """The last of several segments that leave together carries PSH, as from an offloading card."""

    def transmit(self, now: float) -> list[Segment]:
        """See :class:`Connection`."""
        outbox = super().transmit(now)
        data = [segment for segment in outbox if segment.payload]
        if len(data) > 1:
            data[-1].flags |= _PSH
        return outbox


class KeepsSegments(SackNewRenoRfcSender):
    """A queue of segments, as lwIP's: each is retransmitted as it was sent, until it is all acked.

    One that is acknowledged in part begins below ``snd_una`` then.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._queue: list[tuple[int, int, bytes]] = []
        self._put_segment = self.put
        self.put = self._put_whole

    def _queued(self, seq: int) -> tuple[int, int, bytes] | None:
        return next((each for each in self._queue if each[0] <= seq < each[1]), None)

    def _put_whole(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        self._queue = [each for each in self._queue if each[1] > self.snd_una]
        queued = self._queued(seq)
        if queued is None:
            if self.snd_wnd:  # a window probe is no segment of the queue
                self._queue.append((seq, seq + len(payload) + fin, payload))
        elif queued[0] < seq == self.snd_una:
            payload = queued[2][: seq - queued[0]] + payload
            seq = queued[0]
        self._put_segment(seq, payload, fin, now)

    def segment_limit(self, seq: int) -> int:
        """What was sent is segmented as it was."""
        queued = self._queued(seq) if seq < self.snd_max else None
        return super().segment_limit(seq) if queued is None else queued[1] - seq

    def rescue_segment(self) -> tuple[int, int] | None:
        """The last segment of the queue."""
        chosen = super().rescue_segment()
        queued = None if chosen is None else self._queued(chosen[1] - 1)
        if chosen is None or queued is None:
            return chosen
        left = self.scoreboard.gaps(self.snd_una, self.snd_max)[-1][0]
        return max(left, queued[0]), chosen[1]


class FindsSegmentSize(SackNewRenoRfcSender):
    """Begins with 1024 octets per segment, and sends larger ones once one has arrived."""

    base = 1024
    _full = 0
    _probe_end: int | None = None
    _probe_from = 0

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:
        """See :class:`Sender`."""
        self._full = smss
        super().establish(min(smss, self.base), window, seq, sack_ok=sack_ok)
        self._probe_from = self.snd_una + 16 * self.base

    def sendable(self, seq: int, usable: int) -> int:
        """A probe is new data like any other, in a larger segment."""
        data_end = self.data_end
        probes = (
            self.smss < self._full <= usable
            and seq == self.snd_max
            and self._probe_end is None
            and not self.in_recovery
            and not self.repairs_timeout()
            and not self.scoreboard
            and self.snd_una >= self._probe_from
            and (data_end is None or data_end - seq > self._full)
        )
        return self._full if probes else super().sendable(seq, usable)

    def transmit(self, seq: int, end: int, now: float) -> None:
        """Retransmitting a probe means that it failed."""
        if end - seq == self._full > self.smss:
            self._probe_end = end
        elif self._probe_end is not None and seq < self._probe_end < end + self._full > seq:
            if seq < self.snd_max and end > self._probe_end - self._full:
                self._probe_end = None
                self._probe_from = self.snd_max + 64 * self.base
        super().transmit(seq, end, now)

    def on_new_ack(self, ack: Ack, now: float) -> None:
        """The probe has arrived."""
        if self._probe_end is not None and ack.number >= self._probe_end:
            self._probe_end = None
            self.smss = self._full
        super().on_new_ack(ack, now)


class ProbesMoreOften(SackNewRenoRfcSender):
    """The interval of window probes grows by half each time."""

    def zero_window_probe_interval(self, probes: int) -> float:
        """The first after an RTO, exponential, and bounded."""
        return min(self.estimator.rto * 1.5**probes, self.config.max_rto)


VARIANTS = [
    Variant(
        "tcp-v2-two-rmss", "an ACK per 2*RMSS octets: every third segment if options shorten them",
        "RFC 5681 section 4.2", parts(CountsOctets),
    ),
    Variant(
        "tcp-v2-acks-pushes", "acknowledges a segment with PSH at once",
        "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", parts(AcknowledgesPushes),
    ),
    Variant(
        "tcp-v2-adaptive-delay", "delays ACKs 40 to 200 ms, by the time between segments",
        "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", parts(AdaptsDelay),
    ),
    Variant(
        "tcp-v2-quick-after-gap", "acknowledges sixteen segments one by one after a gap",
        "RFC 5681 section 4.2", parts(QuickAfterGap),
    ),
    Variant(
        "tcp-v2-reneges", "holds 32 KiB out of order; reports more once and discards it",
        "RFC 2018 section 8", parts(Reneges),
    ),
    Variant(
        "tcp-v2-edge-in-steps", "the window's edge moves by four segments or a quarter buffer",
        "RFC 9293 section 3.8.6.2.2", parts(EdgeInSteps),
    ),
    Variant(
        "tcp-v2-shift-seven", "offers a window scale of 7 for a buffer that needs 2",
        "RFC 7323 section 2.2", parts(ShiftSeven),
    ),
    Variant(
        "tcp-v2-dsack-of-parts", "D-SACK reports a part of a segment that was held above a gap",
        "RFC 2883 section 4", parts(ReportsParts),
    ),
    Variant(
        "tcp-v2-keeps-syn-data", "keeps data of a SYN, delivers and acknowledges it afterwards",
        "RFC 9293 section 3.10.7.2; RFC 9293 section 3.10.7.3", parts(KeepsDataOfSyn),
    ),
    Variant(
        "tcp-v2-throttles-challenges", "sends at most one challenge ACK in half a second",
        "RFC 5961 section 7; RFC 9293 section 3.10.7.4", parts(ThrottlesChallenges),
    ),
    Variant(
        "tcp-v2-refuses-old-acks", "discards and challenges a segment with an ACK far too old",
        "RFC 5961 section 5.2; RFC 9293 section 3.10.7.4", parts(RefusesOldAcks),
    ),
    Variant(
        "tcp-v2-vegas", "congestion avoidance holds or shrinks cwnd when the queue grows",
        "RFC 5681 section 3", parts(Vegas), ics={"congestion_control": "vegas"},
    ),
    Variant(
        "tcp-v2-westwood", "ssthresh after a loss is rate times shortest round trip if less",
        "RFC 5681 section 3.1", parts(Westwood), ics={"congestion_control": "westwood"},
    ),
    Variant(
        "tcp-v2-rack-tlp", "RACK-TLP in place of the count of duplicates",
        "RFC 8985 section 6.2; RFC 8985 section 7", parts(RackTlpConnection, RackTlpSender),
        ics={"rack": True, "tlp": True},
    ),
    Variant(
        "tcp-v2-frto", "F-RTO; half the window after a spurious timeout",
        "RFC 5682 section 2.1", parts(ForwardRto), ics={"frto": True},
    ),
    Variant(
        "tcp-v2-eifel", "Eifel: the echoed timestamp shows a spurious timeout, which is undone",
        "RFC 4015 section 3", parts(Eifel), ics={"frto": True},
    ),
    Variant(
        "tcp-v2-early-retransmit", "one or two duplicates suffice for two or three segments",
        "RFC 5827 section 3.1", parts(EarlyRetransmits), ics={"early_retransmit": True},
    ),
    Variant(
        "tcp-v2-ecn", "accepts ECN that the peer offers",
        "RFC 3168 section 6.1", with_ecn, ics={"ecn": True},
    ),
    Variant(
        "tcp-v2-rfc3390-window", "begins with min(4*SMSS, max(2*SMSS, 4380 octets))",
        "RFC 3390 section 1; RFC 6928 section 2", parts(Rfc3390Window),
        ics={"initial_window_segments": 4},
    ),
    Variant(
        "tcp-v2-restarts-with-one", "one segment after an idle time",
        "RFC 5681 section 4.1", parts(RestartsWithOne),
    ),
    Variant(
        "tcp-v2-grows-when-used", "cwnd grows only by ACKs that find it full",
        "RFC 5681 section 3.1", parts(GrowsWhenUsed),
    ),
    Variant(
        "tcp-v2-minshall", "a small segment waits only while an earlier small one is not acked",
        "RFC 9293 section 3.7.4; RFC 9293 appendix A.3", parts(Minshall),
    ),
    Variant(
        "tcp-v2-pushes-bursts", "PSH also on the last of several segments that leave together",
        "RFC 9293 section 3.9.1.2", parts(PushesBursts),
    ),
    Variant(
        "tcp-v2-keeps-segments", "retransmits each segment as it was sent until it is all acked",
        "RFC 9293 section 3.10.7.4", parts(KeepsSegments),
    ),
    Variant(
        "tcp-v2-forgets-round-trip", "clears SRTT and RTTVAR at the third timeout in a row",
        "RFC 6298 section 5", parts(ForgetsRoundTrip),
    ),
    Variant(
        "tcp-v2-probes-more-often", "the interval of window probes grows by half each time",
        "RFC 9293 section 3.8.6.1", parts(ProbesMoreOften),
    ),
    Variant(
        "tcp-v2-keeps-timer", "a fast retransmission leaves the retransmission timer alone",
        "RFC 6298 section 5; RFC 6675 section 6", parts(KeepsTimer),
    ),
    Variant(
        "tcp-v2-two-at-a-time", "at most two segments per ACK in recovery",
        "RFC 6675 section 5", parts(TwoAtATime),
    ),
    Variant(
        "tcp-v2-counts-packets", "cwnd counts segments whatever their size; no Nagle",
        "RFC 5681 section 3.1; RFC 9293 section 3.7.4",
        lambda setup: setup.configured(nagle=False).with_part(CountsPackets),
        ics={"nagle": False},
    ),
    Variant(
        "tcp-v2-finds-segment-size", "begins with 1024 octets per segment and probes for more",
        "RFC 9293 section 3.7.2; RFC 9293 section 3.7.1", parts(FindsSegmentSize),
    ),
]  # fmt: skip
