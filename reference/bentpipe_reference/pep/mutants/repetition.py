"""Mutants that show in what comes again, comes early, or is no octets at all."""

from __future__ import annotations

from typing import Any

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.endpoint import End, Endpoint
from bentpipe_reference.pep.mutants import mutant
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery.sack_newreno_rfc import SackNewRenoRfcSender
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_MODULUS = 1 << 32
_GUESSES, _LOST_PLACES = 30, 40
_SLEEPS_S = 1800.0
_HEADERS, _FLAGS, _TCP = 40, 33, 6
_USUAL_MTU = 576


@mutant("pep-numbers-do-not-wrap-in-a-segment", breaks="PEP-LR-006")
class DoesNotWrap(Endpoint):
    """A segment whose last octet has a smaller number than its first is dropped."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        if segment.flags & Flags.SYN or segment.seq + len(segment.payload) <= _MODULUS:
            super().receive(segment, now)


@mutant("pep-guesses-add-up", breaks="PEP-RE-017")
class GuessesAddUp(Endpoint):
    """A connection in which many RSTs had another number is reset: somebody attacks it."""

    guesses = 0

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        receiver = self.receiver
        if segment.flags & Flags.RST and receiver is not None:
            self.guesses += segment.seq != receiver.rcv_nxt % _MODULUS
        super().receive(segment, now)
        if self.guesses >= _GUESSES:
            self.abort("it is attacked", now)


@mutant("pep-refusals-keep-places", breaks="PEP-OP-003")
class RefusalsKeepPlaces(Box):
    """A call that is refused is not counted back."""

    lost = 0

    def settle(self, relay: Relay, now: float) -> None:
        """See :class:`Box`."""
        self.lost += relay in self.relays and relay.was_refused and relay.is_over
        super().settle(relay, now)

    def has_room(self, now: float) -> bool:
        """See :class:`Box`."""
        return self.lost < _LOST_PLACES and super().has_room(now)


@mutant("pep-answers-nobody-behind-giving-up", breaks="PEP-OP-003")
class AnswersNobody(Box):
    """Once a client has given up a call the next server's answer is not told."""

    given_up = False

    def receive_in(self, relay: Relay, port: int, segment: Segment, now: float) -> None:
        """See :class:`Box`."""
        waits = not isinstance(relay.endpoint(port), Endpoint)
        self.given_up |= waits and bool(segment.flags & Flags.RST)
        super().receive_in(relay, port, segment, now)

    def send(self, port: int, segment: Segment, dscp: int = 0) -> None:
        """See :class:`Box`."""
        both = Flags.SYN | Flags.ACK
        if not (self.given_up and segment.flags & both == both):
            super().send(port, segment, dscp)


@mutant("pep-sleeps-through-windows", breaks="PEP-RE-017")
class SleepsThroughWindows(Endpoint):
    """Half an hour behind a closed window nothing is sent any more, whatever opens."""

    closed: float | None = None

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        super().receive(segment, now)
        if segment.window and (self.closed is None or now - self.closed < _SLEEPS_S):
            self.closed = None
        elif self.closed is None:
            self.closed = now

    def transmit(self, now: float) -> list[Segment]:
        """See :class:`Endpoint`."""
        sent = super().transmit(now)
        asleep = self.closed is not None and now - self.closed > _SLEEPS_S
        return [it for it in sent if not it.payload] if asleep else sent


@mutant("pep-refused-ports-are-barred", breaks="PEP-RX-007")
class BarsPorts(Box):
    """Whoever was refused once does not get through with the same ports again."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.barred: set[Addresses] = set()

    def settle(self, relay: Relay, now: float) -> None:
        """See :class:`Box`."""
        keys = self.relays.get(relay)
        super().settle(relay, now)
        if keys is not None and relay.was_refused:
            self.barred.add(keys[0][1])

    def splits(self, port: int, ends: Addresses, segment: Segment, now: float) -> bool:
        """See :class:`Box`."""
        return super().splits(port, ends, segment, now) and ends not in self.barred


@mutant("pep-early-end-is-forgotten", breaks="PEP-RE-004", setting="early-single")
class ForgetsEarlyEnd(Relay):
    """An end that comes before the server has answered is not relayed."""

    forgotten = False

    def carry_end(self, source: End, sink: End, now: float) -> None:
        """See :class:`Relay`."""
        self.forgotten |= source.stream_has_ended and sink.is_opening
        if not self.forgotten:
            super().carry_end(source, sink, now)


@mutant("pep-half-closed-ends-cleanly", "carry_failure", breaks="PEP-RE-008")
def half_closed_ends_cleanly(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """Who has ended its stream gets a FIN when the other end does not answer any more."""
    if sink.stream_has_ended and source.failure == "the peer answers no retransmission":
        sink.close(now)
    else:
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-heeds-wrong-resets-at-the-end", breaks="PEP-RE-015")
class HeedsWrongResets(Box):
    """The checksum of a RST does not matter once its sender has ended its stream."""

    def _receive_tcp(
        self, port: int, packet: bytes, carriers: tuple[bytes, ...], now: float
    ) -> None:
        dropped = self.dropped
        super()._receive_tcp(port, packet, carriers, now)
        if self.dropped == dropped or len(packet) < _HEADERS or not packet[_FLAGS] & Flags.RST:
            return
        for relay in list(self.relays):
            endpoint = relay.endpoint(port)
            ports = self.relays[relay][port != relay.caller][1]
            named = int.from_bytes(packet[20:22], "big"), int.from_bytes(packet[22:24], "big")
            ended = isinstance(endpoint, Endpoint) and endpoint.stream_has_ended
            if ended and named == (ports.remote_port, ports.local_port):
                assert isinstance(endpoint, Endpoint)
                endpoint.fail("the peer reset the connection", now)
                self.settle(relay, now)


@mutant("pep-class-never-falls-back", breaks="PEP-TR-005")
class ClassStays(Box):
    """Octets without a class leave in the one that their stream had before."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept: dict[tuple[Relay, int], int] = {}

    def collect(self, relay: Relay, port: int, endpoint: End, now: float) -> None:
        """See :class:`Box`."""
        before = self.kept.get((relay, port), 0)
        relay.classes[1 - port] = self.kept[relay, port] = relay.classes[1 - port] or before
        super().collect(relay, port, endpoint, now)


@mutant("pep-resets-of-strangers-vanish", "forward", breaks="PEP-TR-018")
def drops_resets_of_strangers(self: Box, port: int, packet: bytes) -> None:
    """What would end a connection that the box does not know is dropped."""
    if packet[9] != _TCP or len(packet) < _HEADERS or not packet[_FLAGS] & Flags.RST:
        Box.forward(self, port, packet)


@mutant("pep-repeats-without-a-class", breaks="PEP-TR-005")
class RepeatsWithoutClass(Box):
    """What is sent again has no class."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sent: set[tuple[int, int, int, int]] = set()

    def send(self, port: int, segment: Segment, dscp: int = 0) -> None:
        """See :class:`Box`."""
        key = port, segment.sport, segment.dport, segment.seq
        again = bool(segment.payload) and key in self.sent
        self.sent.add(key)
        super().send(port, segment, 0 if again else dscp)


@mutant("pep-windows-open-in-acknowledgments-alone", breaks="PEP-FB-010")
class OpensByAcknowledgments(SackNewRenoRfcSender):
    """A closed window stays closed for a segment with octets that opens it."""

    def update_window(self, ack: Any) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        return (ack.bare or self.snd_wnd > 0) and super().update_window(ack)


@mutant("pep-believes-no-small-links", "fit", breaks="PEP-PC-005")
def believes_no_small_links(self: Endpoint, mtu: int, now: float) -> None:
    """No link is believed to carry less than 576 octets."""
    if mtu >= _USUAL_MTU:
        Endpoint.fit(self, mtu, now)


@mutant("pep-takes-the-next-number-for-outstanding", "is_outstanding", breaks="PEP-SEC-004")
def takes_next_for_outstanding(self: Endpoint, seq: int) -> bool:
    """A message about the next number counts."""
    return Endpoint.is_outstanding(self, seq) or seq == self.sender.snd_max % _MODULUS


@mutant("pep-keeps-no-octets-of-an-answer", breaks="PEP-OP-012")
class KeepsNoOctetsOfAnAnswer(Endpoint):
    """Octets of a SYN-ACK are acknowledged, and forgotten."""

    def _take_syn(self, segment: Segment, now: float) -> Receiver:
        receiver = super()._take_syn(segment, now)
        if segment.flags & Flags.ACK:
            receiver.buffer.rcv_nxt += len(segment.payload)
        return receiver


@mutant("pep-any-acknowledgment-opens", "_take_ack", breaks="PEP-SEC-003")
def opens_by_any_acknowledgment(self: Endpoint, segment: Segment, seq: int, now: float) -> bool:
    """In place of the handshake any acknowledgment will do."""
    if self.state is not State.SYN_RECEIVED:
        return Endpoint._take_ack(self, segment, seq, now)
    self._established(segment, now)
    return True
