"""Mutants of data transfer (STP-DT), the receiver."""

from __future__ import annotations

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.mutants.hosts import with_parts
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sequence import PACKET_MASK


def _ahead(receiver: Receiver, field: int) -> int:
    return receiver.vr_r + (field - receiver.vr_r & PACKET_MASK)


class ReportsFromVrR(Receiver):
    """Reads "beyond the next expected" as beyond VR(R)."""

    def is_gap(self, number: int) -> bool:
        return number > self.vr_r and (number > self.vr_h or number - 1 not in self._held)

    def gap_start(self) -> int:
        return self.vr_r

    def _miss(self, start: int, end: int) -> None:
        if end > self.vr_h:
            super()._miss(self.vr_h, end)


class SendsNoUstat(Receiver):
    """Leaves the report of gaps to STATs."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        super().on_sd(field, data, fin)
        return None


class IgnoresPolledNumber(Receiver):
    """Does not raise VR(H) by a POLL."""

    def raise_highest(self, number: int) -> None:
        pass


class ForgetsTheWrap(Receiver):
    """Takes numbers below the ISS for old ones."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        return None if field < self.iss else super().on_sd(field, data, fin)


class LeavesTheBoundOut(Receiver):
    """Ends a list where the last run that is held begins."""

    def whole_list(self) -> list[int]:
        elements = super().whole_list()
        return elements[:-1] if len(elements) % 2 else elements


class LowersVrH(Receiver):
    """Sets VR(H) back to an old POLL's N(S), and forgets what is held from there on."""

    def on_poll(self, field: int, n_ps: int, timestamp: int) -> list[tuple[int, ...]]:
        number = self.vr_h - (self.vr_h - field & PACKET_MASK)
        if self.vr_r < number < self.vr_h and self.vr_h - number < 1 << 20:
            self.vr_h = number
            self._held = {n: sd for n, sd in self._held.items() if n < number}
            runs = [(a, min(b, number)) for a, b in zip(self._starts, self._ends, strict=True)]
            self._starts = [a for a, b in runs if a < b]
            self._ends = [b for a, b in runs if a < b]
        return super().on_poll(field, n_ps, timestamp)


class ClampsPolledNumber(Receiver):
    """Raises VR(H) to its credit by a POLL that is beyond."""

    def raise_highest(self, number: int) -> None:
        super().raise_highest(min(number, self.vr_mr))


class DeliversTwice(Receiver):
    """Hands an SD over again when it arrives again."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        if 0 < (self.vr_r - field & PACKET_MASK) < 64 and data:
            self._chunks.append(data)
            self._readable += len(data)
        return super().on_sd(field, data, fin)


class DeliversAsItComes(Receiver):
    """Hands SDs over in the order of their arrival."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        number = _ahead(self, field)
        early = number != self.vr_r and self.takes(number) and bool(data)
        if early:
            self._chunks.append(data)
            self._readable += len(data)
        return super().on_sd(field, b"" if early else data, fin)


class AnswersNewPollsOnly(Receiver):
    """Does not answer a POLL older than one before."""

    _newest = 0

    def on_poll(self, field: int, n_ps: int, timestamp: int) -> list[tuple[int, ...]]:
        if n_ps < self._newest:
            return []
        self._newest = n_ps
        return super().on_poll(field, n_ps, timestamp)


class AnswersWithinTheCredit(Receiver):
    """Does not answer a POLL whose N(S) is beyond the credit."""

    def on_poll(self, field: int, n_ps: int, timestamp: int) -> list[tuple[int, ...]]:
        if _ahead(self, field) > self.vr_mr:
            return []
        return super().on_poll(field, n_ps, timestamp)


class ReportsOneRun(Receiver):
    """Reports the first run that is missing, and takes the rest for held."""

    def whole_list(self) -> list[int]:
        elements = super().whole_list()
        return [*elements[:2], self.vr_h] if len(elements) > 3 else elements


class ReportsDuplicates(Receiver):
    """Takes a duplicate for the end of a gap."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        number = _ahead(self, field)
        again = number in self._held and number > self.vr_r
        gap = super().on_sd(field, data, fin)
        return (self.vr_r, number) if again else gap


class TakesBeyondTheCredit(Receiver):
    """Takes a few SDs more than it permits."""

    def takes(self, number: int) -> bool:
        return number < self.vr_mr + 8 and number not in self._held


class ShrinksItsCredit(Receiver):
    """Permits less while SDs are held above a gap."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        gap = super().on_sd(field, data, fin)
        if gap is not None:
            self.vr_mr -= 8
        return gap


class DropsWhatItHolds(Receiver):
    """Gives its highest SD up at every fourth POLL, to make room."""

    _polls = 0

    def on_poll(self, field: int, n_ps: int, timestamp: int) -> list[tuple[int, ...]]:
        self._polls += 1
        if self._polls % 4 == 0 and self._held and max(self._held) + 1 == self.vr_h:
            number = max(self._held)
            del self._held[number]
            self.vr_h = number
            self._miss(number, number + 1)
            self.vr_h = number + 1
        return super().on_poll(field, n_ps, timestamp)


class OpensInSilence(Receiver):
    """Leaves it to the sender to find out that the window is open again."""

    def reopened(self) -> bool:
        return False


class RemembersAnyPoll(Receiver):
    """Announces credit in the name of whatever POLL came."""

    def remembers(self, field: int) -> bool:
        return True


def _of(identifier: str, breaks: str, title: str, receiver: type[Receiver]) -> Mutant:
    return Mutant(identifier, breaks, title, with_parts(receiver_class=receiver), "stp1")


MUTANTS = (
    _of("stp-reports-from-vr-r", "STP-DT-001", "reports gaps from VR(R) on, again and again",
        ReportsFromVrR),
    _of("stp-sends-no-ustat", "STP-DT-001", "sends no USTAT", SendsNoUstat),
    _of("stp-ignores-the-polled-number", "STP-DT-002", "does not raise VR(H) by a POLL",
        IgnoresPolledNumber),
    _of("stp-forgets-the-wrap", "STP-DT-005", "takes numbers beyond the wrap for old ones",
        ForgetsTheWrap),
    _of("stp-leaves-the-bound-out", "STP-DT-006", "leaves the bound of its lists out",
        LeavesTheBoundOut),
    _of("stp-lowers-vr-h", "STP-DT-007", "sets VR(H) back to an old POLL's N(S)", LowersVrH),
    _of("stp-clamps-the-polled-number", "STP-DT-008", "raises VR(H) by a POLL beyond its credit",
        ClampsPolledNumber),
    _of("stp-delivers-twice", "STP-DT-012", "delivers duplicates", DeliversTwice),
    _of("stp-delivers-as-it-comes", "STP-DT-012", "delivers SDs in the order of their arrival",
        DeliversAsItComes),
    _of("stp-answers-new-polls-only", "STP-DT-017", "does not answer old POLLs",
        AnswersNewPollsOnly),
    _of("stp-answers-within-the-credit", "STP-DT-017",
        "does not answer POLLs whose N(S) is beyond its credit", AnswersWithinTheCredit),
    _of("stp-reports-one-run", "STP-DT-018", "reports the first missing run only", ReportsOneRun),
    _of("stp-reports-duplicates", "STP-DT-019", "answers duplicates by a USTAT",
        ReportsDuplicates),
    _of("stp-takes-beyond-the-credit", "STP-DT-020", "takes SDs beyond its credit",
        TakesBeyondTheCredit),
    _of("stp-shrinks-its-credit", "STP-DT-021", "takes credit back while a gap is open",
        ShrinksItsCredit),
    _of("stp-drops-what-it-holds", "STP-DT-022", "drops SDs that it has reported as held",
        DropsWhatItHolds),
    _of("stp-opens-in-silence", "STP-DT-024", "does not announce a reopened window",
        OpensInSilence),
    _of("stp-remembers-any-poll", "STP-DT-024",
        "names a forged POLL when it announces a reopened window", RemembersAnyPoll),
)  # fmt: skip
