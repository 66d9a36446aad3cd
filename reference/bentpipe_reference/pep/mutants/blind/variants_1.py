"""Right boxes: each differs from the reference in one respect that PEP/1 and TCP leave open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from bentpipe_reference.common.blind import Variant
from bentpipe_reference.common.checksum import (
    checksum_field,
    internet_checksum,
    ones_complement_residue,
)
from bentpipe_reference.common.ipv4 import emit_ipv4
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import OUTER
from bentpipe_reference.pep.endpoint import Endpoint, RelayReceiver
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.wire.codec import emit_packet
from bentpipe_reference.tcp.wire.segment import Segment
from bentpipe_reference.tcp.wire.sequence import unwrap

FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128


def _with(*parts: type[Any], **endpoints: Any) -> Callable[[Setup], Setup]:
    """Other parts, and other settings of both TCPs."""

    def configure(setup: Setup) -> Setup:
        if endpoints:
            setup = setup.endpoints(**endpoints)
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


def _emitting(make: Callable[[], Callable[[Segment], bytes]]) -> Callable[[Setup], Setup]:
    """Another way to write packets."""

    def configure(setup: Setup) -> Setup:
        return replace(setup, parts=replace(setup.parts, emit=make()))

    return configure


# -- the IP header of its own packets, and the order of options ------------------------------------


def _patched(packet: bytes, at: int, octets: bytes) -> bytes:
    head = bytearray(packet[:20])
    head[at : at + len(octets)] = octets
    head[10:12] = bytes(2)
    head[10:12] = internet_checksum(bytes(head)).to_bytes(2, "big")
    return bytes(head) + packet[20:]


def _counted() -> Callable[[Segment], bytes]:
    """Time to live 255; the identification counts (RFC 6864 section 4.1: free where DF is set)."""
    numbers = count(0x4D2)

    def emit(segment: Segment) -> bytes:
        packet = _patched(emit_packet(segment), 4, (next(numbers) & 0xFFFF).to_bytes(2, "big"))
        return _patched(packet, 8, b"\xff")

    return emit


def _reordered() -> Callable[[Segment], bytes]:
    """SYNs have MSS, Window Scale, SACK-Permitted and Timestamps, packed, padded by End of List."""

    def emit(segment: Segment) -> bytes:
        if not segment.flags & SYN or segment.unknown or segment.sack_blocks:
            return emit_packet(segment)
        options = b""
        if segment.timestamps is not None:
            ticks, echo = segment.timestamps
            options += b"\x08\x0a" + ticks.to_bytes(4, "big") + echo.to_bytes(4, "big")
        if segment.mss is not None:
            options += b"\x02\x04" + segment.mss.to_bytes(2, "big")
        if segment.window_scale is not None:
            options += bytes((3, 3, segment.window_scale))
        if segment.sack_permitted:
            options += b"\x04\x02"
        options += bytes(-len(options) % 4)
        body = (
            segment.sport.to_bytes(2, "big") + segment.dport.to_bytes(2, "big")
            + segment.seq.to_bytes(4, "big") + segment.ack.to_bytes(4, "big")
            + ((20 + len(options)) << 10 | segment.flags).to_bytes(2, "big")
            + segment.window.to_bytes(2, "big") + bytes(2) + segment.urgent.to_bytes(2, "big")
            + options + segment.payload
        )  # fmt: skip
        pseudo = segment.source + segment.destination + 6 + len(body)
        check = checksum_field(ones_complement_residue(body) + pseudo)
        body = body[:16] + check.to_bytes(2, "big") + body[18:]
        return emit_ipv4(6, segment.source, segment.destination, body)

    return emit


# -- acknowledgments and windows -------------------------------------------------------------------


class Heartbeat(RelayReceiver):
    """Delayed acknowledgments leave with a clock that ticks every 0.2 s for all connections."""

    _seen_at = 0.0

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        self._seen_at = now
        super()._take(seq, payload, now)

    def delayed_ack_interval(self) -> float:
        return 0.2 - self._seen_at % 0.2


class QuickAck(RelayReceiver):
    """Acknowledges each of the first 16 full segments, then every second one."""

    _quick = 16

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        if self._quick and self._octets_unacked >= max(self._largest_segment, 536):
            self._quick -= 1
            return True
        return super().should_ack_now(in_order=in_order, gap=gap)


_FIRST_WINDOW = 16384


class GrowingWindow(RelayReceiver):
    """Offers 16 KB first, and more as octets arrive, up to its buffer."""

    def free_room(self) -> int:
        arrived = self.buffer.rcv_nxt - self.irs - 1
        limit = min(self.config.receive_buffer, max(_FIRST_WINDOW, 2 * arrived))
        return max(0, min(limit - self.buffer.unread, 0xFFFF << self.window_shift))


class GrowingEndpoint(Endpoint):
    """Its SYN offers no more either."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        self._outbox[-1].window = min(self._outbox[-1].window, _FIRST_WINDOW)


class Steps(RelayReceiver):
    """Moves the right edge of its window by eight segments, or half its buffer, at least."""

    def _step(self) -> int:
        return min(self.config.receive_buffer // 2, 8 * self.config.mss)

    def update_edge(self) -> None:
        gain = self._gain()
        if gain >= self._step():
            self.edge += gain

    def window_update_due(self) -> bool:
        return self._gain() >= self._step()


_LOW_WATER = 16384


class LowWater(Relay):
    """Gives a sink no more while 16 KB wait there that have not been sent once."""

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        while (ready := source.readable) and (room := sink.write_room):
            unsent = sink.sender.data_end - sink.sender.snd_max
            if unsent >= _LOW_WATER:
                return
            octets = source.read(min(ready, room, _LOW_WATER - unsent))
            self.carried[source is self.endpoint(1)] += len(octets)
            sink.write(octets, now)


def _long_side(setup: Setup) -> Setup:
    """The same buffer in sum, but 96 KB of it at the satellite and 32 KB at the ends."""
    config = setup.config
    small, large = 32 * 1024, 96 * 1024
    return setup.configured(
        outer=replace(config.outer, receive_buffer=small, send_buffer=small),
        inner=replace(config.inner, receive_buffer=large, send_buffer=large),
    )


# -- options ---------------------------------------------------------------------------------------


def _no_outer_timestamps(setup: Setup) -> Setup:
    return setup.configured(outer=replace(setup.config.outer, timestamps=False))


class AnnouncingEndpoint(Endpoint):
    """Announces an MSS that its relay may have lowered."""

    announced = 65535

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        segment = self._outbox[-1]
        segment.mss = min(segment.mss or 536, self.announced)


class AnnouncingRelay(Relay):
    """Tells the caller the MSS that whom it calls has announced, if that is less than its own."""

    def _answer(self, now: float) -> None:
        self.near = self._make(self.caller)
        if not self.far.is_opening:
            self.near.announced = self.far.handshake._peer_mss
        self.near.accept(self.syn, now)


# -- ends and resets -------------------------------------------------------------------------------


class LoneFin(SackNewRenoRfcSender):
    """Its FIN never shares a segment with octets."""

    def transmit(self, seq: int, end: int, now: float) -> None:
        data_end = self.data_end
        if self.fin_queued and data_end is not None and seq < data_end < end:
            super().transmit(seq, data_end, now)
            seq = data_end
        super().transmit(seq, end, now)


def _all_delivered(sink: Any) -> bool:
    """Whether the peer has acknowledged every octet that there is for it."""
    sender = sink.sender
    return not sink.is_opening and sender.snd_una >= sender.data_end


class FinLast(Relay):
    """An end gets its FIN when it has acknowledged every octet before it."""

    def carry_end(self, source: Any, sink: Any, now: float) -> None:
        last = not self.config.paired or sink is self.endpoint(OUTER)
        if not last or _all_delivered(sink):
            super().carry_end(source, sink, now)


class FinAfterOctets(Relay):
    """Acknowledges a FIN when the receiver has every octet, whether or not it has the FIN."""

    def confirm(self, source: Any, sink: Any, now: float) -> None:
        last = not self.config.paired or sink is self.endpoint(OUTER)
        if last and source.stream_has_ended and not source.readable and _all_delivered(sink):
            source.confirm_end(now)
        else:
            super().confirm(source, sink, now)


class LateFinAck(Endpoint):
    """The acknowledgment of a FIN may wait 0.1 s, as that of octets, for a segment to ride on."""

    def confirm_end(self, now: float) -> None:
        receiver = self.receiver
        due = receiver is not None and receiver.ack_now
        confirmed = receiver is None or receiver.confirmed
        super().confirm_end(now)
        if not confirmed and receiver.confirmed and not due and receiver.ack_now:
            receiver.ack_now = False
            receiver.ack_deadline = earliest(receiver.ack_deadline, now + 0.1)


class BareReset(Endpoint):
    """Aborts with <SEQ=SND.NXT><CTL=RST>, without ACK."""

    def abort(self, reason: str, now: float) -> None:
        opening = self.is_opening
        super().abort(reason, now)
        if not opening and self._outbox and self._outbox[-1].flags == RST | ACK:
            reset = self._outbox[-1]
            reset.flags, reset.ack, reset.window, reset.sack_blocks = RST, 0, 0, ()
            if reset.timestamps is not None:  # TSecr is not valid without ACK
                reset.timestamps = reset.timestamps[0], 0


class LingeringEndpoint(Endpoint):
    """Can be told to end soon."""

    doomed: float | None = None

    def next_deadline(self) -> float | None:
        if self.doomed is None or self.is_closed:
            return super().next_deadline()
        return earliest(super().next_deadline(), self.doomed)


class Lingering(Relay):
    """After a reset it sends on what it holds for 0.3 s at most, and then resets."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if sink.is_closed:
            return
        if sink.is_opening or sink.only_waits or sink.sender.fin_queued:
            super().carry_failure(source, sink, now)
            return
        if sink.doomed is None:
            sink.doomed = now + 0.3
        self.carry_octets(source, sink, now)
        if now >= sink.doomed or (not source.readable and _all_delivered(sink)):
            super().carry_failure(source, sink, now)


# -- early opening ---------------------------------------------------------------------------------


class CreditReceiver(RelayReceiver):
    """Offers no more than a credit until that is lifted."""

    credit: int | None = None

    def free_room(self) -> int:
        room = super().free_room()
        if self.credit is None:
            return room
        return max(0, min(room, self.irs + 1 + self.credit - self.rcv_nxt))


class CreditEndpoint(Endpoint):
    """Passes the credit on to its receiver."""

    credit: int | None = None

    def _take_syn(self, segment: Segment, now: float) -> Any:
        receiver = super()._take_syn(segment, now)
        receiver.credit = self.credit
        return receiver


class CreditRelay(Relay):
    """A caller that is answered early may send four segments until the server has answered."""

    def _answer(self, now: float) -> None:
        self.near = self._make(self.caller)
        if self.far.is_opening:
            self.near.credit = 4 * self.near.config.mss
        self.near.accept(self.syn, now)

    def step(self, now: float) -> None:
        super().step(now)
        receiver = None if self.near is None else self.near.receiver
        if receiver is not None and receiver.credit is not None and not self.far.is_opening:
            receiver.credit = None
            if (
                not self.near.is_opening
                and not self.near.is_closed
                and receiver.window_update_due()
            ):
                receiver.ack_now = True


# -- how octets are sent on ------------------------------------------------------------------------


class PushNoting(Endpoint):
    """Notes up to where the peer has pushed; ``hold`` is until when its last octets may wait."""

    pushed = 0
    hold: float | None = None

    def _take_text(self, segment: Segment, seq: int, receiver: Any, now: float) -> None:
        if segment.payload and segment.flags & (PSH | FIN):
            self.pushed = max(self.pushed, seq + len(segment.payload))
        super()._take_text(segment, seq, receiver, now)

    def next_deadline(self) -> float | None:
        return earliest(super().next_deadline(), self.hold)


class Joining(Relay):
    """Octets that nobody has pushed wait up to 0.1 s for those that fill their segment."""

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        ready = source.readable
        if not ready or sink.is_opening:
            source.hold = None
            super().carry_octets(source, sink, now)
            return
        rest = ready % sink.sender.smss
        begins = source.receiver.buffer.rcv_nxt - ready
        if (
            not rest
            or source.pushed > begins
            or source.stream_has_ended
            or (source.hold is not None and now >= source.hold)
            or source.config.receive_buffer < 8 * sink.sender.smss
        ):
            source.hold = None
            super().carry_octets(source, sink, now)
            if source.readable:
                source.hold = None
            return
        if ready > rest and (take := min(ready - rest, sink.write_room)):
            octets = source.read(take)
            self.carried[source is self.endpoint(1)] += len(octets)
            sink.write(octets, now)
            source.hold = None
        if source.hold is None:
            source.hold = now + 0.1


class ForcedPush(Endpoint):
    """Pushes also whenever half of the largest window has been sent since it last did."""

    _pushed_to: int | None = None

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().put(seq, payload, fin, now)
        if not payload:
            return
        segment, end = self._outbox[-1], seq + len(payload)
        if self._pushed_to is None:
            self._pushed_to = self.sender.iss + 1
        if end - self._pushed_to > self.sender.max_snd_wnd // 2:
            segment.flags |= PSH
        if segment.flags & PSH:
            self._pushed_to = max(self._pushed_to, end)


class Paced(SackNewRenoRfcSender):
    """Four segments may leave at once, others at twice cwnd in a round trip, or 10 ms apart."""

    pace_at: float | None = None
    _tokens = 4.0
    _filled = 0.0

    def _interval(self) -> float:
        srtt = self.estimator.srtt
        return 0.01 if srtt is None else min(0.01, srtt * self.smss / (2 * self.cwnd))

    def output(self, now: float) -> None:
        self.pace_at = None
        super().output(now)

    def send_next(self, now: float) -> bool:
        interval = max(1e-5, self._interval())
        self._tokens = min(4.0, self._tokens + (now - self._filled) / interval)
        self._filled = now
        if self._tokens < 1:
            self.pace_at = now + (1 - self._tokens) * interval + 1e-6
            return False
        sent = super().send_next(now)
        self._tokens -= sent
        return sent


class PacedEndpoint(Endpoint):
    """Runs the timer of :class:`Paced`."""

    def next_deadline(self) -> float | None:
        first = super().next_deadline()
        return first if self.is_closed else earliest(first, self.sender.pace_at)

    def advance(self, now: float) -> None:
        super().advance(now)
        if self.sender.pace_at is not None and now >= self.sender.pace_at:
            self.sender.pace_at = None
            self._output(now)


# -- calls ----------------------------------------------------------------------------------------


class LinearCalls(Handshake):
    """A SYN is repeated four times after the first interval, then the interval doubles."""

    _answers = False

    def take_options(self, syn: Segment) -> None:
        self._answers = True
        super().take_options(syn)

    def sent(self, now: float, *, repeated: bool) -> None:
        linear = not self._answers and not repeated and 0 < self.attempts < 4
        super().sent(now, repeated=repeated or linear)


# -- congestion notification -----------------------------------------------------------------------


class _Capable(Segment):
    """A segment whose packet is ECT(0)."""

    __slots__ = ()


class EcnEndpoint(Endpoint):
    """Offers and answers ECN (RFC 3168)."""

    ecn_ok = False
    marked = False
    _asked = False
    _echo = False
    _cwr_due = False
    _reduced_to = 0
    _new_from: int | None = None

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is None:
            if self.handshake.attempts == 1:
                self._outbox[-1].flags |= ECE | CWR
        elif self.ecn_ok:
            self._outbox[-1].flags |= ECE

    def _take_syn(self, segment: Segment, now: float) -> Any:
        bits = segment.flags & (ECE | CWR)
        if segment.flags & ACK:
            self.ecn_ok = self.handshake.attempts == 1 and bits == ECE
        else:
            self.ecn_ok = bits == ECE | CWR
        return super()._take_syn(segment, now)

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        if self._echo and flags & ACK and not flags & RST:
            flags |= ECE
        super()._put(seq, flags, now, payload)

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().put(seq, payload, fin, now)
        if self._new_from is None:
            self._new_from = self.sender.iss + 1
        is_new, end = seq >= self._new_from, seq + len(payload)
        self._new_from = max(self._new_from, end)
        if self.ecn_ok and payload and is_new and self.sender.snd_wnd:
            segment = self._outbox[-1]
            segment.__class__ = _Capable
            if self._cwr_due:
                self._cwr_due = False
                segment.flags |= CWR

    def _take_text(self, segment: Segment, seq: int, receiver: Any, now: float) -> None:
        if self.ecn_ok and segment.payload:
            if segment.flags & CWR:
                self._echo = False
            if self.marked:
                self._echo = True
        super()._take_text(segment, seq, receiver, now)

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if self.ecn_ok and not self.is_opening and segment.flags & (ECE | SYN) == ECE:
            number = unwrap(segment.ack, sender.snd_una)
            fresh = max(self._reduced_to, sender.snd_una) <= number <= sender.snd_max
            if fresh and sender.flight_size and not sender.in_recovery:
                sender.ssthresh = sender.ssthresh_after_loss()
                sender.cwnd = min(sender.cwnd, sender.ssthresh)
                self._reduced_to = sender.snd_max
                self._cwr_due = True
        return super()._take_ack(segment, seq, now)


class EcnBox(Box):
    """Reads and writes the two bits of ECN for the endpoints that have agreed on it."""

    _ce = False

    def receive(self, port: int, packet: bytes, now: float) -> None:
        self._ce = len(packet) > 1 and packet[1] & 3 == 3
        super().receive(port, packet, now)

    def receive_in(self, relay: Relay, port: int, segment: Segment, now: float) -> None:
        endpoint = relay.endpoint(port)
        if endpoint is not None:
            endpoint.marked = self._ce
        super().receive_in(relay, port, segment, now)

    def collect(self, relay: Relay, port: int, endpoint: Any, now: float) -> None:
        for segment in endpoint.transmit(now):
            capable = 2 if isinstance(segment, _Capable) else 0
            self.send(port, segment, relay.classes[1 - port] | capable)


VARIANTS = (
    Variant(
        "pep-v1-own-ip-header",
        "Its own packets have TTL 255 and an identification that counts.",
        "RFC 9293 section 3.9.2 (MUST-49) leaves the TTL to configuration, RFC 6864 section 4.1 the "
        "identification of what is not fragmented; PEP-TR-015 speaks of forwarded packets only",
        _emitting(_counted),
    ),
    Variant(
        "pep-v1-option-order",
        "Its SYNs have Timestamps, MSS, Window Scale, SACK-Permitted, unaligned, and End of List.",
        "RFC 9293 section 3.1 permits options in any order, on any octet, with zeros behind the last",
        _emitting(_reordered),
    ),
    Variant(
        "pep-v1-ack-heartbeat",
        "Delayed acknowledgments leave when a clock for all connections ticks, every 0.2 s.",
        "PEP-LR-006 permits any delay up to 0.5 s; RFC 5681 section 4.2",
        _with(Heartbeat),
    ),
    Variant(
        "pep-v1-quick-ack",
        "It acknowledges each of the first 16 full segments, and every second one after them.",
        "PEP-LR-006 demands at least every second, PEP-LR-007 permits one for each full segment",
        _with(QuickAck),
    ),
    Variant(
        "pep-v1-dsack",
        "It reports segments that arrive twice in a first SACK block, which may be below the ACK.",
        "RFC 2883 section 4; PEP-TR-010 is met, as the octets have arrived on that side",
        _with(dsack=True),
    ),
    Variant(
        "pep-v1-growing-window",
        "It offers 16 KB first, and more as octets arrive, up to its buffer.",
        "PEP-FB-002 bounds the window from above only; PEP-FB-003 is met, no edge moves left",
        _with(GrowingWindow, GrowingEndpoint),
    ),
    Variant(
        "pep-v1-window-steps",
        "The right edge of its window moves by eight segments, or half its buffer, at a time.",
        "PEP-FB-009 bounds the steps from below only; RFC 9293 section 3.8.6.2.2",
        _with(Steps),
    ),
    Variant(
        "pep-v1-unsent-low-water",
        "It reads no more from a source while 16 KB wait for the sink that were never sent.",
        "PEP-FB-001 and -004: the declared buffer is what is held at most (section 3)",
        _with(LowWater),
    ),
    Variant(
        "pep-v1-buffers-long-side",
        "Of the declared buffer, 96 KB a box lie at the satellite side and 32 KB at the ends' side.",
        "PEP-FB-001 and -002 judge the sum; PEP-FB-011 is met, Window Scale is offered with 0",
        _long_side,
    ),
    Variant(
        "pep-v1-no-outer-timestamps",
        "It offers and answers Timestamps over the satellite, and neither to client nor server.",
        "RFC 7323 section 3.2 makes them optional; PEP-TR-011 forbids only what was not offered",
        _no_outer_timestamps,
    ),
    Variant(
        "pep-v1-mss-of-server",
        "Its SYN-ACK announces the MSS of whom it has called, if that is less than its own.",
        "PEP-TR-007 bounds what is sent, not what is announced; RFC 9293 section 3.7.1",
        _with(AnnouncingEndpoint, AnnouncingRelay),
    ),
    Variant(
        "pep-v1-lone-fin",
        "Its FINs have a segment of their own, behind the last octets.",
        "PEP-RE-003 and -004 say when and with which number, not in which segment",
        _with(LoneFin),
    ),
    Variant(
        "pep-v1-fin-last",
        "An end gets the FIN only once it has acknowledged every octet before it.",
        "PEP-RE-004 demands it within 1 s after that",
        _with(FinLast),
    ),
    Variant(
        "pep-v1-fin-ack-after-octets",
        "It acknowledges a FIN once the receiver has acknowledged the octets, if not yet the FIN.",
        "PEP-RE-002 asks for every octet of the stream, not for its FIN",
        _with(FinAfterOctets),
    ),
    Variant(
        "pep-v1-late-fin-ack",
        "The acknowledgment of a delivered FIN waits up to 0.1 s for a segment to ride on.",
        "PEP-RE-017 sets no time, PEP-LR-006 0.5 s; RFC 9293 section 3.8.6.3",
        _with(LateFinAck),
    ),
    Variant(
        "pep-v1-early-credit",
        "Early: it offers four segments of window until the server has answered, then all.",
        "PEP-OP-002 and -009 are met; PEP-FB-002 bounds the window from above only",
        _with(CreditReceiver, CreditEndpoint, CreditRelay),
        setting="early",
    ),
    Variant(
        "pep-v1-bare-reset",
        "It aborts by a RST without ACK, whose TSecr therefore is zero.",
        "RFC 9293 section 3.10.5 (<SEQ=SND.NXT><CTL=RST>); RFC 7323 section 3.2",
        _with(BareReset),
    ),
    Variant(
        "pep-v1-reset-lingers",
        "After a reset each box sends on what it holds for up to 0.3 s, and carries it over then.",
        "PEP-RE-006 and -008 permit 1 s",
        _with(LingeringEndpoint, Lingering),
    ),
    Variant(
        "pep-v1-joins",
        "Octets that end no segment with PSH wait up to 0.1 s for those that fill their segment.",
        "PEP-TR-019 is about PSH, and permits 0.2 s; RFC 9293 section 3.9.1.2 (MUST-60)",
        _with(PushNoting, Joining),
    ),
    Variant(
        "pep-v1-forced-push",
        "It sets PSH also whenever half of the largest window has been sent since it last did.",
        "RFC 9293 section 3.9.1.2 demands PSH on the last buffered segment, and forbids no other",
        _with(ForcedPush),
    ),
    Variant(
        "pep-v1-paced",
        "Four segments leave at once, others at twice cwnd in a round trip, 10 ms apart at most.",
        "PEP-LR-003 and RFC 5681 section 3.1 bound what is outstanding from above only",
        _with(Paced, PacedEndpoint),
    ),
    Variant(
        "pep-v1-initial-rto-3s",
        "A SYN that is not answered is repeated after three seconds.",
        "PEP-OP-010 permits 1 s to 3 s, RFC 6298 section 2.1 any value above 1 s",
        _with(initial_rto=3.0),
    ),
    Variant(
        "pep-v1-linear-calls",
        "A SYN is repeated after 1, 2, 3 and 4 s, and the interval doubles from there.",
        "PEP-OP-010 permits five times of the first length before it doubles",
        _with(LinearCalls, max_syn_retransmissions=11),
    ),
    Variant(
        "pep-v1-ecn",
        "It offers and answers ECN on each side, and does there what has been agreed.",
        "PEP-TR-006 forbids ECT only where it was not negotiated; RFC 3168 section 6.1",
        _with(EcnEndpoint, EcnBox),
    ),
)
