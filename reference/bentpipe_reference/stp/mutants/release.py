"""Mutants of half-close and release (STP-CC, sections 5.4 and 5.5)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.mutants.hosts import with_parts
from bentpipe_reference.stp.packets import (
    Begin,
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


class ReportsFinEarly(Connection):
    """Reports the end of the stream when the FIN arrives, whatever is missing."""

    def peer_is_finished(self) -> bool:
        held = {} if self.receiver is None else self.receiver._held
        return super().peer_is_finished() or any(fin for _, fin in held.values())

    def _receive_sd(self, field: int, data: bytes, fin: int, now: float) -> None:
        super()._receive_sd(field, data, fin, now)
        self.events |= Events.END_OF_STREAM

    def ask_for_room(self) -> None:
        # A service that has closed with something left to be read would ask for ever.
        if not self.has_closed:
            super().ask_for_room()


class DropsLastData(Receiver):
    """Takes an SD with FIN for one without data."""

    def deliver(self, data: bytes, fin: int) -> None:
        super().deliver(b"" if fin else data, fin)


class AcknowledgesNoEnd(Connection):
    """Ends a connection for an END without a word."""

    def be_aborted(self, end: End, now: float) -> None:
        self.fail("aborted by the peer", end.reason, now)


class ReleasesWithThePeer(Connection):
    """Releases a connection as soon as the peer's stream has ended."""

    def is_complete(self) -> bool:
        return self.peer_is_finished()


class StopsWithThePeer(Connection):
    """Sends nothing more once the peer's stream has ended."""

    def _send_data(self, now: float) -> None:
        if not self.peer_is_finished():
            super()._send_data(now)

    def next_deadline(self) -> float:
        stopped = self.state is State.READY and self.peer_is_finished()
        return math.inf if stopped else super().next_deadline()


class EndsTooSoon(Sender):
    """Sets the FIN flag once its user has closed, whatever is still unsent."""

    def take_new(self) -> SentSd:
        entry = super().take_new()
        if self.closed:
            entry.fin = 1
        return entry


class LeavesEveryRelease(Connection):
    """Waits for the peer's END when it is complete, though it called."""

    def leaves_release(self) -> bool:
        return True


class NeverReleases(Connection):
    """Waits for the caller's END for ever."""

    def release_wait(self) -> float:
        return math.inf


class ReleasesAsWell(Connection):
    """Sends its END when it is complete, though it was called."""

    def leaves_release(self) -> bool:
        return False


class EndsBelowTheFin(Connection):
    """Leaves the peer's FIN out of the N(R) of its END."""

    def end(self, flags: int, reason: Reason, peer_csn: int | None = None) -> End:
        end = super().end(flags, reason, peer_csn)
        return end if flags else replace(end, n_r=end.n_r - 1 & PACKET_MASK)


class YieldsWhenComplete(Connection):
    """Forgets a complete connection for the BEGIN of another, though its caller may need it yet."""

    def receive(self, packet: Packet, octets: int, now: float) -> bool:
        complete = self.state is State.READY and self.is_over
        if complete and isinstance(packet, Begin) and self.is_newer_begin(packet):
            self.forget(packet, now)
            return True
        return super().receive(packet, octets, now)


class IgnoresEndaks(Connection):
    """Goes on repeating its END when it has been acknowledged."""

    def is_for_us(self, packet: Bgak | Bgrej | Endak) -> bool:
        return not isinstance(packet, Endak) and super().is_for_us(packet)


class EndsOnce(Connection):
    """Does not repeat its END."""

    def max_cc(self) -> int:
        return 1 if self.state is State.OUTGOING_RELEASE else super().max_cc()


class EndsWithoutBackoff(Connection):
    """Repeats its END every second."""

    def timer_cc(self, transmissions: int) -> float:
        return super().timer_cc(0 if self.state is State.OUTGOING_RELEASE else transmissions)


class WaitsForItsFin(Connection):
    """Ignores the END of a peer that has not taken everything."""

    def is_valid_end(self, end: End) -> bool:
        if self.state is State.READY and not end.flags & (Flags.A | Flags.R):
            complete = self.covers_fin(end.n_r) and self.peer_is_finished()
            return complete and super().is_valid_end(end)
        return super().is_valid_end(end)


class ReportsAfterTheEnd(Connection):
    """Answers POLLs after its END."""

    def receive(self, packet: Packet, octets: int, now: float) -> bool:
        if self.state is State.OUTGOING_RELEASE and isinstance(packet, Poll):
            self.answer_poll(packet, now)
            return False
        return super().receive(packet, octets, now)


def _of(identifier: str, breaks: str, title: str, **parts: Any) -> Mutant:
    return Mutant(f"stp-{identifier}", f"STP-CC-{breaks}", title, with_parts(**parts), "stp1")


def _in(identifier: str, breaks: str, title: str, connection: type[Connection]) -> Mutant:
    return _of(identifier, breaks, title, connection_class=connection)


MUTANTS = (
    _in("reports-fin-early", "004", "reports the FIN before the data below it", ReportsFinEarly),
    _of("drops-last-data", "004", "reports the FIN without the data of its packet",
        receiver_class=DropsLastData),
    _in("yields-when-complete", "018", "forgets a complete connection for the BEGIN of another",
        YieldsWhenComplete),
    _in("acknowledges-no-end", "022", "does not acknowledge ENDs", AcknowledgesNoEnd),
    _in("releases-with-the-peer", "023", "releases when the peer's stream has ended",
        ReleasesWithThePeer),
    _in("stops-with-the-peer", "023", "sends nothing more after the peer's FIN",
        StopsWithThePeer),
    _of("ends-too-soon", "024", "sends SDs after the one with FIN", sender_class=EndsTooSoon),
    _in("leaves-every-release", "025", "waits for the peer's END, though it called",
        LeavesEveryRelease),
    _in("ends-below-the-fin", "025", "sends an END whose N(R) is that of the FIN",
        EndsBelowTheFin),
    _in("ignores-endaks", "026", "repeats an END that has been acknowledged", IgnoresEndaks),
    _in("ends-once", "026", "does not repeat its END", EndsOnce),
    _in("ends-without-backoff", "026", "repeats its END every second", EndsWithoutBackoff),
    _in("waits-for-its-fin", "027", "ignores a premature END", WaitsForItsFin),
    _in("reports-after-the-end", "028", "answers POLLs after its END", ReportsAfterTheEnd),
    _in("never-releases", "031", "waits for the caller's END for ever", NeverReleases),
    _in("releases-as-well", "031", "releases at once, though it was called", ReleasesAsWell),
)  # fmt: skip
