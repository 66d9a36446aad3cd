"""The fourteenth blind round of faults, written from the text of STP/1 alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakKeyDictionary

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.encapsulation import MalformedPacket, parse_datagram
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import Cookies
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import abort_text
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import (
    VERSION,
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Flags,
    Packet,
    Poll,
    Reason,
    Stat,
    Type,
    Ustat,
)
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.rtt import RoundTrip
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import PACKET_MASK, unwrap_poll
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables

Put = Callable[[Packet], None]


def _with(part: type[Any]) -> Callable[[Setup], Setup]:
    """What puts ``part`` in the place of the class it derives from."""
    return lambda setup: setup.with_part(part)


# Packets


class DropsShortRest(Receiver):
    """Cuts a long list, but sends no rest of only one run."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        """See :class:`Receiver`."""
        elements = [number & PACKET_MASK for number in self.whole_list()]
        step = self._list_limit - 1
        last_start = max(len(elements) - 2, 1)
        return [tuple(elements[at : at + self._list_limit]) for at in range(0, last_start, step)]


class ReadsVersionOfBgak(StpHost):
    """Reads BGAKs with the code that reads BEGINs, version included."""

    def receive(self, packet: bytes, now: float) -> None:
        """See :class:`StpHost`."""
        try:
            payload = parse_datagram(packet).payload
        except MalformedPacket:
            payload = b""
        is_bgak = len(payload) > 12 and payload[4] & 15 == Type.BGAK
        if is_bgak and payload[12] >> 4 not in (0, VERSION):
            self._ignore()
            return
        super().receive(packet, now)


class ComparesPlainNumbers(Sender):
    """Checks the order of a list without regard to the modulus."""

    def read_list(self, packet: Stat | Ustat, n_r: int) -> list[int] | None:
        """See :class:`Sender`."""
        if list(packet.elements) != sorted(packet.elements):
            return None
        return super().read_list(packet, n_r)


# Opening


class KeepsFirstBgak(Actions):
    """Keeps the BGAK that opened a connection, and repeats it."""

    def __init__(self, *begin: Any) -> None:
        """See :class:`Actions`."""
        super().__init__(*begin)
        self._sent: WeakKeyDictionary[Variables, Bgak] = WeakKeyDictionary()

    def bgak(self, v: Variables, now: float) -> Bgak:
        """See :class:`Actions`."""
        if v not in self._sent:
            self._sent[v] = super().bgak(v, now)
        return self._sent[v]


class BacksOffAcrossCookies(Actions):
    """Counts transmissions, and doubles Timer_CC, over the whole call."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        before = v.transmissions
        super().call_anew(v, bgrej, now)
        v.timer_cc = now + self.wait_cc(v, before)
        v.transmissions = before + 1


class VoidsAllGivenOut(Cookies):
    """The V flag voids every cookie that has been made for the address so far."""

    def use(self, peer: Hashable, cookie: bytes | None, *, voids: bool) -> None:
        """See :class:`Cookies`."""
        super().use(peer, cookie, voids=voids)
        if voids:
            self._void[peer] = self._last


class BindsHostOnly(Cookies):
    """Binds a cookie to the IP address, as TCP Fast Open does."""

    def code(self, number: bytes, peer: Hashable) -> bytes:
        """See :class:`Cookies`."""
        return super().code(number, peer[:1] if isinstance(peer, tuple) else peer)


class TicksInMilliseconds(Cookies):
    """Takes the number of a cookie from a clock of milliseconds, and from nothing else."""

    def make(self, peer: Hashable, now: float) -> bytes:
        """See :class:`Cookies`."""
        self._last = max(self._last, int(now * 1000) * 1000)
        number = self._last.to_bytes(8, "big")
        return number + self.code(number, peer)


class DeafWhileReleasing(Guards):
    """Takes every BEGIN for the peer's old one while an END awaits its answer."""

    def is_of_peer(self, v: Variables, begin: Begin) -> bool:
        """See :class:`Guards`."""
        return v.state is State.OUTGOING_RELEASE or super().is_of_peer(v, begin)


class CountsReplaced(Idle):
    """Looks for a free place before it looks whose place the call takes."""

    def lacks_room(self, arrival: Arrival, begin: Begin) -> bool:
        """See :class:`Idle`."""
        listener = self._listener
        assert isinstance(listener, StpEndpoint)
        full = len(listener.connections) >= self._config.max_connections
        return full or super().lacks_room(arrival, begin)


# Releasing


class TagsEndakAsOwn(Actions):
    """Puts the connection's own tag into every ENDAK of a connection."""

    def acknowledge(self, v: Variables, end: End, now: float) -> None:
        """See :class:`Actions`."""
        self.put(v, Endak(end.dport, end.sport, v.tag, 0, end.csn))

    def be_aborted(self, v: Variables, end: End, now: float) -> None:
        """See :class:`Actions`."""
        self.acknowledge(v, end, now)
        self.fail_unless_complete(v, abort_text(end.reason), end.reason, now)


class AwaitsOwnEndak(Connection):
    """Answers an END that crosses its own, and goes on waiting for its ENDAK."""

    def receive(self, packet: Packet, now: float) -> bool:
        """See :class:`Connection`."""
        waiting = self.state is State.OUTGOING_RELEASE
        again = super().receive(packet, now)
        ended = waiting and self.state is State.IDLE
        if ended and isinstance(packet, End) and not packet.flags & Flags.R:
            self.state = State.OUTGOING_RELEASE
        return again


class WaitsFromLastPacket(Connection):
    """Starts the release wait again with each packet of the caller."""

    def receive(self, packet: Packet, now: float) -> bool:
        """See :class:`Connection`."""
        again = super().receive(packet, now)
        if self.state is State.READY and self.release_at < math.inf:
            self.release_at = now + self.machine.actions.release_wait(self)
        return again


class EndsInsteadOfAnswer(Actions):
    """Lets the END of a complete endpoint stand for the STATs that are still to leave."""

    def release(self, v: Variables, now: float) -> None:
        """See :class:`Actions`."""
        v.outbox[:] = [packet for packet in v.outbox if packet.type is not Type.STAT]
        super().release(v, now)


class ReleasesClosedStream(Actions):
    """Ends a connection gracefully when its user aborts it after having closed the stream."""

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        """See :class:`Actions`."""
        closed = v.state is State.READY and v.outgoing.sender.closed
        if closed and flags & Flags.A and reason is Reason.ABORTED:
            return super().end(v, 0, Reason.NONE)
        return super().end(v, flags, reason)


# Data and reports


class WantsListAtNr(Sender):
    """Holds a STAT for invalid whose list does not begin with N(R)."""

    def read_list(self, packet: Stat | Ustat, n_r: int) -> list[int] | None:
        """See :class:`Sender`."""
        elements = super().read_list(packet, n_r)
        if elements and isinstance(packet, Stat) and elements[0] != n_r:
            return None
        return elements


class ReleasesBoundOfUstat(Sender):
    """Takes the SD behind the run of a USTAT for one that has arrived."""

    def on_ustat(self, ustat: Ustat) -> Report | None:
        """See :class:`Sender`."""
        report = super().on_ustat(ustat)
        if report is not None:
            number = self.vt_a + (ustat.elements[1] - self.vt_a & PACKET_MASK)
            if number in self._kept:
                self.release(number, report)
                self._numbers.remove(number)
        return report


class CalmedByStaleStat(Outgoing):
    """Takes nothing from a stale STAT, but is content that the peer has answered."""

    def discard(self, packet: Stat | Ustat, now: float) -> None:
        """See :class:`Outgoing`."""
        super().discard(packet, now)
        if isinstance(packet, Stat) and packet.n_ps:
            n_ps = unwrap_poll(packet.n_ps, self.sender.vt_ps)
            if 0 < n_ps < self.sender.vt_pa:
                self.polling.reported(now, opens=True)


class TakesWhatFits(Receiver):
    """Takes every SD for which there is room, whether the credit has been announced or not."""

    def takes(self, number: int) -> bool:
        """See :class:`Receiver`."""
        if number >= self.credit() or number in self._held:
            return False
        return self.fin_number is None or number <= self.fin_number


class HoldsOneGap(Receiver):
    """Has room for one gap that waits; a newer one takes the place of the older."""

    def hold_back(self, gap: Run, until: float) -> None:
        """See :class:`Receiver`."""
        self._waiting.clear()
        super().hold_back(gap, until)


class LetsNewPass(Outgoing):
    """Goes on with new SDs when the next retransmission is too large for the window."""

    def transmit(self, now: float, put: Put) -> None:
        """See :class:`Outgoing`."""
        sender = self.sender
        self._paced = False
        self.pacer.set_rates(now)
        while (entry := sender.awaiting()) is not None and self._may_repeat(entry):
            self._repeat(entry, now, put)
        while not self._paced and sender.has_new and self._may_send_new():
            self._send_new(now, put)
        if not self.polls:
            return
        self._settle(now)
        self._stopped = not self.goes_on()
        if self.asks_at_once or self.polling.poll_at(stopped=self._stopped) <= now:
            self._send_poll(now, put)


class LengthMarksSlot(Receiver):
    """Takes an SD of no octets that waits for others for a slot that is free."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        """See :class:`Receiver`."""
        number = self.vr_r + (field - self.vr_r & PACKET_MASK)
        if data or number == self.vr_r or not self.takes(number):
            return super().on_sd(field, data, fin)
        first = self.vr_h
        if number < first:
            return None
        self._miss(first, number + 1)
        self.vr_h = number + 1
        return (first, number) if first < number else None


# Timers and POLLs


class FixesDeadline(Polling):
    """Computes when Timer_POLL expires when it starts, and not again."""

    def __init__(self, config: StpConfig, rtt: RoundTrip) -> None:
        """See :class:`Polling`."""
        super().__init__(config, rtt)
        self._interval = self.poll_interval()

    def sent(self, now: float) -> None:
        """See :class:`Polling`."""
        if not self.is_due:
            self._interval = self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped: bool) -> float:
        """See :class:`Polling`."""
        start = self._polled_at if stopped and self.is_due else self._unpolled_since
        return start + self._interval


class AsksUpToLastSent(Outgoing):
    """Names in a POLL the number that follows the SD that was sent last, new or again."""

    _follows: int | None = None

    def _repeat(self, entry: SentSd, now: float, put: Put) -> None:
        """See :class:`Outgoing`."""
        super()._repeat(entry, now, put)
        self._follows = entry.number + 1

    def _send_new(self, now: float, put: Put) -> None:
        """See :class:`Outgoing`."""
        self._follows = None
        super()._send_new(now, put)

    def _send_poll(self, now: float, put: Put) -> None:
        """See :class:`Outgoing`."""
        number = self.sender.vt_s if self._follows is None else self._follows
        put(Poll(*self.header, 0, number & PACKET_MASK, *self.take_poll(now)))


class ContentWithEmptyList(Outgoing):
    """Stops Timer_SILENCE when a STAT reports nothing missing."""

    def on_stat(self, stat: Stat, now: float) -> None:
        """See :class:`Outgoing`."""
        super().on_stat(stat, now)
        if stat.n_ps and not stat.elements:
            self.polling.stop_silence()


class NoKeepAliveAfterFin(Outgoing):
    """Has no use for Timer_KEEP-ALIVE once its own stream has ended and been acknowledged."""

    def expire(self, now: float) -> bool:
        """See :class:`Outgoing`."""
        if self.sender.fin_acknowledged:
            self.polling.heard(math.inf)
        return super().expire(now)


# Congestion control and pacing


class SubtractsTwice(Sender):
    """Subtracts what arrives from what is in flight, also if it awaited retransmission."""

    def release(self, number: int, report: Report) -> None:
        """See :class:`Sender`."""
        entry = self._kept[number]
        if entry.queued:
            self.flight -= entry.size
        super().release(number, report)


class GrowsByBgak(Outgoing):
    """Lets the window grow by what a BGAK acknowledges, as by a report."""

    def learn_credit(self, n_mr: int, n_r: int) -> None:
        """See :class:`Outgoing`."""
        sender = self.sender
        number = sender.vt_a + (n_r - sender.vt_a & PACKET_MASK)
        sender.grant(n_mr, number)
        report = Report(None, sender.flight)
        sender.acknowledge(number, report)
        self.congestion.on_arrived(report.arrived)


class ForgetsSilentReduction(Congestion):
    """Notes when a loss has reduced the window, but not when silence has."""

    def on_second_silence(self, serial: int) -> None:
        """See :class:`Congestion`."""
        before = self.reduced_at
        super().on_second_silence(serial)
        self.reduced_at = before


class RepeatsUnpaced(Outgoing):
    """Spreads new SDs only."""

    def _may_repeat(self, entry: SentSd) -> bool:
        """See :class:`Outgoing`."""
        congestion = self.congestion
        return congestion.first_retransmission or congestion.room(self.sender.flight, entry.size)


FAULTS = [
    Fault(
        "stp-b14-short-rest",
        "does not send the rest of a cut list if that rest is just one missing run",
        "STP-PF-012; STP-DT-018",
        _with(DropsShortRest),
    ),
    Fault(
        "stp-b14-bgak-version",
        "discards a BGAK whose reserved version field holds another number than 0 or 2",
        "STP-PF-004",
        _with(ReadsVersionOfBgak),
    ),
    Fault(
        "stp-b14-list-over-wrap",
        "discards a STAT whose list crosses the end of the numbers, as it does not rise",
        "STP-DT-003; STP-DT-029",
        _with(ComparesPlainNumbers),
    ),
    Fault(
        "stp-b14-bgak-kept",
        "answers a repeated BEGIN with the very BGAK that answered the first one",
        "STP-CC-015; STP-CC-012",
        _with(KeepsFirstBgak),
    ),
    Fault(
        "stp-b14-anew-backed-off",
        "counts the transmissions of a BEGIN, and doubles Timer_CC, on across a call anew",
        "STP-CC-016; STP-CC-037",
        _with(BacksOffAcrossCookies),
    ),
    Fault(
        "stp-b14-void-all",
        "voids, on a BEGIN with V flag, all cookies given to the address before it came",
        "STP-CC-035; STP-CC-012",
        _with(VoidsAllGivenOut),
    ),
    Fault(
        "stp-b14-cookie-of-host",
        "takes a cookie from any UDP port of the IP address that it was made for",
        "STP-SEC-006; STP-CC-035",
        _with(BindsHostOnly),
    ),
    Fault(
        "stp-b14-cookie-clock",
        "gives the same cookie to all BEGINs of an address within one millisecond",
        "STP-CC-036; STP-CC-012",
        _with(TicksInMilliseconds),
    ),
    Fault(
        "stp-b14-deaf-releasing",
        "discards a later call between the same ports while its END is unanswered",
        "STP-CC-041",
        _with(DeafWhileReleasing),
    ),
    Fault(
        "stp-b14-replaced-counts",
        "refuses a call for want of a place although it would replace a connection",
        "STP-CC-012; STP-CC-041",
        _with(CountsReplaced),
        setting="small-over-ip",
    ),
    Fault(
        "stp-b14-endak-own-tag",
        "tags an ENDAK with its own CSN although the END did not name it",
        "STP-CC-022",
        _with(TagsEndakAsOwn),
    ),
    Fault(
        "stp-b14-crossing-ends",
        "repeats its END after it has answered an END that crossed it",
        "STP-CC-026",
        _with(AwaitsOwnEndak),
    ),
    Fault(
        "stp-b14-wait-renewed",
        "starts the release wait again with every packet from the caller",
        "STP-CC-031",
        _with(WaitsFromLastPacket),
    ),
    Fault(
        "stp-b14-end-for-stat",
        "leaves the POLL unanswered with which it became complete, and sends its END instead",
        "STP-DT-017",
        _with(EndsInsteadOfAnswer),
    ),
    Fault(
        "stp-b14-abort-after-close",
        "sends an END without A flag when its user aborts after having closed",
        "STP-CC-025; STP-CC-006",
        _with(ReleasesClosedStream),
    ),
    Fault(
        "stp-b14-list-at-nr",
        "discards a STAT whose list begins above N(R), as later parts of a cut list do",
        "STP-DT-003; STP-DT-029; STP-PF-011",
        _with(WantsListAtNr),
    ),
    Fault(
        "stp-b14-ustat-bound",
        "takes the SD at the bound of a USTAT for received and forgets it",
        "STP-DT-006; STP-DT-010",
        _with(ReleasesBoundOfUstat),
    ),
    Fault(
        "stp-b14-stale-stat-calms",
        "starts Timer_SILENCE again, and ends Timer_NO-RESPONSE, by an old STAT",
        "STP-DT-007; STP-PL-007; STP-PL-008",
        _with(CalmedByStaleStat),
    ),
    Fault(
        "stp-b14-unannounced-credit",
        "takes SDs beyond the credit that it has announced while it has room for them",
        "STP-DT-020",
        _with(TakesWhatFits),
    ),
    Fault(
        "stp-b14-one-gap-waits",
        "forgets the gap whose USTAT it holds back when another gap appears",
        "STP-DT-031; STP-DT-026",
        _with(HoldsOneGap),
        setting="reordering",
    ),
    Fault(
        "stp-b14-new-passes",
        "sends short new SDs while a longer retransmission does not fit into the window",
        "STP-DT-009",
        _with(LetsNewPass),
    ),
    Fault(
        "stp-b14-empty-slot",
        "does not hold an SD without data that arrives before others, and reports it missing",
        "STP-DT-018; STP-DT-012",
        _with(LengthMarksSlot),
    ),
    Fault(
        "stp-b14-old-deadline",
        "lets Timer_POLL run on with the interval it was started with when that has changed",
        "STP-PL-001; STP-PL-003",
        _with(FixesDeadline),
    ),
    Fault(
        "stp-b14-poll-after-repeat",
        "names in the POLL that follows a retransmission the number after that SD",
        "STP-PL-006",
        _with(AsksUpToLastSent),
    ),
    Fault(
        "stp-b14-empty-list-suffices",
        "stops Timer_SILENCE on a STAT with an empty list though later SDs are unacknowledged",
        "STP-DT-004; STP-PL-007",
        _with(ContentWithEmptyList),
    ),
    Fault(
        "stp-b14-no-keep-alive-after-fin",
        "sends no keep-alive POLLs once its own stream has ended and been acknowledged",
        "STP-PL-010",
        _with(NoKeepAliveAfterFin),
    ),
    Fault(
        "stp-b14-subtracts-twice",
        "takes an SD that arrives while it awaits retransmission out of the flight twice",
        "STP-CG-002",
        _with(SubtractsTwice),
    ),
    Fault(
        "stp-b14-bgak-opens-window",
        "lets the congestion window grow by what the BGAK acknowledges",
        "STP-CG-001; STP-CG-002",
        _with(GrowsByBgak),
    ),
    Fault(
        "stp-b14-silence-no-reduction",
        "lets a loss from before two silences reduce the window again, and so raise it",
        "STP-CG-005; STP-CG-007",
        _with(ForgetsSilentReduction),
    ),
    Fault(
        "stp-b14-repeats-unpaced",
        "sends all retransmissions at once that the window permits",
        "STP-CG-008",
        _with(RepeatsUnpaced),
    ),
]
