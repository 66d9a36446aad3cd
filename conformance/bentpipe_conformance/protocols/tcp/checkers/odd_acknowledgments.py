"""Checkers for acknowledgments that a sender has to survive (SNR-SAK-012 to -014 and -016).

They share one question: while nothing is known to be missing, did a strange acknowledgment make the
sender retransmit, reset or fall silent?
"""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.checkers import Context
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import REACTION_S, Flow
from bentpipe_conformance.protocols.tcp.replay.scoreboard import Repeat
from bentpipe_conformance.protocols.tcp.replay.users import is_own_reset

DUPLICATE_THRESHOLD = 3
"""Below it no duplicate acknowledgment may start recovery (RFC 5681 section 3.2)."""

SILENCE_S = 15.0
"""Silence with data outstanding that no first retransmission timeout explains (RFC 6298)."""

_SACK = 5


class Calm:
    """Tells which acknowledgments arrive while nothing is known to be missing."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self.flow = flow
        self.context = context
        self.board = context.prepared.scoreboard
        self._repeats: dict[int, Repeat] = {id(r.sent): r for r in self.board.repeats}
        self._held = {id(r.ack): bool(r.holes) or r.forgiven for r in self.board.reports}
        self._quiet_from = [(e.first.time, e.end.time if e.end else float("inf"))
                            for e in context.prepared.episodes]  # fmt: skip

    def at(self, ack: Ack) -> bool:
        """Whether ``ack`` came outside recovery, with no hole known and few duplicates."""
        if self._held[id(ack)] or ack.duplicates >= DUPLICATE_THRESHOLD:
            return False
        # An episode that began at the very time of this acknowledgment may be its doing.
        return not any(begin < ack.time <= end for begin, end in self._quiet_from)

    def harm(self, ack: Ack) -> Sent | None:
        """A retransmission that ``ack`` caused and no timer explains."""
        for sent in ack.responses:
            repeat = self._repeats.get(id(sent))
            if repeat is not None and not repeat.timer and not repeat.forgiven:
                return sent
        return None

    def reset(self, ack: Ack) -> Packet | None:
        """A RST with which the implementation itself answered ``ack``."""
        limit = ack.time + REACTION_S + self.context.timing_error
        return next(
            (
                p for p in self.flow.resets
                if p.outgoing and ack.time <= p.time <= limit and is_own_reset(self.flow, p)
            ),
            None,
        )  # fmt: skip

    def stall(self, ack: Ack) -> bool:
        """Whether the sender said nothing more although data stayed outstanding for long."""
        if self.flow.last_time - ack.time < SILENCE_S + 12 * self.board.rtt:
            return False
        if not ack.flight or any(a.advance and a.time > ack.time for a in self.flow.acks):
            return False
        return not any(sent.time > ack.time for sent in self.flow.sent)

    def judge(self, ack: Ack, what: str) -> Finding:
        """The finding about one strange acknowledgment."""
        harmed, reset = self.harm(ack), self.reset(ack)
        nothing = "no retransmission, no reset, no stall"
        if harmed is not None:
            return self.context.violated(
                f"{what} made the sender retransmit [{harmed.start}, {harmed.end})",
                harmed,
                ack,
                expected=nothing,
                actual=f"a retransmission of offset {harmed.start}",
            )
        if reset is not None:
            return self.context.violated(
                f"{what} made the sender reset the connection", ack, expected=nothing, actual="RST"
            )
        if self.stall(ack):
            return self.context.violated(
                f"the sender fell silent after {what}",
                ack,
                expected=nothing,
                actual=f"nothing was sent for {SILENCE_S:.0f} s with data outstanding",
            )
        return self.context.holds(f"{what} did no harm", ack)


def _impossible(block: Range, ack: Ack) -> bool:
    left, right = block
    return left >= right or left >= ack.max or right <= min(ack.una, ack.ack)


@checker("SNR-SAK-012")
def impossible_blocks_do_no_harm(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by acknowledgments all of whose blocks are empty, inverted or out of range."""
    if not flow.handshake.sack or not any(ack.invalid_blocks for ack in flow.acks):
        return
    calm = Calm(flow, context)
    for ack in flow.acks:
        if not ack.invalid_blocks or ack.blocks or ack.dsack or not ack.acceptable:
            continue
        if all(_impossible(block, ack) for block in ack.invalid_blocks) and calm.at(ack):
            left, right = ack.invalid_blocks[0]
            yield calm.judge(ack, f"the impossible SACK block [{left}, {right})")


@checker("SNR-SAK-013")
def malformed_option_does_no_harm(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by acknowledgments with a SACK option of impossible length."""
    strange = [ack for ack in flow.acks if _malformed_length(ack.packet.data) is not None]
    if not strange:
        return
    calm = Calm(flow, context)
    for ack in strange:
        if calm.at(ack):
            yield calm.judge(ack, f"a SACK option of length {_malformed_length(ack.packet.data)}")


def _malformed_length(packet: bytes) -> int | None:
    """The length field of the first SACK option that is impossible, None when there is none."""
    header = (packet[0] & 0xF) * 4
    end = header + (packet[header + 12] >> 4) * 4
    at = header + 20
    while at < end and packet[at] != 0:
        if packet[at] == 1:
            at += 1
            continue
        if at + 1 >= end:
            return 0 if packet[at] == _SACK else None
        size = packet[at + 1]
        if packet[at] == _SACK and (size < 10 or (size - 2) % 8 or at + size > end):
            return size
        if size < 2:
            return None
        at += size
    return None


@checker("SNR-SAK-014")
def duplicate_report_is_no_evidence(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by acknowledgments that carry a D-SACK block and report nothing else."""
    if not flow.handshake.sack or not any(ack.dsack for ack in flow.acks):
        return
    calm = Calm(flow, context)
    for ack in flow.acks:
        if ack.dsack and not ack.blocks and ack.acceptable and calm.at(ack):
            yield calm.judge(ack, f"the D-SACK block [{ack.dsack[0]}, {ack.dsack[1]})")


@checker("SNR-SAK-016")
def blocks_not_negotiated_are_ignored(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by SACK blocks on a connection that did not negotiate SACK."""
    if flow.handshake.sack or not any(
        ack.packet.content and ack.packet.content.sack for ack in flow.acks
    ):
        return
    calm = Calm(flow, context)
    for ack in flow.acks:
        tcp = ack.packet.content
        if tcp is not None and tcp.sack and ack.acceptable and calm.at(ack):
            yield calm.judge(ack, "a SACK block that was not negotiated")
