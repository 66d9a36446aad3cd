"""Round 6: written from STP-1.txt on 2026-11-22.

Faults that the twenty transfers may well not bring about, and why they count all the same:
oversize-sdp, checksum-zero, options-end-at-padding and replaced-by-oversized need an odd or
malformed packet; begin-again-credit, begin-again-empty, void-forgotten, cookies-limited,
version-in-state-2, anew-timer, anew-early-data, maxsd-of-bgrej and bgak-again-polls need BEGINs or
BGAKs that come again, or several calls; ustat-wrap needs an ISS near the wrap; cut-one-more and
stat-second-part more than 33 gaps; poll-at-credit, closed-by-delivered, announces-again and
closed-gives-up a window that closes; one-wait and first-run-only several
losses within 75 ms; heard-is-answer a peer that sends but never reports;
release-wait-again, complete-silent, end-crossing, abort-highest, abort-zero-csn and vbdc-end a
release that is lost, crosses or aborts; the specification forbids each of them there.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.stp import codec
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import Cookies
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Bgak, Bgrej, End, Flags, Reason, Type, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State

# Receiving


class ForgetsUpperHalf(Receiver):
    """An SD from the middle of a missing run ends the run."""

    def _found(self, number: int) -> None:
        at = bisect_right(self._starts, number) - 1
        if at < 0 or number >= self._ends[at]:
            return
        middle = self._starts[at] < number < self._ends[at] - 1
        super()._found(number)
        if middle:
            at = self._starts.index(number + 1)
            del self._starts[at], self._ends[at]


class WholeRun(Receiver):
    """A gap that adjoins one a STAT has named is reported together with it."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Any:
        gap = super().on_sd(field, data, fin)
        if gap is not None and self._starts:
            return self._starts[-1], gap[1]
        return gap


class CutsTooEarly(Receiver):
    """A list one element too long for its STATs loses that element."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        elements = [number & PACKET_MASK for number in self.whole_list()]
        step = self._list_limit - 1
        last_start = max(len(elements) - 2, 1)
        return [tuple(elements[at : at + self._list_limit]) for at in range(0, last_start, step)]


class OneWait(Receiver):
    """One timer and one count for all USTATs held back: a new gap starts them again."""

    def hold_back(self, gap: Any, until: float) -> None:
        super().hold_back(gap, until)
        count = self._waiting[-1][2]
        self._waiting = [(first, end, count, until) for first, end, *_ in self._waiting]


class FirstRunOnly(Receiver):
    """Of a gap that was filled in part while it waited, only the first missing run is reported."""

    def due_ustats(self, now: float) -> Any:
        due = [item for item in self._waiting if item[3] <= now or item[2] <= self._arrivals]
        self._waiting = [item for item in self._waiting if item not in due]
        found = []
        for first, end, *_ in due:
            for start, stop in zip(self._starts, self._ends, strict=True):
                if max(first, start) < min(end, stop):
                    found.append((max(first, start), min(end, stop)))
                    break
        return found


class ClosedByDelivered(Receiver):
    """Whether the last report showed a closed window is judged by VR(R)."""

    def reported(self) -> None:
        super().reported()
        self._closed = self.vr_mr <= self.vr_r


class AnnouncesAgain(Receiver):
    """A report with credit, in between, does not end the closed window."""

    def reported(self) -> None:
        before = self._closed
        super().reported()
        self._closed = self._closed or before

    def reopened(self) -> bool:
        if not super().reopened():
            return False
        self._closed = False
        return True


class PollAtCredit(Receiver):
    """A POLL whose N(S) equals VR(MR) counts as beyond the credit."""

    def raise_highest(self, number: int) -> None:
        if number < self.vr_mr:
            super().raise_highest(number)


class OversizeSdp(Actions):
    """An SDP with too much data is discarded together with its POLL."""

    def take_sdp(self, v: Any, sdp: Any, now: float) -> None:
        if v.incoming.fits(sdp.data):
            super().take_sdp(v, sdp, now)


class StatWillDo(Actions):
    """A gap before an SDP is reported by its STAT, and by no USTAT."""

    def take_sdp(self, v: Any, sdp: Any, now: float) -> None:
        count = len(v.outbox)
        super().take_sdp(v, sdp, now)
        v.outbox[count:] = [item for item in v.outbox[count:] if not isinstance(item, Ustat)]


class UstatWrap(Actions):
    """A USTAT's elements are compared as plain numbers before it is sent."""

    def _send_ustat(self, v: Any, run: Any) -> None:
        if run[0] & PACKET_MASK < run[1] & PACKET_MASK:
            super()._send_ustat(v, run)


# Sending


class UstatAfterStat(Sender):
    """A USTAT is disregarded for what a USTAT has made it repeat, not for what a STAT has."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._by_ustat: set[int] = set()

    def on_ustat(self, ustat: Ustat) -> Any:
        before = set(self.queued())
        report = super().on_ustat(ustat)
        self._by_ustat |= set(self.queued()) - before
        return report

    def sent_once(self, entry: Any) -> bool:
        return entry.number not in self._by_ustat


class SecondPart(Sender):
    """A STAT with the N(PS) of the one before is taken for an old one."""

    def fresh(self, n_ps: int) -> bool:
        return n_ps > self.vt_pa


class AnewEarlyData(Sender):
    """A call anew begins with the data of the BEGIN, but not with that of the SDs after it."""

    def restart(self, iss: int) -> None:
        for number in self._numbers[1:]:
            del self._kept[number]
        del self._numbers[1:]
        super().restart(iss)


# Polling


class KarnForPolls(Outgoing):
    """After an expiry of Timer_SILENCE the answer is not measured, as if it were ambiguous."""

    def on_stat(self, stat: Any, now: float) -> None:
        if self.polling.silences:
            self.rtt._sent.clear()
        super().on_stat(stat, now)


class EmptyFinWaits(Outgoing):
    """An empty SD with FIN waits for the next POLL."""

    def asks_with(self, entry: Any, now: float) -> bool:
        if entry.fin and not entry.data and not self.asks_at_once:
            return False
        return super().asks_with(entry, now)


class SilencesKept(Polling):
    """The count of silences goes on after a report; only the second one resets it."""

    def start_silence(self, now: float) -> None:
        before = self.silences % 2
        stopped = self._silent_at == math.inf
        super().start_silence(now)
        if stopped:
            self.silences = before


class HeardIsAnswer(Polling):
    """Whatever the peer sends starts Timer_NO-RESPONSE again."""

    def heard(self, now: float) -> None:
        super().heard(now)
        if self.awaits_answer:
            self._unanswered_since = now


class ClosedGivesUp(Polling):
    """A report that leaves the window closed does not stop Timer_NO-RESPONSE."""

    def reported(self, now: float, *, opens: bool) -> None:
        since = self._unanswered_since
        super().reported(now, opens=opens)
        if not opens:
            self._unanswered_since = since


class ReportStopsPoll(Polling):
    """Every report stops Timer_POLL, though SDs have been sent since the POLL it answers."""

    def reported(self, now: float, *, opens: bool) -> None:
        super().reported(now, opens=opens)
        self.stop()


class BgakAgainPolls(Connection):
    """A BGAK that comes again makes the caller poll again, as the first did."""

    def receive(self, packet: Any, now: float) -> bool:
        before = self.state
        again = super().receive(packet, now)
        if before is State.READY and isinstance(packet, Bgak) and packet.peer_csn == self.csn:
            self.outgoing.asks_at_once = not self.is_over
        return again


# Congestion and rate


class ExemptionSaved(Outgoing):
    """A first retransmission that fits saves its exemption for one that does not."""

    def _repeat(self, entry: Any, now: float, put: Callable[[Any], None]) -> None:
        congestion = self.congestion
        saved = congestion.first_retransmission and congestion.room(self.sender.flight, entry.size)
        super()._repeat(entry, now, put)
        congestion.first_retransmission = saved


class PeakFlight(Congestion):
    """Use of the window is judged by the most that was ever in flight."""

    _peak = 0

    def is_used(self, flight: int) -> bool:
        self._peak = max(self._peak, flight)
        return super().is_used(self._peak)


# Opening


class AnewTimer(Actions):
    """A call anew goes on with the doubled Timer_CC and the count of the BEGIN before."""

    def call_anew(self, v: Any, bgrej: Bgrej, now: float) -> None:
        v.earlier_begins = v.transmissions - 1
        super().call_anew(v, bgrej, now)

    def send_first_begin(self, v: Any, now: float) -> None:
        v.transmissions = getattr(v, "earlier_begins", 0)
        super().send_first_begin(v, now)


class MaxSdOfBgrej(Actions):
    """The MaxSD that came with the cookie of the call is used for the whole connection."""

    def _learn_peer(self, v: Any, iss: int, max_sd: int | None) -> None:
        if v.ticket is not None and v.ticket.max_sd is not None:
            max_sd = v.ticket.max_sd
        super()._learn_peer(v, iss, max_sd)


class BeginAgainEmpty(Actions):
    """A repetition of a BEGIN leaves its data out."""

    def repeat_begin(self, v: Any, now: float) -> None:
        whole = v.begin
        if v.transmissions and whole.data:
            v.begin = replace(whole, data=b"", flags=whole.flags & ~int(Flags.FIN))
        super().repeat_begin(v, now)
        v.begin = whole


class BeginAgainCredit(Actions):
    """The BGAK that answers a repeated BEGIN gives the credit there is by now."""

    def answer_begin_again(self, v: Any, begin: Any, now: float) -> None:
        v.incoming.reported()
        super().answer_begin_again(v, begin, now)


class VersionInState2(Guards):
    """A port that calls looks at no version."""

    def is_other_version(self, v: Any, begin: Any) -> bool:
        return v.state is not State.OUTGOING and super().is_other_version(v, begin)


class ReplacedByOversized(Guards):
    """A good cookie ends the old connection before the rest of the BEGIN is looked at."""

    def would_open(self, v: Any, begin: Any) -> bool:
        idle, arrival = self._idle, Arrival(v.identity.peer, v.handled_at)
        if idle.nobody_listens(arrival, begin) or idle.is_used(arrival, begin):
            return False
        return not idle.is_unproven(arrival, begin)


class CookiesLimited(Idle):
    """BGREJs with cookies share the limit of ten per second."""

    def give_cookie(self, arrival: Arrival, begin: Any) -> None:
        if self._refusals.take(arrival.now):
            super().give_cookie(arrival, begin)


class VoidForgotten(Cookies):
    """A later call without V flag makes earlier cookies good again."""

    def use(self, peer: Any, cookie: bytes | None, *, voids: bool) -> None:
        super().use(peer, cookie, voids=voids)
        if not voids:
            self._void.pop(peer, None)


class EndsAtPadding(StpEndpoint):
    """Padding ends the options, as kind 0 does in TCP."""

    def handle(self, packet: Any, peer: Any, now: float) -> None:
        raw = getattr(self, "_options", None)
        if raw is not None:
            max_sd, cookie, options = codec._decode_options(raw)
            packet = replace(packet, max_sd=max_sd, cookie=cookie, options=options)
        super().handle(packet, peer, now)

    def receive(self, octets: bytes, peer: Any, now: float) -> None:
        self._options = None
        kind = octets[4] & 15 if len(octets) >= 20 else 0
        if kind == Type.BEGIN and octets[12] >> 4 == 2:
            self._options = _until_padding(octets[20 : 20 + 4 * (octets[12] & 15)])
        elif kind == Type.BGAK and len(octets) >= 28:
            self._options = _until_padding(octets[28:])
        elif kind == Type.BGREJ:
            self._options = _until_padding(octets[20:])
        super().receive(octets, peer, now)


def _until_padding(raw: bytes) -> bytes:
    at = 0
    while at + 1 < len(raw) and raw[at] and raw[at + 1] >= 2:
        at += raw[at + 1]
    return raw[:at]


class ChecksumZero(StpEndpoint):
    """A checksum of zero means that there is none, as in UDP."""

    def receive(self, octets: bytes, peer: Any, now: float) -> None:
        if len(octets) >= 12 and octets[8:10] == bytes(2) and self._pseudo_header is None:
            field = checksum_field(ones_complement_residue(octets))
            octets = octets[:8] + field.to_bytes(2, "big") + octets[10:]
        super().receive(octets, peer, now)


def with_endpoint(kind: type[StpEndpoint]) -> Callable[[Setup], Setup]:
    """A host with another endpoint."""

    class Host(StpHost):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.endpoint.__class__ = kind

    return lambda setup: setup.with_part(Host)


# Closing


class AbortZeroCsn(Guards):
    """Every END without R flag has to name both CSNs."""

    def is_valid(self, v: Any, end: End) -> bool:
        if end.flags & Flags.R:
            return super().is_valid(v, end)
        return end.peer_csn == v.csn and super().is_valid(v, end)


class EndCrossing(Connection):
    """An END that crosses ours is acknowledged, but ours goes on waiting for its ENDAK."""

    def receive(self, packet: Any, now: float) -> bool:
        before = self.state
        again = super().receive(packet, now)
        crossing = isinstance(packet, End) and not packet.flags & Flags.R
        if before is State.OUTGOING_RELEASE and crossing and self.state is State.IDLE:
            self.state = State.OUTGOING_RELEASE
        return again


class ReleaseWaitAgain(Connection):
    """Each POLL starts the release wait again."""

    def receive(self, packet: Any, now: float) -> bool:
        again = super().receive(packet, now)
        polled = packet.type in (Type.POLL, Type.SDP)
        if polled and self.state is State.READY and self.is_over:
            self.release_at = now + self.machine.actions.release_wait(self)
        return again


class CompleteSilent(Actions):
    """An endpoint that is complete answers no POLLs any more."""

    def answer_poll(self, v: Any, poll: Any, now: float) -> None:
        if not v.is_over:
            super().answer_poll(v, poll, now)


class EndFirst(Actions):
    """The END overtakes the answers that wait to leave."""

    def send_end(self, v: Any, end: End, now: float) -> None:
        super().send_end(v, end, now)
        v.outbox.insert(0, v.outbox.pop())


class AbortHighest(Actions):
    """N(R) of an END that aborts is VR(H)."""

    def end(self, v: Any, flags: int, reason: Reason) -> End:
        made = super().end(v, flags, reason)
        if flags & Flags.A and v.receiver is not None:
            return replace(made, n_r=v.receiver.vr_h & PACKET_MASK)
        return made


class VbdcEnd(Actions):
    """Timer_CC has the longer first wait of vbdc for a BEGIN only."""

    def wait_cc(self, v: Any, transmissions: int) -> float:
        if v.release is not None:
            return 2.0**transmissions
        return super().wait_cc(v, transmissions)


def _fault(name: str, title: str, clause: str, part: type[Any], setting: str = "") -> Fault:
    return Fault(
        f"stp-b6-{name}", title, clause, lambda setup: setup.with_part(part), setting=setting
    )


FAULTS = [
    _fault("upper-half", "an SD from the middle of a missing run makes the receiver forget that "
           "the rest of the run is missing", "STP-DT-018", ForgetsUpperHalf),
    _fault("whole-run", "a USTAT for a gap next to one that a STAT has named reports both",
           "STP-DT-031; STP-DT-001", WholeRun),
    _fault("cut-one-more", "a list one element longer than its STATs hold loses the last element",
           "STP-PF-012; STP-DT-018", CutsTooEarly),
    _fault("one-wait", "each new gap starts the waiting of all USTATs held back again",
           "STP-DT-031", OneWait, "reordering"),
    _fault("first-run-only", "of a waiting gap filled in its middle only the first run is "
           "reported", "STP-DT-031", FirstRunOnly, "reordering"),
    _fault("closed-by-delivered", "a window that was closed beyond a gap is not announced when "
           "it reopens", "STP-DT-024", ClosedByDelivered),
    _fault("announces-again", "credit is announced though a report has shown some since the "
           "window was closed", "STP-DT-024", AnnouncesAgain),
    _fault("poll-at-credit", "a POLL with N(S) equal to VR(MR) does not raise VR(H)",
           "STP-DT-002; STP-DT-018", PollAtCredit),
    _fault("oversize-sdp", "the POLL of an SDP with too much data is not answered",
           "STP-DT-028; STP-DT-017", OversizeSdp),
    _fault("stat-will-do", "a gap that an SDP shows draws a STAT, but no USTAT", "STP-DT-001",
           StatWillDo),
    _fault("ustat-wrap", "no USTAT reports a run that ends beyond the wrap", "STP-DT-001",
           UstatWrap),
    _fault("ustat-after-stat", "a USTAT makes SDs be sent again that a STAT has made be sent "
           "again before", "STP-DT-014", UstatAfterStat),
    _fault("stat-second-part", "of a list cut into several STATs only the first counts",
           "STP-DT-007; STP-DT-003", SecondPart),
    _fault("anew-early-data", "a call anew omits the data of the SDs that had followed the BEGIN",
           "STP-CC-037", AnewEarlyData),
    _fault("karn-polls", "a STAT that comes after Timer_SILENCE has expired is not measured",
           "STP-PL-009", KarnForPolls),
    _fault("empty-fin", "an empty SD with FIN is neither an SDP nor followed by a POLL at once",
           "STP-PL-004", EmptyFinWaits),
    _fault("silences-kept", "two silences with reports between them reduce the window to one "
           "SMSS", "STP-CG-007", SilencesKept),
    _fault("heard-is-answer", "a peer that sends SDs but never answers is not given up",
           "STP-PL-008", HeardIsAnswer),
    _fault("closed-gives-up", "a peer that answers, but keeps its window closed, is given up",
           "STP-PL-008", ClosedGivesUp),
    _fault("report-stops-poll", "a report stops Timer_POLL for SDs sent after its POLL",
           "STP-PL-001", ReportStopsPoll),
    _fault("bgak-again-polls", "a BGAK that comes again draws a POLL at once",
           "STP-PL-002; STP-PL-010", BgakAgainPolls),
    _fault("exemption-saved", "a first retransmission that fits the window leaves its exemption "
           "to the next", "STP-CG-002; STP-CG-006", ExemptionSaved),
    _fault("peak-flight", "the window grows unused once it has been used", "STP-CG-010",
           PeakFlight),
    _fault("anew-timer", "a call anew goes on with the back-off and the count of the BEGIN before",
           "STP-CC-016", AnewTimer),
    _fault("maxsd-of-bgrej", "a lower MaxSD in the BGAK than in the BGREJ is disregarded",
           "STP-PF-009", MaxSdOfBgrej),
    _fault("begin-again-empty", "a repeated BEGIN lacks the data of the first", "STP-CC-014",
           BeginAgainEmpty),
    _fault("begin-again-credit", "the BGAK for a repeated BEGIN gives new credit", "STP-CC-015",
           BeginAgainCredit),
    _fault("version-in-state-2", "a BEGIN of another version is refused with reason 3 in state 2",
           "STP-CC-019", VersionInState2),
    _fault("replaced-by-oversized", "a BEGIN with a good cookie and too much data ends the old "
           "connection", "STP-CC-041", ReplacedByOversized),
    _fault("cookies-limited", "at most ten cookies are given out in a second", "STP-CC-036",
           CookiesLimited),
    _fault("void-forgotten", "a call without V flag makes the cookies good again that one with V "
           "flag has voided", "STP-CC-035; STP-CC-008", VoidForgotten),
    Fault("stp-b6-options-end-at-padding", "options behind padding are not read",
          "STP-CC-012; STP-PF-008", with_endpoint(EndsAtPadding)),
    Fault("stp-b6-checksum-zero", "a packet with a checksum field of zero is taken unchecked",
          "STP-PF-007", with_endpoint(ChecksumZero)),
    _fault("abort-zero-csn", "an END with A flag whose CSN of the recipient is zero is discarded",
           "STP-CC-022", AbortZeroCsn),
    _fault("end-crossing", "an END is repeated though the peer's has ended state 4",
           "STP-CC-026", EndCrossing),
    _fault("release-wait-again", "each POLL of the caller starts the release wait again",
           "STP-CC-031", ReleaseWaitAgain),
    _fault("complete-silent", "an endpoint that was called and is complete answers no POLLs",
           "STP-DT-017", CompleteSilent),
    _fault("end-first", "the END leaves before the STAT that is due", "STP-CC-028", EndFirst),
    _fault("abort-highest", "N(R) of an abort lies above a gap", "STP-CC-045", AbortHighest),
    _fault("vbdc-end", "on a vbdc path an END is repeated after 1 s", "STP-CC-026", VbdcEnd,
           "vbdc"),
]  # fmt: skip
