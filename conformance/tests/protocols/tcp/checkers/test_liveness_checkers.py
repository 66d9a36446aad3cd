"""The checkers of what a live connection does, on traces written by hand."""

from __future__ import annotations

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
