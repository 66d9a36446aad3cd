"""Mutants of segments on the wire (RWBP-WF)."""

from __future__ import annotations

from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.mutants import Altering, is_bare, mutant
from bentpipe_reference.rwbp.outstanding import Outgoing
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet, parse_packet
from bentpipe_reference.tcp.wire.sequence import MASK


@mutant("rwbp-checksum-not-looked-at", breaks="RWBP-WF-001", part="parse")
def parse_whatever_the_checksum(packet: bytes) -> Segment:
    """A wrong checksum goes unnoticed."""
    header = packet[12:20] + b"\0\6" + (len(packet) - 20).to_bytes(2, "big")
    body = packet[20:36] + bytes(2) + packet[38:]
    summed = internet_checksum(header + body).to_bytes(2, "big")
    return parse_packet(packet[:36] + summed + packet[38:])


@mutant("rwbp-options-walked-halfway", breaks="RWBP-WF-001", part="parse")
def parse_half_of_the_options(packet: bytes) -> Segment:
    """An option list that cannot be walked to its end counts as far as it can be."""
    try:
        return parse_packet(packet)
    except ValueError:
        start = (packet[0] & 15) * 4
        header = (packet[start + 12] >> 4) * 4
        if len(packet) < start + header or header <= 20:
            raise
        fixed = bytearray(packet[: start + 20] + bytes(header - 20) + packet[start + header :])
        return parse_whatever_the_checksum(bytes(fixed))


@mutant("rwbp-checksum-of-blocks-wrong", breaks="RWBP-WF-001", part="emit")
def spoil_the_checksum(segment: Segment) -> bytes:
    """The checksum of pure acknowledgments with blocks is wrong."""
    packet = bytearray(emit_packet(segment))
    if segment.sack_blocks:
        packet[37] ^= 1
    return bytes(packet)


@mutant("rwbp-fin-without-a-number", "alter", breaks="RWBP-WF-002")
def does_not_count_fins(self: Altering, segment: Segment, now: float) -> None:
    """The peer's FIN is acknowledged as if it occupied no number."""
    if self.agreed and self.receiver is not None and self.receiver.fin_received:
        segment.ack = segment.ack - 1 & MASK


@mutant("rwbp-numbers-do-not-wrap", "alter", breaks="RWBP-WF-002")
def stops_at_the_wrap(self: Altering, segment: Segment, now: float) -> None:
    """Acknowledgment numbers do not pass 2^32."""
    if self.agreed and self.receiver is not None and self.receiver.rcv_nxt > MASK:
        segment.ack = MASK


@mutant("rwbp-blocks-on-data", "alter", breaks="RWBP-WF-003")
def reports_on_data(self: Altering, segment: Segment, now: float) -> None:
    """Segments with data have SACK blocks while runs are held."""
    if self.agreed and segment.payload and isinstance(self.receiver, RwbpReceiver):
        runs = self.receiver.buffer.runs[-1:]
        segment.sack_blocks = tuple((left & MASK, right & MASK) for left, right in runs)


@mutant("rwbp-mss-on-fin", "alter", breaks="RWBP-WF-003")
def names_mss_with_fin(self: Altering, segment: Segment, now: float) -> None:
    """A FIN has an MSS option."""
    if self.agreed and segment.flags & Flags.FIN:
        segment.mss = self.config.mss


@mutant("rwbp-mss-on-acknowledgments", "alter", breaks="RWBP-WF-004")
def names_mss_again(self: Altering, segment: Segment, now: float) -> None:
    """Pure acknowledgments have an MSS option."""
    if self.agreed and is_bare(segment):
        segment.mss = self.config.mss


@mutant("rwbp-unknown-options-not-tolerated", "receive", breaks="RWBP-WF-005")
def drops_unknown_options(self: RwbpConnection, segment: Segment, now: float) -> None:
    """A segment with an unknown option is dropped once the connection is open."""
    if self.agreed and any(kind == 200 for kind, _ in segment.unknown):
        return
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-blocks-on-data-ignored", "receive", breaks="RWBP-WF-005")
def ignores_blocks_on_data(self: RwbpConnection, segment: Segment, now: float) -> None:
    """The SACK option of a segment with data is not read."""
    if self.agreed and segment.payload:
        segment.sack_blocks = ()
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-last-sack-option-counts", "receive", breaks="RWBP-WF-005")
def reads_the_last_sack_option(self: RwbpConnection, segment: Segment, now: float) -> None:
    """Of two SACK options the second one counts."""
    for kind, data in segment.unknown:
        if self.agreed and kind == 5 and len(data) % 8 == 0 and data:
            numbers = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
            segment.sack_blocks = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-unit-does-not-bound", "smss", breaks="RWBP-WF-006")
def ignores_the_unit(self: RwbpHandshake) -> int:
    """Segments are larger than the peer's unit if its MSS permits."""
    return Handshake.smss(self)


@mutant("rwbp-mss-does-not-bound", "smss", breaks="RWBP-WF-006")
def ignores_the_mss(self: RwbpHandshake) -> int:
    """Segments are larger than the peer's MSS if its unit permits."""
    return RwbpHandshake.smss(self) if self.peer is None else min(self._config.mss, self.peer.unit)


@mutant("rwbp-nagle", "next_may_be_sent", breaks="RWBP-WF-007")
def holds_small_segments(self: RwbpSender) -> bool:
    """Less than a full segment waits while anything is outstanding."""
    end = self.next_end()
    small = end is not None and end - self.snd_nxt < self.smss
    if small and self.segments.count and not self.fin_queued:
        return False
    return RwbpSender.next_may_be_sent(self)


@mutant("rwbp-half-segments", breaks="RWBP-WF-007")
class CutsHalves(RwbpSender):
    """Segments are cut to half of SMSS."""

    def segment_octets(self) -> int:
        return max(1, self.smss // 2)

    def next_end(self) -> int | None:
        end = super().next_end()
        if end is None:
            return None
        return min(end, self.snd_nxt + self.segment_octets())


@mutant("rwbp-fin-always-alone", "_cut", breaks="RWBP-WF-008")
def sends_fin_alone(self: RwbpSender) -> Outgoing:
    """The FIN never leaves with data."""
    queued, data_end = self.fin_queued, self.data_end
    if data_end is not None and self.snd_nxt < data_end:
        self.fin_queued = False
    segment = RwbpSender._cut(self)
    self.fin_queued = queued
    return segment


@mutant("rwbp-fin-waits-for-acknowledgment", "next_may_be_sent", breaks="RWBP-WF-008")
def holds_the_fin(self: RwbpSender) -> bool:
    """A FIN that is alone leaves when nothing is outstanding."""
    alone = self.fin_queued and self.data_end == self.snd_nxt
    return RwbpSender.next_may_be_sent(self) and not (alone and self.segments.count)


@mutant("rwbp-urg-sent", "alter", breaks="RWBP-WF-009")
def sends_urgent_data(self: Altering, segment: Segment, now: float) -> None:
    """What is pushed is urgent."""
    if self.agreed and segment.flags & Flags.FIN:
        segment.flags |= Flags.URG


@mutant("rwbp-urgent-data-dropped", "receive", breaks="RWBP-WF-009")
def drops_urgent_data(self: RwbpConnection, segment: Segment, now: float) -> None:
    """Data with URG is not taken."""
    if self.agreed and segment.flags & Flags.URG:
        segment.payload = b""
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-octets-altered", "alter", breaks="RWBP-WF-010")
def alters_octets(self: Altering, segment: Segment, now: float) -> None:
    """The last octet of a segment is another."""
    if self.agreed and segment.payload:
        segment.payload = segment.payload[:-1] + bytes((segment.payload[-1] ^ 1,))


@mutant("rwbp-never-closes", "close", breaks="RWBP-WF-010")
def never_closes(self: RwbpConnection, now: float) -> None:
    """A service that closes sends no FIN."""
    if not self.agreed:
        RwbpConnection.close(self, now)
