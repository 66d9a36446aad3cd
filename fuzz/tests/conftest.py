"""What the tests of several protocols need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Impairment, Script, Step
from bentpipe_reference.common.subject import subject_of


@pytest.fixture
def accused() -> Callable[..., bool]:
    """Whether the reference breaks a requirement of a suite when a tester on the path does that."""

    def accuses(
        suite: str, requirement: str, steps: Sequence[Step], link: Sequence[Impairment] = ()
    ) -> bool:
        record = suite_named(suite)
        lane, settings = stage(subject_of(record.folder), record.profiles[0], "", 0)
        found = play(Script(suite, "on-path", tuple(steps), tuple(link), 1), lane, settings)
        assert found.outcome.broken == ""
        return found.breaks(requirement)

    return accuses
