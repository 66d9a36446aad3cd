"""Cookies: those that a listener makes, and those that a caller has received (STP/1 section 5)."""

from __future__ import annotations

import hashlib
import hmac
from collections import deque
from collections.abc import Hashable
from heapq import heappop, heappush
from typing import NamedTuple

from bentpipe_reference.stp.config import COOKIE_LIFE_S, COOKIE_MEMORY_S

_NUMBER_OCTETS = _CODE_OCTETS = 8
"""Octets of a cookie's number and of its code: 64 bits (STP-SEC-006)."""

_PER_SECOND = 1_000_000
"""Units of a cookie's number in a second."""

_MOST_PER_PEER = 8
"""Cookies kept from one address, the newest; a caller gets one with each call and uses it for the
next."""


class Cookies:
    """Makes cookies, and remembers those by which connections have been opened.

    A cookie is a number, the time in microseconds when it was made, and a code over the number and
    the caller's address. Numbers rise with each cookie. Addresses are only compared.

    Args:
        secret: key of the codes, new at each start of the endpoint (STP-SEC-006).
        capacity: used cookies that are remembered (STP-CC-038).
    """

    life_s: float = COOKIE_LIFE_S
    memory_s: float = COOKIE_MEMORY_S

    def __init__(self, secret: bytes, capacity: int) -> None:
        self._secret = secret
        self._capacity = capacity
        self._last = -1
        self._used: dict[int, Hashable] = {}  # the address, by number
        self._oldest: list[int] = []  # a heap of them
        self._void: dict[Hashable, int] = {}  # cookies below are void, by address

    def __len__(self) -> int:
        """How many used cookies are remembered."""
        return len(self._used)

    def make(self, peer: Hashable, now: float) -> bytes:
        """A fresh cookie for ``peer`` at ``now`` seconds, later than all before."""
        self._last = max(self._last + 1, int(now * _PER_SECOND))
        number = self._last.to_bytes(_NUMBER_OCTETS, "big")
        return number + self.code(number, peer)

    def code(self, number: bytes, peer: Hashable) -> bytes:
        """STP-SEC-006: the code over a number and an address."""
        told = number + repr(peer).encode()
        return hashlib.blake2b(told, digest_size=_CODE_OCTETS, key=self._secret).digest()

    def number(self, peer: Hashable, cookie: bytes | None) -> int | None:
        """The number of a cookie made for ``peer``, None if it was not."""
        if cookie is None:
            return None
        number = cookie[:_NUMBER_OCTETS]
        if not hmac.compare_digest(self.code(number, peer), cookie[_NUMBER_OCTETS:]):
            return None
        return int.from_bytes(number, "big")

    def is_good(self, peer: Hashable, cookie: bytes | None, now: float) -> bool:
        """STP-CC-035: made for ``peer`` not long ago, neither used nor void."""
        number = self.number(peer, cookie)
        if number is None or now * _PER_SECOND - number > self.life_s * _PER_SECOND:
            return False
        return number > self._void.get(peer, -1) and number not in self._used

    def is_used(self, peer: Hashable, cookie: bytes | None, now: float) -> bool:
        """STP-CC-038: whether it is remembered as one of this address."""
        self._forget_old(now)
        return self.number(peer, cookie) in self._used

    def has_room(self, now: float) -> bool:
        """STP-CC-038: whether one more can be remembered."""
        self._forget_old(now)
        return len(self._used) < self._capacity

    def use(self, peer: Hashable, cookie: bytes | None, *, voids: bool) -> None:
        """Remember a good cookie by which a connection is opened.

        Args:
            peer: its address.
            cookie: the cookie.
            voids: the BEGIN has the V flag: earlier cookies of the address are no longer good.
        """
        number = self.number(peer, cookie)
        assert number is not None
        self._used[number] = peer
        heappush(self._oldest, number)
        if voids:
            self._void[peer] = number

    def _forget_old(self, now: float) -> None:
        oldest, before = self._oldest, (now - self.memory_s) * _PER_SECOND
        while oldest and oldest[0] < before:
            number = heappop(oldest)
            peer = self._used.pop(number)
            if self._void.get(peer) == number:
                del self._void[peer]


class Ticket(NamedTuple):
    """A cookie that was received, for one call.

    Attributes:
        cookie: what to return.
        max_sd: the MaxSD that came with it, None if none did (STP-PF-009).
        time: when it was received, seconds.
        asked: the number of the BEGIN that it answers, see :meth:`CookieJar.begin`.
    """

    cookie: bytes
    max_sd: int | None
    time: float
    asked: int


class _Mark(NamedTuple):
    """What STP-CC-039 asks of calls to an address.

    Attributes:
        ended: the number of the last BEGIN before the endpoint started, or a call with a cookie
            ended in state 2.
        voids: no BEGIN with V flag of a call made since has opened a connection.
        before: what ``voids`` was before, for the calls made before.
    """

    ended: int
    voids: bool = True
    before: bool = True


class CookieJar:
    """The cookies that an endpoint has received and not yet used, by peer address.

    Args:
        capacity: addresses whose cookies are kept, and addresses to which calls have failed or been
            opened; those heard of longest ago make room.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held: dict[Hashable, deque[Ticket]] = {}
        self._begun = 0
        self._marks: dict[Hashable, _Mark] = {}
        self._others = _Mark(0)  # of the addresses that are not in it

    def __len__(self) -> int:
        """How many cookies are kept."""
        return sum(map(len, self._held.values()))

    def begin(self) -> int:
        """Number a BEGIN that is sent for the first time, from 1 on."""
        self._begun += 1
        return self._begun

    def end(self, peer: Hashable) -> None:
        """STP-CC-039: a call with a cookie has ended in state 2, and its BEGIN may still arrive."""
        self._held.pop(peer, None)
        self._remember(peer, _Mark(self._begun, before=self._mark(peer).voids))

    def open(self, peer: Hashable, made: int) -> None:
        """STP-CC-039: a BEGIN with V flag has opened a connection.

        ``made`` is the number of the first BEGIN of its call. No call made before asks for more.
        """
        mark = self._mark(peer)
        voids = mark.voids and made <= mark.ended
        self._remember(peer, mark._replace(voids=voids, before=False))

    def voids(self, peer: Hashable, made: int) -> bool:
        """STP-CC-039: whether a BEGIN with a cookie has the V flag.

        ``made`` is the number of the first BEGIN of its call.
        """
        mark = self._mark(peer)
        return mark.voids if made > mark.ended else mark.before

    def _mark(self, peer: Hashable) -> _Mark:
        return self._marks.get(peer, self._others)

    def _remember(self, peer: Hashable, mark: _Mark) -> None:
        self._marks.pop(peer, None)
        self._marks[peer] = mark
        if len(self._marks) > self._capacity:
            oldest = self._marks.pop(next(iter(self._marks)))
            self._others = _Mark(max(self._others.ended, oldest.ended))

    def put(self, peer: Hashable, ticket: Ticket) -> None:
        """Keep a cookie from ``peer``, unless it is of no use."""
        if ticket.asked > self._mark(peer).ended:
            held = self._held.pop(peer, None) or deque(maxlen=_MOST_PER_PEER)
            held.append(ticket)
            self._held[peer] = held
            if len(self._held) > self._capacity:
                del self._held[next(iter(self._held))]

    def take(self, peer: Hashable, now: float) -> Ticket | None:
        """STP-CC-040: a cookie that may be good, which is then gone."""
        held = self._held.get(peer)
        while held:
            ticket = held.popleft()
            if now - ticket.time <= COOKIE_LIFE_S:
                return ticket
        return None
