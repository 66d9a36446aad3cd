"""Mutants of data transfer (STP-DT), the receiver."""

from __future__ import annotations

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Idle
from bentpipe_reference.stp.mutants import mutant, overriding, returning
from bentpipe_reference.stp.packets import Flags, Packet, Sdp
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables


def _ahead(receiver: Receiver, field: int) -> int:
    return receiver.vr_r + (field - receiver.vr_r & PACKET_MASK)


@mutant("stp-reports-from-vr-r", breaks="STP-DT-001")
class ReportsFromVrR(Receiver):
    """Reports gaps from VR(R) on, again and again."""

    def is_gap(self, number: int) -> bool:
        return number > self.vr_r and (number > self.vr_h or number - 1 not in self._held)

    def gap_start(self) -> int:
        return self.vr_r

    def _miss(self, start: int, end: int) -> None:
        if end > self.vr_h:
            super()._miss(self.vr_h, end)


@mutant("stp-sends-no-ustat", breaks="STP-DT-001")
class SendsNoUstat(Receiver):
    """Sends no USTAT."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        super().on_sd(field, data, fin)
        return None


mutant("stp-ignores-the-polled-number", "STP-DT-002", "does not raise VR(H) by a POLL")(
    returning(Receiver, Receiver.raise_highest, None)
)


@mutant("stp-forgets-the-wrap", breaks="STP-DT-005")
class ForgetsTheWrap(Receiver):
    """Takes numbers beyond the wrap for old ones."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        return None if field < self.iss else super().on_sd(field, data, fin)


@mutant("stp-leaves-the-bound-out", breaks="STP-DT-006")
class LeavesTheBoundOut(Receiver):
    """Leaves the bound of its lists out."""

    def whole_list(self) -> list[int]:
        elements = super().whole_list()
        return elements[:-1] if len(elements) % 2 else elements


@mutant("stp-lowers-vr-h", breaks="STP-DT-007")
class LowersVrH(Receiver):
    """Sets VR(H) back to an old POLL's N(S)."""

    def on_poll(self, field: int) -> list[tuple[int, ...]]:
        number = self.vr_h - (self.vr_h - field & PACKET_MASK)
        if self.vr_r < number < self.vr_h and self.vr_h - number < 1 << 20:
            self.vr_h = number
            self._held = {n: sd for n, sd in self._held.items() if n < number}
            runs = [(a, min(b, number)) for a, b in zip(self._starts, self._ends, strict=True)]
            self._starts = [a for a, b in runs if a < b]
            self._ends = [b for a, b in runs if a < b]
        return super().on_poll(field)


@mutant("stp-clamps-the-polled-number", breaks="STP-DT-008")
class ClampsPolledNumber(Receiver):
    """Raises VR(H) by a POLL beyond its credit."""

    def raise_highest(self, number: int) -> None:
        super().raise_highest(min(number, self.vr_mr))


@mutant("stp-expects-more-than-the-fin", breaks="STP-DT-008")
class ExpectsMoreThanTheFin(Receiver):
    """Raises VR(H) by a POLL beyond the FIN that it holds."""

    def raise_highest(self, number: int) -> None:
        fin, self.fin_number = self.fin_number, None
        super().raise_highest(number)
        self.fin_number = fin


mutant("stp-answers-foreign-polls", "STP-DT-008", "answers POLLs with another CSN than its peer's")(
    overriding(Guards, Guards.is_bad_poll, lambda self, v, poll: not poll.n_ps)  # noqa: ARG005
)
mutant("stp-answers-polls-without-number", "STP-DT-008", "answers POLLs and SDPs with N(PS) 0")(
    overriding(Guards, Guards.is_bad_poll, lambda self, v, poll: poll.csn != v.peer_csn)  # noqa: ARG005
)


@mutant("stp-takes-foreign-sdps", breaks="STP-DT-008")
class TakesForeignSdps(Actions):
    """Takes the SD of an SDP with another CSN than its peer's."""

    def discard(self, v: Variables, packet: Packet, now: float) -> None:
        if isinstance(packet, Sdp) and v.state is State.READY:
            self.receive_sd(v, packet.n_s, packet.data, packet.flags & Flags.FIN, now)


@mutant("stp-delivers-twice", breaks="STP-DT-012")
class DeliversTwice(Receiver):
    """Delivers duplicates."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        if 0 < (self.vr_r - field & PACKET_MASK) < 64 and data:
            self._chunks.append(data)
            self.readable += len(data)
        return super().on_sd(field, data, fin)


@mutant("stp-delivers-as-it-comes", breaks="STP-DT-012")
class DeliversAsItComes(Receiver):
    """Delivers SDs in the order of their arrival."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        number = _ahead(self, field)
        early = number != self.vr_r and self.takes(number) and bool(data)
        if early:
            self._chunks.append(data)
            self.readable += len(data)
        return super().on_sd(field, b"" if early else data, fin)


@mutant("stp-answers-new-polls-only", breaks="STP-DT-017")
class AnswersNewPollsOnly(Receiver):
    """Does not answer POLLs whose N(S) is below that of one before."""

    _newest = 0

    def on_poll(self, field: int) -> list[tuple[int, ...]]:
        number = self.vr_h - (self.vr_h - field & PACKET_MASK)
        if self.vr_h - number < 1 << 20 and number < self._newest:
            return []
        self._newest = max(self._newest, min(_ahead(self, field), self.vr_mr))
        return super().on_poll(field)


@mutant("stp-answers-within-the-credit", breaks="STP-DT-017")
class AnswersWithinTheCredit(Receiver):
    """Does not answer POLLs whose N(S) is beyond its credit."""

    def on_poll(self, field: int) -> list[tuple[int, ...]]:
        beyond = _ahead(self, field) > self.vr_mr
        return [] if beyond else super().on_poll(field)


@mutant("stp-reports-one-run", breaks="STP-DT-018")
class ReportsOneRun(Receiver):
    """Reports the first missing run only."""

    def whole_list(self) -> list[int]:
        elements = super().whole_list()
        return [*elements[:2], self.vr_h] if len(elements) > 3 else elements


@mutant("stp-reports-duplicates", breaks="STP-DT-019")
class ReportsDuplicates(Receiver):
    """Answers duplicates by a USTAT."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        number = _ahead(self, field)
        again = number in self._held and number > self.vr_r
        gap = super().on_sd(field, data, fin)
        return (self.vr_r, number) if again else gap


@mutant("stp-takes-beyond-the-credit", breaks="STP-DT-020")
class TakesBeyondTheCredit(Receiver):
    """Takes SDs beyond its credit."""

    def takes(self, number: int) -> bool:
        return number < self.vr_mr + 8 and number not in self._held


@mutant("stp-takes-unannounced-credit", breaks="STP-DT-020")
class TakesUnannouncedCredit(Receiver):
    """Takes SDs for which there is room, but of which it has not told."""

    def takes(self, number: int) -> bool:
        announced, self.vr_mr = self.vr_mr, self.credit()
        taken = super().takes(number)
        self.vr_mr = announced
        return taken


@mutant("stp-shrinks-its-credit", breaks="STP-DT-021")
class ShrinksItsCredit(Receiver):
    """Takes credit back while a gap is open."""

    def reported(self) -> None:
        super().reported()
        if self._held:
            self.vr_mr -= 8


@mutant("stp-drops-what-it-holds", breaks="STP-DT-022")
class DropsWhatItHolds(Receiver):
    """Drops SDs that it has reported as held."""

    _polls = 0

    def on_poll(self, field: int) -> list[tuple[int, ...]]:
        self._polls += 1
        if self._polls % 4 == 0 and self._held and max(self._held) + 1 == self.vr_h:
            number = max(self._held)
            del self._held[number]
            self.vr_h = number
            self._miss(number, number + 1)
            self.vr_h = number + 1
        return super().on_poll(field)


mutant("stp-opens-in-silence", "STP-DT-024", "does not announce a reopened window")(
    returning(Receiver, Receiver.reopened, False)
)


@mutant("stp-announces-at-every-read", breaks="STP-DT-024")
class AnnouncesAtEveryRead(Receiver):
    """Announces credit whenever there is more of it."""

    def reopened(self) -> bool:
        return self.credit() > self.vr_mr


@mutant("stp-answers-when-it-announces", breaks="STP-DT-024")
class AnswersWhenItAnnounces(Actions):
    """Announces credit in a STAT for POLL 1."""

    def announce_credit(self, v: Variables) -> None:
        v.incoming.reported()
        self._send_stat(v, 1, 0, ())


@mutant("stp-takes-after-the-fin", breaks="STP-DT-028")
class TakesAfterTheFin(Receiver):
    """Takes SDs numbered above a FIN that it holds."""

    def takes(self, number: int) -> bool:
        fin, self.fin_number = self.fin_number, None
        taken = super().takes(number)
        self.fin_number = fin
        return taken


@mutant("stp-takes-a-fin-below-data", breaks="STP-DT-028")
class TakesAFinBelowData(Receiver):
    """Takes a FIN below SDs that it holds."""

    def contradicts(self, number: int) -> bool:
        return False


@mutant("stp-takes-any-size", breaks="STP-DT-028")
class TakesAnySize(Receiver):
    """Takes SDs with more user data than its MaxSD."""

    def fits(self, data: bytes) -> bool:
        return True


mutant("stp-answers-large-begins", "STP-DT-028", "answers a BEGIN with more data than its MaxSD")(
    returning(Idle, Idle.is_too_large, False)
)


@mutant("stp-announces-a-few", breaks="STP-DT-024")
class AnnouncesAFew(Receiver):
    """Announces a window that has opened by one SD."""

    def reopened(self) -> bool:
        return self._closed and self.credit() > self.vr_mr


@mutant("stp-announces-what-was-used-up", breaks="STP-DT-024")
class AnnouncesWhatWasUsedUp(Receiver):
    """Announces credit though the last report showed some, if it has been used up since."""

    def reopened(self) -> bool:
        self._closed = self.vr_mr <= self.vr_h
        return super().reopened()


@mutant("stp-announces-an-empty-buffer", breaks="STP-DT-024")
class AnnouncesAnEmptyBuffer(Receiver):
    """Announces a window that was closed once nine tenths of it are open."""

    def reopened(self) -> bool:
        return self._closed and self.credit() - self.vr_mr >= 0.9 * self._credit


@mutant("stp-stops-below-the-credit", breaks="STP-DT-002")
class StopsBelowTheCredit(Receiver):
    """Does not raise VR(H) by a POLL whose N(S) is exactly VR(MR)."""

    def raise_highest(self, number: int) -> None:
        if number < self.vr_mr:
            super().raise_highest(number)


@mutant("stp-reports-whole-gaps-late", breaks="STP-DT-031", setting="reordering")
class ReportsWholeGapsLate(Receiver):
    """Reports in a USTAT that has waited also what has arrived meanwhile."""

    def due_ustats(self, now: float) -> list[Run]:
        due = [item for item in self._waiting if item[3] <= now or item[2] <= self._arrivals]
        self._waiting = [item for item in self._waiting if item not in due]
        return [(first, end) for first, end, *_ in due]


@mutant("stp-reports-after-a-stat", breaks="STP-DT-031", setting="reordering")
class ReportsAfterAStat(Receiver):
    """Sends a USTAT that waits after a STAT that has reported its gap."""

    def on_poll(self, field: int) -> list[tuple[int, ...]]:
        waiting = list(self._waiting)
        lists = super().on_poll(field)
        self._waiting += waiting
        return lists


@mutant("stp-waits-for-ever", breaks="STP-DT-031", setting="reordering")
class WaitsForEver(Receiver):
    """Leaves gaps to STATs where the path reorders."""

    def hold_back(self, gap: Run, until: float) -> None:
        """Forget the gap."""
