"""Mutants of error control (RWBP-EC, section 8)."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.mutants import Altering, mutant
from bentpipe_reference.rwbp.outstanding import Outgoing
from bentpipe_reference.rwbp.reassembly import RunReassembly
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Segment
from bentpipe_reference.tcp.wire.sequence import unwrap


def _take_for_lost(sender: RwbpSender, segments: Iterable[Outgoing]) -> None:
    """Have these repaired once."""
    for segment in segments:
        segment.suspect, segment.repaired = True, None
        sender.segments.ask_for(segment, 1)


@mutant("rwbp-literal-list", "take_for_lost", breaks="RWBP-EC-002")
def literal_list(self: RwbpSender, now: float) -> None:
    """Lost is whatever was first sent before the right edge, repaired or not: ZB03's list."""
    bound, outstanding = self.loss_bound(), self.segments.below(self.snd_nxt)
    _take_for_lost(self, (s for s in outstanding if s.first < bound and not s.copies))


@mutant("rwbp-last-match", "on_arrivals", breaks="RWBP-EC-002")
def last_match(self: RwbpSender, arrived: list[Outgoing], now: float) -> None:
    """The right edge counts by its last transmission, not its first."""
    self.note_firsts(segment.latest for segment in arrived)
    RwbpSender.on_arrivals(self, arrived, now)


@mutant("rwbp-one-loss-at-a-time", "take_for_lost", breaks="RWBP-EC-002")
def one_loss_at_a_time(self: RwbpSender, now: float) -> None:
    """Of several losses that the right edge reveals only the lowest is repaired."""
    _take_for_lost(self, self.segments.sent_before(self.loss_bound())[:1])


@mutant("rwbp-first-transmissions-only", "take_for_lost", breaks="RWBP-EC-002")
def first_transmissions_only(self: RwbpSender, now: float) -> None:
    """A repair that is lost as well is not noticed by order."""
    found = self.segments.sent_before(self.loss_bound())
    _take_for_lost(self, (segment for segment in found if segment.first == segment.latest))


@mutant("rwbp-partial-acknowledgments", "on_ack", breaks="RWBP-EC-003")
def partial_acknowledgments(self: RwbpSender, ack: Ack, now: float) -> None:
    """What fills a hole below the right edge has the next hole filled again, as in NewReno."""
    before, una = self.loss_bound(), self.snd_una
    RwbpSender.on_ack(self, ack, now)
    lowest = self.segments.lowest()
    partial = ack.blocks and una < self.snd_una and self.loss_bound() == before
    if partial and lowest is not None and not lowest.copies:
        self.segments.ask_for(lowest, 1)


@mutant("rwbp-new-data-first", "use_turn", breaks="RWBP-EC-004")
def new_data_first(self: RwbpSender, now: float) -> None:
    """What is new goes before what awaits retransmission."""
    if self.segments.due() is not None and self.next_may_be_sent():
        self._transmit_segment(self._cut(), now)
    else:
        RwbpSender.use_turn(self, now)


@mutant("rwbp-highest-repair-first", "use_turn", breaks="RWBP-EC-004")
def highest_repair_first(self: RwbpSender, now: float) -> None:
    """Of what awaits retransmission the highest goes first."""
    waiting = [item for item in self.segments.below(self.snd_nxt) if item.copies]
    if len(waiting) < 2:
        RwbpSender.use_turn(self, now)
        return
    segment = waiting[-1]
    segment.copies -= 1
    if segment.suspect and segment.repaired is None:
        segment.repaired = now
    self._transmit_segment(segment, now)


@mutant("rwbp-tail-timer", "on_timeout", breaks="RWBP-EC-005")
def tail_timer(self: RwbpSender, now: float) -> None:
    """The timer expires for nothing but the last of what there is to send."""
    if self.data_end is None:
        self.restart_rto(now)
    else:
        RwbpSender.on_timeout(self, now)


@mutant("rwbp-forgets-one-octet", "_transmit_segment", breaks="RWBP-EC-006")
def forgets_one_octet(self: RwbpSender, segment: Outgoing, now: float) -> None:
    """The last octet of what is sent again is another one."""
    if segment.latest and segment.payload:
        segment.payload = segment.payload[:-1] + bytes((segment.payload[-1] ^ 1,))
    RwbpSender._transmit_segment(self, segment, now)


@mutant("rwbp-one-copy", "timeout_copies", breaks="RWBP-EC-007")
def one_copy(self: RwbpSender) -> int:
    """A timeout sends one copy."""
    return 1


@mutant("rwbp-three-copies", "timeout_copies", breaks="RWBP-EC-007")
def three_copies(self: RwbpSender) -> int:
    """A timeout sends three copies."""
    return 3


@mutant("rwbp-timeout-of-all", "on_timeout", breaks="RWBP-EC-007")
def timeout_of_all(self: RwbpSender, now: float) -> None:
    """A timeout sends the next outstanding segment, too."""
    RwbpSender.on_timeout(self, now)
    for segment in self.segments.below(self.snd_nxt)[1:2]:
        if not segment.copies:
            self.segments.ask_for(segment, 1)


@mutant("rwbp-reneges", "insert", breaks="RWBP-EC-008")
def reneges(self: RunReassembly, seq: int, payload: bytes) -> None:
    """The only run is discarded when the hole below it is filled."""
    if len(self.runs) == 1 and seq == self.rcv_nxt:
        self._held.clear()
        self._pieces.clear()
    RunReassembly.insert(self, seq, payload)


@mutant("rwbp-keeps-what-blocks-report", "arrivals", breaks="RWBP-EC-010")
def keeps_what_blocks_report(self: RwbpSender, ack: Ack) -> list[Outgoing]:
    """Blocks move the right edge, and what they report counts as outstanding all the same."""
    for left, right in ack.blocks:
        if self.accept_sack_block(left, right, ack):
            self.note_firsts(segment.first for segment in self.segments.within(left, right))
    return self.segments.below(ack.number) if ack.number > self.snd_una else []


@mutant("rwbp-cuts-anew", "_transmit_segment", breaks="RWBP-EC-011")
def cuts_anew(self: RwbpSender, segment: Outgoing, now: float) -> None:
    """What is sent again leaves in two halves."""
    if not segment.latest or len(segment.payload) < 2:
        RwbpSender._transmit_segment(self, segment, now)
        return
    whole, middle = segment.payload, len(segment.payload) // 2
    segment.payload = whole[:middle]
    RwbpSender._transmit_segment(self, segment, now)
    segment.payload = whole


@mutant("rwbp-repairs-without-fin", "_transmit_segment", breaks="RWBP-EC-011")
def repairs_without_fin(self: RwbpSender, segment: Outgoing, now: float) -> None:
    """A segment that carried FIN with data is sent again without it."""
    fin = segment.fin
    if segment.latest and segment.payload:
        segment.fin = False
    RwbpSender._transmit_segment(self, segment, now)
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


@mutant("rwbp-believes-any-block", "accept_sack_block", breaks="RWBP-EC-013")
def believes_any_block(self: RwbpSender, left: int, right: int, ack: Ack) -> bool:
    """Of a block beyond what was sent the part that was sent counts."""
    return left < right


@mutant("rwbp-one-bad-block-spoils-all", "arrivals", breaks="RWBP-EC-013")
def one_bad_block_spoils_all(self: RwbpSender, ack: Ack) -> list[Outgoing]:
    """An untrue block has all blocks of its segment ignored."""
    if not all(self.accept_sack_block(*block, ack) for block in ack.blocks):
        return self.segments.below(ack.number) if ack.number > self.snd_una else []
    return RwbpSender.arrivals(self, ack)


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


@mutant("rwbp-swallows-unsent-acknowledgments", "_take_ack", breaks="RWBP-EC-015")
def swallows_unsent_acknowledgments(
    self: RwbpConnection, segment: Segment, seq: int, now: float
) -> bool:
    """Acknowledgments of what was never sent are discarded without an answer."""
    sender = self.sender
    if self.agreed and unwrap(segment.ack, sender.snd_una) > sender.snd_max:
        return False
    return RwbpConnection._take_ack(self, segment, seq, now)


@mutant("rwbp-old-acknowledgments-count-for-nothing", "on_ack", breaks="RWBP-EC-015")
def old_acknowledgments_ignored(self: RwbpSender, ack: Ack, now: float) -> None:
    """Blocks of an acknowledgment below SND.UNA count for nothing."""
    if ack.number >= self.snd_una:
        RwbpSender.on_ack(self, ack, now)


@mutant("rwbp-repairs-with-old-numbers", breaks="RWBP-EC-011")
class RepairWithOldNumbers(Altering):
    """A retransmission carries the acknowledgment number of the first transmission."""

    said: dict[int, int] | None = None

    def alter(self, segment: Segment, now: float) -> None:
        """See :class:`Altering`."""
        if segment.payload:
            self.said = self.said if self.said is not None else {}
            segment.ack = self.said.setdefault(segment.seq, segment.ack)
