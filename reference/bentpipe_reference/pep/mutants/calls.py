"""Mutants that the tables of calls, resets and states find (PEP-RE, PEP-OP-013, PEP-SEC)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.sim import earliest
from bentpipe_reference.pep.endpoint import End, Endpoint, RelayReceiver
from bentpipe_reference.pep.mutants import mutant
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))

QUIET_S = 90.0


def _forget(source: End) -> None:
    while source.readable:
        source.read(source.readable)


# -- ends ----------------------------------------------------------------------------------------


@mutant("pep-end-overtakes-a-hole", breaks="PEP-RE-003")
class EndOvertakesHole(Endpoint):
    """A FIN is relayed when it arrives, and not when all octets before it have."""

    @property
    def stream_has_ended(self) -> bool:
        """See :class:`Endpoint`."""
        return isinstance(self.receiver, RelayReceiver) and self.receiver.fin_seq is not None


@mutant("pep-takes-a-fin-of-any-number", "_take_text", breaks="PEP-RE-003")
def takes_any_fin(
    self: Endpoint, segment: Segment, seq: int, receiver: Receiver, now: float
) -> None:
    """A FIN without octets ends the stream where it is, whatever its number."""
    if segment.flags & _FIN and not segment.payload:
        seq = receiver.rcv_nxt
    Endpoint._take_text(self, segment, seq, receiver, now)


@mutant("pep-fin-needs-no-acknowledgment", "_receive_synchronized", breaks="PEP-RE-003")
def fin_needs_no_ack(self: Endpoint, segment: Segment, receiver: Receiver, now: float) -> None:
    """A FIN counts without ACK."""
    if segment.flags & (_FIN | _ACK | _SYN | _RST) == _FIN:
        number = self.sender.snd_una & 0xFFFFFFFF
        segment = replace(segment, flags=segment.flags | _ACK, ack=number)
    Endpoint._receive_synchronized(self, segment, receiver, now)


@mutant("pep-empty-stream-has-no-end", "carry_end", breaks="PEP-RE-004")
def empty_stream_has_no_end(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """The FIN of a stream without octets is not relayed."""
    if source.has_heard:
        Relay.carry_end(self, source, sink, now)


@mutant("pep-lone-end-waits", "carry_end", breaks="PEP-RE-004")
def lone_end_waits(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A FIN of the server waits for the client to speak."""
    if source is not self.far or sink.has_heard:
        Relay.carry_end(self, source, sink, now)


@mutant("pep-drops-what-is-held-when-both-end", "carry_end", breaks="PEP-RE-010")
def drops_when_both_end(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """Once both have ended, what waits for room is dropped."""
    if source.stream_has_ended and sink.stream_has_ended:
        _forget(source)
    Relay.carry_end(self, source, sink, now)


@mutant("pep-half-closed-expires", breaks="PEP-RE-009")
class HalfClosedExpires(Endpoint):
    """A half-closed connection whose other end is quiet for a minute and a half is reset."""

    _since: float | None = None

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        super().receive(segment, now)
        self._since = now if self.state is State.FIN_WAIT_2 else None

    def next_deadline(self) -> float | None:
        """See :class:`Endpoint`."""
        due = None if self._since is None else self._since + QUIET_S
        return earliest(super().next_deadline(), due)

    def advance(self, now: float) -> None:
        """See :class:`Endpoint`."""
        if self._since is not None and now >= self._since + QUIET_S:
            self._since = None
            self.abort("it is half closed, and quiet", now)
        else:
            super().advance(now)


# -- the opening ---------------------------------------------------------------------------------


@mutant("pep-early-banner-is-lost", "carry_octets", breaks="PEP-OP-013")
def early_banner_is_lost(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """What the server says while the client's handshake goes on is forgotten."""
    if source is self.far and sink.awaits_caller:
        _forget(source)
    Relay.carry_octets(self, source, sink, now)


@mutant("pep-every-reset-refuses", "_receive_in_syn_sent", breaks="PEP-SEC-001")
def every_reset_refuses(self: Endpoint, segment: Segment, now: float) -> None:
    """A RST refuses a call though it does not acknowledge the SYN."""
    if segment.flags & _RST:
        self.fail("refused", now)
    else:
        Endpoint._receive_in_syn_sent(self, segment, now)


@mutant("pep-every-reset-ends-the-handshake", "receive", breaks="PEP-SEC-001")
def every_reset_ends_handshake(self: Endpoint, segment: Segment, now: float) -> None:
    """Before the client's handshake is complete, a RST ends it whatever its number."""
    if segment.flags & _RST and self.awaits_caller:
        self.fail("the peer reset the connection", now)
    else:
        Endpoint.receive(self, segment, now)


# -- resets --------------------------------------------------------------------------------------


@mutant("pep-reset-has-an-old-number", "abort", breaks="PEP-RE-006")
def reset_has_old_number(self: Endpoint, reason: str, now: float) -> None:
    """The RST that carries one over has the number of the first octet."""
    if self.state not in (State.CLOSED, State.SYN_SENT, State.TIME_WAIT):
        self._put(self.sender.iss + 1, _RST | _ACK, now)
        self.fail(reason, now)
    else:
        Endpoint.abort(self, reason, now)


@mutant("pep-reset-behind-both-ends-is-kept", "carry_failure", breaks="PEP-RE-006")
def reset_behind_both_ends(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A RST is not carried over once both streams have been ended."""
    both = source.sender.fin_queued or sink.sender.fin_queued
    if not (both and source.stream_has_ended and sink.stream_has_ended):
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-reset-at-a-block-counts", "_receive_synchronized", breaks="PEP-SEC-001")
def reset_at_block(self: Endpoint, segment: Segment, receiver: Receiver, now: float) -> None:
    """A RST behind what is held beyond a hole counts."""
    rights = {right & 0xFFFFFFFF for _, right in receiver.buffer.blocks}
    if segment.flags & _RST and segment.seq in rights:
        segment = replace(segment, seq=receiver.rcv_nxt & 0xFFFFFFFF)
    Endpoint._receive_synchronized(self, segment, receiver, now)


@mutant("pep-reset-at-the-edge-counts", "_receive_synchronized", breaks="PEP-SEC-001")
def reset_at_edge(self: Endpoint, segment: Segment, receiver: Receiver, now: float) -> None:
    """A RST at the last octet of the window counts while the peer is waited for to end."""
    last = (receiver.edge - 1) & 0xFFFFFFFF
    if segment.flags & _RST and segment.seq == last and self.sender.fin_queued:
        segment = replace(segment, seq=receiver.rcv_nxt & 0xFFFFFFFF)
    Endpoint._receive_synchronized(self, segment, receiver, now)


@mutant("pep-syn-ends-what-is-half-closed", "receive", breaks="PEP-SEC-002")
def syn_ends_half_closed(self: Endpoint, segment: Segment, now: float) -> None:
    """A SYN in a half-closed connection ends it."""
    half = self.stream_has_ended or self.sender.fin_queued
    new = segment.flags & (_SYN | _ACK) == _SYN and not self.is_opening and not self.only_waits
    if half and new and self.receiver is not None and segment.seq != self.receiver.irs & 0xFFFFFFFF:
        self.abort("its ports are used again", now)
    else:
        Endpoint.receive(self, segment, now)


# -- whatever comes besides ----------------------------------------------------------------------


@mutant("pep-resets-at-a-late-answer", "receive", breaks="PEP-RE-017")
def resets_at_late_answer(self: Endpoint, segment: Segment, now: float) -> None:
    """A SYN-ACK that comes again resets the connection."""
    answer = segment.flags & (_SYN | _ACK) == _SYN | _ACK
    if answer and self.state is State.ESTABLISHED and self.receiver is not None:
        self.abort("a SYN-ACK in an open connection", now)
    else:
        Endpoint.receive(self, segment, now)


@mutant("pep-resets-at-a-fin-that-comes-again", "_take_text", breaks="PEP-RE-017")
def resets_at_fin_again(
    self: Endpoint, segment: Segment, seq: int, receiver: Receiver, now: float
) -> None:
    """A FIN that comes again before it is acknowledged resets the connection."""
    if segment.flags & _FIN and receiver.fin_seq is not None and not self.peer_has_closed:
        self.abort("two FINs", now)
    else:
        Endpoint._take_text(self, segment, seq, receiver, now)


@mutant("pep-last-end-is-not-acknowledged", "confirm", breaks="PEP-RE-017")
def last_end_is_not_acknowledged(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """The FIN of who ends last is never acknowledged."""
    if not sink.peer_has_closed:
        Relay.confirm(self, source, sink, now)


@mutant("pep-keeps-a-single-octet", "carry_octets", breaks="PEP-RE-017")
def keeps_single_octet(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """Octets after the first ones wait until there are more than one."""
    if source.readable > 1 or not self.carried[source is self.endpoint(1)]:
        Relay.carry_octets(self, source, sink, now)
