"""What the tester says of what has arrived, seen at the tester's side."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.protocols.rwbp.codec import Rwbp
from bentpipe_conformance.protocols.tcp.codec import MODULUS
from bentpipe_fuzz.campaign.plan import drawn
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_fuzz.campaign.speed import reference_of
from bentpipe_fuzz.rwbp.walks import HELD_UP, LONG, WALKS

SIZE = 1460
OPENED = Step("open", {"service": "chargen", "window": 8 * SIZE})
ARRIVED = Step("wait", {"seconds": 0.9})


def _told(*tells: dict[str, Any]) -> list[tuple[float, list[tuple[float, float]]]]:
    """What each report acknowledges, and its blocks, in segments."""
    steps = (OPENED, ARRIVED, *(Step("tell", dict(given)) for given in tells))
    _, lane, settings = reference_of("rwbp")
    played = play(Script("rwbp", "off-path", steps, (), 1), lane, settings)
    assert not played.findings
    trace = read_trace(played.outcome.captured or [], 1e-6, suite=suite_named("rwbp"))
    came = [item.content for item in trace.packets
            if item.point == "peer" and isinstance(item.content, Rwbp)]  # fmt: skip
    first = next(item.seq for item in came if item.sport == 19) + 1
    reports = [item for item in came if item.dport == 19][2 : 2 + len(tells)]

    def place(number: int) -> float:
        return ((number - first + MODULUS // 2) % MODULUS - MODULUS // 2) / SIZE

    return [(place(item.ack), [(place(a), place(b)) for a, b in item.sack]) for item in reports]


@pytest.mark.parametrize(
    ("tells", "expected"),
    [
        ([{}], [(0, [])]),
        ([{"ack": 2}, {"ack": 1}], [(2, []), (3, [])]),
        ([{"ack": 99}], [(8, [])]),
        ([{"hole": 1, "held": 2}], [(0, [(1, 3)])]),
        ([{"hole": 6, "held": 9}, {"hole": 8, "held": 1}], [(0, [(6, 8)]), (0, [])]),
        # What fills a hole acknowledges what has been reported behind it.
        ([{"hole": 1, "held": 2}, {"ack": 1}], [(0, [(1, 3)]), (3, [])]),
        ([{"hole": 1, "held": 1}, {"hole": 3, "held": 1, "known": True}],
         [(0, [(1, 2)]), (0, [(3, 4), (1, 2)])]),
        ([{"ack": 2}, {"old": SIZE, "hole": 1, "held": 1}], [(2, []), (1, [(3, 4)])]),
    ],
)  # fmt: skip
def test_reports(tells: list[dict[str, Any]], expected: list[Any]) -> None:
    assert _told(*tells) == expected


@pytest.mark.parametrize("walk", [*WALKS, *HELD_UP, *LONG])
def test_walks_can_be_played(walk: Any) -> None:
    _, lane, settings = reference_of("rwbp")
    for steps in drawn(walk, 3, 1):
        played = play(Script("rwbp", "honest", tuple(steps), (), 1), lane, settings)
        assert not played.findings
        assert not played.outcome.died
