"""The checker of what passes a box as it passes a router (PEP-TR-015)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import OTHER_SIDE
from bentpipe_conformance.protocols.pep.checkers import At, Context, of_scene
from bentpipe_conformance.protocols.pep.codec import ICMP, PING, TCP, UDP, header
from bentpipe_conformance.protocols.pep.replay.flow import Scene
from bentpipe_conformance.protocols.pep.replay.leg import Packet
from bentpipe_conformance.protocols.pep.routed import altered

ERRORS = (b"\x03", b"\x04", b"\x0b", b"\x0c")
"""Types of ICMP messages about another packet."""
NONE, STRANGER = -1, 256
"""In the place of a protocol; the latter for TCP's of a connection that nobody has seen."""
COPIES = 3
SETTLED_S = 5.0


@of_scene("PEP-TR-015")
def not_tcp_passes(scene: Scene, context: Context) -> Iterator[Finding]:
    """What is not TCP passes."""
    # Exercised by three packets of a protocol other than TCP; fewer may have been lost on the way.
    groups: dict[tuple[str, int, int], list[Packet]] = {}
    alike: dict[tuple[str, bytes], list[Packet]] = {}
    for packet in scene.others:
        found, about = header(packet), _quoted(packet, scene)
        if found is None or packet.outgoing or TCP in (found[0], about):
            continue
        if found[0] == UDP and found[1][8:].startswith(PING):
            continue
        groups.setdefault((packet.side, found[0], about), []).append(packet)
        alike.setdefault((packet.side, packet.data), []).append(packet)
    out: dict[tuple[str, int], list[Packet]] = {}
    for it in scene.others:
        if it.outgoing and (found := header(it)) is not None:
            out.setdefault((it.side, found[0]), []).append(it)
    for (side, protocol, about), packets in groups.items():
        other = OTHER_SIDE[side]
        passed = {_payload(it) for it in out.get((other, protocol), ())}
        if len(packets) < COPIES or scene.until - packets[-1].time < SETTLED_S:
            continue
        same = [it for it in packets if _payload(it) in passed]
        what = f"packets of protocol {protocol}"
        if about == STRANGER:
            what += " about connections that were not opened here"
        elif about != NONE:
            what += f" about such of {about}"
        yield judged(
            context, bool(same), f"{len(same)} of {len(packets)} {what} pass unaltered",
            *map(At, packets[:3]), expected="packets that are not TCP pass", actual="none does",
        )  # fmt: skip
    for (side, data), packets in alike.items():
        if len(packets) >= COPIES and scene.until - packets[-1].time >= SETTLED_S:
            yield _as_it_was(packets, out.get((OTHER_SIDE[side], data[9]), []), context)


def _as_it_was(packets: list[Packet], out: list[Packet], context: Context) -> Finding:
    """Whether one of some copies of a packet leaves with all that a router leaves as it is."""
    data = packets[0].data
    size = (data[0] & 15) * 4
    changes = [altered(data, it.data) for it in out if it.data[:1] and _resembles(data, it.data)]
    what = f"{len(packets)} copies of a packet of protocol {data[9]} with {len(data)} octets"
    if "" in changes:
        return context.holds(f"{what} pass", At(packets[0]))
    actual = f"{changes[0]} differs" if changes else "none"
    offset = int.from_bytes(data[6:8], "big") & 0x1FFF
    where = f", a header of {size}, type of service {data[1]}, fragment offset {offset * 8}"
    return context.violated(
        f"none of {what}{where} passes as it was", *map(At, packets[:3]),
        expected="a packet that differs in time to live and checksum", actual=actual,
    )  # fmt: skip


def _resembles(before: bytes, after: bytes) -> bool:
    """Whether one may be the other, altered: its payload or its identification is the same."""
    one, other = (before[0] & 15) * 4, (after[0] & 15) * 4
    if before[one:] == after[other:]:
        return True
    return before[4:8] == after[4:8] and before[12:20] == after[12:20] and before[4:6] != bytes(2)


def _payload(packet: Packet) -> bytes | None:
    found = header(packet)
    return None if found is None else found[1]


def _quoted(packet: Packet, scene: Scene) -> int:
    """The protocol of the packet that an ICMP message is about; :data:`NONE` for other packets.

    Of TCP, or of what cannot be read: a box keeps what is about its own segments.
    """
    found = header(packet)
    if found is None or found[0] != ICMP or found[1][:1] not in ERRORS:
        return NONE
    quoted = found[1][8:]
    if len(quoted) < 20 or quoted[0] >> 4 != 4:
        return TCP
    return quoted[9] if quoted[9] != TCP or _is_known(quoted, scene) else STRANGER


def _is_known(quoted: bytes, scene: Scene) -> bool:
    """Whether a quoted segment may be of a connection that was seen, of either end."""
    at = (quoted[0] & 15) * 4
    ports = {int.from_bytes(quoted[at + skip : at + skip + 2], "big") for skip in (0, 2)}
    known = [leg.ends for relay in scene.relays for leg in (relay.client, *relay.calls)]
    known += [leg.ends for leg in scene.orphans]
    return len(quoted) < at + 8 or at < 20 or any(ports & {one[1], one[3]} for one in known)
