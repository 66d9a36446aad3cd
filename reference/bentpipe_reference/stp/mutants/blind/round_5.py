"""Round 5: written from STP-1.txt and the reference on 2026-11-22.

What ordinary transfers may not bring about: see the comment at each fault that needs something else.
"""

from __future__ import annotations

import math
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar, Cookies
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.packets import (
    VERSION,
    Begin,
    Bgak,
    Bgrej,
    End,
    Flags,
    Poll,
    Reason,
    Stat,
    Type,
)
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Report, Sender
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State

_A, _R = int(Flags.A), int(Flags.R)


def part(cls: type[Any]) -> Any:
    """A setup with one part replaced."""
    return lambda setup: setup.with_part(cls)


# Opening


class IgnoresCookieAfterRepeat(Guards):
    """A BGREJ that follows a repetition is held to be a late one."""

    def is_for_another(self, v, packet):
        late = isinstance(packet, Bgrej) and packet.reason == Reason.COOKIE and v.transmissions > 1
        return late or super().is_for_another(v, packet)


class KeepsBackOffAnew(Actions):
    """Timer_CC goes on doubling over the call anew."""

    def call_anew(self, v, bgrej, now):
        v.carried_back_off = getattr(v, "carried_back_off", 0) + v.transmissions - 1
        super().call_anew(v, bgrej, now)

    def wait_cc(self, v, transmissions):
        carried = getattr(v, "carried_back_off", 0) if v.release is None else 0
        return super().wait_cc(v, transmissions + carried)


class FlagsOnce(CookieJar):
    """V is set in one BEGIN, and not until one has opened a connection."""

    def __init__(self, capacity):
        super().__init__(capacity)
        self._flagged = set()

    def end(self, peer):
        self._flagged.discard(peer)
        super().end(peer)

    def voids(self, peer, made):
        if not super().voids(peer, made) or peer in self._flagged:
            return False
        self._flagged.add(peer)
        return True


class LendsCookie(CookieJar):
    """A cookie leaves the jar when the call has opened, not when the BEGIN leaves."""

    def __init__(self, capacity):
        super().__init__(capacity)
        self._lent = {}

    def take(self, peer, now):
        ticket = super().take(peer, now)
        if ticket is not None:
            self._held[peer].appendleft(ticket)
            self._lent[peer] = ticket
        return ticket

    def put(self, peer, ticket):
        lent, held = self._lent.pop(peer, None), self._held.get(peer)
        if held and lent in held:
            held.remove(lent)
        super().put(peer, ticket)


class BgakForBeginOnly(Guards):
    """N(R) of a BGAK is thought to cover the data of the BEGIN at most."""

    def is_impossible(self, v, bgak):
        return super().is_impossible(v, bgak) or (bgak.n_r - v.iss & PACKET_MASK) > 1


class AnnouncesInBgak(Actions):
    """The BGAK for a repeated BEGIN is an occasion to raise the credit."""

    def answer_begin_again(self, v, begin, now):
        v.incoming.reported()
        super().answer_begin_again(v, begin, now)


class ForgetsBeginAfterFin(Guards):
    """When the peer's stream has ended, its BEGIN is no longer recognised."""

    def is_repeated(self, v, begin):
        return super().is_repeated(v, begin) and not v.incoming.finished


class VoidsAll(Cookies):
    """V voids what has been made until it arrives, not until its own cookie was made."""

    def use(self, peer, cookie, *, voids):
        super().use(peer, cookie, voids=voids)
        if voids:
            self._void[peer] = self._last


class DeafInRelease(Connection):
    """State 4 discards a BEGIN of the peer's next call."""

    def receive(self, packet, now):
        if (
            self.state is State.OUTGOING_RELEASE
            and isinstance(packet, Begin)
            and packet.version == VERSION
        ):
            return False
        return super().receive(packet, now)


class EarlyFinPolls(Outgoing):
    """The end of the stream polls (STP-PL-004), in state 2 as well."""

    def _send_new(self, now, put):
        sender = self.sender
        early = not self.polls and sender.closed and sender.unsent <= sender.max_sd
        if early:
            self.polls = True
        super()._send_new(now, put)
        if early:
            self.polls = False


# Releasing


class AbortNeedsCsn(Guards):
    """An END with A flag and no CSN is not believed once SDs have come after the BEGIN."""

    def is_valid(self, v, end):
        receiver = v.receiver
        if (
            not end.flags & _R
            and end.flags & _A
            and not end.peer_csn
            and receiver is not None
            and receiver.vr_r - receiver.iss > 1
        ):
            return False
        return super().is_valid(v, end)


class CrossedAborts(Actions):
    """In state 4 the peer's abort is taken for the answer to ours."""

    def acknowledge(self, v, end, now):
        if not end.flags & _A:
            super().acknowledge(v, end, now)


class EndInsteadOfStat(Connection):
    """The END of a complete endpoint stands for the STAT that was due."""

    def transmit(self, now):
        out = super().transmit(now)
        if any(isinstance(p, End) and not p.flags & (_A | _R) for p in out):
            out = [p for p in out if not isinstance(p, Stat)]
        return out


class SilentWhenComplete(Actions):
    """The one called answers no POLL while it waits for the END."""

    def answer_poll(self, v, poll, now):
        if not v.is_over:
            super().answer_poll(v, poll, now)


class WaitsAgain(Connection):
    """Every packet starts the release wait again."""

    def receive(self, packet, now):
        again = super().receive(packet, now)
        if self.state is State.READY and self.is_over and self.release_at < math.inf:
            self.release_at = now + self.machine.actions.release_wait(self)
        return again


class AnswersPollInRelease(Connection):
    """State 4 still answers POLLs."""

    def receive(self, packet, now):
        if (
            self.state is State.OUTGOING_RELEASE
            and isinstance(packet, Poll)
            and self.receiver is not None
            and packet.n_ps
            and packet.csn == self.peer_csn
            and self.machine.guards.tag_is_right(self, packet.tag)
        ):
            self.machine.actions.answer_poll(self, packet, now)
            return False
        return super().receive(packet, now)


class EndAtOneSecond(Actions):
    """The END's Timer_CC knows no path classes."""

    def wait_cc(self, v, transmissions):
        if v.release is not None:
            return 1.0 * 2.0**transmissions
        return super().wait_cc(v, transmissions)


class EndCountsBegins(Actions):
    """The transmissions of the BEGIN count for the END of a call that is aborted."""

    def send_end(self, v, end, now):
        pending = v.state is State.OUTGOING and v.transmissions < self.max_cc(v)
        carried = v.transmissions if pending else 0
        v.state = State.OUTGOING_RELEASE
        v.release = end
        v.transmissions = carried
        self.repeat_end(v, now)


# Receiving


class PollBelowCredit(Receiver):
    """A POLL whose N(S) is VR(MR) does not raise VR(H)."""

    def raise_highest(self, number):
        if number < self.vr_mr:
            super().raise_highest(number)


class OneGapAtATime(Receiver):
    """No USTAT for a gap while an earlier one is open."""

    def on_sd(self, field, data, fin):
        open_before = bool(self._starts)
        gap = super().on_sd(field, data, fin)
        return None if open_before else gap


class SdpNeedsNoUstat(Actions):
    """The STAT that follows an SDP is thought to spare the USTAT."""

    _quiet = False

    def take_sdp(self, v, sdp, now):
        self._quiet = True
        super().take_sdp(v, sdp, now)
        self._quiet = False

    def _send_ustat(self, v, run):
        if not self._quiet:
            super()._send_ustat(v, run)


class PieceHasItsOwnNr(Actions):
    """N(R) of the pieces of a cut list is where each piece begins."""

    def _answer(self, v, n_s, n_ps, timestamp, now):
        for at, elements in enumerate(v.incoming.on_poll(n_s)):
            n_r = elements[0] if at else v.incoming.vr_r & PACKET_MASK
            n_mr = v.incoming.vr_mr & PACKET_MASK
            self.put(v, Stat(*v.header, 0, n_r, n_mr, n_ps, timestamp, elements))


class StaysClosed(Receiver):
    """That the window was closed is forgotten by an announcement only, not by a later STAT."""

    _announcing = False

    def reopened(self):
        opens = super().reopened()
        self._announcing = opens
        return opens

    def reported(self):
        was = self._closed and not self._announcing
        self._announcing = False
        super().reported()
        self._closed = self._closed or was


class SortsList(Receiver):
    """The list is put in order after its numbers have been cut to 24 bits."""

    def whole_list(self):
        return sorted(super().whole_list(), key=lambda number: number & PACKET_MASK)


class ReportsTwice(Receiver):
    """A STAT does not cancel USTATs that wait."""

    def on_poll(self, field):
        waiting = list(self._waiting)
        lists = super().on_poll(field)
        self._waiting = waiting
        return lists


# Sending


class AnnouncementIsCredit(Sender):
    """A STAT with N(PS) 0 gives credit, and its N(R) is not looked at."""

    def on_stat(self, stat):
        if stat.n_ps:
            return super().on_stat(stat)
        read = self.read_report(stat)
        if read is None:
            return None
        self.grant(stat.n_mr, read[1])
        return Report(None, self.flight)


class FinByPosition(Sender):
    """A retransmission has the FIN flag if it is the last data of the stream as it is now."""

    _empty_fin = False

    def take_new(self, most=None):
        entry = super().take_new(most)
        if entry.fin and not entry.data:
            self._empty_fin = True
        return entry

    def retransmit(self, entry):
        if self._empty_fin and self.fin_number == entry.number + 1:
            entry.fin = 1
        super().retransmit(entry)


class SilenceIsNoReduction(Congestion):
    """What was lost before the second silence reduces once more when it is reported."""

    def on_second_silence(self, serial):
        before = self.reduced_at
        super().on_second_silence(serial)
        self.reduced_at = before


class HalfOfFlight(Outgoing):
    """RFC 5681's FlightSize / 2, instead of half of cwnd."""

    def _react(self, report, now, *, closed):
        super()._react(report, now, closed=closed)
        if report.new_loss:
            window = self.congestion
            window.ssthresh = window.cwnd = max(report.flight / 2, 2 * window.smss)


class UnusedGrowsInAvoidance(Congestion):
    """Only slow start asks whether the window was used."""

    def is_used(self, flight):
        return not self.in_slow_start or super().is_used(flight)


class FastAtThreshold(Pacer):
    """cwnd = ssthresh, as after every loss, is paced like slow start."""

    def gain(self):
        return 2.0 if self._congestion.cwnd <= self._congestion.ssthresh else 0.9


class RepeatsBesideLimit(Outgoing):
    """Retransmissions do not count for the maximum rate."""

    def _repeat(self, entry, now, put):
        limit = self.pacer._limit
        filled = 0.0 if limit is None else limit._filled
        super()._repeat(entry, now, put)
        if limit is not None:
            limit._filled = filled


class RepeatsNeedNoPoll(Outgoing):
    """Timer_POLL is started by new SDs only."""

    def _sent(self, entry, now):
        self.pacer.sent(len(entry.data))
        if entry.times == 1:
            self.polling.sent(now)


# Timers


class FrozenInterval(Polling):
    """Timer_POLL keeps the interval with which it was started."""

    _interval = 0.0

    def sent(self, now):
        if not self.is_due:
            self._interval = self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped):
        if stopped and self.is_due:
            return super().poll_at(stopped=stopped)
        return self._unpolled_since + self._interval


class RemembersSilences(Polling):
    """Expiries of Timer_SILENCE are counted until all is acknowledged, not until a report."""

    def start_silence(self, now):
        before = self.silences
        super().start_silence(now)
        self.silences = before

    def stop(self):
        super().stop()
        self.silences = 0


class AnySignOfLife(Polling):
    """Timer_NO-RESPONSE is stopped by every packet of the peer."""

    def heard(self, now):
        super().heard(now)
        self._unanswered_since = math.inf


class Karn(Outgoing):
    """After an expiry of Timer_SILENCE no POLL on its way is measured."""

    def on_stat(self, stat, now):
        if self.polling.silences:
            self.rtt._sent.clear()
        super().on_stat(stat, now)


class KeepsAliveOnce(Connection):
    """A STAT does not start Timer_KEEP-ALIVE again."""

    def receive(self, packet, now):
        polling = self.outgoing.polling
        heard = polling._heard_at
        again = super().receive(packet, now)
        if isinstance(packet, Stat):
            polling._heard_at = heard
        return again


# Packets


class _LastCounts(StpEndpoint):
    def handle(self, packet, peer, now):
        if isinstance(packet, (Begin, Bgak, Bgrej)):
            for kind, value in packet.options:
                if kind == 1 and len(value) == 2:
                    fields = {name: getattr(packet, name) for name in packet.__dataclass_fields__}
                    fields["max_sd"] = int.from_bytes(value, "big")
                    packet = type(packet)(**fields)
        super().handle(packet, peer, now)


class LastOptionCounts(StpHost):
    """Of two MaxSD options the last one counts."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.endpoint.__class__ = _LastCounts


class _ChecksFirst(StpEndpoint):
    def receive(self, octets, peer, now):
        if (
            len(octets) >= 20
            and octets[4] & 15 == Type.BEGIN
            and octets[12] >> 4 != VERSION
            and 20 + 4 * (octets[12] & 15) > len(octets)
        ):
            self._ignore()
            return
        super().receive(octets, peer, now)


class OptionsOfOtherVersions(StpHost):
    """The options of a BEGIN are measured before its version is looked at."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.endpoint.__class__ = _ChecksFirst


FAULTS = [
    # needs a BEGIN or BGREJ that is lost, and a call without a cookie
    Fault("stp-b5-cookie-after-repeat",
          "ignores a BGREJ with a cookie once its BEGIN has been repeated",
          "STP-CC-037", part(IgnoresCookieAfterRepeat)),
    # the same, and a loss after it
    Fault("stp-b5-anew-back-off", "Timer_CC goes on doubling when the call begins anew",
          "STP-CC-016; STP-CC-037", part(KeepsBackOffAnew)),
    # needs a listener that refuses the first cookie with another one, or two calls at once
    Fault("stp-b5-v-once", "the V flag is set in the first BEGIN with a cookie only",
          "STP-CC-039", part(FlagsOnce)),
    # needs two calls at once to an address of which one cookie is held
    Fault("stp-b5-cookie-lent", "a call made while another is pending uses the same cookie",
          "STP-CC-039", part(LendsCookie)),
    # needs a lost BGAK, early SDs and a repeated BEGIN
    Fault("stp-b5-bgak-early", "discards a BGAK whose N(R) covers early SDs beside the BEGIN's data",
          "STP-CC-042; STP-CC-016", part(BgakForBeginOnly)),
    # needs a repeated BEGIN after data has been read
    Fault("stp-b5-bgak-raises", "a BGAK for a repeated BEGIN announces new credit",
          "STP-CC-015", part(AnnouncesInBgak)),
    # needs a lost BGAK, and a stream that ends in the BEGIN or the early SDs
    Fault("stp-b5-begin-after-fin",
          "a BEGIN repeated after the peer's FIN is answered as one with a used cookie",
          "STP-CC-015", part(ForgetsBeginAfterFin)),
    # needs two cookies given before the first of them is used
    Fault("stp-b5-voids-later", "a V flag voids later cookies too, made before the BEGIN arrived",
          "STP-CC-012; STP-CC-035", part(VoidsAll)),
    # needs a lost ENDAK and a call from the same port
    Fault("stp-b5-release-deaf", "discards a BEGIN of a later call in state 4",
          "STP-CC-041; STP-CC-036", part(DeafInRelease)),
    # needs a held cookie and a stream of two to four SDs
    Fault("stp-b5-early-fin", "the early SD with the FIN leaves as an SDP in state 2",
          "STP-CC-042", part(EarlyFinPolls)),
    # needs a caller that aborts in state 2 after early SDs
    Fault("stp-b5-abort-unknown-csn",
          "ignores an abort that cannot name our CSN once SDs have followed the BEGIN",
          "STP-CC-021; STP-CC-022", part(AbortNeedsCsn)),
    # needs aborts that cross
    Fault("stp-b5-crossed-aborts", "in state 4 an END with A flag gets no ENDAK",
          "STP-CC-022", part(CrossedAborts)),
    Fault("stp-b5-end-for-stat", "the last POLL is answered by the END only",
          "STP-DT-017", part(EndInsteadOfStat)),
    Fault("stp-b5-complete-silent", "a POLL that finds the endpoint called complete is not answered",
          "STP-DT-017", part(SilentWhenComplete)),
    # needs packets during the release wait, and no END
    Fault("stp-b5-wait-again", "every packet starts the release wait again",
          "STP-CC-031", part(WaitsAgain)),
    # needs a POLL after our END
    Fault("stp-b5-release-stat", "answers POLLs in state 4", "STP-CC-028",
          part(AnswersPollInRelease)),
    # needs a lost END or ENDAK
    Fault("stp-b5-end-class", "an END is repeated after 1 s on a vbdc path",
          "STP-CC-026", part(EndAtOneSecond), setting="vbdc"),
    # needs an abort in state 2
    Fault("stp-b5-end-count", "an END that aborts a call goes on with the BEGIN's transmissions",
          "STP-CC-026", part(EndCountsBegins)),
    Fault("stp-b5-poll-at-credit", "a POLL whose N(S) is VR(MR) exactly does not raise VR(H)",
          "STP-DT-002; STP-DT-008", part(PollBelowCredit)),
    Fault("stp-b5-second-gap", "no USTAT for a gap while an earlier one is open",
          "STP-DT-001", part(OneGapAtATime)),
    Fault("stp-b5-sdp-gap", "no USTAT for a gap before an SDP", "STP-DT-001",
          part(SdpNeedsNoUstat)),
    # needs more than 33 gaps
    Fault("stp-b5-piece-nr", "the second STAT of a cut list has its first element as N(R)",
          "STP-DT-018; STP-PF-012", part(PieceHasItsOwnNr)),
    # needs a user that reads slowly, as echo does whose own stream gets little credit
    Fault("stp-b5-stays-closed",
          "announces credit although a STAT has shown some since the window was closed",
          "STP-DT-024", part(StaysClosed)),
    # needs a gap where the peer's numbers wrap
    Fault("stp-b5-wrapped-list", "the list of a STAT is in the order of the 24 bits where they wrap",
          "STP-PF-011; STP-DT-018", part(SortsList)),
    Fault("stp-b5-late-again", "a USTAT held back reports what a STAT has reported since",
          "STP-DT-031; STP-DT-026", part(ReportsTwice), setting="reordering"),
    # needs a peer that closes its window
    Fault("stp-b5-announcement-nr", "ignores N(R) of a STAT with N(PS) 0",
          "STP-DT-029", part(AnnouncementIsCredit)),
    # needs an empty SD with FIN after the last data, and the last data lost
    Fault("stp-b5-fin-repeat", "the last data gets the FIN flag of the empty SD when it is repeated",
          "STP-DT-015", part(FinByPosition)),
    # needs an outage of two silences, and a report of the loss
    Fault("stp-b5-silence-loss", "a loss before the second silence sets the window once more",
          "STP-CG-005; STP-CG-003", part(SilenceIsNoReduction)),
    Fault("stp-b5-half-flight", "a loss halves what was in flight instead of cwnd",
          "STP-CG-005", part(HalfOfFlight)),
    # needs a sender held back by credit, or by its user, after a loss
    Fault("stp-b5-unused-avoidance", "an unused window grows in congestion avoidance",
          "STP-CG-010", part(UnusedGrowsInAvoidance)),
    Fault("stp-b5-gain", "paces with g = 2 while cwnd equals ssthresh",
          "STP-CG-008", part(FastAtThreshold)),
    Fault("stp-b5-limit-repeats", "retransmissions do not count for the maximum rate",
          "STP-CG-009", part(RepeatsBesideLimit), setting="max-rate"),
    Fault("stp-b5-repeat-poll", "a retransmission does not start Timer_POLL",
          "STP-PL-001", part(RepeatsNeedNoPoll)),
    Fault("stp-b5-frozen-interval", "Timer_POLL keeps the interval that held when it was started",
          "STP-PL-001", part(FrozenInterval)),
    # needs outages that follow one another while SDs are unacknowledged
    Fault("stp-b5-silences", "silences before the last report count, so that two are not seen as two",
          "STP-CG-007", part(RemembersSilences)),
    # needs a peer that sends data and no reports
    Fault("stp-b5-sign-of-life", "a peer that sends SDs and no reports is never given up",
          "STP-PL-008", part(AnySignOfLife)),
    # needs an outage
    Fault("stp-b5-karn", "takes no measurement from a STAT that ends a silence",
          "STP-PL-009", part(Karn)),
    # needs an idle connection of 20 minutes
    Fault("stp-b5-keep-alive-once", "a STAT does not start Timer_KEEP-ALIVE again",
          "STP-PL-010", part(KeepsAliveOnce)),
    # needs a packet with two MaxSD options
    Fault("stp-b5-last-max-sd", "of two MaxSD options the last one counts",
          "STP-PF-018; STP-PF-009", part(LastOptionCounts)),
    # needs a BEGIN of another version
    Fault("stp-b5-version-options",
          "discards a BEGIN of another version if its options would not fit",
          "STP-PF-003; STP-CC-019", part(OptionsOfOtherVersions)),
]  # fmt: skip
