"""Who is told of a run's progress."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe_conformance.evidence.records import CaseRecord


class Watcher:
    """Is told of a run's progress; this one ignores it, a subclass overrides what it needs."""

    def planned(self, cases: int, already: int) -> None:
        """How many cases the run has, and how many of them were done before (``--resume``)."""

    def finished(self, record: CaseRecord, running: Sequence[str]) -> None:
        """A case was finished; which others are running now."""

    def note(self, sentence: str) -> None:
        """Something a person should know."""
