"""Round 9: forty faults of an STP/1 stack, written without knowledge of the suite."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import Cookies
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.packets import Begin, Flags, Reason, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import CSN_MASK, PACKET_HALF, PACKET_MASK, newer
from bentpipe_reference.stp.states import State

FAULTS = []


def fault(identifier, title, clause, *, setting="", **settings):
    """Declare the class that follows as the part at fault."""

    def declare(part):
        FAULTS.append(
            Fault(
                "stp-b9-" + identifier, title, clause,
                lambda setup: setup.configured(**settings).with_part(part), setting=setting,
            )
        )  # fmt: skip
        return part

    return declare


# Packets


@fault(
    "list-just-full",
    "follows a STAT whose list fills it exactly by one with nothing but the bound",
    "STP-PF-011; STP-PF-012",
)
class ListJustFull(Receiver):
    def _cut_list(self):
        elements = [number & PACKET_MASK for number in self.whole_list()]
        limit = self._list_limit
        return [
            tuple(elements[at : at + limit]) for at in range(0, max(len(elements), 1), limit - 1)
        ]


@fault("last-max-sd", "of two MaxSD options takes the last one", "STP-PF-018; STP-PF-009")
class LastMaxSd(Actions):
    @staticmethod
    def _last(packet):
        values = [value for kind, value in packet.options if kind == 1 and len(value) == 2]
        return replace(packet, max_sd=int.from_bytes(values[-1], "big")) if values else packet

    def take_call(self, v, begin, now):
        super().take_call(v, self._last(begin), now)

    def open(self, v, bgak, now):
        super().open(v, self._last(bgak), now)


@fault(
    "max-sd-of-cookie",
    "goes on with the MaxSD that came with the cookie when the BGAK brings another one",
    "STP-PF-009",
)
class MaxSdOfCookie(Actions):
    def _learn_peer(self, v, iss, max_sd):
        known = v.ticket is not None and v.ticket.max_sd is not None and not v.was_called
        super()._learn_peer(v, iss, None if known else max_sd)


@fault(
    "cookie-cut", "returns only the first 24 octets of a longer cookie", "STP-PF-017; STP-CC-039"
)
class CookieCut(Actions):
    def call_anew(self, v, bgrej, now):
        super().call_anew(v, replace(bgrej, cookie=bgrej.cookie[:24]), now)

    def open(self, v, bgak, now):
        if bgak.cookie is not None:
            bgak = replace(bgak, cookie=bgak.cookie[:24])
        super().open(v, bgak, now)


@fault(
    "begin-too-long",
    "fills a BEGIN with a whole SD although its options make it exceed the MTU then",
    "STP-PF-016; STP-CC-040",
)
class BeginTooLong(Actions):
    def first_data(self, v, begin):
        sender = v.outgoing.sender
        if not sender.has_new:
            return b"", 0
        entry = sender.take_new()
        return entry.data, entry.fin


# Connections


@fault(
    "complete-forgets-begin",
    "disowns the connection when the BEGIN is repeated while it is complete and awaits the END",
    "STP-CC-015",
)
class CompleteForgetsBegin(Guards):
    def is_repeated(self, v, begin):
        return super().is_repeated(v, begin) and not v.is_over


@fault(
    "anew-waits-twice",
    "waits twice as long as it should before each repetition of the BEGIN of a call anew",
    "STP-CC-016",
)
class AnewWaitsTwice(Actions):
    def wait_cc(self, v, transmissions):
        anew = v.calls_anew > 0 and v.release is None
        return super().wait_cc(v, transmissions + anew)


@fault(
    "end-counts-begins",
    "counts on from the transmissions of the BEGIN when it repeats the END, with their waits",
    "STP-CC-026",
)
class EndCountsBegins(Actions):
    def send_end(self, v, end, now):
        v.state = State.OUTGOING_RELEASE
        v.release = end
        self.repeat_end(v, now)


@fault(
    "cookies-limited",
    "counts BGREJs with a cookie among the refusals of which it sends ten per second",
    "STP-CC-036",
)
class CookiesLimited(Idle):
    def give_cookie(self, arrival, begin):
        if self._refusals.take(arrival.now):
            super().give_cookie(arrival, begin)


@fault(
    "disowned-bgak",
    "discards an END with R flag that names both CSNs, as one in answer to a BGAK does",
    "STP-CC-021; STP-CC-009",
)
class DisownedBgak(Guards):
    def is_valid(self, v, end):
        if end.flags & Flags.R:
            return end.peer_csn == v.csn and end.csn == 0
        return super().is_valid(v, end)


@fault(
    "release-wait-restarts",
    "starts the release wait again with each packet that arrives during it",
    "STP-CC-031",
)
class ReleaseWaitRestarts(Connection):
    def receive(self, packet, now):
        waits = self.is_over and self.state is State.READY
        again = super().receive(packet, now)
        if waits and self.state is State.READY and not again:
            self.release_at = now + self.machine.actions.release_wait(self)
        return again


@fault(
    "v-beside-fin",
    "overlooks the V flag of a BEGIN that has the FIN flag as well",
    "STP-CC-035; STP-CC-008",
)
class VBesideFin(Idle):
    def accept(self, arrival, begin):
        if begin.flags & Flags.FIN:
            begin = replace(begin, flags=begin.flags & ~int(Flags.V))
        super().accept(arrival, begin)


@fault(
    "begin-with-fin-only",
    "does not take the FIN of a BEGIN without data, so that the BGAK does not cover it",
    "STP-CC-012",
)
class BeginWithFinOnly(Idle):
    def accept(self, arrival, begin):
        if not begin.data:
            begin = replace(begin, flags=begin.flags & ~int(Flags.FIN))
        super().accept(arrival, begin)


@fault(
    "refused-cookie-again",
    "keeps the cookie of a call that was refused for the next call",
    "STP-CC-039",
)
class RefusedCookieAgain(Actions):
    def be_refused(self, v, bgrej, now):
        super().be_refused(v, bgrej, now)
        if v.ticket is not None:
            held = self._jar._held.setdefault(v.identity.peer, deque(maxlen=8))
            held.append(v.ticket)


@fault(
    "older-call-discarded",
    "discards a later call on the same ports if its CSN is older than that of the connection",
    "STP-CC-041",
)
class OlderCallDiscarded(Connection):
    def receive(self, packet, now):
        if (
            isinstance(packet, Begin)
            and packet.version == 2
            and self.state in (State.READY, State.OUTGOING_RELEASE)
            and self.peer_csn is not None
            and newer(self.peer_csn, packet.csn)
        ):
            self.handled, self.handled_at = packet, now
            if self.machine.guards.would_open(self, packet):
                return False
        return super().receive(packet, now)


@fault(
    "anew-without-fin",
    "never ends the stream when it calls anew after a BEGIN or early SD that carried the FIN",
    "STP-CC-037; STP-CC-009",
)
class AnewWithoutFin(Sender):
    _fin_lost = False

    def restart(self, iss):
        self._fin_lost = self._fin_lost or self.fin_number is not None
        super().restart(iss)

    @property
    def has_new(self):
        return bool(self._unsent) if self._fin_lost else super().has_new

    def take_new(self, most=None):
        if not self._fin_lost:
            return super().take_new(most)
        closed, self.closed = self.closed, False
        entry = super().take_new(most)
        self.closed = closed
        return entry


@fault(
    "anew-csn-beside-counter",
    "adds 64 to the CSN of a call anew beside its counter, so that the next call is not newer",
    "STP-CC-010",
)
class AnewCsnBesideCounter(Actions):
    def call_anew(self, v, bgrej, now):
        numbers = self._numbers
        endpoint = numbers.__self__
        iss = endpoint._csns.iss() if endpoint.config.iss is None else endpoint.config.iss
        csn = v.csn + 64 & CSN_MASK
        self._numbers = lambda _peer: (csn, iss)
        try:
            super().call_anew(v, bgrej, now)
        finally:
            self._numbers = numbers


@fault(
    "abort-says-highest",
    "puts VR(H) into the END of an abort, which is more than VR(R) while there is a hole",
    "STP-CC-045",
)
class AbortSaysHighest(Actions):
    def end(self, v, flags, reason):
        end = super().end(v, flags, reason)
        if flags & Flags.A and v.receiver is not None:
            end = replace(end, n_r=v.receiver.vr_h & PACKET_MASK)
        return end


@fault(
    "half-closed-deaf",
    "discards USTATs once the FIN of the peer has been delivered",
    "STP-CC-023; STP-DT-014",
)
class HalfClosedDeaf(Guards):
    def is_bad_report(self, v, report):
        if isinstance(report, Ustat) and self.peer_is_finished(v):
            return True
        return super().is_bad_report(v, report)


# Security


@fault(
    "cookie-for-host",
    "makes cookies for an IP address, so that they are good from other UDP ports as well",
    "STP-SEC-006; STP-CC-035",
)
class CookieForHost(Cookies):
    def code(self, number, peer):
        return super().code(number, peer[:1])


@fault(
    "sheds-the-largest",
    "when it refuses a call for want of room, aborts the connection that holds most memory",
    "STP-SEC-007",
    setting="small-over-ip",
)
class ShedsTheLargest(Idle):
    def refuse_call(self, arrival, begin):
        super().refuse_call(arrival, begin)
        open_ = [
            connection
            for connection in self._listener.connections.values()
            if connection.state is State.READY and not connection.is_over
        ]
        if open_:
            largest = max(open_, key=lambda connection: connection.share.octets)
            largest.abort(arrival.now, Reason.RESOURCES)


# Data transfer


@fault(
    "poll-at-the-credit",
    "does not raise VR(H) by a POLL whose N(S) is VR(MR): the sender has used all credit",
    "STP-DT-002; STP-DT-018",
)
class PollAtTheCredit(Receiver):
    def raise_highest(self, number):
        if number != self.vr_mr:
            super().raise_highest(number)


@fault(
    "poll-clipped",
    "raises VR(H) to VR(MR) by a POLL whose N(S) is above VR(MR)",
    "STP-DT-008",
)
class PollClipped(Receiver):
    def raise_highest(self, number):
        if number > self.vr_mr and number - self.vr_r < PACKET_HALF:
            number = self.vr_mr
        super().raise_highest(number)


@fault(
    "fin-beyond-wrap",
    "takes what lies before the wrap for what follows the FIN when the FIN lies behind the wrap",
    "STP-DT-012; STP-DT-020",
)
class FinBeyondWrap(Receiver):
    def takes(self, number):
        if not super().takes(number):
            return False
        fin = self.fin_number
        return fin is None or number & PACKET_MASK <= fin & PACKET_MASK


@fault(
    "overtaken-poll",
    "does not answer a POLL or SDP that a later one has overtaken",
    "STP-DT-017",
)
class OvertakenPoll(Actions):
    def _answer(self, v, n_s, n_ps, timestamp, now):
        if n_ps < getattr(v, "newest_poll", 0):
            return
        v.newest_poll = n_ps
        super()._answer(v, n_s, n_ps, timestamp, now)


@fault(
    "ustat-shrinks-credit",
    "subtracts the SDs held beyond the hole from the N(MR) of a USTAT",
    "STP-DT-021",
)
class UstatShrinksCredit(Actions):
    def _send_ustat(self, v, run):
        receiver = v.incoming
        receiver.reported()
        n_mr = max(receiver.vr_mr - len(receiver.held()), run[1])
        first, end = (edge & PACKET_MASK for edge in run)
        n_r = receiver.vr_r & PACKET_MASK
        self.put(v, Ustat(*v.header, 0, n_r, n_mr & PACKET_MASK, (first, end)))


@fault(
    "sixteen-or-nothing",
    "announces no reopened window of less than 16 SDs, however small its buffer",
    "STP-DT-024",
    setting="credit-8",
)
class SixteenOrNothing(Receiver):
    def reopened(self):
        return super().reopened() and self.credit() - self.vr_mr >= 16


@fault(
    "fin-does-not-probe",
    "does not probe a closed window for which nothing but the empty SD with the FIN waits",
    "STP-DT-025; STP-CC-009",
)
class FinDoesNotProbe(Outgoing):
    def is_closed(self):
        return super().is_closed() and self.sender.unsent > 0


@fault(
    "late-ustat-after-stat",
    "sends a USTAT that it holds back although a STAT has reported its gap meanwhile",
    "STP-DT-031; STP-DT-026",
    setting="reordering",
)
class LateUstatAfterStat(Receiver):
    def on_poll(self, field):
        waiting = list(self._waiting)
        lists = super().on_poll(field)
        self._waiting = waiting
        return lists


@fault(
    "fin-on-repetition",
    "sets the FIN flag in a retransmission of the last data when the stream has ended since",
    "STP-DT-015",
)
class FinOnRepetition(Sender):
    _empty_fin = None

    def take_new(self, most=None):
        entry = super().take_new(most)
        if entry.fin and not entry.data:
            self._empty_fin = entry.number
        return entry

    def retransmit(self, entry):
        super().retransmit(entry)
        if entry.number + 1 == self._empty_fin:
            entry.fin = 1


@fault(
    "no-credit-no-repetition",
    "retransmits nothing while it has no credit for a new SD",
    "STP-DT-009; STP-DT-003",
)
class NoCreditNoRepetition(Outgoing):
    def _may_repeat(self, entry):
        sender = self.sender
        return sender.vt_s < sender.vt_ms and super()._may_repeat(entry)


# Polling


@fault(
    "ustat-draws-poll",
    "answers each USTAT by a POLL, however short a time after the one before",
    "STP-PL-002",
)
class UstatDrawsPoll(Outgoing):
    def on_ustat(self, ustat, now):
        super().on_ustat(ustat, now)
        self.asks_at_once = self.asks_at_once or self.sender.unacknowledged


@fault(
    "no-poll-at-credit",
    "does not ask before it has to stop when it is the credit that stops it",
    "STP-PL-003",
)
class NoPollAtCredit(Outgoing):
    def goes_on(self):
        sender = self.sender
        if sender.awaiting() is None and sender.has_new and not sender.permitted():
            return True
        return super().goes_on()


@fault(
    "silence-stays-doubled",
    "starts Timer_SILENCE with the doubled time once more after the report that ends a silence",
    "STP-PL-007",
)
class SilenceStaysDoubled(Polling):
    def start_silence(self, now):
        if self._silent_at < math.inf:
            return
        doubled = self._silence if self.silences else 0.0
        super().start_silence(now)
        if doubled > self._silence:
            self._silence = doubled
            self._silent_at = now + doubled


@fault(
    "gives-up-after-idling",
    "counts the 60 s from the last report, so that the first POLL after a long pause ends it",
    "STP-PL-008",
)
class GivesUpAfterIdling(Polling):
    _reported_at = math.inf

    def heard(self, now):
        super().heard(now)
        if self._reported_at == math.inf:  # the connection opens
            self._reported_at = now

    def reported(self, now, *, opens):
        super().reported(now, opens=opens)
        self._reported_at = now

    def polled(self, now):
        super().polled(now)
        self._unanswered_since = min(self._unanswered_since, self._reported_at)


@fault(
    "measures-repeated-begin",
    "measures the round trip from the first transmission of a BEGIN that has been repeated",
    "STP-PL-009",
)
class MeasuresRepeatedBegin(Actions):
    def repeat_begin(self, v, now):
        first = v.asked_at
        super().repeat_begin(v, now)
        if v.asked_at is None:
            v.asked_at = first


@fault(
    "keep-alive-once",
    "does not repeat a POLL of Timer_KEEP-ALIVE that is lost",
    "STP-PL-007",
)
class KeepAliveOnce(Outgoing):
    def transmit(self, now, put):
        super().transmit(now, put)
        if self.polls and not self.sender.unacknowledged and not self.is_closed():
            self.polling.stop_silence()


# Congestion and pacing


@fault(
    "lost-repetition-no-loss",
    "does not reduce its window when a retransmission is lost that was sent after a reduction",
    "STP-CG-005",
)
class LostRepetitionNoLoss(Sender):
    def queue(self, entry, report):
        before = report.new_loss
        super().queue(entry, report)
        if entry.times > 1:
            report.new_loss = before


@fault(
    "fast-at-threshold",
    "paces as in slow start while cwnd is ssthresh, as it is after each reduction",
    "STP-CG-008",
)
class FastAtThreshold(Pacer):
    def gain(self):
        congestion = self._congestion
        return 2.0 if congestion.cwnd <= congestion.ssthresh else 0.9


@fault(
    "repetitions-at-once",
    "sends all retransmissions that the window permits at once",
    "STP-CG-008",
)
class RepetitionsAtOnce(Outgoing):
    def _may_repeat(self, entry):
        congestion = self.congestion
        return congestion.first_retransmission or congestion.room(self.sender.flight, entry.size)
