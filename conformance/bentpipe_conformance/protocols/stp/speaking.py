"""What the tester sends on a connection: correct packets of every type, with any field changed.

Scripts count SDs of either direction from 0, the one numbered ISS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bentpipe_conformance.engine.peer import BaseConnection, BasePeer, pattern
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.arrival import Arrival
from bentpipe_conformance.protocols.stp.codec import FIN, VERSION, A, Stp, V, build, option_field
from bentpipe_conformance.protocols.stp.cookies import Jar
from bentpipe_conformance.protocols.stp.crafting import craft
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, on_wire, tag_of
from bentpipe_conformance.protocols.stp.reception import Reception, cut

MAX_STAT = 67
"""Elements of a STAT of the tester (section 8, MaxSTAT)."""


ODD = frozenset({"sport", "dport", "tag", "csn", "peer_csn", "version", "reserved", "n_r"})
"""Fields of :class:`Stp` that a script gives to depart from what the connection would send."""


class Speaker(BaseConnection[Stp, Arrival]):
    """The tester's half of a connection.

    Attributes:
        csn, iss: the tester's.
        peer_csn, peer_iss: the IUT's, None before its BGAK (or BEGIN).
        peer_max_sd: the IUT's MaxSD, None before.
        reception: what the tester has received, and its credit.
        vt_s: count of the tester's next new SD.
        vt_a: highest N(R) of the IUT: the tester's SDs below it have arrived.
        vt_ms: highest credit of the IUT, first SD the tester may not send.
        vt_ps: poll number of the tester's last POLL.
        sent: data and FIN of each of the tester's SDs.
        cookie: what the tester's BEGIN carries, None for no Cookie option.
        voiding: whether it has the V flag.
        alter: changes every packet before it is sent.
    """

    def __init__(
        self,
        peer: BasePeer[Stp, Any],
        port: int,
        source_port: int,
        carriage: Mapping[str, Any],
        csn: int,
        jar: Jar,
        *,
        cookie: bytes | None = None,
        voiding: bool = False,
        iss: int | None = None,
        credit: int = 256,
        max_sd: int | None = 1400,
        options: bytes = b"",
    ) -> None:
        """What the tester offers, see also :meth:`Peer.connect`.

        Args:
            peer: the tester.
            port: the IUT's port.
            source_port: the tester's port.
            carriage: fields of :class:`Stp` that say how packets travel.
            csn: the tester's CSN.
            jar: the cookies of the case.
            cookie: Cookie option of the BEGIN, None to leave it out.
            voiding: V flag of the BEGIN.
            iss: the tester's ISS; a random one when omitted.
            credit: SDs that the BEGIN permits.
            max_sd: MaxSD option, None to leave it out.
            options: raw options in whole words, in front of MaxSD and Cookie.
        """
        super().__init__(peer, port, source_port)
        self.csn = csn
        self.jar = jar
        self.cookie = cookie
        self.voiding = voiding
        self.iss = peer.random.getrandbits(24) if iss is None else iss
        self.max_sd = max_sd
        self.options = options
        self._carriage = carriage
        self.peer_csn: int | None = None
        self.peer_iss: int | None = None
        self.peer_max_sd: int | None = None
        self.reception = Reception(vr_mr=credit)
        self.vt_s = self.vt_a = self.vt_ps = 0
        self.vt_ms = 4
        self.sent: dict[int, tuple[bytes, bool]] = {}
        self._offset = 0
        self.last_poll: tuple[int, int] = (0, 0)
        self._clock = peer.random.getrandbits(32)
        self.alter: Callable[[Stp], Stp] = lambda packet: packet

    # -- composing and sending

    def compose(self, kind: int, **fields: Any) -> Stp:
        """A packet of this connection, with the usual values of all fields left out.

        Args:
            kind: its type.
            fields: fields of :class:`Stp`, raw as they are on the wire.
        """
        peer = self.peer
        right: dict[str, Any] = {
            "src": peer.address, "dst": peer.iut_address, "sport": self.source_port,
            "dport": self.port, "type": kind, "tag": tag_of(self.csn), **self._carriage,
        }  # fmt: skip
        right |= self._usual(kind)
        right |= fields
        return Stp(**right)

    def _usual(self, kind: int) -> dict[str, Any]:
        """The usual values of the fields that not all types have in common."""
        reception, theirs, peer_csn = self.reception, self.theirs, self.peer_csn or 0
        match kind:
            case codec.SD:
                return {"seq": self.ours(self.vt_s)}
            case codec.SDP | codec.POLL:
                polling = {"n_ps": self.vt_ps, "timestamp": self.timestamp()}
                return {"seq": self.ours(self.vt_s), "csn": self.csn, **polling}
            case codec.STAT:
                n_ps, timestamp = self.last_poll
                polled = {"n_ps": n_ps, "timestamp": timestamp}
                elements = self.their_list(reception.elements())
                credit = {"seq": theirs(reception.vr_r), "n_mr": theirs(reception.vr_mr)}
                return {**credit, "elements": elements, **polled}
            case codec.USTAT:
                return {"seq": theirs(reception.vr_r), "n_mr": theirs(reception.vr_mr)}
            case codec.BEGIN:
                opening = {"seq": self.iss, "csn": self.csn, **self._options(self.cookie)}
                return {**opening, "n_mr": reception.vr_mr, "version": VERSION}
            case codec.BGAK:
                opening = {"seq": self.iss, "csn": self.csn, **self._options(self.jar.make())}
                credit = {"n_r": theirs(reception.vr_r), "n_mr": theirs(reception.vr_mr)}
                return {**opening, "peer_csn": peer_csn, **credit}
            case codec.BGREJ:
                return {"tag": 0, "peer_csn": peer_csn, "reason": 3}
            case codec.END:
                numbers = {"csn": self.csn, "peer_csn": peer_csn}
                return {"seq": theirs(reception.vr_r), **numbers, "reason": 0}
            case codec.ENDAK:
                return {"peer_csn": peer_csn}
        raise KeyError(kind)

    def _options(self, cookie: bytes | None) -> dict[str, Any]:
        """MaxSD and a cookie, behind the raw options if there are any."""
        raw = self.options and self.options + option_field(self.max_sd, cookie)
        return {"max_sd": self.max_sd, "cookie": cookie, "options": raw}

    def ours(self, count: int) -> int:
        """The number on the wire of one of the tester's SDs."""
        return on_wire(count, self.iss)

    def theirs(self, count: int) -> int:
        """The number on the wire of one of the IUT's SDs."""
        return on_wire(count, self.peer_iss or 0)

    def their_list(self, counts: Iterable[int]) -> tuple[int, ...]:
        """A list of the IUT's SDs as it is on the wire."""
        return tuple([self.theirs(count) for count in counts])

    def timestamp(self) -> int:
        """The tester's clock for POLLs: milliseconds, 32 bits."""
        return (self._clock + int(self.peer.now() * 1000)) % (1 << 32)

    def send(self, kind: int, *, after: float = 0.0, odd: bool = False, **fields: Any) -> Stp:
        """Send a packet of this connection, ``after`` seconds; see :meth:`compose`.

        It is one of Scapy if it is ``odd`` where it comes, or by :data:`ODD` fields.
        """
        usual = self.compose(kind, **fields)
        packet = self.alter(usual)
        odd = odd or (packet is not usual and packet != usual)
        if odd or packet.reserved_flags or not ODD.isdisjoint(fields):
            self.peer.send(craft(packet), after=after)
        else:
            self.peer.send(build(packet), after=after)
        return packet

    def craft(self, kind: int, **fields: Any) -> Any:
        """A packet of this connection as one of Scapy, to be changed and sent by the peer."""
        return craft(self.compose(kind, **fields))

    def begin(self, data: bytes = b"", *, fin: bool = False, **fields: Any) -> None:
        """Send a BEGIN; its data is the tester's SD 0."""
        if (data or fin) and not self.vt_s:
            self.sent[0] = data, fin
            self.vt_s = 1
            self._offset = len(data)
        flags = (FIN if fin else 0) | (V if self.voiding else 0)
        self.send(codec.BEGIN, **{"data": data, "flags": flags, **fields})

    def bgak(self, **fields: Any) -> None:
        """Accept the IUT's call: send a BGAK with both CSNs and a new cookie of the tester's."""
        self.send(codec.BGAK, **fields)

    def reject(self, reason: int = 3, **fields: Any) -> None:
        """Refuse the IUT's call, with ``reason`` 6 by a new cookie of the tester's."""
        options = {"max_sd": self.max_sd, "cookie": self.jar.make()} if reason == 6 else {}
        self.send(codec.BGREJ, **{"reason": reason, **options, **fields})

    def sd(
        self,
        data: bytes | int = 100,
        *,
        number: int | None = None,
        fin: bool = False,
        poll: bool = False,
        after: float = 0.0,
        **fields: Any,
    ) -> Stp:
        """Send an SD: the next new one, or ``number`` with the data it had.

        Args:
            data: user data, or how many octets of :func:`pattern`, at most the IUT's MaxSD.
            number: count of the SD; one sent before is repeated as it was, and what a higher one
                leaves out counts as lost.
            fin: set the FIN flag.
            poll: send an SDP with the next poll number.
            after: seconds to wait before it leaves.
            fields: raw fields, see :meth:`compose`.
        """
        if number is None:
            self.await_credit()
        count = self.vt_s if number is None else number
        if count in self.sent and number is not None:
            octets, fin = self.sent[count]
        else:
            octets = self._pattern(data) if isinstance(data, int) else data
            self._offset += len(octets)
            self.sent[count] = octets, fin
        self.vt_s = max(self.vt_s, count + 1)
        fields = {"seq": self.ours(count), "data": octets, "flags": FIN if fin else 0, **fields}
        if poll:
            self.vt_ps += 1
        return self.send(codec.SDP if poll else codec.SD, after=after, **fields)

    def await_credit(self) -> None:
        """Wait until the IUT permits another SD; what exceeds its credit is sent raw."""

    def _pattern(self, octets: int) -> bytes:
        return pattern(self._offset, min(octets, self.peer_max_sd or LEAST_MAX_SD))

    def sds(self, count: int, octets: int = 100, *, skip: Iterable[int] = ()) -> None:
        """Send new SDs; those of ``skip``, by count, are not put on the link: they are lost."""
        left_out = set(skip)
        for _ in range(count):
            self.await_credit()
            if self.vt_s in left_out:
                data = self._pattern(octets)
                self.sent[self.vt_s] = data, False
                self._offset += octets
                self.vt_s += 1
            else:
                self.sd(octets)

    def poll(self, *, repeat: bool = False, after: float = 0.0, **fields: Any) -> Stp:
        """Send a POLL with the next poll number; with ``repeat``, the last number again."""
        if not repeat:
            self.vt_ps += 1
        return self.send(codec.POLL, after=after, **fields)

    def stat(
        self, *, n_r: int | None = None, n_mr: int | None = None,
        elements: Iterable[int] | None = None, after: float = 0.0, most: int = MAX_STAT,
        **fields: Any,
    ) -> None:  # fmt: skip
        """Send a STAT in answer to the last POLL, with the usual values unless told otherwise.

        Args:
            n_r: count of VR(R).
            n_mr: count of VR(MR); a higher one is the tester's credit from now on.
            elements: the list as counts.
            after: seconds to wait before it leaves; its contents are of now.
            most: elements of one STAT; a longer list is cut as STP-PF-012 says.
            fields: raw fields, ``n_ps`` and ``timestamp`` for example.
        """
        if n_mr is not None:
            self.reception.vr_mr = max(self.reception.vr_mr, n_mr)
            fields = {"n_mr": self.theirs(n_mr), **fields}
        if n_r is not None:
            fields = {"seq": self.theirs(n_r), **fields}
        whole = self.reception.elements() if elements is None else tuple(elements)
        self.reception.told = max(self.reception.told, self.reception.vr_r if n_r is None else n_r)
        for part in cut(whole, most):
            self.send(codec.STAT, after=after, **{"elements": self.their_list(part), **fields})

    def ustat(self, first: int, second: int, *, after: float = 0.0, **fields: Any) -> None:
        """Send a USTAT that reports the IUT's SDs [first, second) missing."""
        elements = self.their_list((first, second))
        self.send(codec.USTAT, after=after, **{"elements": elements, **fields})

    def end(self, *, flags: int = 0, **fields: Any) -> None:
        """Send an END; without flags a normal release."""
        self.send(codec.END, flags=flags, **fields)

    def abort(self, reason: int = 1) -> None:
        """Send an END with the A flag, which ends the connection for the tester as well."""
        if not self.closed:
            self.end(flags=A, reason=reason)
            self.closed = "the tester aborted it"
