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

Yielding nothing means that the trace never reached the situation the requirement is about, which a
comment at the head of the checker names: ``# Exercised by every third duplicate outside recovery.``
"""

from __future__ import annotations

import gc
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from bentpipe_spec.registry import Requirement

from bentpipe_conformance.engine.context import Context
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.remembered import forget
from bentpipe_conformance.engine.statement import Ics, declared
from bentpipe_conformance.engine.suite import Interpreter, Suite
from bentpipe_conformance.engine.trace import Trace
from bentpipe_conformance.engine.verdict import Verdict

Checker = Callable[[Any, Context[Any]], Iterable[Finding]]
"""Given a flow of the suite's kind and the context, what was found."""

Needed = Callable[[Any], object]
"""What a checker goes through, of a flow; it is false where there is none."""

READING_BROKE = "reading the packets broke"

_CHECKERS: dict[str, Checker] = {}
_NEEDED: dict[Checker, Needed] = {}

_Function = TypeVar("_Function", bound=Checker)


def checker(requirement: str, of: Needed | None = None) -> Callable[[_Function], _Function]:
    """Register the checker of one requirement.

    It is asked only about flows that have something ``of`` which it judges; of the others it would
    say nothing.
    """

    def register(function: _Function) -> _Function:
        if requirement in _CHECKERS:
            raise ValueError(f"{requirement} has two checkers")
        _CHECKERS[requirement] = function
        if of is not None:
            _NEEDED[function] = of
        return function

    return register


_OCCASION = re.compile(r"# Exercised (.*(?:\n *# .*)*)")
_SENTENCE_END = re.compile(r"\.(?= [A-Z]|$)")


@cache
def occasion_missed(suite: Suite, requirement: str) -> str:
    """What to say of a requirement whose situation was not reached, and what makes that."""
    sentence = "the situation was not reached"
    check = load_checkers(suite).get(requirement)
    found = _OCCASION.search(inspect.getsource(check)) if check is not None else None
    if found is None:
        return sentence
    occasion = re.sub(r"\n *# ", " ", found[1])
    return f"{sentence}, which is exercised {_SENTENCE_END.split(occasion)[0]}"


@cache
def load_checkers(suite: Suite) -> Mapping[str, Checker]:
    """The suite's checkers by requirement, from every module of their package."""
    package = importlib.import_module(f"{suite.package}.checkers")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return {name: found for name, found in _CHECKERS.items() if name.startswith(suite.prefix)}


def judge(
    trace: Trace[Any], profile: str, ics: Ics, requirements: Iterable[str] | None = None, *,
    suite: Suite,
) -> list[Finding]:  # fmt: skip
    """Run a suite's checkers over a trace: those of ``requirements``, or all.

    Passing findings are folded into one per requirement and flow, with a count. A requirement
    whose condition the ICS denies is left out here (it is *unsupported*); one whose condition the
    ICS claims while the handshake shows the option refused *fails* with that packet as evidence.
    Packets that we fail to read are our error for every requirement, and do not end the run.
    """
    applicable = _applicable(suite, profile, ics, requirements)
    findings: list[Finding] = []
    try:
        for flow in suite.interpreter.read_flows(trace):
            readings = Readings(flow, suite.interpreter)
            findings += _of_flow(readings, applicable, profile, ics, trace.timing_error)
    except Exception as error:
        findings += [_broken(item.id, READING_BROKE, error) for item, _ in applicable]
    return findings


def _of_flow(
    readings: Readings, applicable: _Applicable, profile: str, ics: Ics, timing_error: float
) -> Iterator[Finding]:
    granted: set[str] = set()  # conditions that the handshake does not contradict
    asked: list[tuple[Checker, Context[Any]]] = []
    refusals: list[tuple[int, Finding]] = []
    had: dict[Needed, bool] = {}
    flow, interpreter = readings.flow, readings.interpreter
    for requirement, check in applicable:
        granted_before = requirement.condition in granted
        if granted_before and (needed := _NEEDED.get(check)) is not None:
            if needed not in had:
                had[needed] = bool(needed(flow))
            if not had[needed]:
                continue
        context = Context(requirement, profile, ics, timing_error, readings.prepared)
        if not granted_before:
            refused = interpreter.refused(flow, context)
            if refused is not None:
                refusals.append((len(asked), refused))
                continue
            granted.add(requirement.condition)
        asked.append((check, context))
    found = readings.all_judged(asked)
    for place, refused in reversed(refusals):
        found.insert(place, [refused])
    return chain.from_iterable(found)


_Applicable = Sequence[tuple[Requirement, Checker]]
_latest: list[tuple[object, _Applicable]] = []


def _applicable(
    suite: Suite, profile: str, ics: Ics, requirements: Iterable[str] | None
) -> _Applicable:
    """The checkers whose conditions a statement claims; those of the latest question are kept.

    For one run asks of every trace the same.
    """
    chosen = None if requirements is None else tuple(requirements)
    question = suite, profile, dict(ics), chosen
    if not _latest or _latest[0][0] != question:
        checkers, registry = load_checkers(suite), suite.requirements()
        named = (
            (registry[name], checkers.get(name))
            for name in (registry if chosen is None else chosen)
        )
        _latest[:] = [(question, [
            (item, check) for item, check in named
            if check is not None and profile in item.profiles
            and declared(ics, item.condition_in(profile))
        ])]  # fmt: skip
    return _latest[0][1]


def judge_flow(
    flow: Any,
    timing_error: float,
    profile: str,
    ics: Ics,
    *,
    suite: Suite,
    left_out: Container[str] = (),
) -> list[tuple[Requirement, list[Finding] | None]]:
    """Run a suite's checkers over one flow, its handshake having been taken into ``ics``.

    With each requirement of the profile that packets show come its findings, folded as by
    :func:`judge`, or None where the statement does not claim its condition. Those ``left_out`` are
    not judged.
    """
    checkers, registry = load_checkers(suite), suite.requirements()
    answers: dict[str, list[Finding] | None] = {}
    asked: list[Requirement] = []
    for name, requirement in registry.items():
        if requirement.testability != "wire" or profile not in requirement.profiles:
            continue
        if not declared(ics, requirement.condition_in(profile)):
            answers[name] = None
        elif name in left_out or name in checkers:
            answers[name] = []
            if name not in left_out:
                asked.append(requirement)
    try:
        readings = Readings(flow, suite.interpreter)
        found = readings.all_judged([
            (checkers[item.id], Context(item, profile, ics, timing_error, readings.prepared))
            for item in asked
        ])  # fmt: skip
    except Exception as error:
        found = [[_broken(item.id, READING_BROKE, error)] for item in asked]
    answers.update(zip((item.id for item in asked), found, strict=True))
    return [(registry[name], findings) for name, findings in answers.items()]


class Readings:
    """One flow in every way in which its packets can be read.

    What a specification leaves to an implementation can be invisible and yet change what its later
    packets mean. A requirement is violated when it is in each of the readings.
    """

    def __init__(self, flow: Any, interpreter: Interpreter) -> None:
        self.prepared = interpreter.prepare(flow)
        self.flow = flow
        self.interpreter = interpreter

    def judged(self, check: Checker, context: Context[Any]) -> list[Finding]:
        """A checker's findings in the first reading that has no violation, else in the usual."""
        return self.all_judged([(check, context)])[0]

    def all_judged(self, asked: Sequence[tuple[Checker, Context[Any]]]) -> list[list[Finding]]:
        """The same of several checkers, each with its context.

        Of the other readings there is one at a time: that of a long connection is large.
        """
        found = [_folded(check, self.flow, context) for check, context in asked]
        accused = [nth for nth, findings in enumerate(found) if findings and _violated(findings)]
        others = self.interpreter.otherwise(self.flow) if accused else iter(())
        while accused and (flow := next(others, None)) is not None:
            prepared = self.interpreter.prepare(flow)
            for nth in accused:
                check, context = asked[nth]
                findings = _folded(check, flow, replace(context, prepared=prepared))
                if not _violated(findings):
                    found[nth] = findings
            accused = [nth for nth in accused if _violated(found[nth])]
            del flow, prepared
            forget()
            if not gc.isenabled():
                gc.collect()
        return found


def _broken(requirement: str, what: str, error: Exception) -> Finding:
    return Finding(requirement, Verdict.ERROR, (), f"{what}: {type(error).__name__}: {error}")


def _violated(findings: Iterable[Finding]) -> bool:
    return Verdict.FAIL in [finding.verdict for finding in findings]


def _folded(check: Checker, flow: Any, context: Context[Any]) -> list[Finding]:
    """A checker's findings; in place of all that pass, at the end the first with their number.

    A checker that raises is our error and does not end the run.
    """
    findings: list[Finding] = []
    passed: Finding | None = None
    count = 0
    context.counting = True
    try:
        for finding in check(flow, context):
            if finding.verdict is not Verdict.PASS:
                findings.append(finding)
            else:
                count += 1
                passed = passed or finding
    except Exception as error:
        return [_broken(context.requirement.id, "the checker broke", error)]
    if passed is not None:
        findings.append(
            Finding(passed.requirement, Verdict.PASS, passed.packets, passed.sentence, count=count)
        )
    return findings
