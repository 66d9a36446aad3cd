"""What checkers may know of a connection besides its events."""

from __future__ import annotations

from functools import cache, cached_property

from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.idle import Span, read_idle
from bentpipe_conformance.protocols.rwbp.replay.ledger import Ledger, read_ledger
from bentpipe_conformance.protocols.rwbp.replay.turns import Turn, read_turns
from bentpipe_conformance.protocols.tcp.replay import prepared


class Prepared:
    """What several checkers ask of one connection."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.ledger = cache(self._ledger)
        self.turns = cache(self._turns)
        self.idle = cache(self._idle)

    @cached_property
    def tcp(self) -> prepared.Prepared:
        """What TCP's checkers ask of it."""
        return prepared.Prepared(self._flow.tcp)

    def _ledger(self, rate: float) -> Ledger:
        """The account with the gateway of the connection's link, given the link's rate in bit/s."""
        return read_ledger(self._flow.link, rate, self._flow.slack)

    def _idle(self, rate: float, gateway: bool) -> list[Span]:
        """When the IP queue of the link is surely empty, given its rate in bit/s."""
        return read_idle(self._flow.link, rate, self._flow.slack, gateway=gateway)

    def _turns(self, places: int) -> list[Turn]:
        """The turns of the connection's link, given how many packets its IP queue holds."""
        return read_turns(self._flow.link, places, self._flow.slack)
