"""What campaigns found in the references stays mended; and what is documented replays."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.replay import load
from bentpipe_fuzz.campaign.run import play
from bentpipe_reference.common.subject import subject_of

FOUND = sorted((Path(__file__).parents[3] / "docs" / "findings").glob("*.json"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_found_conversation_shows_nothing_on_the_reference(path: Path) -> None:
    told = load(path)
    suite = suite_named(told.script.suite)
    binding_of(suite).check(told.script)
    assert told.requirement in suite.requirements()
    assert path.stem.startswith(told.iut)
    lane, settings = stage(subject_of(suite.folder), told.profile, "", 0)
    assert not play(told.script, lane, settings).findings


def test_there_are_findings() -> None:
    assert len(FOUND) >= 7
