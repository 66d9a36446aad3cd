"""The state idle: packets for which there is no connection (STP/1 sections 5.2, 5.6 and 9)."""

# ruff: noqa: ARG002 - guards have one signature, and so have actions

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

from bentpipe_reference.stp import packets
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.packets import Begin, Bgak, End, Endak, Flags, Packet, Reason, Type
from bentpipe_reference.stp.sequence import TAG_MASK
from bentpipe_reference.stp.states import Cells, Row, State, cells, row
from bentpipe_reference.stp.variables import Address

_A_R = int(Flags.A | Flags.R)
_IDLE = State.IDLE


class Arrival(NamedTuple):
    """Whence a packet came, its octets, and when, seconds."""

    peer: Address
    octets: int
    now: float


class Listener(Protocol):
    """What an endpoint decides about calls."""

    def listens(self, port: int) -> bool:
        """Whether ``port`` accepts calls."""

    def is_known(self, peer: Address, begin: Begin, now: float) -> bool:
        """Whether the peer is known and the BEGIN's CSN newer."""

    def has_room(self, *, confirmed: bool) -> bool:
        """Whether there is room for one more connection."""

    def take_call(self, begin: Begin, arrival: Arrival, *, confirmed: bool) -> None:
        """Make a connection from a BEGIN, open at once or pending confirmation."""


class RateLimit:
    """At most ``per_second`` a second, and as many at once after a pause."""

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


Unanswered = Bgak | packets.Sd | packets.Sdp | packets.Poll
"""What belongs to no connection and is answered by an END."""


class Idle:
    """Handles packets without a connection; keeps nothing of them.

    Args:
        config: settings; ``answers_per_second`` bounds BGREJs and ENDs.
        listener: decides about BEGINs.
        put: sends a packet to a peer.

    Attributes:
        cells: the state's column of the table.
    """

    def __init__(
        self, config: StpConfig, listener: Listener, put: Callable[[Address, Packet], None]
    ) -> None:
        self._listener = listener
        self._put = put
        self._refusals = RateLimit(config.answers_per_second)
        self._ends = RateLimit(config.answers_per_second)
        # mypy takes the class's __hash__ for that of its instances.
        self.cells = _cells(type(self))  # type: ignore[arg-type]

    def receive(self, packet: Packet, arrival: Arrival) -> None:
        """Handle one packet as the table says."""
        found = next(row for row in self.cells[packet.type] if row.guard(self, arrival, packet))
        found.action(self, arrival, packet)

    # Guards

    def is_other_version(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-019."""
        return begin.version != packets.VERSION

    def nobody_listens(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-019."""
        return not self._listener.listens(begin.dport)

    def lacks_room(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-012: whether there is no room for the connection that the BEGIN asks for."""
        return not self._listener.has_room(confirmed=self.may_accept(arrival, begin))

    def may_accept(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-003, STP-CC-013: a known peer's newer CSN; asking is always permitted."""
        return self._listener.is_known(arrival.peer, begin, arrival.now)

    def is_reflected(self, arrival: Arrival, end: End) -> bool:
        """Section 5.6: an END with R flag is never answered."""
        return bool(end.flags & Flags.R)

    # Actions

    def discard(self, arrival: Arrival, packet: Packet) -> None:
        """Do nothing."""

    def accept(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-012, STP-CC-013: open at once."""
        self._listener.take_call(begin, arrival, confirmed=True)

    def ask(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-003: hold the data until the peer has returned our CSN."""
        self._listener.take_call(begin, arrival, confirmed=False)

    def refuse_call(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-012."""
        self.refuse(arrival, begin, Reason.RESOURCES)

    def refuse_version(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-019."""
        self.refuse(arrival, begin, Reason.VERSION)

    def refuse_port(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-019."""
        self.refuse(arrival, begin, Reason.NOT_LISTENING)

    def refuse(self, arrival: Arrival, begin: Begin, reason: Reason) -> None:
        """Section 5.2: the BGREJ names the BEGIN's CSN; its sequence and tag are zero."""
        if self._refusals.take(arrival.now):
            self._put(
                arrival.peer, packets.Bgrej(begin.dport, begin.sport, 0, 0, reason, begin.csn)
            )

    def answer_unknown(self, arrival: Arrival, packet: Unanswered) -> None:
        """STP-CC-020: the END of section 5.6."""
        if self._ends.take(arrival.now):
            self._put(arrival.peer, self.end_for(packet))

    def end_for(self, packet: Unanswered) -> End:
        """Section 5.6: the connection is unknown."""
        if isinstance(packet, Bgak):
            tag, own, other = packet.peer_csn & TAG_MASK, packet.peer_csn, packet.csn
        else:
            tag, own, other = 0, 0, packet.tag
        return End(packet.dport, packet.sport, tag, _A_R, 0, Reason.NO_CONNECTION, own, other)

    def acknowledge_end(self, arrival: Arrival, end: End) -> None:
        """STP-CC-020, STP-CC-022: this takes nothing but the END itself."""
        self._put(arrival.peer, endak_for(end))


def endak_for(end: End) -> Endak:
    """Section 5.5: the ENDAK that answers ``end``."""
    return Endak(end.dport, end.sport, end.peer_csn & TAG_MASK, 0, end.csn)


@cache
def _cells(c: type[Idle]) -> Cells:
    return cells((
        row(Begin, "version other than 1", "send BGREJ, reason 4", _IDLE,
            c.refuse_version, c.is_other_version),
        row(Begin, "nobody listens", "send BGREJ, reason 3", _IDLE,
            c.refuse_port, c.nobody_listens),
        row(Begin, "no resources", "send BGREJ, reason 5", _IDLE,
            c.refuse_call, c.lacks_room),
        row(Begin, "peer known and CSN newer", "take the data, send BGAK", State.READY,
            c.accept, c.may_accept),
        row(Begin, "", "hold the data, send BGAK with C", State.INCOMING, c.ask),
        *(Row(kind, "", "send END with A and R", _IDLE, c.answer_unknown)
          for kind in (Type.BGAK, Type.SD, Type.SDP, Type.POLL)),
        row(End, "R flag", "discard", _IDLE, c.discard, c.is_reflected),
        row(End, "", "send ENDAK", _IDLE, c.acknowledge_end),
        *(Row(kind, "", "discard", _IDLE, c.discard)
          for kind in (Type.BGREJ, Type.ENDAK, Type.STAT, Type.USTAT)),
    ))  # fmt: skip
