"""What is odd in an STP conversation: packets with any field, spoilt ones, and any octets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases import faults
from bentpipe_conformance.protocols.stp.cases.faults import ALL_FLAGS, FORBIDDEN, RESERVED, armed
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.crafting import (
    COMMON_HEADER,
    craft_octets,
    wrong_checksum,
)
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, MODULUS, tag_of
from bentpipe_conformance.protocols.stp.peer import Peer

from bentpipe_fuzz.campaign.player import BasePlayer, Place, verb

KINDS: Mapping[str, int] = {name: kind for kind, name in codec.NAMES.items()}

LITTLE = 8
"""Octets of an SD about which nothing else is said."""

MOST_AHEAD = 100
"""SDs that an odd one may leave out in front of it as if they had been lost."""

_OWN = (codec.SD, codec.SDP, codec.POLL)

MOST_OF_BEGIN = 1440
"""Octets of data in a BEGIN at most; with all options about what a packet has room for."""


class OddPlayer(BasePlayer[Peer, Connection]):
    """What a tester can send that no honest one would; see :class:`BasePlayer`."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self._ended: dict[int, bool] = {}

    @property
    def ended(self) -> bool:
        """Whether the tester's stream of the connection has ended."""
        return self._ended.get(id(self.connection), False)

    @ended.setter
    def ended(self, ends: bool) -> None:
        self._ended[id(self.connection)] = ends

    @verb
    def packet(
        self, kind: str = "POLL", seq: Place | None = None, octets: int | None = None,
        n_mr: Place | None = None, n_r: Place | None = None, n_ps: int | None = None,
        elements: Sequence[Place] | None = None,
        tag: int = 0, csn: int = 0, peer_csn: int = 0, fields: Mapping[str, Any] | None = None,
        reserved: bool = False, odd: bool = False,
    ) -> None:  # fmt: skip
        """A packet of the connection with any field.

        An SD that is not far ahead is one of the tester's from then on: what is left out below it
        counts as lost, and it has the same data whenever it comes again. A POLL has a new number.

        Args:
            kind: its type.
            seq: N(S) or N(R); the next new SD, or the last again behind a FIN, when omitted.
            octets: length of data.
            n_mr: N(MR).
            n_r: N(R) of a BGAK.
            n_ps: distance from the poll number that is right.
            elements: of a STAT or USTAT.
            tag: bits that are wrong in the tag.
            csn: distance from the right CSN.
            peer_csn: distance from the right CSN of the peer.
            fields: raw fields of the packet: ``flags``, ``reason``, ``version``, ``options``
                (hexadecimal, which may be malformed).
            reserved: set every reserved flag and field.
            odd: make it with Scapy in any case.
        """
        connection = self.connection
        if connection is None:
            return
        number = KINDS[kind]
        usual = connection.compose(number)
        raw = raw_of(fields or {})
        odd = odd or "options" in raw
        count = None if seq is None else self.number(seq)
        if count is not None:
            raw["seq"] = connection.ours(count) if number in _OWN else connection.theirs(count)
        if octets is not None and number not in (codec.SD, codec.SDP):
            raw["data"] = pattern(0, min(octets, 1400))
        if n_mr is not None:
            raw["n_mr"] = connection.theirs(self.number(n_mr))
        if n_r is not None and number == codec.BGAK:
            raw["n_r"] = connection.theirs(self.number(n_r))
        if n_ps is not None and usual.n_ps is not None:
            raw["n_ps"] = (usual.n_ps + n_ps) % (1 << 24)
        if elements is not None:
            raw["elements"] = connection.their_list(self.number(place) for place in elements[:12])
        elif number == codec.USTAT:
            raw["elements"] = connection.their_list(self._missing(connection))
        if reserved:
            raw["reserved"] = RESERVED.get(number, ())
            raw["flags"] = raw.get("flags", usual.flags) | ALL_FLAGS & ~codec.FLAGS.get(number, 0)
        if tag:
            raw["tag"] = usual.tag ^ (tag & 0xFFFF)
        for name, distance in (("csn", csn), ("peer_csn", peer_csn)):
            right = getattr(usual, name)
            if distance and right is not None:
                raw[name] = (right + distance) % (1 << 32)
        raw["odd"] = odd or self.expressive
        with suppress(ValueError, KeyError, TypeError):
            if number in (codec.SD, codec.SDP):
                self._sd(count, octets, poll=number == codec.SDP, **raw)
            elif number == codec.POLL and n_ps is None:
                connection.poll(**raw)
            else:
                connection.send(number, **raw)

    def _sd(self, count: int | None, octets: int | None, *, poll: bool, **raw: Any) -> None:
        """An SD with its data and raw fields, see :meth:`packet`."""
        connection: Any = self.connection
        if count is None:
            count = connection.vt_s - self.ended
        most = connection.peer_max_sd or LEAST_MAX_SD
        size = LITTLE if octets is None else min(octets, most + 1)
        fin = bool(raw.get("flags", 0) & codec.FIN)
        _, ended_there = connection.sent.get(count, (b"", False))
        if ended_there and "flags" in raw:
            raw["flags"] |= codec.FIN
        is_near = 0 <= count < connection.vt_s + MOST_AHEAD
        if count in connection.sent or (is_near and not self.ended and size <= most):
            self.ended = self.ended or (fin and count not in connection.sent)
            data = LITTLE if octets is None else pattern(0, size)
            connection.sd(data, number=count, fin=fin, poll=poll, **raw)
        else:
            # Nobody may take it, or the tester would be at fault.
            usual = {"seq": connection.ours(count), "data": pattern(0, size)}
            connection.send(codec.SDP if poll else codec.SD, **{**usual, **raw})

    @staticmethod
    def _missing(connection: Any) -> tuple[int, int]:
        """A gap that a USTAT reports; one that says nothing would have no effect, were it taken."""
        first = connection.reception.vr_r
        return first, first + 1

    @verb
    def habit(self, reserved: bool = True, tag: bool = False, kinds: Sequence[str] = ()) -> None:
        """Set on connections from now on what nobody looks at.

        Args:
            reserved: whether to set every reserved flag and field.
            tag: whether to send a wrong tag where none is examined.
            kinds: the types of which packets are so; all when empty.
        """
        types = {KINDS[kind] for kind in kinds or KINDS}

        def alter(packet: codec.Stp) -> codec.Stp:
            if packet.type in types:
                packet = faults.reserved(packet) if reserved else packet
                packet = faults.foreign_tag(packet) if tag else packet
            return packet

        self.peer.alter = alter

    @verb
    def move(self, by: int = 1) -> None:
        """Have another address from now on, where STP travels in UDP: another port below it."""
        self.peer.udp_port = max(1, (self.peer.udp_port + by) % (1 << 16))

    @verb
    def begin(self, service: str | int = "chargen", octets: int = 0, cookie: int = -1) -> None:
        """A BEGIN of another connection; the answer is not looked at.

        Args:
            service: see :meth:`open`.
            octets: of its data.
            cookie: so many octets that are no cookie; below 0: none.
        """
        own: dict[str, Any] = {} if cookie < 0 else {"cookie": pattern(0, min(max(cookie, 8), 32))}
        self.peer.begin(service, data=pattern(0, min(octets, MOST_OF_BEGIN)), **own)

    @verb
    def octets(self, octets: str = "", right: bool = True) -> None:
        """Any octets (hexadecimal) in the place of what follows the common header."""
        if self.connection is not None:
            self._put(self.connection.compose(codec.POLL), bytes.fromhex(octets)[:200], right)

    @verb
    def malformed(
        self, kind: str = "POLL", cut: int = -1, more: str = "", right: bool = True,
        here: bool = True, anew: bool = False, version: int | None = None,
    ) -> None:  # fmt: skip
        """A packet that is too short or too long, or whose checksum is wrong.

        Args:
            kind: its type.
            cut: octets behind the common header that are kept; below 0: all.
            more: octets behind these (hexadecimal).
            right: whether the checksum is.
            here: on the connection; otherwise between ports that have none.
            anew: a BEGIN is of another call between these ports, which has no cookie.
            version: of a BEGIN; the right one when omitted.
        """
        packet = self._armed(kind, here, anew)
        if packet is not None:
            if version is not None and packet.type == codec.BEGIN:
                packet = replace(packet, version=version & 15)
            whole = codec.octets_of(packet)[COMMON_HEADER:]
            octets = whole if cut < 0 else whole[:cut]
            with suppress(ValueError, TypeError):
                self._put(packet, octets + bytes.fromhex(more)[:64], right)

    @verb
    def forbidden(
        self, kind: str = "POLL", defect: str = "checksum", which: int = 0, here: bool = True,
        anew: bool = False,
    ) -> None:  # fmt: skip
        """A packet with a defect of the suite's fault tables, for which it has to be discarded.

        Args:
            kind: its type.
            defect: ``checksum``, ``length``, ``type`` or ``options``; not all types have all.
            which: of the defects of that name.
            here: see :meth:`malformed`.
            anew: see :meth:`malformed`.
        """
        packet = self._armed(kind, here, anew)
        broken = [] if packet is None else list(FORBIDDEN[defect](packet))
        if broken:
            self.peer.send(broken[which % len(broken)])

    def _armed(self, kind: str, here: bool, anew: bool) -> codec.Stp | None:
        """A packet that would have an effect if it were taken."""
        connection = self.connection if here else self.peer.prepare("echo")
        if connection is None:
            return None
        if kind == "USTAT":
            gap = connection.their_list(self._missing(connection))
            return connection.compose(codec.USTAT, elements=gap)
        csn = self.peer.next_csn()
        own = {"csn": csn, "tag": tag_of(csn), "cookie": None} if anew else {}
        return next(item for item in armed(connection, **own) if item.type == KINDS[kind])

    def _put(self, packet: codec.Stp, octets: bytes, right: bool) -> None:
        crafted = craft_octets(packet, octets)
        self.peer.send(crafted if right else wrong_checksum(crafted))

    def places(self) -> Mapping[str, int]:
        """``next``, ``acked`` and ``edge`` (the credit) are of the tester's SDs, the others not.

        ``wrap`` is the one that is numbered 0.
        """
        connection = self.connection
        assert connection is not None
        return {
            "next": connection.vt_s, "acked": connection.vt_a, "edge": connection.vt_ms,
            "delivered": connection.reception.vr_r, "highest": connection.highest,
            "credit": connection.reception.vr_mr,
            "wrap": MODULUS - (connection.peer_iss or 0),
        }  # fmt: skip


def raw_of(offer: Mapping[str, Any]) -> dict[str, Any]:
    """An offer with its raw options, if any, as octets; whole words of them, and few."""
    found = dict(offer)
    if "options" in found:
        octets = bytes.fromhex(found["options"])[:24]
        found["options"] = octets + bytes(-len(octets) % 4)
    return found
