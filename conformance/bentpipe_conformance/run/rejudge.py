"""A stored case judged again from its packets."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.execution import Judgment, Recording, judge_case
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.statement import unclaimed
from bentpipe_conformance.engine.timing import lateness
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import POINTS, Bundle, BundleError, Envelope
from bentpipe_conformance.evidence.captures import dump_captured
from bentpipe_conformance.evidence.files import digest
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.run.exploration import requirement_of


def judge_again(
    bundle: Bundle, record: CaseRecord, item: Case, link: LinkProfile,
    stored: tuple[Envelope, list[Captured]] | None = None,
) -> CaseRecord:  # fmt: skip
    """The record of a stored case as plan and captures give it, by the same functions as live.

    What the tester alone knows is taken from the record: that the script did not reach its
    situation, that the implementation ended, that the bed broke. ``stored`` is what was kept of an
    attempt, in place of the case's own.

    Raises:
        BundleError: a capture is missing, damaged, or not as this case would have stored it.
    """
    run = bundle.run
    envelope, captured = stored or (bundle.envelope(record.id), bundle.captured(record.id))
    for point in POINTS:
        if (
            digest(dump_captured(captured, point, record.id, record.started))
            != (envelope.sha256[f"{point}.pcapng"])
        ):
            raise BundleError(
                f"{bundle.directory}/cases: {point}.pcapng of {record.id} is not what this case "
                "has stored: its packets are another case's, or come with something else."
            )
    same = replace(record, title=item.title, purpose=item.purpose, requirements=item.requirements)
    if reason := unclaimed(run.iut.ics, *item.needs):
        if captured:
            raise BundleError(
                f"{record.id} has packets, although {reason}, so that it cannot have been run."
            )
        return replace(
            same, verdict=Verdict.UNSUPPORTED, reason=reason, findings=(),
            lane={**record.lane, "timing_error": 0.0},
        )  # fmt: skip
    error = 0.0
    if captured or not record.error:
        measured = lateness(read_trace(captured, suite=item.suite), link)
        error = max(bundle.bed(envelope.session).timing_error, measured)
    verdict, reason, findings = judge_told(
        Recording(
            item, captured, run.profile, run.iut.ics, error,
            not_reached=_text(record, "not_reached"), broken=record.error,
            died=_text(record, "died"),
        ),
        _text(record, "told"),
    )  # fmt: skip
    lane = {**record.lane, "timing_error": error}
    return replace(same, verdict=verdict, reason=reason, findings=findings, lane=lane)


def judge_told(recording: Recording, told: str) -> Judgment:
    """The verdict of a case of which the tester alone knew something, too.

    Args:
        recording: the case.
        told: how an oracle of a campaign is violated, which packets alone do not show; empty for
            none.
    """
    verdict, reason, findings = judge_case(recording)
    if not told:
        return verdict, reason, findings
    oracle = requirement_of(recording.case.id)
    shown = Finding(oracle, Verdict.FAIL, (), told)
    return Verdict.FAIL, f"{oracle}: {told}", (*findings, shown)


def _text(record: CaseRecord, name: str) -> str:
    value = record.lane.get(name, "")
    if not isinstance(value, str):
        raise BundleError(f"{record.id}: what its lane says of {name} is no text.")
    return value
