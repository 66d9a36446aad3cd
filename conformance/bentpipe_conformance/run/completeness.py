"""Whether a run is whole: all cases of its suite planned, and each planned one run."""

from __future__ import annotations

from collections.abc import Collection

from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.evidence.records import RunRecord


def whole_suite(suite: str, profile: str) -> tuple[str, ...]:
    """The cases that a whole run has: those of the profile that are not asked for by name only."""
    found = load_cases(suite).values()
    return tuple(item.id for item in found if profile in item.profiles and not item.extra)


def lacking(run: RunRecord, stored: Collection[str]) -> list[str]:
    """Why a run is partial, a sentence each; empty when it is whole.

    Args:
        run: its plan.
        stored: the cases that have a result.
    """
    if run.campaign:
        return ["it is a campaign: what it has not found may be there all the same"]
    found = []
    whole = whole_suite(run.suite, run.profile)
    left_out = len(set(whole) - set(run.cases))
    if left_out:
        chosen = len(whole) - left_out
        found.append(f"{chosen} of the suite's {len(whole)} cases were chosen")
    missing = sorted(set(run.cases) - set(stored))
    if missing:
        named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        found.append(
            f"{len(missing)} of the {len(run.cases)} planned cases have no result: {named}"
        )
    return found
