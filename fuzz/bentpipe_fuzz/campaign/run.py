"""One conversation: a script on a lane, its packets and what the oracles say of them."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.checking import READING_BROKE, judge
from bentpipe_conformance.engine.execution import Judgment, Lateness, Outcome, Recording, run_case
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.statement import declared
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict

from bentpipe_fuzz.campaign.binding import Binding, binding_of
from bentpipe_fuzz.campaign.ending import not_quiet, not_served
from bentpipe_fuzz.campaign.limits import MEMORY, keeps
from bentpipe_fuzz.campaign.link import ImpairedLane, ImpairedPort
from bentpipe_fuzz.campaign.memory import footprint
from bentpipe_fuzz.campaign.oracle import (
    QUIET,
    SERVES,
    Signature,
    covered,
    signature,
    universal,
    violated,
)
from bentpipe_fuzz.campaign.script import Script

LONGEST_S = 10_000.0
"""Seconds that a step waits at most where that costs nothing: hours of silence are a situation."""

COLLECTING = 10_000, 50, 100
"""Thresholds of Python's collector in a campaign: what it looks at is still in the cache."""

MOST_PACKETS = {64: 2500, 8: 400, 1: 300}
"""Packets that the tester sends and receives in a conversation: in every 64th, every eighth, any.
The few long ones would otherwise take most of a campaign's time, and show little that is new."""

JUDGED_EVERY = 8
"""Of so many connections that are served after a conversation one is judged; on a good link they
are all alike."""


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


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect garbage seldom meanwhile.

    A conversation leaves thousands of objects, none of which outlives the next, and what was loaded
    before is not looked at again; both together take a sixth of the time.
    """
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTING)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def play(
    script: Script, lane: Lane, settings: RunSettings, *, lateness: Lateness | None = None,
    expressive: bool = False, patient: bool = True, judging: bool = True,
) -> Conversation:  # fmt: skip
    """Play a script and judge it.

    Args:
        script: what happens.
        lane: a lane of any bed; its implementation may have been talked to before.
        settings: of the run.
        lateness: see :func:`run_case`.
        expressive: whether every packet that a verb makes on purpose is one of Scapy, so that its
            expression is kept (slow).
        patient: whether a step may wait for :data:`LONGEST_S`, and the end of the conversation is
            waited for, which takes 2,000 seconds of the lane's clock.
        judging: whether oracles look at it; otherwise nothing is found, met or reached.

    Raises:
        ScriptError: the protocol cannot play it.
    """
    began = time.perf_counter()
    suite = suite_named(script.suite)
    binding = binding_of(suite)
    binding.check(script)
    verbs = [binding.verbs[step.verb] for step in script.steps]
    is_long = any(hasattr(verb, "is_long") for verb in verbs)
    _vary(lane, script.seed)
    impaired = ImpairedLane(lane, script.link, _most_packets(0 if is_long else script.seed))
    ending: list[tuple[str, str]] = []
    judged_until = math.inf

    def drive(peer: Any) -> None:
        nonlocal judged_until
        before = _held_at_first(lane) if judging else None
        peer.random.seed(script.seed)
        player = binding.player(peer)
        player.expressive = expressive
        if patient:
            player.longest = LONGEST_S
        try:
            ending.append(_take_steps(script, binding, player, impaired.port))
        finally:
            impaired.port.relieve()
            # A connection whose RST is lost may outlive the conversation where nothing leaves.
            impaired.port.heal()
        peer.finish()
        if patient and judging:
            why = not_quiet(impaired.port, suite.interpreter.dissect, binding.refuse)
            ending.append((QUIET, why))
            ending.append((MEMORY, "" if why else keeps(before, _held(lane))))
            if not why and script.seed % JUDGED_EVERY:
                judged_until = impaired.port.elapsed - 1.0
        if judging and lane.iut_alive() is None:
            ending.append((SERVES, not_served(suite.driver.interview(peer))))

    item = Case(f"{script.suite}/found/{script.mode}", "", "", (), (), suite.profiles, drive)
    traces: list[Trace[Any]] = []

    def judged(recording: Recording) -> Judgment:
        if not judging:
            return Verdict.UNSUPPORTED, "nothing is judged", ()
        captured = [item for item in recording.captured if item.time < judged_until]
        trace = read_trace(captured, recording.timing_error, suite=suite)
        traces.append(trace)
        whole = replace(trace, whole=True)
        findings = judge(whole, settings.profile, settings.ics, suite=suite)
        return Verdict.UNSUPPORTED, "a conversation has no target", tuple(findings)

    outcome = run_case(item, impaired, settings, lateness, judged)
    if not judging:
        nothing = frozenset[tuple[str, str]]()
        seconds = time.perf_counter() - began
        return Conversation(script, outcome, {}, frozenset(), nothing, seconds)
    trace = traces[0]
    arrivals = covered(trace, binding)
    found = [finding for finding in outcome.findings if finding.verdict in _BAD]
    broken = [finding for finding in found if finding.sentence.startswith(READING_BROKE)]
    found = broken[:1] or found  # our error, which every requirement tells
    found += universal(trace, binding, outcome.died)
    found += [
        violated(oracle, why) for oracle, why in ending
        if why and _is_claimed(oracle, suite, settings)
    ]  # fmt: skip
    findings: dict[Signature, Finding] = {}
    for finding in found:
        findings.setdefault(signature(finding, arrivals), finding)
    return Conversation(
        script, outcome, findings,
        frozenset(item.requirement for item in outcome.findings if item.verdict is Verdict.PASS),
        frozenset((state, label) for _, state, label in arrivals),
        time.perf_counter() - began,
    )  # fmt: skip


def _most_packets(seed: int) -> int:
    return next(most for every, most in MOST_PACKETS.items() if seed % every == 0)


def _vary(lane: Lane, seed: int) -> None:
    """Let an implementation in this process choose other numbers in each conversation."""
    vary = getattr(lane, "vary", None)
    if vary is not None:
        vary(seed)


def _held(lane: Lane) -> int | None:
    """Octets that a host in this process holds; None where it is elsewhere."""
    host = getattr(lane, "host", None)
    return None if host is None else footprint(host)


_HELD: WeakKeyDictionary[Lane, int | None] = WeakKeyDictionary()


def _held_at_first(lane: Lane) -> int | None:
    """The same when a conversation begins, for which a lane has a new host each time."""
    if lane not in _HELD:
        _HELD[lane] = _held(lane)
    return _HELD[lane]


_BAD = (Verdict.FAIL, Verdict.ERROR)


def _is_claimed(name: str, suite: Suite, settings: RunSettings) -> bool:
    """Whether an oracle is one of all protocols, or a requirement that is claimed to be met."""
    found = suite.requirements().get(name)
    return found is None or declared(settings.ics, found.condition_in(settings.profile))


def _take_steps(
    script: Script, binding: Binding, player: Any, port: ImpairedPort
) -> tuple[str, str]:
    """Take the steps; a requirement and how it was violated, if not even the first came about.

    Over a link that does nothing, and when nothing has been said yet, that is the implementation's
    fault where :class:`NotReached` names a requirement.
    """
    broken, known = ("", ""), suite_named(script.suite).requirements()
    for place, step in enumerate(script.steps):
        try:
            binding.verbs[step.verb](player, **step.given)
        except NotReached as error:
            # What does not come about is not done; the conversation goes on.
            name, named, why = str(error).partition(": ")
            if named and not place and not script.link and name in known:
                broken = name, why
        if port.spent:
            return broken
    if script.seed % 2:
        with suppress(NotReached):
            player.rest()
    return broken
