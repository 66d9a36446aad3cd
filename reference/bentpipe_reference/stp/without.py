"""Packets for which there is no connection (STP/1 sections 5.2, 5.6 and 9)."""

# ruff: noqa: ARG002 - conditions and actions have one signature each

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from bentpipe_reference.stp.config import StpConfig
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
)
from bentpipe_reference.stp.states import CELLS, Row, State

Address = tuple[Any, ...]
"""As the driver has it."""

_A, _R = int(Flags.A), int(Flags.R)
_A_R = _A | _R
_TAG = 0xFFFF


class Listener(Protocol):
    """What an endpoint decides about calls."""

    def listens(self, port: int) -> bool:
        """Whether somebody listens on ``port``."""
        ...

    def is_known(self, peer: Address, begin: Begin, now: float) -> bool:
        """Whether the peer is known and the BEGIN's CSN newer."""
        ...

    def has_room(self, *, confirmed: bool) -> bool:
        """Whether there is room for one more connection."""
        ...

    def take_call(self, begin: Begin, peer: Address, now: float, *, confirmed: bool) -> None:
        """Make a connection of a BEGIN, at once or for confirmation."""
        ...


class RateLimit:
    """So many per second, and as many at once after a pause."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._left = per_second
        self._at = 0.0

    def take(self, now: float) -> bool:
        """Whether one more is permitted at ``now`` seconds."""
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class WithoutConnection:
    """Handles packets as the state idle does; keeps nothing of them.

    Args:
        config: settings; its ``answers_per_second`` bounds BGREJs and ENDs.
        listener: decides about BEGINs.
        put: sends a packet to a peer.
    """

    def __init__(
        self, config: StpConfig, listener: Listener, put: Callable[[Address, Packet], None]
    ) -> None:
        self._listener = listener
        self._put = put
        self._refusals = RateLimit(config.answers_per_second)
        self._ends = RateLimit(config.answers_per_second)

    def receive(self, packet: Packet, peer: Address, now: float) -> Row:
        """Handle one packet as the table says; returns the row that applied."""
        for row in CELLS[State.IDLE][packet.type]:
            if not row.guard or getattr(self, row.guard)(packet, peer, now):
                getattr(self, row.action)(packet, peer, now)
                return row
        raise AssertionError("the last row of a cell always applies")

    # Conditions

    def is_other_version(self, begin: Begin, peer: Address, now: float) -> bool:
        """STP-CC-019."""
        return begin.version != VERSION

    def nobody_listens(self, begin: Begin, peer: Address, now: float) -> bool:
        """STP-CC-019."""
        return not self._listener.listens(begin.dport)

    def lacks_room(self, begin: Begin, peer: Address, now: float) -> bool:
        """STP-CC-012: whether there is no room for the connection that the BEGIN asks for."""
        return not self._listener.has_room(confirmed=self.may_accept(begin, peer, now))

    def may_accept(self, begin: Begin, peer: Address, now: float) -> bool:
        """STP-CC-003, STP-CC-013: a known peer's newer CSN; asking is always permitted."""
        return self._listener.is_known(peer, begin, now)

    def is_reflected(self, end: End, peer: Address, now: float) -> bool:
        """Section 5.6: an END with R flag is never answered."""
        return bool(end.flags & _R)

    # Actions

    def discard(self, packet: Packet, peer: Address, now: float) -> None:
        """Nothing."""

    def accept(self, begin: Begin, peer: Address, now: float) -> None:
        """STP-CC-012, STP-CC-013: open at once."""
        self._listener.take_call(begin, peer, now, confirmed=True)

    def ask(self, begin: Begin, peer: Address, now: float) -> None:
        """STP-CC-003: hold the data until the peer has returned our CSN."""
        self._listener.take_call(begin, peer, now, confirmed=False)

    def refuse_call(self, begin: Begin, peer: Address, now: float) -> None:
        """STP-CC-012."""
        self.refuse(begin, peer, Reason.RESOURCES, now)

    def refuse_version(self, begin: Begin, peer: Address, now: float) -> None:
        """STP-CC-019."""
        self.refuse(begin, peer, Reason.VERSION, now)

    def refuse_port(self, begin: Begin, peer: Address, now: float) -> None:
        """STP-CC-019."""
        self.refuse(begin, peer, Reason.NOT_LISTENING, now)

    def refuse(self, begin: Begin, peer: Address, reason: Reason, now: float) -> None:
        """Section 5.2: the BGREJ names the BEGIN's CSN; its sequence and tag are zero."""
        if self._refusals.take(now):
            self._put(peer, Bgrej(begin.dport, begin.sport, 0, 0, reason, begin.csn))

    def answer_unknown(self, packet: Bgak | Sd | Sdp | Poll, peer: Address, now: float) -> None:
        """STP-CC-020: the END of section 5.6."""
        if self._ends.take(now):
            self._put(peer, self.end_for(packet))

    def end_for(self, packet: Bgak | Sd | Sdp | Poll) -> End:
        """Section 5.6: "I know no such connection"."""
        ports = (packet.dport, packet.sport)
        if isinstance(packet, Bgak):
            tag = packet.peer_csn & _TAG
            own, other = packet.peer_csn, packet.csn
        else:
            tag, own, other = 0, 0, packet.tag
        return End(*ports, tag, _A_R, 0, Reason.NO_CONNECTION, own, other)

    def acknowledge_end(self, end: End, peer: Address, now: float) -> None:
        """STP-CC-020, STP-CC-022: nothing is needed for it but the END."""
        self._put(peer, endak_for(end))


def endak_for(end: End) -> Endak:
    """Section 5.5: the ENDAK that answers ``end``."""
    return Endak(end.dport, end.sport, end.peer_csn & _TAG, 0, end.csn)
