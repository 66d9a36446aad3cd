"""The checkers of the scheduler on traces of several connections (section 9.2)."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.story import IUT
from bentpipe_conformance.protocols.rwbp.credit import build_frame
from bentpipe_conformance.protocols.rwbp.story import CLAIMS, FAIL, NOTHING, PASS, SIZE, Story

ONE_PLACE: dict[str, Any] = {**CLAIMS, "gateway": True, "ip_queue": 1}
TEN_PLACES = {**ONE_PLACE, "ip_queue": 10}
DRR = {**ONE_PLACE, "scheduler": "drr", "quantum": 1500}


def ring(*ports: int, window: int = 12) -> dict[int, Story]:
    """Connections opened in this order, all of which may send a window."""
    stories = {}
    for place, port in enumerate(ports):
        story = Story(port=port, window=window)
        story.packets = [
            type(item)(item.time + place / 1000, item.point, item.outgoing, item.data)
            for item in story.packets
        ]
        story.at += 0.1
        stories[port] = story
    return stories


def together(stories: dict[int, Story]) -> Story:
    """One trace of them all."""
    whole = Story()
    frame = Story().tell(False, build_frame(IUT, 1, 0, 1000)).packets[-1:]
    frame = [type(item)(0.0, item.point, item.outgoing, item.data) for item in frame]
    packets = [item for story in stories.values() for item in story.packets]
    whole.packets = frame + sorted(packets, key=lambda item: item.time)
    return whole


def turns(order: str, window: int = 12, size: int = SIZE) -> Story:
    """Connections a, b and c; they send a segment each time they are named, 10 ms apart."""
    stories = ring(1, 2, 3, window=window)
    sent = dict.fromkeys(stories, 0)
    for step, name in enumerate(order):
        port = "abc".index(name) + 1
        story = stories[port]
        story.at = 0.7 + step / 100
        story.send(sent[port])
        sent[port] += 1
    return together(stories)


@pytest.mark.parametrize(
    ("order", "twice", "ringed"),
    [
        ("abcabcabc", PASS, PASS), ("abccabcab", FAIL, PASS), ("aabcabc", FAIL, PASS),
        ("acbacbacb", PASS, FAIL), ("abcbcabca", PASS, FAIL), ("aaaa", NOTHING, NOTHING),
    ],
)  # fmt: skip
def test_turns_of_three_connections(order: str, twice: set[object], ringed: set[object]) -> None:
    story = turns(order)
    assert story.verdicts("RWBP-FC-005", claims=ONE_PLACE) - PASS == twice - PASS
    assert (twice >= PASS) <= (story.verdicts("RWBP-FC-005", claims=ONE_PLACE) >= PASS)
    assert story.verdicts("RWBP-SC-001", claims=ONE_PLACE) - PASS == ringed - PASS


def test_connection_whose_window_is_full_is_passed_over() -> None:
    story = turns("abc" * 4 + "ababab", window=4)
    assert FAIL - story.verdicts("RWBP-SC-001", claims=ONE_PLACE) == FAIL
    assert FAIL - story.verdicts("RWBP-FC-005", claims=ONE_PLACE) == FAIL


def test_unequal_shares() -> None:
    fair = turns("abc" * 9, window=12)
    assert fair.verdicts("RWBP-FC-005", claims=ONE_PLACE) == PASS
    unfair = turns("ab" * 3 + "abbbbb" * 2 + "a", window=14)
    assert unfair.verdicts("RWBP-SC-003", claims=DRR) == FAIL


def losses(again: tuple[int, int], left: float = 0.1) -> Story:
    """Losses of a are reported after b has got room; segments of a leave again, then b's."""
    stories = ring(1, 2)
    a, b = stories[1], stories[2]
    for index in range(12):
        a.at, b.at = 0.7 + index / 1000, 0.7005 + index / 1000
        a.send(index)
        b.send(index)
    b.ack(12, after=0.8)
    a.ack(0, (2, 12), after=0.9)
    a.send(again[0], after=left).send(again[1], after=0.01)
    b.at = a.at + 0.01
    b.send(12, 13)
    return together(stories)


@pytest.mark.parametrize("again", [(0, 0), (0, 1)])
def test_retransmissions_that_may_have_been_queued_before(again: tuple[int, int]) -> None:
    """A timeout may have made two copies, and other acknowledgments have told of the losses."""
    story = losses(again)
    for rule in ("RWBP-FC-005", "RWBP-SC-001", "RWBP-SC-002"):
        assert FAIL - story.verdicts(rule, claims=TEN_PLACES) == FAIL


def test_retransmissions_one_behind_the_other_with_one_place() -> None:
    assert losses((0, 1)).verdicts("RWBP-FC-005", claims=ONE_PLACE) >= FAIL


def test_segments_that_the_window_of_a_syn_ack_permits_may_have_been_queued_at_once() -> None:
    """A called connection gets room while what a call had sent before waits in the IP queue."""
    called, call = Story(port=1, window=4), Story(port=2, window=8, calls=True)
    called.at = 0.7
    called.send(0, 1, 2, 3).ack(1, after=0.05)
    call.at = 0.8
    call.send(0).ack(1, after=0.01).send(1, after=0.01).ack(2, after=0.01).send(2, after=0.01)
    called.at = 0.9
    called.send(4)
    story = together({1: called, 2: call})
    assert FAIL - story.verdicts("RWBP-FC-005", claims=TEN_PLACES) == FAIL
    assert FAIL - story.verdicts("RWBP-SC-001", claims=TEN_PLACES) == FAIL


@pytest.mark.parametrize(("calls", "wrong"), [(False, FAIL), (True, NOTHING)])
def test_order_counts_as_broken_for_a_sender_whose_own_link_has_delayed_what_it_measures(
    calls: bool, wrong: set[object]
) -> None:
    """RTTMIN holds the wait in the IP queue, of which a call's SYN may have had any."""
    story = Story(port=1, window=16, calls=calls)
    story.at = 0.7
    story.send(*range(6)).ack(0, (1, 6), after=0.6).send(0, after=0.01).ack(6, after=0.35)
    story.send(6, 7, 8, after=0.01).ack(6, (7, 9), after=0.6)
    for again in (9, 10, 6):
        story.send(again, after=0.1)
    assert together({1: story}).verdicts("RWBP-SC-002", claims=ONE_PLACE) & FAIL == wrong
