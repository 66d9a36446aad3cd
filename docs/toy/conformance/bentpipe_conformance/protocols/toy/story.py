"""TOY traces told packet by packet, to ask a checker about exactly one situation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.story import BaseStory, ends
from bentpipe_conformance.protocols.toy.codec import ACCEPT, OPEN, Toy, build
from bentpipe_conformance.protocols.toy.suite import SUITE

IUT_PORT, TESTER_PORT = 19, 40001


@dataclass(kw_only=True)
class ToyStory(BaseStory):
    """``ToyStory().opened().iut(DATA).tester(ACK, after=0.6)``; times are seconds."""

    suite = SUITE
    claims = {"timeout_ms": 2000}  # noqa: RUF012

    def opened(self) -> ToyStory:
        """The tester opens a connection."""
        return self.tester(OPEN).iut(ACCEPT)

    def iut(self, kind: int, bit: int = 0, *, after: float = 0.0, data: bytes = b"") -> ToyStory:
        """The implementation sends a packet."""
        return self._tell(True, after, kind, bit, data)

    def tester(self, kind: int, bit: int = 0, *, after: float = 0.0, data: bytes = b"") -> ToyStory:
        """A packet of the tester arrives."""
        return self._tell(False, after, kind, bit, data)

    def _tell(self, outgoing: bool, after: float, *fields: Any) -> ToyStory:
        self.at += after
        self.tell(outgoing, build(Toy(*ends(outgoing, IUT_PORT, TESTER_PORT), *fields)))
        return self
