"""What the tester says of what has arrived, and its calls, seen at the tester's side."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.codec import Stp
from bentpipe_fuzz.campaign.plan import drawn
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_fuzz.campaign.speed import reference_of
from bentpipe_fuzz.stp.called import CALLED, CALLING
from bentpipe_fuzz.stp.walks import LONG, RECEIVERS, SENDERS, STATES

OPENED = Step("open", {"service": "chargen", "credit": 64})
ARRIVED = Step("wait", {"seconds": 1.3})
FULL = 9000


def _seen(*steps: Step, seed: int = 1) -> list[Stp]:
    """The packets at the tester's side, and that nothing is held against the reference."""
    _, lane, settings = reference_of("stp")
    played = play(Script("stp", "off-path", steps, (), seed), lane, settings)
    assert not played.findings
    trace = read_trace(played.outcome.captured or [], 1e-6, suite=suite_named("stp"))
    return [item.content for item in trace.packets
            if item.point == "peer" and isinstance(item.content, Stp)]  # fmt: skip


def _told(*tells: dict[str, Any]) -> list[tuple[int, list[int]]]:
    """N(R) and the list of each report, in SDs."""
    packets = _seen(OPENED, ARRIVED, *(Step("tell", dict(given)) for given in tells))
    iss = next(item.seq for item in packets if item.type == codec.BGAK)
    reports = [item for item in packets if item.type in (codec.STAT, codec.USTAT)][: len(tells)]

    def place(number: int) -> int:
        return (number - iss + (1 << 23)) % (1 << 24) - (1 << 23)

    return [(place(item.seq), [place(at) for at in item.elements]) for item in reports]


@pytest.mark.parametrize(
    ("tells", "expected"),
    [
        ([{}], [(0, [])]),
        ([{"ack": 2}, {"ack": 1}], [(2, []), (3, [])]),
        ([{"ack": 99}], [(4, [])]),
        ([{"hole": 1, "held": 2}], [(0, [0, 1, 3])]),
        ([{"hole": 1, "held": 1, "whole": True}], [(0, [0, 1, 2, 4])]),
        ([{"hole": 2}], [(0, [0, 2])]),
        # What fills a hole acknowledges what has been reported behind it.
        ([{"hole": 1, "held": 2}, {"ack": 1}], [(0, [0, 1, 3]), (3, [])]),
        ([{"kind": "USTAT", "hole": 2, "held": 1}], [(0, [1, 3])]),
        # What is invalid is not taken, and so has not been said.
        ([{"ack": 2, "wrong": "falling"}, {"ack": 1}], [(0, [2, 1]), (1, [])]),
        ([{"wrong": "high"}], [(5, [])]),
        ([{"ack": 1, "back": -1, "hole": 1}], [(1, [])]),
    ],
)  # fmt: skip
def test_reports(tells: list[dict[str, Any]], expected: list[Any]) -> None:
    assert _told(*tells) == expected


def test_reports_on_both_sides_of_the_wrap() -> None:
    """The implementation's own numbers differ from seed to seed, and wrap soon in some."""
    tell = Step("tell", {"kind": "USTAT", "hole": 1, "wrap": 1})
    for seed in range(8):
        steps = OPENED, Step("approach", {"sds": 2}), Step("wait", {"seconds": 0.7}), tell
        for item in _seen(*steps, seed=seed):
            if item.type == codec.USTAT and item.elements[1] == 1:
                assert item.elements[0] > item.elements[1]
                return
    pytest.fail("no run of missing SDs wraps")


@pytest.mark.parametrize("over", [0, 1])
def test_call_between_the_ports_of_a_connection_that_goes_on(over: int) -> None:
    """What has too much data opens nothing, so that the connection answers as ever."""
    knock = Step("knock", {"octets": FULL, "over": over, "here": True, "stay": True})
    steps = Step("open", {"service": "discard"}), knock, ARRIVED, Step("ask"), ARRIVED
    packets = _seen(*steps)
    begin = next(item for item in packets if len(item.data) == 1448 + over)
    assert begin.type == codec.BEGIN and begin.sport == packets[2].sport
    answered = [item.type for item in packets[packets.index(begin) :]][1]
    assert answered == (codec.POLL if over else codec.BGAK)


@pytest.mark.parametrize("walk", [*SENDERS, *RECEIVERS, *STATES, *LONG, *CALLED, *CALLING])
def test_walks_accuse_the_reference_of_nothing(walk: Any) -> None:
    for number, steps in enumerate(drawn(walk, 4, 5)):
        _seen(*steps, seed=number)
