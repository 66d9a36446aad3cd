"""The variables of a connection, and the conditions of the state table (STP/1 section 9).

Each condition is a method of its own, named by a row of
:data:`~bentpipe_reference.stp.states.CELLS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bentpipe_reference.stp.config import (
    StpConfig,
)
from bentpipe_reference.stp.events import Events, TraceSink
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import (
    VERSION,
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Flags,
    Packet,
    Poll,
    Reason,
    Sd,
    Sdp,
    Stat,
    Ustat,
)
from bentpipe_reference.stp.proof import Proof
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sequence import PACKET_MASK, newer
from bentpipe_reference.stp.states import TAGGED, State
from bentpipe_reference.stp.tracing import packet_values, step_record
from bentpipe_reference.stp.without import WithoutConnection

_A, _C, _R = int(Flags.A), int(Flags.C), int(Flags.R)
TAG_MASK = 0xFFFF
_PROOF_FACTOR = 3
"""Octets sent per octet received before the peer's address is proven (STP-SEC-001)."""

_FIXED_OCTETS = {
    Begin: 24, Bgak: 32, Bgrej: 20, End: 24, Endak: 16, Sd: 12, Sdp: 20, Poll: 20, Stat: 24,
    Ustat: 24,
}  # fmt: skip


def packet_octets(packet: Packet) -> int:
    """Octets of a packet that this endpoint sends."""
    octets = _FIXED_OCTETS[type(packet)]
    if isinstance(packet, Begin | Sd | Sdp):
        octets += len(packet.data)
    elif isinstance(packet, Stat):
        octets += 4 * len(packet.elements)
    return octets


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells connections apart (section 4).

    Attributes:
        peer: the peer's address, below STP.
        peer_port: its port.
        local_port: our port.
    """

    peer: tuple[Any, ...]
    peer_port: int
    local_port: int


class Conditions:
    """Variables of one connection, and what can be said of a packet in their light.

    Attributes:
        identity: whom it connects.
        state: see section 4.
        csn, iss: our numbers.
        peer_csn: the peer's, None while it is not known.
        outgoing: our stream.
        receiver: the peer's stream, None while its ISS is not known.
        proven: the peer's address has shown that it receives (STP-SEC-001).
        was_called: the peer called, so that it releases (STP-CC-031).
        failure: why the connection failed, one clause; None if it did not.
        reason: the reason code that goes with it.
        succeeded: both streams are through and acknowledged (STP-CC-005).
        events: what the user has not been told yet.
        remembered: the endpoint has noted the peer's CSN (STP-CC-013).
    """

    def __init__(
        self,
        config: StpConfig,
        identity: Identity,
        csn: int,
        iss: int,
        without: WithoutConnection,
        trace: TraceSink | None = None,
    ) -> None:
        self.config = config
        self.identity = identity
        self.state = State.IDLE
        self.csn, self.iss = csn, iss
        self.peer_csn: int | None = None
        self.ports = (identity.local_port, identity.peer_port)
        self.tag = csn & TAG_MASK
        self.outgoing = (config.outgoing_class or Outgoing)(config, iss, self.ports, self.tag)
        self.receiver: Receiver | None = None
        self.proven = True
        self.was_called = False
        self.failure: str | None = None
        self.reason = 0
        self.succeeded = False
        self.events = Events.NONE
        self.remembered = False
        self._without = without
        self._trace = trace
        self.handled: Packet | None = None  # for the trace: what arrived last, what was answered
        self.untold: list[Packet] = []
        if trace is not None:
            self.outgoing.on_step = self._note
        self._outbox: list[Packet] = []
        self._budget = 0
        self._early: dict[int, tuple[bytes, int]] = {}
        self._challenged_at = -math.inf
        self._confirm_until = math.inf
        self._asked_at: float | None = None  # BEGIN or BGAK sent once, not yet answered
        self._proof: Proof | None = None  # STP-CC-032, until it is accepted
        self._release: End | None = None
        self._transmissions = 0
        self._timer_cc = math.inf
        self._release_at = math.inf  # complete, and called: the caller's END is awaited

    # Sending

    def put(self, packet: Packet) -> None:
        """Send a packet, unless STP-SEC-001 forbids it."""
        if not self.proven:
            octets = packet_octets(packet)
            if not self.affords(octets):
                return
            self._budget -= octets
        self._outbox.append(packet)
        if self._trace is not None and packet.type not in TAGGED:
            self.untold.append(packet)

    def affords(self, octets: int) -> bool:
        """STP-SEC-001: at most three times what came from an address not yet proven."""
        return self.proven or octets <= self._budget

    def arrived(self, octets: int) -> None:
        """So many octets came from the peer."""
        if not self.proven:
            self._budget += _PROOF_FACTOR * octets

    def bgak(self, flags: int) -> Bgak:
        """A BGAK with the CSNs of this connection."""
        receiver, peer_csn = self.receiver, self.peer_csn
        assert receiver is not None and peer_csn is not None
        return self._bgak(flags, peer_csn, receiver.vr_mr, receiver.vr_r)

    def _bgak(self, flags: int, peer_csn: int, n_mr: int, n_r: int) -> Bgak:
        return Bgak(
            *self.ports, self.tag, flags, self.iss & PACKET_MASK, n_mr & PACKET_MASK, self.csn,
            peer_csn, n_r & PACKET_MASK, self.config.own_max_sd,
        )  # fmt: skip

    def end(self, flags: int, reason: Reason, peer_csn: int | None = None) -> End:
        """An END of this connection; N(R) is VR(R), just above the peer's FIN once complete."""
        n_r = 0 if self.receiver is None else self.receiver.vr_r & PACKET_MASK
        other = self.peer_csn if peer_csn is None else peer_csn
        return End(*self.ports, self.tag, flags, n_r, reason, self.csn, other or 0)

    def _note_packet(self, name: str, now: float, packet: Packet, row: str) -> None:
        if self._trace is not None:
            self._note(name, now, packet_values(packet) | {"row": row})

    def _note(self, name: str, now: float | None, values: dict[str, Any]) -> None:
        if self._trace is not None:
            self._trace(step_record(self, name, now, values))

    # Conditions

    def is_other_version(self, begin: Begin) -> bool:
        """STP-CC-019."""
        return begin.version != VERSION

    def is_for_us(self, packet: Bgak | Bgrej | Endak) -> bool:
        """Our CSN as that of the recipient."""
        return packet.peer_csn == self.csn

    def is_for_us_and_asks(self, bgak: Bgak) -> bool:
        """The same, and confirmation is asked for."""
        return self.is_for_us(bgak) and bool(bgak.flags & _C)

    def tells_the_peer(self, bgak: Bgak) -> bool:
        """Section 5.5: it tells, for the first time, whose connection has been aborted."""
        return self.peer_csn is None and self.is_for_us(bgak)

    def is_impossible(self, packet: Packet) -> bool:
        """Sections 5.1, 5.2: a BGAK for us whose N(R) is below ISS or above VT(S) is discarded."""
        if not isinstance(packet, Bgak) or not self.is_for_us(packet):
            return False
        sender = self.outgoing.sender
        return (packet.n_r - sender.vt_a & PACKET_MASK) > sender.vt_s - sender.vt_a

    def is_of_peer(self, begin: Begin) -> bool:
        """STP-CC-015: the BEGIN of this connection."""
        return begin.csn == self.peer_csn

    def owns(self, packet: Packet) -> bool:
        """Section 5.2: whether a packet belongs to this one of several pending connections."""
        if isinstance(packet, Begin):
            return self.is_of_peer(packet)
        if isinstance(packet, Bgak):
            return self.has_both_csns(packet)
        if isinstance(packet, End):
            return self.is_valid_end(packet) or self.is_valid_reflected_end(packet)
        return packet.tag == (self.peer_csn or 0) & TAG_MASK

    def is_newer_begin(self, begin: Begin) -> bool:
        """A later call of the same peer."""
        return self.peer_csn is not None and newer(begin.csn, self.peer_csn)

    def has_both_csns(self, packet: Bgak | End) -> bool:
        """STP-CC-003: the peer has returned our CSN."""
        return packet.peer_csn == self.csn and packet.csn == self.peer_csn

    def has_both_csns_and_asks(self, bgak: Bgak) -> bool:
        """STP-CC-017."""
        return self.has_both_csns(bgak) and bool(bgak.flags & _C)

    def is_other_incarnation(self, bgak: Bgak) -> bool:
        """STP-CC-007."""
        if self.peer_csn is None or not self.is_for_us(bgak):
            return False
        return newer(bgak.csn, self.peer_csn)

    def is_valid_end(self, end: End) -> bool:
        """STP-CC-021, section 5.6: an END without R flag that knows the connection."""
        if end.flags & _R:
            return False
        if self.peer_csn is None:  # state 2, or state 4 after an abort in it
            return end.peer_csn == self.csn
        zero_will_do = self.state is State.INCOMING and end.peer_csn == 0
        return end.csn == self.peer_csn and (end.peer_csn == self.csn or zero_will_do)

    def is_valid_reflected_end(self, end: End) -> bool:
        """Section 5.6: the peer says, with both CSNs, that it does not know the connection."""
        return bool(end.flags & _R) and self.has_both_csns(end)

    def is_hint(self, end: End) -> bool:
        """Section 5.6: only the tag is known."""
        return bool(end.flags & _R) and end.csn == 0 and end.peer_csn == self.tag

    def is_valid_abort(self, end: End) -> bool:
        """An END with A flag."""
        return self.is_valid_end(end) and bool(end.flags & _A)

    def is_valid_completing_end(self, end: End) -> bool:
        """STP-CC-025, STP-CC-027: it covers our FIN, and we have delivered the peer's."""
        return self.is_valid_end(end) and self.covers_fin(end.n_r) and self.peer_is_finished()

    def covers_fin(self, n_r: int) -> bool:
        """Whether our FIN is below N(R)."""
        sender = self.outgoing.sender
        if sender.fin_number is None:
            return False
        number = sender.vt_a + (n_r - sender.vt_a & PACKET_MASK)
        return sender.fin_number < number <= sender.vt_s

    def peer_is_finished(self) -> bool:
        """Whether the peer's FIN has been delivered."""
        return self.receiver is not None and self.receiver.finished
