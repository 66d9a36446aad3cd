"""Mutants of error control (RWBP-EC, section 8)."""

from __future__ import annotations

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.mutants import Altering, mutant
from bentpipe_reference.rwbp.outstanding import Outgoing
from bentpipe_reference.rwbp.reassembly import RunReassembly
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Segment
from bentpipe_reference.tcp.wire.sequence import unwrap


@mutant("rwbp-literal-list", breaks="RWBP-EC-002")
class LiteralList(RwbpSender):
    """Lost is whatever was first sent before the right edge, repaired or not: ZB03's list."""

    def take_for_lost(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        bound = self.loss_bound()
        for segment in self.segments.below(self.snd_nxt):
            if segment.first < bound and not segment.copies:
                segment.suspect, segment.repaired = True, None
                self.segments.ask_for(segment, 1)


@mutant("rwbp-last-match", breaks="RWBP-EC-002")
class LastMatch(RwbpSender):
    """The right edge counts by its last transmission, not its first."""

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        """See :class:`RwbpSender`."""
        for segment in arrived:
            self.note_first(segment.latest)
        super().on_arrivals(arrived, now)


@mutant("rwbp-one-loss-at-a-time", breaks="RWBP-EC-002")
class OneLossAtATime(RwbpSender):
    """Of several losses that the right edge reveals only the lowest is repaired."""

    def take_for_lost(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        for segment in self.segments.sent_before(self.loss_bound())[:1]:
            segment.suspect, segment.repaired = True, None
            self.segments.ask_for(segment, 1)


@mutant("rwbp-first-transmissions-only", breaks="RWBP-EC-002")
class FirstTransmissionsOnly(RwbpSender):
    """A repair that is lost as well is not noticed by order."""

    def take_for_lost(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        for segment in self.segments.sent_before(self.loss_bound()):
            if segment.first == segment.latest:
                segment.suspect, segment.repaired = True, None
                self.segments.ask_for(segment, 1)


@mutant("rwbp-partial-acknowledgments", breaks="RWBP-EC-003")
class PartialAcknowledgments(RwbpSender):
    """What fills a hole below the right edge has the next hole filled again, as in NewReno."""

    def on_ack(self, ack: Ack, now: float) -> None:
        """See :class:`RwbpSender`."""
        before, una = self.loss_bound(), self.snd_una
        super().on_ack(ack, now)
        lowest = self.segments.lowest()
        partial = ack.blocks and una < self.snd_una and self.loss_bound() == before
        if partial and lowest is not None and not lowest.copies:
            self.segments.ask_for(lowest, 1)


@mutant("rwbp-new-data-first", breaks="RWBP-EC-004")
class NewDataFirst(RwbpSender):
    """What is new goes before what awaits retransmission."""

    def use_turn(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        if self.segments.due() is not None and self.next_may_be_sent():
            self._transmit_segment(self._cut(), now)
        else:
            super().use_turn(now)


@mutant("rwbp-highest-repair-first", breaks="RWBP-EC-004")
class HighestRepairFirst(RwbpSender):
    """Of what awaits retransmission the highest goes first."""

    def use_turn(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        waiting = [item for item in self.segments.below(self.snd_nxt) if item.copies]
        if len(waiting) < 2:
            super().use_turn(now)
            return
        segment = waiting[-1]
        segment.copies -= 1
        if segment.suspect and segment.repaired is None:
            segment.repaired = now
        self._transmit_segment(segment, now)


@mutant("rwbp-tail-timer", breaks="RWBP-EC-005")
class TailTimer(RwbpSender):
    """The timer expires for nothing but the last of what there is to send."""

    def on_timeout(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        if self.data_end is None:
            self.restart_rto(now)
        else:
            super().on_timeout(now)


@mutant("rwbp-forgets-one-octet", breaks="RWBP-EC-006")
class ForgetsOneOctet(RwbpSender):
    """The last octet of what is sent again is another one."""

    def _transmit_segment(self, segment: Outgoing, now: float) -> None:
        if segment.latest and segment.payload:
            segment.payload = segment.payload[:-1] + bytes((segment.payload[-1] ^ 1,))
        super()._transmit_segment(segment, now)


@mutant("rwbp-one-copy", breaks="RWBP-EC-007")
class OneCopy(RwbpSender):
    """A timeout sends one copy."""

    def timeout_copies(self) -> int:
        """See :class:`RwbpSender`."""
        return 1


@mutant("rwbp-three-copies", breaks="RWBP-EC-007")
class ThreeCopies(RwbpSender):
    """A timeout sends three copies."""

    def timeout_copies(self) -> int:
        """See :class:`RwbpSender`."""
        return 3


@mutant("rwbp-timeout-of-all", breaks="RWBP-EC-007")
class TimeoutOfAll(RwbpSender):
    """A timeout sends the next outstanding segment, too."""

    def on_timeout(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        super().on_timeout(now)
        for segment in self.segments.below(self.snd_nxt)[1:2]:
            if not segment.copies:
                self.segments.ask_for(segment, 1)


@mutant("rwbp-reneges", breaks="RWBP-EC-008")
class Reneges(RunReassembly):
    """The only run is discarded when the hole below it is filled."""

    def insert(self, seq: int, payload: bytes) -> None:
        """See :class:`RunReassembly`."""
        if len(self.runs) == 1 and seq == self.rcv_nxt:
            self._held.clear()
            self._pieces.clear()
        super().insert(seq, payload)


@mutant("rwbp-keeps-what-blocks-report", breaks="RWBP-EC-010")
class KeepsWhatBlocksReport(RwbpSender):
    """Blocks move the right edge, and what they report counts as outstanding all the same."""

    def arrivals(self, ack: Ack) -> list[Outgoing]:
        """See :class:`RwbpSender`."""
        for left, right in ack.blocks:
            if self.accept_sack_block(left, right, ack):
                for segment in self.segments.within(left, right):
                    self.note_first(segment.first)
        return self.segments.below(ack.number) if ack.number > self.snd_una else []


@mutant("rwbp-cuts-anew", breaks="RWBP-EC-011")
class CutsAnew(RwbpSender):
    """What is sent again leaves in two halves."""

    def _transmit_segment(self, segment: Outgoing, now: float) -> None:
        if not segment.latest or len(segment.payload) < 2:
            super()._transmit_segment(segment, now)
            return
        whole, middle = segment.payload, len(segment.payload) // 2
        segment.payload = whole[:middle]
        super()._transmit_segment(segment, now)
        segment.payload = whole


@mutant("rwbp-repairs-without-fin", breaks="RWBP-EC-011")
class RepairsWithoutFin(RwbpSender):
    """A segment that carried FIN with data is sent again without it."""

    def _transmit_segment(self, segment: Outgoing, now: float) -> None:
        fin = segment.fin
        if segment.latest and segment.payload:
            segment.fin = False
        super()._transmit_segment(segment, now)
        segment.fin = fin


@mutant("rwbp-three-duplicates", breaks="RWBP-EC-012")
class ThreeDuplicates(RwbpSender):
    """Three acknowledgments of the same number have the lowest segment sent again."""

    duplicates = 0

    def on_ack(self, ack: Ack, now: float) -> None:
        """See :class:`RwbpSender`."""
        same = ack.number == self.snd_una and not ack.blocks
        self.duplicates = self.duplicates + 1 if same else 0
        super().on_ack(ack, now)
        lowest = self.segments.lowest()
        if self.duplicates == 3 and lowest is not None and not lowest.copies:
            self.segments.ask_for(lowest, 1)


@mutant("rwbp-believes-any-block", breaks="RWBP-EC-013")
class BelievesAnyBlock(RwbpSender):
    """Of a block beyond what was sent the part that was sent counts."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        """See :class:`RwbpSender`."""
        return left < right


@mutant("rwbp-one-bad-block-spoils-all", breaks="RWBP-EC-013")
class OneBadBlockSpoilsAll(RwbpSender):
    """An untrue block has all blocks of its segment ignored."""

    def arrivals(self, ack: Ack) -> list[Outgoing]:
        """See :class:`RwbpSender`."""
        if not all(self.accept_sack_block(*block, ack) for block in ack.blocks):
            return self.segments.below(ack.number) if ack.number > self.snd_una else []
        return super().arrivals(ack)


@mutant("rwbp-half-a-window-after-a-loss", breaks="RWBP-EC-014")
class HalfAWindowAfterALoss(RwbpSender):
    """After a loss no more than four segments are outstanding."""

    lossy = False

    def take_for_lost(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        self.lossy = True
        super().take_for_lost(now)

    def next_may_be_sent(self) -> bool:
        """See :class:`RwbpSender`."""
        return super().next_may_be_sent() and not (self.lossy and self.segments.count >= 4)


@mutant("rwbp-swallows-unsent-acknowledgments", breaks="RWBP-EC-015")
class SwallowsUnsentAcknowledgments(RwbpConnection):
    """Acknowledgments of what was never sent are discarded without an answer."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if self.agreed and unwrap(segment.ack, sender.snd_una) > sender.snd_max:
            return False
        return super()._take_ack(segment, seq, now)


@mutant("rwbp-old-acknowledgments-count-for-nothing", breaks="RWBP-EC-015")
class OldAcknowledgmentsIgnored(RwbpSender):
    """Blocks of an acknowledgment below SND.UNA count for nothing."""

    def on_ack(self, ack: Ack, now: float) -> None:
        """See :class:`RwbpSender`."""
        if ack.number >= self.snd_una:
            super().on_ack(ack, now)


@mutant("rwbp-repairs-with-old-numbers", breaks="RWBP-EC-011")
class RepairWithOldNumbers(Altering):
    """A retransmission carries the acknowledgment number of the first transmission."""

    said: dict[int, int] | None = None

    def alter(self, segment: Segment, now: float) -> None:
        """See :class:`Altering`."""
        if segment.payload:
            self.said = self.said if self.said is not None else {}
            segment.ack = self.said.setdefault(segment.seq, segment.ack)
