"""What is judged of error control where packets wait for a link rate or for credit."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.protocols.rwbp.story import (
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    RTT,
    SIZE,
    Story,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN

ONE_PLACE: dict[str, Any] = {**CLAIMS, "gateway": True, "ip_queue": 1}
"""What leaves entered the IP queue when the packet before it had left, or later."""
BAD = {*PASS, *FAIL}


def _hole(*, window: int = 8) -> Story:
    """Segments 0, 1 and 3 are reported missing when 4 has arrived; 5 was in the queue then."""
    story = Story(window=window).send(*range(5)).ack(0, (2, 3), (4, 5), after=RTT)
    return story.send(5, after=0.2)


@pytest.mark.parametrize(
    ("again", "expected"),
    [((0, 1, 3, 6), PASS), ((1, 0, 3), FAIL), ((0, 3, 1), FAIL), ((0, 1, 6, 3), FAIL)],
)
def test_order_of_what_waits(again: tuple[int, ...], expected: set[object]) -> None:
    story = _hole()
    for index in again:
        story.send(index, after=0.1)
    assert story.verdicts("RWBP-EC-004", claims=ONE_PLACE) == expected


def test_what_was_in_the_queue_before_may_leave_first() -> None:
    """Two places: 6 may have entered the queue with 5, before the losses were told."""
    story = _hole().send(6, after=0.1).send(0, 1, 3, after=0.1)
    claims = {**ONE_PLACE, "ip_queue": 2}
    assert story.verdicts("RWBP-EC-004", claims=claims) == PASS


@pytest.mark.parametrize(("suspects", "accused"), [(0, True), (2, True), (3, False)])
def test_order_after_losses_that_may_have_been_false(suspects: int, accused: bool) -> None:
    """Each is sent again and arrives; K is 1 until three were false (section 8.5)."""
    story, at = Story(window=40), 0
    for _ in range(suspects):
        story.send(at, at + 1).ack(at, (at + 1, at + 2), after=RTT).send(at, after=0.1)
        at += 2
        story.ack(at, after=RTT)
    story.send(*range(at, at + 5)).ack(at, (at + 2, at + 3), (at + 4, at + 5), after=RTT)
    story.send(at + 5, after=0.2).send(at + 6, after=0.1).send(at, at + 1, at + 3, after=0.1)
    assert bool(story.verdicts("RWBP-EC-004", claims=ONE_PLACE) & FAIL) is accused


def test_loss_that_is_reported_to_have_arrived_is_no_more_in_the_order() -> None:
    story = _hole().ack(2, (4, 5), after=0.1).send(3, after=0.1).send(6, after=0.1)
    assert story.verdicts("RWBP-EC-004", claims=ONE_PLACE) & FAIL == NOTHING


@pytest.mark.parametrize(("again", "expected"), [((3, 6), PASS), ((1, 3, 6), BAD)])
def test_repair_that_has_become_needless(again: tuple[int, ...], expected: set[object]) -> None:
    story = _hole().send(0, after=0.1).ack(2, (4, 5), after=RTT)
    story.send(6, after=0.1)  # it was in the queue then
    for index in again[:-1]:
        story.send(index, after=0.1)
    story.send(again[-1] + 1, after=0.1)
    assert story.verdicts("RWBP-EC-010", claims=ONE_PLACE) == expected


def test_repair_that_was_in_the_queue_when_it_became_needless() -> None:
    story = _hole().send(0, after=0.1).ack(2, (4, 5), after=RTT).send(1, after=0.1)
    assert story.verdicts("RWBP-EC-010", claims=ONE_PLACE) & FAIL == NOTHING


@pytest.mark.parametrize("amid", [0, 300])
def test_acknowledgment_that_ends_amid_what_was_reported(amid: int) -> None:
    """What is left of the segment has been reported: it has arrived, and is not cut anew."""
    story = _hole().ack(2, ack=500 + 2 * SIZE + amid, after=0.1).send(2, after=0.1)
    assert story.verdicts("RWBP-EC-011", claims=ONE_PLACE) & FAIL == NOTHING
    assert story.verdicts("RWBP-EC-010", claims=ONE_PLACE) == BAD


@pytest.mark.parametrize(("octets", "expected"), [(SIZE, PASS), (SIZE // 2, FAIL)])
def test_boundaries_of_what_waited(octets: int, expected: set[object]) -> None:
    story = _hole().send_octets(0, octets, after=0.1)
    assert story.verdicts("RWBP-EC-011", claims=ONE_PLACE) == expected


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ((0, 0, 0, 1, 3), PASS),  # the lowest may have timed out, too
        ((0, 1, 1), BAD),
        ((0, 1, 3, 1), BAD),
        ((5,), FAIL),
    ],
)
def test_what_was_never_due(again: tuple[int, ...], expected: set[object]) -> None:
    story = _hole()
    for index in again:
        story.send(index, after=2.0)
    assert story.verdicts("RWBP-EC-012", claims=ONE_PLACE) == expected


def test_guess_at_what_waits_for_the_link_hides_what_follows() -> None:
    """Segments 6 to 9 may have been sent, for all that anybody knows, and arrived."""
    story = _hole(window=20).ack(0, (7, 10), after=0.1).send(6, 3, 1, 1, after=2.0)
    for name in ("RWBP-EC-004", "RWBP-EC-010", "RWBP-EC-011", "RWBP-EC-012"):
        assert story.verdicts(name, claims=ONE_PLACE) & FAIL == NOTHING, name


@pytest.mark.parametrize(("claims", "accused"), [(ONE_PLACE, False), (CLAIMS, True)])
def test_data_beside_a_guess_counts(claims: dict[str, Any], accused: bool) -> None:
    """With the acknowledgment of what may wait in the IP queue the segment is taken."""
    story = Story(window=20).send(0).ack(9, payload=bytes(SIZE), after=0.1)
    story.send(1, after=0.1, ack=100 + SIZE)
    assert bool(story.verdicts("RWBP-WF-002", claims=claims) & FAIL) is accused


@pytest.mark.parametrize(("claims", "accused"), [(ONE_PLACE, False), (CLAIMS, True)])
def test_guess_may_acknowledge_an_end_that_waits(claims: dict[str, Any], accused: bool) -> None:
    """The connection is over then, and what comes later is answered by a RST of its own number."""
    story = Story(service=7).arrive(0, 1, fin=True).ack(8, after=0.1, seq=2101)
    story.send(0, after=0.5, ack=2101).send(1, flags=ACK | FIN, ack=2101)
    story.put(True, flags=RST, seq=8500, ack=0, window=0)
    for name in ("RWBP-CX-006", "RWBP-SEC-003"):
        assert bool(story.verdicts(name, claims=claims) & FAIL) is accused, name


@pytest.mark.parametrize(("claims", "accused"), [(ONE_PLACE, False), (CLAIMS, True)])
def test_segment_that_was_cut_before_more_was_written(
    claims: dict[str, Any], accused: bool
) -> None:
    """It happens to end at the edge, and waited for the link while more arrived to be echoed."""
    story = Story(service=7, window=2).arrive(0, size=300)
    story.arrive(0.3, 1.3, after=0.1, size=SIZE)
    story.send_octets(0, 300, after=0.1).ack(0, ack=800, after=0.1, window=0)
    story.send_octets(300, SIZE).send_octets(1300, 700)
    assert bool(story.verdicts("RWBP-WN-006", claims=claims) & FAIL) is accused


@pytest.mark.parametrize(("claims", "accused"), [(ONE_PLACE, False), (CLAIMS, True)])
def test_syn_that_waits_for_credit_to_be_answered(claims: dict[str, Any], accused: bool) -> None:
    odd = Story(service=9).arrive(0).reply(1, after=0.1).put(False, flags=SYN, seq=900, after=0.1)
    later = Story(service=9, port=4001, open=False)
    later.packets = [*odd.packets, *later.packets[:1]]
    later.packets[-1] = type(later.packets[-1])(odd.at + 1, "iut", False, later.packets[-1].data)
    later.at = odd.at + 1
    later.syn(after=6.0)
    assert bool(later.verdicts("RWBP-SEC-003", claims=claims) & FAIL) is accused


@pytest.mark.parametrize(("gateway", "expected"), [(True, NOTHING), (False, FAIL)])
@pytest.mark.parametrize("rule", ["RWBP-CX-006", "RWBP-TM-006"])
def test_reset_that_refused_what_came_in_syn_received(
    rule: str, gateway: bool, expected: set[object]
) -> None:
    """It has waited for credit, and nobody has given the connection up."""
    story = Story(open=False)
    story.at = RTT
    story.put(False, flags=ACK, seq=100, ack=501).ack(0, after=0.1)
    story.put(True, flags=RST, seq=501, ack=0, after=60.0).send(0, after=0.01)
    story.put(False, flags=ACK, seq=100, ack=500, after=0.1)
    assert story.verdicts(rule, claims={**CLAIMS, "gateway": gateway}) & FAIL == expected
