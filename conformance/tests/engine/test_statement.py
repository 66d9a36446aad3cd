"""What a conformance statement claims, and the sentence for what it does not."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.statement import declared, unclaimed

ICS = {"sack": True, "rack": True, "prr": False, "congestion_control": "cubic"}


@pytest.mark.parametrize("condition", ["", "sack", "sack, prr=no", "congestion_control=reno|cubic"])
def test_claimed_condition_lacks_nothing(condition: str) -> None:
    assert declared(ICS, condition)
    assert unclaimed(ICS, condition) == ""


@pytest.mark.parametrize(
    ("condition", "lack"),
    [
        ("dsack", "does not claim dsack"),
        ("sack, rack=no", "claims rack"),
        ("frto=no", "does not say whether there is frto"),
        ("congestion_control=reno", "names cubic as its congestion_control, not reno"),
        ("pacing_law=a|b", "does not name its pacing_law"),
        ("dsack, rack=no", "does not claim dsack and claims rack"),
    ],
)
def test_unclaimed_condition_is_told_by_what_lacks(condition: str, lack: str) -> None:
    assert not declared(ICS, condition)
    assert unclaimed(ICS, condition) == f"the conformance statement {lack}"
