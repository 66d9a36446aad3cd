"""Mutants of security (RWBP-SEC)."""

from __future__ import annotations

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.mutants import mutant
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import unwrap


@mutant("rwbp-odd-flags-are-fatal", breaks="RWBP-SEC-003")
class DiesOfOddFlags(RwbpConnection):
    """A segment with SYN and FIN ends the connection."""

    def receive(self, segment: Segment, now: float) -> None:
        both = Flags.SYN | Flags.FIN
        if self.agreed and segment.flags & both == both:
            self.abort("SYN and FIN in one segment", now)
            return
        super().receive(segment, now)


@mutant("rwbp-no-flags-are-fatal", breaks="RWBP-SEC-003")
class ForgetsWithoutFlags(RwbpConnection):
    """A segment without flags makes the endpoint forget the connection."""

    def receive(self, segment: Segment, now: float) -> None:
        if self.agreed and not segment.flags:
            self._end("a segment without flags", now)
            return
        super().receive(segment, now)


@mutant("rwbp-blocks-beyond-believed", breaks="RWBP-SEC-004")
class BelievesBlocksBeyond(RwbpSender):
    """A block that ends beyond what has been sent counts."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        return max(ack.number, self.snd_una) < left < right


@mutant("rwbp-numbers-beyond-believed", breaks="RWBP-SEC-004")
class BelievesNumbersBeyond(RwbpConnection):
    """The acknowledgment of what has not been sent acknowledges everything that has."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if self.agreed and unwrap(segment.ack, sender.snd_una) > sender.snd_max:
            segment.ack = sender.snd_max & 0xFFFFFFFF
        return super()._take_ack(segment, seq, now)
