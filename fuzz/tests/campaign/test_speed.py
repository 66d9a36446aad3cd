"""How fast campaigns are."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_fuzz.campaign.binding import binding_of, suites_with_campaign
from bentpipe_fuzz.campaign.plan import drawn
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script, ScriptError
from bentpipe_fuzz.campaign.speed import main, reference_of
from click.testing import CliRunner


def test_speed_of_all_is_that_of_the_suites_with_a_campaign() -> None:
    result = CliRunner().invoke(main, ["--conversations", "1"], catch_exceptions=False)
    assert result.exit_code == 0
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == suites_with_campaign()


def test_suites_with_a_campaign_are_those_that_have_a_binding() -> None:
    assert {"snr", "stp", "rwbp"} <= set(suites_with_campaign())
    for name, suite in load_suites().items():
        if name in suites_with_campaign():
            assert binding_of(suite).verbs
        else:
            with pytest.raises(ScriptError, match="has no campaign: nothing is in bentpipe_fuzz"):
                binding_of(suite)


def test_short_conversations_open_write_and_close() -> None:
    for name in suites_with_campaign():
        for steps in drawn(binding_of(load_suites()[name]).short, 10, 1):
            verbs = [step.verb for step in steps]
            assert verbs[:3] == ["open", "write", "settle"]
            assert {"close", "release"} & {*verbs}


def test_conversation_played_again_without_oracles_has_the_same_packets() -> None:
    for name in suites_with_campaign():
        suite, lane, settings = reference_of(name)
        steps = next(iter(drawn(binding_of(suite).short, 1, 1)))
        script = Script(name, "honest", tuple(steps), (), 1)
        judged, again = (play(script, lane, settings, judging=judging) for judging in (True, False))
        assert judged.met
        assert judged.reached
        assert not (again.met or again.reached or again.findings)
        octets = [item.data for item in again.outcome.captured if item.point == "iut"]
        first = [item.data for item in judged.outcome.captured if item.point == "iut"]
        assert len(octets) > 5
        assert first[: len(octets)] == octets
