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
        bundled: whether the description is one of this tool's own.
        attached: how it meets the bed, as its description says.
        files: SHA-256 of its description, and of every executable, library and directory that it
            runs from, by path.
        isolation: how it was kept apart, and what it asked for beyond its own files.
    """

    id: str
    name: str
    description: str = ""
    ics: dict[str, Any] = field(default_factory=dict)
    bundled: bool = False
    attached: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    isolation: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bed:
    """Where the run took place.

    Attributes:
        place: ``uml-virtual``, ``uml``, ``host`` or ``simulation``.
        reason: why this place was chosen, in one sentence.
        kernel: version of the kernel under the link, empty in simulation.
        timing_error: seconds by which a time taken in the bed may be wrong.
        check: figures of the bed check (delay, rate, loss), name -> value.
        sha256: of the kernel under the link, empty where it is not a file of ours.
    """

    place: str
    reason: str = ""
    kernel: str = ""
    timing_error: float = 0.0
    check: dict[str, Any] = field(default_factory=dict)
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """A later session of a run that was interrupted; the first one is the run's own.

    Attributes:
        bed: where it took place, as it was measured then.
        started: seconds since 1970.
    """

    command: tuple[str, ...]
    bed: Bed
    started: float


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The plan of a run, complete before its first case; it is never changed.

    Attributes:
        bentpipe: version of this tool.
        source: SHA-256 of this tool's source.
        requirements: SHA-256 of the suite's requirements.
        cases: the identifiers of the planned cases.
        environment: what the run was made on.
        campaign: what a campaign of 'bentpipe fuzz' was asked for, which plans no cases; empty for
            a certification.
        link: the link profile, as data; ``link["id"]`` names it.
        profile: a profile of the suite.
        suite: short name of the suite, for example ``snr``.
        started: seconds since 1970.
        finished: seconds since 1970, None while the run is unfinished; ``result.json`` holds it.
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
    source: str = ""
    requirements: str = ""
    cases: tuple[str, ...] = ()
    environment: dict[str, Any] = field(default_factory=dict)
    campaign: dict[str, Any] = field(default_factory=dict)

    def differences(self, other: RunRecord) -> list[str]:
        """What makes the two runs different experiments, in words; empty when resumable."""
        pairs = [
            ("implementation", self.iut.id, other.iut.id),
            ("link", self.link.get("id"), other.link.get("id")),
            ("profile", self.profile, other.profile),
            ("suite", self.suite, other.suite),
            ("place", self.bed.place, other.bed.place),
            ("kernel", self.bed.sha256[:12], other.bed.sha256[:12]),
            ("seed", self.seed, other.seed),
            ("bentpipe version", self.bentpipe, other.bentpipe),
            ("source", self.source[:12], other.source[:12]),
        ]
        found = [f"{what} {mine} not {theirs}" for what, mine, theirs in pairs if mine != theirs]
        if self.iut.ics != other.iut.ics:
            found.append("another conformance statement (ICS)")
        if self.iut.id == other.iut.id and self.iut != other.iut:
            changed = sorted(dict(self.iut.files.items() ^ other.iut.files.items()))
            found.append(f"another build of it ({', '.join(changed[:3]) or 'its description'})")
        if self.link != other.link and self.link.get("id") == other.link.get("id"):
            found.append("a link of the same name with other contents")
        if self.cases != other.cases:
            found.append(
                f"{len(self.cases)} planned cases, of which {self._shared(other)} are asked"
            )
        return found

    def _shared(self, other: RunRecord) -> int:
        return len(set(self.cases) & set(other.cases))
