"""What several checkers ask of one connection, worked out once."""

from __future__ import annotations

from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.recovery import read_episodes


class Prepared:
    """A replayed connection and what happened on it.

    Attributes:
        episodes: its loss-recovery episodes, in order.
    """

    def __init__(self, flow: Flow) -> None:
        self.episodes = tuple(read_episodes(flow))
