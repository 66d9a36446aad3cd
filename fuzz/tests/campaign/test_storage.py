"""What a finding tells of its packets."""

from __future__ import annotations

from bentpipe_conformance.engine.story import IUT
from bentpipe_conformance.protocols.rwbp.credit import build_frame
from bentpipe_conformance.protocols.rwbp.story import Story
from bentpipe_conformance.protocols.rwbp.suite import SUITE
from bentpipe_fuzz.campaign.engine import Discovery
from bentpipe_fuzz.campaign.script import Script
from bentpipe_fuzz.campaign.storage import AROUND, MOST_LADDER, story

PACKETS = 1000


def _told(told: Story, *marked: int) -> list[str]:
    script = Script("rwbp", "honest", (), (), 1)
    signature = ("RWBP-SEC-003", "", "")
    found = Discovery(signature, "", marked, script, script, tuple(told.packets), (), 1)
    lines = story(found, SUITE)
    return lines[lines.index("The packets at the implementation's side:") + 1 :]


def test_ladder_of_a_long_conversation_shows_what_is_around_the_marked_packets() -> None:
    long = Story().send(*range(PACKETS))
    lines = _told(long, 600, 602)
    assert sum(line.startswith(" *") for line in lines) == 2
    assert lines[0].split()[0] == "1"
    shown = [line for line in lines if not line.startswith("  ...")]
    assert len(shown) == MOST_LADDER
    assert [int(line.split()[0]) for line in shown if line.split()[0] == str(600 - AROUND)]
    left = sum(int(line.split()[2]) for line in lines if line.startswith("  ..."))
    assert left + len(shown) == len(long.packets)


def test_ladder_of_a_short_conversation_shows_all() -> None:
    lines = _told(Story().send(0, 1), 4)
    assert [line.startswith(" *") for line in lines] == [False, False, False, True, False]


def test_ladder_tells_a_gateways_credit() -> None:
    lines = _told(Story().tell(False, build_frame(IUT, 1, 0, 9), 0.1))
    assert "credit · epoch" in lines[-1]
