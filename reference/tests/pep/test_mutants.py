from __future__ import annotations

import pytest
from bentpipe_reference.common.mutation import Mutant, load_mutants
from bentpipe_reference.pep.subject import SETTINGS, SUBJECT

MUTANTS = [mutant for mutant in load_mutants().values() if mutant.profile in SUBJECT.setups]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_mutant_when_configured_changes_one_part_or_settings(mutant: Mutant) -> None:
    true = SUBJECT.setups[mutant.profile]
    if mutant.setting:
        true = SETTINGS[mutant.setting].configure(true)
    mutated = mutant.configure(true)
    changed = [
        name
        for name in type(true.parts).__dataclass_fields__
        if getattr(true.parts, name) is not getattr(mutated.parts, name)
    ]
    assert len(changed) == 1 or (not changed and mutated.config != true.config)
    assert mutant.title
