"""Mutants of data transfer (STP-DT), the sender."""

from __future__ import annotations

import math
from dataclasses import replace

from bentpipe_reference.stp.config import MOST_CREDIT
from bentpipe_reference.stp.mutants import mutant, overriding, returning
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Stat, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import PACKET_MASK, unwrap_poll, wrap_poll


def _await_all(sender: Sender, report: Report) -> None:
    """Queue every SD that is under way."""
    for number in list(sender._numbers):
        entry = sender._kept[number]
        if not entry.queued:
            sender.queue(entry, report)


@mutant("stp-compares-loosely", breaks="STP-DT-003")
class ComparesLoosely(Sender):
    """Retransmits what was sent after the POLL that a STAT answers."""

    def predates(self, entry: SentSd, n_ps: int) -> bool:
        return entry.stamp <= n_ps


@mutant("stp-needs-another-poll", breaks="STP-DT-003")
class NeedsAnotherPoll(Sender):
    """Retransmits on STATs only what was sent once, and two POLLs ago."""

    def predates(self, entry: SentSd, n_ps: int) -> bool:
        return entry.stamp + 1 < n_ps and entry.times == 1


@mutant("stp-polls-only-with-data", breaks="STP-DT-004")
class PollsOnlyWithData(Polling):
    """Polls only along with data."""

    def poll_at(self, *, stopped: bool) -> float:
        return math.inf

    def deadline(self) -> float:
        return math.inf

    def expire(self, now: float) -> bool:
        return False

    no_response_s = math.inf


@mutant("stp-takes-the-rest-for-received", breaks="STP-DT-006")
class TakesTheRestForReceived(Sender):
    """Takes what is above a STAT's bound for received."""

    def on_stat(self, stat: Stat) -> Report | None:
        report = super().on_stat(stat)
        if report is not None and stat.elements:
            bound = self.vt_a + (stat.elements[-1] - self.vt_a & PACKET_MASK)
            for number in [number for number in self._numbers if number >= bound]:
                self.release(number, report)
                self._numbers.remove(number)
        return report


mutant("stp-works-off-old-stats", "STP-DT-007", "works off STATs that are overtaken")(
    returning(Sender, Sender.fresh, True)
)


@mutant("stp-sends-new-first", breaks="STP-DT-009")
class SendsNewFirst(Sender):
    """Sends new SDs before retransmissions."""

    def awaiting(self) -> SentSd | None:
        return None if self.has_new and self.permitted() else super().awaiting()


@mutant("stp-forgets-what-it-repeated", breaks="STP-DT-010")
class ForgetsWhatItRepeated(Sender):
    """Releases an SD once it has been retransmitted."""

    def retransmit(self, entry: SentSd) -> None:
        super().retransmit(entry)
        self._kept.pop(entry.number)
        self._numbers.remove(entry.number)
        self.flight -= entry.size


mutant("stp-exceeds-the-credit", "STP-DT-011", "sends two SDs beyond the credit")(
    overriding(Sender, Sender.permitted, lambda self: self.vt_s < self.vt_ms + 2)
)
mutant(
    "stp-repeats-for-every-ustat",
    "STP-DT-014",
    "retransmits on a USTAT what was retransmitted before",
)(returning(Sender, Sender.sent_once, True))


@mutant("stp-judges-a-run-by-its-first", breaks="STP-DT-014")
class JudgesARunByItsFirst(Sender):
    """Retransmits nothing on a USTAT whose first SD has been sent twice."""

    def on_ustat(self, ustat: Ustat) -> Report | None:
        first = ustat.elements[0]
        entry = self._kept.get(self.vt_a + (first - self.vt_a & PACKET_MASK))
        if entry is not None and not self.sent_once(entry):
            ustat = replace(ustat, elements=(first, first + 1 & PACKET_MASK))
        return super().on_ustat(ustat)


mutant("stp-ignores-ustats", "STP-DT-014", "retransmits nothing on a USTAT")(
    returning(Sender, Sender.sent_once, False)
)


@mutant("stp-repeats-half", breaks="STP-DT-015")
class RepeatsHalf(Sender):
    """Retransmits the first half of an SD."""

    def retransmit(self, entry: SentSd) -> None:
        super().retransmit(entry)
        entry.data = entry.data[: max(1, len(entry.data) // 2)]


@mutant("stp-repeats-with-fin", breaks="STP-DT-015")
class RepeatsWithFin(Sender):
    """Sets the FIN flag in retransmissions."""

    def retransmit(self, entry: SentSd) -> None:
        super().retransmit(entry)
        entry.fin = 1


@mutant("stp-skips-numbers", breaks="STP-DT-016")
class SkipsNumbers(Sender):
    """Leaves numbers out."""

    def take_new(self, most: int | None = None) -> SentSd:
        if (self.vt_s - self.iss) % 9 == 8:
            self.vt_s += 1
        return super().take_new(most)


@mutant("stp-takes-too-high-bounds", breaks="STP-DT-023")
class TakesTooHighBounds(Sender):
    """Works off STATs whose bound is above their credit."""

    def read_list(self, packet: Stat | Ustat, n_r: int) -> list[int] | None:
        return super().read_list(replace(packet, n_mr=packet.n_mr + 1000 & PACKET_MASK), n_r)


@mutant("stp-takes-stats-of-no-poll", breaks="STP-DT-023")
class TakesStatsOfNoPoll(Sender):
    """Works off STATs for POLLs that were never sent."""

    def read_report(self, packet: Stat | Ustat) -> tuple[int | None, int, list[int]] | None:
        if isinstance(packet, Stat) and packet.n_ps and self.vt_ps:
            n_ps = min(unwrap_poll(packet.n_ps, self.vt_ps), self.vt_ps)
            packet = replace(packet, n_ps=wrap_poll(n_ps))
        return super().read_report(packet)


@mutant("stp-works-off-lists-of-announcements", breaks="STP-DT-023")
class WorksOffListsOfAnnouncements(Sender):
    """Works off the list of a STAT that answers no POLL."""

    def read_report(self, packet: Stat | Ustat) -> tuple[int | None, int, list[int]] | None:
        announces = isinstance(packet, Stat) and not packet.n_ps and packet.elements
        if isinstance(packet, Stat) and announces and self.vt_ps:
            packet = replace(packet, n_ps=wrap_poll(self.vt_ps))
        return super().read_report(packet)


@mutant("stp-grants-before-it-checks", breaks="STP-DT-023")
class GrantsBeforeItChecks(Sender):
    """Takes the credit of invalid USTATs."""

    def read_report(self, packet: Stat | Ustat) -> tuple[int | None, int, list[int]] | None:
        if isinstance(packet, Ustat):
            self.grant(packet.n_mr, self.vt_a + (packet.n_r - self.vt_a & PACKET_MASK))
        return super().read_report(packet)


@mutant("stp-repeats-at-silence", breaks="STP-DT-027")
class RepeatsAtSilence(Outgoing):
    """Retransmits by a timer."""

    def expire(self, now: float) -> bool:
        before = self.polling.silences
        alive = super().expire(now)
        if self.polling.silences > before:
            _await_all(self.sender, Report(None, self.sender.flight))
        return alive


@mutant("stp-goes-back", breaks="STP-DT-027")
class GoesBack(Sender):
    """Retransmits everything under way for one missing SD."""

    def on_stat(self, stat: Stat) -> Report | None:
        before = self.queued()
        report = super().on_stat(stat)
        if report is not None and set(self.queued()).difference(before):
            _await_all(self, report)
        return report


mutant("stp-never-probes", "STP-DT-025", "waits for credit without asking")(
    returning(Outgoing, Outgoing.is_closed, False)
)


@mutant("stp-end-of-stream-not-probed-for", breaks="STP-DT-025")
class EndOfStreamNotProbedFor(Outgoing):
    """Asks for no credit where only the empty SD with the FIN flag waits for it."""

    def is_closed(self) -> bool:
        return super().is_closed() and self.sender.unsent > 0


@mutant("stp-probes-steadily", breaks="STP-DT-025")
class ProbesSteadily(Polling):
    """Asks for credit at the silence time for ever."""

    def reported(self, now: float, *, opens: bool) -> None:
        super().reported(now, opens=True)


@mutant("stp-takes-the-most-credit-for-none", breaks="STP-DT-029")
class TakesTheMostCreditForNone(Sender):
    """Half the numbers at once is no credit at all."""

    def grant(self, field: int, n_r: int) -> None:
        if field - n_r & PACKET_MASK < MOST_CREDIT:
            super().grant(field, n_r)


@mutant("stp-ignores-the-credit-of-ustats", breaks="STP-DT-029")
class IgnoresTheCreditOfUstats(Sender):
    """Takes no credit from a USTAT."""

    def on_ustat(self, ustat: Ustat) -> Report | None:
        before = self.vt_ms
        report = super().on_ustat(ustat)
        self.vt_ms = before
        return report


@mutant("stp-takes-credit-back", breaks="STP-DT-007")
class TakesCreditBack(Sender):
    """Lets its credit fall to what the last report says."""

    def grant(self, field: int, n_r: int) -> None:
        self.vt_ms = n_r + (field - n_r & PACKET_MASK)


@mutant("stp-repeats-one-at-a-time", breaks="STP-DT-009")
class RepeatsOneAtATime(Outgoing):
    """Retransmits one SD in a round trip."""

    def _may_repeat(self, entry: SentSd) -> bool:
        idle = self.congestion.first_retransmission or not self.sender.flight
        return idle and super()._may_repeat(entry)


@mutant("stp-takes-a-last-run-for-held", breaks="STP-DT-006")
class TakesALastRunForHeld(Sender):
    """Takes a run that is missing at the end of a list for held."""

    def _process_list(self, elements: list[int], n_ps: int, report: Report) -> None:
        super()._process_list(elements, n_ps, report)
        if len(elements) > 2 and not len(elements) % 2:
            for number in [n for n in self._numbers if elements[-2] <= n < elements[-1]]:
                self.release(number, report)
                self._numbers.remove(number)


@mutant("stp-sends-nothing-at-all", breaks="STP-DT-030")
class SendsNothingAtAll(Sender):
    """Opens connections, and never sends an SD."""

    @property
    def has_new(self) -> bool:
        return False


@mutant("stp-asks-for-credit-without-need", breaks="STP-PL-010")
class AsksForCreditWithoutNeed(Outgoing):
    """Asks for credit also while it has nothing to send."""

    def is_closed(self) -> bool:
        return not self.sender.unacknowledged and not self.sender.permitted()
