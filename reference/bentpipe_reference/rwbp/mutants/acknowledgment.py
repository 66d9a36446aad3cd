"""Mutants of acknowledgments (RWBP-AK, section 7)."""

from __future__ import annotations

from bentpipe_reference.common.ranges import Range
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.mutants import Altering, mutant
from bentpipe_reference.rwbp.reassembly import RunReassembly
from bentpipe_reference.rwbp.receiver import BLOCKS, RwbpReceiver
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.segment import Flags, Segment


@mutant("rwbp-interval-of-its-own", breaks="RWBP-AK-001")
class IntervalOfItsOwn(RwbpReceiver):
    """Every eighth segment is acknowledged, whatever the peer asks for."""

    def on_counted(self, *, orderly: bool, now: float) -> None:
        """See :class:`RwbpReceiver`."""
        self.interval = 8
        super().on_counted(orderly=orderly, now=now)


@mutant("rwbp-one-too-many", breaks="RWBP-AK-001")
class OneTooMany(RwbpReceiver):
    """An acknowledgment leaves when N + 1 segments have arrived."""

    def on_counted(self, *, orderly: bool, now: float) -> None:
        """See :class:`RwbpReceiver`."""
        interval = self.interval
        self.interval = interval + 1
        super().on_counted(orderly=orderly, now=now)
        self.interval = interval


@mutant("rwbp-tail-after-a-quarter", breaks="RWBP-AK-002")
class TailAfterAQuarter(RwbpReceiver):
    """A tail is acknowledged after a quarter of a second."""

    def delayed_ack_interval(self) -> float:
        """See :class:`RwbpReceiver`."""
        return 0.25


@mutant("rwbp-tail-after-each", breaks="RWBP-AK-002")
class TailAfterEach(RwbpReceiver):
    """Every segment starts the acknowledgment timer anew."""

    def on_counted(self, *, orderly: bool, now: float) -> None:
        """See :class:`RwbpReceiver`."""
        self.ack_deadline = None
        super().on_counted(orderly=orderly, now=now)


@mutant("rwbp-disorder-waits", breaks="RWBP-AK-003")
class DisorderWaits(RwbpReceiver):
    """What is not orderly counts like what is."""

    def on_counted(self, *, orderly: bool, now: float) -> None:
        """See :class:`RwbpReceiver`."""
        super().on_counted(orderly=True, now=now)


@mutant("rwbp-growth-is-disorder", breaks="RWBP-AK-004")
class GrowthIsDisorder(RwbpReceiver):
    """While a run is held every segment is acknowledged at once, as in TCP."""

    def on_counted(self, *, orderly: bool, now: float) -> None:
        """See :class:`RwbpReceiver`."""
        super().on_counted(orderly=orderly and not self.buffer.runs, now=now)


@mutant("rwbp-duplicates-are-silent", breaks="RWBP-AK-003")
class DuplicatesAreSilent(RwbpConnection):
    """What lies below the window is discarded without an answer."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        due = receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        if self.agreed and segment.payload:
            receiver.ack_now = due


@mutant("rwbp-every-second-segment", breaks="RWBP-AK-004")
class EverySecondSegment(RwbpReceiver):
    """Every second segment is acknowledged, as in TCP."""

    def on_counted(self, *, orderly: bool, now: float) -> None:
        """See :class:`RwbpReceiver`."""
        self.interval = min(2, self.interval)
        super().on_counted(orderly=orderly, now=now)


@mutant("rwbp-three-blocks", breaks="RWBP-AK-005")
class ThreeBlocks(RwbpReceiver):
    """No more than three runs are reported, as if there were timestamps."""

    def sack_blocks_to_send(self, most: int = BLOCKS) -> tuple[Range, ...]:
        """See :class:`RwbpReceiver`."""
        return super().sack_blocks_to_send(min(3, most))


@mutant("rwbp-ascending-blocks", breaks="RWBP-AK-006")
class AscendingBlocks(RwbpReceiver):
    """Blocks are listed from the lowest run upwards."""

    def sack_blocks_to_send(self, most: int = BLOCKS) -> tuple[Range, ...]:
        """See :class:`RwbpReceiver`."""
        return tuple(sorted(super().sack_blocks_to_send(most)))


@mutant("rwbp-highest-unless-listed", breaks="RWBP-AK-006")
class HighestUnlessListed(RwbpReceiver):
    """The second block is the highest run, and none where that is the first block."""

    def first_blocks(self, runs: tuple[Range, ...]) -> tuple[Range, ...]:
        """See :class:`RwbpReceiver`."""
        found = super().first_blocks(runs)
        return found[:1] if found[0] == runs[-1] else found


@mutant("rwbp-no-rotation", breaks="RWBP-AK-006")
class NoRotation(RwbpReceiver):
    """Behind the first two blocks the lowest runs are listed, always."""

    def rotated(self, others: list[Range]) -> list[Range]:
        """See :class:`RwbpReceiver`."""
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


@mutant("rwbp-blocks-of-segments", breaks="RWBP-AK-007")
class BlocksOfSegments(RwbpReceiver):
    """The first block is the segment that has arrived, not its run."""

    def first_blocks(self, runs: tuple[Range, ...]) -> tuple[Range, ...]:
        """See :class:`RwbpReceiver`."""
        found = super().first_blocks(runs)
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


@mutant("rwbp-data-is-enough", breaks="RWBP-AK-008")
class DataIsEnough(RwbpConnection):
    """A segment with data replaces an acknowledgment though runs are held."""

    def is_complete(self, receiver: RwbpReceiver) -> bool:
        """See :class:`RwbpConnection`."""
        return True


@mutant("rwbp-runs-backwards", breaks="RWBP-EC-009")
class RunsBackwards(RunReassembly):
    """What is held behind a hole is delivered backwards."""

    def insert(self, seq: int, payload: bytes) -> None:
        """See :class:`RunReassembly`."""
        super().insert(seq, payload[::-1] if seq > self.rcv_nxt else payload)
