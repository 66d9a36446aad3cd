"""Mutants that open, reset, close and idle wrongly (SNR-CON)."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.mutants import Altering, mutant, mutant_setting
from bentpipe_reference.tcp.parts import InitialNumbers
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, WireError, emit_packet, parse_packet
from bentpipe_reference.tcp.wire.refusal import reset_for
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap


@mutant("snr-checksum-not-verified", breaks="SNR-CON-002")
def parse_whatever_the_checksum(packet: bytes) -> Segment:
    """The checksum is not looked at."""
    try:
        return parse_packet(packet)
    except WireError as error:
        if "checksum" not in str(error):
            raise
    at = (packet[0] & 0xF) * 4
    body = packet[at : at + 16] + b"\0\0" + packet[at + 18 :]
    pseudo = sum(int.from_bytes(packet[i : i + 2], "big") for i in range(12, 20, 2)) + 6 + len(body)
    field = checksum_field(ones_complement_residue(body) + pseudo)
    return parse_packet(packet[: at + 16] + field.to_bytes(2, "big") + packet[at + 18 :])


@mutant("snr-checksum-without-the-addresses", breaks="SNR-CON-001", part="emit")
def sum_without_the_addresses(segment: Segment) -> bytes:
    """The checksum of pure acknowledgments leaves out the pseudo-header."""
    packet = bytearray(emit_packet(segment))
    if not segment.payload and not segment.flags & Flags.SYN:
        body = bytes(packet[20:36]) + b"\0\0" + bytes(packet[38:])
        packet[36:38] = checksum_field(ones_complement_residue(body)).to_bytes(2, "big")
    return bytes(packet)


@mutant("snr-strays-unanswered", breaks="SNR-CON-003", part="refuse")
def refuse_syns_only(segment: Segment) -> Segment | None:
    """Only a SYN for no connection is answered."""
    return reset_for(segment) if segment.flags & Flags.SYN else None


@mutant("snr-strays-acknowledged", breaks="SNR-CON-003", part="refuse")
def acknowledge_strays(segment: Segment) -> Segment | None:
    """A segment for no connection is answered by an acknowledgment."""
    answer = reset_for(segment)
    if answer is not None:
        answer.flags = int(Flags.ACK)
    return answer


@mutant("snr-reset-numbers-of-syn", breaks="SNR-CON-004", part="refuse")
def forget_the_length(segment: Segment) -> Segment | None:
    """A RST acknowledges the sequence number of its cause, not what follows it."""
    answer = reset_for(segment)
    if answer is not None and not segment.flags & Flags.ACK:
        answer.ack = segment.seq
    return answer


@mutant("snr-reset-from-zero", breaks="SNR-CON-004", part="refuse")
def reset_from_zero(segment: Segment) -> Segment | None:
    """Every RST for no connection has sequence number 0."""
    answer = reset_for(segment)
    if answer is not None:
        answer.seq = 0
    return answer


@mutant("snr-resets-answered", breaks="SNR-CON-005", part="refuse")
def reset_everything(segment: Segment) -> Segment | None:
    """A RST for no connection is answered by a RST."""
    return reset_for(replace(segment, flags=segment.flags & ~Flags.RST))


@mutant("snr-wrong-syn-ack-number", breaks="SNR-CON-006")
class AcknowledgesTheSynTwice(Altering):
    """The SYN-ACK acknowledges one number too many."""

    def alter(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.SYN:
            segment.ack = segment.ack + 1 & MASK


@mutant("snr-new-iss-per-syn-ack", breaks="SNR-CON-006")
class ChoosesAnotherIss(Altering):
    """A repeated SYN-ACK has another sequence number."""

    _answers = 0

    def alter(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.SYN:
            segment.seq = segment.seq + 100_000 * self._answers & MASK
            self._answers += 1


@mutant("snr-any-acknowledgment-establishes", breaks="SNR-CON-007")
class EstablishesOnAnything(Connection):
    """Any acknowledgment completes the handshake."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        if self.state is State.SYN_RECEIVED:
            segment.ack = self.sender.snd_una + 1 & MASK
        return super()._take_ack(segment, seq, now)


@mutant("snr-wrong-handshake-acknowledgment-ignored", breaks="SNR-CON-007")
class IgnoresWrongAcknowledgments(Connection):
    """A wrong acknowledgment of the SYN-ACK has no answer."""

    def _reset_for(self, segment: Segment) -> None:
        """Send nothing."""


@mutant("snr-wrong-handshake-acknowledgment-ends", breaks="SNR-CON-007")
class EndsOnWrongAcknowledgments(Connection):
    """A wrong acknowledgment of the SYN-ACK is refused, and ends the handshake."""

    def _reset_for(self, segment: Segment) -> None:
        super()._reset_for(segment)
        if self.state is State.SYN_RECEIVED:
            self._end("a wrong acknowledgment", 0.0)


@mutant("snr-handshake-survives-a-reset", breaks="SNR-CON-008")
class IgnoresResetsOfHandshakes(Connection):
    """A RST in SYN-RECEIVED is ignored."""

    def receive(self, segment: Segment, now: float) -> None:
        if not (self.state is State.SYN_RECEIVED and segment.flags & Flags.RST):
            super().receive(segment, now)


@mutant("snr-handshake-text-lost", breaks="SNR-CON-009")
class DropsTextOfTheHandshake(Connection):
    """Data in the segment that completes the handshake is dropped."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.state is State.SYN_RECEIVED and not segment.flags & Flags.RST:
            segment = replace(segment, payload=b"")
        super().receive(segment, now)


@mutant("snr-exact-reset-challenged", breaks="SNR-CON-010")
class ChallengesEveryReset(Connection):
    """A RST at the next expected octet is only answered."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if receiver is not None and segment.flags & Flags.RST and self.state is State.ESTABLISHED:
            receiver.ack_now = True
        else:
            super().receive(segment, now)


@mutant("snr-reset-from-anywhere", breaks="SNR-CON-011")
class HeedsAnyReset(Connection):
    """A RST resets the connection whatever its sequence number."""

    def receive(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.RST and self.receiver is not None:
            segment = replace(segment, seq=self.receiver.rcv_nxt & MASK)
        super().receive(segment, now)


@mutant("snr-reset-in-the-window", breaks="SNR-CON-012")
class HeedsResetsInTheWindow(Connection):
    """A RST anywhere in the window resets the connection, as in RFC 793."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if segment.flags & Flags.RST and receiver is not None:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if receiver.rcv_nxt < seq < receiver.edge:
                segment = replace(segment, seq=receiver.rcv_nxt & MASK)
        super().receive(segment, now)


@mutant("snr-reset-in-the-window-unanswered", breaks="SNR-CON-012")
class IgnoresResetsInTheWindow(Connection):
    """A RST in the window, but not at its left edge, is ignored."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        exact = receiver is not None and segment.seq == receiver.rcv_nxt & MASK
        if exact or not segment.flags & Flags.RST:
            super().receive(segment, now)


@mutant("snr-syn-resets", breaks="SNR-CON-013")
class HeedsSyns(Connection):
    """A SYN on an open connection resets it."""

    def receive(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.SYN and self.state is State.ESTABLISHED:
            self.abort("a SYN arrived", now)
        else:
            super().receive(segment, now)


@mutant("snr-syn-ignored", breaks="SNR-CON-013")
class IgnoresSyns(Connection):
    """A SYN on an open connection has no answer."""

    def receive(self, segment: Segment, now: float) -> None:
        if not (segment.flags & Flags.SYN and self.state is State.ESTABLISHED):
            super().receive(segment, now)


@mutant("snr-text-without-ack-taken", breaks="SNR-CON-014")
class TakesTextWithoutAck(Connection):
    """Data without the ACK flag is accepted."""

    def receive(self, segment: Segment, now: float) -> None:
        if not segment.flags & (Flags.ACK | Flags.RST | Flags.SYN):
            segment = replace(
                segment, flags=segment.flags | Flags.ACK, ack=self.sender.snd_una & MASK
            )
        super().receive(segment, now)


@mutant("snr-fin-unacknowledged", breaks="SNR-CON-015")
class ForgetsToAcknowledgeFins(Receiver):
    """A FIN is not acknowledged unless something else is."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        before = self.ack_now
        super().on_text(seq, payload, fin, now)
        if fin and not payload:
            self.ack_now = before


@mutant("snr-repeated-fin-ignored", breaks="SNR-CON-016")
class IgnoresRepeatedFins(Receiver):
    """A FIN that was received before has no answer."""

    def on_old_text(self, seq: int, octets: int) -> None:
        super().on_old_text(seq, octets)
        if self.fin_received and seq + octets + 1 == self.rcv_nxt:
            self.ack_now = False


@mutant("snr-fin-moves-on", breaks="SNR-CON-017")
class MovesItsFin(Altering):
    """A repeated FIN has the next sequence number."""

    _sent = False

    def alter(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.FIN:
            segment.seq = segment.seq + self._sent & MASK
            self._sent = True


@mutant("snr-fin-before-the-rest", breaks="SNR-CON-017")
class ClosesTooSoon(SackNewRenoRfcSender):
    """What has not been sent when the user closes is forgotten."""

    _closed_at: int | None = None

    @property
    def data_end(self) -> int | None:
        end = super().data_end
        if not self.fin_queued or end is None:
            return end
        if self._closed_at is None:
            self._closed_at = min(end, max(self.snd_max, self.iss + 1))
        return self._closed_at


@mutant("snr-fin-sent-once", breaks="SNR-CON-018", hk99=True)
class SendsItsFinOnce(Sender):
    """A FIN is not retransmitted."""

    def on_timeout(self, now: float) -> None:
        end = self.data_end
        if self.fin_queued and end is not None and self.snd_una >= end:
            self.rto_deadline = None
        else:
            super().on_timeout(now)


@mutant("snr-acknowledged-fin-repeated", breaks="SNR-CON-019")
class NeverHearsOfItsFin(SackNewRenoRfcSender):
    """The acknowledgment of the FIN is taken for one of the data alone."""

    def on_ack(self, ack: Ack, now: float) -> None:
        end = self.data_end
        if self.fin_queued and end is not None:
            ack = replace(ack, number=min(ack.number, end))
        super().on_ack(ack, now)


@mutant("snr-data-after-own-fin-reset", breaks="SNR-CON-020")
class ResetsDataAfterItsFin(Connection):
    """Data that arrives after the own FIN resets the connection."""

    def receive(self, segment: Segment, now: float) -> None:
        if segment.payload and self.state in (State.FIN_WAIT_1, State.FIN_WAIT_2):
            self.abort("data arrived after close", now)
        else:
            super().receive(segment, now)


@mutant("snr-data-in-fin-wait-2-lost", breaks="SNR-CON-020")
class DropsDataInFinWait2(Connection):
    """Data that arrives in FIN-WAIT-2 is dropped."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.state is State.FIN_WAIT_2:
            segment = replace(segment, payload=b"")
        super().receive(segment, now)


@mutant("snr-no-time-wait", breaks="SNR-CON-021")
class NeverLingers(Connection):
    """TIME-WAIT lasts a second."""

    def next_deadline(self) -> float | None:
        if self.time_wait_until is not None and self.time_wait_until > self.config.time_wait:
            self.time_wait_until -= self.config.time_wait - 1.0
        return super().next_deadline()


KEEP_ALIVE_S = 75.0


@mutant("snr-keeps-alive-unasked", breaks="SNR-CON-022")
class KeepsAlive(Connection):
    """Idle connections are probed after 75 seconds."""

    _probe_at: float | None = None

    def receive(self, segment: Segment, now: float) -> None:
        super().receive(segment, now)
        self._probe_at = now + KEEP_ALIVE_S

    def next_deadline(self) -> float | None:
        return earliest(super().next_deadline(), self._probe_at)

    def advance(self, now: float) -> None:
        super().advance(now)
        if now >= (self._probe_at or math.inf):
            self._probe_at = now + KEEP_ALIVE_S
            if self.state is State.ESTABLISHED:
                self._put(self.sender.snd_nxt - 1, Flags.ACK, now)


@mutant("snr-idle-connection-forgotten", breaks="SNR-CON-023")
class ForgetsIdleConnections(Connection):
    """A connection that was idle for an hour is reset by what arrives then."""

    _heard = math.inf

    def receive(self, segment: Segment, now: float) -> None:
        idle, self._heard = now - self._heard, now
        if idle > 3600 and self.state is State.ESTABLISHED:
            self.abort("idle for an hour", now)
        else:
            super().receive(segment, now)


@mutant("snr-urgent-data-dropped", breaks="SNR-CON-024")
class DropsUrgentData(Connection):
    """Segments with URG are dropped."""

    def receive(self, segment: Segment, now: float) -> None:
        if not segment.flags & Flags.URG:
            super().receive(segment, now)


mutant_setting(
    "snr-syn-given-up-early",
    "A SYN that nobody answers is given up after two minutes.",
    breaks="SNR-CON-025",
    hk99=True,
    max_syn_retransmissions=6,
)


@mutant("snr-syn-ack-given-up-early", breaks="SNR-CON-045")
class GivesItsSynAckUpEarly(Connection):
    """A SYN-ACK that nobody acknowledges is given up after its sixth retransmission."""

    def advance(self, now: float) -> None:
        handshake = self.handshake
        due = handshake.deadline is not None and now >= handshake.deadline
        if due and self.state is State.SYN_RECEIVED and handshake.attempts > 6:
            self.abort("the peer does not complete the handshake", now)
        else:
            super().advance(now)


@mutant("snr-repeated-syn-ack-scaled", breaks="SNR-OPT-020")
class ScalesItsRepeatedSynAck(Connection):
    """The window of a repeated SYN-ACK is scaled."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        again = self.handshake.attempts > 0
        super()._send_syn(now, repeated=repeated)
        if again and self.receiver is not None:
            self._outbox[-1].window >>= 3


@mutant("snr-syn-without-back-off", breaks="SNR-CON-026")
class RepeatsItsSynSteadily(Handshake):
    """The SYN is repeated every second."""

    def sent(self, now: float, *, repeated: bool) -> None:
        super().sent(now, repeated=repeated)
        self.deadline = now + 1.0


@mutant("snr-wrong-syn-ack-believed", breaks="SNR-CON-027")
class BelievesAnySynAck(Connection):
    """A SYN-ACK opens the connection whatever it acknowledges."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.state is State.SYN_SENT and segment.flags & Flags.SYN:
            segment = replace(segment, ack=self.sender.snd_una & MASK)
        super().receive(segment, now)


@mutant("snr-refusal-ignored", breaks="SNR-CON-028")
class IgnoresRefusals(Connection):
    """A RST in SYN-SENT is ignored."""

    def receive(self, segment: Segment, now: float) -> None:
        if not (self.state is State.SYN_SENT and segment.flags & Flags.RST):
            super().receive(segment, now)


@mutant("snr-any-reset-refuses", breaks="SNR-CON-029")
class TakesAnyResetForARefusal(Connection):
    """Any RST in SYN-SENT ends the attempt."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.state is State.SYN_SENT and segment.flags & Flags.RST:
            segment = replace(
                segment, flags=segment.flags | Flags.ACK, ack=self.sender.snd_una & MASK
            )
        super().receive(segment, now)


@mutant("snr-syn-ack-unacknowledged", breaks="SNR-CON-030")
class WaitsWithItsAcknowledgment(Connection):
    """A SYN-ACK is not acknowledged before there is data to send."""

    def receive(self, segment: Segment, now: float) -> None:
        opening = self.state is State.SYN_SENT
        super().receive(segment, now)
        if opening and self.receiver is not None:
            self.receiver.ack_now = False


@mutant("snr-crossing-syn-ignored", breaks="SNR-CON-031")
class IgnoresCrossingSyns(Connection):
    """A SYN that crosses the own one is ignored."""

    def receive(self, segment: Segment, now: float) -> None:
        crossing = segment.flags & (Flags.SYN | Flags.ACK) == Flags.SYN
        if not (self.state is State.SYN_SENT and crossing):
            super().receive(segment, now)


@mutant("snr-time-wait-for-ever", breaks="SNR-CON-032")
class LingersForEver(Connection):
    """TIME-WAIT does not end."""

    def next_deadline(self) -> float | None:
        if self.time_wait_until is not None:
            self.time_wait_until = math.inf
        return super().next_deadline()


@mutant("snr-every-second-syn-answered", breaks="SNR-CON-033")
class AnswersASynOnce(Connection):
    """A SYN that comes again in SYN-RECEIVED is ignored."""

    def receive(self, segment: Segment, now: float) -> None:
        if not (self.state is State.SYN_RECEIVED and segment.flags & Flags.SYN):
            super().receive(segment, now)


@mutant("snr-sender-falls-asleep", breaks="SNR-CON-034", hk99=True)
class FallsAsleep(Sender):
    """Nothing is sent any more when 20,000 octets have been acknowledged."""

    def sends_after_ack(self) -> bool:
        return self.snd_una < self.iss + 20_000


@mutant("snr-close-forgotten", breaks="SNR-CON-035")
class ForgetsToClose(Connection):
    """A stream that its user ends after the peer did stays open."""

    def close(self, now: float) -> None:
        if not self.peer_has_closed:
            super().close(now)


mutant_setting(
    "snr-never-gives-up",
    "A silent peer is asked for ever.",
    breaks="SNR-CON-036",
    max_retransmissions=10_000,
    max_syn_retransmissions=10_000,
)


@mutant("snr-retransmission-of-other-octets", breaks="SNR-CON-037")
class RepeatsOtherOctets(Altering):
    """A retransmission carries the octets that follow."""

    _highest: int | None = None

    def alter(self, segment: Segment, now: float) -> None:
        if not segment.payload:
            return
        end = unwrap(segment.seq, self.sender.snd_una) + len(segment.payload)
        if self._highest is not None and end <= self._highest:
            segment.payload = segment.payload[1:] + segment.payload[:1]
        self._highest = max(self._highest or 0, end)


@mutant("snr-nothing-pushed", breaks="SNR-CON-038")
class PushesNothing(Altering):
    """No segment has PSH."""

    def alter(self, segment: Segment, now: float) -> None:
        segment.flags &= ~Flags.PSH


@mutant("snr-data-without-ack", breaks="SNR-CON-039")
class SendsDataWithoutAck(Altering):
    """Data is sent without ACK until something has arrived."""

    def alter(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if segment.payload and receiver is not None and receiver.rcv_nxt == receiver.irs + 1:
            segment.flags &= ~Flags.ACK


@mutant("snr-ipv4-checksum-left-out", breaks="SNR-CON-040", part="emit")
def leave_out_the_header_checksum(segment: Segment) -> bytes:
    """The header checksum of an IPv4 packet is zero."""
    packet = emit_packet(segment)
    return packet[:10] + b"\0\0" + packet[12:]


@mutant("snr-reset-at-the-end-of-held-data", breaks="SNR-CON-041")
class HeedsResetsAtTheEndOfHeldData(Connection):
    """A RST at the end of the highest data held resets the connection."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if segment.flags & Flags.RST and receiver is not None and receiver.buffer.blocks:
            end = max(right for _, right in receiver.buffer.blocks)
            if unwrap(segment.seq, receiver.rcv_nxt) == end:
                segment = replace(segment, seq=receiver.rcv_nxt & MASK)
        super().receive(segment, now)


@mutant("snr-syn-goes-on", breaks="SNR-CON-042", hk99=True)
class GoesOnWithItsSyn(Handshake):
    """The SYN, or SYN-ACK, is repeated once more although it has been acknowledged."""

    def complete(self, now: float) -> float | None:
        rtt = super().complete(now)
        if self.attempts == 1:
            self.deadline = now + 1.0
        return rtt


@mutant("snr-syn-ack-sent-once", breaks="SNR-RTO-004")
class SendsItsSynAckOnce(Handshake):
    """A SYN-ACK is never repeated."""

    def sent(self, now: float, *, repeated: bool) -> None:
        super().sent(now, repeated=repeated)
        self.deadline = None


@mutant("snr-reset-ignored-without-room", breaks="SNR-CON-010")
class IgnoresResetsWithoutRoom(Connection):
    """With a closed window no RST is heeded."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if not segment.flags & Flags.RST or receiver.edge > receiver.rcv_nxt:
            super()._receive_synchronized(segment, receiver, now)


@mutant("snr-never-calls", breaks="SNR-CON-043")
class NeverCalls(Connection):
    """No SYN is sent when the user calls."""

    def open(self, now: float) -> None:
        """Do nothing."""


@mutant("snr-abort-at-una", breaks="SNR-CON-047", hk99=True)
class AbortsAtTheOldestOctet(Connection):
    """The RST of an abort has the number of the oldest octet that is not acknowledged."""

    def abort(self, reason: str, now: float) -> None:
        super().abort(reason, now)
        for segment in self._outbox:
            if segment.flags & Flags.RST:
                segment.seq = self.sender.snd_una & MASK


@mutant("snr-abort-in-silence", breaks="SNR-CON-047")
class AbortsInSilence(Connection):
    """An abort sends nothing."""

    def abort(self, reason: str, now: float) -> None:
        self._end(reason, now)


@mutant("snr-last-ack-forgotten", breaks="SNR-CON-018")
class ForgetsItsLastAck(Connection):
    """A side that closes second forgets the connection when it has sent its FIN."""

    def transmit(self, now: float) -> list[Segment]:
        outbox = super().transmit(now)
        if self.state is State.LAST_ACK and any(s.flags & Flags.FIN for s in outbox):
            self._end("the FIN has left", now)
        return outbox


@mutant("snr-edge-inclusive", breaks="SNR-CON-044")
class TakesTheEdgeIn(Receiver):
    """An empty segment at the right edge of the window is acceptable."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        at_edge = length == 0 and seq == self.edge > self.rcv_nxt
        return at_edge or super().is_acceptable(seq, length)


@mutant("snr-number-always-the-same", breaks="SNR-CON-046", hk99=True)
class DrawsOnce(InitialNumbers):
    """Every connection begins with the same number."""

    def draw(self, syn: Segment | None) -> int:
        return 1 << 30


@mutant("snr-number-by-the-ends", breaks="SNR-CON-046")
class DrawsByTheEnds(InitialNumbers):
    """Connections between the same ports begin with the same number."""

    def draw(self, syn: Segment | None) -> int:
        if syn is None:
            return super().draw(syn)
        return random.Random(f"{syn.source} {syn.sport} {syn.destination}").getrandbits(32)


@mutant("snr-reset-in-closing-ignored", breaks="SNR-CON-010")
class IgnoresResetsInClosing(Connection):
    """A RST in CLOSING is ignored."""

    def receive(self, segment: Segment, now: float) -> None:
        if not (segment.flags & Flags.RST and self.state is State.CLOSING):
            super().receive(segment, now)


@mutant("snr-any-reset-ends-time-wait", breaks="SNR-CON-021")
class EndsTimeWaitByAnyReset(Connection):
    """A RST ends TIME-WAIT whatever its sequence number."""

    def receive(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.RST and self.state is State.TIME_WAIT:
            self._end("the peer reset the connection", now)
        else:
            super().receive(segment, now)


@mutant("snr-fin-at-closed-window-unanswered", breaks="SNR-RCV-026")
class IgnoresFinAtClosedWindow(Connection):
    """A FIN that a closed window keeps out has no answer."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        due = receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        if segment.flags & Flags.FIN and receiver.edge <= receiver.rcv_nxt == seq:
            receiver.ack_now = due


@mutant("snr-fin-taken-at-the-cut", breaks="SNR-CON-017")
class TakesFinAtTheCut(Receiver):
    """The FIN of a segment that the window's edge cuts is taken where it is cut."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().on_text(seq, payload[: max(0, self.edge - seq)], fin, now)


@mutant("snr-options-of-ip-refused", breaks="SNR-SEG-007")
def parse_without_ip_options(packet: bytes) -> Segment:
    """A packet with options of IP is dropped."""
    if packet[0] & 0xF > 5:
        raise WireError("an IPv4 header with options")
    return parse_packet(packet)


@mutant("snr-ecn-bits-refused", breaks="SNR-SEG-003", hk99=True)
def parse_without_ecn(packet: bytes) -> Segment:
    """A segment with ECE or CWR is dropped."""
    segment = parse_packet(packet)
    if segment.flags & (Flags.ECE | Flags.CWR):
        raise WireError("bits of ECN")
    return segment
