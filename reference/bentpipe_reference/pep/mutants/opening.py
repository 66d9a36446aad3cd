"""Mutants of opening (PEP-OP, section 5; PEP-SEC-005, -008)."""

from __future__ import annotations

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.endpoint import Endpoint, tcp
from bentpipe_reference.pep.mutants import mutant, mutant_setting
from bentpipe_reference.pep.passing import Report
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment

REFUSED = "the peer refused the connection"


@mutant("pep-answers-for-the-server", "answers_early", breaks="PEP-OP-001")
def answers_for_server(self: Box, syn: Segment, now: float) -> bool:
    """The client is answered at once, though late opening is declared."""
    return True


@mutant("pep-early-is-late", "answers_early", breaks="PEP-OP-002", setting="early")
def early_is_late(self: Box, syn: Segment, now: float) -> bool:
    """The client is answered after the server, though early opening is declared."""
    return False


@mutant("pep-calls-twice", "repeat_syn", breaks="PEP-OP-003")
def calls_twice(self: Relay, now: float) -> None:
    """A SYN that is repeated calls the server anew."""
    self.far = self._make(1 - self.caller)
    self.far.open(now)


@mutant("pep-calls-in-advance", "splits", breaks="PEP-OP-004")
def calls_in_advance(self: Box, port: int, ends: Addresses, segment: Segment, now: float) -> bool:
    """Another port of the server is called, too."""
    found = Box.splits(self, port, ends, segment, now)
    if found:
        call = Segment(
            segment.source, segment.destination, 60_000, segment.dport + 1, 1, 0,
            int(Flags.SYN), 9000, mss=1460,
        )  # fmt: skip
        self.send(1 - port, call)
    return found


@mutant("pep-keeps-refusals", "_refuse", breaks="PEP-OP-005")
def keeps_refusals(self: Box, relay: Relay) -> None:
    """A client is not told that the server has refused."""


@mutant("pep-answers-after-a-while", "step", breaks="PEP-OP-006")
def answers_after_a_while(self: Relay, now: float) -> None:
    """A client whose server is silent is answered after some seconds."""
    if self.near is None and tcp(self.far).handshake.attempts > 2 and self.far.is_opening:
        self._answer(now)
    Relay.step(self, now)


@mutant("pep-unreachable-is-kept", "_refuse", breaks="PEP-OP-007")
def unreachable_is_kept(self: Box, relay: Relay) -> None:
    """A client is not told that the server cannot be reached."""
    if relay.far.failure == REFUSED:
        Box._refuse(self, relay)


@mutant("pep-refused-stays-open", "carry_failure", breaks="PEP-OP-008", setting="early")
def refused_stays_open(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A connection that was answered early stays open when the server refuses."""
    if source.receiver is not None:
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-refused-is-ended", "carry_failure", breaks="PEP-OP-008", setting="early-single")
def refused_is_ended(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A connection that was answered early is ended cleanly when the server refuses."""
    if source.receiver is None and not sink.is_opening:
        sink.close(now)
    else:
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-early-octets-are-lost", "carry_octets", breaks="PEP-OP-009", setting="early")
def early_octets_are_lost(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """Octets that come before the server has answered are forgotten."""
    if sink.is_opening:
        source.read()
    Relay.carry_octets(self, source, sink, now)


@mutant("pep-calls-once", "sent", breaks="PEP-OP-010")
def calls_once(self: Handshake, now: float, *, repeated: bool) -> None:
    """A SYN is not sent again."""
    Handshake.sent(self, now, repeated=repeated)
    self.deadline = now + 1000.0


@mutant("pep-calls-every-second", "sent", breaks="PEP-OP-010")
def calls_every_second(self: Handshake, now: float, *, repeated: bool) -> None:
    """A SYN is sent again and again after the same time."""
    Handshake.sent(self, now, repeated=repeated)
    self.deadline = now + 1.0


@mutant("pep-ignores-who-gives-up", "cancel", breaks="PEP-OP-011")
def ignores_who_gives_up(self: Relay, now: float) -> None:
    """A client that resets before it is answered is not heard."""


@mutant("pep-forgets-who-gives-up", "_answers_for", breaks="PEP-OP-011")
def forgets_who_gives_up(
    self: Box, key: tuple[int, Addresses], segment: Segment, now: float
) -> bool:
    """A SYN-ACK for a client that has given up is lost."""
    answer = int(Flags.SYN) | int(Flags.ACK)
    return segment.flags & answer == answer or Box._answers_for(self, key, segment, now)


@mutant("pep-loses-what-the-syn-carries", "_take_syn", breaks="PEP-OP-012")
def loses_what_the_syn_carries(self: Endpoint, segment: Segment, now: float) -> Receiver:
    """The octets of a SYN are acknowledged and forgotten."""
    receiver = Endpoint._take_syn(self, segment, now)
    receiver.buffer.rcv_nxt += len(segment.payload)
    receiver.edge += len(segment.payload)
    return receiver


@mutant("pep-client-speaks-first", "carry_octets", breaks="PEP-OP-013")
def client_speaks_first(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """What the server sends waits until the client has sent something."""
    receiver = None if self.near is None else tcp(self.near).receiver
    silent = receiver is None or receiver.rcv_nxt == receiver.irs + 1
    if source is not self.far or not silent:
        Relay.carry_octets(self, source, sink, now)


mutant_setting(
    "pep-believes-no-refusal",
    "A port that has been refused is answered early again.",
    lambda setup: setup.configured(believes_refusals=-1.0),
    breaks="PEP-SEC-005", setting="early",
)  # fmt: skip


@mutant("pep-numbers-follow-the-client", "draw_number", breaks="PEP-SEC-008")
def numbers_follow(self: Box, syn: Segment) -> int:
    """The initial sequence numbers are the client's, and something more."""
    return syn.seq + 4711 & 0xFFFFFFFF


@mutant("pep-believes-every-message", "take_report", breaks="PEP-SEC-004")
def believes_every_message(self: Box, endpoint: Endpoint, report: Report, now: float) -> None:
    """An ICMP message ends a connection, whatever it quotes."""
    if report.mtu is None and endpoint.state is not State.TIME_WAIT:
        endpoint.fail("an ICMP message says so", now)
    else:
        Box.take_report(self, endpoint, report, now)
