"""Traces told packet by packet, to ask a checker about exactly one situation.

A protocol derives :class:`BaseStory` and adds the words in which its packets are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from bentpipe_conformance.engine.checking import judge
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict

IUT, TESTER = "10.77.0.2", "10.78.0.1"
"""Addresses of the implementation and of the tester."""


@dataclass(kw_only=True)
class BaseStory:
    """Packets as captured at the implementation's side.

    Attributes:
        timing_error: seconds by which the times may be wrong.
        at: time of the last packet, seconds.
        packets: what has been told.
    """

    suite: ClassVar[Suite]
    claims: ClassVar[Mapping[str, Any]]
    """The conformance statement of the implementation in the stories."""

    timing_error: float = 1e-6
    at: float = 0.0
    packets: list[Captured] = field(default_factory=list)

    def tell(self, outgoing: bool, packet: bytes, after: float = 0.0, side: str = "") -> Self:
        """An IPv4 packet passes ``after`` seconds, at a side if there are several."""
        self.at += after
        self.packets.append(Captured(self.at, "iut", outgoing, packet, side))
        return self

    def tell_damaged(self, outgoing: bool, packet: bytes, after: float = 0.0) -> Self:
        """The same of a packet with another last octet, so that its checksum is wrong."""
        return self.tell(outgoing, packet[:-1] + bytes([packet[-1] ^ 1]), after)

    def trace(self) -> Trace[Any]:
        """What was told as a trace."""
        return read_trace(self.packets, self.timing_error, suite=self.suite)

    def findings(
        self, requirement: str, profile: str | None = None, claims: Mapping[str, Any] | None = None
    ) -> list[Finding]:
        """What the checker of a requirement finds, by default under the suite's first profile."""
        statement = self.claims if claims is None else claims
        chosen = self.suite.profile(profile)
        return judge(self.trace(), chosen, statement, [requirement], suite=self.suite)

    def verdicts(
        self, requirement: str, profile: str | None = None, claims: Mapping[str, Any] | None = None
    ) -> set[Verdict]:
        """The verdicts among the findings; see :meth:`findings`."""
        return {finding.verdict for finding in self.findings(requirement, profile, claims)}


def ends(outgoing: bool, iut_port: int, tester_port: int) -> tuple[str, str, int, int]:
    """Addresses and ports, source first, of a packet that the implementation sends or receives."""
    if outgoing:
        return IUT, TESTER, iut_port, tester_port
    return TESTER, IUT, tester_port, iut_port
