"""What several checkers ask of one connection, computed once, when it is first asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate
from typing import Any

from bentpipe_conformance.protocols.stp.replay.completion import Completion, completion
from bentpipe_conformance.protocols.stp.replay.events import At, ReportHeard
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.least_window import least_windows
from bentpipe_conformance.protocols.stp.replay.misreadings import misreadings
from bentpipe_conformance.protocols.stp.replay.retransmission import (
    Retransmissions,
    retransmissions,
)
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips, first_wait, round_trips
from bentpipe_conformance.protocols.stp.replay.statements import Statement, statements
from bentpipe_conformance.protocols.stp.replay.window import Bounded, bounded

Ics = Mapping[str, Any]


class Prepared:
    """Inferences from one connection; what depends on timers takes the conformance statement."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._trips = trips = cache(lambda wait: round_trips(flow, wait))
        self._otherwise = cache(lambda wait: misreadings(flow, wait))
        self._again = cache(lambda wait: retransmissions(flow, trips(wait)))
        self._bounded = cache(lambda wait, sds: tuple(bounded(flow, trips(wait), sds)))
        self._least = cache(lambda wait: least_windows(flow, trips(wait)))

    def round_trips(self, ics: Ics) -> RoundTrips:
        """What the IUT can have measured."""
        return self._trips(first_wait(ics))

    def misreadings(self, ics: Ics) -> Sequence[RoundTrips]:
        """What it would have smoothed by other measurements than those of STP-PL-009."""
        return self._otherwise(first_wait(ics))

    def retransmissions(self, ics: Ics) -> Retransmissions:
        """What was neglected, and what was sent unasked."""
        return self._again(first_wait(ics))

    def bounded(self, ics: Ics) -> Sequence[Bounded]:
        """Every SD with the largest window the rules permit."""
        return self._bounded(first_wait(ics), int(ics.get("initial_window_sds", 4)))

    def least_windows(self, ics: Ics) -> Mapping[ReportHeard, float]:
        """Octets of the smallest window behind each valid report."""
        return self._least(first_wait(ics))

    @cached_property
    def completion(self) -> Completion:
        """When the two streams ended."""
        return completion(self._flow)

    @cached_property
    def statements(self) -> Sequence[Statement]:
        """Every list of the IUT's STATs, in order."""
        return statements(self._flow)

    @cached_property
    def known(self) -> Sequence[Statement]:
        """The complete ones for which it is certain what the receiver had.

        Those that are malformed are left out: what they say is nothing (STP-PF-011).
        """
        stated = () if self.unsure else self.statements
        sure = (said for said in stated if said.certain and said.complete)
        return [said for said in sure if not said.list_fault()]

    def answer_after(self, at: At) -> Statement | None:
        """The first list that answers a POLL received with a packet or after it."""
        place = bisect_left(self._latest_asked, at.frame)
        return self.statements[place] if place < len(self.statements) else None

    @cached_property
    def _latest_asked(self) -> Sequence[int]:
        """For each list the frame of the latest POLL that it or one before it answers."""
        return list(accumulate((s.poll.frame if s.poll else 0 for s in self.statements), max))

    @cached_property
    def unsure(self) -> bool:
        """Whether the packets do not tell what the receiver has."""
        return self._flow.receiver is None or self._flow.established is None
