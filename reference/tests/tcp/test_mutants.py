from __future__ import annotations

import pytest
from bentpipe_reference.common.mutation import Mutant, load_mutants
from bentpipe_reference.tcp.mutants.window import FillsSmallOpenings
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.subject import SETUPS

MUTANTS = [mutant for mutant in load_mutants().values() if mutant.profile in SETUPS]


@pytest.mark.parametrize(
    ("name", "profile", "true"),
    [
        ("snr-silly-segments", "rfc", SackNewRenoRfcSender),
        ("snr-silly-segments-hk99", "hk99", SackNewRenoHk99Sender),
    ],
)
def test_mutant_declared_for_both_profiles_mutates_the_sender_of_each(
    name: str, profile: str, true: type[Sender]
) -> None:
    mutant = load_mutants()[name]
    assert mutant.profile == profile
    sender = mutant.configure(SETUPS[profile]).parts.sender
    assert sender.__mro__.index(FillsSmallOpenings) < sender.__mro__.index(true)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_mutant_when_configured_changes_one_part_or_settings_alone(mutant: Mutant) -> None:
    true = SETUPS[mutant.profile]
    mutated = mutant.configure(true)
    changed = [
        name
        for name in type(true.parts).__dataclass_fields__
        if getattr(true.parts, name) is not getattr(mutated.parts, name)
    ]
    assert len(changed) + (mutated.config != true.config) == 1
