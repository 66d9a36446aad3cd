"""Mutants of reliability (PEP-RE, section 6)."""

from __future__ import annotations

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.pep.endpoint import Endpoint
from bentpipe_reference.pep.mutants import mutant
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire import Segment, WireError, parse_packet

GIVEN_UP = "the peer answers no retransmission"


@mutant("pep-acknowledges-the-end-at-once", "confirm", breaks="PEP-RE-002")
def acknowledges_at_once(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A FIN is acknowledged as soon as it arrives."""
    if source.stream_has_ended:
        source.confirm_end(now)


@mutant("pep-acknowledges-the-end-when-sent", "confirm", breaks="PEP-RE-002")
def acknowledges_when_sent(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A FIN is acknowledged as soon as all octets have been sent on."""
    sender = sink.sender
    if source.stream_has_ended and not sink.is_opening and sender.snd_max >= (sender.data_end or 0):
        source.confirm_end(now)


@mutant("pep-closes-both-directions", "carry_end", breaks="PEP-RE-003")
def closes_both(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """The end of one stream ends the other one, too."""
    if source.stream_has_ended and not source.readable and not sink.is_opening:
        sink.close(now)
        source.close(now)


@mutant("pep-ends-when-idle", "carry_end", breaks="PEP-RE-003")
def ends_behind_a_pause(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A stream of which all has been delivered is ended when the other one ends."""
    Relay.carry_end(self, source, sink, now)
    idle = sink.sender.snd_una == sink.sender.snd_max
    if sink.stream_has_ended and idle and not source.readable and not sink.is_opening:
        sink.close(now)


@mutant("pep-ends-nothing", "carry_end", breaks="PEP-RE-004")
def ends_nothing(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A FIN is not relayed."""


@mutant("pep-leaves-a-false-end", "carry_failure", breaks="PEP-RE-005", setting="local")
def leaves_a_false_end(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """Who has ended its stream is not told that it could not be delivered."""
    if not sink.stream_has_ended:
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-lets-go-between-boxes", "ends_by_itself", breaks="PEP-RE-005", setting="local")
def lets_go_between_boxes(self: Relay, source: Endpoint) -> bool:
    """The FIN of the other box is acknowledged at once as well, so that no reset passes later."""
    del source
    return self.config.end == "local"


@mutant("pep-swallows-resets", "carry_failure", breaks="PEP-RE-006")
def swallows_resets(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A RST is not carried over."""


@mutant("pep-swallows-resets-of-the-server", "carry_failure", breaks="PEP-RE-006")
def swallows_resets_of_server(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A RST of the one that was called is not carried over."""
    if source is not self.far:
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-keeps-half-closed-when-reset", "carry_failure", breaks="PEP-RE-006")
def keeps_half_closed(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """A RST is not carried over to an end that has ended its stream."""
    if not sink.peer_has_closed:
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-reset-becomes-an-end", "carry_failure", breaks="PEP-RE-007")
def reset_becomes_end(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """After a RST from one end the other gets a FIN."""
    if not sink.is_opening:
        sink.close(now)


@mutant("pep-failure-becomes-an-end", "carry_failure", breaks="PEP-RE-008")
def failure_becomes_end(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """When one side is given up the other gets a FIN."""
    if source.failure == GIVEN_UP:
        sink.close(now)
    else:
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-failure-is-kept", "carry_failure", breaks="PEP-RE-008")
def failure_is_kept(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """When one side is given up the other is not told."""
    if source.failure != GIVEN_UP:
        Relay.carry_failure(self, source, sink, now)


@mutant("pep-half-closed-is-mute", "carry_octets", breaks="PEP-RE-009")
def half_closed_is_mute(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """An end that has got a FIN is not heard any more."""
    if not source.sender.fin_queued:
        Relay.carry_octets(self, source, sink, now)


@mutant("pep-half-closed-is-reset", "carry_end", breaks="PEP-RE-009")
def half_closed_is_reset(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """An end that sends after it has got a FIN is reset."""
    Relay.carry_end(self, source, sink, now)
    sender = sink.sender
    if source.peer_has_closed and not sink.stream_has_ended and sender.fin_acknowledged:
        received = sink.receiver is not None and sink.receiver.rcv_nxt - sink.receiver.irs > 30_000
        if received:
            sink.abort("it has ended", now)
            source.abort("it has ended", now)


@mutant("pep-stuck-when-both-end", "carry_end", breaks="PEP-RE-010")
def stuck_when_both_end(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """An end that has sent a FIN gets none before its own is acknowledged."""
    if not sink.stream_has_ended or sink.peer_has_closed:
        Relay.carry_end(self, source, sink, now)


@mutant("pep-repairs-checksums", breaks="PEP-RE-015")
def repairs_checksums(packet: bytes) -> Segment:
    """A segment with a wrong checksum is taken for a right one."""
    try:
        return parse_packet(packet)
    except WireError:
        start = (packet[0] & 15) * 4
        body = packet[start : int.from_bytes(packet[2:4], "big")]
        if len(body) < 20 or packet[9] != 6:
            raise
        body = body[:16] + bytes(2) + body[18:]
        ends = int.from_bytes(packet[12:16], "big") + int.from_bytes(packet[16:20], "big")
        field = checksum_field(ones_complement_residue(body) + ends + 6 + len(body))
        return parse_packet(packet[:start] + body[:16] + field.to_bytes(2, "big") + body[18:])


@mutant("pep-no-time-wait", "_happen", breaks="PEP-RE-016")
def no_time_wait(self: Endpoint, happening: Happening, now: float) -> None:
    """A connection is forgotten as soon as it has ended."""
    Endpoint._happen(self, happening, now)
    if self.state is State.TIME_WAIT and self.receiver is not None:
        # Its last acknowledgment still leaves.
        self.time_wait_until = now + 0.01
