"""What the tester says on a connection: right packets of every type, and any field changed.

Scripts count SDs of either direction from 0, the one numbered ISS.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    A,
    C,
    Stp,
    build,
)
from bentpipe_conformance.protocols.stp.numbers import on_wire, tag_of
from bentpipe_conformance.protocols.stp.reception import Reception, cut

if TYPE_CHECKING:
    from bentpipe_conformance.protocols.stp.peer import Peer

MAX_STAT = 67
"""Elements of a STAT of the tester (section 8, MaxSTAT)."""


class Speaker:
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
        closed: why the connection is over, empty while it is not.
        confirmed: whether a BGAK without C flag has been sent.
    """

    def __init__(
        self,
        peer: Peer,
        port: int,
        source_port: int,
        *,
        csn: int | None = None,
        iss: int | None = None,
        credit: int = 256,
        max_sd: int | None = 1400,
        options: bytes = b"",
    ) -> None:
        """See :meth:`Peer.connect`."""
        self.peer = peer
        self.port = port
        self.source_port = source_port
        self.csn = peer.next_csn() if csn is None else csn
        self.iss = peer.random.getrandbits(24) if iss is None else iss
        self.max_sd = max_sd
        self.options = options
        self.peer_csn: int | None = None
        self.peer_iss: int | None = None
        self.peer_max_sd: int | None = None
        self.reception = Reception(vr_mr=credit)
        self.vt_s = self.vt_a = self.vt_ps = 0
        self.vt_ms = 4
        self.closed = ""
        self.confirmed = False
        self.sent: dict[int, tuple[bytes, bool]] = {}
        self._offset = 0
        self.last_poll: tuple[int, int] = (0, 0)
        self._clock = peer.random.getrandbits(32)

    # -- composing and sending

    def compose(self, kind: int, **fields: Any) -> Stp:
        """A packet of this connection with the right values for whatever is left out.

        Args:
            kind: its type.
            fields: fields of :class:`wire.Stp`, raw as they are on the wire.
        """
        peer = self.peer
        right: dict[str, Any] = {
            "src": peer.address, "dst": peer.iut_address, "sport": self.source_port,
            "dport": self.port, "tag": tag_of(self.csn), **peer.carriage(),
        }  # fmt: skip
        right |= getattr(self, f"_right_{_RIGHT[kind]}")()
        return Stp(type=kind, **{**right, **fields})

    def _right_begin(self) -> dict[str, Any]:
        return {
            "seq": self.iss, "csn": self.csn, "n_mr": self.reception.vr_mr, "version": 1,
            "max_sd": self.max_sd, "options": self.options,
        }  # fmt: skip

    def _right_bgak(self) -> dict[str, Any]:
        return {
            "seq": self.iss, "csn": self.csn, "peer_csn": self.peer_csn or 0,
            "n_mr": self.theirs(self.reception.vr_mr), "n_r": self.theirs(self.reception.vr_r),
            "max_sd": self.max_sd, "options": self.options,
        }  # fmt: skip

    def _right_bgrej(self) -> dict[str, Any]:
        return {"tag": 0, "peer_csn": self.peer_csn or 0, "reason": 3}

    def _right_end(self) -> dict[str, Any]:
        return {
            "seq": self.theirs(self.reception.vr_r), "csn": self.csn,
            "peer_csn": self.peer_csn or 0, "reason": 0,
        }  # fmt: skip

    def _right_endak(self) -> dict[str, Any]:
        return {"peer_csn": self.peer_csn or 0}

    def _right_sd(self) -> dict[str, Any]:
        return {"seq": self.ours(self.vt_s)}

    def _right_poll(self) -> dict[str, Any]:
        return {
            "seq": self.ours(self.vt_s), "n_ps": self.vt_ps, "timestamp": self.timestamp(),
        }  # fmt: skip

    def _right_stat(self) -> dict[str, Any]:
        n_ps, timestamp = self.last_poll
        return {
            "seq": self.theirs(self.reception.vr_r), "n_mr": self.theirs(self.reception.vr_mr),
            "n_ps": n_ps, "timestamp": timestamp,
            "elements": self.their_list(self.reception.elements()),
        }  # fmt: skip

    def _right_ustat(self) -> dict[str, Any]:
        return {
            "seq": self.theirs(self.reception.vr_r), "n_mr": self.theirs(self.reception.vr_mr)
        }  # fmt: skip

    def ours(self, count: int) -> int:
        """The number on the wire of one of the tester's SDs."""
        return on_wire(count, self.iss)

    def theirs(self, count: int) -> int:
        """The number on the wire of one of the IUT's SDs."""
        return on_wire(count, self.peer_iss or 0)

    def their_list(self, counts: Iterable[int]) -> tuple[int, ...]:
        """A list of the IUT's SDs as it is on the wire."""
        return tuple(self.theirs(count) for count in counts)

    def timestamp(self) -> int:
        """The tester's clock for POLLs: milliseconds, 32 bits."""
        return (self._clock + int(self.peer.now() * 1000)) % (1 << 32)

    def send(self, kind: int, *, after: float = 0.0, **fields: Any) -> Stp:
        """Send a packet of this connection, ``after`` seconds; see :meth:`compose`."""
        packet = self.compose(kind, **fields)
        self.peer.send(build(packet), after=after)
        return packet

    def begin(self, data: bytes = b"", *, fin: bool = False, **fields: Any) -> None:
        """Send a BEGIN; its data is the tester's SD 0."""
        if (data or fin) and not self.vt_s:
            self.sent[0] = data, fin
            self.vt_s = 1
            self._offset = len(data)
        self.send(BEGIN, **{"data": data, "flags": FIN if fin else 0, **fields})

    def confirm(self, *, challenge: bool = False, **fields: Any) -> None:
        """Send a BGAK with both CSNs, with the C flag when it is a ``challenge``."""
        self.confirmed = self.confirmed or not challenge
        self.send(BGAK, **{"flags": C if challenge else 0, **fields})

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
            data: user data, or how many octets of the pattern :func:`pattern`.
            number: count of the SD; one sent before is repeated as it was.
            fin: set the FIN flag.
            poll: send an SDP with the next poll number.
            after: seconds to wait before it leaves.
            fields: raw fields, see :meth:`compose`.
        """
        count = self.vt_s if number is None else number
        if count in self.sent and number is not None:
            octets, fin = self.sent[count]
        else:
            octets = pattern(self._offset, data) if isinstance(data, int) else data
            if count >= self.vt_s:
                self._offset += len(octets)
                self.sent[count] = octets, fin
        self.vt_s = max(self.vt_s, count + 1)
        fields = {"seq": self.ours(count), "data": octets, "flags": FIN if fin else 0, **fields}
        if poll:
            self.vt_ps += 1
            fields = {"n_ps": self.vt_ps, "timestamp": self.timestamp(), **fields}
        return self.send(SDP if poll else SD, after=after, **fields)

    def sds(self, count: int, octets: int = 100, *, skip: Iterable[int] = ()) -> None:
        """Send new SDs; those of ``skip``, by count, are not put on the link: they are lost."""
        left_out = set(skip)
        for _ in range(count):
            if self.vt_s in left_out:
                data = pattern(self._offset, octets)
                self.sent[self.vt_s] = data, False
                self._offset += octets
                self.vt_s += 1
            else:
                self.sd(octets)

    def poll(self, *, repeat: bool = False, after: float = 0.0, **fields: Any) -> Stp:
        """Send a POLL with the next poll number; with ``repeat``, the last number again."""
        if not repeat:
            self.vt_ps += 1
        return self.send(POLL, after=after, **{"n_ps": self.vt_ps, **fields})

    def stat(
        self, *, n_r: int | None = None, n_mr: int | None = None,
        elements: Iterable[int] | None = None, after: float = 0.0, most: int = MAX_STAT,
        **fields: Any,
    ) -> None:  # fmt: skip
        """Send a STAT in answer to the last POLL, right unless told otherwise.

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
        for part in cut(whole, most):
            self.send(STAT, after=after, **{"elements": self.their_list(part), **fields})

    def ustat(self, first: int, second: int, *, after: float = 0.0, **fields: Any) -> None:
        """Send a USTAT that reports the IUT's SDs [first, second) missing."""
        elements = self.their_list((first, second))
        self.send(USTAT, after=after, **{"elements": elements, **fields})

    def end(self, *, flags: int = 0, **fields: Any) -> None:
        """Send an END; without flags a normal release."""
        self.send(END, flags=flags, **fields)

    def abort(self, reason: int = 1) -> None:
        """Send an END with the A flag, which ends the connection for the tester as well."""
        if not self.closed:
            self.end(flags=A, reason=reason)
            self.closed = "the tester aborted it"


_RIGHT = {
    BEGIN: "begin", BGAK: "bgak", BGREJ: "bgrej", END: "end", ENDAK: "endak", SD: "sd", SDP: "poll",
    POLL: "poll", STAT: "stat", USTAT: "ustat",
}  # fmt: skip


def pattern(offset: int, octets: int) -> bytes:
    """Test data: printable octets that depend only on the stream offset."""
    cycle = bytes(range(33, 127))
    start = offset % len(cycle)
    return (cycle[start:] + cycle * (octets // len(cycle) + 1))[:octets]
