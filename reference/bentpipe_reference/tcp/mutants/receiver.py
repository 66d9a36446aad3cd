"""Mutants of the receiving half (SNR-RCV)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.segment import Segment
from bentpipe_reference.tcp.wire.sequence import MASK

Configure = Callable[[EndpointConfig], EndpointConfig]
Blocks = tuple[tuple[int, int], ...]


def _receiving(receiver: type[Receiver]) -> Configure:
    """The ``configure`` of a mutant whose receiver is ``receiver``."""
    return lambda config: replace(config, receiver_class=receiver)


def _connecting(endpoint: type[Endpoint]) -> Configure:
    return lambda config: replace(config, endpoint_class=endpoint)


class DelaysDuplicateAcks(Receiver):
    """Treats out-of-order data like any other."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return in_order and super().should_ack_now(in_order=in_order, gap=gap)


class DelaysAcksOfFilledGaps(Receiver):
    """Treats data that fills a gap like any other."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return super().should_ack_now(in_order=in_order, gap=gap and not in_order)


class DelaysTooLong(Receiver):
    """Lets a lone segment wait for 0.7 seconds."""

    def delayed_ack_interval(self) -> float:
        return 0.7


class StretchesAcks(Receiver):
    """Acknowledges every fourth full-sized segment, and gives back window as rarely."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        return not in_order or gap or self._octets_unacked >= 4 * self._largest_segment

    def window_update_due(self) -> bool:
        gain = self.rcv_nxt + self.free_room() - self.edge
        return gain >= 8 * self.config.mss


class AcknowledgesBackwards(Endpoint):
    """Takes back an octet in every acknowledgment that repeats the one before."""

    _last_number = -1

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        for segment in segments:
            if segment.ack == self._last_number and not segment.payload:
                segment.ack = segment.ack - 1 & MASK
            self._last_number = segment.ack
        return segments


class AcknowledgesOverGaps(Endpoint):
    """Acknowledges the highest octet held, whatever is missing below it."""

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        for segment in segments:
            if segment.sack_blocks:
                segment.ack = max(right for _, right in segment.sack_blocks)
                segment.sack_blocks = ()
        return segments


class ReportsLowestFirst(Receiver):
    """Orders all blocks by sequence number."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        return tuple(sorted(super().sack_blocks_to_send(most)))


class ReportsEveryOtherTime(Receiver):
    """Saves option space by leaving out every second report."""

    _reports = 0

    def sack_blocks_to_send(self, most: int) -> Blocks:
        self._reports += 1
        return super().sack_blocks_to_send(most) if self._reports % 2 else ()


class ReportsTooMuch(Receiver):
    """Takes the right edge for the last octet of a block."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        return tuple((left, right + 1) for left, right in super().sack_blocks_to_send(most))


class ReportsSegments(Receiver):
    """Reports the latest segment instead of the block around it."""

    _latest = (0, 0)

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        self._latest = seq, seq + len(payload)
        super().on_text(seq, payload, fin, now)

    def sack_blocks_to_send(self, most: int) -> Blocks:
        blocks = super().sack_blocks_to_send(most)
        inside = blocks and blocks[0][0] <= self._latest[0] and self._latest[1] <= blocks[0][1]
        return (self._latest, *blocks[1:]) if inside else blocks


class ReportsOneBlock(Receiver):
    """Has room for one block only."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        return super().sack_blocks_to_send(1)


class ReportsOldBlocks(Receiver):
    """Fills the option with the lowest blocks instead of the latest ones."""

    def sack_blocks_to_send(self, most: int) -> Blocks:
        first, *others = super().sack_blocks_to_send(40) or ((0, 0),)
        return (first, *sorted(others))[:most] if first != (0, 0) else ()


class IgnoresDuplicates(Receiver):
    """Says nothing about data it has."""

    def on_old_text(self, seq: int, octets: int) -> None:
        if octets and seq + octets <= self.rcv_nxt:
            self.ack_now = False


class ReportsNoDuplicates(Receiver):
    """Never notes a duplicate, though it claims D-SACK."""

    def on_old_text(self, seq: int, octets: int) -> None:
        pass


class ReportsShortDuplicates(Receiver):
    """Leaves the last octet out of a D-SACK block."""

    def on_old_text(self, seq: int, octets: int) -> None:
        super().on_old_text(seq, max(0, octets - 1))


class IgnoresDataBeyondTheWindow(Receiver):
    """Says nothing about data beyond its window."""

    def on_old_text(self, seq: int, octets: int) -> None:
        super().on_old_text(seq, octets)
        if seq >= self.edge:
            self.ack_now = False


class KeepsDataBeyondTheWindow(Receiver):
    """Keeps whatever arrives."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        return seq + length > self.rcv_nxt or super().is_acceptable(seq, length)

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        edge = self.edge
        self.edge = max(edge, seq + len(payload))
        super().on_text(seq, payload, fin, now)
        self.edge = edge


class ShrinksTheWindow(Receiver):
    """Takes data held out of order off the window it has offered."""

    def update_edge(self) -> None:
        held = sum(right - left for left, right in self.buffer.blocks)
        self.edge = self.rcv_nxt + max(0, self.free_room() - held)


class _KeepsTheFront(Reassembly):
    def insert(self, seq: int, payload: bytes) -> None:
        known = self.rcv_nxt - seq
        if 0 < known < len(payload):
            seq, payload = self.rcv_nxt, payload[: len(payload) - known]
        super().insert(seq, payload)


class CutsOverlapsWrong(Receiver):
    """Of a segment it has in part, it takes the front for the new octets."""

    def __init__(self, config: EndpointConfig, irs: int) -> None:
        super().__init__(config, irs)
        self.buffer = _KeepsTheFront(irs + 1)


class _Forgets(Reassembly):
    def insert(self, seq: int, payload: bytes) -> None:
        if seq <= self.rcv_nxt < seq + len(payload):
            self.blocks = []
            self._starts.clear()
            self._pieces.clear()
        super().insert(seq, payload)


class Reneges(Receiver):
    """Drops what it holds when the gap below is filled."""

    def __init__(self, config: EndpointConfig, irs: int) -> None:
        super().__init__(config, irs)
        self.buffer = _Forgets(irs + 1)


MUTANTS = (
    Mutant(
        "snr-duplicate-acks-delayed", "SNR-RCV-001",
        "Out-of-order data is acknowledged with delay.",
        _receiving(DelaysDuplicateAcks),
    ),
    Mutant(
        "snr-filled-gap-acked-late", "SNR-RCV-002",
        "Data that fills a gap is acknowledged with delay.",
        _receiving(DelaysAcksOfFilledGaps), "hk99",
    ),
    Mutant(
        "snr-ack-delay-of-0.7-s", "SNR-RCV-003",
        "A lone segment is acknowledged after 0.7 seconds.",
        _receiving(DelaysTooLong),
    ),
    Mutant(
        "snr-ack-every-fourth", "SNR-RCV-004",
        "Only every fourth full-sized segment is acknowledged at once.",
        _receiving(StretchesAcks),
    ),
    Mutant(
        "snr-ack-number-goes-back", "SNR-RCV-005",
        "A duplicate acknowledgment takes back an octet.",
        _connecting(AcknowledgesBackwards),
    ),
    Mutant(
        "snr-acks-over-gaps", "SNR-RCV-006",
        "Acknowledgments skip the gaps.",
        _connecting(AcknowledgesOverGaps),
    ),
    Mutant(
        "snr-lowest-block-first", "SNR-RCV-007",
        "SACK blocks come in sequence order.",
        _receiving(ReportsLowestFirst), "hk99",
    ),
    Mutant(
        "snr-sack-every-other-ack", "SNR-RCV-008",
        "Every second duplicate acknowledgment has no SACK blocks.",
        _receiving(ReportsEveryOtherTime),
    ),
    Mutant(
        "snr-block-one-octet-long", "SNR-RCV-009",
        "SACK blocks end an octet too far.",
        _receiving(ReportsTooMuch),
    ),
    Mutant(
        "snr-blocks-not-joined", "SNR-RCV-010",
        "The first SACK block is the latest segment, not the block around it.",
        _receiving(ReportsSegments),
    ),
    Mutant(
        "snr-one-block-only", "SNR-RCV-011",
        "Only one SACK block is sent.",
        _receiving(ReportsOneBlock),
    ),
    Mutant(
        "snr-old-blocks-repeated", "SNR-RCV-012",
        "The further SACK blocks are the lowest ones.",
        _receiving(ReportsOldBlocks),
    ),
    Mutant(
        "snr-duplicates-ignored", "SNR-RCV-013",
        "Duplicate segments are not acknowledged.",
        _receiving(IgnoresDuplicates),
    ),
    Mutant(
        "snr-dsack-missing", "SNR-RCV-014",
        "Duplicates are not reported.",
        _receiving(ReportsNoDuplicates),
    ),
    Mutant(
        "snr-dsack-one-octet-short", "SNR-RCV-014",
        "D-SACK blocks end an octet too soon.",
        _receiving(ReportsShortDuplicates),
    ),
    Mutant(
        "snr-beyond-window-ignored", "SNR-RCV-015",
        "Data beyond the window is not answered.",
        _receiving(IgnoresDataBeyondTheWindow),
    ),
    Mutant(
        "snr-beyond-window-kept", "SNR-RCV-016",
        "Data beyond the window is kept and reported.",
        _receiving(KeepsDataBeyondTheWindow),
    ),
    Mutant(
        "snr-window-shrinks", "SNR-RCV-017",
        "Data held out of order is taken off the window.",
        _receiving(ShrinksTheWindow),
    ),
    Mutant(
        "snr-overlap-cut-wrong", "SNR-RCV-018",
        "An overlapping segment's front is delivered in place of its end.",
        _receiving(CutsOverlapsWrong),
    ),
    Mutant(
        "snr-receiver-reneges", "SNR-RCV-019",
        "Reported data is dropped when the gap below it is filled.",
        _receiving(Reneges),
    ),
)  # fmt: skip
