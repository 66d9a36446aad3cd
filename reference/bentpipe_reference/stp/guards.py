"""The conditions of the state table (STP/1 section 9), each a function of a connection's variables.

Nothing here changes anything.
"""

# ruff: noqa: ARG002 - a guard may ignore the variables

from __future__ import annotations

from bentpipe_reference.stp.packets import VERSION, Begin, Bgak, Bgrej, End, Endak, Flags, Packet
from bentpipe_reference.stp.proof import Proof
from bentpipe_reference.stp.sequence import PACKET_MASK, TAG_MASK, newer
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables

_A, _C, _R = int(Flags.A), int(Flags.C), int(Flags.R)


class Guards:
    """The conditions; one object serves all connections of an endpoint."""

    # Which connection a packet belongs to

    def tag_is_right(self, v: Variables, tag: int) -> bool:
        """STP-CC-001, section 4: the low 16 bits of the peer's CSN, where it is known."""
        if v.state is State.OUTGOING or v.peer_csn is None:
            return True
        return tag == v.peer_csn & TAG_MASK

    def owns(self, v: Variables, packet: Packet) -> bool:
        """Section 5.2: whether a packet belongs to this one of several pending connections."""
        if isinstance(packet, Begin):
            return self.is_of_peer(v, packet)
        if isinstance(packet, Bgak):
            return self.has_both_csns(v, packet)
        if isinstance(packet, End):
            return self.is_valid_end(v, packet) or self.is_valid_reflected_end(v, packet)
        return packet.tag == (v.peer_csn or 0) & TAG_MASK

    def is_impossible(self, v: Variables, packet: Packet) -> bool:
        """Sections 5.1, 5.2: a BGAK for us whose N(R) is below ISS or above VT(S) is discarded."""
        if not isinstance(packet, Bgak) or not self.is_for_us(v, packet):
            return False
        sender = v.outgoing.sender
        return (packet.n_r - sender.vt_a & PACKET_MASK) > sender.vt_s - sender.vt_a

    # BEGIN

    def is_other_version(self, v: Variables, begin: Begin) -> bool:
        """STP-CC-019."""
        return begin.version != VERSION

    def is_of_peer(self, v: Variables, begin: Begin) -> bool:
        """STP-CC-015: the BEGIN of this connection."""
        return begin.csn == v.peer_csn

    def is_newer_begin(self, v: Variables, begin: Begin) -> bool:
        """A later call of the same peer."""
        return v.peer_csn is not None and newer(begin.csn, v.peer_csn)

    # BGAK, BGREJ, ENDAK

    def is_for_us(self, v: Variables, packet: Bgak | Bgrej | Endak) -> bool:
        """The recipient's CSN is ours."""
        return packet.peer_csn == v.csn

    def is_for_us_and_asks(self, v: Variables, bgak: Bgak) -> bool:
        """The same, and the peer asks for confirmation."""
        return self.is_for_us(v, bgak) and bool(bgak.flags & _C)

    def has_both_csns(self, v: Variables, packet: Bgak | End) -> bool:
        """STP-CC-003: the peer has returned our CSN."""
        return packet.peer_csn == v.csn and packet.csn == v.peer_csn

    def has_both_csns_and_asks(self, v: Variables, bgak: Bgak) -> bool:
        """STP-CC-017."""
        return self.has_both_csns(v, bgak) and bool(bgak.flags & _C)

    def is_other_incarnation(self, v: Variables, bgak: Bgak) -> bool:
        """STP-CC-007."""
        if v.peer_csn is None or not self.is_for_us(v, bgak):
            return False
        return newer(bgak.csn, v.peer_csn)

    def reveals_the_peer(self, v: Variables, bgak: Bgak) -> bool:
        """Section 5.5: the first packet to show the CSN of the peer of an aborted connection."""
        return v.peer_csn is None and self.is_for_us(v, bgak)

    def must_be_heard(self, v: Variables, bgak: Bgak) -> bool:
        """STP-CC-030: whether POLLs have to verify that the peer has the connection."""
        return True

    def must_prove(self, v: Variables, bgak: Bgak) -> bool:
        """STP-CC-032: whether the peer has not asked, and so may know us by our CSN alone."""
        return not bgak.flags & _C

    def is_settled(self, v: Variables, proof: Proof) -> bool:
        """STP-CC-032: whether nothing more has to be proven."""
        return proof.is_accepted

    # END

    def is_valid_end(self, v: Variables, end: End) -> bool:
        """STP-CC-021, section 5.6: an END without R flag that knows the connection."""
        if end.flags & _R:
            return False
        if v.peer_csn is None:  # state 2, or state 4 after an abort in it
            return end.peer_csn == v.csn
        zero_suffices = v.state is State.INCOMING and end.peer_csn == 0
        return end.csn == v.peer_csn and (end.peer_csn == v.csn or zero_suffices)

    def is_valid_reflected_end(self, v: Variables, end: End) -> bool:
        """Section 5.6: the peer says, with both CSNs, that it does not know the connection."""
        return bool(end.flags & _R) and self.has_both_csns(v, end)

    def is_hint(self, v: Variables, end: End) -> bool:
        """Section 5.6: an END with R flag that names only the tag."""
        return bool(end.flags & _R) and end.csn == 0 and end.peer_csn == v.csn & TAG_MASK

    def is_valid_abort(self, v: Variables, end: End) -> bool:
        """A valid END with A flag."""
        return self.is_valid_end(v, end) and bool(end.flags & _A)

    def is_valid_completing_end(self, v: Variables, end: End) -> bool:
        """STP-CC-025, STP-CC-027: it covers our FIN, and we have delivered the peer's."""
        return (
            self.is_valid_end(v, end) and self.covers_fin(v, end.n_r) and self.peer_is_finished(v)
        )

    # Completion

    def covers_fin(self, v: Variables, n_r: int) -> bool:
        """Whether our FIN is below N(R)."""
        sender = v.outgoing.sender
        if sender.fin_number is None:
            return False
        number = sender.vt_a + (n_r - sender.vt_a & PACKET_MASK)
        return sender.fin_number < number <= sender.vt_s

    def peer_is_finished(self, v: Variables) -> bool:
        """Whether the peer's FIN has been delivered."""
        return v.receiver is not None and v.receiver.finished

    def is_complete(self, v: Variables) -> bool:
        """Section 5.5."""
        return v.outgoing.sender.fin_acknowledged and self.peer_is_finished(v)

    def awaits_release(self, v: Variables) -> bool:
        """STP-CC-031: whether a complete connection waits for the peer's END first."""
        return v.was_called
