"""Mutants of half-close and release (STP-CC, sections 5.4 and 5.5)."""

from __future__ import annotations

import math
from dataclasses import replace

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.mutants import mutant, overriding, returning
from bentpipe_reference.stp.packets import (
    Bgak,
    Bgrej,
    End,
    Endak,
    Flags,
    Packet,
    Poll,
    Reason,
)
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Sender, SentSd
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables


class _SeesFinEarly(Guards):
    def peer_is_finished(self, v: Variables) -> bool:
        held = {} if v.receiver is None else v.receiver._held
        return super().peer_is_finished(v) or any(fin for _, fin in held.values())


class _TellsFinEarly(Actions):
    def receive_sd(self, v: Variables, field: int, data: bytes, fin: int, now: float) -> None:
        super().receive_sd(v, field, data, fin, now)
        v.events |= Events.END_OF_STREAM


@mutant("stp-reports-fin-early", breaks="STP-CC-004", also=(_SeesFinEarly, _TellsFinEarly))
class ReportsFinEarly(Connection):
    """Reports the FIN before the data below it."""

    def ask_for_room(self) -> None:
        # A service that has closed with something left to be read would ask for ever.
        if not self.has_closed:
            super().ask_for_room()


@mutant("stp-drops-last-data", breaks="STP-CC-004")
class DropsLastData(Receiver):
    """Reports the FIN without the data of its packet."""

    def deliver(self, data: bytes, fin: int) -> None:
        super().deliver(b"" if fin else data, fin)


@mutant("stp-acknowledges-no-end", breaks="STP-CC-022")
class AcknowledgesNoEnd(Actions):
    """Does not acknowledge ENDs."""

    def be_aborted(self, v: Variables, end: End, now: float) -> None:
        self.fail(v, "aborted by the peer", end.reason, now)


mutant("stp-releases-with-the-peer", "STP-CC-023", "releases when the peer's stream has ended")(
    overriding(Guards, Guards.is_complete, lambda self, v: self.peer_is_finished(v))
)


@mutant("stp-stops-with-the-peer", breaks="STP-CC-023")
class StopsWithThePeer(Connection):
    """Sends nothing more after the peer's FIN."""

    def send_data(self, now: float) -> None:
        if not self.peer_has_closed:
            super().send_data(now)

    def next_deadline(self) -> float:
        stopped = self.state is State.READY and self.peer_has_closed
        return math.inf if stopped else super().next_deadline()


@mutant("stp-ends-too-soon", breaks="STP-CC-024")
class EndsTooSoon(Sender):
    """Sends SDs after the one with FIN."""

    def take_new(self, most: int | None = None) -> SentSd:
        entry = super().take_new(most)
        if self.closed:
            entry.fin = 1
        return entry


mutant("stp-leaves-every-release", "STP-CC-025", "waits for the peer's END, though it called")(
    returning(Guards, Guards.awaits_release, True)
)


@mutant("stp-ends-below-the-fin", breaks="STP-CC-025")
class EndsBelowTheFin(Actions):
    """Sends an END whose N(R) is that of the FIN."""

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        end = super().end(v, flags, reason)
        return end if flags else replace(end, n_r=end.n_r - 1 & PACKET_MASK)


@mutant("stp-ignores-endaks", breaks="STP-CC-026")
class IgnoresEndaks(Guards):
    """Repeats an END that has been acknowledged."""

    def is_for_us(self, v: Variables, packet: Bgak | Bgrej | Endak) -> bool:
        return not isinstance(packet, Endak) and super().is_for_us(v, packet)


@mutant("stp-ends-once", breaks="STP-CC-026")
class EndsOnce(Actions):
    """Does not repeat its END."""

    def max_cc(self, v: Variables) -> int:
        return 1 if v.state is State.OUTGOING_RELEASE else super().max_cc(v)


@mutant("stp-ends-without-backoff", breaks="STP-CC-026")
class EndsWithoutBackoff(Actions):
    """Repeats its END every second."""

    def wait_cc(self, v: Variables, transmissions: int) -> float:
        return super().wait_cc(v, 0 if v.state is State.OUTGOING_RELEASE else transmissions)


@mutant("stp-waits-for-its-fin", breaks="STP-CC-027")
class WaitsForItsFin(Guards):
    """Ignores a premature END."""

    def is_valid(self, v: Variables, end: End) -> bool:
        if v.state is State.READY and not end.flags & (Flags.A | Flags.R):
            return self.completes(v, end) and super().is_valid(v, end)
        return super().is_valid(v, end)


@mutant("stp-reports-after-the-end", breaks="STP-CC-028")
class ReportsAfterTheEnd(Connection):
    """Answers POLLs after its END."""

    def receive(self, packet: Packet, now: float) -> bool:
        if self.state is State.OUTGOING_RELEASE and isinstance(packet, Poll):
            self.machine.actions.answer_poll(self, packet, now)
            return False
        return super().receive(packet, now)


mutant("stp-never-releases", "STP-CC-031", "waits for the caller's END for ever")(
    returning(Actions, Actions.release_wait, math.inf)
)
mutant("stp-releases-as-well", "STP-CC-031", "releases at once, though it was called")(
    returning(Guards, Guards.awaits_release, False)
)


@mutant("stp-gives-calls-up-silently", breaks="STP-CC-044")
class GivesCallsUpSilently(Actions):
    """Forgets a call that nobody answers without an END."""

    def abort(self, v: Variables, text: str, reason: Reason, now: float) -> None:
        if v.state is State.OUTGOING:
            self.fail(v, text, reason, now)
            v.state = State.IDLE
        else:
            super().abort(v, text, reason, now)


@mutant("stp-aborts-with-its-iss", breaks="STP-CC-045")
class AbortsWithItsIss(Actions):
    """Sends its own ISS as N(R) while it knows no other number."""

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        end = super().end(v, flags, reason)
        return end if v.receiver is not None else replace(end, n_r=v.iss & PACKET_MASK)


@mutant("stp-aborts-no-csn", breaks="STP-CC-045")
class AbortsNoCsn(Actions):
    """Names no recipient in an END with A flag."""

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        end = super().end(v, flags, reason)
        return replace(end, peer_csn=0) if flags else end


mutant("stp-acknowledges-reflections", "STP-CC-046", "acknowledges an END with R flag")(
    returning(Guards, Guards.is_reflected, False)
)


@mutant("stp-repeats-another-end", breaks="STP-CC-026")
class RepeatsAnotherEnd(Actions):
    """Repeats its END with another reason."""

    def repeat_end(self, v: Variables, now: float) -> None:
        if v.release is not None and v.transmissions:
            v.release = replace(v.release, reason=Reason.ABORTED)
        super().repeat_end(v, now)


@mutant("stp-stays-after-its-ends", breaks="STP-CC-026")
class StaysAfterItsEnds(Actions):
    """Waits for an ENDAK for ever."""

    def repeat_end(self, v: Variables, now: float) -> None:
        if v.transmissions >= self.max_cc(v):
            v.timer_cc = math.inf
        else:
            super().repeat_end(v, now)


@mutant("stp-releases-by-an-abort", breaks="STP-CC-025")
class ReleasesByAnAbort(Actions):
    """Ends a complete connection by an END with A flag."""

    def release(self, v: Variables, now: float) -> None:
        self.send_end(v, self.end(v, Flags.A, Reason.NONE), now)
