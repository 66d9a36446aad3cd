"""The checkers of the gateway's credit on traces written by hand (section 9.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import pytest
from bentpipe_conformance.engine.codec import build_ipv4
from bentpipe_conformance.engine.story import IUT
from bentpipe_conformance.protocols.rwbp.credit import build_frame
from bentpipe_conformance.protocols.rwbp.story import CLAIMS, FAIL, NOTHING, PASS, Story
from bentpipe_conformance.protocols.tcp.codec import ACK

BEHIND = {**CLAIMS, "gateway": True}


@dataclass(kw_only=True)
class Behind(Story):
    """A connection behind a gateway that has granted some packets; the SYN-ACK is the first."""

    granted: int = 3

    def __post_init__(self) -> None:
        self.frame(self.granted)
        super().__post_init__()

    def frame(
        self, limit: int, arrived: int = 0, epoch: int = 1, after: float = 0.0, **odd: Any
    ) -> Self:
        """A credit frame arrives."""
        return self.tell(False, build_frame(IUT, epoch, arrived, limit, **odd), after)


def used_up() -> Behind:
    """All credit has been used, and more than a window waits."""
    return Behind().send(0, 1)  # type: ignore[return-value]


Telling = Callable[[], Story]

STORIES: list[tuple[str, set[object], Telling]] = [
    ("RWBP-LC-001", PASS, lambda: used_up().frame(9, checksum=0, after=0.1).frame(3, after=0.2)),
    ("RWBP-LC-001", FAIL, lambda: used_up().frame(9, checksum=0, after=0.1).send(2)),
    ("RWBP-LC-001", FAIL, lambda: used_up().frame(9, octets=13, after=0.1).send(2)),
    ("RWBP-LC-001", FAIL, lambda: used_up().frame(9, gateway="10.78.0.1").send(2)),
    ("RWBP-LC-001", PASS, lambda: used_up().frame(9, sport=53, after=0.1).send(2)),
    ("RWBP-LC-001", FAIL, lambda: used_up().frame(9, sport=53, after=0.1).frame(9, after=0.2)),
    ("RWBP-LC-002", PASS, lambda: used_up().frame(3, after=0.2).frame(4, after=0.1).send(2)),
    ("RWBP-LC-002", FAIL, lambda: used_up().send(2, 3)),
    ("RWBP-LC-002", FAIL, lambda: Behind(granted=0)),
    ("RWBP-LC-002", FAIL, lambda: Story().send(0)),
    ("RWBP-FC-006", FAIL, lambda: used_up().send(2)),
    ("RWBP-FC-006", PASS, lambda: used_up().frame(3, after=0.2)),
    ("RWBP-FC-006", NOTHING, lambda: used_up()),
    ("RWBP-LC-003", PASS, lambda: used_up().frame(9).frame(4).send(2, 3)),
    ("RWBP-LC-003", FAIL, lambda: used_up().frame(9).frame(3).frame(3, after=0.2)),
    ("RWBP-LC-003", FAIL, lambda: used_up().frame(9).frame(9, after=0.2)),
    ("RWBP-LC-004", PASS, lambda: used_up().frame(1, epoch=2).send(2)),
    ("RWBP-LC-004", FAIL, lambda: used_up().frame(9, epoch=0).send(2)),
    ("RWBP-LC-004", PASS, lambda: used_up().frame(9, epoch=0).frame(9, epoch=0, after=0.2)),
    ("RWBP-LC-004", FAIL, lambda: used_up().frame(9, epoch=2).frame(9, epoch=2, after=0.2)),
    ("RWBP-LC-004", FAIL, lambda: Behind(granted=9).frame(0, epoch=2).send(0)),
    ("RWBP-LC-005", FAIL, lambda: Behind(granted=9).send(0, after=0.45)),
    ("RWBP-LC-005", NOTHING, lambda: Behind(granted=9).send(0, after=0.35)),
    ("RWBP-LC-005", PASS, lambda: Behind(granted=3).send(0).frame(9, after=1.0).send(1)),
    ("RWBP-LC-006", PASS, lambda: used_up().frame(3, 1, after=1.1).send(2)),
    ("RWBP-LC-006", FAIL, lambda: used_up().frame(3, 1, after=1.1).frame(3, 1, after=0.2)),
    ("RWBP-LC-006", FAIL, lambda: used_up().frame(3, 1, after=0.5).send(2)),
    ("RWBP-LC-007", FAIL, lambda: used_up().reply(0)),
    ("RWBP-LC-007", PASS, lambda: Behind(granted=2).reply(0).frame(2, after=0.2)),
    ("RWBP-LC-008", PASS, lambda: used_up().frame(9, after=0.1).send(2, after=0.01)),
    ("RWBP-LC-008", FAIL, lambda: Behind(granted=9).frame(9).frame(9, after=0.2)),
    ("RWBP-LC-008", FAIL, lambda: Behind(granted=9).send(1, 0)),
]


@pytest.mark.parametrize(("rule", "expected", "telling"), STORIES)
def test_what_leaves_for_a_gateway(rule: str, expected: set[object], telling: Telling) -> None:
    assert telling().verdicts(rule, claims=BEHIND) == expected


def test_acknowledgment_behind_a_later_one() -> None:
    story = Behind(granted=20).arrive(0, 1).reply(2).reply(1)
    assert story.verdicts("RWBP-LC-008", claims=BEHIND) == FAIL


def test_answer_to_a_frame() -> None:
    answer = build_ipv4(b"\x0a\x4d\x00\x02", b"\x0a\x4e\xff\xfe", 1, bytes(8))
    story = used_up().frame(3, first=0x21).tell(True, answer)
    assert story.verdicts("RWBP-LC-001", claims=BEHIND) == FAIL


def test_time_between_two_orders_is_not_judged() -> None:
    story = Behind(timing_error=0.001).send(0, 1, 2).frame(9, after=0.002)
    assert story.verdicts("RWBP-FC-006", claims=BEHIND) == NOTHING


def test_implementation_that_claims_no_gateway() -> None:
    assert used_up().send(2).verdicts("RWBP-LC-002") == NOTHING


def test_other_address_than_that_of_the_link() -> None:
    claims = {**BEHIND, "link_address": "10.77.0.3"}
    assert used_up().send(2).verdicts("RWBP-FC-006", claims=claims) == NOTHING


class Unanswered(Behind):
    """A SYN that the implementation does not answer."""

    def own_syn(self, after: float = 0.0) -> Self:
        return self


@pytest.mark.parametrize("granted", [0, 9])
def test_nothing_leaves_whatever_a_second_epoch_grants(granted: int) -> None:
    """No wrong account explains it better than another: what there is credit for waits."""
    story = Unanswered(granted=granted, open=False)
    story.frame(9, epoch=2, after=0.01).frame(9, epoch=2, after=0.2).frame(9, epoch=2, after=0.2)
    assert story.verdicts("RWBP-LC-008", claims=BEHIND) == FAIL


@pytest.mark.parametrize(
    ("interval", "answered", "expected"),
    [(1, True, PASS), (1, False, FAIL), (8, False, NOTHING)],
)
def test_acknowledgments_of_two_connections_to_one_service(
    interval: int, answered: bool, expected: set[object]
) -> None:
    """Both wait for credit; that of the first one entered the queue first (section 9.2)."""
    first = Behind(granted=4, service=9, interval=interval)
    second = Story(service=9, port=4001, interval=interval, packets=first.packets)
    first.arrive(0, after=0.1)
    second.arrive(0, after=0.2)
    first.at = second.at
    first.frame(9, after=0.1)
    if answered:
        first.reply(1)
    second.at = first.at
    second.reply(1)
    first.packets.sort(key=lambda packet: packet.time)
    assert first.verdicts("RWBP-SC-005", claims=BEHIND) == expected


def test_acknowledgment_that_a_later_one_of_its_connection_replaces() -> None:
    """It stands behind what another connection has put into the queue meanwhile."""
    first = Behind(granted=4, service=9, interval=1)
    second = Story(service=9, port=4001, interval=1, packets=first.packets)
    first.arrive(0, after=0.1)
    second.arrive(0, after=0.2)
    first.at = second.at
    first.arrive(1, after=0.1).frame(9, after=0.1)
    second.at = first.at
    second.reply(1)
    first.at = second.at
    first.reply(2)
    first.packets.sort(key=lambda packet: packet.time)
    assert FAIL.isdisjoint(first.verdicts("RWBP-SC-005", claims=BEHIND))


def _alone(left: int, *, calls: int = 25, size: int = 10) -> Behind:
    """One connection's segments arrive while there is no credit; the last acknowledgments leave."""
    story = Behind(granted=3, service=9, interval=1)
    story.arrive(0, size=size, after=0.1).put(True, flags=ACK, seq=500, ack=100 + size)
    for index in range(1, calls + 1):
        after = 0.1 if index == 1 else 0.01
        story.put(False, flags=ACK, seq=100 + index * size, payload=bytes(size), after=after)
    story.frame(500, after=0.2)
    for number in range(calls + 2 - left, calls + 2):
        story.put(True, flags=ACK, seq=500, ack=100 + number * size)
    return story


@pytest.mark.parametrize(
    ("calls", "left", "expected"),
    [
        (25, 5, PASS), (25, 10, FAIL), (25, 1, FAIL), (11, 1, PASS), (11, 10, FAIL), (20, 10, PASS),
        (9, 9, NOTHING),
    ],
)  # fmt: skip
def test_acknowledgments_that_are_left_of_one_connection_alone(
    calls: int, left: int, expected: set[object]
) -> None:
    assert _alone(left, calls=calls).verdicts("RWBP-SC-005", claims=BEHIND) - expected == NOTHING
    assert _alone(left, calls=calls).verdicts("RWBP-SC-005", claims=BEHIND) >= expected


def test_how_many_are_left_is_not_known_where_another_connection_has_sent() -> None:
    first = Behind(granted=4, service=9, interval=1)
    second = Story(service=9, port=4001, interval=1, packets=first.packets)
    first.at = second.at
    first.arrive(0, size=10, after=0.1).put(True, flags=ACK, seq=500, ack=110)
    second.at = first.at
    second.arrive(0, size=10, after=0.1)
    first.at = second.at
    for index in range(1, 26):
        first.put(False, flags=ACK, seq=100 + index * 10, payload=bytes(10), after=0.01)
    first.frame(500, after=0.2)
    second.at = first.at
    second.put(True, flags=ACK, seq=500, ack=110)
    first.at = second.at
    for number in range(17, 27):
        first.put(True, flags=ACK, seq=500, ack=100 + number * 10)
    first.packets.sort(key=lambda packet: packet.time)
    assert FAIL.isdisjoint(first.verdicts("RWBP-SC-005", claims=BEHIND))
