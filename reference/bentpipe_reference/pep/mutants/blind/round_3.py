"""Round 3: written from PEP/1 on 2026-11-23."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.pep.box import Box, BoxParts
from bentpipe_reference.pep.config import BoxConfig
from bentpipe_reference.pep.endpoint import End, Endpoint, RelayReceiver
from bentpipe_reference.pep.fragments import OFFSET, Fragments
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.passing import Passing, Report
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.handshake import (
    SACK_BLOCK_OCTETS,
    SACK_OVERHEAD_OCTETS,
    TIMESTAMP_OCTETS,
    Handshake,
)
from bentpipe_reference.tcp.output import TIMESTAMP_HZ, Addresses
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire.options import MAXIMUM_OCTETS
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_FIN, _SYN, _RST, _ACK, _ECE, _CWR = (
    int(flag) for flag in (Flags.FIN, Flags.SYN, Flags.RST, Flags.ACK, Flags.ECE, Flags.CWR)
)
_RESET = "the peer reset the connection"


def _with(*parts: type[Any]) -> Callable[[Setup], Setup]:
    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# -- transparency ---------------------------------------------------------------------------------


class UntrimmedReassembly(Reassembly):
    """What was held behind a gap is not trimmed by what has filled the gap."""

    def _fill(self) -> None:
        pieces = self._pieces
        while pieces and pieces[0][0] <= self.rcv_nxt:
            start, piece = pieces.pop(0)
            self._ready.append(piece)
            self.unread += len(piece)
            self.rcv_nxt = max(self.rcv_nxt, start + len(piece))
        self._held.remove_below(self.rcv_nxt)
        self.blocks = [block for block in self.blocks if block[1] > self.rcv_nxt]


class EcnInNameOnly(Endpoint):
    """Accepts ECN when a caller offers it, and knows no CE."""

    offered = False

    def accept(self, syn: Segment, now: float) -> None:
        self.offered = syn.flags & (_ECE | _CWR) == _ECE | _CWR
        super().accept(syn, now)

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.offered and self.receiver is not None:
            self._outbox[-1].flags |= _ECE


class SackBesidesFullSegments(Handshake):
    """Only the header's room for options bounds the SACK blocks of a segment with data."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        options = MAXIMUM_OCTETS - TIMESTAMP_OCTETS * self.timestamps_ok
        return (options - SACK_OVERHEAD_OCTETS) // SACK_BLOCK_OCTETS


class ScaledSynAck(Endpoint):
    """The window of a SYN-ACK is scaled like all others."""

    def _established(self, segment: Segment, now: float) -> None:
        if segment.flags & _SYN:
            segment = replace(segment, window=segment.window << self.handshake.send_shift)
        super()._established(segment, now)


class CorrectedEcho(Endpoint):
    """The time for which an acknowledgment was delayed is added to the timestamp that it echoes."""

    def _timestamps(self, now: float) -> tuple[int, int]:
        own, recent = super()._timestamps(now)
        receiver = self.receiver
        if (
            receiver is not None
            and receiver.ts_recent is not None
            and receiver.ack_deadline is not None
        ):
            waited = now - receiver._ts_recent_time
            recent = recent + int(waited * TIMESTAMP_HZ) & MASK
        return own, recent


_MULTIPATH = 30


class FirstPathOnly(Passing):
    """Lets the first connection of Multipath TCP pass whole, and splits those that join it."""

    def must_stay_whole(self, syn: Segment) -> bool:
        capable = any(
            kind == _MULTIPATH and data and not data[0] >> 4 for kind, data in syn.unknown
        )
        return capable or super().must_stay_whole(syn)


class OrderedFragments(Fragments):
    """Puts together only fragments that arrive in their order."""

    def take(self, packet: bytes, now: float) -> tuple[bytes, tuple[bytes, ...]] | None:
        key = packet[4:6] + packet[9:10] + packet[12:20]
        held = self._held.get(key)
        offset = (int.from_bytes(packet[6:8], "big") & OFFSET) * 8
        if offset == 0 and held is not None:
            del self._held[key]
        elif offset != (0 if held is None else held.octets):
            return None
        return super().take(packet, now)


class OrderedFragmentsBox(Box):
    """A box with :class:`OrderedFragments`."""

    def __init__(self, config: BoxConfig, parts: BoxParts, seed: int) -> None:
        super().__init__(config, parts, seed)
        self._fragments = OrderedFragments()


# -- opening --------------------------------------------------------------------------------------


_PROHIBITED = (9, 10, 13)


class DeafToProhibition(Box):
    """Takes "communication administratively prohibited" for no failure of a call."""

    def _receive_report(self, port: int, report: Report, packet: bytes, now: float) -> None:
        code = packet[(packet[0] & 15) * 4 + 1]
        if code in _PROHIBITED and (port, report.ends) in self._by_ends:
            self.dropped += 1
            return
        super()._receive_report(port, report, packet, now)


class SilentForWhoHasEnded(Relay):
    """A failed call is not told to a caller that has ended its own stream."""

    def carry_failure(self, source: End, sink: End, now: float) -> None:
        if source is self.far and self.was_refused and sink.stream_has_ended:
            return
        super().carry_failure(source, sink, now)


class CallerSpeaksFirst(Relay):
    """Relays nothing to a caller that has not said anything: it has not been classified yet."""

    def carry_octets(self, source: End, sink: End, now: float) -> None:
        if source is self.far and not sink.has_heard and not sink.stream_has_ended:
            return
        super().carry_octets(source, sink, now)


# -- reliability ----------------------------------------------------------------------------------


class OneConfirmation(Relay):
    """Whether the end was confirmed is one flag, for both directions."""

    confirmed = False

    def confirm(self, source: End, sink: End, now: float) -> None:
        if not source.stream_has_ended:
            return
        if self.confirmed or self.config.end == "local" or sink.end_is_acknowledged:
            self.confirmed = True
            source.confirm_end(now)


class EndIsEnd(Relay):
    """A reset from who has sent a FIN before is taken for a part of closing."""

    def carry_failure(self, source: End, sink: End, now: float) -> None:
        if source.failure == _RESET and source.stream_has_ended:
            return
        super().carry_failure(source, sink, now)


class FlushingRelay(Relay):
    """Delivers what it holds when one end resets, and closes then."""

    flushing: End | None = None

    def carry_failure(self, source: End, sink: End, now: float) -> None:
        if source.failure != _RESET or sink.is_closed or not isinstance(sink, Endpoint):
            super().carry_failure(source, sink, now)
            return
        holds = source.readable > 0 or (
            not sink.is_opening and sink.sender.data_end != sink.sender.snd_una
        )
        if self.flushing is None and holds:
            self.flushing = source
        if self.flushing is not source or sink.end_is_acknowledged:
            super().carry_failure(source, sink, now)
            return
        self.carry_octets(source, sink, now)
        if not source.readable:
            sink.close(now)


class FinWait2Timer(Endpoint):
    """Drops a connection that hears nothing for a minute in FIN-WAIT-2."""

    PATIENCE = 60.0
    waits_until: float | None = None

    def _happen(self, happening: Happening, now: float) -> None:
        super()._happen(happening, now)
        self.waits_until = now + self.PATIENCE if self.state is State.FIN_WAIT_2 else None

    def receive(self, segment: Segment, now: float) -> None:
        super().receive(segment, now)
        if self.waits_until is not None and segment.payload:
            self.waits_until = now + self.PATIENCE

    def next_deadline(self) -> float | None:
        return earliest(super().next_deadline(), self.waits_until)

    def advance(self, now: float) -> None:
        if now >= (self.waits_until or math.inf):
            self.waits_until = None
            self.abort("the peer does not end its stream", now)
        super().advance(now)


class LingeringRelay(Relay):
    """Once both ends have ended their streams, gives what is left five seconds."""

    LINGER = 5.0
    until: float | None = None

    def step(self, now: float) -> None:
        super().step(now)
        near, far = self.near, self.far
        if near is None or not (near.stream_has_ended and far.stream_has_ended):
            return
        if self.until is None:
            self.until = now + self.LINGER
        if now >= self.until and not (near.end_is_acknowledged and far.end_is_acknowledged):
            for endpoint in (near, far):
                endpoint.abort("the time to linger is over", now)


# -- flow control and buffers ---------------------------------------------------------------------


class AutotunedReceiver(RelayReceiver):
    """Doubles its buffer each time that it has been full and then was emptied, up to four times as much."""

    size = 0
    was_full = False

    def free_room(self) -> int:
        self.size = self.size or self.config.receive_buffer
        unread = self.buffer.unread
        if unread >= self.size - self.config.mss:
            self.was_full = True
        elif self.was_full and unread < self.size // 2:
            self.was_full = False
            self.size = min(2 * self.size, 4 * self.config.receive_buffer)
        return max(0, min(self.size - unread, 0xFFFF << self.window_shift))


class DuplicateProbes(Endpoint):
    """Answers the first probe of a closed window; the others are duplicates of it."""

    probed: tuple[int, int] | None = None

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        closed, due = receiver.edge <= receiver.rcv_nxt, receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        if not closed or segment.flags & (_SYN | _RST | _FIN):
            return
        probe = seq, len(segment.payload)
        if probe == self.probed:
            receiver.ack_now = due
        self.probed = probe


class StrictlyFresh(SackNewRenoRfcSender):
    """Takes a window only from a segment that is newer than the one that it had the last from."""

    def update_window(self, ack: Ack) -> bool:
        if (ack.seq, ack.number) == (self.snd_wl1, self.snd_wl2):
            return False
        return super().update_window(ack)


# -- loss recovery --------------------------------------------------------------------------------


class SingleLossIsCorruption(SackNewRenoRfcSender):
    """A loss of one segment is taken for a bit error on either side: the window is restored."""

    before = (0, 0)
    is_single = False

    def enter_recovery(self, now: float) -> None:
        self.before = self.cwnd, self.ssthresh
        missing = self.scoreboard.gaps(self.snd_una, self.scoreboard.highest)
        self.is_single = sum(right - left for left, right in missing) <= self.smss
        super().enter_recovery(now)

    def leave_recovery(self, now: float) -> None:
        super().leave_recovery(now)
        if self.is_single:
            self.cwnd, self.ssthresh = self.before


class BackOffStays(RttEstimator):
    """A timeout that was backed off does not become shorter by new measurements."""

    least = 0.0

    def back_off(self) -> None:
        super().back_off()
        self.least = self.rto

    def sample(self, rtt: float) -> None:
        super().sample(rtt)
        self.rto = max(self.rto, self.least)


# -- changes of the path --------------------------------------------------------------------------


class OrphanRetries(Endpoint):
    """Once its stream has an end, a connection is given up after four unanswered retransmissions."""

    def advance(self, now: float) -> None:
        sender = self.sender
        due = now >= (sender.next_deadline() or math.inf)
        if due and sender.fin_queued and sender.silent_timeouts >= 4:
            self.abort("the peer does not take the end", now)
        super().advance(now)


class FitsOnce(Endpoint):
    """Takes one path MTU for each connection; a smaller one afterwards is not believed."""

    fitted = False

    def fit(self, mtu: int, now: float) -> None:
        if self.fitted or self.is_opening:
            return
        before = self.sender.smss
        super().fit(mtu, now)
        self.fitted = self.sender.smss < before


class OctetsAreLife(Endpoint):
    """Ends a connection on which no octet has come or gone for two hours and five minutes."""

    PATIENCE = 2 * 3600.0 + 300.0
    quiet_until: float | None = None

    def _happen(self, happening: Happening, now: float) -> None:
        super()._happen(happening, now)
        alive = self.state not in (State.CLOSED, State.TIME_WAIT)
        self.quiet_until = now + self.PATIENCE if alive else None

    def receive(self, segment: Segment, now: float) -> None:
        known = 0 if self.receiver is None else self.receiver.rcv_nxt
        super().receive(segment, now)
        if (
            self.quiet_until is not None
            and self.receiver is not None
            and self.receiver.rcv_nxt > known
        ):
            self.quiet_until = now + self.PATIENCE

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().put(seq, payload, fin, now)
        if self.quiet_until is not None:
            self.quiet_until = now + self.PATIENCE

    def next_deadline(self) -> float | None:
        return earliest(super().next_deadline(), self.quiet_until)

    def advance(self, now: float) -> None:
        if now >= (self.quiet_until or math.inf):
            self.quiet_until = None
            self.abort("nothing was relayed for long", now)
        super().advance(now)


# -- fairness and isolation -----------------------------------------------------------------------


class HalvingBox(Box):
    """Each connection gets half of the buffer of the one before it, down to an eighth."""

    def make(self, port: int, ends: Addresses, number: int) -> End:
        endpoint = super().make(port, ends, number)
        assert isinstance(endpoint, Endpoint)
        others = sum((port, ends) not in keys for keys in self.relays.values())
        config, part = endpoint.config, 1 << min(others, 3)
        endpoint.config = replace(
            config,
            receive_buffer=config.receive_buffer // part,
            send_buffer=config.send_buffer // part,
        )
        return endpoint


# -- exhaustion of resources ----------------------------------------------------------------------


class LeakingCounterBox(Box):
    """Counts half-open connections up at each SYN, and down only when one opens."""

    def __init__(self, config: BoxConfig, parts: BoxParts, seed: int) -> None:
        super().__init__(config, parts, seed)
        self.half_open = 0
        self._opening: set[Relay] = set()

    def has_room(self, now: float) -> bool:
        if self.half_open >= self.config.most_relays:
            return False
        return super().has_room(now)

    def settle(self, relay: Relay, now: float) -> None:
        known = relay in self.relays
        if known and relay.is_half_open and relay not in self._opening:
            self._opening.add(relay)
            self.half_open += 1
        super().settle(relay, now)
        if relay not in self.relays:
            self._opening.discard(relay)
        elif relay in self._opening and not relay.is_half_open:
            self._opening.discard(relay)
            self.half_open -= 1


class OldestMakesRoom(Box):
    """When all places are taken the oldest connection makes room, whatever it is doing."""

    def has_room(self, now: float) -> bool:
        if len(self.relays) >= self.config.most_relays:
            self._give_up(next(iter(self.relays)), "its place is needed", now)
        return True


class RefusesAnew(Box):
    """Refuses ports that were used a minute ago, and counts the minute from each refusal."""

    def splits(self, port: int, ends: Addresses, segment: Segment, now: float) -> bool:
        key = port, ends
        if segment.flags & _SYN and self._ended.get(key, -1.0) >= now:
            self._ended[key] = now + self.config.remembers
            return False
        return super().splits(port, ends, segment, now)


# -- security -------------------------------------------------------------------------------------


class ResetBehindTheGap(Endpoint):
    """Believes a reset whose number is the end of what it has selectively acknowledged."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & _RST and receiver.buffer.blocks:
            highest = max(right for _, right in receiver.buffer.blocks)
            if unwrap(segment.seq, receiver.rcv_nxt) == highest:
                self._end(_RESET, now)
                return
        super()._receive_synchronized(segment, receiver, now)


class CallerBeginsAnew(Box):
    """Takes a SYN with the ports of a connection that was quiet for half a minute for a new one."""

    QUIET = 30.0

    def __init__(self, config: BoxConfig, parts: BoxParts, seed: int) -> None:
        super().__init__(config, parts, seed)
        self._heard: dict[Relay, float] = {}

    def receive_in(self, relay: Relay, port: int, segment: Segment, now: float) -> None:
        heard, self._heard[relay] = self._heard.get(relay, now), now
        opens = segment.flags & (_SYN | _ACK | _RST) == _SYN and port == relay.caller
        if opens and relay.near is not None and not relay.is_half_open and now - heard > self.QUIET:
            self._give_up(relay, "the caller begins anew", now)
            self._call(port, segment, relay.classes[port], now)
            return
        super().receive_in(relay, port, segment, now)

    def _forget(self, relay: Relay, now: float) -> None:
        super()._forget(relay, now)
        self._heard.pop(relay, None)


class ErrorDisabled(Box):
    """A port at which eight packets with errors have arrived is shut for ten seconds."""

    ERRORS, SHUT = 8, 10.0

    def __init__(self, config: BoxConfig, parts: BoxParts, seed: int) -> None:
        super().__init__(config, parts, seed)
        self._errors = [0, 0]
        self._shut_until = [0.0, 0.0]

    def receive(self, port: int, packet: bytes, now: float) -> None:
        if now < self._shut_until[port]:
            self.dropped += 1
            return
        before = self.dropped
        super().receive(port, packet, now)
        self._errors[port] += self.dropped > before
        if self._errors[port] >= self.ERRORS:
            self._errors[port] = 0
            self._shut_until[port] = now + self.SHUT


def _fault(name: str, clause: str, title: str, *parts: type[Any], **more: Any) -> Fault:
    return Fault(f"pep-b3-{name}", title, clause, _with(*parts), **more)


FAULTS = (
    _fault(
        "overlap-twice",
        "PEP-TR-001",
        "Octets that are held behind a gap are relayed again when a longer retransmission fills the gap and overlaps them.",
        UntrimmedReassembly,
    ),
    _fault(
        "ecn-in-name-only",
        "PEP-TR-006",
        "The box answers an ECN-setup SYN with an ECN-setup SYN-ACK, but never echoes CE to that client.",
        EcnInNameOnly,
    ),
    _fault(
        "sack-besides-full-segments",
        "PEP-TR-007",
        "SACK blocks are not counted against the MSS: a full data segment that carries some is too large.",
        SackBesidesFullSegments,
    ),
    _fault(
        "scaled-syn-ack",
        "PEP-TR-008",
        "The window of a server's SYN-ACK is scaled, so that a server with a small window is sent too much at first.",
        ScaledSynAck,
    ),
    _fault(
        "corrected-echo",
        "PEP-TR-009",
        "The echo of a delayed acknowledgment is advanced by the delay, so that it is a TSval that never arrived.",
        CorrectedEcho,
    ),
    _fault(
        "first-path-only",
        "PEP-TR-014",
        "A Multipath TCP connection is passed whole by its MP_CAPABLE, but its later subflows with MP_JOIN are split.",
        FirstPathOnly,
    ),
    _fault(
        "ordered-fragments",
        "PEP-TR-016",
        "A TCP segment is dropped when its fragments do not arrive in their order.",
        OrderedFragmentsBox,
    ),
    _fault(
        "deaf-to-prohibition",
        "PEP-OP-007",
        'A call that fails by an ICMP message "administratively prohibited" is not reported, as that code is ignored.',
        DeafToProhibition,
    ),
    _fault(
        "silent-for-who-has-ended",
        "PEP-OP-008",
        "With early opening a client that has sent its FIN already gets no RST when the server refuses.",
        SilentForWhoHasEnded,
        setting="early",
    ),
    _fault(
        "caller-speaks-first",
        "PEP-OP-013",
        "What a server sends is withheld until the client has sent something.",
        CallerSpeaksFirst,
    ),
    _fault(
        "one-confirmation",
        "PEP-RE-002",
        "After the FIN of one direction has been confirmed that of the other one is acknowledged before its octets are delivered.",
        OneConfirmation,
    ),
    _fault(
        "reset-after-end",
        "PEP-RE-006",
        "A reset from an end that has sent its FIN before is not carried over to the other end.",
        EndIsEnd,
    ),
    _fault(
        "flush-on-reset",
        "PEP-RE-007",
        "A reset that arrives while octets of that stream are held is carried over as a FIN behind them.",
        FlushingRelay,
    ),
    _fault(
        "fin-wait-2-timer",
        "PEP-RE-009",
        "A half-closed connection is reset when the other direction has been silent for a minute.",
        FinWait2Timer,
    ),
    _fault(
        "lingers-briefly",
        "PEP-RE-010",
        "Once both ends have sent their FINs the box resets both if all is not delivered within five seconds.",
        LingeringRelay,
    ),
    _fault(
        "autotuned-buffer",
        "PEP-FB-001",
        "A buffer that has been filled and emptied is doubled, so that more than declared is taken when the reader stops then.",
        AutotunedReceiver,
    ),
    _fault(
        "one-probe-answered",
        "PEP-FB-005",
        "Only the first probe of a closed window is answered, repeated ones are dropped as duplicates.",
        DuplicateProbes,
    ),
    _fault(
        "strictly-fresh-window",
        "PEP-FB-010",
        "A pure window update, with the same numbers as the segment before, is not noticed, so that sending resumes with a late probe.",
        StrictlyFresh,
    ),
    _fault(
        "single-loss-is-corruption",
        "PEP-LR-003",
        "On both sides a loss of a single segment is taken for corruption, and the congestion window restored once it is repaired.",
        SingleLossIsCorruption,
    ),
    _fault(
        "back-off-stays",
        "PEP-LR-004",
        "A retransmission timeout that was backed off stays that long for the rest of the connection, whatever is measured.",
        BackOffStays,
    ),
    _fault(
        "orphan-retries",
        "PEP-PC-001",
        "A connection whose stream has an end is given up after four retransmissions, so that an outage then ends it.",
        OrphanRetries,
    ),
    _fault(
        "fits-once",
        "PEP-PC-005",
        "Only the first ICMP message of a smaller MTU counts for a connection; after a second, smaller one it stalls.",
        FitsOnce,
    ),
    _fault(
        "octets-are-life",
        "PEP-PC-008",
        "Keep-alives do not count as activity: a connection that only they keep alive is ended after 2 hours and 5 minutes.",
        OctetsAreLife,
    ),
    _fault(
        "halved-buffers",
        "PEP-FI-002",
        "Each connection that opens gets half the buffer of the one before it, and so a smaller share of the satellite link.",
        HalvingBox,
    ),
    _fault(
        "leaking-counter",
        "PEP-RX-002",
        "Half-open connections that end otherwise than by opening are counted for ever, so that after 64 of them none opens.",
        LeakingCounterBox,
    ),
    _fault(
        "oldest-makes-room",
        "PEP-RX-001",
        "When its table is full the box resets the oldest connection for a new SYN, though others are half open.",
        OldestMakesRoom,
    ),
    _fault(
        "refuses-anew",
        "PEP-RX-007",
        "Ports that were used within the last minute are refused, and each attempt makes that minute begin anew.",
        RefusesAnew,
    ),
    _fault(
        "reset-behind-the-gap",
        "PEP-SEC-001",
        "Besides the next number expected, a RST with the number behind the highest SACK block ends a connection.",
        ResetBehindTheGap,
    ),
    _fault(
        "caller-begins-anew",
        "PEP-SEC-002",
        "A SYN with the ports of a connection that has been quiet for half a minute ends it and opens a new one.",
        CallerBeginsAnew,
    ),
    _fault(
        "error-disabled",
        "PEP-SEC-007",
        "After eight packets with wrong checksums or headers the box ignores a port for ten seconds.",
        ErrorDisabled,
    ),
)
