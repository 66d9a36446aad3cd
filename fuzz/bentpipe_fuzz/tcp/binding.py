"""TCP as a campaign sees it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.protocols.tcp.codec import (
    ACK,
    FIN,
    MODULUS,
    RST,
    SYN,
    URG,
    Tcp,
    build,
    nearest,
)

from bentpipe_fuzz.campaign.binding import Binding, Piece
from bentpipe_fuzz.tcp.conversations import MODES, SHORT
from bentpipe_fuzz.tcp.player import VERBS, Player
from bentpipe_fuzz.tcp.writing import IMPORTS, LINES

ECHO = 7


def label(segment: Tcp) -> str:
    """Flags, and what else makes a kind of segment."""
    return _label(segment, segment.flag_names)


def alike(segment: Tcp) -> str:
    """The same without PSH, which is between an implementation and its user."""
    return _label(segment, segment.flag_names.replace("P", ""))


def _label(segment: Tcp, told: str) -> str:
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
    """The data of each connection, from its SYNs on.

    An octet right below what is sent next may be garbage, for it only asks whether the peer is
    there (RFC 9293 section 3.8.4). Once urgent data has come, an echo may lack some of it, which is
    taken out of the stream by many (RFC 6093 section 3.1).
    """
    first: dict[tuple[int, int, bool], int] = {}
    ended: dict[object, int] = {}
    urgent: set[object] = set()
    for packet in trace.at("iut"):
        segment = packet.content
        if segment is None or not segment.checksum_ok or not segment.offset_ok:
            continue
        ends = (segment.sport, segment.dport) if packet.outgoing else (
            segment.dport, segment.sport
        )  # fmt: skip
        key = *ends, packet.outgoing
        if segment.flags & SYN:
            if packet.outgoing and first.get(key, segment.seq) != segment.seq:
                # Another connection between these ports.
                first[key] = segment.seq
                first.pop((*ends, False), None)
                if segment.flags & ACK:
                    first[*ends, False] = (segment.ack - 1) % MODULUS
            first.setdefault(key, segment.seq)
        elif segment.payload and key in first:
            start = nearest(segment.seq - first[key] - 1, 0)
            # What lies below the stream is none of it.
            data = segment.payload[max(0, -start) :]
            stream = *ends, first.get((*ends, True))
            if segment.flags & URG:
                urgent.add(stream)
            end = start + len(segment.payload)
            if packet.outgoing:
                asks = len(segment.payload) == 1 and ended.get(stream) == end
                ended[stream] = max(ended.get(stream, 0), end)
                data = b"" if asks else data
            if data:
                echoes = ends[0] == ECHO and stream not in urgent
                yield Piece(stream, packet.outgoing, max(0, start), data, packet.number, echoes)


def proof(segment: Tcp, outgoing: bool) -> frozenset[Hashable]:
    """The number of a SYN, which only its addressee can acknowledge."""
    if outgoing and segment.flags & SYN:
        return frozenset({(segment.sport, segment.dport, (segment.seq + 1) % MODULUS)})
    if not outgoing and segment.flags & ACK:
        return frozenset({(segment.dport, segment.sport, segment.ack)})
    return frozenset()


def refuse(segment: Tcp) -> bytes | None:
    """The RST by which a host without that connection answers (RFC 9293 section 3.10.7.1)."""
    if segment.flags & RST:
        return None
    draft = Tcp(
        segment.dst, segment.src, segment.dport, segment.sport, segment.ack, 0, RST, 0, b""
    )  # fmt: skip
    if not segment.flags & ACK:
        end = (segment.seq + segment.length) % MODULUS
        draft = replace(draft, seq=0, ack=end, flags=RST | ACK)
    return build(draft)


BINDING = Binding(
    player=Player, verbs=VERBS, modes=MODES, label=label, follow=follow, pieces=pieces,
    refuse=refuse, short=SHORT, alike=alike, proof=proof, lines=LINES, imports=IMPORTS,
)  # fmt: skip
