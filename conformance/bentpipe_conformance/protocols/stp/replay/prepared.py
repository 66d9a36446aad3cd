"""What several checkers ask of one connection, worked out once, when it is first asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.retransmission import (
    Retransmissions,
    retransmissions,
)
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips, round_trips
from bentpipe_conformance.protocols.stp.replay.window_bound import Bounded, bounded


class Prepared:
    """Replays of one connection, by the path class its timers are set for.

    Attributes:
        round_trips: what the IUT can have measured.
        retransmissions: what was neglected, and what was sent unasked.
        bounded: every SD with the largest window the rules permit.
    """

    def __init__(self, flow: Flow) -> None:
        self.round_trips: Callable[[str], RoundTrips] = cache(partial(round_trips, flow))
        self.retransmissions: Callable[[str], Retransmissions] = cache(
            partial(retransmissions, flow)
        )
        self.bounded: Callable[[str], Sequence[Bounded]] = cache(
            lambda path_class: tuple(bounded(flow, self.round_trips(path_class)))
        )
