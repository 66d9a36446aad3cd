"""Round 1: written from PEP/1 on 2026-11-23."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import (
    checksum_field,
    internet_checksum,
    ones_complement_residue,
)
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.common.stream import WriteBuffer
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import INNER
from bentpipe_reference.pep.endpoint import Endpoint, RelayReceiver
from bentpipe_reference.pep.fragments import OFFSET, Fragments, is_fragment
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.passing import Passing, Report
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.recovery.sack_newreno_rfc import SackNewRenoRfcSender
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Segment, WireError
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16

_WAS_RESET = "the peer reset the connection"
_IS_SILENT = "the peer answers no retransmission"


def _with(*parts: type[Any], **settings: Any) -> Callable[[Setup], Setup]:
    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup.configured(**settings) if settings else setup

    return configure


# -- transparency ---------------------------------------------------------------------------------


class ScaledSynWindow(Endpoint):
    """Scales the window of a SYN-ACK like any other."""

    def _established(self, segment: Segment, now: float) -> None:
        if segment.flags & _SYN:
            segment.window <<= self.handshake.send_shift
        super()._established(segment, now)


class JoinsAreSplit(Passing):
    """Lets Multipath TCP pass, but knows of its first SYN only."""

    def must_stay_whole(self, syn: Segment) -> bool:
        capable = any(kind == 30 and data and data[0] >> 4 == 0 for kind, data in syn.unknown)
        return capable or super().must_stay_whole(syn)


class AnyTransport(Passing):
    """Does not look which protocol the packet has that an ICMP message quotes."""

    def report(self, packet: bytes) -> Report | None:
        found = super().report(packet)
        if found is not None:
            return found
        start, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        message = packet[start:total]
        if is_fragment(packet) or len(message) < 36 or message[0] != 3:
            return None
        if internet_checksum(message):
            return None
        quoted = message[8:]
        head = (quoted[0] & 15) * 4
        if quoted[0] >> 4 != 4 or head < 20 or len(quoted) < head + 8:
            return None
        if int.from_bytes(quoted[6:8], "big") & OFFSET:
            return None
        number = int.from_bytes
        ends = Addresses(
            number(quoted[12:16], "big"), number(quoted[head : head + 2], "big"),
            number(quoted[16:20], "big"), number(quoted[head + 2 : head + 4], "big"),
        )  # fmt: skip
        return Report(ends, number(quoted[head + 4 : head + 8], "big"), None)


class _FirstComesFirst(Fragments):
    def take(self, packet: bytes, now: float) -> tuple[bytes, tuple[bytes, ...]] | None:
        key = packet[4:6] + packet[9:10] + packet[12:20]
        if int.from_bytes(packet[6:8], "big") & OFFSET and key not in self._held:
            return None
        return super().take(packet, now)


class FirstFragmentFirst(Box):
    """Begins a datagram with its first fragment only, and drops what comes before it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._fragments = _FirstComesFirst()


class OverlapTwice(Reassembly):
    """Appends a stored piece whole when a retransmission has filled the gap and a part of it."""

    def _fill(self) -> None:
        pieces = self._pieces
        while pieces and pieces[0][0] <= self.rcv_nxt:
            start, piece = pieces.pop(0)
            if start + len(piece) > self.rcv_nxt:
                self._ready.append(piece)
                self.unread += len(piece)
                self.rcv_nxt = start + len(piece)
        self._held.remove_below(self.rcv_nxt)
        self.blocks = [block for block in self.blocks if block[1] > self.rcv_nxt]


# -- opening --------------------------------------------------------------------------------------


class CallsOnDemand(Endpoint):
    """Has no timer for the SYN of a call."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is None:
            self.handshake.deadline = None


class RepeatsTheCallers(Relay):
    """Repeats the SYN of a call when the caller repeats its own."""

    def repeat_syn(self, now: float) -> None:
        far = self.far
        if isinstance(far, Endpoint) and far.state is State.SYN_SENT:
            far._send_syn(now, repeated=True)


class RefusedOnce(Endpoint):
    """Takes a refusal for an answer to the first SYN only."""

    def _receive_in_syn_sent(self, segment: Segment, now: float) -> None:
        if segment.flags & _RST and self.handshake.attempts > 1:
            return
        super()._receive_in_syn_sent(segment, now)


class CallsAnew(Endpoint):
    """Begins a call anew when its SYN is repeated, with an empty buffer."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        if self.receiver is None and self.handshake.attempts:
            self.sender.source = None
        super()._send_syn(now, repeated=repeated)


# -- reliability ----------------------------------------------------------------------------------


class CountsFins(RelayReceiver):
    """Counts how often the FIN has come."""

    fins = 0

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        self.fins += fin
        super().on_text(seq, payload, fin, now)


class GivesInToFins(Relay):
    """Acknowledges a FIN that has been repeated four times, so that its sender stays."""

    def confirm(self, source: Any, sink: Any, now: float) -> None:
        super().confirm(source, sink, now)
        if source.stream_has_ended and getattr(source.receiver, "fins", 0) > 4:
            source.confirm_end(now)


class EndBeforeRest(Relay):
    """Closes the sink on a FIN while its peer's window is closed, though octets still wait."""

    def carry_end(self, source: Any, sink: Any, now: float) -> None:
        super().carry_end(source, sink, now)
        if source.stream_has_ended and not sink.is_opening and not sink.sender.snd_wnd:
            sink.close(now)


class ResetAfterEnd(Relay):
    """Does not look for a reset where the stream has ended already."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if source.stream_has_ended and source.failure == _WAS_RESET:
            return
        super().carry_failure(source, sink, now)


class ResetOfAnswer(Relay):
    """Forgets the call when the caller answers the SYN-ACK with a RST."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if source is self.near and not hasattr(source.sender, "smss"):
            return
        super().carry_failure(source, sink, now)


class ResetBehindOctets(Relay):
    """Delivers what it holds before it passes a reset on."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if not sink.is_closed and not sink.is_opening:
            self.carry_octets(source, sink, now)
            if sink.sender.data_end > sink.sender.snd_una:
                return
        super().carry_failure(source, sink, now)


class ResetAfterHalfClose(Relay):
    """Ends the other half where one half has ended, whatever has ended it."""

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if sink.is_closed or sink.is_opening or not sink.stream_has_ended:
            super().carry_failure(source, sink, now)
            return
        self.carry_octets(source, sink, now)
        sink.confirm_end(now)
        sink.close(now)


class HalfClosedTimer(Endpoint):
    """Resets a connection a minute after the last segment in FIN-WAIT-2."""

    PATIENCE = 60.0
    half_closed_until: float | None = None

    def _happen(self, happening: Any, now: float) -> None:
        super()._happen(happening, now)
        if self.state is not State.FIN_WAIT_2:
            self.half_closed_until = None
        elif self.half_closed_until is None:
            self.half_closed_until = now + self.PATIENCE

    def receive(self, segment: Segment, now: float) -> None:
        super().receive(segment, now)
        if self.half_closed_until is not None:
            self.half_closed_until = now + self.PATIENCE

    def next_deadline(self) -> float | None:
        return earliest(super().next_deadline(), self.half_closed_until)

    def advance(self, now: float) -> None:
        super().advance(now)
        if self.half_closed_until is not None and now >= self.half_closed_until:
            self.abort("half closed for too long", now)


class BothEndsConfirm(Relay):
    """Acknowledges both FINs when both are here, lest each waits for the other."""

    def confirm(self, source: Any, sink: Any, now: float) -> None:
        if source.stream_has_ended and sink.stream_has_ended:
            source.confirm_end(now)
        else:
            super().confirm(source, sink, now)


class LateFinAcknowledged(Box):
    """Answers a late FIN of a connection that has ended with an ACK, however it has ended."""

    def _answers_for(self, key: Any, segment: Segment, now: float) -> bool:
        late = self._ended.get(key, -1.0) >= now and key[1] not in self._whole
        if late and segment.flags & (_FIN | _RST) == _FIN:
            answer = Segment(segment.destination, segment.source, segment.dport, segment.sport)
            answer.seq, answer.flags = segment.ack, _ACK
            answer.ack = segment.seq + segment.sequence_length & MASK
            if segment.timestamps is not None:
                answer.timestamps = segment.timestamps[1], segment.timestamps[0]
            self.send(key[0], answer)
            return True
        return super()._answers_for(key, segment, now)


class FragmentsUnchecked(Box):
    """Does not verify the TCP checksum of what it has put together."""

    def _receive_tcp(
        self, port: int, packet: bytes, carriers: tuple[bytes, ...], now: float
    ) -> None:
        head = (packet[0] & 15) * 4
        if len(carriers) > 1 and len(packet) >= head + 20:
            body = packet[head : head + 16] + bytes(2) + packet[head + 18 :]
            source, destination = (int.from_bytes(packet[at : at + 4], "big") for at in (12, 16))
            pseudo = source + destination + 6 + len(body)
            field = checksum_field(ones_complement_residue(body) + pseudo)
            packet = packet[:head] + body[:16] + field.to_bytes(2, "big") + body[18:]
        super()._receive_tcp(port, packet, carriers, now)


class TellsWhenAsked(Relay):
    """Carries a connection that was given up over when the other end sends something."""

    spoke: int | None = None

    def carry_failure(self, source: Any, sink: Any, now: float) -> None:
        if source.failure == _IS_SILENT and (
            self.spoke is None or self.endpoint(self.spoke) is not sink
        ):
            return
        super().carry_failure(source, sink, now)


class HearsWhoSpeaks(Box):
    """Tells a relay who has sent something."""

    def receive_in(self, relay: Relay, port: int, segment: Segment, now: float) -> None:
        if isinstance(relay, TellsWhenAsked):
            relay.spoke = port
        super().receive_in(relay, port, segment, now)
        if isinstance(relay, TellsWhenAsked):
            relay.spoke = None


class ResetBehindGap(Endpoint):
    """Ignores a RST that is in the window, but not next, without a challenge."""

    def _receive_synchronized(self, segment: Segment, receiver: Any, now: float) -> None:
        if segment.flags & _RST and unwrap(segment.seq, receiver.rcv_nxt) > receiver.rcv_nxt:
            return
        super()._receive_synchronized(segment, receiver, now)


class FinOnRepeats(Endpoint):
    """Has a FIN in every retransmission once the FIN has been sent."""

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        sender = self.sender
        end = sender.data_end
        if payload and sender.fin_queued and end is not None and sender.snd_max > end:
            fin = True
        super().put(seq, payload, fin, now)


# -- flow control ---------------------------------------------------------------------------------


class _CountsUnsent(WriteBuffer):
    def __init__(self, capacity: int, sender: Any) -> None:
        super().__init__(capacity)
        self._sender = sender

    @property
    def room(self) -> int:
        sent = self._sender.snd_max - self._sender.iss - 1
        return self._capacity - max(0, self.end() - sent)


class FlightNotHeld(Endpoint):
    """Counts as held what has not been sent yet."""

    def write(self, data: bytes, now: float) -> int:
        if self.sender.source is None:
            self.sender.source = _CountsUnsent(self.config.send_buffer, self.sender)
        return super().write(data, now)


class StopsProbing(SackNewRenoRfcSender):
    """Probes a closed window five times, then waits for it to open."""

    def plan_probe(self, now: float) -> None:
        if self.probes < 5:
            super().plan_probe(now)


class OneAnswerToProbes(Endpoint):
    """Answers the first probe of a closed window only, since the others would hear the same."""

    told = -1

    def _receive_unacceptable(self, segment: Segment, seq: int, receiver: Any, now: float) -> None:
        due = receiver.ack_now
        probe = receiver.edge <= receiver.rcv_nxt and seq - receiver.rcv_nxt in (-1, 0)
        probe = probe and not segment.flags & (_SYN | _RST | _FIN)
        super()._receive_unacceptable(segment, seq, receiver, now)
        if probe and self.told == receiver.rcv_nxt:
            receiver.ack_now = due
        elif probe:
            self.told = receiver.rcv_nxt


# -- loss recovery --------------------------------------------------------------------------------


class ResumesWindow(SackNewRenoRfcSender):
    """Takes the first acknowledgment after timeouts for the proof that nothing was congested."""

    before: tuple[int, int] | None = None

    def on_timeout(self, now: float) -> None:
        if not self.consecutive_timeouts:
            self.before = self.cwnd, self.ssthresh
        super().on_timeout(now)

    def on_new_ack(self, ack: Any, now: float) -> None:
        if self.before is not None and self.consecutive_timeouts:
            self.cwnd, self.ssthresh = self.before
            self.before = None
        super().on_new_ack(ack, now)


class SackBesideData(Handshake):
    """Makes no room for SACK blocks in a segment with data."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        return super().sack_room(0)


class ComparesWithNext(Endpoint):
    """Compares acknowledgments with SND.NXT, which a timeout has set back."""

    def _refuses_ack(self, number: int, now: float) -> bool:
        sender = self.sender
        if sender.consecutive_timeouts and number > sender.snd_nxt:
            if self.receiver is not None:
                self.receiver.ack_now = True
            return True
        return super()._refuses_ack(number, now)


class IgnoresKeepAlives(Endpoint):
    """Drops what looks like a keep-alive, to spare the return channel."""

    def _receive_unacceptable(self, segment: Segment, seq: int, receiver: Any, now: float) -> None:
        alive = seq == receiver.rcv_nxt - 1 and len(segment.payload) <= 1
        alive = alive and receiver.edge > receiver.rcv_nxt and self.state is State.ESTABLISHED
        due = receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        if alive and not segment.flags & (_SYN | _RST | _FIN):
            receiver.ack_now = due


# -- the path -------------------------------------------------------------------------------------


class CountsForLife(SackNewRenoRfcSender):
    """Never sets the number of timeouts back."""

    def on_ack(self, ack: Any, now: float) -> None:
        timeouts = self.silent_timeouts
        super().on_ack(ack, now)
        self.silent_timeouts = timeouts


class KeepsOldSizes(SackNewRenoRfcSender):
    """Retransmits with the size with which it has sent."""

    old_until = 0
    old_smss = 0

    def segment_limit(self, seq: int) -> int:
        if seq >= self.old_until:
            return super().segment_limit(seq)
        smss, self.smss = self.smss, self.old_smss
        try:
            return super().segment_limit(seq)
        finally:
            self.smss = smss


class FitsNewOnly(Endpoint):
    """Applies a smaller packet size to what it has not sent yet."""

    def fit(self, mtu: int, now: float) -> None:
        sender = self.sender
        if not self.is_opening and isinstance(sender, KeepsOldSizes):
            sender.old_smss = max(sender.old_smss, sender.smss)
            sender.old_until = max(sender.old_until, sender.snd_max)
        super().fit(mtu, now)


# -- many connections -----------------------------------------------------------------------------


class _SharedLink(SackNewRenoRfcSender):
    """Keeps what all connections have under way below a limit: who has room keeps it."""

    LIMIT = 48 * 1024
    box: Box | None = None

    def send_window(self) -> int:
        window = super().send_window()
        if self.box is None:
            return window
        others = 0
        for relay in self.box.relays:
            each = relay.endpoint(INNER)
            if isinstance(each, Endpoint) and each.sender is not self and not each.is_closed:
                others += each.sender.flight_size
        return min(window, max(self.smss, self.LIMIT - others))


class SharesLink(Box):
    """Has one limit for what is under way over the satellite."""

    def make(self, port: int, ends: Addresses, number: int) -> Any:
        endpoint: Any = super().make(port, ends, number)
        if port == INNER:
            endpoint.sender.box = self
        return endpoint


class InOneOrder(Relay):
    """Hands on nothing from the satellite while another connection misses something there."""

    box: Any = None

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        if source is self.endpoint(INNER) and self.box.missing - {self}:
            return
        super().carry_octets(source, sink, now)


class OneQueue(Box):
    """Keeps one order of all that comes over the satellite."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.missing: set[Relay] = set()

    def settle(self, relay: Relay, now: float) -> None:
        assert isinstance(relay, InOneOrder)
        relay.box = self
        before = bool(self.missing)
        end: Any = relay.endpoint(INNER)
        gap = end is not None and not end.is_closed and end.receiver is not None
        if gap and end.receiver.buffer.blocks:
            self.missing.add(relay)
        else:
            self.missing.discard(relay)
        super().settle(relay, now)
        if relay not in self.relays:
            self.missing.discard(relay)
        if before and not self.missing:
            for each in list(self.relays):
                super().settle(each, now)


class PooledReceiver(RelayReceiver):
    """Has its room from a pool of the box."""

    POOL = 256 * 1024
    box: Box | None = None

    def free_room(self) -> int:
        free = super().free_room()
        if self.box is None:
            return free
        held = 0
        for relay in self.box.relays:
            for each in relay.endpoints:
                held += each.readable
        return max(0, min(free, self.POOL - held))


class PooledEndpoint(Endpoint):
    """Tells its receiver of the pool."""

    box: Box | None = None

    def _take_syn(self, segment: Segment, now: float) -> Any:
        receiver = super()._take_syn(segment, now)
        if isinstance(receiver, PooledReceiver):
            receiver.box = self.box
        return receiver


class PooledBox(Box):
    """Has a pool of receive buffers for all connections."""

    def make(self, port: int, ends: Addresses, number: int) -> Any:
        endpoint: Any = super().make(port, ends, number)
        endpoint.box = self
        return endpoint


class Parked(Relay):
    """Relays nothing while it is parked."""

    parked: bool | None = None

    def move(self, source: Any, sink: Any, now: float) -> None:
        if not self.parked or source.failure is not None:
            super().move(source, sink, now)


class ParksBeyondLimit(Box):
    """Opens connections beyond its number, and lets them wait for a place."""

    _park = False

    def has_room(self, now: float) -> bool:
        self._park = not super().has_room(now)
        return True

    def settle(self, relay: Relay, now: float) -> None:
        assert isinstance(relay, Parked)
        if relay.parked is None:
            relay.parked, self._park = self._park, False
        super().settle(relay, now)

    def _forget(self, relay: Relay, now: float) -> None:
        super()._forget(relay, now)
        if len([each for each in self.relays if not each.parked]) < self.config.most_relays:  # type: ignore[attr-defined]
            first: Any = next((each for each in self.relays if each.parked), None)  # type: ignore[attr-defined]
            if first is not None:
                first.parked = False
                self.settle(first, now)


# -- resources ------------------------------------------------------------------------------------


class HalfOpenUntilAnswered(Relay):
    """Counts as half open only while the caller has no answer."""

    @property
    def is_half_open(self) -> bool:
        return self.near is None


class RefusesPortsAgain(Box):
    """Takes a SYN with the ports of a connection that it remembers for a late one."""

    def splits(self, port: int, ends: Addresses, segment: Segment, now: float) -> bool:
        if self._ended.get((port, ends), -1.0) >= now:
            return False
        return super().splits(port, ends, segment, now)


class Inherits(Box):
    """Finds the buffer of the connection of before where ports are used again."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._left: dict[Any, bytes] = {}

    def _forget(self, relay: Relay, now: float) -> None:
        key = self.relays[relay][0]
        sender: Any = relay.far.sender  # type: ignore[attr-defined]
        source = sender.source
        if source is not None and sender.data_end > sender.snd_una:
            offset = sender.snd_una - sender.iss - 1
            self._left[key] = source.read(offset, source.end() - offset)
        super()._forget(relay, now)

    def _call(self, port: int, syn: Segment, dscp: int, now: float) -> None:
        super()._call(port, syn, dscp, now)
        key = port, Addresses(syn.destination, syn.dport, syn.source, syn.sport)
        relay = self._by_ends.get(key)
        left = self._left.pop(key, b"")
        if relay is not None and left:
            relay.far.write(left, now)
            self.settle(relay, now)


class Dated(Relay):
    """Knows when something came last."""

    last = 0.0

    def begin(self, now: float) -> None:
        self.last = now
        super().begin(now)


class QuietestGoes(Box):
    """Resets the connection that was quiet for longest when there is no place for a new one."""

    def receive_in(self, relay: Relay, port: int, segment: Segment, now: float) -> None:
        if isinstance(relay, Dated):
            relay.last = now
        super().receive_in(relay, port, segment, now)

    def has_room(self, now: float) -> bool:
        if super().has_room(now):
            return True
        quietest = min(self.relays, key=lambda relay: relay.last)  # type: ignore[attr-defined]
        self._give_up(quietest, "its place is needed", now)
        return True


# -- security -------------------------------------------------------------------------------------


class OldNumbersQuoted(Endpoint):
    """Believes an ICMP message that quotes anything that it has ever sent."""

    def is_outstanding(self, seq: int) -> bool:
        sender = self.sender
        return seq - sender.iss & MASK < max(1, sender.snd_max - sender.iss)


class ResetsOnNonsense(Box):
    """Resets a connection for a segment with options that cannot be read."""

    def _receive_tcp(
        self, port: int, packet: bytes, carriers: tuple[bytes, ...], now: float
    ) -> None:
        try:
            self.parts.parse(packet)
        except WireError as error:
            if "TCP option" in str(error):
                head, number = (packet[0] & 15) * 4, int.from_bytes
                ends = Addresses(
                    number(packet[16:20], "big"), number(packet[head + 2 : head + 4], "big"),
                    number(packet[12:16], "big"), number(packet[head : head + 2], "big"),
                )  # fmt: skip
                relay = self._by_ends.get((port, ends))
                if relay is not None:
                    self._give_up(relay, "the peer sends nonsense", now)
        super()._receive_tcp(port, packet, carriers, now)


FAULTS = (
    Fault(
        "pep-b1-syn-window-scaled",
        "The window in a SYN-ACK is scaled, so that more is sent than a server with a small first window allows.",
        "PEP-TR-008; RFC 7323 section 2.2",
        _with(ScaledSynWindow),
    ),
    Fault(
        "pep-b1-join-is-split",
        "Multipath connections pass whole, but a SYN with MP_JOIN is split.",
        "PEP-TR-014",
        _with(JoinsAreSplit),
    ),
    Fault(
        "pep-b1-udp-report-swallowed",
        "An ICMP message about a UDP packet with the addresses and ports of an open TCP connection is swallowed.",
        "PEP-TR-015",
        _with(AnyTransport),
    ),
    Fault(
        "pep-b1-first-fragment-first",
        "Fragments that arrive before the first one of their datagram are dropped.",
        "PEP-TR-016",
        _with(FirstFragmentFirst),
    ),
    Fault(
        "pep-b1-overlap-twice",
        "Where a retransmission overlaps the beginning of what is stored behind a gap, the overlap is relayed twice.",
        "PEP-TR-001",
        _with(OverlapTwice),
    ),
    Fault(
        "pep-b1-calls-on-demand",
        "The SYN to the server is repeated only when the client repeats its own.",
        "PEP-OP-010",
        _with(CallsOnDemand, RepeatsTheCallers),
    ),
    Fault(
        "pep-b1-refused-once",
        "A refusal is ignored if the SYN to the server has been repeated.",
        "PEP-OP-005",
        _with(RefusedOnce),
    ),
    Fault(
        "pep-b1-early-octets-dropped",
        "Octets that were taken before the server has answered are dropped when the SYN to it is repeated.",
        "PEP-OP-009; PEP-TR-001",
        _with(CallsAnew),
        setting="early",
    ),
    Fault(
        "pep-b1-gives-in-to-fins",
        "A FIN that has been repeated four times is acknowledged though octets before it are not delivered.",
        "PEP-RE-002",
        _with(CountsFins, GivesInToFins),
    ),
    Fault(
        "pep-b1-end-before-rest",
        "A FIN that waits while the receiver's window is closed is sent behind what the send buffer holds; what does not fit there is lost.",
        "PEP-RE-003; PEP-RE-002",
        _with(EndBeforeRest),
    ),
    Fault(
        "pep-b1-reset-after-end",
        "A reset from an end that has sent its FIN before is not carried over.",
        "PEP-RE-006",
        _with(ResetAfterEnd),
    ),
    Fault(
        "pep-b1-reset-of-answer",
        "A client that answers the SYN-ACK with a RST leaves the server with an open connection.",
        "PEP-RE-006; PEP-OP-011",
        _with(ResetOfAnswer),
    ),
    Fault(
        "pep-b1-reset-behind-octets",
        "A reset is carried over when all that is held has been delivered, however long that takes.",
        "PEP-RE-006",
        _with(ResetBehindOctets),
    ),
    Fault(
        "pep-b1-reset-after-half-close",
        "An end that has half closed gets a FIN when the other end resets or fails.",
        "PEP-RE-007; PEP-RE-008",
        _with(ResetAfterHalfClose),
    ),
    Fault(
        "pep-b1-half-closed-timer",
        "A half-closed connection is reset when its open direction is quiet for a minute.",
        "PEP-RE-009; PEP-PC-008",
        _with(HalfClosedTimer),
    ),
    Fault(
        "pep-b1-both-ends-confirm",
        "Once both ends have sent a FIN both are acknowledged, delivered or not.",
        "PEP-RE-002; PEP-RE-010",
        _with(BothEndsConfirm),
    ),
    Fault(
        "pep-b1-late-fin-acknowledged",
        "A FIN, with its octets, is acknowledged after the connection has been reset.",
        "PEP-RE-002; PEP-TR-018",
        _with(LateFinAcknowledged),
    ),
    Fault(
        "pep-b1-fragments-unchecked",
        "The TCP checksum of a segment that came in fragments is not verified.",
        "PEP-RE-015",
        _with(FragmentsUnchecked),
    ),
    Fault(
        "pep-b1-tells-when-asked",
        "When retransmissions to one end are given up, the other end is reset when it next sends something.",
        "PEP-RE-008",
        _with(TellsWhenAsked, HearsWhoSpeaks),
    ),
    Fault(
        "pep-b1-reset-behind-gap",
        "A RST behind a gap gets no challenge, so that it is never carried over.",
        "PEP-RE-006; RFC 5961 section 3.2",
        _with(ResetBehindGap),
    ),
    Fault(
        "pep-b1-fin-on-repeats",
        "Once the FIN has been sent every retransmission has a FIN, wherever it lies.",
        "PEP-RE-003",
        _with(FinOnRepeats),
    ),
    Fault(
        "pep-b1-flight-not-held",
        "Octets in flight do not count in the send buffer, so that more is held than declared when acknowledgments of the receiver stay away.",
        "PEP-FB-002; PEP-FB-001",
        _with(FlightNotHeld),
    ),
    Fault(
        "pep-b1-stops-probing",
        "A closed window is probed five times only; if the update is lost then, the stream stands still.",
        "PEP-FB-006; PEP-FB-004",
        _with(StopsProbing),
    ),
    Fault(
        "pep-b1-one-answer-to-probes",
        "Only the first probe of a closed window is answered.",
        "PEP-FB-005",
        _with(OneAnswerToProbes),
    ),
    Fault(
        "pep-b1-resumes-window",
        "The first acknowledgment after timeouts restores the congestion window of before.",
        "PEP-LR-003; RFC 5681 section 3.1",
        _with(ResumesWindow),
    ),
    Fault(
        "pep-b1-sack-beside-data",
        "SACK blocks are added to full segments with data, which become larger than the MSS permits.",
        "RFC 9293 section 3.7.1; PEP-LR-001",
        _with(SackBesideData),
    ),
    Fault(
        "pep-b1-compares-with-next",
        "After a timeout an acknowledgment of what was sent before it is refused as one of what was not sent.",
        "PEP-PC-003; PEP-LR-001",
        _with(ComparesWithNext),
    ),
    Fault(
        "pep-b1-ignores-keep-alives",
        "Keep-alives are not answered.",
        "RFC 9293 section 3.10.7.4; PEP-LR-001",
        _with(IgnoresKeepAlives),
    ),
    Fault(
        "pep-b1-counts-for-life",
        "Timeouts and probes are counted over the whole life of a connection, and twelve end it.",
        "PEP-PC-001; PEP-FB-006",
        _with(CountsForLife),
    ),
    Fault(
        "pep-b1-keeps-old-sizes",
        "After an ICMP message that a packet was too big, retransmissions keep their size.",
        "PEP-PC-005",
        _with(KeepsOldSizes, FitsNewOnly),
    ),
    Fault(
        "pep-b1-shares-link",
        "What is under way over the satellite is limited in total: connections that have room keep it, late ones get one segment a round trip.",
        "PEP-FI-002; PEP-FI-006",
        _with(_SharedLink, SharesLink),
    ),
    Fault(
        "pep-b1-one-queue",
        "While one connection misses a segment from the satellite nothing of the others is handed on.",
        "PEP-FI-003",
        _with(InOneOrder, OneQueue),
    ),
    Fault(
        "pep-b1-pool-of-four",
        "All receive buffers come from one pool, which four stalled connections exhaust.",
        "PEP-FI-006; PEP-FI-001",
        _with(PooledReceiver, PooledEndpoint, PooledBox),
    ),
    Fault(
        "pep-b1-parks-beyond-limit",
        "Connections beyond the limit are opened, and wait for a place before anything is relayed.",
        "PEP-FI-005",
        _with(Parked, ParksBeyondLimit),
    ),
    Fault(
        "pep-b1-half-open-until-answered",
        "A flood of SYNs that the server answers fills the table for four minutes.",
        "PEP-RX-002",
        _with(HalfOpenUntilAnswered),
    ),
    Fault(
        "pep-b1-refuses-ports-again",
        "Ports of a connection that has ended are refused for ten minutes.",
        "PEP-RX-007",
        _with(RefusesPortsAgain, remembers=600.0),
    ),
    Fault(
        "pep-b1-inherits",
        "A connection with the ports of one that was reset begins with what that had not delivered.",
        "PEP-RX-006",
        _with(Inherits),
    ),
    Fault(
        "pep-b1-quietest-goes",
        "When all places are taken a new SYN resets the open connection that was quiet for longest.",
        "PEP-PC-008; PEP-FI-005",
        _with(Dated, QuietestGoes),
    ),
    Fault(
        "pep-b1-old-numbers-quoted",
        "An ICMP message is believed that quotes a number that has been acknowledged.",
        "PEP-SEC-004",
        _with(OldNumbersQuoted),
    ),
    Fault(
        "pep-b1-resets-on-nonsense",
        "A segment with options that cannot be read resets the connection with its ports.",
        "PEP-SEC-007; PEP-SEC-001",
        _with(ResetsOnNonsense),
    ),
)
