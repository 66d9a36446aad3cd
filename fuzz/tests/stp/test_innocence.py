"""Conversations in which campaigns accused the reference wrongly, each made small."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_reference.common.subject import subject_of

SCRIPTS = [
    (
        "a BEGIN with the peer's CSN to a caller that releases, which discards it",
        "STP-CC-019",
        [Step("call"), Step("hang_up"), Step("packet", {"kind": "BEGIN"})],
    ),
]


@pytest.mark.parametrize(
    ("requirement", "steps"), [row[1:] for row in SCRIPTS], ids=[row[0] for row in SCRIPTS]
)
def test_reference_is_not_accused(requirement: str, steps: list[Step]) -> None:
    record = suite_named("stp")
    lane, settings = stage(subject_of("stp"), record.profiles[0], "", 0)
    found = play(Script("stp", "on-path", tuple(steps), (), 1), lane, settings)
    assert not found.breaks(requirement) and found.outcome.broken == ""
