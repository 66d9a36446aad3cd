"""Stories of connections on which little has passed, or nothing: how they open, wait and end."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.story import FAIL, NOTHING, PASS, Story
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN

LONG_S = 7250.0


def called() -> Story:
    """A call that the server has not answered."""
    return Story().syn(CLIENT).syn(SERVER, after=0.3)


def without_room() -> Story:
    """The server answers with a closed window, and octets wait for it."""
    story = called().say(SERVER, False, SYN | ACK, -1, 0, window=0, mss=1460)
    story.say(SERVER, True, ACK).syn(CLIENT, answer=True, after=0.3).say(CLIENT, False, ACK)
    return story.data(CLIENT, False, 0, 500).ack(CLIENT, True, 500)


@pytest.mark.parametrize(("probed", "expected"), [(True, PASS), (False, FAIL)])
def test_window_that_is_closed_from_the_answer_on(probed: bool, expected: set[object]) -> None:
    story = without_room()
    if probed:
        story.data(SERVER, True, 0, 1, after=1.0).ack(SERVER, False, 0, window=0)
    assert story.over(60.0).verdicts("PEP-FB-006") == expected


@pytest.mark.parametrize(("sent", "expected"), [(True, PASS), (False, FAIL)])
def test_window_that_opens_for_the_first_time(sent: bool, expected: set[object]) -> None:
    story = without_room().data(SERVER, True, 0, 1, after=1.0).ack(SERVER, False, 0, window=0)
    story.ack(SERVER, False, 0, window=9000, after=5.0)
    if sent:
        story.data(SERVER, True, 0, 500, after=0.5).ack(SERVER, False, 500)
    assert story.over(60.0).verdicts("PEP-FB-010") == expected


def test_window_that_nobody_has_named_is_not_closed() -> None:
    """Octets on a SYN wait for a server that has not answered."""
    story = Story().say(CLIENT, False, SYN, -1, payload=b"some", mss=1460).syn(SERVER, after=0.3)
    assert story.over(60.0).verdicts("PEP-FB-006") == NOTHING


@pytest.mark.parametrize(("opened", "expected"), [(True, PASS), (False, NOTHING)])
def test_connection_on_which_nothing_was_said_for_two_hours(
    opened: bool, expected: set[object]
) -> None:
    story = Story().opened() if opened else called()
    story.data(CLIENT, False, 0, 500, after=LONG_S).ack(CLIENT, True, 500)
    story.data(SERVER, True, 0, 500, after=0.3).ack(SERVER, False, 500)
    assert story.over().verdicts("PEP-PC-008") == expected


def test_connection_that_is_ended_before_a_word() -> None:
    story = Story().opened().reset(CLIENT, True, after=300.0).reset(SERVER, True)
    assert story.over().verdicts("PEP-PC-008") == FAIL


@pytest.mark.parametrize(("distance", "answered", "expected"), [
    (1000, True, PASS), (1000, False, FAIL), (-1, False, FAIL), (0, False, NOTHING),
])  # fmt: skip
def test_guessed_reset_of_a_call(distance: int, answered: bool, expected: set[object]) -> None:
    """The right one ends the call; behind any other the client hears of the server's answer."""
    story = called().reset(CLIENT, False, distance, after=1.0).syn(SERVER, answer=True, after=2.0)
    if answered:
        story.say(SERVER, True, ACK).syn(CLIENT, answer=True, after=0.3).say(CLIENT, False, ACK)
    assert story.over(40.0).verdicts("PEP-SEC-001") == expected
