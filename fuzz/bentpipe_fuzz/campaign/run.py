"""One conversation: a script on a lane, its packets and what the oracles say of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.checking import judge
from bentpipe_conformance.engine.execution import Judgment, Lateness, Outcome, Recording, run_case
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.probe import ECHO_TEXT
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict

from bentpipe_fuzz.campaign.binding import Binding, binding_of
from bentpipe_fuzz.campaign.link import ImpairedLane
from bentpipe_fuzz.campaign.oracle import SERVES, Signature, covered, signature, universal, violated
from bentpipe_fuzz.campaign.script import Script

_TRIES = 3
"""How often a new connection is tried before the implementation is held not to serve."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What came of a script.

    Attributes:
        script: the script.
        outcome: packets, and how the bed or the implementation broke.
        findings: violations, by their signature; of several the first.
        met: requirements that a checker found met.
        reached: states of the implementation and the packets that met them.
        seconds: of the wall clock.
    """

    script: Script
    outcome: Outcome
    findings: Mapping[Signature, Finding]
    met: frozenset[str]
    reached: frozenset[tuple[str, str]]
    seconds: float

    def breaks(self, requirement: str) -> bool:
        """Whether it violates a requirement or an oracle."""
        return any(finding.requirement == requirement for finding in self.findings.values())


def play(
    script: Script, lane: Lane, settings: RunSettings, *, lateness: Lateness | None = None,
) -> Conversation:  # fmt: skip
    """Play a script and judge it.

    Args:
        script: what happens.
        lane: a lane of any bed; its implementation may have been talked to before.
        settings: of the run.
        lateness: see :func:`run_case`.

    Raises:
        ScriptError: the protocol cannot play it.
    """
    began = time.perf_counter()
    suite = suite_named(script.suite)
    binding = binding_of(suite)
    binding.check(script)
    impaired = ImpairedLane(lane, script.link)
    unserved: list[str] = []

    def drive(peer: Any) -> None:
        peer.random.seed(script.seed)
        _take_steps(script, binding, peer)
        peer.finish()
        impaired.port.heal()
        if lane.iut_alive() is None:
            unserved.append(_not_served(suite.driver.interview(peer)))

    item = Case(f"{script.suite}/found/{script.mode}", "", "", (), (), suite.profiles, drive)
    traces: list[Trace[Any]] = []

    def judged(recording: Recording) -> Judgment:
        trace = read_trace(recording.captured, recording.timing_error, suite=suite)
        traces.append(trace)
        whole = replace(trace, whole=True)
        findings = judge(whole, settings.profile, settings.ics, suite=suite)
        return Verdict.UNSUPPORTED, "a conversation has no target", tuple(findings)

    outcome = run_case(item, impaired, settings, lateness, judged)
    trace = traces[0]
    arrivals = covered(trace, binding)
    found = [finding for finding in outcome.findings if finding.verdict in _BAD]
    found += universal(trace, binding, outcome.died)
    found += [violated(SERVES, why, trace.at("iut")[-1].number) for why in unserved if why]
    findings: dict[Signature, Finding] = {}
    for finding in found:
        findings.setdefault(signature(finding, arrivals), finding)
    return Conversation(
        script, outcome, findings,
        frozenset(item.requirement for item in outcome.findings if item.verdict is Verdict.PASS),
        frozenset((state, label) for _, state, label in arrivals),
        time.perf_counter() - began,
    )  # fmt: skip


_BAD = (Verdict.FAIL, Verdict.ERROR)


def _take_steps(script: Script, binding: Binding, peer: Any) -> None:
    player = binding.player(peer)
    for step in script.steps:
        # What does not come about is not done; the conversation goes on.
        with suppress(NotReached):
            binding.verbs[step.verb](player, **step.given)


def _not_served(interview: Any) -> str:
    """Why a new connection is not served, empty when it is."""
    why = ""
    for _ in range(_TRIES):
        try:
            returned = interview.echo(interview.open("echo"))
        except NotReached as error:
            why = f"afterwards the echo service does not serve: {error}"
            continue
        return "" if returned == ECHO_TEXT else "afterwards the echo service sends other octets"
    return why
