"""Round 10: written from STP/1 on 2026-11-23."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, cast
from weakref import WeakKeyDictionary

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.encapsulation import MalformedPacket, parse_datagram
from bentpipe_reference.common.services import ECHO
from bentpipe_reference.stp.actions import Actions, Numbers
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import (
    LEAST_COOKIE,
    MOST_COOKIE,
    Begin,
    Bgak,
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
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import PACKET_MASK, newer
from bentpipe_reference.stp.services import SERVICES, Echo
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Address, Variables

_COOKIE_KIND = 2
_FIN, _V, _A, _R = int(Flags.FIN), int(Flags.V), int(Flags.A), int(Flags.R)

# Formats (section 3)


class BoundAlone(Receiver):
    """A list of exactly MaxSTAT elements is taken for one that goes on."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        lists = super()._cut_list()
        if len(lists[-1]) == self._list_limit:
            lists.append(lists[-1][-1:])
        return lists


class SortedList(Receiver):
    """The elements are sorted as they go into the packet."""

    def _cut_list(self) -> list[tuple[int, ...]]:
        return [tuple(sorted(elements)) for elements in super()._cut_list()]


class OddCookieCounts(Idle):
    """A Cookie option of an odd length is the cookie, and it is not good."""

    def is_unproven(self, arrival: Arrival, begin: Begin) -> bool:
        """See :class:`Idle`."""
        for kind, value in begin.options:
            if kind == _COOKIE_KIND and not LEAST_COOKIE <= len(value) <= MOST_COOKIE:
                return True
        return super().is_unproven(arrival, begin)


class KeepsSize(Outgoing):
    """The size of SDs never falls when the call begins anew."""

    _anew = False

    def restart(self, csn: int, iss: int) -> None:
        """See :class:`Outgoing`."""
        super().restart(csn, iss)
        self._anew = True

    def learn(self, max_sd: int | None) -> None:
        """See :class:`Outgoing`."""
        before = self.sender.max_sd
        super().learn(max_sd)
        if self._anew and before > self.sender.max_sd:
            self.sender.max_sd = before
            self.congestion.learn(before)
        self._anew = False


class StampsFirst(Actions):
    """Only the first STAT of a list that is cut returns the timestamp."""

    def _answer(self, v: Variables, n_s: int, n_ps: int, timestamp: int, now: float) -> None:
        first = len(v.outbox)
        super()._answer(v, n_s, n_ps, timestamp, now)
        v.outbox[first + 1 :] = [
            replace(packet, timestamp=0) if isinstance(packet, Stat) else packet
            for packet in v.outbox[first + 1 :]
        ]


class WholeOctet(StpHost):
    """The length of a BGREJ's options is read from eight bits."""

    def receive(self, packet: bytes, now: float) -> None:
        """See :class:`StpHost`."""
        try:
            octets = parse_datagram(packet).payload
        except MalformedPacket:
            octets = b""
        if len(octets) >= 20 and octets[4] & 15 == Type.BGREJ and octets[13] >> 4:
            self._ignore()
            return
        super().receive(packet, now)


class ShortStore(Actions):
    """A cookie is kept in 32 octets, of which the last one ends it."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        assert bgrej.cookie is not None
        super().call_anew(v, replace(bgrej, cookie=bgrej.cookie[: MOST_COOKIE - 1]), now)

    def open(self, v: Variables, bgak: Bgak, now: float) -> None:
        """See :class:`Actions`."""
        if bgak.cookie is not None:
            bgak = replace(bgak, cookie=bgak.cookie[: MOST_COOKIE - 1])
        super().open(v, bgak, now)


# Opening and releasing (section 5)


class VoidsOnce(CookieJar):
    """The V flag is set in the first BEGIN of a call that carries a cookie."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._asked: set[tuple[Hashable, int]] = set()

    def voids(self, peer: Hashable, made: int) -> bool:
        """See :class:`CookieJar`."""
        again = (peer, made) in self._asked
        self._asked.add((peer, made))
        return super().voids(peer, made) and not again


class Thrifty(Actions):
    """A cookie whose call was refused is held to be unused."""

    def be_refused(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        super().be_refused(v, bgrej, now)
        if v.ticket is not None and v.begin is not None and v.begin.cookie is not None:
            self._jar.put(v.identity.peer, v.ticket._replace(asked=1 << 62))


class OlderIsOld(Guards):
    """A BEGIN with an older CSN than the peer's is a late one."""

    def is_repeated(self, v: Variables, begin: Begin) -> bool:
        """See :class:`Guards`."""
        older = v.peer_csn is not None and newer(v.peer_csn, begin.csn)
        return super().is_repeated(v, begin) or (v.was_called and older)


class SilentToOlder(Actions):
    """What :class:`OlderIsOld` finds is discarded."""

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        if begin.csn == v.peer_csn:
            super().answer_begin_again(v, begin, now)


class KeepsBgak(Actions):
    """The BGAK is kept, and repeated as it is."""

    def __init__(
        self, guards: Guards, idle: Idle, receiver: type[Receiver], jar: CookieJar, numbers: Numbers
    ) -> None:
        super().__init__(guards, idle, receiver, jar, numbers)
        self._bgaks: WeakKeyDictionary[Variables, Bgak] = WeakKeyDictionary()

    def bgak(self, v: Variables, now: float) -> Bgak:
        """See :class:`Actions`."""
        if v not in self._bgaks:
            self._bgaks[v] = super().bgak(v, now)
        return self._bgaks[v]


class PollsProlong(Actions):
    """Each POLL starts the release wait again."""

    def answer_poll(self, v: Variables, poll: Poll, now: float) -> None:
        """See :class:`Actions`."""
        super().answer_poll(v, poll, now)
        if v.release_at < math.inf:
            v.release_at = now + self.release_wait(v)


class CarriesBackOff(Actions):
    """Timer_CC goes on doubling from the BEGIN to the END of a call that is aborted."""

    def __init__(
        self, guards: Guards, idle: Idle, receiver: type[Receiver], jar: CookieJar, numbers: Numbers
    ) -> None:
        super().__init__(guards, idle, receiver, jar, numbers)
        self._carried: WeakKeyDictionary[Variables, int] = WeakKeyDictionary()

    def abort(self, v: Variables, text: str, reason: Reason, now: float) -> None:
        """See :class:`Actions`."""
        if v.state is State.OUTGOING:
            self._carried[v] = v.transmissions
        super().abort(v, text, reason, now)

    def wait_cc(self, v: Variables, transmissions: int) -> float:
        """See :class:`Actions`."""
        carried = self._carried.get(v, 0) if v.state is State.OUTGOING_RELEASE else 0
        return super().wait_cc(v, transmissions + carried)


class WantsBothCsns(Guards):
    """While an END is out, an END with R flag has to name both CSNs."""

    def is_valid(self, v: Variables, end: End) -> bool:
        """See :class:`Guards`."""
        if v.state is State.OUTGOING_RELEASE and end.flags & _R and v.peer_csn is not None:
            return end.peer_csn == v.csn and end.csn == v.peer_csn
        return super().is_valid(v, end)


class CountsReplaced(Idle):
    """The connection that a call replaces still takes a place."""

    def lacks_room(self, arrival: Arrival, begin: Begin) -> bool:
        """See :class:`Idle`."""
        taken = len(cast("StpEndpoint", self._listener).connections)
        return taken >= self._config.max_connections or super().lacks_room(arrival, begin)


class FlagsEqual(Idle):
    """The V flag is seen only where it is the only one."""

    def accept(self, arrival: Arrival, begin: Begin) -> None:
        """See :class:`Idle`."""
        if begin.flags == _FIN | _V:
            begin = replace(begin, flags=_FIN)
        super().accept(arrival, begin)


class AbortsAtHighest(Actions):
    """An END that aborts tells VR(H)."""

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        """See :class:`Actions`."""
        end = super().end(v, flags, reason)
        if flags & _A and v.receiver is not None:
            return replace(end, n_r=v.receiver.vr_h & PACKET_MASK)
        return end


class RandomAnew(Actions):
    """A call anew draws its CSN as if the endpoint had just started."""

    def __init__(
        self, guards: Guards, idle: Idle, receiver: type[Receiver], jar: CookieJar, numbers: Numbers
    ) -> None:
        drawn = random.Random(10)

        def draw(peer: Address) -> tuple[int, int]:
            return drawn.getrandbits(32), numbers(peer)[1]

        super().__init__(guards, idle, receiver, jar, draw)


class BareFin(Actions):
    """A BEGIN without data brings no SD."""

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        if not begin.data and begin.flags & _FIN:
            begin = replace(begin, flags=begin.flags & ~_FIN)
        super().take_call(v, begin, now)


class OnlyTheBegin(Sender):
    """What a call anew begins with is what the BEGIN carried; the SDs behind it are forgotten."""

    def restart(self, iss: int) -> None:
        """See :class:`Sender`."""
        for number in self._numbers[1:]:
            self._kept[number].data = b""
        super().restart(iss)


class FewCookies(Idle):
    """The limit of ten answers per second holds for cookies, too."""

    def give_cookie(self, arrival: Arrival, begin: Begin) -> None:
        """See :class:`Idle`."""
        if self._refusals.take(arrival.now):
            super().give_cookie(arrival, begin)


class AnyCsnOfTheCall(Guards):
    """A BGREJ is for us if it names any CSN of this call."""

    def __init__(self, idle: Idle) -> None:
        super().__init__(idle)
        self._named: WeakKeyDictionary[Variables, set[int]] = WeakKeyDictionary()

    def is_for_another(self, v: Variables, packet: Bgak | Bgrej) -> bool:
        """See :class:`Guards`."""
        if not isinstance(packet, Bgrej):
            return super().is_for_another(v, packet)
        named = self._named.setdefault(v, set())
        named.add(v.csn)
        return packet.peer_csn not in named


# Data transfer (section 6)


class OldStamp(Sender):
    """From the third transmission on an SD keeps its stamp."""

    def _transmitted(self, entry: SentSd) -> None:
        stamp = entry.stamp if entry.times > 1 else None
        super()._transmitted(entry)
        if stamp is not None:
            entry.stamp = stamp


class FillsTheWindow(Outgoing):
    """What is left of the window behind a large retransmission goes to small new SDs."""

    def transmit(self, now: float, put: Callable[[Packet], None]) -> None:
        """See :class:`Outgoing`."""
        sender, congestion = self.sender, self.congestion
        entry = sender.awaiting()
        if entry is not None and not congestion.first_retransmission:
            self.pacer.set_rates(now)
            if not congestion.room(sender.flight, entry.size):
                while sender.has_new and self._may_send_new():
                    self._send_new(now, put)
        super().transmit(now, put)


class ClosedAtVrR(Receiver):
    """A report shows no credit if it shows none beyond VR(R)."""

    def reported(self) -> None:
        """See :class:`Receiver`."""
        super().reported()
        self._closed = self.vr_mr <= self.vr_r


class HalfBadGuards(Guards):
    """An SDP with a bad POLL is not discarded."""

    def is_bad_poll(self, v: Variables, poll: Poll | Sdp) -> bool:
        """See :class:`Guards`."""
        return isinstance(poll, Poll) and super().is_bad_poll(v, poll)


class HalfBad(Actions):
    """Only the POLL of an SDP is discarded, its data is taken."""

    def take_sdp(self, v: Variables, sdp: Sdp, now: float) -> None:
        """See :class:`Actions`."""
        if sdp.n_ps and sdp.csn == v.peer_csn:
            super().take_sdp(v, sdp, now)
        else:
            self.receive_sd(v, sdp.n_s, sdp.data, sdp.flags & _FIN, now)


class WaitsAgain(Receiver):
    """Each further gap starts the waiting of all USTATs again."""

    def hold_back(self, gap: Run, until: float) -> None:
        """See :class:`Receiver`."""
        super().hold_back(gap, until)
        after = self._waiting[-1][2]
        self._waiting = [(first, end, after, until) for first, end, *_ in self._waiting]


class OnlyCredit(Sender):
    """A STAT with N(PS) 0 is about credit only."""

    def on_stat(self, stat: Stat) -> Report | None:
        """See :class:`Sender`."""
        read = self.read_report(stat)
        if stat.n_ps or read is None:
            return super().on_stat(stat)
        self.grant(stat.n_mr, read[1])
        return Report(None, self.flight)


class FreeFin(Sender):
    """An empty SD with FIN needs no credit."""

    def permitted(self) -> bool:
        """See :class:`Sender`."""
        return super().permitted() or (self.closed and not self._unsent)


class MergesFin(Sender):
    """A retransmission before an empty SD with FIN carries the flag itself."""

    def retransmit(self, entry: SentSd) -> None:
        """See :class:`Sender`."""
        follower = self._kept.get(entry.number + 1)
        if follower is not None and follower.fin and not follower.data:
            entry.fin = 1
        super().retransmit(entry)


class HastyEcho(Echo):
    """Closes after the peer's FIN, whatever has not been returned yet."""

    def run(self, connection: Connection) -> None:
        """See :class:`Echo`."""
        super().run(connection)
        if connection.peer_has_closed:
            connection.close()


class HastyHost(StpHost):
    """Serves :class:`HastyEcho`."""

    def __init__(self, address: str, config: StpConfig, seed: int, **more: Any) -> None:
        super().__init__(address, config, seed, services={**SERVICES, ECHO: HastyEcho}, **more)


# Polling, congestion and pacing (section 7)


class FrozenInterval(Polling):
    """Timer_POLL runs with the interval there was when it was started."""

    _due = math.inf

    def sent(self, now: float) -> None:
        """See :class:`Polling`."""
        if not self.is_due:
            self._due = now + self.poll_interval()
        super().sent(now)

    def poll_at(self, *, stopped: bool) -> float:
        """See :class:`Polling`."""
        if stopped or not self.is_due:
            return super().poll_at(stopped=stopped)
        return self._due


class CreditIsNoStop(Outgoing):
    """Window and lack of data make the sender stop, but credit does not."""

    def goes_on(self) -> bool:
        """See :class:`Outgoing`."""
        sender = self.sender
        if sender.awaiting() is None and sender.has_new and not sender.permitted():
            return self.congestion.room(sender.flight, sender.next_size())
        return super().goes_on()


class EmptyFin(Outgoing):
    """Only an SD with data and FIN asks at once."""

    def asks_with(self, entry: SentSd, now: float) -> bool:
        """See :class:`Outgoing`."""
        if entry.fin and not entry.data:
            entry = SentSd(entry.number, entry.data, 0, entry.size)
        return super().asks_with(entry, now)


class Lenient(Polling):
    """Timer_NO-RESPONSE can be stopped from outside."""

    def pardon(self) -> None:
        """The peer lives."""
        self._unanswered_since = math.inf


class SignOfLife(Outgoing):
    """A report that is discarded shows that the peer is there."""

    def discard(self, packet: Stat | Ustat, now: float) -> None:
        """See :class:`Outgoing`."""
        super().discard(packet, now)
        cast("Lenient", self.polling).pardon()


class MayForget(Polling):
    """Timer_KEEP-ALIVE can be stopped from outside."""

    def forget(self) -> None:
        """Nobody has to be kept alive."""
        self._heard_at = math.inf


class DoneSending(Outgoing):
    """An endpoint whose FIN is acknowledged has nothing to ask any more."""

    def transmit(self, now: float, put: Callable[[Packet], None]) -> None:
        """See :class:`Outgoing`."""
        super().transmit(now, put)
        if self.sender.fin_acknowledged:
            cast("MayForget", self.polling).forget()


class OwnMaxSd(Congestion):
    """The initial window counts in the MaxSD that this endpoint announces."""

    def __init__(self, config: StpConfig) -> None:
        self._own = config.own_max_sd
        super().__init__(config)

    def initial_window(self) -> int:
        """See :class:`Congestion`."""
        return self._initial * self._own


class FreshStart(Outgoing):
    """What is sent when everything has been acknowledged is not paced."""

    _fresh = False

    def transmit(self, now: float, put: Callable[[Packet], None]) -> None:
        """See :class:`Outgoing`."""
        self._fresh = not self.sender.unacknowledged
        super().transmit(now, put)

    def _may_leave(self) -> bool:
        return self._fresh or super()._may_leave()


class CountsSds(Sender):
    """Whether the window is used is judged by SDs, each as long as the longest."""

    def _take(self, packet: Stat | Ustat, n_ps: int | None, n_r: int) -> Report:
        flying = sum(not entry.queued for entry in self._kept.values())
        report = super()._take(packet, n_ps, n_r)
        report.flight = flying * self.max_sd
        return report


class SecondLossIsFree(Sender):
    """The loss of a retransmission belongs to the loss before."""

    def queue(self, entry: SentSd, report: Report) -> None:
        """See :class:`Sender`."""
        before = report.new_loss
        super().queue(entry, report)
        if entry.times > 1:
            report.new_loss = before


def with_parts(*parts: type[Any], **settings: Any) -> Callable[[Setup], Setup]:
    """A change of the setup."""

    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup.configured(**settings)

    return configure


FAULTS = (
    Fault(
        "stp-b10-bound-alone",
        "a list of exactly MaxSTAT elements is followed by a STAT that holds its bound alone",
        "STP-PF-011", with_parts(BoundAlone),
    ),
    Fault(
        "stp-b10-sorted-list",
        "sorts the elements of a STAT's list as unsigned numbers, so that it is wrong at the wrap",
        "STP-PF-011", with_parts(SortedList),
    ),
    Fault(
        "stp-b10-odd-cookie-counts",
        "a Cookie option of an impossible length hides the good one beside it",
        "STP-PF-018", with_parts(OddCookieCounts),
    ),
    Fault(
        "stp-b10-anew-keeps-size",
        "a call anew keeps the size of its SDs if the new cookie came with a smaller MaxSD",
        "STP-PF-009", with_parts(KeepsSize),
    ),
    Fault(
        "stp-b10-stamps-first",
        "of the STATs of a list that is cut only the first returns the timestamp",
        "STP-PF-012", with_parts(StampsFirst),
    ),
    Fault(
        "stp-b10-whole-octet",
        "reads optlen of a BGREJ from the whole octet, the reserved half included",
        "STP-PF-004", with_parts(WholeOctet),
    ),
    Fault(
        "stp-b10-short-store",
        "a cookie of 32 octets comes back without its last one",
        "STP-PF-017; STP-CC-039", with_parts(ShortStore),
    ),
    Fault(
        "stp-b10-voids-once",
        "a call that is given a second cookie sends its third BEGIN without the V flag",
        "STP-CC-039", with_parts(VoidsOnce),
    ),
    Fault(
        "stp-b10-thrifty",
        "a cookie whose call was refused for good is used again for the next call",
        "STP-CC-039", with_parts(Thrifty),
    ),
    Fault(
        "stp-b10-older-is-old",
        "a later call of a restarted peer whose new CSN is older than the last is ignored",
        "STP-CC-041", with_parts(OlderIsOld, SilentToOlder),
    ),
    Fault(
        "stp-b10-keeps-bgak",
        "answers a repeated BEGIN with a copy of its first BGAK, whatever has arrived since",
        "STP-CC-015", with_parts(KeepsBgak),
    ),
    Fault(
        "stp-b10-polls-prolong",
        "each POLL of the caller starts the release wait of the one called again",
        "STP-CC-031", with_parts(PollsProlong),
    ),
    Fault(
        "stp-b10-carries-back-off",
        "the END of a call given up in state 2 is repeated after the doubled times of the BEGIN",
        "STP-CC-026", with_parts(CarriesBackOff),
    ),
    Fault(
        "stp-b10-wants-both-csns",
        "in state 4 an END with R flag and CSN of the sender zero is not accepted, and END repeated",
        "STP-CC-026", with_parts(WantsBothCsns),
    ),
    Fault(
        "stp-b10-counts-replaced",
        "an endpoint with all its connections refuses a call that replaces one of them",
        "STP-CC-012", with_parts(CountsReplaced), setting="small-over-ip",
    ),
    Fault(
        "stp-b10-flags-equal",
        "a BEGIN with FIN and V flag does not make the earlier cookies of its address void",
        "STP-CC-035", with_parts(FlagsEqual),
    ),
    Fault(
        "stp-b10-aborts-at-highest",
        "N(R) of an END with A flag is VR(H), beyond what is missing",
        "STP-CC-045", with_parts(AbortsAtHighest),
    ),
    Fault(
        "stp-b10-random-anew",
        "the CSN of a call anew is drawn at random, older than the one before half of the times",
        "STP-CC-010", with_parts(RandomAnew),
    ),
    Fault(
        "stp-b10-bare-fin",
        "the FIN of a BEGIN that carries a cookie and no data is not taken",
        "STP-CC-012", with_parts(BareFin),
    ),
    Fault(
        "stp-b10-only-the-begin",
        "a call anew repeats the data of the BEGIN, but not that of the early SDs behind it",
        "STP-CC-037", with_parts(OnlyTheBegin),
    ),
    Fault(
        "stp-b10-few-cookies",
        "gives no more than ten cookies per second, shared with its other refusals",
        "STP-CC-036", with_parts(FewCookies),
    ),
    Fault(
        "stp-b10-any-csn-of-the-call",
        "a late or repeated BGREJ to an earlier BEGIN of the same call is acted upon",
        "STP-SEC-005; STP-CC-037", with_parts(AnyCsnOfTheCall),
    ),
    Fault(
        "stp-b10-old-stamp",
        "the stamp of an SD is not renewed from its third transmission on",
        "STP-DT-003", with_parts(OldStamp),
    ),
    Fault(
        "stp-b10-fills-the-window",
        "while a retransmission does not fit into the window, smaller new SDs go before it",
        "STP-DT-009", with_parts(FillsTheWindow),
    ),
    Fault(
        "stp-b10-closed-at-vr-r",
        "a window that a report closed while SDs were missing is reopened without announcement",
        "STP-DT-024", with_parts(ClosedAtVrR),
    ),
    Fault(
        "stp-b10-half-bad",
        "takes the data of an SDP with a wrong CSN or N(PS) 0, and discards only its POLL",
        "STP-DT-008", with_parts(HalfBadGuards, HalfBad),
    ),
    Fault(
        "stp-b10-waits-again",
        "each further gap starts the waiting of the USTATs held back again",
        "STP-DT-031", with_parts(WaitsAgain), setting="reordering",
    ),
    Fault(
        "stp-b10-only-credit",
        "takes no N(R) from a STAT that announces credit",
        "STP-DT-029", with_parts(OnlyCredit),
    ),
    Fault(
        "stp-b10-free-fin",
        "sends an empty SD with FIN without credit for it",
        "STP-DT-011", with_parts(FreeFin),
    ),
    Fault(
        "stp-b10-merges-fin",
        "a retransmission of the SD before an empty one with FIN carries the FIN flag, too",
        "STP-DT-015", with_parts(MergesFin),
    ),
    Fault(
        "stp-b10-hasty-echo",
        "echo closes at the peer's FIN before it has returned what it could not write yet",
        "STP-DT-030", with_parts(HastyHost, send_buffer=4096),
    ),
    Fault(
        "stp-b10-frozen-interval",
        "Timer_POLL runs to its end with the interval of its start though that has fallen",
        "STP-PL-001", with_parts(FrozenInterval),
    ),
    Fault(
        "stp-b10-credit-is-no-stop",
        "does not poll early when it is credit that forbids the next SD",
        "STP-PL-003", with_parts(CreditIsNoStop),
    ),
    Fault(
        "stp-b10-empty-fin",
        "an empty SD with FIN shortly after a POLL is not followed by one",
        "STP-PL-004", with_parts(EmptyFin),
    ),
    Fault(
        "stp-b10-sign-of-life",
        "reports that it discards keep a peer from being given up",
        "STP-PL-008", with_parts(SignOfLife, Lenient),
    ),
    Fault(
        "stp-b10-done-sending",
        "sends no keep-alive POLL once its own FIN is acknowledged, though the peer still sends",
        "STP-PL-010", with_parts(DoneSending, MayForget, keep_alive=15.0), ics={"keep_alive_s": 15},
    ),
    Fault(
        "stp-b10-own-max-sd",
        "counts the initial window in its own MaxSD, whatever the peer's is",
        "STP-CG-001", with_parts(OwnMaxSd),
    ),
    Fault(
        "stp-b10-fresh-start",
        "does not pace what it sends when everything before has been acknowledged",
        "STP-CG-008", with_parts(FreshStart),
    ),
    Fault(
        "stp-b10-counts-sds",
        "lets the window grow by small SDs, as if each of them had filled SMSS octets of it",
        "STP-CG-010", with_parts(CountsSds),
    ),
    Fault(
        "stp-b10-second-loss-is-free",
        "does not halve the window when a retransmission is lost again",
        "STP-CG-005", with_parts(SecondLossIsFree),
    ),
)  # fmt: skip
