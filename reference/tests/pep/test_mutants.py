from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bentpipe_reference.common.mutation import Mutant, load_mutants
from bentpipe_reference.pep.subject import SETTINGS, SUBJECT

MUTANTS = [mutant for mutant in load_mutants().values() if mutant.profile in SUBJECT.setups]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_mutant_when_configured_changes_one_part_or_settings(
    mutant: Mutant, assert_changes_one_part_or_settings: Callable[[Mutant, Any], None]
) -> None:
    true = SUBJECT.setups[mutant.profile]
    if mutant.setting:
        true = SETTINGS[mutant.setting].configure(true)
    assert_changes_one_part_or_settings(mutant, true)
