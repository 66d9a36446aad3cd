"""Round 3 for STP: written from STP-1.txt and the reference on 2026-11-22.

Inactive in ./check, and faults all the same:

* voids-once: needs a BEGIN with V flag that is answered with a second cookie.
* newer-only: a later call from the same ports whose CSN is older, as after a restart of the caller.
* always-voids: two calls of one address with cookies in the other order.
* abort-highest: an abort (by the peer's silence) while an SD is missing.
* crossing-ends: the called one's END, after its release wait, crosses the caller's.
* wait-restarts: POLLs that go on while the caller's END is awaited.
* tag-of-end: a peer that has forgotten the connection answers a POLL.
* sdp-unknown: an SDP that arrives where the connection is gone.
* poll-at-credit: the last SD that the credit permits is lost.
* cut-short: a list of MaxSTAT + 1 elements, that is, 34 gaps, nothing held above the last.
* announces-on: a user that stops reading and then reads on slowly.
* fin-no-credit: the user closes while there is no credit.
* lost-again: a retransmission is lost while no other SD is.
* idle-hopeless: more than a minute without data between two transfers on one connection.
* bgak-version: a BGAK with other than zero in its first reserved field.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar, Cookies
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Idle
from bentpipe_reference.stp.outgoing import RIDE_S, Outgoing
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.packets import Begin, Bgak, End, Flags, Reason, Sdp, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import PACKET_MASK, TAG_MASK, newer
from bentpipe_reference.stp.states import State

# Opening, cookies


class CachedBgak(Actions):
    """The BGAK is made once and repeated octet for octet."""

    def bgak(self, v: Any, now: float) -> Bgak:
        made = getattr(v, "made_bgak", None)
        if made is None:
            made = v.made_bgak = super().bgak(v, now)
        return made


class VoidsOnce(CookieJar):
    """The V flag has done its work when it has been sent, not when it has opened something."""

    def voids(self, peer: Any, made: int) -> bool:
        wanted = super().voids(peer, made)
        if wanted:
            self.open(peer, made)
        return wanted


class EarlyFive(Actions):
    """The early credit is counted from the first SD after the BEGIN."""

    def first_data(self, v: Any, begin: Begin) -> tuple[bytes, int]:
        data, fin = super().first_data(v, begin)
        if data:
            v.outgoing.sender.vt_ms += 1
        return data, fin


class FallsBack(Actions):
    """A repeated BEGIN leaves out cookie and data, as TCP Fast Open does."""

    def put(self, v: Any, packet: Any) -> None:
        if isinstance(packet, Begin) and v.transmissions and packet.cookie is not None:
            packet = replace(packet, flags=0, cookie=None, data=b"")
        super().put(v, packet)


class NewerOnly(Connection):
    """A later call replaces the connection only if its CSN is newer (a restarted caller's is not)."""

    def receive(self, packet: Any, now: float) -> bool:
        if (
            isinstance(packet, Begin) and packet.version == 2 and self.peer_csn is not None
            and packet.csn != self.peer_csn and not newer(packet.csn, self.peer_csn)
        ):  # fmt: skip
            return False
        return super().receive(packet, now)


class AlwaysVoids(Cookies):
    """Every used cookie voids the earlier ones, with V flag or without."""

    def use(self, peer: Any, cookie: bytes | None, *, voids: bool) -> None:
        super().use(peer, cookie, voids=True)


class CoarseCookies(Cookies):
    """The number of a cookie is a clock of whole seconds, and nothing else."""

    def make(self, peer: Any, now: float) -> bytes:
        self._last = max(self._last, int(now) * 1_000_000)
        number = self._last.to_bytes(8, "big")
        return number + self.code(number, peer)


class KeepsTransmissions(Actions):
    """A call anew goes on with the count and the doubling of the call's first BEGIN."""

    def call_anew(self, v: Any, bgrej: Any, now: float) -> None:
        v.spent = v.transmissions
        super().call_anew(v, bgrej, now)

    def send_first_begin(self, v: Any, now: float) -> None:
        if v.calls_anew:
            v.transmissions = v.spent
        super().send_first_begin(v, now)


class MeasuresRepeated(Actions):
    """The BEGIN is timed from its first transmission, however often it is sent."""

    def repeat_begin(self, v: Any, now: float) -> None:
        asked = v.asked_at if v.transmissions else None
        super().repeat_begin(v, now)
        if asked is not None:
            v.asked_at = asked


# Ending


class AbortsWithHighest(Actions):
    """N(R) of an END is VR(H)."""

    def end(self, v: Any, flags: int, reason: Reason) -> End:
        made = super().end(v, flags, reason)
        return made if v.receiver is None else replace(made, n_r=v.receiver.vr_h & PACKET_MASK)


class CrossingEnds(Connection):
    """In state 4 the peer's END is acknowledged, but only an ENDAK ends the state."""

    def receive(self, packet: Any, now: float) -> bool:
        waits = self.state is State.OUTGOING_RELEASE
        again = super().receive(packet, now)
        if waits and isinstance(packet, End) and not packet.flags & Flags.R:
            self.state = State.OUTGOING_RELEASE
        return again


class WaitRestarts(Connection):
    """The release wait runs from the last packet received."""

    def receive(self, packet: Any, now: float) -> bool:
        again = super().receive(packet, now)
        if self.state is State.READY and self.is_over and self.was_called:
            self.release_at = now + self.machine.actions.release_wait(self)
        return again


class MuteWhenComplete(Actions):
    """An endpoint that waits for the caller's END answers no POLLs."""

    def answer_poll(self, v: Any, poll: Any, now: float) -> None:
        if not v.is_over:
            super().answer_poll(v, poll, now)

    def take_sdp(self, v: Any, sdp: Sdp, now: float) -> None:
        if not v.is_over:
            super().take_sdp(v, sdp, now)


class EndFirst(Actions):
    """The END overtakes the STAT that is due."""

    def send_end(self, v: Any, end: End, now: float) -> None:
        due, v.outbox = v.outbox, []
        super().send_end(v, end, now)
        v.outbox += due


class ChecksTagOfEnd(Guards):
    """The tag is checked in ENDs too, those with R flag among them."""

    def is_valid(self, v: Any, end: End) -> bool:
        known = v.peer_csn is None or end.tag == v.peer_csn & TAG_MASK
        return known and super().is_valid(v, end)


class SdpIsNoPoll(Idle):
    """An SDP without a connection is treated like an SD."""

    def answer_unknown(self, arrival: Any, packet: Any) -> None:
        if not isinstance(packet, Sdp):
            super().answer_unknown(arrival, packet)


# Receiving


class PollBelowCredit(Receiver):
    """A POLL raises VR(H) only if its N(S) is below VR(MR)."""

    def raise_highest(self, number: int) -> None:
        if number != self.vr_mr:
            super().raise_highest(number)


class CutsOneTooFew(Receiver):
    """A list with one element more than fits loses that element."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        elements = [number & PACKET_MASK for number in self.whole_list()]
        last_start = max(len(elements) - 2, 1)
        return [
            tuple(elements[at : at + self._list_limit])
            for at in range(0, last_start, self._list_limit - 1)
        ]


class AnnouncesOn(Actions):
    """Having announced credit once, the receiver does so until the next POLL."""

    def announce_credit(self, v: Any) -> None:
        super().announce_credit(v)
        v.incoming._closed = True


class OneWait(Receiver):
    """One timer and one count for all gaps: a new one starts them again."""

    def hold_back(self, gap: tuple[int, int], until: float) -> None:
        super().hold_back(gap, until)
        *_, count, time = self._waiting[-1]
        self._waiting = [(first, end, count, time) for first, end, *_ in self._waiting]


class ReportsAgain(Receiver):
    """An SD inside a missing run draws a USTAT for what is still missing before it."""

    def on_sd(self, field: int, data: bytes, fin: int) -> tuple[int, int] | None:
        number = self.vr_r + (field - self.vr_r & PACKET_MASK)
        before = [
            (start, number)
            for start, end in zip(self._starts, self._ends, strict=True)
            if start < number < end
        ]
        held = number in self._held
        gap = super().on_sd(field, data, fin)
        if before and not held and number in self._held:
            return before[0]
        return gap


class HeldTakesCredit(Receiver):
    """What is held out of order is taken off the credit."""

    def credit(self) -> int:
        free = self.vr_r - len(self._chunks) + self._credit - len(self._held)
        return max(self.vr_h, free)


# Sending


class StampedEarly(Sender):
    """The stamp of a retransmission is taken when it is queued, not when it leaves."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stamps: dict[int, int] = {}

    def queue(self, entry: Any, report: Any) -> None:
        super().queue(entry, report)
        self._stamps[entry.number] = self.vt_ps

    def retransmit(self, entry: Any) -> None:
        super().retransmit(entry)
        entry.stamp = self._stamps.pop(entry.number, entry.stamp)


class SecondPartIsOld(Sender):
    """A STAT with the N(PS) of the newest one is taken for a duplicate of it."""

    def fresh(self, n_ps: int) -> bool:
        return n_ps > self.vt_pa


class UstatImpliesHeld(Sender):
    """What lies between N(R) and the run of a USTAT, and does not wait, is thought to be held."""

    def on_ustat(self, ustat: Ustat) -> Any:
        read = self.read_report(ustat)
        report = super().on_ustat(ustat)
        if read is not None and report is not None:
            for number in self._numbers:
                if number < read[2][0] and not self._kept[number].queued:
                    self.release(number, report)
            self._numbers = [number for number in self._numbers if number in self._kept]
        return report


class FinWithoutCredit(Sender):
    """The FIN needs no credit, as in TCP."""

    def permitted(self) -> bool:
        return super().permitted() or (self.closed and not self._unsent)


class Alternates(Outgoing):
    """After each retransmission a new SD gets its turn."""

    def _repeat(self, entry: Any, now: float, put: Any) -> None:
        super()._repeat(entry, now, put)
        if self.sender.has_new and self._may_send_new():
            self._send_new(now, put)


# Congestion


class UsedOnce(Congestion):
    """A window that has been half used once counts as used."""

    _peak = 0

    def is_used(self, flight: int) -> bool:
        self._peak = max(self._peak, flight)
        return super().is_used(self._peak)

    def _reduce(self, serial: int) -> None:
        super()._reduce(serial)
        self._peak = 0


class LostAgainIsOld(Sender):
    """A retransmission that is lost belongs to the loss that it repairs."""

    def queue(self, entry: Any, report: Any) -> None:
        before = report.new_loss
        super().queue(entry, report)
        if entry.times > 1:
            report.new_loss = before


class ExemptAfterSilence(Congestion):
    """The reduction by silence lets a retransmission pass the window, too."""

    def on_second_silence(self, serial: int) -> None:
        super().on_second_silence(serial)
        self.first_retransmission = True


class CountKept(Congestion):
    """Octets counted towards a full window survive its reduction."""

    def _reduce(self, serial: int) -> None:
        counted = self._acknowledged
        super()._reduce(serial)
        self._acknowledged = counted


class LeastRoundTrip(Pacer):
    """Paces by the least smoothed round-trip time of the connection."""

    _least = math.inf

    def window_rate(self) -> float:
        rate, srtt = super().window_rate(), self._rtt.srtt
        if not srtt:
            return rate
        self._least = min(self._least, srtt)
        return rate * srtt / self._least


# Polling


class PollTimerRestarts(Polling):
    """Every SD starts Timer_POLL again."""

    def sent(self, now: float) -> None:
        self._unpolled_since = now


class EmptyFin(Outgoing):
    """An SD with nothing but the FIN flag brings no POLL with it."""

    def asks_with(self, entry: Any, now: float) -> bool:
        if entry.fin and not entry.data and not self.asks_at_once:
            return False
        return super().asks_with(entry, now)


class RepeatsAsSdp(Outgoing):
    """A POLL that is due rides on a retransmission."""

    def _repeat(self, entry: Any, now: float, put: Any) -> None:
        def put_sdp(sd: Any) -> None:
            polling = self.polling
            due = polling.poll_at(stopped=not self.goes_on()) <= now + RIDE_S
            if self.polls and (self.asks_at_once or (due and polling.may_poll(now))):
                sd = Sdp(*self.header, sd.flags, sd.n_s, *self.take_poll(now), sd.data)
            put(sd)

        super()._repeat(entry, now, put_sdp)


class BackOffKept(Polling):
    """A report starts Timer_SILENCE with the time that it was doubled to."""

    def reported(self, now: float, *, opens: bool) -> None:
        silences, silence = self.silences, self._silence
        super().reported(now, opens=opens)
        if opens and silences:
            self._silence = max(self._silence, silence)
            self._silent_at = now + self._silence


class HopelessSinceReport(Polling):
    """Timer_NO-RESPONSE runs from the last report, also while nothing is asked."""

    _last_report = math.inf

    def reported(self, now: float, *, opens: bool) -> None:
        super().reported(now, opens=opens)
        self._last_report = now

    def polled(self, now: float) -> None:
        if not self.awaits_answer:
            self._unanswered_since = min(now, self._last_report)
        super().polled(now)


class FrozenInterval(Polling):
    """Timer_POLL keeps the interval with which it was started."""

    _due = math.inf

    def sent(self, now: float) -> None:
        if not self.is_due:
            self._due = now + self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped: bool) -> float:
        if not self.is_due:
            return math.inf
        at = super().poll_at(stopped=stopped)
        return at if stopped else self._due


class UstatPolls(Outgoing):
    """A USTAT that makes an SD be sent again is answered with a POLL, too."""

    def on_ustat(self, ustat: Ustat, now: float) -> None:
        super().on_ustat(ustat, now)
        if self.sender.awaiting() is not None:
            self.asks_at_once = True


# Octets


class BgakVersionEndpoint(StpEndpoint):
    """See below."""

    def receive(self, octets: bytes, peer: Any, now: float) -> None:
        if len(octets) > 12 and octets[4] & 15 == 2 and octets[12] >> 4:
            self._ignore()
            return
        super().receive(octets, peer, now)


class BgakVersion(StpHost):
    """A BGAK is discarded if the reserved field in the place of the version is not zero."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.endpoint.__class__ = BgakVersionEndpoint


def part(made: type[Any]) -> Any:
    """Replace one part."""
    return lambda setup: setup.with_part(made)


FAULTS = [
    Fault("stp-b3-cached-bgak", "a repeated BEGIN draws the first BGAK with its old credit",
          "STP-CC-015", part(CachedBgak)),
    Fault("stp-b3-voids-once", "the V flag goes into the first BEGIN only, even if it opens nothing",
          "STP-CC-039", part(VoidsOnce)),
    Fault("stp-b3-early-five", "sends four early SDs beside the data of the BEGIN",
          "STP-CC-002", part(EarlyFive), setting="initial-window-10"),
    Fault("stp-b3-falls-back", "a repeated BEGIN has neither cookie nor data",
          "STP-CC-014", part(FallsBack)),
    Fault("stp-b3-newer-only", "a later call with an older CSN is discarded",
          "STP-CC-041", part(NewerOnly)),
    Fault("stp-b3-always-voids", "a used cookie voids earlier ones without V flag",
          "STP-CC-035", part(AlwaysVoids)),
    Fault("stp-b3-coarse-cookies", "all cookies of an address made in one second are the same",
          "STP-CC-036", part(CoarseCookies)),
    Fault("stp-b3-anew-late", "Timer_CC of a call anew goes on doubling from the call's first BEGIN",
          "STP-CC-016", part(KeepsTransmissions)),
    Fault("stp-b3-begin-measured", "a BEGIN sent repeatedly is measured from the first time",
          "STP-PL-009", part(MeasuresRepeated)),
    Fault("stp-b3-abort-highest", "N(R) of an abort is VR(H), above what is missing",
          "STP-CC-045", part(AbortsWithHighest)),
    Fault("stp-b3-crossing-ends", "an END that crosses ours is acknowledged, and ours repeated",
          "STP-CC-026", part(CrossingEnds)),
    Fault("stp-b3-wait-restarts", "every packet starts the release wait again",
          "STP-CC-031", part(WaitRestarts)),
    Fault("stp-b3-mute-complete", "does not answer POLLs while it waits for the caller's END",
          "STP-DT-017", part(MuteWhenComplete)),
    Fault("stp-b3-end-first", "the STAT due when the connection is complete leaves after the END",
          "STP-CC-028", part(EndFirst)),
    Fault("stp-b3-tag-of-end", "an END with R flag is discarded because of its reflected tag",
          "STP-CC-021; STP-CC-001", part(ChecksTagOfEnd)),
    Fault("stp-b3-sdp-unknown", "an SDP without a connection is not answered",
          "STP-CC-020", part(SdpIsNoPoll)),
    Fault("stp-b3-poll-at-credit", "a POLL with N(S) exactly at the credit does not raise VR(H)",
          "STP-DT-002", part(PollBelowCredit)),
    Fault("stp-b3-cut-short", "a list one element longer than MaxSTAT loses its last run",
          "STP-PF-012; STP-DT-018", part(CutsOneTooFew)),
    Fault("stp-b3-announces-on", "announces credit again though the first announcement opened it",
          "STP-DT-024", part(AnnouncesOn)),
    Fault("stp-b3-one-wait", "a new gap makes the USTATs of earlier ones wait anew",
          "STP-DT-031", part(OneWait), setting="reordering"),
    Fault("stp-b3-reports-again", "a retransmission that arrives draws a USTAT for those before it",
          "STP-DT-001", part(ReportsAgain)),
    Fault("stp-b3-held-credit", "what is held out of order lowers the credit",
          "STP-DT-021", part(HeldTakesCredit)),
    Fault("stp-b3-stamped-early", "a retransmission that waits has the stamp of its report",
          "STP-DT-003", part(StampedEarly)),
    Fault("stp-b3-second-part", "the second STAT of a cut list is discarded",
          "STP-DT-003; STP-DT-029", part(SecondPartIsOld)),
    Fault("stp-b3-ustat-implies", "takes SDs between N(R) and the run of a USTAT for received",
          "STP-DT-006; STP-DT-010", part(UstatImpliesHeld)),
    Fault("stp-b3-fin-no-credit", "an empty SD with FIN is sent beyond the credit",
          "STP-DT-011", part(FinWithoutCredit)),
    Fault("stp-b3-alternates", "a new SD is sent after each retransmission, before the next",
          "STP-DT-009", part(Alternates)),
    Fault("stp-b3-used-once", "the window grows while little is in flight if much was earlier",
          "STP-CG-010", part(UsedOnce)),
    Fault("stp-b3-lost-again", "a lost retransmission never reduces the window",
          "STP-CG-005", part(LostAgainIsOld)),
    Fault("stp-b3-exempt-silence", "after two silences a retransmission passes the window",
          "STP-CG-002", part(ExemptAfterSilence)),
    Fault("stp-b3-count-kept", "what was counted before a reduction makes the window grow after it",
          "STP-CG-004", part(CountKept)),
    Fault("stp-b3-least-rtt", "paces by the least smoothed round-trip time there has been",
          "STP-CG-008", part(LeastRoundTrip)),
    Fault("stp-b3-poll-restarts", "SDs that go on put the POLL off",
          "STP-PL-001", part(PollTimerRestarts)),
    Fault("stp-b3-empty-fin", "no POLL follows an empty SD with FIN at once",
          "STP-PL-004", part(EmptyFin)),
    Fault("stp-b3-repeats-sdp", "a retransmission is sent as an SDP when a POLL is due",
          "STP-PL-006", part(RepeatsAsSdp)),
    Fault("stp-b3-back-off-kept", "a report after silence does not end the doubling",
          "STP-PL-007", part(BackOffKept)),
    Fault("stp-b3-idle-hopeless", "after a minute of idleness the first POLL gives the peer up",
          "STP-PL-008", part(HopelessSinceReport)),
    Fault("stp-b3-frozen-interval", "a shorter poll interval does not hold for a running timer",
          "STP-PL-001", part(FrozenInterval)),
    Fault("stp-b3-ustat-polls", "polls at every USTAT, however short the time since the last POLL",
          "STP-PL-002", part(UstatPolls)),
    Fault("stp-b3-bgak-version", "a BGAK with a reserved field that is not zero is discarded",
          "STP-PF-004", part(BgakVersion)),
]  # fmt: skip
