"""Mutants that show in what lasts: quiet, outages, reasons of a failure, marks of congestion."""

from __future__ import annotations

from bentpipe_reference.common.sim import earliest
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.endpoint import Endpoint
from bentpipe_reference.pep.mutants import mutant
from bentpipe_reference.pep.passing import Report
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_OLD_CODES = 6
"""Of "destination unreachable" in RFC 792."""
_IDLE_S, _ALONE_S, _STALE_S = 2 * 3600 + 600.0, 60.0, 500.0


@mutant("pep-knows-the-first-reasons", "_receive_report", breaks="PEP-OP-007")
def knows_first_reasons(self: Box, port: int, report: Report, packet: bytes, now: float) -> None:
    """A call does not fail by codes of "unreachable" that are younger than RFC 792."""
    code = packet[(packet[0] & 15) * 4 + 1]
    if code < _OLD_CODES or (port, report.ends) not in self._by_ends:
        Box._receive_report(self, port, report, packet, now)


class _Deadline(Endpoint):
    """An end that is aborted at a time of its own."""

    _at: float | None = None

    def next_deadline(self) -> float | None:
        """See :class:`Endpoint`."""
        return earliest(super().next_deadline(), self._at)

    def advance(self, now: float) -> None:
        """See :class:`Endpoint`."""
        if self._at is not None and now >= self._at:
            self._at = None
            self.abort("it has lasted too long", now)
        else:
            super().advance(now)


@mutant("pep-keep-alives-are-not-heard", breaks="PEP-PC-008")
class NotHeard(_Deadline):
    """A connection without octets is ended, whoever asks whether it is there."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        super().receive(segment, now)
        if self.state is not State.ESTABLISHED:
            self._at = None
        elif segment.payload or self._at is None:
            self._at = now + _IDLE_S


@mutant("pep-ended-stream-has-a-minute", breaks="PEP-PC-001")
class HasAMinute(_Deadline):
    """Once a stream has an end, a peer that says nothing for a minute is given up."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        super().receive(segment, now)
        unsaid = self.sender.fin_queued and not self.end_is_acknowledged
        self._at = now + _ALONE_S if unsaid and self.state is not State.CLOSED else None


class _Quiet(Endpoint):
    """An end that knows when it has heard something last."""

    _heard = 0.0

    def _is_stale(self, now: float) -> bool:
        return self.state is State.ESTABLISHED and now - self._heard > _STALE_S

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        super().receive(segment, now)
        self._heard = now


@mutant("pep-stale-connection-is-called-anew", breaks="PEP-SEC-002")
class CalledAnew(_Quiet):
    """A SYN ends a connection that has been quiet for some minutes."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        if segment.flags & (Flags.SYN | Flags.ACK) == Flags.SYN and self._is_stale(now):
            self.abort("it is called anew", now)
        super().receive(segment, now)


@mutant("pep-stale-connection-takes-any-reset", breaks="PEP-SEC-001")
class TakesAnyReset(_Quiet):
    """A RST of any number ends a connection that has been quiet for some minutes."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        if segment.flags & Flags.RST and self._is_stale(now):
            self.fail("the peer reset the connection", now)
        else:
            super().receive(segment, now)


@mutant("pep-accepts-ecn-and-is-deaf", breaks="PEP-TR-006")
class AcceptsEcn(Endpoint):
    """ECN is accepted, and CE not answered."""

    _asked = False

    def accept(self, syn: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        both = Flags.ECE | Flags.CWR
        self._asked = syn.flags & both == both
        super().accept(syn, now)

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self._asked:
            self._outbox[-1].flags |= Flags.ECE
