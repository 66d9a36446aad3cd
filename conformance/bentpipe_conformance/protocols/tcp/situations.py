"""Stories told up to a situation about which several checkers are asked."""

from __future__ import annotations

from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import RTT, Story

PASS, FAIL, UNCLEAR = {Verdict.PASS}, {Verdict.FAIL}, {Verdict.INCONCLUSIVE}
NOTHING: set[Verdict] = set()
"""What a checker finds, for comparison with :meth:`.Story.verdicts`."""


def flight(segments: int = 8, *, sack: bool = False) -> Story:
    """A flight with its first segment acknowledged after a round trip, which releases one more."""
    return Story(sack=sack).send(*range(segments)).ack(1, after=RTT).send(segments)


def window_limited_flight(*, sack: bool = False) -> Story:
    """A flight of twelve whose first two segments are acknowledged, each releasing two more."""
    story = Story(sack=sack).send(*range(12)).ack(1, after=RTT).send(12, 13)
    return story.ack(2, after=0.01).send(14, 15)


def duplicates(story: Story, segment: int, count: int = 3) -> Story:
    """Duplicate acknowledgments of a segment, 10 ms apart."""
    for _ in range(count):
        story.ack(segment, after=0.01)
    return story


def three_reports() -> Story:
    """Ten segments, the third lost, three reports of held data 10 ms apart."""
    story = Story().send(*range(10)).ack(2, after=RTT)
    for top in (4, 5, 6):
        story.ack(2, (3, top), after=0.01)
    return story
