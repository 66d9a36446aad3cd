"""Round 7: written from STP-1.txt on 2026-11-22 by somebody who knows nothing else of the project."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import COOKIE_LIFE_S
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import Cookies
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.packets import VERSION, Begin, Flags, Poll, Sd, Sdp, Stat, Type, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Report, Sender
from bentpipe_reference.stp.sequence import PACKET_HALF, PACKET_MASK, unwrap_poll
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State

_FIN, _V, _R = int(Flags.FIN), int(Flags.V), int(Flags.R)


# Sender


class LosesEarlySds(Sender):
    """A call anew takes back only the data of the BEGIN, not of the SDs that followed it."""

    def restart(self, iss: int) -> None:
        self._numbers = self._numbers[:1]
        super().restart(iss)


class UstatKeepsStamp(Sender):
    """A retransmission that a USTAT has caused keeps the stamp of the first transmission."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_ustat = False
        self._by_ustat: set[int] = set()

    def on_ustat(self, ustat: Ustat) -> Report | None:
        self._in_ustat = True
        try:
            return super().on_ustat(ustat)
        finally:
            self._in_ustat = False

    def queue(self, entry: Any, report: Report) -> None:
        if self._in_ustat:
            self._by_ustat.add(entry.number)
        super().queue(entry, report)

    def retransmit(self, entry: Any) -> None:
        stamp = entry.stamp
        super().retransmit(entry)
        if entry.number in self._by_ustat:
            self._by_ustat.discard(entry.number)
            entry.stamp = stamp


class NoCreditWithLoss(Sender):
    """Credit is read from reports with an empty list only."""

    def _take(self, packet: Any, n_ps: int | None, n_r: int) -> Report:
        report = Report(n_ps, self.flight)
        if not packet.elements:
            self.grant(packet.n_mr, n_r)
        self.acknowledge(n_r, report)
        return report


class TakesLateUstats(Sender):
    """A USTAT whose N(R) lies below VT(A) is clipped instead of discarded."""

    def read_report(self, packet: Any) -> Any:
        behind = self.vt_a - packet.n_r & PACKET_MASK
        if (
            isinstance(packet, Ustat)
            and 0 < behind < PACKET_HALF
            and self.vt_a - behind >= self.iss
        ):
            base = self.vt_a - behind
            first, end = (base + (edge - packet.n_r & PACKET_MASK) for edge in packet.elements)
            if self.vt_a < end <= self.vt_s and first < end:
                elements = (max(first, self.vt_a) & PACKET_MASK, end & PACKET_MASK)
                packet = replace(packet, n_r=self.vt_a & PACKET_MASK, elements=elements)
        return super().read_report(packet)


class CountsArrivalsTwice(Sender):
    """What a list has shown as held counts as newly arrived again when N(R) passes it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._listing = False
        self._listed: dict[int, int] = {}

    def _process_list(self, elements: list[int], n_ps: int, report: Report) -> None:
        self._listing = True
        super()._process_list(elements, n_ps, report)
        self._listing = False

    def release(self, number: int, report: Report) -> None:
        if self._listing:
            self._listed[number] = self._kept[number].size
        super().release(number, report)

    def acknowledge(self, n_r: int, report: Report) -> None:
        super().acknowledge(n_r, report)
        for number in [number for number in self._listed if number < self.vt_a]:
            report.arrived += self._listed.pop(number)


# Congestion, pacing


class SilenceIsNoReduction(Congestion):
    """The reduction of STP-CG-007 is not noted as the last one."""

    def on_second_silence(self, serial: int) -> None:
        before = self.reduced_at
        super().on_second_silence(serial)
        self.reduced_at = before


class OnceUsed(Congestion):
    """A window counts as used by the most that has ever been in flight."""

    _most_flight = 0

    def is_used(self, flight: int) -> bool:
        self._most_flight = max(self._most_flight, flight)
        return super().is_used(self._most_flight)


class FastAtThreshold(Pacer):
    """A window that equals ssthresh, as after each halving, still has the gain of slow start."""

    def gain(self) -> float:
        return 2.0 if self._congestion.cwnd <= self._congestion.ssthresh else 0.9


# Outgoing


class AllowanceForgotten(Outgoing):
    """Any report clears the permission of STP-CG-006 before pacing has let it be used."""

    def _react(self, report: Report, now: float, *, closed: bool) -> None:
        super()._react(report, now, closed=closed)
        if not report.new_loss:
            self.congestion.first_retransmission = False


class UstatKeepsBackOff(Outgoing):
    """A USTAT restarts Timer_SILENCE with the doubled time and leaves the doubling."""

    _in_ustat = False

    def on_ustat(self, ustat: Ustat, now: float) -> None:
        polling = self.polling
        silence, silences, ran = polling._silence, polling.silences, polling._silent_at < math.inf
        super().on_ustat(ustat, now)
        if ran and silences:
            polling._silence, polling.silences = silence, silences
            polling._silent_at = now + silence


class PollsAfterRepair(Outgoing):
    """A POLL follows the last retransmission of a batch at once, however near the one before."""

    def _repeat(self, entry: Any, now: float, put: Callable[[Any], None]) -> None:
        super()._repeat(entry, now, put)
        if self.sender.awaiting() is None:
            self.asks_at_once = True


class OldStatRestartsSilence(Outgoing):
    """A STAT that is discarded as old restarts Timer_SILENCE all the same."""

    def discard(self, packet: Any, now: float) -> None:
        super().discard(packet, now)
        polling, sender = self.polling, self.sender
        if not isinstance(packet, Stat) or not packet.n_ps or polling._silent_at == math.inf:
            return
        if 0 < unwrap_poll(packet.n_ps, sender.vt_ps) < sender.vt_pa:
            polling.stop_silence()
            polling.start_silence(now)


class KarnsRule(Outgoing):
    """After Timer_SILENCE has expired no answer is measured, as in TCP after a retransmission."""

    def on_stat(self, stat: Stat, now: float) -> None:
        if self.polling.silences:
            self.rtt._sent.clear()
        super().on_stat(stat, now)


class FinOnRepetition(Outgoing):
    """The FIN flag of a retransmission is worked out anew: the stream may have ended since."""

    def _repeat(self, entry: Any, now: float, put: Callable[[Any], None]) -> None:
        sender = self.sender
        last = entry.number == sender.vt_s - 1 and sender.fin_number is None
        ends = last and sender.closed and not sender.unsent

        def changed(packet: Any) -> None:
            put(replace(packet, flags=packet.flags | _FIN) if ends else packet)

        super()._repeat(entry, now, changed)


class PollRidesOnRepetition(Outgoing):
    """A POLL that is due rides on a retransmission as on a new SD."""

    def _repeat(self, entry: Any, now: float, put: Callable[[Any], None]) -> None:
        def changed(packet: Any) -> None:
            if self.polls and self.asks_with(entry, now):
                poll = self.take_poll(now)
                packet = Sdp(*self.header, packet.flags, packet.n_s, *poll, packet.data)
            put(packet)

        super()._repeat(entry, now, changed)


class CreditStopUnpolled(Outgoing):
    """Only the window and lack of data count as a stop, not the end of the credit."""

    def goes_on(self) -> bool:
        sender, congestion = self.sender, self.congestion
        if sender.awaiting() is None and sender.has_new and not sender.permitted():
            return congestion.room(sender.flight, sender.next_size())
        return super().goes_on()


# Polling


class LatchedInterval(Polling):
    """Timer_POLL keeps the interval that it was started with."""

    _latched = 0.0

    def sent(self, now: float) -> None:
        if self._unpolled_since == math.inf:
            self._latched = self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped: bool) -> float:
        if stopped and self.is_due:
            return self._polled_at + self._latched
        return self._unpolled_since + self._latched


class CountsAllSilences(Polling):
    """The count of expiries of Timer_SILENCE is not reset by a report."""

    def start_silence(self, now: float) -> None:
        before = self.silences
        super().start_silence(now)
        self.silences = before


# Receiver


class NoGapAcrossWrap(Receiver):
    """A gap whose second element is the lower field is taken for no gap when it is reported."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Any:
        gap = super().on_sd(field, data, fin)
        if gap is not None and gap[0] & PACKET_MASK > gap[1] & PACKET_MASK:
            return None
        return gap


class PollAtCreditEdge(Receiver):
    """A POLL at VR(MR), whose sender has used all of its credit, does not raise VR(H)."""

    def raise_highest(self, number: int) -> None:
        if number < self.vr_mr:
            super().raise_highest(number)


class AnnouncesAfterFin(Receiver):
    """A reopened window is announced although the stream has ended."""

    def reopened(self) -> bool:
        fin, self.fin_number = self.fin_number, None
        try:
            return super().reopened()
        finally:
            self.fin_number = fin


class CutsOneShort(Receiver):
    """A list of one element more than fits loses its last run."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        elements = [number & PACKET_MASK for number in self.whole_list()]
        step = self._list_limit - 1
        last_start = max(len(elements) - 2, 1)
        return [tuple(elements[at : at + self._list_limit]) for at in range(0, last_start, step)]


class OneTimerForGaps(Receiver):
    """All gaps that wait share one timer and one count, which each new gap restarts."""

    def hold_back(self, gap: Any, until: float) -> None:
        super().hold_back(gap, until)
        count = self._waiting[-1][2]
        self._waiting = [(start, end, count, until) for start, end, *_ in self._waiting]


# Actions


class UstatClosesNothing(Actions):
    """Only STATs are remembered as the last report that showed no credit."""

    def _send_ustat(self, v: Any, run: Any) -> None:
        before = v.incoming._closed
        super()._send_ustat(v, run)
        v.incoming._closed = before


class CompleteAndDeaf(Actions):
    """An endpoint that is complete answers no POLL while it waits for the END."""

    def answer_poll(self, v: Any, poll: Any, now: float) -> None:
        if not v.is_over:
            super().answer_poll(v, poll, now)

    def take_sdp(self, v: Any, sdp: Any, now: float) -> None:
        if not v.is_over:
            super().take_sdp(v, sdp, now)


class EndCountsBegins(Actions):
    """The transmissions of the BEGIN count for the END too."""

    def send_end(self, v: Any, end: Any, now: float) -> None:
        v.state = State.OUTGOING_RELEASE
        v.release = end
        self.repeat_end(v, now)


class StoredBgak(Actions):
    """A repeated BEGIN is answered with the BGAK that was stored when it came first."""

    def bgak(self, v: Any, now: float) -> Any:
        stored = getattr(v, "stored_bgak", None)
        if stored is None:
            stored = v.stored_bgak = super().bgak(v, now)
        return stored


class RefusalVoidsNothing(Actions):
    """A call with a cookie that a BGREJ has ended does not void the cookies held."""

    def be_refused(self, v: Any, bgrej: Any, now: float) -> None:
        begin, v.begin = v.begin, None
        super().be_refused(v, bgrej, now)
        v.begin = begin


class BeginTooBig(Actions):
    """The data of a BEGIN is cut to MaxSD only, as that of an SD; its options are forgotten."""

    def first_data(self, v: Any, begin: Begin) -> tuple[bytes, int]:
        sender = v.outgoing.sender
        if not sender.has_new:
            return b"", 0
        entry = sender.take_new()
        return entry.data, entry.fin


class PollsInRelease(Actions):
    """A POLL is answered with a STAT after the END has been sent."""

    def discard(self, v: Any, packet: Any, now: float) -> None:
        if v.state is State.OUTGOING_RELEASE and isinstance(packet, Poll) and v.receiver:
            if packet.n_ps and packet.csn == v.peer_csn:
                self.answer_poll(v, packet, now)


class BareFinBegin(Actions):
    """The FIN flag of a BEGIN without data is overlooked."""

    def take_call(self, v: Any, begin: Begin, now: float) -> None:
        if not begin.data:
            begin = replace(begin, flags=begin.flags & ~_FIN)
        super().take_call(v, begin, now)


class ShortReleaseWait(Actions):
    """The release wait is Timer_CC's first time, however long the silence time."""

    def release_wait(self, v: Any) -> float:
        return v.config.timer_cc


# Guards, connection, idle, cookies, host


class AbortMustKnowUs(Guards):
    """An END with A flag has to carry the recipient's CSN, though its sender may not know it."""

    def is_valid(self, v: Any, end: Any) -> bool:
        if not end.flags & _R and v.peer_csn is not None and end.peer_csn != v.csn:
            return False
        return super().is_valid(v, end)


class PollsWithoutTag(Guards):
    """The tag of packets that carry the whole CSN is not checked."""

    def tag_is_right(self, v: Any, tag: int) -> bool:
        return isinstance(v.handled, Poll | Sdp) or super().tag_is_right(v, tag)


class ReportsAreNoSign(Connection):
    """STATs and USTATs do not restart Timer_KEEP-ALIVE, so it does not run after its own POLL."""

    def receive(self, packet: Any, now: float) -> bool:
        polling = self.outgoing.polling
        before = polling._heard_at
        opened = self.state is State.READY
        again = super().receive(packet, now)
        if opened and isinstance(packet, Stat | Ustat):
            polling._heard_at = before
        return again


class DataIsAnAnswer(Connection):
    """Timer_NO-RESPONSE is stopped by the peer's SDs as well."""

    def receive(self, packet: Any, now: float) -> bool:
        opened = self.state is State.READY
        again = super().receive(packet, now)
        if opened and isinstance(packet, Sd | Sdp):
            if self.machine.guards.tag_is_right(self, packet.tag):
                self.outgoing.polling._unanswered_since = math.inf
        return again


class BusyPortIsSilent(Connection):
    """In state 10 a BEGIN that would open nothing is discarded instead of handled as in state 1."""

    def receive(self, packet: Any, now: float) -> bool:
        if self.state is State.READY and isinstance(packet, Begin) and packet.version == VERSION:
            guards = self.machine.guards
            self.handled_at = now
            if not guards.is_repeated(self, packet) and not guards.would_open(self, packet):
                return False
        return super().receive(packet, now)


class VoidsByPort(Idle):
    """The V flag voids earlier cookies for calls from the same STP port only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._voided: dict[Any, int] = {}

    def is_unproven(self, arrival: Any, begin: Begin) -> bool:
        if super().is_unproven(arrival, begin):
            return True
        number = self.cookies.number(arrival.peer, begin.cookie)
        assert number is not None
        return number <= self._voided.get((arrival.peer, begin.sport), -1)

    def accept(self, arrival: Any, begin: Begin) -> None:
        if begin.flags & _V:
            number = self.cookies.number(arrival.peer, begin.cookie)
            assert number is not None
            self._voided[arrival.peer, begin.sport] = number
            begin = replace(begin, flags=begin.flags & ~_V)
        super().accept(arrival, begin)


class MemoryIsLife(Cookies):
    """A used cookie is forgotten as soon as it would be too old to be good."""

    memory_s = COOKIE_LIFE_S


class _ReadsOldOptions(StpEndpoint):
    def receive(self, octets: bytes, peer: Any, now: float) -> None:
        if len(octets) >= 20 and octets[4] & 15 == Type.BEGIN and octets[12] >> 4 != VERSION:
            if 20 + 4 * (octets[12] & 15) > len(octets):
                self._ignore()
                return
        super().receive(octets, peer, now)


class ReadsOldOptions(StpHost):
    """The length of the options is checked before the version."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.endpoint.__class__ = _ReadsOldOptions


def _with(part: type[Any]) -> Callable[[Setup], Setup]:
    return lambda setup: setup.with_part(part)


FAULTS = [
    # Opening
    # Inactive in a transfer unless a cookie of a call with several early SDs is refused.
    Fault("stp-b7-anew-early", "a call anew forgets the data of SDs sent after the BEGIN",
          "STP-CC-037", _with(LosesEarlySds)),
    Fault("stp-b7-begin-mtu", "data of a BEGIN is cut to MaxSD, so that the packet exceeds the MTU",
          "STP-PF-016; STP-CC-040", _with(BeginTooBig)),
    # 0 of 20: needs a listener that refuses a call with a cookie.
    Fault("stp-b7-refused-voids", "a call with a cookie ended by a BGREJ makes the next set no V",
          "STP-CC-039", _with(RefusalVoidsNothing)),
    Fault("stp-b7-stored-bgak", "a repeated BEGIN is answered with the first BGAK's N(MR)",
          "STP-CC-015", _with(StoredBgak)),
    # Needs a BEGIN without a good cookie from the ports of an open connection.
    Fault("stp-b7-busy-port", "a BEGIN without a good cookie is not answered in state 10",
          "STP-CC-036", _with(BusyPortIsSilent)),
    # Needs an old cookie in a BEGIN from another port after one with V flag.
    Fault("stp-b7-void-port", "V voids cookies for calls from the same STP port only",
          "STP-CC-035", _with(VoidsByPort)),
    # Needs a BEGIN that comes back 600 to 900 s after its cookie was made.
    Fault("stp-b7-cookie-memory", "a used cookie is remembered for 600 s only",
          "STP-CC-038", _with(MemoryIsLife)),
    Fault("stp-b7-bare-fin-begin", "FIN of a BEGIN without data is not taken",
          "STP-CC-012", _with(BareFinBegin)),
    # Needs a BEGIN of another version whose second word means something else.
    Fault("stp-b7-old-options", "a BEGIN of another version with odd optlen is not refused",
          "STP-PF-003; STP-CC-019", _with(ReadsOldOptions)),
    # Needs a POLL with a wrong tag.
    Fault("stp-b7-poll-tag", "the tag of POLLs and SDPs is not checked",
          "STP-CC-001", _with(PollsWithoutTag)),
    # Sending
    Fault("stp-b7-ustat-stamp", "a retransmission by USTAT keeps its stamp, and is repeated by a STAT",
          "STP-DT-003", _with(UstatKeepsStamp)),
    Fault("stp-b7-loss-credit", "N(MR) of reports with a list is not taken",
          "STP-DT-029", _with(NoCreditWithLoss)),
    # 0 of 20: needs a USTAT that a STAT overtakes, with a number of it sent once and still missing.
    Fault("stp-b7-late-ustat", "a USTAT with N(R) below VT(A) is clipped and obeyed",
          "STP-DT-023", _with(TakesLateUstats), setting="reordering"),
    # 0 of 20: the user has to close while the last SD awaits its retransmission.
    Fault("stp-b7-late-fin", "a retransmission gets the FIN flag when the stream ended meanwhile",
          "STP-DT-015", _with(FinOnRepetition)),
    # Receiving
    # Needs a peer whose numbers wrap.
    Fault("stp-b7-wrap-gap", "a gap across the wrap of numbers is not reported by a USTAT",
          "STP-DT-001", _with(NoGapAcrossWrap)),
    # 0 of 20: needs a sender that uses all of its credit and loses the last SD of it.
    Fault("stp-b7-credit-edge", "a POLL with N(S) equal to VR(MR) does not raise VR(H)",
          "STP-DT-002", _with(PollAtCreditEdge)),
    # 0 of 20: needs a slow user and a loss, so that a USTAT is the last report before the pause.
    Fault("stp-b7-ustat-closed", "no announcement if the report without credit was a USTAT",
          "STP-DT-024", _with(UstatClosesNothing)),
    # 0 of 20: needs a FIN in the last SD of the credit and a user that reads later.
    Fault("stp-b7-fin-announce", "a reopened window is announced after the FIN",
          "STP-DT-024", _with(AnnouncesAfterFin)),
    Fault("stp-b7-cut-edge", "the last run of a list of MaxSTAT + 1 elements is not sent",
          "STP-PF-012; STP-DT-018", _with(CutsOneShort)),
    Fault("stp-b7-gap-timer", "each new gap puts off the USTATs of the gaps that wait",
          "STP-DT-031", _with(OneTimerForGaps), setting="reordering"),
    # Congestion and pacing
    # 0 of 20: needs two silences after a loss of SDs, and then a STAT that reports them.
    Fault("stp-b7-silence-reduced", "a loss from before the second silence reduces again after it",
          "STP-CG-005", _with(SilenceIsNoReduction)),
    Fault("stp-b7-allowance", "a report clears the retransmission's permission to exceed the window",
          "STP-CG-006", _with(AllowanceForgotten)),
    Fault("stp-b7-once-used", "a window grows unused once as much has been in flight",
          "STP-CG-010", _with(OnceUsed)),
    Fault("stp-b7-twice-arrived", "octets shown as held count again when N(R) passes them",
          "STP-CG-003; STP-CG-004", _with(CountsArrivalsTwice)),
    Fault("stp-b7-threshold-gain", "pacing keeps the gain of slow start while cwnd equals ssthresh",
          "STP-CG-008", _with(FastAtThreshold)),
    Fault("stp-b7-silence-count", "expiries of Timer_SILENCE are counted across reports",
          "STP-CG-007", _with(CountsAllSilences)),
    # Polling and timers
    # 0 of 20: needs a USTAT as the first report after Timer_SILENCE has expired.
    Fault("stp-b7-ustat-backoff", "a USTAT does not end the doubling of Timer_SILENCE",
          "STP-PL-007", _with(UstatKeepsBackOff)),
    Fault("stp-b7-interval-latch", "a shorter poll interval does not hold for a POLL that is waiting",
          "STP-PL-001", _with(LatchedInterval)),
    Fault("stp-b7-repair-poll", "a POLL follows retransmissions at once, however soon",
          "STP-PL-002", _with(PollsAfterRepair)),
    # Needs a connection idle for twice the keep-alive time.
    Fault("stp-b7-keep-alive-once", "reports do not restart Timer_KEEP-ALIVE",
          "STP-PL-010", _with(ReportsAreNoSign)),
    # Needs a peer that sends data but no reports.
    Fault("stp-b7-data-answers", "a peer that sends data but answers no POLL is not given up",
          "STP-PL-008", _with(DataIsAnAnswer)),
    Fault("stp-b7-old-stat-silence", "a STAT discarded as old restarts Timer_SILENCE",
          "STP-DT-007; STP-PL-007", _with(OldStatRestartsSilence)),
    Fault("stp-b7-karn", "no round trip is measured after Timer_SILENCE has expired",
          "STP-PL-009", _with(KarnsRule)),
    Fault("stp-b7-repeat-sdp", "a POLL rides on a retransmission",
          "STP-PL-006", _with(PollRidesOnRepetition)),
    Fault("stp-b7-credit-stop", "the end of the credit is no reason to poll early",
          "STP-PL-003", _with(CreditStopUnpolled)),
    # Closing
    Fault("stp-b7-complete-deaf", "a complete endpoint answers no POLL",
          "STP-DT-017", _with(CompleteAndDeaf)),
    Fault("stp-b7-end-count", "transmissions of the BEGIN count for the END",
          "STP-CC-026; STP-CC-044", _with(EndCountsBegins)),
    # 0 of 20: needs a caller that aborts after its BEGIN has opened and before the BGAK arrives.
    Fault("stp-b7-early-abort", "an abort from state 2, with CSN of the recipient 0, is discarded",
          "STP-CC-022; STP-CC-021", _with(AbortMustKnowUs)),
    Fault("stp-b7-release-poll", "a POLL is answered after the END",
          "STP-CC-028", _with(PollsInRelease)),
    Fault("stp-b7-release-wait", "the release wait does not regard the silence time",
          "STP-CC-031", _with(ShortReleaseWait)),
]  # fmt: skip
