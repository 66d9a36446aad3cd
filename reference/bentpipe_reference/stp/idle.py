"""The state idle: packets for which there is no connection (STP/1 sections 5.2, 5.5 and 9)."""

# ruff: noqa: ARG002 - guards have one signature, and so have actions

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

from bentpipe_reference.stp import packets
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.cookies import Cookies
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Flags,
    Packet,
    Reason,
    Type,
)  # fmt: skip
from bentpipe_reference.stp.sequence import TAG_MASK
from bentpipe_reference.stp.states import Cells, Row, State, cells, row
from bentpipe_reference.stp.variables import Address

_A_R, _R = int(Flags.A | Flags.R), int(Flags.R)
_IDLE = State.IDLE


class Arrival(NamedTuple):
    """Whence a packet came, and when, seconds."""

    peer: Address
    now: float


class Listener(Protocol):
    """What an endpoint decides about calls."""

    def listens(self, port: int) -> bool:
        """Whether ``port`` accepts calls."""

    def has_room(self, begin: Begin, arrival: Arrival) -> bool:
        """Whether there is room for the connection that a BEGIN asks for."""

    def take_call(self, begin: Begin, arrival: Arrival) -> None:
        """Open a connection by a BEGIN."""


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


Unanswered = Begin | Bgak | packets.Sdp | packets.Poll
"""What belongs to no connection and is answered by an END."""


class Idle:
    """Handles packets without a connection; keeps nothing of them.

    Args:
        config: settings; ``answers_per_second`` bounds some BGREJs and ENDs.
        listener: decides about BEGINs.
        cookies: made by this endpoint.
        put: sends a packet to a peer.

    Attributes:
        cookies: the same.
        cells: the state's column of the table.
    """

    def __init__(
        self, config: StpConfig, listener: Listener, cookies: Cookies,
        put: Callable[[Address, Packet], None],
    ) -> None:  # fmt: skip
        self.cookies = cookies
        self._config = config
        self._listener = listener
        self._put = put
        self._refusals = RateLimit(config.answers_per_second)
        self._ends = RateLimit(config.answers_per_second)
        self.cells = _cells(type(self))  # type: ignore[arg-type]  # as in the table

    def receive(self, packet: Packet, arrival: Arrival) -> None:
        """Handle one packet as the table says."""
        self._row(packet, arrival).action(self, arrival, packet)

    def would_open(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-041: whether the BEGIN would open a connection here."""
        return self._row(begin, arrival).next is State.READY

    def _row(self, packet: Packet, arrival: Arrival) -> Row:
        for found in self.cells[packet.type]:
            if found.guard(self, arrival, packet):
                break
        return found

    # Guards

    def is_other_version(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-019."""
        return begin.version != packets.VERSION

    def nobody_listens(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-019."""
        return not self._listener.listens(begin.dport)

    def is_too_large(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-DT-028."""
        return len(begin.data) > self._config.own_max_sd

    def is_used(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-038."""
        return self.cookies.is_used(arrival.peer, begin.cookie, arrival.now)

    def is_unproven(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-035: there is no good cookie."""
        return not self.cookies.is_good(arrival.peer, begin.cookie, arrival.now)

    def lacks_room(self, arrival: Arrival, begin: Begin) -> bool:
        """STP-CC-012, STP-CC-038."""
        return not self._listener.has_room(begin, arrival)

    def is_reflected(self, arrival: Arrival, end: End) -> bool:
        """Section 5.5: an END with R flag is never answered."""
        return bool(end.flags & _R)

    # Actions

    def discard(self, arrival: Arrival, packet: Packet) -> None:
        """Do nothing."""

    def accept(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-012."""
        self._listener.take_call(begin, arrival)

    def give_cookie(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-036: a fresh cookie, and nothing is kept."""
        cookie = self.cookies.make(arrival.peer, arrival.now)
        self._put(arrival.peer, self.bgrej(begin, Reason.COOKIE, cookie))

    def refuse_call(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-012, STP-CC-038."""
        self._put(arrival.peer, self.bgrej(begin, Reason.RESOURCES))

    def refuse_version(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-019."""
        self._refuse(arrival, begin, Reason.VERSION)

    def refuse_port(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-019."""
        self._refuse(arrival, begin, Reason.NOT_LISTENING)

    def refuse_beside_own_call(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-043: a port that calls does not listen."""
        self._put(arrival.peer, self.bgrej(begin, Reason.NOT_LISTENING))

    def _refuse(self, arrival: Arrival, begin: Begin, reason: Reason) -> None:
        if self._refusals.take(arrival.now):
            self._put(arrival.peer, self.bgrej(begin, reason))

    def bgrej(self, begin: Begin, reason: Reason, cookie: bytes | None = None) -> Bgrej:
        """Section 3.3: it names the BEGIN's CSN; its tag is zero."""
        max_sd = None if cookie is None else self._config.own_max_sd
        return Bgrej(begin.dport, begin.sport, 0, 0, reason, begin.csn, max_sd, cookie)

    def answer_used(self, arrival: Arrival, begin: Begin) -> None:
        """STP-CC-038: the connection that the cookie has opened is gone."""
        self._put(arrival.peer, self.end_for(begin))

    def answer_unknown(self, arrival: Arrival, packet: Unanswered) -> None:
        """STP-CC-020: the END of section 5.5."""
        if self._ends.take(arrival.now):
            self._put(arrival.peer, self.end_for(packet))

    def end_for(self, packet: Unanswered) -> End:
        """Section 5.5: the connection is unknown."""
        own = packet.peer_csn if isinstance(packet, Bgak) else 0
        ports = packet.dport, packet.sport
        return End(*ports, own & TAG_MASK, _A_R, 0, Reason.NO_CONNECTION, own, packet.csn)

    def acknowledge_end(self, arrival: Arrival, end: End) -> None:
        """STP-CC-020, STP-CC-022: this takes nothing but the END itself."""
        self._put(arrival.peer, endak_for(end))


def endak_for(end: End) -> Endak:
    """Section 5.4: the ENDAK that answers ``end``."""
    return Endak(end.dport, end.sport, end.peer_csn & TAG_MASK, 0, end.csn)


@cache
def _cells(c: type[Idle]) -> Cells:
    return cells((
        row(Begin, "version other than 2", "send BGREJ, reason 4", _IDLE,
            c.refuse_version, c.is_other_version),
        row(Begin, "nobody listens", "send BGREJ, reason 3", _IDLE,
            c.refuse_port, c.nobody_listens),
        row(Begin, "cookie used", "send END with A and R", _IDLE,
            c.answer_used, c.is_used),
        row(Begin, "cookie missing or not good", "send BGREJ, reason 6, with a cookie", _IDLE,
            c.give_cookie, c.is_unproven),
        row(Begin, "more data than MaxSD", "discard", _IDLE, c.discard, c.is_too_large),
        row(Begin, "no resources", "send BGREJ, reason 5", _IDLE,
            c.refuse_call, c.lacks_room),
        row(Begin, "", "take the data, send BGAK with a cookie", State.READY, c.accept),
        *(Row(kind, "", "send END with A and R", _IDLE, c.answer_unknown)
          for kind in (Type.BGAK, Type.SDP, Type.POLL)),
        row(End, "R flag", "discard", _IDLE, c.discard, c.is_reflected),
        row(End, "", "send ENDAK", _IDLE, c.acknowledge_end),
        *(Row(kind, "", "discard", _IDLE, c.discard)
          for kind in (Type.BGREJ, Type.ENDAK, Type.SD, Type.STAT, Type.USTAT)),
    ))  # fmt: skip
