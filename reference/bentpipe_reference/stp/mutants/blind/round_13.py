"""Round 13: written from STP/1 on 2026-11-28."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.encapsulation import UDP
from bentpipe_reference.common.services import ECHO
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import Cookies
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Bucket, Pacer
from bentpipe_reference.stp.packets import (
    Begin,
    Bgrej,
    End,
    Flags,
    Packet,
    Poll,
    Reason,
    Sdp,
    Stat,
    Type,
    Ustat,
)
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import PACKET_MASK, newer
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.subject import SoonWrapping
from bentpipe_reference.stp.variables import Variables

# Section 3


class WideElements(StpHost):
    """Reads the elements of a STAT's list as numbers of 32 bits."""

    def __init__(self, *given: Any, **more: Any) -> None:
        """See :class:`StpHost`."""
        super().__init__(*given, **more)
        receive = self.endpoint.receive

        def read(octets: bytes, peer: Any, now: float) -> None:
            if len(octets) > 24 and octets[4] & 15 == Type.STAT and any(octets[24::4]):
                return
            receive(octets, peer, now)

        self.endpoint.receive = read  # type: ignore[method-assign]


class BareAnswers(StpHost):
    """An END that is made without a connection gets no pseudo-header."""

    def _emit(self, peer: tuple[Any, ...], octets: bytes) -> bytes:
        kind, flags = octets[4] & 15, octets[4] >> 4
        if self.config.protocol != UDP and kind == Type.END and flags & Flags.R:
            blank = octets[:8] + bytes(2) + octets[10:]
            field = checksum_field(ones_complement_residue(blank))
            octets = blank[:8] + field.to_bytes(2, "big") + blank[10:]
        return super()._emit(peer, octets)


class StrictBgrej(StpHost):
    """Understands the options of a BGREJ only if it knows all of them."""

    def __init__(self, *given: Any, **more: Any) -> None:
        """See :class:`StpHost`."""
        super().__init__(*given, **more)
        handle = self.endpoint.handle

        def sift(packet: Packet, peer: Any, now: float) -> None:
            if isinstance(packet, Bgrej) and any(kind > 2 for kind, _ in packet.options):
                packet = replace(packet, cookie=None)
            handle(packet, peer, now)

        self.endpoint.handle = sift  # type: ignore[method-assign]


class KnowsMaxSd(Actions):
    """The MaxSD that came with the cookie is kept when the BGAK brings another."""

    def _learn_peer(self, v: Variables, iss: int, max_sd: int | None) -> None:
        if v.ticket is not None and v.ticket.max_sd is not None:
            max_sd = None
        super()._learn_peer(v, iss, max_sd)


class TerseRepetition(Actions):
    """The MaxSD is announced once."""

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        self.put(v, replace(self.bgak(v, now), max_sd=None))


class TwoStats(Receiver):
    """A list is cut into two."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        return super()._cut_list()[:2]


# Sections 4 and 5


class CsnForTag(Guards):
    """What carries a whole CSN needs no tag."""

    def tag_is_right(self, v: Variables, tag: int) -> bool:
        """See :class:`Guards`."""
        return isinstance(v.handled, Poll | Sdp) or super().tag_is_right(v, tag)


class OffsetsByPort(SoonWrapping):
    """RFC 6528: the offset depends on addresses and ports."""

    ports: tuple[int, ...] = ()

    def place(self, peer: Any) -> int:
        """See :class:`CsnGenerator`."""
        return super().place((peer, self.ports))


class TellsPorts(StpHost):
    """Tells the generator of CSNs the ports."""

    def __init__(self, *given: Any, **more: Any) -> None:
        """See :class:`StpHost`."""
        super().__init__(*given, **more)
        endpoint = self.endpoint
        make = endpoint._make

        def make_with_ports(identity: Any) -> Connection:
            endpoint._csns.ports = tuple(identity[1:])  # type: ignore[attr-defined]
            return make(identity)

        endpoint._make = make_with_ports  # type: ignore[method-assign]


class FallsBack(Actions):
    """As TCP Fast Open does when its SYN is lost."""

    def repeat_begin(self, v: Variables, now: float) -> None:
        """See :class:`Actions`."""
        whole = v.begin
        if whole is not None and 2 <= v.transmissions < self.max_cc(v):
            v.begin = replace(whole, flags=0, cookie=None, data=b"")
        super().repeat_begin(v, now)
        v.begin = whole


class GoesOnDoubling(Actions):
    """Timer_CC knows only how often the call has tried."""

    def wait_cc(self, v: Variables, transmissions: int) -> float:
        """See :class:`Actions`."""
        anew = v.calls_anew if v.state is State.OUTGOING else 0
        return super().wait_cc(v, transmissions + anew)


class TakesBackTheFirst(Sender):
    """Only what the BEGIN carried is taken back."""

    def restart(self, iss: int) -> None:
        """See :class:`Sender`."""
        del self._numbers[1:]
        super().restart(iss)


class RefusedIsAnswered(Actions):
    """A call that is refused has been answered, so that nothing of it is under way."""

    def be_refused(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        begin, v.begin = v.begin, None
        super().be_refused(v, bgrej, now)
        v.begin = begin


class RenewsCredit(Actions):
    """A BGAK is a report like others."""

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        v.incoming.reported()
        super().answer_begin_again(v, begin, now)


class VoidForAll(Cookies):
    """One mark for all addresses."""

    _void_for_all = -1

    def is_good(self, peer: Any, cookie: bytes | None, now: float) -> bool:
        """See :class:`Cookies`."""
        number = self.number(peer, cookie)
        return super().is_good(peer, cookie, now) and (number or 0) > self._void_for_all

    def use(self, peer: Any, cookie: bytes | None, *, voids: bool) -> None:
        """See :class:`Cookies`."""
        super().use(peer, cookie, voids=voids)
        if voids:
            self._void_for_all = max(self._void_for_all, self.number(peer, cookie) or 0)


class FullFirst(Idle):
    """There is no point in a cookie for which there is no room."""

    def is_unproven(self, arrival: Arrival, begin: Begin) -> bool:
        """See :class:`Idle`."""
        return super().is_unproven(arrival, begin) and not self.lacks_room(arrival, begin)


class NewerOnly(Connection):
    """As in T/TCP, a later call has a newer number."""

    def receive(self, packet: Packet, now: float) -> bool:
        """See :class:`Connection`."""
        if self.state is State.READY and isinstance(packet, Begin) and self.peer_csn is not None:
            self.handled_at = now
            older = packet.csn != self.peer_csn and not newer(packet.csn, self.peer_csn)
            if older and self.machine.guards.would_open(self, packet):
                return False
        return super().receive(packet, now)


class HeldFinSuffices(Connection):
    """The stream has ended when its FIN is there."""

    @property
    def peer_has_closed(self) -> bool:
        """See :class:`Connection`."""
        return self.receiver is not None and self.receiver.fin_number is not None


class WaitsAgain(Actions):
    """As TIME-WAIT, the release wait starts again."""

    def answer_poll(self, v: Variables, poll: Poll, now: float) -> None:
        """See :class:`Actions`."""
        super().answer_poll(v, poll, now)
        if v.is_over and v.was_called and v.state is State.READY:
            v.release_at = now + self.release_wait(v)


class OneEnd(Actions):
    """Who has not answered five BEGINs will answer no END."""

    def repeat_begin(self, v: Variables, now: float) -> None:
        """See :class:`Actions`."""
        super().repeat_begin(v, now)
        if v.state is State.OUTGOING_RELEASE:
            v.state = State.IDLE


class HighestInAbort(Actions):
    """N(R) of an abort is VR(H)."""

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        """See :class:`Actions`."""
        end = super().end(v, flags, reason)
        if flags & Flags.A and v.receiver is not None:
            end = replace(end, n_r=v.receiver.vr_h & PACKET_MASK)
        return end


class TrustsR(Guards):
    """Of an END with R flag only the recipient's CSN is looked at."""

    def is_valid(self, v: Variables, end: End) -> bool:
        """See :class:`Guards`."""
        if end.flags & Flags.R:
            return end.peer_csn == v.csn
        return super().is_valid(v, end)


# Section 6


class RaisesOnce(Receiver):
    """A POLL raises VR(H) only where nothing is missing yet."""

    def raise_highest(self, number: int) -> None:
        """See :class:`Receiver`."""
        if not self._starts:
            super().raise_highest(number)


class BelowTheGap(Sender):
    """What is below the gap that a USTAT reports has arrived."""

    def on_ustat(self, ustat: Ustat) -> Report | None:
        """See :class:`Sender`."""
        report = super().on_ustat(ustat)
        if report is not None:
            first = self.vt_a + (ustat.elements[0] - self.vt_a & PACKET_MASK)
            for number in [n for n in self._numbers if n < first and not self._kept[n].queued]:
                self.release(number, report)
            self._numbers = [n for n in self._numbers if n in self._kept]
        return report


class StampsLate(Outgoing):
    """The stamp of an SDP is its own POLL's number."""

    def _send_new(self, now: float, put: Callable[[Packet], None]) -> None:
        number, before = self.sender.vt_s, self.sender.vt_ps
        super()._send_new(now, put)
        if self.sender.vt_ps != before:
            self.sender._kept[number].stamp = self.sender.vt_ps


class ForgetsNewest(Sender):
    """VT(PA) becomes N(PS), whatever that is."""

    def on_stat(self, stat: Stat) -> Report | None:
        """See :class:`Sender`."""
        report = super().on_stat(stat)
        if report is not None and not stat.n_ps:
            self.vt_pa = 0
        return report


class CreditForAll(Outgoing):
    """Nothing is sent while there is no credit."""

    def _may_repeat(self, entry: SentSd) -> bool:
        return self.sender.vt_s < self.sender.vt_ms and super()._may_repeat(entry)


class FinOnTheLast(Outgoing):
    """A last SD that is sent again brings the end of the stream, too."""

    def _repeat(self, entry: SentSd, now: float, put: Callable[[Packet], None]) -> None:
        sender = self.sender
        if sender.fin_number == entry.number + 1:
            end = sender._kept.get(entry.number + 1)
            if end is not None and not end.data:
                entry.fin = 1
        super()._repeat(entry, now, put)


class TakesWhatFits(Receiver):
    """SDs are taken as far as there is room, announced or not."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        """See :class:`Receiver`."""
        announced, self.vr_mr = self.vr_mr, self.credit()
        try:
            return super().on_sd(field, data, fin)
        finally:
            self.vr_mr = announced


class OncePerPoll(Sender):
    """The numbers of a second STAT with one N(PS) are known already."""

    def _take(self, packet: Stat | Ustat, n_ps: int | None, n_r: int) -> Report:
        before = self.vt_ms
        report = super()._take(packet, n_ps, n_r)
        if n_ps is not None and n_ps == self.vt_pa:
            self.vt_ms = before
        return report


class OneWait(Receiver):
    """One timer and one counter for all gaps, which each new one starts."""

    def hold_back(self, gap: Run, until: float) -> None:
        """See :class:`Receiver`."""
        super().hold_back(gap, until)
        *_, arrivals, until = self._waiting[-1]
        self._waiting = [(first, end, arrivals, until) for first, end, *_ in self._waiting]


class HastyEcho:
    """Closes when the peer has, whatever it could not write yet."""

    def run(self, connection: Connection) -> None:
        """See :class:`Service`."""
        while connection.readable and connection.write_room:
            connection.write(connection.read(connection.write_room))
        if connection.peer_has_closed:
            connection.close()
        elif connection.readable and not connection.is_over:
            connection.ask_for_room()


class WithHastyEcho(StpHost):
    """Serves it."""

    def __init__(self, *given: Any, **more: Any) -> None:
        """See :class:`StpHost`."""
        super().__init__(*given, **more)
        self._services = {**self._services, ECHO: HastyEcho}


# Section 7


class AsksAboutRepetitions(Outgoing):
    """A POLL follows each retransmission."""

    def _repeat(self, entry: SentSd, now: float, put: Callable[[Packet], None]) -> None:
        super()._repeat(entry, now, put)
        self.asks_at_once = self.polls


class WaitsForCredit(Outgoing):
    """Only a report that leaves data without credit starts the probing."""

    def _settle(self, now: float) -> None:
        if not self.is_closed():
            super()._settle(now)
        else:
            self.polling.stop()


class BgrejTellsNothing(Actions):
    """No measurement by a BGREJ."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        v.asked_at = None
        super().call_anew(v, bgrej, now)


class PollsAreNoNews(Connection):
    """POLLs do not start Timer_KEEP-ALIVE."""

    def receive(self, packet: Packet, now: float) -> bool:
        """See :class:`Connection`."""
        polling = self.outgoing.polling
        heard = polling._heard_at
        again = super().receive(packet, now)
        if isinstance(packet, Poll):
            polling._heard_at = heard
        return again


class FreeAfterSilence(Congestion):
    """The first retransmission after any reduction is free."""

    def on_second_silence(self, serial: int) -> None:
        """See :class:`Congestion`."""
        super().on_second_silence(serial)
        self.first_retransmission = True


class GrowsByReports(Congestion):
    """As TCP's window with each acknowledgment, at least one SMSS for a report."""

    def slow_start_growth(self, octets: int) -> float:
        """See :class:`Congestion`."""
        return max(octets, self.smss)


class FirstLossCounts(Sender):
    """Whether a loss is new is judged by the first transmission."""

    def retransmit(self, entry: SentSd) -> None:
        """See :class:`Sender`."""
        first = entry.serial
        super().retransmit(entry)
        entry.serial = first


class SavesRate(Pacer):
    """What a second has not used of the maximum rate may be used at once."""

    def __init__(self, *begin: Any) -> None:
        """See :class:`Pacer`."""
        super().__init__(*begin)
        if self._limit is not None:
            self._limit = Bucket(1.0)


# Section 10


class CookieForHost(Cookies):
    """A cookie proves an IP address."""

    def code(self, number: bytes, peer: Any) -> bytes:
        """See :class:`Cookies`."""
        return super().code(number, peer[0])


def part(*kinds: type[Any]) -> Callable[[Setup], Setup]:
    """The setup with these in the places of parts."""

    def configure(setup: Setup) -> Setup:
        for kind in kinds:
            setup = setup.with_part(kind)
        return setup

    return configure


FAULTS = [
    Fault(
        "stp-b13-wide-list-elements",
        "discards a STAT if the reserved octet of one of its list elements is not zero",
        "STP-PF-004", part(WideElements),
    ),
    Fault(
        "stp-b13-reflected-end-without-pseudo-header",
        "leaves the pseudo-header out of the checksum of an END with R flag, directly over IP",
        "STP-PF-006", part(BareAnswers), setting="small-over-ip",
    ),
    Fault(
        "stp-b13-unknown-option-hides-cookie",
        "finds no cookie in a BGREJ that has an option of unknown kind as well",
        "STP-PF-008", part(StrictBgrej),
    ),
    Fault(
        "stp-b13-bgak-max-sd-ignored",
        "goes on with the MaxSD of the BGREJ that brought the cookie when the BGAK lowers it",
        "STP-PF-009", part(KnowsMaxSd),
    ),
    Fault(
        "stp-b13-repeated-bgak-without-max-sd",
        "leaves the MaxSD option out of the BGAK that answers a repeated BEGIN",
        "STP-PF-010", part(TerseRepetition),
    ),
    Fault(
        "stp-b13-two-stats-at-most",
        "sends the first two STATs of a list that has to be cut into three or more",
        "STP-PF-012", part(TwoStats),
    ),
    Fault(
        "stp-b13-polls-without-tag-check",
        "does not check the tags of POLLs and SDPs, as they carry whole CSNs",
        "STP-CC-001", part(CsnForTag),
    ),
    Fault(
        "stp-b13-csn-offset-by-port",
        "lets the CSNs of connections with one address rise only among those of the same ports",
        "STP-CC-010", part(OffsetsByPort, TellsPorts),
    ),
    Fault(
        "stp-b13-begin-falls-back",
        "sends a BEGIN with cookie from its third transmission on without cookie, data and flags",
        "STP-CC-014", part(FallsBack),
    ),
    Fault(
        "stp-b13-call-anew-keeps-doubling",
        "does not begin Timer_CC with its first time when it calls anew, but goes on doubling",
        "STP-CC-016", part(GoesOnDoubling),
    ),
    Fault(
        "stp-b13-call-anew-loses-early-sds",
        "calls anew with the data of its BEGIN, but without those of the SDs that followed it",
        "STP-CC-037", part(TakesBackTheFirst),
    ),
    Fault(
        "stp-b13-refused-call-needs-no-v",
        "does not set the V flag in the call after one with a cookie that a BGREJ has refused",
        "STP-CC-039", part(RefusedIsAnswered),
    ),
    Fault(
        "stp-b13-repeated-bgak-renews-credit",
        "announces new credit in the BGAK that answers a repeated BEGIN",
        "STP-CC-015", part(RenewsCredit),
    ),
    Fault(
        "stp-b13-v-flag-voids-all-cookies",
        "takes the earlier cookies of all addresses for void after a BEGIN with V flag from one",
        "STP-CC-012", part(VoidForAll),
    ),
    Fault(
        "stp-b13-full-before-cookie",
        "refuses a BEGIN without a good cookie with reason 5 when it has no room for a connection",
        "STP-CC-036", part(FullFirst), setting="small-over-ip",
    ),
    Fault(
        "stp-b13-replaced-by-newer-csn-only",
        "discards a later call with a good cookie whose CSN is older than that of the open one",
        "STP-CC-041", part(NewerOnly),
    ),
    Fault(
        "stp-b13-held-fin-ends-stream",
        "takes the peer's stream for ended when data is delivered while the FIN is held",
        "STP-CC-004", part(HeldFinSuffices),
    ),
    Fault(
        "stp-b13-release-wait-restarts",
        "starts the release wait again with every POLL that it answers",
        "STP-CC-031", part(WaitsAgain),
    ),
    Fault(
        "stp-b13-one-end-after-failed-call",
        "sends the END of a call that nobody has answered once only",
        "STP-CC-026", part(OneEnd),
    ),
    Fault(
        "stp-b13-abort-with-vr-h",
        "puts VR(H) into N(R) of an END with A flag",
        "STP-CC-045", part(HighestInAbort),
    ),
    Fault(
        "stp-b13-r-flag-trusted",
        "acts upon an END with R flag whose CSN of the sender is neither zero nor the peer's",
        "STP-CC-021", part(TrustsR),
    ),
    Fault(
        "stp-b13-poll-raises-only-without-gap",
        "does not raise VR(H) by a POLL while something below it is missing",
        "STP-DT-002", part(RaisesOnce),
    ),
    Fault(
        "stp-b13-ustat-acknowledges-below-gap",
        "takes all SDs below the run of a USTAT for arrived and forgets them",
        "STP-DT-010", part(BelowTheGap),
    ),
    Fault(
        "stp-b13-sdp-stamped-late",
        "does not send the SD of an SDP again when the STAT that answers this SDP reports it",
        "STP-DT-003", part(StampsLate),
    ),
    Fault(
        "stp-b13-announcement-resets-vt-pa",
        "sets VT(PA) to 0 by a STAT with N(PS) 0, and then takes STATs that are old",
        "STP-DT-007", part(ForgetsNewest),
    ),
    Fault(
        "stp-b13-no-retransmission-without-credit",
        "sends no SD again while it has no credit for a new one",
        "STP-DT-009", part(CreditForAll),
    ),
    Fault(
        "stp-b13-fin-on-retransmitted-last-sd",
        "sets the FIN flag in a retransmission of the last SD when an empty SD with FIN follows it",
        "STP-DT-015", part(FinOnTheLast),
    ),
    Fault(
        "stp-b13-takes-what-has-room",
        "takes an SD at or above the highest N(MR) it has sent if its user has made room since",
        "STP-DT-020", part(TakesWhatFits),
    ),
    Fault(
        "stp-b13-credit-of-first-stat-only",
        "takes no credit from a further STAT with the N(PS) of the one before",
        "STP-DT-029", part(OncePerPoll),
    ),
    Fault(
        "stp-b13-new-gap-delays-earlier",
        "starts the wait of USTATs that it holds back again when another gap appears",
        "STP-DT-031", part(OneWait), setting="reordering",
    ),
    Fault(
        "stp-b13-echo-closes-with-rest",
        "closes an echo after the peer's FIN though data waits for room in the send buffer",
        "STP-DT-030", part(WithHastyEcho),
    ),
    Fault(
        "stp-b13-poll-after-retransmission",
        "sends a POLL after every retransmission, however soon after the POLL before",
        "STP-PL-002", part(AsksAboutRepetitions),
    ),
    Fault(
        "stp-b13-late-data-does-not-probe",
        "does not start Timer_SILENCE when its user writes after the credit has been used up",
        "STP-PL-007", part(WaitsForCredit),
    ),
    Fault(
        "stp-b13-bgrej-not-measured",
        "takes no round-trip time from a BGREJ with a cookie that answers a BEGIN sent once",
        "STP-PL-009", part(BgrejTellsNothing),
    ),
    Fault(
        "stp-b13-polls-do-not-keep-alive",
        "does not start Timer_KEEP-ALIVE again when a POLL arrives",
        "STP-PL-010", part(PollsAreNoNews),
    ),
    Fault(
        "stp-b13-free-retransmission-after-silence",
        "sends the first retransmission after two silences beyond the congestion window",
        "STP-CG-002", part(FreeAfterSilence),
    ),
    Fault(
        "stp-b13-slow-start-by-reports",
        "lets the window grow by one SMSS in slow start with a report of less, or of nothing, new",
        "STP-CG-003", part(GrowsByReports),
    ),
    Fault(
        "stp-b13-lost-retransmission-not-new",
        "does not reduce its window when a retransmission made after the last reduction is lost",
        "STP-CG-005", part(FirstLossCounts),
    ),
    Fault(
        "stp-b13-rate-saved-up",
        "sends up to a second's worth of its maximum rate at once after it has sent less",
        "STP-CG-009", part(SavesRate), setting="max-rate",
    ),
    Fault(
        "stp-b13-cookie-for-ip-address",
        "takes a cookie that it has made for another UDP port of the caller's IP address",
        "STP-SEC-006", part(CookieForHost),
    ),
]  # fmt: skip
