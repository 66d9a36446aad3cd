"""Round 2: written from STP/1, second edition, on 2026-11-22."""

from __future__ import annotations

import math
from dataclasses import replace
from heapq import heapify

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import Cookies
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Begin, Bgak, Bgrej, End, Flags, Sdp, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.rtt import RoundTrip
from bentpipe_reference.stp.sender import Report, Sender
from bentpipe_reference.stp.sequence import PACKET_HALF, PACKET_MASK, unwrap
from bentpipe_reference.stp.states import State

# Cookies and calls


class ForgetsVoid(Cookies):
    """The mark of a V flag is dropped by the next call without one."""

    def use(self, peer, cookie, *, voids):
        super().use(peer, cookie, voids=voids)
        if not voids:
            self._void.pop(peer, None)


class OneUsedCookie(Cookies):
    """A table of used cookies with one entry for each address: the latest."""

    def use(self, peer, cookie, *, voids):
        self._used = {number: owner for number, owner in self._used.items() if owner != peer}
        self._oldest = [number for number in self._oldest if number in self._used]
        heapify(self._oldest)
        super().use(peer, cookie, voids=voids)


class IpCookies(Cookies):
    """The code covers the IP address, not the UDP port."""

    def code(self, number, peer):
        return super().code(number, peer[:1])


class KeepsBgak(Actions):
    """The BGAK is built once, and a repeated BEGIN gets the stored one."""

    def bgak(self, v, now):
        kept = getattr(v, "kept_bgak", None)
        if kept is None:
            kept = v.kept_bgak = super().bgak(v, now)
        return kept


class MaxSdRises(Outgoing):
    """The MaxSD of the peer is the largest seen, from cookie or BGAK."""

    _largest = 0

    def learn(self, max_sd):
        if max_sd is not None:
            max_sd = self._largest = max(self._largest, max_sd)
        super().learn(max_sd)


class BgakAcknowledgesAll(Outgoing):
    """A BGAK is taken to acknowledge the SDs that followed the BEGIN, too."""

    def learn_credit(self, n_mr, n_r):
        super().learn_credit(n_mr, n_r)
        sender = self.sender
        sender.acknowledge(sender.vt_s, Report(None, sender.flight))


class VoidsOnce(Actions):
    """The V flag is on the first transmission of a BEGIN only."""

    def put(self, v, packet):
        if isinstance(packet, Begin) and v.transmissions:
            packet = replace(packet, flags=packet.flags & ~int(Flags.V))
        super().put(v, packet)


class AnewKeepsCount(Actions):
    """Calling anew does not reset the transmissions of the BEGIN, nor Timer_CC's doubling."""

    def call_anew(self, v, bgrej, now):
        before = v.transmissions
        super().call_anew(v, bgrej, now)
        v.transmissions = before + 1
        v.timer_cc = now + self.wait_cc(v, before)


class FinNeedsData(Actions):
    """A BEGIN is looked into only if it has data: a FIN alone is overlooked."""

    def take_call(self, v, begin, now):
        if not begin.data:
            begin = replace(begin, flags=begin.flags & ~int(Flags.FIN))
        super().take_call(v, begin, now)


class LimitsCookies(Idle):
    """BGREJs with a cookie share the limit of ten answers a second."""

    def give_cookie(self, arrival, begin):
        if self._refusals.take(arrival.now):
            super().give_cookie(arrival, begin)


class LastOptionEndpoint(StpEndpoint):
    """The last MaxSD option wins."""

    def handle(self, packet, peer, now):
        if isinstance(packet, Begin | Bgak | Bgrej):
            for kind, value in packet.options:
                if kind == 1 and len(value) == 2:
                    packet = replace(packet, max_sd=int.from_bytes(value, "big"))
        super().handle(packet, peer, now)


class LastOption(StpHost):
    """See :class:`LastOptionEndpoint`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.endpoint.__class__ = LastOptionEndpoint


class BusyReleasing(Guards):
    """In state 4 every BEGIN is taken for one of the connection that is being released."""

    def is_of_peer(self, v, begin):
        return v.state is State.OUTGOING_RELEASE or super().is_of_peer(v, begin)


# Release


class RestartsReleaseWait(Actions):
    """Every POLL of the caller starts the release wait again."""

    def _answer(self, v, n_s, n_ps, timestamp, now):
        super()._answer(v, n_s, n_ps, timestamp, now)
        if v.succeeded and v.release_at < math.inf:
            v.release_at = now + self.release_wait(v)


class AwaitsOwnEndak(Connection):
    """An END that crosses our own is acknowledged, but does not end state 4."""

    def receive(self, packet, now):
        before = self.state
        again = super().receive(packet, now)
        crossing = isinstance(packet, End) and not packet.flags & Flags.R
        if crossing and before is State.OUTGOING_RELEASE and self.state is State.IDLE:
            self.state = before
        return again


class WantsBothCsns(Guards):
    """An END with A flag needs our CSN, though its sender may not know it yet."""

    def is_valid(self, v, end):
        return super().is_valid(v, end) and end.peer_csn == v.csn


class AbortsWithHighest(Actions):
    """N(R) of an abort is VR(H)."""

    def end(self, v, flags, reason):
        end = super().end(v, flags, reason)
        if flags & Flags.A and v.receiver is not None:
            end = replace(end, n_r=v.receiver.vr_h & PACKET_MASK)
        return end


class EndFirst(Actions):
    """An END jumps the queue of answers."""

    def send_end(self, v, end, now):
        super().send_end(v, end, now)
        v.outbox.insert(0, v.outbox.pop())


# Timers


class DataIsLife(Actions):
    """An SD of the peer starts Timer_NO-RESPONSE again."""

    def receive_sd(self, v, field, data, fin, now):
        super().receive_sd(v, field, data, fin, now)
        polling = v.outgoing.polling
        if polling.awaits_answer:
            polling._unanswered_since = now


class UstatIsNoAnswer(Outgoing):
    """A USTAT does not start Timer_SILENCE again."""

    def on_ustat(self, ustat, now):
        polling = self.polling
        kept = polling._silent_at, polling._silence, polling.silences
        super().on_ustat(ustat, now)
        if kept[0] < math.inf:
            polling._silent_at, polling._silence, polling.silences = kept


class ArmedInterval(Polling):
    """Timer_POLL keeps the poll interval with which it was started."""

    _armed = 0.0

    def sent(self, now):
        if not self.is_due:
            self._armed = self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped):
        if stopped and self.is_due:
            return super().poll_at(stopped=True)
        return self._unpolled_since + self._armed


class NewOnly(Outgoing):
    """A retransmission does not start Timer_POLL."""

    def _sent(self, entry, now):
        if entry.times == 1:
            super()._sent(entry, now)
        else:
            self.pacer.sent(len(entry.data))


class KeepAliveOnce(Outgoing):
    """With nothing unacknowledged Timer_SILENCE is stopped, though a keep-alive POLL is out."""

    def transmit(self, now, put):
        super().transmit(now, put)
        if self.polls and not self.sender.unacknowledged and not self.is_closed():
            self.polling.stop_silence()


class LastPollTime(RoundTrip):
    """One variable holds the time of the last POLL."""

    _last = 0.0

    def polled(self, number, now):
        super().polled(number, now)
        self._last = now

    def answered(self, number, now):
        if number in self._sent:
            self._sent[number] = self._last
        super().answered(number, now)


class MeasuresLastPoll(Outgoing):
    """See :class:`LastPollTime`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.rtt.__class__ = LastPollTime


# Sending


class EmptiesFlight(Outgoing):
    """The second silence declares that nothing is in flight, as TCP's timeout does."""

    def expire(self, now):
        before = self.polling.silences
        alive = super().expire(now)
        sender = self.sender
        if alive and self.polling.silences == 2 != before and sender.unacknowledged:
            for entry in sender._kept.values():
                if not entry.queued:
                    entry.size = 0
            sender.flight = 0
        return alive


class CountsAgain(Sender):
    """What has been taken out of flight counts again once it is retransmitted."""

    def queue(self, entry, report):
        super().queue(entry, report)
        entry.size = len(entry.data) or 1


class RetransmissionsAreFree(Sender):
    """Only the loss of a first transmission reduces the window."""

    def queue(self, entry, report):
        before = report.new_loss
        super().queue(entry, report)
        if entry.times > 1:
            report.new_loss = before


class CountsFullSds(Sender):
    """Each SD that has arrived counts as SMSS octets."""

    def release(self, number, report):
        size = self._kept[number].size
        super().release(number, report)
        report.arrived += max(0, self.max_sd - size)


class LimitsNewOnly(Outgoing):
    """Retransmissions do not count against the maximum rate."""

    def _repeat(self, entry, now, put):
        limit = self.pacer._limit
        filled = 0.0 if limit is None else limit._filled
        super()._repeat(entry, now, put)
        if limit is not None:
            limit._filled = filled


class RidesOnRetransmission(Outgoing):
    """A POLL that is due rides on a retransmission."""

    def _repeat(self, entry, now, put):
        def ride(sd):
            asks = self.asks_at_once or (not entry.fin and self.asks_with(entry, now))
            if self.polls and asks:
                sd = Sdp(*self.header, sd.flags, sd.n_s, *self.take_poll(now), sd.data)
            put(sd)

        super()._repeat(entry, now, ride)


class UstatLeavesStamp(Sender):
    """The stamp is renewed when a STAT caused the retransmission, not when a USTAT did."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._unstamped = set()
        self._in_ustat = False

    def on_ustat(self, ustat):
        self._in_ustat = True
        report = super().on_ustat(ustat)
        self._in_ustat = False
        return report

    def queue(self, entry, report):
        super().queue(entry, report)
        if self._in_ustat:
            self._unstamped.add(entry.number)

    def retransmit(self, entry):
        stamp = entry.stamp
        super().retransmit(entry)
        if entry.number in self._unstamped:
            self._unstamped.discard(entry.number)
            entry.stamp = stamp


class LeavesFlightTwice(Sender):
    """An SD that arrives while it awaits retransmission leaves the flight a second time."""

    def release(self, number, report):
        entry = self._kept[number]
        super().release(number, report)
        if entry.queued:
            self.flight -= entry.size


class CreditOfDiscarded(Outgoing):
    """Credit never shrinks, so that of an old or invalid report is taken."""

    def discard(self, packet, now):
        self.sender.grant(packet.n_mr, unwrap(packet.n_r, self.sender.vt_a))
        super().discard(packet, now)


class AnnouncementResetsAge(Sender):
    """VT(PA) becomes N(PS) of every STAT, 0 included."""

    def on_stat(self, stat):
        report = super().on_stat(stat)
        if report is not None and report.n_ps is None:
            self.vt_pa = 0
        return report


class SmallOnesPass(Outgoing):
    """While the window has no room for the next retransmission, smaller new SDs go."""

    def transmit(self, now, put):
        sender, congestion = self.sender, self.congestion
        self.pacer.set_rates(now)
        entry = sender.awaiting()
        if entry is not None and not (
            congestion.first_retransmission or congestion.room(sender.flight, entry.size)
        ):
            while sender.has_new and self._may_send_new():
                self._send_new(now, put)
        super().transmit(now, put)


# Receiving


class SortsList(Receiver):
    """The list is put into the order of the fields."""

    def on_poll(self, field):
        return [tuple(sorted(elements)) for elements in super().on_poll(field)]


class StatLeavesWaiting(Receiver):
    """A STAT does not cancel the USTATs that wait."""

    def on_poll(self, field):
        waiting = self._waiting
        self._waiting = []
        lists = super().on_poll(field)
        self._waiting = waiting
        return lists


class OneWait(Receiver):
    """One timer and one counter serve all gaps: a second gap starts them again."""

    def hold_back(self, gap, until):
        super().hold_back(gap, until)
        arrivals = self._waiting[-1][2]
        self._waiting = [(first, end, arrivals, until) for first, end, *_ in self._waiting]


class UstatCreditUnnoted(Actions):
    """The credit that a USTAT announces is not noted in VR(MR)."""

    def _send_ustat(self, v, run):
        receiver = v.incoming
        n_r, n_mr = receiver.vr_r & PACKET_MASK, receiver.credit() & PACKET_MASK
        first, end = (edge & PACKET_MASK for edge in run)
        self.put(v, Ustat(*v.header, 0, n_r, n_mr, (first, end)))


class OneGapAtATime(Receiver):
    """While something is missing already, a further gap is left to the next STAT."""

    def on_sd(self, field, data, fin):
        before = bool(self._starts)
        gap = super().on_sd(field, data, fin)
        return None if before else gap


class PollBelowCredit(Receiver):
    """A POLL whose N(S) is just VR(MR) is held to be beyond the credit."""

    def raise_highest(self, number):
        if number != self.vr_mr:
            super().raise_highest(number)


class DuplicateSdpSilent(Actions):
    """A duplicate SDP is discarded together with its POLL."""

    def take_sdp(self, v, sdp, now):
        receiver = v.incoming
        ahead = sdp.n_s - receiver.vr_r & PACKET_MASK
        if ahead < PACKET_HALF and receiver.vr_r + ahead not in receiver._held:
            super().take_sdp(v, sdp, now)


def part(*classes):
    """A configuration with these parts."""

    def configure(setup):
        for item in classes:
            setup = setup.with_part(item)
        return setup

    return configure


# ./check calls these inactive; they are faults all the same (cookie-any-port it calls active, but
# what changes there are only the octets of the cookie; it shows as written below):
# - void-forgotten: needs a call with V flag, one without, and then a cookie older than the first.
# - one-used-cookie: needs two calls from one address and then a late copy of the first BEGIN.
# - cookie-any-port: needs a call with a cookie made for another UDP port of the address.
# - max-sd-rises: needs a peer whose BGAK announces less than the BGREJ before it.
# - v-flag-once: needs the loss of a BEGIN with V flag.
# - anew-keeps-count: needs the loss of a BEGIN after a call anew.
# - cookies-limited: needs more than ten BEGINs without a good cookie in a second.
# - last-option: needs a packet with two MaxSD options.
# - busy-releasing: needs an END whose ENDAK is lost, and another call between the same ports.
# - release-wait: needs a POLL to a complete endpoint that was called, and a late END of the caller.
# - crossing-end: needs ENDs of both sides that cross, the ENDAK being lost.
# - abort-without-csn: needs a caller that aborts before the BGAK reaches it.
# - abort-highest: needs a peer that falls silent while a gap is open.
# - data-is-life: needs a peer whose reports are lost for 60 s while its SDs arrive.
# - keep-alive-once: needs an idle connection and the loss of its POLL or STAT.
# - lost-again: needs the loss of a retransmission in a report without other new losses.
# - discarded-credit: needs an old or invalid report with more credit than all valid ones.
# - age-reset: needs an announcement of credit, and a STAT overtaken by a later one.
# - small-pass: needs SDs of different sizes and a full window after a loss.
# - list-sorted: needs gaps on both sides of number 0.
# - ustat-credit: needs a peer that uses up the credit that a USTAT gave before the next STAT.
# - poll-at-credit: needs the loss of the last SDs of the whole credit.

FAULTS = [
    Fault("stp-b2-void-forgotten", "a call without V flag makes voided cookies good again",
          "STP-CC-035", part(ForgetsVoid)),
    Fault("stp-b2-one-used-cookie", "remembers only the last used cookie of each address",
          "STP-CC-038", part(OneUsedCookie)),
    Fault("stp-b2-cookie-any-port", "a cookie is good from every UDP port of the address",
          "STP-SEC-006; STP-CC-035", part(IpCookies)),
    Fault("stp-b2-stored-bgak", "answers a repeated BEGIN with the first BGAK and its credit",
          "STP-CC-015", part(KeepsBgak)),
    Fault("stp-b2-max-sd-rises", "does not follow a MaxSD that a BGAK lowers",
          "STP-PF-009", part(MaxSdRises)),
    Fault("stp-b2-bgak-acknowledges", "takes early SDs for acknowledged by the BGAK",
          "STP-DT-010; STP-CC-042", part(BgakAcknowledgesAll)),
    Fault("stp-b2-v-flag-once", "repeats a BEGIN without its V flag",
          "STP-CC-014", part(VoidsOnce)),
    Fault("stp-b2-anew-keeps-count", "a call anew goes on with the count and time of Timer_CC",
          "STP-CC-016", part(AnewKeepsCount)),
    Fault("stp-b2-fin-only-begin", "overlooks the FIN of a BEGIN without data",
          "STP-CC-012", part(FinNeedsData)),
    Fault("stp-b2-cookies-limited", "gives no more than ten cookies a second",
          "STP-CC-036", part(LimitsCookies)),
    Fault("stp-b2-last-option", "of several MaxSD options the last one counts",
          "STP-PF-018", part(LastOption)),
    Fault("stp-b2-busy-releasing", "discards a later call while it awaits an ENDAK",
          "STP-CC-041", part(BusyReleasing)),
    Fault("stp-b2-release-wait", "a POLL starts the release wait again",
          "STP-CC-031", part(RestartsReleaseWait)),
    Fault("stp-b2-crossing-end", "repeats its END although the peer's has crossed it",
          "STP-CC-026", part(AwaitsOwnEndak)),
    Fault("stp-b2-abort-without-csn", "discards the abort of a caller that has no BGAK",
          "STP-CC-022", part(WantsBothCsns)),
    Fault("stp-b2-abort-highest", "N(R) of an abort is VR(H), beyond what is missing",
          "STP-CC-045", part(AbortsWithHighest)),
    Fault("stp-b2-end-first", "sends an END before the STAT that is due",
          "STP-CC-028", part(EndFirst)),
    Fault("stp-b2-data-is-life", "does not give a peer up that sends SDs, but never reports",
          "STP-PL-008", part(DataIsLife)),
    Fault("stp-b2-ustat-silence", "a USTAT does not start Timer_SILENCE again",
          "STP-PL-007", part(UstatIsNoAnswer)),
    Fault("stp-b2-armed-interval", "a new poll interval does not hold for a timer that runs",
          "STP-PL-001", part(ArmedInterval)),
    Fault("stp-b2-retransmission-unpolled", "retransmissions do not start Timer_POLL",
          "STP-PL-001", part(NewOnly)),
    Fault("stp-b2-keep-alive-once", "does not repeat a keep-alive POLL that is lost",
          "STP-PL-007", part(KeepAliveOnce)),
    Fault("stp-b2-last-poll-time", "measures every STAT from the last POLL, not from its own",
          "STP-PL-009", part(MeasuresLastPoll)),
    Fault("stp-b2-flight-emptied", "after two silences counts nothing as in flight",
          "STP-CG-002", part(EmptiesFlight, CountsAgain)),
    Fault("stp-b2-lost-again", "the loss of a retransmission does not halve the window",
          "STP-CG-005", part(RetransmissionsAreFree)),
    Fault("stp-b2-counts-packets", "the window grows by SMSS for each SD, however small",
          "STP-CG-003; STP-CG-004", part(CountsFullSds)),
    Fault("stp-b2-rate-of-new", "retransmissions do not count against the maximum rate",
          "STP-CG-009", part(LimitsNewOnly), setting="max-rate"),
    Fault("stp-b2-rides-back", "sends a retransmission as SDP when a POLL is due",
          "STP-PL-006", part(RidesOnRetransmission)),
    Fault("stp-b2-ustat-stamp", "a retransmission after a USTAT keeps its first stamp",
          "STP-DT-003", part(UstatLeavesStamp)),
    Fault("stp-b2-flight-twice", "an SD that arrives while it is queued leaves the flight twice",
          "STP-CG-002", part(LeavesFlightTwice)),
    Fault("stp-b2-discarded-credit", "takes the credit of reports that it discards",
          "STP-DT-023; STP-DT-007", part(CreditOfDiscarded)),
    Fault("stp-b2-age-reset", "after an announcement of credit old STATs are accepted",
          "STP-DT-007", part(AnnouncementResetsAge)),
    Fault("stp-b2-small-pass", "small new SDs overtake a retransmission that has no room",
          "STP-DT-009", part(SmallOnesPass)),
    Fault("stp-b2-list-sorted", "sorts a list across the wrap by its fields",
          "STP-PF-011", part(SortsList)),
    Fault("stp-b2-stat-and-ustat", "sends a waiting USTAT though a STAT has reported the gap",
          "STP-DT-031", part(StatLeavesWaiting), setting="reordering"),
    Fault("stp-b2-one-wait", "a second gap makes the USTAT of the first wait longer",
          "STP-DT-031; STP-DT-026", part(OneWait), setting="reordering"),
    Fault("stp-b2-ustat-credit", "refuses SDs within the credit that a USTAT announced",
          "STP-DT-020", part(UstatCreditUnnoted)),
    Fault("stp-b2-one-gap", "sends no USTAT while an earlier gap is open",
          "STP-DT-001", part(OneGapAtATime)),
    Fault("stp-b2-poll-at-credit", "a POLL with N(S) = VR(MR) does not raise VR(H)",
          "STP-DT-002; STP-DT-018", part(PollBelowCredit)),
    Fault("stp-b2-duplicate-sdp", "does not answer the POLL of a duplicate SDP",
          "STP-DT-019; STP-DT-017", part(DuplicateSdpSilent)),
]  # fmt: skip
