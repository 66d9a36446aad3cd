"""Round 12: written from STP/1 on 2026-11-28."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.encapsulation import UDP
from bentpipe_reference.common.services import DISCARD
from bentpipe_reference.stp import packets
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import Cookies, Ticket
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Flags,
    Packet,
    Reason,
    Sd,
    Sdp,
    Stat,
    Type,
    Ustat,
)  # fmt: skip
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import CSN_MASK, PACKET_MASK, TAG_MASK
from bentpipe_reference.stp.services import SERVICES
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables

_A, _R, _V = int(Flags.A), int(Flags.R), int(Flags.V)


def part(*classes: type[Any]) -> Callable[[Setup], Setup]:
    """Puts the classes in the place of those that they derive from."""

    def configure(setup: Setup) -> Setup:
        for item in classes:
            setup = setup.with_part(item)
        return setup

    return configure


# Section 3: packets


def _sum(octets: bytes | bytearray) -> int:
    padded = bytes(octets) + bytes(len(octets) & 1)
    return sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))


def _options(octets: bytes) -> tuple[int, int]:
    """Where the option field of a packet begins and ends; nothing if there is none."""
    if len(octets) < 20:
        return 0, 0
    kind = octets[4] & 15
    if kind == Type.BEGIN and octets[12] >> 4 == packets.VERSION:
        start, words = 20, octets[12] & 15
    elif kind == Type.BGAK:
        start, words = 28, octets[12] & 15
    elif kind == Type.BGREJ:
        start, words = 20, octets[13] & 15
    else:
        return 0, 0
    end = start + 4 * words
    return (start, end) if end <= len(octets) else (0, 0)


class _Reading(StpHost):
    """Reads options in another way: as if the packet had been a different one."""

    def __init__(self, address: str, config: StpConfig, seed: int, **others: Any) -> None:
        super().__init__(address, config, seed, **others)
        take = self.endpoint.receive

        def receive(octets: bytes, peer: Any, now: float) -> None:
            take(self.altered(octets), peer, now)

        self.endpoint.receive = receive  # type: ignore[method-assign]

    def altered(self, octets: bytes) -> bytes:
        """What is decoded instead; a wrong checksum stays as wrong as it was."""
        start, end = _options(octets)
        if start == end:
            return octets
        field = bytearray(octets[start:end])
        self.change(field)
        changed = bytearray(octets[:start]) + field + bytearray(octets[end:])
        if changed == octets:
            return octets
        right = (int.from_bytes(octets[8:10], "big") + _sum(octets) - _sum(changed)) % 0xFFFF
        changed[8:10] = right.to_bytes(2, "big")
        return bytes(changed)

    def change(self, field: bytearray) -> None:
        """Change the option field."""


class EndsListAtLoneKind(_Reading):
    """Stops at a kind without a length octet as at padding."""

    def change(self, field: bytearray) -> None:
        at = 0
        while at < len(field):
            if field[at] == 0:
                at += 1
            elif at + 1 == len(field):
                field[at] = 0
            elif field[at + 1] < 2:
                return
            else:
                at += field[at + 1]


class OddOptionHidesLater(_Reading):
    """The first of a kind counts, right or not."""

    def change(self, field: bytearray) -> None:
        odd = set()
        at = 0
        while at + 1 < len(field):
            kind, length = field[at], field[at + 1]
            if kind == 0:
                at += 1
                continue
            if length < 2:
                return
            if kind in odd:
                field[at] = 0x7F
            elif (kind == 1 and length != 4) or (kind == 2 and not 10 <= length <= 34):
                odd.add(kind)
            at += length


class AbortsWithFirstTag(Actions):
    """The header template for aborts is made when the user calls."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        if not hasattr(v, "first_tag"):
            v.first_tag = v.tag  # type: ignore[attr-defined]
        super().call_anew(v, bgrej, now)

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        end = super().end(v, flags, reason)
        return replace(end, tag=getattr(v, "first_tag", end.tag)) if flags & _A else end


class CountsPadding(StpHost):
    """The pseudo-header's length is that of the padded buffer."""

    def _emit(self, peer: tuple[Any, ...], octets: bytes) -> bytes:
        if self.config.protocol != UDP and len(octets) & 1:
            field = (int.from_bytes(octets[8:10], "big") - 1) % 0xFFFF
            octets = octets[:8] + field.to_bytes(2, "big") + octets[10:]
        return super()._emit(peer, octets)


class KeepsCookieAlone(Actions):
    """The cookie of a BGAK is kept, and the MaxSD beside it supposed to be as our own."""

    def open(self, v: Variables, bgak: Bgak, now: float) -> None:
        cookie = bgak.cookie
        super().open(v, replace(bgak, cookie=None), now)
        if cookie is not None:
            ticket = Ticket(cookie, v.config.own_max_sd, now, v.begun)
            self._jar.put(v.identity.peer, ticket)


class CutsAfterFullList(Receiver):
    """Looks for a further part whenever a part is full."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        elements = [number & PACKET_MASK for number in self.whole_list()]
        limit = self._list_limit
        starts = range(0, max(len(elements), 1), limit - 1)
        return [tuple(elements[at : at + limit]) for at in starts]


class FillsBegin(Actions):
    """The options of the BEGIN are not reckoned with."""

    def first_data(self, v: Variables, begin: Begin) -> tuple[bytes, int]:
        sender = v.outgoing.sender
        if not sender.has_new:
            return b"", 0
        entry = sender.take_new()
        return entry.data, entry.fin


# Section 5.1: calling


class CountsCalledApart(Actions):
    """One counter for calls, one for being called."""

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        counters = self.__dict__.setdefault("_called", {})
        peer = v.identity.peer
        counters[peer] = (counters.get(peer, v.csn - 1_000_000) + 1) & CSN_MASK
        v.csn = v.outgoing.csn = counters[peer]
        super().take_call(v, begin, now)


class GoesOnDoubling(Actions):
    """Timer_CC belongs to the call, not to the BEGIN."""

    def wait_cc(self, v: Variables, transmissions: int) -> float:
        before = v.calls_anew if v.state is State.OUTGOING else 0
        return super().wait_cc(v, transmissions + before)


class ForgetsEarlySds(Sender):
    """A call anew begins with what the BEGIN carried, and goes on with what was not yet sent."""

    def restart(self, iss: int) -> None:
        first = self._kept.get(self.iss)
        self._numbers = [] if first is None else [first.number]
        super().restart(iss)


class AbortedCallLeavesNothing(Actions):
    """Only a call that the network has ended is thought to have left a BEGIN on its way."""

    def fail(self, v: Variables, text: str, reason: int, now: float | None = None) -> None:
        by_user = reason == Reason.ABORTED and v.state is State.OUTGOING_RELEASE
        if not by_user or v.receiver is not None:
            super().fail(v, text, reason, now)
            return
        begin, v.begin = v.begin, None
        super().fail(v, text, reason, now)
        v.begin = begin


# Section 5.2: being called


class VoidsAllSoFar(Cookies):
    """V is read as: all that was made up to now."""

    def use(self, peer: Any, cookie: bytes | None, *, voids: bool) -> None:
        super().use(peer, cookie, voids=voids)
        if voids:
            self._void[peer] = self._last


class RepeatsBgakAsItWas(Actions):
    """The BGAK is kept as a packet."""

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        super().take_call(v, begin, now)
        v.first_bgak = v.outbox[-1]  # type: ignore[attr-defined]

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        self.put(v, v.first_bgak)  # type: ignore[attr-defined]


class LimitsCookies(Idle):
    """All BGREJs are limited together."""

    def give_cookie(self, arrival: Arrival, begin: Begin) -> None:
        if self._refusals.take(arrival.now):
            super().give_cookie(arrival, begin)


class CallAnswersEnd(Actions):
    """Who calls again must have forgotten the connection."""

    def stay(self, v: Variables, begin: Begin, now: float) -> None:
        if v.state is State.OUTGOING_RELEASE:
            v.state = State.IDLE


# Sections 5.3 to 5.5: half-close, release, ENDs


class DeafToUstatsAfterFin(Actions):
    """A peer that has closed has nothing to tell unasked."""

    def take_ustat(self, v: Variables, ustat: Ustat, now: float) -> None:
        if not v.incoming.finished:
            super().take_ustat(v, ustat, now)


class ReleasesOnDataOnly(Actions):
    """Looks whether it is complete when it has delivered something."""

    def release_if_complete(self, v: Variables, now: float) -> None:
        if v.was_called or isinstance(v.handled, Sd | Sdp):
            super().release_if_complete(v, now)


class SendsLateEndOnce(Actions):
    """The END of one who was called is a courtesy."""

    def max_cc(self, v: Variables) -> int:
        if v.was_called and v.release is not None and not v.release.flags & _A:
            return 1
        return super().max_cc(v)


class HoldsEndForHole(Guards):
    """An END that overtook data is left to be repeated."""

    def is_not_valid(self, v: Variables, end: End) -> bool:
        receiver = v.receiver
        hole = receiver is not None and receiver.fin_number is not None and not receiver.finished
        if v.state is State.READY and hole and not end.flags & (_A | _R):
            return True
        return super().is_not_valid(v, end)


class WaitsTimerCcOnly(Actions):
    """The release wait is a constant."""

    def release_wait(self, v: Variables) -> float:
        return v.config.timer_cc


class AbortsAtHighest(Actions):
    """N(R) of an abort is VR(H)."""

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        end = super().end(v, flags, reason)
        if flags & _A and v.receiver is not None:
            return replace(end, n_r=v.receiver.vr_h & PACKET_MASK)
        return end


class ZeroIsEnough(Guards):
    """A CSN of the recipient of zero is a wildcard in every END."""

    def is_valid(self, v: Variables, end: End) -> bool:
        if not end.flags & _R and v.peer_csn is not None and end.peer_csn == 0:
            return end.csn == v.peer_csn
        return super().is_valid(v, end)


# Section 6: data transfer


class RaisesBelowCreditOnly(Receiver):
    """VR(H) never becomes VR(MR) by a POLL."""

    def raise_highest(self, number: int) -> None:
        if number != self.vr_mr:
            super().raise_highest(number)


class HeldBeforeFirstElement(Sender):
    """What lies between N(R) and the list's first element cannot be missing."""

    def _process_list(self, elements: list[int], n_ps: int, report: Report) -> None:
        for number in self._numbers:
            if number < elements[0]:
                self.release(number, report)
        self._numbers = [number for number in self._numbers if number in self._kept]
        super()._process_list(elements, n_ps, report)


class ComparesTagOfPoll(Guards):
    """The CSN of a POLL is compared in 16 bits."""

    def is_bad_poll(self, v: Variables, poll: packets.Poll | Sdp) -> bool:
        return not poll.n_ps or v.peer_csn is None or bool((poll.csn ^ v.peer_csn) & TAG_MASK)


class ClosesWithRetransmission(Sender):
    """The FIN goes with whatever leaves last."""

    def retransmit(self, entry: SentSd) -> None:
        last = entry.number == self.vt_s - 1
        if last and self.closed and not self._unsent and self.fin_number is None:
            entry.fin = 1
            self.fin_number = entry.number
        super().retransmit(entry)


class TakesWhatFits(Receiver):
    """The bound is the room there is, announced or not."""

    def takes(self, number: int) -> bool:
        if number >= self.credit() or number in self._held:
            return False
        return self.fin_number is None or number <= self.fin_number


class FinCountsOnceDelivered(Receiver):
    """Nothing is above a FIN that still waits behind a hole."""

    def takes(self, number: int) -> bool:
        if number >= self.vr_mr or number in self._held:
            return False
        return not self.finished


class AnnouncementIsCredit(Sender):
    """Of a STAT that answers no POLL, N(MR) alone is taken."""

    def _take(self, packet: Stat | Ustat, n_ps: int | None, n_r: int) -> Report:
        if n_ps is None and isinstance(packet, Stat):
            self.grant(packet.n_mr, n_r)
            return Report(None, self.flight)
        return super()._take(packet, n_ps, n_r)


class EndNeedsNoProbe(Outgoing):
    """Only octets wait for credit."""

    def is_closed(self) -> bool:
        return super().is_closed() and self.sender.unsent > 0


class ReportsAgainAfterStat(Receiver):
    """A STAT does not stop a USTAT that waits."""

    def on_poll(self, field: int) -> list[tuple[int, ...]]:
        waiting = list(self._waiting)
        lists = super().on_poll(field)
        self._waiting = waiting
        return lists


# Section 7: polling, congestion, pacing


class PollsForNewSdsOnly(Outgoing):
    """A retransmission does not start Timer_POLL."""

    def _repeat(self, entry: SentSd, now: float, put: Callable[[Packet], None]) -> None:
        before = self.polling._unpolled_since
        super()._repeat(entry, now, put)
        self.polling._unpolled_since = before


class UstatKeepsBackOff(Outgoing):
    """A USTAT starts Timer_SILENCE with the time that it had."""

    def on_ustat(self, ustat: Ustat, now: float) -> None:
        polling = self.polling
        ran, had = polling._silent_at < math.inf, polling._silence
        super().on_ustat(ustat, now)
        if ran:
            polling._silence = had
            polling._silent_at = now + had


class AnythingIsResponse(Polling):
    """Every packet of the peer stops Timer_NO-RESPONSE."""

    def heard(self, now: float) -> None:
        super().heard(now)
        self._unanswered_since = math.inf


class NoKeepAliveAfterOwnEnd(Outgoing):
    """Whose stream has ended has nothing to ask."""

    def expire(self, now: float) -> bool:
        if self.sender.fin_acknowledged:
            self.polling._heard_at = math.inf
        return super().expire(now)


class LooksAtFlightAlone(Congestion):
    """An SD may leave as long as the window is not full."""

    def room(self, flight: int, size: int) -> bool:
        return flight < self.cwnd


class SilenceIsNoReduction(Congestion):
    """The mark of the last reduction is left alone by silences."""

    def on_second_silence(self, serial: int) -> None:
        before = self.reduced_at
        super().on_second_silence(serial)
        self.reduced_at = before


class LimitsPayload(Pacer):
    """The maximum rate counts user data."""

    def sent(self, octets: int) -> None:
        limit, self._limit = self._limit, None
        super().sent(octets)
        self._limit = limit
        if limit is not None:
            limit.take(octets)


# Sections 10 and 11


class CookieOfIpAddress(Cookies):
    """The code covers the IP address."""

    def code(self, number: bytes, peer: Any) -> bytes:
        return super().code(number, peer[:1])


class _DiscardOnData:
    """Discard that runs when there is something to read."""

    def run(self, connection: Connection) -> None:
        if connection.readable:
            connection.read()
            if connection.peer_has_closed:
                connection.close()


class DiscardWaitsForData(StpHost):
    """Its discard service is not woken by the mere end of a stream."""

    def __init__(self, address: str, config: StpConfig, seed: int, **others: Any) -> None:
        others.setdefault("services", {**SERVICES, DISCARD: _DiscardOnData})
        super().__init__(address, config, seed, **others)


FAULTS = [
    Fault(
        "stp-b12-lone-kind", "takes a last octet of the option field that is a kind without a "
        "length for padding, and the packet for well formed",
        "STP-PF-003", part(EndsListAtLoneKind),
    ),
    Fault(
        "stp-b12-abort-first-tag", "an END with A flag of a call that began anew has the tag of "
        "the call's first CSN",
        "STP-PF-005", part(AbortsWithFirstTag),
    ),
    Fault(
        "stp-b12-padding-in-length", "directly over IP, the pseudo-header's length of a packet of "
        "odd length counts the octet of padding",
        "STP-PF-006", part(CountsPadding), setting="small-over-ip",
    ),
    Fault(
        "stp-b12-bgak-max-sd-forgotten", "a BEGIN with a cookie from a BGAK carries as much data "
        "as its own MaxSD permits, whatever MaxSD came with the cookie",
        "STP-PF-009", part(KeepsCookieAlone),
    ),
    Fault(
        "stp-b12-bound-alone", "after a list of exactly MaxSTAT elements, or a cut one whose rest "
        "is used up so, it sends a further STAT with the bound alone",
        "STP-PF-011", part(CutsAfterFullList),
    ),
    Fault(
        "stp-b12-begin-over-mtu", "fills a BEGIN with data up to the MaxSD although its options "
        "make the packet exceed the MTU",
        "STP-PF-016", part(FillsBegin),
    ),
    Fault(
        "stp-b12-odd-option-hides", "an option of a length that its kind does not allow hides the "
        "right option of that kind that follows",
        "STP-PF-018", part(OddOptionHidesLater),
    ),
    Fault(
        "stp-b12-csn-two-counters", "counts the CSNs of connections for which it was called apart "
        "from those of its calls, and far behind them",
        "STP-CC-010", part(CountsCalledApart),
    ),
    Fault(
        "stp-b12-voids-later-cookies", "a BEGIN with V flag voids all cookies made so far, those "
        "made after the one that it carries included",
        "STP-CC-012", part(VoidsAllSoFar),
    ),
    Fault(
        "stp-b12-bgak-kept", "answers a repeated BEGIN with the very BGAK that it sent first, "
        "though it has announced more credit since",
        "STP-CC-015", part(RepeatsBgakAsItWas),
    ),
    Fault(
        "stp-b12-anew-goes-on-doubling", "a call anew doubles Timer_CC instead of starting it at "
        "its first time",
        "STP-CC-016", part(GoesOnDoubling),
    ),
    Fault(
        "stp-b12-zero-csn-without-a", "acts upon an END without A flag whose CSN of the recipient "
        "is zero",
        "STP-CC-021", part(ZeroIsEnough),
    ),
    Fault(
        "stp-b12-ustat-after-fin", "ignores USTATs once it has delivered the peer's FIN",
        "STP-CC-023", part(DeafToUstatsAfterFin),
    ),
    Fault(
        "stp-b12-release-on-data-only", "a caller whose FIN is acknowledged after the peer's FIN "
        "was delivered does not send the END",
        "STP-CC-025", part(ReleasesOnDataOnly),
    ),
    Fault(
        "stp-b12-late-end-once", "sends the END after the release wait once and never repeats it",
        "STP-CC-026", part(SendsLateEndOnce),
    ),
    Fault(
        "stp-b12-end-waits-for-hole", "discards an END without A flag while the peer's FIN has "
        "arrived but cannot be delivered yet",
        "STP-CC-027", part(HoldsEndForHole),
    ),
    Fault(
        "stp-b12-release-wait-short", "the release wait is the first time of Timer_CC even where "
        "the silence time is longer",
        "STP-CC-031", part(WaitsTimerCcOnly),
    ),
    Fault(
        "stp-b12-cookies-limited", "gives out cookies as seldom as it may answer BEGINs to closed "
        "ports, ten a second",
        "STP-CC-036", part(LimitsCookies),
    ),
    Fault(
        "stp-b12-anew-without-early-sds", "a call anew leaves out the data of the early SDs that "
        "followed the BEGIN before",
        "STP-CC-037", part(ForgetsEarlySds),
    ),
    Fault(
        "stp-b12-no-v-after-abort", "after its user has aborted a call with a cookie in state 2, "
        "the next call's BEGIN has no V flag",
        "STP-CC-039", part(AbortedCallLeavesNothing),
    ),
    Fault(
        "stp-b12-begin-ends-release", "a BEGIN that opens nothing ends state 4, so that the END is "
        "not repeated any more",
        "STP-CC-041", part(CallAnswersEnd),
    ),
    Fault(
        "stp-b12-abort-n-r-highest", "N(R) of an END with A flag is VR(H), also above a hole",
        "STP-CC-045", part(AbortsAtHighest),
    ),
    Fault(
        "stp-b12-poll-at-credit", "a POLL whose N(S) is exactly VR(MR) does not raise VR(H)",
        "STP-DT-002", part(RaisesBelowCreditOnly),
    ),
    Fault(
        "stp-b12-held-before-list", "takes SDs between N(R) and the first element of a STAT's list "
        "for arrived, as in the later parts of a list that was cut",
        "STP-DT-006", part(HeldBeforeFirstElement),
    ),
    Fault(
        "stp-b12-poll-csn-16-bits", "compares only the low 16 bits of the CSN of a POLL or SDP",
        "STP-DT-008", part(ComparesTagOfPoll),
    ),
    Fault(
        "stp-b12-fin-joins-retransmission", "sets the FIN flag in the retransmission of its last "
        "SD if its user has closed meanwhile and the FIN could not be sent",
        "STP-DT-015", part(ClosesWithRetransmission),
    ),
    Fault(
        "stp-b12-takes-unannounced", "takes SDs beyond the highest N(MR) it has sent if its user "
        "has made room meanwhile",
        "STP-DT-020", part(TakesWhatFits),
    ),
    Fault(
        "stp-b12-fin-behind-hole", "takes SDs numbered above a FIN that it holds behind a hole",
        "STP-DT-028", part(FinCountsOnceDelivered),
    ),
    Fault(
        "stp-b12-announcement-n-r", "does not take N(R) of a STAT that answers no POLL",
        "STP-DT-029", part(AnnouncementIsCredit),
    ),
    Fault(
        "stp-b12-empty-end-not-probed", "does not probe a closed window if only an empty SD with "
        "FIN waits",
        "STP-DT-025", part(EndNeedsNoProbe),
    ),
    Fault(
        "stp-b12-ustat-after-stat", "a USTAT held back is sent though a STAT has reported its gap",
        "STP-DT-031", part(ReportsAgainAfterStat), setting="reordering",
    ),
    Fault(
        "stp-b12-discard-empty-fin", "its discard service does not close if the peer's FIN comes "
        "without data",
        "STP-DT-030", part(DiscardWaitsForData),
    ),
    Fault(
        "stp-b12-retransmission-unpolled", "sends no POLL within a poll interval after "
        "retransmissions that no new SD follows",
        "STP-PL-001", part(PollsForNewSdsOnly),
    ),
    Fault(
        "stp-b12-ustat-keeps-back-off", "a USTAT starts Timer_SILENCE again with the doubled time "
        "that it had",
        "STP-PL-007", part(UstatKeepsBackOff),
    ),
    Fault(
        "stp-b12-data-is-response", "does not give up a peer that answers no POLL as long as it "
        "sends anything",
        "STP-PL-008", part(AnythingIsResponse),
    ),
    Fault(
        "stp-b12-no-keep-alive-half-closed", "sends no POLLs by Timer_KEEP-ALIVE once its own FIN "
        "is acknowledged, though the peer's stream is open",
        "STP-PL-010", part(NoKeepAliveAfterOwnEnd),
    ),
    Fault(
        "stp-b12-window-overshoot", "sends an SD as long as less than the window is in flight, "
        "though with this SD it is more",
        "STP-CG-002", part(LooksAtFlightAlone),
    ),
    Fault(
        "stp-b12-second-silence-unmarked", "losses of before two silences reduce the window again, "
        "to two SMSS where it was one",
        "STP-CG-005", part(SilenceIsNoReduction),
    ),
    Fault(
        "stp-b12-rate-of-payload", "counts only user data against the maximum rate",
        "STP-CG-009", part(LimitsPayload), setting="max-rate",
    ),
    Fault(
        "stp-b12-cookie-of-any-udp-port", "a cookie is good from every UDP port of the IP address "
        "for which it was made",
        "STP-SEC-006", part(CookieOfIpAddress),
    ),
]  # fmt: skip
