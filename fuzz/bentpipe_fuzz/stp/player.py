"""The tester's side of an STP conversation: what the steps of a script do.

Places are counts of SDs of a direction, from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bentpipe_conformance.engine.lane import LaneError
from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.steps import widen
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW, Peer, Role

from bentpipe_fuzz.campaign.player import LONGEST_S, long_verb, verb, verbs_of
from bentpipe_fuzz.stp.odd import MOST_OF_BEGIN, raw_of
from bentpipe_fuzz.stp.telling import TellingPlayer

MOST_SDS = 200
"""SDs that one step sends at most."""

MOST_ROUNDS = 8
"""How often one step uses all credit at most."""

MOST_COOKIES = 20
"""Cookies that one step asks for at most."""

ENDS_S = 5.0
"""Seconds after which one that was called sends the END that its caller does not (STP-CC-031)."""


class Player(TellingPlayer):
    """See :class:`BasePlayer`."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self.used: list[bytes] = []
        self._earlier: Connection | None = None

    # -- users

    @verb
    def open(self, service: str = "chargen", octets: int = 0, **own: Any) -> None:
        """Call a service, with so many octets in the BEGIN.

        ``own`` is what the tester offers; ``options`` among it are raw ones (hexadecimal), and
        with ``fin`` these octets are all.
        """
        own = raw_of(own)
        data = pattern(0, min(octets, MOST_OF_BEGIN))
        self.connection = None
        # The link may lose the first.
        with suppress(NotReached):
            self.connection = self.peer.connect(service, data=data, **own)
        if self.connection is None:
            self.connection = self.peer.connect(service, data=data, **own)
        self.ended = bool(own.get("fin"))

    @verb
    def restart(self, service: str = "chargen", octets: int = 0, ahead: int = 0) -> None:
        """Forget the connection, and call again between the same ports.

        Args:
            service: see :meth:`open`.
            octets: see :meth:`open`.
            ahead: distance of the CSN from the one before; 0: the tester's next.
        """
        last = self.connection
        if last is not None:
            own = {"csn": (last.csn + ahead) % (1 << 32)} if ahead else {}
            self.open(service, octets, source_port=last.source_port, **own)

    @verb
    def call(self, role: str = "send", octets: int = 20_000) -> None:
        """Have the implementation's user call the tester, in order to send or to receive."""
        self.ring(role, octets)
        self.answer()

    @verb
    def ring(self, role: str = "send", octets: int = 20_000, anew: bool = True) -> None:
        """Have the implementation's user call the tester, who does not answer yet.

        Args:
            role: ``send`` or ``receive``.
            octets: what a sender has.
            anew: whether a call without a cookie of the tester's is given one, and comes again.
        """
        self.connection = None
        wanted: Role = "send" if role == "send" else "receive"
        # Not every implementation can be asked to.
        with suppress(LaneError):
            self.connection = self.peer.summon(wanted, octets=octets, anew=anew)

    @verb
    def answer(self, credit: int | None = None, **fields: Any) -> None:
        """Send a BGAK with these fields.

        Args:
            credit: SDs that it permits, and those after it until more are.
            fields: fields of the packet; ``options`` are raw ones (hexadecimal).
        """
        connection, fields = self.connection, raw_of(fields)
        if connection is not None and not connection.closed:
            if credit is not None:
                connection.reception.vr_mr = connection.reception.vr_r + credit
            connection.options = fields.pop("options", connection.options)
            with suppress(ValueError, KeyError, TypeError):
                connection.bgak(**fields)

    @verb
    def refuse(
        self, reason: int = 6, cookie: bool = True, size: int = 16, max_sd: int | None = None,
        earlier: bool = False,
    ) -> None:  # fmt: skip
        """Send a BGREJ with this reason, and with a cookie; a call anew is the connection then.

        Args:
            reason: its reason.
            cookie: whether it has a cookie.
            size: octets of the cookie.
            max_sd: its MaxSD; none when omitted.
            earlier: whether it refuses again the BEGIN in whose place another has come.
        """
        connection = self.connection
        if earlier and self._earlier is not None:
            self._earlier.send(codec.BGREJ, reason=reason & 255, cookie=self.peer.jar.make())
        elif connection is not None and not connection.closed:
            baked = self.peer.jar.make(min(max(size, 8), 32)) if cookie else None
            with suppress(ValueError, KeyError, TypeError):
                connection.send(codec.BGREJ, reason=reason & 255, cookie=baked, max_sd=max_sd)
            if cookie and reason == CALL_ANEW:
                self._earlier = connection
                self.connection = self.peer.await_anew(connection, connection.rtt + 0.5)

    @verb
    def knock(
        self, service: str | int = "discard", back: int = 0, flip: int = -1, voiding: bool = False,
        fin: bool = False, octets: int = 0, over: int = 0, here: bool = False, stay: bool = False,
        **own: Any,
    ) -> None:  # fmt: skip
        """Call with a cookie and look at no answer.

        Args:
            service: see :meth:`open`.
            back: which cookie: 0 for the oldest that has not been used, 1 for the last that was,
                and so on; -1 for a new one, while those that the tester has stay as they are.
            flip: number of a bit of it that is changed; below 0: none.
            voiding: whether older cookies are to be void (the V flag).
            fin: whether the stream ends at once.
            octets: of data, at most what the implementation takes,
            over: and so many more.
            here: between the ports of the connection.
            stay: whether the tester goes on with that one then, as if it had not called.
            own: what the tester offers, see :meth:`open`.
        """
        cookie = self._cookie(service, back)
        self.used.append(cookie)
        if flip >= 0:
            changed = bytearray(cookie)
            changed[flip // 8 % len(changed)] ^= 1 << flip % 8
            cookie = bytes(changed)
        last, own = self.connection, raw_of(own)
        if here and last is not None:
            own["source_port"] = last.source_port
            service = last.port
        data = pattern(0, min(max(octets, 0), self.peer.jar.max_sd) + min(max(over, 0), 8))
        made = self.peer.begin(
            service, data=data, cookie=cookie, voiding=voiding, fin=fin, **own
        )  # fmt: skip
        if here and stay and last is not None:
            made.closed = "the tester goes on with the connection before"
            self.peer.add(last)
            return
        self.connection = made
        self.ended = fin

    def _cookie(self, service: str | int, back: int) -> bytes:
        """A cookie for a call, see :meth:`knock`."""
        if back < 0:
            before = [*self.peer.jar.kept]
            cookie = self.peer.fresh_cookie(service)
            self.peer.jar.kept.extend(before)
            return cookie
        return self.used[-back] if 0 < back <= len(self.used) else self.peer.cookie(service)

    @verb
    def collect(self, cookies: int = 1, service: str = "discard") -> None:
        """Ask for cookies by calls without one, and keep all that there are."""
        for _ in range(min(cookies, MOST_COOKIES)):
            asking = self.peer.begin(service)
            self.peer.pump_until(lambda c=asking: bool(c.closed), self.peer.patience)  # type: ignore[misc]

    @verb
    def quit(self, heard: bool = True) -> None:
        """See :meth:`BasePlayer.quit`.

        Args:
            heard: whether the tester answers the END.
        """
        if self.connection is not None:
            self.connection.polite = heard
        super().quit()

    @verb
    def hang_up(self) -> None:
        """End both streams and leave the implementation's END without an answer."""
        connection = self.connection
        if connection is not None and not connection.closed and not self.ended:
            self.ended, connection.polite = True, False
            connection.sd(b"the end", fin=True, poll=True)
            with suppress(NotReached):
                within = 4 * connection.rtt + ENDS_S
                connection.serve(lambda: bool(connection.closed), within=within)

    @verb
    def write(
        self, sds: int = 1, octets: int = 100, poll: bool = False, gap: float = 0.0,
        losing: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Send new SDs.

        Args:
            sds: how many.
            octets: of each, at most what the implementation takes.
            poll: whether the last one asks.
            gap: seconds between them.
            losing: those that are lost, counted from 0.
        """
        connection = self.connection
        if connection is None or self.ended:
            return
        last = min(sds, MOST_SDS) - 1
        for number in range(last + 1):
            if connection.closed:
                return
            if number in losing:
                connection.sds(1, max(octets, 0), skip=[connection.vt_s])
            else:
                connection.sd(max(octets, 0), poll=poll and number == last)
            if gap:
                self.receive(gap)

    @long_verb
    def fill(self, octets: int = 8, leaving: int = 0, rounds: int = 1) -> None:
        """Send what the credit permits at once, but for so many SDs.

        Args:
            octets: of each SD.
            leaving: SDs that the credit still permits afterwards.
            rounds: how often at most; after each it asks for more credit, if there are several.
        """
        connection = self.connection
        if connection is None or self.ended:
            return
        for _ in range(min(max(rounds, 1), MOST_ROUNDS)):
            count = connection.vt_ms - connection.vt_s - leaving
            if connection.closed or count <= 0:
                return
            connection.sds(min(count, MOST_SDS), max(octets, 0))
            if rounds > 1:
                connection.poll()
                self.receive(connection.rtt + 0.1, credit=None)

    @long_verb
    def widen(self, sds: int = 100) -> None:
        """Send what the credit permits, until it permits so many SDs at a time."""
        connection = self.connection
        if connection is not None and not self.ended and not connection.closed:
            with suppress(NotReached):
                widen(connection, min(sds, MOST_SDS))

    @verb
    def close(self, poll: bool = True) -> None:
        """Send an SD with FIN."""
        connection = self.connection
        if connection is not None and not self.ended and not connection.closed:
            self.ended = True
            connection.sd(b"", fin=True, poll=poll)

    @verb
    def release(self) -> None:
        """Close in order, until both streams have ended and END is acknowledged."""
        if self.connection is not None and not self.connection.closed:
            self.ended = True
            self.connection.release(within=LONGEST_S)

    # -- the peer

    @verb
    def receive(
        self, seconds: float = 1.0, credit: int | None = 64, report: bool = True,
        answer: Sequence[float] = (0.0,), losing: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Be a receiver for a while.

        Args:
            seconds: how long; an idle connection may last for hours.
            credit: SDs that are permitted beyond VR(R); None leaves it as it is.
            report: whether to send USTATs.
            answer: after how many seconds each POLL is answered, once for each number.
            losing: SDs to lose, counted from what has been delivered; one that is named twice is
                lost twice.
        """
        connection = self.connection
        if connection is None:
            return
        base = connection.reception.vr_r
        with suppress(NotReached):
            connection.serve(
                lambda: bool(connection.closed), credit=credit, report_gaps=report,
                losing=Counter(base + number for number in losing),
                answer=lambda _poll, _before: answer[:3], within=min(seconds, self.longest),
            )  # fmt: skip

    @verb
    def settle(self) -> None:
        """Ask and send again until everything is acknowledged."""
        if self.connection is not None and not self.connection.closed:
            self.connection.deliver(within=2 * self.connection.rtt + 1.0)

    def rest(self) -> None:
        """What an honest tester does at the end: wait for what is still to come, and repair."""
        self.settle()
        self.receive(3.0)

    @verb
    def ask(self) -> None:
        """Send a POLL."""
        if self.connection is not None:
            self.connection.poll()


VERBS = verbs_of(Player)
