"""What the packets of HAProxy, nginx and socat taught the checkers and the tester."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.steps import unreachable
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.story import (
    CLIENT_ADDRESS,
    FAIL,
    NOTHING,
    PASS,
    Story,
    octets,
    questions,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, PSH, RST, SYN, Tcp, build, dissect

EARLY = {**Story.claims, "opening": "early", "end": "local"}


def early() -> Story:
    """The client has an answer, and the server was called."""
    story = Story().syn(CLIENT).syn(CLIENT, answer=True).say(CLIENT, False, ACK)
    return story.syn(SERVER, after=0.1)


def message(story: Story, code: int) -> Story:
    """An ICMP message says that the last packet, a call, has not arrived."""
    call = build(dissect(story.packets[-1].data))
    return story.tell(False, unreachable(call, "10.77.255.1", CLIENT_ADDRESS, code), 0.6, SERVER)


# -- calls that are given up -----------------------------------------------------------------------


@pytest.mark.parametrize(("ends", "expected"), [(True, NOTHING), (False, FAIL)])
def test_box_that_has_ended_the_clients_connection_calls_no_more(
    ends: bool, expected: set[object]
) -> None:
    """HAProxy gives a call up when its client has ended a stream without octets."""
    story = early().fin(CLIENT, False, 0, after=0.3)
    if ends:
        story.say(CLIENT, True, 0x11, 0, 1)
    assert story.over(92.0).verdicts("PEP-OP-010", claims=EARLY) == expected
    assert story.verdicts("PEP-RE-003", claims=EARLY) == (FAIL if ends else NOTHING)


@pytest.mark.parametrize(("ends_before", "expected"), [(True, NOTHING), (False, FAIL)])
def test_call_that_fails_when_the_box_has_ended_the_clients_connection(
    ends_before: bool, expected: set[object]
) -> None:
    story = early().fin(CLIENT, False, 0, after=0.3)
    call = build(dissect(story.packets[3].data))
    told = unreachable(call, "10.77.255.1", CLIENT_ADDRESS, 3)
    if ends_before:
        story.say(CLIENT, True, 0x11, 0, 1).tell(False, told, 2.0, SERVER)
    else:
        story.tell(False, told, 2.0, SERVER).say(CLIENT, True, 0x11, 0, 1)
    assert story.over().verdicts("PEP-OP-008", claims=EARLY) == expected


@pytest.mark.parametrize(("calls", "expected"), [(True, NOTHING), (False, FAIL)])
def test_call_that_goes_on_behind_a_message_has_not_failed(
    calls: bool, expected: set[object]
) -> None:
    """That it should have failed is advice, and PEP-OP-007's."""
    story = message(early(), 3)
    if calls:
        story.syn(SERVER, after=1.0)
    assert story.over().verdicts("PEP-OP-008", claims=EARLY) == expected
    assert story.verdicts("PEP-OP-007", claims=EARLY) == FAIL


@pytest.mark.parametrize(("code", "expected"), [(1, PASS), (3, FAIL)])
def test_message_that_leaves_hope_for_a_call(code: int, expected: set[object]) -> None:
    story = message(early(), code).syn(SERVER, after=1.0)
    assert story.over().verdicts("PEP-OP-007", claims=EARLY) == expected


# -- paths that change -----------------------------------------------------------------------------


def asked(story: Story, number: int, *, lost: bool = False, late: float = 0.01) -> Story:
    """The tester asks on both ways whether the path works; the link lies behind the box."""
    up, down = questions(number, story.at)
    story.tell(False, up, 0.0, CLIENT).tell(True, up, 0.0, SERVER)
    if not lost:
        story.tell(False, down, late, SERVER).tell(True, down, 0.0, CLIENT)
    story.at += 0.5
    return story


def during(story: Story, *, lost: bool) -> Story:
    """Octets are taken and not delivered while the path carries nothing, or all of it later."""
    asked(asked(story, 0), 1)
    story.data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000)
    for number in range(2, 7):
        asked(story, number, lost=lost, late=0.01 if lost else 1.3)
    return asked(asked(story, 7), 8)


@pytest.mark.parametrize(
    ("lost", "expected"), [(True, {"PEP-PC-002": FAIL}), (False, {"PEP-PC-003": FAIL})]
)
def test_outage_and_delay_are_told_apart(lost: bool, expected: dict[str, set[object]]) -> None:
    story = during(Story().opened(), lost=lost)
    story.ack(SERVER, False, 0).over(200.0)
    for name in ("PEP-PC-002", "PEP-PC-003"):
        assert story.verdicts(name) == expected.get(name, NOTHING), name


@pytest.mark.parametrize(("opens", "expected"), [(True, FAIL), (False, NOTHING)])
def test_call_that_is_given_up_in_an_outage(opens: bool, expected: set[object]) -> None:
    """nginx calls for 30 s; how long a box calls is its maker's choice (section 5)."""
    story = asked(asked(early(), 0), 1)
    if opens:
        story.syn(SERVER, answer=True).say(SERVER, True, ACK)
    for number in range(2, 7):
        asked(story, number, lost=True)
    story.fin(CLIENT, True, 0, after=25.0)
    asked(asked(story, 7), 8)
    assert story.over(30.0).verdicts("PEP-PC-001", claims=EARLY) == expected


# -- ports used again ------------------------------------------------------------------------------


@pytest.mark.parametrize(("ends", "expected"), [(True, FAIL), (False, NOTHING)])
def test_ports_of_a_connection_that_goes_on_at_the_server(
    ends: bool, expected: set[object]
) -> None:
    """socat has made a FIN of a RST, and cannot call again from these ports."""
    story = Story().opened().reset(CLIENT, False, 0).fin(SERVER, True, 0, after=0.3)
    story.ack(SERVER, False, 1)
    if ends:
        story.reset(SERVER, False, 0)
    story.numbers[CLIENT, False] += 1_000_000
    story.syn(CLIENT, after=2.0)
    assert story.over(300.0).verdicts("PEP-RX-007") == expected


# -- guesses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "expected"), [("PEP-SEC-001", FAIL), ("PEP-SEC-002", NOTHING)])
def test_connection_that_stands_still_behind_two_kinds_of_guesses(
    last: str, expected: set[object]
) -> None:
    """The later kind may be why."""
    story = Story().opened()
    kinds = {"PEP-SEC-001": (RST, 5000), "PEP-SEC-002": (SYN, 70_000)}
    for name in sorted(kinds, key=lambda name: name == last):
        flags, at = kinds[name]
        story.say(CLIENT, False, flags, at, after=0.5)
    story.data(CLIENT, False, 0, 1000, after=1.0)
    assert story.over(60.0).verdicts("PEP-SEC-001") == expected
    assert story.verdicts(last) == FAIL


@pytest.mark.parametrize(("guessed", "expected"), [(True, NOTHING), (False, FAIL)])
def test_connection_that_is_guessed_at_behind_malformed_packets(
    guessed: bool, expected: set[object]
) -> None:
    story = Story().opened().say(CLIENT, False, 0, 0)
    if guessed:
        story.say(CLIENT, False, SYN | ACK, 70_000, after=0.5)
    story.data(CLIENT, False, 0, 1000, after=1.0).data(CLIENT, False, 0, 1000, after=1.0)
    assert story.over(60.0).verdicts("PEP-SEC-007") == expected


def test_octets_on_a_guessed_syn_are_none_of_the_stream() -> None:
    """The stream waits for another reason."""
    story = Story().opened().data(CLIENT, False, 0, 1000)
    story.say(CLIENT, False, SYN, 70_000, payload=octets(0, 50)).ack(CLIENT, True, 1000)
    assert story.over(60.0).verdicts("PEP-OP-012") == NOTHING


# -- the tester ------------------------------------------------------------------------------------


def an_end() -> tuple[End, list[Tcp]]:
    """A client with a connection, which has got three octets, and what it sends."""
    sent: list[Tcp] = []
    end = End(sent.append, lambda: 0.0, ("10.0.0.1", 1), ("10.0.0.2", 2), 1000, Offer())
    end.call()
    answer = Tcp("10.0.0.2", "10.0.0.1", 2, 1, 5000, 1001, SYN | ACK, 9000, b"", mss=1460)
    end.take(answer)
    end.take(replace(answer, flags=ACK | PSH, seq=5001, payload=octets(0, 3), mss=None))
    return end, sent


@pytest.mark.parametrize(
    ("seq", "heeds"),
    [(5004, True), (5300, True), (5003, False), (5004 + 100_000, False), (3_000_000_000, False)],
)
def test_tester_is_reset_by_a_number_of_its_own_connection(seq: int, heeds: bool) -> None:
    """A box passes on a RST of the other side, with the numbers of that."""
    end, _ = an_end()
    end.take(Tcp("10.0.0.2", "10.0.0.1", 2, 1, seq, 0, RST, 0, b""))
    assert end.was_reset is heeds
    assert end.is_over is heeds


@pytest.mark.parametrize(
    ("flags", "ack", "heeds"), [(RST | ACK, 1001, True), (RST | ACK, 7, False), (RST, 1001, False)]
)
def test_tester_that_calls_is_refused_by_who_names_its_syn(
    flags: int, ack: int, heeds: bool
) -> None:
    end = End(lambda _: None, lambda: 0.0, ("10.0.0.1", 1), ("10.0.0.2", 2), 1000, Offer())
    end.call()
    end.take(Tcp("10.0.0.2", "10.0.0.1", 2, 1, 0, ack, flags, 0, b""))
    assert end.was_reset is heeds
