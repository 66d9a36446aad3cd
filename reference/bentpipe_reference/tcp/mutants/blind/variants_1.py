"""Variations of TCP that are right: each differs from the reference in one respect that is free.

None of them is a fault; each is what a competent vendor could ship.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Variant
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import TIMESTAMP_OCTETS, Handshake
from bentpipe_reference.tcp.output import TIMESTAMP_HZ
from bentpipe_reference.tcp.parts import InitialNumbers, Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.recovery.rfc6582 import Rfc6582Sender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.codec import emit_packet
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK

_ACK, _RST, _PSH = int(Flags.ACK), int(Flags.RST), int(Flags.PSH)


def _with(*parts: type[Any], **settings: Any) -> Callable[[Setup], Setup]:
    """What puts these parts and settings in."""

    def configure(setup: Setup) -> Setup:
        if settings:
            setup = replace(setup, config=replace(setup.config, **settings))
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# -- acknowledgments and windows -------------------------------------------------------------


class AcksOnAHeartbeat(Receiver):
    """One timer of 200 ms for all connections, as 4.4BSD's fast timeout."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        before = self.ack_deadline
        super()._take(seq, payload, now)
        if before is None and self.ack_deadline is not None:
            self.ack_deadline = (math.floor(now / 0.2) + 1) * 0.2


class AcksQuicklyAtFirst(Receiver):
    """The first sixteen segments are acknowledged each, for the peer's slow start."""

    _seen = 0

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        self._seen += 1
        return super().should_ack_now(in_order=in_order, gap=gap) or self._seen <= 16


class AcksBeforeTheApplication(Connection):
    """An acknowledgment that is due leaves before the application has read."""

    def receive(self, segment: Segment, now: float) -> None:
        super().receive(segment, now)
        receiver = self.receiver
        if receiver is not None and receiver.ack_now and self.state is not State.CLOSED:
            self._put(self.sender.snd_max, _ACK, now)


class AcksFinAlone(Connection):
    """The peer's FIN is acknowledged at once and by itself; ours follows in its own segment."""

    def _take_text(self, segment: Segment, seq: int, receiver: Receiver, now: float) -> None:
        before = receiver.fin_received
        super()._take_text(segment, seq, receiver, now)
        if receiver.fin_received and not before:
            self._put(self.sender.snd_max, _ACK, now)


class ThirdAckAlone(Connection):
    """The ACK that ends the handshake leaves by itself although data could go with it."""

    def _receive_in_syn_sent(self, segment: Segment, now: float) -> None:
        super()._receive_in_syn_sent(segment, now)
        receiver = self.receiver
        if receiver is not None and receiver.ack_now and self.state is State.ESTABLISHED:
            self._put(self.sender.snd_nxt, _ACK, now)


class UpdatesWhenDoubled(Receiver):
    """A window update of its own only when the window at least doubles, as Linux."""

    def window_update_due(self) -> bool:
        gain, window = self._gain(), self.edge - self.rcv_nxt
        least = min(self.config.receive_buffer // 2, self.config.mss)
        return gain >= least and window + gain >= 2 * window


class GrowingWindow(Receiver):
    """The offered buffer begins with 64 KiB and grows by what has arrived (autotuning)."""

    def free_room(self) -> int:
        offered = 65535 + self.buffer.rcv_nxt - self.irs - 1
        return max(0, min(super().free_room(), offered - self.buffer.unread))


class LaterBlocksAscend(Receiver):
    """The same blocks; those behind the first in ascending order."""

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        blocks = super().sack_blocks_to_send(most)
        first = 1 if self._duplicate is None else 2
        return (*blocks[:first], *sorted(blocks[first:]))


class KeepsLittleOutOfOrder(Reassembly):
    """At most 100 segments wait out of order; more are dropped unreported (memory is shared)."""

    def insert(self, seq: int, payload: bytes) -> None:
        if seq > self.rcv_nxt and len(self._pieces) >= 100:
            return
        super().insert(seq, payload)


# -- congestion window -----------------------------------------------------------------------


class EquationThree(SackNewRenoRfcSender):
    """cwnd += SMSS * SMSS / cwnd for every ACK of new data."""

    def congestion_avoidance_increase(self, acked: int) -> int:
        return max(1, self.smss * self.smss // self.cwnd)


class LeavesSlowStartByDelay(SackNewRenoRfcSender):
    """HyStart++: growing round trips end the first slow start before a loss does."""

    _round_end = 0
    _last_min = math.inf
    _least = math.inf
    _samples = 0
    _baseline: float | None = None
    _rounds = 0

    def measured_rtt(self, ack: Ack, now: float) -> float | None:
        rtt = super().measured_rtt(ack, now)
        if rtt is not None:
            self._least = min(self._least, rtt)
            self._samples += 1
        return rtt

    def slow_start_increase(self, acked: int) -> int:
        full = super().slow_start_increase(acked)
        if self.ssthresh < 1 << 30:
            return full
        if self._baseline is None:
            rise = min(max(self._last_min / 8, 0.004), 0.016)
            if self._samples >= 8 and self._least >= self._last_min + rise:
                self._baseline, self._rounds = self._least, 0
        elif self._samples >= 8 and self._least < self._baseline:
            self._baseline = None
        if self.snd_una >= self._round_end:
            self._last_min, self._least = self._least, math.inf
            self._samples, self._round_end = 0, self.snd_max
            if self._baseline is not None:
                self._rounds += 1
                if self._rounds > 5:
                    self.ssthresh = self.cwnd
        return full if self._baseline is None else full // 4


class FourAtATime(SackNewRenoRfcSender):
    """No event, the first one aside, sends more than four segments outside recovery."""

    _burst = 0

    def output(self, now: float) -> None:
        self._burst = 0
        super().output(now)

    def send_next(self, now: float) -> bool:
        if self._burst >= 4 and self.snd_una > self.iss + 1:
            return False
        sent = super().send_next(now)
        self._burst += sent
        return sent


class EndsRecoveryGently(SackNewRenoRfcSender):
    """After SACK recovery cwnd is at most what is outstanding and one segment: no burst."""

    def exit_window(self) -> int:
        return Rfc6582Sender.exit_window(self)


class WholeSegments(SackNewRenoRfcSender):
    """ssthresh is rounded down to whole segments, as 4.4BSD's."""

    def ssthresh_after_loss(self) -> int:
        whole = self.window_to_halve() // 2 // self.smss * self.smss
        return max(whole, 2 * self.smss)


class Proportional(SackNewRenoRfcSender):
    """Proportional Rate Reduction with the slow start reduction bound."""

    _delivered = 0
    _prr_delivered = 0
    _prr_out = 0
    _recover_fs = 1

    def take_sack(self, ack: Ack) -> int:
        una = self.snd_una
        before = self.scoreboard.overlap(una, ack.number)
        newly = super().take_sack(ack)
        self._delivered = newly + ack.number - una - before
        return newly

    def enter_recovery(self, now: float) -> None:
        self._recover_fs = max(1, self.flight_size)
        self._prr_delivered = self._prr_out = 0
        super().enter_recovery(now)

    def transmit(self, seq: int, end: int, now: float) -> None:
        if self.in_recovery:
            self._prr_out += end - seq
        super().transmit(seq, end, now)

    def output(self, now: float) -> None:
        if self.in_recovery and self.sack_ok:
            delivered, self._delivered = self._delivered, 0
            self._prr_delivered += delivered
            pipe = self.pipe()
            if pipe > self.ssthresh:
                allowed = -(-self._prr_delivered * self.ssthresh // self._recover_fs)
                count = allowed - self._prr_out
            else:
                limit = max(self._prr_delivered - self._prr_out, delivered) + self.smss
                count = min(self.ssthresh - pipe, limit)
            self.cwnd = pipe + max(0, count)
        super().output(now)

    def exit_window(self) -> int:
        return self.ssthresh if self.sack_ok else super().exit_window()


class Paced(SackNewRenoRfcSender):
    """Outside recovery two segments at a time, spread over the round trip."""

    pace_deadline: float | None = None
    _next = 0.0
    _pair = 0

    def send_next(self, now: float) -> bool:
        if now < self._next:
            self.pace_deadline = self._next
            return False
        before = self.snd_nxt
        if not super().send_next(now):
            return False
        self._pair += 1
        if self._pair >= 2 and self.estimator.srtt is not None:
            self._pair = 0
            gain = 2.0 if self.in_slow_start() else 1.25
            octets = 2 * max(1, self.snd_nxt - before)
            self._next = now + octets * self.estimator.srtt / (gain * max(self.cwnd, self.smss))
        return True


class PacedConnection(Connection):
    """With the timer of pacing."""

    def next_deadline(self) -> float | None:
        first = super().next_deadline()
        return earliest(first, self.sender.pace_deadline)

    def advance(self, now: float) -> None:
        super().advance(now)
        due = self.sender.pace_deadline
        if due is not None and now >= due:
            self.sender.pace_deadline = None
            self._output(now)

    def _stop_timers(self) -> None:
        super()._stop_timers()
        self.sender.pace_deadline = None


class BoundedFlight(SackNewRenoRfcSender):
    """No more outstanding than a send buffer of 32 KiB, which holds it for retransmission."""

    MOST = 32768

    def sendable(self, seq: int, usable: int) -> int:
        room = self.snd_una + max(self.MOST, 4 * self.smss) - seq
        return super().sendable(seq, min(usable, room))


# -- segments --------------------------------------------------------------------------------


class FinAlone(SackNewRenoRfcSender):
    """FIN leaves in a segment of its own."""

    def segment_limit(self, seq: int) -> int:
        data_end = self.data_end
        if self.fin_queued and data_end is not None and data_end - seq <= self.smss:
            return max(1, data_end - seq)
        return self.smss


class SmallerPackets(Handshake):
    """The outgoing interface has an MTU of 1280 octets; the MSS to receive is as ever."""

    def smss(self) -> int:
        return max(1, min(super().smss(), 1240 - (TIMESTAMP_OCTETS if self.timestamps_ok else 0)))


class PushesHalfWindows(Connection):
    """PSH also at each half of the largest window, as Linux."""

    _pushed: int | None = None

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        sender = self.sender
        super().put(seq, payload, fin, now)
        segment = self._outbox[-1]
        if not payload:
            return
        end = seq + len(payload)
        if self._pushed is None:
            self._pushed = sender.iss + 1
        if end > self._pushed + sender.max_snd_wnd // 2:
            segment.flags |= _PSH
        if segment.flags & _PSH:
            self._pushed = max(self._pushed, end)


class OverridesSoon(SackNewRenoRfcSender):
    """The override timeout of the sender's silly window avoidance is half a second."""

    def plan_probe(self, now: float) -> None:
        if self.persist_deadline is None and self.snd_wnd:
            self.persist_deadline = now + 0.5
        super().plan_probe(now)


# -- timers ----------------------------------------------------------------------------------


class SlowTicks(SackNewRenoRfcSender):
    """The retransmission timer expires on a tick of half a second, never early."""

    def _on_tick(self) -> None:
        if self.rto_deadline is not None:
            self.rto_deadline = math.ceil(self.rto_deadline / 0.5) * 0.5

    def start_rto(self, now: float) -> None:
        running = self.rto_deadline is not None
        super().start_rto(now)
        if not running:
            self._on_tick()

    def restart_rto(self, now: float) -> None:
        super().restart_rto(now)
        self._on_tick()


class ScaledGains(SackNewRenoRfcSender):
    """Alpha and beta are divided by the samples expected per round trip."""

    def measured_rtt(self, ack: Ack, now: float) -> float | None:
        rtt = super().measured_rtt(ack, now)
        if ack.ts_ecr_age is not None:
            expected = max(1, -(-self.flight_size // (2 * self.smss)))
            self.estimator.ALPHA = 1 / 8 / expected
            self.estimator.BETA = 1 / 4 / expected
        return rtt


class OneSample(SackNewRenoRfcSender):
    """One segment per round trip is timed, Karn's rule kept, although there are timestamps."""

    def measured_rtt(self, ack: Ack, now: float) -> float | None:
        return super().measured_rtt(replace(ack, ts_ecr_age=None), now)


class TenHertz(Connection):
    """The timestamp clock ticks ten times a second."""

    def _timestamp(self, now: float) -> int:
        return int(now * 10) + self._timestamp_offset & MASK

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if ack.ts_ecr_age is not None:
            ack.ts_ecr_age *= TIMESTAMP_HZ / 10
        return ack


# -- the wire and the connection -------------------------------------------------------------


def _plain_options(segment: Segment) -> bytes:
    parts: list[bytes] = []
    if segment.window_scale is not None:
        parts.append(bytes((3, 3, segment.window_scale)))
    if segment.timestamps is not None:
        parts.append(bytes((8, 10)) + b"".join(x.to_bytes(4, "big") for x in segment.timestamps))
    if segment.sack_blocks:
        blocks = b"".join(x.to_bytes(4, "big") for block in segment.sack_blocks for x in block)
        parts.append(bytes((5, 2 + len(blocks))) + blocks)
    if segment.sack_permitted:
        parts.append(bytes((4, 2)))
    if segment.mss is not None:
        parts.append(bytes((2, 4)) + segment.mss.to_bytes(2, "big"))
    parts.extend(bytes((kind, 2 + len(data))) + data for kind, data in segment.unknown)
    packed = b"".join(parts)
    return packed + bytes(-len(packed) % 4)


def _sum(octets: bytes) -> int:
    total = sum(int.from_bytes(octets[i : i + 2], "big") for i in range(0, len(octets), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def emit_unaligned(segment: Segment) -> bytes:
    """Options in another order, on any octet, closed by End of Option List."""
    packet = emit_packet(segment)
    options = _plain_options(segment)
    head = bytearray(packet[20:40])
    head[12] = (20 + len(options)) << 2 | head[12] & 15
    head[16:18] = b"\0\0"
    body = bytes(head) + options + segment.payload
    pseudo = packet[12:20] + b"\0\6" + len(body).to_bytes(2, "big")
    padded = pseudo + body + bytes(len(body) % 2)
    body = body[:16] + _sum(padded).to_bytes(2, "big") + body[18:]
    header = bytearray(packet[:20])
    header[2:4] = (20 + len(body)).to_bytes(2, "big")
    header[10:12] = b"\0\0"
    header[10:12] = _sum(bytes(header)).to_bytes(2, "big")
    return bytes(header) + body


def _emitting(emit: Callable[[Segment], bytes]) -> Callable[[Setup], Setup]:
    return lambda setup: replace(setup, parts=replace(setup.parts, emit=emit))


class LeavesRoomAtFirst(SackNewRenoRfcSender):
    """The first segment leaves four octets for an option."""

    def segment_limit(self, seq: int) -> int:
        limit = super().segment_limit(seq)
        return min(limit, max(1, self.smss - 4)) if seq == self.iss + 1 else limit


class TellsItsUserTimeout(Connection):
    """SYN, SYN-ACK and the first segment after them carry a User Timeout of ten minutes."""

    OPTION = ((28, (0x8000 | 10).to_bytes(2, "big")),)
    _told = False

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        self._outbox[-1].unknown = self.OPTION

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        segment = self._outbox[-1]
        if not (self._told or flags & _RST or segment.sack_blocks):
            self._told = True
            segment.unknown = self.OPTION


class OneSecret(InitialNumbers):
    """A secret of the host in place of numbers."""

    _secret: int | None = None

    def draw(self, syn: Segment | None) -> int:
        if self._secret is None:
            self._secret = super().draw(syn)
        return self._secret


class ClockedNumbers(Connection):
    """ISS = M + F(addresses, ports, secret), M ticking every four microseconds."""

    def _number(self, now: float) -> None:
        old, ends = self.sender, self.addresses
        text = f"{ends.local} {ends.local_port} {ends.remote} {ends.remote_port} {old.iss}"
        digest = hashlib.sha256(text.encode()).digest()
        iss = int.from_bytes(digest[:4], "big") + int(now * 250_000) & MASK
        self.sender = type(old)(self.config, self.put, iss, old.estimator)
        self.sender.on_event = old.on_event

    def open(self, now: float) -> None:
        self._number(now)
        super().open(now)

    def accept(self, syn: Segment, now: float) -> None:
        self._number(now)
        super().accept(syn, now)


class PlainReset(Connection):
    """An abort sends <SEQ=SND.NXT><CTL=RST>, without ACK."""

    def abort(self, reason: str, now: float) -> None:
        if self.state not in (State.CLOSED, State.SYN_SENT, State.TIME_WAIT):
            reset = self._segment(self.sender.snd_nxt, _RST)
            if self.handshake.timestamps_ok:
                reset.timestamps = self._timestamp(now), 0
            self._outbox.append(reset)
        self._end(reason, now)


def _ok(
    name: str, title: str, clause: str, configure: Callable[[Setup], Setup], **ics: Any
) -> Variant:
    return Variant("tcp-v1-" + name, title, clause, configure, ics=ics)


VARIANTS = [
    _ok("ack-heartbeat", "an ACK is delayed until the next tick of one 200 ms timer for all, 0 to 200 ms",
        "RFC 9293 section 3.8.6.3: the delay MUST be less than 0.5 s (MUST-58), its timer is free",
        _with(AcksOnAHeartbeat)),
    _ok("ack-quickly-at-first", "acknowledges each of the first sixteen segments, then delays",
        "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3: at least every second segment, more is free",
        _with(AcksQuicklyAtFirst)),
    _ok("ack-before-reading", "an ACK leaves before the application has read, with the window of that moment",
        "RFC 9293 section 3.8.6.2.2: RCV.WND counts what the user has not taken; 3.8.6.3",
        _with(AcksBeforeTheApplication)),
    _ok("ack-fin-alone", "acknowledges a FIN by itself before its own FIN",
        "RFC 9293 section 3.10.7.4, eighth: send an acknowledgment for the FIN; piggybacking is not required",
        _with(AcksFinAlone)),
    _ok("third-ack-alone", "the ACK of the SYN-ACK carries no data although there is some",
        "RFC 9293 section 3.10.7.3: queued data MAY be included",
        _with(ThirdAckAlone)),
    _ok("updates-when-doubled", "tells of more window by itself only when the window doubles",
        "RFC 9293 section 3.8.6.2.2: only the least advance is prescribed, not a segment to tell of it",
        _with(UpdatesWhenDoubled)),
    _ok("growing-window", "offers 64 KiB and more as data arrives",
        "RFC 9293 section 3.8.6: the window is the receiver's choice and does not shrink",
        _with(GrowingWindow)),
    _ok("later-blocks-ascend", "SACK blocks behind the first in ascending order",
        "RFC 2018 section 4: after the first, blocks may be listed in arbitrary order",
        _with(LaterBlocksAscend)),
    _ok("little-out-of-order", "holds at most 100 segments out of order and drops further ones unreported",
        "RFC 9293 section 3.10.7.4: SHLD-31, to bound the memory an attacker can occupy",
        _with(KeepsLittleOutOfOrder)),
    _ok("equation-three", "congestion avoidance by SMSS*SMSS/cwnd per ACK",
        "RFC 5681 section 3.1: equation 3 is an acceptable approximation",
        _with(EquationThree)),
    _ok("hystart", "leaves the first slow start when the round trip grows",
        "RFC 9406 section 4.2; RFC 5681 section 3.1: at most SMSS per ACK",
        _with(LeavesSlowStartByDelay)),
    _ok("four-at-a-time", "at most four segments per ACK outside recovery",
        "RFC 5681 section 3: no more aggressive than; RFC 6582 section 3.2: measures against bursts",
        _with(FourAtATime)),
    _ok("ends-recovery-gently", "cwnd after SACK recovery is FlightSize and a segment if that is less",
        "RFC 6582 section 3.2, step 3, option 1; RFC 5681 section 3: less is permitted",
        _with(EndsRecoveryGently)),
    _ok("whole-segments", "ssthresh is rounded down to whole segments",
        "RFC 5681 section 3.1: no more than equation 4",
        _with(WholeSegments)),
    _ok("prr", "Proportional Rate Reduction",
        "RFC 6937 section 3; RFC 9937: in place of the window of RFC 6675 section 5, step 4.2",
        _with(Proportional), prr=True),
    _ok("paced", "spreads the window over the round trip",
        "RFC 5681 section 3: cwnd bounds what may be sent, nothing says it must be sent at once",
        _with(Paced, PacedConnection), pacing=True),
    _ok("bounded-flight", "never more than 32 KiB outstanding, the send buffer",
        "RFC 9293 section 3.8.6; RFC 5681 section 3: the windows are upper bounds",
        _with(BoundedFlight)),
    _ok("fin-alone", "FIN never shares a segment with data",
        "RFC 9293 section 3.10.4: form a FIN segment; section 3.4",
        _with(FinAlone)),
    _ok("smaller-packets", "sends at most 1240 octets of TCP data and options, as its own MTU is 1280",
        "RFC 9293 section 3.7.1: MUST-16, the smaller of send MSS and what the IP layer permits",
        _with(SmallerPackets)),
    _ok("pushes-half-windows", "PSH also after each half of the largest window",
        "RFC 9293 section 3.9.1.2: PSH is no record marker, the last buffered segment MUST have it, others may",
        _with(PushesHalfWindows)),
    _ok("overrides-soon", "the override timeout of silly window avoidance is 0.5 s",
        "RFC 9293 section 3.8.6.2.1: 0.1 to 1.0 s",
        _with(OverridesSoon)),
    _ok("slow-ticks", "the retransmission timer expires on ticks of 500 ms, G is 0.5",
        "RFC 6298 section 4: no requirement for the granularity; section 1: more conservative is permitted",
        _with(SlowTicks, clock_granularity=0.5)),
    _ok("initial-rto", "RTO is 2.2 s before the first measurement",
        "RFC 6298 section 2.1: MAY use any other value greater than 1 s",
        _with(initial_rto=2.2)),
    _ok("scaled-gains", "divides alpha and beta by the expected samples",
        "RFC 7323 section 4.2 and appendix G",
        _with(ScaledGains)),
    _ok("one-sample", "times one segment per round trip although there are timestamps",
        "RFC 6298 section 3: at least one measurement per RTT",
        _with(OneSample)),
    _ok("ten-hertz", "a timestamp clock of 100 ms, G is 0.1",
        "RFC 7323 section 5.4: 1 ms to 1 s per tick",
        _with(TenHertz, clock_granularity=0.1)),
    _ok("options-unaligned", "options in another order, unaligned, closed by EOL",
        "RFC 9293 section 3.1: MUST-64 options may begin on any octet boundary; RFC 7323 appendix A only recommends",
        _emitting(emit_unaligned)),
    _ok("user-timeout", "SYNs and the first segment after them carry the User Timeout option",
        "RFC 5482 section 3.1; RFC 9293 section 3.1: MUST-6 unknown options are ignored",
        _with(LeavesRoomAtFirst, TellsItsUserTimeout)),
    _ok("clocked-numbers", "ISS from a 4 us clock and a hash of the addresses",
        "RFC 9293 section 3.4.1: SHLD-1, RFC 6528 section 3",
        _with(OneSecret, ClockedNumbers)),
    _ok("plain-reset", "an abort sends RST without ACK",
        "RFC 9293 section 3.10.5: <SEQ=SND.NXT><CTL=RST>",
        _with(PlainReset)),
]  # fmt: skip
