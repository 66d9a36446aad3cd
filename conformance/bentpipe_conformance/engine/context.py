"""What a checker may know besides the packets, and how it states what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from bentpipe_spec.registry import Requirement

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.engine.trace import Packet
from bentpipe_conformance.engine.verdict import Verdict

Prepared = TypeVar("Prepared", covariant=True)
"""What a protocol's checkers may know of a connection besides its packets."""


class HasPacket(Protocol):
    """Anything that stands for one captured packet."""

    @property
    def packet(self) -> Packet[Any]:
        """The packet."""


@dataclass(slots=True)
class Context(Generic[Prepared]):
    """What a checker may know besides the packets, of one flow.

    Attributes:
        requirement: the record, with the alternatives the profile permits.
        profile: a profile of the suite.
        ics: the implementation's declared conformance statement.
        timing_error: seconds by which recorded times may be wrong.
        prepared: what :attr:`Interpreter.prepare` of the suite made of the flow.
        counting: whether findings that the requirement was met are only counted, so that
            :meth:`holds` gives the first one again and again.
        met: that first one, None before it, and where they are not counted.
    """

    requirement: Requirement
    profile: str
    ics: Ics
    timing_error: float
    prepared: Prepared
    counting: bool = field(default=False, init=False)
    met: Finding | None = field(default=None, init=False, compare=False)

    def permitted(self, name: str, default: Any = None) -> Any:
        """A permitted alternative of the requirement in this profile."""
        return self.requirement.permitted(self.profile, name, default)

    def holds(self, sentence: str, *where: HasPacket) -> Finding:
        """The requirement was exercised and met."""
        if self.met is not None:
            return self.met
        found = self._finding(Verdict.PASS, sentence, where)
        if self.counting:
            self.met = found
        return found

    def violated(
        self, sentence: str, *where: HasPacket, expected: str = "", actual: str = ""
    ) -> Finding:
        """The requirement was exercised and violated."""
        return self._finding(Verdict.FAIL, sentence, where, expected, actual)

    def unclear(self, sentence: str, *where: HasPacket) -> Finding:
        """The requirement was exercised, but the bed or the trace is too coarse to tell."""
        return self._finding(Verdict.INCONCLUSIVE, sentence, where)

    def _finding(
        self, verdict: Verdict, sentence: str, where: tuple[HasPacket, ...], expected: str = "",
        actual: str = "",
    ) -> Finding:  # fmt: skip
        if len(where) == 1:
            numbers: tuple[int, ...] = (where[0].packet.number,)
        else:
            numbers = tuple(dict.fromkeys(item.packet.number for item in where))
        return Finding(self.requirement.id, verdict, numbers, sentence, expected, actual)


def judged(
    context: Context[Any], met: bool, sentence: str, *where: HasPacket, expected: str, actual: str
) -> Finding:
    """A finding that a requirement was met, or violated, with one sentence for both."""
    if met:
        return context.holds(sentence, *where)
    return context.violated(sentence, *where, expected=expected, actual=actual)


def until_violated(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings up to the first violation, where the rest would only repeat it."""
    for finding in findings:
        yield finding
        if finding.verdict is Verdict.FAIL:
            return
