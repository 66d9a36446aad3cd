"""Losses of one connection beside others, and equal room, on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.story import FAIL, NOTHING, PASS, Story
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN

READ = 10_000
"""Octets that a receiver takes before it reads nothing: the window of a story."""

WAY = 0.3
Pieces = list[tuple[float, float]]
"""When octets arrive at the box, and when they leave it on the other side."""


def told(pieces: list[Pieces]) -> Story:
    """Connections from the client that are open, each with pieces of 100 octets."""
    stories = [Story(ports=(20_001 + 10 * nth, 20_002 + 10 * nth)) for nth in range(len(pieces))]
    moments: list[tuple[float, int, str]] = []
    for nth, story in enumerate(stories):
        story.opened()
        moments += [(came, nth, "in") for came, _ in pieces[nth]]
        moments += [(left, nth, "out") for _, left in pieces[nth]]
    whole = Story()
    for story in stories:
        whole.packets += story.packets
    at = {"in": [0] * len(pieces), "out": [0] * len(pieces)}
    for time, nth, what in sorted(moments):
        story, start = stories[nth], at[what][nth]
        story.packets, story.at = [], time
        at[what][nth] += 100
        if what == "in":
            story.data(CLIENT, False, start, start + 100, after=0.0)
            story.ack(CLIENT, True, start + 100, after=0.0)
        else:
            story.data(SERVER, True, start, start + 100, after=0.0)
            story.ack(SERVER, False, start + 100, after=0.001)
        whole.packets += story.packets
    whole.at = 30.0
    return whole.over()


CONTROL = [[(5.0, 5.3), (5.1, 5.4), (5.1, 5.4)], [(5.1, 5.4)] * 2, [(5.1, 5.4)] * 2]


@pytest.mark.parametrize(("others", "control", "expected"), [
    ([(10.1, 10.4), (10.2, 10.5)], CONTROL, PASS),
    ([(10.1, 11.0), (10.2, 11.0)], CONTROL, FAIL),
    ([(10.1, 10.4), (10.2, 11.0)], CONTROL, PASS),
    # Nothing was under way before: a queue may be the cause.
    ([(10.1, 11.0), (10.2, 11.0)], [[], [], []], NOTHING),
])  # fmt: skip
def test_segment_lost_beside_others(
    others: Pieces, control: list[Pieces], expected: set[object]
) -> None:
    lost = [(10.0, 11.0)]
    story = told([control[0] + lost, control[1] + others, control[2] + others])
    assert story.verdicts("PEP-FI-003") == expected


@pytest.mark.parametrize("slow", ["opens", "reads"])
def test_octets_that_wait_for_their_servers(slow: str) -> None:
    # Taken before a server has answered the box, or has room, they are not on their way.
    whole = told(CONTROL)
    stories = [Story(ports=(20_101 + 10 * nth, 20_102 + 10 * nth)) for nth in range(3)]
    for story in stories:
        story.at = 10.0
        story.syn(CLIENT).syn(CLIENT, answer=True, after=0.0).say(CLIENT, False, ACK, after=0.0)
        story.syn(SERVER, after=0.0)
        if slow == "reads":
            story.say(SERVER, False, SYN | ACK, -1, window=0, mss=1460, after=0.0)
            story.say(SERVER, True, ACK, after=0.0)
    moments = [(nth, 100 * piece) for nth in range(3) for piece in range(2)]
    for nth, start in moments:
        story = stories[nth]
        story.data(CLIENT, False, start, start + 100, after=0.01 * nth)
        story.ack(CLIENT, True, start + 100, after=0.0)
    for story in stories:
        story.at = 11.0
        if slow == "opens":
            story.syn(SERVER, answer=True, after=0.0).say(SERVER, True, ACK, after=0.0)
        else:
            story.say(SERVER, False, ACK, after=0.0)
        story.data(SERVER, True, 0, 200, after=0.0).ack(SERVER, False, 200, after=0.3)
    whole.packets = sorted(
        (it for story in (whole, *stories) for it in story.packets), key=lambda it: it.time
    )
    assert whole.verdicts("PEP-FI-003") == NOTHING


@pytest.mark.parametrize(("second", "expected"), [(30_000, PASS), (9_000, FAIL)])
def test_receivers_of_two_connections_read_nothing(second: int, expected: set[object]) -> None:
    story = Story()
    for ports, room in (((20_001, 20_002), 30_000), ((20_003, 20_004), second)):
        story.ports = ports
        story.opened().data(CLIENT, False, 0, READ).ack(CLIENT, True, READ, window=room)
        story.data(SERVER, True, 0, READ, after=0.3).ack(SERVER, False, READ, window=0)
        story.data(CLIENT, False, READ, READ + room).ack(CLIENT, True, READ + room, window=0)
    verdicts = story.over().verdicts("PEP-FI-002")
    assert verdicts == expected


@pytest.mark.parametrize(("parted", "expected"), [(False, FAIL), (True, NOTHING)])
def test_octets_that_leave_in_two_flights_are_not_lost(parted: bool, expected: set[object]) -> None:
    """Where its segments are small, a box may send a part and has to wait for its way."""
    late, others = [(10.0, 11.0)], [(10.1, 11.0), (10.2, 11.0)]
    whole = told([CONTROL[0] + late, CONTROL[1] + others, CONTROL[2] + others])
    for nth, pieces in enumerate(CONTROL) if parted else ():
        start = 100 * len(pieces)
        story = Story(ports=(20_001 + 10 * nth, 20_002 + 10 * nth), at=10.35 + 0.1 * (nth > 0))
        story.data(SERVER, True, start, start + 50, after=0.0)
        whole.packets += story.ack(SERVER, False, start + 50, after=0.001).packets
    whole.packets.sort(key=lambda it: it.time)
    assert whole.verdicts("PEP-FI-003") == expected
