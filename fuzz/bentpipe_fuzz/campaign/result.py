"""A campaign of its own, and its result: an evidence bundle of conversations that were found."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bentpipe_conformance.evidence.bundle import Bundle, BundleError, case_directory
from bentpipe_conformance.run.plan import Plan, make_plan
from bentpipe_conformance.run.seal import seal_bundle

from bentpipe_fuzz.campaign import cluster, shards
from bentpipe_fuzz.campaign.exploring import Findings
from bentpipe_fuzz.campaign.known import known_deviation
from bentpipe_fuzz.campaign.replay import load
from bentpipe_fuzz.campaign.storage import FINDINGS, Figures, Order


def check_room(folder: Path) -> None:
    """See that a campaign can leave its bundle there, before anything else is done.

    Raises:
        BundleError: the folder holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "a run" if (folder / "run.json").is_file() else "other files"
        remedy = "add --fresh, or choose" if what == "a run" else "choose"
        raise BundleError(f"{folder} already holds {what}; {remedy} another --out directory.")


def campaign_plan(
    iut: str, link: str, profile: str | None, bed: str, folder: Path, seed: int | None,
    command: tuple[str, ...], **wanted: Any,
) -> Plan:  # fmt: skip
    """The plan of a campaign, without cases; ``wanted`` is what it was asked for.

    Raises:
        ValueError: a bad description, link or profile.
        BedError: the place cannot be had.
        IutUnavailable: the implementation cannot be built here.
    """
    plan = make_plan(
        iut=iut, link=link, profile=profile, bed=bed, cases=(), directory=folder, seed=seed,
        command=command,
    )  # fmt: skip
    return replace(plan, run=replace(plan.run, campaign={**wanted, "modes": [*wanted["modes"]]}))


@dataclass(frozen=True, slots=True)
class Campaigned:
    """What came of a campaign: its figures, and what ``--json`` prints."""

    figures: Figures
    document: dict[str, Any]


def run_campaign(plan: Plan, watch: shards.Watch, share: str = "") -> Campaigned:
    """Run a campaign and leave its bundle, whose cases are the conversations that it found.

    A finding is in the bundle as soon as it is small. When the campaign is interrupted, the bundle
    is finished with what there is, and says so. What is shared may be at a URL with a password,
    which the plan does not hold.

    Raises:
        BedError: no shard can be started.
        BundleError: the bundle cannot be written.
    """
    run, wanted, began = plan.run, plan.run.campaign, time.monotonic()
    limit = wanted["minutes"] * 60 or None
    bundle = Bundle.create(plan.directory, run)
    with tempfile.TemporaryDirectory(prefix="bentpipe-fuzz-", ignore_cleanup_errors=True) as place:
        order = Order(
            plan.iut, plan.link, run.profile, run.seed, wanted["examples"],
            tuple(wanted["modes"]), run.bed.timing_error, wanted["shrink_runs"], place,
            shards.patience(plan.place), share=share,
        )  # fmt: skip
        collected = _Collected(plan, bundle, Path(place))

        def collecting(figures: Figures, told: list[str]) -> None:
            collected.collect()
            watch(figures, told)

        interrupted = False
        try:
            if address := wanted["dask"]:
                figures, _ = cluster.run(order, plan.place.name, address, limit, collecting)
            else:
                figures, _ = shards.run(order, plan.place, wanted["jobs"], limit, collecting)
        except KeyboardInterrupt:
            interrupted = True
            figures = shards.total(collected.folders())
        collected.collect()
    document = {
        "iut": plan.iut, "link": plan.link, "profile": run.profile, "seed": run.seed,
        "conversations": figures.conversations, "packets": figures.packets,
        "findings": collected.rows(figures), "seconds": round(time.monotonic() - began, 3),
        "link_seconds": round(figures.link_seconds, 3), "states_by_packets": len(figures.reached),
        "problem": figures.problem or figures.broken, "restarts": figures.restarts,
        "interrupted": interrupted, "note": figures.note,
    }  # fmt: skip
    bundle.explored({**figures.document(), **document, "found": collected.found})
    seal_bundle(bundle)
    bundle.close()
    return Campaigned(figures, document)


class _Collected:
    """The findings that shards have stored so far, each signature once."""

    def __init__(self, plan: Plan, bundle: Bundle, place: Path) -> None:
        self._findings = Findings(plan, bundle)
        self._plan = plan
        self._place = place
        self._seen: set[Path] = set()
        self._rows: dict[tuple[str, ...], dict[str, Any]] = {}

    @property
    def found(self) -> list[str]:
        """The identifiers of what is in the bundle."""
        return self._findings.found

    def folders(self) -> list[Path]:
        """Where shards, and those that were started again, leave their results."""
        return [self._place, *(path for path in self._place.rglob("*") if path.is_dir())]

    def collect(self) -> None:
        """Add what is new to the bundle."""
        for path in sorted(self._place.rglob(f"{FINDINGS}/*/replay.json")):
            if path in self._seen:
                continue
            self._seen.add(path)
            told = load(path)
            if told.signature in self._rows:
                continue
            record, captured = self._findings.record(told, path.parent)
            self._findings.add(record, captured, told)
            shown = next((f for f in record.findings if f.requirement == told.requirement), None)
            run, known = self._plan.run, ""
            if shown is not None and captured:
                known = known_deviation(
                    run.iut.id, run.profile, shown, captured, record.lane["timing_error"],
                    run.iut.ics,
                )  # fmt: skip
            self._rows[told.signature] = {
                "requirement": told.requirement, "sentence": told.sentence,
                "signature": list(told.signature), "length": told.script.length,
                "case": record.id, "known": known,
                "folder": str(self._plan.directory / "cases" / case_directory(record.id)),
            }  # fmt: skip

    def rows(self, figures: Figures) -> list[dict[str, Any]]:
        """The findings as JSON, with how many conversations had each."""
        return [
            {**row, "conversations": figures.seen.get(signature, 1)}
            for signature, row in self._rows.items()
        ]
