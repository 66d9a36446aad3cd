"""A few mutants of each reference, drawn with a fixed seed: the suites have not become blinder.

Most of the time is the true reference's, in every case. PEP's is the shortest; the others are slow.
"""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.selftest.mutation.campaign import Campaign, Choice, Store
from bentpipe_conformance.selftest.mutation.explaining import load_explanations
from bentpipe_conformance.selftest.mutation.outcome import outcome_of
from bentpipe_conformance.selftest.mutation.scope import load_scope

SAMPLE = 16
SEED = 11


@pytest.mark.parametrize(
    "suite",
    [pytest.param(name, marks=() if name == "pep" else pytest.mark.slow) for name in load_suites()],
)
def test_sample_of_mutants_is_killed_as_often_as_the_data_says(suite: str) -> None:
    scope = load_scope(load_suites()[suite].folder)
    every = scope.mutants()
    chosen = Choice(sample=SAMPLE, seed=SEED).of(every)
    campaign = Campaign(scope, suite, jobs=2, usual=True)
    store = Store(None, "")
    campaign.run(chosen, store)
    assert len(store.trials) == len(chosen) == SAMPLE
    explanations = load_explanations(scope)
    outcome = outcome_of(suite, scope, chosen, store.trials, explanations, every, complete=False)
    assert outcome["problems"] == []
    missed = [f"{row['id']}: {row['kind']}" for row in outcome["survivors"]]
    assert outcome["score"] >= scope.limits.sampled, "\n".join(missed)
