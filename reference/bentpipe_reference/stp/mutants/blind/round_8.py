"""Round 8: written from STP-1.txt on 2026-11-22, without ./check.

Faults that need what ordinary transfers hardly bring about (a peer that is not the reference, a second
call, a packet that comes at a certain moment) say so in a comment beside them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from heapq import heapify

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import EARLY_CREDIT
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar, Cookies, Ticket
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Bucket, Pacer
from bentpipe_reference.stp.packets import VERSION, Bgak, End, Flags, Poll, Sdp, Stat, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.rtt import RoundTrip
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State


def with_parts(*parts):
    """A ``configure`` that puts in these parts."""

    def configure(setup):
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# Calling


class AnewKeepsTimer(Actions):
    """Timer_CC and the count of transmissions go on over a call anew."""

    def call_anew(self, v, bgrej, now):
        self._measure(v, now)
        v.calls_anew += 1
        v.csn, v.iss = self._numbers(v.identity.peer)
        v.outgoing.restart(v.csn, v.iss)
        v.ticket = Ticket(bgrej.cookie, bgrej.max_sd, now, v.begun)
        self.send_first_begin(v, now)


class VoidsOnce(CookieJar):
    """The V flag is done with when it has been sent, not when it has opened a connection."""

    def voids(self, peer, made):
        asked = super().voids(peer, made)
        if asked:
            self.open(peer, made)
        return asked


class RefusalKeepsCookies(Actions):
    """Only a call that times out, or that its user ends, makes the jar forget."""

    def be_refused(self, v, bgrej, now):
        if v.begin is not None:
            v.begin = replace(v.begin, cookie=None)
        super().be_refused(v, bgrej, now)


class AnewKeepsFin(Sender):
    """The FIN of the first try counts as sent in the second."""

    def restart(self, iss):
        fin = self.fin_number
        super().restart(iss)
        self.fin_number = fin


class BeginBesideEarlyCredit(Sender):
    """The data of the BEGIN does not count against the four early SDs."""

    def take_new(self, most=None):
        entry = super().take_new(most)
        if most is not None:
            self.vt_ms = max(self.vt_ms, self.iss + EARLY_CREDIT + 1)
        return entry


class ZeroWhilePending(Guards):
    """An END with A flag and no CSN of the recipient ends a call in state 2 as well."""

    def is_valid(self, v, end):
        if v.peer_csn is None and end.flags & Flags.A and not end.flags & Flags.R:
            return end.peer_csn in (0, v.csn)
        return super().is_valid(v, end)


class SecondBgakPolls(Actions):
    """Every BGAK of the connection asks for the POLL of STP-CC-042, the second one too."""

    def discard(self, v, packet, now):
        if isinstance(packet, Bgak) and v.state is State.READY:
            if packet.peer_csn == v.csn and packet.csn == v.peer_csn:
                v.outgoing.asks_at_once = True


class MaxSdOnlyRises(Outgoing):
    """A BGAK does not lower the MaxSD that came with the cookie."""

    def learn(self, max_sd):
        before = self.sender.max_sd
        super().learn(max_sd)
        if self.sender.max_sd < before:
            self.sender.max_sd = before
            self.congestion.learn(before)


# Being called


class BegunAgainWithNewCredit(Actions):
    """A repeated BGAK takes the credit that there is now, and does not note that it has."""

    def answer_begin_again(self, v, begin, now):
        n_mr = v.incoming.credit() & PACKET_MASK
        self.put(v, replace(self.bgak(v, now), n_mr=n_mr))


class VoidedAreForgotten(Cookies):
    """A BEGIN with V flag clears the memory of the address: its older cookies are void anyway."""

    def use(self, peer, cookie, *, voids):
        super().use(peer, cookie, voids=voids)
        if voids:
            number = self._void[peer]
            old = {n for n, owner in self._used.items() if owner == peer and n < number}
            self._used = {n: owner for n, owner in self._used.items() if n not in old}
            self._oldest = [n for n in self._oldest if n not in old]
            heapify(self._oldest)


class GivesWayToCookie(Guards):
    """A good cookie ends the old connection before the rest of the BEGIN has been looked at."""

    def would_open(self, v, begin):
        arrival = Arrival(v.identity.peer, v.handled_at)
        idle = self._idle
        if begin.version != VERSION or idle.nobody_listens(arrival, begin):
            return False
        return idle.cookies.is_good(arrival.peer, begin.cookie, arrival.now)


class OneCookiePerConnection(Actions):
    """The BGAK is made once, with its cookie; only its numbers are brought up to date."""

    def bgak(self, v, now):
        made = super().bgak(v, now)
        given = getattr(v, "given_cookie", None)
        if given is None:
            v.given_cookie = made.cookie
            return made
        return replace(made, cookie=given)


class LastMaxSd(Idle):
    """Of several MaxSD options of a BEGIN the last one counts."""

    def accept(self, arrival, begin):
        more = [value for kind, value in begin.options if kind == 1 and len(value) == 2]
        if more:
            begin = replace(begin, max_sd=int.from_bytes(more[-1], "big"))
        super().accept(arrival, begin)


# Receiving


class SdpGapIsQuiet(Actions):
    """A gap found by an SDP is left to the STAT that answers it."""

    def take_sdp(self, v, sdp, now):
        v.answers_sdp = True
        super().take_sdp(v, sdp, now)
        v.answers_sdp = False

    def _send_ustat(self, v, run):
        if not getattr(v, "answers_sdp", False):
            super()._send_ustat(v, run)


class FinNotedLate(Receiver):
    """The end of the stream is noted when the FIN is delivered, not when it arrives."""

    def on_sd(self, field, data, fin):
        gap = super().on_sd(field, data, fin)
        if self.fin_number is not None and self.vr_r <= self.fin_number:
            self.fin_number = None
        return gap


class ClosedByVrR(Receiver):
    """Whether a report showed a closed window is judged from VR(R)."""

    def reported(self):
        super().reported()
        self._closed = self.vr_mr <= self.vr_r


class UstatCreditForgotten(Actions):
    """A USTAT announces the credit there is, and only STATs raise VR(MR)."""

    def _send_ustat(self, v, run):
        receiver = v.incoming
        first, end = (edge & PACKET_MASK for edge in run)
        n_r, n_mr = receiver.vr_r & PACKET_MASK, receiver.credit() & PACKET_MASK
        self.put(v, Ustat(*v.header, 0, n_r, n_mr, (first, end)))


class CutListMovesNr(Actions):
    """Each further STAT of a cut list has the number where it begins as its N(R)."""

    def _answer(self, v, n_s, n_ps, timestamp, now):
        for at, elements in enumerate(v.incoming.on_poll(n_s)):
            if not at:
                self._send_stat(v, n_ps, timestamp, elements)
                continue
            n_mr = v.incoming.vr_mr & PACKET_MASK
            self.put(v, Stat(*v.header, 0, elements[0], n_mr, n_ps, timestamp, elements))


class OnlyHigherSdsCount(Receiver):
    """Of the three SDs that end the wait of a USTAT only those above VR(H) count."""

    def on_sd(self, field, data, fin):
        highest, arrivals = self.vr_h, self._arrivals
        gap = super().on_sd(field, data, fin)
        if self.vr_h == highest:
            self._arrivals = arrivals
        return gap


class PollAtCreditIgnored(Receiver):
    """A POLL whose N(S) is exactly VR(MR) counts as one beyond the credit."""

    def raise_highest(self, number):
        if number < self.vr_mr:
            super().raise_highest(number)


class UstatStopsAtWrap(Actions):
    """A run across the wrap looks upside down, and is not reported."""

    def _send_ustat(self, v, run):
        if run[0] & PACKET_MASK < run[1] & PACKET_MASK:
            super()._send_ustat(v, run)


# Releasing


class EndSilencesAnswers(Actions):
    """The silence after an END takes the reports along that wait to leave before it."""

    def send_end(self, v, end, now):
        v.outbox = [packet for packet in v.outbox if not isinstance(packet, Stat | Ustat)]
        super().send_end(v, end, now)


class PollsProlongRelease(Connection):
    """Each POLL that the complete endpoint answers starts the release wait again."""

    def receive(self, packet, now):
        again = super().receive(packet, now)
        waits = self.state is State.READY and self.is_over and self.release_at < math.inf
        if waits and isinstance(packet, Poll | Sdp):
            self.release_at = now + self.machine.actions.release_wait(self)
        return again


class EndGoesOnCounting(Actions):
    """The END's transmissions are counted on from those of the BEGIN."""

    def send_end(self, v, end, now):
        v.state = State.OUTGOING_RELEASE
        v.release = end
        self.repeat_end(v, now)


class CrossedEndIsNoAnswer(Connection):
    """In state 4 a valid END is acknowledged, but only an ENDAK ends the state."""

    def receive(self, packet, now):
        before = self.state
        again = super().receive(packet, now)
        if before is State.OUTGOING_RELEASE and self.state is State.IDLE and not again:
            if isinstance(packet, End) and not packet.flags & Flags.R:
                self.state = State.OUTGOING_RELEASE
        return again


# Sending


class StampWhenQueued(Sender):
    """A retransmission keeps the VT(PS) of the time when it was queued."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._stamps = {}

    def queue(self, entry, report):
        super().queue(entry, report)
        self._stamps[entry.number] = self.vt_ps

    def retransmit(self, entry):
        super().retransmit(entry)
        entry.stamp = self._stamps.pop(entry.number, entry.stamp)


class RunByItsFirst(Sender):
    """If the first SD of a USTAT's run has been sent again, the whole run is held to have been."""

    def on_ustat(self, ustat):
        read = self.read_report(ustat)
        if read is None:
            return None
        _, n_r, elements = read
        report = self._take(ustat, None, n_r)
        numbers = self._numbers
        first = bisect_left(numbers, elements[0])
        run = numbers[first : bisect_left(numbers, elements[1], first)]
        if run and self.sent_once(self._kept[run[0]]):
            for number in run:
                entry = self._kept[number]
                if not entry.queued and self.sent_once(entry):
                    self.queue(entry, report)
        return report


class NewPassesBlocked(Sender):
    """A retransmission for which the window is too small lets a smaller new SD pass."""

    def awaiting(self):
        entry, congestion = super().awaiting(), self._congestion
        if entry is None or congestion.first_retransmission:
            return entry
        return entry if congestion.room(self.flight, entry.size) else None


class SerialOfFirst(Sender):
    """A loss is dated by the first transmission of its SD, not by the one that was lost."""

    def _transmitted(self, entry):
        first = entry.serial if entry.times else None
        super()._transmitted(entry)
        if first is not None:
            entry.serial = first


class SilenceFreesOne(Congestion):
    """The reduction by silence, too, lets one retransmission pass the window."""

    def on_second_silence(self, serial):
        super().on_second_silence(serial)
        self.first_retransmission = True


class ReductionKeepsCount(Congestion):
    """Octets that arrived before a reduction count for the growth after it."""

    def _reduce(self, serial):
        counted = self._acknowledged
        super()._reduce(serial)
        self._acknowledged = counted


class Unclamped(Bucket):
    """It goes on draining when it is empty."""

    def set_rate(self, rate, now):
        if self._filled:
            self._filled -= self.rate * (now - self._at)
        self._at, self.rate = now, rate


class SavesUnusedRate(Pacer):
    """What the maximum rate would have let through in a pause may leave after it."""

    def __init__(self, config, congestion, rtt):
        super().__init__(config, congestion, rtt)
        if self._limit is not None:
            self._limit = Unclamped()


class TellsLoss(Congestion):
    """Notes by what the window was last reduced."""

    by_loss = False

    def on_loss(self, serial):
        super().on_loss(serial)
        self.by_loss = True

    def on_second_silence(self, serial):
        super().on_second_silence(serial)
        self.by_loss = False


class FastUntilLoss(Pacer):
    """Only a reported loss changes the gain, not a window that has grown up to ssthresh."""

    def gain(self):
        slow = self._congestion.by_loss and not self._congestion.in_slow_start
        return 0.9 if slow else 2.0


# Polling


class AnyPacketEndsSilence(Polling):
    """Expiries of Timer_SILENCE are counted from the last packet, of whatever type."""

    def heard(self, now):
        super().heard(now)
        self.silences = 0


class DiscardedReportsAnswer(Outgoing):
    """Timers take a discarded report for an answer: the peer is there, after all."""

    def discard(self, packet, now):
        super().discard(packet, now)
        self.polling.reported(now, opens=True)


class KeepAliveIsNotRepeated(Outgoing):
    """With nothing unacknowledged, a POLL starts no Timer_SILENCE."""

    def take_poll(self, now):
        idle = not self.sender.unacknowledged and not self.is_closed()
        made = super().take_poll(now)
        if idle:
            self.polling.stop_silence()
        return made


class FinPollKeepsDistance(Outgoing):
    """The POLL of the FIN waits like others for half a poll interval since the one before."""

    def asks_with(self, entry, now):
        if entry.fin and not self.asks_at_once and not self.polling.may_poll(now):
            return False
        return super().asks_with(entry, now)


class IntervalOfTheStart(Polling):
    """Timer_POLL keeps the interval it was started with."""

    _due = math.inf

    def sent(self, now):
        if not self.is_due:
            self._due = now + self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped):
        if self.is_due and not stopped:
            return self._due
        return super().poll_at(stopped=stopped)


class KnowsPeerDone(Connection):
    """Tells the sending side that the peer's stream has ended."""

    def send_data(self, now):
        self.outgoing.peer_done = self.peer_has_closed
        super().send_data(now)


class NoProbesHalfClosed(Outgoing):
    """A closed window is not probed any more when the peer's FIN has been delivered."""

    peer_done = False

    def is_closed(self):
        return not self.peer_done and super().is_closed()


class LastPollOnly(RoundTrip):
    """One clock, started again by every POLL."""

    def polled(self, number, now):
        self._sent = {number: now}


class OneClock(Outgoing):
    """Measures the round-trip time with one clock."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.rtt.__class__ = LastPollOnly


FAULTS = [
    Fault(
        "stp-b8-anew-keeps-timer",
        "a call anew goes on with the doubled Timer_CC and the count of the call before",
        "STP-CC-016", with_parts(AnewKeepsTimer),
    ),
    # Shows when a second BGREJ with reason 6 comes, or two calls are begun together.
    Fault(
        "stp-b8-v-flag-once",
        "after one BEGIN with V flag the next has none, though none has opened a connection",
        "STP-CC-039", with_parts(VoidsOnce),
    ),
    # Needs a call with a cookie that is refused, and another call.
    Fault(
        "stp-b8-refusal-keeps-cookies",
        "after a call with a cookie was refused the next uses an older cookie and no V flag",
        "STP-CC-039", with_parts(RefusalKeepsCookies),
    ),
    # Needs a BEGIN with data and FIN that is answered with reason 6: the listener has restarted.
    Fault(
        "stp-b8-anew-keeps-fin",
        "a call anew sends nothing if the FIN had left with the first try",
        "STP-CC-037", with_parts(AnewKeepsFin),
    ),
    Fault(
        "stp-b8-begin-beside-early-credit",
        "four early SDs follow the data of the BEGIN instead of three",
        "STP-CC-002", with_parts(BeginBesideEarlyCredit), setting="initial-window-10",
    ),
    # Needs a forged END.
    Fault(
        "stp-b8-zero-while-pending",
        "an END with A flag and zero for the recipient's CSN ends a call in state 2",
        "STP-CC-021", with_parts(ZeroWhilePending),
    ),
    Fault(
        "stp-b8-second-bgak-polls",
        "a second BGAK of an open connection draws a POLL",
        "STP-PL-010; STP-PL-002", with_parts(SecondBgakPolls),
    ),
    # Needs a peer whose MaxSD differs between BGREJ and BGAK.
    Fault(
        "stp-b8-maxsd-only-rises",
        "SDs keep the MaxSD that came with the cookie when the BGAK announces a lower one",
        "STP-PF-009", with_parts(MaxSdOnlyRises),
    ),
    Fault(
        "stp-b8-begun-again-with-new-credit",
        "a repeated BEGIN draws a BGAK with more credit than was last announced",
        "STP-CC-015", with_parts(BegunAgainWithNewCredit),
    ),
    # Needs a BEGIN that comes late, after another one with V flag.
    Fault(
        "stp-b8-voided-are-forgotten",
        "a cookie used before one with V flag is answered with a fresh cookie, not an END",
        "STP-CC-038", with_parts(VoidedAreForgotten),
    ),
    # Needs a second BEGIN with a good cookie that has to be discarded or refused.
    Fault(
        "stp-b8-gives-way-to-cookie",
        "a BEGIN with a good cookie and too much data ends the connection that it does not replace",
        "STP-CC-041", with_parts(GivesWayToCookie),
    ),
    # Needs a caller that uses the cookie of the first BGAK before it repeats its BEGIN.
    Fault(
        "stp-b8-one-cookie-per-connection",
        "a repeated BGAK carries the cookie of the first, though that has been used meanwhile",
        "STP-CC-012", with_parts(OneCookiePerConnection),
    ),
    # Needs a BEGIN with two MaxSD options.
    Fault(
        "stp-b8-last-maxsd",
        "of several MaxSD options in a BEGIN the last one counts",
        "STP-PF-018; STP-PF-009", with_parts(LastMaxSd),
    ),
    Fault(
        "stp-b8-sdp-gap-is-quiet",
        "a gap before an SDP is not reported by a USTAT",
        "STP-DT-001", with_parts(SdpGapIsQuiet),
    ),
    Fault(
        "stp-b8-fin-noted-late",
        "while the FIN waits behind a gap, SDs and POLLs beyond it are taken, and credit announced",
        "STP-DT-028; STP-DT-008; STP-DT-024", with_parts(FinNotedLate),
    ),
    # Needs a sender that uses up its credit behind a gap.
    Fault(
        "stp-b8-closed-by-vr-r",
        "credit used up behind a gap is not announced again when the gap has been filled",
        "STP-DT-024", with_parts(ClosedByVrR),
    ),
    # Needs a sender that is held by credit, and sends on a USTAT.
    Fault(
        "stp-b8-ustat-credit-forgotten",
        "SDs within a credit that only a USTAT has announced are discarded",
        "STP-DT-020", with_parts(UstatCreditForgotten),
    ),
    # Needs more than 33 gaps at once.
    Fault(
        "stp-b8-cut-list-moves-nr",
        "the second STAT of a cut list acknowledges everything below its first element",
        "STP-DT-018; STP-PF-012", with_parts(CutListMovesNr),
    ),
    Fault(
        "stp-b8-only-higher-sds-count",
        "SDs that fill a hole do not count among the three after which a held USTAT is sent",
        "STP-DT-031", with_parts(OnlyHigherSdsCount), setting="reordering",
    ),
    # Needs a sender that uses up its credit and loses the last SDs.
    Fault(
        "stp-b8-poll-at-credit-ignored",
        "a POLL whose N(S) equals VR(MR) does not raise VR(H)",
        "STP-DT-002", with_parts(PollAtCreditIgnored),
    ),
    # Needs a peer whose ISS is near 2^24.
    Fault(
        "stp-b8-ustat-stops-at-wrap",
        "no USTAT is sent for a run that reaches or crosses number 0",
        "STP-DT-001", with_parts(UstatStopsAtWrap),
    ),
    Fault(
        "stp-b8-end-silences-answers",
        "the STAT for the SDP that completes the caller is dropped in favour of its END",
        "STP-DT-017", with_parts(EndSilencesAnswers),
    ),
    # Needs POLLs to a complete endpoint and no END.
    Fault(
        "stp-b8-polls-prolong-release",
        "every POLL starts the release wait again, so that the END comes too late",
        "STP-CC-031", with_parts(PollsProlongRelease),
    ),
    Fault(
        "stp-b8-end-goes-on-counting",
        "the END starts with the doubled Timer_CC and the count of the BEGIN, or is not sent",
        "STP-CC-026; STP-CC-044", with_parts(EndGoesOnCounting),
    ),
    # Needs ENDs of both sides that cross, one of them lost.
    Fault(
        "stp-b8-crossed-end-is-no-answer",
        "an END is repeated after the peer's own END has ended state 4",
        "STP-CC-026", with_parts(CrossedEndIsNoAnswer),
    ),
    Fault(
        "stp-b8-stamp-when-queued",
        "an SD that waits for its retransmission is sent twice when a POLL left in between",
        "STP-DT-003; STP-DT-027", with_parts(StampWhenQueued),
    ),
    # Needs a USTAT over SDs of which some have been sent again.
    Fault(
        "stp-b8-run-by-its-first",
        "a USTAT retransmits nothing if the first SD of its run has been sent twice",
        "STP-DT-014", with_parts(RunByItsFirst),
    ),
    Fault(
        "stp-b8-new-passes-blocked",
        "a short new SD leaves before a retransmission that the window holds back",
        "STP-DT-009", with_parts(NewPassesBlocked),
    ),
    Fault(
        "stp-b8-serial-of-first",
        "the loss of a retransmission does not reduce the window",
        "STP-CG-005", with_parts(SerialOfFirst),
    ),
    Fault(
        "stp-b8-silence-frees-one",
        "after two silences one retransmission exceeds the window",
        "STP-CG-002", with_parts(SilenceFreesOne),
    ),
    Fault(
        "stp-b8-reduction-keeps-count",
        "in congestion avoidance what arrived before a reduction makes the smaller window grow",
        "STP-CG-004", with_parts(ReductionKeepsCount),
    ),
    Fault(
        "stp-b8-saves-unused-rate",
        "after a pause SDs exceed the maximum rate",
        "STP-CG-009", with_parts(SavesUnusedRate), setting="max-rate",
    ),
    Fault(
        "stp-b8-fast-until-loss",
        "after a slow start that follows two silences, SDs leave with the gain 2 above ssthresh",
        "STP-CG-008", with_parts(TellsLoss, FastUntilLoss),
    ),
    Fault(
        "stp-b8-any-packet-ends-silence",
        "the peer's SDs and POLLs keep two silences from reducing the window",
        "STP-CG-007", with_parts(AnyPacketEndsSilence),
    ),
    Fault(
        "stp-b8-discarded-reports-answer",
        "discarded STATs and USTATs restart Timer_SILENCE and stop Timer_NO-RESPONSE",
        "STP-DT-007; STP-DT-023; STP-PL-008", with_parts(DiscardedReportsAnswer),
    ),
    # Needs an idle connection and a lost POLL.
    Fault(
        "stp-b8-keep-alive-is-not-repeated",
        "a POLL of Timer_KEEP-ALIVE without answer is not repeated by Timer_SILENCE",
        "STP-PL-007", with_parts(KeepAliveIsNotRepeated),
    ),
    Fault(
        "stp-b8-fin-poll-keeps-distance",
        "an SD with FIN shortly after a POLL is followed by one only after a poll interval",
        "STP-PL-004", with_parts(FinPollKeepsDistance),
    ),
    Fault(
        "stp-b8-interval-of-the-start",
        "a poll interval that becomes shorter does not hold for the SDs already sent",
        "STP-PL-001", with_parts(IntervalOfTheStart),
    ),
    # Needs a peer that has closed and gives no credit.
    Fault(
        "stp-b8-no-probes-half-closed",
        "a closed window is not probed after the peer's FIN",
        "STP-DT-025; STP-CC-023", with_parts(KnowsPeerDone, NoProbesHalfClosed),
    ),
    Fault(
        "stp-b8-one-clock",
        "a STAT is measured only if no POLL has left since the one that it answers",
        "STP-PL-009", with_parts(OneClock),
    ),
]  # fmt: skip
