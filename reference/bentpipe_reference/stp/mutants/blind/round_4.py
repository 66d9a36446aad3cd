"""Round 4: written from STP-1.txt on 2026-11-22.

Faults that need what ordinary transfers do not bring about (all are faults all the same):

* early-sds-anew: a call with a cookie that is refused (restarted listener), and SDs after it.
* bgak-maxsd: a listener that announces another MaxSD in its BGAK than with its cookie.
* keep-alive-once: two keep-alive intervals without a packet.
* heard-not-answered: a peer that sends data or POLLs for a minute but no STAT.
* silence-forgotten: an outage of two silences, then a STAT that reports SDs lost in it.
* short-end-timer: an END that nobody answers for a second, on a path of class vbdc.
* crossing-ends: both sides send an END at the same time.
* plain-order: a list across 2^24.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import TICK_S, Bucket, Pacer
from bentpipe_reference.stp.packets import Bgrej, Flags, Poll, Type
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Report, Sender
from bentpipe_reference.stp.sequence import PACKET_HALF, PACKET_MASK
from bentpipe_reference.stp.states import State


def using(*parts: type[Any], **settings: Any) -> Any:
    """A ``configure`` that puts these parts in."""

    def configure(setup: Any) -> Any:
        for part in parts:
            setup = setup.with_part(part)
        return setup.configured(**settings) if settings else setup

    return configure


# Sending: SDs and reports


class StampsWhenQueued(Sender):
    """The stamp is VT(PS) when the SD came to await retransmission, not when it left."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stamps: dict[int, int] = {}

    def queue(self, entry: Any, report: Report) -> None:
        self._stamps[entry.number] = self.vt_ps
        super().queue(entry, report)

    def retransmit(self, entry: Any) -> None:
        super().retransmit(entry)
        entry.stamp = self._stamps.pop(entry.number, entry.stamp)


class WaitsLongerForRetransmissions(Sender):
    """A retransmission has to be reported missing by the POLL after the next."""

    def predates(self, entry: Any, n_ps: int) -> bool:
        return entry.stamp < n_ps - (entry.times > 1)


class RepeatsBeginOnly(Sender):
    """A call anew repeats the data of the refused BEGIN, but not that of the SDs after it."""

    def restart(self, iss: int) -> None:
        del self._numbers[1:]
        super().restart(iss)


class CreditWithProgress(Sender):
    """N(MR) is looked at only if N(R) has risen."""

    def _take(self, packet: Any, n_ps: int | None, n_r: int) -> Report:
        before, progress = self.vt_ms, n_r > self.vt_a
        report = super()._take(packet, n_ps, n_r)
        if not progress:
            self.vt_ms = before
        return report


class CountsArrivalsTwice(Sender):
    """What a list has shown as held counts again when N(R) passes it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._early: dict[int, int] = {}

    def release(self, number: int, report: Report) -> None:
        size = self._kept[number].size
        super().release(number, report)
        if number >= self.vt_a:
            self._early[number] = size

    def acknowledge(self, n_r: int, report: Report) -> None:
        before = self.vt_a
        super().acknowledge(n_r, report)
        for number in range(before, self.vt_a):
            report.arrived += self._early.pop(number, 0)


class PlainOrder(Sender):
    """The elements of a list are compared as integers, not modulo 2^24."""

    def read_list(self, packet: Any, n_r: int) -> list[int] | None:
        fields = list(packet.elements)
        return super().read_list(packet, n_r) if fields == sorted(fields) else None


# Sending: what leaves when


class KeepsException(Outgoing):
    """The exception of STP-CG-006 is used up only by a retransmission that needs it."""

    def _repeat(self, entry: Any, now: float, put: Any) -> None:
        congestion = self.congestion
        unused = congestion.first_retransmission and congestion.room(self.sender.flight, entry.size)
        super()._repeat(entry, now, put)
        congestion.first_retransmission = unused


class GrowsThenHalves(Outgoing):
    """The arrivals of a report of a loss let the window grow before it is halved."""

    def _react(self, report: Report, now: float, *, closed: bool) -> None:
        if report.new_loss and self.congestion.is_used(report.flight):
            self.congestion.on_arrived(report.arrived)
        super()._react(report, now, closed=closed)


class UnlimitedRepetitions(Outgoing):
    """Retransmissions wait for the rate limit, but are not charged to it."""

    def _repeat(self, entry: Any, now: float, put: Any) -> None:
        limit = self.pacer._limit
        before = 0.0 if limit is None else limit._filled
        super()._repeat(entry, now, put)
        if limit is not None:
            limit._filled = before


class OldStatsAreLife(Outgoing):
    """A STAT that is discarded as old starts Timer_SILENCE again."""

    def discard(self, packet: Any, now: float) -> None:
        super().discard(packet, now)
        self.polling.reported(now, opens=True)


class NoProbeTimer(Outgoing):
    """Timer_SILENCE stops when all is acknowledged, whether or not data waits for credit."""

    def _settle(self, now: float) -> None:
        if self.sender.unacknowledged:
            return
        self.polling.stop()
        if not self.polling.awaits_answer:
            self.polling.stop_silence()


class FinKeepsDistance(Outgoing):
    """The POLL of the FIN keeps the distance of STP-PL-002."""

    def asks_with(self, entry: Any, now: float) -> bool:
        if entry.fin and not self.asks_at_once and not self.polling.may_poll(now):
            return False
        return super().asks_with(entry, now)


class PollsAfterLastSent(Outgoing):
    """N(S) of a POLL is one above the SD sent last, be it a retransmission."""

    _after: int | None = None

    def restart(self, csn: int, iss: int) -> None:
        super().restart(csn, iss)
        self._after = None

    def _sent(self, entry: Any, now: float) -> None:
        super()._sent(entry, now)
        self._after = entry.number + 1

    def _send_poll(self, now: float, put: Any) -> None:
        number = self.sender.vt_s if self._after is None else self._after
        put(Poll(*self.header, 0, number & PACKET_MASK, *self.take_poll(now)))


class BgakOpensWindow(Outgoing):
    """The congestion window grows by what a BGAK acknowledges."""

    def learn_credit(self, n_mr: int, n_r: int) -> None:
        sender = self.sender
        number = sender.vt_a + (n_r - sender.vt_a & PACKET_MASK)
        if number > sender.vt_s:
            return
        report = Report(None, sender.flight)
        sender.grant(n_mr, number)
        sender.acknowledge(number, report)
        self.congestion.on_arrived(report.arrived)


# Congestion and pacing


class OnceUsed(Congestion):
    """A window that has been half full once counts as used until the next reduction."""

    _full = False

    def is_used(self, flight: int) -> bool:
        self._full = self._full or super().is_used(flight)
        return self._full

    def _reduce(self, serial: int) -> None:
        super()._reduce(serial)
        self._full = False


class SilenceIsNoReduction(Congestion):
    """A reduction after two silences is not remembered as the last one."""

    def on_second_silence(self, serial: int) -> None:
        before = self.reduced_at
        super().on_second_silence(serial)
        self.reduced_at = before


class SavingBucket(Bucket):
    """Time without packets is saved, up to a second."""

    def set_rate(self, rate: float, now: float) -> None:
        if self.rate == math.inf:
            self._filled = 0.0
        else:
            self._filled = max(-self.rate, self._filled - self.rate * (now - self._at))
        self._at, self.rate = now, rate


class SavingPacer(Pacer):
    """See :class:`SavingBucket`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._window = SavingBucket(TICK_S)


class GainAtThreshold(Pacer):
    """A window of exactly ssthresh is paced as in slow start."""

    def gain(self) -> float:
        return 2.0 if self._congestion.cwnd <= self._congestion.ssthresh else 0.9


# Timers


class SilencesAddUp(Polling):
    """A report does not set the count of silences back."""

    def reported(self, now: float, *, opens: bool) -> None:
        silences = self.silences
        super().reported(now, opens=opens)
        self.silences = silences


class IntervalOfTheStart(Polling):
    """Timer_POLL runs for the poll interval of when it was started."""

    _interval = 0.0

    def sent(self, now: float) -> None:
        if not self.is_due:
            self._interval = self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped: bool) -> float:
        since = self._polled_at if stopped and self.is_due else self._unpolled_since
        return since + self._interval


class KeepsAliveOnce(Polling):
    """The packet that answers the POLL of Timer_KEEP-ALIVE does not start it again."""

    _asked = False

    def expire(self, now: float) -> bool:
        kept = self._heard_at
        asks = super().expire(now)
        if kept < math.inf and self._heard_at == math.inf:
            self._asked = True
        return asks

    def heard(self, now: float) -> None:
        if self._asked:
            self._asked = False
        else:
            super().heard(now)


class AnyPacketAnswers(Polling):
    """Timer_NO-RESPONSE starts again with any packet of the peer."""

    def heard(self, now: float) -> None:
        super().heard(now)
        if self.awaits_answer:
            self._unanswered_since = now


class EveryPollRestarts(Polling):
    """A POLL starts Timer_SILENCE again although it runs, unless it has expired."""

    def polled(self, now: float) -> None:
        runs = self._silent_at < math.inf and self.silences == 0
        super().polled(now)
        if runs:
            self._silent_at = now + self._silence


class QuietPolling(Polling):
    """Timer_SILENCE is started no more once the peer's stream has ended."""

    ended = False

    def start_silence(self, now: float) -> None:
        if not self.ended:
            super().start_silence(now)


class QuietAfterFin(Connection):
    """See :class:`QuietPolling`."""

    def receive(self, packet: Any, now: float) -> bool:
        again = super().receive(packet, now)
        polling = self.outgoing.polling
        if self.peer_has_closed and not polling.ended:
            polling.ended = True
            polling.stop_silence()
        return again


# Receiving


class DropsShortRest(Receiver):
    """A rest of a cut list that has two elements is not sent."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        elements = [number & PACKET_MASK for number in self.whole_list()]
        limit = self._list_limit
        last_start = max(len(elements) - 2, 1)
        return [tuple(elements[at : at + limit]) for at in range(0, last_start, limit - 1)]


class NoBoundAfterFin(Receiver):
    """With the FIN held, a list ends with the last run that is missing."""

    def whole_list(self) -> list[int]:
        elements = super().whole_list()
        if self.fin_number is not None and len(elements) & 1:
            elements.pop()
        return elements


class HoldsFew(Receiver):
    """No more than sixteen SDs are held beyond a gap, whatever the credit."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Any:
        if field != self.vr_r & PACKET_MASK and len(self._held) >= 16:
            return None
        return super().on_sd(field, data, fin)


class OneTimerForGaps(Receiver):
    """A further gap starts the wait of those before it again."""

    def hold_back(self, gap: Any, until: float) -> None:
        super().hold_back(gap, until)
        *_, arrivals, _ = self._waiting[-1]
        self._waiting = [(first, end, arrivals, until) for first, end, *_ in self._waiting]


# Actions and states


class MeasuresFromFirstBegin(Actions):
    """A BEGIN that was repeated is measured from its first transmission."""

    def repeat_begin(self, v: Any, now: float) -> None:
        first = v.asked_at if v.transmissions else None
        super().repeat_begin(v, now)
        if first is not None:
            v.asked_at = first


class MaxSdOfCookie(Actions):
    """A caller keeps to the MaxSD that came with the cookie when the BGAK brings another."""

    def _learn_peer(self, v: Any, iss: int, max_sd: int | None) -> None:
        super()._learn_peer(v, iss, max_sd if v.ticket is None else v.ticket.max_sd)


class IgnoresCopiesOfSdps(Actions):
    """An SDP whose SD has arrived before is discarded with its POLL."""

    def take_sdp(self, v: Any, sdp: Any, now: float) -> None:
        receiver = v.incoming
        ahead = sdp.n_s - receiver.vr_r & PACKET_MASK
        if ahead < PACKET_HALF and receiver.vr_r + ahead not in receiver._held:
            super().take_sdp(v, sdp, now)


class BgakGivesCredit(Actions):
    """A BGAK that is sent again announces the present credit, which is not noted as given."""

    def answer_begin_again(self, v: Any, begin: Any, now: float) -> None:
        self.put(v, replace(self.bgak(v, now), n_mr=v.incoming.credit() & PACKET_MASK))


class CompleteIsSilent(Actions):
    """The endpoint that was called answers no POLL any more when it is complete."""

    def answer_poll(self, v: Any, poll: Any, now: float) -> None:
        if not v.is_over:
            super().answer_poll(v, poll, now)


class EndGoesFirst(Actions):
    """The END of a complete caller overtakes the answers that are due."""

    def release(self, v: Any, now: float) -> None:
        super().release(v, now)
        v.outbox.insert(0, v.outbox.pop())


class CountsOnAnew(Actions):
    """A call anew goes on with the count and the time of Timer_CC."""

    def call_anew(self, v: Any, bgrej: Any, now: float) -> None:
        v.counted = v.transmissions
        super().call_anew(v, bgrej, now)

    def send_first_begin(self, v: Any, now: float) -> None:
        v.transmissions = getattr(v, "counted", 0)
        super().send_first_begin(v, now)


class CountsOnEnd(Actions):
    """The END of a caller goes on with the count and the time of the BEGIN's Timer_CC."""

    def send_end(self, v: Any, end: Any, now: float) -> None:
        v.state = State.OUTGOING_RELEASE
        v.release = end
        v.transmissions = min(v.transmissions, self.max_cc(v) - 1)
        self.repeat_end(v, now)


class RemembersCsns(Actions):
    """The CSNs of the earlier tries of a call are still known."""

    def call_anew(self, v: Any, bgrej: Any, now: float) -> None:
        v.tried = (*getattr(v, "tried", ()), v.csn)
        super().call_anew(v, bgrej, now)


class AnyTryIsOurs(Guards):
    """A BGREJ for an earlier try of the call makes it begin anew as well."""

    def is_for_us(self, v: Any, packet: Any) -> bool:
        tried = isinstance(packet, Bgrej) and packet.peer_csn in getattr(v, "tried", ())
        return tried or super().is_for_us(v, packet)


class NewestPollOnly(Actions):
    """A POLL older than the newest one is not answered."""

    def _answer(self, v: Any, n_s: int, n_ps: int, timestamp: int, now: float) -> None:
        newest = getattr(v, "newest_poll", n_ps)
        if (n_ps - newest & PACKET_MASK) < PACKET_HALF:
            v.newest_poll = n_ps
            super()._answer(v, n_s, n_ps, timestamp, now)


class ShortEndTimer(Actions):
    """Timer_CC of an END begins with 1 s whatever the path class."""

    def wait_cc(self, v: Any, transmissions: int) -> float:
        if v.state is State.OUTGOING_RELEASE:
            return StpConfig().timer_cc * 2.0**transmissions
        return super().wait_cc(v, transmissions)


class WaitsForEndak(Connection):
    """In state 4 the peer's END is acknowledged, and our ENDAK awaited all the same."""

    def receive(self, packet: Any, now: float) -> bool:
        before = self.state
        again = super().receive(packet, now)
        ended = before is State.OUTGOING_RELEASE and self.state is State.IDLE
        if ended and packet.type is Type.END and not packet.flags & Flags.R:
            self.state = before
        return again


FAULTS = [
    Fault("stp-b4-stamp-when-queued",
          "stamps a retransmission when it is queued, so that a POLL between that and its leaving "
          "makes it leave again", "STP-DT-003", using(StampsWhenQueued)),
    Fault("stp-b4-late-third",
          "sends a lost retransmission again only when a second POLL after it reports it missing",
          "STP-DT-003", using(WaitsLongerForRetransmissions)),
    Fault("stp-b4-early-sds-anew",
          "leaves the SDs that followed a refused BEGIN out of the call anew", "STP-CC-037",
          using(RepeatsBeginOnly)),
    Fault("stp-b4-credit-needs-progress", "takes no credit from a report that acknowledges nothing",
          "STP-DT-029", using(CreditWithProgress)),
    Fault("stp-b4-arrivals-twice",
          "lets the window grow again by SDs reported as held when N(R) passes them",
          "STP-CG-003; STP-CG-004", using(CountsArrivalsTwice)),
    Fault("stp-b4-plain-order", "takes a list across 2^24 for one that does not rise",
          "STP-DT-014; STP-DT-003", using(PlainOrder)),
    Fault("stp-b4-exception-kept",
          "keeps the first retransmission's exception from the window until one needs it",
          "STP-CG-002; STP-CG-006", using(KeepsException)),
    Fault("stp-b4-grows-then-halves",
          "lets the arrivals in a report of a loss enlarge the window before halving it",
          "STP-CG-005", using(GrowsThenHalves)),
    Fault("stp-b4-unlimited-repetitions", "does not charge retransmissions to the maximum rate",
          "STP-CG-009", using(UnlimitedRepetitions), setting="max-rate"),
    Fault("stp-b4-old-stats-are-life", "starts Timer_SILENCE again by STATs that it discards as old",
          "STP-PL-007; STP-DT-007", using(OldStatsAreLife), setting="reordering"),
    Fault("stp-b4-probe-timer", "stops Timer_SILENCE although data waits for credit",
          "STP-DT-025; STP-PL-007", using(NoProbeTimer)),
    Fault("stp-b4-fin-distance",
          "sends the FIN without a POLL if the last POLL is less than half an interval ago",
          "STP-PL-004", using(FinKeepsDistance)),
    Fault("stp-b4-poll-after-last-sent",
          "sends POLLs after a retransmission with the number above it as N(S)", "STP-PL-006",
          using(PollsAfterLastSent)),
    Fault("stp-b4-bgak-opens-window",
          "lets the initial window of ten SMSS grow by what the BGAK acknowledges",
          "STP-CG-001", using(BgakOpensWindow), setting="initial-window-10"),
    Fault("stp-b4-once-used",
          "lets an unused window grow if it has been used once since the last reduction",
          "STP-CG-010", using(OnceUsed)),
    Fault("stp-b4-silence-forgotten",
          "reduces once more for losses from before the reduction after two silences",
          "STP-CG-005", using(SilenceIsNoReduction)),
    Fault("stp-b4-saving-pacer", "saves up the pacing of a second without SDs for a burst",
          "STP-CG-008", using(SavingPacer)),
    Fault("stp-b4-gain-at-threshold", "paces a window of exactly ssthresh as in slow start",
          "STP-CG-008", using(GainAtThreshold)),
    Fault("stp-b4-silences-add-up",
          "counts silences across reports, so that two single ones collapse the window",
          "STP-CG-007", using(SilencesAddUp)),
    Fault("stp-b4-interval-of-the-start",
          "lets Timer_POLL run for the interval of its start when the round-trip time has changed",
          "STP-PL-001", using(IntervalOfTheStart)),
    Fault("stp-b4-keep-alive-once",
          "does not start Timer_KEEP-ALIVE again by the answer to its own POLL", "STP-PL-010",
          using(KeepsAliveOnce)),
    Fault("stp-b4-heard-not-answered",
          "does not give up a peer that sends data or POLLs but no reports", "STP-PL-008",
          using(AnyPacketAnswers)),
    Fault("stp-b4-every-poll-restarts", "starts a running Timer_SILENCE again with every POLL",
          "STP-PL-007", using(EveryPollRestarts)),
    Fault("stp-b4-quiet-after-fin", "runs Timer_SILENCE no more after the peer's FIN",
          "STP-CC-023; STP-PL-007", using(QuietPolling, QuietAfterFin)),
    Fault("stp-b4-short-rest", "does not send the rest of a cut list if it is one run up to VR(H)",
          "STP-DT-018; STP-PF-012", using(DropsShortRest, max_stat=3)),
    Fault("stp-b4-no-bound-after-fin",
          "leaves the bound out of its lists once it holds the FIN", "STP-DT-006; STP-DT-018",
          using(NoBoundAfterFin)),
    Fault("stp-b4-holds-few", "discards SDs within the credit when sixteen are held",
          "STP-DT-020", using(HoldsFew)),
    Fault("stp-b4-one-timer-for-gaps",
          "makes a USTAT that is held back wait anew with every further gap",
          "STP-DT-031", using(OneTimerForGaps), setting="reordering"),
    Fault("stp-b4-first-begin-measured",
          "measures the round-trip time from the first of several transmissions of a BEGIN",
          "STP-PL-009", using(MeasuresFromFirstBegin)),
    Fault("stp-b4-bgak-maxsd", "ignores the MaxSD of the BGAK if a cookie has brought one before",
          "STP-PF-009", using(MaxSdOfCookie)),
    Fault("stp-b4-copies-of-sdps", "does not answer the POLL of an SDP whose SD it has already",
          "STP-DT-019; STP-DT-017", using(IgnoresCopiesOfSdps)),
    Fault("stp-b4-bgak-gives-credit",
          "announces credit in a repeated BGAK that no report has announced", "STP-CC-015",
          using(BgakGivesCredit)),
    Fault("stp-b4-complete-is-silent", "answers no POLL any more when it was called and is complete",
          "STP-DT-017", using(CompleteIsSilent)),
    Fault("stp-b4-end-goes-first", "sends the STAT for the last SDP after its END", "STP-CC-028",
          using(EndGoesFirst)),
    Fault("stp-b4-counts-on-anew",
          "goes on with the BEGIN's count and doubled timer in a call anew",
          "STP-CC-016; STP-CC-044", using(CountsOnAnew)),
    Fault("stp-b4-counts-on-end", "starts the END's timer and count where the BEGIN's had ended",
          "STP-CC-026", using(CountsOnEnd)),
    Fault("stp-b4-anew-again", "begins anew by a BGREJ for an earlier CSN of the same call",
          "STP-CC-037; STP-SEC-005", using(RemembersCsns, AnyTryIsOurs)),
    Fault("stp-b4-newest-poll-only", "does not answer a POLL that a newer one has overtaken",
          "STP-DT-017", using(NewestPollOnly), setting="reordering"),
    Fault("stp-b4-short-end-timer", "repeats an END after 1 s on a path of class vbdc",
          "STP-CC-026", using(ShortEndTimer), setting="vbdc"),
    Fault("stp-b4-crossing-ends",
          "goes on repeating its END after it has acknowledged the peer's", "STP-CC-026",
          using(WaitsForEndak)),
]  # fmt: skip
