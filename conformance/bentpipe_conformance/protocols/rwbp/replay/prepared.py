"""What checkers may know of a connection besides its events."""

from __future__ import annotations

from functools import cached_property

from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay import prepared


class Prepared:
    """What several checkers ask of one connection."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    @cached_property
    def tcp(self) -> prepared.Prepared:
        """What TCP's checkers ask of it."""
        return prepared.Prepared(self._flow.tcp)
