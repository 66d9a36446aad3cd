"""Mutants of acknowledgments (RWBP-AK, section 7)."""

from __future__ import annotations

from bentpipe_reference.common.ranges import Range
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.mutants import Altering, mutant
from bentpipe_reference.rwbp.reassembly import RunReassembly
from bentpipe_reference.rwbp.receiver import BLOCKS, RwbpReceiver
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.segment import Flags, Segment


@mutant("rwbp-interval-of-its-own", "on_counted", breaks="RWBP-AK-001")
def interval_of_its_own(self: RwbpReceiver, *, orderly: bool, now: float) -> None:
    """Every eighth segment is acknowledged, whatever the peer asks for."""
    self.interval = 8
    RwbpReceiver.on_counted(self, orderly=orderly, now=now)


@mutant("rwbp-one-too-many", "on_counted", breaks="RWBP-AK-001")
def one_too_many(self: RwbpReceiver, *, orderly: bool, now: float) -> None:
    """An acknowledgment leaves when N + 1 segments have arrived."""
    interval = self.interval
    self.interval = interval + 1
    RwbpReceiver.on_counted(self, orderly=orderly, now=now)
    self.interval = interval


@mutant("rwbp-tail-after-a-quarter", "delayed_ack_interval", breaks="RWBP-AK-002")
def tail_after_a_quarter(self: RwbpReceiver) -> float:
    """A tail is acknowledged after a quarter of a second."""
    return 0.25


@mutant("rwbp-tail-after-each", "on_counted", breaks="RWBP-AK-002")
def tail_after_each(self: RwbpReceiver, *, orderly: bool, now: float) -> None:
    """Every segment starts the acknowledgment timer anew."""
    self.ack_deadline = None
    RwbpReceiver.on_counted(self, orderly=orderly, now=now)


@mutant("rwbp-disorder-waits", "on_counted", breaks="RWBP-AK-003")
def disorder_waits(self: RwbpReceiver, *, orderly: bool, now: float) -> None:
    """What is not orderly counts like what is."""
    RwbpReceiver.on_counted(self, orderly=True, now=now)


@mutant("rwbp-growth-is-disorder", "on_counted", breaks="RWBP-AK-004")
def growth_is_disorder(self: RwbpReceiver, *, orderly: bool, now: float) -> None:
    """While a run is held every segment is acknowledged at once, as in TCP."""
    RwbpReceiver.on_counted(self, orderly=orderly and not self.buffer.runs, now=now)


@mutant("rwbp-duplicates-are-silent", "_receive_unacceptable", breaks="RWBP-AK-003")
def duplicates_are_silent(
    self: RwbpConnection, segment: Segment, seq: int, receiver: Receiver, now: float
) -> None:
    """What lies below the window is discarded without an answer."""
    due = receiver.ack_now
    RwbpConnection._receive_unacceptable(self, segment, seq, receiver, now)
    if self.agreed and segment.payload:
        receiver.ack_now = due


@mutant("rwbp-every-second-segment", "on_counted", breaks="RWBP-AK-004")
def every_second_segment(self: RwbpReceiver, *, orderly: bool, now: float) -> None:
    """Every second segment is acknowledged, as in TCP."""
    self.interval = min(2, self.interval)
    RwbpReceiver.on_counted(self, orderly=orderly, now=now)


@mutant("rwbp-three-blocks", "sack_blocks_to_send", breaks="RWBP-AK-005")
def three_blocks(self: RwbpReceiver, most: int = BLOCKS) -> tuple[Range, ...]:
    """No more than three runs are reported, as if there were timestamps."""
    return RwbpReceiver.sack_blocks_to_send(self, min(3, most))


@mutant("rwbp-ascending-blocks", "sack_blocks_to_send", breaks="RWBP-AK-006")
def ascending_blocks(self: RwbpReceiver, most: int = BLOCKS) -> tuple[Range, ...]:
    """Blocks are listed from the lowest run upwards."""
    return tuple(sorted(RwbpReceiver.sack_blocks_to_send(self, most)))


@mutant("rwbp-highest-unless-listed", "first_blocks", breaks="RWBP-AK-006")
def highest_unless_listed(self: RwbpReceiver, runs: tuple[Range, ...]) -> tuple[Range, ...]:
    """The second block is the highest run, and none where that is the first block."""
    found = RwbpReceiver.first_blocks(self, runs)
    return found[:1] if found[0] == runs[-1] else found


@mutant("rwbp-no-rotation", "rotated", breaks="RWBP-AK-006")
def no_rotation(self: RwbpReceiver, others: list[Range]) -> list[Range]:
    """Behind the first two blocks the lowest runs are listed, always."""
    return others


@mutant("rwbp-duplicate-blocks", breaks="RWBP-AK-007")
class DuplicateBlocks(RwbpReceiver):
    """The first block reports a duplicate, as in RFC 2883."""

    duplicate: Range | None = None

    def on_refused(self, seq: int) -> None:
        """See :class:`RwbpReceiver`."""
        super().on_refused(seq)
        self.duplicate = (seq, seq + 100)

    def sack_blocks_to_send(self, most: int = BLOCKS) -> tuple[Range, ...]:
        """See :class:`RwbpReceiver`."""
        first, self.duplicate = self.duplicate, None
        blocks = super().sack_blocks_to_send(most)
        return blocks if first is None else (first, *blocks)[:most]


@mutant("rwbp-blocks-of-segments", "first_blocks", breaks="RWBP-AK-007")
def blocks_of_segments(self: RwbpReceiver, runs: tuple[Range, ...]) -> tuple[Range, ...]:
    """The first block is the segment that has arrived, not its run."""
    found = RwbpReceiver.first_blocks(self, runs)
    left, right = found[0]
    if self.last is not None and left < self.last < right:
        return ((self.last, right), *found[1:])
    return found


@mutant("rwbp-data-with-old-numbers", breaks="RWBP-AK-008")
class DataWithOldNumbers(Altering):
    """A segment with data acknowledges what the segment before acknowledged."""

    said: int | None = None

    def alter(self, segment: Segment, now: float) -> None:
        """See :class:`Altering`."""
        if segment.flags & Flags.SYN:
            return
        said, self.said = self.said, segment.ack
        if segment.payload and said is not None:
            segment.ack = said


@mutant("rwbp-data-is-enough", "is_complete", breaks="RWBP-AK-008")
def data_is_enough(self: RwbpConnection, receiver: RwbpReceiver) -> bool:
    """A segment with data replaces an acknowledgment though runs are held."""
    return True


@mutant("rwbp-runs-backwards", "insert", breaks="RWBP-EC-009")
def runs_backwards(self: RunReassembly, seq: int, payload: bytes) -> None:
    """What is held behind a hole is delivered backwards."""
    RunReassembly.insert(self, seq, payload[::-1] if seq > self.rcv_nxt else payload)
