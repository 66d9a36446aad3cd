"""Hypothesis draws the same examples in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bentpipe_reference.common.mutation import Mutant
from hypothesis import settings

settings.register_profile("bentpipe", derandomize=True, deadline=None)
settings.load_profile("bentpipe")


@pytest.fixture(scope="session")
def assert_changes_one_part_or_settings() -> Callable[[Mutant, Any], None]:
    """A mutant, applied to a true set-up, replaces one part, or changes settings and no part."""

    def check(mutant: Mutant, true: Any) -> None:
        mutated = mutant.configure(true)
        changed = [
            name
            for name in type(true.parts).__dataclass_fields__
            if getattr(true.parts, name) is not getattr(mutated.parts, name)
        ]
        assert len(changed) + (not changed and mutated.config != true.config) == 1
        assert mutant.title

    return check
