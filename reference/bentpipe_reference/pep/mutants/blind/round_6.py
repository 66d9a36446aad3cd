"""Round 6: written from PEP/1 on 2026-11-28."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import INNER
from bentpipe_reference.pep.endpoint import End, Endpoint, RelayReceiver
from bentpipe_reference.pep.fragments import Fragments, is_fragment
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.passing import TCP, Report
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.handshake import (
    SACK_BLOCK_OCTETS,
    SACK_OVERHEAD_OCTETS,
    TIMESTAMP_OCTETS,
    Handshake,
)
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_MASK = 0xFFFFFFFF
_ACK, _SYN, _RST = int(Flags.ACK), int(Flags.SYN), int(Flags.RST)
_RESET = "the peer reset the connection"

# -- transparency -------------------------------------------------------------------------------


class PortsOfAClientAreOneSpace(Box):
    """Takes a port for used when the client uses it towards anybody."""

    def calls_as(self, ends: Addresses) -> Addresses:
        """See :class:`Box`."""
        own = super().calls_as(ends)
        callers = (keys[0][1] for keys in self.relays.values())
        used = {each.remote_port for each in callers if each.remote == ends.remote}
        port = own.local_port
        while port in used:
            port = 1024 + (port + 7919) % 60_000
        return replace(own, local_port=port)


class RepeatsInNoClass(Box):
    """The class of a segment is known when it is made, not when it is repeated."""

    def collect(self, relay: Relay, port: int, endpoint: End, now: float) -> None:
        """See :class:`Box`."""
        assert isinstance(endpoint, Endpoint)
        sent = relay.__dict__.setdefault("sent_until", {})
        for segment in endpoint.transmit(now):
            dscp = relay.classes[1 - port]
            if segment.payload:
                end = segment.seq + len(segment.payload) & _MASK
                if port in sent and (sent[port] - end) & _MASK < 1 << 31:
                    dscp = 0
                else:
                    sent[port] = end
            self.send(port, segment, dscp)


class BlocksOnTop(Handshake):
    """Puts blocks where the header has room, whatever data is behind it."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        """See :class:`Handshake`."""
        room = 40 - TIMESTAMP_OCTETS * self.timestamps_ok
        return (room - SACK_OVERHEAD_OCTETS) // SACK_BLOCK_OCTETS


class WholeOneWay(Box):
    """Remembers a connection that stays whole as its caller's segments name it."""

    def splits(self, port: int, ends: Addresses, segment: Segment, now: float) -> bool:
        """See :class:`Box`."""
        found = super().splits(port, ends, segment, now)
        self._whole.pop(ends.swapped(), None)
        return found


class GathersAllFragments(Box):
    """Lets fragments go when all are here, whatever they carry."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._others = Fragments()

    def receive(self, port: int, packet: bytes, now: float) -> None:
        """See :class:`Box`."""
        protocol = self._passing.protocol(packet)
        if protocol is None or protocol == TCP or not is_fragment(packet):
            super().receive(port, packet, now)
        elif (joined := self._others.take(packet, now)) is not None:
            for carrier in joined[1]:
                self.forward(port, carrier)


# -- opening ------------------------------------------------------------------------------------


class OldRefusal(Endpoint):
    """Takes a refusal for one of an earlier SYN when it has sent several."""

    def _receive_in_syn_sent(self, segment: Segment, now: float) -> None:
        if not (segment.flags & _RST and self.handshake.attempts > 1):
            super()._receive_in_syn_sent(segment, now)


class EndsTheCall(Relay):
    """Ends the stream on the other side as soon as it has ended on this one."""

    def carry_end(self, source: End, sink: End, now: float) -> None:
        """See :class:`Relay`."""
        if source.stream_has_ended and not source.readable:
            sink.close(now)


class CallsEveryFourSeconds(Handshake):
    """Doubles the time between two SYNs up to four seconds."""

    def sent(self, now: float, *, repeated: bool) -> None:
        """See :class:`Handshake`."""
        super().sent(now, repeated=repeated)
        assert self.deadline is not None
        self.deadline = min(self.deadline, now + 4.0)


def calls_every_four_seconds(setup: Setup) -> Setup:
    """As often as it takes for the usual time."""
    return setup.with_part(CallsEveryFourSeconds).endpoints(max_syn_retransmissions=60)


class MissesResetWhileCalling(Relay):
    """Has nothing to reset while it calls, and does not come back to it."""

    missed = False

    def carry_failure(self, source: End, sink: End, now: float) -> None:
        """See :class:`Relay`."""
        if source is self.near and sink.is_opening:
            self.missed = True
        if not self.missed:
            super().carry_failure(source, sink, now)


# -- reliability --------------------------------------------------------------------------------


class BothHaveSaidAll(Relay):
    """Thinks that nobody can be deceived who has ended its stream when the other one has, too."""

    def confirm(self, source: End, sink: End, now: float) -> None:
        """See :class:`Relay`."""
        super().confirm(source, sink, now)
        if source.stream_has_ended and sink.stream_has_ended:
            source.confirm_end(now)


class TellsNobodyWhoHasClosed(Relay):
    """Does not reset a connection whose end it has acknowledged by itself."""

    def carry_failure(self, source: End, sink: End, now: float) -> None:
        """See :class:`Relay`."""
        closed = sink.stream_has_ended and self.ends_by_itself(sink)
        if closed and isinstance(sink, Endpoint) and not sink.is_closed:
            sink.fail("the connection that it relays has failed", now)
        else:
            super().carry_failure(source, sink, now)


class ResetBehindAnEnd(Relay):
    """What is reset after its stream has ended, has ended."""

    def carry_failure(self, source: End, sink: End, now: float) -> None:
        """See :class:`Relay`."""
        if not (source.stream_has_ended and source.failure == _RESET):
            super().carry_failure(source, sink, now)


class HalfClosedForAMinute(Endpoint):
    """Waits in FIN-WAIT-2 for a minute for something to come."""

    waits_until: float | None = None

    def _happen(self, happening: Happening, now: float) -> None:
        super()._happen(happening, now)
        self._wait(now)

    def _wait(self, now: float) -> None:
        self.waits_until = now + 60.0 if self.state is State.FIN_WAIT_2 else None

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        super().receive(segment, now)
        self._wait(now)

    def next_deadline(self) -> float | None:
        """See :class:`Endpoint`."""
        return earliest(super().next_deadline(), self.waits_until)

    def advance(self, now: float) -> None:
        """See :class:`Endpoint`."""
        super().advance(now)
        if self.waits_until is not None and now >= self.waits_until:
            self.abort("the peer does not end its stream", now)


class ServersDoNotWait(Endpoint):
    """Keeps no TIME-WAIT for connections that it has accepted: those are the clients' affair."""

    accepted = False

    def accept(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        self.accepted = True
        super().accept(segment, now)

    def _happen(self, happening: Happening, now: float) -> None:
        before = self.state
        super()._happen(happening, now)
        if self.accepted and self.state is State.TIME_WAIT and before is not State.TIME_WAIT:
            if self.receiver is not None and self.receiver.ack_now:
                self._put(self.sender.snd_max, _ACK, now)
            super()._happen(Happening.QUIET_TIME_OVER, now)


# -- flow control -------------------------------------------------------------------------------


class ShrinksByWhatIsOutOfOrder(RelayReceiver):
    """Offers the room that is left beside what it holds behind a gap."""

    def window_field(self) -> int:
        """See :class:`RelayReceiver`."""
        field = super().window_field()
        held = sum(right - left for left, right in self.buffer.blocks)
        return max(0, field - (held >> self.window_shift))


class ProbesWhatHasClosed(SackNewRenoRfcSender):
    """Probes a window that has closed, but not one that has never been open."""

    def check_probe(self, now: float) -> None:
        """See :class:`Sender`."""
        if self.max_snd_wnd:
            super().check_probe(now)


class LooksWhenAProbeIsDue(SackNewRenoRfcSender):
    """After three probes looks at the window when the next one is due."""

    def output(self, now: float) -> None:
        """See :class:`Sender`."""
        if self.probes < 3:
            super().output(now)
        elif self.persist_deadline is None:
            self.plan_probe(now)


# -- loss recovery ------------------------------------------------------------------------------


class ResumesAtFullWindow(SackNewRenoRfcSender):
    """Takes three timeouts in a row for an outage, after which nothing is congested."""

    before_outage = 0

    def on_timeout(self, now: float) -> None:
        """See :class:`Sender`."""
        if not self.consecutive_timeouts:
            self.before_outage = self.cwnd
        super().on_timeout(now)

    def on_new_ack(self, ack: Ack, now: float) -> None:
        """See :class:`Sender`."""
        if self.consecutive_timeouts >= 3:
            self.cwnd = max(self.cwnd, self.before_outage)
        super().on_new_ack(ack, now)


class TimesTheWholeCall(Relay):
    """Measures the caller's first round trip from its SYN, so that the call is in it."""

    began = 0.0

    def begin(self, now: float) -> None:
        """See :class:`Relay`."""
        self.began = now
        super().begin(now)

    def _answer(self, now: float) -> None:
        super()._answer(now)
        if isinstance(self.near, Endpoint):
            self.near.handshake._sent_at = self.began  # noqa: SLF001


class PutsOffItsAcknowledgment(RelayReceiver):
    """Starts the time of a delayed acknowledgment anew with every segment."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        """See :class:`Receiver`; a full segment is one of our own MSS."""
        full = self._octets_unacked >= 2 * (self.config.mss - TIMESTAMP_OCTETS)
        return not in_order or gap or full

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if self.ack_deadline is not None:
            self.ack_deadline = now + self.delayed_ack_interval()


# -- changes of the path ------------------------------------------------------------------------


class TiresOfAnEnd(SackNewRenoRfcSender):
    """Repeats a FIN, behind which nothing is left to lose, four times."""

    def has_given_up(self, now: float) -> bool:
        """See :class:`Sender`."""
        if super().has_given_up(now):
            return True
        deadline = self.next_deadline()
        only_end = self.fin_queued and self.snd_una == self.data_end
        return (
            only_end and self.snd_wnd > 0 and self.silent_timeouts >= 4
            and deadline is not None and now >= deadline
        )  # fmt: skip


class PassesLateReports(Box):
    """Takes a report of a segment that is not outstanding for one of somebody else's."""

    def _receive_report(self, port: int, report: Report, packet: bytes, now: float) -> None:
        relay = self._by_ends.get((port, report.ends))
        endpoint = None if relay is None else relay.endpoint(port)
        if isinstance(endpoint, Endpoint) and not endpoint.is_outstanding(report.seq):
            self.forward(port, packet)
        else:
            super()._receive_report(port, report, packet, now)


class WaitsForAFirstWord(Endpoint):
    """Resets what it has accepted when nothing has been said in either direction for five minutes.

    What has carried an octet stays open for as long as it likes.
    """

    accepted_at: float | None = None

    def accept(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        self.accepted_at = now
        super().accept(segment, now)

    def _patience(self) -> float | None:
        silent = self.state is State.ESTABLISHED and not self.has_heard
        if not silent or self.sender.snd_max != self.sender.iss + 1 or self.accepted_at is None:
            return None
        return self.accepted_at + 300.0

    def next_deadline(self) -> float | None:
        """See :class:`Endpoint`."""
        return earliest(super().next_deadline(), self._patience())

    def advance(self, now: float) -> None:
        """See :class:`Endpoint`."""
        super().advance(now)
        patience = self._patience()
        if patience is not None and now >= patience:
            self.abort("nobody says anything", now)


# -- fairness -----------------------------------------------------------------------------------


def _is_stalled(source: End, sink: End) -> bool:
    """Whether a stream waits for its receiver's window, and no more of it can be taken."""
    if not isinstance(sink, Endpoint) or sink.is_opening or sink.is_closed:
        return False
    return source.readable > 0 and not sink.write_room and sink.sender.snd_wnd < sink.sender.smss


class LessForWhoComesLater(Box):
    """Gives a connection that opens while others are stalled a quarter of the room."""

    def make(self, port: int, ends: Addresses, number: int) -> End:
        """See :class:`Box`."""
        stalled = any(
            _is_stalled(relay.near, relay.far) or _is_stalled(relay.far, relay.near)
            for relay in self.relays
            if relay.near is not None
        )
        if not stalled:
            return super().make(port, ends, number)
        usual = self.config
        less = {
            "receive_buffer": usual.outer.receive_buffer // 4,
            "send_buffer": usual.outer.send_buffer // 4,
        }
        self.config = replace(
            usual, outer=replace(usual.outer, **less), inner=replace(usual.inner, **less)
        )
        try:
            return super().make(port, ends, number)
        finally:
            self.config = usual


class OneRepairAtATime(Box):
    """While it repairs a loss over the satellite, data of other connections waits."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._waiting: list[tuple[Relay, Segment, int]] = []

    def _repairing(self) -> Relay | None:
        for relay in self.relays:
            inner = relay.endpoint(INNER)
            if isinstance(inner, Endpoint) and not (inner.is_opening or inner.is_closed):
                if inner.sender.in_recovery or inner.sender.consecutive_timeouts:
                    return relay
        return None

    def collect(self, relay: Relay, port: int, endpoint: End, now: float) -> None:
        """See :class:`Box`."""
        if port != INNER:
            super().collect(relay, port, endpoint, now)
            return
        assert isinstance(endpoint, Endpoint)
        repairing = self._repairing()
        for segment in endpoint.transmit(now):
            dscp = relay.classes[1 - port]
            if segment.payload and repairing is not None and repairing is not relay:
                self._waiting.append((relay, segment, dscp))
            else:
                self.send(port, segment, dscp)

    def settle(self, relay: Relay, now: float) -> None:
        """See :class:`Box`."""
        super().settle(relay, now)
        if self._waiting:
            repairing = self._repairing()
            waiting, self._waiting = self._waiting, []
            for entry in waiting:
                if repairing is None or repairing is entry[0]:
                    self.send(INNER, entry[1], entry[2])
                else:
                    self._waiting.append(entry)


# -- exhaustion ---------------------------------------------------------------------------------


class CallsAreNotHalfOpen(Relay):
    """Counts as half open what has been answered; what still calls keeps its place."""

    @property
    def is_half_open(self) -> bool:
        """See :class:`Relay`."""
        return self.near is not None and self.near.awaits_caller


class RefusesAnewEachTime(Box):
    """Refuses the ports of what has ended for 90 s from the last attempt."""

    def splits(self, port: int, ends: Addresses, segment: Segment, now: float) -> bool:
        """See :class:`Box`."""
        if segment.flags & (_SYN | _ACK | _RST) == _SYN:
            if self._ended.get((port, ends), -1.0) >= now:
                self._ended[port, ends] = now + 90.0
                return False
        return super().splits(port, ends, segment, now)


# -- security -----------------------------------------------------------------------------------


class AnyResetEndsACall(Box):
    """Knows no window of a caller that it has not answered, so that any RST counts."""

    def receive_in(self, relay: Relay, port: int, segment: Segment, now: float) -> None:
        """See :class:`Box`."""
        if relay.endpoint(port) is None and segment.flags & _RST:
            relay.cancel(now)
            self.settle(relay, now)
        else:
            super().receive_in(relay, port, segment, now)


class OneBeyondIsOutstanding(Endpoint):
    """Counts the number behind the last octet sent as outstanding."""

    def is_outstanding(self, seq: int) -> bool:
        """See :class:`Endpoint`."""
        sender = self.sender
        if self.is_opening:
            return super().is_outstanding(seq)
        return (seq - sender.snd_una) & _MASK <= sender.snd_max - sender.snd_una


class RemembersWhomItRefused(Box):
    """Remembers a refusal for the client that it has told of it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._told: dict[tuple[int, int, int], float] = {}

    def answers_early(self, syn: Segment, now: float) -> bool:
        """See :class:`Box`."""
        told = self._told.get((syn.source, syn.destination, syn.dport), -1.0) >= now
        return self.config.opening == "early" and not told

    def settle(self, relay: Relay, now: float) -> None:
        """See :class:`Box`."""
        known = relay in self.relays
        super().settle(relay, now)
        if known and relay.was_refused:
            syn = relay.syn
            until = now + self.config.believes_refusals
            self._told[syn.source, syn.destination, syn.dport] = until


def _part(part: type[Any]) -> Any:
    return lambda setup: setup.with_part(part)


FAULTS = [
    Fault(
        "pep-b6-one-space-of-ports",
        "calls from another port when the client uses its port towards another server, too",
        "PEP-TR-003", _part(PortsOfAClientAreOneSpace),
    ),
    Fault(
        "pep-b6-repeats-in-no-class",
        "segments that it retransmits leave with DSCP 0 whatever class their octets came in",
        "PEP-TR-005", _part(RepeatsInNoClass),
    ),
    Fault(
        "pep-b6-blocks-on-full-segments",
        "adds SACK blocks to full segments of data, which then exceed the peer's MSS",
        "PEP-TR-007", _part(BlocksOnTop),
    ),
    Fault(
        "pep-b6-whole-one-way",
        "resets the server's segments of a connection with MD5 or TCP-AO, as strangers' ones",
        "PEP-TR-013", _part(WholeOneWay), setting="strangers-reset",
    ),
    Fault(
        "pep-b6-gathers-all-fragments",
        "holds a fragment of what is not TCP until all fragments of its datagram have come",
        "PEP-TR-015", _part(GathersAllFragments),
    ),
    Fault(
        "pep-b6-old-refusal",
        "ignores the refusal of a call whose SYN it has repeated",
        "PEP-OP-005", _part(OldRefusal),
    ),
    Fault(
        "pep-b6-end-ends-the-call",
        "drops its call, and the octets with it, when an early client ends before the server answers",
        "PEP-OP-009", _part(EndsTheCall), setting="early",
    ),
    Fault(
        "pep-b6-calls-every-four-seconds",
        "doubles the time between its SYNs up to four seconds only",
        "PEP-OP-010", calls_every_four_seconds,
    ),
    Fault(
        "pep-b6-reset-while-calling",
        "forgets the reset of an early client that comes while the server is still being called",
        "PEP-OP-011", _part(MissesResetWhileCalling), setting="early",
    ),
    Fault(
        "pep-b6-both-have-said-all",
        "acknowledges both FINs at once when both streams have ended, though octets are held",
        "PEP-RE-002", _part(BothHaveSaidAll),
    ),
    Fault(
        "pep-b6-tells-nobody-who-has-closed",
        "does not reset a client whose FIN it has acknowledged when the server then resets",
        "PEP-RE-005", _part(TellsNobodyWhoHasClosed), setting="local",
    ),
    Fault(
        "pep-b6-reset-behind-an-end",
        "does not carry over the reset of an end that has sent its FIN before",
        "PEP-RE-006", _part(ResetBehindAnEnd),
    ),
    Fault(
        "pep-b6-half-closed-for-a-minute",
        "resets a half-closed connection when nothing comes for a minute in the open direction",
        "PEP-RE-009", _part(HalfClosedForAMinute),
    ),
    Fault(
        "pep-b6-servers-do-not-wait",
        "keeps no TIME-WAIT on the side of the caller when the one that is called closes first",
        "PEP-RE-016", _part(ServersDoNotWait),
    ),
    Fault(
        "pep-b6-shrinks-by-what-is-out-of-order",
        "takes what it holds behind a gap off the window that it has offered",
        "PEP-FB-003", _part(ShrinksByWhatIsOutOfOrder),
    ),
    Fault(
        "pep-b6-probes-what-has-closed",
        "does not probe a window that has been closed since the SYN-ACK",
        "PEP-FB-006", _part(ProbesWhatHasClosed),
    ),
    Fault(
        "pep-b6-looks-when-a-probe-is-due",
        "uses a window that opens after three probes when the next probe is due, not before",
        "PEP-FB-010", _part(LooksWhenAProbeIsDue),
    ),
    Fault(
        "pep-b6-resumes-at-full-window",
        "goes on with the congestion window of before after three timeouts in a row",
        "PEP-LR-003", _part(ResumesAtFullWindow),
    ),
    Fault(
        "pep-b6-times-the-whole-call",
        "counts the time that the server takes to answer into the round trip of the client's side",
        "PEP-LR-004", _part(TimesTheWholeCall),
    ),
    Fault(
        "pep-b6-puts-off-its-acknowledgment",
        "starts the delay of an acknowledgment anew with every small segment that comes",
        "PEP-LR-006", _part(PutsOffItsAcknowledgment),
    ),
    Fault(
        "pep-b6-tires-of-an-end",
        "gives up after four repetitions when only its FIN is not acknowledged",
        "PEP-PC-001", _part(TiresOfAnEnd),
    ),
    Fault(
        "pep-b6-passes-late-reports",
        "forwards an ICMP message about a packet of its own that has been acknowledged meanwhile",
        "PEP-PC-007", _part(PassesLateReports),
    ),
    Fault(
        "pep-b6-waits-for-a-first-word",
        "resets an open connection on which nobody has ever sent an octet after five minutes",
        "PEP-PC-008", _part(WaitsForAFirstWord),
    ),
    Fault(
        "pep-b6-less-for-who-comes-later",
        "takes a quarter of a stream that begins when another one's receiver has stopped already",
        "PEP-FI-002", _part(LessForWhoComesLater),
    ),
    Fault(
        "pep-b6-one-repair-at-a-time",
        "holds the data of all other connections while it repairs a loss over the satellite",
        "PEP-FI-003", _part(OneRepairAtATime),
    ),
    Fault(
        "pep-b6-calls-are-not-half-open",
        "lets SYNs for a silent server fill its places until it gives those calls up",
        "PEP-RX-002", _part(CallsAreNotHalfOpen),
    ),
    Fault(
        "pep-b6-refuses-anew-each-time",
        "refuses ports used again for as long as they are tried more often than every 90 s",
        "PEP-RX-007", _part(RefusesAnewEachTime),
    ),
    Fault(
        "pep-b6-any-reset-ends-a-call",
        "ends a call by a RST with any sequence number from the client's side",
        "PEP-SEC-001", _part(AnyResetEndsACall),
    ),
    Fault(
        "pep-b6-one-beyond-is-outstanding",
        "believes an ICMP message that quotes the number behind the last octet that it has sent",
        "PEP-SEC-004", _part(OneBeyondIsOutstanding),
    ),
    Fault(
        "pep-b6-remembers-whom-it-refused",
        "answers another client early at a port that the server has refused seconds ago",
        "PEP-SEC-005", _part(RemembersWhomItRefused), setting="early",
    ),
]  # fmt: skip
