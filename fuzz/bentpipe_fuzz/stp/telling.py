"""What a tester says of the SDs that have arrived: some of it, as if the rest were missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import MODULUS
from bentpipe_reference.common.ranges import RangeSet

from bentpipe_fuzz.campaign.player import verb
from bentpipe_fuzz.stp.odd import OddPlayer

MOST_POLLS = 8
"""POLLs that are remembered, so that any of them can be answered."""

MOST_TOLD = 3
"""How often a report is sent at most."""

MOST_TO_WRAP = 100
"""SDs before the wrap that are waited for at most."""

Poll = tuple[int, int]
Elements = tuple[int, ...]


class Told:
    """What has been said on a connection; see :meth:`TellingPlayer.tell`.

    Attributes:
        number: N(R) of the last report.
        top: one past the highest SD that has arrived.
        polls: N(PS) and timestamp of the POLLs that have arrived, the newest last.
        answered: N(PS) of the newest STAT.
    """

    def __init__(self, connection: Connection) -> None:
        self.number = self._delivered = connection.reception.vr_r
        self.top = connection.highest
        self.polls: list[Poll] = []
        self.answered = connection.last_poll[0]
        self._held = connection.reception.held
        self._beyond = RangeSet()

    @property
    def newest(self) -> int:
        """N(PS) of the newest POLL."""
        return max((n_ps for n_ps, _ in self.polls), default=self.answered)

    def is_old(self, connection: Connection) -> bool:
        """Whether something else has been said since, which was the truth."""
        return self._delivered != connection.reception.vr_r

    def look(self, connection: Connection) -> None:
        """Take in what has arrived."""
        for arrival in connection.arrivals(0.0):
            if arrival.has_data:
                connection.hold(arrival)
            if arrival.polls:
                connection.reception.polled(arrival.number_polled)
                self.polls.append((arrival.packet.n_ps or 0, arrival.packet.timestamp or 0))
        del self.polls[:-MOST_POLLS]
        self._delivered = connection.reception.vr_r
        self._held = connection.reception.held
        self.top = connection.highest

    def rise(self, sds: int) -> None:
        """Acknowledge so many SDs more in sequence, and what has been told behind them."""
        self.number = max(self.number, min(self.number + max(sds, 0), self._delivered))
        reached = (end for start, end in self._beyond.snapshot() if start <= self.number < end)
        self.number = next(reached, self.number)
        self._beyond.remove_below(self.number)

    def _has(self, number: int) -> bool:
        return number < self._delivered or number in self._held

    def listed(self, hole: int, held: int, *, whole: bool) -> Elements:
        """A STAT's list: so many missing, so many held, and with ``whole`` all that is above."""
        first = min(self.number + hole, self.top)
        last = first
        while last < min(first + held, self.top) and self._has(last):
            last += 1
        if hole > 0 and last > first:
            self._beyond.add(first, last)
        bound = self.top if whole else last
        if bound <= self.number:
            return ()
        places = [self.number]
        for start, end in self._beyond.snapshot():
            if start < bound:
                places += [start, min(end, bound)]
        return tuple(places) if places[-1] == bound else (*places, bound)


WRONG: Mapping[str, Callable[[Told], dict[str, Any]]] = {
    "low": lambda told: {"seq": told.number - 1},
    "high": lambda told: {"seq": told.top + 1, "elements": ()},
    "equal": lambda told: {"elements": (told.number, told.number)},
    "falling": lambda told: {"elements": (told.number + 2, told.number + 1)},
    "flat": lambda told: {"elements": (told.number, told.number + 1, told.number + 1)},
    "single": lambda told: {"elements": (told.number,)},
    "beyond": lambda told: {"elements": (told.number, told.top + 1)},
    "far": lambda told: {"elements": (told.number, told.number + (1 << 22))},
    "below": lambda told: {"elements": (told.number - 1, told.number + 1)},
    "future": lambda told: {"n_ps": (told.newest + 1) % MODULUS},
    "past": lambda told: {"n_ps": max(told.answered - 1, 1)},
    "unasked": lambda told: {"n_ps": 0, "elements": (told.number, told.number + 1)},
}
"""What makes a report invalid (STP-DT-007, STP-DT-023); of a USTAT the last three say nothing."""


class TellingPlayer(OddPlayer):
    """A tester that reports what it likes of what has arrived."""

    def __init__(self, peer: Any) -> None:
        super().__init__(peer)
        self._told: dict[int, Told] = {}

    @verb
    def tell(
        self, kind: str = "STAT", ack: int = 0, hole: int = 0, held: int = 0, *, back: int = 0,
        whole: bool = False, credit: int | None = None, less: int = 0, wrap: int | None = None,
        wrong: str = "", times: int = 1,
    ) -> None:  # fmt: skip
        """Report some of the SDs that have arrived, as if the rest were missing or late.

        Args:
            kind: ``STAT`` or ``USTAT``.
            ack: so many SDs more in sequence, and what has been reported behind them.
            hole: of a STAT, so many that are missing then; of a USTAT, so many as its run.
            held: of a STAT, so many that are held then; of a USTAT, so many before its run.
            back: which POLL a STAT answers, 0 for the newest; below 0 none (N(PS) 0).
            whole: whether the list of a STAT goes on to the highest SD that has arrived.
            credit: SDs that are permitted beyond what has arrived in sequence, from now on.
            less: so much less credit than has been given.
            wrap: what is missing ends so many SDs behind the wrap, where the wrap is near.
            wrong: what makes it invalid, see :data:`WRONG`; it gives more credit, then.
            times: how often it is sent.
        """
        connection = self.connection
        if connection is None or connection.closed or connection.peer_iss is None:
            return
        told = self._told.get(id(connection))
        if told is None or told.is_old(connection):
            told = self._told[id(connection)] = Told(connection)
        told.look(connection)
        poll = (0, 0)
        if told.polls and back >= 0:
            poll = told.polls[max(-1 - back, -len(told.polls))]
        taken = not wrong and (kind == "USTAT" or not poll[0] or poll[0] >= told.answered)
        told.rise(ack if taken else 0)
        if wrap is not None:
            start = told.number + (held if kind == "USTAT" else 0)
            end = MODULUS - connection.peer_iss + wrap
            hole = end - start if start < end <= told.top else hole
        reception = connection.reception
        if credit is not None and taken:
            reception.vr_mr = max(reception.vr_mr, reception.vr_r + max(credit, 0))
        says: dict[str, Any] = {
            "seq": told.number, "n_mr": reception.vr_mr - less + 8 * bool(wrong),
        }  # fmt: skip
        if kind == "USTAT":
            first = min(told.number + held, told.top - 1)
            says["elements"] = (first, max(min(first + hole, told.top), first + 1))
        else:
            says |= {"n_ps": poll[0], "timestamp": poll[1]}
            can_list = poll[0] > 0
            says["elements"] = told.listed(hole, held, whole=whole) if can_list else ()
        if wrong in WRONG:
            says |= WRONG[wrong](told)
        self._report(connection, kind, says, times)
        if taken and kind == "STAT" and poll[0]:
            told.answered = poll[0]

    def _report(
        self, connection: Connection, kind: str, says: dict[str, Any], times: int
    ) -> None:  # fmt: skip
        """Send a report; what it says is in counts of SDs."""
        numbers = {name: connection.theirs(says[name]) for name in ("seq", "n_mr")}
        listed = says["elements"]
        if kind == "USTAT":
            # The format has room for two.
            listed = (*listed, *listed, says["seq"], says["seq"])[:2]
            says = {name: says[name] for name in ("seq", "n_mr", "elements")}
        elements = connection.their_list(listed)
        raw = {**says, **numbers, "elements": elements, "odd": self.expressive}
        for _ in range(min(max(times, 1), MOST_TOLD)):
            connection.send(codec.USTAT if kind == "USTAT" else codec.STAT, **raw)

    @verb
    def approach(self, sds: int = 2, credit: int = 16) -> None:
        """Be a receiver until the implementation's numbers are so near before their wrap.

        Args:
            sds: so many SDs before it.
            credit: SDs that are permitted beyond VR(R).
        """
        connection = self.connection
        if connection is None or connection.closed or connection.peer_iss is None:
            return
        wanted = MODULUS - connection.peer_iss - sds
        if connection.reception.vr_r < wanted < MOST_TO_WRAP:
            with suppress(NotReached):
                connection.receive(wanted, credit=credit, within=20.0)
