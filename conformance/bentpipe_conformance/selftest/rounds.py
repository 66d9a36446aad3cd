"""Blind rounds: how many faults that nobody chose for the exam it catches, and names rightly.

See :mod:`bentpipe_reference.common.blind` for what a round is. The verdicts of its first run are
stored beside it with their review::

    date = "2026-11-22"

    [fault.tcp-b1-late-timer]
    caught = true
    named = "SNR-RTO-003"
    valid = "valid"
    reason = "RFC 6298 section 5.3 says so without exception."
    right = true

``valid`` is *valid*, *equivalent*, *permitted* or *invisible*, and only valid ones count; ``right``
is whether the requirement named first is the right one, where clauses do not tell.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bentpipe_reference.common.blind import FAULTS, Variant, load_round
from bentpipe_reference.common.subject import subject_of
from bentpipe_spec.registry import Requirement

from bentpipe_conformance.engine.attribution import CaseFindings, attribute
from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.execution import Outcome, run_case
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.selftest.memory import shared_judge
from bentpipe_conformance.selftest.mutation.scope import data_file
from bentpipe_conformance.selftest.pool import work_through
from bentpipe_conformance.selftest.stage import stage

VALIDITIES = ("valid", "equivalent", "permitted", "invisible")

_CLAUSE = re.compile(r"(RFC \d+)(?: sections? ([\d., and]+))?")


@dataclass(frozen=True, slots=True)
class FaultResult:
    """The suite's verdict on one fault.

    Attributes:
        id, title, clause: of the fault.
        caught: whether any requirement fails.
        named: the requirement that names it, empty if it is not caught.
        failed: every requirement that fails, those that name it first.
        sentence: of the first finding on ``named``, with its case.
        cites: whether ``named`` is the fault's requirement or cites its clause.
        error: how the fault could not be run; empty if it could.
    """

    id: str
    title: str
    clause: str
    caught: bool
    named: str
    failed: tuple[str, ...]
    sentence: str
    cites: bool
    error: str = ""


def judge_fault(identifier: str, suite: str, number: int) -> FaultResult:
    """Run every case of the fault's profile on it."""
    record = suite_named(suite)
    fault = load_round(record.folder, number)[identifier]
    try:
        cases = findings_in(played(record, *circumstances(fault, record), fault))
    except Exception as error:  # what a stranger wrote may not even start
        why = f"{type(error).__name__}: {error}"
        return FaultResult(fault.id, fault.title, fault.clause, False, "", (), "", False, why)
    named = attribute(cases, record.rests_on())
    order = dict.fromkeys(name for item in named for name in (item.requirement, *item.consequences))
    first = named[0].requirement if named else ""
    return FaultResult(
        fault.id, fault.title, fault.clause, bool(named), first, tuple(order),
        _sentence(cases, first), bool(first) and cites(record.requirements()[first], fault.clause),
    )  # fmt: skip


def circumstances(fault: Variant, suite: Suite) -> tuple[str, str]:
    """The profile and the setting that a fault or variant is judged in."""
    return fault.profile or suite.profiles[0], fault.setting


def played(
    suite: Suite, profile: str, setting: str, fault: Variant | None = None
) -> Iterator[tuple[Case, Outcome]]:
    """Run every case of a profile on a fault or variant, or on the true reference."""
    reference = subject_of(suite.folder)
    if fault is None:
        lane, settings = stage(reference, profile, setting, 0)
    else:
        lane, settings = stage(reference, profile, setting, 0, fault.configure)
        settings = replace(settings, ics={**settings.ics, **fault.ics})
    for item in load_cases(suite.name).values():
        if profile in item.profiles and not item.extra:
            yield item, run_case(item, lane, settings, judged_by=shared_judge())


def findings_in(cases: Iterable[tuple[Case, Outcome]]) -> list[CaseFindings]:
    """What was found in each case."""
    return [CaseFindings(item.id, item.requirements, out.findings) for item, out in cases]


def _sentence(cases: Iterable[CaseFindings], requirement: str) -> str:
    found: Iterable[tuple[str, Finding]] = (
        (item.id, finding)
        for item in cases
        for finding in item.findings
        if finding.requirement == requirement and finding.verdict is Verdict.FAIL
    )
    return next((f"{case}: {finding.sentence}" for case, finding in found), "")


def cites(requirement: Requirement, clause: str) -> bool:
    """Whether a requirement is the one that a clause names, or has it among its sources.

    Of sections one may contain the other: ``RFC 9293 section 3.8`` and ``3.8.1``.
    """
    wanted = [part.strip() for part in clause.split(";")]
    if requirement.id in wanted:
        return True
    theirs = [place for source in requirement.source for place in _places(source)]
    return any(
        document == other and _within(section, another)
        for part in wanted
        for document, section in _places(part)
        for other, another in theirs
    )


def _places(text: str) -> list[tuple[str, str]]:
    """Documents and sections that a source names; an empty section for a whole document."""
    found = []
    for match in _CLAUSE.finditer(text):
        sections = re.findall(r"\d+(?:\.\d+)*", match[2] or "") or [""]
        found += [(match[1], section) for section in sections]
    return found


def _within(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return not shorter or f"{longer}.".startswith(f"{shorter}.")


def accused_reference(suite: Suite, profile: str, setting: str) -> str:
    """Of what the cases accuse the true reference in a setting: a sentence, or nothing."""
    cases = findings_in(played(suite, profile, setting))
    for item in attribute(cases, suite.rests_on()):
        return f"{item.requirement} in {_sentence(cases, item.requirement)}"
    return ""


def hear_reference_first(suite: Suite, judged: Iterable[Variant]) -> None:
    """See that the cases accuse no true reference, in whatever settings others are to be judged.

    Raises:
        ValueError: they do, and nothing would follow from an accusation of others.
    """
    for profile, setting in sorted({circumstances(item, suite) for item in judged}):
        if accusation := accused_reference(suite, profile, setting):
            where = f"{profile}, {setting}" if setting else profile
            raise ValueError(
                f"the true reference is accused ({where}), which comes first: {accusation}"
            )


def run_round(
    suite: str, number: int, only: Sequence[str], jobs: int, report: Callable[[FaultResult], None]
) -> list[FaultResult]:
    """Judge the faults of a round, or those named, on ``jobs`` processes.

    Raises:
        ValueError: there is no such round, or none of the faults; or the true reference is accused.
    """
    record = suite_named(suite)
    faults = load_round(record.folder, number)
    chosen = [name for name in faults if not only or name in only]
    if not chosen:
        raise ValueError(f"the round {number} of {suite} has no fault {', '.join(only)}")
    hear_reference_first(record, (faults[name] for name in chosen))
    return work_through(chosen, partial(judge_fault, suite=suite, number=number), jobs, report)


def record_file(protocol: str, number: int, kind: str = FAULTS) -> Path:
    """Where the first run of a round is recorded."""
    return data_file(protocol, f"blind/{kind}_{number}.toml")


def load_record(protocol: str, number: int) -> Mapping[str, Any]:
    """The recorded first run; empty before it.

    Raises:
        ValueError: a review is of no known validity, or of no fault.
    """
    path = record_file(protocol, number)
    if not path.exists():
        return {}
    record = tomllib.loads(path.read_text(encoding="utf-8"))
    known = load_round(protocol, number)
    for name, item in record["fault"].items():
        if name not in known:
            raise ValueError(f"{path}: the round has no fault {name}")
        if item.get("valid", "valid") not in VALIDITIES:
            raise ValueError(f"{path}: {name} is {item['valid']!r}; give {', '.join(VALIDITIES)}")
        if item.get("valid", "valid") != "valid" and not item.get("reason"):
            raise ValueError(f"{path}: {name} is {item['valid']} without a reason")
    return record


def write_record(protocol: str, number: int, results: Sequence[FaultResult], date: str) -> Path:
    """Record the first run of a round; review it by hand.

    Raises:
        ValueError: it has been recorded: only the first run counts.
    """
    lines = [
        "# The first run, which alone counts, and its review: valid, equivalent, permitted or",
        "# invisible, with a reason; right: whether the requirement named first is the right one.",
        f'date = "{date}"',
    ]
    for item in results:
        lines += ["", f"[fault.{item.id}]", f"caught = {str(item.caught).lower()}"]
        lines += [f"named = {json.dumps(item.named)}", f"right = {str(item.cites).lower()}"]
        lines += ['valid = "valid"', 'reason = ""']
    return store_first_run(record_file(protocol, number), lines)


def store_first_run(path: Path, lines: Iterable[str]) -> Path:
    """Write the record of a round.

    Raises:
        ValueError: it has been recorded: only the first run counts.
    """
    if path.exists():
        raise ValueError(f"the first run is recorded in {path}; only the first one counts")
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def round_summary(
    suite: str, number: int, results: Sequence[FaultResult], record: Mapping[str, Any]
) -> dict[str, Any]:
    """The machine-readable outcome: this run, the first run, and the sums of both.

    Faults that the review found not to be valid are listed, and not counted.
    """
    reviewed: Mapping[str, Mapping[str, Any]] = record.get("fault", {})

    def is_valid(name: str) -> bool:
        return str(reviewed.get(name, {}).get("valid", "valid")) == "valid"

    rows = []
    for item in results:
        review = reviewed.get(item.id, {})
        right = item.cites or (review.get("right", False) and review.get("named") == item.named)
        rows.append({**asdict(item), "right": bool(right), "first": dict(review)})
    valid = [row for row in rows if is_valid(row["id"])]
    firsts = [row["first"] for row in valid if row["first"]]
    return {
        "suite": suite,
        "round": number,
        "faults": len(rows),
        "valid": len(valid),
        "caught": sum(row["caught"] for row in valid),
        "right": sum(row["right"] for row in valid),
        "missed": [row["id"] for row in valid if not row["caught"]],
        "errors": [row["id"] for row in rows if row["error"]],
        "first": {
            "date": record.get("date", ""),
            "valid": len(firsts),
            "caught": sum(item["caught"] for item in firsts),
            "right": sum(item["caught"] and item["right"] for item in firsts),
        },
        "table": rows,
    }
