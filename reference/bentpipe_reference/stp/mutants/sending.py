"""Mutants of data transfer (STP-DT), the sender."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.mutants.hosts import with_parts
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Stat, Ustat
from bentpipe_reference.stp.polling import MOST_BACKED_OFF_S, Need, Polling
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import PACKET_MASK


class ComparesLoosely(Sender):
    """Retransmits SDs sent right after the POLL as well."""

    def predates(self, entry: SentSd, n_ps: int) -> bool:
        return entry.stamp <= n_ps


class NeedsAnotherPoll(Sender):
    """Retransmits on a STAT only what two POLLs have followed."""

    def predates(self, entry: SentSd, n_ps: int) -> bool:
        return entry.stamp + 1 < n_ps and entry.times == 1


class PollsOnlyWithData(Polling):
    """Has no timer for POLLs while data is under way."""

    def _poll_at(self) -> float:
        return float("inf") if self.need is Need.DATA else super()._poll_at()

    def no_response_time(self) -> float:
        return float("inf")


class TakesTheRestForReceived(Sender):
    """Releases everything above the bound of a list."""

    def on_stat(self, stat: Stat) -> Report | None:
        report = super().on_stat(stat)
        if report is not None and stat.elements:
            bound = self.vt_a + (stat.elements[-1] - self.vt_a & PACKET_MASK)
            for number in [number for number in self._numbers if number >= bound]:
                self.release(number, report)
                self._numbers.remove(number)
        return report


class WorksOffOldStats(Sender):
    """Works off every STAT, however old."""

    def fresh(self, n_ps: int) -> bool:
        return True


class SendsNewFirst(Sender):
    """Retransmits when the credit permits nothing new."""

    def awaiting(self) -> SentSd | None:
        if self.has_new and self.permitted():
            return None
        return super().awaiting()


class ForgetsWhatItRepeated(Sender):
    """Keeps an SD until it has been sent twice."""

    def retransmit(self, entry: SentSd) -> None:
        super().retransmit(entry)
        self._kept.pop(entry.number)
        self._numbers.remove(entry.number)
        self.flight -= entry.size


class ExceedsTheCredit(Sender):
    """Sends two SDs more than the credit permits."""

    def permitted(self) -> bool:
        return self.vt_s < self.vt_ms + 2


class RepeatsForEveryUstat(Sender):
    """Retransmits whatever a USTAT names."""

    def sent_once(self, entry: SentSd) -> bool:
        return True


class IgnoresUstats(Sender):
    """Leaves retransmissions to STATs."""

    def sent_once(self, entry: SentSd) -> bool:
        return False


class RepeatsHalf(Sender):
    """Retransmits the first half of an SD."""

    def retransmit(self, entry: SentSd) -> None:
        super().retransmit(entry)
        entry.data = entry.data[: max(1, len(entry.data) // 2)]


class RepeatsWithFin(Sender):
    """Sets the FIN flag in retransmissions."""

    def retransmit(self, entry: SentSd) -> None:
        super().retransmit(entry)
        entry.fin = 1


class SkipsNumbers(Sender):
    """Leaves a number out after every eighth SD."""

    def take_new(self) -> SentSd:
        if (self.vt_s - self.iss) % 9 == 8:
            self.vt_s += 1
        return super().take_new()


class TakesTooHighBounds(Sender):
    """Looks at a list's bound no more than at the credit it comes with."""

    def read_list(self, packet: Stat | Ustat, n_r: int) -> list[int] | None:
        return super().read_list(replace(packet, n_mr=packet.n_mr + 1000 & PACKET_MASK), n_r)


class TakesStatsOfNoPoll(Sender):
    """Works off a STAT for a POLL that was never sent."""

    def on_stat(self, stat: Stat) -> Report | None:
        ahead = (stat.n_ps - self.vt_ps) & PACKET_MASK
        if 0 < ahead <= 1 << 23:
            stat = replace(stat, n_ps=self.vt_ps & PACKET_MASK)
        return super().on_stat(stat)


class GrantsBeforeItChecks(Sender):
    """Takes the credit of a USTAT whose run is impossible."""

    def on_ustat(self, ustat: Ustat) -> Report | None:
        self.grant(ustat.n_mr, self.vt_a + (ustat.n_r - self.vt_a & PACKET_MASK))
        return super().on_ustat(ustat)


class NeverProbes(Outgoing):
    """Waits for credit without asking."""

    def need(self) -> Need:
        found = super().need()
        return Need.NONE if found is Need.PROBE else found


class ProbesSteadily(Polling):
    """Asks for credit at the poll interval for ever."""

    def probe_interval(self) -> float:
        return self.poll_interval()


def _await_all(sender: Sender, report: Report) -> None:
    """Queue every SD that is under way."""
    for number in list(sender._numbers):
        entry = sender._kept[number]
        if not entry.queued:
            sender.queue(entry, report)


class RepeatsAtSilence(Outgoing):
    """Takes what is under way for lost when a silence ends, as a retransmission timer does."""

    def expire(self, now: float) -> bool:
        before = self.polling.silences
        alive = super().expire(now)
        if self.polling.silences > before:
            _await_all(self.sender, Report(None, self.sender.flight))
        return alive


class GoesBack(Sender):
    """Retransmits everything under way once a STAT reports one SD missing."""

    def on_stat(self, stat: Stat) -> Report | None:
        report = super().on_stat(stat)
        if report is not None and report.lost:
            _await_all(self, report)
        return report


class ProbesOnceAMinute(Polling):
    """Lets the time between probes grow as long as a silence may."""

    def most_probing(self) -> float:
        return MOST_BACKED_OFF_S


def _sender(identifier: str, breaks: str, title: str, sender: type[Sender]) -> Mutant:
    return Mutant(identifier, breaks, title, with_parts(sender_class=sender), "stp1")


MUTANTS = (
    _sender("stp-compares-loosely", "STP-DT-003",
            "retransmits what was sent after the POLL that a STAT answers", ComparesLoosely),
    _sender("stp-needs-another-poll", "STP-DT-003",
            "retransmits on STATs only what was sent once, and two POLLs ago", NeedsAnotherPoll),
    Mutant("stp-polls-only-with-data", "STP-DT-004", "polls only along with data",
           with_parts(polling_class=PollsOnlyWithData), "stp1"),
    _sender("stp-takes-the-rest-for-received", "STP-DT-006",
            "takes what is above a STAT's bound for received", TakesTheRestForReceived),
    _sender("stp-works-off-old-stats", "STP-DT-007", "works off STATs that are overtaken",
            WorksOffOldStats),
    _sender("stp-sends-new-first", "STP-DT-009", "sends new SDs before retransmissions",
            SendsNewFirst),
    _sender("stp-forgets-what-it-repeated", "STP-DT-010",
            "releases an SD once it has been retransmitted", ForgetsWhatItRepeated),
    _sender("stp-exceeds-the-credit", "STP-DT-011", "sends two SDs beyond the credit",
            ExceedsTheCredit),
    _sender("stp-repeats-for-every-ustat", "STP-DT-014",
            "retransmits on a USTAT what was retransmitted before", RepeatsForEveryUstat),
    _sender("stp-ignores-ustats", "STP-DT-014", "retransmits nothing on a USTAT", IgnoresUstats),
    _sender("stp-repeats-half", "STP-DT-015", "retransmits the first half of an SD", RepeatsHalf),
    _sender("stp-repeats-with-fin", "STP-DT-015", "sets the FIN flag in retransmissions",
            RepeatsWithFin),
    _sender("stp-skips-numbers", "STP-DT-016", "leaves numbers out", SkipsNumbers),
    _sender("stp-takes-too-high-bounds", "STP-DT-023",
            "works off STATs whose bound is above their credit", TakesTooHighBounds),
    _sender("stp-takes-stats-of-no-poll", "STP-DT-023",
            "works off STATs for POLLs that were never sent", TakesStatsOfNoPoll),
    _sender("stp-grants-before-it-checks", "STP-DT-023", "takes the credit of invalid USTATs",
            GrantsBeforeItChecks),
    Mutant("stp-repeats-at-silence", "STP-DT-027", "retransmits by a timer",
           with_parts(outgoing_class=RepeatsAtSilence), "stp1"),
    _sender("stp-goes-back", "STP-DT-027",
            "retransmits everything under way for one missing SD", GoesBack),
    Mutant("stp-never-probes", "STP-DT-025", "waits for credit without asking",
           with_parts(outgoing_class=NeverProbes), "stp1"),
    Mutant("stp-probes-steadily", "STP-DT-025", "asks for credit at the poll interval for ever",
           with_parts(polling_class=ProbesSteadily), "stp1"),
    Mutant("stp-probes-once-a-minute", "STP-DT-025",
           "doubles the time between probes of a closed window up to a minute",
           with_parts(polling_class=ProbesOnceAMinute), "stp1"),
)  # fmt: skip
