"""Mutants of robustness (STP-SEC)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.mutants import mutant, returning
from bentpipe_reference.stp.mutants.hosts import MeddlingHost
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Flags,
    Packet,
    Reason,
    Stat,
    Ustat,
)
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables

_HEADER_OCTETS = 12


@mutant("stp-answers-twice", breaks="STP-SEC-001")
class AnswersTwice(Idle):
    """Sends two cookies for one BEGIN."""

    def give_cookie(self, arrival: Arrival, begin: Begin) -> None:
        super().give_cookie(arrival, begin)
        super().give_cookie(arrival, begin)


@mutant("stp-fills-its-bgrej", breaks="STP-SEC-001")
class FillsItsBgrej(Idle):
    """Answers a BEGIN with more than three times its octets."""

    def bgrej(self, begin: Begin, reason: Reason, cookie: bytes | None = None) -> Bgrej:
        return replace(super().bgrej(begin, reason, cookie), options=((9, bytes(34)),))


@mutant("stp-chokes-on-fragments", breaks="STP-SEC-003")
class ChokesOnFragments(MeddlingHost):
    """Falls silent after a packet without header."""

    _choked = False

    def arriving(self, octets: bytes) -> bytes | None:
        self._choked = self._choked or len(octets) < _HEADER_OCTETS
        return None if self._choked else octets


@mutant("stp-believes-ends", breaks="STP-SEC-005")
class BelievesEnds(Guards):
    """Ends a connection without its own CSN in the END."""

    def is_valid(self, v: Variables, end: End) -> bool:
        if end.flags & Flags.R or v.peer_csn is None:
            return super().is_valid(v, end)
        return end.csn == v.peer_csn


@mutant("stp-gives-up-the-oldest", breaks="STP-SEC-007", setting="small-over-ip")
class GivesUpTheOldest(Idle):
    """Who calls while there is no room takes the place of the oldest connection."""

    def refuse_call(self, arrival: Arrival, begin: Begin) -> None:
        """See :class:`Idle`."""
        super().refuse_call(arrival, begin)
        assert isinstance(self._listener, StpEndpoint)
        for connection in self._listener.connections.values():
            if connection.state is State.READY:
                connection.abort(arrival.now, Reason.RESOURCES)
                return


mutant("stp-opens-for-any-bgak", "STP-SEC-005", "takes a BGAK that acknowledges nothing sent")(
    returning(Guards, Guards.is_impossible, False)
)


@mutant("stp-follows-a-second-bgak", breaks="STP-SEC-005")
class FollowsASecondBgak(Connection):
    """Takes the CSN of a BGAK in data transfer for its peer's."""

    def receive(self, packet: Packet, now: float) -> bool:
        if isinstance(packet, Bgak) and self.state is State.READY and packet.peer_csn == self.csn:
            self.peer_csn = packet.csn
            return False
        return super().receive(packet, now)


@mutant("stp-aborts-on-invalid-stat", breaks="STP-SEC-005")
class AbortsOnInvalidStat(Actions):
    """Aborts when a STAT acknowledges what was not sent."""

    def discard_report(self, v: Variables, report: Stat | Ustat, now: float) -> None:
        sender = v.outgoing.sender
        if (report.n_r - sender.vt_s) & 0xFFFFFF in range(1, 1 << 23):
            self.send_end(v, self.end(v, Flags.A, Reason.ABORTED), now)
