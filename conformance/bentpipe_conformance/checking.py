"""Checkers: pure functions from a recorded flow to findings, one per requirement.

A checker is registered with ``@checker("SNR-REC-003")`` and yields findings::

    @checker("SNR-FR-002")
    def third_duplicate_acknowledgment(flow: Flow, context: Context) -> Iterator[Finding]:
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
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from bentpipe_spec.registry import Requirement, load_requirements

from bentpipe_conformance.analysis.flow import Flow, read_flows
from bentpipe_conformance.analysis.recovery import Episode, read_episodes
from bentpipe_conformance.finding import Finding
from bentpipe_conformance.trace import Packet, Trace
from bentpipe_conformance.verdict import Verdict


class HasPacket(Protocol):
    """Anything that stands for one captured packet."""

    packet: Packet


Ics = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What a checker may know besides the packets.

    Attributes:
        requirement: the record, with the alternatives the profile permits.
        profile: ``hk99`` or ``rfc``.
        ics: the implementation's declared conformance statement.
        timing_error: seconds by which recorded times may be wrong.
        episodes: the loss-recovery episodes of the flow.
    """

    requirement: Requirement
    profile: str
    ics: Ics = field(default_factory=dict)
    timing_error: float = 0.0
    episodes: tuple[Episode, ...] = ()

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


Checker = Callable[[Flow, Context], Iterable[Finding]]

_CHECKERS: dict[str, Checker] = {}


def checker(requirement: str) -> Callable[[Checker], Checker]:
    """Register the checker of one requirement."""

    def register(function: Checker) -> Checker:
        if requirement in _CHECKERS:
            raise ValueError(f"{requirement} has two checkers")
        _CHECKERS[requirement] = function
        return function

    return register


@cache
def load_checkers() -> Mapping[str, Checker]:
    """Import every module of ``bentpipe_conformance.checkers`` and return the checkers by ID."""
    package = importlib.import_module("bentpipe_conformance.checkers")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _CHECKERS


@dataclass(frozen=True, slots=True)
class HandshakeItem:
    """A conformance-statement item that shows in the handshake."""

    attribute: str
    name: str


HANDSHAKE_ITEMS = {
    "sack": HandshakeItem("sack_permitted", "SACK-permitted"),
    "sack_sender": HandshakeItem("sack_permitted", "SACK-permitted"),
    "sack_receiver": HandshakeItem("sack_permitted", "SACK-permitted"),
    "timestamps": HandshakeItem("tsval", "Timestamps"),
    "window_scale": HandshakeItem("window_scale", "Window Scale"),
}


SMALLEST_MSS = 28
"""Payload of the smallest datagram every link carries unfragmented (68 octets, RFC 791)."""


def judge(
    trace: Trace,
    profile: str,
    ics: Ics,
    requirements: Iterable[str] | None = None,
) -> list[Finding]:
    """Run the checkers over a trace.

    Passing findings are folded into one per requirement and flow, with a count. A requirement
    whose condition the ICS denies is left out here (it is *unsupported*); one whose condition the
    ICS claims while the handshake shows the option refused *fails* with the SYN-ACK as evidence.
    """
    registry, checkers = load_requirements(), load_checkers()
    wanted = list(registry) if requirements is None else list(requirements)
    findings: list[Finding] = []
    for flow in read_flows(trace):
        episodes = tuple(read_episodes(flow))
        for identifier in wanted:
            requirement = registry[identifier]
            if identifier not in checkers or profile not in requirement.profiles:
                continue
            if not declared(ics, requirement.condition):
                continue
            context = Context(requirement, profile, ics, trace.timing_error, episodes)
            refused = _refused(flow, context)
            if refused is not None:
                findings.append(refused)
                continue
            findings.extend(_fold(_found(checkers[identifier], flow, context)))
    return findings


def _found(check: Checker, flow: Flow, context: Context) -> list[Finding]:
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


def _refused(flow: Flow, context: Context) -> Finding | None:
    item = HANDSHAKE_ITEMS.get(context.requirement.condition)
    syn_ack = flow.handshake.iut
    if item is None or syn_ack is None or not flow.handshake.offered(item.attribute):
        return None
    if not flow.handshake.ordinary:
        return None
    # A SYN with an impossible MSS may be taken for one without options.
    if flow.handshake.answered(item.attribute) or flow.mss < SMALLEST_MSS:
        return None
    finding = context.violated(
        f"the conformance statement claims {item.name}, which the SYN-ACK does not carry",
        expected=f"a SYN-ACK with {item.name} in answer to a SYN that offers it",
        actual=f"no {item.name} in the SYN-ACK",
    )
    return Finding(
        finding.requirement, finding.verdict, (syn_ack.number,), finding.sentence,
        finding.expected, finding.actual,
    )  # fmt: skip


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


__all__ = [
    "HANDSHAKE_ITEMS", "Checker", "Context", "Finding", "HasPacket", "Ics", "checker", "declared",
    "judge", "load_checkers",
]  # fmt: skip
