"""The gateway's queues and credit, and the proxy's account of it (section 9.4)."""

from __future__ import annotations

import pytest
from bentpipe_reference.rwbp.credit import Credit, CreditFrame
from bentpipe_reference.rwbp.gateway import Gateway
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.wire.segment import Segment


def gateway(low: int = 75, high: int = 50) -> Gateway[str]:
    """One that sends a packet of 1000 octets in 10 ms."""
    return Gateway(800_000.0, low, high, epoch=7)


def test_frame_at_first_grants_the_whole_queue() -> None:
    """The example of section 9.4."""
    assert gateway().frame_due(0.0) == CreditFrame(7, 0, 75)


def test_frame_counts_what_arrived_and_grants_what_left() -> None:
    """RWBP-LC-010: 20 have arrived and 8 of them have left."""
    node = gateway()
    for number in range(20):
        assert node.take(str(number), 1000, 0.0)
    node.transmit(0.075)
    assert node.frame() == CreditFrame(7, 20, 83)


def test_frames_are_repeated_and_sent_when_a_quarter_has_become_free() -> None:
    """RWBP-LC-009."""
    node = gateway(low=20)
    assert node.frame_due(0.0) is not None
    assert node.frame_due(0.05) is None
    assert node.frame_due(0.1) is not None
    for number in range(20):
        node.take(str(number), 1000, 0.1)
    assert node.frame_due(0.135) is None
    assert node.frame_due(0.145) == CreditFrame(7, 20, 25)


def test_packets_leave_in_order_and_those_of_high_priority_first() -> None:
    node = gateway()
    node.take("low 1", 1000, 0.0)
    node.take("low 2", 1000, 0.0)
    node.take_high("high", 500, 0.001)
    assert node.transmit(0.0099) == []
    assert node.transmit(0.0101) == ["low 1"]
    assert node.next_deadline() == pytest.approx(0.015)
    assert node.transmit(1.0) == ["high", "low 2"]


def test_packet_when_the_queue_is_full_is_dropped_and_not_counted() -> None:
    node = gateway(low=2, high=1)
    assert [node.take(str(n), 1000, 0.0) for n in range(4)] == [True, True, True, False]
    assert [node.take_high(str(n), 1000, 0.0) for n in range(2)] == [True, False]
    assert (node.dropped, node.dropped_high, node.frame().arrived) == (1, 1, 3)


def test_gateway_when_it_restarts_begins_a_new_epoch() -> None:
    node = Gateway[str](800_000.0, 10, epoch=65_535)
    node.take("lost", 1000, 0.0)
    node.restart()
    assert node.transmit(1.0) == []
    assert node.frame_due(1.0) == CreditFrame(0, 0, 10)


def credit(*frames: tuple[int, int, int], at: float = 0.0) -> Credit:
    account = Credit()
    for frame in frames:
        account.on_frame(CreditFrame(*frame), at)
    return account


def passes(account: Credit, now: float) -> int:
    count = 0
    while account.may_pass(now):
        account.on_pass(now)
        count += 1
    return count


def test_account_before_the_first_frame_passes_nothing() -> None:
    assert passes(Credit(), 0.0) == 0


@pytest.mark.parametrize(
    ("frames", "passed"),
    [
        ([(1, 0, 5)], 5),
        ([(1, 7, 7)], 0),
        ([(1, 0, 5), (1, 0, 3)], 5),
        ([(1, 0, 5), (1, 0, 9)], 9),
        ([(1, 0, 5), (2, 100, 102)], 2),
        ([(2, 0, 5), (1, 0, 50)], 5),
        ([(65_535, 0, 5), (0, 0, 2)], 2),
        ([(1, (1 << 32) - 2, 3)], 5),
    ],
)
def test_account_passes_what_the_frames_grant(
    frames: list[tuple[int, int, int]], passed: int
) -> None:
    """RWBP-LC-003, RWBP-LC-004."""
    assert passes(credit(*frames), 0.0) == passed


def test_account_when_the_last_frame_is_old_passes_nothing() -> None:
    """RWBP-LC-005: a frame of an older epoch is none."""
    account = credit((3, 0, 5))
    account.on_frame(CreditFrame(2, 0, 5), 0.9)
    assert account.may_pass(1.0)
    assert not account.may_pass(1.01)
    account.on_frame(CreditFrame(3, 0, 5), 1.1)
    assert account.may_pass(1.2)


def test_account_takes_the_arrivals_for_what_it_passed_after_a_second() -> None:
    """RWBP-LC-006."""
    account = credit((1, 0, 5))
    assert passes(account, 0.0) == 5
    account.on_frame(CreditFrame(1, 3, 5), 0.9)
    assert passes(account, 0.9) == 0
    account.on_frame(CreditFrame(1, 3, 5), 1.0)
    assert passes(account, 1.0) == 2


def test_acknowledgment_when_the_queue_is_full_replaces_all_of_its_connection() -> None:
    """RWBP-SC-005: two have entered while there was room."""
    queue = IpQueue(4, None, None)
    data = Segment(1, 2, 10, 20, payload=b"x")
    own = [Segment(1, 2, 10, 20, ack=number) for number in range(3)]
    other = Segment(1, 2, 11, 20)
    for packet in (own[0], data, own[1], other, own[2]):
        queue.put(packet)
    assert [queue.next_to_leave(0.0) for _ in range(4)] == [data, other, own[2], None]
