"""Runs of models that came to nothing, told once for each cause."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe_conformance.models.tool import Refused
from bentpipe_conformance.models.verification import Result


def told_once(results: Iterable[Result]) -> list[str]:
    """A sentence for each cause, with the first run that met it and how many others did."""
    alike: dict[tuple[str, str], list[Result]] = {}
    for item in results:
        if item.verdict == "problem":
            cause = item.problem.cause if isinstance(item.problem, Refused) else item.why
            alike.setdefault((item.manifest.name, cause), []).append(item)
    return [
        f"{first.manifest.name} {first.run.name}"
        f"{f' and {len(others)} more' if others else ''}: {first.why}"
        for first, *others in alike.values()
    ]
