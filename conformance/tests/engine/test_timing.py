"""The bed's error, measured on packets seen on both sides of a link."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.lane import Captured, Point
from bentpipe_conformance.engine.timing import lateness
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.protocols.tcp.codec import ACK, Tcp, build
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_reference.common.link.profile import Direction, LinkProfile

RATE = 1_000_000
ONE_WAY = Direction(rate_bit_s=RATE, delay_s=0.25, queue_packets=10)
LINK = LinkProfile("test", "test", "test", ONE_WAY, ONE_WAY)


def packet(number: int) -> bytes:
    return build(Tcp("10.0.0.1", "10.0.0.2", 1, 2, number, 0, ACK, 100, b"x" * 85))


SERIALISATION = len(packet(0)) * 8 / RATE


def trace(*seen: tuple[float, Point, int]) -> Trace:
    return read_trace(
        (Captured(time, point, True, packet(number)) for time, point, number in seen), suite=SNR
    )


def test_packets_that_take_the_links_time_show_no_error() -> None:
    queued = trace(
        (1.0, "iut", 1),
        (1.0, "iut", 2),
        (1.25 + SERIALISATION, "peer", 1),
        (1.25 + 2 * SERIALISATION, "peer", 2),
    )
    assert lateness(queued, LINK) == pytest.approx(0.0, abs=1e-9)


def test_late_packet_is_the_error() -> None:
    late = trace((1.0, "iut", 1), (1.25 + SERIALISATION + 0.04, "peer", 1))
    assert lateness(late, LINK) == pytest.approx(0.04)


def test_early_packet_is_an_error_too() -> None:
    early = trace((1.0, "iut", 1), (1.2, "peer", 1))
    assert lateness(early, LINK) == pytest.approx(0.05 + SERIALISATION)


def test_equal_packets_of_which_one_was_lost_are_not_compared() -> None:
    repeated = trace((1.0, "iut", 1), (3.0, "iut", 1), (3.25 + SERIALISATION, "peer", 1))
    assert lateness(repeated, LINK) == 0.0


def test_link_that_reorders_is_not_calculable() -> None:
    reordering = Direction(rate_bit_s=RATE, delay_s=0.25, reorder_probability=0.1)
    link = LinkProfile("test", "test", "test", reordering, ONE_WAY)
    assert lateness(trace((1.0, "iut", 1), (9.0, "peer", 1)), link) == 0.0
