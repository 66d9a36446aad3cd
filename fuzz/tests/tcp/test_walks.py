"""What the tester says of what has arrived, and that walks can be played."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.protocols.tcp.codec import MODULUS, Tcp
from bentpipe_fuzz.campaign.plan import drawn
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_fuzz.campaign.speed import reference_of
from bentpipe_fuzz.tcp.walks import SENDERS
from bentpipe_fuzz.tcp.wandering import LONG, RECEIVERS, STATES

SIZE = 1460


def _told(offer: dict[str, Any], *tells: dict[str, Any]) -> list[tuple[float, list[Any]]]:
    """What each report acknowledges, and its blocks, in segments."""
    steps = [Step("open", {"service": "chargen", "window": 8 * SIZE, **offer}),
             Step("receive", {"seconds": 3.0, "segments": 12}), Step("wait", {"seconds": 0.9}),
             *(Step("tell", dict(given)) for given in tells)]  # fmt: skip
    _, lane, settings = reference_of("snr")
    played = play(Script("snr", "off-path", tuple(steps), (), 2), lane, settings)
    assert not played.findings
    trace = read_trace(played.outcome.captured or [], 1e-6, suite=suite_named("snr"))
    there = (item for item in trace.packets if item.point == "peer" and item.time < 1000)
    sent = [item.content for item in there if isinstance(item.content, Tcp)]
    first = next(item.seq for item in sent if item.sport == 19) + 1
    reports = [item for item in sent if item.dport == 19 and not item.flags & 6][-len(tells) :]
    size = SIZE - 12 * bool(offer.get("timestamps"))

    def place(number: int) -> float:
        return ((number - first + MODULUS // 2) % MODULUS - MODULUS // 2) / size

    return [(place(item.ack), [(place(a), place(b)) for a, b in item.sack]) for item in reports]


def test_reports_of_some_of_what_has_arrived() -> None:
    told = _told({}, {}, {"hole": 1, "held": 2}, {"ack": 1})
    base = told[0][0]
    assert told == [(base, []), (base, [(base + 1, base + 3)]), (base + 3, [])]


def test_reports_without_sack_have_no_blocks() -> None:
    told = _told({"sack": False}, {}, {"hole": 1, "held": 2}, {"ack": 1})
    base = told[0][0]
    assert told == [(base, []), (base, []), (base + 3, [])]


@pytest.mark.parametrize(("timestamps", "most"), [(False, 4), (True, 3)])
def test_reports_have_as_many_blocks_as_fit(timestamps: bool, most: int) -> None:
    odd = [{"hole": n, "held": 1, "known": True} for n in (1, 3, 5, 7)]
    told = _told({"timestamps": timestamps, "window": 12 * SIZE}, {}, *odd)
    assert [len(blocks) for _, blocks in told] == [0, 1, 2, 3, most]


@pytest.mark.parametrize("walk", dict.fromkeys((*SENDERS, *RECEIVERS, *STATES, *LONG)))
def test_walks_can_be_played(walk: Any) -> None:
    _, lane, settings = reference_of("snr")
    for steps in drawn(walk, 3, 1):
        played = play(Script("snr", "honest", tuple(steps), (), 1), lane, settings)
        assert not played.findings
        assert not played.outcome.died
        assert not played.outcome.broken
