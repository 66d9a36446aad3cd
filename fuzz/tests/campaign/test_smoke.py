"""A short campaign against each reference with a fixed seed: nobody is accused, nothing breaks."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine import checking
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.engine import Campaign
from bentpipe_fuzz.campaign.plan import drawn
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script
from bentpipe_fuzz.campaign.speed import reference_of

SEED = 3
CONVERSATIONS = 50
"""Of each mode; all of them together take less than half a minute."""

SUITES = ["snr", "stp", "rwbp"]
MODES = ["honest", "lazy", "on-path", "off-path"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("suite", SUITES)
def test_reference_is_not_accused_by_a_smoke_campaign(suite: str, mode: str) -> None:
    record, lane, settings = reference_of(suite)
    running = Campaign(record, lambda: lane, settings, SEED, modes=[mode], shrink_runs=0)
    found = [
        item
        for item in running.run(lambda tally: tally.conversations < CONVERSATIONS)
        if item is not None
    ]
    tally = running.tally
    told = [(item.signature, item.sentence, item.script.story()) for item in found]
    assert not told
    assert (tally.conversations, tally.problem, tally.broken) == (CONVERSATIONS, "", "")
    assert len(tally.reached) > 5 and len(tally.met) > 20, "a campaign that reaches nothing"


def test_checkers_that_are_not_asked_would_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of transfers, of connections on which there is none (``checker(..., of=)``)."""
    suite, lane, settings = reference_of("stp")
    for mode in MODES:
        for number, steps in enumerate(drawn(binding_of(suite).modes[mode], 5, SEED)):
            script = Script("stp", mode, tuple(steps), (), number)
            asked = play(script, lane, settings).outcome.findings
            with monkeypatch.context() as patched:
                patched.setattr(checking, "_NEEDED", {})
                assert play(script, lane, settings).outcome.findings == asked
