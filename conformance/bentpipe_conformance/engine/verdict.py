"""The five verdicts and how they combine."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """A test verdict; the order inside one case is that of TTCN-3 (ETSI ES 201 873-1, 24.1).

    ``UNSUPPORTED`` is outside that order: it comes only from the declared and probed conformance
    statement, before any packet is judged.
    """

    PASS = "pass"
    INCONCLUSIVE = "inconclusive"
    FAIL = "fail"
    ERROR = "error"
    UNSUPPORTED = "unsupported"


_WITHIN_A_CASE = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL, Verdict.ERROR)
# Across cases a proven violation stays proven even when the bed failed in another case, so FAIL
# outranks ERROR here: a deviation from TTCN-3, which has no verdict across test cases.
_ACROSS_CASES = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.ERROR, Verdict.FAIL)


def _merge(verdicts: Iterable[Verdict], order: tuple[Verdict, ...]) -> Verdict | None:
    return max(verdicts, key=(Verdict.UNSUPPORTED, *order).index, default=None)


def within_case(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The verdict of one case from those of its findings; None when there are none."""
    return _merge(verdicts, _WITHIN_A_CASE)


def across_cases(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The verdict of a requirement (or a run) from several cases; None when there are none."""
    return _merge(verdicts, _ACROSS_CASES)


EXIT_STATUS = {
    Verdict.PASS: 0,
    Verdict.UNSUPPORTED: 0,
    Verdict.FAIL: 1,
    Verdict.INCONCLUSIVE: 3,
    Verdict.ERROR: 3,
}
"""Exit status of the command line for an overall verdict (2 is kept for wrong usage)."""
