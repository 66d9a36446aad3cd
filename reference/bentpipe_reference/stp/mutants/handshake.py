"""Mutants of cookies: giving, taking and spending them (STP-CC-034 to -043, STP-SEC-006)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import MOST_CALLS_ANEW
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar, Cookies, Ticket
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.mutants import mutant, overriding, returning
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Begin, Bgak, Bgrej, Packet, Reason
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables

# Calling


@mutant("stp-returns-the-used-cookie", breaks="STP-CC-012")
class ReturnsTheUsedCookie(Actions):
    """Puts the cookie of the BEGIN into the BGAK."""

    def bgak(self, v: Variables, now: float) -> Bgak:
        bgak, begin = super().bgak(v, now), v.handled
        return replace(bgak, cookie=begin.cookie) if isinstance(begin, Begin) else bgak


@mutant("stp-gives-one-cookie-for-a-connection", breaks="STP-CC-012")
class GivesOneCookieForAConnection(Actions):
    """Repeats a BGAK with the cookie of the first, though that may have been used."""

    def bgak(self, v: Variables, now: float) -> Bgak:
        made = super().bgak(v, now)
        given: dict[int, bytes | None] = self.__dict__.setdefault("given", {})
        return replace(made, cookie=given.setdefault(v.csn, made.cookie))


mutant("stp-never-calls", "STP-CC-047", "sends no BEGIN when its user calls")(
    returning(Actions, Actions.send_first_begin, None)
)
mutant("stp-never-has-room", "STP-CC-012", "refuses every call for want of resources")(
    returning(Idle, Idle.lacks_room, True)
)


@mutant("stp-calls-with-data", breaks="STP-CC-034")
class CallsWithData(Actions):
    """Puts data into a BEGIN without a cookie."""

    def repeat_begin(self, v: Variables, now: float) -> None:
        if v.begin is not None and v.ticket is None and not v.transmissions:
            data, fin = self.first_data(v, v.begin)
            v.begin = replace(v.begin, data=data, flags=fin)
        super().repeat_begin(v, now)


mutant("stp-calls-anew-for-any-reason", "STP-CC-037", "calls anew for any BGREJ with a cookie")(
    overriding(
        Guards, Guards.gives_cookie,
        lambda self, v, bgrej: bgrej.cookie is not None and v.calls_anew < MOST_CALLS_ANEW,  # noqa: ARG005
    )
)  # fmt: skip
mutant("stp-does-not-call-anew", "STP-CC-037", "gives up when it is given a cookie")(
    returning(Guards, Guards.gives_cookie, False)
)


@mutant("stp-calls-anew-with-its-number", breaks="STP-CC-037")
class CallsAnewWithItsNumber(Actions):
    """Calls anew with the CSN it had."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        csn, chosen = v.csn, self._numbers
        self._numbers = lambda peer: (csn, chosen(peer)[1])
        super().call_anew(v, bgrej, now)
        self._numbers = chosen


@mutant("stp-calls-anew-late", breaks="STP-CC-037")
class CallsAnewLate(Actions):
    """Calls anew only when Timer_CC expires."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        before = len(v.outbox)
        super().call_anew(v, bgrej, now)
        del v.outbox[before:]


mutant("stp-calls-anew-for-ever", "STP-CC-037", "calls anew as often as it is given a cookie")(
    overriding(
        Guards, Guards.gives_cookie,
        lambda self, v, bgrej: bgrej.reason == Reason.COOKIE and bgrej.cookie is not None,  # noqa: ARG005
    )
)  # fmt: skip


@mutant("stp-calls-anew-from-another-port", breaks="STP-CC-037")
class CallsAnewFromAnotherPort(Actions):
    """Calls anew from the next port."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        own, peers = v.outgoing.ports
        v.outgoing.ports = (own + 1, peers)
        super().call_anew(v, bgrej, now)


@mutant("stp-spends-cookies-twice", breaks="STP-CC-039")
class SpendsCookiesTwice(CookieJar):
    """Uses a cookie for every call."""

    def take(self, peer: Hashable, now: float) -> Ticket | None:
        ticket = super().take(peer, now)
        if ticket is not None:
            self.put(peer, ticket)
        return ticket


@mutant("stp-alters-cookies", breaks="STP-CC-039")
class AltersCookies(Actions):
    """Pads the cookie that it returns."""

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        assert bgrej.cookie is not None
        padded = bgrej.cookie + bytes(-len(bgrej.cookie) % 32)
        super().call_anew(v, replace(bgrej, cookie=padded), now)


mutant("stp-trusts-early-cookies", "STP-CC-039", "keeps its cookies when a call fails")(
    returning(CookieJar, CookieJar.end, None)
)
mutant("stp-never-sets-v", "STP-CC-039", "sends no BEGIN with V flag")(
    returning(CookieJar, CookieJar.voids, False)
)


@mutant("stp-keeps-v-of-waiting-calls", breaks="STP-CC-039")
class KeepsVOfWaitingCalls(CookieJar):
    """A call made before another failed keeps its V flag, whatever has opened since."""

    def open(self, peer: Hashable, made: int) -> None:
        before = self._mark(peer).before
        super().open(peer, made)
        self._remember(peer, self._mark(peer)._replace(before=before))


@mutant("stp-starts-without-v", breaks="STP-CC-039")
class StartsWithoutV(CookieJar):
    """Sets the V flag after a call that has failed, and not after its start."""

    def voids(self, peer: Hashable, made: int) -> bool:
        return peer in self._marks and super().voids(peer, made)


@mutant("stp-forgets-cookies-early", breaks="STP-CC-040")
class ForgetsCookiesEarly(CookieJar):
    """Keeps a cookie for five minutes only."""

    def take(self, peer: Hashable, now: float) -> Ticket | None:
        return super().take(peer, now + 300.0)


mutant("stp-keeps-no-cookies", "STP-CC-040", "asks for a cookie with every call")(
    returning(CookieJar, CookieJar.put, None)
)
mutant("stp-begins-empty", "STP-CC-040", "sends its BEGIN without data, though with a cookie")(
    returning(Actions, Actions.first_data, (b"", 0))
)


@mutant("stp-polls-while-calling", breaks="STP-CC-042")
class PollsWhileCalling(Outgoing):
    """Polls before the BGAK."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.polls = True


@mutant("stp-opens-without-a-poll", breaks="STP-CC-042")
class OpensWithoutAPoll(Outgoing):
    """Does not ask what has arrived when the BGAK comes, but a poll interval later."""

    def open(self, now: float) -> None:
        super().open(now)
        self.asks_at_once = False
        self.polling.polled(now)
        self.polling.sent(now)


mutant("stp-ignores-calls-while-calling", "STP-CC-043", "does not refuse a call while it calls")(
    returning(Actions, Actions.refuse_call, None)
)


@mutant("stp-listens-while-calling", breaks="STP-CC-043")
class ListensWhileCalling(Actions):
    """Gives a cookie to one that it calls itself."""

    def refuse_call(self, v: Variables, begin: Begin, now: float) -> None:
        self.idle.give_cookie(Arrival(v.identity.peer, now), begin)


# Being called


class _VoidsNothing(Cookies):
    def use(self, peer: Hashable, cookie: bytes | None, *, voids: bool) -> None:
        super().use(peer, cookie, voids=False)


mutant("stp-ignores-v", "STP-CC-035", "takes a cookie made before that of a BEGIN with V flag")(
    _VoidsNothing
)


class _VoidsAlways(Cookies):
    def use(self, peer: Hashable, cookie: bytes | None, *, voids: bool) -> None:
        super().use(peer, cookie, voids=True)


mutant("stp-voids-at-every-call", "STP-CC-012", "takes no cookie made before one that was used")(
    _VoidsAlways
)


@mutant("stp-takes-old-cookies", breaks="STP-CC-035")
class TakesOldCookies(Cookies):
    """Takes cookies for one second too long."""

    life_s = 601.0


@mutant("stp-delivers-without-a-cookie", breaks="STP-CC-035")
class DeliversWithoutACookie(Idle):
    """Opens a connection by a BEGIN without a cookie."""

    def receive(self, packet: Packet, arrival: Arrival) -> None:
        if isinstance(packet, Begin) and packet.cookie is None:
            packet = replace(packet, cookie=self.cookies.make(arrival.peer, arrival.now))
        super().receive(packet, arrival)


mutant("stp-gives-no-cookies", "STP-CC-036", "does not answer a BEGIN without a good cookie")(
    returning(Idle, Idle.give_cookie, None)
)


@mutant("stp-repeats-its-cookies", breaks="STP-CC-036")
class RepeatsItsCookies(Cookies):
    """Gives an address the same cookie again."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._made: dict[Hashable, bytes] = {}

    def make(self, peer: Hashable, now: float) -> bytes:
        if peer not in self._made:
            self._made[peer] = super().make(peer, now)
        return self._made[peer]


mutant("stp-exchanges-used-cookies", "STP-CC-038", "answers a used cookie with a fresh one")(
    returning(Cookies, Cookies.is_used, False)
)


@mutant("stp-forgets-used-cookies", breaks="STP-CC-038")
class ForgetsUsedCookies(Cookies):
    """Remembers a used cookie for 899 seconds."""

    memory_s = 899.0


@mutant("stp-keeps-the-older-connection", breaks="STP-CC-041")
class KeepsTheOlderConnection(Connection):
    """Discards a later call of its peer."""

    def receive(self, packet: Packet, now: float) -> bool:
        known = self.state in (State.READY, State.OUTGOING_RELEASE)
        if known and isinstance(packet, Begin) and packet.csn != self.peer_csn:
            return False
        return super().receive(packet, now)


mutant("stp-yields-to-any-call", "STP-CC-041", "ends a connection for a BEGIN that opens none")(
    returning(Guards, Guards.would_open, True)
)

# The octets of a cookie


class _Unsigned(Cookies):
    def number(self, peer: Hashable, cookie: bytes | None) -> int | None:
        return None if cookie is None or len(cookie) != 16 else int.from_bytes(cookie[:8], "big")


mutant("stp-signs-nothing", "STP-SEC-006", "takes a cookie whose code is wrong")(_Unsigned)


@mutant("stp-signs-no-address", breaks="STP-SEC-006")
class SignsNoAddress(Cookies):
    """Makes cookies that are good for every address."""

    def code(self, number: bytes, peer: Hashable) -> bytes:
        return super().code(number, None)


@mutant("stp-signs-briefly", breaks="STP-SEC-006")
class SignsBriefly(Cookies):
    """Codes with one octet that changes."""

    def code(self, number: bytes, peer: Hashable) -> bytes:
        return super().code(number, peer)[:1] + bytes(7)

    def number(self, peer: Hashable, cookie: bytes | None) -> int | None:
        if cookie is not None:
            cookie = cookie[:9] + bytes(7)
        return super().number(peer, cookie)


@mutant("stp-answers-without-a-cookie", breaks="STP-PF-017")
class AnswersWithoutACookie(Actions):
    """Sends BGAKs without a cookie."""

    def bgak(self, v: Variables, now: float) -> Bgak:
        return replace(super().bgak(v, now), cookie=None)


@mutant("stp-refuses-long-cookies", breaks="STP-PF-017")
class RefusesLongCookies(Guards):
    """Does not call anew with a cookie of more than 16 octets."""

    def gives_cookie(self, v: Variables, bgrej: Bgrej) -> bool:
        return super().gives_cookie(v, bgrej) and len(bgrej.cookie or b"") <= 16
