"""Blind round 16: thirty faults of implementers of STP/1."""

# ruff: noqa: SLF001 - faults reach into the parts that they break

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, cast

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.codec import MalformedPacket, _decode_options, decode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar, Cookies
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Flags,
    Packet,
    Poll,
    Reason,
    Stat,
    Ustat,
)  # fmt: skip
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.rtt import RoundTrip
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Address, Variables

# Calling


class AnewKeepsBackoff(Actions):
    """The new BEGIN of a call anew inherits the transmissions, and the back-off, of the old one."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        before = v.transmissions
        super().call_anew(v, bgrej, now)
        v.transmissions += before
        v.timer_cc = now + self.wait_cc(v, before)


class VFlagOnce(CookieJar):
    """The V flag has done its duty as soon as one BEGIN with it has been sent."""

    def voids(self, peer: Hashable, made: int) -> bool:
        """See :class:`CookieJar`."""
        needed = super().voids(peer, made)
        if needed:
            self.open(peer, made)
        return needed


class UserAbortIsNoEnd(Actions):
    """A call that its own user aborts in state 2 leaves cookies and V flag as they are."""

    def abort(self, v: Variables, text: str, reason: Reason, now: float) -> None:
        """See :class:`Actions`."""
        if v.state is State.OUTGOING and reason is Reason.ABORTED and v.begin is not None:
            v.begin = replace(v.begin, cookie=None)
        super().abort(v, text, reason, now)


class AnewLosesEarlySds(Sender):
    """A call anew takes back the data of the BEGIN, but not that of the SDs sent after it."""

    def restart(self, iss: int) -> None:
        """See :class:`Sender`."""
        del self._numbers[1:]
        super().restart(iss)


class AnewMeasuresFromFirst(Actions):
    """The clock of a measurement runs from the first BEGIN of a call, though it began anew."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        asked_at = v.asked_at
        super().call_anew(v, bgrej, now)
        if asked_at is not None:
            v.asked_at = asked_at


class FirstInitialWindow(Congestion):
    """The initial window is not counted again when the BGAK announces a smaller MaxSD."""

    def learn(self, smss: int) -> None:
        """See :class:`Congestion`."""
        before = self.cwnd
        super().learn(smss)
        self.cwnd = max(before, self.cwnd)


# Being called


class VoidsWholeHost(Cookies):
    """A V flag voids the earlier cookies of all UDP ports of the caller's IP address."""

    def use(self, peer: Hashable, cookie: bytes | None, *, voids: bool) -> None:
        """See :class:`Cookies`."""
        super().use(peer, cookie, voids=voids)
        if voids:
            self._void[cast(Address, peer)[0]] = self._void[peer]

    def is_good(self, peer: Hashable, cookie: bytes | None, now: float) -> bool:
        """See :class:`Cookies`."""
        least = self._void.get(cast(Address, peer)[0], -1)
        return super().is_good(peer, cookie, now) and (self.number(peer, cookie) or 0) > least


class DiscardedSpendsCookie(Idle):
    """A good cookie is used up by a BEGIN that is discarded for too much data."""

    def discard(self, arrival: Arrival, packet: Packet) -> None:
        """See :class:`Idle`."""
        if isinstance(packet, Begin):
            self.cookies.use(arrival.peer, packet.cookie, voids=False)


class RepeatsCookie(Actions):
    """The BGAK for a repeated BEGIN has the cookie of the first one, used by now or not."""

    def bgak(self, v: Variables, now: float) -> Bgak:
        """See :class:`Actions`."""
        made = super().bgak(v, now)
        cookie = vars(v).setdefault("given_cookie", made.cookie)
        return replace(made, cookie=cookie)


class RationedCookies(Idle):
    """BGREJs with a cookie count among the ten refusals per second."""

    def give_cookie(self, arrival: Arrival, begin: Begin) -> None:
        """See :class:`Idle`."""
        if self._refusals.take(arrival.now):
            super().give_cookie(arrival, begin)


class ReplacedTakesRoom(Idle):
    """A full table of connections refuses even the call that would replace one of them."""

    def lacks_room(self, arrival: Arrival, begin: Begin) -> bool:
        """See :class:`Idle`."""
        taken = len(cast(StpEndpoint, self._listener).connections)
        return taken >= self._config.max_connections or super().lacks_room(arrival, begin)


class PaddingEndpoint(StpEndpoint):
    """Reads options up to the first padding, as if it were TCP's end of options."""

    def receive(self, octets: bytes, peer: Address, now: float) -> None:
        """See :class:`StpEndpoint`."""
        pseudo = b"" if self._pseudo_header is None else self._pseudo_header(peer)
        try:
            packet = decode(octets, pseudo)
        except MalformedPacket:
            self._ignore()
            return
        if isinstance(packet, Begin | Bgak | Bgrej) and getattr(packet, "version", 2) == 2:
            start = 28 if isinstance(packet, Bgak) else 20
            size = octets[13 if isinstance(packet, Bgrej) else 12]
            raw = octets[start : start + 4 * (size & 15)]
            at = 0
            while at < len(raw) and raw[at]:
                at += raw[at + 1]
            max_sd, cookie, _ = _decode_options(raw[:at])
            packet = replace(packet, max_sd=max_sd, cookie=cookie)
        self.handle(packet, peer, now)


class PaddingEnds(StpHost):
    """A host whose endpoint takes padding for the end of the options."""

    def __init__(self, *given: Any, **named: Any) -> None:
        """See :class:`StpHost`."""
        super().__init__(*given, **named)
        self.endpoint.__class__ = PaddingEndpoint


class ResetLeaks(Actions):
    """What was promised to a peer that knows the connection no more is never given back."""

    def be_disowned(self, v: Variables, end: End, now: float) -> None:
        """See :class:`Actions`."""
        super().be_disowned(v, end, now)
        v.share.sds = 0


# Receiving


class FinComparedWrapped(Receiver):
    """Whether a FIN lies below what is held is decided by the numbers as the packets have them."""

    def contradicts(self, number: int) -> bool:
        """See :class:`Receiver`."""
        number &= PACKET_MASK
        return max((held & PACKET_MASK for held in self._held), default=number) > number


class AnnouncesWithFinHeld(Receiver):
    """Credit is announced until the FIN is delivered, though it has been received before."""

    def reopened(self) -> bool:
        """See :class:`Receiver`."""
        fin, self.fin_number = self.fin_number, self.fin_number if self.finished else None
        found = super().reopened()
        self.fin_number = fin
        return found


class ExactListGetsTail(Receiver):
    """A list that just fills a STAT is followed by a STAT with its last element alone."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        """See :class:`Receiver`."""
        elements = [number & PACKET_MASK for number in self.whole_list()]
        most, size = self._list_limit, max(len(elements), 1)
        return [tuple(elements[at : at + most]) for at in range(0, size, most - 1)]


class FirstRunOnly(Receiver):
    """Of a gap that has been filled in the middle only the first part is reported."""

    def due_ustats(self, now: float) -> list[Run]:
        """See :class:`Receiver`."""
        waiting = [item[:2] for item in self._waiting]
        runs = super().due_ustats(now)
        firsts = [[run for run in runs if first <= run[0] < end][:1] for first, end in waiting]
        return [run for found in firsts for run in found]


# Reports


class RawListRises(Sender):
    """A list has to rise as the packet has it, even where the numbers wrap."""

    def read_list(self, packet: Stat | Ustat, n_r: int) -> list[int] | None:
        """See :class:`Sender`."""
        fields = packet.elements
        if any(left >= right for left, right in zip(fields, fields[1:], strict=False)):
            return None
        return super().read_list(packet, n_r)


class QueuedLeavesFlightTwice(Sender):
    """An SD that arrives while it awaits retransmission is taken out of the flight again."""

    def release(self, number: int, report: Report) -> None:
        """See :class:`Sender`."""
        entry = self._kept[number]
        super().release(number, report)
        if entry.queued:
            self.flight -= entry.size


class AnnouncementForgetsPoll(Sender):
    """VT(PA) becomes 0 by a STAT with N(PS) 0."""

    def on_stat(self, stat: Stat) -> Report | None:
        """See :class:`Sender`."""
        report = super().on_stat(stat)
        if report is not None and report.n_ps is None:
            self.vt_pa = 0
        return report


# Congestion and pacing


class SilenceIsNoReduction(Congestion):
    """Losses from before the second silence reduce the window once more."""

    def on_second_silence(self, serial: int) -> None:
        """See :class:`Congestion`."""
        before = self.reduced_at
        super().on_second_silence(serial)
        self.reduced_at = before


class AvoidanceGrowsUnused(Congestion):
    """Only slow start asks whether the window has been used."""

    def is_used(self, flight: int) -> bool:
        """See :class:`Congestion`."""
        return not self.in_slow_start or super().is_used(flight)


class RetransmissionsUnpaced(Outgoing):
    """No retransmission counts in the pacing, not just the first one after a reduction."""

    def _sent(self, entry: SentSd, now: float) -> None:
        """See :class:`Outgoing`."""
        if entry.times == 1:
            super()._sent(entry, now)
        else:
            self.polling.sent(now)


# Polling and timers


class PollsAreNoLife(Connection):
    """Timer_KEEP-ALIVE is not started again by the peer's POLLs."""

    def receive(self, packet: Packet, now: float) -> bool:
        """See :class:`Connection`."""
        polling = self.outgoing.polling
        before = polling._heard_at
        again = super().receive(packet, now)
        if isinstance(packet, Poll):
            polling._heard_at = before
        return again


class IntervalOfStart(Polling):
    """Timer_POLL keeps the interval with which it was started."""

    def __init__(self, config: StpConfig, rtt: RoundTrip) -> None:
        """See :class:`Polling`."""
        super().__init__(config, rtt)
        self._started_with = 0.0

    def sent(self, now: float) -> None:
        """See :class:`Polling`."""
        if not self.is_due:
            self._started_with = self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped: bool) -> float:
        """See :class:`Polling`."""
        since = self._polled_at if stopped and self.is_due else self._unpolled_since
        return since + self._started_with


class FinKeepsDistance(Outgoing):
    """The POLL of the FIN waits until half an interval has passed since the one before."""

    def asks_with(self, entry: SentSd, now: float) -> bool:
        """See :class:`Outgoing`."""
        return self.polling.may_poll(now) and super().asks_with(entry, now)


class UnstartedProbe(Outgoing):
    """Data that comes when all is acknowledged and there is no credit does not start a timer."""

    def _settle(self, now: float) -> None:
        """See :class:`Outgoing`."""
        stopped = self.polling._silent_at == math.inf
        super()._settle(now)
        if stopped and self.is_closed():
            self.polling.stop_silence()


# Releasing


class PollProlongsWait(Actions):
    """Each POLL of the caller starts the release wait again."""

    def answer_poll(self, v: Variables, poll: Poll, now: float) -> None:
        """See :class:`Actions`."""
        super().answer_poll(v, poll, now)
        if v.is_over:
            v.release_at = now + self.release_wait(v)


class CrossingEnds(Connection):
    """The peer's END is acknowledged in state 4, but one's own goes on until its ENDAK."""

    def receive(self, packet: Packet, now: float) -> bool:
        """See :class:`Connection`."""
        before = self.state
        again = super().receive(packet, now)
        acknowledged = isinstance(packet, End) and not packet.flags & int(Flags.R)
        if before is State.OUTGOING_RELEASE and self.state is State.IDLE and acknowledged:
            self.state = before
        return again


class EndNamesHighest(Actions):
    """N(R) of an END is VR(H), which is VR(R) only while nothing is missing."""

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        """See :class:`Actions`."""
        made = super().end(v, flags, reason)
        return made if v.receiver is None else replace(made, n_r=v.receiver.vr_h & PACKET_MASK)


def _part(part: type[Any]) -> Callable[[Setup], Setup]:
    return lambda setup: setup.with_part(part)


FAULTS = [
    Fault(
        "stp-b16-anew-keeps-backoff",
        "after a call anew Timer_CC and MaxCC go on where the BEGIN before had come to",
        "STP-CC-016", _part(AnewKeepsBackoff),
    ),
    Fault(
        "stp-b16-v-flag-once",
        "the V flag is dropped once a BEGIN with it has been sent, before one has opened",
        "STP-CC-039", _part(VFlagOnce),
    ),
    Fault(
        "stp-b16-user-abort-is-no-end",
        "after the user has aborted a call with a cookie in state 2 the next has no V flag",
        "STP-CC-039", _part(UserAbortIsNoEnd),
    ),
    Fault(
        "stp-b16-anew-loses-early-sds",
        "a call anew repeats the data of the BEGIN and forgets that of the early SDs",
        "STP-CC-037", _part(AnewLosesEarlySds),
    ),
    Fault(
        "stp-b16-anew-measures-from-first",
        "the BGAK of a call anew is measured from the BEGIN before",
        "STP-PL-009", _part(AnewMeasuresFromFirst),
    ),
    Fault(
        "stp-b16-first-initial-window",
        "the initial window keeps the SMSS of the cookie when the BGAK has a smaller MaxSD",
        "STP-CG-001", _part(FirstInitialWindow),
    ),
    Fault(
        "stp-b16-voids-whole-host",
        "a BEGIN with V flag from one UDP port voids the cookies of another",
        "STP-CC-012", _part(VoidsWholeHost),
    ),
    Fault(
        "stp-b16-discarded-spends-cookie",
        "the cookie of a BEGIN discarded for its size counts as used",
        "STP-CC-012", _part(DiscardedSpendsCookie),
    ),
    Fault(
        "stp-b16-repeats-cookie",
        "a repeated BGAK repeats its cookie, with which the peer may have called meanwhile",
        "STP-CC-012", _part(RepeatsCookie),
    ),
    Fault(
        "stp-b16-rationed-cookies",
        "no more than ten BGREJs with a cookie leave in a second",
        "STP-CC-036", _part(RationedCookies),
    ),
    Fault(
        "stp-b16-replaced-takes-room",
        "a later call on a connection is refused when the table is full",
        "STP-CC-012; STP-CC-041", _part(ReplacedTakesRoom), setting="small-over-ip",
    ),
    Fault(
        "stp-b16-padding-ends-options",
        "options behind padding are not read",
        "STP-PF-008; STP-CC-012", _part(PaddingEnds),
    ),
    Fault(
        "stp-b16-reset-leaks",
        "connections ended by an END with R flag never give their memory back",
        "STP-CC-012", _part(ResetLeaks), setting="small-over-ip",
    ),
    Fault(
        "stp-b16-fin-compared-wrapped",
        "a FIN behind the wrap is discarded while something before it is held",
        "STP-DT-020", _part(FinComparedWrapped),
    ),
    Fault(
        "stp-b16-announces-with-fin-held",
        "a reopened window is announced although the FIN is held",
        "STP-DT-024", _part(AnnouncesWithFinHeld),
    ),
    Fault(
        "stp-b16-exact-list-gets-tail",
        "a list of exactly MaxSTAT elements is followed by a STAT with one",
        "STP-PF-011", _part(ExactListGetsTail),
    ),
    Fault(
        "stp-b16-first-run-only",
        "a USTAT held back reports only the first part of a gap filled in the middle",
        "STP-DT-031", _part(FirstRunOnly), setting="reordering",
    ),
    Fault(
        "stp-b16-raw-list-rises",
        "a report whose list spans the wrap is discarded",
        "STP-DT-029", _part(RawListRises),
    ),
    Fault(
        "stp-b16-queued-leaves-flight-twice",
        "what arrives while it awaits retransmission makes room in the window twice",
        "STP-CG-002", _part(QueuedLeavesFlightTwice),
    ),
    Fault(
        "stp-b16-announcement-forgets-poll",
        "after an announcement of credit old STATs are accepted again",
        "STP-DT-007", _part(AnnouncementForgetsPoll),
    ),
    Fault(
        "stp-b16-silence-is-no-reduction",
        "a loss from before the second silence sets the window anew, to two SMSS",
        "STP-CG-005", _part(SilenceIsNoReduction),
    ),
    Fault(
        "stp-b16-avoidance-grows-unused",
        "in congestion avoidance the window grows though it is not used",
        "STP-CG-010", _part(AvoidanceGrowsUnused),
    ),
    Fault(
        "stp-b16-retransmissions-unpaced",
        "the retransmissions of many losses leave in one burst",
        "STP-CG-008", _part(RetransmissionsUnpaced),
    ),
    Fault(
        "stp-b16-polls-are-no-life",
        "an idle endpoint that is polled polls after the keep-alive time all the same",
        "STP-PL-010", _part(PollsAreNoLife),
    ),
    Fault(
        "stp-b16-interval-of-start",
        "a POLL waits for the initial interval though the round-trip time is known by now",
        "STP-PL-001", _part(IntervalOfStart),
    ),
    Fault(
        "stp-b16-fin-keeps-distance",
        "an SD with FIN shortly after a POLL has none of its own",
        "STP-PL-004", _part(FinKeepsDistance),
    ),
    Fault(
        "stp-b16-unstarted-probe",
        "data written into a window that is closed and quiet is not probed for",
        "STP-DT-025; STP-PL-007", _part(UnstartedProbe),
    ),
    Fault(
        "stp-b16-poll-prolongs-wait",
        "a caller that polls puts off the END after the release wait",
        "STP-CC-031", _part(PollProlongsWait),
    ),
    Fault(
        "stp-b16-crossing-ends",
        "an END that has crossed the peer's is repeated although state 4 has ended",
        "STP-CC-026", _part(CrossingEnds),
    ),
    Fault(
        "stp-b16-end-names-highest",
        "the END of an abort with a gap has VR(H) for VR(R)",
        "STP-CC-045", _part(EndNamesHighest),
    ),
]  # fmt: skip
