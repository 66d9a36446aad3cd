"""The records of a bundle: a case with its findings, and the run; times in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class SentPacket:
    """An odd packet of the tester: seconds since the case began, and Scapy's expression of it."""

    time: float
    expression: str


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One executed case.

    Attributes:
        id: for example ``snr/recovery/third-duplicate-ack``.
        requirements: the IDs the case was written for.
        reason: why this verdict, in one sentence.
        started: seconds since 1970 on the clock of the place where it ran.
        link_seconds: duration of the case on the link's clock.
        wall_seconds: its duration on the wall clock.
        lane: facts about the lane it ran on, for example its number.
        error: text of a failure of the suite or the bed, empty if there was none.
        crafted: the odd packets that the tester sent, as expressions of Scapy.
    """

    id: str
    title: str
    purpose: str
    requirements: tuple[str, ...]
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...] = ()
    started: float = 0.0
    link_seconds: float = 0.0
    wall_seconds: float = 0.0
    tester_address: str = ""
    lane: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    crafted: tuple[SentPacket, ...] = ()


@dataclass(frozen=True, slots=True)
class Implementation:
    """The implementation under test, according to its TOML file and its probe.

    Attributes:
        ics: the implementation conformance statement, as declared.
    """

    id: str
    name: str
    description: str = ""
    ics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bed:
    """Where the run took place.

    Attributes:
        place: ``uml-virtual``, ``uml``, ``host`` or ``simulation``.
        reason: why this place was chosen, in one sentence.
        kernel: version of the kernel under the link, empty in simulation.
        timing_error: seconds by which a time taken in the bed may be wrong.
        check: figures of the bed check (delay, rate, loss), name -> value.
    """

    place: str
    reason: str = ""
    kernel: str = ""
    timing_error: float = 0.0
    check: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything about a run that is not a verdict.

    Attributes:
        bentpipe: version of this tool.
        link: the link profile, as data; ``link["id"]`` names it.
        profile: a profile of the suite.
        suite: short name of the suite, for example ``snr``.
        started: seconds since 1970.
        finished: seconds since 1970, None while the run is unfinished.
    """

    bentpipe: str
    command: tuple[str, ...]
    iut: Implementation
    link: dict[str, Any]
    profile: str
    bed: Bed
    seed: int
    suite: str = "snr"
    python: str = ""
    scapy: str = ""
    started: float = 0.0
    finished: float | None = None

    def differences(self, other: RunRecord) -> list[str]:
        """What makes the two runs different experiments, in words; empty when resumable."""
        pairs = [
            ("implementation", self.iut.id, other.iut.id),
            ("link", self.link.get("id"), other.link.get("id")),
            ("profile", self.profile, other.profile),
            ("suite", self.suite, other.suite),
            ("place", self.bed.place, other.bed.place),
            ("bentpipe version", self.bentpipe, other.bentpipe),
        ]
        found = [f"{what} {mine} not {theirs}" for what, mine, theirs in pairs if mine != theirs]
        if self.iut.ics != other.iut.ics:
            found.append("another conformance statement (ICS)")
        return found
