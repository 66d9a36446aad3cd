"""A packet of the implementation under test as it reached the tester, and rules for what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bentpipe_reference.common.record import record

from bentpipe_conformance.protocols.stp.codec import POLL, SD, SDP, Stp


@record
class Arrival:
    """A packet of the IUT as it reached the tester.

    Attributes:
        time: seconds on the lane's clock.
        packet: the packet, well-formed or not.
        number: count of an SD or SDP, or N(S) of a POLL; N(R) of END, STAT and USTAT; else 0.
        elements: list of a STAT or USTAT as counts of the tester's SDs.
    """

    time: float
    packet: Stp
    number: int = 0
    elements: tuple[int, ...] = ()

    @property
    def kind(self) -> int:
        """The packet's type."""
        return self.packet.type

    @property
    def has_data(self) -> bool:
        """Whether it is an SD or SDP."""
        return self.packet.type in (SD, SDP)

    @property
    def polls(self) -> bool:
        """Whether it asks for a STAT."""
        return self.packet.type in (POLL, SDP)

    @property
    def number_polled(self) -> int:
        """N(S) of a POLL, or what a POLL right behind this SDP would have."""
        return self.number + (self.packet.type == SDP)


Answer = Callable[[Arrival, int], Iterable[float]]
"""Given a POLL or SDP and how many came before it (0, 1, ...), after how many seconds each of the
STATs in answer is sent: ``()`` none, ``(0.0,)`` at once, ``(0.0, 0.1)`` twice."""


def at_once(_poll: Arrival, _before: int) -> Iterable[float]:
    """The rule of a receiver that answers every POLL at once."""
    return (0.0,)


def withholding(polls: Iterable[int]) -> Answer:
    """Answer every POLL at once but these, counted from 0."""
    wanted = set(polls)
    return lambda _poll, before: () if before in wanted else (0.0,)
