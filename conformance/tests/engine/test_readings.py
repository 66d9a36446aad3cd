"""A connection that is read in several ways: which findings count, and what stays in memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest
from bentpipe_conformance.engine.checking import Readings, judge, judge_flow
from bentpipe_conformance.engine.context import Context
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.remembered import forget, remembered
from bentpipe_conformance.engine.suite import Interpreter, Suite, suite_named
from bentpipe_conformance.engine.trace import Packet
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import CLAIMS, flight

SNR = suite_named("snr")
USUAL = 0


class Reading:
    """A connection in one reading; like those of protocols it holds itself in a circle."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.itself = self


@dataclass
class Others:
    """Makes further readings of a connection, and counts those that are there."""

    count: int
    made: list[weakref.ref[Reading]] = field(default_factory=list)
    most: int = 0

    def read(self, flow: Reading) -> Iterator[Reading]:
        for number in range(flow.number + 1, self.count + 1):
            self.most = max(self.most, sum(other() is not None for other in self.made))
            yield self._another(number)

    def _another(self, number: int) -> Reading:
        reading = Reading(number)
        self.made.append(weakref.ref(reading))
        return reading


def _context() -> Context[Any]:
    requirement = next(iter(SNR.requirements().values()))
    return Context(requirement, "rfc", {}, 0.0, None)


def _violated_before(number: int) -> Any:
    """A checker that finds a violation in every reading before one."""

    def check(flow: Reading, context: Context[Any]) -> Iterator[Finding]:
        verdict = Verdict.FAIL if flow.number < number else Verdict.PASS
        yield Finding(context.requirement.id, verdict, (), f"reading {flow.number}")

    return check


def _judged(others: Others, *numbers: int) -> list[str]:
    interpreter = replace(SNR.interpreter, otherwise=others.read, prepare=lambda flow: None)
    readings = Readings(Reading(USUAL), interpreter)
    found = readings.all_judged([(_violated_before(number), _context()) for number in numbers])
    return [item.sentence for findings in found for item in findings]


def test_findings_are_those_of_the_first_reading_without_a_violation() -> None:
    told = _judged(Others(3), 0, 2, 1, 9)
    assert told == ["reading 0", "reading 2", "reading 1", "reading 0"]


def _breaks(*_: object) -> Any:
    raise LookupError("no such segment")


@dataclass(frozen=True)
class Broken(Suite):
    """A suite that fails to read some packets."""

    how: str = ""

    @property
    def interpreter(self) -> Interpreter:
        """With one function that fails."""
        return replace(SNR.interpreter, **{self.how: _breaks})


@pytest.mark.parametrize("how", ["read_flows", "prepare", "otherwise"])
def test_packets_that_we_fail_to_read_are_our_error_for_each_requirement(how: str) -> None:
    suite = Broken(SNR.name, SNR.title, SNR.protocol, SNR.profiles, SNR.package, how=how)
    late = flight().send(1, after=0.3)  # violates SNR-RTO-002
    found = judge(late.trace(), "rfc", CLAIMS, ["SNR-RTO-002", "SNR-WIN-001"], suite=suite)
    assert {item.requirement for item in found} == {"SNR-RTO-002", "SNR-WIN-001"}
    assert {item.verdict for item in found} == {Verdict.ERROR}
    assert found[0].sentence == "reading the packets broke: LookupError: no such segment"
    if how != "read_flows":
        (flow,) = SNR.interpreter.read_flows(late.trace())
        rows = judge_flow(flow, 0.0, "rfc", CLAIMS, suite=suite)
        assert any(item.verdict is Verdict.ERROR for _, told in rows for item in told or ())


def test_nothing_is_read_again_that_is_not_violated() -> None:
    others = Others(3)
    _judged(others, 0, 0)
    assert not others.made


def test_no_reading_is_made_once_nothing_is_violated() -> None:
    others = Others(9)
    _judged(others, 2, 1)
    assert len(others.made) == 2


@pytest.mark.long
def test_readings_are_there_one_at_a_time_while_nobody_collects_garbage() -> None:
    others = Others(6)
    gc.disable()
    try:
        _judged(others, 9)
    finally:
        gc.enable()
    assert len(others.made) == 6
    assert others.most == 0


def test_answer_is_remembered_until_it_is_forgotten() -> None:
    asked: list[int] = []

    @remembered
    def number(flow: Reading) -> int:
        asked.append(flow.number)
        return flow.number

    reading = Reading(7)
    assert number(reading) == number(reading) == 7
    assert asked == [7]
    gone = weakref.ref(reading)
    forget()
    del reading
    gc.collect()
    assert gone() is None


class Seen(NamedTuple):
    """Something that stands for a packet of a number."""

    packet: Packet[None]


def _seen(number: int) -> Seen:
    return Seen(Packet(number, 0.0, "iut", True, None, b""))


def _met_thrice(_flow: Reading, context: Context[Any]) -> Iterator[Finding]:
    for number in (4, 5, 6):
        yield context.holds(f"met at {number}", _seen(number))


def test_findings_of_a_checker_that_is_asked_directly_have_their_own_packets() -> None:
    told = [(item.sentence, item.packets) for item in _met_thrice(Reading(USUAL), _context())]
    assert told == [("met at 4", (4,)), ("met at 5", (5,)), ("met at 6", (6,))]


def test_findings_that_are_only_counted_are_the_first_of_them_with_their_number() -> None:
    interpreter = replace(SNR.interpreter, prepare=lambda flow: None)
    (found,) = Readings(Reading(USUAL), interpreter).judged(_met_thrice, _context())
    assert (found.sentence, found.packets, found.count) == ("met at 4", (4,), 3)


def test_findings_of_another_reading_are_counted_anew() -> None:
    def check(flow: Reading, context: Context[Any]) -> Iterator[Finding]:
        yield context.holds(f"reading {flow.number}")
        if flow.number == USUAL:
            yield context.violated("not so")

    interpreter = replace(SNR.interpreter, otherwise=Others(1).read, prepare=lambda flow: None)
    (found,) = Readings(Reading(USUAL), interpreter).judged(check, _context())
    assert (found.sentence, found.count) == ("reading 1", 1)
