"""How verdicts merge."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict, across_cases, within_case

PASS, FAIL, OPEN, ERROR, UNSUPPORTED = (
    Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.ERROR, Verdict.UNSUPPORTED,
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([PASS, PASS], PASS),
        ([PASS, OPEN], OPEN),
        ([OPEN, FAIL], FAIL),
        ([FAIL, ERROR], ERROR),
        ([PASS, UNSUPPORTED], PASS),
        ([UNSUPPORTED], UNSUPPORTED),
        ([], None),
    ],
)
def test_findings_of_a_case_merge_as_in_ttcn_3(
    found: list[Verdict], expected: Verdict | None
) -> None:
    assert within_case(found) is expected
    assert within_case(reversed(found)) is expected


def test_violation_proven_in_one_case_survives_an_error_in_another() -> None:
    assert across_cases([ERROR, FAIL, PASS]) is FAIL
    assert across_cases([ERROR, PASS, OPEN]) is ERROR
