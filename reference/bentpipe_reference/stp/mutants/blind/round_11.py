"""Round 11: written from STP/1 on 2026-11-28."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.encapsulation import (
    Datagram,
    MalformedPacket,
    emit_datagram,
    parse_datagram,
)
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar, Cookies
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import RIDE_S, Outgoing
from bentpipe_reference.stp.pacing import Bucket, Pacer
from bentpipe_reference.stp.packets import (
    VERSION,
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
)
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import CSN_MASK, PACKET_MASK
from bentpipe_reference.stp.services import Echo
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables

_FIN, _A, _R = int(Flags.FIN), int(Flags.A), int(Flags.R)

# Section 3: packets. These read octets before the codec does.


class Reader(StpHost):
    """Looks at the octets of each packet first."""

    least = 20

    def receive(self, packet: bytes, now: float) -> None:
        """See :class:`StpHost`."""
        try:
            datagram = parse_datagram(packet)
        except MalformedPacket:
            super().receive(packet, now)
            return
        octets = datagram.payload
        if len(octets) >= self.least:
            taken = self.look(octets, datagram)
            if taken is None:
                return
            if taken != octets:
                packet = emit_datagram(replace(datagram, payload=taken))
        super().receive(packet, now)

    def look(self, octets: bytes, datagram: Datagram) -> bytes | None:
        """The octets to go on with, None to discard the packet."""
        raise NotImplementedError


def _sum(octets: bytes, datagram: Datagram) -> int:
    """What the checksum of section 3.2 has to cancel."""
    pseudo = datagram.pseudo_header
    total = ones_complement_residue(octets)
    return (total + ones_complement_residue(pseudo) + len(octets) if pseudo else total) % 0xFFFF


def _sealed(octets: bytes, datagram: Datagram) -> bytes:
    blank = octets[:8] + b"\0\0" + octets[10:]
    return blank[:8] + checksum_field(_sum(blank, datagram)).to_bytes(2, "big") + blank[10:]


def _option_places(raw: bytes) -> list[tuple[int, int, int]] | None:
    """Place, kind and length of each option, None if they do not fit."""
    found, at = [], 0
    while at < len(raw):
        if raw[at] == 0:
            at += 1
            continue
        length = raw[at + 1] if at + 1 < len(raw) else 0
        if length < 2 or at + length > len(raw):
            return None
        found.append((at, raw[at], length))
        at += length
    return found


class ReadsOldOptions(Reader):
    """Reads the options before it asks for the version."""

    def look(self, octets: bytes, datagram: Datagram) -> bytes | None:
        """See :class:`Reader`."""
        if octets[4] & 15 == Type.BEGIN and octets[12] >> 4 != VERSION:
            end = 20 + 4 * (octets[12] & 15)
            if end > len(octets) or _option_places(octets[20:end]) is None:
                return None
        return octets


class WideOptlen(Reader):
    """Takes the whole octet before N(MR) of a BGAK for optlen, so that the length seems wrong."""

    def look(self, octets: bytes, datagram: Datagram) -> bytes | None:
        """See :class:`Reader`."""
        if octets[4] & 15 == Type.BGAK and len(octets) != 28 + 4 * octets[12]:
            return None
        return octets


class ZeroIsNone(Reader):
    """As in UDP, a checksum of zero means that there is none."""

    least = 12

    def look(self, octets: bytes, datagram: Datagram) -> bytes | None:
        """See :class:`Reader`."""
        return octets if any(octets[8:10]) else _sealed(octets, datagram)


class FirstCookieCounts(Reader):
    """Stops to look for a cookie at the first option of that kind, also if its length is wrong."""

    _ends = {
        Type.BEGIN: lambda octets: (20, 20 + 4 * (octets[12] & 15)),
        Type.BGAK: lambda octets: (28, 28 + 4 * (octets[12] & 15)),
        Type.BGREJ: lambda octets: (20, 20 + 4 * (octets[13] & 15)),
    }

    def look(self, octets: bytes, datagram: Datagram) -> bytes | None:
        """See :class:`Reader`."""
        kind = octets[4] & 15
        if kind not in self._ends or _sum(octets, datagram):
            return octets
        first, end = self._ends[kind](octets)
        cookies = [item for item in _option_places(octets[first:end]) or () if item[1] == 2]
        if not cookies or 10 <= cookies[0][2] <= 34:
            return octets
        hidden = bytearray(octets)
        for at, _, _ in cookies[1:]:
            hidden[first + at] = 0x7E
        return _sealed(bytes(hidden), datagram) if len(cookies) > 1 else octets


class OneMore(Receiver):
    """Cuts a list as long as elements are left, also if the last one is all there is."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        elements = [number & PACKET_MASK for number in self.whole_list()]
        step, most = self._list_limit - 1, self._list_limit
        return [tuple(elements[at : at + most]) for at in range(0, max(len(elements), 1), step)]


class KeepsRunsApart(Receiver):
    """Notes each newly missing run by itself, also if it follows another one."""

    def _miss(self, start: int, end: int) -> None:
        self._starts.append(start)
        self._ends.append(end)


# Sections 5.1 and 5.2: opening


class VoidsOnce(CookieJar):
    """The first BEGIN with V flag settles the matter, whatever becomes of it."""

    def voids(self, peer: Any, made: int) -> bool:
        """See :class:`CookieJar`."""
        result = super().voids(peer, made)
        if result:
            self._remember(peer, self._mark(peer)._replace(voids=False, before=False))
        return result


class CountsBegins(Actions):
    """Counts the repetitions of a BEGIN as transmissions of its data."""

    def repeat_begin(self, v: Variables, now: float) -> None:
        """See :class:`Actions`."""
        before = v.transmissions
        super().repeat_begin(v, now)
        entry = v.outgoing.sender._kept.get(v.iss)
        if before and v.transmissions > before and entry is not None:
            entry.times += 1


class AppendsAgain(Sender):
    """Puts what was sent back behind what was not, when the call begins anew."""

    def restart(self, iss: int) -> None:
        """See :class:`Sender`."""
        sent = b"".join(self._kept[number].data for number in self._numbers)
        self._forget()
        super().restart(iss)
        self._unsent += sent


class TrustsBgak(Actions):
    """Holds the data of the BEGIN to be acknowledged by any BGAK."""

    def open(self, v: Variables, bgak: Bgak, now: float) -> None:
        """See :class:`Actions`."""
        assert v.begin is not None
        if (v.begin.data or v.begin.flags & _FIN) and bgak.n_r == v.iss & PACKET_MASK:
            bgak = replace(bgak, n_r=v.iss + 1 & PACKET_MASK)
        super().open(v, bgak, now)


class TwoCounters(Actions):
    """Numbers the connections that peers open by another counter than its own calls."""

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        v.csn = v.outgoing.csn = v.csn - (1 << 20) & CSN_MASK
        super().take_call(v, begin, now)


class ForgetsVoid(Cookies):
    """Keeps the mark of a V flag until the next call from the address."""

    def use(self, peer: Any, cookie: bytes | None, *, voids: bool) -> None:
        """See :class:`Cookies`."""
        super().use(peer, cookie, voids=voids)
        if not voids:
            self._void.pop(peer, None)


class KeepsBgak(Actions):
    """Keeps its BGAK, and sends it again as it was."""

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        super().take_call(v, begin, now)
        v.first_bgak = v.outbox[-1]  # type: ignore[attr-defined]

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        self.put(v, v.first_bgak)  # type: ignore[attr-defined]


class NoEmptyFin(Actions):
    """Looks for a FIN flag only in a BEGIN that carries data."""

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        if not begin.data:
            begin = replace(begin, flags=begin.flags & ~_FIN)
        super().take_call(v, begin, now)


class ReplacesFirst(Guards):
    """Ends the old connection as soon as the cookie is good, and then looks at the length."""

    def would_open(self, v: Variables, begin: Begin) -> bool:
        """See :class:`Guards`."""
        arrival, idle = Arrival(v.identity.peer, v.handled_at), self._idle
        if idle.is_too_large(arrival, begin):
            begin = replace(begin, data=b"")
        return super().would_open(v, begin)


# Sections 5.3 to 5.5: release


class CountsOn(Actions):
    """Counts the transmissions of BEGIN and END together."""

    def send_end(self, v: Variables, end: End, now: float) -> None:
        """See :class:`Actions`."""
        v.state = State.OUTGOING_RELEASE
        v.release = end
        self.repeat_end(v, now)


class ZeroAlways(Guards):
    """Takes an END with A flag and no CSN of the recipient for valid in state 2 as well."""

    def is_valid(self, v: Variables, end: End) -> bool:
        """See :class:`Guards`."""
        aborts = v.peer_csn is None and end.flags & (_A | _R) == _A
        return (aborts and end.peer_csn == 0) or super().is_valid(v, end)


class WaitsOn(Actions):
    """Starts the release wait again with each POLL."""

    def _answer(self, v: Variables, n_s: int, n_ps: int, timestamp: int, now: float) -> None:
        super()._answer(v, n_s, n_ps, timestamp, now)
        if v.release_at < math.inf:
            v.release_at = now + self.release_wait(v)


class EndFirst(Connection):
    """Sends an END before what else is due."""

    def transmit(self, now: float) -> list[Packet]:
        """See :class:`Connection`."""
        return sorted(super().transmit(now), key=lambda packet: packet.type is not Type.END)


# Sections 6.1 to 6.5: data transfer


class TakesWhatFits(Receiver):
    """Takes what there is room for, announced or not."""

    def takes(self, number: int) -> bool:
        """See :class:`Receiver`."""
        if number >= self.credit() or number in self._held:
            return False
        return self.fin_number is None or number <= self.fin_number


class CountsTooLarge(Receiver):
    """Raises VR(H) by an SD before it finds that it is too large."""

    def on_sd(self, field: int, data: bytes, fin: int) -> Run | None:
        """See :class:`Receiver`."""
        number = self.vr_r + (field - self.vr_r & PACKET_MASK)
        if not self.fits(data) and number >= self.vr_h and self.takes(number):
            self.raise_highest(number + 1)
        return super().on_sd(field, data, fin)


class WholeGap(Receiver):
    """Reports the whole gap that has waited if any part of it is still missing."""

    def due_ustats(self, now: float) -> list[Run]:
        """See :class:`Receiver`."""
        waiting = self._waiting
        due = super().due_ustats(now)
        gone = [(first, end) for first, end, *_ in waiting if (first, end) not in
                [(a, b) for a, b, *_ in self._waiting]]  # fmt: skip
        return [gap for gap in gone if any(gap[0] <= run[0] < gap[1] for run in due)]


class BelowCredit(Receiver):
    """Takes a POLL's N(S) only if it is below VR(MR)."""

    def raise_highest(self, number: int) -> None:
        """See :class:`Receiver`."""
        if number != self.vr_mr:
            super().raise_highest(number)


class ClosedAtNext(Receiver):
    """Holds the window to be closed when no credit is left beyond VR(R)."""

    def reported(self) -> None:
        """See :class:`Receiver`."""
        super().reported()
        self._closed = self.vr_mr <= self.vr_r


class ProbesForData(Outgoing):
    """Probes a closed window only while octets wait."""

    def is_closed(self) -> bool:
        """See :class:`Outgoing`."""
        return super().is_closed() and self.sender.unsent > 0


class StampsAfterPoll(Outgoing):
    """Stamps the SD of an SDP with the SDP's own poll number."""

    _riding: SentSd | None = None

    def asks_with(self, entry: SentSd, now: float) -> bool:
        """See :class:`Outgoing`."""
        asks = super().asks_with(entry, now)
        self._riding = entry if asks and self._config.piggyback else None
        return asks

    def take_poll(self, now: float) -> tuple[int, int, int]:
        """See :class:`Outgoing`."""
        fields = super().take_poll(now)
        if self._riding is not None:
            self._riding.stamp = self.sender.vt_ps
            self._riding = None
        return fields


class HeldBeforeList(Sender):
    """Takes everything below the bound that a list does not name as missing for held."""

    def _process_list(self, elements: list[int], n_ps: int, report: Report) -> None:
        for number in [number for number in self._numbers if number < elements[0]]:
            self.release(number, report)
        self._numbers = [number for number in self._numbers if number in self._kept]
        super()._process_list(elements, n_ps, report)


class LastAgain(Outgoing):
    """Makes the last data the end of the stream when it is sent again."""

    def _repeat(self, entry: SentSd, now: float, put: Callable[[Packet], None]) -> None:
        sender = self.sender
        end = None if sender.fin_number is None else sender._kept.get(sender.fin_number)
        if end is not None and not end.data and entry.number + 1 == end.number:
            entry.fin = 1
        super()._repeat(entry, now, put)


class PlainLists(Sender):
    """Compares the elements of a list as plain numbers."""

    def read_list(self, packet: Stat | Ustat, n_r: int) -> list[int] | None:
        """See :class:`Sender`."""
        fields = packet.elements
        if any(after <= before for before, after in zip(fields, fields[1:], strict=False)):
            return None
        return super().read_list(packet, n_r)


class HastyEcho(Echo):
    """Closes at the FIN, with what has found room by then."""

    def run(self, connection: Connection) -> None:
        """See :class:`Echo`."""
        super().run(connection)
        if connection.peer_has_closed:
            connection.close()


class HastyHost(StpHost):
    """A host with that echo."""

    def __init__(self, *begin: Any, services: Any = None, **others: Any) -> None:
        named = {} if services is None else {"services": services}
        super().__init__(*begin, **named, **others)
        self._services = {
            port: HastyEcho if service is Echo else service
            for port, service in self._services.items()
        }


def hasty(setup: Setup) -> Setup:
    """With a buffer that fills."""
    return setup.with_part(HastyHost).configured(send_buffer=4096)


# Sections 7.1 and 7.2: polling


class PollsForNew(Outgoing):
    """Starts Timer_POLL for new SDs only."""

    def _sent(self, entry: SentSd, now: float) -> None:
        if entry.times > 1:
            self.pacer.sent(len(entry.data))
        else:
            super()._sent(entry, now)


class AsksWithOld(Outgoing):
    """Lets a POLL that is due ride on a retransmission as well."""

    def _repeat(self, entry: SentSd, now: float, put: Callable[[Packet], None]) -> None:
        sent: list[Packet] = []
        super()._repeat(entry, now, sent.append)
        (packet,) = sent
        assert isinstance(packet, Sd)
        if self.polls and self.polling.may_poll(now):
            at = self.polling.poll_at(stopped=not self.goes_on())
            if at <= now + RIDE_S:
                poll = self.take_poll(now)
                packet = Sdp(*self.header, packet.flags, packet.n_s, *poll, packet.data)
        put(packet)


class AnySign(Polling):
    """Any packet shows that the peer is alive."""

    def heard(self, now: float) -> None:
        """See :class:`Polling`."""
        super().heard(now)
        if self.awaits_answer:
            self._unanswered_since = now


class MeasuresLast(Actions):
    """Measures the round trip from the last BEGIN, though there were several."""

    def repeat_begin(self, v: Variables, now: float) -> None:
        """See :class:`Actions`."""
        super().repeat_begin(v, now)
        if v.state is State.OUTGOING:
            v.asked_at = now


# Sections 7.3 and 7.4: congestion and pacing


class OnlyFirstLoss(Sender):
    """Takes only the loss of a first transmission for a sign of congestion."""

    def queue(self, entry: SentSd, report: Report) -> None:
        """See :class:`Sender`."""
        before = report.new_loss
        super().queue(entry, report)
        if entry.times > 1:
            report.new_loss = before


class CountsSilences(Polling):
    """Never begins to count the silences anew."""

    def start_silence(self, now: float) -> None:
        """See :class:`Polling`."""
        silences = self.silences
        super().start_silence(now)
        self.silences = silences


class CountsPackets(Sender):
    """Opens the window by SMSS for each SD that has arrived, however small."""

    def release(self, number: int, report: Report) -> None:
        """See :class:`Sender`."""
        before = report.arrived
        super().release(number, report)
        report.arrived = before + self._congestion.smss


class SavesUp(Pacer):
    """Saves up half a second of the maximum rate."""

    def __init__(self, *begin: Any) -> None:
        super().__init__(*begin)
        if self._limit is not None:
            self._limit = Bucket(0.5)


# Section 10: security


class ForHosts(Cookies):
    """Makes cookies for IP addresses, whatever the UDP port."""

    def code(self, number: bytes, peer: Any) -> bytes:
        """See :class:`Cookies`."""
        return super().code(number, peer[0])


class NamesVendor(Idle):
    """Names the vendor, in an option of its own, where it gives a cookie."""

    def bgrej(self, begin: Begin, reason: Reason, cookie: bytes | None = None) -> Bgrej:
        """See :class:`Idle`."""
        packet = super().bgrej(begin, reason, cookie)
        if cookie is None:
            return packet
        return replace(packet, options=((0xF0, b"Bent Pipe Works, release 11.2.0"),))


def _part(part: type[Any]) -> Callable[[Setup], Setup]:
    return lambda setup: setup.with_part(part)


FAULTS = [
    Fault(
        "stp-b11-old-version-options",
        "discards a BEGIN of another version whose options do not fit instead of refusing it",
        "STP-PF-003", _part(ReadsOldOptions),
    ),
    Fault(
        "stp-b11-bgak-wide-optlen",
        "discards a BGAK whose reserved version field is not zero",
        "STP-PF-004", _part(WideOptlen),
    ),
    Fault(
        "stp-b11-zero-checksum",
        "takes a packet with a checksum field of zero without checking it",
        "STP-PF-007", _part(ZeroIsNone),
    ),
    Fault(
        "stp-b11-odd-cookie-hides",
        "overlooks a right Cookie option behind one of a length that is not allowed",
        "STP-PF-018", _part(FirstCookieCounts),
    ),
    Fault(
        "stp-b11-list-of-one",
        "sends a further STAT with the bound alone when a list just fills its STATs",
        "STP-PF-012", _part(OneMore),
    ),
    Fault(
        "stp-b11-adjacent-runs",
        "lists missing runs that touch each other separately, so that the list does not rise",
        "STP-PF-011", _part(KeepsRunsApart),
    ),
    Fault(
        "stp-b11-v-flag-once",
        "sets the V flag in the first BEGIN with a cookie only, though it opened nothing",
        "STP-CC-039", _part(VoidsOnce),
    ),
    Fault(
        "stp-b11-begin-counts",
        "counts the repetitions of a BEGIN as transmissions of its data when a USTAT reports it",
        "STP-CC-014", _part(CountsBegins),
    ),
    Fault(
        "stp-b11-anew-from-middle",
        "begins the call anew with what was not yet sent, and puts what was sent behind it",
        "STP-CC-037", _part(AppendsAgain),
    ),
    Fault(
        "stp-b11-any-bgak-acknowledges",
        "holds the data of its BEGIN to be acknowledged by a BGAK whose N(R) is ISS",
        "STP-CC-042", _part(TrustsBgak),
    ),
    Fault(
        "stp-b11-two-csn-counters",
        "gives connections that the peer opens CSNs older than those of its own earlier calls",
        "STP-CC-010", _part(TwoCounters),
    ),
    Fault(
        "stp-b11-void-forgotten",
        "takes cookies that a V flag has made void again after the next call without V flag",
        "STP-CC-035", _part(ForgetsVoid),
    ),
    Fault(
        "stp-b11-first-bgak-again",
        "answers a repeated BEGIN with its first BGAK, whatever credit it has announced since",
        "STP-CC-015", _part(KeepsBgak),
    ),
    Fault(
        "stp-b11-empty-begin-fin",
        "does not see the FIN flag of a BEGIN without data",
        "STP-CC-004", _part(NoEmptyFin),
    ),
    Fault(
        "stp-b11-large-begin-replaces",
        "ends the connection for a BEGIN with a good cookie that it then discards as too large",
        "STP-CC-041", _part(ReplacesFirst), setting="max-sd-512",
    ),
    Fault(
        "stp-b11-end-counts-begins",
        "does not begin to count anew for an END: Timer_CC and MaxCC go on from the BEGIN's",
        "STP-CC-026", _part(CountsOn),
    ),
    Fault(
        "stp-b11-end-zero-pending",
        "lets an END with A flag and without the caller's CSN end a call in state 2",
        "STP-CC-021", _part(ZeroAlways),
    ),
    Fault(
        "stp-b11-release-wait-again",
        "starts the release wait again with every POLL that it answers",
        "STP-CC-031", _part(WaitsOn),
    ),
    Fault(
        "stp-b11-end-before-stat",
        "sends its END before the STAT that is due for the SDP which has made it complete",
        "STP-CC-028", _part(EndFirst),
    ),
    Fault(
        "stp-b11-unannounced-credit",
        "takes an SD at or above VR(MR) when there is room that it has not announced",
        "STP-DT-020", _part(TakesWhatFits),
    ),
    Fault(
        "stp-b11-too-large-counts",
        "raises VR(H) by an SD that it discards as too large, and reports it as missing",
        "STP-DT-028", _part(CountsTooLarge), setting="mtu-576-credit-40",
    ),
    Fault(
        "stp-b11-late-ustat-whole",
        "reports a gap in a USTAT that has waited as a whole, though part of it has arrived",
        "STP-DT-031", _part(WholeGap), setting="reordering",
    ),
    Fault(
        "stp-b11-poll-at-credit",
        "does not raise VR(H) by a POLL whose N(S) is VR(MR) itself",
        "STP-DT-002", _part(BelowCredit),
    ),
    Fault(
        "stp-b11-closed-by-vr-r",
        "does not announce a reopened window if a hole is left below it",
        "STP-DT-024", _part(ClosedAtNext),
    ),
    Fault(
        "stp-b11-fin-not-probed",
        "does not probe a closed window when only the end of the stream waits",
        "STP-DT-025", _part(ProbesForData),
    ),
    Fault(
        "stp-b11-sdp-stamp",
        "does not send the SD of an SDP again when the STAT for its own POLL reports it missing",
        "STP-DT-003", _part(StampsAfterPoll),
    ),
    Fault(
        "stp-b11-held-before-list",
        "takes what lies between N(R) and the first element of a list for received",
        "STP-DT-006", _part(HeldBeforeList),
    ),
    Fault(
        "stp-b11-fin-on-repetition",
        "sets the FIN flag in a retransmission of the last data, sent first without it",
        "STP-DT-015", _part(LastAgain),
    ),
    Fault(
        "stp-b11-list-across-wrap",
        "discards a STAT or USTAT whose list goes across the wrap of the numbers",
        "STP-DT-029", _part(PlainLists),
    ),
    Fault(
        "stp-b11-hasty-echo",
        "closes the echo at the FIN though not all of what it has received has been returned",
        "STP-DT-030", hasty,
    ),
    Fault(
        "stp-b11-no-poll-after-repetition",
        "does not start Timer_POLL by a retransmission",
        "STP-PL-001", _part(PollsForNew),
    ),
    Fault(
        "stp-b11-repetition-as-sdp",
        "sends a retransmission as an SDP when a POLL is due",
        "STP-PL-006", _part(AsksWithOld),
    ),
    Fault(
        "stp-b11-any-packet-answers",
        "does not give up a peer that sends packets but never a report",
        "STP-PL-008", _part(AnySign),
    ),
    Fault(
        "stp-b11-measures-repeated-begin",
        "takes the answer to a repeated BEGIN for a measurement, from its last transmission",
        "STP-PL-009", _part(MeasuresLast),
    ),
    Fault(
        "stp-b11-lost-repetition",
        "does not reduce the window when a retransmission made after the reduction is lost",
        "STP-CG-005", _part(OnlyFirstLoss),
    ),
    Fault(
        "stp-b11-silences-for-life",
        "counts the silences of the whole connection, and reduces the window at the second only",
        "STP-CG-007", _part(CountsSilences),
    ),
    Fault(
        "stp-b11-window-by-packets",
        "lets the window grow by a whole SMSS for each small SD that has arrived",
        "STP-CG-003", _part(CountsPackets),
    ),
    Fault(
        "stp-b11-rate-saved-up",
        "saves up half a second of the maximum rate and sends it at once",
        "STP-CG-009", _part(SavesUp), setting="max-rate",
    ),
    Fault(
        "stp-b11-cookie-of-host",
        "takes a cookie that it made for another UDP port of the same IP address",
        "STP-SEC-006", _part(ForHosts),
    ),
    Fault(
        "stp-b11-bgrej-too-long",
        "answers a BEGIN of 20 octets with a BGREJ of more than 60",
        "STP-SEC-001", _part(NamesVendor),
    ),
]  # fmt: skip
