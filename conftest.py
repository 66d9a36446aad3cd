"""What all tests share: which of them run in one process, and that no machine is too slow for them.

Tests of a file that share a costly set-up run in one process (``--dist loadgroup``). pytest-xdist's
own groups do not: pytest 9 keeps identifiers where xdist 3.8 does not write to (``Node._nodeid``),
so that its marks are without effect.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A deadline of the wall clock fails on a busy machine only, and then whatever test runs.
settings.register_profile(
    "any-machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")

TOGETHER = (
    "bed/test_host_place.py", "bed/test_isolation.py", "bed/test_stp_box.py",
    "durability/test_faults.py", "evidence/test_forgeries.py", "run/test_certify.py",
)  # fmt: skip
"""Their set-ups take seconds, and all of their tests together less than a minute."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files of `TOGETHER`, everything else test by test."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return path if path.endswith(TOGETHER) else nodeid

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """Forget what is done: all that is kept is counted anew after each test."""
            scope = self._split_scope(self.registered_collections[node][item_index])
            super().mark_test_complete(node, item_index, duration)
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]

    return Together(config, log)
