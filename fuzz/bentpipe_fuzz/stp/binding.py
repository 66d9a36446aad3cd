"""STP as a campaign sees it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.codec import NAMES, Stp
from bentpipe_conformance.protocols.stp.numbers import tag_of

from bentpipe_fuzz.campaign.binding import Binding, Piece
from bentpipe_fuzz.stp.conversations import MODES, SHORT
from bentpipe_fuzz.stp.player import VERBS, Player
from bentpipe_fuzz.stp.writing import IMPORTS, LINES

_FLAGS = {codec.FIN: "FIN", codec.V: "V", codec.A: "A", codec.R: "R"}


def label(packet: Stp) -> str:
    """Its type and flags."""
    name = NAMES.get(packet.type, f"type {packet.type}")
    if not packet.wellformed:
        return f"malformed {name}"
    told = [flag for bit, flag in _FLAGS.items() if packet.flags & bit]
    if packet.type == codec.BEGIN and packet.cookie is not None:
        told.append("cookie")
    return "+".join([name, *told])


def follow(state: str, packet: Stp, outgoing: bool) -> str:
    """The state of the connection that was opened last, as the packets show it."""
    if not packet.wellformed:
        return state
    kind, fin = packet.type, bool(packet.flags & codec.FIN)
    if kind == codec.BEGIN:
        return "calling" if outgoing else "called"
    if kind == codec.BGAK:
        return "ready"
    if kind in (codec.END, codec.BGREJ):
        return "ending" if outgoing else "ended"
    if kind in (codec.SD, codec.SDP) and fin:
        both = {"ready": "closed" if outgoing else "peer-closed"}
        other = "peer-closed" if outgoing else "closed"
        return "both-closed" if state == other else both.get(state, state)
    return state


def pieces(trace: Trace[Any]) -> Iterator[Piece]:
    """The data of each SD of each connection; each SD is a stream of its own."""
    for packet in trace.at("iut"):
        found = packet.content
        if found is None or not found.wellformed or found.type not in (codec.SD, codec.SDP):
            continue
        if packet.outgoing and found.data:
            key = found.sport, found.dport, found.tag, found.seq
            yield Piece(key, True, 0, found.data, packet.number, False)


def proof(packet: Stp, outgoing: bool) -> frozenset[Hashable]:
    """A cookie, and the CSN by which the implementation's end of a connection is named."""
    if not packet.wellformed:
        return frozenset()
    number = packet.csn if outgoing else packet.peer_csn
    return frozenset(name for name in (number, packet.cookie) if name is not None)


_NO_CONNECTION = 2


def refuse(packet: Stp) -> bytes | None:
    """The END by which an endpoint without that connection answers (section 5.5)."""
    if not packet.wellformed or packet.type not in _WITH_CSN:
        return None
    own = packet.peer_csn if packet.type == codec.BGAK else 0
    return codec.build(
        Stp(
            src=packet.dst, dst=packet.src, sport=packet.dport, dport=packet.sport,
            type=codec.END, flags=codec.A | codec.R, tag=tag_of(own or 0),
            csn=own, peer_csn=packet.csn, reason=_NO_CONNECTION, protocol=packet.protocol,
            udp_sport=packet.udp_dport, udp_dport=packet.udp_sport,
        )
    )  # fmt: skip


_WITH_CSN = (codec.BEGIN, codec.BGAK, codec.SDP, codec.POLL)


BINDING = Binding(
    player=Player, verbs=VERBS, modes=MODES, label=label, follow=follow, pieces=pieces,
    refuse=refuse, short=SHORT, proof=proof, lines=LINES, imports=IMPORTS,
)  # fmt: skip
