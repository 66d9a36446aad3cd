"""The checkers of segments on the wire, on traces written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.protocols.rwbp.codec import option_octets
from bentpipe_conformance.protocols.rwbp.story import FAIL, NOTHING, PASS, RTT, SIZE, Story
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, URG

MSS = bytes((2, 4, 1, 0))
UNKNOWN = bytes((200, 3, 7))
BAD = PASS | FAIL


def _damage(story: Story, octet: int = 37, bits: int = 1) -> Story:
    """Alter an octet of the last packet, by default of its checksum."""
    last = story.packets.pop()
    data = bytearray(last.data)
    data[octet] ^= bits
    story.packets.append(Captured(last.time, last.point, last.outgoing, bytes(data)))
    return story


def worst(found: set[Any]) -> set[Any]:
    """What they come to: segments before a bad one were good."""
    return found & FAIL or found


@pytest.mark.parametrize(("octet", "bits"), [(37, 1), (32, 0x70)])
def test_own_segment_damaged(octet: int, bits: int) -> None:
    story = _damage(Story().send(0, 1), octet, bits)
    assert story.verdicts("RWBP-WF-001") == FAIL


@pytest.mark.parametrize(("answered", "expected"), [(False, PASS), (True, BAD)])
def test_damaged_segment_arrives(answered: bool, expected: set[object]) -> None:
    story = _damage(Story(service=9).arrive(0).reply(1, after=0.1).arrive(2, after=0.1))
    if answered:
        story.reply(1, after=0.001)
    assert worst(story.arrive(1, after=0.5).reply(2, after=0.1).verdicts("RWBP-WF-001")) == worst(
        expected
    )


def test_damaged_segment_is_taken() -> None:
    story = _damage(Story(service=9).arrive(0).reply(1, after=0.1).arrive(1, after=0.1))
    assert story.reply(2, after=0.2).verdicts("RWBP-WF-001") >= FAIL


def test_damaged_syn_is_answered() -> None:
    story = Story(open=False)
    answer = story.packets.pop()
    _damage(story).packets.append(answer)
    assert story.verdicts("RWBP-WF-001") >= FAIL


@pytest.mark.parametrize(("number", "expected"), [(100, PASS), (99, FAIL), (101, FAIL)])
def test_number_of_a_syn(number: int, expected: set[object]) -> None:
    story = Story(own={"ack": number}, open=False)
    assert story.verdicts("RWBP-WF-002") == expected


@pytest.mark.parametrize(("reported", "expected"), [(1001, PASS), (1000, BAD), (1002, BAD)])
def test_number_of_a_fin(reported: int, expected: set[object]) -> None:
    story = Story(service=9).arrive(0, fin=True).reply(1, ack=100 + reported, after=0.001)
    assert story.verdicts("RWBP-WF-002") == expected


def test_number_that_is_left_out() -> None:
    assert Story().send(0).send_octets(SIZE + 1, 100).verdicts("RWBP-WF-002") >= FAIL


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, PASS), ({"sack": ((1100, 2100),)}, FAIL), ({"mss": 1000}, FAIL)],
)
def test_options_of_data(fields: dict[str, Any], expected: set[object]) -> None:
    assert worst(Story().send(0).send(1, **fields).verdicts("RWBP-WF-003")) == worst(expected)


def test_options_of_a_fin() -> None:
    story = Story()
    story.put(True, MSS, flags=ACK | FIN, seq=500)
    assert story.verdicts("RWBP-WF-003") == FAIL


@pytest.mark.parametrize(
    ("options", "expected"),
    [(b"", PASS), (MSS, FAIL), (UNKNOWN, FAIL), (option_octets(8, SIZE), FAIL)],
)
def test_options_of_acknowledgments(options: bytes, expected: set[object]) -> None:
    story = Story(service=9).arrive(0, 2).reply(1, (2, 3), after=0.001)
    story.put(True, options, flags=ACK, seq=500, ack=1100, after=0.1)
    assert worst(story.verdicts("RWBP-WF-004")) == worst(expected)


@pytest.mark.parametrize(("taken", "expected"), [(True, PASS), (False, BAD)])
def test_unknown_option_arrives(taken: bool, expected: set[object]) -> None:
    story = Story(service=9).arrive(0).reply(1, after=0.1)
    story.put(False, UNKNOWN, flags=ACK, seq=1100, ack=500, payload=bytes(SIZE), after=0.1)
    story.reply(2 if taken else 1, after=0.1)
    assert story.arrive(2).reply(3, after=0.1).verdicts("RWBP-WF-005") == expected


@pytest.mark.parametrize(("heeded", "expected"), [(True, PASS), (False, FAIL)])
def test_blocks_on_data_arrive(heeded: bool, expected: set[object]) -> None:
    story = Story(window=6).send(0, 1, 2)
    story.ack(0, (1, 3), after=RTT, payload=bytes(100), window=8)
    story.send(*(0, 3, 4, 5) if heeded else (3, 4, 5)).reply(0.1, after=0.1)
    story.send(6, 7)
    assert expected <= story.ack(0, (1, 8), after=RTT).verdicts("RWBP-WF-005")


@pytest.mark.parametrize(("size", "expected"), [(SIZE, PASS), (SIZE + 1, FAIL), (100, NOTHING)])
def test_size_of_a_segment(size: int, expected: set[object]) -> None:
    assert Story().send_octets(0, size).verdicts("RWBP-WF-006") == expected


@pytest.mark.parametrize(("size", "expected"), [(SIZE, PASS), (900, FAIL)])
def test_segment_of_chargen(size: int, expected: set[object]) -> None:
    assert Story().send_octets(0, size).verdicts("RWBP-WF-007") == expected


@pytest.mark.parametrize(("window", "expected"), [(1, NOTHING), (8, FAIL)])
def test_small_piece_held_back_and_room_for_more(window: int, expected: set[object]) -> None:
    """Where there is no room for a whole segment the window, and no rule of Nagle's, holds it."""
    story = Story(service=7, window=window).arrive(0, size=500).send_octets(0, 500)
    story.arrive(0.5, size=100, after=0.1).ack(0, after=0.5)
    assert story.verdicts("RWBP-WF-007") & FAIL == expected
    assert story.verdicts("RWBP-FC-003") >= FAIL


@pytest.mark.parametrize(("after", "expected"), [(0.0, PASS), (0.5, BAD)])
def test_small_piece_of_an_echo(after: float, expected: set[object]) -> None:
    story = Story(service=7).arrive(0, size=100).send_octets(0, 100)
    story.arrive(0.1, size=100, after=0.1).send_octets(100, 100, after=after)
    assert story.verdicts("RWBP-WF-007") == expected


def _closing(window: float, *, data: int = 300) -> Story:
    """An echo that has data and FIN to send, and then a window of so many octets."""
    story = Story(service=7, window=0).arrive(0, size=data, fin=True)
    story.reply(0, ack=100 + data + 1)
    return story.ack(0, after=0.5, seq=100 + data + 1, window=window)


def test_fin_rides_on_the_last_data() -> None:
    assert _closing(1).send_octets(0, 300, fin=True).verdicts("RWBP-WF-008") == PASS


def test_fin_behind_the_last_data() -> None:
    story = _closing(1).send_octets(0, 300).send_octets(300, 0, fin=True)
    assert story.verdicts("RWBP-WF-008") >= FAIL


@pytest.mark.parametrize(("after", "expected"), [(0.0, PASS), (0.5, FAIL)])
def test_fin_of_a_discard(after: float, expected: set[object]) -> None:
    story = Story(service=9).arrive(0, fin=True).reply(1, ack=1101)
    assert story.send_octets(0, 0, after, fin=True).verdicts("RWBP-WF-008") == expected


@pytest.mark.parametrize(("flags", "expected"), [(ACK, PASS), (ACK | URG, FAIL)])
def test_urgent_data_is_sent(flags: int, expected: set[object]) -> None:
    assert worst(Story().send(0).send(1, flags=flags).verdicts("RWBP-WF-009")) == worst(expected)


@pytest.mark.parametrize(("taken", "expected"), [(True, PASS), (False, BAD)])
def test_urgent_data_arrives(taken: bool, expected: set[object]) -> None:
    story = Story(service=9).arrive(0).reply(1, after=0.1)
    story.arrive(1, after=0.1, flags=ACK | URG).reply(2 if taken else 1, after=0.1)
    assert story.arrive(2).reply(3, after=0.1).verdicts("RWBP-WF-009") == expected


@pytest.mark.parametrize(("right", "expected"), [(True, PASS), (False, FAIL)])
def test_octets_of_chargen(right: bool, expected: set[object]) -> None:
    payload = bytes((i ^ i >> 8) & 255 for i in range(SIZE)) if right else bytes(SIZE)
    story = Story().put(True, flags=ACK, seq=500, payload=payload)
    assert story.verdicts("RWBP-WF-010") == expected


@pytest.mark.parametrize(("octet", "expected"), [(0, PASS), (1, FAIL)])
def test_octets_of_an_echo(octet: int, expected: set[object]) -> None:
    story = Story(service=7).arrive(0)
    story.put(True, flags=ACK, seq=500, ack=1100, payload=bytes((octet,)) * SIZE)
    assert story.verdicts("RWBP-WF-010") == expected


@pytest.mark.parametrize(("closes", "expected"), [(True, PASS), (False, FAIL)])
def test_service_after_the_fin(closes: bool, expected: set[object]) -> None:
    story = Story(service=9).arrive(0, fin=True).reply(1, ack=1101)
    if closes:
        story.send_octets(0, 0, fin=True)
    story.ack(0, after=0.5, seq=1101)
    assert story.ack(0, after=5.0, seq=1101).verdicts("RWBP-WF-010") == expected


@pytest.mark.parametrize(("octets", "expected"), [(499, BAD), (500, PASS)])
def test_fin_behind_more_than_the_window_takes(octets: int, expected: set[object]) -> None:
    """An echo has 500 octets of window: 499 and FIN fit, 500 and FIN wait."""
    story = Story(service=7, window=1).arrive(0).reply(1)
    story.send_octets(0, SIZE).ack(1, after=RTT, seq=1100, window=0)
    story.put(False, flags=ACK | FIN, seq=1100, ack=1000, payload=bytes(octets))
    end = 1101 + octets
    story.reply(1, ack=end).ack(1, after=5.0, seq=end, ack=1000)
    assert story.verdicts("RWBP-WF-010") == expected


def test_syn_is_no_segment_of_the_connection() -> None:
    assert Story(open=False).verdicts("RWBP-WF-003") == NOTHING
