"""Whether the true reference is ever accused: random links, settings and users, in virtual time.

Two references communicate over a link that loses, delays, reorders and duplicates packets. The
captures of both sides are judged like those of an implementation. No finding may fail: one that
does is a mistake of a checker or of the reference.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from bentpipe_reference.common.blind import Variant
from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.subject import Drawn, Host, subject_of

from bentpipe_conformance.engine.case import Case, Script
from bentpipe_conformance.engine.checking import judge
from bentpipe_conformance.engine.execution import Outcome, run_case
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.iut.station import Station
from bentpipe_conformance.selftest.chance import blow, draw_calls, draw_link, draw_weather, tidy
from bentpipe_conformance.selftest.pool import work_through
from bentpipe_conformance.selftest.stage import set_up, stage

ADDRESSES = ("10.77.0.2", "10.78.0.1")
LENGTH_S = 60.0
"""Of a transfer in which nobody is silent for long."""
MOST_PACKETS = 20_000
"""A transfer ends early after as many packets: judging takes longer than sending."""


@dataclass(frozen=True, slots=True)
class Accusation:
    """A finding against the true reference in the transfer of ``seed``.

    ``host`` is 1 for the one that sends in the link's forward direction, 2 for the other;
    ``packets`` are frame numbers of the evidence.
    """

    seed: int
    host: int
    requirement: str
    sentence: str
    packets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hearing:
    """The outcome of one transfer.

    ``packets`` counts those captured at both sides; ``passed`` are the requirements that a checker
    found met, ``accusations`` what failed, and checkers that broke; ``connections`` counts those
    drawn, and ``known`` the accusations of what is known to deviate.
    """

    seed: int
    packets: int
    passed: frozenset[str]
    accusations: tuple[Accusation, ...]
    connections: int = 0
    known: int = 0


@dataclass(frozen=True, slots=True)
class Side:
    """One host after a transfer."""

    trace: Trace[Any]
    ics: Mapping[str, Any]
    profile: str


def transfer(suite: Suite, seed: int, first: Drawn | None = None) -> list[Side]:
    """Let two references of a suite communicate; a seed determines every packet.

    The host that sends in the link's forward direction is drawn, too, unless it is given.
    """
    subject = subject_of(suite.folder)
    numbers = random.Random(f"{suite.name} {seed}")
    link = draw_link(numbers)
    drawn = [subject.draw(numbers, link) for _ in ADDRESSES]
    drawn[0] = first or drawn[0]
    simulation = Simulation()
    hosts = [
        subject.make(address, item.setup, numbers.getrandbits(32))
        for address, item in zip(ADDRESSES, drawn, strict=True)
    ]
    latencies = [item.latency_s for item in drawn]
    stations = connected(simulation, hosts, latencies, link, numbers)
    until = LENGTH_S
    for number, station in enumerate(stations):
        for call in draw_calls(numbers, LENGTH_S):
            subject.call(simulation, station, hosts[number], ADDRESSES[1 - number], call)
            until = max(until, LENGTH_S + call.silence[1])
    run_transfer(simulation, stations, until)
    return [
        Side(read_trace(station.captured, suite=suite), item.ics, item.profile)
        for station, item in zip(stations, drawn, strict=True)
    ]


def connected(
    simulation: Simulation, hosts: Sequence[Host], latencies: Sequence[float], link: LinkProfile,
    numbers: random.Random,
) -> tuple[Station, Station]:  # fmt: skip
    """Stations for two hosts; the first sends in the link's forward direction."""
    first, second = (
        Station(simulation, host, latency)
        for host, latency in zip(hosts, latencies, strict=True)
    )  # fmt: skip
    seed = numbers.getrandbits(32)
    ways = (first, link.forward, second), (second, link.return_, first)
    for offset, (sender, direction, receiver) in enumerate(ways):
        way = VirtualLink(simulation, direction, receiver.receive, seed + offset)
        sender.attach(way)
        blow(simulation, way, draw_weather(numbers, direction, LENGTH_S))
    return first, second


def run_transfer(simulation: Simulation, stations: Iterable[Station], until: float) -> None:
    """Let them communicate until then, in seconds, or :data:`MOST_PACKETS`."""
    while simulation.step(until):
        if sum(len(station.captured) for station in stations) > MOST_PACKETS:
            return


def hear(suite: str, seed: int, variant: Variant | None = None) -> Hearing:
    """Judge one transfer of the true reference, or of a variant of it with the true one."""
    record = suite_named(suite)
    if record.driver.improvise is not None:
        return hear_boxes(record, record.driver.improvise, seed, variant)
    first = None
    if variant is not None:
        profile = variant.profile or record.profiles[0]
        usual = set_up(subject_of(record.folder), profile, variant.setting)
        ics = {**usual.ics, **variant.ics}
        first = replace(usual, setup=variant.configure(usual.setup), ics=ics)
    passed: set[str] = set()
    accusations = []
    packets = 0
    for host, side in enumerate(transfer(record, seed, first), start=1):
        packets += len(side.trace.packets)
        for found in judge(side.trace, side.profile, side.ics, suite=record):
            if found.verdict is Verdict.PASS:
                passed.add(found.requirement)
            elif found.verdict in (Verdict.FAIL, Verdict.ERROR):
                what = found.requirement, found.sentence, found.packets
                accusations.append(Accusation(seed, host, *what))
    return Hearing(seed, packets, frozenset(passed), tuple(accusations))


def improvised(
    suite: Suite, improvise: Script, seed: int,
    configure: Callable[[Any], Any] = lambda setup: setup, setting: str | None = None,
    ics: Mapping[str, Any] = MappingProxyType({}),
) -> Outcome:  # fmt: skip
    """Play a script from drawn numbers with a reference that the tester is on both sides of.

    Its link is drawn, and its setting where None is named; ``ics`` are answers that differ.
    """
    subject = subject_of(suite.folder)
    numbers = random.Random(f"{suite.name} {seed}")
    drawn = draw_link(numbers)
    # Weather is the script's, which asks whether the path works.
    link = replace(drawn, forward=tidy(drawn.forward), return_=tidy(drawn.return_))
    profile = numbers.choice(suite.profiles)
    chosen = numbers.choice(("", *subject.settings)) if setting is None else setting
    lane, settings = stage(subject, profile, chosen, seed, configure, link)
    name = f"{suite.name}/transfers/{seed}"
    item = Case(name, "A transfer", "Drawn at random.", (), (), (profile,), improvise)
    return run_case(item, lane, replace(settings, ics={**settings.ics, **ics}))


def hear_boxes(
    suite: Suite, improvise: Script, seed: int, variant: Variant | None = None
) -> Hearing:
    """Judge what passes a reference that stands between two ends, both of which the tester is."""
    given = (variant.configure, variant.setting, variant.ics) if variant else ()
    outcome = improvised(suite, improvise, seed, *given)
    broken = outcome.broken or outcome.died
    found = [(it.requirement, it.sentence, it.packets) for it in outcome.findings
             if it.verdict in (Verdict.FAIL, Verdict.ERROR)]  # fmt: skip
    accusations = [*found, *([("", broken, ())] if broken else [])]
    passed = {it.requirement for it in outcome.findings if it.verdict is Verdict.PASS}
    return Hearing(
        seed, len(outcome.captured), frozenset(passed),
        tuple(Accusation(seed, 1, *item) for item in accusations),
    )  # fmt: skip


def hear_all(
    suite: str, seeds: Iterable[int], jobs: int, report: Callable[[Hearing], None]
) -> list[Hearing]:
    """Judge many transfers on ``jobs`` processes, calling ``report`` for each in turn."""
    return work_through(seeds, partial(hear, suite), jobs, report)


def summary(hearings: Sequence[Hearing], suite: str) -> dict[str, Any]:
    """The machine-readable outcome."""
    return {
        "suite": suite,
        "transfers": len(hearings),
        "connections": sum(item.connections for item in hearings),
        "known": sum(item.known for item in hearings),
        "packets": sum(item.packets for item in hearings),
        "met": sorted(set().union(*(item.passed for item in hearings))),
        "accusations": [
            {**asdict(item), "packets": list(item.packets)}
            for hearing in hearings
            for item in hearing.accusations
        ],
    }
