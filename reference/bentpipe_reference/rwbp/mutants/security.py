"""Mutants of security (RWBP-SEC)."""

from __future__ import annotations

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.mutants import mutant
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import unwrap


@mutant("rwbp-odd-flags-are-fatal", "receive", breaks="RWBP-SEC-003")
def dies_of_odd_flags(self: RwbpConnection, segment: Segment, now: float) -> None:
    """A segment with SYN and FIN ends the connection."""
    both = Flags.SYN | Flags.FIN
    if self.agreed and segment.flags & both == both:
        self.abort("SYN and FIN in one segment", now)
        return
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-no-flags-are-fatal", "receive", breaks="RWBP-SEC-003")
def forgets_without_flags(self: RwbpConnection, segment: Segment, now: float) -> None:
    """A segment without flags makes the endpoint forget the connection."""
    if self.agreed and not segment.flags:
        self._end("a segment without flags", now)
        return
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-blocks-beyond-believed", "accept_sack_block", breaks="RWBP-SEC-004")
def believes_blocks_beyond(self: RwbpSender, left: int, right: int, ack: Ack) -> bool:
    """A block that ends beyond what has been sent counts."""
    return max(ack.number, self.snd_una) < left < right


@mutant("rwbp-numbers-beyond-believed", "_take_ack", breaks="RWBP-SEC-004")
def believes_numbers_beyond(self: RwbpConnection, segment: Segment, seq: int, now: float) -> bool:
    """The acknowledgment of what has not been sent acknowledges everything that has."""
    sender = self.sender
    if self.agreed and unwrap(segment.ack, sender.snd_una) > sender.snd_max:
        segment.ack = sender.snd_max & 0xFFFFFFFF
    return RwbpConnection._take_ack(self, segment, seq, now)
