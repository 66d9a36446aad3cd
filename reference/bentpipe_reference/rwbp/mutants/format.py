"""Mutants of segments on the wire (RWBP-WF)."""

from __future__ import annotations

from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.mutants import Altering, mutant
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


@mutant("rwbp-fin-without-a-number", breaks="RWBP-WF-002")
class DoesNotCountFins(Altering):
    """The peer's FIN is acknowledged as if it occupied no number."""

    def alter(self, segment: Segment, now: float) -> None:
        if self.agreed and self.receiver is not None and self.receiver.fin_received:
            segment.ack = segment.ack - 1 & MASK


@mutant("rwbp-numbers-do-not-wrap", breaks="RWBP-WF-002")
class StopsAtTheWrap(Altering):
    """Acknowledgment numbers do not pass 2^32."""

    def alter(self, segment: Segment, now: float) -> None:
        if self.agreed and self.receiver is not None and self.receiver.rcv_nxt > MASK:
            segment.ack = MASK


@mutant("rwbp-blocks-on-data", breaks="RWBP-WF-003")
class ReportsOnData(Altering):
    """Segments with data have SACK blocks while runs are held."""

    def alter(self, segment: Segment, now: float) -> None:
        if self.agreed and segment.payload and isinstance(self.receiver, RwbpReceiver):
            runs = self.receiver.buffer.runs[-1:]
            segment.sack_blocks = tuple((left & MASK, right & MASK) for left, right in runs)


@mutant("rwbp-mss-on-fin", breaks="RWBP-WF-003")
class NamesMssWithFin(Altering):
    """A FIN has an MSS option."""

    def alter(self, segment: Segment, now: float) -> None:
        if self.agreed and segment.flags & Flags.FIN:
            segment.mss = self.config.mss


@mutant("rwbp-mss-on-acknowledgments", breaks="RWBP-WF-004")
class NamesMssAgain(Altering):
    """Pure acknowledgments have an MSS option."""

    def alter(self, segment: Segment, now: float) -> None:
        if self.agreed and not segment.payload and not segment.flags & ~Flags.ACK:
            segment.mss = self.config.mss if not segment.sack_blocks else None


@mutant("rwbp-unknown-options-not-tolerated", breaks="RWBP-WF-005")
class DropsUnknownOptions(RwbpConnection):
    """A segment with an unknown option is dropped once the connection is open."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.agreed and any(kind == 200 for kind, _ in segment.unknown):
            return
        super().receive(segment, now)


@mutant("rwbp-blocks-on-data-ignored", breaks="RWBP-WF-005")
class IgnoresBlocksOnData(RwbpConnection):
    """The SACK option of a segment with data is not read."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.agreed and segment.payload:
            segment.sack_blocks = ()
        super().receive(segment, now)


@mutant("rwbp-last-sack-option-counts", breaks="RWBP-WF-005")
class ReadsTheLastSackOption(RwbpConnection):
    """Of two SACK options the second one counts."""

    def receive(self, segment: Segment, now: float) -> None:
        for kind, data in segment.unknown:
            if self.agreed and kind == 5 and len(data) % 8 == 0 and data:
                numbers = [
                    int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)
                ]
                segment.sack_blocks = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        super().receive(segment, now)


@mutant("rwbp-unit-does-not-bound", breaks="RWBP-WF-006")
class IgnoresTheUnit(RwbpHandshake):
    """Segments are larger than the peer's unit if its MSS permits."""

    def smss(self) -> int:
        return Handshake.smss(self)


@mutant("rwbp-mss-does-not-bound", breaks="RWBP-WF-006")
class IgnoresTheMss(RwbpHandshake):
    """Segments are larger than the peer's MSS if its unit permits."""

    def smss(self) -> int:
        return super().smss() if self.peer is None else min(self._config.mss, self.peer.unit)


@mutant("rwbp-nagle", breaks="RWBP-WF-007")
class HoldsSmallSegments(RwbpSender):
    """Less than a full segment waits while anything is outstanding."""

    def next_may_be_sent(self) -> bool:
        end = self.next_end()
        small = end is not None and end - self.snd_nxt < self.smss
        if small and self.segments.count and not self.fin_queued:
            return False
        return super().next_may_be_sent()


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


@mutant("rwbp-fin-always-alone", breaks="RWBP-WF-008")
class SendsFinAlone(RwbpSender):
    """The FIN never leaves with data."""

    def _cut(self) -> Outgoing:
        queued, data_end = self.fin_queued, self.data_end
        if data_end is not None and self.snd_nxt < data_end:
            self.fin_queued = False
        segment = super()._cut()
        self.fin_queued = queued
        return segment


@mutant("rwbp-fin-waits-for-acknowledgment", breaks="RWBP-WF-008")
class HoldsTheFin(RwbpSender):
    """A FIN that is alone leaves when nothing is outstanding."""

    def next_may_be_sent(self) -> bool:
        alone = self.fin_queued and self.data_end == self.snd_nxt
        return super().next_may_be_sent() and not (alone and self.segments.count)


@mutant("rwbp-urg-sent", breaks="RWBP-WF-009")
class SendsUrgentData(Altering):
    """What is pushed is urgent."""

    def alter(self, segment: Segment, now: float) -> None:
        if self.agreed and segment.flags & Flags.FIN:
            segment.flags |= Flags.URG


@mutant("rwbp-urgent-data-dropped", breaks="RWBP-WF-009")
class DropsUrgentData(RwbpConnection):
    """Data with URG is not taken."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.agreed and segment.flags & Flags.URG:
            segment.payload = b""
        super().receive(segment, now)


@mutant("rwbp-octets-altered", breaks="RWBP-WF-010")
class AltersOctets(Altering):
    """The last octet of a segment is another."""

    def alter(self, segment: Segment, now: float) -> None:
        if self.agreed and segment.payload:
            segment.payload = segment.payload[:-1] + bytes((segment.payload[-1] ^ 1,))


@mutant("rwbp-never-closes", breaks="RWBP-WF-010")
class NeverCloses(RwbpConnection):
    """A service that closes sends no FIN."""

    def close(self, now: float) -> None:
        if not self.agreed:
            super().close(now)
