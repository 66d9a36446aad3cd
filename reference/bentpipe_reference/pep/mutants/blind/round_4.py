"""Round 4: written from PEP/1 on 2026-11-23."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.common.stream import WriteBuffer
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import INNER
from bentpipe_reference.pep.endpoint import Endpoint, RelayReceiver
from bentpipe_reference.pep.fragments import OFFSET, Fragments, is_fragment
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.passing import Passing, Report
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.handshake import (
    SACK_BLOCK_OCTETS,
    SACK_OVERHEAD_OCTETS,
    TIMESTAMP_OCTETS,
    Handshake,
)
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.recovery.sack_newreno_rfc import SackNewRenoRfcSender
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.options import MAXIMUM_OCTETS
from bentpipe_reference.tcp.wire.segment import Flags
from bentpipe_reference.tcp.wire.sequence import unwrap

_FIN, _SYN, _RST, _ACK = (int(each) for each in (Flags.FIN, Flags.SYN, Flags.RST, Flags.ACK))
_ECE, _CWR = int(Flags.ECE), int(Flags.CWR)


def _with(*parts: type[Any]) -> Callable[[Setup], Setup]:
    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# -- 4. transparency ------------------------------------------------------------------------------


class BlocksBesideData(Handshake):
    """SACK blocks beside data are limited by the header only, not by the peer's MSS."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        options = MAXIMUM_OCTETS
        if self.timestamps_ok:
            options -= TIMESTAMP_OCTETS
        return max(0, (options - SACK_OVERHEAD_OCTETS) // SACK_BLOCK_OCTETS)


class MarksUnanswered(Endpoint):
    """ECN is agreed to with a caller that asks for it, but no CE is ever echoed."""

    _caller_marks = False

    def accept(self, syn: Any, now: float) -> None:
        self._caller_marks = syn.flags & (_ECE | _CWR) == _ECE | _CWR
        super().accept(syn, now)

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is not None and self._caller_marks:
            self._outbox[-1].flags |= _ECE


class JoinIsSplit(Passing):
    """MP_CAPABLE leaves a connection whole; the option of the further subflows is not looked at."""

    def must_stay_whole(self, syn: Any) -> bool:
        multipath = any(kind == 30 and data and not data[0] >> 4 for kind, data in syn.unknown)
        return multipath or super().must_stay_whole(syn)


class QuotedProtocolIgnored(Passing):
    """An ICMP message is matched by quoted addresses and ports, whatever protocol they are of."""

    def report(self, packet: bytes) -> Report | None:
        report = super().report(packet)
        if report is not None:
            return report
        start = (packet[0] & 15) * 4
        quoted = start + 8 + 9
        if is_fragment(packet) or len(packet) <= quoted or packet[quoted] != 17:
            return None
        head = start + 8
        as_tcp = bytearray(packet)
        as_tcp[quoted] = 6
        as_tcp[start + 2 : start + 4] = bytes(2)
        total = int.from_bytes(packet[2:4], "big")
        if total < head + 28 or total > len(packet) or internet_checksum(packet[start:total]):
            return None
        checksum = internet_checksum(bytes(as_tcp[start:total]))
        as_tcp[start + 2 : start + 4] = checksum.to_bytes(2, "big")
        return super().report(bytes(as_tcp))


class FirstFragmentFirst(Fragments):
    """A datagram is begun by its first fragment; others that come before it find nothing."""

    def take(self, packet: bytes, now: float) -> tuple[bytes, tuple[bytes, ...]] | None:
        key = packet[4:6] + packet[9:10] + packet[12:20]
        if int.from_bytes(packet[6:8], "big") & OFFSET and key not in self._held:
            return None
        return super().take(packet, now)


class FirstFragmentFirstBox(Box):
    """See above."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._fragments = FirstFragmentFirst()


class EndedBeforeWhole(Box):
    """What has ended is looked up before what stays whole."""

    def _answers_for(self, key: Any, segment: Any, now: float) -> bool:
        if self._ended.get(key, -1.0) >= now:
            if (refusal := self.parts.refuse(segment)) is not None:
                self.send(key[0], refusal)
            return True
        return super()._answers_for(key, segment, now)


# -- 5. opening -----------------------------------------------------------------------------------


class ShortFirstOutputForgotten(Endpoint):
    """What was written during the handshake leaves at its end only if it fills a segment."""

    _completing = False

    def _established(self, segment: Any, now: float) -> None:
        self._completing = True
        super()._established(segment, now)
        self._completing = False

    def _output(self, now: float) -> None:
        if self._completing:
            end = self.sender.data_end
            if end is None or end - self.sender.snd_nxt < self.sender.smss:
                return
        super()._output(now)


class CallsFromMetrics(Endpoint):
    """A call begins with the timeout that the last unanswered call of that host came to."""

    slow: dict[int, float]

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        calls = self.receiver is None
        remote = self.addresses.remote
        if calls and not self.handshake.attempts and remote in self.slow:
            self.sender.estimator.rto = self.slow[remote]
        super()._send_syn(now, repeated=repeated)
        if calls and self.handshake.attempts > 1:
            self.slow[remote] = self.sender.estimator.rto

    def _established(self, segment: Any, now: float) -> None:
        super()._established(segment, now)
        self.slow.pop(self.addresses.remote, None)


class MetricsBox(Box):
    """See above."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._slow: dict[int, float] = {}

    def make(self, port: int, ends: Addresses, number: int) -> Any:
        endpoint: Any = super().make(port, ends, number)
        endpoint.slow = self._slow
        return endpoint


class Impatient(Relay):
    """The caller's third SYN is answered although the server has not answered yet."""

    _repeated = 0

    def repeat_syn(self, now: float) -> None:
        self._repeated += 1
        if self._repeated == 2 and self.near is None and self.far.failure is None:
            self._answer(now)


# -- 6. reliability -------------------------------------------------------------------------------


class EndConfirmedWhenRepeated(Endpoint):
    """A FIN that comes for the fourth time is acknowledged, wherever the octets are."""

    _ends_seen = 0

    def _take_text(self, segment: Any, seq: int, receiver: Any, now: float) -> None:
        super()._take_text(segment, seq, receiver, now)
        if segment.flags & _FIN and self.stream_has_ended and not receiver.confirmed:
            self._ends_seen += 1
            if self._ends_seen > 3:
                self.confirm_end(now)


class EndWithoutBlocks(RelayReceiver):
    """A FIN counts as in order when nothing is held out of order."""

    @property
    def has_ended(self) -> bool:
        return self.fin_seq is not None and not self.buffer.blocks


class ResetAfterHalfClose(Relay):
    """Who has ended its own stream gets a FIN when the other end resets: all is over anyway."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if sink.stream_has_ended and not sink.is_closed:
            sink.close(now)
            sink.confirm_end(now)
            return
        super().carry_failure(source, sink, now)


class CallerNeverCompletes(Relay):
    """The call that was made for a caller that never completes its handshake stays open."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if source is self.near and "complete the handshake" in source.failure:
            return
        super().carry_failure(source, sink, now)


class TimeWaitNotRestarted(Endpoint):
    """A FIN in TIME-WAIT is acknowledged, but its two lifetimes do not begin again."""

    def _receive_unacceptable(self, segment: Any, seq: int, receiver: Any, now: float) -> None:
        until = self.time_wait_until
        super()._receive_unacceptable(segment, seq, receiver, now)
        if self.state is State.TIME_WAIT:
            self.time_wait_until = until


# -- 7. flow control ------------------------------------------------------------------------------


class PersistFromFiveSeconds(SackNewRenoRfcSender):
    """The persist timer has a lower bound of five seconds, as that of 4.4BSD."""

    def zero_window_probe_interval(self, probes: int) -> float:
        return max(5.0, super().zero_window_probe_interval(probes))


class UpdateMustAcknowledge(SackNewRenoRfcSender):
    """A window that opens is taken from newer segments only, not from one with equal numbers."""

    def update_window(self, ack: Any) -> bool:
        same = self.snd_wl1 == ack.seq and self.snd_wl2 == ack.number
        return super().update_window(ack) if not same or ack.window <= self.snd_wnd else False


class AutoTuned(RelayReceiver):
    """The receive buffer of a connection that runs well grows to four times what is declared."""

    _growth = 1

    def free_room(self) -> int:
        size = self.config.receive_buffer
        if self._growth < 4 and self.buffer.rcv_nxt - self.irs > 2 * self._growth * size:
            self._growth *= 2
        free = self._growth * size - self.buffer.unread
        return min(free, 0xFFFF << self.window_shift)


# -- 8. loss recovery -----------------------------------------------------------------------------


class FullBeforeOptions(RelayReceiver):
    """Two full segments are two of the own MSS, which segments with timestamps never fill."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        full = self._octets_unacked >= self.config.ack_every * self.config.mss
        return not in_order or gap or full


class ClockNeverWraps(RelayReceiver):
    """Timestamps are compared as plain numbers."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:  # noqa: ARG002
        return self.ts_recent is not None and tsval < self.ts_recent

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        if self.ts_recent is not None and tsval >= self.ts_recent and seq <= self._last_ack_sent:
            self.echo_timestamp(tsval, now)


class OneEstimator(Relay):
    """A connection has one round-trip estimate and timeout, for both of its sides."""

    def _answer(self, now: float) -> None:
        near: Any = self._make(self.caller)
        far: Any = self.far
        near.sender.estimator = near.handshake._estimator = far.sender.estimator
        self.near = near
        near.accept(self.syn, now)


# -- 9. changes of the path -----------------------------------------------------------------------


class TimeoutsAddUp(SackNewRenoRfcSender):
    """The timeouts that end a connection are counted from its beginning, not in a row."""

    _in_all = 0

    def on_timeout(self, now: float) -> None:
        self._in_all += 1
        super().on_timeout(now)

    def has_given_up(self, now: float) -> bool:
        due = self.rto_deadline is not None and now >= self.rto_deadline
        return (due and self._in_all >= self.config.max_retransmissions) or super().has_given_up(
            now
        )


class FittedHandshake(Handshake):
    """See below."""

    fitted: int | None = None

    def smss(self) -> int:
        smss = super().smss()
        if self.fitted is None:
            return smss
        return max(16, min(smss, self.fitted - 40 - TIMESTAMP_OCTETS * self.timestamps_ok))


class PathsWithoutSides(Box):
    """Sizes of packets are remembered by the two addresses, which both sides have in common."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._sizes: OrderedDict[frozenset[int], int] = OrderedDict()

    def take_report(self, endpoint: Any, report: Report, now: float) -> None:
        if report.mtu is not None and endpoint.is_outstanding(report.seq):
            path = frozenset((report.ends.local, report.ends.remote))
            self._sizes[path] = max(68, min(report.mtu, self._sizes.get(path, report.mtu)))
            if len(self._sizes) > 1000:
                self._sizes.popitem(last=False)
        super().take_report(endpoint, report, now)

    def make(self, port: int, ends: Addresses, number: int) -> Any:
        endpoint: Any = super().make(port, ends, number)
        endpoint.handshake.fitted = self._sizes.get(frozenset((ends.local, ends.remote)))
        return endpoint


class IdleByCaller(Endpoint):
    """Only octets of the caller restart the timer that ends a quiet connection."""

    _IDLE = 7440.0
    _heard: float | None = None

    def accept(self, syn: Any, now: float) -> None:
        self._heard = now
        super().accept(syn, now)

    def receive(self, segment: Any, now: float) -> None:
        if self._heard is not None and segment.payload:
            self._heard = now
        super().receive(segment, now)

    def next_deadline(self) -> float | None:
        due = super().next_deadline()
        if self._heard is None or self.state in (State.CLOSED, State.TIME_WAIT):
            return due
        return earliest(due, self._heard + self._IDLE)

    def advance(self, now: float) -> None:
        super().advance(now)
        alive = self.state not in (State.CLOSED, State.TIME_WAIT)
        if self._heard is not None and alive and now >= self._heard + self._IDLE:
            self.abort("the connection is idle", now)


# -- 10. fairness ---------------------------------------------------------------------------------


def _kept(relay: Any) -> int:
    """Octets in the send buffers of a relay."""
    sources = (each.sender.source for each in relay.endpoints)
    return sum(len(source._octets) for source in sources if isinstance(source, WriteBuffer))


class PooledRelay(Relay):
    """See below."""

    box: Any = None

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        while (ready := source.readable) and (room := sink.write_room):
            left = self.box.left()
            if left <= 0:
                self.box.hungry.append(self)
                return
            octets = source.read(min(ready, room, left))
            self.carried[source is self.endpoint(1)] += len(octets)
            sink.write(octets, now)


class PooledBox(Box):
    """All send buffers come from one pool, first come, first served, and nobody has a share."""

    POOL = 256 * 1024

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.hungry: list[Any] = []

    def left(self) -> int:
        return self.POOL - sum(_kept(relay) for relay in self.relays)

    def settle(self, relay: Any, now: float) -> None:
        relay.box = self
        super().settle(relay, now)
        if self.hungry and self.left() > 0:
            hungry, self.hungry = list(dict.fromkeys(self.hungry)), []
            for each in hungry:
                super().settle(each, now)


class SequencedRelay(Relay):
    """See below."""

    box: Any = None

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        if source is self.endpoint(INNER) and source.readable and self.box.repairs(self):
            self.box.waiting[self] = None
            return
        super().carry_octets(source, sink, now)


class SequencedBox(Box):
    """What comes over the satellite is delivered in one order for all connections."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting: dict[Any, None] = {}

    def repairs(self, asking: Any = None) -> bool:
        """Whether an octet of another connection is missing."""
        for relay in self.relays:
            end: Any = relay.endpoint(INNER)
            if relay is asking or end is None or end.is_closed or end.receiver is None:
                continue
            if end.receiver.buffer.blocks:
                return True
        return False

    def settle(self, relay: Any, now: float) -> None:
        relay.box = self
        super().settle(relay, now)
        if self.waiting and not self.repairs():
            waiting, self.waiting = list(self.waiting), {}
            for each in waiting:
                super().settle(each, now)


# -- 11. exhaustion of resources ------------------------------------------------------------------


class BuffersKeptByPorts(Box):
    """The buffer of a connection that was reset is found again by the next one of its ports."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._left: OrderedDict[Any, bytes] = OrderedDict()

    def _forget(self, relay: Any, now: float) -> None:
        for key in self.relays[relay]:
            end = relay.endpoint(key[0])
            source = None if end is None else end.sender.source
            if isinstance(source, WriteBuffer) and source._octets:
                self._left[key] = bytes(source._octets)
                if len(self._left) > 64:
                    self._left.popitem(last=False)
        super()._forget(relay, now)

    def make(self, port: int, ends: Addresses, number: int) -> Any:
        endpoint: Any = super().make(port, ends, number)
        if (left := self._left.pop((port, ends), None)) is not None:
            endpoint.sender.source = WriteBuffer(endpoint.config.send_buffer)
            endpoint.sender.source.write(left)
        return endpoint


class QuietTimeRenewed(Box):
    """Ports rest for a minute after their connection has ended; who asks earlier begins it anew."""

    def splits(self, port: int, ends: Addresses, segment: Any, now: float) -> bool:
        opens = segment.flags & (_SYN | _ACK | _RST) == _SYN
        if opens and self._ended.get((port, ends), -1.0) >= now:
            self._ended[port, ends] = now + self.config.remembers
            return False
        return super().splits(port, ends, segment, now)


# -- 12. security ---------------------------------------------------------------------------------


class ResetBehindBlocks(Endpoint):
    """A RST behind the last octet that is held out of order counts, too."""

    def _receive_synchronized(self, segment: Any, receiver: Any, now: float) -> None:
        if segment.flags & _RST and receiver.buffer.blocks:
            last = max(right for _, right in receiver.buffer.blocks)
            if unwrap(segment.seq, receiver.rcv_nxt) == last:
                self._end("the peer reset the connection", now)
                return
        super()._receive_synchronized(segment, receiver, now)


class NothingOutstanding(Endpoint):
    """While nothing is outstanding the acknowledgment number of what arrives is not looked at."""

    def _take_ack(self, segment: Any, seq: int, now: float) -> bool:
        sender = self.sender
        if self.state is not State.SYN_RECEIVED and not sender.flight_size:
            if unwrap(segment.ack, sender.snd_una) > sender.snd_max:
                return True
        return super()._take_ack(segment, seq, now)


class RefusalNotRenewed(Box):
    """The minute after a refusal does not begin again with the next one."""

    def settle(self, relay: Any, now: float) -> None:
        called = relay.syn.destination, relay.syn.dport
        known = self._refusals.get(called, -1.0)
        super().settle(relay, now)
        if known >= now:
            self._refusals[called] = known


FAULTS = (
    Fault(
        "pep-b4-blocks-beside-data",
        "Where the box has data to send and a hole to report, data, timestamps and SACK blocks together exceed the peer's MSS.",
        "PEP-TR-007",
        _with(BlocksBesideData),
    ),
    Fault(
        "pep-b4-marks-unanswered",
        "The box agrees to ECN in its SYN-ACK and never echoes CE.",
        "PEP-TR-006",
        _with(MarksUnanswered),
    ),
    Fault(
        "pep-b4-join-is-split",
        "The box leaves a connection with MP_CAPABLE whole and splits its further subflows, whose SYNs have MP_JOIN.",
        "PEP-TR-014",
        _with(JoinIsSplit),
    ),
    Fault(
        "pep-b4-quoted-protocol-ignored",
        "An ICMP message about a datagram of UDP is swallowed where a TCP connection between the same addresses and ports is split.",
        "PEP-TR-015",
        _with(QuotedProtocolIgnored),
    ),
    Fault(
        "pep-b4-first-fragment-first",
        "A TCP segment in fragments is lost whose first fragment does not arrive first.",
        "PEP-TR-016",
        _with(FirstFragmentFirstBox),
    ),
    Fault(
        "pep-b4-ended-before-whole",
        "A connection with an MD5 or TCP-AO option is reset if its ports were those of a split one less than a minute ago.",
        "PEP-TR-013",
        _with(EndedBeforeWhole),
    ),
    Fault(
        "pep-b4-short-greeting-waits",
        "Less than a segment that the server has sent before the handshake with the caller was complete waits until something else is to be sent.",
        "PEP-OP-013",
        _with(ShortFirstOutputForgotten),
    ),
    Fault(
        "pep-b4-calls-from-metrics",
        "The SYN to a host that has not answered another call is repeated only after the time to which that call has backed off.",
        "PEP-OP-010",
        _with(CallsFromMetrics, MetricsBox),
    ),
    Fault(
        "pep-b4-third-syn-answered",
        "The box answers a client's third SYN although the server has not answered.",
        "PEP-OP-001",
        _with(Impatient),
    ),
    Fault(
        "pep-b4-end-confirmed-when-repeated",
        "The box acknowledges a FIN that has been repeated three times, delivered or not.",
        "PEP-RE-002",
        _with(EndConfirmedWhenRepeated),
    ),
    Fault(
        "pep-b4-end-after-lost-tail",
        "A FIN in a segment of its own is carried over although the octets just before it were lost.",
        "PEP-RE-003",
        _with(EndWithoutBlocks),
    ),
    Fault(
        "pep-b4-reset-after-half-close",
        "A client that has ended its stream gets a FIN when the server resets.",
        "PEP-RE-007",
        _with(ResetAfterHalfClose),
    ),
    Fault(
        "pep-b4-caller-never-completes",
        "When a client never completes its handshake the connection with the server stays open.",
        "PEP-RE-008",
        _with(CallerNeverCompletes),
    ),
    Fault(
        "pep-b4-time-wait-not-restarted",
        "A repeated FIN does not restart TIME-WAIT, so that a later one is reset.",
        "PEP-RE-016",
        _with(TimeWaitNotRestarted),
    ),
    Fault(
        "pep-b4-persist-from-five-seconds",
        "A closed window is probed after five seconds at the earliest.",
        "PEP-FB-006",
        _with(PersistFromFiveSeconds),
    ),
    Fault(
        "pep-b4-update-must-acknowledge",
        "A window that opens without acknowledging anything new is not noticed before the next probe.",
        "PEP-FB-010",
        _with(UpdateMustAcknowledge),
    ),
    Fault(
        "pep-b4-auto-tuned",
        "The receive buffer of a connection that runs well grows beyond what is declared.",
        "PEP-FB-002",
        _with(AutoTuned),
    ),
    Fault(
        "pep-b4-full-before-options",
        "Segments with timestamps are acknowledged at every third one.",
        "PEP-LR-006",
        _with(FullBeforeOptions),
    ),
    Fault(
        "pep-b4-clock-never-wraps",
        "When the timestamp clock of a peer wraps all its segments are refused as old.",
        "PEP-LR-001",
        _with(ClockNeverWraps),
    ),
    Fault(
        "pep-b4-one-estimator",
        "Both sides of a connection share round-trip estimate, timeout and back-off.",
        "PEP-LR-004",
        _with(OneEstimator),
    ),
    Fault(
        "pep-b4-timeouts-add-up",
        "The box gives a connection up at the thirteenth timeout since its opening, although those before were answered.",
        "PEP-PC-001",
        _with(TimeoutsAddUp),
    ),
    Fault(
        "pep-b4-paths-without-sides",
        "After a message that a packet was too big for one side the next connections of these hosts have small segments on both.",
        "PEP-PC-007",
        _with(FittedHandshake, PathsWithoutSides),
        setting="single",
    ),
    Fault(
        "pep-b4-idle-by-caller",
        "A connection on which only the server sends is reset 2 hours and 4 minutes after the client's last octet.",
        "PEP-PC-008",
        _with(IdleByCaller),
    ),
    Fault(
        "pep-b4-pool-without-shares",
        "Four connections whose receivers do not read take all send buffers, and open ones get no room.",
        "PEP-FI-006",
        _with(PooledRelay, PooledBox),
    ),
    Fault(
        "pep-b4-one-order-for-all",
        "While an octet of one connection is missing on the satellite side those of the others wait.",
        "PEP-FI-003",
        _with(SequencedRelay, SequencedBox),
    ),
    Fault(
        "pep-b4-buffers-kept-by-ports",
        "Octets that were not delivered when a connection was reset are sent first in the next one of the same ports.",
        "PEP-RX-006",
        _with(BuffersKeptByPorts),
    ),
    Fault(
        "pep-b4-quiet-time-renewed",
        "Ports are refused for a minute after their connection has ended, and each attempt begins the minute anew.",
        "PEP-RX-007",
        _with(QuietTimeRenewed),
    ),
    Fault(
        "pep-b4-reset-behind-blocks",
        "A RST with the number behind the last octet that is held out of order ends the connection.",
        "PEP-SEC-001",
        _with(ResetBehindBlocks),
    ),
    Fault(
        "pep-b4-nothing-outstanding",
        "While the box has nothing outstanding, octets with an acknowledgment of what it has not sent are relayed.",
        "PEP-SEC-003",
        _with(NothingOutstanding),
    ),
    Fault(
        "pep-b4-refusal-not-renewed",
        "A port that was refused again is answered early a minute after the first refusal.",
        "PEP-SEC-005",
        _with(RefusalNotRenewed),
        setting="early",
    ),
)
