"""The checkers of the link rate and of delivery on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.protocols.rwbp.story import CLAIMS, FAIL, NOTHING, PASS, SIZE, Story
from bentpipe_conformance.protocols.tcp.codec import ACK

RATE = 1_000_000
TAKES = 8 * (SIZE + 40) / RATE


@pytest.mark.parametrize(
    ("after", "expected"), [(TAKES, PASS), (0.9 * TAKES, FAIL), (3 * TAKES, NOTHING)]
)
def test_second_packet(after: float, expected: set[object]) -> None:
    story = Story().send(0).send(1, after=after)
    claims = {**CLAIMS, "link_rate": True, "link_rate_bps": RATE}
    assert story.verdicts("RWBP-LC-011", claims=claims) == expected


@pytest.mark.parametrize(("second", "expected"), [(b"b", PASS), (b"c", FAIL)])
def test_echo_of_what_came_late(second: bytes, expected: set[object]) -> None:
    story = Story(service=7)
    story.put(False, flags=ACK, seq=101, payload=b"b").reply(0, (0.001, 0.002))
    story.put(False, flags=ACK, seq=100, payload=b"a")
    story.put(True, flags=ACK, seq=500, ack=102, payload=b"a" + second)
    assert story.verdicts("RWBP-EC-009") == expected
