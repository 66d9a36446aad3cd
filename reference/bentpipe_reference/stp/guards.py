"""The conditions of the state table (STP/1 section 9), each a function of a connection's variables.

Nothing here changes anything.
"""

# ruff: noqa: ARG002 - a guard may ignore the variables

from __future__ import annotations

from bentpipe_reference.stp.config import MOST_CALLS_ANEW
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.packets import (
    VERSION,
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Flags,
    Poll,
    Reason,
    Sdp,
    Stat,
    Ustat,
)  # fmt: skip
from bentpipe_reference.stp.sequence import PACKET_MASK, TAG_MASK
from bentpipe_reference.stp.variables import Variables

_A, _R = int(Flags.A), int(Flags.R)


class Guards:
    """The conditions; one object serves all connections of an endpoint.

    Args:
        idle: knows what the state idle does.
    """

    def __init__(self, idle: Idle) -> None:
        self._idle = idle

    # Which connection a packet belongs to

    def tag_is_right(self, v: Variables, tag: int) -> bool:
        """STP-CC-001, section 4: the low 16 bits of the peer's CSN, where it is known."""
        return v.peer_csn is None or tag == v.peer_csn & TAG_MASK

    # BEGIN

    def is_other_version(self, v: Variables, begin: Begin) -> bool:
        """STP-CC-019."""
        return begin.version != VERSION

    def is_of_peer(self, v: Variables, begin: Begin) -> bool:
        """STP-CC-028: the peer's CSN."""
        return begin.csn == v.peer_csn

    def is_repeated(self, v: Variables, begin: Begin) -> bool:
        """STP-CC-015: the BEGIN by which the peer has called."""
        return v.was_called and self.is_of_peer(v, begin)

    def would_open(self, v: Variables, begin: Begin) -> bool:
        """STP-CC-041: whether the BEGIN would open a connection in the state idle."""
        return self._idle.would_open(Arrival(v.identity.peer, v.handled_at), begin)

    # BGAK, BGREJ, ENDAK

    def is_for_us(self, v: Variables, packet: Bgak | Bgrej | Endak) -> bool:
        """The recipient's CSN is ours."""
        return packet.peer_csn == v.csn

    def is_for_another(self, v: Variables, packet: Bgak | Bgrej) -> bool:
        """The recipient's CSN is not ours."""
        return not self.is_for_us(v, packet)

    def is_impossible(self, v: Variables, bgak: Bgak) -> bool:
        """STP-SEC-005: a BGAK whose N(R) is below ISS or above VT(S)."""
        sender = v.outgoing.sender
        return (bgak.n_r - sender.vt_a & PACKET_MASK) > sender.vt_s - sender.vt_a

    def gives_cookie(self, v: Variables, bgrej: Bgrej) -> bool:
        """STP-CC-037: whether the call may begin anew."""
        given = bgrej.reason == Reason.COOKIE and bgrej.cookie is not None
        return given and v.calls_anew < MOST_CALLS_ANEW

    # END

    def is_valid(self, v: Variables, end: End) -> bool:
        """STP-CC-021, section 5.5."""
        if end.flags & _R:
            return end.peer_csn == v.csn and end.csn in (0, v.peer_csn)
        if v.peer_csn is None:
            return end.peer_csn == v.csn
        zero_suffices = bool(end.flags & _A) and end.peer_csn == 0
        return end.csn == v.peer_csn and (end.peer_csn == v.csn or zero_suffices)

    def is_not_valid(self, v: Variables, end: End) -> bool:
        """STP-CC-021: the END does not know the connection."""
        return not self.is_valid(v, end)

    def is_reflected(self, v: Variables, end: End) -> bool:
        """The peer does not know the connection."""
        return bool(end.flags & _R)

    def is_abort(self, v: Variables, end: End) -> bool:
        """The A flag."""
        return bool(end.flags & _A)

    def completes(self, v: Variables, end: End) -> bool:
        """STP-CC-025, STP-CC-027: it covers our FIN, and we have delivered the peer's."""
        return self.covers_fin(v, end.n_r) and self.peer_is_finished(v)

    # POLL, STAT, USTAT

    def is_bad_poll(self, v: Variables, poll: Poll | Sdp) -> bool:
        """STP-DT-008: no poll number, or the CSN is not the peer's."""
        return not poll.n_ps or poll.csn != v.peer_csn

    def is_bad_report(self, v: Variables, report: Stat | Ustat) -> bool:
        """STP-DT-007, STP-DT-023: a STAT or USTAT is invalid, or a STAT old."""
        return v.outgoing.sender.read_report(report) is None

    # Completion

    def covers_fin(self, v: Variables, n_r: int) -> bool:
        """Whether our FIN is just below N(R)."""
        fin = v.outgoing.sender.fin_number
        return fin is not None and n_r == fin + 1 & PACKET_MASK

    def peer_is_finished(self, v: Variables) -> bool:
        """Whether the peer's FIN has been delivered."""
        return v.receiver is not None and v.receiver.finished

    def is_complete(self, v: Variables) -> bool:
        """Section 5.4."""
        return v.outgoing.sender.fin_acknowledged and self.peer_is_finished(v)

    def awaits_release(self, v: Variables) -> bool:
        """STP-CC-031: whether a complete connection waits for the peer's END first."""
        return v.was_called
