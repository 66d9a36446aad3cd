"""Conversations in which campaigns accused the reference wrongly, each made small."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from bentpipe_fuzz.campaign.script import Step

SCRIPTS = [
    (
        "a BEGIN with the peer's CSN to a caller that releases, which discards it",
        "STP-CC-019",
        [Step("call"), Step("hang_up"), Step("packet", {"kind": "BEGIN"})],
    ),
    (
        "an END without an answer, and a call between the same ports",
        "STP-CC-026",
        [
            Step("open", {"service": "echo"}),
            Step("write"),
            Step("hang_up"),
            Step("restart", {"service": "echo"}),
            Step("wait", {"seconds": 5.0}),
        ],
    ),
]


@pytest.mark.parametrize(
    ("requirement", "steps"), [row[1:] for row in SCRIPTS], ids=[row[0] for row in SCRIPTS]
)
def test_reference_is_not_accused(
    requirement: str, steps: list[Step], accused: Callable[[str, str, Sequence[Step]], bool]
) -> None:
    assert not accused("stp", requirement, steps)
