"""The checkers of PEP/1 on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.story import BUFFER, FAIL, NOTHING, PASS, Story, octets
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN

UP = (CLIENT, False), (SERVER, True)


def sent(story: Story, end: int = 1000) -> Story:
    """Octets pass from client to server; the box has acknowledged them, the server has not."""
    story.data(CLIENT, False, 0, end).ack(CLIENT, True, end)
    return story.data(SERVER, True, 0, end, after=0.3)


def test_octets_pass() -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).over()
    for name in ("PEP-TR-001", "PEP-TR-002", "PEP-TR-003", "PEP-OP-001", "PEP-LR-006"):
        assert story.verdicts(name) == PASS, name
    assert story.verdicts("PEP-RE-002") == NOTHING


def test_octet_changed() -> None:
    story = Story().opened().data(CLIENT, False, 0, 100).ack(CLIENT, True, 100)
    story.say(SERVER, True, 16, 0, payload=octets(0, 50) + b"?" + octets(51, 100))
    (finding,) = story.over().findings("PEP-TR-001")
    assert "octet 50 " in finding.sentence
    assert finding.packets == (9,)


def test_octets_that_were_never_sent() -> None:
    story = Story().opened().data(SERVER, True, 0, 100).over()
    assert story.verdicts("PEP-TR-001") == FAIL


@pytest.mark.parametrize(("delivered", "expected"), [(1000, PASS), (999, FAIL), (0, FAIL)])
def test_end_acknowledged(delivered: int, expected: set[object]) -> None:
    story = sent(Story().opened()).fin(CLIENT, False, 1000).fin(SERVER, True, 1000)
    if delivered:
        story.ack(SERVER, False, delivered)
    story.ack(CLIENT, True, 1001).over()
    assert story.verdicts("PEP-RE-002") == expected


@pytest.mark.parametrize(("end", "expected"), [(1000, PASS), (900, FAIL)])
def test_end_relayed(end: int, expected: set[object]) -> None:
    story = sent(Story().opened()).fin(CLIENT, False, 1000).fin(SERVER, True, end).over()
    assert story.verdicts("PEP-RE-003") == expected


def test_end_that_nobody_has_sent() -> None:
    story = sent(Story().opened()).fin(SERVER, True, 1000).over()
    assert story.verdicts("PEP-RE-003") == FAIL


@pytest.mark.parametrize(("wait", "expected"), [(20.0, FAIL), (0.5, NOTHING)])
def test_end_that_is_kept(wait: float, expected: set[object]) -> None:
    story = sent(Story().opened()).fin(CLIENT, False, 1000).ack(SERVER, False, 1000).over(wait)
    assert story.verdicts("PEP-RE-004") == expected


def test_reset_carried_over() -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).reset(CLIENT, False, 1000)
    story.reset(SERVER, True, 1000, after=0.3).over()
    assert story.verdicts("PEP-RE-006") == PASS
    assert story.verdicts("PEP-RE-007") == PASS


def test_reset_that_becomes_an_end() -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).reset(CLIENT, False, 1000)
    story.fin(SERVER, True, 1000, after=0.3).over()
    assert story.verdicts("PEP-RE-006") == FAIL
    assert story.verdicts("PEP-RE-007") == FAIL
    assert story.verdicts("PEP-RE-003") == FAIL


def test_reset_that_may_be_a_guess() -> None:
    """What the box expects next is not known while it has not acknowledged everything."""
    story = Story().opened().data(CLIENT, False, 0, 100).reset(CLIENT, False, 100).over()
    for name in ("PEP-RE-006", "PEP-RE-007", "PEP-SEC-001"):
        assert story.verdicts(name) == NOTHING, name


def test_guessed_reset() -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).reset(CLIENT, False, 5000)
    assert story.over().verdicts("PEP-SEC-001") == PASS
    story = sent(Story().opened()).ack(SERVER, False, 1000).reset(CLIENT, False, 5000)
    story.reset(SERVER, True, 1000).over()
    assert story.verdicts("PEP-SEC-001") == FAIL


@pytest.mark.parametrize(("edge", "expected"), [(BUFFER, PASS), (BUFFER + 1, FAIL)])
def test_window_beside_a_reader_that_has_stopped(edge: int, expected: set[object]) -> None:
    story = Story().opened()
    for start in range(0, 10_000, 1000):
        story.data(CLIENT, False, start, start + 1000)
    story.ack(CLIENT, True, 10_000, window=edge - 5000 - 5000)
    for start in range(0, 5000, 1000):
        story.data(SERVER, True, start, start + 1000)
    story.ack(SERVER, False, 5000, window=5000)
    for start in range(5000, 10_000, 1000):
        story.data(SERVER, True, start, start + 1000)
    story.data(CLIENT, False, 10_000, 11_000).ack(CLIENT, True, 11_000, window=edge - 11_000)
    story.ack(SERVER, False, 10_000, window=0).ack(
        CLIENT, True, 11_000, window=edge + 10_000 - 11_000
    )
    assert story.over().verdicts("PEP-FB-002") == expected


def test_client_answered_before_the_server() -> None:
    story = Story().syn(CLIENT).syn(CLIENT, answer=True).syn(SERVER).syn(SERVER, answer=True)
    assert story.over().verdicts("PEP-OP-001") == FAIL


def test_server_refuses() -> None:
    story = Story().syn(CLIENT).syn(SERVER, after=0.3)
    story.say(SERVER, False, 20, -1, 0).over()
    assert story.verdicts("PEP-OP-005") == FAIL


def test_call_without_a_client() -> None:
    assert Story().syn(SERVER).over().verdicts("PEP-OP-004") == FAIL


def test_what_follows_the_end_of_the_case() -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).over()
    story.fin(SERVER, True, 1000)
    assert story.verdicts("PEP-RE-003") == NOTHING


@pytest.mark.parametrize(("field", "expected"), [(0, NOTHING), (4, FAIL)])
def test_window_that_is_scaled_and_closed(field: int, expected: set[object]) -> None:
    """An odd number acknowledged moves the edge by the octet that the field cannot name."""
    scale = {"mss": 1460, "window_scale": 1}
    story = Story().say(CLIENT, False, SYN, -1, **scale).syn(SERVER, after=0.3)
    story.syn(SERVER, answer=True).say(SERVER, True, ACK)
    story.say(CLIENT, True, SYN | ACK, -1, 0, window=1000, **scale).say(CLIENT, False, ACK)
    story.data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000, window=0)
    story.data(CLIENT, False, 1000, 1001).ack(CLIENT, True, 1001, window=field).over()
    assert story.verdicts("PEP-FB-009") == expected
