"""What the tests of several protocols need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Impairment, Script, Step
from bentpipe_fuzz.campaign.speed import reference_of


@pytest.fixture
def accused() -> Callable[..., bool]:
    """Whether the reference breaks a requirement of a suite when a tester on the path does that."""

    def accuses(
        suite: str, requirement: str, steps: Sequence[Step], link: Sequence[Impairment] = ()
    ) -> bool:
        _, lane, settings = reference_of(suite)
        found = play(Script(suite, "on-path", tuple(steps), tuple(link), 1), lane, settings)
        assert found.outcome.broken == ""
        return found.breaks(requirement)

    return accuses
