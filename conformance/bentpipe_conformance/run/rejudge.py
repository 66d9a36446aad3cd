"""Judging again: a stored bundle, or a capture the suite did not make."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.checking import judge
from bentpipe_conformance.engine.execution import Recording, judge_case
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import Suite, load_suites
from bentpipe_conformance.engine.trace import HasPackets, Trace, dissected
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import Bundle, BundleError
from bentpipe_conformance.evidence.frames import CaptureError
from bentpipe_conformance.evidence.network import ipv4_packet, read_usable
from bentpipe_conformance.evidence.records import CaseRecord


def judge_again(bundle: Bundle, record: CaseRecord) -> CaseRecord:
    """The record of a stored case judged anew from its captures, by the same function as live.

    Raises:
        BundleError: a capture is missing or damaged.
    """
    if record.verdict == "unsupported" and not record.findings:
        return record
    item = load_cases(bundle.run.suite).get(record.id)
    if item is None:
        return record
    run, lane = bundle.run, record.lane
    recording = Recording(
        item, bundle.captured(record.id), run.profile, run.iut.ics,
        timing_error=float(lane.get("timing_error", 0.0)),
        not_reached=str(lane.get("not_reached", "")), broken=record.error,
        died=str(lane.get("died", "")),
    )  # fmt: skip
    verdict, reason, findings = judge_case(recording)
    return replace(record, verdict=verdict, reason=reason, findings=findings)


def verify(bundle: Bundle) -> tuple[list[CaseRecord], list[dict[str, str]]]:
    """Check a finished bundle's hashes, judge every case again, and list what differs.

    Returns:
        The records as judged now, and ``case``, ``stored`` and ``judged`` (the verdicts) of each
        case whose packets do not give what is stored.

    Raises:
        BundleError: a file is missing, changed or damaged, or the bundle was judged by rules that
            this release does not have.
    """
    bundle.check()
    run = bundle.run
    if (suite := load_suites().get(run.suite)) and run.profile not in suite.profiles:
        raise BundleError(
            f"{bundle.directory} was judged by the profile {run.profile!r}, which this release "
            f"does not have (it has {', '.join(suite.profiles)}); verify it with the release that "
            "made it."
        )
    records, differences = [], []
    for record in bundle.cases():
        again = judge_again(bundle, record)
        records.append(again)
        if _gist(again) != _gist(record):
            before, now = record.verdict.value, again.verdict.value
            differences.append({"case": record.id, "stored": before, "judged": now})
    return records, differences


def _gist(record: CaseRecord) -> tuple[Any, ...]:
    return record.verdict, sorted((f.requirement, f.verdict, f.packets) for f in record.findings)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a foreign capture says about one requirement.

    Attributes:
        requirement: its identifier.
        holds: how many times it was exercised and met.
        violations: the findings against it, packet numbers being the capture's own.
        unclear: findings for which the capture is too coarse.
    """

    requirement: str
    holds: int
    violations: tuple[Finding, ...]
    unclear: tuple[Finding, ...]

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        if self.violations:
            first = self.violations[0]
            times = f" ({len(self.violations)} times in all)" if len(self.violations) > 1 else ""
            where = f"at packet {first.packets[0]}" if first.packets else "somewhere"
            return f"violated {where}{times}: {first.sentence}"
        if self.unclear:
            return f"unclear: {self.unclear[0].sentence}"
        if self.holds:
            return f"holds {self.holds} times" if self.holds > 1 else "holds once"
        return "not exercised"


def analyze(
    trace: Trace[Any], profile: str, ics: Mapping[str, Any], suite: Suite
) -> tuple[list[Analysis], list[HasPackets]]:
    """Judge a capture the suite did not make, against every requirement of a profile.

    Args:
        trace: the capture, taken at the implementation's side of the link.
        profile: a profile of the suite.
        ics: what to assume of the implementation; its handshake fills in what is missing.
        suite: whose requirements.

    Returns:
        One analysis per wire-testable requirement, and the connections found.
    """
    flows = list(suite.interpreter.read_flows(trace))
    findings = judge(trace, profile, ics, suite=suite)
    analyses = []
    for requirement in suite.requirements().values():
        if requirement.testability != "wire" or profile not in requirement.profiles:
            continue
        found = [item for item in findings if item.requirement == requirement.id]
        holds = sum(item.count for item in found if item.verdict is Verdict.PASS)
        violations = tuple(item for item in found if item.verdict is Verdict.FAIL)
        unclear = tuple(item for item in found if item.verdict is Verdict.INCONCLUSIVE)
        analyses.append(Analysis(requirement.id, holds, violations, unclear))
    return analyses, flows


def busiest_sender(path: str | os.PathLike[str], *, partial: bool = False, suite: Suite) -> str:
    """The IPv4 address that sent the most user data of the suite's protocol in a capture.

    Raises:
        CaptureError: the file is unreadable or holds no such data.
    """
    interpreter = suite.interpreter
    frames, _ = read_usable(path, partial=partial)
    octets: Counter[str] = Counter()
    for frame in frames:
        content = dissected(interpreter.dissect, ipv4_packet(frame) or b"")
        if content is not None:
            sender, amount = interpreter.payload(content)
            octets[sender] += amount
    if not octets.total():
        payload = f"{suite.protocol} payload"
        raise CaptureError(f"{os.fspath(path)} holds no {payload} over IPv4 to judge.")
    return octets.most_common(1)[0][0]
