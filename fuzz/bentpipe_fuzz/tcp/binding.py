"""TCP as a campaign sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN, Tcp, nearest

from bentpipe_fuzz.campaign.binding import Binding, Piece
from bentpipe_fuzz.tcp.conversations import MODES
from bentpipe_fuzz.tcp.player import VERBS, Player

ECHO = 7


def label(segment: Tcp) -> str:
    """Flags, and what else makes a kind of segment."""
    told = segment.flag_names
    if segment.size:
        told += "+data"
    if segment.sack:
        told += "+sack"
    if not segment.window and not segment.flags & RST:
        told += "+zero-window"
    sound = segment.checksum_ok and segment.options_ok and segment.offset_ok
    return told if sound else f"malformed {told}"


_AFTER_FIN = {
    "": "", "established": "fin-wait", "close-wait": "last-ack",
}  # fmt: skip


def follow(state: str, segment: Tcp, outgoing: bool) -> str:
    """The state of the connection that was opened last, as its handshake and FINs show it."""
    if segment.flags & RST:
        return "reset"
    if segment.flags & SYN:
        return "syn-sent" if outgoing and not segment.flags & ACK else "syn-received"
    if segment.flags & FIN:
        if outgoing:
            return _AFTER_FIN.get(state, state)
        return {"established": "close-wait", "fin-wait": "time-wait"}.get(state, state)
    if state in ("syn-received", "syn-sent"):
        return "established"
    return state


def pieces(trace: Trace[Any]) -> Iterator[Piece]:
    """The data of each connection, from its SYNs on."""
    first: dict[tuple[int, int, bool], int] = {}
    for packet in trace.at("iut"):
        segment = packet.content
        if segment is None or not segment.checksum_ok or not segment.offset_ok:
            continue
        ends = (segment.sport, segment.dport) if packet.outgoing else (
            segment.dport, segment.sport
        )  # fmt: skip
        key = *ends, packet.outgoing
        if segment.flags & SYN:
            first.setdefault(key, segment.seq)
        elif segment.payload and key in first:
            start = nearest(segment.seq - first[key] - 1, 0)
            if start >= 0:
                yield Piece(
                    ends, packet.outgoing, start, segment.payload, packet.number, ends[0] == ECHO
                )


BINDING = Binding(
    player=Player, verbs=VERBS, modes=MODES, label=label, follow=follow, pieces=pieces
)
