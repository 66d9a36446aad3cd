"""Mutants of the receiving half (SNR-RCV)."""

from __future__ import annotations

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.mutants import Altering, mutant, mutant_setting
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK

Blocks = tuple[tuple[int, int], ...]


@mutant("snr-duplicate-acks-delayed", breaks="SNR-RCV-001")
class DelaysDuplicateAcks(Receiver):
    """Out-of-order data is acknowledged with delay."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return in_order and super().should_ack_now(in_order=in_order, gap=gap)


@mutant("snr-filled-gap-acked-late", breaks="SNR-RCV-002", profile="hk99")
class DelaysAcksOfFilledGaps(Receiver):
    """Data that fills a gap is acknowledged with delay."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return super().should_ack_now(in_order=in_order, gap=gap and not in_order)


@mutant("snr-ack-delay-of-0.7-s", breaks="SNR-RCV-003")
class DelaysTooLong(Receiver):
    """A lone segment is acknowledged after 0.7 seconds."""

    def delayed_ack_interval(self) -> float:
        return 0.7


@mutant("snr-ack-every-fourth", breaks="SNR-RCV-004")
class StretchesAcks(Receiver):
    """Only every fourth full-sized segment is acknowledged at once."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return not in_order or gap or self._octets_unacked >= 4 * self._largest_segment

    def window_update_due(self) -> bool:
        gain = self.rcv_nxt + self.free_room() - self.edge
        return gain >= 8 * self.config.mss


@mutant("snr-acks-with-window-updates-only", breaks="SNR-RCV-004")
class AcksWithWindowUpdates(Receiver):
    """Full-sized segments are acknowledged by a timer, or where the user makes room."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return not in_order or gap


@mutant("snr-ack-number-goes-back", breaks="SNR-RCV-005")
class AcknowledgesBackwards(Altering):
    """A duplicate acknowledgment takes back an octet."""

    _last_number = -1

    def alter(self, segment: Segment, now: float) -> None:
        if segment.ack == self._last_number and not segment.payload:
            segment.ack = segment.ack - 1 & MASK
        self._last_number = segment.ack


@mutant("snr-acks-over-gaps", breaks="SNR-RCV-006")
class AcknowledgesOverGaps(Altering):
    """Acknowledgments skip the gaps."""

    def alter(self, segment: Segment, now: float) -> None:
        if segment.sack_blocks:
            segment.ack = max(right for _, right in segment.sack_blocks)
            segment.sack_blocks = ()


@mutant("snr-lowest-block-first", breaks="SNR-RCV-007", profile="hk99")
class ReportsLowestFirst(Receiver):
    """SACK blocks come in sequence order."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        return tuple(sorted(super().sack_blocks_to_send(most)))


@mutant("snr-sack-every-other-ack", breaks="SNR-RCV-008")
class ReportsEveryOtherTime(Receiver):
    """Every second duplicate acknowledgment has no SACK blocks."""

    _reports = 0

    def sack_blocks_to_send(self, most: int) -> Blocks:
        self._reports += 1
        return super().sack_blocks_to_send(most) if self._reports % 2 else ()


@mutant("snr-block-one-octet-long", breaks="SNR-RCV-009")
class ReportsTooMuch(Receiver):
    """SACK blocks end an octet too far."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        return tuple((left, right + 1) for left, right in super().sack_blocks_to_send(most))


@mutant("snr-blocks-not-joined", breaks="SNR-RCV-010")
class ReportsSegments(Receiver):
    """The first SACK block is the latest segment, not the block around it."""

    _latest = (0, 0)

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        self._latest = seq, seq + len(payload)
        super().on_text(seq, payload, fin, now)

    def sack_blocks_to_send(self, most: int) -> Blocks:
        blocks = super().sack_blocks_to_send(most)
        inside = blocks and blocks[0][0] <= self._latest[0] and self._latest[1] <= blocks[0][1]
        return (self._latest, *blocks[1:]) if inside else blocks


@mutant("snr-one-block-only", breaks="SNR-RCV-011")
class ReportsOneBlock(Receiver):
    """Only one SACK block is sent."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        return super().sack_blocks_to_send(1)


@mutant("snr-blocks-forgotten", breaks="SNR-RCV-030")
class RemembersFourBlocks(Receiver):
    """Blocks for which there was no room are not reported any more."""

    _remembered: Blocks = ()

    def sack_blocks_to_send(self, most: int) -> Blocks:
        first, *others = super().sack_blocks_to_send(40) or ((0, 0),)
        known = [b for b in others if any(b[0] <= a < b[1] for a, _ in self._remembered)]
        self._remembered = (first, *known)[:4] if first != (0, 0) else ()
        return self._remembered[:most]


@mutant("snr-old-blocks-repeated", breaks="SNR-RCV-012")
class ReportsOldBlocks(Receiver):
    """The further SACK blocks are the lowest ones."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        first, *others = super().sack_blocks_to_send(40) or ((0, 0),)
        return (first, *sorted(others))[:most] if first != (0, 0) else ()


@mutant("snr-duplicates-ignored", breaks="SNR-RCV-013")
class IgnoresDuplicates(Receiver):
    """Duplicate segments are not acknowledged."""

    def on_old_text(self, seq: int, octets: int) -> None:
        if octets and seq + octets <= self.rcv_nxt:
            self.ack_now = False


@mutant("snr-dsack-missing", breaks="SNR-RCV-014")
class ReportsNoDuplicates(Receiver):
    """Duplicates are not reported."""

    def on_old_text(self, seq: int, octets: int) -> None:
        pass


@mutant("snr-dsack-one-octet-short", breaks="SNR-RCV-014")
class ReportsShortDuplicates(Receiver):
    """D-SACK blocks end an octet too soon."""

    def on_old_text(self, seq: int, octets: int) -> None:
        super().on_old_text(seq, max(0, octets - 1))


@mutant("snr-beyond-window-ignored", breaks="SNR-RCV-015")
class IgnoresDataBeyondTheWindow(Receiver):
    """Data beyond the window is not answered."""

    def on_old_text(self, seq: int, octets: int) -> None:
        super().on_old_text(seq, octets)
        if seq >= self.edge:
            self.ack_now = False


@mutant("snr-beyond-window-kept", breaks="SNR-RCV-016")
class KeepsDataBeyondTheWindow(Receiver):
    """Data beyond the window is kept and reported."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        return seq + length > self.rcv_nxt or super().is_acceptable(seq, length)

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        edge = self.edge
        self.edge = max(edge, seq + len(payload))
        super().on_text(seq, payload, fin, now)
        self.edge = edge


@mutant("snr-window-shrinks", breaks="SNR-RCV-017")
class ShrinksTheWindow(Receiver):
    """Data held out of order is taken off the window."""

    def update_edge(self) -> None:
        held = sum(right - left for left, right in self.buffer.blocks)
        self.edge = self.rcv_nxt + max(0, self.free_room() - held)


@mutant("snr-overlap-cut-wrong", breaks="SNR-RCV-018")
class CutsOverlapsWrong(Reassembly):
    """An overlapping segment's front is delivered in place of its end."""

    def insert(self, seq: int, payload: bytes) -> None:
        known = self.rcv_nxt - seq
        if 0 < known < len(payload):
            seq, payload = self.rcv_nxt, payload[: len(payload) - known]
        super().insert(seq, payload)


@mutant("snr-receiver-reneges", breaks="SNR-RCV-019")
class Reneges(Reassembly):
    """Reported data is dropped when the gap below it is filled."""

    def insert(self, seq: int, payload: bytes) -> None:
        if seq <= self.rcv_nxt < seq + len(payload):
            self.blocks = []
            self._held.clear()
            self._pieces.clear()
        super().insert(seq, payload)


@mutant("snr-acknowledges-twice", breaks="SNR-RCV-020", hk99=True)
class AcknowledgesTwice(Connection):
    """Every pure acknowledgment is sent twice."""

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        bare = [each for each in segments if each.flags == Flags.ACK and not each.payload]
        return [*segments, *bare]


@mutant("snr-window-grows-by-octets", breaks="SNR-RCV-021")
class OffersSillyWindows(Receiver):
    """Whatever the user has read is offered at once."""

    def update_edge(self) -> None:
        self.edge = max(self.edge, self.rcv_nxt + self.free_room())


@mutant("snr-data-above-gaps-dropped", breaks="SNR-RCV-022", hk99=True)
class DropsWhatComesEarly(Reassembly):
    """Data above a gap is acknowledged as such, but not kept."""

    def insert(self, seq: int, payload: bytes) -> None:
        if seq <= self.rcv_nxt:
            super().insert(seq, payload)


mutant_setting(
    "snr-acks-never-delayed",
    "Every segment is acknowledged on its own.",
    breaks="SNR-RCV-023",
    ack_every=1,
)


@mutant("snr-dsack-repeated", breaks="SNR-RCV-024")
class RepeatsDuplicateReports(Receiver):
    """A duplicate is reported in every acknowledgment until another one arrives."""

    def note_ack_sent(self, *, complete: bool = True) -> None:
        duplicate = self._duplicate
        super().note_ack_sent(complete=complete)
        self._duplicate = duplicate


@mutant("snr-dsack-too-wide", breaks="SNR-RCV-024")
class ReportsWholeSegments(Receiver):
    """A segment that repeats some octets is reported whole."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().on_text(seq, payload, fin, now)
        if self._duplicate is not None:
            self._duplicate = seq, seq + len(payload)


@mutant("snr-closed-window-stays-closed", breaks="SNR-RCV-025")
class NeverOpensAgain(Receiver):
    """A window that has closed stays closed until data comes."""

    def update_edge(self) -> None:
        if self.edge - self.rcv_nxt >= self.config.mss or self.edge == self.irs + 1:
            super().update_edge()


@mutant("snr-dsack-apart-from-its-block", breaks="SNR-RCV-031")
class ReportsTheBlockAroundLast(Receiver):
    """The block around a duplicate follows all the others."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        duplicate = self._duplicate
        blocks = super().sack_blocks_to_send(most)
        if duplicate is None or len(blocks) < 3:
            return blocks
        return blocks[0], *blocks[2:], blocks[1]


@mutant("snr-probes-unanswered", breaks="SNR-RCV-026")
class IgnoresProbes(Receiver):
    """Data that a closed window keeps out is not answered."""

    def on_old_text(self, seq: int, octets: int) -> None:
        super().on_old_text(seq, octets)
        if self.edge <= self.rcv_nxt == seq:
            self.ack_now = False


@mutant("snr-data-settles-the-report", breaks="SNR-RCV-027")
class SettlesReportsWithData(Receiver):
    """Data that has no room for SACK blocks counts as the acknowledgment of what is held."""

    def note_ack_sent(self, *, complete: bool = True) -> None:
        super().note_ack_sent(complete=True)


@mutant("snr-takes-data-behind-the-fin", breaks="SNR-RCV-028")
class TakesDataBehindTheFin(Receiver):
    """Data behind the FIN is held as data above a gap."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        if self.fin_received:
            self._take(seq, payload, now)
        else:
            super().on_text(seq, payload, fin, now)


@mutant("snr-empty-segments-unanswered", breaks="SNR-RCV-029", hk99=True)
class SilentToEmptySegments(Connection):
    """What is unacceptable and empty, as a keep-alive, is dropped without an answer."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if segment.sequence_length:
            super()._receive_unacceptable(segment, seq, receiver, now)


@mutant("snr-crossing-segment-refused", breaks="SNR-RCV-032", hk99=True)
class TakesWholeSegments(Receiver):
    """A segment that reaches beyond the right edge is refused as a whole."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        fits = not length or seq + length <= self.edge
        return fits and super().is_acceptable(seq, length)


@mutant("snr-crossing-segment-refused-above-a-gap", breaks="SNR-RCV-032")
class TakesWholeSegmentsAboveGaps(Receiver):
    """A segment above a gap that reaches beyond the right edge is refused as a whole."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        fits = seq <= self.rcv_nxt or not length or seq + length <= self.edge
        return fits and super().is_acceptable(seq, length)


@mutant("snr-early-fin-forgotten", breaks="SNR-RCV-022")
class ForgetsEarlyFin(Receiver):
    """A FIN without data above a gap is answered, but not kept."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().on_text(seq, payload, fin, now)
        if fin and not payload and not self.fin_received:
            self.fin_seq = None


@mutant("snr-text-with-a-second-fin-taken", breaks="SNR-RCV-028")
class TakesTextOfSecondFin(Connection):
    """The text of a segment behind the FIN is acknowledged if it has a FIN of its own."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        super()._receive_synchronized(segment, receiver, now)
        behind = receiver.fin_received and segment.seq == receiver.rcv_nxt & MASK
        if behind and segment.payload and segment.flags & Flags.FIN:
            receiver.buffer.rcv_nxt += len(segment.payload)
            receiver.ack_now = True
