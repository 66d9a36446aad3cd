"""Checkers: pure functions from a recorded flow to findings, one per requirement.

A checker is registered with ``@checker("SNR-REC-003")`` and yields findings::

    @checker("SNR-FR-002")
    def third_duplicate_acknowledgment(flow: Flow, context: Context[Any]) -> Iterator[Finding]:
        for ack in flow.acks:
            if ack.duplicates == 3:
                if any(sent.start == ack.una for sent in ack.responses):
                    yield context.holds("segment 12 was retransmitted", ack, *ack.responses)
                else:
                    yield context.violated("...", ack)

Yielding nothing means that the trace never reached the situation the requirement is about.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from bentpipe_spec.registry import Requirement

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import Packet, Trace
from bentpipe_conformance.engine.verdict import Verdict

Prepared = TypeVar("Prepared", covariant=True)
"""What a protocol's checkers may know of a connection besides its packets."""


class HasPacket(Protocol):
    """Anything that stands for one captured packet."""

    @property
    def packet(self) -> Packet[Any]:
        """The packet."""
        ...


Ics = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context(Generic[Prepared]):
    """What a checker may know besides the packets.

    Attributes:
        requirement: the record, with the alternatives the profile permits.
        profile: a profile of the suite.
        ics: the implementation's declared conformance statement.
        timing_error: seconds by which recorded times may be wrong.
        prepared: what the suite's :attr:`Judging.prepare` made of the flow.
    """

    requirement: Requirement
    profile: str
    ics: Ics
    timing_error: float
    prepared: Prepared

    def permitted(self, name: str, default: Any = None) -> Any:
        """A permitted alternative of the requirement in this profile."""
        return self.requirement.permitted(self.profile, name, default)

    def holds(self, sentence: str, *where: HasPacket) -> Finding:
        """The requirement was exercised and met."""
        return self._finding(Verdict.PASS, sentence, where)

    def violated(
        self, sentence: str, *where: HasPacket, expected: str = "", actual: str = ""
    ) -> Finding:
        """The requirement was exercised and broken."""
        return self._finding(Verdict.FAIL, sentence, where, expected, actual)

    def unclear(self, sentence: str, *where: HasPacket) -> Finding:
        """The requirement was exercised, but the bed or the trace is too coarse to tell."""
        return self._finding(Verdict.INCONCLUSIVE, sentence, where)

    def _finding(
        self,
        verdict: Verdict,
        sentence: str,
        where: tuple[HasPacket, ...],
        expected: str = "",
        actual: str = "",
    ) -> Finding:
        numbers = tuple(dict.fromkeys(item.packet.number for item in where))
        return Finding(self.requirement.id, verdict, numbers, sentence, expected, actual)


Checker = Callable[[Any, Context[Any]], Iterable[Finding]]
"""Given a flow of the suite's kind and the context, what was found."""

_CHECKERS: dict[str, Checker] = {}

_Function = TypeVar("_Function", bound=Checker)


def checker(requirement: str) -> Callable[[_Function], _Function]:
    """Register the checker of one requirement."""

    def register(function: _Function) -> _Function:
        if requirement in _CHECKERS:
            raise ValueError(f"{requirement} has two checkers")
        _CHECKERS[requirement] = function
        return function

    return register


@cache
def load_checkers(suite: Suite) -> Mapping[str, Checker]:
    """Import every module of the suite's checkers and return them by requirement."""
    package = importlib.import_module(suite.checkers)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return {name: found for name, found in _CHECKERS.items() if name.startswith(suite.prefix)}


def judge(
    trace: Trace[Any],
    profile: str,
    ics: Ics,
    requirements: Iterable[str] | None = None,
    *,
    suite: Suite,
) -> list[Finding]:
    """Run a suite's checkers over a trace.

    Passing findings are folded into one per requirement and flow, with a count. A requirement
    whose condition the ICS denies is left out here (it is *unsupported*); one whose condition the
    ICS claims while the handshake shows the option refused *fails* with that packet as evidence.
    """
    registry, checkers, judging = suite.requirements(), load_checkers(suite), suite.judging
    wanted = list(registry) if requirements is None else list(requirements)
    findings: list[Finding] = []
    for flow in judging.read_flows(trace):
        prepared = judging.prepare(flow)
        for identifier in wanted:
            requirement = registry[identifier]
            if identifier not in checkers or profile not in requirement.profiles:
                continue
            if not declared(ics, requirement.condition):
                continue
            context = Context(requirement, profile, ics, trace.timing_error, prepared)
            refused = judging.refused(flow, context)
            if refused is not None:
                findings.append(refused)
                continue
            findings.extend(_fold(_found(checkers[identifier], flow, context)))
    return findings


def _found(check: Checker, flow: Any, context: Context[Any]) -> list[Finding]:
    """A checker's findings; one that breaks is an error of ours and ends no run."""
    try:
        return list(check(flow, context))
    except Exception as error:
        sentence = f"the checker broke: {type(error).__name__}: {error}"
        return [Finding(context.requirement.id, Verdict.ERROR, (), sentence)]


def declared(ics: Ics, condition: str) -> bool:
    """Whether the conformance statement claims ``condition`` (an empty one always holds).

    ``item`` asks for a yes, ``item=one|another`` for one of those answers.
    """
    item, _, answers = condition.partition("=")
    if answers:
        return ics.get(item) in answers.split("|")
    return not item or bool(ics.get(item, False))


def _fold(findings: Iterable[Finding]) -> Iterator[Finding]:
    first: Finding | None = None
    passes = 0
    for finding in findings:
        if finding.verdict is not Verdict.PASS:
            yield finding
            continue
        first = first or finding
        passes += 1
    if first is not None:
        yield Finding(
            first.requirement, Verdict.PASS, first.packets, first.sentence,
            first.expected, first.actual, passes,
        )  # fmt: skip
