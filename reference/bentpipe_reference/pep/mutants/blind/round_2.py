"""Round 2: written from PEP/1 on 2026-11-23."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import INNER, OUTER
from bentpipe_reference.pep.endpoint import Endpoint, RelayReceiver
from bentpipe_reference.pep.fragments import OFFSET, Fragments
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.output import SENDERS, Addresses
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import parse_packet
from bentpipe_reference.tcp.wire.segment import Flags, Segment, WireError
from bentpipe_reference.tcp.wire.sequence import unwrap

_ACK, _SYN, _RST = int(Flags.ACK), int(Flags.SYN), int(Flags.RST)
_TrueSender = SENDERS["sack-newreno-rfc"]
_RESET = "the peer reset the connection"


def _with(*parts: type[Any]) -> Callable[[Setup], Setup]:
    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# -- reliability --------------------------------------------------------------------------------


class BothEndedConfirms(Relay):
    """Takes "both FINs are here" for "all is over"."""

    def confirm(self, source: Any, sink: Any, now: float) -> None:
        if source.stream_has_ended and sink.stream_has_ended:
            source.confirm_end(now)
        super().confirm(source, sink, now)


class ResetAfterFinForgotten(Relay):
    """An end that has ended its stream is thought to be done."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if source.failure == _RESET and source.stream_has_ended:
            return
        super().carry_failure(source, sink, now)


class ResetBecomesEndInHalfClose(Relay):
    """In a half-closed connection whatever ends the other half ends it cleanly."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if source.failure == _RESET and sink.stream_has_ended and not sink.is_closed:
            sink.close(now)
            return
        super().carry_failure(source, sink, now)


class FinOvertakes(Endpoint):
    """The FIN flag is looked at when it arrives, not when its place in the stream is reached."""

    @property
    def stream_has_ended(self) -> bool:
        return self.receiver is not None and self.receiver.fin_seq is not None

    def confirm_end(self, now: float) -> None:
        if isinstance(self.receiver, RelayReceiver) and self.receiver.has_ended:
            super().confirm_end(now)


class HalfClosedExpires(Endpoint):
    """A timer of 60 s in FIN-WAIT-2, as hosts have for orphans."""

    _quiet_until: float | None = None

    def receive(self, segment: Segment, now: float) -> None:
        super().receive(segment, now)
        self._quiet_until = now + 60.0 if self.state is State.FIN_WAIT_2 else None

    def _runs(self) -> bool:
        return self.state is State.FIN_WAIT_2 and self._quiet_until is not None

    def next_deadline(self) -> float | None:
        due = super().next_deadline()
        return earliest(due, self._quiet_until) if self._runs() else due

    def advance(self, now: float) -> None:
        if self._runs() and self._quiet_until is not None and now >= self._quiet_until:
            self.abort("half closed for too long", now)
            return
        super().advance(now)


class EmptyStreamNotEnded(Relay):
    """The FIN travels with the octets of its stream; where there are none it waits."""

    def carry_end(self, source: Any, sink: Any, now: float) -> None:
        if source.has_heard or sink.stream_has_ended:
            super().carry_end(source, sink, now)


class BacklogDroppedAtEnd(Relay):
    """When both FINs are here the receive buffers are freed."""

    def carry_end(self, source: Any, sink: Any, now: float) -> None:
        if source.stream_has_ended and sink.stream_has_ended:
            while source.readable:
                source.read(source.readable)
        super().carry_end(source, sink, now)


class ResetWaitsForOctets(Relay):
    """A reset is carried over behind the octets that are held, however long those take."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if not sink.is_closed:
            self.carry_octets(source, sink, now)
            sender = sink.sender
            if source.readable or sender.data_end > sender.snd_una:
                return
        super().carry_failure(source, sink, now)


def _parse_unchecked_zero(packet: bytes) -> Segment:
    """A checksum of zero says that there is none, as in UDP."""
    try:
        return parse_packet(packet)
    except WireError:
        start, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        body = packet[start:total]
        if len(body) < 20 or body[16:18] != bytes(2):
            raise
        source = int.from_bytes(packet[12:16], "big")
        destination = int.from_bytes(packet[16:20], "big")
        pseudo = source + destination + 6 + len(body)
        field = checksum_field((ones_complement_residue(body) + pseudo) % 0xFFFF)
        filled = body[:16] + field.to_bytes(2, "big") + body[18:]
        return parse_packet(packet[:start] + filled)


def _zero_is_no_checksum(setup: Setup) -> Setup:
    return replace(setup, parts=replace(setup.parts, parse=_parse_unchecked_zero))


# -- transparency -------------------------------------------------------------------------------


class ScaledSynAck(Endpoint):
    """The window of the SYN-ACK is scaled like all others."""

    def _established(self, segment: Segment, now: float) -> None:
        if segment.flags & _SYN:
            segment = replace(segment, window=segment.window << self.handshake.send_shift)
        super()._established(segment, now)


class FirstFragmentFirst(Box):
    """Fragments before the one with the TCP header belong to nobody."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fragments = _HeadFirst()


class _HeadFirst(Fragments):
    def take(self, packet: bytes, now: float) -> Any:
        key = packet[4:6] + packet[9:10] + packet[12:20]
        if int.from_bytes(packet[6:8], "big") & OFFSET and key not in self._held:
            return None
        return super().take(packet, now)


class OverlapTwice(Reassembly):
    """A held piece is not trimmed where what filled the hole reaches into it."""

    def _fill(self) -> None:
        pieces = self._pieces
        while pieces and pieces[0][0] <= self.rcv_nxt:
            start, piece = pieces.pop(0)
            end = start + len(piece)
            if end > self.rcv_nxt:
                self._ready.append(piece)
                self.unread += len(piece)
                self.rcv_nxt = end
        self._held.remove_below(self.rcv_nxt)
        self.blocks = [block for block in self.blocks if block[1] > self.rcv_nxt]


# -- opening ------------------------------------------------------------------------------------


class CancelKeepsCall(Relay):
    """The client's reset ends its own half; the call of the server goes on."""

    def cancel(self, now: float) -> None:  # noqa: ARG002
        self._cancelled = True

    def step(self, now: float) -> None:
        if self.near is None and self._cancelled:
            return
        super().step(now)


class BannerLost(Relay):
    """The client's connection takes octets only once its handshake is complete."""

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        if source is self.far and self.caller == OUTER and sink.is_opening:
            while source.readable:
                source.read(source.readable)
            return
        super().carry_octets(source, sink, now)


# -- flow control, recovery, path ---------------------------------------------------------------


class FiveProbes(_TrueSender):
    """Probes are counted like retransmissions, answered or not."""

    def has_given_up(self, now: float) -> bool:
        if super().has_given_up(now):
            return True
        due = self.persist_deadline is not None and now >= self.persist_deadline
        return due and self.probes >= 5 and not self.snd_wnd


class SleepsUntilProbe(_TrueSender):
    """While probing, only the persist timer makes it send."""

    _asleep = False

    def on_ack(self, ack: Any, now: float) -> None:
        self._asleep = self.probes > 1 and ack.number == self.snd_una and ack.window > 0
        super().on_ack(ack, now)
        self._asleep = False

    def output(self, now: float) -> None:
        if not self._asleep:
            super().output(now)


class OutagesAddUp(_TrueSender):
    """What has been answered in between does not reset the count of timeouts."""

    def on_ack(self, ack: Any, now: float) -> None:
        timeouts = self.silent_timeouts
        super().on_ack(ack, now)
        self.silent_timeouts = timeouts


class TimeoutKeepsWindow(_TrueSender):
    """A timeout on a satellite link is no congestion."""

    def cwnd_after_timeout(self) -> int:
        return self.cwnd


class OneSizeChange(Endpoint):
    """The path's packet size is taken from the first message only."""

    _fitted = False

    def fit(self, mtu: int, now: float) -> None:
        if self._fitted:
            return
        self._fitted = not self.is_opening
        super().fit(mtu, now)


# -- isolation ----------------------------------------------------------------------------------


def _queued(end: Any) -> int:
    """Octets in the send buffer of an end."""
    source = end.sender.source
    return 0 if source is None or end.is_closed else end.config.send_buffer - source.room


class SharedPool(Box):
    """All send buffers come from one pool of three times the buffer of one."""

    def pool_room(self) -> int:
        used = sum(_queued(end) for relay in self.relays for end in relay.endpoints)
        return max(0, 3 * self.config.outer.send_buffer - used)

    def settle(self, relay: Any, now: float) -> None:
        relay.box = self
        super().settle(relay, now)


class PooledRelay(Relay):
    """Takes room from the pool, without a share of its own."""

    box: Any = None

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        while (ready := source.readable) and (room := sink.write_room):
            if self.box is not None:
                room = min(room, self.box.pool_room())
            if not room:
                return
            octets = source.read(min(ready, room))
            self.carried[source is self.endpoint(1)] += len(octets)
            sink.write(octets, now)


def _has_hole(end: Any) -> bool:
    return (
        isinstance(end, Endpoint)
        and not end.is_closed
        and end.receiver is not None
        and bool(end.receiver.buffer.blocks)
    )


class InOrderTunnel(Box):
    """What comes over the satellite leaves in one order for all connections."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._blocked = False

    def is_blocked(self, but: Any = None) -> bool:
        return any(_has_hole(each.endpoint(INNER)) for each in self.relays if each is not but)

    def settle(self, relay: Any, now: float) -> None:
        relay.box = self
        super().settle(relay, now)
        was, self._blocked = self._blocked, self.is_blocked()
        if was and not self._blocked:
            for other in list(self.relays):
                super().settle(other, now)


class InOrderRelay(Relay):
    """Waits while another connection misses a segment."""

    box: Any = None

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        if source is self.endpoint(INNER) and self.box is not None and self.box.is_blocked(self):
            return
        super().carry_octets(source, sink, now)


class StaleBuffer(Box):
    """The send buffer of a connection is found again by its ports and not cleared."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stale: dict[Any, bytes] = {}

    def _forget(self, relay: Any, now: float) -> None:
        far = relay.far
        source = far.sender.source
        if source is not None:
            octets = source.read(max(0, far.sender.snd_una - far.sender.iss - 1), 1 << 20)
            if octets and len(self._stale) < 64:
                self._stale[self.relays[relay][1]] = octets
        super()._forget(relay, now)

    def _call(self, port: int, syn: Segment, dscp: int, now: float) -> None:
        super()._call(port, syn, dscp, now)
        ends = Addresses(syn.destination, syn.dport, syn.source, syn.sport)
        relay = self._by_ends.get((port, ends))
        if relay is None:
            return
        octets = self._stale.pop(self.relays[relay][1], b"")
        if octets and not relay.far.is_closed:
            relay.far.write(octets, now)


# -- security -----------------------------------------------------------------------------------


class ResetAtBlockEdge(Endpoint):
    """While it has a hole, a RST at the right edge of a SACK block counts, too."""

    def _receive_synchronized(self, segment: Segment, receiver: Any, now: float) -> None:
        if segment.flags & _RST:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if any(seq == right for _, right in receiver.buffer.blocks):
                self._end(_RESET, now)
                return
        super()._receive_synchronized(segment, receiver, now)


class SynEndsHalfClosed(Endpoint):
    """A SYN with another number says that the ports of a half-closed connection are used again."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if (
            segment.flags & (_SYN | _ACK | _RST) == _SYN
            and receiver is not None
            and not self.is_opening
            and not self.only_waits
            and (self.stream_has_ended or self.sender.fin_queued)
            and segment.seq != receiver.irs & 0xFFFFFFFF
        ):
            self.abort("its ports are used again", now)
            return
        super().receive(segment, now)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "pep-b2-both-fins-confirm",
        "Acknowledges both FINs as soon as both ends have sent one, although octets of the streams are still held.",
        "PEP-RE-002",
        _with(BothEndedConfirms),
    ),
    Fault(
        "pep-b2-reset-after-fin",
        "Does not carry over a reset by an end that has sent its FIN before.",
        "PEP-RE-006",
        _with(ResetAfterFinForgotten),
    ),
    Fault(
        "pep-b2-half-close-reset-fin",
        "When one end has half-closed, a reset by the other reaches it as a FIN.",
        "PEP-RE-007",
        _with(ResetBecomesEndInHalfClose),
    ),
    Fault(
        "pep-b2-fin-overtakes",
        "Ends the stream towards the receiver when a FIN arrives behind a hole; what fills the hole is acknowledged and lost.",
        "PEP-RE-003",
        _with(FinOvertakes),
    ),
    Fault(
        "pep-b2-half-closed-expires",
        "Resets a half-closed connection when the end that is still open has been quiet for 60 s.",
        "PEP-RE-009",
        _with(HalfClosedExpires),
    ),
    Fault(
        "pep-b2-empty-stream-not-ended",
        "Does not send on the FIN of a stream without octets until the other stream has ended, too.",
        "PEP-RE-004",
        _with(EmptyStreamNotEnded),
    ),
    Fault(
        "pep-b2-backlog-dropped",
        "Drops what waits in its receive buffer when both ends have sent a FIN, and ends the streams cleanly.",
        "PEP-RE-010",
        _with(BacklogDroppedAtEnd),
    ),
    Fault(
        "pep-b2-reset-waits",
        "Carries over a reset only when all held octets have been acknowledged, with a stalled reader never.",
        "PEP-RE-006",
        _with(ResetWaitsForOctets),
    ),
    Fault(
        "pep-b2-zero-checksum",
        "Takes segments whose checksum field is zero without checking them.",
        "PEP-RE-015",
        _zero_is_no_checksum,
    ),
    Fault(
        "pep-b2-scaled-syn-ack",
        "Scales the window of the server's SYN-ACK, and so sends more than a small first window permits.",
        "PEP-TR-008",
        _with(ScaledSynAck),
    ),
    Fault(
        "pep-b2-fragments-in-order",
        "Drops fragments of a TCP segment that arrive before its first fragment.",
        "PEP-TR-016",
        _with(FirstFragmentFirst),
    ),
    Fault(
        "pep-b2-overlap-twice",
        "Relays octets twice where a segment that fills a hole overlaps a part of one that it holds.",
        "PEP-TR-001",
        _with(OverlapTwice),
    ),
    Fault(
        "pep-b2-cancel-keeps-call",
        "Goes on with the call when the client resets its connection before the server has answered, and leaves the server with an open connection.",
        "PEP-OP-011",
        _with(CancelKeepsCall),
    ),
    Fault(
        "pep-b2-banner-lost",
        "Acknowledges and loses what the server sends while the client's last segment of the handshake is late or lost.",
        "PEP-OP-013",
        _with(BannerLost),
    ),
    Fault(
        "pep-b2-five-probes",
        "Gives a connection up after five probes of a closed window, although each is answered.",
        "PEP-FB-006",
        _with(FiveProbes),
    ),
    Fault(
        "pep-b2-sleeps-until-probe",
        "After two probes of a closed window does not use one that opens until the next probe is due.",
        "PEP-FB-010",
        _with(SleepsUntilProbe),
    ),
    Fault(
        "pep-b2-outages-add-up",
        "Adds up the timeouts of all outages of a connection's life, so that a third one of a minute ends it.",
        "PEP-PC-001",
        _with(OutagesAddUp),
    ),
    Fault(
        "pep-b2-one-size-change",
        "Ignores a second ICMP message with a smaller packet size, so that the stream stalls.",
        "PEP-PC-005",
        _with(OneSizeChange),
    ),
    Fault(
        "pep-b2-timeout-keeps-window",
        "Keeps its congestion window at a timeout and sends all of it again after the first acknowledgment.",
        "PEP-LR-003",
        _with(TimeoutKeepsWindow),
    ),
    Fault(
        "pep-b2-shared-pool",
        "Takes all send buffers from one pool, which three connections with stalled readers use up.",
        "PEP-FI-001",
        _with(SharedPool, PooledRelay),
    ),
    Fault(
        "pep-b2-in-order-tunnel",
        "Delivers nothing of any connection while a segment of another one is missing on the satellite link.",
        "PEP-FI-003",
        _with(InOrderTunnel, InOrderRelay),
    ),
    Fault(
        "pep-b2-stale-buffer",
        "Sends the server, first of all, what it held of a connection that was reset when its ports are used again.",
        "PEP-RX-006",
        _with(StaleBuffer),
    ),
    Fault(
        "pep-b2-reset-at-block",
        "Takes a RST at the right edge of what it holds behind a hole for valid.",
        "PEP-SEC-001",
        _with(ResetAtBlockEdge),
    ),
    Fault(
        "pep-b2-syn-ends-half-closed",
        "Resets a half-closed connection when a SYN with its ports arrives.",
        "PEP-SEC-002",
        _with(SynEndsHalfClosed),
    ),
)
