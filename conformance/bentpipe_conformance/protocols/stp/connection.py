"""One connection of the tester with the implementation under test (IUT).

Scripts count SDs of either direction from 0, the one numbered ISS; a raw number can be put on the
wire by composing a packet and changing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, ClassVar

from bentpipe_conformance.engine.peer import Losses, NotReached, rule_to_lose
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.arrival import Answer, Arrival, at_once
from bentpipe_conformance.protocols.stp.codec import FIN, NAMES, R, Stp
from bentpipe_conformance.protocols.stp.numbers import near
from bentpipe_conformance.protocols.stp.speaking import Speaker

Kinds = int | Iterable[int]

_WITH_N_R = (codec.BGAK, codec.STAT, codec.USTAT, codec.END)
_WITH_N_S = (codec.SD, codec.SDP, codec.POLL)


class Connection(Speaker):
    """One connection of the tester with the IUT; see :class:`Speaker` for what can be sent.

    Attributes:
        opening: the IUT's first BGAK (or its BEGIN, when it opens).
        highest: one past the highest SD of the IUT that has arrived, lost or not.
        polls: POLLs and SDPs of the IUT that have arrived.
        refusal: reason of the BGREJ that refused the tester's call, None without one.
        polite: answer ENDs with ENDAK without being told.
    """

    hears_after_the_end: ClassVar[bool] = True

    def __init__(self, *ends: Any, **own: Any) -> None:
        """See :class:`Speaker`."""
        super().__init__(*ends, **own)
        self.opening: Arrival | None = None
        self.highest = 0
        self.polls = 0
        self.refusal: int | None = None
        self.polite = True

    @property
    def answered(self) -> bool:
        """Whether the IUT's BGAK or BEGIN has come."""
        return self.opening is not None

    @property
    def begun(self) -> Stp:
        """The BEGIN by which the IUT opened the connection."""
        assert self.opening is not None
        return self.opening.packet

    @property
    def progress(self) -> str:
        """How much of the IUT's data the tester has in sequence."""
        return f"{self.reception.vr_r} SDs delivered"

    @property
    def complete(self) -> bool:
        """Whether both streams have ended and both ends know it, or the connection is over."""
        reception = self.reception
        told = reception.fin is not None and reception.told > reception.fin
        return bool(self.closed) or (told and self.vt_a >= self.vt_s)

    # -- arrivals

    def accept(self, time: float, packet: Stp) -> None:
        """Take a packet off the link into the inbox (the peer calls this)."""
        if not packet.wellformed:
            self.inbox.append(Arrival(time, packet))
            return
        arrival = self._learn(time, packet)
        self.inbox.append(arrival)
        if packet.type in (codec.BGAK, codec.BGREJ) and packet.peer_csn == self.csn:
            self.jar.keep(time, packet)
        if packet.type == codec.BGREJ and packet.peer_csn == self.csn and not self.answered:
            self.refusal = packet.reason
            self.closed = f"the IUT refused it, reason {packet.reason}"
        elif packet.type == codec.END:
            if packet.flags & R:
                if packet.peer_csn == self.csn and packet.csn in (0, self.peer_csn):
                    self.closed = "the IUT knows no such connection"
            elif packet.csn == self.peer_csn and packet.peer_csn in (self.csn, 0):
                self.closed = f"the IUT ended it, reason {packet.reason}"
                if self.polite:
                    self.send(codec.ENDAK)

    def _learn(self, time: float, packet: Stp) -> Arrival:
        """What a well-formed packet says about the IUT."""
        kind = packet.type
        if kind == codec.BGAK and packet.peer_csn != self.csn:
            return Arrival(time, packet)
        if kind in (codec.BGAK, codec.BEGIN) and self.opening is None:
            self.peer_csn, self.peer_iss = packet.csn, packet.seq
            self.peer_max_sd = packet.max_sd
            assert packet.n_mr is not None
            if kind == codec.BEGIN:
                self.vt_ms = packet.n_mr
                self.opening = Arrival(time, packet)
                if packet.data or packet.flags & FIN:
                    self.highest = 1
                    self.reception.take(0, packet.data, bool(packet.flags & FIN))
                return self.opening
            self.opening = Arrival(time, packet, near(packet.n_r or 0, self.iss, self.vt_a))
        if self.peer_iss is None:
            return Arrival(time, packet)
        if kind in _WITH_N_R:
            n_r = near((packet.n_r if kind == codec.BGAK else packet.seq) or 0, self.iss, self.vt_a)
            if kind != codec.END:
                self.vt_a = max(self.vt_a, n_r)
                self.vt_ms = max(self.vt_ms, near(packet.n_mr or 0, self.iss, self.vt_ms))
            listed = tuple([near(element, self.iss, n_r) for element in packet.elements])
            return Arrival(time, packet, n_r, listed)
        if kind in _WITH_N_S:
            number = near(packet.seq, self.peer_iss, self.highest)
            if kind != codec.POLL:
                self.highest = max(self.highest, number + 1)
            if kind != codec.SD:
                self.polls += 1
            return Arrival(time, packet, number)
        return Arrival(time, packet)

    def expect(
        self,
        kinds: Kinds,
        match: Callable[[Arrival], bool] = lambda _arrival: True,
        *,
        within: float | None = None,
        what: str = "",
    ) -> Arrival:
        """The next packet of these types that matches; see :meth:`await_arrival`."""
        wanted = (kinds,) if isinstance(kinds, int) else tuple(kinds)
        what = what or " or ".join(NAMES[kind] for kind in wanted)
        return self.await_arrival(
            lambda arrival: arrival.kind in wanted and match(arrival), what, within
        )

    def hold(self, sd: Arrival) -> tuple[int, int] | None:
        """Count an SD as received; return the gap that a USTAT has to report, if any."""
        fin = bool(sd.packet.flags & FIN)
        return self.reception.take(sd.number, sd.packet.data, fin)

    def remember(self, poll: Arrival) -> None:
        """Let the next STAT be the answer to a POLL or SDP."""
        self.last_poll = poll.packet.n_ps or 0, poll.packet.timestamp or 0

    def answer(self, poll: Arrival, *, after: float = 0.0, **fields: Any) -> None:
        """Answer a POLL or SDP by the right STAT; see :meth:`stat`."""
        self.reception.polled(poll.number_polled)
        self.remember(poll)
        self.stat(after=after, **fields)

    # -- ordinary behaviour

    def serve(
        self,
        until: Callable[[], bool],
        *,
        losing: Losses[Arrival] = (),
        answer: Answer = at_once,
        report_gaps: bool = True,
        credit: int | None = 256,
        within: float | None = None,
    ) -> None:
        """Be an ordinary receiver, but for what is said here, until ``until()``.

        Args:
            until: asked after every arrival.
            losing: SDs to lose, by count, or a rule.
            answer: when to answer which POLL.
            report_gaps: send USTATs.
            credit: SDs permitted beyond VR(R); None leaves the credit as it is.
            within: seconds; a minute and twenty round trips by default.

        Raises:
            NotReached: see :meth:`serve_until`.
        """
        rule = rule_to_lose(losing, lambda sd: sd.number)

        def serve(arrival: Arrival) -> None:
            if arrival.has_data:
                if rule(arrival, self.reception.note(arrival.number)):
                    return
                gap = self.hold(arrival)
                if credit is not None:
                    self.reception.vr_mr = max(self.reception.vr_mr, self.reception.vr_r + credit)
                if gap is not None and report_gaps:
                    self.ustat(*gap)
            if arrival.polls:
                for delay in answer(arrival, self.polls - 1):
                    self.answer(arrival, after=delay)

        self.serve_until(until, serve, within)

    def receive(self, sds: int, **how: Any) -> None:
        """Be an ordinary receiver until ``sds`` SDs are delivered, ``how`` as for :meth:`serve`."""
        self.serve(lambda: self.reception.vr_r >= sds, **how)

    def ask(self, *, within: float | None = None, **fields: Any) -> Arrival:
        """Send a POLL and wait for a STAT in answer to it; other packets are passed over.

        Raises:
            NotReached: it did not come in time.
        """
        n_ps, what = self.poll(**fields).n_ps, "a STAT in answer"
        return self.expect(
            codec.STAT, lambda stat: stat.packet.n_ps == n_ps, within=within, what=what
        )

    def await_credit(self) -> None:
        """Ask until the IUT permits another SD; what arrives meanwhile is taken in.

        Raises:
            NotReached: it gives no more credit.
        """
        for _ in range(3):
            if self.vt_s < self.vt_ms:
                return
            self.poll()
            with suppress(NotReached):
                permitted = lambda: self.vt_s < self.vt_ms  # noqa: E731
                self.serve(permitted, credit=None, within=2 * self.rtt + 0.5)
        if self.vt_s >= self.vt_ms:
            raise NotReached(f"the IUT's credit ends at SD {self.vt_ms}, which is too little")

    def deliver(self, within: float | None = None) -> None:
        """Be an ordinary sender until everything that was sent has been acknowledged.

        Raises:
            NotReached: it was not, in ten rounds of POLL and retransmission.
        """
        for _ in range(10):
            stat = self.ask(within=within)
            if self.vt_a >= self.vt_s:
                return
            listed = stat.elements
            for first, second in zip(listed[::2], listed[1::2], strict=False):
                for number in range(first, second):
                    self.sd(number=number)
        raise NotReached(f"the IUT has not acknowledged SD {self.vt_a} in ten rounds")

    def release(self, within: float | None = None) -> None:
        """Close in order, as a caller does: FIN, take the IUT's FIN, then END and ENDAK.

        Raises:
            NotReached: the IUT does not close, or does not acknowledge.
        """
        if not any(fin for _, fin in self.sent.values()):
            self.sd(b"", fin=True, poll=True)
        self.serve(lambda: bool(self.closed) or self.reception.ended, within=within)
        if not self.closed and self.vt_a < self.vt_s:
            self.deliver(within)
        if not self.closed:
            self.end()
            self.expect((codec.ENDAK, codec.END), within=within, what="an ENDAK")
            self.closed = self.closed or "it was released"
