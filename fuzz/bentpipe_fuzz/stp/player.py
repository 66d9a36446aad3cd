"""The tester's side of an STP conversation: what the steps of a script do.

Places are counts of SDs of a direction, from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.lane import LaneError
from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.faults import ALL_FLAGS, FORBIDDEN, RESERVED, armed
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.crafting import (
    COMMON_HEADER,
    craft_octets,
    wrong_checksum,
)
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW, Peer, Role

from bentpipe_fuzz.campaign.player import LONGEST_S, BasePlayer, Place, verb, verbs_of

MOST_SDS = 200
"""SDs that one step sends at most."""

KINDS: Mapping[str, int] = {name: kind for kind, name in codec.NAMES.items()}

ENDS_S = 5.0
"""Seconds after which one that was called sends the END that its caller does not (STP-CC-031)."""

LITTLE = 8
"""Octets of an SD about which nothing else is said."""

MOST_AHEAD = 100
"""SDs that an odd one may leave out in front of it as if they had been lost."""

_OWN = (codec.SD, codec.SDP, codec.POLL)

MOST_OF_BEGIN = 1440
"""Octets of data in a BEGIN at most; with all options about what a packet has room for."""


class Player(BasePlayer[Peer, Connection]):
    """See :class:`BasePlayer`."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self.ended = False
        self.used: list[bytes] = []

    # -- users

    @verb
    def open(self, service: str = "chargen", octets: int = 0, **own: Any) -> None:
        """Call a service, with so many octets in the BEGIN.

        ``own`` is what the tester offers; ``options`` among it are raw ones (hexadecimal), and
        with ``fin`` these octets are all.
        """
        self.ended = bool(own.get("fin"))
        own = _raw(own)
        data = pattern(0, min(octets, MOST_OF_BEGIN))
        self.connection = None
        # The link may lose the first.
        with suppress(NotReached):
            self.connection = self.peer.connect(service, data=data, **own)
        if self.connection is None:
            self.connection = self.peer.connect(service, data=data, **own)

    @verb
    def restart(self, service: str = "chargen", octets: int = 0, ahead: int = 0) -> None:
        """Forget the connection, and call again between the same ports.

        Args:
            service: see :meth:`open`.
            octets: see :meth:`open`.
            ahead: distance of the CSN from the one before; 0: the tester's next.
        """
        last = self.connection
        if last is not None:
            own = {"csn": (last.csn + ahead) % (1 << 32)} if ahead else {}
            self.open(service, octets, source_port=last.source_port, **own)

    @verb
    def call(self, role: str = "send", octets: int = 20_000) -> None:
        """Have the implementation's user call the tester, in order to send or to receive."""
        self.ring(role, octets)
        self.answer()

    @verb
    def ring(self, role: str = "send", octets: int = 20_000, anew: bool = True) -> None:
        """Have the implementation's user call the tester, who does not answer yet.

        Args:
            role: ``send`` or ``receive``.
            octets: what a sender has.
            anew: whether a call without a cookie of the tester's is given one, and comes again.
        """
        self.ended = False
        self.connection = None
        wanted: Role = "send" if role == "send" else "receive"
        # Not every implementation can be asked to.
        with suppress(LaneError):
            self.connection = self.peer.summon(wanted, octets=octets, anew=anew)

    @verb
    def answer(self, credit: int | None = None, **fields: Any) -> None:
        """Send a BGAK with these fields.

        Args:
            credit: SDs that it permits, and those after it until more are.
            fields: fields of the packet; ``options`` are raw ones (hexadecimal).
        """
        connection, fields = self.connection, _raw(fields)
        if connection is not None and not connection.closed:
            if credit is not None:
                connection.reception.vr_mr = connection.reception.vr_r + credit
            connection.options = fields.pop("options", connection.options)
            with suppress(ValueError, KeyError, TypeError):
                connection.bgak(**fields)

    @verb
    def refuse(self, reason: int = 6, cookie: bool = True) -> None:
        """Send a BGREJ with this reason, and with a cookie; a call anew is the connection then."""
        connection = self.connection
        if connection is not None and not connection.closed:
            baked = self.peer.jar.make() if cookie else None
            with suppress(ValueError, KeyError, TypeError):
                connection.send(codec.BGREJ, reason=reason & 255, cookie=baked)
            if cookie and reason == CALL_ANEW:
                self.connection = self.peer.await_anew(connection, connection.rtt + 0.5)

    @verb
    def knock(
        self, service: str = "discard", back: int = 0, flip: int = -1, voiding: bool = False,
        fin: bool = False,
    ) -> None:  # fmt: skip
        """Call with a cookie and look at no answer.

        Args:
            service: see :meth:`open`.
            back: which cookie: 0 for the oldest that has not been used, 1 for the last that was,
                and so on; -1 for a new one, while those that the tester has stay as they are.
            flip: number of a bit of it that is changed; below 0: none.
            voiding: whether older cookies are to be void (the V flag).
            fin: whether the stream ends at once.
        """
        if back < 0:
            before = [*self.peer.jar.kept]
            cookie = self.peer.fresh_cookie(service)
            self.peer.jar.kept.extend(before)
        else:
            cookie = self.used[-back] if 0 < back <= len(self.used) else self.peer.cookie(service)
        self.used.append(cookie)
        if flip >= 0:
            changed = bytearray(cookie)
            changed[flip // 8 % len(changed)] ^= 1 << flip % 8
            cookie = bytes(changed)
        self.connection = self.peer.begin(service, cookie=cookie, voiding=voiding, fin=fin)
        self.ended = fin

    @verb
    def hang_up(self) -> None:
        """End both streams and leave the implementation's END without an answer."""
        connection = self.connection
        if connection is not None and not connection.closed and not self.ended:
            self.ended, connection.polite = True, False
            connection.sd(b"the end", fin=True, poll=True)
            with suppress(NotReached):
                within = 4 * connection.rtt + ENDS_S
                connection.serve(lambda: bool(connection.closed), within=within)

    @verb
    def write(
        self, sds: int = 1, octets: int = 100, poll: bool = False, gap: float = 0.0,
        losing: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Send new SDs.

        Args:
            sds: how many.
            octets: of each, at most what the implementation takes.
            poll: whether the last one asks.
            gap: seconds between them.
            losing: those that are lost, counted from 0.
        """
        connection = self.connection
        if connection is None or self.ended:
            return
        last = min(sds, MOST_SDS) - 1
        for number in range(last + 1):
            if connection.closed:
                return
            if number in losing:
                connection.sds(1, max(octets, 0), skip=[connection.vt_s])
            else:
                connection.sd(max(octets, 0), poll=poll and number == last)
            if gap:
                self.receive(gap)

    @verb
    def close(self, poll: bool = True) -> None:
        """Send an SD with FIN."""
        connection = self.connection
        if connection is not None and not self.ended and not connection.closed:
            self.ended = True
            connection.sd(b"", fin=True, poll=poll)

    @verb
    def release(self) -> None:
        """Close in order, until both streams have ended and END is acknowledged."""
        if self.connection is not None and not self.connection.closed:
            self.ended = True
            self.connection.release(within=LONGEST_S)

    # -- the peer

    @verb
    def receive(
        self, seconds: float = 1.0, credit: int | None = 64, report: bool = True,
        answer: Sequence[float] = (0.0,), losing: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Be a receiver for a while.

        Args:
            seconds: how long; an idle connection may last for hours.
            credit: SDs that are permitted beyond VR(R); None leaves it as it is.
            report: whether to send USTATs.
            answer: after how many seconds each POLL is answered, once for each number.
            losing: SDs to lose, counted from what has been delivered; one that is named twice is
                lost twice.
        """
        connection = self.connection
        if connection is None:
            return
        base = connection.reception.vr_r
        with suppress(NotReached):
            connection.serve(
                lambda: bool(connection.closed), credit=credit, report_gaps=report,
                losing=Counter(base + number for number in losing),
                answer=lambda _poll, _before: answer[:3], within=min(seconds, self.longest),
            )  # fmt: skip

    @verb
    def settle(self) -> None:
        """Ask and send again until everything is acknowledged."""
        if self.connection is not None and not self.connection.closed:
            self.connection.deliver(within=2 * self.connection.rtt + 1.0)

    def rest(self) -> None:
        """What an honest tester does at the end: wait for what is still to come, and repair."""
        self.settle()
        self.receive(3.0)

    @verb
    def ask(self) -> None:
        """Send a POLL."""
        if self.connection is not None:
            self.connection.poll()

    # -- what is odd

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
        raw = _raw(fields or {})
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
        data = LITTLE if octets is None else pattern(0, min(octets, 1400))
        fin = bool(raw.get("flags", 0) & codec.FIN)
        _, ended_there = connection.sent.get(count, (b"", False))
        if ended_there and "flags" in raw:
            raw["flags"] |= codec.FIN
        is_near = 0 <= count < connection.vt_s + MOST_AHEAD
        if count in connection.sent or (is_near and not self.ended):
            self.ended = self.ended or (fin and count not in connection.sent)
            connection.sd(data, number=count, fin=fin, poll=poll, **raw)
        else:
            # Nobody may take it, or the tester would be at fault.
            octets = LITTLE if octets is None else min(octets, 1400)
            usual = {"seq": connection.ours(count), "data": pattern(0, octets)}
            connection.send(codec.SDP if poll else codec.SD, **{**usual, **raw})

    @staticmethod
    def _missing(connection: Any) -> tuple[int, int]:
        """A gap that a USTAT reports; one that says nothing would have no effect, were it taken."""
        first = connection.reception.vr_r
        return first, first + 1

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
        """``next``, ``acked`` and ``edge`` (the credit) are of the tester's SDs, the others not."""
        connection = self.connection
        assert connection is not None
        return {
            "next": connection.vt_s, "acked": connection.vt_a, "edge": connection.vt_ms,
            "delivered": connection.reception.vr_r, "highest": connection.highest,
            "credit": connection.reception.vr_mr,
        }  # fmt: skip


def _raw(offer: Mapping[str, Any]) -> dict[str, Any]:
    """An offer with its raw options, if any, as octets; whole words of them, and few."""
    found = dict(offer)
    if "options" in found:
        octets = bytes.fromhex(found["options"])[:24]
        found["options"] = octets + bytes(-len(octets) % 4)
    return found


VERBS = verbs_of(Player)
