"""The checkers of negotiation on traces written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.protocols.rwbp.codec import option_octets
from bentpipe_conformance.protocols.rwbp.story import CLAIMS, FAIL, NOTHING, PASS, RTT, SIZE, Story
from bentpipe_conformance.protocols.tcp.codec import ACK, CWR, ECE, FIN, RST, SYN

OWN = option_octets(8, SIZE)
VOID = option_octets(8, SIZE, version=2)
OTHER = option_octets(2, 500)
SCALE = bytes((3, 3, 2))
STAMPS = bytes((8, 10)) + bytes(8)


@pytest.mark.parametrize(
    ("answer", "own", "expected"),
    [
        (OWN, {}, PASS),
        (b"", {}, FAIL),
        (VOID, {}, FAIL),
        (OWN + OWN, {}, FAIL),
        (OWN, {"sack_permitted": False}, FAIL),
        (OWN, {"mss": None}, FAIL),
    ],
)
def test_syn_of_a_call(answer: bytes, own: dict[str, Any], expected: set[object]) -> None:
    story = Story(calls=True, answer=answer, own=own, open=False)
    assert story.verdicts("RWBP-NG-001") == expected


@pytest.mark.parametrize(("again", "expected"), [(OWN, PASS), (b"", {*PASS, *FAIL})])
def test_syn_of_a_call_repeated(again: bytes, expected: set[object]) -> None:
    story = Story(calls=True, open=False)
    story.answer = again
    assert story.own_syn(after=1.0).verdicts("RWBP-NG-001") == expected


def test_syn_of_a_call_repeated_with_another_interval() -> None:
    story = Story(calls=True, open=False)
    story.answer = option_octets(4, SIZE)
    assert story.own_syn(after=1.0).verdicts("RWBP-NG-001") == {*PASS, *FAIL}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (OWN, PASS),
        (option_octets(255, SIZE), PASS),
        (option_octets(0, SIZE), FAIL),
        (option_octets(8, SIZE - 1), FAIL),
        (option_octets(8, SIZE, reserved=1), FAIL),
        (option_octets(8, SIZE, version=2), FAIL),
        (option_octets(8, SIZE, length=11), FAIL),
        (b"", NOTHING),
    ],
)
def test_form_of_the_option(answer: bytes, expected: set[object]) -> None:
    assert Story(answer=answer).verdicts("RWBP-NG-002") == expected


@pytest.mark.parametrize(
    ("offer", "sack", "answer", "expected"),
    [
        (OWN, True, OWN, PASS),
        (OWN, True, b"", FAIL),
        (OWN, True, OWN * 2, FAIL),
        (OWN, False, b"", PASS),
        (OWN, False, OWN, FAIL),
        (VOID, True, b"", PASS),
        (VOID, True, OWN, FAIL),
        (VOID + OWN, True, OWN, PASS),
        (b"", True, b"", PASS),
        (b"", True, OWN, FAIL),
    ],
)
def test_answer_to_a_syn(offer: bytes, sack: bool, answer: bytes, expected: set[object]) -> None:
    story = Story(offer=offer, sack=sack, answer=answer, open=False)
    assert story.verdicts("RWBP-NG-003") == expected


@pytest.mark.parametrize(
    ("answer", "own", "expected"),
    [
        (OWN, {}, PASS),
        (OWN + SCALE, {}, FAIL),
        (OWN + STAMPS, {}, FAIL),
        (OWN, {"flags": SYN | ACK | ECE}, FAIL),
        (OWN, {"flags": SYN | ACK | CWR}, FAIL),
        (SCALE, {"flags": SYN | ACK | ECE}, NOTHING),
    ],
)
def test_what_stands_beside_the_answer(
    answer: bytes, own: dict[str, Any], expected: set[object]
) -> None:
    assert Story(answer=answer, own=own, open=False).verdicts("RWBP-NG-004") == expected


def _called_plain(**fields: Any) -> Story:
    """A call that is answered without RWBP."""
    return Story(calls=True, offer=b"", window=8, service=9, **fields)


def test_call_answered_without_rwbp_goes_on() -> None:
    story = _called_plain().send(0, 1, window=1000).ack(2, after=RTT, window=8000)
    assert story.send(2, 3, window=1000).verdicts("RWBP-NG-005") == PASS


@pytest.mark.parametrize(("octets", "expected"), [(SIZE, PASS), (64, {*PASS, *FAIL})])
@pytest.mark.parametrize("name", ["RWBP-NG-005", "RWBP-NG-008"])
def test_call_answered_without_rwbp_keeps_its_scale(
    name: str, octets: int, expected: set[object]
) -> None:
    """The peer's field of 64 is one of 8,192 octets; who scales nothing sends no more than 64."""
    story = Story(calls=True, offer=SCALE, own={"window_scale": 2}, service=9)
    story.send(0, 1, window=1000).ack(2, window=64, after=RTT).send_octets(2 * SIZE, octets)
    story.ack(2, window=64, after=RTT)
    assert story.verdicts(name) == expected


@pytest.mark.parametrize("flags", [RST | ACK, RST])
def test_call_answered_without_rwbp_is_reset(flags: int) -> None:
    story = Story(calls=True, offer=b"", open=False)
    story.at = RTT
    story.syn()
    reset = story.put(True, flags=flags, seq=500, after=0.001)
    assert reset.verdicts("RWBP-NG-005") >= FAIL


def test_call_answered_after_its_attempt_may_have_been_given_up_is_reset() -> None:
    story = Story(calls=True, offer=b"", open=False)
    story.at = 200.0
    story.syn()
    assert story.put(True, flags=RST, seq=500, after=0.001).verdicts("RWBP-NG-005") == NOTHING


def test_call_answered_without_rwbp_floods() -> None:
    story = Story(calls=True, offer=b"", window=40, service=9)
    assert story.send(*range(30), window=1000).verdicts("RWBP-NG-005") >= FAIL


def test_call_answered_with_rwbp_is_another_matter() -> None:
    assert Story(calls=True).send(0).verdicts("RWBP-NG-005") == NOTHING


def test_void_option_opens_plain_tcp() -> None:
    assert Story(offer=VOID, answer=b"").verdicts("RWBP-NG-006") == PASS


def test_void_option_is_refused() -> None:
    story = Story(offer=VOID, answer=b"", own={"flags": RST | ACK}, open=False)
    assert story.verdicts("RWBP-NG-006") == FAIL


def test_void_option_at_a_port_that_nothing_serves() -> None:
    story = Story(offer=VOID, answer=b"", own={"flags": RST | ACK}, open=False, service=47)
    assert story.verdicts("RWBP-NG-006") == NOTHING


def test_void_option_is_not_answered() -> None:
    story = Story(offer=VOID, open=False)
    del story.packets[1:]
    story.syn(after=5.0)
    assert story.verdicts("RWBP-NG-006") == FAIL


def test_void_option_is_answered_late() -> None:
    story = Story(offer=VOID, open=False)
    del story.packets[1:]
    story.answer = b""
    assert story.own_syn(after=1.0).verdicts("RWBP-NG-006") == FAIL
    waiting = story.verdicts("RWBP-NG-006", claims={**CLAIMS, "gateway": True})
    assert waiting == PASS, "it may have waited for credit"


@pytest.mark.parametrize(("size", "expected"), [(SIZE, PASS), (500, {*PASS, *FAIL})])
def test_second_option_with_a_smaller_unit(size: int, expected: set[object]) -> None:
    story = Story(offer=OWN + OTHER)
    for at in range(0, 4000, size):
        story.send_octets(at, size)
    assert story.verdicts("RWBP-NG-006") == expected


def test_one_option_that_counts_is_no_occasion() -> None:
    assert Story().send(0).verdicts("RWBP-NG-006") == NOTHING


def test_option_in_an_acknowledgment() -> None:
    assert Story().arrive(0).reply(1, after=0.1).verdicts("RWBP-NG-007") == PASS
    story = Story().arrive(0)
    story.put(True, OWN, flags=ACK, seq=500, ack=1100, after=0.1)
    assert story.verdicts("RWBP-NG-007") == FAIL


@pytest.mark.parametrize(("over", "expected"), [(True, NOTHING), (False, FAIL)])
def test_option_arrives_and_a_reset_answers_it(over: bool, expected: set[object]) -> None:
    story = Story(offer=b"", answer=b"", service=9)
    story.put(False, flags=ACK | FIN, seq=100, ack=500, after=0.1)
    story.put(True, flags=ACK | FIN, seq=500, ack=101, after=0.001)
    if over:
        story.put(False, flags=ACK, seq=101, ack=501, after=RTT)
    story.put(False, OTHER, flags=ACK, seq=101, ack=501 if over else 500, after=0.1)
    assert story.reset(seq=501).verdicts("RWBP-NG-007") - PASS == expected


@pytest.mark.parametrize(("before", "accused"), [(True, False), (False, True)])
def test_option_meets_a_call_that_has_been_given_up(before: bool, accused: bool) -> None:
    story = Story(service=9)
    story.packets.pop()
    if before:
        story.put(False, flags=ACK, seq=70_000, ack=500, after=300.0).put(True, flags=RST, seq=500)
    story.put(False, OTHER, flags=ACK, seq=100, ack=500, after=0.001)
    story.put(False, flags=ACK, seq=100, ack=500, after=0.001).put(True, flags=RST, seq=500)
    story.put(False, flags=ACK, seq=100, ack=500, after=1.0)
    assert (not story.verdicts("RWBP-NG-007").isdisjoint(FAIL)) == accused


@pytest.mark.parametrize(("size", "expected"), [(SIZE, PASS), (500, {*PASS, *FAIL})])
def test_option_arrives_in_an_acknowledgment(size: int, expected: set[object]) -> None:
    story = Story(window=4).send(*range(4))
    story.put(False, OTHER, flags=ACK, seq=100, ack=4500, window=4, after=RTT)
    for at in range(4000, 8000, size):
        story.send_octets(at, size)
    assert story.ack(8, after=RTT).send(8).verdicts("RWBP-NG-007") == expected


def test_plain_connection_with_a_congestion_window() -> None:
    story = Story(rwbp=False, window=40).send(0, 1, 2, window=1000)
    assert story.ack(3, after=RTT, window=40000).verdicts("RWBP-NG-008") >= PASS
    assert FAIL.isdisjoint(story.verdicts("RWBP-NG-008"))


def test_plain_connection_without_a_congestion_window() -> None:
    story = Story(rwbp=False, window=40).send(*range(30), window=1000)
    assert story.verdicts("RWBP-NG-008") >= FAIL


def test_connection_with_rwbp_is_not_plain() -> None:
    assert Story(window=40).send(*range(30)).verdicts("RWBP-NG-008") == NOTHING


def test_scale_of_the_offer_is_void() -> None:
    story = Story(offer=OWN + SCALE, window=4).send(0, 1, 2, 3)
    assert story.verdicts("RWBP-NG-009") == PASS
    assert story.send(4, 5).verdicts("RWBP-NG-009") == FAIL


def test_timestamps_are_sent() -> None:
    story = Story().arrive(0)
    story.put(True, STAMPS, flags=ACK, seq=500, ack=1100, after=0.1)
    assert story.verdicts("RWBP-NG-009") == FAIL


@pytest.mark.parametrize(("taken", "expected"), [(True, PASS), (False, FAIL)])
def test_timestamps_arrive(taken: bool, expected: set[object]) -> None:
    story = Story(service=9).arrive(0).reply(1, after=0.1)
    story.put(False, STAMPS, flags=ACK, seq=1100, payload=bytes(SIZE), after=0.1, ack=500)
    story.reply(2 if taken else 1, after=0.1)
    assert story.arrive(2).reply(3 if taken else 1, after=0.1).verdicts("RWBP-NG-009") == expected


@pytest.mark.parametrize(
    ("flags", "expected"), [(ACK, PASS), (ACK | ECE, {*PASS, *FAIL}), (ACK | CWR, {*PASS, *FAIL})]
)
def test_flags_of_ecn_are_sent(flags: int, expected: set[object]) -> None:
    assert Story().send(0).send(1, flags=flags).verdicts("RWBP-NG-010") == expected


@pytest.mark.parametrize(("heeded", "expected"), [(True, PASS), (False, FAIL)])
def test_ece_arrives(heeded: bool, expected: set[object]) -> None:
    story = Story(window=4).send(*range(4)).ack(4, after=RTT, flags=ACK | ECE)
    story.send(4, 5, 6, 7, after=0.0 if heeded else 1.0)
    assert expected <= story.ack(8, after=RTT).verdicts("RWBP-NG-010")


@pytest.mark.parametrize(("payload", "expected"), [(b"", PASS), (b"x", FAIL)])
def test_data_in_an_own_syn(payload: bytes, expected: set[object]) -> None:
    story = Story(calls=True, own={"payload": payload}, open=False)
    assert story.verdicts("RWBP-NG-011") == expected


@pytest.mark.parametrize(("number", "expected"), [(100, PASS), (105, {*PASS, *FAIL})])
def test_data_in_a_syn_of_the_tester(number: int, expected: set[object]) -> None:
    story = Story(open=False)
    story.packets.clear()
    story.put(
        False, OWN, flags=SYN, seq=99, ack=0, window=8000, mss=SIZE, sack_permitted=True,
        payload=b"hello",
    )  # fmt: skip
    story.own = {"ack": number}
    assert story.own_syn(after=0.001).verdicts("RWBP-NG-011") == expected
