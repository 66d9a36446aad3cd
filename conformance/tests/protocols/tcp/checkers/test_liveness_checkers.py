"""The checkers of what a live connection does, on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN
from bentpipe_conformance.protocols.tcp.story import FAIL, NOTHING, PASS, RTT, SIZE, Story


def test_retransmission_with_other_octets() -> None:
    story = Story().send(0, 1).ack(1, after=RTT)
    assert story.send_octets(SIZE, SIZE, after=1.0).verdicts("SNR-CON-037") == FAIL


def test_retransmission_with_the_same_octets() -> None:
    story = Story().send(0, 1).ack(1, after=RTT)
    assert story.send(1, after=1.0).verdicts("SNR-CON-037") == PASS


def test_new_data_behind_a_hole_never_sent() -> None:
    assert Story().send(0, 2).verdicts("SNR-CON-037") == FAIL


def test_keep_alive_with_one_garbage_octet_below_what_is_acknowledged() -> None:
    story = Story().send(0, 1).ack(2, after=RTT)
    assert story.send_octets(2 * SIZE - 1, 1, after=75.0).verdicts("SNR-CON-037") == NOTHING


@pytest.mark.parametrize(("push", "expected"), [(True, PASS), (False, FAIL)])
def test_echo_of_data_that_came_with_too_old_an_acknowledgment(
    push: bool, expected: set[Verdict]
) -> None:
    story = Story(service=7, window=2 * SIZE)
    for segment in range(3):
        story.ack(segment, data=bytes(SIZE)).send(segment)
    story.ack(3, data=bytes(SIZE), after=RTT).ack(0, data=bytes(SIZE))
    story.send(3).ack(4, after=RTT).send(4, push=push).ack(5, after=RTT)
    assert story.verdicts("SNR-CON-038") == expected


@pytest.mark.parametrize(("push", "expected"), [(True, PASS), (False, FAIL)])
def test_echo_behind_a_fin_that_is_dropped_for_its_acknowledgment(
    push: bool, expected: set[Verdict]
) -> None:
    story = Story(service=7)
    story._put(False, flags=ACK | FIN, seq=101, ack=500 + 9 * SIZE)
    story.send_octets(0, 0).ack(0, data=bytes(2 * SIZE)).send(0).send_octets(SIZE, SIZE - 1)
    story.ack(2 - 1 / SIZE, after=RTT).send_octets(2 * SIZE - 1, 1, push=push).ack(2, after=RTT)
    assert story.verdicts("SNR-CON-038") == expected


def _ended_while_closed() -> Story:
    """The tester's FIN comes with a closed window, which opens after ten seconds."""
    story = Story().send(0, 1).ack(2, after=RTT, window=0, fin=True)
    return story.ack(2, after=10.0, window=20 * SIZE)


def test_fin_that_a_closed_window_holds_back() -> None:
    assert _ended_while_closed().reset().verdicts("SNR-CON-035") == NOTHING
    story = _ended_while_closed().ack(2, after=6.0, window=20 * SIZE)
    assert story.verdicts("SNR-CON-035") == FAIL
    assert _ended_while_closed().send_octets(2 * SIZE, 0, fin=True).verdicts("SNR-CON-035") == PASS


def test_fin_held_back_by_data_that_is_acknowledged_after_the_connection_was_given_up() -> None:
    story = Story().send(0).ack(1, after=RTT, fin=True).send(1, after=0.2).send(1, after=1.0)
    assert story.reset(after=60.0).ack(2, after=1.0).verdicts("SNR-CON-035") == NOTHING
    story = Story().send(0).ack(1, after=RTT, fin=True).send(1, after=0.2).ack(2, after=RTT)
    assert story.reset(after=60.0).verdicts("SNR-CON-035") == FAIL


@pytest.mark.parametrize(("fin", "expected"), [(True, NOTHING), (False, FAIL)])
@pytest.mark.parametrize("first", [True, False])
def test_text_at_the_number_of_the_fin_is_not_echoed(
    first: bool, fin: bool, expected: set[Verdict]
) -> None:
    """The FIN has come above a gap, before the text or after it."""
    story = Story(service=7).ack(0, data=bytes(1)).send_octets(0, 1).ack(1 / SIZE, after=RTT)
    if fin and first:
        story._put(False, flags=ACK | FIN, seq=100 + SIZE - 1, ack=501)
    if not first:
        story._put(False, flags=ACK, seq=102, ack=501, payload=bytes(SIZE - 2))
    if fin and not first:
        story._put(False, flags=ACK | FIN, seq=100 + SIZE - 1, ack=501)
    story._put(False, flags=ACK, seq=101, ack=501, payload=bytes(SIZE - 1))
    story._said = SIZE
    story.send_octets(1, SIZE - 2, fin=fin, after=0.1)
    story.ack(1 - (0 if fin else 1 / SIZE), after=RTT).ack(1, after=20.0)
    assert story.verdicts("SNR-CON-034") == expected
