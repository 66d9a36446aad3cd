from __future__ import annotations

import pytest
from bentpipe_experiments.hk99_stp_table2 import (
    GEO,
    PACKETS,
    STP,
    STP_SHORT,
    TCP,
    judge,
    measure,
)
from bentpipe_experiments.model import Cell

ALL = (TCP, STP, STP_SHORT)


def cell(latency: float, packets: float) -> Cell:
    around = (-0.5, 0.0, 0.5)
    return Cell(
        tuple(latency + d for d in around), {}, {PACKETS: tuple(packets + d for d in around)}
    )


def judged(stp: Cell, short: Cell | None = None) -> list[bool | None]:
    cells = {(TCP, GEO): cell(2.0, 12.3), (STP, GEO): stp, (STP_SHORT, GEO): short or stp}
    return [item.holds for item in judge(cells, 1)]


@pytest.mark.parametrize("protocol", ALL)
def test_same_seed_gives_the_same_measurement(protocol: str) -> None:
    first, again, other = (measure(protocol, GEO, seed, batch=5) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("protocol", ALL)
def test_latency_is_round_trips(protocol: str) -> None:
    """Halving the round trip halves the latency, but for what the link's rate adds."""
    geo, half = (measure(protocol, rtt, 4, batch=10) for rtt in (GEO, GEO / 2))
    assert geo.value - half.value == pytest.approx(geo.value / 2, rel=0.2)


def test_known_client_with_a_long_request_saves_a_round_trip() -> None:
    tcp, stp, short = (measure(name, GEO, 1, batch=10).value for name in ALL)
    assert tcp - stp > 0.5
    assert short - stp == pytest.approx(0.6, abs=0.05)


def test_published_table_holds() -> None:
    assert judged(cell(1.5, 9.1)) == [True, True, True]


def test_more_packets_than_tcp_do_not_hold() -> None:
    assert judged(cell(1.5, 12.5)) == [True, True, False]


def test_slower_than_tcp_does_not_hold() -> None:
    assert judged(cell(2.1, 9.1)) == [False, False, True]
    assert judged(cell(1.5, 9.1), cell(2.1, 9.1)) == [True, False, True]


def test_difference_within_the_uncertainty_stays_open() -> None:
    some = Cell((1.6, 1.9, 2.49), {}, {PACKETS: (9.0, 9.0, 9.0)})
    assert judged(some) == [None, None, True]


def test_same_sizes_in_every_run_separate_what_the_sizes_alone_would_not() -> None:
    assert judged(cell(1.9, 12.2)) == [True, True, True]


def test_other_round_trips_leave_the_claims_open() -> None:
    cells = {(name, 80.0): cell(1.0, 9.0) for name in ALL}
    assert [item.holds for item in judge(cells, 1)] == [None, None, None]
