"""Blind rounds of variants: right implementations that are not the reference, and who accuses them.

Somebody else writes them, as subclasses of the reference that use a MAY, have a reason against a
SHOULD, or do what the text leaves open. Each plays the suite's cases and transfers data with a true
reference, or stands between random ends; its conformance statement is what it declares. Whoever it
is that is accused then, the variant or the reference that talks to it, each requirement is reviewed
beside the first run, which alone counts::

    date = "2026-11-23"

    [variant.tcp-v1-acks-all]
    active = true
    error = ""
    ics = { quickack = true }

    [variant.tcp-v1-acks-all.accused.SNR-RCV-004]
    first = "snr/rcv/x: acknowledges ..."
    review = "mended"
    reason = "RFC 5681 section 4.2 bounds the octets per acknowledgment above, not below."

``review`` is *open*; *mended*, as the checker was wrong; *stated*, as an item of the conformance
statement had to say it, which ``ics`` now answers; *forbidden*, as the variant is not what its
clause permits; or *advised*: it does not follow a SHOULD, is told so, and nothing fails for it. A
variant that breaks down or never changes a packet does not count.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from bentpipe_reference.common.blind import VARIANTS, Variant, load_round

from bentpipe_conformance.engine.execution import Outcome
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.selftest.activity import activity_of
from bentpipe_conformance.selftest.innocence import hear
from bentpipe_conformance.selftest.pool import work_through
from bentpipe_conformance.selftest.rounds import (
    circumstances,
    hear_reference_first,
    played,
    record_file,
    store_first_run,
)

SEEDS = range(1, 11)
"""Of the transfers."""
WRONG = frozenset({"mended", "stated"})
RIGHT = frozenset({"forbidden", "advised"})
REVIEWS = ("open", *sorted(WRONG | RIGHT))


@dataclass(frozen=True, slots=True)
class Charge:
    """A finding against a variant.

    Attributes:
        requirement: its identifier.
        where: the case, or the seed of the transfer and the host: 1 for the variant, 2 for the true
            reference that it talked to.
        sentence: of the finding.
        packets: frame numbers of the evidence.
    """

    requirement: str
    where: str
    sentence: str
    packets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VariantResult:
    """What became of one variant.

    Attributes:
        id, title, clause: of the variant.
        active: whether it ever sends other packets than the true reference.
        charges: everything that it is accused of.
        error: how it broke down, or could not be run; empty if it could.
    """

    id: str
    title: str
    clause: str
    active: bool
    charges: tuple[Charge, ...]
    error: str = ""

    @property
    def accused(self) -> dict[str, Charge]:
        """The first charge on each requirement."""
        return {item.requirement: item for item in reversed(self.charges)}


def judge_variant(identifier: str, suite: str, number: int) -> VariantResult:
    """Run every case of a variant's profile on it, and the transfers."""
    record = suite_named(suite)
    variant = load_variants(record.folder, number)[identifier]
    told = variant.id, variant.title, variant.clause
    charges: list[Charge] = []
    active = False
    try:
        usual = _usual(record, *circumstances(variant, record))
        for item, outcome in played(record, *circumstances(variant, record), variant):
            if outcome.died:
                return VariantResult(*told, active, (), f"{item.id}: {outcome.died}")
            active = active or usual[item.id] != _packets(outcome)
            charges += [
                Charge(found.requirement, item.id, found.sentence, found.packets)
                for found in outcome.findings
                if found.verdict in (Verdict.FAIL, Verdict.ERROR)
            ]
        for seed in SEEDS:
            charges += [
                Charge(it.requirement, f"transfer {seed}, host {it.host}", it.sentence, it.packets)
                for it in hear(suite, seed, variant).accusations
            ]
    except Exception as error:  # what a stranger wrote may not even start
        return VariantResult(*told, active, (), f"{type(error).__name__}: {error}")
    active = active or activity_of(variant, record.folder).active > 0
    return VariantResult(*told, active, tuple(charges))


@cache
def _usual(suite: Suite, profile: str, setting: str) -> Mapping[str, int]:
    """What the true reference sends and receives in each case."""
    return {item.id: _packets(outcome) for item, outcome in played(suite, profile, setting)}


def _packets(outcome: Outcome) -> int:
    return hash(tuple((item.time, item.data) for item in outcome.captured))


def run_variants(
    suite: str, number: int, only: Sequence[str], jobs: int,
    report: Callable[[VariantResult], None],
) -> list[VariantResult]:  # fmt: skip
    """Judge the variants of a round, or those named, on ``jobs`` processes.

    Raises:
        ValueError: there is no such round, or none of the variants; or the true reference is
            accused.
    """
    record = suite_named(suite)
    variants = load_variants(record.folder, number)
    chosen = [name for name in variants if not only or name in only]
    if not chosen:
        what = f"the round of variants {number} of {suite}"
        raise ValueError(f"{what} has no variant {', '.join(only)}")
    hear_reference_first(record, (variants[name] for name in chosen))
    return work_through(chosen, partial(judge_variant, suite=suite, number=number), jobs, report)


def load_variants(protocol: str, number: int) -> dict[str, Variant]:
    """The variants of a round, each with the answers that its review has added.

    Raises:
        ValueError: as :func:`load_record` and :func:`load_round`.
    """
    reviewed = load_record(protocol, number).get("variant", {})
    return {
        name: replace(item, ics={**item.ics, **reviewed.get(name, {}).get("ics", {})})
        for name, item in load_round(protocol, number, VARIANTS).items()
    }


def load_record(protocol: str, number: int) -> Mapping[str, Any]:
    """The recorded first run; empty before it.

    Raises:
        ValueError: a review is not known, lacks its reason, or is of no variant.
    """
    path = record_file(protocol, number, VARIANTS)
    if not path.exists():
        return {}
    record = tomllib.loads(path.read_text(encoding="utf-8"))
    known = load_round(protocol, number, VARIANTS)
    for name, item in record["variant"].items():
        if name not in known:
            raise ValueError(f"{path}: the round has no variant {name}")
        for requirement, review in item.get("accused", {}).items():
            if review["review"] not in REVIEWS:
                given = f"{requirement} of {name} is {review['review']!r}"
                raise ValueError(f"{path}: {given}; give {', '.join(REVIEWS)}")
            if review["review"] != "open" and not review["reason"]:
                raise ValueError(f"{path}: {requirement} of {name} is reviewed without a reason")
    return record


def write_record(protocol: str, number: int, results: Iterable[VariantResult], date: str) -> Path:
    """Record the first run of a round; review it by hand.

    Raises:
        ValueError: it has been recorded: only the first run counts.
    """
    lines = [
        "# The first run, which alone counts, and a review of each accusation: open, mended,",
        "# stated, forbidden or advised, with a reason.",
        f'date = "{date}"',
    ]
    for item in results:
        lines += ["", f"[variant.{item.id}]", f"active = {str(item.active).lower()}"]
        lines += [f"error = {json.dumps(item.error)}"]
        for requirement, charge in item.accused.items():
            lines += ["", f'[variant.{item.id}.accused."{requirement}"]']
            lines += [f"first = {json.dumps(f'{charge.where}: {charge.sentence}')}"]
            lines += ['review = "open"', 'reason = ""']
    return store_first_run(record_file(protocol, number, VARIANTS), lines)


def first_run(record: Mapping[str, Any]) -> dict[str, Any]:
    """The sums of a recorded first run: variants that count, and who was accused how."""
    counted = [item for item in record.get("variant", {}).values() if _counts(item)]
    accused = [
        {review["review"] for review in item["accused"].values()}
        for item in counted
        if item.get("accused")
    ]
    charges = [it["review"] for item in counted for it in item.get("accused", {}).values()]
    return {
        "date": record.get("date", ""),
        "variants": len(counted),
        "accused": len(accused),
        "rightly": sum(reviews <= RIGHT for reviews in accused),
        "wrongly": sum(bool(reviews & WRONG) for reviews in accused),
        "requirements": {name: charges.count(name) for name in REVIEWS},
    }


def _counts(item: Mapping[str, Any]) -> bool:
    return bool(item["active"]) and not item["error"]


def variants_summary(
    suite: str, number: int, results: Sequence[VariantResult], record: Mapping[str, Any]
) -> dict[str, Any]:
    """The machine-readable outcome: this run, and the sums of the first run.

    ``accused`` are those of which an accusation is not, or not any more, right by the review.
    """
    rows = []
    for item in results:
        review = record.get("variant", {}).get(item.id, {})
        reviews = {name: it["review"] for name, it in review.get("accused", {}).items()}
        rows.append({
            **asdict(item),
            "accused": {name: reviews.get(name, "new") for name in item.accused},
            "first": dict(review),
        })  # fmt: skip
    return {
        "suite": suite,
        "variants_round": number,
        "variants": len(rows),
        "idle": [row["id"] for row in rows if not (row["active"] or row["error"])],
        "errors": [row["id"] for row in rows if row["error"]],
        "accused": [row["id"] for row in rows if set(row["accused"].values()) - RIGHT],
        "first": first_run(record),
        "table": rows,
    }
