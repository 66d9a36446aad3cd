"""The checkers of PEP/1 on traces written by hand."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest
from bentpipe_conformance.engine.codec import UDP, build_ipv4
from bentpipe_conformance.engine.lane import CLIENT, SATELLITE_NEAR, SERVER
from bentpipe_conformance.protocols.pep.cases.steps import unreachable
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.story import (
    BUFFER,
    CLIENT_ADDRESS,
    FAIL,
    NOTHING,
    PASS,
    SERVER_ADDRESS,
    Story,
    asked,
    octets,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH, RST, SYN, Tcp, build, dissect

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


@pytest.mark.parametrize(
    ("offered", "answered", "expected"),
    [(None, None, PASS), (None, 0, FAIL), (0, 0, NOTHING), (0, 7, NOTHING)],
)
def test_scale_of_zero_is_an_offer(
    offered: int | None, answered: int | None, expected: set[object]
) -> None:
    story = Story().say(CLIENT, False, SYN, -1, mss=1460, window_scale=offered, tsval=0, tsecr=0)
    story.syn(SERVER, after=0.3).syn(SERVER, answer=True).say(SERVER, True, ACK)
    story.say(
        CLIENT, True, SYN | ACK, -1, mss=1460, window_scale=answered, tsval=5, tsecr=0, after=0.3
    )
    found = story.say(CLIENT, False, ACK).over().findings("PEP-TR-011")
    scales = [it for it in found if "Window Scale" in it.sentence]
    assert {it.verdict for it in scales} == expected
    assert not [it for it in found if "Timestamps" in it.sentence]


def test_octets_of_a_syn_are_no_probe_while_the_server_is_slow() -> None:
    story = Story().say(CLIENT, False, SYN, -1, payload=octets(0, 100), mss=1460)
    story.syn(SERVER, after=0.3).syn(SERVER, answer=True, after=1.5).say(SERVER, True, ACK)
    story.syn(CLIENT, answer=True, after=0.3).say(CLIENT, False, ACK)
    assert story.over().verdicts("PEP-FB-005") == NOTHING


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


def calling(gaps: list[float]) -> Story:
    """A server that does not answer is called again and again."""
    story = Story().syn(CLIENT).syn(SERVER, after=0.3)
    for gap in gaps:
        story.syn(SERVER, after=gap)
    return story


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([1.0, 2.0, 4.0, 8.0], PASS),
        ([1.03, 1.04, 1.04, 1.04, 1.04, 2.08, 4.08], PASS),  # Linux since 6.5
        ([3.0, 6.0, 12.0], PASS),
        ([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0], PASS),  # a bound of RFC 6298, rule 2.5
        ([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0], FAIL),
        ([1.0] * 9, FAIL),
        ([1.0, 2.0, 2.0, 2.0, 2.0], FAIL),
        ([0.2, 0.4, 0.8, 1.6, 3.2, 6.4], FAIL),
    ],
)
def test_server_that_is_silent(gaps: list[float], expected: set[object]) -> None:
    assert calling(gaps).over(0.5 * gaps[-1]).verdicts("PEP-OP-010") == expected


@pytest.mark.parametrize(("told", "expected"), [(True, PASS), (False, FAIL)])
def test_box_that_has_given_up_calls_no_more(told: bool, expected: set[object]) -> None:
    story = calling([1.0, 2.0, 4.0, 8.0])
    if told:
        story.say(CLIENT, True, RST | ACK, -1, 0, after=8.0)
    assert story.over(100.0).verdicts("PEP-OP-010") == expected


def stopped() -> Story:
    """The server permits 1000 octets and no more, and 500 wait in the box."""
    story = Story().syn(CLIENT).syn(SERVER, after=0.3)
    story.say(SERVER, False, 18, -1, 0, window=1000, mss=1460).say(SERVER, True, 16)
    story.syn(CLIENT, answer=True, after=0.3).say(CLIENT, False, 16)
    story.data(CLIENT, False, 0, 1500).ack(CLIENT, True, 1500)
    return story.data(SERVER, True, 0, 1000, after=0.3).ack(SERVER, False, 1000, window=0)


@pytest.mark.parametrize(
    ("at", "size", "expected"), [(999, 0, PASS), (1000, 1, PASS), (1000, 0, FAIL)]
)
def test_closed_window_probed(at: int, size: int, expected: set[object]) -> None:
    # RFC 9293 sends an octet; Linux the number before, without one: either has to be answered.
    story = stopped().data(SERVER, True, at, at + size, after=1.5).over(60.0)
    assert story.verdicts("PEP-FB-006") == expected


def test_blocks_of_a_fin_and_of_what_came_twice() -> None:
    # The octets before the FIN are missing: its number is reported like an octet's. And what lies
    # before the window has arrived, too (RFC 2883).
    story = Story().opened().data(CLIENT, False, 0, 100).ack(CLIENT, True, 100)
    story.say(CLIENT, False, 17, 1000, payload=octets(1000, 1200))
    first = story.numbers[CLIENT, False] + 1
    story.ack(CLIENT, True, 100, sack=((first + 1000, first + 1201),))
    story.say(CLIENT, False, 16, -(1 << 30), payload=b"?" * 300)
    old = (first - (1 << 30)) % (1 << 32)
    story.ack(CLIENT, True, 100, sack=((old, old + 300),))
    assert story.verdicts("PEP-TR-010") == PASS
    story.ack(CLIENT, True, 100, sack=((first + 5000, first + 5100),)).over()
    assert story.verdicts("PEP-TR-010") >= FAIL


def test_answer_of_somebody_else_that_passes() -> None:
    # A SYN-ACK with another number is none of the box's connection: its window shrinks nothing.
    story = Story().opened().ack(CLIENT, True, 0).say(CLIENT, True, 18, 5, window=100)
    assert story.over().verdicts("PEP-FB-003") == PASS


def silent(end: str, told: str) -> Story:
    """An end falls silent while octets wait for it; after 900 s the other one gets a RST."""
    other = SERVER if end == CLIENT else CLIENT
    story = Story().opened().data(other, False, 0, 500).ack(other, True, 500)
    story.data(end, True, 0, 500, after=0.3)
    for wait in (1, 2, 4, 8, 16, 32, 64):
        story.data(end, True, 0, 500, after=wait)
    return story.reset(told, True, 0, after=800.0).over()


@pytest.mark.parametrize("end", [CLIENT, SERVER])
def test_end_that_does_not_answer(end: str) -> None:
    other = SERVER if end == CLIENT else CLIENT
    assert silent(end, other).verdicts("PEP-RE-008") == PASS
    assert silent(end, end).verdicts("PEP-RE-008") == FAIL


def test_false_end_becomes_a_fin() -> None:
    # The FIN was acknowledged, the receiver resets, and the sender gets a FIN, which it accepts.
    story = sent(Story().opened(), 1000).fin(CLIENT, False, 1000).ack(CLIENT, True, 1001)
    story.reset(SERVER, False, after=1.0).fin(CLIENT, True, 0).say(CLIENT, False, 16, 1001, 1)
    assert story.over().verdicts("PEP-RE-005", claims={"end": "local"}) == FAIL


def test_urgent_octet_lost_is_no_waiting() -> None:
    story = Story().opened().say(CLIENT, False, 16 | 8 | 32, 0, payload=octets(0, 100))
    story.ack(CLIENT, True, 100)
    story.say(SERVER, True, 24, 0, payload=octets(0, 49) + octets(50, 100), after=0.3)
    story.over()
    assert story.verdicts("PEP-TR-020") == FAIL
    assert story.verdicts("PEP-TR-019") == NOTHING


@pytest.mark.parametrize(("side", "expected"), [(CLIENT, NOTHING), (SERVER, FAIL)])
def test_call_given_up_is_answered(side: str, expected: set[object]) -> None:
    # A box that has forgotten the call routes the answer to the client, whose host refuses it; one
    # that completes the call leaves it open.
    story = Story().syn(CLIENT).syn(SERVER, after=0.3).reset(CLIENT, False, after=0.5)
    story.syn(SERVER, answer=True, after=2.0)
    if side == CLIENT:
        story.tell(True, story.packets[-1].data, 0.0, CLIENT)
    else:
        story.say(SERVER, True, 16)
    assert story.over().verdicts("PEP-OP-011") == expected


@pytest.mark.parametrize(("start", "expected"), [(0, PASS), (500, FAIL)])
def test_acknowledgment_of_a_segment_that_came_before(start: int, expected: set[object]) -> None:
    # All of it has been taken: the box drops it, and does not look at what it acknowledges.
    story = sent(Story().opened()).data(SERVER, True, 0, 1000, after=2.0)
    story.data(SERVER, False, 0, 500).say(SERVER, True, 16, 1000, 500)
    story.say(SERVER, False, 16, start, 1000, payload=octets(start, start + 500))
    story.data(SERVER, True, 0, 1000, after=2.0)
    assert story.over().verdicts("PEP-LR-002") == expected


@pytest.mark.parametrize(("filled", "expected"), [(10_000, PASS), (9_000, FAIL)])
def test_acknowledgment_behind_a_window_that_is_full(filled: int, expected: set[object]) -> None:
    # The server has filled the box's window but for its first octets: the number of what it sends
    # then is the first behind the window, and the box need not look at it.
    story = sent(Story().opened()).data(SERVER, True, 0, 1000, after=2.0)
    story.data(SERVER, False, 100, filled)
    story.say(SERVER, False, 16, filled, 1000).data(SERVER, True, 0, 1000, after=2.0)
    assert story.over().verdicts("PEP-LR-002") == expected


@pytest.mark.parametrize(("number", "expected"), [(0, PASS), (7, FAIL)])
def test_segment_with_syn_that_passes_is_no_call(number: int, expected: set[object]) -> None:
    # The box calls from a port of its own. What cannot be (SYN and FIN) goes through it as it came,
    # between the client's ports; a second call of the box has a number of its own.
    story = Story(ports=(20_009, 20_002)).syn(CLIENT)
    story.ports = (30_000, 20_002)
    story.syn(SERVER, after=0.3).syn(SERVER, answer=True)
    story.ports = (20_009, 20_002)
    story.syn(CLIENT, answer=True, after=0.3).syn(CLIENT).say(CLIENT, False, 3, 50)
    story.numbers[SERVER, True] = story.numbers[CLIENT, False] + number
    assert story.say(SERVER, True, 3, 50).over().verdicts("PEP-OP-003") == expected


def test_guess_beyond_the_window_is_no_probe() -> None:
    # What acknowledges the unsent nobody has to answer.
    story = Story().opened().data(CLIENT, False, 50_000, 50_300, ack=9_000_000).over()
    assert story.verdicts("PEP-FB-005") == NOTHING


@pytest.mark.parametrize(("offers", "expected"), [(True, PASS), (False, FAIL)])
def test_call_over_the_satellite(offers: bool, expected: set[object]) -> None:
    story = Story().opened()
    call = replace(dissect(story.packets[1].data), seq=5, sack_permitted=offers)
    story.tell(True, build(call), 0.0, SATELLITE_NEAR).over()
    assert story.verdicts("PEP-LR-005", claims=Story.claims | {"satellite": "tcp"}) == expected


def test_early_stream_of_a_server_that_never_answers_cannot_end() -> None:
    story = Story().syn(CLIENT).syn(CLIENT, answer=True).say(CLIENT, False, ACK)
    story.syn(SERVER, after=0.3).fin(CLIENT, False, 0).ack(CLIENT, True, 0)
    assert story.over().verdicts("PEP-RE-004", claims={"opening": "early"}) == NOTHING


@pytest.mark.parametrize(("lost", "expected"), [(True, PASS), (False, FAIL)])
def test_pushed_octets_behind_what_an_outage_has_taken(lost: bool, expected: set[object]) -> None:
    """A timer that has doubled expires after the path has come back."""
    story = asked(asked(Story().opened(), 0), 1, lost=lost)
    story = asked(story, 2)
    story.at += 1.0
    story.say(CLIENT, False, ACK | PSH, 0, payload=octets(0, 300)).ack(CLIENT, True, 300)
    story.say(SERVER, True, ACK | PSH, 0, payload=octets(0, 300), after=3.0)
    assert story.over().verdicts("PEP-TR-019") == expected


@pytest.mark.parametrize(("lost", "expected"), [(True, NOTHING), (False, FAIL)])
def test_call_beside_bulk_while_the_path_is_disturbed(lost: bool, expected: set[object]) -> None:
    story = Story().opened()
    for second in range(4):
        story.data(CLIENT, False, second * 1000, second * 1000 + 1000)
        story.data(SERVER, True, second * 1000, second * 1000 + 1000, after=0.49)
        story.data(CLIENT, True, 0, 100, after=0.5)
    asked(asked(story, 0), 1, lost=lost)
    other = Story(at=story.at, packets=story.packets, ports=(20_003, 20_004))
    other.syn(CLIENT)
    for _ in range(3):
        story.at = other.at
        story.data(SERVER, True, 3000, 4000, after=0.3)
        other.at = story.at
    asked(other, 2)
    other.syn(SERVER, after=1.5).syn(SERVER, answer=True).syn(CLIENT, answer=True, after=0.3)
    assert other.say(CLIENT, False, ACK).over().verdicts("PEP-FI-004") == expected


def test_end_that_resets_needs_no_probe() -> None:
    story = stopped().reset(SERVER, False, after=1.0)
    assert story.over(60.0).verdicts("PEP-FB-006") == NOTHING


def test_end_that_is_reset_for_the_other_needs_no_probe() -> None:
    story = stopped().reset(CLIENT, False, 1500, after=0.2).reset(SERVER, True, 1000, after=0.3)
    assert story.over(60.0).verdicts("PEP-FB-006") == NOTHING


@pytest.mark.parametrize(("refused", "expected"), [(True, PASS), (False, FAIL)])
def test_client_that_was_refused_calls_again(refused: bool, expected: set[object]) -> None:
    """Its SYN and the refusal have crossed."""
    story = Story().syn(CLIENT).syn(SERVER, after=0.3)
    if refused:
        story.say(CLIENT, True, RST | ACK, -1, 0, after=30.0)
    story.syn(CLIENT)
    story.numbers[SERVER, True] += 12_345
    assert story.syn(SERVER, after=0.3).over().verdicts("PEP-OP-003") == expected


@pytest.mark.parametrize(("window", "expected"), [(0, NOTHING), (5000, FAIL)])
def test_half_open_stream_of_a_receiver_that_takes_nothing(
    window: int, expected: set[object]
) -> None:
    """Its window has shrunk, as one that is scaled may; what waits is not the box's to send."""
    story = sent(Story().opened()).fin(CLIENT, False, 1000).fin(SERVER, True, 1000)
    story.say(SERVER, False, ACK, 0, 1001, payload=octets(0, 1000)).ack(SERVER, True, 1000)
    story.say(CLIENT, True, ACK, 0, 1001, payload=octets(0, 400), after=0.3)
    story.say(CLIENT, False, ACK, 1001, 400, window=window)
    assert story.over().verdicts("PEP-RE-009") == expected


@pytest.mark.parametrize(("calls", "expected"), [(1, FAIL), (2, NOTHING)])
def test_call_beside_bulk_that_the_path_has_lost(calls: int, expected: set[object]) -> None:
    """A queue beyond the box may overflow."""
    story = Story().opened()
    for second in range(4):
        story.data(CLIENT, False, second * 1000, second * 1000 + 1000)
        story.data(SERVER, True, second * 1000, second * 1000 + 1000, after=0.49)
        story.data(CLIENT, True, 0, 100, after=0.5)
    other = Story(at=story.at, packets=story.packets, ports=(20_003, 20_004)).syn(CLIENT)
    other.syn(SERVER)
    for start in range(3000, 6000, 1000):
        story.at = other.at
        story.data(SERVER, True, start, start + 1000, after=0.3)
        other.at = story.at
    for _ in range(calls - 1):
        other.syn(SERVER, after=0.3)
    other.syn(SERVER, answer=True, after=3.0).syn(CLIENT, answer=True, after=0.01)
    assert other.say(CLIENT, False, ACK).over().verdicts("PEP-FI-004") == expected


def test_end_that_the_reset_has_crossed() -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).reset(SERVER, False)
    story.reset(CLIENT, True, 0, after=0.3)
    story.say(CLIENT, False, FIN | ACK | PSH, 1000, payload=octets(1000, 1100))
    assert story.verdicts("PEP-RE-002") == PASS
    story.ack(CLIENT, True, 1101).over()
    assert story.verdicts("PEP-RE-002") == FAIL
    assert FAIL.isdisjoint(story.verdicts("PEP-TR-019") | story.verdicts("PEP-FB-003"))


@pytest.mark.parametrize(
    ("beyond", "answered", "expected"),
    [(100, True, PASS), (100, False, FAIL), (30_000, False, NOTHING)],
)
def test_reset_that_is_not_next(beyond: int, answered: bool, expected: set[object]) -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).reset(CLIENT, False, 1000 + beyond)
    if answered:
        story.ack(CLIENT, True, 1000)
    assert story.over().verdicts("PEP-RE-006") == expected


@pytest.mark.parametrize(("seconds", "expected"), [(100.0, PASS), (400.0, FAIL)])
def test_closed_window_probed_and_then_no_more(seconds: float, expected: set[object]) -> None:
    story = sent(Story().opened(), 10_000).ack(SERVER, False, 10_000, window=0)
    story.data(CLIENT, False, 10_000, 11_000).ack(CLIENT, True, 11_000)
    for after in (1.0, 2.0):
        story.data(SERVER, True, 10_000, 10_001, after=after)
        story.ack(SERVER, False, 10_000, window=0)
    assert story.over(seconds).verdicts("PEP-FB-006") == expected


@pytest.mark.parametrize(("held", "expected"), [(BUFFER, NOTHING), (BUFFER + 1, FAIL)])
def test_octets_under_way_are_held(held: int, expected: set[object]) -> None:
    story = Story().opened().data(CLIENT, False, 0, 1000)
    story.data(SERVER, True, 0, 1000).ack(CLIENT, True, 1000, window=held - 1000)
    assert story.over().verdicts("PEP-FB-002") == expected


def test_segment_of_another_is_forwarded_after_a_reset() -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).reset(SERVER, False)
    story.reset(CLIENT, True, 0, after=0.3)
    story.say(CLIENT, True, FIN | ACK | PSH, 1 << 29, payload=octets(0, 100)).over()
    for name in ("PEP-TR-001", "PEP-RE-003", "PEP-TR-009", "PEP-FB-003"):
        assert FAIL.isdisjoint(story.verdicts(name)), name


def subflow(story: Story, subtype: int, *, whole: bool) -> Story:
    """A client calls with an option of Multipath TCP; its SYN passes, or the box calls."""
    option = bytes((30, 4, subtype << 4, 0))
    number = story.numbers[CLIENT, False] if whole else story.numbers[SERVER, True]
    for side, by_box, seq in (
        (CLIENT, False, story.numbers[CLIENT, False]),
        (SERVER, True, number),
    ):
        syn = Tcp(CLIENT_ADDRESS, SERVER_ADDRESS, *story.ports, seq, 0, SYN, 9000, b"")
        story.tell(by_box, build(syn, option if whole or not by_box else b""), 0.3, side)
    return story


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(True, True, NOTHING), (True, False, FAIL), (False, False, NOTHING)],
)
def test_multipath_connection_is_joined(first: bool, second: bool, expected: set[object]) -> None:
    # A box that has split the first connection has not promised anything: MP_JOIN is an option
    # that nobody knows then.
    story = subflow(Story(), 0, whole=first)
    story.ports = (20_003, 20_002)
    assert subflow(story, 1, whole=second).over().verdicts("PEP-TR-014") == expected


@pytest.mark.parametrize(("protocol", "passes", "expected"), [
    (UDP, True, PASS), (UDP, False, FAIL), (6, True, PASS), (6, False, FAIL),
])  # fmt: skip
def test_messages_about_datagrams(protocol: int, passes: bool, expected: set[object]) -> None:
    # A box keeps what is about its own segments; these are of no connection.
    story = Story().opened()
    src, dst = map(socket.inet_aton, (CLIENT_ADDRESS, SERVER_ADDRESS))
    for number in range(3):
        quoted = build_ipv4(src, dst, protocol, bytes(7) + bytes((number,)) + bytes(12))
        message = unreachable(quoted, SERVER_ADDRESS, CLIENT_ADDRESS, 3)
        story.tell(False, message, 0.5, SERVER)
        if passes:
            story.tell(True, message, 0.3, CLIENT)
    assert story.over().verdicts("PEP-TR-015") == expected


@pytest.mark.parametrize(("start", "expected"), [(100, FAIL), (0, NOTHING)])
def test_all_is_acknowledged_by_a_segment_that_is_old(start: int, expected: set[object]) -> None:
    """RFC 9293 section 3.10.7.4 heeds no acknowledgment of octets that were taken before."""
    story = Story().opened().data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000)
    story.data(SERVER, True, 0, 1000, after=0.3)
    story.say(SERVER, False, ACK, 0, 0, payload=octets(0, 100)).ack(SERVER, True, 100)
    story.say(SERVER, False, ACK, start, 1000, payload=octets(start, 100))
    story.fin(CLIENT, False, 1000).ack(CLIENT, True, 1000)
    assert story.over().verdicts("PEP-RE-004") == expected


@pytest.mark.parametrize(
    ("lost", "wait", "expected"),
    [(True, 5.0, NOTHING), (True, 20.0, FAIL), (False, 5.0, FAIL)],
)
def test_end_behind_what_an_outage_has_taken(
    lost: bool, wait: float, expected: set[object]
) -> None:
    """What the outage took is sent again, and at the latest what then was lost behind it."""
    story = asked(asked(Story().opened(), 0), 1, lost=lost)
    story = asked(story, 2)
    story.data(CLIENT, False, 0, 300).ack(CLIENT, True, 300)
    story.data(SERVER, True, 0, 300, after=0.3).ack(SERVER, False, 300)
    story.fin(CLIENT, False, 300).ack(CLIENT, True, 300)
    assert story.over(wait).verdicts("PEP-RE-004") == expected


@pytest.mark.parametrize(("after", "expected"), [(45.0, PASS), (90.0, FAIL)])
def test_end_behind_outages_one_after_another(after: float, expected: set[object]) -> None:
    """What came late behind one outage may wait longer behind the next."""
    story = asked(Story().opened(), 0)
    for number in (1, 3):
        story.at += 10.0
        story = asked(asked(story, number, lost=True), number + 1)
    story.data(CLIENT, False, 0, 300).ack(CLIENT, True, 300)
    story.data(SERVER, True, 0, 300, after=0.3).ack(SERVER, False, 300)
    story.fin(CLIENT, False, 300).ack(CLIENT, True, 300).fin(SERVER, True, 300, after=after)
    assert story.over().verdicts("PEP-RE-004") == expected


@pytest.mark.parametrize(("parts", "expected"), [(5, NOTHING), (2, FAIL)])
def test_pushed_octets_in_more_segments_than_the_window_permits(
    parts: int, expected: set[object]
) -> None:
    """A congestion window holds three segments at least; whose segments are small sends no more."""
    story = Story().opened().say(CLIENT, False, ACK | PSH, 0, payload=octets(0, 500), after=5.0)
    story.ack(CLIENT, True, 500)
    for part in range(parts):
        story.data(SERVER, True, 40 * part, 40 * part + 40, after=0.01)
    story.data(SERVER, True, 40 * parts, 500, after=3.0).ack(SERVER, False, 500)
    assert story.over().verdicts("PEP-TR-019") == expected


@pytest.mark.parametrize(("passed", "expected"), [(True, NOTHING), (False, FAIL)])
def test_guessed_octets_that_are_sent_on_as_they_were(passed: bool, expected: set[object]) -> None:
    """A NAT before the box's own end does not take them for its connection's."""
    story = sent(Story().opened()).ack(SERVER, False, 1000)
    story.data(CLIENT, False, 500_000, 500_100, after=1.0)
    guess = story.packets[-1].data
    if passed:
        story.tell(True, guess, 0.01, SERVER)
    story.data(CLIENT, False, 1000, 1100, after=4.0).ack(CLIENT, True, 1100)
    story.data(SERVER, True, 1000, 1100, after=0.3).ack(SERVER, False, 1100).over()
    found = story.findings("PEP-LR-008", claims={**Story.claims, "ends": "rfc"})
    assert {it.verdict for it in found if "SNR-RCV-015" in it.sentence} == expected


@pytest.mark.parametrize(("guesses", "expected"), [(0, FAIL), (1, NOTHING)])
def test_connection_that_something_else_may_have_ended(guesses: int, expected: set[object]) -> None:
    story = Story().opened().ack(CLIENT, True, 0, window=40_000)
    story.data(CLIENT, False, 0, 30_000).ack(CLIENT, True, 30_000)
    story.data(SERVER, True, 0, 10_000, after=0.3).ack(SERVER, False, 10_000, window=0)
    story.ack(SERVER, False, 10_000, window=0, after=10.0)
    other = Story(at=story.at, packets=story.packets, ports=(20_003, 20_004)).opened()
    for _ in range(guesses):
        other.reset(CLIENT, False, 3000)
    other.data(CLIENT, False, 0, 100)
    assert other.over(60.0).verdicts("PEP-FI-001") == expected


def test_answer_to_a_cancelled_call_is_passed_to_the_client_that_refuses_it() -> None:
    story = Story().syn(CLIENT).syn(CLIENT, answer=True).say(CLIENT, False, ACK)
    story.syn(SERVER).reset(CLIENT, False, 0, after=0.3).syn(SERVER, answer=True, after=3.0)
    answer = story.packets[-1].data
    story.tell(True, answer, 0.01, CLIENT)
    refusal = Tcp(
        CLIENT_ADDRESS, SERVER_ADDRESS, *story.ports, story.numbers[SERVER, True] + 1, 0, RST, 0,
        b"",
    )  # fmt: skip
    story.tell(False, build(refusal), 0.0, CLIENT).tell(True, build(refusal), 0.01, SERVER).over()
    assert story.verdicts("PEP-OP-011", claims=Story.claims | {"opening": "early"}) == PASS


@pytest.mark.parametrize(("window", "expected"), [(0, NOTHING), (5000, FAIL)])
def test_both_end_before_one_that_has_no_room(window: int, expected: set[object]) -> None:
    story = Story().opened().data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000)
    story.fin(CLIENT, False, 1000).ack(CLIENT, True, 1000)
    story.say(SERVER, False, FIN | ACK, 0, 0, window=window)
    assert story.over(60.0).verdicts("PEP-RE-010") == expected


@pytest.mark.parametrize("flags", [SYN, SYN | ACK])
def test_tester_answers_a_syn_on_an_open_connection_and_goes_on(flags: int) -> None:
    sent: list[Tcp] = []
    end = End(sent.append, lambda: 0.0, ("10.0.0.1", 1), ("10.0.0.2", 2), 1000, Offer())
    end.call()
    answer = Tcp("10.0.0.2", "10.0.0.1", 2, 1, 5000, 1001, SYN | ACK, 9000, b"", mss=1460)
    end.take(answer)
    end.take(replace(answer, flags=flags, seq=7000))
    assert sent[-1].flags == ACK
    assert (sent[-1].seq, sent[-1].ack) == (1001, 5001)
    end.take(replace(answer, flags=ACK | PSH, seq=5001, payload=b"abc", mss=None))
    assert bytes(end.got) == b"abc"


@pytest.mark.parametrize(("crosses", "expected"), [(0.2, NOTHING), (9.0, FAIL)])
def test_resets_of_both_ends_that_cross(crosses: float, expected: set[object]) -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000).reset(CLIENT, False, 1000)
    story.reset(SERVER, False, 0, after=crosses).over()
    assert story.verdicts("PEP-RE-006") == expected


@pytest.mark.parametrize(("crosses", "expected"), [(0.2, NOTHING), (9.0, FAIL)])
def test_pushed_octets_that_cross_a_reset(crosses: float, expected: set[object]) -> None:
    story = Story().opened().say(CLIENT, False, ACK | PSH, 0, payload=octets(0, 300), after=5.0)
    story.ack(CLIENT, True, 300).reset(SERVER, False, 0, after=crosses)
    assert story.over().verdicts("PEP-TR-019") == expected


def gives_up(*, answers: bool) -> Story:
    """A box repeats to a server that may answer, in vain, and resets both connections then."""
    story = Story().opened().ack(CLIENT, True, 0, window=40_000)
    story.data(CLIENT, False, 0, 9000).data(CLIENT, False, 9000, 30_000)
    story.ack(CLIENT, True, 30_000).data(SERVER, True, 0, 10_000, after=0.3)
    story.ack(SERVER, False, 10_000, window=0)
    for _ in range(6):
        story.data(SERVER, True, 10_000, 10_001, after=20.0)
        if answers:
            story.ack(SERVER, False, 10_000, window=0, after=0.3)
    return story.reset(SERVER, True, 10_000, after=20.0).reset(CLIENT, True, 0)


@pytest.mark.parametrize(("answers", "expected"), [(True, FAIL), (False, NOTHING)])
def test_closed_window_of_an_end_that_is_given_up(answers: bool, expected: set[object]) -> None:
    assert gives_up(answers=answers).over().verdicts("PEP-FB-006") == expected


@pytest.mark.parametrize(("answers", "expected"), [(True, FAIL), (False, NOTHING)])
def test_half_closed_connection_that_is_given_up(answers: bool, expected: set[object]) -> None:
    story = Story().opened().fin(SERVER, False, 0).ack(SERVER, True, 0).fin(CLIENT, True, 0)
    story.ack(CLIENT, False, 1).say(CLIENT, False, ACK, 0, 1, octets(0, 1000))
    story.say(CLIENT, True, ACK, 1, 1000)
    for _ in range(6):
        story.data(SERVER, True, 0, 1000, after=20.0)
        if answers:
            story.say(SERVER, False, ACK, 1, 500, after=0.3)
    story.reset(SERVER, True, 1000, after=20.0).reset(CLIENT, True, 1)
    assert story.over().verdicts("PEP-RE-009") == expected


@pytest.mark.parametrize(("late", "expected"), [(0.3, PASS), (9.0, FAIL)])
def test_early_stream_that_has_ended_before_the_server_answers(
    late: float, expected: set[object]
) -> None:
    story = Story().syn(CLIENT).syn(CLIENT, answer=True).say(CLIENT, False, ACK)
    story.syn(SERVER, after=0.3).fin(CLIENT, False, 0).ack(CLIENT, True, 0)
    story.syn(SERVER, answer=True, after=5.0).say(SERVER, True, ACK)
    story.fin(SERVER, True, 0, after=late)
    assert story.over().verdicts("PEP-RE-004", claims={"opening": "early"}) == expected


@pytest.mark.parametrize(("resets", "expected"), [(True, NOTHING), (False, FAIL)])
def test_early_client_that_has_reset_before_its_call_fails(
    resets: bool, expected: set[object]
) -> None:
    story = Story().syn(CLIENT).syn(CLIENT, answer=True).say(CLIENT, False, ACK)
    story.syn(SERVER, after=0.3)
    if resets:
        story.reset(CLIENT, False, 0)
    story.say(SERVER, False, RST | ACK, -1, 0, after=2.0)
    assert story.over().verdicts("PEP-OP-008", claims={"opening": "early"}) == expected


@pytest.mark.parametrize(("end", "expected"), [("local", NOTHING), ("confirmed", FAIL)])
def test_reset_that_crosses_the_end_of_what_it_would_reset(end: str, expected: set[object]) -> None:
    """Where both have ended before a reset can have come over, there is nothing to reset."""
    story = Story().opened().fin(SERVER, False, 0).ack(SERVER, True, 1).fin(CLIENT, True, 0)
    story.ack(CLIENT, False, 1).reset(SERVER, False, 1, after=2.0)
    story.say(CLIENT, False, FIN | ACK, 0, 1, after=0.1).say(CLIENT, True, ACK, 1, 1).over()
    assert story.verdicts("PEP-RE-006", claims=Story.claims | {"end": end}) == expected


@pytest.mark.parametrize(("outstanding", "expected"), [(True, FAIL), (False, NOTHING)])
def test_message_about_the_next_number(outstanding: bool, expected: set[object]) -> None:
    """What is sent with that number later was not outstanding."""
    story = sent(Story().opened())
    if not outstanding:
        story.ack(SERVER, False, 1000)
    at = 0 if outstanding else 1000
    quoted = Tcp(
        CLIENT_ADDRESS, SERVER_ADDRESS, *story.ports, story.numbers[SERVER, True] + 1 + at, 0,
        ACK, 100, b"x" * 1000,
    )  # fmt: skip
    message = unreachable(build(quoted), "10.77.255.1", CLIENT_ADDRESS, 4, 600)
    story.tell(False, message, 1.0, SERVER)
    story.data(CLIENT, False, 1000, 2400).ack(CLIENT, True, 2400)
    story.data(SERVER, True, 1000, 2400, after=3.0).ack(SERVER, False, 2400)
    assert story.over().verdicts("PEP-PC-005") == expected


@pytest.mark.parametrize(("resets", "expected"), [(True, NOTHING), (False, FAIL)])
def test_window_that_closes_behind_a_reset_of_the_box(resets: bool, expected: set[object]) -> None:
    story = Story().opened().data(CLIENT, False, 0, 9000).data(CLIENT, False, 9000, 9900)
    story.ack(CLIENT, True, 9900).data(SERVER, True, 0, 5000, after=0.3)
    if resets:
        story.reset(CLIENT, False, 9900).reset(SERVER, True, 5000)
    story.ack(SERVER, False, 5000, window=0)
    story.say(SERVER, False, ACK, 0, 5000, window=0, after=0.1)
    found = story.over(60.0).verdicts("PEP-FB-006")
    assert found == expected if resets else found <= expected


@pytest.mark.parametrize(("start", "expected"), [(999, PASS), (1000, FAIL)])
def test_probes_are_no_acknowledgments(start: int, expected: set[object]) -> None:
    story = Story().opened().data(SERVER, False, 0, 1000).ack(SERVER, True, 1000)
    story.data(CLIENT, True, 0, 1000).ack(CLIENT, False, 1000)
    for number in range(10):
        at = 100 * number
        story.say(CLIENT, False, ACK, at, 1000, octets(at, at + 100))
        story.say(CLIENT, True, ACK, 1000, at + 100)
    for _ in range(12):
        story.say(CLIENT, True, ACK, start, 1000, after=5.0)
    assert story.over().verdicts("PEP-LR-007") == expected


@pytest.mark.parametrize(("resets", "expected"), [(True, NOTHING), (False, FAIL)])
def test_client_that_has_reset_before_its_server_is_unreachable(
    resets: bool, expected: set[object]
) -> None:
    story = Story().syn(CLIENT).syn(CLIENT, answer=True).say(CLIENT, False, ACK)
    story.syn(SERVER, after=0.3)
    call = dissect(story.packets[-1].data)
    if resets:
        story.reset(CLIENT, False, 0)
    story.tell(False, unreachable(build(call), "10.77.255.1", CLIENT_ADDRESS, 3), 1.0, SERVER)
    assert story.over().verdicts("PEP-OP-007", claims={"opening": "early"}) == expected


@pytest.mark.parametrize(("answers", "expected"), [(True, FAIL), (False, PASS)])
def test_probes_that_cease(answers: bool, expected: set[object]) -> None:
    """Who was not answered may give up, and say nothing."""
    story = stopped().say(SERVER, True, ACK, 1000, payload=octets(1000, 1001), after=2.0)
    if answers:
        story.ack(SERVER, False, 1000, window=0)
    assert story.over(900.0).verdicts("PEP-FB-006") == expected


@pytest.mark.parametrize(
    ("wait", "asked", "expected"), [(5.0, False, PASS), (5.0, True, FAIL), (1.0, False, FAIL)]
)
def test_call_that_is_given_up_and_tried_anew(
    wait: float, asked: bool, expected: set[object]
) -> None:
    story = Story().syn(CLIENT).syn(SERVER, after=0.1).syn(CLIENT, after=0.3).syn(SERVER)
    story.at += wait
    if asked:
        story.syn(CLIENT)
    story.numbers[SERVER, True] += 12_345
    story.syn(SERVER).syn(SERVER, answer=True).say(SERVER, True, ACK)
    story.syn(CLIENT, answer=True, after=0.3).say(CLIENT, False, ACK)
    assert story.over().verdicts("PEP-OP-003") == expected


@pytest.mark.parametrize(("ends", "expected"), [("rfc", PASS), ("linux", NOTHING)])
def test_message_about_the_next_number_to_linux(ends: str, expected: set[object]) -> None:
    story = sent(Story().opened()).ack(SERVER, False, 1000)
    quoted = Tcp(
        CLIENT_ADDRESS, SERVER_ADDRESS, *story.ports, story.numbers[SERVER, True] + 1001, 0, ACK,
        100, b"x" * 1000,
    )  # fmt: skip
    story.tell(False, unreachable(build(quoted), "10.77.255.1", CLIENT_ADDRESS, 1), 1.0, SERVER)
    claims = {**Story.claims, "ends": ends}
    assert story.over().verdicts("PEP-SEC-004", claims=claims) == expected
