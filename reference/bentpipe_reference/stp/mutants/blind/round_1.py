"""Round 1: written from STP-1.txt (second edition) and the reference on 2026-11-22."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import replace
from heapq import heapify, heappop

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.codec import MalformedPacket, _decode_options, decode
from bentpipe_reference.stp.config import SD_OVERHEAD
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar, Cookies
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Bucket, Pacer
from bentpipe_reference.stp.packets import Bgak, End, Flags, Poll, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State

# Opening


class RepeatsBeginBare(Actions):
    """As TCP Fast Open does with a SYN: the repetition leaves the data out."""

    def repeat_begin(self, v, now):
        if v.transmissions == 1 and v.begin.cookie is not None:
            v.begin = replace(v.begin, data=b"", flags=v.begin.flags & ~int(Flags.FIN))
        super().repeat_begin(v, now)


class KeepsCountOfBegins(Actions):
    """The counter of Timer_CC is not reset between BEGIN and END."""

    def send_end(self, v, end, now):
        v.state = State.OUTGOING_RELEASE
        v.release = end
        self.repeat_end(v, now)


class LearnsMaxSdOnce(Outgoing):
    """The BGREJ's MaxSD stands, whatever the BGAK says."""

    _learnt = False

    def learn(self, max_sd):
        super().learn(None if self._learnt else max_sd)
        self._learnt = self._learnt or max_sd is not None


class ForgetsFailedCall(CookieJar):
    """A failed call costs its cookies, but leaves no mark."""

    def end(self, peer):
        self._held.pop(peer, None)


class WantsBeginsAcknowledgment(Guards):
    """A BGAK may cover the data of the BEGIN, not that of SDs that followed it."""

    def is_impossible(self, v, bgak):
        begin = v.begin
        most = int(bool(begin.data or begin.flags & Flags.FIN))
        covered = bgak.n_r - v.outgoing.sender.vt_a & PACKET_MASK
        return super().is_impossible(v, bgak) or covered > most


class CallsAnewWithoutEarlySds(Sender):
    """Only the data of the BEGIN is taken back, not that of the SDs after it."""

    def restart(self, iss):
        for number in self._numbers:
            if number != self.iss:
                self._kept[number].data = b""
        super().restart(iss)


class MeasuresWholeCall(Actions):
    """The time of the first BEGIN of the call is not replaced when it calls anew."""

    def repeat_begin(self, v, now):
        asked = v.asked_at
        super().repeat_begin(v, now)
        if v.calls_anew and v.transmissions == 1:
            v.asked_at = asked


class KeepsFirstBgak(Actions):
    """The BGAK is made once, and sent again as it was."""

    def put(self, v, packet):
        if isinstance(packet, Bgak) and not hasattr(v, "first_bgak"):
            v.first_bgak = packet
        super().put(v, packet)

    def answer_begin_again(self, v, begin, now):
        self.put(v, v.first_bgak)


class ForgetsVoided(Cookies):
    """What a V flag makes void is not kept any more, used or not."""

    def use(self, peer, cookie, *, voids):
        super().use(peer, cookie, voids=voids)
        if voids:
            last = self._void[peer]
            for number in [n for n, owner in self._used.items() if owner == peer and n < last]:
                del self._used[number]
            self._oldest = [number for number in self._oldest if number in self._used]
            heapify(self._oldest)


class DeafInRelease(Guards):
    """In state 4 every BEGIN is taken for one of the peer's present CSN."""

    def is_of_peer(self, v, begin):
        return v.state is State.OUTGOING_RELEASE or super().is_of_peer(v, begin)


class NamesItself(Actions):
    """The END that answers a stray BGAK in state 2 has the present CSN of the call."""

    def answer_stray_bgak(self, v, bgak, now):
        self.put(v, replace(self.idle.end_for(bgak), csn=v.csn, tag=v.tag))


# Receiving


class LosesUpperHalf(Receiver):
    """A number that arrives inside a missing run ends that run; the rest above is forgotten."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._lost = set()

    def _found(self, number):
        at = bisect_right(self._starts, number) - 1
        inside = self._starts[at] < number < self._ends[at] - 1
        super()._found(number)
        if inside:
            self._lost.add(number + 1)

    def whole_list(self):
        runs = zip(self._starts, self._ends, strict=True)
        elements = [edge for run in runs if run[0] not in self._lost for edge in run]
        if elements and elements[-1] != self.vr_h:
            elements.append(self.vr_h)
        return elements


class CutsOnceMore(Receiver):
    """A list that just fills its last STAT is followed by one with the bound alone."""

    def _cut_list(self):
        elements = [number & PACKET_MASK for number in self.whole_list()]
        step = self._list_limit - 1
        starts = range(0, max(len(elements), 1), step)
        return [tuple(elements[at : at + self._list_limit]) for at in starts]


class UstatPromisesOnly(Actions):
    """The N(MR) of a USTAT is not noted as VR(MR)."""

    def _send_ustat(self, v, run):
        noted = v.incoming.vr_mr
        super()._send_ustat(v, run)
        v.incoming.vr_mr = noted


class StaysClosed(Receiver):
    """That the window was closed once is never forgotten."""

    def reported(self):
        closed = self._closed
        super().reported()
        self._closed = self._closed or closed


class ReportsOnePart(Receiver):
    """Of a gap that has been split while its USTAT waited, the first part is reported."""

    def due_ustats(self, now):
        due = [item for item in self._waiting if item[3] <= now or item[2] <= self._arrivals]
        self._waiting = [item for item in self._waiting if item not in due]
        found = []
        for first, end, *_ in due:
            for start, stop in zip(self._starts, self._ends, strict=True):
                if max(first, start) < min(end, stop):
                    found.append((max(first, start), min(end, stop)))
                    break
        return found


class WaitsFromLastGap(Receiver):
    """A second gap starts the wait of the first one again."""

    def hold_back(self, gap, until):
        super().hold_back(gap, until)
        *_, arrivals, until = self._waiting[-1]
        self._waiting = [(first, end, arrivals, until) for first, end, *_ in self._waiting]


class TakesBeyondPendingFin(Receiver):
    """A FIN bounds the stream only once it has been delivered."""

    def takes(self, number):
        return number < self.vr_mr and number not in self._held and not self.finished


class MeasuresSdpWithPoll(Actions):
    """The twelve octets of an SDP's POLL count as user data when MaxSD is checked."""

    def take_sdp(self, v, sdp, now):
        if len(sdp.data) + 12 <= v.config.own_max_sd:
            super().take_sdp(v, sdp, now)
        else:
            self._answer(v, sdp.n_s + 1 & PACKET_MASK, sdp.n_ps, sdp.timestamp, now)


class TrustsUstats(Guards):
    """The tag of a USTAT is not looked at."""

    def tag_is_right(self, v, tag):
        return isinstance(v.handled, Ustat) or super().tag_is_right(v, tag)


class GapEndsAtWrap(Receiver):
    """Whether there is a gap is decided by numbers that have not been unwrapped."""

    def on_sd(self, field, data, fin):
        gap = super().on_sd(field, data, fin)
        if gap is not None and (gap[0] & PACKET_MASK) > (gap[1] & PACKET_MASK):
            return None
        return gap


# Closing


class EndsPassEachOther(Connection):
    """The peer's END in state 4 is acknowledged, but the own one still awaits its ENDAK."""

    def receive(self, packet, now):
        before = self.state
        again = super().receive(packet, now)
        ended = before is State.OUTGOING_RELEASE and self.state is State.IDLE
        if ended and isinstance(packet, End) and not packet.flags & Flags.R:
            self.state = before
        return again


class WaitsAgainForRelease(Connection):
    """Each POLL of the caller starts the release wait again."""

    def receive(self, packet, now):
        waits = self.state is State.READY and self.is_over
        again = super().receive(packet, now)
        if waits and self.state is State.READY and isinstance(packet, Poll):
            self.release_at = now + self.machine.actions.release_wait(self)
        return again


class SilentWhenComplete(Actions):
    """A complete endpoint that waits for the END answers no POLLs."""

    def answer_poll(self, v, poll, now):
        if not v.is_over:
            super().answer_poll(v, poll, now)


class HalfClosedIgnoresUstats(Guards):
    """After the peer's FIN only STATs are taken."""

    def is_bad_report(self, v, report):
        late = isinstance(report, Ustat) and self.peer_is_finished(v)
        return late or super().is_bad_report(v, report)


# Timers and POLLs


class CountsFromLastReport(Polling):
    """Timer_NO-RESPONSE runs from the last report, not from the POLL after it."""

    _reported_at = math.inf

    def reported(self, now, *, opens):
        super().reported(now, opens=opens)
        self._reported_at = now

    @property
    def _give_up_at(self):
        return min(self._reported_at, self._unanswered_since) + self.no_response_s if (
            self._unanswered_since < math.inf) else math.inf  # fmt: skip


class AsksOnceWhenIdle(Outgoing):
    """Timer_SILENCE runs while SDs are unacknowledged or wait for credit, else never."""

    def transmit(self, now, put):
        super().transmit(now, put)
        if self.polls and not self.sender.unacknowledged and not self.is_closed():
            self.polling.stop_silence()


class LateDataWaitsForEver(Outgoing):
    """Data that comes when the window has long been closed starts no timer."""

    def _settle(self, now):
        if self.sender.unacknowledged:
            return
        self.polling.stop()
        if not self.is_closed() and not self.polling.awaits_answer:
            self.polling.stop_silence()


class FixesPollTime(Polling):
    """Timer_POLL keeps the interval with which it was started."""

    _due = math.inf

    def sent(self, now):
        if not self.is_due:
            self._due = now + self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped):
        if self.is_due and not stopped:
            return self._due
        return super().poll_at(stopped=stopped)


class FinKeepsDistance(Outgoing):
    """The POLL of the FIN has to keep its distance as well."""

    def asks_with(self, entry, now):
        if entry.fin and not self.asks_at_once and not self.polling.may_poll(now):
            return False
        return super().asks_with(entry, now)


# Loss, congestion, pacing


class SecondSilenceUnmarked(Congestion):
    """The reduction after two silences is not noted as one."""

    def on_second_silence(self, serial):
        noted = self.reduced_at
        super().on_second_silence(serial)
        self.reduced_at = noted


class KeepsTheException(Outgoing):
    """The right to exceed the window is only used up by a retransmission that needs it."""

    def _repeat(self, entry, now, put):
        congestion = self.congestion
        fits = congestion.room(self.sender.flight, entry.size)
        kept = congestion.first_retransmission and fits
        super()._repeat(entry, now, put)
        congestion.first_retransmission = kept


class PassesThreshold(Congestion):
    """A report that begins in slow start is counted in slow start to its end."""

    def on_arrived(self, octets):
        if self.in_slow_start:
            self.cwnd += octets
        else:
            super().on_arrived(octets)


class SerialOfFirst(Sender):
    """When an SD was lost is judged by its first transmission."""

    def retransmit(self, entry):
        first = entry.serial
        super().retransmit(entry)
        entry.serial = first


class RepeatsArrived(Sender):
    """What awaits retransmission stays in the queue when a report shows that it has arrived."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._late = {}

    def _forget(self):
        super()._forget()
        self._late = {}

    def release(self, number, report):
        entry = self._kept[number]
        super().release(number, report)
        if entry.queued:
            self._late[number] = entry

    def awaiting(self):
        queue = self._queue
        while queue:
            entry = self._kept.get(queue[0]) or self._late.get(queue[0])
            if entry is not None and entry.queued:
                return entry
            heappop(queue)
        return None

    def retransmit(self, entry):
        super().retransmit(entry)
        if self._late.pop(entry.number, None) is not None:
            self.flight -= entry.size


class SavingBucket(Bucket):
    """What is not used in a tenth of a second is saved."""

    def set_rate(self, rate, now):
        if self.rate == math.inf:
            self._filled = 0.0
        else:
            left = self._filled - self.rate * (now - self._at)
            self._filled = max(-0.1 * self.rate, left)
        self._at, self.rate = now, rate


class SavesUp(Pacer):
    """The bucket of the window goes on filling when it is full."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._window.__class__ = SavingBucket


class LimitsUserData(Pacer):
    """The maximum rate is held by user data; headers come on top."""

    def sent(self, octets):
        super().sent(octets)
        if self._limit is not None:
            self._limit.take(-(SD_OVERHEAD + self._config.overhead))


# Malformed and unusual packets


def on_octets(setup, receive):
    """A host whose endpoint takes packets by ``receive(endpoint, octets, peer, now)``."""

    class Host(StpHost):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made = self.endpoint
            made.__class__ = type("Faulty", (made.__class__,), {"receive": receive})

    return setup.with_part(Host)


def _pseudo(endpoint, peer):
    return b"" if endpoint._pseudo_header is None else endpoint._pseudo_header(peer)


def _sealed(endpoint, octets, peer):
    """``octets`` with a right checksum."""
    octets = octets[:8] + bytes(2) + octets[10:]
    total = ones_complement_residue(octets)
    pseudo = _pseudo(endpoint, peer)
    if pseudo:
        total += ones_complement_residue(pseudo) + len(octets)
    return octets[:8] + checksum_field(total).to_bytes(2, "big") + octets[10:]


def trusts_zero(endpoint, octets, peer, now):
    """A checksum of zero is taken for none, as in UDP."""
    if len(octets) >= 12 and octets[8:10] == bytes(2):
        octets = _sealed(endpoint, octets, peer)
    StpEndpoint.receive(endpoint, octets, peer, now)


def reads_options_of_all_versions(endpoint, octets, peer, now):
    """The options of a BEGIN are checked before its version."""
    if len(octets) >= 20 and octets[4] & 15 == 1 and octets[12] >> 4 != 2:
        end = 20 + 4 * (octets[12] & 15)
        if end > len(octets):
            return
        try:
            _decode_options(octets[20:end])
        except MalformedPacket:
            return
    StpEndpoint.receive(endpoint, octets, peer, now)


def stops_at_padding(endpoint, octets, peer, now):
    """Kind 0 ends the options, as in TCP."""
    try:
        decode(octets, _pseudo(endpoint, peer))
    except MalformedPacket:
        return
    kind = octets[4] & 15
    at, words = {1: (20, 12), 2: (28, 12), 7: (20, 13)}.get(kind, (0, 4))
    if at and (kind != 1 or octets[12] >> 4 == 2):
        end = at + 4 * (octets[words] & 15)
        while at < end and octets[at]:
            at += octets[at + 1]
        if any(octets[at:end]):
            octets = _sealed(endpoint, octets[:at] + bytes(end - at) + octets[end:], peer)
    StpEndpoint.receive(endpoint, octets, peer, now)


def part(made):
    """A setup's change: this class in the place of its part."""
    return lambda setup: setup.with_part(made)


FAULTS = [
    Fault("stp-b1-bare-repetition", "a repeated BEGIN leaves out the data of the first one",
          "STP-CC-014", part(RepeatsBeginBare)),
    Fault("stp-b1-common-count", "END goes on with the transmission count and time-out of BEGIN",
          "STP-CC-026", part(KeepsCountOfBegins)),
    Fault("stp-b1-first-maxsd", "the MaxSD of the BGREJ stands when the BGAK has a smaller one",
          "STP-PF-009", part(LearnsMaxSdOnce)),
    Fault("stp-b1-no-v-after-failure", "no V flag in the call after one that ended in state 2",
          "STP-CC-039", part(ForgetsFailedCall)),
    Fault("stp-b1-bgak-covers-sds", "a BGAK that acknowledges early SDs too is discarded",
          "STP-CC-016; STP-CC-042", part(WantsBeginsAcknowledgment)),
    Fault("stp-b1-anew-loses-early-sds", "a call anew loses the data of SDs sent after the BEGIN",
          "STP-CC-037", part(CallsAnewWithoutEarlySds)),
    Fault("stp-b1-measures-whole-call",
          "after a call anew the BGAK's round trip is measured from the first BEGIN",
          "STP-PL-009", part(MeasuresWholeCall)),
    Fault("stp-b1-stored-bgak", "a repeated BEGIN draws the first BGAK with its outdated credit",
          "STP-CC-015", part(KeepsFirstBgak)),
    Fault("stp-b1-void-forgets-used", "a BEGIN with V flag makes older used cookies be forgotten",
          "STP-CC-038", part(ForgetsVoided)),
    Fault("stp-b1-deaf-in-release", "in state 4 every BEGIN is discarded",
          "STP-CC-041; STP-CC-036", part(DeafInRelease)),
    Fault("stp-b1-stray-bgak-own-csn",
          "in state 2 the answer to a stray BGAK names the call's CSN, not the BGAK's recipient",
          "STP-CC-020", part(NamesItself)),
    Fault("stp-b1-split-run", "STATs omit what is missing above an SD that has split a run",
          "STP-DT-018", part(LosesUpperHalf)),
    Fault("stp-b1-bound-alone", "a list that just fills a STAT is followed by one with one element",
          "STP-PF-011; STP-PF-012", part(CutsOnceMore)),
    Fault("stp-b1-ustat-credit", "SDs that only a USTAT has permitted are discarded",
          "STP-DT-020", part(UstatPromisesOnly)),
    Fault("stp-b1-stays-closed", "once the window was closed, new credit is announced ever again",
          "STP-DT-024", part(StaysClosed)),
    Fault("stp-b1-late-ustat-first-part", "of a split gap the late USTAT reports the first part only",
          "STP-DT-031", part(ReportsOnePart), setting="reordering"),
    Fault("stp-b1-late-ustat-postponed", "a second gap postpones the late USTAT of the first",
          "STP-DT-031", part(WaitsFromLastGap), setting="reordering"),
    Fault("stp-b1-beyond-pending-fin", "takes SDs above a FIN that is held but not delivered",
          "STP-DT-028", part(TakesBeyondPendingFin)),
    Fault("stp-b1-sdp-size", "discards the SD of an SDP whose data, with the POLL, exceeds MaxSD",
          "STP-DT-020; STP-DT-012", part(MeasuresSdpWithPoll)),
    Fault("stp-b1-ustat-tag", "USTATs with a wrong tag are taken",
          "STP-CC-001; STP-SEC-005", part(TrustsUstats)),
    Fault("stp-b1-gap-at-wrap", "no USTAT for a gap in which the packet numbers wrap",
          "STP-DT-001", part(GapEndsAtWrap)),
    Fault("stp-b1-ends-cross", "goes on repeating its END after the peer's END in state 4",
          "STP-CC-026", part(EndsPassEachOther)),
    Fault("stp-b1-release-wait-again", "each POLL starts the release wait again",
          "STP-CC-031", part(WaitsAgainForRelease)),
    Fault("stp-b1-complete-no-stat", "POLLs are not answered while complete and awaiting the END",
          "STP-DT-017", part(SilentWhenComplete)),
    Fault("stp-b1-half-closed-ustat", "USTATs are ignored after the peer's FIN",
          "STP-CC-023; STP-DT-014", part(HalfClosedIgnoresUstats)),
    Fault("stp-b1-no-response-since-report",
          "after a pause the peer is given up 60 s after its last report, not after the POLL",
          "STP-PL-008", part(CountsFromLastReport)),
    Fault("stp-b1-keep-alive-once", "a lost keep-alive POLL is not repeated by Timer_SILENCE",
          "STP-PL-007", part(AsksOnceWhenIdle)),
    Fault("stp-b1-late-data-no-probe", "data that meets a window closed before is not probed for",
          "STP-DT-025; STP-PL-007", part(LateDataWaitsForEver)),
    Fault("stp-b1-poll-time-fixed", "Timer_POLL keeps its interval when a measurement changes it",
          "STP-PL-001", part(FixesPollTime)),
    Fault("stp-b1-fin-keeps-distance", "no POLL with the FIN shortly after another POLL",
          "STP-PL-004", part(FinKeepsDistance)),
    Fault("stp-b1-second-silence-unmarked",
          "losses from before the second silence reduce again, which lets the window grow",
          "STP-CG-005", part(SecondSilenceUnmarked)),
    Fault("stp-b1-exception-kept",
          "a retransmission beyond the window although the first one after the reduction had room",
          "STP-CG-002; STP-CG-006", part(KeepsTheException)),
    Fault("stp-b1-past-ssthresh", "one report lets the window grow beyond ssthresh as in slow start",
          "STP-CG-004", part(PassesThreshold)),
    Fault("stp-b1-first-serial", "the loss of a retransmission does not reduce the window",
          "STP-CG-005", part(SerialOfFirst)),
    Fault("stp-b1-repeats-arrived", "retransmits what was reported as arrived while it waited",
          "STP-DT-027", part(RepeatsArrived)),
    Fault("stp-b1-saves-up", "pacing saves up a tenth of a second of what was not used",
          "STP-CG-008", part(SavesUp)),
    Fault("stp-b1-rate-without-headers", "the maximum rate does not count headers",
          "STP-CG-009", part(LimitsUserData), setting="max-rate"),
    Fault("stp-b1-zero-checksum", "a checksum of zero is not verified",
          "STP-PF-007", lambda setup: on_octets(setup, trusts_zero)),
    Fault("stp-b1-version-after-options",
          "a BEGIN of another version with impossible options is discarded, not refused",
          "STP-PF-003; STP-CC-019", lambda setup: on_octets(setup, reads_options_of_all_versions)),
    Fault("stp-b1-padding-ends-options", "options after padding are not read",
          "STP-PF-008; STP-CC-035", lambda setup: on_octets(setup, stops_at_padding)),
]  # fmt: skip

# Faults that change nothing in the twenty transfers, and what it takes:
# first-maxsd: a peer whose BGAK has a smaller MaxSD than its BGREJ; then every full SD is too long.
# no-v-after-failure: a call with a cookie that ends in state 2, and a call after it.
# bgak-covers-sds: early SDs arrive and the first BGAK is lost; the repeated one covers them.
# anew-loses-early-sds: a BEGIN with an old cookie and SDs after it, answered with a fresh cookie.
# void-forgets-used: two calls, the later one with V flag; then the BEGIN of the first comes back.
# deaf-in-release: the caller calls again, from the same port, while the END awaits its ENDAK.
# stray-bgak-own-csn: a late or forged BGAK with another CSN of the recipient in state 2.
# bound-alone: a list of exactly 67 elements: 33 gaps with a held SD above the last.
# ustat-credit: a peer that uses all of the credit that a USTAT gave, before the next STAT.
# stays-closed: a user that does not read until the credit is used, then does.
# late-ustat-first-part: three SDs missing, the middle one arrives late, before the USTAT leaves.
# beyond-pending-fin: an SD above a FIN that waits behind a gap.
# ustat-tag: a USTAT with a wrong tag.
# gap-at-wrap: a peer whose ISS is shortly below 2^24, and a loss there.
# ends-cross: an END of the peer on its way while the own one is.
# release-wait-again: the caller's END is lost or held back, and it polls.
# no-response-since-report: a pause of more than 60 s, then data.
# keep-alive-once: a connection idle for Timer_KEEP-ALIVE, and a POLL without an answer.
# late-data-no-probe: all acknowledged with no credit left, then the user writes.
# second-silence-unmarked: two silences, then a report of losses from before them.
# past-ssthresh: slow start after two silences, and a report that passes ssthresh.
# first-serial: a retransmission is lost and reported missing.
# zero-checksum, version-after-options, padding-ends-options: packets that the reference never sends.
